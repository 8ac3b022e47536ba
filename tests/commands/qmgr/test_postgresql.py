"""What only a home in PostgreSQL has: connections that are lost, a server that dies, URLs and passwords."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, cast

import pytest

from commands.broker.objects import QueueManager
from commands.config.home import PostgresqlHome, parse_home
from commands.disk.errors import StoreBusyError, StoreFullError
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.counters import _ADD_QUEUE
from commands.qmgr.store.database import EngineError, Values
from commands.qmgr.store.opening import connect, processor_of, take_over
from commands.qmgr.store.port import ALL_COLUMNS, INSERT_MESSAGE
from rfh2.errors import StoreError
from tests.commands.qmgr.test_dynamic_queues import send
from tests.commands.qmgr.test_processor import CONTROL, STREAM
from tests.postgresql import PostgresqlServer, empty, needs_postgresql, postgresql_server
from tests.waiting import PATIENCE_S

pytestmark = needs_postgresql


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    """One of this module's own, for it is killed."""
    with postgresql_server() as made:
        yield made


@pytest.fixture
def store(server: PostgresqlServer, postgresql_home: PostgresqlHome) -> Iterator[QueueManagerStore]:
    del postgresql_home  # its directory of local things
    home = server.home()
    with QueueManagerStore.create(home, QueueManager("QM1"), patience_s=PATIENCE_S) as made:
        yield made
    empty(home)


def bodies(store: QueueManagerStore) -> list[bytes]:
    return [message.body for message in store.browse("Q")] if store.find_queue("Q") else []


def put(store: QueueManagerStore, *data: bytes) -> None:
    with store.unit_of_work() as unit:
        for body in data:
            unit.put("Q", None, body)


def noted_trips(store: QueueManagerStore, patched: pytest.MonkeyPatch) -> list[str]:
    """From now on, the word with which each statement begins that is waited for; "" for those that end a copy."""
    connection, trips = cast(Any, store.database).connection, list[str]()
    send = connection._send

    def noted(last: Any) -> None:
        trips.append("" if last is None else last.args[0].split()[0])
        send(last)

    patched.setattr(connection, "_send", noted)
    return trips


def cut(store: QueueManagerStore) -> None:
    """Have the server end the store's session, which notices nothing yet."""
    mine = cast(Any, store.database).connection.session.info.backend_pid
    with QueueManagerStore.open(store.home, store.name) as other:
        other.database.connection.execute("SELECT pg_terminate_backend(CAST(? AS INTEGER))", (mine,))
        gone = "SELECT 1 FROM pg_stat_activity WHERE pid = ?"
        while other.database.connection.execute(gone, (mine,)).fetchone() is not None:
            pass


def test_a_connection_that_is_lost_between_units_of_work_is_made_again(store: QueueManagerStore) -> None:
    put(store, b"1")
    cut(store)
    with suppress(StoreError):  # whoever asks first may be told
        put(store, b"2")
    put(store, b"3")
    assert bodies(store)[0] == b"1"
    assert bodies(store)[-1] == b"3"


def test_a_unit_of_work_whose_connection_is_lost_is_backed_out(store: QueueManagerStore) -> None:
    unit = store.unit_of_work()
    unit.put("Q", None, b"lost")
    cut(store)
    with pytest.raises(StoreError, match="connection was lost"):
        unit.commit()
    put(store, b"next")
    assert bodies(store) == [b"next"]


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("others", [0, 3])
def test_whether_a_commit_was_done_is_found_out(
    store: QueueManagerStore, monkeypatch: pytest.MonkeyPatch, is_done: bool, others: int
) -> None:
    """others: units of work that other programs commit before the connection is there again."""
    put(store, b"before")
    connection = cast(Any, store.database).connection
    execute = connection.execute

    def lost(statement: str, values: Values = (), /) -> Any:
        if statement != "COMMIT":
            return execute(statement, values)
        monkeypatch.undo()
        if is_done:
            execute(statement)
        connection.session.pgconn.finish()
        with QueueManagerStore.open(store.home, store.name, patience_s=PATIENCE_S) as other:
            for _ in range(others):
                put(other, b"another's")
        raise EngineError("", "the connection was cut in the commit")

    monkeypatch.setattr(connection, "execute", lost)
    unit = store.unit_of_work()
    unit.put("Q", None, b"perhaps")
    if is_done:
        unit.commit()
    else:
        with pytest.raises(StoreError, match="nothing of this unit of work was kept"):
            unit.commit()
    assert sorted(bodies(store)) == sorted([b"before", *[b"perhaps"] * is_done, *[b"another's"] * others])
    put(store, b"behind")
    assert bodies(store)[-1] == b"behind"


@pytest.mark.parametrize("how", ["immediate", "kill"])
def test_a_server_that_dies_loses_no_unit_of_work_and_keeps_no_half(
    server: PostgresqlServer, store: QueueManagerStore, how: str
) -> None:
    put(store, b"1")
    unit = store.unit_of_work()
    unit.get("Q")
    unit.put("Q", None, b"half")
    if how == "kill":
        server.kill()
    else:
        server.stop("immediate")
    server.start()
    with pytest.raises(StoreError, match="connection was lost"):
        unit.commit()
    put(store, b"2")
    assert bodies(store) == [b"1", b"2"]


