"""One header, rebuilt from its JSON form: what was edited, in the bytes that it had.

The JSON form of a decoded message as it is read back: perhaps with changes, so every value in it is checked.

Only ``encode`` needs these models. ``decode`` writes the form without them, and starts faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from rfh2.captured import CapturedMessage
from rfh2.ccsid import ASCII_FIELDS, ByteOrder, byte_order, field_codec, is_ebcdic, name_value_codec, text_codec
from rfh2.constants import MQENC_NATIVE
from rfh2.dlh import Dlh
from rfh2.elements import UNTYPED, folder_text, leaf_text, number, padded
from rfh2.errors import DecodeError, EncodeError
from rfh2.explain.describe import described, embedded_pcf, folder_form
from rfh2.explain.fields import BYTE_STRINGS, COMPUTED, layout_of, write_fields
from rfh2.explain.form import ByteOrderName, FieldValue, Problem
from rfh2.explain.reading import Located, PartialMessage
from rfh2.explain.rebuild_pcf import pcf_data
from rfh2.folders import Folder
from rfh2.layouts import MQMD1, Layout
from rfh2.mqmd import Mde, Mqmd, Xqh, decode_mqmd
from rfh2.pcf import Eph
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")


class DecodedFolder(_Form):
    """One NameValueData. offset: of its first byte, from the start of the first header; length: padding included.

    raw: its characters, padding included. values: None where the text is not well formed. hex: only where the bytes are
    not text of the folder's CCSID.
    """

    name: str = ""
    offset: int | None = None
    length: int | None = None
    raw: str | None = None
    values: dict[str, Any] | None = None
    hex: str | None = None


class DecodedHeader(_Form):
    """One header. fields: its fixed part in IBM's names. byte_order, charset: in which that is written.

    folders: of an MQRFH2; pairs, raw: of an MQRFH; mqmd: of an MQXQH; pcf: of an MQEPH; hex: what follows the fixed
    part of an MQEPH and of any other.
    """

    type: str
    offset: int | None = None
    length: int | None = None
    byte_order: ByteOrderName | None = None
    charset: str | None = None
    fields: dict[str, FieldValue] = {}
    folders: list[DecodedFolder] | None = None
    pairs: list[tuple[str, str]] | None = None
    raw: str | None = None
    mqmd: dict[str, FieldValue] | None = None
    pcf: dict[str, Any] | None = None
    hex: str | None = None


class DecodedBody(_Form):
    """What follows the last header that could be decoded. text: None where it is no text, or not of its CCSID.

    pcf: what a body in a PCF format holds.
    """

    offset: int | None = None
    length: int | None = None
    format: str | None = None
    encoding: int | None = None
    ccsid: int | None = None
    text: str | None = None
    hex: str | None = None
    pcf: dict[str, Any] | None = None


class DecodedMessage(_Form):
    """One message. source, index: the file and the record in it. command: the parsed command with its word, or None.
    explain: what it would lead to, if that was asked for. incomplete: whether a part is missing in the capture.

    mqmd: its fields in IBM's names, byte strings as hex, or None where there is none that can be read.
    """

    source: str = ""
    index: int = 0
    mqmd: dict[str, FieldValue] | None = None
    headers: list[DecodedHeader] = []
    command: dict[str, Any] | None = None
    body: DecodedBody | None = None
    problems: list[Problem] = []
    captured: CapturedMessage | None = None
    explain: dict[str, Any] | None = None
    incomplete: bool = False


def describe(partial: PartialMessage) -> DecodedMessage:
    """The form of a message without changes."""
    return DecodedMessage.model_validate(described(partial))


def describe_folder(folder: Folder) -> DecodedFolder:
    """The form of a folder without changes."""
    return DecodedFolder.model_validate(folder_form(folder))


FRESH: Final[dict[str, Callable[[ByteOrder, str], bytes]]] = {
    "MQRFH2": lambda order, charset: Rfh2(order=order, charset=charset).encode(),
    "MQRFH": lambda order, charset: Rfh1(order=order, charset=charset).encode(),
    "MQDLH": lambda order, charset: Dlh(0, order=order, charset=charset).encode(),
    "MQMDE": lambda order, charset: Mde(order=order, charset=charset).encode(),
    "MQXQH": lambda order, charset: Xqh(Mqmd(order=order, charset=charset), order=order, charset=charset).encode(),
}
"""Headers that can be made from nothing, with their defaults."""


@dataclass(frozen=True, slots=True)
class Before:
    """A header as it was captured: decoded, its JSON form, its bytes."""

    located: Located
    form: DecodedHeader
    data: bytes


@dataclass(slots=True)
class Rebuilt:
    """One header while it is rebuilt. fixed: its fixed part; tail: all bytes behind it. edited: the edited fields."""

    kind: str
    layout: Layout | None
    order: ByteOrder
    charset: str
    fixed: bytes
    tail: bytes
    edited: set[str] = field(default_factory=set)

    def data(self) -> bytes:
        """The bytes, with StrucLength set to how many there are."""
        if self.layout is not None and "StrucLength" in self.layout.names:
            length = len(self.fixed) + len(self.tail)
            self.fixed = write_fields(self.layout, self.fixed, self.order, self.charset, {"StrucLength": length})
        return self.fixed + self.tail

    def describe_next(self, changes: Mapping[str, FieldValue]) -> None:
        """Change the fields that describe what follows (Format, Encoding, CodedCharSetId)."""
        if self.kind == "MQXQH":
            own, size = decode_mqmd(self.tail)
            self.tail = write_fields(MQMD1, self.tail, own.order, own.charset, changes) + self.tail[size:]
        elif self.layout is not None:
            self.fixed = write_fields(self.layout, self.fixed, self.order, self.charset, changes)
        else:
            raise EncodeError(f"{self.kind}: what it says about the bytes after it cannot be changed")


def rebuild_header(form: DecodedHeader, before: Before | None, encoding: int, ccsid: int) -> Rebuilt:
    """The header that *form* asks for. encoding, ccsid: what the preceding header says, for one that is new.

    Raises EncodeError for what cannot be written.
    """
    layout = layout_of(form.type)
    if layout is None or (before is not None and before.form.byte_order is None):
        return _opaque(form, before)
    order, charset = _written_in(form, before, encoding, ccsid)
    if before is not None:
        was = before.form
        assert was.byte_order is not None
        assert was.charset is not None
        fixed = before.data[: layout.size]
        if (was.byte_order, was.charset) != (order, charset):
            fixed = _recoded(layout, fixed, (was.byte_order, was.charset), (order, charset))
        tail = before.data[layout.size :]
        changes = _changes(form.fields, was.fields, form.type)
    else:
        if form.type not in FRESH:
            raise EncodeError(f"{form.type}: a new one cannot be made; there are {', '.join(FRESH)}")
        data = FRESH[form.type](order, charset)
        fixed, tail = data[: layout.size], data[layout.size :]
        changes = {name: value for name, value in form.fields.items() if name not in COMPUTED}
    fixed = write_fields(layout, fixed, order, charset, changes)
    rebuilt = Rebuilt(form.type, layout, order, charset, fixed, tail, set(changes))
    rebuilt.tail = _tail(form, before, rebuilt, ccsid)
    return rebuilt


def _tail(form: DecodedHeader, before: Before | None, rebuilt: Rebuilt, ccsid: int) -> bytes:
    if form.type == "MQRFH2":
        return _folders(form, before, rebuilt)
    if form.type == "MQRFH":
        return _string(form, before, rebuilt, ccsid)
    if form.type == "MQXQH":
        return _embedded(form, before, rebuilt)
    edited_hex = form.hex is not None and (before is None or form.hex != before.form.hex)
    given = from_hex(form.hex, form.type) if edited_hex and form.hex is not None else None
    if form.pcf is not None and before is not None and form.pcf != before.form.pcf:
        header = before.located.header
        found = embedded_pcf(header) if isinstance(header, Eph) else None
        return pcf_data(form.pcf, found, given, ccsid, keep_both=True)
    return rebuilt.tail if given is None else given


def _opaque(form: DecodedHeader, before: Before | None) -> Rebuilt:
    if form.hex is None:
        raise EncodeError(f"{form.type}: not a header whose fields can be written; its hex is needed")
    data = before.data if before is not None and form.hex == before.form.hex else from_hex(form.hex, form.type)
    return Rebuilt(form.type, None, "little", ASCII_FIELDS, data, b"")


def _written_in(form: DecodedHeader, before: Before | None, encoding: int, ccsid: int) -> tuple[ByteOrder, str]:
    """Byte order and codec of the header's own fields: as the form says, as they were, or as the preceding one says."""
    order, charset = form.byte_order, form.charset
    if order is None:
        was = before.form.byte_order if before is not None else None
        order = was or byte_order(encoding) or byte_order(MQENC_NATIVE) or "little"
    if charset is None:
        was_in = before.form.charset if before is not None else None
        charset = was_in or field_codec(ccsid, is_ebcdic(ccsid))
    try:
        "".encode(charset)
    except LookupError as error:
        raise EncodeError(f"{form.type}: there is no charset {charset}") from error
    return order, charset


