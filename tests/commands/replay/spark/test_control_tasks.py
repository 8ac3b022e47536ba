"""The control plane in several tasks: whatever is dealt out to whom, the notes mean those of one task for all.

Spark is left out, as in ``test_divided_by_range``, which makes puts of the notes and compares them with the local
replay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, strategies as st

pytest.importorskip("pyspark")

from commands.broker.objects import CONTROL_QUEUE
from commands.broker.reading import Reach, reach_of
from commands.broker.state import subscription_of
from commands.explain.build import CommandSpec, command_message
from commands.mqsc.broker import Broker
from commands.replay.spark.control import DELETED, SUBSCRIBED, ControlTasks, Keys, deal_out, keys_of
from commands.replay.spark.prepare import FirstPassRole
from commands.replay.spark.replay_setup import ReplaySetup
from commands.replay.workload import Workload, WorkloadOptions, setup_script
from rfh2.captured import CapturedMessage
from rfh2.mqmd import Mqmd
from tests.commands.replay.spark.divided import (
    NOW,
    QMGR,
    SEQ,
    Row,
    by_role,
    control_tasks,
    microseconds,
    notes_in_tasks,
    plane_of,
    prepared_rows,
)
from tests.commands.replay.spark.worlds import EXPIRING, SETUP, captures_of_several_groups
from tests.examples import FEW

CORREL, OTHER = b"C" * 24, b"D" * 24


def _found(notes: Iterable[Row], firsts: Mapping[tuple[str, int], Row]) -> dict[tuple[str, int], frozenset[str]]:
    """By *notes*, the subscriptions that there are at the beginning of ranges; what has expired is not there.

    firsts: the first message of each queue manager in each range.
    """
    subscribed = [
        (qmgr, first, last, text, subscription_of(text).expires_at)
        for qmgr, kind, first, last, text, *_ in notes
        if kind == SUBSCRIBED
    ]
    return {
        place: frozenset(
            text
            for qmgr, first, last, text, expires_at in subscribed
            if qmgr == place[0] and first <= place[1] <= last and (expires_at is None or expires_at > row[NOW])
        )
        for place, row in firsts.items()
    }


@FEW
@given(
    capture=captures_of_several_groups().filter(bool),
    tasks=st.integers(2, 5),
    semantics=st.sampled_from(["v6", "v7"]),
    setup=st.sampled_from([SETUP, EXPIRING]),
    cuts=st.integers(1, 4),
)
def test_several_tasks_leave_what_one_leaves(
    capture: list[CapturedMessage], tasks: int, semantics: str, setup: str, cuts: int
) -> None:
    rows = prepared_rows(capture)
    setting = ReplaySetup(setup, semantics).beginning({row[QMGR]: microseconds(row) for row in reversed(rows)})
    least, end = rows[0][SEQ], rows[-1][SEQ] + 1
    starts = tuple(sorted({*(least + (end - least) * number // cuts for number in range(cuts)), end}))
    control = by_role(rows, setting)[FirstPassRole.CONTROL]
    plane = plane_of(rows, setting, starts)
    whole, parts = (notes_in_tasks(control, plane, count) for count in (1, tasks))
    controlled = {row[QMGR] for row in control}
    firsts = {(row[QMGR], bisect_right(starts, row[SEQ]) - 1): row for row in reversed(rows) if row[QMGR] in controlled}
    assert _found(parts, firsts) == _found(whole, firsts)
    deleted, wanted = (Counter(note for note in some if note[1] == DELETED) for some in (parts, whole))
    assert deleted == wanted


STREAMS = """
DEFINE QLOCAL(X)
DEFINE TOPIC(X) TOPICSTR('x')
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, X)
"""


def _register(topic: str, stream: str | None, mqmd: Mqmd, **tags: str | None) -> CommandSpec:
    """An MQRFH names its stream, an MQRFH2 is in the default one."""
    if stream is None:
        return CommandSpec("RegSub", (topic,), ("Local",), tags, mqmd=mqmd)
    return CommandSpec("RegSub", (topic,), ("Local",), {**tags, "StreamName": stream}, rfh1=True, mqmd=mqmd)


def _dealt(reaches: Iterable[Reach], count: int, setup: str = "") -> list[int]:
    keys = [keys_of("QM1", reach, number) for number, reach in enumerate(reaches)]
    dealt = deal_out(
        Counter(("QM1", each) for each in keys), lambda _: Broker("QM1", setup).space.subscriptions(), count
    )
    return [_task(dealt, each) for each in keys]


def _task(dealt: ControlTasks, keys: Keys) -> int:
    (at,) = (number for number, key in enumerate(dealt.keys) if key == keys.key)
    return int(dealt.tasks[at])


TOGETHER = [
    ("a-queue", [Reach((), "Q"), Reach((), "Q")], True),
    ("two-queues", [Reach((), "Q"), Reach((), "R")], False),
    ("two-correl-ids-on-a-queue", [Reach((), "Q"), Reach((), "Q", CORREL)], False),
    ("a-name", [Reach(("N",), "Q"), Reach(("N",), "R")], True),
    ("a-name-that-migration-changed", [Reach(("N", "N:X"), "Q"), Reach(("N:X",), "R")], True),
    ("through-a-third", [Reach((), "Q"), Reach((), "R"), Reach(("N",), "Q"), Reach(("N",), "R")], True),
    ("through-the-setup", [Reach((), "AUDIT"), Reach(("S",), "")], True),
    ("mixed", [Reach((), "Q", CORREL), Reach(("N",), "Q", mixes=True), Reach(("N",), "R", CORREL)], True),
    (
        "a-queue-of-a-mixed-name",
        [Reach((), "R", OTHER), Reach(("N",), "", mixes=True), Reach(("N",), "R", CORREL)],
        True,
    ),
    ("nothing", [Reach(), Reach()], False),
]


@pytest.mark.parametrize(("reaches", "together"), [case[1:] for case in TOGETHER], ids=[case[0] for case in TOGETHER])
def test_who_is_in_a_task_with_whom(reaches: list[Reach], together: bool) -> None:
    tasks = _dealt(reaches, len(reaches) + 1, "DEFINE SUB(S) TOPICSTR('a') DEST(AUDIT)")
    assert len(set(tasks)) == (1 if together else len(reaches))


def test_a_subscription_with_halves_of_two_identities() -> None:
    """Why ``mixes`` is there: the last command changes what the first one made, and shares no identity with it."""
    queues = {"SubName": "N"}
    commands = [
        CommandSpec("RegSub", ("a",), ("CorrelAsId",), queues, mqmd=Mqmd(reply_to_q="Q", correl_id=CORREL)),
        CommandSpec("RegSub", ("a",), (), queues, mqmd=Mqmd(reply_to_q="R")),
        CommandSpec("RegSub", ("a",), ("CorrelAsId",), mqmd=Mqmd(reply_to_q="R", correl_id=CORREL)),
    ]
    made = [command_message(command) for command in commands]
    broker = Broker("QM1", semantics="v6")
    for number, message in enumerate(made):
        broker.handle(message.model_copy(update={"seq": number, "queue": CONTROL_QUEUE}))
    (only,) = broker.space.subscriptions()
    assert (only.name, only.dest_queue, only.correl_id) == ("N", "R", CORREL)
    assert len(set(_dealt([reach_of(each.md, each.body) for each in made], 4))) == 1


ONE, OTHER_USER = (Mqmd(reply_to_q="Q", user_identifier=user) for user in ("ann", "bob"))
EVERYTHING = CommandSpec("DeregSub", (), ("DeregAll",), mqmd=ONE)
DEPENDENT = [
    ("names-in-two-streams", "v7", _register("a", "X", ONE, SubName="N"), _register("b", None, ONE, SubName="N")),
    ("an-identity-in-two-streams", "v6", _register("a", "X", ONE), _register("a", None, OTHER_USER)),
    ("a-name-on-two-topics", "v7", _register("a/b", None, ONE, SubName="N"), _register("c", None, ONE, SubName="N")),
    ("all-topics-of-an-identity", "v7", _register("a/b", None, ONE), EVERYTHING),
    ("topics-of-one-command", "v7", _register("a/b", None, ONE), CommandSpec("DeregSub", ("a/b", "c"), mqmd=ONE)),
]


@pytest.mark.parametrize(
    ("semantics", "first", "second"), [case[1:] for case in DEPENDENT], ids=[case[0] for case in DEPENDENT]
)
def test_neither_streams_nor_topics_are_independent(semantics: str, first: CommandSpec, second: CommandSpec) -> None:
    """Why the control plane is not divided by them: the second command has another result without the first one."""
    messages = [command_message(each).model_copy(update={"seq": at}) for at, each in enumerate((first, second))]
    results = []
    for given_messages in (messages, messages[1:]):
        broker = Broker("QM1", STREAMS, semantics)
        outcome = [broker.replay(message)[0] for message in given_messages][-1]
        results.append((outcome.reason, [type(effect) for effect in outcome.effects]))
    assert results[0] != results[1]
    assert len(set(_dealt([reach_of(each.md, each.body) for each in messages], 3))) == 1


def test_a_workload_is_dealt_out_evenly() -> None:
    knobs = WorkloadOptions(messages=2000, control=1.0, errors=0, strays=0, subscribers=300, streams=3)
    setting = ReplaySetup(setup_script(knobs))
    control = by_role(prepared_rows(Workload(knobs).messages()), setting)[FirstPassRole.CONTROL]
    loads = Counter(control_tasks(control, setting, 4)[1])
    assert len(loads) == 4
    assert max(loads.values()) < 1.1 * len(control) / 4
