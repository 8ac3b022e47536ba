"""Stepping through a replay: any message, in any order, gives what a plain replay gives there."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, strategies as st

from commands.explain.build import CommandSpec, command_message
from commands.explain.selection import compile_where
from commands.replay import LocalReplay
from commands.replay.step.state import SnapshotError, StepState, snapshot_of
from commands.replay.step.timeline import Block, BlockHead, StepFacts, Stepper, Timeline, blocks_of, stops_at
from commands.replay.step.views import change_lines, state_form, state_lines, step_form, step_lines
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.mqmd import Mqmd
from tests.commands.replay.spark.worlds import CONTROL, EXPIRING, captures
from tests.examples import FEW

FIXTURES: Final = Path(__file__).parents[4] / "fixtures"
RESULTS: Final = [r.message for r in read_captures(FIXTURES / "results-service" / "capture.jsonl") if r.message]
VERSIONS: Final = st.sampled_from(["v7", "v6"])


class InMemory:
    """Blocks in a list."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        self.read = 0

    def heads(self) -> list[BlockHead]:
        return [block.head for block in self.blocks]

    def block(self, number: int) -> Block:
        self.read += 1
        return self.blocks[number]

    def facts(self, number: int) -> list[StepFacts]:
        return self.blocks[number].facts()


def stepped(messages: Sequence[CapturedMessage], setup: str = "", semantics: str = "v7", shortest: int = 4) -> Timeline:
    blocks = list(blocks_of(messages, setup, semantics, shortest=shortest))
    assert [block.head.first for block in blocks] == [
        sum(each.head.count for each in blocks[:number]) for number in range(len(blocks))
    ]
    return Timeline(InMemory(blocks), setup, semantics)


def plainly(messages: Sequence[CapturedMessage], setup: str, semantics: str) -> list[dict[str, Any]]:
    """What a plain replay from the beginning says of each message, with the states around it."""
    stepper = Stepper(LocalReplay(setup, semantics))
    forms, before = [], state_form(stepper.state)
    for at, message in enumerate(messages):
        step = stepper.step(message)
        forms.append(step_form(at, step, before, before := state_form(stepper.state)))
    return forms


@FEW
@given(captures(3), VERSIONS, st.integers(1, 9), st.lists(st.integers(0, 200), min_size=1, max_size=30))
def test_any_message_by_checkpoints_is_what_a_plain_replay_gives(
    messages: list[CapturedMessage], semantics: str, shortest: int, visits: list[int]
) -> None:
    plain = plainly(messages, EXPIRING, semantics)
    line = stepped(messages, EXPIRING, semantics, shortest)
    assert len(line) == len(messages)
    for at in [visit % len(messages) for visit in visits] if messages else ():
        step = line.step(at)
        assert step_form(at, step, state_form(line.before(at)), state_form(line.after(at))) == plain[at]


@FEW
@given(captures(3), VERSIONS)
def test_changes_lead_from_each_state_to_the_next_and_back(messages: list[CapturedMessage], semantics: str) -> None:
    stepper = Stepper(LocalReplay(EXPIRING, semantics))
    state = StepState()
    for message in messages:
        before = state.copy()
        step = stepper.step(message)
        state.apply(step.changes)
        assert state == stepper.state
        assert len({(change.kind, change.key) for change in step.changes}) == len(step.changes)
        state.undo(step.changes)
        assert state == before
        state.apply(step.changes)


@FEW
@given(captures(3), VERSIONS, st.integers(0, 200))
def test_a_replay_goes_on_from_a_snapshot_with_the_same_puts(
    messages: list[CapturedMessage], semantics: str, after: int
) -> None:
    cut = after % (len(messages) + 1)
    stepper = Stepper(LocalReplay(EXPIRING, semantics))
    for message in messages[:cut]:
        stepper.step(message)
    data = stepper.snapshot()
    again = Stepper.of_snapshot(data, EXPIRING, semantics)
    assert again.snapshot() == data, "equal states give equal bytes"
    whole = LocalReplay(EXPIRING, semantics)
    expected = list(whole.puts(messages))
    had = {message.seq for message in messages[:cut]}
    left = [put for message in messages[cut:] for put in again._replay.replay(message)[1]]
    assert left == [put for put in expected if put.seq not in had]


