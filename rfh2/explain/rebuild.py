"""From the JSON form of a message back to the captured message: byte for byte where nothing was edited.

The form says most things twice: a folder as text and as values, the body as text and as hex, a length beside the part
that has it. ``captured`` has the original message, which shows the edited parts: each part is compared with the same
part of the message that ``captured`` decodes to. A part that equals it keeps its bytes; a part that differs was edited.
If both forms of a part were edited differently, this is an error. Without ``captured`` everything counts as edited, and
the values, or the text, are used.

A part is matched with the original by its ``offset``; a part without an offset, or with an unknown one, is new. Lengths
and offsets are computed, never taken from the form. If headers were added or removed, each Format is set to announce
the header behind it. The format, encoding and ccsid in ``body`` are written to the last header, or to the MQMD.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rfh2 import pcf, rfh1
from rfh2.captured import CapturedMessage
from rfh2.ccsid import ENCODINGS, text_codec
from rfh2.constants import (
    MQCCSI_DEFAULT,
    MQCCSI_INHERIT,
    MQFMT_DEAD_LETTER_HEADER as MQDEAD,
    MQFMT_RF_HEADER_2 as MQHRF2,
)
from rfh2.errors import EncodeError
from rfh2.explain.describe import body_pcf
from rfh2.explain.fields import descriptor_layout, write_fields
from rfh2.explain.form import FieldValue
from rfh2.explain.reading import PartialMessage, read_message
from rfh2.explain.rebuild_header import Before, DecodedBody, DecodedMessage, Rebuilt, describe, from_hex, rebuild_header
from rfh2.explain.rebuild_pcf import pcf_data
from rfh2.layouts import STEPPED_OVER
from rfh2.message import Message
from rfh2.mqmd import MDE_KIND, XQH_KIND, Mqmd, decode_mqmd

FORMAT_OF: Final[dict[str, str]] = {
    "MQRFH2": MQHRF2,
    "MQDLH": MQDEAD,
    **{kind.name: kind.format for kind in (rfh1.KIND, XQH_KIND, MDE_KIND, pcf.EPH_KIND, *STEPPED_OVER)},
}
"""The Format that announces each kind of header."""

_DESCRIPTIONS: Final = {"format": "Format", "encoding": "Encoding", "ccsid": "CodedCharSetId"}


def rebuild(form: DecodedMessage) -> CapturedMessage:
    """The captured message that *form* describes. Raises EncodeError for what cannot be put into bytes."""
    if form.incomplete:
        raise EncodeError("the message is incomplete; without the key 'incomplete', what is there of it is encoded")
    if form.captured is None and form.body is None and not form.headers and form.mqmd is None:
        raise EncodeError(
            "there is no message: it is not an object that decode --json prints, or decode could not read the record"
        )
    captured = form.captured or CapturedMessage(seq=form.index + 1, queue="", body_hex="")
    return _Rebuilding(form, captured).result()


@dataclass(slots=True)
class _Descriptor:
    """The MQMD while it is rebuilt; data is None where the message has none. edited: the edited fields."""

    data: bytes | None
    edited: set[str]

    def describe_next(self, changes: dict[str, FieldValue]) -> None:
        if self.data is None:
            self.data = Mqmd().encode()
        mqmd, size = decode_mqmd(self.data)
        fixed = write_fields(descriptor_layout(mqmd.version), self.data, mqmd.order, mqmd.charset, changes)
        self.data = fixed + self.data[size:]


class _Rebuilding:
    """One message being rebuilt. was: the captured message decoded; known: whether there was one to compare with."""

    def __init__(self, form: DecodedMessage, captured: CapturedMessage) -> None:
        self.form, self.captured = form, captured
        self.known = form.captured is not None
        self.was: PartialMessage = read_message(captured)
        self.was_form = describe(self.was)

    def result(self) -> CapturedMessage:
        descriptor = self._descriptor()
        headers = self._headers(descriptor)
        kinds = [header.kind for header in headers]
        moved = not self.known or kinds != [header.type for header in self.was_form.headers]
        if moved:
            self._link(descriptor, headers)
        self._describe_body(descriptor, headers, moved)
        start = b"".join(header.data() for header in headers)
        message = self._up_to_body(descriptor.data, start)
        ccsid, encoding = message.body_ccsid, message.body_encoding
        return self._captured(descriptor.data, start + self._body(ccsid, encoding))

    def _up_to_body(self, md: bytes | None, start: bytes) -> Message:
        """What MQMD and headers say about the body behind them. The message's own body is not used."""
        was = self.was
        if md == self.captured.md and start == self.captured.body[: was.rest_offset]:
            return was.message
        return read_message(self._captured(md, start)).message

    def _captured(self, md: bytes | None, body: bytes) -> CapturedMessage:
        given = self.captured
        return CapturedMessage(
            seq=given.seq,
            time=given.time,
            qmgr=given.qmgr,
            queue=given.queue,
            user=given.user,
            md_hex=given.md_hex if md == given.md else md.hex() if md is not None else None,
            body_hex=given.body_hex if body == given.body else body.hex(),
        )

    def _descriptor(self) -> _Descriptor:
        form, was = self.form.mqmd, self.was_form.mqmd
        if form is None:
            return _Descriptor(self.captured.md if was is None else None, set())
        if was is None or self.captured.md is None:
            mqmd = replace(self._fresh(), version=_version(form))
            data, rest, changes = mqmd.encode(), b"", dict(form)
        else:
            mqmd, size = decode_mqmd(self.captured.md)
            data, rest = self.captured.md[:size], self.captured.md[size:]
            changes = {name: value for name, value in form.items() if name not in was or was[name] != value}
            if "Version" in changes:
                mqmd = replace(mqmd, version=_version(form))
                data = mqmd.encode()
        changes.pop("Version", None)
        if changes.pop("StrucId", "MD  ") not in ("MD  ", "MD"):
            raise EncodeError("MQMD StrucId cannot be edited")
        layout = descriptor_layout(mqmd.version)
        return _Descriptor(write_fields(layout, data, mqmd.order, mqmd.charset, changes) + rest, set(changes))

    def _fresh(self) -> Mqmd:
        """A descriptor for a message that had none: its defaults, and what its first header, or its body, needs."""
        if self.form.headers:
            first = self.form.headers[0]
            order = first.byte_order or "little"
            return Mqmd(format=FORMAT_OF.get(first.type, ""), encoding=ENCODINGS[order])
        return Mqmd()

    def _headers(self, descriptor: _Descriptor) -> list[Rebuilt]:
        befores = {
            located.offset: Before(located, shown, self.captured.body[located.offset :][: located.header.length])
            for located, shown in zip(self.was.headers, self.was_form.headers, strict=True)
        }
        mqmd = decode_mqmd(descriptor.data)[0] if descriptor.data is not None and self.form.mqmd else self.was.assumed
        encoding, ccsid = mqmd.encoding, mqmd.coded_char_set_id
        out: list[Rebuilt] = []
        for form in self.form.headers:
            before = befores.get(-1 if form.offset is None else form.offset)
            if before is not None and before.form.type != form.type:
                before = None
            rebuilt = rebuild_header(form, before, encoding, ccsid)
            out.append(rebuilt)
            says = form.mqmd if form.mqmd is not None else form.fields
            encoding = int(says.get("Encoding", encoding))
            stated = says.get("CodedCharSetId", ccsid)
            ccsid = ccsid if stated in (MQCCSI_INHERIT, MQCCSI_DEFAULT) else int(stated)
        return out

    def _link(self, descriptor: _Descriptor, headers: Sequence[Rebuilt]) -> None:
        """Make each Format announce the header behind it."""
        speakers: list[_Descriptor | Rebuilt] = [descriptor, *headers]
        for speaker, header in zip(speakers, headers, strict=False):
            wanted = FORMAT_OF.get(header.kind)
            if wanted is not None and not (isinstance(speaker, _Descriptor) and speaker.data is None):
                speaker.describe_next({"Format": wanted})

    def _describe_body(self, descriptor: _Descriptor, headers: Sequence[Rebuilt], moved: bool) -> None:
        """Write the format, encoding and ccsid in ``body`` to the last header, or to the MQMD."""
        form = self.form.body
        if form is None:
            return
        last: _Descriptor | Rebuilt = headers[-1] if headers else descriptor
        start = b"".join(header.data() for header in headers)
        message = self._up_to_body(descriptor.data, start)
        actual = {"format": message.body_format, "encoding": message.body_encoding, "ccsid": message.body_ccsid}
        was = self.was_form.body
        assert was is not None
        changes: dict[str, FieldValue] = {}
        for key, name in _DESCRIPTIONS.items():
            wanted = getattr(form, key)
            edited = not self.known or wanted != getattr(was, key)
            if wanted is None or wanted == actual[key] or not (edited or moved):
                continue
            if name not in last.edited:
                changes[name] = wanted
            elif edited:
                raise EncodeError(
                    f"body {key} {wanted!r} is not what the {name} of what precedes it says: {actual[key]!r}"
                )
        if changes:
            last.describe_next(changes)

    def _body(self, ccsid: int, encoding: int) -> bytes:
        form = self.form.body
        rest = self.was.rest
        if form is None:
            return rest if self.known else b""
        was = self.was_form.body if self.known else DecodedBody(text=None, hex=None)
        assert was is not None
        edited_hex, edited_text = form.hex != was.hex, form.text != was.text
        if form.pcf is not None and (not self.known or form.pcf != was.pcf):
            given = from_hex(form.hex, "body") if edited_hex and form.hex is not None else None
            found = body_pcf(self.was) if self.known else None
            return pcf_data(form.pcf, found, given, ccsid, keep_both=self.known)
        if edited_hex and form.hex is not None:
            data = from_hex(form.hex, "body")
            if not edited_text or form.text is None or _decoded(data, ccsid, encoding) == form.text:
                return data
            if self.known:
                raise EncodeError("body: text and hex were both edited, and differ")
        if edited_text and form.text is not None:
            return _encoded(form.text, ccsid, encoding) + _nulls(rest, was.text, ccsid, encoding)
        return rest


