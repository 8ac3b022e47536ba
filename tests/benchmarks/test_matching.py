"""What matching costs, beside paho-mqtt's MQTTMatcher, Python's ``re`` and google-re2's sets, measured in the same run.

Shown with ``--benchmark-enable -s``; without, each comparison runs once over fewer subscriptions and only its
correctness counts. "fresh" topics are published on for the first time, "repeated" ones come from the cache.

The 100,000 subscriptions are 70% exact, 20% with ``+`` and 10% that end with ``#``, three to six levels of 300 words
(``sparse``: about one match a topic) or of 40 words in few positions (``dense``: about ten).
"""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from string import ascii_lowercase

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from rfh2.message import Message
from rfh2.mqmd import Mqmd
from streams.index import SubscriptionIndex
from streams.operations import Publication, RetainedPublication
from streams.patterns import Pattern, parse_pattern
from streams.retained import RetainedPublications
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_objects import TopicObjects
from streams.topic_space import TopicSpace
from streams.topic_strings import BlockSet

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Workload:
    """words: the vocabulary of a level. levels: least and most."""

    words: int
    levels: tuple[int, int]

    def make(self, subscriptions: int, topics: int) -> tuple[list[Subscription], list[str]]:
        """So many subscriptions of distinct topic strings, and so many distinct topics."""
        random = Random(7)
        words = _words(random, self.words)
        patterns: dict[str, None] = {}
        while len(patterns) < subscriptions:
            levels = random.choices(words, k=random.randint(*self.levels))
            kind = random.random()
            if kind > 0.9:
                levels = [*levels[: random.randint(1, len(levels) - 1)], "#"]
            elif kind > 0.7:
                levels[random.randrange(len(levels))] = "+"
            patterns["/".join(levels)] = None
        published: dict[str, None] = {}
        while len(published) < topics:
            published["/".join(random.choices(words, k=random.randint(*self.levels)))] = None
        return [_subscription(n, p, WildcardScheme.TOPIC) for n, p in enumerate(patterns)], list(published)


SPARSE, DENSE = Workload(300, (3, 6)), Workload(40, (4, 5))
WORKLOADS = [pytest.param(SPARSE, id="sparse"), pytest.param(DENSE, id="dense")]


def _words(random: Random, count: int) -> list[str]:
    return ["".join(random.choices(ascii_lowercase, k=random.randint(3, 8))) for _ in range(count)]


def _subscription(number: int, topic_string: str, wildcard: WildcardScheme) -> Subscription:
    return Subscription(number.to_bytes(24, "big"), topic_string, "Q", "QM1", NOW, wildcard=wildcard)


def _each_us(do: Callable[[str], object], topics: Sequence[str]) -> float:
    """Microseconds of processor time a topic, going through all of them once."""
    start = time.process_time()
    for topic in topics:
        do(topic)
    return (time.process_time() - start) / len(topics) * 1e6


def _in_turns_us(topics: Sequence[str], *ways: Callable[[str], object]) -> list[float]:
    """The same for several ways of doing it, in turns of a few thousand topics: what else the machine does hits all."""
    turns = [topics[start : start + 5000] for start in range(0, len(topics), 5000)]
    spent = [0.0] * len(ways)
    for turn in turns:
        for number, way in enumerate(ways):
            spent[number] += _each_us(way, turn) * len(turn)
    return [each / len(topics) for each in spent]


def _once(benchmark: BenchmarkFixture, measure: Callable[[], list[float]]) -> list[float]:
    figures: list[float] = benchmark.pedantic(measure, rounds=1)  # type: ignore[no-untyped-call]
    return figures


def _size(benchmark: BenchmarkFixture, full: int) -> int:
    return full if benchmark.enabled else full // 100


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.nightly
def test_topic_patterns_beside_mqtt_matcher(benchmark: BenchmarkFixture, workload: Workload) -> None:
    """Wanted: fresh 1.2 times the floor, repeated 10 times, at equal hits."""
    matcher = pytest.importorskip("paho.mqtt.matcher").MQTTMatcher()
    subscriptions, topics = workload.make(_size(benchmark, 100_000), _size(benchmark, 100_000))
    index = SubscriptionIndex()
    for each in subscriptions:
        index.add(each)
        matcher[each.topic_string] = each
    hits = 0
    for topic in topics[:2000]:
        found = index.match_uncached(topic)
        assert {s.sub_id for s in found} == {s.sub_id for s in matcher.iter_match(topic)}
        hits += len(found)
    floor, fresh, repeated = _once(
        benchmark, lambda: _in_turns_us(topics, lambda topic: list(matcher.iter_match(topic)), index.match, index.match)
    )
    print(
        f"\n{len(subscriptions)} subscriptions, {hits / min(2000, len(topics)):.1f} hits a topic: "
        f"MQTTMatcher {floor:.2f} us, fresh {fresh:.2f} us ({floor / fresh:.1f} x floor), "
        f"repeated {repeated:.2f} us ({floor / repeated:.0f} x floor)"
    )


