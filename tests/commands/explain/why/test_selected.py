"""``why`` about some messages: the answers about these, as they are where all are explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from commands.explain.selection import MessageSelection, SeqRanges, compile_where
from commands.explain.why import Asked, Reason, Verdict
from commands.replay.network.why import LocalWhy
from rfh2.captured import CapturedMessage
from tests.commands.cli_runs import run
from tests.commands.explain.why.test_property import World, worlds
from tests.commands.silent_subscribers import FIXTURES, cases

SILENT = next(cases())
CAPTURE, SETUP = FIXTURES / "silent.jsonl", FIXTURES / "silent.mqsc"
WHOLE = SILENT.answers()
WHY = ("why", "--input", str(CAPTURE), "--setup", str(SETUP))


def _about(verdicts: list[Verdict], seqs: set[int]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.seq in seqs]


def _of_publications(verdicts: list[Verdict]) -> list[Verdict]:
    """Without those about a RegSub that was refused: they are there if no publication asked for was for it."""
    return [v for v in verdicts if v.seq is not None and f"RegSub {v.seq} was refused" not in v.detail]


@settings(max_examples=25)
@given(worlds(), st.sets(st.integers(1, 20), min_size=1))
def test_the_same_answers_about_these_messages(world: World, seqs: set[int]) -> None:
    selection = MessageSelection(seqs=SeqRanges(tuple((seq, seq) for seq in sorted(seqs))))
    found = list(LocalWhy(world.setup, world.semantics, selection=selection).answers(world.messages))
    whole = _about(world.answers(), seqs)
    assert _of_publications(found) == _of_publications(whole)
    assert {v.seq for v in found} <= seqs | {None}
    # A question without an answer has one line that says so, and no other one.
    assert all(v.seq is not None for v in found) or (len(found) == 1 and not whole)


SELECTIONS = [
    pytest.param(("--where", "command = 'Publish' and topic like 'Sport/%'"), id="where"),
    pytest.param(("--seq", "30-38,41"), id="seq"),
    pytest.param(("--since", "2026-01-05T09:00:30"), id="since"),
    pytest.param(("--where", "queue = 'SYSTEM.BROKER.DEFAULT.STREAM'", "--limit", "7"), id="limit"),
]


@pytest.mark.parametrize("options", SELECTIONS)
def test_on_the_command_line(options: tuple[str, ...]) -> None:
    converted = run("convert", str(CAPTURE), *options, "--to", "jsonl")
    seqs = {CapturedMessage.model_validate_json(line).seq for line in converted.lines}
    wanted = [{"format": 1, **verdict.form()} for verdict in _of_publications(_about(WHOLE, seqs))]
    ran = run(*WHY, *options, "--json")
    found = [json.loads(line) for line in ran.lines]
    assert wanted
    assert [each for each in found if f"RegSub {each['seq']} was refused" not in each["detail"]] == wanted
    assert ran.code == 0


DEAD = [verdict for verdict in WHOLE if verdict.reason in (Reason.QUEUE_FULL, Reason.QUEUE_GONE) and verdict.seq]


@pytest.mark.parametrize("verdict", DEAD, ids=lambda verdict: verdict.queue)
def test_a_dead_letter_corrects_the_answer_though_nobody_asked_for_it(verdict: Verdict) -> None:
    messages = SILENT.messages
    one = LocalWhy(SILENT.setup, asked=Asked(queue=verdict.queue, seq=verdict.seq))
    assert list(one.answers(messages)) == [verdict]
    until = MessageSelection(seqs=SeqRanges.parse(f"{verdict.seq}-"), limit=1)
    assert verdict in list(LocalWhy(SILENT.setup, selection=until).answers(messages))


NOTHING = [
    (("CASE", "--where", "command = 'RegSub'"), "nothing was published by the messages that are selected"),
    (("CASE", "--seq", "39-"), "no subscription for queue CASE selects a topic on which something was published by"),
    (("CASS", "--seq", "39-"), "no subscription was registered in the capture for queue CASS; similar queues: CASE"),
]


@pytest.mark.parametrize(("words", "said"), NOTHING, ids=lambda value: " ".join(value[1:]))
def test_a_question_without_an_answer(words: tuple[str, ...], said: str) -> None:
    ran = run(*WHY, *words, "--json")
    assert len(ran.lines) == 1
    assert said in ran.out


def test_it_is_about_captures_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QPUBSUB_HOME", str(tmp_path))
    ran = run("why", "-m", "QM1", "--where", "size > 3")
    assert (ran.code, "need --input FILE" in ran.talk) == (2, True)


def test_a_condition() -> None:
    selection = MessageSelection(compile_where("topic = 'nowhere'"))
    (only,) = LocalWhy(SILENT.setup, selection=selection).answers(SILENT.messages)
    assert (only.reason, only.seq, only.delivered) == (Reason.NO_MATCH, None, False)
