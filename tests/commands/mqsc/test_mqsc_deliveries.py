"""Retained publications for a subscription that MQSC defines go the way of those that are published: one deliverer."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.cli import main
from commands.disk.errors import UndeliverableError
from commands.explain.build import CommandSpec, command_message
from commands.mqsc.administration import Administration
from commands.mqsc.broker import Broker
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from commands.qmgr.admin import Keeper, UnitQueues
from commands.qmgr.delivery import Backlog
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from commands.terminal.console import Console, ExitCode
from rfh2 import Folder, Mqmd, Rfh2, decode
from rfh2.dlh import Dlh
from rfh2.mqmd import Xqh
from streams.topic_space import TopicSpace

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
DEAD = "SYSTEM.DEAD.LETTER.QUEUE"


def _put(unit: UnitOfWork, queue: str, psc: str, data: str = "", **mqmd: object) -> None:
    md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "priority": 0, "user_identifier": "app", **mqmd})  # type: ignore[arg-type]
    unit.put(queue, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + data.encode())


def _publish(store: QueueManagerStore, data: str, retain: bool = False, **mqmd: object) -> None:
    option = "<PubOpt>RetainPub</PubOpt>" if retain else ""
    with store.unit_of_work() as unit:
        _put(unit, STREAM, f"<Command>Publish</Command>{option}<Topic>a</Topic>", data, **mqmd)


def _create(home: Path, **attributes: object) -> QueueManagerStore:
    """A queue manager where "kept" is retained on topic a."""
    store = QueueManagerStore.create(home, QueueManager("QM1", **attributes))  # type: ignore[arg-type]
    _publish(store, "kept", retain=True)
    Processor(store, lambda: NOW).drain()
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    with _create(tmp_path) as store:
        yield store


def _define(store: QueueManagerStore, *queues: LocalQueue) -> None:
    with store.unit_of_work() as unit:
        for queue in queues:
            unit.save_definition(queue)


def _mqsc(home: Path, *commands: str) -> tuple[ExitCode, str]:
    script, out = home / "script.mqsc", io.BytesIO()
    script.write_text("\n".join(commands) + "\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main.main(["mqsc", "-m", "QM1", "--home", str(home), str(script)], obj=Console(out, io.StringIO()))
    assert isinstance(ended.value.code, int)
    return ExitCode(ended.value.code), out.getvalue().decode()


def _data(store: QueueManagerStore, queue: str) -> list[str]:
    if store.find_queue(queue) is None:
        return []
    return [decode(message.body, message.md).body.decode() for message in store.browse(queue)]


def _letters(store: QueueManagerStore) -> list[tuple[str, str, int]]:
    letters = []
    for message in store.browse(DEAD):
        header = decode(message.body, message.md).headers[0]
        assert isinstance(header, Dlh)
        letters.append((header.dest_q_name.rstrip(), header.dest_qmgr_name.rstrip(), header.reason))
    return letters


def _owed(store: QueueManagerStore) -> dict[str, int]:
    return {name: count for name, count, _ in store.overview().undelivered}


def _names(store: QueueManagerStore) -> list[str | None]:
    with store.unit_of_work() as unit:
        return [subscription.name for subscription in unit.load_state()[1]]


REMOTE = "DEFINE SUB(S) TOPICSTR('a') DEST(Q) DESTQMGR(QM2)"


def test_for_another_queue_manager_it_waits_on_the_transmission_queue_behind_an_mqxqh(
    tmp_path: Path, store: QueueManagerStore, caplog: pytest.LogCaptureFixture
) -> None:
    again = REMOTE.replace("SUB(S)", "SUB(S2)").replace("DEST(Q)", "DEST(R)")
    code, out = _mqsc(tmp_path, REMOTE, again, "DISPLAY QLOCAL(QM2) USAGE")
    assert (code, "USAGE(XMITQ)" in out) == (ExitCode.DONE, True)
    ways = []
    for message in store.browse("QM2"):
        header, *_ = decode(message.body, message.md).headers
        assert isinstance(header, Xqh)
        ways.append((header.remote_q_name.rstrip(), header.remote_qmgr_name.rstrip()))
    assert ways == [("Q", "QM2"), ("R", "QM2")]
    queue = store.find_queue("QM2")
    assert queue is not None
    assert queue.transmission
    assert caplog.text.count("transmission queue QM2, which was not defined") == 1


def test_a_transmission_queue_that_somebody_defined_stays_as_it_was_defined(
    tmp_path: Path, store: QueueManagerStore, caplog: pytest.LogCaptureFixture
) -> None:
    _define(store, LocalQueue("QM2", description="ours", transmission=True))
    assert _mqsc(tmp_path, REMOTE)[0] is ExitCode.DONE
    queue = store.find_queue("QM2")
    assert queue is not None
    assert (queue.description, store.depth("QM2"), caplog.text) == ("ours", 1, "")


# How the queue of a new subscription may refuse, where it is, and the reason in the MQDLH.
REFUSALS = [
    pytest.param(LocalQueue("Q", max_depth=0), "Q", "QM1", 2053, id="full"),
    pytest.param(LocalQueue("Q", put_enabled=False), "Q", "QM1", 2051, id="put-inhibited"),
    pytest.param(LocalQueue("Q", max_message_length=2), "Q", "QM1", 2030, id="MAXMSGL"),
    pytest.param(LocalQueue("QM2", max_depth=0, transmission=True), "Q", "QM2", 2053, id="full-transmission-queue"),
]


@pytest.mark.rule("RESP-10")
@pytest.mark.parametrize(("queue", "dest", "qmgr", "reason"), REFUSALS)
def test_6_7_6_what_its_queue_refuses_is_a_dead_letter_with_the_reason(
    tmp_path: Path, store: QueueManagerStore, queue: LocalQueue, dest: str, qmgr: str, reason: int
) -> None:
    _define(store, queue)
    assert _mqsc(tmp_path, f"DEFINE SUB(S) TOPICSTR('a') DEST({dest}) DESTQMGR({qmgr})")[0] is ExitCode.DONE
    assert (_letters(store), _names(store), _owed(store)) == ([(dest, qmgr, reason)], ["S"], {})


def test_what_can_be_put_nowhere_is_owed_and_the_processor_that_runs_delivers_it(
    tmp_path: Path, store: QueueManagerStore
) -> None:
    """Guide 6.7.6: the processor learns of it though it owed nothing itself."""
    now = NOW
    backlog = Backlog(lambda: now, 30.0)
    processor = Processor(store, lambda: now, backlog=backlog)
    processor.drain()
    now += timedelta(hours=1)
    assert not backlog.is_due
    _define(store, LocalQueue("Q", put_enabled=False), LocalQueue(DEAD, put_enabled=False))
    assert _mqsc(tmp_path, "DEFINE SUB(S) TOPICSTR('a') DEST(Q)", "DEFINE SUB(U) TOPICSTR('u') DEST(Q)")[0] == 0
    assert (_names(store), _owed(store)) == (["S", "U"], {"Q": 1})
    _define(store, LocalQueue("Q"))
    processor._drain(None)  # as ``run`` does where nothing seems to be owed
    assert backlog.is_due
    processor.drain()
    assert (_data(store, "Q"), _owed(store)) == (["kept"], {})


@pytest.mark.rule("RESP-12")
def test_it_stays_behind_what_is_owed_to_its_queue_already(tmp_path: Path, store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        _put(unit, CONTROL, "<Command>RegSub</Command><Topic>a</Topic><RegOpt>NewPubsOnly</RegOpt><QName>Q</QName>")
    _define(store, LocalQueue("Q", put_enabled=False), LocalQueue(DEAD, put_enabled=False))
    _publish(store, "earlier")
    processor = Processor(store, lambda: NOW)
    processor.drain()
    assert _owed(store) == {"Q": 1}
    _define(store, LocalQueue("Q"))
    assert _mqsc(tmp_path, "DEFINE SUB(S) TOPICSTR('a') DEST(Q)")[0] is ExitCode.DONE
    assert (_data(store, "Q"), _owed(store)) == ([], {"Q": 2})
    processor.drain()
    assert (_data(store, "Q"), _owed(store)) == (["earlier", "kept"], {})


def _kept_with(store: QueueManagerStore, backlog: Backlog | None) -> None:
    """DEFINE SUB in one unit of work, with this backlog."""
    with store.unit_of_work() as unit:
        objects, subscriptions, retained = unit.load_state()
        space = TopicSpace(objects.topics)
        space.restore(subscriptions, retained)
        administration = Administration.of(objects, space, NOW, UnitQueues(unit))
        (statement,) = parse("DEFINE SUB(S2) TOPICSTR('a') DEST(Q)")
        answer = execute(statement, administration)
        assert answer.ok
        Keeper(backlog).keep(answer, objects, unit, NOW)


@pytest.mark.parametrize("most", [None, 1], ids=["nothing-can-be-owed", "what-is-owed-fills-the-backlog"])
def test_where_no_more_can_be_owed_the_command_fails(
    tmp_path: Path, store: QueueManagerStore, most: int | None
) -> None:
    """What another process owes counts."""
    _define(store, LocalQueue("Q", put_enabled=False), LocalQueue(DEAD, put_enabled=False))
    assert _mqsc(tmp_path, "DEFINE SUB(S) TOPICSTR('a') DEST(Q)")[0] is ExitCode.DONE
    assert _owed(store) == {"Q": 1}
    backlog = None if most is None else Backlog(lambda: NOW, 30.0, most_messages=most)
    with pytest.raises(UndeliverableError):
        _kept_with(store, backlog)
    assert (_names(store), _owed(store)) == (["S"], {"Q": 1})


@pytest.mark.parametrize(
    ("queue", "priority"), [("DEFINE QLOCAL(TO) DEFPRTY(7)", 7), ("DEFINE QLOCAL(TO)", 0), ("", 0)]
)
def test_pubprty_asqdef_is_the_priority_of_the_subscribers_queue(queue: str, priority: int) -> None:
    broker = Broker("QM1", f"{queue}\nDEFINE SUB(S) TOPICSTR(a) DEST(TO) PUBPRTY(ASQDEF)\n".lstrip())
    (put,) = broker.handle(command_message(CommandSpec("Publish", ("A",), mqmd=Mqmd(priority=3))))
    assert Mqmd.decode(bytes.fromhex(put.md_hex)).priority == priority
