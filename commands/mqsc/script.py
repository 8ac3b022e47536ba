"""The text of MQSC scripts: lines put together to commands, commands parsed, and commands written as lines.

Lines:

- A command starts on a new line and ends with it, unless the last character that is no blank is ``+`` or ``-``: then it
  goes on with the next line that is neither blank nor a comment, after ``+`` from its first non-blank character, after
  ``-`` from its first column. That holds inside quotes too, so a break may fall anywhere.
- ``;`` outside quotes ends a command as well.
- A line whose first non-blank character is ``*`` is a comment. Between the lines of one command the ``*`` must stand in
  the first column: further right it is a value, as in ``DISPLAY TOPIC( +`` / ``  *)``.
- ``END``, ``EXIT`` or ``QUIT`` alone ends the script.

Commands: grammar.lark is the grammar, and this module says where it failed. A statement that does not parse is an item
like the others, with its error; the rest of the script is still parsed. What keywords a command takes is looked up when
it is executed, not here.

Writing, of any values (migration sources, 9.1): every value is in quotes, and quotes in it are doubled. A line has at
most ``MAX_LINE`` characters. A longer value continues on the next line after a ``-``, so that its blanks are kept. MQSC
cannot express a value with a line end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from commands.broker.attribute_kinds import SWITCHES
from rfh2.errors import QPubSubError
from rfh2.terminal_escape import drives_terminal

# A parsed MQSC command: a verb, an object and keywords with their values; no name is looked up yet.

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


_LAST_WORDS: Final = frozenset({"END", "EXIT", "QUIT"})
_BLANKS: Final = " \t"
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
# runmqsc reads lines of 2048 characters; other tools that scripts are passed through may not.
MAX_LINE: Final = 1000
MAX_COMMAND: Final = 32_762

Attribute = tuple[str, str | int]


@dataclass(frozen=True, slots=True)
class ScriptCommand:
    """One command as it was written and as it reads once joined.

    line: the number of its first line, from 1. source: its lines, unchanged. text: the command, continuations joined.
    unfinished: the script ended where a continuation was announced.
    """

    line: int
    source: tuple[str, ...]
    text: str
    unfinished: bool = False


def lines_of(text: str) -> Iterable[str]:
    """The lines of a script, whatever they end with."""
    return _LINE_END.split(text.removeprefix("\ufeff"))


def split_script(lines: Iterable[str]) -> Iterator[ScriptCommand]:
    """The commands of a script, in order, up to its end or to END; each as soon as its last line is there."""
    for command in _joined(lines):
        if command.text.strip().upper() in _LAST_WORDS:
            return
        yield command


def _joined(lines: Iterable[str]) -> Iterator[ScriptCommand]:
    start, source, joined, mark = 0, list[str](), "", ""
    for number, ended in enumerate(lines, 1):
        raw = ended.rstrip("\r\n")
        line = raw.rstrip()
        if not line or line.startswith("*") or (not mark and line.lstrip(_BLANKS).startswith("*")):
            continue
        if not mark:
            start, source, joined = number, [], ""
        source.append(raw)
        content = line.lstrip(_BLANKS) if mark == "+" else line
        mark = content[-1:] if content[-1:] in {"+", "-"} else ""
        joined += content[:-1] if mark else content
        if not mark:
            yield from _split_at_semicolons(start, tuple(source), joined)
    if mark:
        yield ScriptCommand(start, tuple(source), joined, unfinished=True)


def _split_at_semicolons(line: int, source: tuple[str, ...], text: str) -> Iterator[ScriptCommand]:
    begin, quote = 0, ""
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == ";":
            if text[begin:position].strip():
                yield ScriptCommand(line, source if not begin else (text[begin:position],), text[begin:position])
            begin = position + 1
    if text[begin:].strip():
        yield ScriptCommand(line, source if not begin else (text[begin:],), text[begin:])


class NoMqscFormError(Exception):
    """A value that MQSC has no form for; the caller says so where the command would stand."""


def quoted(value: str) -> str:
    """*value* in quotes. Raises NoMqscFormError where it holds a control character, or ends in a blank.

    Characters that turn the direction of writing round count as such: scripts are read and printed by people.
    """
    if value.endswith(" "):
        raise NoMqscFormError("a value ends in a blank, which MQSC takes for padding; use PCF")
    if "\t" in value or drives_terminal(value):
        raise NoMqscFormError("a value holds control characters, for which MQSC has no form; use PCF")
    return "'" + value.replace("'", "''") + "'"


def keyword(name: str, value: str | int) -> str:
    """``NAME('value')``; numbers, and words that MQSC itself defines, go without quotes: give those as ``Word``.

    Of a switch the value is the word, and stands alone.
    """
    if name in SWITCHES:
        return str(value)
    return f"{name}({value if isinstance(value, int | Word) else quoted(value)})"


class Word(str):
    """A value that is a word of MQSC's."""

    __slots__ = ()


def statement(head: str, attributes: Iterable[Attribute]) -> list[str]:
    """One command, an attribute a line, as it is written in a script.

    Raises NoMqscFormError where MQSC cannot say it.
    """
    parts = [head, *(keyword(name, value) for name, value in attributes)]
    if sum(len(part) + 1 for part in parts) > MAX_COMMAND:
        raise NoMqscFormError(f"the command would be longer than {MAX_COMMAND} characters; use PCF")
    lines = [f"  {part}" if at else part for at, part in enumerate(parts)]
    whole = [f"{line} +" for line in lines[:-1]] + lines[-1:]
    return [piece for line in whole for piece in _broken(line)]


