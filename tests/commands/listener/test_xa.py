"""Global transactions: what XA calls return, and what a crash after each of them leaves behind.

Rows of docs/conformance.md: LSN-48, LSN-49.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from commands.broker.attribute_kinds import Shown
from commands.broker.authority import no_groups
from commands.cli import main
from commands.qmgr.admin import StatementRunner
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.queue_manager import utc_now
from rfh2.channel.segments import (
    TMENDRSCAN,
    TMFAIL,
    TMJOIN,
    TMNOFLAGS,
    TMONEPHASE,
    TMRESUME,
    TMSTARTRSCAN,
    TMSUCCESS,
    TMSUSPEND,
    XA_OK,
    XA_RBROLLBACK,
    XA_RDONLY,
    XAER_DUPID,
    XAER_INVAL,
    XAER_NOTA,
    XAER_OUTSIDE,
    XAER_PROTO,
    SegmentType,
    Xid,
)
from rfh2.mqi_constants import MQGMO_SYNCPOINT, MQOO_INPUT_SHARED, MQOO_OUTPUT, MQPMO_SYNCPOINT
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient

EMPTY = 2033
START, END, PREPARE, COMMIT, ROLLBACK, FORGET, OPEN, CLOSE = (
    SegmentType.XA_START,
    SegmentType.XA_END,
    SegmentType.XA_PREPARE,
    SegmentType.XA_COMMIT,
    SegmentType.XA_ROLLBACK,
    SegmentType.XA_FORGET,
    SegmentType.XA_OPEN,
    SegmentType.XA_CLOSE,
)


def xid(name: str) -> Xid:
    return Xid(-7, name.encode(), b"branch")


@dataclass
class Server:
    """One program of an application server, with the queues IN and OUT open."""

    client: MqiClient
    source: int = 0
    target: int = 0

    def __post_init__(self) -> None:
        self.client.connect()
        self.source = self.client.opened("IN", MQOO_INPUT_SHARED | MQOO_OUTPUT)
        self.target = self.client.opened("OUT", MQOO_INPUT_SHARED | MQOO_OUTPUT)

    def xa(self, kind: int, name: str = "", flags: int = TMNOFLAGS) -> int:
        """What the call returns."""
        body = xid(name).write(self.client.order) if name else b"\x03QM1"
        return self.client.call(kind, body, flags=flags).comp_code

    def recovered(self, most: int = 10, flags: int = TMSTARTRSCAN | TMENDRSCAN) -> list[str]:
        reply = self.client.call(SegmentType.XA_RECOVER, self.client.long(most), flags=flags)
        data, at, found = bytearray(reply.body), 4, []
        for _ in range(reply.comp_code):
            each = Xid.read(data, at, self.client.order)
            assert each == xid(each.transaction.decode())
            found.append(each.transaction.decode())
            at += len(each.write(self.client.order))
        assert reply.body[:4] == self.client.long(len(found))
        assert at == len(data)
        return found

    def work(self) -> None:
        """Take the message of IN to OUT."""
        body = self.client.get(self.source, MQGMO_SYNCPOINT).body
        assert self.client.put(self.target, body, MQPMO_SYNCPOINT)[0] == 0

    def prepare(self, name: str) -> None:
        """Have a branch that is in doubt, with one message that was put."""
        assert self.xa(START, name) == XA_OK
        assert self.client.put(self.target, name.encode(), MQPMO_SYNCPOINT)[0] == 0
        assert (self.xa(END, name, TMSUCCESS), self.xa(PREPARE, name)) == (XA_OK, XA_OK)

    def found(self) -> tuple[list[bytes], list[bytes]]:
        """What is on IN and on OUT; it is taken."""
        return tuple(  # type: ignore[return-value]
            [got.body for _ in range(3) if (got := self.client.get(queue)).reason != EMPTY]
            for queue in (self.source, self.target)
        )


@pytest.fixture
def server(port: int) -> Iterator[Server]:
    with MqiClient(port) as client:
        yield Server(client)


@pytest.fixture
def other(port: int) -> Iterator[Server]:
    with MqiClient(port, order="big") as client:
        yield Server(client)


@pytest.mark.rule("LSN-48")
def test_what_the_calls_return(server: Server, other: Server) -> None:
    calls: list[tuple[Server, int, str, int, int]] = [
        (server, OPEN, "", TMNOFLAGS, XA_OK),
        (server, START, "a", TMNOFLAGS, XA_OK),
        (server, START, "b", TMNOFLAGS, XAER_PROTO),
        (other, START, "a", TMNOFLAGS, XAER_DUPID),
        (other, START, "a", TMJOIN, XAER_PROTO),
        (other, START, "x", TMJOIN, XAER_NOTA),
        (other, START, "x", TMFAIL, XAER_INVAL),
        (other, END, "x", TMSUCCESS, XAER_NOTA),
        (other, END, "a", TMSUCCESS, XAER_PROTO),
        (other, PREPARE, "a", TMNOFLAGS, XAER_PROTO),
        (server, END, "a", TMNOFLAGS, XAER_INVAL),
        (server, END, "a", TMSUSPEND, XA_OK),
        (server, START, "a", TMJOIN, XAER_PROTO),
        (server, PREPARE, "a", TMNOFLAGS, XAER_PROTO),
        (server, START, "a", TMRESUME, XA_OK),
        (server, END, "a", TMSUCCESS, XA_OK),
        (server, END, "a", TMSUCCESS, XAER_PROTO),
        (server, START, "a", TMRESUME, XAER_PROTO),
        (server, START, "a", TMJOIN, XA_OK),
        (server, END, "a", TMSUCCESS, XA_OK),
        (server, COMMIT, "a", TMNOFLAGS, XAER_PROTO),
        (server, PREPARE, "a", TMNOFLAGS, XA_RDONLY),
        (server, COMMIT, "a", TMNOFLAGS, XAER_NOTA),
        (server, COMMIT, "a", TMSUCCESS, XAER_INVAL),
        (server, COMMIT, "a", TMONEPHASE, XAER_NOTA),
        (server, ROLLBACK, "a", TMNOFLAGS, XAER_NOTA),
        (server, FORGET, "a", TMNOFLAGS, XAER_NOTA),
    ]
    assert [each.xa(kind, name, flags) for each, kind, name, flags, _ in calls] == [each[-1] for each in calls]
    server.prepare("p")
    assert server.xa(START, "p") == XAER_DUPID
    assert [server.xa(kind, "p") for kind in (PREPARE, FORGET)] == [XAER_PROTO] * 2
    assert server.xa(COMMIT, "p", TMONEPHASE) == XAER_PROTO
    assert other.recovered() == ["p"]
    assert (other.xa(COMMIT, "p"), other.xa(COMMIT, "p"), other.xa(CLOSE)) == (XA_OK, XAER_NOTA, XA_OK)
    assert other.found() == ([], [b"p"])


@pytest.mark.rule("LSN-48")
def test_what_a_branch_does_is_apart_from_the_program_s_own_unit_of_work(server: Server) -> None:
    client = server.client
    client.put(server.source, b"own", MQPMO_SYNCPOINT)
    assert server.xa(START, "a") == XAER_OUTSIDE
    assert client.commit() == 0
    assert server.xa(START, "a") == XA_OK
    server.work()
    assert (client.commit(), client.backout()) == (2012, 2012)
    assert server.xa(END, "a", TMSUCCESS) == XA_OK
    client.put(server.source, b"other", MQPMO_SYNCPOINT)
    assert client.commit() == 0
    assert server.found() == ([b"other"], [])
    assert server.xa(COMMIT, "a", TMONEPHASE) == XA_OK
    assert server.found() == ([], [b"own"])


def test_a_branch_that_failed_is_backed_out(server: Server) -> None:
    for last, returned in ((PREPARE, XA_RBROLLBACK), (COMMIT, XA_RBROLLBACK), (ROLLBACK, XA_OK)):
        server.client.put(server.source, b"one")
        assert server.xa(START, "a") == XA_OK
        server.work()
        assert server.xa(END, "a", TMFAIL) == XA_OK
        assert server.xa(last, "a", TMONEPHASE if last == COMMIT else TMNOFLAGS) == returned
        assert server.found() == ([b"one"], [])


def test_many_in_doubt_are_told_some_at_a_time(server: Server) -> None:
    names = [f"branch {n:02}" for n in range(25)]
    for name in names:
        server.prepare(name)
    assert server.recovered(15, TMSTARTRSCAN) + server.recovered(15, TMNOFLAGS) == names
    assert server.recovered(15, TMENDRSCAN) == []


def test_what_is_in_doubt_for_a_queue_that_has_gone_goes_with_it(home: Path, server: Server, other: Server) -> None:
    client = server.client
    made = client.open("SYSTEM.DEFAULT.MODEL.QUEUE", MQOO_INPUT_SHARED | MQOO_OUTPUT)
    assert server.xa(START, "a") == XA_OK
    client.put(made.handle, b"reply", MQPMO_SYNCPOINT)
    client.put(server.target, b"stays", MQPMO_SYNCPOINT)
    assert (server.xa(END, "a", TMSUCCESS), server.xa(PREPARE, "a")) == (XA_OK, XA_OK)
    client.close()
    assert other.xa(COMMIT, "a") == XA_OK
    assert other.found() == ([], [b"stays"])
    with QueueManagerStore.open(home, "QM1") as store:
        assert store.database.connection.execute("SELECT count(*) FROM messages").fetchone() == (0,)


BEFORE, AFTER = ([b"one"], []), ([], [b"one"])


@pytest.mark.rule("LSN-48")
@pytest.mark.parametrize(("last", "outcome"), [(COMMIT, AFTER), (ROLLBACK, BEFORE)])
def test_after_a_crash_at_any_step_everything_is_there_once(
    home: Path, tmp_path_factory: pytest.TempPathFactory, last: int, outcome: tuple[list[bytes], list[bytes]]
) -> None:
    """The files as they are after each step are what a machine has that was switched off then.

    What was prepared is recovered and ended; whatever was not is backed out.
    """
    left: list[tuple[str, Path]] = []
    with listener_at(home) as port, MqiClient(port) as client:
        server = Server(client)
        client.put(server.source, b"one", persistence=1)
        steps = {
            "start": lambda: server.xa(START, "a"),
            "work": server.work,
            "end": lambda: server.xa(END, "a", TMSUCCESS),
            "prepare": lambda: server.xa(PREPARE, "a"),
            "ended": lambda: server.xa(last, "a"),
        }
        for name, step in steps.items():
            assert step() in (None, XA_OK)
            left.append((name, tmp_path_factory.mktemp("left") / "home"))
            shutil.copytree(home, left[-1][1], ignore=shutil.ignore_patterns("*.sock"))
    for name, copy in left:
        with listener_at(copy) as port, MqiClient(port) as client:
            server = Server(client)
            in_doubt = server.recovered()
            assert in_doubt == (["a"] if name == "prepare" else []), name
            if in_doubt:
                assert server.found() == ([], []), "what is in doubt can be seen"
                assert server.xa(last, "a") == XA_OK
            assert server.recovered() == []
            assert server.found() == (outcome if name in ("prepare", "ended") else BEFORE), name


# With a listener, which then has its programs see the messages, and without one.
@pytest.mark.rule("LSN-49")
@pytest.mark.parametrize("listens", [True, False])
def test_what_is_in_doubt_is_shown_and_ended_by_an_administrator(home: Path, listens: bool) -> None:
    with listener_at(home) as port, MqiClient(port) as client:
        server = Server(client)
        client.put(server.source, b"one")
        server.prepare("lost")
        assert server.xa(START, "moved") == XA_OK
        server.work()
        assert (server.xa(END, "moved", TMSUCCESS), server.xa(PREPARE, "moved")) == (XA_OK, XA_OK)
        if listens:
            _end_both(home)
            assert server.found() == ([b"one"], [b"lost"])
            assert server.xa(COMMIT, "lost") == XAER_NOTA
    if not listens:
        _end_both(home)
        with listener_at(home) as port, MqiClient(port) as client:
            assert Server(client).found() == ([b"one"], [b"lost"])


def _end_both(home: Path) -> None:
    rows = {row["QMURID"]: row["EXTURID"] for row in mqsc(home, "DISPLAY CONN(*) WHERE(UOWSTATE EQ PREPARED) ALL")}
    branch = f"XA_BQUAL[{b'branch'.hex().upper()}]"
    assert rows == {
        "0.1": f"XA_FORMATID[FFFFFFF9] XA_GTRID[{b'lost'.hex().upper()}] {branch}",
        "0.2": f"XA_FORMATID[FFFFFFF9] XA_GTRID[{b'moved'.hex().upper()}] {branch}",
    }
    assert [row["UNCOM"] for row in mqsc(home, "DISPLAY QSTATUS(*) WHERE(UNCOM EQ YES)")] == ["YES", "YES"]
    told = [json.loads(line) for line in transactions(home, "--json").output.splitlines()]
    assert [(each["transaction"], each["put"], each["got"]) for each in told] == [("0.1", 1, 0), ("0.2", 1, 1)]
    calls = (
        ("--commit", "0.1"),
        ("--backout", "0,2"),
        ("--commit", "2"),
        ("--commit", "x"),
        ("--commit", "1", "--backout", "2"),
    )
    assert [transactions(home, *each).exit_code for each in calls] == [0, 0, 1, 2, 2]
    assert mqsc(home, "DISPLAY QSTATUS(*) WHERE(UNCOM EQ YES)") == []
    assert transactions(home).stdout == ""


def mqsc(home: Path, text: str) -> list[dict[str, Shown]]:
    with QueueManagerStore.open(home, "QM1") as store:
        ((_, answer),) = StatementRunner(store, "admin", no_groups, utc_now).run_script(text)
        return [dict(row) for row in answer.objects or answer.found]


def transactions(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["rsvmqtrn", "-m", "QM1", "--home", str(home), *arguments])
