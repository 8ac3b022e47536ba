"""The golden database of this schema, in which every kind of state is; see fixtures/databases.

    python -m tests.commands.qmgr.golden_state      # writes schema-N.sql, unless it is there already

A golden database is written once, by the first version of its schema, and never again.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Final

from commands.broker.objects import QueueManager
from commands.network.cluster_topics import RepositoryEntry
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore, schema
from commands.qmgr.store.opening import DATABASE
from rfh2 import Mqmd, Rfh1
from rfh2.channel.segments import Xid
from rfh2.distribution import VERSION
from streams.topic_objects import TopicObject
from tests.commands.cli_runs import run
from tests.reliability.workload import CONTROL, STREAM, clock, mixed_load, put

GOLDEN: Final = Path(__file__).parents[3] / "fixtures" / "databases"
_COMMANDS: Final = 60
_MQSC: Final = """
ALTER QMGR DESCR('All kinds of state') DEADQ(LOST) PSNPMSG(KEEP) PSRTYCNT(3) TREELIFE(60)
ALTER QMGR PARENT(ABOVE) CUSTOM('PSCTAGS(STRICT)')
DEFINE QLOCAL(LOST) MAXDEPTH(500)
DEFINE QLOCAL(LARGE) DESCR('Results') DEFPSIST(YES) DEFPRTY(3) MAXDEPTH(7) MAXMSGL(2000) BOTHRESH(2) BOQNAME(LOST)
DEFINE QLOCAL(CLOSED) GET(DISABLED) PUT(DISABLED)
DEFINE QLOCAL(FAR.QMGR) USAGE(XMITQ)
DEFINE QLOCAL('Sport') DEFPSIST(YES)
DEFINE QALIAS(OTHER) TARGET(LARGE)
DEFINE QALIAS(TO.TOPIC) TARGET(NEWS) TARGTYPE(TOPIC)
DEFINE QMODEL(MODEL) DEFTYPE(PERMDYN) MAXDEPTH(9)
DEFINE TOPIC(NEWS) TOPICSTR('news/today') DESCR('News') PUB(ENABLED) SUB(ENABLED) DURSUB(YES) WILDCARD(BLOCK) DEFPRTY(4)
DEFINE TOPIC('Sport') TOPICSTR('Sport') WILDCARD(BLOCK)
DEFINE TOPIC(POINT) TOPICSTR('point') WILDCARD(BLOCK)
DEFINE CHANNEL(SALES.QM1) CHLTYPE(CLUSRCVR) CLUSTER(SALES) CONNAME('here(1414)') DESCR('To QM1')
DEFINE CHANNEL(SALES.QM2) CHLTYPE(CLUSSDR) CLUSTER(SALES) CONNAME('there(1414)')
SUSPEND QMGR CLUSTER(SALES)
DEFINE TOPIC(SOLD) TOPICSTR('sold') CLUSTER(SALES) CLROUTE(TOPICHOST)
DEFINE NAMELIST(OWN) NAMES(A, B, C) DESCR('Three')
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM, 'Sport')
ALTER NAMELIST(SYSTEM.QPUBSUB.SUBPOINT.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.SUBPOINT, POINT)
DEFINE SUB(BY.MQSC) TOPICSTR('news/#') DEST(LARGE) SELECTOR('region = ''EMEA''') SUBLEVEL(3) EXPIRY(900000) PUBPRTY(5)
ALTER SUB(BY.MQSC) USERDATA('mine')
DEFINE SUB(IN.GROUP) TOPICOBJ(NEWS) TOPICSTR('sport') DEST(LARGE) GROUPSUB(YES) DESTCORL('AB')
DEFINE SUB(AS.PUBLISHED) TOPICSTR('news') DEST(LARGE) DESTCORL('000000000000000000000000000000000000000000000000')
"""
_AUTHORITY: Final = """
SET AUTHREC PROFILE(NEWS) OBJTYPE(TOPIC) PRINCIPAL('reader') AUTHADD(SUB)
SET AUTHREC PROFILE('SUB.**') OBJTYPE(QUEUE) GROUP('staff') AUTHADD(PUT, GET)
"""
_REGISTRATIONS: Final = (
    "<RegOpt>VariableUserId</RegOpt><RegOpt>PubOnReqOnly</RegOpt><SubName>ask</SubName><Topic>t/1</Topic><QName>ASK</QName>",
    "<RegOpt>FullResp</RegOpt><RegOpt>CorrelAsId</RegOpt><Topic>t/2</Topic><QName>CORREL</QName>",
    "<RegOpt>NewPubsOnly</RegOpt><RegOpt>Local</RegOpt><Topic>t/+</Topic><QName>NEW</QName>"
    "<SubUserData>for whom</SubUserData>",
    "<SubPoint>point</SubPoint><Topic>t/3</Topic><QName>POINT</QName>",
    "<Filter>Root.MQMD.Priority &gt; 5</Filter><Topic>t/4</Topic><QName>FILTERED</QName>",
    "<SubIdentity>one</SubIdentity><RegOpt>JoinShared</RegOpt><SubName>set</SubName><Topic>t/5</Topic><QName>SET</QName>",
    "<SubIdentity>one</SubIdentity><RegOpt>JoinExcl</RegOpt><SubName>alone</SubName><Topic>t/7</Topic><QName>SET</QName>",
)
_MQRFH: Final = (
    ("MQPSCommand", "RegSub"),
    ("MQPSStreamName", "Sport"),
    ("MQPSTopic", "Goals*"),
    ("MQPSQName", "MQRFH"),
)


def made(home: Path) -> Path:
    """Make QM1 with all kinds of state in *home*; its database."""
    QueueManagerStore.create(home, QueueManager("QM1")).close()
    _administered(home, _MQSC)
    with QueueManagerStore.open(home, "QM1", clock=clock) as store:
        with store.connect() as program:
            assert program.open("MODEL", "KEPT.*").made
        with store.unit_of_work() as unit:
            for number, registration in enumerate(_REGISTRATIONS, 1):
                who = {"accounting_token": bytes([number]) * 32, "appl_identity_data": f"data {number}"}
                put(unit, CONTROL, f"<Command>RegSub</Command>{registration}", correl_id=bytes([number]) * 24, **who)
            header = Rfh1(format="MQSTR").with_pairs(_MQRFH)
            unit.put(CONTROL, Mqmd(format="MQHRF", persistence=1, user_identifier="app").encode(), header.encode())
            put(unit, CONTROL, "<Command>RegSub</Command><Topic>t/6</Topic><QName>SOON</QName>", expiry=36_000)
            unit.neighbours.learn(RepositoryEntry("QM2", ("SALES",), (TopicObject("GOODS", "goods", cluster="SALES"),)))
        mixed_load(store, _COMMANDS)
        Processor(store, clock).drain()
        with store.unit_of_work() as unit:
            put(unit, STREAM, "<Command>Publish</Command><Topic>t/1</Topic>", b"waiting", expiry=864_000)
            in_doubt = unit.put("ASK", Mqmd(persistence=1).encode(), b"in doubt")
            unit.uncommitted.put("ASK", in_doubt, "1 1 1")
            assert unit.prepared.add(Xid(1, b"transaction", b"branch").write("big"), "1 1 1")
    _administered(home, _AUTHORITY)
    return home / "QM1" / DATABASE


def _administered(home: Path, script: str) -> None:
    answered = run("mqsc", "-m", "QM1", "--home", str(home), stdin=script)
    assert answered.code == 0, answered.out


def dumped(path: Path) -> str:
    """The database as SQL."""
    connection = sqlite3.connect(path)
    try:
        had = f"-- A queue manager's database as schema {len(schema.MIGRATIONS)} had it"
        head = [
            f"{had}: made by qpubsub {VERSION}, written out by SQLite.",
            *(
                f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
                for name in ("application_id", "user_version")
            ),
        ]
        return "\n".join([*head, *connection.iterdump(), ""])
    finally:
        connection.close()


def main() -> int:
    """Write the golden database of this schema; 1 if there is one."""
    golden = GOLDEN / f"schema-{len(schema.MIGRATIONS)}.sql"
    if golden.exists():
        print(f"{golden.name} is there, and is never written again", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as home:
        golden.write_text(dumped(made(Path(home))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