def _broken(line: str) -> Iterator[str]:
    at = 0
    while len(line) - at > MAX_LINE:
        end = at + MAX_LINE - 1
        # A line that begins with * is a comment, and one of blanks is skipped: no line may begin so.
        while end > at and line[end] in "* ":
            end -= 1
        if end == at:
            raise NoMqscFormError("a value holds too many blanks or asterisks in a row; use PCF")
        yield line[at:end] + "-"
        at = end
    yield line[at:]


def comment(text: str) -> str:
    """A comment line; line ends in *text* are escaped."""
    return "* " + "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


VERBS: Final = tuple("ALTER CLEAR DEFINE DELETE DISPLAY PING REFRESH RESUME SET START STOP SUSPEND".split())  # noqa: SIM905
# Correct in IBM MQ, but for things that the bridge does not have: structures of z/OS, logs.
OTHER_VERBS: Final = ("ARCHIVE", "BACKUP", "MOVE", "RECOVER", "RESET", "RESOLVE")

SYNTAX_ERROR: Final = "AMQ8405"
UNEXPECTED_END: Final = "AMQ8406"
DUPLICATE_KEYWORD: Final = "AMQ8411"


def parse(text: str) -> list[Statement]:
    """The statements of an MQSC script, each with its line; one that is no command has its error instead."""
    return list(statements(lines_of(text)))


def statements(lines: Iterable[str]) -> Iterator[Statement]:
    """The same for lines that a person may still type: gives each statement as soon as its last line has come."""
    return (_statement(number, written) for number, written in enumerate(split_script(lines), 1))


_SHOWN: Final = 80


def shortened(text: str) -> str:
    """The beginning of *text*, which may be a line of any other file."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def syntax_error(segment: str, *detail: str) -> MqscError:
    """AMQ8405 with the command as far as it was understood, the culprit last, as runmqsc shows it."""
    what = "Syntax error detected at or near end of command segment below:-"
    return MqscError(SYNTAX_ERROR, what, (segment.strip(), *detail))


def _statement(number: int, written: ScriptCommand) -> Statement:
    try:
        if written.unfinished:
            raise MqscError(UNEXPECTED_END, "Unexpected end of input in MQSC.")
        command, error = _parse_command(written.text), None
    except MqscError as refused:
        command, error = None, refused
    return Statement(number, written.line, written.source, written.text.strip(), command, error)


def _parse_command(text: str) -> Command:
    words = text.split(None, 1)
    verb = words[0].upper().split("(", 1)[0]
    if VERB_SYNONYMS.get(verb, verb) not in (*VERBS, *OTHER_VERBS):
        known = (f"    {each}" for each in VERBS)
        raise syntax_error(shortened(words[0]), "AMQ8426: Valid MQSC commands are:", *known)
    try:
        # With a transformer of its own, lark gives what start() makes instead of a tree.
        command = cast(Command, _parser().parse(text))
    except UnexpectedInput as unexpected:
        raise _where(text, unexpected) from None
    return command


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", transformer=_ToCommand(), maybe_placeholders=True)


def _where(text: str, unexpected: UnexpectedInput) -> MqscError:
    if isinstance(unexpected, UnexpectedToken) and unexpected.token.type == "$END":
        return syntax_error(text)
    end = unexpected.pos_in_stream or 0
    if isinstance(unexpected, UnexpectedToken):
        end += len(unexpected.token)
    elif isinstance(unexpected, UnexpectedCharacters) and text[end] in "'\"":
        return syntax_error(text, f"The quotation mark at column {end + 1} is never closed.")
    else:
        end += 1
    return syntax_error(text[:end])


@dataclass(frozen=True, slots=True)
class _Target:
    word: str
    values: tuple[Value, ...] | None


class _ToCommand(Transformer[Token, Command]):
    """Parse tree to Command."""

    def value(self, children: Sequence[Token]) -> Value:
        token = children[0]
        if token.type != "STRING":
            text = str(token).upper()
            return Value(text, quoted=False, folded=text != str(token))
        quote = token[0]
        return Value(token[1:-1].replace(quote * 2, quote), quoted=True)

    def values(self, children: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(children)

    def target(self, children: Sequence[Token | tuple[Value, ...] | None]) -> _Target:
        keyword = self.attribute(children)
        return _Target(OBJECT_SYNONYMS.get(keyword.name, keyword.name), keyword.values)

    def attribute(self, children: Sequence[Token | tuple[Value, ...] | None]) -> Keyword:
        word, values = children
        assert isinstance(word, Token)
        assert values is None or isinstance(values, tuple)
        return Keyword(word.upper(), values)

    def filter(self, children: Sequence[Token | Value]) -> Condition:
        keyword, operator = (child.upper() for child in children[:2] if isinstance(child, Token))
        return Condition(keyword, operator, tuple(child for child in children if isinstance(child, Value)))

    def start(self, children: Sequence[Token | _Target | Keyword | Condition]) -> Command:
        verb = next(child.upper() for child in children if isinstance(child, Token))
        target = next(child for child in children if isinstance(child, _Target))
        keywords = tuple(child for child in children if isinstance(child, Keyword))
        conditions = [child for child in children if isinstance(child, Condition)]
        if target.values is not None and len(target.values) != 1:
            raise syntax_error(f"{verb} {target.word}({' '.join(value.text for value in target.values)}")
        if len({keyword.name for keyword in keywords}) != len(keywords) or len(conditions) > 1:
            raise MqscError(DUPLICATE_KEYWORD, "Duplicate Keyword Error.")
        return Command(
            VERB_SYNONYMS.get(verb, verb),
            target.word,
            target.values[0] if target.values else None,
            keywords,
            conditions[0] if conditions else None,
        )
