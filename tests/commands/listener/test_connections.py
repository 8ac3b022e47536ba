"""Who is connected: MQSC, PCF, the console, ``status`` and metrics show the same; and programs can be ended.

One listener serves all of it. Rows of docs/conformance.md: LSN-70, LSN-71, LSN-72, ST-4.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands.broker.authority import no_groups
from commands.broker.connections import Connection, programs
from commands.broker.objects import QueueManager
from commands.config.settings import ChannelRule
from commands.console.access import ConsoleOptions
from commands.listener.security import Security
from commands.monitoring.metrics import Chosen, StateCollector
from commands.mqsc.answers import Answer
from commands.mqsc.pcf.attributes import CONNECTION_ID, GENERIC_CONNECTION_ID
from commands.mqsc.pcf.client import replies
from commands.mqsc.script import parse
from commands.qmgr.admin import StatementRunner
from commands.qmgr.store import QueueManagerStore, listeners
from commands.qmgr.store.listeners import SOCKETS, AskedListeners, reached
from commands.qmgr.store.queue_manager import utc_now
from commands.running.status import status_of
from rfh2 import pcf_admin_names as c
from rfh2.channel.segments import CHANNEL_UNAVAILABLE, SegmentType
from rfh2.mqi_constants import (
    MQGMO_SYNCPOINT,
    MQOO_INPUT_SHARED,
    MQOO_INQUIRE,
    MQOO_OUTPUT,
    MQPMO_SYNCPOINT,
    MQRC_CONNECTION_BROKEN,
)
from rfh2.pcf import Cfbs, Cfil, Cfin, Cfst, Parameter
from rfh2.pcf_admin_names import MQOT_TOPIC
from rfh2.pcf_names import MQCA_Q_NAME
from tests.commands.console.places import ORIGIN, opened
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient, StatusError
from tests.commands.mqsc.pcf_desk import Desk
from tests.waiting import until

RULES = {"APP.SVRCONN": ChannelRule(), "ADMIN.SVRCONN": ChannelRule(mcauser="app"), "SPARE.SVRCONN": ChannelRule()}


@dataclass(frozen=True)
class Place:
    """A queue manager and its listener."""

    home: Path
    port: int

    @property
    def directory(self) -> Path:
        return self.home / "QM1"

    def mqsc(self, text: str) -> Answer:
        """The answer to one command."""
        with QueueManagerStore.open(self.home, "QM1") as store:
            ((_, answer),) = StatementRunner(store, "admin", no_groups, utc_now).run(parse(text))
        return answer

    def rows(self, text: str) -> list[dict[str, Any]]:
        return [dict(row) for row in self.mqsc(text).objects]

    def pcf(self, command: int, *parameters: Parameter) -> Any:
        """What a PCF command is answered: rows by keyword, and the reason."""
        with QueueManagerStore.open(self.home, "QM1") as store:
            return replies(reply.pcf for reply in Desk(store).ask(command, *parameters))

    def programs(self) -> dict[str, Connection]:
        """Those that are connected, by application."""
        with QueueManagerStore.open(self.home, "QM1") as store:
            return {each.application: each for each in programs(AskedListeners(store.database).reports())}

    def client(
        self, channel: str = "APP.SVRCONN", user: str = "alice", application: str = "x", **how: Any
    ) -> MqiClient:
        client = MqiClient(self.port, channel=channel, **how)
        if how.get("sharing"):
            client.share_connection()
        assert client.connect(user, application=application) == 0
        return client


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Three programs: a worker in a unit of work, one that waits, and one of two on a shared connection."""
    home = tmp_path_factory.mktemp("home") / ("long" * 24)  # longer than the address of a socket may be
    home.mkdir()
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    with listener_at(home, Security(RULES)) as port:
        made = Place(home, port)
        made.mqsc("DEFINE TOPIC(T) TOPICSTR('Sport')")
        with made.client(application="worker") as worker, made.client(user="bob", application="waiter") as waiter:
            handle = worker.opened("WORK", MQOO_INPUT_SHARED | MQOO_OUTPUT)
            worker.opened("T", MQOO_OUTPUT, MQOT_TOPIC)
            for options in (0, 0, MQPMO_SYNCPOINT):
                worker.put(handle, b"data", options)
            worker.get(handle)
            worker.get(handle, MQGMO_SYNCPOINT)
            waiting = waiter.opened("WAIT", MQOO_OUTPUT | MQOO_INPUT_SHARED | MQOO_INQUIRE)
            waiter.request_get(waiting, wait_ms=600_000)
            with made.client("ADMIN.SVRCONN", "carol", "shared-1", sharing=10) as shared:
                shared.share_connection(3)
                assert shared.connect("carol", application="shared-2") == 0
                shown = "DISPLAY QSTATUS(WAIT) TYPE(HANDLE) HSTATE"
                until(lambda: [row["HSTATE"] for row in made.rows(shown)] == ["ACTIVE"])
                yield made


