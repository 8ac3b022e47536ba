"""The kinds of values of MQSC keywords: each reads a value from a command, and shows a value that is kept.

``read`` raises MqscError with the message number that runmqsc gives: AMQ8405 for the wrong form, AMQ8412 outside a
range, AMQ8413 too long, AMQ8424 no object name, AMQ8425 no such value. ``show`` gives what DISPLAY prints between the
parentheses: text, a number, or a list of names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from commands.mqsc.model import Keyword, MqscError, Value
from commands.mqsc.parser import syntax_error
from rfh2.constants import MQ_OBJECT_NAME_LENGTH

Shown = str | int | tuple[str, ...]


# Names of topic objects may hold blanks: guide 2.5.4 prints 'St. Helens'.
MOST_NAMES: Final = 256
"""The most names in a namelist."""
_OBJECT_NAME: Final = re.compile(r"[A-Za-z0-9._/%]+")
_TOPIC_OBJECT_NAME: Final = re.compile(r"[A-Za-z0-9._/%][A-Za-z0-9._/% ]*")


class ValueKind(Protocol):
    """How one keyword's value is read and shown."""

    def read(self, keyword: Keyword) -> Any:
        """The value to keep. Raises MqscError."""
        ...

    def show(self, value: Any) -> Shown:
        """The value as DISPLAY prints it."""
        ...


def shown_moment(date: str, time: str, moment: datetime | None) -> dict[str, Shown]:
    """A moment, UTC, under the keywords *date* and *time*, as DISPLAY prints it: blank for never."""
    return {date: f"{moment:%Y-%m-%d}" if moment else "", time: f"{moment:%H.%M.%S}" if moment else ""}


def single(keyword: Keyword) -> Value:
    """The one value of a keyword. Raises MqscError AMQ8405 where it has none or several."""
    if keyword.values is None or len(keyword.values) != 1:
        written = "" if keyword.values is None else f"({' '.join(value.text for value in keyword.values)}"
        raise syntax_error(f"{keyword.name}{written}")
    return keyword.values[0]


def object_name(text: str, *, topic: bool = False, longest: int = MQ_OBJECT_NAME_LENGTH) -> str:
    """*text* as the name of an object, trailing blanks taken off.

    Raises MqscError AMQ8413 beyond *longest* characters, AMQ8424 for other characters than letters, digits and
    ``. / _ %``; a topic object's name may hold blanks.
    """
    name = text.rstrip(" ")
    if len(name) > longest:
        raise MqscError("AMQ8413", "String Length Error.", (f"{name} has more than {longest} characters.",))
    if (_TOPIC_OBJECT_NAME if topic else _OBJECT_NAME).fullmatch(name) is None:
        raise MqscError("AMQ8424", "Error detected in a name keyword.", (f"'{name}' cannot be the name of an object.",))
    return name


