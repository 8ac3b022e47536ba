"""MQ clients' units of work while the server of a home in PostgreSQL fails, or the listener dies.

What is put and got in syncpoint is on no disk before its commit: a server that crashes may have lost a part of it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from commands.broker.objects import QueueManager
from commands.config.home import PostgresqlHome
from commands.qmgr.store import QueueManagerStore
from rfh2.mqi_constants import (
    MQGMO_SYNCPOINT,
    MQOO_INPUT_SHARED,
    MQOO_INQUIRE,
    MQOO_OUTPUT,
    MQPMO_SYNCPOINT,
    MQRC_BACKED_OUT,
    MQRC_Q_MGR_NOT_AVAILABLE,
)
from tests.commands.listener.conftest import listener_at
from tests.commands.listener.mqi_client import MqiClient
from tests.postgresql import PostgresqlServer, empty, needs_postgresql, postgresql_server
from tests.waiting import PATIENCE_S, until

pytestmark = needs_postgresql
MAX_DEPTH = 15


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    """One of this module's own, for it is killed."""
    with postgresql_server() as made:
        yield made


@pytest.fixture
def store(
    server: PostgresqlServer, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[QueueManagerStore]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    home = server.home()
    with QueueManagerStore.create(home, QueueManager("QM1"), patience_s=PATIENCE_S) as made:
        with made.unit_of_work() as unit:
            unit.put("IN", None, b"in")
        yield made
    empty(home)


class Program:
    """One that moves a message from IN to OUT, in syncpoint."""

    def __init__(self, client: MqiClient) -> None:
        assert client.connect() == 0
        self.client = client
        self.source, self.target = (
            client.opened("IN", MQOO_INPUT_SHARED | MQOO_INQUIRE),
            client.opened("OUT", MQOO_OUTPUT),
        )

    def put(self) -> int:
        return self.client.put(self.target, b"out", MQPMO_SYNCPOINT, persistence=1)[0]

    def move(self) -> None:
        got = self.client.get(self.source, MQGMO_SYNCPOINT)
        assert (got.reason, got.body, self.put()) == (0, b"in", 0)

    def wait_for_server(self) -> None:
        """Until the listener has a connection to the server again."""
        until(lambda: self.client.inquire(self.source, MAX_DEPTH, integers=1).reason == 0, "the server")


@pytest.fixture
def program(store: QueueManagerStore) -> Iterator[Program]:
    with listener_at(store.home) as port, MqiClient(port) as client:
        mover = Program(client)
        mover.move()
        yield mover


Left = tuple[list[bytes], list[bytes]]
MOVED: Left = ([], [b"out"])
AS_BEFORE: Left = ([b"in"], [])


def left(store: QueueManagerStore) -> Left:
    on_in, on_out = ([message.body for message in store.browse(queue)] for queue in ("IN", "OUT"))
    return on_in, on_out


def crash(server: PostgresqlServer, _store: QueueManagerStore) -> None:
    server.kill()
    server.start()


def cut(_server: PostgresqlServer, store: QueueManagerStore) -> None:
    with QueueManagerStore.open(store.home, "QM1") as other:
        other.database.connection.execute(
            "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
            " WHERE application_name LIKE 'qpubsub%' AND pid <> pg_backend_pid()"
        )
        # As another listener does when it starts: the locks of the first one's programs are free.
        other.end_lost_connections()


@pytest.mark.rule("LSN-74")
@pytest.mark.parametrize("fail", [crash, cut])
@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda program: program.client.commit(), MQRC_BACKED_OUT),
        (lambda program: program.client.backout(), 0),
        (lambda program: program.put() and program.client.commit(), MQRC_BACKED_OUT),
        (lambda program: program.client.disconnect(), MQRC_BACKED_OUT),
    ],
    ids=["commit", "backout", "put", "disconnect"],
)
def test_a_unit_of_work_that_may_have_lost_a_part_is_backed_out(
    server: PostgresqlServer,
    store: QueueManagerStore,
    program: Program,
    fail: Callable[[PostgresqlServer, QueueManagerStore], None],
    end: Callable[[Program], int],
    reason: int,
) -> None:
    fail(server, store)
    program.wait_for_server()
    assert end(program) == reason
    with QueueManagerStore.open(store.home, "QM1") as other:
        assert left(other) == AS_BEFORE
    with listener_at(store.home) as port, MqiClient(port) as client:
        again = Program(client)
        again.move()
        assert client.commit() == 0
    with QueueManagerStore.open(store.home, "QM1") as other:
        assert left(other) == MOVED


@contextmanager
def full(store: QueueManagerStore) -> Iterator[None]:
    """The disk of the server is full, as its words are: nothing can be changed."""
    execute = store.database.connection.execute
    execute(
        """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '53100'; END $$"""
    )
    execute("CREATE TRIGGER refused BEFORE UPDATE OR DELETE ON messages FOR EACH ROW EXECUTE FUNCTION refuse()")
    yield
    execute("DROP TRIGGER refused ON messages")


@pytest.mark.rule("LSN-74")
@pytest.mark.parametrize(
    ("first", "then", "reason", "after"),
    [
        ("commit", "commit", 0, MOVED),
        ("commit", "backout", 0, AS_BEFORE),
        ("backout", "backout", 0, AS_BEFORE),
        ("backout", "commit", MQRC_BACKED_OUT, AS_BEFORE),
    ],
)
def test_what_the_server_refuses_to_end_can_be_ended_later_but_what_was_to_be_backed_out_is_never_committed(
    store: QueueManagerStore, program: Program, first: str, then: str, reason: int, after: Left
) -> None:
    ends = {"commit": program.client.commit, "backout": program.client.backout}
    with full(store):
        assert ends[first]() == MQRC_Q_MGR_NOT_AVAILABLE
    assert ends[then]() == reason
    assert left(store) == after


def test_what_a_program_leaves_when_it_dies_is_undone_when_the_server_lets_it(
    store: QueueManagerStore, program: Program
) -> None:
    with full(store):
        assert program.client.disconnect() == MQRC_Q_MGR_NOT_AVAILABLE
    until(lambda: left(store) == AS_BEFORE, "the messages to come back")


LISTENER = """
import sys
from commands.config.home import parse_home
from tests.commands.listener.conftest import listener_at
with listener_at(parse_home(sys.argv[1])) as port:
    print(port, flush=True)
    sys.stdin.read()
"""


def test_what_the_programs_of_a_killed_listener_have_not_committed_is_undone(store: QueueManagerStore) -> None:
    command = [sys.executable, "-c", LISTENER, cast(PostgresqlHome, store.home).url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        with MqiClient(int(listener.stdout.readline())) as client:
            Program(client).move()
            assert left(store) == ([], [])
            listener.kill()
            listener.wait()

    def undone() -> bool:
        store.end_lost_connections()  # as a listener does that starts, and the processor once a minute
        return left(store) == AS_BEFORE

    until(undone, "the messages to come back")
