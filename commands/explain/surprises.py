"""Warnings for what is valid in a command, and does something else than its author expects.

A topic that matches nothing because of a blank, a slash or a wildcard of the other scheme is no error: nobody is told
of it, and the subscriber gets nothing. ``decode`` says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from commands import model
from commands.explain.command_text import TagAndText, command_text
from rfh2.constants import MQMT_DATAGRAM, MQRO_PAN
from rfh2.explain.form import Problem, problem
from rfh2.explain.reading import PartialMessage
from rfh2.mqmd import Mqmd
from streams.selectors import expressions as tree
from streams.subscriptions import PublicationFormat
from streams.topic_strings import SEPARATOR

MOST_TOPICS: Final = 25
"""Topics of one command that are looked at; a message has room for millions."""

_SUBSCRIBERS: Final = (model.RegisterSubscriber, model.DeregisterSubscriber, model.RequestUpdate)
_PERSISTENCE: Final = (model.RegOpt.NON_PERS, model.RegOpt.PERS, model.RegOpt.PERS_AS_PUB, model.RegOpt.PERS_AS_QUEUE)
# A wildcard, a control character, a blank beside a slash or an end, a slash beside another or an end.
_SUSPECT: Final = re.compile(r"[*?#+\t\n\r\0]|(?:\A|/)[ /]|[ /](?:/|\Z)")
_CHARACTERS: Final = {"\t": "a tab", "\n": "a line end", "\r": "a carriage return", "\0": "a null"}


@dataclass(frozen=True, slots=True)
class _Surprise:
    """A warning before its place is known: the tag and the text that it is about."""

    code: str
    tag: str
    text: str
    why: str


def surprises(command: model.Command, partial: PartialMessage) -> list[Problem]:
    """The warnings for one command, each at the tag that it is about."""
    found = list(_surprises(command, partial))
    if not found:
        return []  # as nearly always; to find the places takes longer than to find that there is nothing
    text = command_text(partial.message)
    pairs, start = ((), 0) if text is None else (text.pairs, text.offset)
    return [problem(each.code, _offset(pairs, each, start), each.why) for each in found]


def _surprises(command: model.Command, partial: PartialMessage) -> Iterator[_Surprise]:
    topics = command.topics[:MOST_TOPICS]
    for topic in topics:
        if is_suspect(topic):
            for code, why in _of_topic(topic, command):
                yield _Surprise(code, "Topic", topic, why)
    if len(topics) > 1:
        yield from _differing_in_case(topics)
    if isinstance(command, model.RegisterSubscriber) and command.filter:
        yield from _of_filter(command.filter)
    if isinstance(command, _SUBSCRIBERS):
        for option, why in _without_effect(command, partial):
            yield _Surprise("option-without-effect", "RegOpt", option, f"{option}: {why}")


def is_suspect(topic: str) -> bool:
    """Whether a topic alone may be a reason for a warning; of others it never is."""
    return _SUSPECT.search(topic) is not None


def _offset(pairs: tuple[TagAndText, ...], about: _Surprise, otherwise: int) -> int:
    """Where the pair stands; that of the tag with another text where options are given as a sum."""
    found = [pair for pair in pairs if pair.tag == about.tag]
    exact = next((pair.offset for pair in found if pair.text == about.text or about.text in pair.text.split()), None)
    return exact if exact is not None else found[0].offset if found else otherwise


def _of_topic(topic: str, command: model.QueuedCommand) -> Iterator[tuple[str, str]]:
    levels = topic.split(SEPARATOR)
    if isinstance(command, _SUBSCRIBERS):
        yield from _wildcards(topic, levels, command.header)
    blank = next((level for level in levels if level != level.strip(" ")), None)
    if blank is not None:
        where = "begins" if blank.startswith(" ") else "ends"
        yield "topic-blanks", f"the level '{blank}' of topic '{topic}' {where} with a blank, which counts"
    strange = next((name for character, name in _CHARACTERS.items() if character in topic), None)
    if strange is not None:
        yield "topic-blanks", f"there is {strange} in the topic {topic!r}, which counts"
    if len(levels) > 1 and "" in levels:
        place = "begins with" if not levels[0] else "ends with" if not levels[-1] else "holds two of"
        other = SEPARATOR.join(level for level in levels if level)
        yield "topic-slashes", f"topic '{topic}' {place} '/', and is another topic than '{other}'"


def _wildcards(topic: str, levels: list[str], header: PublicationFormat) -> Iterator[tuple[str, str]]:
    if header is PublicationFormat.RFH2:
        older = [character for character in "*?" if character in topic]
        if older:
            instead = "'#' and '+' are"
            if "?" not in topic and all(level == "*" or "*" not in level for level in levels):
                instead = f"perhaps '{topic.replace('*', '#')}' is meant"
            why = (
                f"'{older[0]}' was a wildcard for version 6, and is an ordinary character in an MQRFH2 now: "
                f"'{topic}' matches itself"
            )
            yield "other-wildcards", f"{why}; {instead}"
        partly = next((level for level in levels if len(level) > 1 and ("#" in level or "+" in level)), None)
        if partly is not None:
            why = f"'{partly}' in topic '{topic}' is text: '#' and '+' are wildcards only as a whole level"
            yield "wildcard-in-level", why
    else:
        mqtt = next((level for level in levels if level in ("#", "+")), None)
        if mqtt is not None:
            why = f"'{mqtt}' is not a wildcard in an {'MQRFH' if header is PublicationFormat.RFH1 else 'PCF command'}"
            yield "other-wildcards", f"{why}: topic '{topic}' matches '{mqtt}' itself; '*' and '?' are wildcards there"


def _differing_in_case(topics: tuple[str, ...]) -> Iterator[_Surprise]:
    seen: dict[str, str] = {}
    for topic in topics:
        first = seen.setdefault(topic.casefold(), topic)
        if first != topic:
            why = f"topics '{first}' and '{topic}' differ in case alone, and are two topics"
            yield _Surprise("topic-case", "Topic", topic, why)


# Few filters are in a capture, in many commands, and each takes a parser, whose import is slow.
@lru_cache(maxsize=1024)
def contradiction(text: str) -> str | None:
    """The property of which a selection string asks that it equals two values at once; None where there is none.

    Only conditions that AND joins are compared. Raises Refusal for a text that is no selection string.
    """
    from streams.selectors.parse import parse  # noqa: PLC0415

    possible: dict[str, list[tuple[tree.ValueKind | None, tree.Value]]] = {}
    for condition in _joined_by_and(parse(text)[0]) if text.strip() else ():
        match condition:
            case tree.Compare(tree.Comparison.EQUAL, tree.Name(_, name), tree.Literal(_, value)):
                values: tuple[tree.Value, ...] = (value,)
            case tree.Compare(tree.Comparison.EQUAL, tree.Literal(_, value), tree.Name(_, name)):
                values = (value,)
            case tree.IsIn(tree.Name(_, name), values):
                pass
            case _:
                continue
        asked = [(tree.kind_of(value), value) for value in values]
        possible[name] = [each for each in asked if each in possible.get(name, asked)]
        if not possible[name]:
            return name
    return None


def _joined_by_and(condition: tree.Condition) -> Iterator[tree.Condition]:
    if isinstance(condition, tree.AllOf):
        for each in condition.conditions:
            yield from _joined_by_and(each)
    else:
        yield condition


def _of_filter(text: str) -> Iterator[_Surprise]:
    try:
        blamed = contradiction(text)
    except tree.Refusal:
        return
    if blamed is not None:
        name = blamed.removeprefix("usr.")
        why = f"no message meets the filter {text}: what it asks of {name} cannot be true at once"
        yield _Surprise("filter-never-true", "Filter", text, why)


def _without_effect(
    command: model.RegisterSubscriber | model.DeregisterSubscriber | model.RequestUpdate, partial: PartialMessage
) -> Iterator[tuple[str, str]]:
    if isinstance(command, model.RegisterSubscriber):
        kinds = [option for option in command.options or () if option in _PERSISTENCE]
        for option in kinds[:-1]:
            if option is not kinds[-1]:
                yield option.value, f"it has no effect, because {kinds[-1].value} follows; the last one counts"
        if command.has(model.RegOpt.PUB_ON_REQ_ONLY) and command.has(model.RegOpt.NEW_PUBS_ONLY):
            why = "with PubOnReqOnly it has no effect: publications are sent on Request Update alone"
            yield model.RegOpt.NEW_PUBS_ONLY.value, why
    if command.has(model.RegOpt.FULL_RESP) and partial.mqmd is not None and not _is_answered(partial.mqmd):
        why = "it has no effect: MsgType is datagram, without MQRO_PAN, so no response is sent"
        yield model.RegOpt.FULL_RESP.value, why


def _is_answered(mqmd: Mqmd) -> bool:
    return mqmd.msg_type != MQMT_DATAGRAM or bool(mqmd.report & MQRO_PAN)
