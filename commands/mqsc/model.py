"""A parsed MQSC command: a verb, an object and keywords with their values; no name is looked up yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rfh2.errors import QPubSubError

# The synonyms of MQSC. An abbreviation such as DEFI is not valid, and DELETE has no synonym.
VERB_SYNONYMS: Final = {"DEF": "DEFINE", "ALT": "ALTER", "DIS": "DISPLAY", "DISP": "DISPLAY", "CLR": "CLEAR"}
OBJECT_SYNONYMS: Final = {
    "QL": "QLOCAL",
    "QA": "QALIAS",
    "QM": "QMODEL",
    "Q": "QUEUE",
    "NL": "NAMELIST",
    "CHL": "CHANNEL",
    "CHS": "CHSTATUS",
    "QS": "QSTATUS",
    "LSTR": "LISTENER",
    "PS": "PUBSUB",
    "SBS": "SBSTATUS",
    "TPS": "TPSTATUS",
}


class MqscError(QPubSubError):
    """An MQSC command that failed.

    amq: the message number; text: the message; detail: further lines for a person. reason: MQRC_* or MQRCCF_*, where
    one is known; PCF tells it.
    """

    def __init__(self, amq: str, text: str, detail: tuple[str, ...] = (), reason: int | None = None) -> None:
        super().__init__(amq, text, detail, reason)
        self.amq, self.text, self.detail, self.reason = amq, text, detail, reason

    def __str__(self) -> str:
        return " ".join((f"{self.amq}: {self.text}", *self.detail))


@dataclass(frozen=True, slots=True)
class Value:
    """One value between parentheses. text: as it counts, an unquoted one folded to upper case, quotes taken off.

    folded: whether that changed it.
    """

    text: str
    quoted: bool
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Keyword:
    """One parameter. name: in upper case. values: None where it stands without parentheses."""

    name: str
    values: tuple[Value, ...] | None


@dataclass(frozen=True, slots=True)
class Condition:
    """WHERE(keyword operator value): which objects DISPLAY shows."""

    keyword: str
    operator: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """One command whose grammar is right.

    verb, target: in upper case, synonyms resolved. name: the object's, None where none is given.
    """

    verb: str
    target: str
    name: Value | None
    keywords: tuple[Keyword, ...] = ()
    where: Condition | None = None

    def keyword(self, name: str) -> Keyword | None:
        """The parameter of this name, if it was given."""
        return next((keyword for keyword in self.keywords if keyword.name == name), None)


@dataclass(frozen=True, slots=True)
class Statement:
    """One command of a script. number: among the commands of the script, from 1. line: its first line, from 1.

    source: its lines as they were written. command: None where the text is no command; error then says why.
    """

    number: int
    line: int
    source: tuple[str, ...]
    text: str
    command: Command | None
    error: MqscError | None = None