def value_error(keyword: Keyword, expected: str) -> MqscError:
    """AMQ8425, with what the keyword takes."""
    written = " ".join(value.text for value in keyword.values or ())
    return MqscError("AMQ8425", "Attribute value error.", (f"{keyword.name}({written}): {expected}.",))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words, each standing for a value. ``ASPARENT`` and the like are words that stand for None."""

    meanings: Mapping[str, Any]
    words: Mapping[Any, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", {value: word for word, value in self.meanings.items()})

    def read(self, keyword: Keyword) -> Any:
        word = single(keyword).text.upper()
        if word not in self.meanings:
            raise value_error(keyword, f"one of {', '.join(self.meanings)}")
        return self.meanings[word]

    def show(self, value: Any) -> Shown:
        return self.words[value]


def words(*choices: str) -> Choice:
    """A choice whose words are kept as they are."""
    return Choice({word: word for word in choices})


def flag(yes: str, no: str, parent: str | None = None) -> Choice:
    """A choice kept as True or False, or None where *parent* is a word too."""
    return Choice({yes: True, no: False} | ({parent: None} if parent else {}))


def members(enumeration: type[StrEnum], parent: str | None = None) -> Choice:
    """A choice kept as a member of *enumeration*, or None where *parent* is a word too."""
    return Choice({member.value: member for member in enumeration} | ({parent: None} if parent else {}))


@dataclass(frozen=True, slots=True)
class Number:
    """An integer from low to high; words stand for values that are no number, or for a number with a name."""

    low: int
    high: int
    meanings: Mapping[str, Any] = field(default_factory=dict)

    def read(self, keyword: Keyword) -> Any:
        text = single(keyword).text.strip().upper()
        if text in self.meanings:
            return self.meanings[text]
        if re.fullmatch(r"[+-]?[0-9]{1,12}", text) is None:
            raise value_error(keyword, " or ".join((f"a number from {self.low} to {self.high}", *self.meanings)))
        number = int(text)
        if not self.low <= number <= self.high:
            detail = f"{keyword.name}({text}): a number from {self.low} to {self.high}."
            raise MqscError("AMQ8412", "Numeric Range Error.", (detail,))
        return number

    def show(self, value: Any) -> Shown:
        for word, meaning in self.meanings.items():
            if value is meaning or (value == meaning and value is not None):
                return word
        return int(value)


def folded_user_notes(keyword: Keyword | None) -> tuple[str, ...]:
    """What to say where a user or group was written in small letters, and means the one in capitals."""
    if keyword is None or not keyword.values or not keyword.values[0].folded:
        return ()
    name = keyword.values[0].text
    return (f"{keyword.name}({name}): without quotes it was read in capitals. Quotes keep small letters",)


@dataclass(frozen=True, slots=True)
class Text:
    """Any text of at most so many characters; text of blanks alone is no text."""

    longest: int

    def read(self, keyword: Keyword) -> str:
        text = single(keyword).text
        if not text.strip(" "):
            return ""
        if len(text) > self.longest:
            detail = f"{keyword.name} has {len(text)} characters, more than {self.longest}."
            raise MqscError("AMQ8413", "String Length Error.", (detail,))
        return text

    def show(self, value: str) -> Shown:
        return value


@dataclass(frozen=True, slots=True)
class Custom:
    """Pairs ``NAME(VALUE)`` with blanks between. PSCTAGS is the bridge's own and takes ANY or STRICT."""

    def read(self, keyword: Keyword) -> str:
        pairs = single(keyword).text.split()
        for pair in pairs:
            if re.fullmatch(r"\w+\([^()]*\)", pair) is None:
                raise syntax_error(f"{keyword.name}({pair}", "CUSTOM takes pairs of the form NAME(VALUE).")
            name, value = pair.upper().rstrip(")").split("(")
            if name == "PSCTAGS" and value not in ("ANY", "STRICT"):
                raise syntax_error(f"{keyword.name}({pair}", "PSCTAGS takes ANY or STRICT.")
        return " ".join(pairs)

    def show(self, value: str) -> Shown:
        return value


@dataclass(frozen=True, slots=True)
class Name:
    """The name of another object, or nothing. absent: what is kept for nothing, "" or None."""

    absent: str | None = ""

    def read(self, keyword: Keyword) -> str | None:
        text = single(keyword).text
        return object_name(text) if text.strip(" ") else self.absent

    def show(self, value: str | None) -> Shown:
        return value or ""


@dataclass(frozen=True, slots=True)
class Names:
    """A list of object names, up to 256; an empty string in it, alone, is the empty list."""

    def read(self, keyword: Keyword) -> tuple[str, ...]:
        if not keyword.values:
            raise syntax_error(f"{keyword.name}()")
        names = tuple(object_name(value.text, topic=True) for value in keyword.values if value.text.strip(" "))
        if len(names) > MOST_NAMES:
            detail = f"{keyword.name} has {len(names)} names, more than {MOST_NAMES}."
            raise MqscError("AMQ8554", "String List String Count Error.", (detail,))
        return names

    def show(self, value: tuple[str, ...]) -> Shown:
        return value


@dataclass(frozen=True, slots=True)
class Hexadecimal:
    """So many bytes as hexadecimal digits, shorter values filled up with zeros at their end; blank is nothing, b""."""

    size: int

    def read(self, keyword: Keyword) -> bytes:
        text = single(keyword).text.strip(" ")
        if re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", text) is None or len(text) > 2 * self.size:
            raise value_error(keyword, f"up to {2 * self.size} hexadecimal digits")
        return bytes.fromhex(text).ljust(self.size, b"\0") if text else b""

    def show(self, value: bytes) -> Shown:
        return value.hex().upper()
