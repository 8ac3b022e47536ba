"""No reader takes more time than in proportion to what it reads (``growth`` has the inputs and how it is measured)."""

from __future__ import annotations

import os

import pytest

from tests.reliability.growth import BOUND, CASES, FAST_LARGEST, FLOOR_S, Case, growth

# One case of each kind of reader, and the shapes that once took the square of their length or worse.
FAST = (
    "folder: attributes",
    "folder: prefixed attributes",
    "folder: namespaces",
    "folder: digits that are no number",
    "folder: a tag without an end",
    "folder: quotes in tags",
    "handle: folder, a tag without an end",
    "decode --json: folder, digits that are no number",
    "parse: Publish, topics and options",
    "parse: MQRFH, many topics",
    "parse: PCF, many topics",
    "decode --json: MQRFH, quoted names in UTF-8",
    "handle: DeregSub, topics and a filter that is none",
    "handle: Publish to many topics, a filter",
    "handle: Publish to many topics, version 6",
    "handle: RegSub and DeregSub of many topics",
    "translate --to mqi: Publish, many topics",
    "encode: edited parameters",
    "capture: hex",
    "capture: mqmd",
    "capture: qload, blanks in a queue name",
    "capture: qload, blanks in a data line",
    "capture: amqsbcg, fields in a field",
    "capture: pasted, lines of hex",
    "capture: pasted, literals that do not end",
    "capture: pasted, first lines of dumps",
    "decode --json: faulty, folders without lengths",
    "decode --json: unknown data, base64 and blanks",
    "decode --json: unknown data, line ends",
    "capture: pcap, puts",
    "capture: pcap, calls begun and losses",
    "mqsc: commands",
)


# Eight times what a time must have to be compared: a slow reader need not be tried with all sizes.
SOON_S = 8 * FLOOR_S


def check(case: Case, largest: int) -> None:
    found = growth(case, largest, SOON_S)
    table = "\n".join(f"{size:9} bytes {seconds * 1e3:9.1f} ms" for size, seconds in found.times)
    assert found.ratio <= BOUND, f"{case.name}: {found.ratio:.1f} times the time for four times the size\n{table}"


@pytest.mark.measured
@pytest.mark.parametrize("name", FAST)
def test_time_grows_in_proportion(name: str) -> None:
    check(CASES[name], FAST_LARGEST)


# A twelfth of the cases, another one for each state of the sources; the command tries all.
TWELFTH = [name for n, name in enumerate(CASES) if n % 12 == int(os.environ.get("QPUBSUB_TEST_SEED", "0")) % 12]


@pytest.mark.nightly
@pytest.mark.measured
@pytest.mark.parametrize("name", TWELFTH)
def test_time_grows_in_proportion_up_to_64_kib(name: str) -> None:
    check(CASES[name], 64 * 1024)


def squared(size: int) -> None:
    for _ in range(size // 128):
        sum(range(size // 8))


def proportional(size: int) -> None:
    sum(range(size * 64))


@pytest.mark.measured
@pytest.mark.parametrize(("read", "is_steep"), [(squared, True), (proportional, False)])
def test_the_measure_tells_the_square_from_proportion(read, is_steep: bool) -> None:  # type: ignore[no-untyped-def]
    # A busy machine hides a rise once in a while.
    steepest = max(growth(Case("known", read, lambda size: size), 64 * 1024, SOON_S).ratio for _ in range(3))
    assert (steepest > BOUND) is is_steep