def made(seq: int, word: str, *topics: str, **more: Any) -> CapturedMessage:
    mqmd = Mqmd(user_identifier="ann", reply_to_q=more.pop("q", "Q1"), expiry=more.pop("expiry", -1))
    queue = CONTROL if word != "Publish" else "SYSTEM.BROKER.DEFAULT.STREAM"
    spec = CommandSpec(
        word, topics, more.pop("options", ()), more, data="0 1" if word == "Publish" else "", mqmd=mqmd, queue=queue
    )
    time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seq)
    return command_message(spec).model_copy(update={"seq": seq, "time": time})


# WILDCARD(BLOCK) comes after the subscription, which therefore keeps receiving; a new one does not.
BLOCKED_LATER = """
DEFINE TOPIC(SPORT) TOPICSTR('Sport')
DEFINE SUB(EARLY) TOPICSTR('#') DEST(AUDIT)
ALTER TOPIC(SPORT) WILDCARD(BLOCK)
"""


def test_a_subscription_keeps_the_blocks_that_it_was_made_under() -> None:
    messages = [
        made(1, "RegSub", "#", q="LATE"),
        made(2, "Publish", "Sport/Soccer"),
        made(3, "Publish", "Sport/Soccer"),
    ]
    line = stepped(messages, BLOCKED_LATER, shortest=1)
    for at in (1, 2):
        assert [text.strip() for text in line.step(at).lines[1:]] == ["-> AUDIT receives Sport/Soccer: 0 1"]


def test_what_the_setup_defined_expires_behind_a_snapshot_too() -> None:
    setup = "DEFINE SUB(SOON) TOPICSTR('a') DEST(AUDIT) EXPIRY(30)\n"
    messages = [made(seq, "Publish", "a") for seq in (1, 2, 3, 5, 6)]
    line = stepped(messages, setup, shortest=1)
    assert [line.step(at).puts for at in range(5)] == [1, 1, 1, 0, 0]
    assert [change.verb for change in line.step(3).changes] == ["removed"]


CHANGES = [
    (
        "the setup and the first subscription",
        0,
        ["+ subscription QM1 a -> AUDIT, name S1, VariableUserId", "+ subscription QM1 a/# -> Q1, user ann"],
    ),
    (
        "a retained publication",
        1,
        [
            "+ retained QM1 a: 0 1, published 2026-01-01T00:00:02.000Z",
            "+ queue QM1 AUDIT: 1 publication",
            "+ queue QM1 Q1: 1 publication",
        ],
    ),
    (
        "the same again",
        2,
        [
            "~ retained QM1 a: 0 1, published 2026-01-01T00:00:03.000Z",
            "~ queue QM1 AUDIT: 2 publications (+1)",
            "~ queue QM1 Q1: 2 publications (+1)",
        ],
    ),
    ("other options", 3, ["~ subscription QM1 a/# -> Q1, user ann, InformIfRet (options: none -> InformIfRet)"]),
    ("an identity set", 4, ["+ subscription QM1 b -> Q1, name N, user ann, shared by X"]),
    ("another identity", 5, ["~ subscription QM1 b -> Q1, name N, user ann, shared by X, Y (identities: X -> X Y)"]),
    ("an error", 6, ["+ queue QM1 SYSTEM.DEAD.LETTER.QUEUE: 1 dead letter"]),
    ("deregistered", 7, ["- subscription QM1 a/# -> Q1, user ann, InformIfRet"]),
]
STORY: Final = [
    made(1, "RegSub", "a/#"),
    made(2, "Publish", "a", options=("RetainPub",)),
    made(3, "Publish", "a", options=("RetainPub",)),
    made(4, "RegSub", "a/#", options=("InformIfRet",)),
    made(5, "RegSub", "b", options=("AddName", "JoinShared"), SubName="N", SubIdentity="X"),
    made(6, "RegSub", "b", options=("JoinShared",), SubName="N", SubIdentity="Y"),
    made(7, "RegSub", "a/##", q=""),
    made(8, "DeregSub", "a/#"),
]


