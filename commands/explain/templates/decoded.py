"""What ``decode`` shows of a message: from a template where one applies, else from all rules.

The rules see the first publication of each key (``parts``). If nothing is wrong with it, a template of what they say is
kept, provided that it says that again. A later publication with this key fills the template, unless its topic or its
data may be wrong in a way of their own. ``tests/commands/explain/test_templates.py`` proves that both ways show the
same.
"""

from __future__ import annotations

from typing import Final, Generic, NamedTuple, TypeVar

from pydantic_core import to_json

from commands.explain.command_text import is_response
from commands.explain.reading import Explained, explained
from commands.explain.surprises import is_suspect
from commands.explain.templates.json_line import JsonTemplate
from commands.explain.templates.parts import Parts, parts_of
from commands.explain.templates.view import ViewTemplate
from commands.explain.view import MessageView, view
from commands.model import Publish, PubOpt
from rfh2.body_text import body_text
from rfh2.bounded_cache import BoundedCache
from rfh2.captured import CapturedMessage
from rfh2.ccsid import text_codec
from rfh2.constants import MQFMT_STRING
from rfh2.explain.annotate import data_lines, layout_lines, plain
from rfh2.explain.body_problems import body_problems
from rfh2.explain.form import Problem, json_line
from rfh2.explain.reading import PartialMessage
from rfh2.message import Message
from rfh2.pcf import FORMATS
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

T = TypeVar("T", JsonTemplate, ViewTemplate)


class _Kept(NamedTuple, Generic[T]):
    """What is known of a key. template: None where there is none. like: the message that it was made from.

    codec: that of the data where it is MQSTR in one of those codecs that a byte order mark means nothing to.
    """

    template: T | None
    like: PartialMessage
    codec: str | None

    @classmethod
    def of(cls, template: T | None, like: PartialMessage) -> _Kept[T]:
        message = like.message
        codec = text_codec(message.body_ccsid, message.body_encoding) if message.body_format == MQFMT_STRING else None
        return cls(template, like, None if codec is None or codec.startswith("utf-16") else codec)


_LINES_ROOM: Final = 8 << 20
_LINES: Final[BoundedCache[tuple[object, ...], _Kept[JsonTemplate]]] = BoundedCache(_LINES_ROOM)
"""Templates of ``decode --json``, by the key of a publication."""
_VIEWS_ROOM: Final = 8 << 20
_VIEWS: Final[BoundedCache[tuple[object, ...], _Kept[ViewTemplate]]] = BoundedCache(_VIEWS_ROOM)
"""Templates of the view, by the key and whether it is brief."""
_ASCII: Final = bytes(range(0x20, 0x7F))
_ENTRY_BYTES: Final = 4_000


def json_of(captured: CapturedMessage, source: str, index: int) -> tuple[bytes, list[Problem]]:
    """The line of JSON, without its end, and the problems. source, index: the file, and the record in it."""
    parts = _parts(captured)
    kept = None if parts is None else _LINES.get(parts.key)
    if parts is not None and kept is not None and kept.template is not None:
        text = _text(kept, captured, parts)
        if text is not None:
            return kept.template.filled(captured, parts, text, source, index), []
    found = explained(captured)
    line = json_line(found.form(source, index))
    if parts is not None and kept is None and _is_usual(found, parts):
        template = JsonTemplate.of(parts, found.partial)
        text = _json(body_text(found.partial.message))
        if template is not None and template.filled(captured, parts, text, source, index) != line:
            template = None
        _keep(_LINES, parts.key, template, found.partial)
    return line, found.problems


def view_of(captured: CapturedMessage, title: str, how: MessageView) -> tuple[list[str], list[Problem]]:
    """The lines of the view, and the problems."""
    parts = _parts(captured) if how.paint is plain else None
    key = () if parts is None else (how.brief, *parts.key)
    kept = None if parts is None else _VIEWS.get(key)
    if parts is not None and kept is not None and kept.template is not None:
        message = _with_data(kept.like, captured, parts)
        if message is not None:
            return _view(kept.template, captured, parts, message, title, how), []
    found = explained(captured)
    lines = list(view(found.partial, title, found.command, found.problems, how))
    if parts is not None and kept is None and _is_usual(found, parts):
        template = ViewTemplate.of(parts, found.partial, brief=how.brief)
        if template is not None and _view(template, captured, parts, found.partial.message, title, how) != lines:
            template = None
        _keep(_VIEWS, key, template, found.partial)
    return lines, found.problems


def _keep(
    cache: BoundedCache[tuple[object, ...], _Kept[T]], key: tuple[object, ...], template: T | None, like: PartialMessage
) -> None:
    size = 0 if template is None else 2 * len(template.template.form)
    cache.keep(key, _Kept.of(template, like), size + _ENTRY_BYTES)


def _view(
    template: ViewTemplate, captured: CapturedMessage, parts: Parts, message: Message, title: str, how: MessageView
) -> list[str]:
    lines = template.filled(captured, parts, message, title)
    if not how.brief:
        lines += layout_lines(data_lines(message, parts.length, how.body_limit), plain)
    return lines


def _parts(captured: CapturedMessage) -> Parts | None:
    parts = parts_of(captured)
    # A comma puts the topic into quotes.
    return None if parts is None or is_suspect(parts.topic) or "," in parts.topic else parts


def _text(kept: _Kept[JsonTemplate], captured: CapturedMessage, parts: Parts) -> str | None:
    """The data as ``body_text`` has it, in JSON; None where it has a problem."""
    if kept.codec is None:
        message = _with_data(kept.like, captured, parts)
        return None if message is None else _json(body_text(message))
    try:
        return _json(parts.data.decode(kept.codec).rstrip("\0"))
    except UnicodeDecodeError:
        return None


def _json(text: str | None) -> str:
    return str(to_json(text), "utf-8")


def _with_data(like: PartialMessage, captured: CapturedMessage, parts: Parts) -> Message | None:
    """The message with its own data, as the header of *like* describes it; None where that has a problem."""
    message = Message(like.assumed, like.message.headers, parts.data)
    whole = PartialMessage(captured, like.mqmd, like.assumed, like.mqmd_length, like.headers, message)
    return None if any(body_problems(whole)) else message


def _is_usual(found: Explained, parts: Parts) -> bool:
    """Whether all that is shown of the message follows from its parts."""
    partial, command = found.partial, found.command
    mqmd = partial.mqmd
    if found.problems or mqmd is None or len(partial.headers) != 1:
        return False
    if parts.topic:
        # It would depend on CorrelId whether that is taken.
        if not isinstance(command, Publish) or command.topics != (parts.topic,) or command.has(PubOpt.CORREL_AS_ID):
            return False
    elif command is not None or is_response(partial.message) or partial.message.rfh1 is not None:
        return False
    header = partial.headers[0].header
    if isinstance(header, Rfh2):
        if not all(folder.charset == "utf-8" and folder.is_flat() for folder in header.folders):
            return False
    elif not isinstance(header, Rfh1):
        return False
    if partial.message.body_format in FORMATS:
        return False
    charsets = {mqmd.charset, getattr(header, "string_charset", mqmd.charset)}
    if any(_ASCII.decode(charset) != _ASCII.decode() for charset in charsets):
        return False
    return partial.mqmd_length == len(partial.captured.md or b"")