def _recoded(layout: Layout, fixed: bytes, was: tuple[ByteOrder, str], now: tuple[ByteOrder, str]) -> bytes:
    """The fixed part in another byte order and code page."""
    (order, charset), was_in = now, was[1]
    values: list[Any] = list(layout.fast[was[0]].unpack_from(fixed))
    for at, name in enumerate(layout.names):
        if isinstance(values[at], bytes) and name not in BYTE_STRINGS:
            try:
                values[at] = values[at].decode(was_in).encode(charset)
            except UnicodeError as error:
                raise EncodeError(f"{layout.name} {name}: cannot be written in {charset}") from error
    return layout.pack(order, *values)


def _changes(given: Mapping[str, FieldValue], was: Mapping[str, FieldValue], kind: str) -> dict[str, FieldValue]:
    changes = {name: value for name, value in given.items() if name not in was or was[name] != value}
    for name in COMPUTED & changes.keys():
        raise EncodeError(f"{kind} {name} follows from the rest of the header and cannot be edited")
    return changes


def _folders(form: DecodedHeader, before: Before | None, rebuilt: Rebuilt) -> bytes:
    header = before.located.header if before is not None else None
    were = {folder.offset: folder for folder in header.folders} if isinstance(header, Rfh2) else {}
    folders: list[tuple[DecodedFolder, Folder | None]]
    if form.folders is None:
        folders = [(describe_folder(folder), folder) for folder in were.values()]
    else:
        folders = [(folder, were.get(-1 if folder.offset is None else folder.offset)) for folder in form.folders]
    assert rebuilt.layout is not None
    ccsid = int(rebuilt.layout.fast[rebuilt.order].unpack_from(rebuilt.fixed)[7])
    charset = name_value_codec(ccsid, rebuilt.order)
    if charset is None:
        raise EncodeError(f"NameValueCCSID {ccsid} is not one that an MQRFH2 may have")
    datas = [rebuild_folder(folder, was, charset) for folder, was in folders]
    return b"".join(len(data).to_bytes(4, rebuilt.order) + data for data in datas)


