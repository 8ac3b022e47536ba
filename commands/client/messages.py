"""A message as a program has it: descriptor, properties, data. Properties travel in the folders of an MQRFH2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from rfh2.ccsid import UTF8_CCSID, text_codec
from rfh2.constants import MQFMT_RF_HEADER_2, MQFMT_STRING
from rfh2.elements import folder_text
from rfh2.errors import DecodeError
from rfh2.folders import Folder
from rfh2.message import Message as DecodedMessage, decode
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2

USER: Final = "usr"
Properties = Mapping[str, bool | int | float | str]


@dataclass(frozen=True)
class Message:
    """A message that was got. md: its MQMD. body: all that was put, headers too. token: gets it again.

    length: of its body on the queue, which is longer than *body* where the message was cut. reason: of a warning (2079
    it is cut, 2110 and others it could not be converted), 0 for none.
    """

    md: bytes
    body: bytes
    token: bytes = bytes(16)
    length: int = 0
    reason: int = 0

    @cached_property
    def descriptor(self) -> Mqmd:
        """The MQMD by its fields."""
        return Mqmd.decode(self.md)

    @cached_property
    def decoded(self) -> DecodedMessage:
        """The message by its headers; as data alone where they cannot be read."""
        try:
            return decode(self.body, self.md)
        except DecodeError:
            return DecodedMessage(self.descriptor, (), self.body)

    @property
    def data(self) -> bytes:
        """The data behind the headers."""
        return self.decoded.body

    @property
    def text(self) -> str:
        """The data as text, by its CodedCharSetId. Raises UnicodeDecodeError, or ValueError for an unknown one."""
        codec = text_codec(self.decoded.body_ccsid, self.decoded.body_encoding)
        if codec is None:
            raise ValueError(f"CodedCharSetId {self.decoded.body_ccsid} is not known")
        return self.data.decode(codec)

    @property
    def properties(self) -> dict[str, Any]:
        """The properties of folder usr. Raises DecodeError where it is malformed."""
        header = self.decoded.rfh2
        folder = None if header is None else header.folder(USER)
        return {} if folder is None else dict(folder.values())


def outgoing(data: bytes | str, mqmd: Mqmd | None = None, properties: Properties | None = None) -> tuple[Mqmd, bytes]:
    """Descriptor and body of a message to put. Text is put in UTF-8 with Format MQSTR; bytes as *mqmd* describes them.

    Raises EncodeError for a property that no folder can hold.
    """
    mqmd = mqmd or Mqmd(version=2)
    if isinstance(data, str):
        data = data.encode()
        mqmd = replace(mqmd, coded_char_set_id=UTF8_CCSID, format=mqmd.format or MQFMT_STRING)
    if not properties:
        return mqmd, data
    folder = Folder.of(folder_text(USER, dict(properties)))
    header = Rfh2(
        (folder,), encoding=mqmd.encoding, coded_char_set_id=mqmd.coded_char_set_id or UTF8_CCSID, format=mqmd.format
    )
    described = replace(
        mqmd, format=MQFMT_RF_HEADER_2, encoding=546, coded_char_set_id=mqmd.coded_char_set_id or UTF8_CCSID
    )
    return described, header.encode() + data
