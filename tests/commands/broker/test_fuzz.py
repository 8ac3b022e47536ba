"""Mutated messages through the decoder and the parser: a message, or an error with an offset inside, nothing else.

``fixtures/fuzz`` holds the seeds. A failure prints its mutant as a line for ``fixtures/fuzz/found.jsonl``.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from itertools import repeat
from operator import add

import pytest

from rfh2 import DecodeError, decode
from tests.commands.fuzz_seeds import FOUND, SEEDS, line, seeds
from tests.commands.fuzzing import Tally, corpus, hunt, try_one

BATCH = 10_000
BATCHES = int(os.environ.get("QPUBSUB_MUTANT_BATCHES", "8"))
"""102 make a million mutants; CI tries fewer."""


def test_the_seeds_are_those_that_are_made() -> None:
    kept = [json.loads(each) for each in SEEDS.read_text().splitlines()]
    assert kept == [line(number, seed) for number, seed in enumerate(seeds(), 1)]


def test_the_seeds_hold_every_header() -> None:
    kinds = {header.kind for seed in corpus(SEEDS) for header in decode(seed.body, seed.mqmd).headers}
    stepped = {"MQCIH", "MQDH", "MQIIH", "MQRMH", "MQWIH"}
    assert kinds == {"MQRFH", "MQRFH2", "MQDLH", "MQXQH", "MQMDE", "MQEPH"} | stepped


def test_seeds_and_what_was_found_before() -> None:
    tally = Tally()
    for mutant in corpus(SEEDS, FOUND):
        try_one(mutant, tally)
    assert not tally.failures
    assert tally.commands > 50


def test_a_rule_that_is_broken_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.commands.fuzzing.encode", lambda message: message.body)
    assert hunt(corpus(SEEDS), 0, 20).failures


def test_a_wrong_offset_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(body: bytes, mqmd: object) -> None:
        raise DecodeError(len(body) + 1, "MQRFH2", "as if")

    monkeypatch.setattr("tests.commands.fuzzing.decode", refuse)
    assert len(hunt(corpus(SEEDS), 0, 20).failures) == 20


def test_some_mutants() -> None:
    _judge(hunt(corpus(SEEDS, FOUND), BATCHES, 2_000))


@pytest.mark.nightly
def test_many_mutants() -> None:
    found = corpus(SEEDS, FOUND)
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        tallies = pool.map(hunt, repeat(found), range(BATCHES), repeat(BATCH), chunksize=1)
        tally = reduce(add, tallies, Tally())
    print(f"\n{tally}")
    assert tally.mutants >= 9_000 * BATCHES
    _judge(tally)


def _judge(tally: Tally) -> None:
    assert not tally.failures, "\n".join(tally.failures[:10])
    # Were next to none, or next to all, refused, there would be little that the mutants reach.
    assert 0.2 < tally.decoded / tally.mutants < 0.9
    assert tally.commands / tally.mutants > 0.05
    assert tally.refused_commands / tally.mutants > 0.05
