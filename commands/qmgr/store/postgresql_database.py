"""A queue manager's database in PostgreSQL: a schema of its own, in the database that is its home.

A unit of work locks the row of ``state`` first. So one writes at a time, the others wait in turn, and what is read in a
unit of work stays true until it ends, as with SQLite; who only reads waits for nobody. With that row come the epoch of
the command processor, and the numbers of which the next ones are given.

The command processor holds a lock of its session, which the server releases when the connection ends.

Who waits for a commit writes that into the row of ``state``; the next commit finds it there and says so (NOTIFY). A
NOTIFY for each commit would let no two queue managers of the database commit at a time.

A connection that is lost between units of work is made again. In one, the unit of work is lost. If it is lost in a
commit, the new connection asks for the number that the unit of work wrote: so it is known whether it was committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from commands.broker.connections import NotAnsweredError
from commands.config.home import PostgresqlHome
from commands.disk import errors
from commands.disk.files import make_directory
from commands.disk.lock import PROCESSOR_LOCK, HolderLock, is_held
from commands.qmgr.store.database import PROCESSOR, Durability, EngineError
from commands.qmgr.store.schema import FIRST_VERSION, NUMBERED, postgresql_script
from rfh2.distribution import how_to_install
from rfh2.errors import StoreError, system_words

try:
    import psycopg
    from psycopg import pq, sql

    from commands.qmgr.store.postgresql_session import (
        REFUSALS,
        PostgresqlConnection,
        failure,
        failures,
        session_with,
        unreachable,
    )
except ImportError as missing:
    raise StoreError(f"a home in PostgreSQL needs the package psycopg: {how_to_install('postgresql')}") from missing

_PREFIX: Final = "qmgr_"
_MANY_UNITS: Final = 10**15
_NAP_S: Final = 0.05
_LOCK_CLASS: Final = int.from_bytes(b"qpsb", "big")

_STATE: Final = ("version", "definitions", "epoch", "unit", "waiting", *NUMBERED)
_BEGIN: Final = f"BEGIN; SELECT {', '.join(_STATE)} FROM state FOR UPDATE"
_WRITE_STATE: Final = f"""WITH written AS (UPDATE state
    SET unit = ?1, waiting = 0, {", ".join(f"{name} = ?{n}" for n, name in enumerate(NUMBERED, 3))})
    INSERT INTO writers (name, unit) VALUES (?2, ?1) ON CONFLICT (name) DO UPDATE SET unit = excluded.unit"""
_WAIT: Final = """UPDATE state SET waiting = 1
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM state WHERE unit = ? FOR UPDATE SKIP LOCKED))"""
# Waits that are short are not worth a write; and one that nobody ends looks all the same.
_LISTENS_FROM_S: Final = 0.005
_LOOKS_EACH_S: Final = 1.0
# How long a unit of work may go on before it learns that somebody waits for its end.
_LEARNS_AFTER_S: Final = 0.05
_AWAITED: Final = """SELECT EXISTS (SELECT 1 FROM pg_locks
    WHERE locktype = 'transactionid' AND transactionid = pg_current_xact_id()::xid AND NOT granted)"""
_LOCK: Final = "SELECT pg_try_advisory_lock(CAST(? AS INTEGER), CAST(? AS INTEGER))"
_IS_HELD_HERE: Final = """SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory'
    AND classid = CAST(? AS BIGINT)::oid AND objid = CAST(? AS BIGINT)::oid AND pid = pg_backend_pid())"""
_END_IDLE: Final = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity AS a JOIN pg_locks AS l USING (pid)
    WHERE l.relation = to_regclass(format('%%I.state', %s::text)) AND l.mode = 'RowShareLock'
    AND (a.state LIKE 'idle in transaction%%' OR a.wait_event_type = 'Client')
    AND a.state_change < now() - make_interval(secs => %s) AND pid <> pg_backend_pid()"""
