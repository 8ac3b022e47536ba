"""A workload in shares: the file, which share a message is for, who is there, and what each takes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from commands.broker.objects import CONTROL_QUEUE, QueueManager
from commands.config.home import Home, PostgresqlHome, process_here
from commands.explain.build import CommandSpec, command_message
from commands.network.estate_file import TableFileError
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.postgresql_database import Members, members
from commands.running.sharing import NoShareError, Share, Shares, SharingBridge, part_of, read_shares, share_of
from rfh2.captured import CapturedMessage
from rfh2.errors import StoreError
from rfh2.mqmd import Mqmd
from tests.commands.cli_runs import run
from tests.postgresql import needs_postgresql
from tests.shared_workload import FILE, BridgeProcess, active_in, board_of, bridge_of, make_workload, stream_of
from tests.waiting import PATIENCE_S, until

SHARES = Shares(
    name="W",
    shares=(Share(qmgr="W.SPORT", queues=("SPORT.*", "SCORES?")), Share(qmgr="W.NEWS", queues=("NEWS*", "SPORT.X"))),
)

FILES = [
    ("no shares", 'name = "W"\n', "it has no [[share]]"),
    ("no name", '[[share]]\nqmgr = "A"\nqueues = ["*"]\n', "name is missing"),
    ("a bad name", 'name = "a b"\n[[share]]\nqmgr = "A"\nqueues = ["*"]\n', "line 1: 'a b' is not a name"),
    ("an unknown key", 'name = "W"\nshares = 1\n', "line 2: there is no key shares; did you mean share?"),
    (
        "a misspelt key",
        'name = "W"\n[[share]]\nqmgr = "A"\nqueues = ["*"]\nconfg = "x"\n',
        "line 5: there is no key confg; did you mean config?",
    ),
    ("no queues", 'name = "W"\n[[share]]\nqmgr = "A"\nqueues = []\n', "line 4: queues: "),
    (
        "one twice",
        'name = "W"\n[[share]]\nqmgr = "A"\nqueues = ["A"]\n[[share]]\nqmgr = "A"\nqueues = ["B"]\n',
        "line 6: another share has the queue manager A",
    ),
]


@pytest.mark.parametrize(("text", "why"), [each[1:] for each in FILES], ids=[each[0] for each in FILES])
def test_a_file_that_is_not_valid(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(TableFileError) as error:
        read_shares(tmp_path / FILE)
    assert why in str(error.value)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('name = "W"\n[[share]]\nqmgr = "A"\nqueues = ["*"]\nconfig = "a.toml"\n')
    assert read_shares(tmp_path / FILE).shares == (Share(qmgr="A", queues=("*",), config=tmp_path / "a.toml"),)


def control(*, queue: str = "", reply_to_q: str = "", stream: str = "") -> CapturedMessage:
    """A RegSub on the control queue, with an MQRFH if it names a stream."""
    tags = {"QName": queue or None, "StreamName": stream or None}
    spec = CommandSpec("RegSub", ("t",), tags=tags, rfh1=bool(stream), mqmd=Mqmd(reply_to_q=reply_to_q))
    return command_message(spec)


def on(queue: str) -> CapturedMessage:
    return CapturedMessage(seq=1, queue=queue, body_hex="")


PLACES = [
    ("a stream queue", on("SPORT.STREAM"), "W.SPORT"),
    ("the first pattern counts", on("SPORT.X"), "W.SPORT"),
    ("one character", on("SCORES1"), "W.SPORT"),
    ("another share", on("NEWS"), "W.NEWS"),
    ("a subscriber queue that a command names", control(queue="NEWS.BOARD", reply_to_q="SCORES1"), "W.NEWS"),
    ("a reply queue", control(reply_to_q="SCORES1"), "W.SPORT"),
    ("a stream, if no share has the queue", control(queue="OTHER", stream="NEWS"), "W.NEWS"),
]


@pytest.mark.parametrize(("message", "qmgr"), [each[1:] for each in PLACES], ids=[each[0] for each in PLACES])
def test_a_message_is_for_the_share_of_its_queue(message: CapturedMessage, qmgr: str) -> None:
    assert share_of(message, SHARES).qmgr == qmgr


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (on("OTHER"), "no share has OTHER"),
        (control(queue="OTHER", reply_to_q="ELSE"), "no share has OTHER or ELSE"),
        (control(), "it is on SYSTEM.BROKER.CONTROL.QUEUE, and names none"),
    ],
)
def test_a_message_that_is_for_none(message: CapturedMessage, why: str) -> None:
    with pytest.raises(NoShareError) as error:
        share_of(message, SHARES)
    assert why in str(error.value)


@pytest.mark.parametrize("shares", range(9))
@pytest.mark.parametrize("members", range(1, 6))
def test_the_parts_make_the_whole(shares: int, members: int) -> None:
    names = range(100, 100 + members)
    parts = [part_of(shares, names, name) for name in names]
    assert sum(parts) == shares
    assert max(parts) - min(parts) <= 1


MEMBER = """
import sys, time
from commands.config.home import PostgresqlHome
from commands.qmgr.store.postgresql_database import Members
members = Members(PostgresqlHome(sys.argv[1]), "W", 0.5)
print(flush=True)
while True:
    members.look()
    time.sleep(0.05)
