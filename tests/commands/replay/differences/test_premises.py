"""No rule stands in for another: whatever is told, the commands so far have what its rule is about (sources, 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from hypothesis import given

from commands.broker.objects import DEFAULT_STREAM
from commands.explain.problems import command_of
from commands.model import (
    Command,
    DeletePublication,
    DeregisterSubscriber,
    Publish,
    PubOpt,
    RegisterSubscriber,
    RegOpt,
    RequestUpdate,
)
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.differences import RULES
from commands.replay.differences.deliveries import LocalDifferences
from commands.replay.differences.report import Seen
from rfh2.captured import CapturedMessage
from rfh2.explain.reading import read_message
from rfh2.mqmd import name_of
from streams.subscriptions import PublicationFormat
from tests.commands.replay.spark.worlds import SETUP, captures

SUBSCRIBING: Final = (RegisterSubscriber, DeregisterSubscriber, RequestUpdate)


@dataclass(frozen=True)
class Said:
    """A command, and the user and queue of its message."""

    seq: int
    command: Command
    user: str
    queue: str
    subscriber: str
    """Where its answers, and its publications, go."""

    @property
    def name(self) -> str | None:
        return getattr(self.command, "sub_name", None)

    @property
    def point(self) -> str | None:
        return getattr(self.command, "sub_point", None)


def said(message: CapturedMessage) -> Said | None:
    partial = read_message(message)
    command = command_of(partial)
    if command is None:
        return None
    mqmd = partial.assumed
    user = message.user or name_of(mqmd.user_identifier)
    return Said(message.seq, command, user, message.queue, command.q_name or name_of(mqmd.reply_to_q))


def subscribers(so_far: Sequence[Said]) -> Iterator[Said]:
    return (each for each in so_far if isinstance(each.command, SUBSCRIBING))


def pairs(so_far: Sequence[Said]) -> Iterator[tuple[Said, Said]]:
    return combinations(subscribers(so_far), 2)


def topics(so_far: Sequence[Said]) -> Iterator[str]:
    return (topic for each in so_far for topic in each.command.topics)


def renamed(one: Said, other: Said) -> bool:
    return one.name is not None and one.name == other.name and asked(one) != asked(other)


def asked(each: Said) -> tuple[object, ...]:
    return each.command.topics, getattr(each.command, "filter", None), each.point, each.command.stream_name


PREMISES: Final[dict[str, Callable[[Sequence[Said]], bool]]] = {
    "D01": lambda so_far: any(isinstance(s.command, Publish) and s.command.has(PubOpt.LOCAL) for s in so_far),
    "D02": lambda so_far: any(
        isinstance(s.command, RegisterSubscriber) and s.command.has(RegOpt.LOCAL) for s in so_far
    ),
    "D04": lambda so_far: any(topic.startswith("MQ/") for topic in topics(so_far)),
    "D08": lambda so_far: any(s.queue == "NEWS" or s.command.stream_name == "NEWS" for s in so_far),
    "D09": lambda so_far: any(s.queue == "NEWS" or s.command.stream_name == "NEWS" for s in so_far),
    "D10": lambda so_far: any(renamed(one, other) for one, other in pairs(so_far)),
    "D11": lambda so_far: any(isinstance(s.command, Publish) and len(s.command.topics) > 1 for s in so_far),
    "D12": lambda so_far: len([topic for s in subscribers(so_far) for topic in s.command.topics]) > 1,
    "D13": lambda so_far: any(a.subscriber == b.subscriber and a.user != b.user for a, b in pairs(so_far)),
    "D15": lambda so_far: any(
        a.name is not None and a.name == b.name and a.command.stream_name != b.command.stream_name
        for a, b in pairs(so_far)
    ),
    "D20": lambda so_far: any(
        a.subscriber == b.subscriber and a.name is not None and b.name is None for a, b in pairs(so_far)
    ),
    "D21": lambda so_far: any(s.point not in (None, "USD") for s in so_far),
    "D22": lambda so_far: any(s.point is not None for s in so_far),
    "D33": lambda so_far: any(
        (isinstance(s.command, DeletePublication) and s.command.header is not PublicationFormat.RFH2)
        or s.queue == "NEWS"
        for s in so_far
    ),
    "D34": lambda so_far: any(s.queue == "UNLISTED" or s.command.stream_name == "UNLISTED" for s in so_far),
    "D23": lambda so_far: any(
        isinstance(s.command, Publish | DeletePublication)
        and s.command.header is PublicationFormat.RFH2
        and s.queue != DEFAULT_STREAM
        for s in so_far
    ),
    "D24": lambda so_far: any(topic.startswith("$SYS/") for topic in topics(so_far)),
}


def test_every_rule_that_shows_in_puts_has_a_premise() -> None:
    assert set(PREMISES) == {rule.id for rule in RULES.values() if rule.seen is Seen.PUTS}


@given(capture=captures(most=2))
def test_what_a_rule_is_about_is_in_the_capture(capture: list[CapturedMessage]) -> None:
    differences = LocalDifferences(SETUP)
    so_far: dict[str, list[Said]] = {}
    for message in capture:
        commands = so_far.setdefault(message.qmgr or DEFAULT_QMGR, [])
        if (command := said(message)) is not None:
            commands.append(command)
        for found in differences.compare(message):
            until = message.seq if found.since is None else found.since
            before = [each for each in commands if each.seq <= until]
            assert found.rule in PREMISES, found
            assert PREMISES[found.rule](before), found
            assert found.since is None or isinstance(before[-1].command, SUBSCRIBING), found