WORKER, WAITER = ("APP.SVRCONN", "alice", "worker"), ("APP.SVRCONN", "bob", "waiter")
SHARED = [("ADMIN.SVRCONN", "app", "shared-1"), ("ADMIN.SVRCONN", "app", "shared-2")]
READS_AND_WRITES = ("MQOO_INPUT_SHARED", "MQOO_OUTPUT")

SHOWN: dict[str, list[tuple[Any, ...]]] = {
    "CONN(*) CHANNEL USERID APPLTAG": [WORKER, WAITER, *SHARED],
    "CONN(*) CHANNEL USERID APPLTAG WHERE(APPLTAG EQ 'worker')": [WORKER],
    "CONN(*) CHANNEL USERID APPLTAG WHERE(CHANNEL EQ ADMIN.SVRCONN)": SHARED,
    "CONN(*) EXTCONN(414D5143*) USERID WHERE(UOWSTATE EQ ACTIVE)": [("alice", "ACTIVE")],
    "CONN(*) TYPE(HANDLE) OBJNAME OBJTYPE TOPICSTR OPENOPTS HSTATE": [
        ("WORK", "QUEUE", "", READS_AND_WRITES, "INACTIVE"),
        ("T", "TOPIC", "Sport", ("MQOO_OUTPUT",), "INACTIVE"),
        ("WAIT", "QUEUE", "", (*READS_AND_WRITES, "MQOO_INQUIRE"), "ACTIVE"),
    ],
    "CONN(*) TYPE(ALL) APPLTAG OBJNAME WHERE(OBJNAME EQ WAIT)": [("WAIT",)],
    "CHSTATUS(*) CONNAME STATUS SUBSTATE RAPPLTAG MCAUSER CURSHCNV MAXSHCNV HBINT": [
        ("127.0.0.1", "RUNNING", "RECEIVE", "worker", "alice", 0, 0, 300),
        ("127.0.0.1", "RUNNING", "MQGET", "waiter", "bob", 0, 0, 300),
        ("127.0.0.1", "RUNNING", "RECEIVE", "shared-1", "app", 2, 10, 300),
    ],
    "CHSTATUS(A*) CONNAME(127.0.0.1) MSGS WHERE(RAPPLTAG EQ 'worker')": [(8, "worker")],
    "QSTATUS(W*) IPPROCS OPPROCS CURDEPTH": [(1, 1, 0), (1, 1, 1)],
    "QLOCAL(W*) CURDEPTH": [(0,), (1,)],
    "QSTATUS(W*) TYPE(HANDLE) APPLTAG USERID INPUT OUTPUT INQUIRE BROWSE SET HSTATE CHANNEL": [
        ("waiter", "bob", "SHARED", "YES", "YES", "NO", "NO", "ACTIVE", "APP.SVRCONN"),
        ("worker", "alice", "SHARED", "YES", "NO", "NO", "NO", "INACTIVE", "APP.SVRCONN"),
    ],
    "QSTATUS(*) TYPE(HANDLE) OPENTYPE(INPUT) APPLTAG": [("waiter",), ("worker",)],
    "QMSTATUS STATUS CONNS CHINIT": [("RUNNING", 4, "RUNNING")],
    "LSSTATUS(*) STATUS TRPTYPE IPADDR": [("RUNNING", "TCP", "127.0.0.1")],
}


