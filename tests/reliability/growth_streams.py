"""How the time of matching, selecting, authority and drawing grows with the length of what an attacker may write.

Each case is run at a size and at four times the size; sizes are characters of a topic string, pattern or value, at most
what MQ allows a topic (10,240) where it is one. ``growth`` is the exponent that the documentation promises: 1 where the
time is proportional to the size, 2 where it is to its square. Run as a program, it prints a table of times.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from commands.broker.authority import parse_profile
from commands.explain.pictures import outline, page, svg, text_tree
from rfh2.message import Message
from streams.index import SubscriptionIndex
from streams.operations import Publication, RetainedPublication
from streams.patterns import parse_char_pattern, parse_pattern, parse_topic_pattern
from streams.retained import RetainedPublications
from streams.selectors import compile_selector
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import TopicObject, TopicObjects
from streams.topic_strings import BlockSet

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FACTOR = 4
"""How many times as large the larger of two sizes is."""
_LENIENCE = 0.7
"""Of an exponent: a shared machine is noisy, and what is wrong has one or two more."""
T, C = WildcardScheme.TOPIC, WildcardScheme.CHAR

Prepared = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """name: what grows. prepare: makes the input of a size, which is not measured, and gives what is. growth: the
    exponent promised. size: the smaller of the two that are compared.
    """

    name: str
    prepare: Callable[[int], Prepared]
    growth: float = 1
    size: int = 2_500


def subscription(number: int, topic_string: str, scheme: WildcardScheme) -> Subscription:
    return Subscription(number.to_bytes(24, "big"), topic_string, "Q", "QM1", NOW, wildcard=scheme)


def levels(count: int, level: str = "a") -> str:
    return "/".join([level] * count)


def _char(pattern: Callable[[int], str], topic: Callable[[int], str]) -> Callable[[int], Prepared]:
    def prepare(size: int) -> Prepared:
        parsed, text = parse_char_pattern(pattern(size)), topic(size)
        return lambda: parsed.matches(text)

    return prepare


def _topic(pattern: Callable[[int], str], topic: Callable[[int], str]) -> Callable[[int], Prepared]:
    def prepare(size: int) -> Prepared:
        parsed, text = parse_topic_pattern(pattern(size)), topic(size)
        return lambda: parsed.matches(text)

    return prepare


def _like(pattern: Callable[[int], str], value: Callable[[int], str]) -> Callable[[int], Prepared]:
    def prepare(size: int) -> Prepared:
        matches, text = compile_selector(f"Colour LIKE '{pattern(size)}'").matches, value(size)
        return lambda: matches(lambda name: text)

    return prepare


def _index(
    patterns: Callable[[int], list[str]], scheme: WildcardScheme, topic: Callable[[int], str]
) -> Callable[[int], Prepared]:
    def prepare(size: int) -> Prepared:
        index, text = SubscriptionIndex(), topic(size)
        for number, pattern in enumerate(patterns(size)):
            index.add(subscription(number, pattern, scheme))
        return lambda: index.match_uncached(text)

    return prepare


def _change(pattern: Callable[[int], str], scheme: WildcardScheme) -> Callable[[int], Prepared]:
    def prepare(size: int) -> Prepared:
        index, one = SubscriptionIndex(), subscription(1, pattern(size), scheme)

        def add_and_remove() -> None:
            index.add(one)
            index.remove(one)

        return add_and_remove

    return prepare


def _retained(pattern: Callable[[int], str], scheme: WildcardScheme) -> Callable[[int], Prepared]:
    def prepare(size: int) -> Prepared:
        retained, parsed = RetainedPublications(), parse_pattern(pattern(size), scheme)
        retained.store(RetainedPublication(levels(size // 2), Publication(cast(Message, None), NOW)))
        return lambda: retained.match(parsed, NOW)

    return prepare


def _blocks(size: int) -> Prepared:
    blocks, topic = BlockSet(frozenset({"a/b", "a"})), levels(size // 2)
    return lambda: blocks.depth(topic)


def _objects(size: int) -> Prepared:
    objects, topic = TopicObjects([TopicObject("A", "a"), TopicObject("B", "a/a/b")]), levels(size // 2)
    return lambda: objects.covering(topic)


def _outline(size: int) -> Prepared:
    deep, beside = levels(size // 2), subscription(1, levels(size // 4), T)
    return lambda: outline([], [beside], [deep])


def _drawn(draw: Callable[..., object]) -> Callable[[int], Prepared]:
    """A subscription at each level: what is written is itself as long as the square of the levels."""

    def prepare(size: int) -> Prepared:
        root = outline([], [subscription(n, levels(n), T) for n in range(1, size // 8)], [])
        return lambda: draw(root, "QM1")

    return prepare


def _profile(size: int) -> Prepared:
    profile, name = parse_profile("*a" * (size // 2) + "b.**"), "a" * size
    assert profile is not None
    return lambda: profile.fits(name)


CASES: tuple[Case, ...] = (
    Case("char: many *", _char(lambda n: "*a" * (n // 2), lambda n: "a" * n)),
    Case("char: one long run", _char(lambda n: "*" + "a" * (n // 2) + "b*", lambda n: "a" * n)),
    Case("char: many ?", _char(lambda n: "*" + "a?" * (n // 4) + "b*", lambda n: "a" * n), growth=2),
    Case("char: many * and ?", _char(lambda n: "*ab?" * (n // 4), lambda n: "aba" * (n // 3))),
    Case(
        "char index: runs that begin alike",
        _index(lambda n: [f"*{'a' * i}b*c" for i in range(1, 200)], C, lambda n: "a" * n),
    ),
    Case(
        "char index: patterns and topic",
        _index(lambda n: [f"*{'a' * i}b*c" for i in range(300, 300 + n // 20)], C, lambda n: "a" * n),
        growth=2,
    ),
    Case("char index: add and remove", _change(lambda n: "*abc?" * (n // 5), C)),
    Case("topic: many #", _topic(lambda n: levels(n // 4, "#/a"), lambda n: levels(n // 2)), growth=2),
    Case("topic: a long stretch", _topic(lambda n: f"#/{levels(n // 4)}/b", lambda n: levels(n // 2)), growth=2),
    Case("topic: many +", _topic(lambda n: levels(n // 2, "+") + "/b", lambda n: levels(n // 2))),
    Case("topic tree: many #", _index(lambda n: [levels(n // 4, "#/a")], T, lambda n: levels(n // 2)), growth=2),
    Case(
        "topic tree: patterns with #",
        _index(lambda n: [f"#/{levels(30 + i)}/b" for i in range(20)], T, lambda n: levels(n // 2)),
    ),
    Case("topic tree: add and remove", _change(lambda n: levels(n // 4, "#/a"), T)),
    Case("retained: many #", _retained(lambda n: levels(n // 4, "#/a"), T), growth=2),
    Case("retained: many ?", _retained(lambda n: "*" + "a?" * (n // 4) + "b*", C), growth=2),
    Case("LIKE: many %", _like(lambda n: "a%" * 2000, lambda n: "a" * n), size=100_000),
    Case("LIKE: one long run", _like(lambda n: f"%{'a' * 5000}b%", lambda n: "a" * n), size=100_000),
    Case("LIKE: many _", _like(lambda n: f"%{'a_' * 2500}b%", lambda n: "a" * n), size=50_000),
    Case("LIKE: pattern and value", _like(lambda n: f"%{'a' * (n // 2)}b%", lambda n: "a" * n)),
    Case("WILDCARD(BLOCK) above a deep topic", _blocks),
    Case("topic objects above a deep topic", _objects),
    Case("outline of a deep topic", _outline),
    Case("text of a deep tree", _drawn(lambda root, title: list(text_tree(root, title))), growth=2),
    Case("SVG of a deep tree", _drawn(svg)),
    Case("page of a deep tree", _drawn(page)),
    Case("authority: a profile of many *", _profile),
)


def grown(case: Case) -> tuple[float, float]:
    """Processor time at the size of *case*, and at ``FACTOR`` times that."""
    small, large = (seconds(case.prepare(size)) for size in (case.size, FACTOR * case.size))
    return small, large


def seconds(work: Prepared, at_least: float = 0.02) -> float:
    """Processor time of one run of *work*: the least of several series, each long enough for the clock.

    Without the garbage collector, whose rounds over everything that is alive come once in so many new objects.
    """
    runs, best = 1, float("inf")
    gc.disable()
    try:
        for _ in range(3):
            while (spent := _timed(work, runs)) < at_least:
                runs *= 4
            best = min(best, spent / runs)
    finally:
        gc.enable()
    return best


def _timed(work: Prepared, runs: int) -> float:
    start = time.process_time()
    for _ in range(runs):
        work()
    return time.process_time() - start


def main() -> int:
    """Print the table; 1 where something grows faster than is promised."""
    steep = 0
    for case in CASES:
        small, large = min((grown(case) for _ in range(2)), key=lambda times: times[1] / times[0])
        is_steep = large > FACTOR ** (case.growth + _LENIENCE) * small
        steep += is_steep
        print(
            f"{case.name:<40}{FACTOR * case.size:>9,}{1e3 * large:>10.3f} ms   x {large / small:.1f}"
            f"{'  TOO FAST' if is_steep else ''}"
        )
    return int(steep > 0)


if __name__ == "__main__":
    raise SystemExit(main())