def _version(form: dict[str, FieldValue]) -> int:
    version = form.get("Version", 1)
    if version not in (1, 2):
        raise EncodeError(f"MQMD Version {version} is neither 1 nor 2")
    return int(version)


def _codec(ccsid: int, encoding: int) -> str:
    codec = "ascii" if ccsid in (MQCCSI_DEFAULT, MQCCSI_INHERIT) else text_codec(ccsid, encoding)
    if codec is None:
        raise EncodeError(f"body: CCSID {ccsid} is not known, so its text cannot be encoded; give hex")
    return codec


def _encoded(text: str, ccsid: int, encoding: int) -> bytes:
    codec = _codec(ccsid, encoding)
    try:
        return text.encode(codec)
    except UnicodeEncodeError as error:
        raise EncodeError(f"body: {text[error.start]!r} cannot be written in CCSID {ccsid} ({codec})") from error


def _decoded(data: bytes, ccsid: int, encoding: int) -> str | None:
    try:
        return data.decode(_codec(ccsid, encoding)).rstrip("\0")
    except (UnicodeDecodeError, EncodeError):
        return None


def _nulls(rest: bytes, text: str | None, ccsid: int, encoding: int) -> bytes:
    """The nulls that ended the body: ``text`` does not show them."""
    if text is None:
        return b""
    size = len("\0".encode(_codec(ccsid, encoding)))
    count = 0
    while count < len(rest) and rest[len(rest) - count - size : len(rest) - count] == bytes(size):
        count += size
    return rest[len(rest) - count :]
