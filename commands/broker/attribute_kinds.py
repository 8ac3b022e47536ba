"""The kinds of values that attributes of objects have: what MQSC calls each value, and its number in PCF.

How a kind is read from MQSC is in ``commands.mqsc.values``, how it stands in PCF in ``commands.mqsc.pcf.forms``.
``show`` gives what DISPLAY prints between the parentheses: text, a number, or a list of names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from rfh2.constants import MQ_OBJECT_NAME_LENGTH

Shown = str | int | tuple[str, ...]

MAX_INTEGER: Final = 999_999_999


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words, each standing for a value. ``ASPARENT`` and the like are words that stand for None."""

    meanings: Mapping[str, Any]  # the words that MQSC takes
    numbers: Mapping[str, int] = field(default_factory=dict)  # of these words in PCF, and of words that only PCF has
    shown_as: Mapping[Any, str] = field(default_factory=dict)  # the words of values that MQSC cannot set
    words: Mapping[Any, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", {value: word for word, value in self.meanings.items()} | dict(self.shown_as))

    def show(self, value: Any) -> Shown:
        return self.words[value]


@dataclass(frozen=True, slots=True)
class Number:
    """An integer from low to high; words stand for values that are no number, or for a number with a name."""

    low: int
    high: int
    meanings: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)  # of these words in PCF

    def show(self, value: Any) -> Shown:
        for word, meaning in self.meanings.items():
            if value is meaning or (value == meaning and value is not None):
                return word
        return int(value)


@dataclass(frozen=True, slots=True)
class Text:
    """Any text of at most so many characters; text of blanks alone is no text."""

    longest: int
    filled_to: int = 0  # the bytes to which PCF fills it up with blanks; 0 for text of any length

    def show(self, value: Any) -> Shown:
        return str(value or "")


@dataclass(frozen=True, slots=True)
class Custom:
    """Pairs ``NAME(VALUE)`` with blanks between. PSCTAGS is the bridge's own and takes ANY or STRICT."""

    filled_to: int = 128

    def show(self, value: Any) -> Shown:
        return str(value)


@dataclass(frozen=True, slots=True)
class Name:
    """The name of another object, or nothing. absent: what is kept for nothing, "" or None."""

    absent: str | None = ""
    filled_to: int = MQ_OBJECT_NAME_LENGTH

    def show(self, value: Any) -> Shown:
        return str(value or "")


@dataclass(frozen=True, slots=True)
class Names:
    """A list of object names, up to 256; an empty string in it, alone, is the empty list.

    of_objects: whether they are names of objects, and not of users or addresses.
    """

    of_objects: bool = True

    def show(self, value: Any) -> Shown:
        return tuple(value)


@dataclass(frozen=True, slots=True)
class Hexadecimal:
    """So many bytes as hexadecimal digits, shorter values filled up with zeros at their end; blank is nothing, b""."""

    size: int

    def show(self, value: Any) -> Shown:
        return bytes(value).hex().upper()


@dataclass(frozen=True, slots=True)
class WordList:
    """A list of words, each with its number in PCF."""

    numbers: Mapping[str, int]

    def show(self, value: Any) -> Shown:
        return tuple(value)


@dataclass(frozen=True, slots=True)
class Bits:
    """Options: an integer, of which each bit has a name. DISPLAY lists the names, PCF has the integer."""

    numbers: Mapping[str, int]

    def show(self, value: Any) -> tuple[str, ...]:
        return tuple(name for name, bit in self.numbers.items() if value & bit)


Kind = Choice | Number | Text | Custom | Name | Names | Hexadecimal | WordList | Bits


@dataclass(frozen=True, slots=True)
class Attribute:
    """A keyword of MQSC, the field of the definition that it sets, and its parameter in PCF."""

    keyword: str
    field: str  # "" where DISPLAY works it out
    kind: Kind
    number: int = 0  # MQIA_*, MQCA_* ...; 0 where PCF has no parameter for it
    aliases: tuple[str, ...] = ()


def shown(definition: object, attribute: Attribute) -> Shown:
    """The attribute's value in *definition*, as DISPLAY prints it."""
    return attribute.kind.show(getattr(definition, attribute.field))


def choice(**words: tuple[Any, int]) -> Choice:
    """A choice; for each word its value and its number in PCF."""
    return Choice(
        {word: value for word, (value, _) in words.items()}, {word: number for word, (_, number) in words.items()}
    )


def members(enumeration: type[StrEnum], **numbers: int) -> Choice:
    """A choice kept as a member of *enumeration*, with numbers by word; ASPARENT, where it has one, is kept as None."""
    parent = {"ASPARENT": None} if "ASPARENT" in numbers else {}
    return Choice({member.value: member for member in enumeration} | parent, numbers)


def words(*choices: str, **numbers: int) -> Choice:
    """A choice whose words are kept as they are. choices: all that MQSC takes; else those with a number."""
    return Choice({word: word for word in choices or numbers}, numbers)


SWITCHES: Final = frozenset({"SHARE", "TRIGGER"})
"""Keywords that stand alone, or with NO before them."""


def switch(word: str, field: str, number: int) -> Attribute:
    """The attribute of one of ``SWITCHES``."""
    return Attribute(word, field, choice(**{word: (True, 1), f"NO{word}": (False, 0)}), number, aliases=(f"NO{word}",))


def number(low: int = 0, high: int = MAX_INTEGER, **words: tuple[Any, int]) -> Number:
    """A number; for each word that may stand in its place, its value and its number in PCF."""
    return Number(
        low,
        high,
        {word: value for word, (value, _) in words.items()},
        {word: in_pcf for word, (_, in_pcf) in words.items()},
    )
