"""Administration while the processor runs: what MQSC changes counts for the next command (guide 6.5.4 to 6.5.6)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, QueueManager
from commands.cli import main
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from commands.templates.templates import PublicationTemplates
from commands.terminal.console import Console, ExitCode
from rfh2 import Folder, Mqmd, Rfh2, decode

SCRIPTS = Path(__file__).parents[3] / "fixtures" / "mqsc"
STREAMS = "SYSTEM.QPUBSUB.QUEUE.NAMELIST"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Running:
    """A queue manager whose processor stays the same while others administer it."""

    def __init__(self, home: Path, store: QueueManagerStore) -> None:
        self.home, self.store = home, store
        self.processor = Processor(store, lambda: NOW)

    def mqsc(self, script: str) -> None:
        path = self.home / "script.mqsc"
        path.write_text(script)
        out = io.BytesIO()
        with pytest.raises(SystemExit) as ended:
            main.main(["mqsc", "-m", "QM1", "--home", str(self.home), str(path)], obj=Console(out, io.StringIO()))
        assert ended.value.code == ExitCode.DONE, out.getvalue().decode()

    def send(self, queue: str, psc: str) -> None:
        md = Mqmd(format="MQHRF2", persistence=1, priority=0, user_identifier="app").encode()
        body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + b"data"
        with self.store.unit_of_work() as unit:
            unit.put(queue, md, body, time=NOW)
        self.processor.drain()

    def publish(self, topic: str, queue: str = DEFAULT_STREAM, more: str = "") -> None:
        self.send(queue, f"<Command>Publish</Command>{more}<Topic>{topic}</Topic>")

    def received(self, queue: str) -> list[str]:
        """The topics of what is on a queue, which is empty then."""
        topics = []
        with self.store.unit_of_work() as unit:
            while unit.find_queue(queue) is not None and (message := unit.get(queue)) is not None:
                header = decode(message.body, message.md).rfh2
                assert header is not None
                told, properties = header.folder("psc"), header.folder("mqps")
                if told is not None:
                    topics.append(dict(told.pairs())["Topic"])
                else:
                    assert properties is not None
                    topics.append(dict(properties.pairs())["Top"])
        return topics


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        yield Running(tmp_path, store)


@pytest.mark.rule("STR-5")
def test_a_stream_is_added_and_deleted_without_a_restart(running: Running) -> None:
    running.mqsc("DEFINE SUB(ALL) TOPICSTR('#') DEST(ALL.Q)\nDEFINE SUB(SPORT) TOPICSTR('Sport/#') DEST(SPORT.Q)\n")
    running.publish("Soccer/Results")
    assert running.received("ALL.Q") == ["Soccer/Results"]
    running.mqsc((SCRIPTS / "add-stream.mqsc").read_text())
    running.publish("Soccer/Results", queue="Sport")
    assert running.received("SPORT.Q") == ["Sport/Soccer/Results"]
    running.mqsc(
        f"DELETE SUB(SPORT)\nALTER NAMELIST({STREAMS}) NAMES({DEFAULT_STREAM}, SYSTEM.BROKER.ADMIN.STREAM)\n"
        "CLEAR QLOCAL('Sport')\nDELETE QLOCAL('Sport')\nDELETE TOPIC('Sport')\n"
    )
    running.publish("Soccer/Results", queue="Sport")
    assert running.received("SPORT.Q") == []


def test_collisions_are_logged_once(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    """Guide 6.1: a stream without a topic object has its topics at the root."""
    running.mqsc("DEFINE QLOCAL('Sport')\nDEFINE SUB(ALL) TOPICSTR('#') DEST(ALL.Q)\n")
    running.mqsc(f"ALTER NAMELIST({STREAMS}) NAMES({DEFAULT_STREAM}, SYSTEM.BROKER.ADMIN.STREAM, 'Sport')\n")
    for _ in range(2):
        running.publish("Soccer/Results", queue="Sport")
        running.mqsc("ALTER QMGR DESCR('a change has the processor read everything anew')\n")
    assert running.received("ALL.Q") == ["Soccer/Results"] * 2
    assert [record.message for record in caplog.records if record.name == "qpubsub.processor"] == [
        "stream Sport has no topic object: its topics are at the root"
    ]


@pytest.mark.rule("SP-4")
def test_a_subscription_point_is_added_without_a_restart(running: Running) -> None:
    register = "<Command>RegSub</Command><Topic>NYSE/IBM</Topic><SubPoint>USD</SubPoint><QName>USD.Q</QName>"
    running.send(CONTROL_QUEUE, register)
    running.publish("NYSE/IBM", more="<SubPoint>USD</SubPoint>")
    assert running.received("USD.Q") == []
    running.mqsc((SCRIPTS / "add-subscription-points.mqsc").read_text())
    running.send(CONTROL_QUEUE, register)
    running.publish("NYSE/IBM", more="<SubPoint>USD</SubPoint>")
    assert running.received("USD.Q") == ["NYSE/IBM"]


@pytest.mark.rule("QM-6")
def test_psmode_stops_and_starts_the_queued_interface(running: Running) -> None:
    """Guide 6.5.2, 6.5.3: messages wait on the queue meanwhile."""
    running.mqsc("DEFINE SUB(S) TOPICSTR('a') DEST(Q)\nALTER QMGR PSMODE(COMPAT)\n")
    running.publish("a")
    assert running.received("Q") == []
    running.mqsc("ALTER QMGR PSMODE(ENABLED)\n")
    running.processor.drain()
    assert running.received("Q") == ["a"]


@pytest.mark.rule("APP-4", "QM-8")
def test_intercepting_by_sublevel(running: Running) -> None:
    """Guide 4.6.1: the highest level alone gets it; level 0 is for what nobody else takes."""
    running.mqsc(
        "DEFINE SUB(PLAIN) TOPICSTR('a') DEST(PLAIN.Q)\nDEFINE SUB(CATCH) TOPICSTR('#') DEST(CATCH.Q) SUBLEVEL(0)\n"
    )
    running.publish("a")
    running.publish("b")
    assert (running.received("PLAIN.Q"), running.received("CATCH.Q")) == (["a"], ["b"])
    running.mqsc("DEFINE SUB(SPY) TOPICSTR('a') DEST(SPY.Q) SUBLEVEL(9)\n")
    running.publish("a")
    assert (running.received("PLAIN.Q"), running.received("SPY.Q")) == ([], ["a"])


@pytest.mark.rule("QM-8")
def test_grouped_subscriptions_get_one_copy(running: Running) -> None:
    """Guide 4.8.3: the one with the longest literal topic string."""
    group = f"DEST(Q) DESTCORL('{'AB' * 24}') GROUPSUB(YES)"
    running.mqsc(f"DEFINE SUB(WIDE) TOPICSTR('a/#') {group}\nDEFINE SUB(CLOSE) TOPICSTR('a/b/+') {group}\n")
    running.publish("a/b/c")
    assert running.received("Q") == ["a/b/c"]


def test_a_selector_lets_through_what_it_says(running: Running) -> None:
    running.mqsc(
        "DEFINE SUB(S) TOPICSTR('a') DEST(Q) SELECTOR('JMSPriority > 3')\nDEFINE SUB(T) TOPICSTR('a') DEST(R)\n"
    )
    running.publish("a")
    assert (running.received("Q"), running.received("R")) == ([], ["a"])


def test_what_a_publication_came_to_before_does_not_count(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates answer publications like one before: but what is defined may have changed."""
    again = []
    outcome = PublicationTemplates.outcome
    monkeypatch.setattr(PublicationTemplates, "outcome", lambda *given: (again.append(1), outcome(*given))[1])

    def published() -> list[int]:
        """How many of three publications reach A, B and the dead-letter queue."""
        for _ in range(3):
            running.publish("a/b")
        return [len(running.received(queue)) for queue in ("A", "B", "SYSTEM.DEAD.LETTER.QUEUE")]

    running.mqsc("DEFINE QLOCAL(A)\nDEFINE QLOCAL(B)\nDEFINE SUB(A) TOPICSTR('a/b') DEST(A) PSPROP(RFH2)\n")
    assert published() == [3, 0, 0]
    running.mqsc("DEFINE SUB(B) TOPICSTR('a/+') DEST(B) PSPROP(RFH2)\n")
    assert published() == [3, 3, 0]
    running.mqsc("DELETE SUB(A)\n")
    assert published() == [0, 3, 0]
    running.mqsc("DEFINE TOPIC(T) TOPICSTR('a') PUB(DISABLED)\n")
    assert published() == [0, 0, 3]
    running.mqsc("ALTER TOPIC(T) PUB(ENABLED)\n")
    assert published() == [0, 3, 0]
    assert len(again) >= 4
