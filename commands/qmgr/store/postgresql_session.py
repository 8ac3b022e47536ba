"""A session with PostgreSQL, for statements as the store has them: ``?`` or ``:name`` where values go.

What takes long is the way to the server and back. So what gives no answer is not waited for: it goes with the next
statement that has one, or is copied while this program works on.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from struct import Struct
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Dumper
from psycopg.copy import LibpqWriter
from psycopg.generators import fetch_many
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import BytesBinaryDumper, StrBinaryDumper
from psycopg.waiting import Wait

from commands.config.home import PostgresqlHome, process_here
from commands.disk.errors import ServerAwayError
from commands.qmgr.store.database import Cursor, EngineError, Values
from rfh2.errors import StoreError

# What the driver cannot undo on a connection that is lost is in the error that follows.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

OLDEST_SERVER: Final = 14
_STATEMENTS: Final = 512
_CONNECT_S: Final = 10
# How long the server waits for a program that has a unit of work open and does nothing, such as one that is stopped.
_IDLE_S: Final = 60

# What is said otherwise. SQLite's LIKE takes small and capital letters of ASCII as alike.
_INSTEAD: Final = {"ON CONFLICT (topic)": "ON CONFLICT (digest(topic))", " LIKE ": " ILIKE "}
_PLACES: Final = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|::|\?(\d*)|:([a-z_]+)|ON CONFLICT \(topic\)| LIKE ")
# From this many rows on COPY, which has to be begun in a round trip of its own, is quicker.
_FEW: Final = 5
_PLAIN_INSERT: Final = re.compile(r"INSERT INTO (\w+ \([^)]*\)) VALUES \([?, ]*\)")
# What the driver divides before it is copied.
_LONG_BYTES: Final = 128 * 1024
_VALUES: Final = re.compile(r"VALUES \([?, ]*\)")
# What an array of PostgreSQL is made of: the type of its elements by theirs here, and that type's number.
_ELEMENTS: Final[Mapping[type, tuple[str | None, int]]] = {
    int: ("BIGINT", 20),
    bool: ("BIGINT", 20),
    str: ("TEXT", 25),
    bytes: ("BYTEA", 17),
    type(None): (None, 0),
}
_ARRAY, _INTEGER, _LENGTH = Struct(">iiiii"), Struct(">iq"), Struct(">i")
_NULL: Final = _LENGTH.pack(-1)
REFUSALS: Final = {
    "28P01": "the password is wrong; give it in the URL, in PGPASSWORD or in ~/.pgpass",
    "28000": "this user may not connect; look at the server's pg_hba.conf",
    "3D000": "there is no such database; make it with createdb",
    "42501": "this user may not do that ({}); give it CREATE on the database",
    "53300": "the server has no connection left; raise its max_connections",
}


@lru_cache(_STATEMENTS)
def _translated(statement: str) -> tuple[str, tuple[str, ...]]:
    """*statement* with PostgreSQL's places, and the names of the values in their order; none where they have none."""
    names: list[str] = []
    count = 0

    def place(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] in _INSTEAD:
            return _INSTEAD[found[0]]
        if found[2] is not None:
            if found[2] not in names:
                names.append(found[2])
            return f"${names.index(found[2]) + 1}"
        if not found[0].startswith("?"):
            return found[0]
        count += 1
        return f"${found[1] or count}"

    return _PLACES.sub(place, statement), tuple(names)


def failure(error: psycopg.Error) -> EngineError:
    primary = error.diag.message_primary
    return EngineError(error.sqlstate or "", primary or (str(error).splitlines() or [""])[0])


@contextmanager
def failures() -> Iterator[None]:
    """What the driver raises is raised as EngineError."""
    try:
        yield
    except psycopg.Error as error:
        raise failure(error) from error


