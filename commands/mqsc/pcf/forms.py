"""How attributes stand in PCF, by their kind: a parameter is read as what MQSC takes, and written from what it shows.

Reading raises CommandError with the reason that IBM documents for a parameter of another type (3013) or a value that it
cannot have (4005).
"""

from __future__ import annotations

from typing import Final

from commands.broker import attribute_kinds as kinds
from rfh2.ccsid import UTF8_CCSID
from rfh2.errors import CommandError, DecodeError
from rfh2.pcf import Cfbs, Cfil, Cfin, Cfsl, Cfst, Parameter
from rfh2.pcf_admin_names import MQRCCF_ATTR_VALUE_ERROR
from rfh2.pcf_names import MQRCCF_STRUCTURE_TYPE_ERROR

NAME_LENGTH: Final = 48


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


def names_of(parameter: Parameter) -> tuple[str, ...]:
    """The names in a list of strings; one blank for none. Raises CommandError."""
    if not isinstance(parameter, Cfsl):
        raise _wrong_type(parameter)
    try:
        return parameter.texts or ("",)
    except DecodeError as error:
        raise parameter_error(error.reason, parameter.parameter, error.why) from error


def texts_of(kind: kinds.Kind, parameter: Parameter) -> tuple[str, ...]:
    """The text of each value of a keyword. Raises CommandError."""
    match kind:
        case kinds.Text() | kinds.Name() | kinds.Custom():
            return (text_of(parameter),)
        case kinds.Bits():
            return (",".join(kind.show(integer_of(parameter))),)
        case kinds.Choice() | kinds.Number():
            return (_word(kind, integer_of(parameter), parameter.parameter),)
        case kinds.Names():
            return names_of(parameter)
        case kinds.Hexadecimal():
            if not isinstance(parameter, Cfbs):
                raise _wrong_type(parameter)
            return (parameter.data.hex().upper(),)
        case kinds.WordList():
            return _words(kind, parameter)


def filter_text(kind: kinds.Kind, value: int | str | bytes) -> str:
    """The text of a value that stands in a filter. Raises CommandError."""
    match kind:
        case kinds.Bits():
            return ",".join(kind.show(int(value)))
        case kinds.Choice() | kinds.Number():
            return _word(kind, int(value), 0)
        case kinds.Hexadecimal():
            return value.hex().upper() if isinstance(value, bytes) else str(value)
        case kinds.WordList():
            raise parameter_error(MQRCCF_STRUCTURE_TYPE_ERROR, 0, f"{value!r} cannot be compared with a list")
        case _:
            return str(value).rstrip(" ")


def parameter_of(attribute: kinds.Attribute, shown: kinds.Shown) -> Parameter | None:
    """The parameter for what DISPLAY shows; None for an integer that is not known."""
    kind, number = attribute.kind, attribute.number
    match kind:
        case kinds.Text() | kinds.Name() | kinds.Custom():
            return Cfst.of(number, str(shown).ljust(kind.filled_to), UTF8_CCSID)
        case kinds.Choice() | kinds.Number():
            value = shown if isinstance(shown, int) else kind.numbers.get(str(shown))
            return None if value is None else Cfin(number, value)
        case kinds.Bits():
            return Cfin(number, sum(kind.numbers[name] for name in (shown if isinstance(shown, tuple) else ())))
        case kinds.Names():
            return names_parameter(number, shown if isinstance(shown, tuple) else ())
        case kinds.Hexadecimal():
            return Cfbs.of(number, bytes.fromhex(str(shown)))
        case kinds.WordList():
            listed = shown if isinstance(shown, tuple) else (str(shown),)
            return Cfil(number, tuple(kind.numbers[word] for word in listed))


def names_parameter(number: int, names: tuple[str, ...], length: int = NAME_LENGTH) -> Cfsl:
    """A list of object names, each filled up with blanks."""
    return Cfsl.of(number, tuple(name.ljust(length) for name in names), UTF8_CCSID)


def _word(kind: kinds.Choice | kinds.Number, value: int, number: int) -> str:
    word = next((word for word, own in kind.numbers.items() if own == value), None)
    if word is None and isinstance(kind, kinds.Choice):
        raise parameter_error(MQRCCF_ATTR_VALUE_ERROR, number, f"parameter {number} cannot be {value}")
    return str(value) if word is None else word


def _words(kind: kinds.WordList, parameter: Parameter) -> tuple[str, ...]:
    if not isinstance(parameter, Cfil):
        raise _wrong_type(parameter)
    known = {value: word for word, value in kind.numbers.items()}
    unknown = [value for value in parameter.values if value not in known]
    if unknown:
        why = f"parameter {parameter.parameter} cannot hold {unknown[0]}"
        raise parameter_error(MQRCCF_ATTR_VALUE_ERROR, parameter.parameter, why)
    return tuple(known[value] for value in parameter.values)


def _wrong_type(parameter: Parameter) -> CommandError:
    why = f"parameter {parameter.parameter} has Type {parameter.type}"
    return parameter_error(MQRCCF_STRUCTURE_TYPE_ERROR, parameter.parameter, why)
