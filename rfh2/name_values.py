"""NameValueString: the text of an MQRFH (wire formats 2.2).

    string  :=  blank* [ token ( blank+ token )* ] blank* [ null anything ]
    token   :=  quoted | plain
    quoted  :=  '"' ( any but quote and null | '""' )* '"'
    plain   :=  ( any but blank, quote and null )+
    pairs   :=  name value name value ...

    'MQPSCommand RegSub MQPSTopic "IBM ""Q"" Price"'  ->  (MQPSCommand, RegSub), (MQPSTopic, IBM "Q" Price)

The blank alone separates: tabs and newlines are characters like others. Names and values keep their case, and either
may be quoted. ``""`` is an empty token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from rfh2.constants import MQRC_RFH_STRING_ERROR
from rfh2.errors import DecodeError, EncodeError
from rfh2.patterns import repeated

_DOUBLED = repeated(r'""[^"\0]*+')
_TOKEN = re.compile(rf'([^ "\0]+)|"([^"\0]*+{_DOUBLED})"')


class NameValue(NamedTuple):
    """One name and its value. position: of the name in the string, 0-based, as MQPSErrorPos counts."""

    name: str
    value: str
    position: int


def parse(text: str) -> list[NameValue]:
    """The pairs of *text*, up to its first null.

    Raises DecodeError (2335) with the position of the fault, counted in characters from the start of *text*.
    """
    end = text.find("\0")
    end = len(text) if end < 0 else end
    tokens: list[tuple[str, int]] = []
    at = _next(text, 0, end)
    while at < end:
        token = _TOKEN.match(text, at, end)
        if token is None:
            raise _refused(at, "the quote is never closed")
        plain, quoted = token.groups()
        tokens.append((plain if quoted is None else quoted.replace('""', '"'), at))
        at = token.end()
        if at < end and text[at] != " ":
            raise _refused(at, "a quoted token needs a blank on either side, and a quote within one must be doubled")
        at = _next(text, at, end)
    if len(tokens) % 2:
        raise _refused(tokens[-1][1], f"{tokens[-1][0]!r} has no value")
    return [NameValue(name, value, at) for (name, at), (value, _) in zip(tokens[::2], tokens[1::2], strict=True)]


def write(pairs: Iterable[tuple[str, str]]) -> str:
    """The string of *pairs*: one blank between tokens, quotes only where a token needs them.

    Raises EncodeError for a token with a null in it, which has no form.
    """
    return " ".join(_quoted(token) for pair in pairs for token in pair)


def _next(text: str, at: int, end: int) -> int:
    while at < end and text[at] == " ":
        at += 1
    return at


def _quoted(token: str) -> str:
    if "\0" in token:
        raise EncodeError(f"NameValueString: {token!r} holds a null")
    if token and " " not in token and '"' not in token:
        return token
    return '"' + token.replace('"', '""') + '"'


def _refused(position: int, why: str) -> DecodeError:
    return DecodeError(position, "NameValueString", why, "bad-name-value-string", MQRC_RFH_STRING_ERROR)
