"""The queue store under a clock that jumps, captured messages through every file format, MQSC that a generator writes."""

from __future__ import annotations

import io
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

from commands.mqsc.attributes import NAMELIST, QALIAS, QLOCAL, QMGR, SUB, TOPIC
from commands.objects import CONTROL_QUEUE, DEFAULT_STREAM, QueueManager
from commands.processor import Processor
from commands.queues import MessageRefusedError, QueueManagerStore
from rfh2 import CapturedMessage, DecodeError, Folder, Mqmd, Rfh2
from rfh2.captures import FORMATS, read_captures, write_captures
from rfh2.errors import CaptureError
from tests.reliability import corpus
from tests.reliability.hostile import run_script
from tests.reliability.trials import Json, Target

_START: Final = datetime(2026, 1, 2, tzinfo=UTC)
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

    def put(queue: str, psc: str, expiry: int) -> None:
        md = Mqmd(format="MQHRF2", persistence=1, user_identifier="app", expiry=expiry)
        body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),)).encode()
        with store.unit_of_work() as unit:
            unit.put(queue, md.encode(), body)

    with tempfile.TemporaryDirectory() as home:
        QueueManagerStore.create(Path(home), QueueManager("QM1")).close()
        with QueueManagerStore.open(Path(home), "QM1", clock=lambda: now) as store:
            processor = Processor(store, lambda: now)
            for seconds, what, expiry in case:
                now = min(
                    max(now + timedelta(seconds=seconds), datetime(1970, 1, 2, tzinfo=UTC)),
                    datetime(2200, 1, 1, tzinfo=UTC),
                )
                if what == "register":
                    put(CONTROL_QUEUE, "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName>", expiry)
                elif what in ("publish", "retain"):
                    option = "<PubOpt>RetainPub</PubOpt>" * (what == "retain")
                    put(DEFAULT_STREAM, f"<Command>Publish</Command>{option}<Topic>a</Topic>", expiry)
                elif what == "put":
                    lasting += expiry == -1
                    put("OTHER", "", expiry)
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


def _messages(random: Random) -> Json:
    found = []
    for mutant in random.choices(corpus.messages(), k=random.randint(1, 4)):
        md, body = mutant.mqmd, mutant.body
        if random.random() < 0.3:
            body = random.choice(
                (b"", b"\n\n", b"#@#@#", b"A 00\n", body + b"\r\n", random.randbytes(20), b"* comment")
            )
        if isinstance(md, bytes) and random.random() < 0.2:
            # A descriptor that is one, with other text in its fields.
            md = md[:48] + random.choice((b"\xff", b"\0", b"\n", b"\x7f", b"'", b"\x85")) * 8 + md[56:]
        names = ("Q", "A.B", "", "q q", "é", "x" * 48, "'", '"', "*", "\n")
        found.append(
            [
                random.choice(names),
                random.choice(names[:4]),
                None if md is None or isinstance(md, Mqmd) else md.hex(),
                body.hex(),
            ]
        )
    return {
        "format": random.choice([name for name, form in FORMATS.items() if form.writer is not None]),
        "messages": found,
    }


def _through_files(case: Json) -> str:
    """What a format says that it keeps is read as it was written; what it cannot hold is refused, not spoiled."""
    form = FORMATS[case["format"]]
    given = [
        CapturedMessage(seq=seq, queue=queue, qmgr=qmgr or None, md_hex=md, body_hex=body)
        for seq, (queue, qmgr, md, body) in enumerate(case["messages"], 1)
    ][: 1 if form.name == "raw" else None]
    refused: list[int] = []
    target = io.BytesIO()

    def refuse(message: CapturedMessage, _error: CaptureError) -> None:
        refused.append(message.seq)

    written = write_captures(given, target, form.name, refused=refuse)
    kept = [message for message in given if message.seq not in refused]
    assert written == len(kept)
    target.seek(0)
    back = [record.message for record in read_captures(target, form.name, name="case")]
    fields = [name for name in ("queue", "qmgr", "md", "body") if name in form.keeps]
    if any(message.md is None for message in kept) and form.name not in ("jsonl", "parquet"):
        fields.remove("md") if "md" in fields else None  # others write the defaults
    assert [_kept(message, fields) for message in back] == [_kept(message, fields) for message in kept]
    return "all refused" if not kept else "some refused" if refused else "all kept"


def _kept(message: CapturedMessage | None, fields: list[str]) -> dict[str, Any]:
    assert message is not None, "a record that was written cannot be read"
    return {name: getattr(message, name) for name in fields}