class PostgresqlConnection:
    """A session of psycopg's, for statements as the store has them.

    in_transaction: as ``Connection`` says, as far as the server has told. What nobody waits for (``later``) goes to the
    server with the next statement, in one round trip; its failure is that one's, and ends the transaction.
    """

    def __init__(self, session: psycopg.Connection[Any]) -> None:
        self.begin_session(session)

    def begin_session(self, session: psycopg.Connection[Any]) -> None:
        """Work with another session; nothing is open in it."""
        self.session = session
        self.in_transaction = self._is_copying = False
        self._later: list[Callable[[], object]] = []
        self._unanswered, self._copier = psycopg.RawCursor(session), psycopg.Cursor(session)

    def execute(self, statement: str, values: Values = (), /) -> Cursor:
        text, names = _translated(statement)
        cursor = self._cursor()
        given = [values[name] for name in names] if isinstance(values, Mapping) else values
        self._send(partial(cursor.execute, text, given, prepare=True))
        return cursor

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> Cursor:
        text, _ = _translated(statement)
        cursor = psycopg.RawCursor(self.session)
        self._send(partial(cursor.executemany, text, rows))
        return cursor

    def later(self, statement: str, *rows: Sequence[Any]) -> None:
        """Have *statement* executed with each of *rows* before the next one; in a transaction."""
        text, _ = _translated(statement)
        self._later += [partial(self._unanswered.execute, text, row, prepare=True) for row in rows]

    def answered_later(self, statement: str, values: Sequence[Any] = ()) -> psycopg.RawCursor[Any]:
        """The same; it has a ``pgresult`` once there is an answer."""
        text, _ = _translated(statement)
        cursor = self._cursor()
        self._later.append(partial(cursor.execute, text, values, prepare=True))
        return cursor

    def read_each(self, statement: str, values: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The rows that *statement* gives for each of *values*."""
        if not values:
            return []
        *others, last = values
        cursors: list[Cursor] = [self.answered_later(statement, each) for each in others]
        cursors.append(self.execute(statement, last))
        return [cursor.fetchall() for cursor in cursors]

    def write(self, one: str, rows: Sequence[Sequence[Any]]) -> None:
        """Have *one* executed with each of *rows* later, or what writes the same with all of them."""
        if len(rows) >= _FEW and (inserted := _PLAIN_INSERT.fullmatch(one)):
            self.copy(f"COPY {inserted[1]} FROM STDIN (FORMAT BINARY)", rows)
        elif len(rows) < 2:
            self.later(one, *rows)
        elif one.endswith("= ?") and one.count("?") == 1:
            array, element = _array([value for (value,) in rows])
            self.later(f"{one[:-1]}ANY(CAST(? AS {element}[]))", (array,))
        elif _VALUES.search(one) and len({key for key, *_ in rows}) == len(rows):
            self.later(*_at_once(one, rows))
        else:
            self.later(one, *rows)

    def copy(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """COPY *rows* into a table; the server works while this program goes on. In a transaction."""
        self._send(None)
        try:
            with self._copier.copy(statement, writer=_UnansweredWriter(self._copier)) as copying:
                self._is_copying = True
                for row in rows:
                    copying.write_row(row)
        except BaseException as error:
            self.in_transaction = self._is_copying = False
            if isinstance(error, psycopg.Error):
                raise failure(error) from error
            raise

    def forget(self) -> None:
        """Undo the transaction."""
        self._later.clear()
        self.in_transaction = False
        with suppress(psycopg.Error):
            self._end_copy()

    def _end_copy(self) -> None:
        if self._is_copying:
            self._is_copying = False
            for result in self.session.wait(fetch_many(self.session.pgconn)):
                if result.status != pq.ExecStatus.COMMAND_OK:
                    raise psycopg.errors.error_from_result(result)

    def _cursor(self) -> psycopg.RawCursor[Any]:
        cursor = psycopg.RawCursor(self.session)
        cursor.format = pq.Format.BINARY
        return cursor

    def _send(self, last: Callable[[], object] | None) -> None:
        later = self._later
        is_alone = not later and not self._is_copying
        try:
            self._end_copy()
            if later:
                with self.session.pipeline():
                    for each in later:
                        each()
                    if last is not None:
                        last()
            elif last is not None:
                last()
        except BaseException as error:
            # Of what nobody waited for, some may be done: nothing can go on from there.
            self.in_transaction = is_alone and self._is_in_transaction()
            if isinstance(error, psycopg.Error):
                raise failure(error) from error
            raise
        finally:
            later.clear()
        self.in_transaction = self._is_in_transaction()

    def _is_in_transaction(self) -> bool:
        return self.session.pgconn.transaction_status == pq.TransactionStatus.INTRANS


class _Array(bytes):
    """Values, as PostgreSQL has them in binary form."""


class _ArrayDumper(Dumper):
    format = pq.Format.BINARY

    def dump(self, obj: _Array) -> bytes:
        return obj


def _array(values: Sequence[Any]) -> tuple[_Array, str | None]:
    """*values*, all of one type or None; and what the type is called, None where each is None."""
    element, number = _ELEMENTS[next((type(value) for value in values if value is not None), type(None))]
    made = [_ARRAY.pack(1, 1, number, len(values), 1)]
    for value in values:
        if value is None:
            made.append(_NULL)
        elif isinstance(value, int):
            made.append(_INTEGER.pack(8, value))
        else:
            data = value.encode() if isinstance(value, str) else value
            made += (_LENGTH.pack(len(data)), data)
    return _Array(b"".join(made)), element


def _at_once(one: str, rows: Sequence[Sequence[Any]]) -> tuple[str, list[_Array]]:
    """A statement that inserts all *rows* as *one* inserts each; and its values, an array for each column."""
    columns = [(f"c{n}", *_array(column)) for n, column in enumerate(zip(*rows, strict=True))]
    wanted = ", ".join("NULL" if element is None else name for name, _, element in columns)
    given = [(name, array, f"CAST(? AS {element}[])") for name, array, element in columns if element is not None]
    names, arrays, places = zip(*given, strict=True)
    selected = f"SELECT {wanted} FROM unnest({', '.join(places)}) AS given ({', '.join(names)})"
    return _VALUES.sub(selected, one), [*arrays]


class _UnansweredWriter(LibpqWriter):
    """Of a COPY whose answer is asked for later, and which waits for the server at its end alone."""

    def write(self, data: Buffer) -> None:
        if len(data) > _LONG_BYTES or self.connection.pgconn.put_copy_data(data) == 0:
            super().write(data)

    def finish(self, exc: BaseException | None = None) -> None:
        if exc is None:
            self.connection.wait(self._sent())
        else:
            super().finish(exc)

    def _sent(self) -> PQGen[None]:
        pgconn = self.connection.pgconn
        while pgconn.put_copy_end() == 0:
            yield Wait.W
        while pgconn.flush() != 0:
            yield Wait.W


def session_with(home: PostgresqlHome, qmgr: str) -> psycopg.Connection[Any]:
    """A session of the server. Raises StoreError."""
    program = f"qpubsub {process_here(os.getpid())}{f' for {qmgr}' if qmgr else ''}"[:63]
    try:
        session = psycopg.connect(
            home.url,
            autocommit=True,
            application_name=program,
            connect_timeout=_CONNECT_S,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            client_encoding="UTF8",
            options=f"-c idle_in_transaction_session_timeout={_IDLE_S}s -c client_min_messages=warning",
        )
    except psycopg.ProgrammingError as error:
        raise StoreError(f"{home} is not a URL of PostgreSQL: {failure(error)}") from error
    except psycopg.Error as error:
        raise unreachable(home, error) from error
    if session.info.server_version < OLDEST_SERVER * 10_000:
        version = session.info.server_version // 10_000
        session.close()
        raise StoreError(f"{home}: the server is PostgreSQL {version}; {OLDEST_SERVER} or later is needed")
    adapters = session.adapters
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(bool, Int8BinaryDumper)
    adapters.register_dumper(str, StrBinaryDumper)
    adapters.register_dumper(bytes, BytesBinaryDumper)
    adapters.register_dumper(_Array, _ArrayDumper)
    session.prepared_max = _STATEMENTS
    return session


def unreachable(home: PostgresqlHome, error: psycopg.Error) -> StoreError:
    # An error of connecting has no SQLSTATE; the server's words are in its text.
    text = str(error)
    for words, code in (("password authentication failed", "28P01"), ("no password supplied", "28P01")):
        if words in text:
            return StoreError(f"{home}: {REFUSALS[code]}")
    if "does not exist" in text and "database" in text:
        return StoreError(f"{home}: {REFUSALS['3D000']}")
    if "pg_hba.conf" in text or "role" in text:
        return StoreError(f"{home}: {REFUSALS['28000']}")
    first = (text.splitlines() or ["no answer"])[0].strip()
    return ServerAwayError(
        f"{home}: the server cannot be reached ({first}); look whether it runs, and at host and port"
    )
