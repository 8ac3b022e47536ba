"""No silent steps back: calls of functions for one message more, which neither a clock nor another program changes.

A figure may grow by a tenth, because Pythons differ. Where a change is worth more than that, or saves calls, write the
new figure here: ``pytest tests/test_calls.py -s`` prints all of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from commands.cli import main
from commands.qmgr.processor import Processor
from tests.benchmarks.replay import messages_of
from tests.benchmarks.test_processor import NOW, TOPICS, Durability, Traffic, _loaded

MORE: Final = 100
PUT, CAPTURED = TOPICS + 20, 220
"""Messages before those that count: the first one on a topic fills caches."""

PROCESSOR: Final = {
    (Traffic.JMS, 1): 157,
    (Traffic.JMS, 10): 354,
    (Traffic.NUMBERED, 1): 183,
    (Traffic.ANSWERED, 1): 203,
    (Traffic.AUTHORITY, 1): 200,
    (Traffic.RETAINED, 1): 227,
    (Traffic.ALIKE, 1): 170,
}
VERBS: Final = {
    ("decode", "--jobs", "1"): 1432,
    ("decode", "--json", "--jobs", "1"): 533,
    ("replay", "--jobs", "1"): 186,
    ("why", "--json"): 443,
    ("differences",): 84,
}


@contextmanager
def _counted() -> Iterator[list[int]]:
    """How many calls of functions there were, those in C included."""
    found, numbers = [0], count(1)

    def note(_frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            found[0] = next(numbers)

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def _holds(said: int, few: int, many: int) -> None:
    each = round((many - few) / MORE)
    print(f"{each} calls a message, {said} said")
    assert each <= said * 1.1


@pytest.mark.parametrize(("traffic", "subscribers"), PROCESSOR, ids=str)
def test_processor(tmp_path: Path, traffic: Traffic, subscribers: int) -> None:
    def calls(messages: int) -> int:
        home = tmp_path / f"{messages}"
        with _loaded(home, messages, subscribers, Durability.NORMAL, traffic) as store:
            processor = Processor(store, lambda: NOW)
            with _counted() as found:
                processor.drain()
        return found[0]

    _holds(PROCESSOR[traffic, subscribers], calls(PUT), calls(PUT + MORE))


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_verb(tmp_path: Path, words: tuple[str, ...], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def run(capture: Path) -> None:
        with pytest.raises(SystemExit):
            main([*words, *(() if words[0] == "decode" else ("-q", "--input")), str(capture)])
        capfdbinary.readouterr()

    def calls(messages: int) -> int:
        capture = tmp_path / "capture.jsonl"
        capture.write_text("".join(json.dumps(line) + "\n" for line in messages_of("JMS", messages)))
        with _counted() as found:
            run(capture)
        return found[0]

    calls(1)  # what is imported when it is first used is not counted
    _holds(VERBS[words], calls(CAPTURED), calls(CAPTURED + MORE))