_JOIN: Final = "SELECT pg_advisory_lock_shared(%s::integer, hashtext(%s))"
_MEMBERS: Final = """SELECT a.pid, a.application_name FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
    WHERE l.locktype = 'advisory' AND l.classid = %s::oid AND l.objid = (hashtext(%s)::bigint & 4294967295)::oid
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1"""
_PROCESSORS: Final = """SELECT n.nspname, a.application_name FROM pg_namespace AS n
    JOIN pg_locks AS l ON l.classid::bigint = n.oid::bigint & 2147483647 JOIN pg_stat_activity AS a USING (pid)
    WHERE starts_with(n.nspname, %s) AND l.locktype = 'advisory' AND l.objid = 0 AND l.objsubid = 2 AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
_SEARCH_PATH: Final = sql.SQL("SET search_path = {}")
_ASK: Final = "INSERT INTO questions (question) VALUES (%s) RETURNING number"
_ANSWERED_S: Final = 3.0
_SESSIONS: Final = """SELECT application_name, count(*), current_setting('max_connections')::bigint
    FROM pg_stat_activity WHERE starts_with(application_name, 'qpubsub ') AND datname = current_database()
    AND split_part(application_name, ' for ', 2) = split_part(?, ' for ', 2) GROUP BY 1 ORDER BY 1"""
_LOCK_NAME: Final = "SELECT pg_advisory_xact_lock(CAST(? AS INTEGER), hashtext(?))"
_UNLOCK: Final = "SELECT pg_advisory_unlock(CAST(? AS INTEGER), CAST(? AS INTEGER))"
_HOLDERS: Final = """SELECT l.objid::bigint, a.application_name
    FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
    WHERE l.locktype = 'advisory' AND l.classid = CAST(? AS BIGINT)::oid AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""

_LOST: Final = ("", "08", "57")