@pytest.mark.nightly
def test_the_topic_space_as_a_whole(benchmark: BenchmarkFixture) -> None:
    """The same, seen from outside: TopicSpace.match, and with WILDCARD(BLOCK) on a tenth of the first levels."""
    matcher = pytest.importorskip("paho.mqtt.matcher").MQTTMatcher()
    subscriptions, topics = DENSE.make(_size(benchmark, 100_000), _size(benchmark, 100_000))
    space, blocked = TopicSpace(TopicObjects()), SubscriptionIndex()
    space.restore(subscriptions, ())
    blocks = BlockSet(frozenset(sorted({topic.split("/")[0] for topic in topics})[::10]))
    for each in subscriptions:
        blocked.add(each, blocks)
        matcher[each.topic_string] = each
    floor, fresh, repeated, under_blocks = _once(
        benchmark,
        lambda: _in_turns_us(
            topics,
            lambda topic: list(matcher.iter_match(topic)),
            lambda topic: space.match(topic, NOW),
            lambda topic: space.match(topic, NOW),
            blocked.match,
        ),
    )
    print(
        f"\nMQTTMatcher {floor:.2f} us, TopicSpace.match fresh {fresh:.2f} us ({floor / fresh:.1f} x floor), "
        f"repeated {repeated:.2f} us ({floor / repeated:.0f} x floor), "
        f"fresh with blocks {under_blocks:.2f} us ({floor / under_blocks:.1f} x floor)"
    )


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.nightly
def test_memory_a_subscription(benchmark: BenchmarkFixture, workload: Workload) -> None:
    """Wanted: at most 600 bytes of index a subscription; the subscriptions themselves are there before."""
    matcher_type = pytest.importorskip("paho.mqtt.matcher").MQTTMatcher
    subscriptions, _ = workload.make(_size(benchmark, 100_000), 10)

    def measured(add: Callable[[Subscription], None]) -> float:
        tracemalloc.start()
        for each in subscriptions:
            add(each)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return held / len(subscriptions)

    index, matcher = SubscriptionIndex(), matcher_type()
    (ours,) = _once(benchmark, lambda: [measured(index.add)])
    floor = measured(lambda each: matcher.__setitem__(each.topic_string, each))
    print(f"\n{ours:.0f} bytes of index a subscription, MQTTMatcher {floor:.0f}")


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.nightly
def test_one_change_among_many(benchmark: BenchmarkFixture, workload: Workload) -> None:
    """Wanted: one subscription removed or added costs no more than a few matches, and keeps other topics' answers."""
    subscriptions, topics = workload.make(_size(benchmark, 100_000), 2000)
    index = SubscriptionIndex()
    for each in subscriptions:
        index.add(each)
    match = _each_us(index.match_uncached, topics)
    changed = [s for s in subscriptions if s.topic_string.endswith("#") or "+" in s.topic_string][:1000]
    exact = [s for s in subscriptions if not (s.topic_string.endswith("#") or "+" in s.topic_string)][:1000]

    def change(each: Subscription) -> None:
        index.remove(each)
        index.add(each)

    def change_us(subscriptions: list[Subscription]) -> float:
        start = time.process_time()
        for each in subscriptions:
            change(each)
        return (time.process_time() - start) / len(subscriptions) / 2 * 1e6

    (wild_us,) = _once(benchmark, lambda: [change_us(changed)])
    exact_us = change_us(exact)
    _each_us(index.match, topics)
    change(changed[0])
    after_one = _each_us(index.match, topics)
    print(
        f"\na fresh match {match:.2f} us; a wildcard one added or removed {wild_us:.2f} us ({wild_us / match:.1f} "
        f"matches), an exact one {exact_us:.2f} us; repeated topics after a change elsewhere {after_one:.2f} us a topic"
    )


RETAINED_PATTERNS = [
    pytest.param("A/B/#", WildcardScheme.TOPIC, id="subtree"),
    pytest.param("A/+/C", WildcardScheme.TOPIC, id="one-level"),
    pytest.param("A/B/*", WildcardScheme.CHAR, id="characters"),
]