HOLDS = """
import os, signal, sys, time
from commands.config.home import parse_home
from commands.qmgr.store import QueueManagerStore
with QueueManagerStore.open(parse_home(sys.argv[1]), "QM1") as store, store.processor_lock():
    with store.unit_of_work() as unit:
        unit.put("Q", None, b"by a processor")
    print("holds", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_processor_that_dies_is_free(store: QueueManagerStore) -> None:
    home = cast(PostgresqlHome, store.home)
    with subprocess.Popen([sys.executable, "-c", HOLDS, home.url], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds\n"
        assert (processor_of(home, "QM1") or "").startswith(f"{holder.pid} on ")
        holder.kill()
    while processor_of(home, "QM1") is not None:
        pass
    with store.processor_lock():
        assert store.database.epoch == 2


@pytest.mark.parametrize("where", ["between statements", "in a batch"])
def test_a_processor_that_is_stopped_in_a_unit_of_work_commits_nothing_when_it_goes_on(
    store: QueueManagerStore, where: str
) -> None:
    """It is cut off by the next one, which is kept waiting by it (``PostgresqlDatabase.end_idle``)."""
    epoch = take_over(store.home, "QM1", Durability.FULL, 1.0)
    with QueueManagerStore.open(store.home, "QM1", epoch=epoch) as stopped:
        unit = stopped.unit_of_work()
        unit.put("Q", None, b"never")
        if where == "in a batch":
            cast(Any, stopped.database.connection).session.pgconn.exec_(b"COPY connections FROM STDIN")
        other = connect(store.home, "QM1", Durability.FULL, 20.0)
        cast(Any, other).end_idle(0.0)
        other.close()
        assert take_over(store.home, "QM1", Durability.FULL, 20.0) == epoch + 1
        if where == "in a batch":
            cast(Any, stopped.database.connection).session.close()
            return
        with pytest.raises(StoreError):
            unit.commit()
        with pytest.raises(StoreError, match="another instance has taken over"):
            stopped.unit_of_work()
    assert bodies(store) == []


def test_a_program_that_waits_is_known(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        assert not unit.is_awaited
        waiting = subprocess.Popen(
            [sys.executable, "-c", HOLDS, cast(PostgresqlHome, store.home).url], stdout=subprocess.DEVNULL
        )
        while not unit.is_awaited:
            pass
    os.kill(waiting.pid, signal.SIGKILL)
    waiting.wait()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://bridge:hidden@127.0.0.1:1/mq", "the server cannot be reached"),
        ("postgresql://bridge@127.0.0.1:1/mq?password=hidden", "the server cannot be reached"),
        ("postgresql://bridge:hidden@127.0.0.1/mq?nonsense=1", "is not a URL of PostgreSQL"),
        ("postgresql://bridge:hidden@/none?host={sockets}", "this user may not connect"),
        ("postgresql://tester:hidden@/none?host={sockets}", "there is no such database; make it with createdb"),
    ],
)
def test_an_error_says_what_to_do_and_no_password(postgresql_home: PostgresqlHome, url: str, said: str) -> None:
    home = parse_home(url.format(sockets=postgresql_home.url.rpartition("=")[2]))
    with pytest.raises(StoreError) as caught:
        QueueManagerStore.create(home, QueueManager("QM1"))
    assert said in str(caught.value)
    assert "hidden" not in f"{caught.value}{caught.value!r}{home!r}"
    assert "\n" not in str(caught.value)


def test_another_url_is_no_home() -> None:
    with pytest.raises(ValueError, match="mysql:// is not a home: give a directory, or postgresql://HOST/DATABASE"):
        parse_home("mysql://server/mq")


def test_who_waits_is_told_of_the_next_commit_and_of_no_other(store: QueueManagerStore) -> None:
    """The answers say which: a commit that nobody waits for tells nobody (``PostgresqlDatabase.heard``)."""
    with QueueManagerStore.open(store.home, "QM1") as waiting:
        database = waiting.database
        database.change()
        assert not database.heard(1.0, 0.0), "it has asked to be told"
        put(store, b"1")
        assert database.heard(1.0, PATIENCE_S), "told of the commit"
        put(store, b"2")
        assert not database.heard(1.0, 0.0), "nobody has asked again"
        assert waiting.wait_for_change(0.0), "no commit is missed"


def test_who_waits_while_a_unit_of_work_is_open_looks_again(store: QueueManagerStore) -> None:
    with QueueManagerStore.open(store.home, "QM1") as waiting:
        with store.unit_of_work() as unit:
            unit.put("Q", None, b"1")
            assert not waiting.wait_for_change(0.05)
        assert waiting.wait_for_change(PATIENCE_S)


@pytest.mark.parametrize("count", [1, 20], ids=["a message", "messages that are copied"])
@pytest.mark.parametrize(
    ("code", "error"),
    [("53100", StoreFullError), ("40001", StoreBusyError), ("40P01", StoreBusyError)],
    ids=["a full disk", "a serialization failure", "a deadlock"],
)
def test_a_unit_of_work_that_the_server_refuses_is_backed_out_and_can_be_tried_again(
    store: QueueManagerStore, code: str, error: type[StoreError], count: int
) -> None:
    put(store, b"1")
    execute = store.database.connection.execute
    execute(
        f"""CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $$"""
    )
    execute("CREATE TRIGGER refused BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION refuse()")
    with pytest.raises(error):
        put(store, *[b"2"] * count)
    unit = store.unit_of_work()
    for _ in range(count):
        unit.put("Q", None, b"2")
    with pytest.raises(error):
        list(unit.browse("Q"))
    with pytest.raises(StoreError, match="this unit of work is over"):
        unit.put("Q", None, b"2")
    unit.backout()
    execute("DROP TRIGGER refused ON messages")
    put(store, b"2")
    assert bodies(store) == [b"1", b"2"]


ROWS = [("Q1", 1, None, 0, 7), ("Q2", 2, 5, 0, None), ("é", 0, None, 3, 2**40)]
LASTING = "INSERT INTO connections (number) VALUES (?) ON CONFLICT (number) DO NOTHING"


@pytest.mark.parametrize("count", [1, 2, 4, 5, 300])
@pytest.mark.parametrize("user", [None, "é"])
def test_messages_are_written_alike_however_many_they_are(
    store: QueueManagerStore, count: int, user: str | None
) -> None:
    rows = [(n, "Q", 4, n, user, n % 2 == 0, None if n % 3 else n, b"md", b"", 0) for n in range(1, count + 1)]
    with store.unit_of_work():
        store.database.write(INSERT_MESSAGE, rows)
        found = store.database.connection.execute(f"SELECT {ALL_COLUMNS} FROM messages ORDER BY seq").fetchall()
    assert found == rows


@pytest.mark.parametrize("copies", [1, 100])
def test_rows_are_written_alike_however_many_they_are(store: QueueManagerStore, copies: int) -> None:
    """One statement for each, or one for all, by what it can be made (``PostgresqlConnection.write``)."""
    database = store.database
    rows: list[Any] = [(f"{name}{n}", *rest) for name, *rest in ROWS for n in range(copies)]
    twice = [(7,)] * 4 * copies
    with store.unit_of_work():
        for _ in range(2):
            database.write(_ADD_QUEUE, rows)
            database.write(LASTING, twice)
        found = database.connection.execute("SELECT * FROM queue_counts").fetchall()
        assert sorted(found) == sorted((name, 2 * puts, put, 2 * gets, got) for name, puts, put, gets, got in rows)
        database.write("DELETE FROM queue_counts WHERE queue = ?", [(name,) for name, *_ in rows[1:]])
        assert database.connection.execute("SELECT count(*) FROM queue_counts").fetchone() == (1,)
        assert database.connection.execute("SELECT number FROM connections").fetchall() == [(7,)]


@pytest.mark.parametrize("ends", ["RELEASE", "ROLLBACK TO"])
def test_a_part_of_which_much_was_copied_is_done_or_undone(store: QueueManagerStore, ends: str) -> None:
    with store.unit_of_work() as unit:
        unit.put("Q", None, b"before")
        with suppress(ZeroDivisionError), unit.savepoint():
            for _ in range(600):
                unit.put("Q", None, b"in the part")
            if ends == "ROLLBACK TO":
                raise ZeroDivisionError
        unit.put("Q", None, b"behind")
    assert bodies(store) == [b"before", *[b"in the part"] * (600 if ends == "RELEASE" else 0), b"behind"]


def test_a_batch_takes_few_round_trips(store: QueueManagerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin, what is read, the copies, and the commit with all that is left: however many commands there are."""
    # On a busy machine the server would be asked, too, whether somebody waits.
    monkeypatch.setattr("commands.qmgr.store.postgresql_database._LEARNS_AFTER_S", 1e9)
    send(store, CONTROL, "<Command>RegSub</Command><Topic>a</Topic><QName>Q</QName>")
    processor = Processor(store, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    processor.drain()
    taken = []
    for count in (1, 1, 500):
        send(store, STREAM, "<Command>Publish</Command><Topic>a</Topic>")
        first = next(store.browse(STREAM))
        with store.unit_of_work() as unit:
            for _ in range(count - 1):
                unit.put(STREAM, first.md, first.body)
        with monkeypatch.context() as patched:
            trips = noted_trips(store, patched)
            assert processor.drain() == count
        taken.append([f"{word} {len(list(same))}" for word, same in groupby(trips)])
    # The first one made the queue. Of 500, 250 are copied while the others are processed, and 250 at the end.
    assert taken[1:] == [["SELECT 5", "COMMIT 1"], ["SELECT 6", " 1", "SELECT 1", " 1", "COMMIT 1"]]
