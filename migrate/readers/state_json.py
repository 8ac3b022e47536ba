"""States as JSON: what this program writes, and what a person may write by hand (docs/migration.md).

A file may hold 100,000 items. Each is made as soon as its text is read, so that only the items are in memory, and not
the JSON values of the whole file beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from migrate.legacy_state import CLASS_OF_FIELD, STATE_FORMAT, Item, LegacyState, Source, StateJson, Unread

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()
_ITEMS: Final = {field: TypeAdapter[Item](cls) for field, cls in CLASS_OF_FIELD.items()}
_SHOWN_FAULTS: Final = 100


def looks_like(text: str) -> bool:
    """Whether *text* is a state file: its first keys say so."""
    return text.lstrip().startswith("{") and f'"{STATE_FORMAT}"' in text[:4096]


def read(text: str, file: str) -> tuple[list[LegacyState], list[Unread]]:
    """The states of *text*, one object or several under ``states``; what cannot be read, with its line."""
    reading = _Reading(text)
    try:
        whole = reading.whole()
        if not reading.faults:
            states = list(StateJson(**whole).states) if "states" in whole else [LegacyState(**whole)]
            return states, []
    except json.JSONDecodeError as error:
        source = Source(file=file, position=error.lineno)
        return [], [Unread(source=source, text=text[:80], why=f"it is not JSON: {error.msg}")]
    except ValidationError as error:
        reading.note(error, ())
    unread = [Unread(source=Source(file=file), text=where, why=why) for where, why in reading.faults[:_SHOWN_FAULTS]]
    if len(reading.faults) > _SHOWN_FAULTS:
        more = f"{len(reading.faults) - _SHOWN_FAULTS} more faults"
        unread.append(Unread(source=Source(file=file), text=more, why="they are not listed"))
    return [], unread


Place = tuple[str | int, ...]


class _Reading:
    """One pass over *text*. faults: where and what, of values that are JSON and not what they have to be."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.faults: list[tuple[str, str]] = []

    def whole(self) -> dict[str, Any]:
        """The members of the object that *text* is. Raises JSONDecodeError."""
        found = self._state(())
        if self._next():
            raise self._error("Extra data")
        return found

    def note(self, error: ValidationError, place: Place) -> None:
        """Faults of the value at *place*."""
        for found in error.errors():
            self.faults.append((".".join(map(str, (*place, *found["loc"]))), _sentence(found)))

    def _state(self, place: Place) -> dict[str, Any]:
        """The members of the state that begins here."""
        found: dict[str, Any] = {}
        if self._next() != "{":
            self._value()
            self.faults.append((".".join(map(str, place)), "it is not a JSON object"))
            return found
        for _ in self._elements("}"):
            key = self._value()
            if not isinstance(key, str) or self._next() != ":":
                raise self._error("Expecting a name and ':'")
            self._at += 1
            is_list = self._next() == "["
            if key in _ITEMS and is_list:
                read = [self._item(key, (*place, key, number)) for number in self._elements("]")]
                found[key] = tuple(item for item in read if item is not None)
            elif key == "states" and is_list and not place:
                states = [self._inner((key, number)) for number in self._elements("]")]
                found[key] = tuple(state for state in states if state is not None)
            else:
                found[key] = self._value()
        return found

    def _item(self, field: str, place: Place) -> Item | None:
        value = self._value()
        try:
            return _ITEMS[field].validate_python(value)
        except ValidationError as error:
            self.note(error, place)
            return None

    def _inner(self, place: Place) -> LegacyState | None:
        members = self._state(place)
        try:
            return LegacyState(**members)
        except ValidationError as error:
            self.note(error, place)
            return None

    def _elements(self, closing: str) -> Iterator[int]:
        """The numbers of the elements of the array, or the members of the object, that begins here.

        The caller reads each element before it asks for the next one.
        """
        self._at += 1
        if self._next() != closing:
            for number in count():
                yield number
                if self._next() == closing:
                    break
                if self._next() != ",":
                    raise self._error("Expecting ',' delimiter")
                self._at += 1
        self._at += 1

    def _value(self) -> Any:
        """The value that begins here."""
        self._next()
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        except RecursionError:
            raise self._error("nested too deeply") from None
        return value

    def _next(self) -> str:
        """The next character that is no blank; "" at the end."""
        found = _BLANK.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _error(self, why: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(why, self._text, self._at)


def _sentence(found: ErrorDetails) -> str:
    if found["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return "there is no such field"
    return found["msg"]


def write(states: list[LegacyState]) -> str:
    """*states* as one JSON text; what has its default is left out."""
    bodies = [state.model_dump(mode="json", exclude_defaults=True) for state in states]
    for body, state in zip(bodies, states, strict=True):
        body |= {"format": state.format, "version": state.version}
    ordered = [{"format": body["format"], **body} for body in bodies]
    value = ordered[0] if len(ordered) == 1 else {"states": ordered}
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