def rebuild_folder(form: DecodedFolder, was: Folder | None, charset: str = "utf-8") -> bytes:
    """The NameValueData that *form* asks for, in *charset*. Raises EncodeError."""
    shown = describe_folder(was) if was is not None else None
    if was is not None and shown is not None:
        edited_hex = form.hex != shown.hex
        edited_text = form.raw != shown.raw
        edited_values = not same(form.values, shown.values) or form.name != shown.name
    else:
        edited_hex = form.hex is not None
        edited_text = form.raw is not None
        edited_values = form.values is not None
    multiple = 4 if was is None or len(was.data) % 4 == 0 else 1
    if edited_hex and form.hex is not None:
        return from_hex(form.hex, "NameValueData")
    if edited_text and form.raw is not None:
        data = padded(form.raw, charset, multiple)
        if not edited_values or _means(data, charset, form):
            return data
        if was is not None:
            raise EncodeError(f"folder {form.name}: raw and values were both edited, and differ")
    if edited_values and form.values is not None:
        # An element keeps the type that it had, unless its new value reads as another one with it.
        for like in (was, None):
            data = padded(folder_text(form.name, form.values, like), charset, multiple)
            if _means(data, charset, form):
                return data
        raise EncodeError(f"folder {form.name}: the values have no form as a folder's text")
    if was is None:
        return b""
    if was.charset == charset:
        return was.data
    try:
        return was.data.decode(was.charset).encode(charset)
    except UnicodeError as error:
        raise EncodeError(f"folder {was.name} cannot be written in {charset}") from error


