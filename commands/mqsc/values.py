"""How the values of MQSC keywords are read, by the kind of the attribute.

``read`` raises MqscError with the message number that runmqsc gives: AMQ8405 for the wrong form, AMQ8412 outside a
range, AMQ8413 too long, AMQ8424 no object name, AMQ8425 no such value.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from commands.broker import attribute_kinds as kinds
from commands.mqsc.script import Keyword, MqscError, Value, syntax_error
from rfh2.constants import MQ_OBJECT_NAME_LENGTH

# Names of topic objects may hold blanks: guide 2.5.4 prints 'St. Helens'.
MOST_NAMES: Final = 256
"""The most names in a namelist."""
_OBJECT_NAME: Final = re.compile(r"[A-Za-z0-9._/%]+")
_TOPIC_OBJECT_NAME: Final = re.compile(r"[A-Za-z0-9._/%][A-Za-z0-9._/% ]*")


def shown_moment(date: str, time: str, moment: datetime | None) -> dict[str, kinds.Shown]:
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


def folded_user_notes(keyword: Keyword | None) -> tuple[str, ...]:
    """What to say where a user or group was written in small letters, and means the one in capitals."""
    if keyword is None or not keyword.values or not keyword.values[0].folded:
        return ()
    name = keyword.values[0].text
    return (f"{keyword.name}({name}): without quotes it was read in capitals. Quotes keep small letters",)


def read(kind: kinds.Kind, keyword: Keyword) -> Any:
    """The value to keep of an attribute of *kind*. Raises MqscError."""
    match kind:
        case kinds.Choice():
            alone = keyword.values is None and keyword.name in kind.meanings  # SHARE, NOSHARE
            word = keyword.name if alone else single(keyword).text.upper()
            if word not in kind.meanings:
                raise value_error(keyword, f"one of {', '.join(kind.meanings)}")
            return kind.meanings[word]
        case kinds.Number():
            return _number(kind, keyword)
        case kinds.Text():
            return _text(kind, keyword)
        case kinds.Custom():
            return _custom(keyword)
        case kinds.Name():
            text = single(keyword).text
            return object_name(text) if text.strip(" ") else kind.absent
        case kinds.Names():
            return _names(keyword, kind.of_objects)
        case kinds.Hexadecimal():
            text = single(keyword).text.strip(" ")
            if re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", text) is None or len(text) > 2 * kind.size:
                raise value_error(keyword, f"up to {2 * kind.size} hexadecimal digits")
            return bytes.fromhex(text).ljust(kind.size, b"\0") if text else b""
        case kinds.WordList() | kinds.Bits():
            return tuple(value.text.upper() for value in keyword.values or ())


def word_of(keyword: Keyword, *choices: str) -> str:
    """The one of *choices* that the keyword has. Raises MqscError."""
    word: str = read(kinds.words(*choices), keyword)
    return word


def _number(kind: kinds.Number, keyword: Keyword) -> Any:
    text = single(keyword).text.strip().upper()
    if text in kind.meanings:
        return kind.meanings[text]
    if re.fullmatch(r"[+-]?[0-9]{1,12}", text) is None:
        raise value_error(keyword, " or ".join((f"a number from {kind.low} to {kind.high}", *kind.meanings)))
    value = int(text)
    if not kind.low <= value <= kind.high:
        detail = f"{keyword.name}({text}): a number from {kind.low} to {kind.high}."
        raise MqscError("AMQ8412", "Numeric Range Error.", (detail,))
    return value


def _text(kind: kinds.Text, keyword: Keyword) -> str:
    text = single(keyword).text
    if not text.strip(" "):
        return ""
    if len(text) > kind.longest:
        detail = f"{keyword.name} has {len(text)} characters, more than {kind.longest}."
        raise MqscError("AMQ8413", "String Length Error.", (detail,))
    return text


def _custom(keyword: Keyword) -> str:
    pairs = single(keyword).text.split()
    for pair in pairs:
        if re.fullmatch(r"\w+\([^()]*\)", pair) is None:
            raise syntax_error(f"{keyword.name}({pair}", "CUSTOM takes pairs of the form NAME(VALUE).")
        name, value = pair.upper().rstrip(")").split("(")
        if name == "PSCTAGS" and value not in ("ANY", "STRICT"):
            raise syntax_error(f"{keyword.name}({pair}", "PSCTAGS takes ANY or STRICT.")
    return " ".join(pairs)


def _names(keyword: Keyword, of_objects: bool) -> tuple[str, ...]:
    if not keyword.values:
        raise syntax_error(f"{keyword.name}()")
    given = [value.text for value in keyword.values if value.text.strip(" ")]
    names = tuple(object_name(text, topic=True) if of_objects else text.strip(" ") for text in given)
    if len(names) > MOST_NAMES:
        detail = f"{keyword.name} has {len(names)} names, more than {MOST_NAMES}."
        raise MqscError("AMQ8554", "String List String Count Error.", (detail,))
    return names
