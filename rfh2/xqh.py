"""The transmission queue header: a message on its way to another queue manager (wire formats, section 5).

    0        4        8            56              104                       428
    StrucId  Version  RemoteQName  RemoteQMgrName  MQMD, always of version 1  what that MQMD describes

The descriptor in front of it (Format MQXMIT) describes the header alone; the embedded one is the message's own and
takes over its role: what follows is described by it. Fields of version 2 follow in an MQMDE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rfh2.ccsid import ASCII_FIELDS, ByteOrder, field_codec
from rfh2.constants import MQFMT_XMIT_Q_HEADER, MQRC_HEADER_ERROR
from rfh2.errors import DecodeError, EncodeError
from rfh2.layouts import MQMD1, MQXQH, HeaderKind, characters
from rfh2.mqmd import Mqmd, decode_mqmd

KIND: Final = HeaderKind("MQXQH", "XQH ", MQFMT_XMIT_Q_HEADER, {1: MQXQH.size + MQMD1.size})


@dataclass(frozen=True, slots=True)
class Xqh:
    """One MQXQH. mqmd: the embedded descriptor, of version 1; it may differ in byte order and code page."""

    mqmd: Mqmd
    remote_q_name: str = ""
    remote_qmgr_name: str = ""
    order: ByteOrder = "little"
    charset: str = ASCII_FIELDS

    kind = KIND.name
    own_format = KIND.format

    @property
    def length(self) -> int:
        """Always 428 bytes."""
        return KIND.sizes[1]

    @property
    def encoding(self) -> int:
        """Encoding of what follows: the embedded descriptor's."""
        return self.mqmd.encoding

    @property
    def coded_char_set_id(self) -> int:
        """CodedCharSetId of what follows: the embedded descriptor's."""
        return self.mqmd.coded_char_set_id

    @property
    def format(self) -> str:
        """Format of what follows: the embedded descriptor's."""
        return self.mqmd.format

    def encode(self) -> bytes:
        """The bytes of this header. Raises EncodeError."""
        if self.mqmd.version != 1:
            raise EncodeError("MQXQH: the embedded MQMD must be of version 1, with an MQMDE after it")
        fixed = MQXQH.pack(
            self.order,
            KIND.struc_id.encode(self.charset),
            1,
            characters(self.remote_q_name, 48, self.charset, "RemoteQName"),
            characters(self.remote_qmgr_name, 48, self.charset, "RemoteQMgrName"),
        )
        return fixed + self.mqmd.encode()


def decode_xqh(data: bytes, offset: int, ccsid: int) -> Xqh:
    """The MQXQH at *offset* in *data*; ccsid: CodedCharSetId of the *preceding* header. Raises DecodeError."""
    struc_id = data[offset : offset + 4]
    ebcdic = KIND.families.get(struc_id)
    if ebcdic is None:
        raise _refused(offset, f"StrucId is {struc_id!r}, not {KIND.struc_id!r}", "bad-struc-id")
    found = KIND.versions.get(data[offset + 4 : offset + 8])
    if found is None:
        raise _refused(offset + 4, "Version is not 1 in either byte order", "unknown-version")
    there = len(data) - offset
    if there < KIND.sizes[1]:
        raise _refused(len(data), f"{KIND.sizes[1]} bytes are needed, {there} are there", "short-header")
    order, charset = found[1], field_codec(ccsid, ebcdic)
    _, _, queue, qmgr = MQXQH.fast[order].unpack_from(data, offset)
    mqmd, size = decode_mqmd(data, offset + MQXQH.size)
    if size != MQMD1.size:
        why = "the embedded MQMD is of version 2; a transmission queue header has version 1"
        raise _refused(offset + MQXQH.size + 4, why, "unknown-version")
    return Xqh(mqmd, str(queue, charset).rstrip(" "), str(qmgr, charset).rstrip(" "), order, charset)


def _refused(offset: int, why: str, code: str) -> DecodeError:
    return DecodeError(offset, KIND.name, why, code, MQRC_HEADER_ERROR)