class PostgresqlDatabase:
    """The ``Database`` of queue manager *name* in *home*. Raises QueueManagerNotFoundError; StoreError.

    durability: of its lasting commits. create: it may have to be made.
    """

    def __init__(
        self,
        home: PostgresqlHome,
        name: str,
        directory: Path,
        durability: Durability,
        patience_s: float,
        *,
        create: bool = False,
    ) -> None:
        self.path, self.directory = f"{home} queue manager {name}", directory
        self.failure: StoreError | None = None
        self.losses = -1  # the first connection is none
        self.epoch: int | None = None
        self.patience_s = patience_s
        self._home, self._name, self._durability = home, name, durability
        self._schema = _PREFIX + name
        self._writer = uuid4().hex
        self._own = 0  # units of work that this connection has committed
        self._settings: tuple[float, bool] | None = None  # of the session: patience and whether commits last
        # Of the unit of work that is open: the row of the state, and the highest numbers now, and when a part began.
        self._row: dict[str, int] | None = None
        # How many units of work there were at the last look; from which on somebody says when there is one more.
        self._seen = self._listens_from = -1
        self._is_listening = False
        self._asked: tuple[psycopg.RawCursor[Any], float] | None = None  # whether somebody waits; when
        self._numbers: dict[str, int] = {}
        self._numbers_before: dict[str, int] = {}
        self._idle_s: float | None = None
        self._locks: set[int] = set()  # the numbers of the session's locks
        self._here = HolderLock(directory / PROCESSOR_LOCK)  # says on this machine that the processor is here
        _own_directory(home.directory, directory)
        self.connection = PostgresqlConnection(self._connected())
        if not create and not self._namespace():
            self.close()
            raise errors.QueueManagerNotFoundError(name, str(home), names(home))

    def _connected(self) -> psycopg.Connection[Any]:
        session = session_with(self._home, self._name)
        try:
            session.execute(_SEARCH_PATH.format(sql.Identifier(self._schema)))
        except psycopg.Error as error:
            session.close()
            raise unreachable(self._home, error) from error
        self._settings, self._is_listening, self._listens_from = None, False, -1
        self.losses += 1
        return session

    def _namespace(self) -> int:
        """The number of the schema; 0 where there is none."""
        found = self.connection.execute("SELECT oid::bigint FROM pg_namespace WHERE nspname = ?", (self._schema,))
        row = found.fetchone()
        return 0 if row is None else int(row[0])

    # Units of work

    def begin(self, lasting: bool = True, waits: bool = True) -> None:
        self.failure = None
        self._again_where_lost()
        self._set(lasting)
        row = self._begun(waits)
        if self.epoch is not None and row["epoch"] != self.epoch:
            self.rollback()
            raise errors.SupersededError(self.path, self.epoch, row["epoch"])

    def take_log(self) -> None:
        """The log is the server's."""

    def _begun(self, waits: bool) -> dict[str, int]:
        try:
            cursor = self.connection.session.execute(_BEGIN if waits else f"{_BEGIN} NOWAIT")
            cursor.nextset()
            found = cursor.fetchone()
            self.connection.in_transaction = True
        except psycopg.Error as error:
            refusal = failure(error)
            self.rollback()
            raise refusal from error
        if found is None:
            raise errors.StoreDamagedError.unreadable(self.path, "number of the state")
        self._row, self._asked = dict(zip(_STATE, map(int, found), strict=True)), None
        self._numbers = {table: self._row[table] for table in NUMBERED}
        return self._row

    def begin_making(self) -> None:
        self.failure = None
        self._again_where_lost()
        self._set(lasting=True)
        if self._namespace():
            self.begin()
            return
        self.connection.execute("BEGIN")
        self.connection.execute(_LOCK_NAME, (_LOCK_CLASS, self._schema))

    def commit(self) -> None:
        row, later = self._row, self.connection.later
        if row is None:
            self.connection.execute("COMMIT")
            return
        unit = row["unit"] + 1
        later(_WRITE_STATE, (unit, self._writer, *self._numbers.values()))
        if row["waiting"]:
            later("SELECT pg_notify(?, '')", (self._schema,))
        self._row = None
        try:
            self.connection.execute("COMMIT")
        except EngineError as error:
            if not _is_lost(error) or not self._was_committed(unit, error):
                raise
        self._own += 1

    def _was_committed(self, unit: int, lost: EngineError) -> bool:
        """Whether the unit of work was committed in whose commit the connection was lost."""
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                self.connection.begin_session(self._connected())
                # The server may still be at it: whoever has the row is the next one after that.
                self._begun(waits=True)
                found = self.connection.execute("SELECT unit FROM writers WHERE name = ?", (self._writer,)).fetchone()
                self.rollback()
            except (EngineError, StoreError) as error:
                if time.monotonic() >= deadline:
                    raise EngineError(_UNKNOWN, str(lost)) from error
                time.sleep(_NAP_S)
            else:
                return found is not None and int(found[0]) == unit

    def rollback(self) -> None:
        self._row = None
        session = self.connection.session
        self.connection.forget()
        if session.broken or session.closed:
            return
        if session.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            try:
                session.execute("ROLLBACK")
            except psycopg.Error as error:
                if not session.broken:
                    raise failure(error) from error

    def savepoint(self) -> None:
        self.connection.later("SAVEPOINT part", ())
        self._numbers_before = dict(self._numbers)

    def end_savepoint(self, *, done: bool) -> None:
        if not done:
            self.connection.execute("ROLLBACK TO part")
            self._numbers = self._numbers_before
        self.connection.later("RELEASE part", ())

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        self._again_where_lost()
        self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        try:
            yield
            self.connection.execute("COMMIT")
        finally:
            self.rollback()

    def _set(self, lasting: bool) -> None:
        lasts = lasting and self._durability is Durability.FULL
        if self._settings != (self.patience_s, lasts):
            wait_ms, commit = max(1, int(self.patience_s * 1000)), "on" if lasts else "off"
            with failures():
                self.connection.session.execute(f"SET lock_timeout = {wait_ms}")
                self.connection.session.execute(f"SET synchronous_commit = {commit}")
            self._settings = self.patience_s, lasts

    def _again_where_lost(self) -> None:
        """Connect again where the connection was lost and no unit of work is open. Raises StoreError."""
        session = self.connection.session
        if session.broken or session.closed:
            self.connection.begin_session(self._connected())
            if self._idle_s is not None:
                self.require_activity(self._idle_s)
            for number in self._locks:
                self.connection.execute(_LOCK, (self._lock_class(), number))

    def read_each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return self.connection.read_each(statement, values)

    def write(self, one: str, rows: Sequence[Sequence[Any]], many: str = "") -> None:
        self.connection.write(one, rows)

    # What SQLite counts by itself

    def versions(self) -> tuple[int, int]:
        row = self._row or self._read_state()
        return row["version"], row["definitions"]

    def highest(self, table: str) -> int:
        return self._numbers[table] if self._row is not None else self._read_state()[table]

    def reached(self, table: str, number: int) -> None:
        self._numbers[table] = number

    def change(self) -> int:
        row = self._row
        if row is None:
            self._again_where_lost()
            row = self._read_state()
            self._seen = row["unit"]
        # Units of work that a crash of the server undid have numbers that are given again.
        return row["unit"] - self._own + self.losses * _MANY_UNITS

    def read_epoch(self) -> int:
        if self._row is None:
            self._again_where_lost()
        return (self._row or self._read_state())["epoch"]

    def _read_state(self) -> dict[str, int]:
        found = self.connection.execute(f"SELECT {', '.join(_STATE)} FROM state").fetchone()
        if found is None:
            raise errors.StoreDamagedError.unreadable(self.path, "number of the state")
        return dict(zip(_STATE, found, strict=True))

    def begin_numbers(self, table: str, number: int) -> None:
        self.connection.execute(f"UPDATE state SET {table} = ?", (number,))

    def beginning(self, seq: int, size_bytes: int) -> bytes | None:
        found = self.connection.execute(
            "SELECT substr(body, 1, CAST(? AS INTEGER)) FROM messages WHERE seq = ?", (size_bytes, seq)
        ).fetchone()
        return None if found is None else bytes(found[0])

    def sizes(self) -> tuple[int, int, int]:
        found = self.connection.execute(
            "SELECT CAST(coalesce(sum(pg_total_relation_size(oid)), 0) AS BIGINT) FROM pg_class "
            "WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?) AND relkind = 'r'",
            (self._schema,),
        ).fetchone()
        return int(found[0]), 0, 0

    def sessions(self) -> tuple[dict[str, int], int]:
        found = self.connection.execute(_SESSIONS, (self.connection.session.info.parameter_status("application_name"),))
        rows = [(_process(program), count, most) for program, count, most in found]
        return {process: count for process, count, _ in rows}, rows[0][2] if rows else 0

    # Questions of other machines, in sessions of their own: who asks or answers may have a unit of work open.

    def ask(self, question: str) -> str | None:
        if is_held(self.directory / PROCESSOR_LOCK) or not self.has_processor():
            return None
        deadline = time.monotonic() + _ANSWERED_S
        with session_with(self._home, self._name) as session:
            session.execute(_SEARCH_PATH.format(sql.Identifier(self._schema)))
            (number,) = session.execute(_ASK, (question,)).fetchone() or (0,)
            answer: str | None = None
            while answer is None and time.monotonic() < deadline:
                time.sleep(_NAP_S)
                found = session.execute("SELECT answer FROM questions WHERE number = %s", (number,)).fetchone()
                answer = None if found is None else found[0]
            session.execute("DELETE FROM questions WHERE number = %s", (number,))
        if answer is None:
            raise NotAnsweredError(f"the instance of run that works on queue manager {self._name}", _ANSWERED_S)
        return answer

    def questions(self) -> list[tuple[int, str]]:
        """What is not answered yet."""
        return self.connection.execute("SELECT number, question FROM questions WHERE answer IS NULL").fetchall()

    def answer(self, number: int, answer: str) -> None:
        """Answer a question; those that nobody waits for any more are deleted."""
        self.connection.execute("UPDATE questions SET answer = ? WHERE number = ?", (answer, number))
        self.connection.execute("DELETE FROM questions WHERE asked_at < now() - interval '1 minute'")

    def heard(self, nap_s: float, left_s: float) -> bool:
        if self._listens_from != self._seen and (nap_s < _LISTENS_FROM_S or not self._asked_to_be_told()):
            time.sleep(min(nap_s, left_s))
            return False
        with failures():
            return any(self.connection.session.notifies(timeout=min(left_s, _LOOKS_EACH_S), stop_after=1))

    def _asked_to_be_told(self) -> bool:
        """Whether the next commit will say so. It may be under way, or done since the last look."""
        if not self._is_listening:
            self.connection.execute(f'LISTEN "{self._schema}"')
            self._is_listening = True
        self._set(lasting=False)
        if self.connection.execute(_WAIT, (self._seen,)).rowcount:
            self._listens_from = self._seen
        return self._listens_from == self._seen

    @property
    def is_replaced(self) -> bool:
        return False

    def is_awaited(self) -> bool:
        """As in ``Database``, as of the last statement: the question goes with the next one.

        Where there was none for some time, the server is asked now.
        """
        now = time.monotonic()
        if self._asked is None:
            answer = []
        elif self._asked[0].pgresult is not None:
            answer = self._asked[0].fetchall()
        elif now < self._asked[1] + _LEARNS_AFTER_S:
            return False
        else:
            answer = self.connection.execute(_AWAITED).fetchall()
        self._asked = self.connection.answered_later(_AWAITED), now
        return answer == [(True,)]

    # Locks of the session

    @contextmanager
    def processor(self, name: str) -> Iterator[None]:
        if not self.try_lock(PROCESSOR):
            raise errors.QueueManagerInUseError(name, self.holder(PROCESSOR))
        try:
            yield
        finally:
            self.unlock(PROCESSOR)

    def has_processor(self) -> bool:
        return self.is_locked(PROCESSOR)

    def instances(self) -> list[tuple[int, str]]:
        found = sorted(self._holders().items(), reverse=True)
        return [(number, holder) for number, holder in found if number <= PROCESSOR]

    def holder(self, number: int) -> str:
        """Which program has lock *number*, as ``PID on HOST``; "" for none."""
        return self._holders().get(number, "")

    def _holders(self) -> dict[int, str]:
        if self._row is None:
            self._again_where_lost()
        found = self.connection.execute(_HOLDERS, (self._lock_class(),))
        return {number - (number >> 31 << 32): _process(program) for number, program in found}

    def wait_in_line(self) -> None:
        """Be an instance that waits: by a lock below PROCESSOR, which is its session's own."""
        self.try_lock(-self.connection.session.info.backend_pid)

    def leave_line(self) -> None:
        """Wait no more."""
        for number in [each for each in self._locks if each < PROCESSOR]:
            self.unlock(number)

    def lock(self, number: int) -> None:
        self.try_lock(number)  # nobody else knows of it yet

    def is_locked(self, number: int) -> bool:
        return number in self._holders()

    def try_lock(self, number: int) -> bool:
        """Have lock *number* of the queue manager, as long as the connection lasts; whether nobody else has it."""
        self._again_where_lost()
        taken = self.connection.execute(_LOCK, (self._lock_class(), number)).fetchone()
        if taken[0]:
            self._locks.add(number)
            if number == PROCESSOR:
                self._here.take()
        return bool(taken[0])

    def has_lock(self, number: int) -> bool:
        """Whether this session has lock *number*."""
        found = self.connection.execute(_IS_HELD_HERE, (self._lock_class(), number)).fetchone()
        return bool(found[0])

    def require_activity(self, within_s: float) -> None:
        """Have the server end the session, and its locks with it, where it asks nothing for so long."""
        self._idle_s = within_s
        with failures():
            self.connection.session.execute(f"SET idle_session_timeout = {max(1, int(within_s * 1000))}")

    def end_idle(self, for_s: float) -> None:
        """Have the server end the sessions that keep a unit of work open and have done nothing for so long.

        One that is stopped in the middle of a batch is busy for the server, and waits for its client.
        """
        with failures():
            self.connection.session.execute(_END_IDLE, (self._schema, for_s))

    def unlock(self, number: int) -> None:
        """Release a lock; it is no error if the connection has ended."""
        self._locks.discard(number)
        if number == PROCESSOR:
            self._here.release()
        with suppress(EngineError):
            self.connection.execute(_UNLOCK, (self._lock_class(), number))

    def _lock_class(self) -> int:
        return self._namespace() & 0x7FFF_FFFF

    # Tables

    @property
    def newest(self) -> int:
        return FIRST_VERSION

    def version(self) -> int:
        found = self.connection.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = 'schema_version')",
            (self._schema,),
        ).fetchone()
        if not found[0]:
            if self._namespace():
                why = f"schema {self._schema} is another program's, not a queue manager; it was left as it is"
                raise errors.StoreDamagedError(self.path, why)
            return 0
        version = int(self.connection.execute("SELECT number FROM schema_version").fetchone()[0])
        if version > self.newest:
            why = f"was written by a newer qpubsub (schema {version}, this one knows {self.newest}); use that one"
            raise errors.StoreDamagedError(self.path, why)
        return version

    look_at_version = version

    def migrate(self, version: int) -> None:
        session = self.connection.session
        with failures():
            if version == 0:
                session.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self._schema)))
            session.execute(postgresql_script(version))

    def json_text(self, column: str, key: str) -> str:
        return f"((CAST({column} AS json) ->> '{key}') COLLATE \"C\")"

    @property
    def topic_index(self) -> str:
        return "USING hash (topic)"

    def joined(self, column: str) -> str:
        return f"string_agg({column}, ', ')"

    # Failures

    def translated(self, error: Exception) -> StoreError:
        self.failure = self._in_words(error)
        return self.failure

    def _in_words(self, error: Exception) -> StoreError:
        code = error.code if isinstance(error, EngineError) else "XX001"
        if code == _UNKNOWN:
            return StoreError(
                f"{self.path}: the connection was lost in a commit ({error}), and the server cannot be asked whether "
                "it was done; look at the queues before you try again"
            )
        if code in ("55P03", "40001", "40P01"):
            return errors.StoreBusyError(self.path, self.patience_s)
        if code.startswith("53") and code != "53300":
            return errors.StoreFullError(self.path)
        if code.startswith(_LOST[1:]) or code in ("", "25P03"):
            why = f"{self.path}: the connection was lost ({error}); nothing of this unit of work was kept"
            return errors.ServerAwayError(why)
        if code in REFUSALS:
            return StoreError(f"{self.path}: {REFUSALS[code].format(error)}")
        if code in ("XX001", "XX002") or code.startswith("42"):
            why = f"{error}: the database is damaged, or another version of qpubsub wrote it; restore a backup"
            return errors.StoreDamagedError(self.path, why)
        return StoreError(f"{self.path}: {error}")

    def close(self) -> None:
        self._here.release()
        session = self.connection.session
        if self._own and not session.broken and not session.closed:
            with suppress(psycopg.Error):
                session.execute("DELETE FROM writers WHERE name = %s", (self._writer,))
        session.close()


