"""The queue store, with a clock that jumps and with damage."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, QueueManager
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2 import QPubSubError
from tests.reliability.trials import Json, Target
from tests.reliability.workload import put

_START: Final = datetime(2026, 1, 2, tzinfo=UTC)
_FIRST, _LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_JUMPS: Final = (0, 1, -1, 60, -5, -3600, 86_400, -86_400, 220_000_000, -220_000_000, -1_700_000_000, 2_000_000_000)
_EXPIRIES: Final = (-1, 1, 10, 600, 2**31 - 1, 2**31 - 2, 1_000_000_000)


def _clock(random: Random) -> Json:
    steps = []
    for _ in range(random.randint(2, 8)):
        what = random.choice(("register", "publish", "publish", "retain", "put", "get", "run", "run", "discard"))
        steps.append([random.choice(_JUMPS), what, random.choice(_EXPIRIES)])
    return steps


def _jumps(case: Json) -> str:
    """Whatever the clock does, nobody fails; and what never expires stays."""
    now, lasting = _START, 0

    def command(queue: str, psc: str, expiry: int) -> None:
        with store.unit_of_work() as unit:
            put(unit, queue, psc, expiry=expiry)

    with tempfile.TemporaryDirectory() as home:
        QueueManagerStore.create(Path(home), QueueManager("QM1")).close()
        with QueueManagerStore.open(Path(home), "QM1", clock=lambda: now) as store:
            processor = Processor(store, lambda: now)
            for seconds, what, expiry in case:
                now = min(max(now + timedelta(seconds=seconds), _FIRST), _LAST)
                if what == "register":
                    command(CONTROL_QUEUE, "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName>", expiry)
                elif what in ("publish", "retain"):
                    option = "<PubOpt>RetainPub</PubOpt>" * (what == "retain")
                    command(DEFAULT_STREAM, f"<Command>Publish</Command>{option}<Topic>a</Topic>", expiry)
                elif what == "put":
                    lasting += expiry == -1
                    command("OTHER", "", expiry)
                elif what == "get":
                    with store.unit_of_work() as unit:
                        got = None if unit.find_queue("OTHER") is None else unit.get("OTHER")
                    lasting -= got is not None and got.expires_at is None
                elif what == "run":
                    processor.drain()
                else:
                    processor.start()
            processor.drain()
            there = store.find_queue("OTHER") is not None and [m for m in store.browse("OTHER") if m.expires_at is None]
            assert len(there or []) == lasting, "a message that never expires is gone"
            store.load_state()
    return "held"


_TABLES: Final = (
    *(("definitions", "state"), ("definitions", "name"), ("definitions", "kind"), ("subscriptions", "state")),
    *(
        ("subscriptions", "sub_id"),
        ("messages", "md"),
        ("messages", "queue"),
        ("messages", "time"),
        ("messages", "body"),
    ),
    *(("retained", "topic"), ("retained", "md"), ("retained", "body"), ("state", "version")),
)
_ROTTEN: Final = (
    "NULL",
    "''",
    "x''",
    "1e300",
    "-1",
    "9223372036854775807",
    "'{}'",
    "'[]'",
    "CAST(x'e3ff' AS TEXT)",
    "x'00'",
)


def _damage(random: Random) -> Json:
    """Bytes of the file, or values of the tables, that are others."""
    if random.random() < 0.5:
        return {"seed": random.randrange(2**32), "changes": random.choice((1, 2, 8, 50)), "sql": []}
    table, column = random.choice(_TABLES)
    at = random.randrange(400)
    cut = f"substr({column}, 1, {at}) || char({random.choice((22, 34, 55, 125, 0xD7FF))}) || substr({column}, {at + 2})"
    where = random.choice(("", f" WHERE rowid = {random.randrange(45)}" if table in ("messages", "state") else ""))
    value = random.choice((random.choice(_ROTTEN), cut))
    return {"seed": 0, "changes": 0, "sql": [f"UPDATE OR REPLACE {table} SET {column} = {value}{where}"]}


def _damaged(case: Json) -> str:
    """A database that was damaged: it is read, or an error of the project's own names it; nothing else comes out."""
    random = Random(case["seed"])
    with tempfile.TemporaryDirectory() as home:
        path = _database(Path(home))
        data = bytearray(path.read_bytes())
        for _ in range(case["changes"]):
            data[random.randrange(len(data))] = random.randrange(256)
        path.write_bytes(data)
        for statement in case["sql"]:
            with (
                contextlib.closing(sqlite3.connect(path)) as connection,
                contextlib.suppress(sqlite3.Error),
                connection,
            ):
                connection.execute(statement)
        try:
            with QueueManagerStore.open(Path(home), "QM1", clock=lambda: _START) as store:
                objects, subscriptions, _ = store.load_state()
                for queue in objects.queues:
                    list(store.browse(queue))
                Processor(store, lambda: _START).drain()
        except QPubSubError as error:
            return type(error).__name__
    return "read" if len(subscriptions) == _SUBSCRIPTIONS else "read in part"


_SUBSCRIPTIONS: Final = 40


def _database(home: Path) -> Path:
    """A queue manager with subscriptions, a retained publication, messages, and commands that wait."""
    with QueueManagerStore.create(home, QueueManager("QM1"), clock=lambda: _START) as store:
        for waits in (False, True):
            with store.unit_of_work() as unit:
                for number in range(3 if waits else _SUBSCRIPTIONS):
                    to = f"<Topic>a/{number % 7}</Topic><QName>S{number}</QName>"
                    put(unit, CONTROL_QUEUE, f"<Command>RegSub</Command>{to}")
                put(unit, DEFAULT_STREAM, "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/1</Topic>")
            if not waits:
                Processor(store, lambda: _START).drain()
        return Path(store.database.path)


TARGETS: Final = (
    Target("clock", "a clock that jumps: no verb fails, nothing lasting is gone", _clock, _jumps, 600, 5.0),
    Target("damage", "a damaged database: read, or an error of the project's own", _damage, _damaged, 300, 5.0),
)