_KINDS: Final = {kind.word: kind for kind in (TOPIC, QLOCAL, QALIAS, NAMELIST, QMGR, SUB)}
_VERBS: Final = ("DEFINE", "ALTER", "DELETE", "DISPLAY", "DIS", "CLEAR", "SET", "START", "REFRESH", "define", "*", "")
_TARGETS: Final = (
    *_KINDS,
    "SBSTATUS",
    "TPSTATUS",
    "TOPICSTR",
    "PUBSUB",
    "AUTHREC",
    "QUEUE",
    "CHANNEL",
    "NL",
    "QL",
    "é",
)
_TEXTS: Final = (
    "A",
    "'a b'",
    "''",
    "'it''s'",
    "'",
    "a/#",
    "'#'",
    "'+'",
    "*",
    "A*",
    "YES",
    "NO",
    "0",
    "-1",
    "99999999999",
    "ALL",
    "'\n'",
    "'x' 'y'",
    "(",
    "A, B",
    "A,B,C",
    ",",
    "'é'",
    "\0",
    "UNLIMITED",
    "ASPARENT",
    "(A)",
    "'%'",
    "'a = 1'",
    "'a ='",
)
_JOINS: Final = (" ", " ", " ", "  ", " +\n   ", " -\n", "\n", "\t", "", " * ", ";")


def _soup(random: Random) -> Json:
    lines = []
    for _ in range(random.randint(1, 6)):
        target = random.choice(_TARGETS if random.random() < 0.3 else tuple(_KINDS))
        words = [
            random.choice(_VERBS[:4] if random.random() < 0.9 else _VERBS),
            f"{target}({random.choice(_TEXTS[:12])})",
        ]
        keywords = (
            [attribute.keyword for attribute in _KINDS[target].attributes] if target in _KINDS else ["ALL", "TYPE"]
        )
        for keyword in random.sample(keywords, min(len(keywords), random.randrange(4))):
            words.append(keyword if random.random() < 0.1 else f"{keyword}({random.choice(_TEXTS)})")
        if random.random() < 0.2:
            words.append(
                f"WHERE({random.choice(keywords)} {random.choice(('LT', 'EQ', 'LK', 'CT', 'XX'))} {random.choice(_TEXTS)})"
            )
        if words[0] == "DEFINE":
            words += {"TOPIC": ["TOPICSTR('a/b')"], "SUB": ["TOPICSTR('a')", "DEST(Q)"], "QALIAS": ["TARGET(Q)"]}.get(
                target, []
            )
        join = random.choice(_JOINS[:5] if random.random() < 0.9 else _JOINS)
        lines.append(join.join(words))
    return "\n".join(lines)


def _foreign_database(random: Random) -> Json:
    return {"seed": random.randrange(2**32), "changes": random.choice((1, 2, 8, 50))}


def _damaged(case: Json) -> str:
    """A database that was damaged: it is read, or StoreError names it; nothing else comes out."""
    from commands.queues import StoreDamagedError
    from rfh2 import QPubSubError

    random = Random(case["seed"])
    with tempfile.TemporaryDirectory() as home:
        with QueueManagerStore.create(Path(home), QueueManager("QM1")) as store:
            with store.unit_of_work() as unit:
                for number in range(40):
                    psc = f"<Command>RegSub</Command><Topic>a/{number % 7}</Topic><QName>S{number}</QName>"
                    md = Mqmd(format="MQHRF2", persistence=1, user_identifier="app")
                    unit.put(CONTROL_QUEUE, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),)).encode())
            Processor(store, lambda: _START).drain()
            path = Path(store.database.path)
        data = bytearray(path.read_bytes())
        for _ in range(case["changes"]):
            data[random.randrange(len(data))] = random.randrange(256)
        path.write_bytes(data)
        try:
            with QueueManagerStore.open(Path(home), "QM1") as store:
                _, subscriptions, _ = store.load_state()
                for queue in store.load_state()[0].queues:
                    list(store.browse(queue))
                Processor(store, lambda: _START).drain()
        except StoreDamagedError:
            return "damaged, and said so"
        except DecodeError:
            return "a descriptor is damaged"
        except (QPubSubError, MessageRefusedError) as error:
            return type(error).__name__
    return "read" if len(subscriptions) == 40 else "read in part"


TARGETS: Final = (
    Target("clock", "a clock that jumps: no verb fails, nothing lasting is gone", _clock, _jumps, 600, 5.0),
    Target("files", "every format gives back what it says that it keeps", _messages, _through_files, 8_000),
    Target("mqsc", "any MQSC: every command is answered", _soup, run_script, 4_000),
    Target(
        "damage", "a damaged database: read, or an error of the project's own", _foreign_database, _damaged, 300, 5.0
    ),
)
