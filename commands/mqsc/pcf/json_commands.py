"""MQSC in JSON, as IBM MQ's administrative REST interface has it: commands in, answers out.

    {"type": "runCommand", "parameters": {"command": "DISPLAY SUB(*) ALL"}}
    {"type": "runCommandJSON", "command": "display", "qualifier": "sub", "name": "*",
     "parameters": {"where": "topicstr lk 'Sport*'"}, "responseParameters": ["all"]}

The first is answered with the lines that runmqsc prints, the second with an object for each one that DISPLAY shows:
keywords in small letters, values as DISPLAY has them, a switch (SHARE, TRIGGER) as YES or NO. Names and values are
taken as they are written: nothing is folded to capitals but words that MQSC itself defines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from commands.broker.attribute_kinds import SWITCHES, Shown
from commands.mqsc.answers import Answer
from commands.mqsc.pcf import writing
from commands.mqsc.pcf.commands import PcfCommand, about_command
from commands.mqsc.script import (
    OBJECT_SYNONYMS,
    VERB_SYNONYMS,
    Command,
    Condition,
    Keyword,
    Statement,
    Value,
    parse,
    syntax_error,
)
from rfh2.constants import MQRCCF_COMMAND_FAILED
from rfh2.errors import QPubSubError
from rfh2.mqi_constants import MQCC_FAILED, MQCC_OK

_FLAGS: Final = frozenset({"ALL", "FORCE", "NOPURGE", "NOREPLACE", "PURGE", "REPLACE", *SWITCHES})
"""Keywords that stand without a value in MQSC, and have ``yes`` or ``no`` in JSON."""


class JsonCommandError(QPubSubError):
    """The body of a request that is no command: nothing was carried out. key: where in it; what: what is wrong."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(key, what)
        self.key, self.what = key, what

    def __str__(self) -> str:
        return f"{self.key}: {self.what}"


def read_command(body: object) -> Statement:
    """The one statement in the body of a request; text that is no MQSC is a statement with an error.

    Raises JsonCommandError.
    """
    if not isinstance(body, dict):
        raise JsonCommandError("body", "a JSON object is expected")
    match body.get("type"):
        case "runCommand":
            text = _text(_mapping(body, "parameters"), "command", "parameters.command")
            found = parse(text)
            if len(found) == 1:
                return found[0]
            return Statement(1, 1, (text,), text, None, syntax_error(text, "A request takes one command."))
        case "runCommandJSON":
            return _structured(body)
    raise JsonCommandError("type", 'it is "runCommand" or "runCommandJSON"')


def is_structured(body: Mapping[str, Any]) -> bool:
    """Whether the answer is to be objects, and not lines."""
    return body.get("type") == "runCommandJSON"


def answered(command: Command | None, answer: Answer, structured: bool) -> dict[str, Any]:
    """The body of the response. HTTP status 200 goes with it, whether or not the command succeeded."""
    code, reason = MQCC_OK, 0
    responses: list[dict[str, Any]]
    if not answer.ok:
        about = PcfCommand("", "") if command is None else about_command(command)
        code, reason = MQCC_FAILED, writing.refused(answer, about).reason
        responses = [{"message" if structured else "text": list(answer.lines)}]
    elif structured:
        responses = [{"parameters": json_row(row)} for row in answer.objects] or [{}]
    else:
        responses = [{"text": lines} for lines in _printed(answer)]
    codes = {"completionCode": code, "reasonCode": reason}
    return {
        "commandResponse": [codes | response for response in responses],
        "overallCompletionCode": code,
        "overallReasonCode": 0 if answer.ok else MQRCCF_COMMAND_FAILED,
    }


def json_row(row: Mapping[str, Shown]) -> dict[str, Any]:
    """One object of DISPLAY."""
    return {keyword.lower(): _json_value(keyword, value) for keyword, value in row.items()}


def _json_value(keyword: str, value: Shown) -> Any:
    if keyword in SWITCHES:
        return "YES" if value == keyword else "NO"
    return list(value) if isinstance(value, tuple) else value


def _printed(answer: Answer) -> Iterator[list[str]]:
    """The lines of the answer, by object."""
    if not answer.objects:
        yield list(answer.lines)
        return
    for row in answer.objects:
        yield list(Answer(True, answer.amq, answer.text, objects=(row,)).lines)


def _structured(body: Mapping[str, Any]) -> Statement:
    verb, target = _text(body, "command").upper(), _text(body, "qualifier").upper()
    verb, target = VERB_SYNONYMS.get(verb, verb), OBJECT_SYNONYMS.get(target, target)
    name = None if body.get("name") is None else Value(_text(body, "name"), quoted=True)
    keywords: list[Keyword] = []
    where: Condition | None = None
    for key, value in _mapping(body, "parameters").items():
        word = key.upper()
        if word == "WHERE":
            where = _condition(value)
        elif word in _FLAGS:
            keywords += _flag(word, value)
        else:
            values = value if isinstance(value, list) else [value]
            keywords.append(Keyword(word, tuple(_value(f"parameters.{key}", each) for each in values)))
    shown = body.get("responseParameters", [])
    if not isinstance(shown, list) or not all(isinstance(each, str) for each in shown):
        raise JsonCommandError("responseParameters", "a list of names is expected")
    given = {keyword.name for keyword in keywords}
    keywords += [Keyword(each.upper(), None) for each in shown if each.upper() not in given]
    command = Command(verb, target, name, tuple(keywords), where)
    text = f"{verb} {target}" + ("" if name is None else f"({name.text})")
    return Statement(1, 1, (text,), text, command)


def _flag(word: str, value: object) -> Sequence[Keyword]:
    is_set = value if isinstance(value, bool) else str(value).upper() in ("YES", word, "")
    if is_set:
        return [Keyword(word, None)]
    return [Keyword(f"NO{word}", None)] if word in SWITCHES else []


def _condition(value: object) -> Condition:
    """WHERE, which is written as in MQSC."""
    found = parse(f"DISPLAY QUEUE(*) WHERE({value})") if isinstance(value, str) else []
    where = found[0].command.where if len(found) == 1 and found[0].command is not None else None
    if where is None:
        raise JsonCommandError("parameters.where", f"it is not KEYWORD OPERATOR VALUE: {value}")
    return where


def _value(key: str, value: object) -> Value:
    if isinstance(value, bool):
        return Value("YES" if value else "NO", quoted=True)
    if not isinstance(value, str | int):
        raise JsonCommandError(key, "a text or a whole number is expected")
    return Value(str(value), quoted=True)


def _mapping(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = body.get(key, {})
    if not isinstance(found, dict):
        raise JsonCommandError(key, "a JSON object is expected")
    return found


def _text(body: Mapping[str, Any], key: str, called: str = "") -> str:
    found = body.get(key)
    if not isinstance(found, str) or not found.strip():
        raise JsonCommandError(called or key, "a text is expected")
    return found
