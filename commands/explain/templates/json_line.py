"""The line of ``decode --json`` for a publication like an earlier one."""

from __future__ import annotations

from enum import IntEnum, auto
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic_core import to_json

from commands.explain.reading import command_json
from commands.explain.templates.model import model_of
from commands.explain.templates.parts import Parts
from commands.explain.templates.slots import Template, bare_slot, slot
from rfh2.captured import CapturedMessage, iso
from rfh2.explain.describe import as_json, described, folder_form
from rfh2.explain.form import json_line
from rfh2.explain.reading import PartialMessage
from rfh2.folders import typed_value
from rfh2.rfh2 import Rfh2


class _At(IntEnum):
    """The values for a template. Then: offset, length and padding of each folder; the texts; their typed values."""

    SOURCE = 0
    INDEX = auto()
    MSG_ID = auto()
    CORREL_ID = auto()
    USER = auto()
    DATE = auto()
    TIME = auto()
    LENGTH = auto()
    DATA_LENGTH = auto()
    DATA_TEXT = auto()
    DATA_HEX = auto()
    CAPTURED = auto()


_FOLDERS: Final = len(_At)
_OF_FOLDER: Final = 3


class JsonTemplate(NamedTuple):
    """How ``decode --json`` shows publications of one key.

    typed: which of their texts have a type, and it. pad: the character that pads folders, or a string.
    """

    template: Template
    typed: tuple[tuple[int, str], ...]
    pad: str

    @classmethod
    def of(cls, parts: Parts, partial: PartialMessage) -> JsonTemplate | None:
        """The template of a message without problems; None where there is none."""
        kinds = [kind[len(" dt='") : -1] for shape in parts.shapes for kind in shape[2::3]]
        first = _FOLDERS + _OF_FOLDER * len(parts.places)
        texts = [slot(first + at) for at in range(len(kinds))]
        typed = {at: kind for at, kind in enumerate(kinds) if kind}
        values = texts.copy()
        for number, at in enumerate(typed):
            values[at] = bare_slot(first + len(texts) + number)
        model = model_of(parts, partial, texts)
        form = described(model.partial, slot(_At.SOURCE), 0, command_json(model.command))
        form |= {"source": bare_slot(_At.SOURCE), "index": bare_slot(_At.INDEX), "captured": bare_slot(_At.CAPTURED)}
        form["mqmd"] |= {"MsgId": slot(_At.MSG_ID), "CorrelId": slot(_At.CORREL_ID), "UserIdentifier": slot(_At.USER)}
        form["mqmd"] |= {"PutDate": slot(_At.DATE), "PutTime": slot(_At.TIME)}
        (header,) = form["headers"]
        header["length"] = header["fields"]["StrucLength"] = bare_slot(_At.LENGTH)
        for number, folder in enumerate(header.get("folders", [header])):
            at = _FOLDERS + _OF_FOLDER * number
            folder["raw"] += slot(at + 2)
            if folder is not header:
                folder |= {"offset": bare_slot(at), "length": bare_slot(at + 1)}
        if typed:
            typed_header = model_of(parts, partial, values).header
            assert isinstance(typed_header, Rfh2)
            for folder, other in zip(header["folders"], typed_header.folders, strict=True):
                folder["values"] = folder_form(other)["values"]
        form["body"] |= {"offset": bare_slot(_At.LENGTH), "length": bare_slot(_At.DATA_LENGTH)}
        form["body"] |= {"text": bare_slot(_At.DATA_TEXT), "hex": slot(_At.DATA_HEX)}
        template = Template.of(json_line(form).decode())
        pad = " " if "folders" in header else "\\u0000"
        return None if template is None else cls(template, tuple(typed.items()), pad)

    def filled(self, captured: CapturedMessage, parts: Parts, text: str, source: str, index: int) -> bytes:
        """The line of a message. text: its data as text, in JSON."""
        data, texts = parts.data, parts.texts
        values: list[object] = [_word(source), index, parts.msg_id.hex(), parts.correl_id.hex(), parts.user]
        values += parts.date, parts.time, parts.length, len(data), text, data.hex()
        values.append(_captured(captured))
        for at, length, padding in parts.places:
            values += at, length, self.pad * padding
        values += texts
        values += [str(to_json(as_json(typed_value(texts[at], kind))), "utf-8") for at, kind in self.typed]
        return self.template.filled(values).encode()


# Names of files, queues and users: few of them, again and again.
@lru_cache(maxsize=1024)
def _word(value: str | None) -> str:
    return str(to_json(value), "utf-8")


def _captured(captured: CapturedMessage) -> str:
    """The message as it was captured."""
    time = "null" if captured.time is None else f'"{iso(captured.time)}"'
    where = f'"qmgr":{_word(captured.qmgr)},"queue":{_word(captured.queue)},"user":{_word(captured.user)}'
    md = "null" if captured.md_hex is None else _hex(captured.md_hex, captured.md)
    body = _hex(captured.body_hex, captured.body)
    return f'{{"seq":{captured.seq},"time":{time},{where},"md_hex":{md},"body_hex":{body}}}'


def _hex(digits: str, data: bytes | None) -> str:
    """Digits of *data* as they were captured: there may be white space between them."""
    plain = data is not None and len(digits) == 2 * len(data)
    return f'"{digits}"' if plain else str(to_json(digits), "utf-8")