"""


@pytest.fixture
def other(postgresql_home: PostgresqlHome) -> Iterator[subprocess.Popen[str]]:
    """Another member, in a process of its own."""
    command = [sys.executable, "-c", MEMBER, postgresql_home.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@needs_postgresql
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_member_that_is_killed_or_stopped_counts_no_more(
    postgresql_home: PostgresqlHome, other: subprocess.Popen[str], number: signal.Signals
) -> None:
    with closing(Members(postgresql_home, "W", 3.0)) as own:
        assert len(own.look()[0]) == 2
        assert own.me in own.look()[0]
        assert process_here(other.pid) in members(postgresql_home, "W")
        other.send_signal(number)
        until(lambda: own.look()[0] == [own.me], "the other one to count no more")
    assert members(postgresql_home, "W") == []


@needs_postgresql
def test_a_member_whose_session_has_ended_joins_again(postgresql_home: PostgresqlHome) -> None:
    with closing(Members(postgresql_home, "W", 0.1)) as own:
        until(lambda: members(postgresql_home, "W") == [], "the server to end a session that asks nothing")
        with pytest.raises(StoreError):
            own.look()
        assert own.look()[0] == [own.me]


@pytest.fixture
def bridges() -> Iterator[list[BridgeProcess]]:
    """Bridges that end with the test."""
    started: list[BridgeProcess] = []
    yield started
    for each in started:
        each.end()


def shares(home: Home, place: Path, *words: str) -> tuple[int, str, str]:
    where = home.url if isinstance(home, PostgresqlHome) else str(home)
    done = run("shares", words[0], str(place / FILE), *words[1:], "--home", where)
    return done.code, done.out, done.talk


@needs_postgresql
@pytest.mark.rule("QM-19")
@pytest.mark.faults
def test_the_shares_of_a_bridge_that_is_killed_go_to_another_one(
    postgresql_home: PostgresqlHome, tmp_path: Path, bridges: list[BridgeProcess]
) -> None:
    names = make_workload(postgresql_home, tmp_path, 3)

    def held_by() -> list[int | None]:
        return [bridge_of(active_in(postgresql_home, name)) for name in names]

    code, shown, talk = shares(postgresql_home, tmp_path, "status")
    assert (code, "3 shares, 0 bridges" in shown) == (1, True)
    assert "no bridge works for S1, S2, S3" in talk
    bridges.append(BridgeProcess(postgresql_home, tmp_path))
    until(lambda: held_by() == [bridges[0].pid] * 3, "one bridge to work for all")
    bridges.append(BridgeProcess(postgresql_home, tmp_path))
    until(lambda: sorted(map(held_by().count, [each.pid for each in bridges])) == [1, 2], "both to have their part")
    for name in names:
        with QueueManagerStore.open(postgresql_home, name) as store:
            until(lambda store=store, name=name: store.depth(CONTROL_QUEUE) == 0, "the subscriptions")
    found = json.loads(shares(postgresql_home, tmp_path, "status", "--json")[1])
    assert sorted(found["bridges"]) == sorted(process_here(each.pid) for each in bridges)
    assert [row["process"] for row in found["shares"]] == [active_in(postgresql_home, name) for name in names]
    bridges[0].signal(signal.SIGKILL, alone=True)
    until(lambda: held_by() == [bridges[1].pid] * 3, "the other one to work for all")
    (tmp_path / "capture.jsonl").write_text(
        "".join(
            CapturedMessage(seq=n, queue=stream_of(name), body_hex=publication(n).hex()).model_dump_json() + "\n"
            for n, name in enumerate(names)
        )
    )
    assert shares(postgresql_home, tmp_path, "put", str(tmp_path / "capture.jsonl"))[0] == 0
    for name in names:
        with QueueManagerStore.open(postgresql_home, name) as store:
            until(lambda store=store, name=name: store.depth(board_of(name)) == 1, "the publication")
    bridges[1].signal(signal.SIGTERM, alone=True)
    assert bridges[1].process.wait(PATIENCE_S) == 0
    assert held_by() == [None] * 3
    assert members(postgresql_home, "WORKLOAD") == []


def publication(n: int) -> bytes:
    return command_message(CommandSpec("Publish", (f"t{n}",), data=str(n))).body


@needs_postgresql
@pytest.mark.faults
def test_a_run_that_is_held_up_is_ended_and_begun_again(
    postgresql_home: PostgresqlHome, tmp_path: Path, bridges: list[BridgeProcess]
) -> None:
    make_workload(postgresql_home, tmp_path, 1)
    bridges.append(BridgeProcess(postgresql_home, tmp_path, lease_s=1.0))
    until(lambda: bridge_of(active_in(postgresql_home, "S1")) == bridges[0].pid, "the share to be worked for")
    first = active_in(postgresql_home, "S1")
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    until(
        lambda: (now := active_in(postgresql_home, "S1")) != first and bridge_of(now) == bridges[0].pid,
        "another run of the same bridge",
    )


@needs_postgresql
@pytest.mark.faults
def test_a_share_has_the_options_of_its_file_and_of_the_line(
    postgresql_home: PostgresqlHome, tmp_path: Path, bridges: list[BridgeProcess]
) -> None:
    make_workload(postgresql_home, tmp_path, 1)
    (tmp_path / "s1.toml").write_text(f'[run]\nlog = "{tmp_path / "s1.log"}"\n')
    (tmp_path / FILE).write_text((tmp_path / FILE).read_text() + 'config = "s1.toml"\n')
    bridges.append(BridgeProcess(postgresql_home, tmp_path, "--log-format", "text"))
    log = tmp_path / "s1.log"
    until(lambda: log.exists() and "AMQ5806I queued publish/subscribe started" in log.read_text(), "a line of text")


class Alone:
    """A membership of one bridge. holders: who works for what."""

    me = 7

    def __init__(self) -> None:
        self.holders: dict[str, str] = {}
        self.is_away = False

    def look(self) -> tuple[list[int], dict[str, str]]:
        if self.is_away:
            raise StoreError("the server cannot be reached")
        return [7], self.holders


@pytest.fixture
def tried(tmp_path: Path) -> Path:
    return tmp_path / "tried"


@pytest.fixture
def alone() -> Alone:
    return Alone()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def bridge(alone: Alone, tried: Path, said: list[str]) -> SharingBridge:
    """Of one share, whose ``run`` ends at once."""

    def serve(share: Share) -> int:
        with tried.open("a") as file:
            file.write(f"{share.qmgr}\n")
        return 2

    return SharingBridge((Share(qmgr="S1", queues=("*",)),), alone, serve, said.append, 3.0)


def test_a_share_whose_run_fails_is_tried_again_with_pauses(bridge: SharingBridge, tried: Path) -> None:
    stop = threading.Event()
    until(lambda: bridge.step() or (tried.exists() and tried.read_text() == "S1\n" * 2), "a second try")
    for _ in range(3):
        bridge.step()
    assert tried.read_text() == "S1\n" * 2, "the pause is not over"
    assert bridge.shares == {}
    stop.set()
    bridge.run(stop)


def test_what_another_one_works_for_is_not_begun_and_nothing_is_while_the_server_is_away(
    bridge: SharingBridge, alone: Alone, tried: Path, said: list[str]
) -> None:
    alone.holders["S1"] = "4711 on elsewhere"
    bridge.step()
    alone.is_away = True
    for _ in range(3):
        bridge.step()
    assert not tried.exists()
    assert said == ["the server cannot be reached; it is tried again"]


def test_create_makes_what_is_missing_and_where_says_where(home: Home, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(
        'name = "W"\n[[share]]\nqmgr = "A"\nqueues = ["A.*"]\n[[share]]\nqmgr = "B"\nqueues = ["B"]\n'
    )
    code, _, talk = shares(home, tmp_path, "where", "A.X")
    assert (code, "make what is missing with: qpubsub shares create" in talk) == (2, True)
    QueueManagerStore.create(home, QueueManager("A")).close()
    code, _, talk = shares(home, tmp_path, "create")
    assert code == 0
    assert "queue manager A exists already" in talk
    assert f"queue manager B created in {home / 'B' if isinstance(home, Path) else home}\n" in talk
    assert shares(home, tmp_path, "where", "B", "A.X")[:2] == (0, "B\nA\n")
    found = json.loads(shares(home, tmp_path, "where", "B", "A.X", "--json")[1])
    assert found == {"format": 1, "queues": {"B": "B", "A.X": "A"}}
    assert shares(home, tmp_path, "where", "C")[0] == 2


def test_put_reports_what_no_share_has_and_puts_the_rest(home: Home, tmp_path: Path) -> None:
    make_workload(home, tmp_path, 2)
    lines = [
        CapturedMessage(seq=n, queue=queue, body_hex="") for n, queue in enumerate(("S1.X", "OTHER", "S2.X", "S1.X"))
    ]
    (tmp_path / "c.jsonl").write_text("".join(each.model_dump_json() + "\n" for each in lines))
    code, shown, talk = shares(home, tmp_path, "put", str(tmp_path / "c.jsonl"), "--json")
    assert (code, json.loads(shown)) == (1, {"format": 1, "put": {"S1": 2, "S2": 1}, "problems": 1})
    assert "record 2: no share has OTHER" in talk


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("run",), "bridges share the queue managers of a home in PostgreSQL; in a directory, start qpubsub run"),
        (("run", "--home", "postgresql:///x", "--", "--once"), "--once: shares run gives these to run itself"),
        (("status", "X"), "Got unexpected extra argument (X)"),
        (("put",), "Missing argument 'CAPTURE...'"),
        (("where",), "Missing argument 'QUEUE...'"),
    ],
)
def test_what_is_refused(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    make_workload(tmp_path, tmp_path, 1)
    done = run("shares", words[0], str(tmp_path / FILE), "--home", str(tmp_path), *words[1:])
    assert done.code == 2
    assert why in done.talk
