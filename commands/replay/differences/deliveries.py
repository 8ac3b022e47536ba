"""What was captured on subscriber queues, against what each version puts there.

A captured message counts as a delivery where a broker put it (PutApplType MQAT_BROKER) on a queue that no broker reads,
and it is a publication. Deliveries are counted by queue, topics and data; only queues on which any were captured are
compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from hashlib import blake2b

from commands.broker import Arrival
from commands.explain.reading import command_of
from commands.model import Publish
from commands.replay.differences.observe import Observed, Step
from commands.replay.differences.report import DeliveryLine
from commands.replay.differences.subscribers import told_topic
from rfh2.captured import CapturedMessage
from rfh2.constants import MQAT_BROKER
from rfh2.explain.reading import read_message
from rfh2.message import Message

Mark = tuple[str, bytes, int]
"""A queue, a digest of topics and data, and whose it is."""


class Whose(IntEnum):
    """Who put a delivery."""

    CAPTURED = 0
    OLD = 1
    NEW = 2


class Deliveries:
    """Counts deliveries."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, bytes], list[int]] = {}

    def step(self, step: Step) -> None:
        """What was captured, or what the versions put."""
        for mark in marks_of(step):
            self.add(mark)

    def add(self, mark: Mark, count: int = 1) -> None:
        """So many more of one delivery."""
        queue, digest, whose = mark
        self._counts.setdefault((queue, digest), [0, 0, 0])[whose] += count

    def lines(self) -> list[DeliveryLine]:
        """One for each queue with captured deliveries, in order of name."""
        by_queue: dict[str, list[list[int]]] = {}
        for (queue, _), counts in self._counts.items():
            by_queue.setdefault(queue, []).append(counts)
        return [
            line_of(queue, counts)
            for queue, counts in sorted(by_queue.items())
            if any(each[Whose.CAPTURED] for each in counts)
        ]


def line_of(queue: str, counts: Iterable[list[int]]) -> DeliveryLine:
    """The line of one queue. counts: of each delivery, as captured, by version 6, by version 7."""
    captured = old = new = missing = extra = 0
    for was, by_old, by_new in counts:
        captured, old, new = captured + was, old + by_old, new + by_new
        missing += max(0, was - by_new)
        extra += max(0, by_new - was)
    return DeliveryLine(queue=queue, captured=captured, old=old, new=new, missing_in_new=missing, only_in_new=extra)


def marks_of(step: Step) -> list[Mark]:
    """The deliveries that a message is, or leads to."""
    if step.new.outcome.completion is None:
        captured = _captured(step.arrival)
        return [] if captured is None else [captured]
    return [*_put(step.old, Whose.OLD), *_put(step.new, Whose.NEW)]


def _captured(arrival: Arrival) -> Mark | None:
    md_hex = None if arrival.md is None else arrival.md.hex()
    message = CapturedMessage(seq=0, queue=arrival.queue, md_hex=md_hex, body_hex=arrival.body.hex())
    partial = read_message(message)
    if partial.assumed.put_appl_type != MQAT_BROKER:
        return None
    command = command_of(partial)
    if not isinstance(command, Publish):
        return None
    return arrival.queue, _digest(command.topics, partial.message), Whose.CAPTURED


def _put(observed: Observed, whose: Whose) -> list[Mark]:
    marks = []
    for put, copy in zip(observed.publications, observed.copies, strict=True):
        topics = tuple(told_topic(delivery) for delivery in copy)
        marks.append((put.queue, _digest(topics, put.message), int(whose)))
    return marks


def _digest(topics: Iterable[str], message: Message) -> bytes:
    told = blake2b(digest_size=16)
    for topic in topics:
        told.update(topic.encode("utf-8", "surrogatepass") + b"\0")
    told.update(b"\0" + message.body)
    return told.digest()