def _means(data: bytes, charset: str, form: DecodedFolder) -> bool:
    """Whether *data* reads as what *form* says."""
    shown = describe_folder(Folder(data, charset))
    wanted = _normal(form.values)
    if form.name in UNTYPED and isinstance(wanted, dict):
        wanted = {tag: [*map(leaf_text, v)] if isinstance(v, list) else leaf_text(v) for tag, v in wanted.items()}
    return shown.values is not None and shown.name == form.name and same(shown.values, wanted)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: true is not 1, but 1.0 is, for other tools write the one for the other."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _normal(values: dict[str, Any] | None) -> Any:
    """Values as reading gives them: a list of one is that one, an empty list is nothing, an empty group is no text."""
    if not isinstance(values, dict):
        return values
    out: dict[str, Any] = {}
    for tag, value in values.items():
        items = [_normal(item) for item in value] if isinstance(value, list) else [_normal(value)]
        items = ["" if item == {} else _scalar(item) for item in items]
        if items:
            out[tag] = items[0] if len(items) == 1 else items
    return out


def _scalar(item: Any) -> Any:
    return number(item) if isinstance(item, int) and not isinstance(item, bool) else item


def _string(form: DecodedHeader, before: Before | None, rebuilt: Rebuilt, ccsid: int) -> bytes:
    header = before.located.header if before is not None else None
    was = header if isinstance(header, Rfh1) else None
    if was is not None and was.charset == rebuilt.charset:
        charset = was.string_charset
    else:
        exact = text_codec(ccsid, MQENC_NATIVE)
        same_family = exact is not None and is_ebcdic(ccsid) == (" ".encode(rebuilt.charset) == b"\x40")
        charset = exact if exact is not None and same_family else rebuilt.charset
    shown = before.form if before is not None else None
    edited_raw = form.raw is not None and (shown is None or form.raw != shown.raw)
    edited_pairs = form.pairs is not None and (shown is None or form.pairs != shown.pairs)
    base = Rfh1(b"" if was is None else was.data, string_charset=charset)
    if edited_raw and form.raw is not None:
        data = padded_string(form.raw, charset)
        if not edited_pairs or _pairs_of(Rfh1(data, string_charset=charset)) == form.pairs:
            return data
        if was is not None:
            raise EncodeError("MQRFH: raw and pairs were both edited, and differ")
    if edited_pairs and form.pairs is not None:
        return base.with_pairs(form.pairs).data
    if was is None or was.string_charset == charset:
        return base.data
    try:
        return was.data.decode(was.string_charset).encode(charset)
    except UnicodeError as error:
        raise EncodeError(f"MQRFH: the string cannot be written in {charset}") from error


def padded_string(text: str, charset: str) -> bytes:
    """A NameValueString as it was typed, filled up with nulls to a multiple of four bytes. Raises EncodeError."""
    try:
        data = text.encode(charset)
    except UnicodeEncodeError as error:
        raise EncodeError(f"NameValueString: {text!r} cannot be written in {charset}") from error
    return data + bytes(-len(data) % 4)


def _pairs_of(header: Rfh1) -> list[tuple[str, str]] | None:
    try:
        return header.pairs()
    except DecodeError:
        return None


def _embedded(form: DecodedHeader, before: Before | None, rebuilt: Rebuilt) -> bytes:
    """The descriptor in a transmission queue header."""
    if form.mqmd is None:
        return rebuilt.tail
    own, _ = decode_mqmd(rebuilt.tail)
    was = before.form.mqmd if before is not None and before.form.mqmd is not None else {}
    changes = _changes(form.mqmd, was, "MQMD") if was else {k: v for k, v in form.mqmd.items() if k not in COMPUTED}
    return write_fields(MQMD1, rebuilt.tail, own.order, own.charset, changes)


def from_hex(text: str, what: str) -> bytes:
    """The bytes of *text*. Raises EncodeError where it is not hex."""
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise EncodeError(f"{what}: {text[:40]!r} is not hex") from error