@pytest.mark.rule("LSN-70")
@pytest.mark.parametrize("command", SHOWN)
def test_mqsc_shows(place: Place, command: str) -> None:
    keywords = re.sub(r"\S*\([^)]*\)|QMSTATUS", " ", command).split()
    where = re.search(r"WHERE\((\w+)", command)
    keywords += [where[1]] if where and where[1] not in keywords else []
    found = [tuple(row[each] for each in keywords if each in row) for row in place.rows(f"DISPLAY {command}")]
    assert found == SHOWN[command]


MISSING = {
    "CONN(0000000000000000)": ("AMQ8461", 3200),
    "CONN(*) WHERE(USERID EQ nobody)": ("AMQ8461", 3200),
    "CHSTATUS(NO*)": ("AMQ8420", 3065),
    "CHSTATUS(*) SAVED": ("AMQ8420", 3065),
    "QSTATUS(T*) TYPE(HANDLE)": ("AMQ8147", 4091),
    "LSSTATUS(NOT.THERE)": ("AMQ8147", None),
    "CONN(*) TYPE(HANDLE) PID": ("AMQ8405", None),
}


@pytest.mark.rule("LSN-70")
@pytest.mark.parametrize("command", MISSING)
def test_what_is_not_there(place: Place, command: str) -> None:
    answer = place.mqsc(f"DISPLAY {command}")
    assert (answer.ok, answer.amq, answer.reason) == (False, *MISSING[command])


def everybody(kind: int) -> tuple[Parameter, ...]:
    return Cfbs.of(GENERIC_CONNECTION_ID.number, b""), Cfin(c.MQIACF_CONN_INFO_TYPE, kind)


SAME: dict[str, tuple[int, tuple[Parameter, ...]]] = {
    "CONN(*) ALL": (c.MQCMD_INQUIRE_CONNECTION, everybody(c.MQIACF_CONN_INFO_CONN)),
    "CONN(*) TYPE(ALL) ALL": (c.MQCMD_INQUIRE_CONNECTION, everybody(c.MQIACF_CONN_INFO_ALL)),
    "CONN(*) TYPE(HANDLE) OPENOPTS": (
        c.MQCMD_INQUIRE_CONNECTION,
        (*everybody(c.MQIACF_CONN_INFO_HANDLE), Cfil(c.MQIACF_CONNECTION_ATTRS, (c.MQIACF_OPEN_OPTIONS,))),
    ),
    "CHSTATUS(*) ALL": (
        c.MQCMD_INQUIRE_CHANNEL_STATUS,
        (Cfst.of(c.MQCACH_CHANNEL_NAME, "*"), Cfin(c.MQIACH_CHANNEL_INSTANCE_TYPE, c.MQOT_CURRENT_CHANNEL)),
    ),
    "QSTATUS(W*) ALL": (c.MQCMD_INQUIRE_Q_STATUS, (Cfst.of(MQCA_Q_NAME, "W*"),)),
    "QSTATUS(*) TYPE(HANDLE) OPENTYPE(OUTPUT) ALL": (
        c.MQCMD_INQUIRE_Q_STATUS,
        (
            Cfst.of(MQCA_Q_NAME, "*"),
            Cfin(c.MQIACF_Q_STATUS_TYPE, c.MQIACF_Q_HANDLE),
            Cfin(c.MQIACF_OPEN_TYPE, c.MQQSOT_OUTPUT),
        ),
    ),
    "LSSTATUS(*) ALL": (c.MQCMD_INQUIRE_LISTENER_STATUS, (Cfst.of(c.MQCACH_LISTENER_NAME, "*"),)),
    "QMSTATUS ALL": (c.MQCMD_INQUIRE_Q_MGR_STATUS, ()),
}


