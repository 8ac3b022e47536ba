"""What asking a selection string costs: compiled, as a walk of its tree, and written by hand in Python.

The floor is a Python lambda that a person would write for the same condition, in the same run; what is printed as
``x floor`` is what compiling leaves to be gained. Shown with ``--benchmark-enable -s``.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from rfh2.folders import Folder
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from streams.selectors import Lookup, Value, compile_selector, message_properties
from streams.selectors.compile import compile_condition
from streams.selectors.parse import parse

PROPERTIES: dict[str, Value] = {
    "usr.Colour": "red",
    "usr.Size": 42,
    "usr.Region": "EMEA/DE",
    "usr.Price": 99.5,
    "usr.Amount": 12,
    "Root.MQMD.Priority": 5,
}


def _number(value: Value | None) -> bool:
    return type(value) is int or type(value) is float


# (id, selection string, the same written by hand)
CASES: list[tuple[str, str, Callable[[Lookup], bool]]] = [
    ("equality", "Colour = 'red'", lambda get: get("usr.Colour") == "red"),
    (
        "conjunction",
        "Colour = 'red' AND Size > 40 AND Root.MQMD.Priority >= 5",
        lambda get: (
            get("usr.Colour") == "red"
            and _number(size := get("usr.Size"))
            and size > 40  # type: ignore[operator]
            and get("Root.MQMD.Priority") >= 5  # type: ignore[operator]
        ),
    ),
    (
        "typical",
        "(Colour IN ('blue', 'red') OR Region LIKE 'US/%') AND Size BETWEEN 40 AND 50 AND Shape IS NULL",
        lambda get: (
            (get("usr.Colour") in {"blue", "red"} or str(get("usr.Region")).startswith("US/"))
            and _number(size := get("usr.Size"))
            and 40 <= size <= 50  # type: ignore[operator]
            and get("usr.Shape") is None
        ),
    ),
    (
        "arithmetic",
        "Price * Amount > 1000 AND NOT Colour = 'blue'",
        lambda get: (
            _number(price := get("usr.Price"))
            and _number(amount := get("usr.Amount"))
            and price * amount > 1000  # type: ignore[operator]
            and get("usr.Colour") != "blue"
        ),
    ),
]


@pytest.fixture
def report() -> Iterator[Callable[[str], None]]:
    lines: list[str] = []
    yield lines.append
    print("\n" + "\n".join(lines))


def _nanoseconds(call: Callable[[], object], rounds: int = 5, number: int = 20_000) -> float:
    return min(timeit.repeat(call, repeat=rounds, number=number)) / number * 1e9


@pytest.mark.parametrize(("text", "by_hand"), [pytest.param(t, f, id=i) for i, t, f in CASES])
def test_asking(
    benchmark: BenchmarkFixture, report: Callable[[str], None], text: str, by_hand: Callable[[Lookup], bool]
) -> None:
    get = PROPERTIES.get
    selector = compile_selector(text)
    assert selector.matches(get) is by_hand(get) is True
    assert benchmark(selector.matches, get) is True
    if benchmark.enabled:
        floor = _nanoseconds(lambda: by_hand(get))
        compiled = _nanoseconds(lambda: selector.matches(get))
        report(f"{text}\n    by hand {floor:.0f} ns, compiled {compiled:.0f} ns ({compiled / floor:.1f} x floor)")


@pytest.mark.parametrize("depth", [1, 6, 12, 50, 100])
def test_nested_parentheses(benchmark: BenchmarkFixture, report: Callable[[str], None], depth: int) -> None:
    """The guide warns of a cost that grows exponentially beyond a depth of about 6 (6.7.4)."""
    text = "(Size = 1 OR Colour = 'red' AND " * depth + "Size = 42" + ")" * depth
    condition, _ = parse(text)
    test = compile_condition(condition)
    assert benchmark(test, PROPERTIES.get) is True
    if benchmark.enabled:
        compiling = _nanoseconds(lambda: parse(text), rounds=3, number=10) / 1000
        asking = _nanoseconds(lambda: test(PROPERTIES.get), number=2_000)
        report(
            f"depth {depth}: parsed in {compiling:.0f} us ({compiling / depth:.0f} a level), "
            f"asked in {asking:.0f} ns ({asking / depth:.0f} a level)"
        )


def test_asking_a_message(benchmark: BenchmarkFixture, report: Callable[[str], None]) -> None:
    folder = Folder.of("<usr><Colour>red</Colour><Size dt='i4'>42</Size><Region>EMEA/DE</Region></usr>")
    message = Message(Mqmd(priority=5), (Rfh2((Folder.of("<psc><Command>Publish</Command></psc>"), folder)),))
    selector = compile_selector(CASES[2][1])
    assert benchmark(lambda: selector.matches(message_properties(message))) is True
    if benchmark.enabled:
        floor = _nanoseconds(folder.values, number=2_000)
        first = _nanoseconds(lambda: selector.matches(message_properties(message)), number=2_000)
        properties = message_properties(message)
        again = _nanoseconds(lambda: selector.matches(properties), number=2_000)
        report(
            f"reading the folder {floor:.0f} ns, first selector {first:.0f} ns ({first / floor:.1f} x floor), "
            f"each further one {again:.0f} ns"
        )