_UNKNOWN: Final = "08007"


def _is_lost(error: EngineError) -> bool:
    return error.code == "" or error.code.startswith(("08", "57"))


def names(home: PostgresqlHome) -> tuple[str, ...]:
    """The names of the queue managers in *home*, in order. Raises StoreError."""
    with session_with(home, "") as session:
        found = session.execute(
            "SELECT schemaname FROM pg_tables WHERE tablename = 'schema_version' AND starts_with(schemaname, %s)",
            (_PREFIX,),
        ).fetchall()
    return tuple(sorted(name.removeprefix(_PREFIX) for (name,) in found))


class Members:
    """The bridges that share *workload*, of which this program is one, until ``close`` or the end of its session.

    silent_s: the server ends a session that asks nothing for so long. Raises StoreError.
    """

    def __init__(self, home: PostgresqlHome, workload: str, silent_s: float) -> None:
        self._home, self._key, self._silent_s = home, (_LOCK_CLASS, f"workload {workload}"), silent_s
        self._session = self._joined()

    def _joined(self) -> psycopg.Connection[Any]:
        session = session_with(self._home, "")
        session.execute(f"SET idle_session_timeout = {max(1, int(self._silent_s * 1000))}")
        session.execute(_JOIN, self._key)
        return session

    @property
    def me(self) -> int:
        """This one among those of ``look``."""
        return self._session.info.backend_pid

    def look(self) -> tuple[list[int], dict[str, str]]:
        """Who is there, in the same order for each, and the command processors (``processors``). Raises StoreError."""
        try:
            if self._session.closed:
                self._session = self._joined()
            found = self._session.execute(_MEMBERS, self._key).fetchall()
            return [pid for pid, _ in found], _processors(self._session)
        except psycopg.Error as error:
            self._session.close()
            raise unreachable(self._home, error) from error

    def close(self) -> None:
        """Be no member any more."""
        self._session.close()