@pytest.mark.parametrize(("at", "lines"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_what_changed_in_words(at: int, lines: list[str]) -> None:
    line = stepped(STORY, "DEFINE SUB(S1) TOPICSTR('a') DEST(AUDIT)\n")
    assert change_lines(line.step(at).changes) == lines


def test_a_message_that_changes_nothing_says_so() -> None:
    line = stepped([made(1, "RegSub", "a"), made(2, "Publish", "b")])
    assert change_lines(line.step(1).changes) == ["nothing changed"]


def test_the_state_in_words_is_cut_where_it_is_long() -> None:
    line = stepped([made(seq, "RegSub", f"t{seq}") for seq in range(1, 31)])
    lines = state_lines(line.after(29), 3)
    assert lines[0] == "subscriptions: 30"
    assert lines[4:] == ["  ... and 27 more", "retained publications: 0", "queues, and messages put on them: 0"]
    assert len(state_lines(line.after(29), None)) == 33


def test_a_publication_to_very_many_is_cut() -> None:
    setup = "".join(f"DEFINE SUB(S{n}) TOPICSTR('a') DEST(Q{n})\n" for n in range(300))
    line = stepped([made(1, "Publish", "a")], setup)
    lines = step_lines(0, 1, line.step(0))
    assert len(lines) < 210
    assert lines[-1].strip() == "and more: 300 messages put in all"


def test_going_back_within_a_block_reads_nothing() -> None:
    store = InMemory(list(blocks_of(RESULTS, "", "v7", shortest=30)))
    line = Timeline(store, "", "v7")
    forms = [state_form(line.after(at)) for at in range(len(line))]
    assert [state_form(line.after(at)) for at in reversed(range(len(line)))] == forms[::-1]
    assert store.read == 1


def test_blocks_are_as_long_as_the_state() -> None:
    """All checkpoints together are not much larger than the capture, however large the state is."""
    blocks = list(blocks_of([made(seq, "RegSub", f"t{seq}") for seq in range(1, 201)], "", "v7", shortest=10))
    assert [block.head.count for block in blocks] == [10, 10, 20, 40, 80, 40]


# Breakpoints

STOPS = [
    ("command = 'DeletePub'", [19, 21]),
    ("topic = 'Sport/Soccer/Event/MatchEnded'", [18, 20]),
    ("queue = 'LATE.BOARD'", [17, 22]),
    ("reason = 3077", [2]),
    ("reason = 'MQRCCF_NOT_REGISTERED'", [25]),
    ("reason is not null and queue = 'SCOREBOARD'", [25]),
    ("seq = 26", [25]),
    ("usr.nothing is not null", []),
    ("Root.MQMD.MsgType = 1 and command = 'ReqUpdate'", [2, 14]),
]


@pytest.mark.parametrize(("condition", "stops"), STOPS, ids=[text for text, _ in STOPS])
@pytest.mark.parametrize("shortest", [3, 100])
def test_breakpoints_stop_forwards_and_backwards(condition: str, stops: list[int], shortest: int) -> None:
    line = stepped(RESULTS, shortest=shortest)
    where = [compile_where(condition)]
    found, at = [], line.next_stop(-1, where)
    while at is not None:
        found.append(at)
        at = line.next_stop(at, where)
    back, at = [], line.previous_stop(len(line), where)
    while at is not None:
        back.append(at)
        at = line.previous_stop(at, where)
    assert (found, back) == (stops, stops[::-1])
    assert [at for at in range(len(line)) if stops_at(where[0], line.step(at).facts, line.message(at))] == stops


def test_several_breakpoints_stop_at_each() -> None:
    line = stepped(RESULTS)
    both = [compile_where("command = 'DeletePub'"), compile_where("reason = 3077")]
    assert (line.next_stop(-1, both), line.next_stop(2, both), line.next_stop(25, both)) == (2, 19, None)


def test_numbers_are_found() -> None:
    line = stepped(RESULTS)
    assert [line.position_of(seq) for seq in (1, 13, 26, 27, 0)] == [0, 12, 25, None, None]
    assert (line.seqs, stepped([]).seqs) == ((1, 26), None)


@FEW
@given(captures(2), VERSIONS)
def test_facts_that_were_kept_are_those_of_the_steps(messages: list[CapturedMessage], semantics: str) -> None:
    line = stepped(messages, EXPIRING, semantics)
    assert [line.facts(at) for at in range(len(line))] == [line.step(at).facts for at in range(len(line))]


# What is damaged

DAMAGED = [
    ("not compressed", b"x"),
    ("not JSON", zlib.compress(b"x")),
    ("not a snapshot", zlib.compress(b"{}")),
    ("cut", snapshot_of(LocalReplay(), {})[:-3]),
    ("another version", zlib.compress(json.dumps({"version": 99}).encode())),
    ("no broker", zlib.compress(b'{"version":1,"last_seq":1,"brokers":{"QM1":{}},"queues":[]}')),
]


@pytest.mark.parametrize("data", [d[1] for d in DAMAGED], ids=[d[0] for d in DAMAGED])
def test_a_damaged_snapshot_is_called_so(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        Stepper.of_snapshot(data, "", "v7")
