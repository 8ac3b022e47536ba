"""Mixed loads for a queue manager, and all that it holds afterwards: what interrupted runs are compared by.

All messages are persistent. The same seed gives the same load.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from commands.broker.objects import LocalQueue, QueueManager
from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from rfh2 import Folder, Mqmd, Rfh1, Rfh2

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
SEED = 20261121
_RETAIN = "<PubOpt>RetainPub</PubOpt>"


def clock() -> datetime:
    """A clock that stands still."""
    return NOW


@contextmanager
def unlogged() -> Iterator[None]:
    """Nothing is logged meanwhile: a load is refused a thousand times, and each time says so."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def put(unit: UnitOfWork, queue: str, psc: str, body: bytes = b"data", **mqmd: object) -> None:
    """Put a persistent command with this psc folder."""
    md = Mqmd(**{"format": "MQHRF2", "persistence": 1, "user_identifier": "app", **mqmd})  # type: ignore[arg-type]
    unit.put(queue, md.encode(), Rfh2((Folder.of(f"<psc>{psc}</psc>"),), format="MQSTR").encode() + body)


def _put_string(unit: UnitOfWork, queue: str, string: str, **mqmd: object) -> None:
    md = Mqmd(**{"format": "MQHRF", "persistence": 1, "user_identifier": "app", **mqmd})  # type: ignore[arg-type]
    unit.put(queue, md.encode(), Rfh1(format="MQSTR").with_pairs(_pairs(string)).encode() + b"data")


def _pairs(string: str) -> list[tuple[str, str]]:
    words = string.split()
    return list(zip(words[::2], words[1::2], strict=True))


def mixed_load(store: QueueManagerStore, commands: int, seed: int = SEED) -> None:
    """Put so many commands of all kinds, over MQRFH2 and MQRFH, on the input queues.

    Registrations that come and go, with names, identity sets, wildcards and filters; publications for several
    subscribers, many retained, and their deletion; requests; priorities; commands that are refused and answered;
    messages that are none; and a subscriber queue that is full, so that there are dead letters.
    """
    chance = random.Random(seed)
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("FULL", max_depth=20))
        for _ in range(commands):
            topic, queue = f"t/{chance.randrange(40)}", chance.choice(["S1", "S2", "S3", "S4", "FULL"])
            to = f"<Topic>{topic}</Topic><QName>{queue}</QName>"
            asked = {"msg_type": 1, "reply_to_q": "REPLIES"} if chance.random() < 0.3 else {"report": 2}
            kind = chance.random()
            if kind < 0.08:
                put(unit, CONTROL, f"<Command>RegSub</Command>{to}{chance.choice(_EXTRAS)}", **asked)
            elif kind < 0.10:
                wild = chance.choice(["t/+", "t/#", "#", "+/7", "MQ/x"])
                put(unit, CONTROL, f"<Command>RegSub</Command><Topic>{wild}</Topic><QName>{queue}</QName>", **asked)
            elif kind < 0.12:
                word, at = chance.choice([("RegSub", CONTROL), ("DeregSub", CONTROL), ("Publish", STREAM)])
                where = topic if word == "Publish" else chance.choice([topic, "t/1*", "?/2?"])
                to_string = "" if word == "Publish" else f" MQPSQName {queue}"
                _put_string(unit, at, f"MQPSCommand {word} MQPSTopic {where}{to_string}", **asked)
            elif kind < 0.16:
                put(unit, CONTROL, f"<Command>DeregSub</Command>{to}{chance.choice(_EXTRAS[:4])}", **asked)
            elif kind < 0.17:
                put(
                    unit,
                    CONTROL,
                    f"<Command>DeregSub</Command><RegOpt>DeregAll</RegOpt><QName>{queue}</QName>",
                    **asked,
                )
            elif kind < 0.20:
                put(unit, CONTROL, f"<Command>ReqUpdate</Command>{to}", **asked)
            elif kind < 0.23:
                put(unit, STREAM, f"<Command>DeletePub</Command><Topic>{topic}</Topic>", **asked)
            elif kind < 0.25:
                put(unit, chance.choice([CONTROL, STREAM]), "<Command>Publish</Command>", **asked)
            elif kind < 0.28:
                unit.put(STREAM, None, b"RFH \2\0\0\0 this is no header", time=NOW)
            else:
                retain = _RETAIN if chance.random() < 0.3 else ""
                several = f"<Topic>t/{chance.randrange(40)}</Topic>" if chance.random() < 0.1 else ""
                psc = f"<Command>Publish</Command>{retain}<Topic>{topic}</Topic>{several}"
                put(unit, STREAM, psc, b"%d" % chance.randrange(10**6), priority=chance.randrange(3))


_EXTRAS = (
    "",
    "",
    "<SubName>one</SubName>",
    "<SubName>two</SubName><SubIdentity>me</SubIdentity><RegOpt>JoinShared</RegOpt>",
    "<RegOpt>InformIfRet</RegOpt>",
    "<RegOpt>NewPubsOnly</RegOpt>",
    "<Filter>Root.MQMD.Priority &gt; 0</Filter>",
    "<Filter>a =</Filter>",
    "<RegOpt>FullResp</RegOpt><RegOpt>PersAsQueue</RegOpt>",
)


def create(home: Path, commands: int, seed: int = SEED) -> None:
    """Make queue manager QM1 in *home* with a mixed load on its queues."""
    with QueueManagerStore.create(home, QueueManager("QM1")) as store:
        mixed_load(store, commands, seed)


def everything(home: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every queue's messages in order, all subscriptions and retained publications, and what was counted; no times."""
    out: dict[str, list[tuple[object, ...]]] = {}
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        objects, subscriptions, retained = unit.load_state()
        for queue in objects.queues:
            out[f"queue {queue}"] = [_contents(message.md, message.body) for message in unit.browse(queue)]
        out["subscriptions"] = sorted((s.sub_id, s.topic_string, s.dest_queue, s.name or "") for s in subscriptions)
        counters = unit.counters
        out["counts of subscriptions"] = sorted(
            (sub_id, each.delivered, each.filtered, each.dead_letters)
            for sub_id, each in counters.subscriptions().items()
        )
        out["counts of topics"] = sorted((topic, each.publications) for topic, each in counters.topics().items())
        out["counts of queues"] = sorted((name, each.puts, each.gets) for name, each in counters.queues().items())
        out["retained"] = sorted((r.topic_string, r.publication.message.body) for r in retained)
    return {what: found for what, found in out.items() if found}


def _contents(md: bytes, body: bytes) -> tuple[object, ...]:
    mqmd = Mqmd.decode(md)
    # The MQDLH's PutDate and PutTime are left out.
    body = body if body[:4] != b"DLH " else body[:124] + body[172:]
    return mqmd.msg_id, mqmd.correl_id, mqmd.msg_type, mqmd.persistence, mqmd.priority, body


def waiting(home: Path) -> int:
    """How many commands are on the input queues."""
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        return unit.depth(CONTROL) + unit.depth(STREAM)


def drain(home: Path, batch: int = 200, now: Callable[[], datetime] = clock) -> None:
    """Process all that waits. The log is written back often, so that a kill falls into that too."""
    with QueueManagerStore.open(home, "QM1") as store:
        store.database.connection.execute("PRAGMA wal_autocheckpoint = 20")
        Processor(store, now, settings=ProcessorSettings(batch=batch)).drain()