def members(home: PostgresqlHome, workload: str) -> list[str]:
    """The bridges that share *workload*, each as ``PID on HOST``. Raises StoreError."""
    with session_with(home, "") as session:
        found = session.execute(_MEMBERS, (_LOCK_CLASS, f"workload {workload}")).fetchall()
    return [_process(program) for _, program in found]


def _processors(session: psycopg.Connection[Any]) -> dict[str, str]:
    """The command processor of each queue manager that has one, as ``PID on HOST``."""
    found = session.execute(_PROCESSORS, (_PREFIX,)).fetchall()
    return {name.removeprefix(_PREFIX): _process(program) for name, program in found}


def _process(program: str) -> str:
    return program.removeprefix("qpubsub ").partition(" for ")[0]


def processor_of(home: PostgresqlHome, name: str, directory: Path) -> str:
    """The command processor of queue manager *name*, as ``PID on HOST``; "" for none. Raises StoreError."""
    database = PostgresqlDatabase(home, name, directory, Durability.FULL, 1.0)
    try:
        return database.holder(PROCESSOR)
    except EngineError as error:
        raise database.translated(error) from error
    finally:
        database.close()


def delete(home: PostgresqlHome, name: str, directory: Path, require: Callable[[], None]) -> None:
    """Delete queue manager *name*, after *require*. Raises what ``opening.delete`` does."""
    database = PostgresqlDatabase(home, name, directory, Durability.FULL, 1.0)
    try:
        with database.processor(name):
            require()
            database.connection.session.execute(
                sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(_PREFIX + name))
            )
    except psycopg.Error as error:
        raise database.translated(failure(error)) from error
    finally:
        database.close()


def _own_directory(above: Path, directory: Path) -> None:
    """Make what is this machine's alone, for its owner. Raises StoreError."""
    try:
        make_directory(above)
        make_directory(directory)
    except OSError as error:
        raise StoreError(f"{directory}: cannot be made: {system_words(error)}") from error
