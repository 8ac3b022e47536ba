"""The view of ``decode`` for a publication like an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum
from itertools import accumulate
from typing import Final, NamedTuple

from commands.explain.sentence import sentence
from commands.explain.templates.model import Model, model_of
from commands.explain.templates.parts import Parts
from commands.explain.templates.slots import Template, slot, without_slots
from commands.explain.view import origin
from rfh2.captured import CapturedMessage
from rfh2.explain.annotate import (
    SHOWN_BYTES,
    AnnotatedLine,
    annotate,
    chain,
    chain_end,
    laid_out,
    padding_line,
)
from rfh2.explain.meanings import depends_on_text, meaning, tag_meaning
from rfh2.explain.reading import PartialMessage
from rfh2.message import Message
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2
from rfh2.terminal_escape import visible


class _At(IntEnum):
    """The values for a template. Then those of each folder; the texts; where the elements of folders begin.

    Of a field there are two: its value with the meaning, and behind it the bytes that are shown.
    """

    TITLE = 0
    ORIGIN = 1
    DATA_LENGTH = 2
    CHAIN_END = 3
    MSG_ID = 4
    CORREL_ID = 6
    USER = 8
    DATE = 10
    TIME = 12
    LENGTH = 14


class _OfFolder(IntEnum):
    """The values of each folder; the first is that of its NameValueLength."""

    OFFSET = 0
    LENGTH = 1
    PADDING = 3


_FOLDERS: Final = _At.LENGTH + 2
_FOLDER_VALUES: Final = len(_OfFolder) + 1
_FIELDS: Final = {
    "MsgId": _At.MSG_ID,
    "CorrelId": _At.CORREL_ID,
    "UserIdentifier": _At.USER,
    "PutDate": _At.DATE,
    "PutTime": _At.TIME,
    "StrucLength": _At.LENGTH,
}
_LENGTH: Final = slice(8, 12)
_OFFSET_WIDTH: Final = 6


class _Place(NamedTuple):
    """Where an element of a folder begins: the folder, and how many constant bytes and texts stand before it there.

    texts: counted from the first text of all folders.
    """

    folder: int
    constant: int
    texts: int


class ViewTemplate(NamedTuple):
    """How ``decode`` shows publications of one key, up to their data.

    dependent: the texts that have a meaning of their own, with folder and tag. firsts: the first text of each folder.
    """

    template: Template
    dependent: tuple[tuple[int, str, str], ...]
    firsts: tuple[int, ...]
    places: tuple[_Place, ...]

    @classmethod
    def of(cls, parts: Parts, partial: PartialMessage, *, brief: bool) -> ViewTemplate | None:
        """The template of a message without problems; None where there is none."""
        first = _FOLDERS + _FOLDER_VALUES * len(parts.places)
        texts = [slot(first + at) for at in range(len(parts.texts))]
        model = model_of(parts, partial, texts)
        header = model.header
        names = [(name, tag) for name, shape in zip(_names(header), parts.shapes, strict=True) for tag in shape[1::3]]
        dependent = tuple([(at, *name) for at, name in enumerate(names) if depends_on_text(*name)])
        lines = [f"== {slot(_At.TITLE)} =="]
        if model.command is not None:
            said, found, topics = sentence(model.command, model.partial.message).partition(" 0 bytes on ")
            if not found:
                return None
            lines.append(f"{slot(_At.ORIGIN)}{said} {slot(_At.DATA_LENGTH)} bytes on {topics}")
        before, ended, _ = chain(model.partial).partition(f"{header.kind} {header.length} -> ")
        if not ended:
            return None
        begin = "" if model.command is not None else slot(_At.ORIGIN)
        lines.append(f"{begin}{before}{header.kind} {slot(_At.LENGTH)} -> {slot(_At.CHAIN_END)}")
        firsts = tuple(accumulate([len(shape) // 3 for shape in parts.shapes], initial=0))[:-1]
        places: list[_Place] = []
        if not brief:
            places += _places(model, firsts)
            lines += _field_lines(model, {texts[at] for at, *_ in dependent}, first + len(texts))
        template = Template.of("\n".join(lines))
        return None if template is None else cls(template, dependent, firsts, tuple(places))

    def filled(self, captured: CapturedMessage, parts: Parts, message: Message, title: str) -> list[str]:
        """The lines of a message, up to its data. message: with its data, described as its header does."""
        where = origin(captured)
        values: list[object] = [visible(title), f"{visible(where)}\n" if where else "", len(parts.data)]
        values.append(chain_end(message))
        date, time = parts.date, parts.time
        for name, identifier in (("MsgId", parts.msg_id), ("CorrelId", parts.correl_id)):
            shown = identifier.hex()
            values += _explained(shown, meaning(name, shown, {})), shown[: 2 * SHOWN_BYTES]
        values += f"'{parts.user}'", f"{parts.user:12}".encode().hex()
        values += _explained(f"'{date}'", meaning("PutDate", date, {"PutTime": time})), date.encode().hex()
        values += f"'{time}'", time.encode().hex(), parts.length, captured.body[_LENGTH].hex()
        texts = parts.texts
        ends = [*accumulate([len(text.encode()) for text in texts], initial=0)]
        bases = []
        for (begin, length, padding), first in zip(parts.places, self.firsts, strict=True):
            bases.append(begin - ends[first])
            values += f"{begin - 4:6}", length, captured.body[begin - 4 : begin].hex()
            end = begin + length
            values.append(f"\n{laid_out(padding_line(end - padding, b' ' * padding))}" if padding else "")
        if self.dependent:
            texts = texts.copy()
            for number, folder, tag in self.dependent:
                texts[number] = _explained(texts[number], tag_meaning(folder, tag, texts[number]))
        values += texts
        values += [f"{bases[folder] + constant + ends[before]:6}" for folder, constant, before in self.places]
        return self.template.filled(values).split("\n")


def _explained(value: str, meant: str) -> str:
    return f"{value} [{meant}]" if meant else value


def _names(header: Rfh2 | Rfh1) -> list[str]:
    """What each folder is called where the meanings of its tags are looked up."""
    return [folder.name for folder in header.folders] if isinstance(header, Rfh2) else [header.kind]


def _places(model: Model, firsts: tuple[int, ...]) -> Iterator[_Place]:
    folder = _first_folder(model)
    for line in annotate(model.partial, None):
        if _begins_folder(line):
            folder += 1
        elif _is_element(line):
            before = model.texts[folder].encode()[: line.offset].decode()
            constant, slots = without_slots(before)
            yield _Place(folder, len(constant.encode()), firsts[folder] + slots)


def _field_lines(model: Model, dependent: set[str], place: int) -> list[str]:
    """The lines of all fields. dependent: texts with a meaning of their own. place: the value of the first element."""
    header, folder = model.header, _first_folder(model)
    front = f"{header.kind} at 0: "
    lines: list[str] = []
    for line in annotate(model.partial, None):
        if line.heading:
            lines += "", line.heading.replace(f"{front}{header.length} ", f"{front}{slot(_At.LENGTH)} ")
        elif _begins_folder(line):
            if folder >= 0:
                lines[-1] += slot(_FOLDERS + folder * _FOLDER_VALUES + _OfFolder.PADDING)
            folder += 1
            at = _FOLDERS + folder * _FOLDER_VALUES
            lines.append(slot(at) + _slotted(line, at + _OfFolder.LENGTH)[_OFFSET_WIDTH:])
        elif _is_element(line):
            shown = replace(line, meaning="") if line.value in dependent else line
            lines.append(slot(place) + laid_out(shown)[_OFFSET_WIDTH:])
            place += 1
        else:
            lines.append(_slotted(line, _FIELDS[line.field]) if line.field in _FIELDS else laid_out(line))
    if isinstance(header, Rfh2):
        lines[-1] += slot(_FOLDERS + folder * _FOLDER_VALUES + _OfFolder.PADDING)
    return lines


def _first_folder(model: Model) -> int:
    """The number of the folder that is read, before the first line of one: a string has no such line."""
    return -1 if isinstance(model.header, Rfh2) else 0


def _begins_folder(line: AnnotatedLine) -> bool:
    return line.field == "NameValueLength" and bool(line.data)


def _is_element(line: AnnotatedLine) -> bool:
    """Whether the line is of an element in a folder, or a pair of a string; fields of a fixed part show their bytes."""
    return not line.data and not line.heading


def _slotted(line: AnnotatedLine, number: int) -> str:
    """The line of a field with slots for its value, *number*, and its bytes."""
    text = laid_out(replace(line, value=slot(number), meaning=""))
    begin = _OFFSET_WIDTH + 1
    end = begin + 2 * min(len(line.data), SHOWN_BYTES)
    return f"{text[:begin]}{slot(number + 1)}{text[end:]}"
