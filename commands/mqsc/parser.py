"""Parses a script into statements: grammar.lark is the grammar, and this module says where it failed.

A statement that does not parse is an item like the others, with its error; the rest of the script is still parsed. What
keywords a command takes is looked up when it is executed, not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from commands.mqsc.model import OBJECT_SYNONYMS, VERB_SYNONYMS, Command, Condition, Keyword, MqscError, Statement, Value
from commands.mqsc.script import ScriptCommand, lines_of, split_script

VERBS: Final = ("ALTER", "CLEAR", "DEFINE", "DELETE", "DISPLAY", "PING", "REFRESH", "RESUME", "SET", "SUSPEND")
# Correct in IBM MQ, but for things that the bridge does not have: channels, listeners, clusters, logs.
OTHER_VERBS: Final = ("ARCHIVE", "BACKUP", "MOVE", "RECOVER", "RESET", "RESOLVE", "START", "STOP")

SYNTAX_ERROR: Final = "AMQ8405"
UNEXPECTED_END: Final = "AMQ8406"
DUPLICATE_KEYWORD: Final = "AMQ8411"


def parse(text: str) -> list[Statement]:
    """The statements of an MQSC script, each with its line; one that is no command has its error instead."""
    return list(statements(lines_of(text)))


def statements(lines: Iterable[str]) -> Iterator[Statement]:
    """The same for lines that a person may still type: gives each statement as soon as its last line has come."""
    return (_statement(number, written) for number, written in enumerate(split_script(lines), 1))


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
        raise syntax_error(words[0], "AMQ8426: Valid MQSC commands are:", *(f"    {known}" for known in VERBS))
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