@pytest.mark.rule("LSN-70")
@pytest.mark.parametrize("command", SAME)
def test_pcf_tells_what_mqsc_shows(place: Place, command: str) -> None:
    number, parameters = SAME[command]
    shown = place.rows(f"DISPLAY {command}")
    for row in shown:
        if "EXTCONN" in row:
            row["CONNID"] = row.pop("EXTCONN") + row.pop("CONN")
    told = place.pcf(number, *parameters).rows
    assert len(told) == len(shown)
    # Some keywords of MQSC have no parameter; of what is blank, PCF may say nothing.
    known = {keyword for row in told for keyword in row}
    assert [{k: v for k, v in row.items() if v != ""} for row in told] == [
        {k: v for k, v in row.items() if k in known and v != ""} for row in shown
    ]
    assert len(known) >= min(4, len(shown[0]))


@pytest.mark.rule("LSN-70")
def test_pcf_finds_one_connection(place: Place) -> None:
    wanted = place.programs()["worker"]
    whole = Cfbs.of(CONNECTION_ID.number, bytes.fromhex(wanted.id))
    (row,) = place.pcf(c.MQCMD_INQUIRE_CONNECTION, whole).rows
    assert (row["CONNID"], row["APPLTAG"]) == (wanted.id, "worker")
    nobody = Cfbs.of(CONNECTION_ID.number, bytes(24))
    assert place.pcf(c.MQCMD_INQUIRE_CONNECTION, nobody).reason == 3200
    assert place.pcf(c.MQCMD_STOP_CONNECTION, nobody).reason == 3174
    assert place.pcf(c.MQCMD_INQUIRE_CONNECTION).reason == 3019


@pytest.mark.rule("LSN-70")
def test_the_console_status_and_metrics_show_the_same(place: Place) -> None:
    with opened(place.home) as console:
        page = console.client.get("/connections").text
        assert all(text in page for text in ("worker", "waiter", "shared-2", "carol"))
        assert "Stop</button>" not in page
        found = console.client.get("/connections?q=carol").text
        assert ("shared-1" in found, "worker" in found) == (True, False)
    with QueueManagerStore.open(place.home, "QM1") as store:
        status = status_of(store, utc_now())["connections"]
    channels = {"APP.SVRCONN": 2, "ADMIN.SVRCONN": 2}
    assert status == {"listeners": [f"127.0.0.1:{place.port}"], "programs": 4, "channels": channels, "unknown": None}
    collector = StateCollector(lambda: QueueManagerStore.open(place.home, "QM1"), "QM1", Chosen(), None)
    samples = {
        (sample.name, *(sample.labels[each] for each in ("queue", "channel") if each in sample.labels)): sample.value
        for family in collector.collect()
        for sample in family.samples
    }
    assert samples["ibmmq_qmgr_connection_count",] == 4
    assert samples["ibmmq_queue_input_handles", "WAIT"] == 1
    assert samples["qpubsub_channel_connections", "ADMIN.SVRCONN"] == 1
    assert samples["qpubsub_channel_programs", "ADMIN.SVRCONN"] == 2
    done = [samples[f"qpubsub_channel_{each}_total", "APP.SVRCONN"] for each in ("puts", "gets")]
    assert done == [3, 2]
    assert samples["qpubsub_channel_received_bytes_total", "APP.SVRCONN"] > 1_000


@pytest.mark.rule("ST-4")
def test_gets_of_programs_count(place: Place) -> None:
    (row,) = place.rows("DISPLAY QSTATUS(WORK) LGETDATE LPUTDATE")
    assert row["LGETDATE"] == row["LPUTDATE"] != ""


# Ending programs