@pytest.mark.parametrize(("shape", "scheme"), RETAINED_PATTERNS)
@pytest.mark.nightly
def test_retained_publications_under_a_wildcard(
    benchmark: BenchmarkFixture, shape: str, scheme: WildcardScheme
) -> None:
    """Wanted: a new subscriber costs what it is sent, not what is retained; the floor tries each retained topic."""
    _, topics = SPARSE.make(0, _size(benchmark, 100_000))
    held = RetainedPublications()
    publication = Publication(Message(Mqmd(), (), b""), NOW)
    for topic in topics:
        held.store(RetainedPublication(topic, publication))
    patterns = []
    for topic in topics[:: len(topics) // 100]:
        levels = topic.split("/")
        letters = {"A": levels[0], "B": levels[1], "C": levels[2]}
        patterns.append(parse_pattern("".join(letters.get(c, c) for c in shape), scheme))

    def each_us(find: Callable[[Pattern], list[str]], patterns: list[Pattern]) -> float:
        start = time.process_time()
        for pattern in patterns:
            find(pattern)
        return (time.process_time() - start) / len(patterns) * 1e6

    def one_by_one(pattern: Pattern) -> list[str]:
        return sorted(topic for topic in topics if pattern.matches(topic))

    def found(pattern: Pattern) -> list[str]:
        return [retained.topic_string for retained in held.match(pattern, NOW)]

    for pattern in patterns[:5]:
        assert found(pattern) == one_by_one(pattern)
    floor = each_us(one_by_one, patterns[:5])
    (ours,) = _once(benchmark, lambda: [each_us(found, patterns)])
    hits = sum(len(found(pattern)) for pattern in patterns) / len(patterns)
    print(
        f"\n{len(topics)} retained, {hits:.1f} found: one by one {floor:.0f} us, "
        f"in the tree {ours:.1f} us ({floor / ours:.0f} x floor)"
    )


@dataclass(frozen=True)
class CharWorkload:
    """words: the vocabulary. shapes: patterns in which A and B stand for words, N for a number."""

    words: int
    shapes: tuple[str, ...]

    def make(self, patterns: int, topics: int) -> tuple[list[str], list[str]]:
        random = Random(5)
        words = _words(random, self.words)
        made: dict[str, None] = {}
        while len(made) < patterns:
            shape = random.choice(self.shapes)
            letters = {"A": random.choice(words), "B": random.choice(words), "N": str(random.randrange(10_000))}
            made["".join(letters.get(character, character) for character in shape)] = None
        published = [
            "/".join([*random.choices(words, k=random.randint(2, 5)), str(random.randrange(10_000))])
            for _ in range(topics)
        ]
        return list(made), published


CHAR_WORKLOADS = [
    pytest.param(CharWorkload(2000, ("A/B*", "A/*/B", "A/B/*", "A/*B")), id="literal-first"),
    pytest.param(CharWorkload(2000, ("*A/B", "*A*B*", "*/A/B/*", "*A*N", "*B/N")), id="star-first"),
    pytest.param(CharWorkload(2000, ("A/B*", "*A/B", "A/*/B", "*A*B*", "A?B*", "*/A/B/*")), id="mixed"),
    pytest.param(CharWorkload(150, ("A/B*", "*A/B", "A/*/N", "*A*B*", "A?B*", "*/A/B/*")), id="mixed-few-words"),
]


@pytest.mark.parametrize("workload", CHAR_WORKLOADS)
@pytest.mark.nightly
def test_char_patterns_beside_re(benchmark: BenchmarkFixture, workload: CharWorkload) -> None:
    """Wanted: 100 times as fast as trying each pattern with ``re``. A set of google-re2 is shown beside, where it is
    installed: warm (the same topics again) it is fast, but a topic that it has not seen makes it build states.
    """
    patterns, topics = workload.make(_size(benchmark, 10_000), _size(benchmark, 5000))
    index = SubscriptionIndex()
    for number, pattern in enumerate(patterns):
        index.add(_subscription(number, pattern, WildcardScheme.CHAR))
    expressions = [
        "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern) for pattern in patterns
    ]
    compiled = [re.compile(expression, re.DOTALL).fullmatch for expression in expressions]

    def one_by_one(topic: str) -> list[int]:
        return [number for number, matches in enumerate(compiled) if matches(topic)]

    few = topics[:40]
    for topic in few:
        assert [int.from_bytes(s.sub_id, "big") for s in index.match_uncached(topic)] == one_by_one(topic)
    floor = min(_each_us(one_by_one, few) for _ in range(3))
    fresh, repeated = _once(benchmark, lambda: [_each_us(index.match, topics), _each_us(index.match, topics)])
    hits = sum(len(index.match(topic)) for topic in topics) / len(topics)
    print(
        f"\n{len(patterns)} patterns, {hits:.2f} hits a topic: one by one {floor:.0f} us, "
        f"fresh {fresh:.1f} us ({floor / fresh:.0f} x floor), "
        f"repeated {repeated:.2f} us ({floor / repeated:.0f} x floor){_re2(expressions, topics[:200], floor)}"
    )


def _re2(expressions: list[str], topics: list[str], floor: float) -> str:
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError:
        return ""
    options = re2.Options()
    options.max_mem = 1 << 30
    options.dot_nl = True
    options.log_errors = False
    start = time.perf_counter()
    expression_set = re2.Set.FullMatchSet(options)
    for expression in expressions:
        expression_set.Add(expression)
    expression_set.Compile()
    built_ms = (time.perf_counter() - start) * 1e3
    fresh, warm = _each_us(expression_set.Match, topics), _each_us(expression_set.Match, topics)
    return (
        f"; google-re2 built in {built_ms:.0f} ms, fresh {fresh:.0f} us ({floor / fresh:.1f} x floor), "
        f"warm {warm:.1f} us ({floor / warm:.0f} x floor)"
    )
