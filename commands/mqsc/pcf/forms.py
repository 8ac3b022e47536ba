"""The forms that an attribute has in PCF: each reads a parameter as what MQSC takes, and writes what MQSC shows.

``read`` gives the text of each value of a keyword; it raises CommandError with the reason that IBM documents for a
parameter of another type (3013) or a value that it cannot have (4005). ``write`` gives the parameter for what DISPLAY
shows, None for an integer that is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from commands.mqsc.values import Shown
from rfh2.ccsid import UTF8_CCSID
from rfh2.errors import CommandError, DecodeError
from rfh2.pcf_admin_names import MQRCCF_ATTR_VALUE_ERROR
from rfh2.pcf_names import MQRCCF_STRUCTURE_TYPE_ERROR
from rfh2.pcf_parameters import Cfbs, Cfil, Cfin, Cfsl, Cfst, Parameter

_NAME_LENGTH: Final = 48


class Form(Protocol):
    """How the values of one attribute stand in PCF."""

    def read(self, parameter: Parameter) -> tuple[str, ...]:
        """The texts of the values. Raises CommandError."""

    def write(self, number: int, shown: Shown) -> Parameter | None:
        """The parameter of that number; None where there is nothing to tell."""

    def text(self, value: int | str | bytes) -> str:
        """The text of a value that stands in a filter. Raises CommandError."""


def parameter_error(reason: int, number: int, why: str) -> CommandError:
    """A command that fails because of the parameter of that number."""
    return CommandError(reason, why=why, tags=(("ParmId", str(number)),))


def text_of(parameter: Parameter) -> str:
    """The text of a string parameter, without blanks at its end. Raises CommandError."""
    if not isinstance(parameter, Cfst):
        raise _wrong_type(parameter)
    try:
        return parameter.text.rstrip(" ")
    except DecodeError as error:
        raise parameter_error(error.reason, parameter.parameter, error.why) from error


def integer_of(parameter: Parameter) -> int:
    """The value of an integer parameter. Raises CommandError."""
    if not isinstance(parameter, Cfin):
        raise _wrong_type(parameter)
    return parameter.value


def _wrong_type(parameter: Parameter) -> CommandError:
    why = f"parameter {parameter.parameter} has Type {parameter.type}"
    return parameter_error(MQRCCF_STRUCTURE_TYPE_ERROR, parameter.parameter, why)


@dataclass(frozen=True, slots=True)
class Characters:
    """An MQCFST. size: to which blanks fill it up in a response, in bytes; 0 for text of any length."""

    size: int = 0

    def read(self, parameter: Parameter) -> tuple[str, ...]:
        return (text_of(parameter),)

    def write(self, number: int, shown: Shown) -> Cfst:
        return Cfst.of(number, str(shown).ljust(self.size), UTF8_CCSID)

    def text(self, value: int | str | bytes) -> str:
        return str(value).rstrip(" ")


@dataclass(frozen=True, slots=True)
class Integer:
    """An MQCFIN. words: what stands for a number in MQSC, with the number; other numbers are themselves, or none."""

    words: Mapping[str, int] = field(default_factory=dict)
    only_words: bool = False

    def read(self, parameter: Parameter) -> tuple[str, ...]:
        return (self._text(integer_of(parameter), parameter.parameter),)

    def write(self, number: int, shown: Shown) -> Cfin | None:
        value = shown if isinstance(shown, int) else self.words.get(str(shown))
        return None if value is None else Cfin(number, value)

    def text(self, value: int | str | bytes) -> str:
        return self._text(int(value), 0)

    def _text(self, value: int, number: int) -> str:
        word = next((word for word, own in self.words.items() if own == value), None)
        if word is None and self.only_words:
            raise parameter_error(MQRCCF_ATTR_VALUE_ERROR, number, f"parameter {number} cannot be {value}")
        return str(value) if word is None else word


def words(**meanings: int) -> Integer:
    """An MQCFIN that is one of some words."""
    return Integer(meanings, only_words=True)


@dataclass(frozen=True, slots=True)
class Names:
    """An MQCFSL of object names."""

    def read(self, parameter: Parameter) -> tuple[str, ...]:
        if not isinstance(parameter, Cfsl):
            raise _wrong_type(parameter)
        try:
            return parameter.texts or ("",)
        except DecodeError as error:
            raise parameter_error(error.reason, parameter.parameter, error.why) from error

    def write(self, number: int, shown: Shown) -> Cfsl:
        names = shown if isinstance(shown, tuple) else ()
        return Cfsl.of(number, tuple(name.ljust(_NAME_LENGTH) for name in names), UTF8_CCSID)

    def text(self, value: int | str | bytes) -> str:
        return str(value).rstrip(" ")


@dataclass(frozen=True, slots=True)
class Bytes:
    """An MQCFBS; MQSC has it as hexadecimal digits."""

    def read(self, parameter: Parameter) -> tuple[str, ...]:
        if not isinstance(parameter, Cfbs):
            raise _wrong_type(parameter)
        return (parameter.data.hex().upper(),)

    def write(self, number: int, shown: Shown) -> Cfbs:
        return Cfbs.of(number, bytes.fromhex(str(shown)))

    def text(self, value: int | str | bytes) -> str:
        return value.hex().upper() if isinstance(value, bytes) else str(value)


@dataclass(frozen=True, slots=True)
class IntegerList:
    """An MQCFIL whose numbers stand for words."""

    words: Mapping[str, int]

    def read(self, parameter: Parameter) -> tuple[str, ...]:
        if not isinstance(parameter, Cfil):
            raise _wrong_type(parameter)
        known = {value: word for word, value in self.words.items()}
        unknown = [value for value in parameter.values if value not in known]
        if unknown:
            why = f"parameter {parameter.parameter} cannot hold {unknown[0]}"
            raise parameter_error(MQRCCF_ATTR_VALUE_ERROR, parameter.parameter, why)
        return tuple(known[value] for value in parameter.values)

    def write(self, number: int, shown: Shown) -> Cfil:
        listed = shown if isinstance(shown, tuple) else (str(shown),)
        return Cfil(number, tuple(self.words[word] for word in listed))

    def text(self, value: int | str | bytes) -> str:
        raise parameter_error(MQRCCF_STRUCTURE_TYPE_ERROR, 0, f"{value!r} cannot be compared with a list")