def by_mqsc(place: Place, victim: Connection) -> None:
    answer = place.mqsc(f"STOP CONN({victim.short_id}) EXTCONN({victim.extended_id})")
    assert answer.amq == "AMQ8457"


def by_pcf(place: Place, victim: Connection) -> None:
    whole = Cfbs.of(CONNECTION_ID.number, bytes.fromhex(victim.id))
    assert place.pcf(c.MQCMD_STOP_CONNECTION, whole).reason == 0


def by_the_console(place: Place, victim: Connection) -> None:
    with opened(place.home, ConsoleOptions("127.0.0.1", 8414, write=True)) as console:
        assert "Stop</button>" in console.client.get("/connections").text
        form = {"id": victim.id, "token": console.token("/connections")}
        answer = console.client.post("/connections/stop", data=form, headers={"origin": ORIGIN})
        assert "was ended" in answer.headers["location"].replace("%20", " ")


def by_its_channel(place: Place, victim: Connection) -> None:
    name = Cfst.of(c.MQCACH_CHANNEL_NAME, victim.channel)
    inactive = Cfin(c.MQIACH_CHANNEL_STATUS, c.MQCHS_INACTIVE)
    assert place.pcf(c.MQCMD_STOP_CHANNEL, name, inactive).reason == 0


WAYS: dict[str, Callable[[Place, Connection], None]] = {
    "mqsc": by_mqsc,
    "pcf": by_pcf,
    "console": by_the_console,
    "its channel": by_its_channel,
}


@pytest.mark.rule("LSN-71")
@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_is_ended_is_backed_out(place: Place, way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "qpubsub.listener")
    with place.client("SPARE.SVRCONN", application="victim") as client:
        queue = client.opened("VICTIM", MQOO_OUTPUT)
        client.put(queue, b"lost", MQPMO_SYNCPOINT)
        WAYS[way](place, place.programs()["victim"])
        header, _ = client.receive() or pytest.fail("the client was not told")
        assert header.kind == SegmentType.STATUS
        assert client.receive() is None
    until(lambda: "victim" not in place.programs())
    with QueueManagerStore.open(place.home, "QM1") as store:
        assert store.depth("VICTIM") == 0
    logged = [record for record in caplog.records if getattr(record, "numbers", ())]
    assert [(record.numbers, record.levelname) for record in logged] == [  # type: ignore[attr-defined]
        ((9002,), "INFO"),
        ((9528,), "WARNING"),
        ((9999,), "ERROR"),
    ]
    about = [getattr(logged[0], name) for name in ("address", "channel", "user", "asserted", "program")]
    assert about == ["127.0.0.1", "SPARE.SVRCONN", "alice", "alice", "victim"]


@pytest.mark.rule("LSN-71")
def test_others_on_its_connection_go_on(place: Place) -> None:
    with place.client("SPARE.SVRCONN", application="keeps", sharing=10) as client:
        client.share_connection(3)
        assert client.connect(application="victim") == 0
        queue = client.opened("VICTIM", MQOO_INPUT_SHARED)
        client.request_get(queue, wait_ms=600_000)
        until(lambda: any(each.waits for each in place.programs()["victim"].handles))
        by_mqsc(place, place.programs()["victim"])
        assert client.reply(SegmentType.MQGET).reason == MQRC_CONNECTION_BROKEN
        until(lambda: "victim" not in place.programs())
        assert client.open("VICTIM", MQOO_OUTPUT).reason == MQRC_CONNECTION_BROKEN
        client.conversation = 1
        assert client.open("VICTIM", MQOO_OUTPUT).reason == 0


@pytest.mark.rule("LSN-72")
def test_a_channel_is_stopped_and_started(place: Place) -> None:
    with place.client("SPARE.SVRCONN", application="victim") as client:
        assert place.mqsc("STOP CHANNEL(SPARE.SVRCONN) CONNAME(10.0.0.1)").amq == "AMQ9533"
        assert place.mqsc("STOP CHANNEL(SPARE.SVRCONN) MODE(FORCE)").amq == "AMQ8019"
        assert client.receive() is not None
    shown = "DISPLAY CHSTATUS(SPARE*) STATUS"
    until(lambda: [(row["STATUS"], row["CONNAME"]) for row in place.rows(shown)] == [("STOPPED", "")])
    with pytest.raises(StatusError) as refused:
        MqiClient(place.port, channel="SPARE.SVRCONN")
    assert refused.value.code == CHANNEL_UNAVAILABLE
    assert place.pcf(c.MQCMD_START_CHANNEL, Cfst.of(c.MQCACH_CHANNEL_NAME, "SPARE.SVRCONN")).reason == 0
    place.client("SPARE.SVRCONN").close()


REFUSED = {
    "STOP CONN(0000000000000000)": "AMQ8461",
    "STOP CONN(*)": "AMQ8461",
    "STOP CHANNEL(NOT.THERE) STATUS(INACTIVE)": "AMQ9533",
    "STOP CHANNEL(A*)": "AMQ8404",
    "STOP CHANNEL(APP.SVRCONN) CONNAME(127.0.0.1) STATUS(STOPPED)": "AMQ8404",
    "STOP CHANNEL(APP.SVRCONN) MODE(SLOWLY)": "AMQ8425",
    "STOP CHANNEL(APP.SVRCONN) QMNAME(QM2)": "AMQ8405",
}


@pytest.mark.rule("LSN-72")
@pytest.mark.parametrize("command", REFUSED)
def test_what_cannot_be_stopped(place: Place, command: str) -> None:
    assert place.mqsc(command).amq == REFUSED[command]
    until(lambda: len(place.programs()) == 4)


# A listener that is not there


@pytest.mark.rule("LSN-70")
def test_what_a_listener_leaves_that_was_killed_says_nothing(home: Path) -> None:
    """It leaves a socket at which nobody answers, until the next listener starts."""
    place = Place(home, 0)
    with socket.socket(socket.AF_UNIX) as left, reached(place.directory / SOCKETS.format("0-killed")) as where:
        left.bind(where)
    assert place.mqsc("DISPLAY CONN(*)").amq == "AMQ8461"
    (row,) = place.rows("DISPLAY QMSTATUS ALL")
    assert (row["CONNS"], row["CHINIT"]) == (0, "STOPPED")
    assert place.mqsc("STOP CHANNEL(APP.SVRCONN)").amq == "AMQ9533"
    assert place.mqsc("START CHANNEL(APP.SVRCONN)").amq == "AMQ8147"
    assert place.mqsc("START CHANNEL(SYSTEM.DEF.SVRCONN)").amq == "AMQ8018"
    with listener_at(home):
        (path,) = place.directory.glob(SOCKETS.format("*"))
        assert "killed" not in path.name
        assert path.stat().st_mode & 0o077 == 0
    assert list(place.directory.glob(SOCKETS.format("*"))) == []


@pytest.mark.rule("LSN-70")
def test_of_a_listener_that_does_not_answer_nothing_is_said_to_be_known(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "answers", partial(listeners.answers, within_s=0.1))
    place = Place(home, 0)
    with socket.socket(socket.AF_UNIX) as silent, reached(place.directory / SOCKETS.format("0-silent")) as where:
        silent.bind(where)
        silent.listen()
        answer = place.mqsc("DISPLAY CONN(*)")
        assert (answer.ok, answer.amq) == (False, "AMQ8404")
        assert place.pcf(c.MQCMD_INQUIRE_CONNECTION, *everybody(c.MQIACF_CONN_INFO_CONN)).reason == 3008
        with QueueManagerStore.open(home, "QM1") as store:
            unknown = status_of(store, utc_now())["connections"]["unknown"]
        assert "0-silent.sock has not answered within 0.1 s, so what it does is not known" in unknown
