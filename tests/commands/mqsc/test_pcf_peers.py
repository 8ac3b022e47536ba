# ruff: noqa: N802 - the calls have their own names
"""The PCF classes of ``ibmmq`` and ``pymqi`` build the commands and read the answers (PCF-10).

Their own code runs from ``PCFExecute`` down to MQI calls with packed structures; in the place of their C extension
stands ``Calls``, which opens, puts and gets on a queue manager here, and lets the processor work in between.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.admin import PcfCommandServer
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2.mqmd import Mqmd
from tests.commands.mqsc.pcf_desk import REPLY, Desk
from tests.rfh2.peers import PEERS

NO_MESSAGE = 2033
# ObjectName in an MQOD.
NAME = slice(12, 60)


class Calls:
    """The MQI calls that PCFExecute makes. handles: queues by their handle."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.handles: dict[int, str] = {}

    def MQCONN(self, _name: bytes) -> tuple[int, int, int]:
        return 1, 0, 0

    def MQCONNX(self, *_given: Any) -> tuple[int, int, int]:
        return 1, 0, 0

    def MQDISC(self, *_given: Any) -> tuple[int, int]:
        return 0, 0

    def MQCLOSE(self, *_given: Any) -> tuple[int, int]:
        return 0, 0

    def MQOPEN(self, _connection: int, descriptor: bytes, _options: int) -> tuple[int, bytes, int, int]:
        """A model queue opens the reply queue."""
        name = descriptor[NAME].rstrip(b" \0").decode()
        if "MODEL" in name:
            name = REPLY
        self.handles[handle := len(self.handles) + 1] = name
        opened = descriptor[: NAME.start] + f"{name:48}".encode() + descriptor[NAME.stop :]
        return handle, opened, 0, 0

    def MQPUT(self, _connection: int, handle: int, md: bytes, options: bytes, data: bytes) -> tuple[Any, ...]:
        put = Mqmd.decode(md)
        put = replace(put, msg_id=b"peer".ljust(24), user_identifier="admin", persistence=0, priority=0)
        with self.desk.store.unit_of_work() as unit:
            unit.put(self.handles[handle], put.encode(), data, user="admin")
        self.desk.processor.drain()
        return self._sized(put, len(md)), options, 0, 0

    def MQGET(self, _connection: int, handle: int, md: bytes, options: bytes, _length: int) -> tuple[Any, ...]:
        with self.desk.store.unit_of_work() as unit:
            message = unit.get(self.handles[handle])
        if message is None:
            return b"", md, options, 0, 2, NO_MESSAGE
        got = Mqmd.decode(message.md)
        assert got.correl_id == Mqmd.decode(md).correl_id
        return message.body, self._sized(got, len(md)), options, len(message.body), 0, 0

    @staticmethod
    def _sized(mqmd: Mqmd, size: int) -> bytes:
        return replace(mqmd, version=2 if size == 364 else 1).encode()


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def pcf(peer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A PCFExecute of the peer, connected to a queue manager here."""
    extension = {"ibmmq": "ibmmqc", "pymqi": "pymqe"}[peer.__name__]
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        desk = Desk(store)
        # With the real clock: peers let their requests expire.
        desk.processor = Processor(store, lambda: datetime.now(UTC), command_servers=[PcfCommandServer])
        calls = Calls(desk)
        for names in _with(peer, extension):
            for name in ("MQCONN", "MQCONNX", "MQDISC", "MQCLOSE", "MQOPEN", "MQPUT", "MQGET"):
                monkeypatch.setattr(names[extension], name, getattr(calls, name), raising=False)
            monkeypatch.setattr(names[extension], "__strucversions__", {}, raising=False)
        manager = peer.QueueManager(None)
        manager.connect("QM1")
        execute = peer.PCFExecute(manager)
        yield execute
        execute.disconnect()
        manager.disconnect()


def _with(peer: Any, extension: str) -> list[dict[str, Any]]:
    """The namespaces of the peer's modules that call its C extension; other tests may have unloaded the modules."""
    classes = [each for each in vars(peer).values() if inspect.isclass(each)]
    functions = [each for one in classes for each in vars(one).values() if inspect.isfunction(each)]
    namespaces = {id(each.__globals__): each.__globals__ for each in functions}
    return [names for names in namespaces.values() if extension in names]


def ids(peer: Any) -> tuple[Any, Any]:
    return peer.CMQC, peer.CMQCFC


def strip(value: bytes) -> str:
    return value.rstrip(b" \0").decode()


@pytest.mark.rule("PCF-10")
def test_topics(pcf: Any, peer: Any) -> None:
    q, f = ids(peer)
    made = {q.MQCA_TOPIC_NAME: b"T", q.MQCA_TOPIC_STRING: b"a/b", q.MQIA_TOPIC_TYPE: q.MQTOPT_LOCAL}
    assert not any(pcf.MQCMD_CREATE_TOPIC(made))
    (row,) = [r for r in pcf.MQCMD_INQUIRE_TOPIC({q.MQCA_TOPIC_NAME: b"*"}) if strip(r[q.MQCA_TOPIC_NAME]) == "T"]
    assert (strip(row[q.MQCA_TOPIC_STRING]), row[q.MQIA_INHIBIT_PUB]) == ("a/b", q.MQTA_PUB_AS_PARENT)
    assert not any(pcf.MQCMD_CHANGE_TOPIC({q.MQCA_TOPIC_NAME: b"T", q.MQIA_INHIBIT_PUB: q.MQTA_PUB_INHIBITED}))
    attributes = {q.MQCA_TOPIC_NAME: b"T", f.MQIACF_TOPIC_ATTRS: [q.MQIA_INHIBIT_PUB]}
    (row,) = pcf.MQCMD_INQUIRE_TOPIC(attributes)
    assert row[q.MQIA_INHIBIT_PUB] == q.MQTA_PUB_INHIBITED
    assert q.MQCA_TOPIC_STRING not in row
    assert not any(pcf.MQCMD_DELETE_TOPIC({q.MQCA_TOPIC_NAME: b"T"}))
    with pytest.raises(peer.MQMIError) as refused:
        pcf.MQCMD_INQUIRE_TOPIC({q.MQCA_TOPIC_NAME: b"T"})
    assert (refused.value.comp, refused.value.reason) == (q.MQCC_FAILED, q.MQRC_UNKNOWN_OBJECT_NAME)


@pytest.mark.rule("PCF-10")
def test_subscriptions(pcf: Any, peer: Any) -> None:
    q, f = ids(peer)
    for name in (b"ONE", b"TWO"):
        made = {f.MQCACF_SUB_NAME: name, q.MQCA_TOPIC_STRING: b"a/" + name, f.MQCACF_DESTINATION: b"DEST.QUEUE"}
        assert not any(pcf.MQCMD_CREATE_SUBSCRIPTION(made))
    rows = pcf.MQCMD_INQUIRE_SUBSCRIPTION({f.MQCACF_SUB_NAME: b"*"})
    told = [(strip(r[f.MQCACF_SUB_NAME]), strip(r[q.MQCA_TOPIC_STRING]), strip(r[f.MQCACF_DESTINATION])) for r in rows]
    assert told == [("ONE", "a/ONE", "DEST.QUEUE"), ("TWO", "a/TWO", "DEST.QUEUE")]
    status = pcf.MQCMD_INQUIRE_SUB_STATUS({f.MQCACF_SUB_NAME: b"TWO"})
    assert status[0][f.MQBACF_SUB_ID][:24] == rows[1][f.MQBACF_SUB_ID][:24]
    by_id = {f.MQBACF_SUB_ID: peer.ByteString(rows[0][f.MQBACF_SUB_ID][:24])}
    assert not any(pcf.MQCMD_DELETE_SUBSCRIPTION(by_id))
    assert len(pcf.MQCMD_INQUIRE_SUBSCRIPTION({f.MQCACF_SUB_NAME: b"*"})) == 1


def test_queues_with_a_filter(pcf: Any, peer: Any) -> None:
    q, f = ids(peer)
    for name, depth in ((b"DEEP.Q", 5000), (b"FLAT.Q", 5)):
        made = {q.MQCA_Q_NAME: name, q.MQIA_Q_TYPE: q.MQQT_LOCAL, q.MQIA_MAX_Q_DEPTH: depth}
        assert not any(pcf.MQCMD_CREATE_Q(made))
    asked = {q.MQCA_Q_NAME: b"*", q.MQIA_Q_TYPE: q.MQQT_LOCAL, f.MQIACF_Q_ATTRS: [q.MQCA_Q_NAME, q.MQIA_MAX_Q_DEPTH]}
    rows = pcf.MQCMD_INQUIRE_Q(asked, [peer.Filter(q.MQIA_MAX_Q_DEPTH).less(100)])
    assert [(strip(row[q.MQCA_Q_NAME]), row[q.MQIA_MAX_Q_DEPTH]) for row in rows] == [("FLAT.Q", 5)]
    rows = pcf.MQCMD_INQUIRE_Q(asked, [peer.Filter(q.MQCA_Q_NAME).like(b"DEEP*")])
    assert [strip(row[q.MQCA_Q_NAME]) for row in rows] == ["DEEP.Q"]


def test_namelists(pcf: Any, peer: Any) -> None:
    q, _ = ids(peer)
    names = [b"ONE", b"A.LONGER.NAME"]
    assert not any(pcf.MQCMD_CREATE_NAMELIST({q.MQCA_NAMELIST_NAME: b"N", q.MQCA_NAMES: names}))
    (row,) = pcf.MQCMD_INQUIRE_NAMELIST({q.MQCA_NAMELIST_NAME: b"N"})
    assert ([strip(name) for name in row[q.MQCA_NAMES]], row[q.MQIA_NAME_COUNT]) == (["ONE", "A.LONGER.NAME"], 2)


def test_queue_manager_and_status(pcf: Any, peer: Any) -> None:
    q, f = ids(peer)
    assert not any(pcf.MQCMD_PING_Q_MGR())
    (row,) = pcf.MQCMD_INQUIRE_Q_MGR({f.MQIACF_Q_MGR_ATTRS: [q.MQCA_Q_MGR_NAME, q.MQIA_PUBSUB_MODE]})
    assert (strip(row[q.MQCA_Q_MGR_NAME]), row[q.MQIA_PUBSUB_MODE]) == ("QM1", q.MQPSM_ENABLED)
    (row,) = pcf.MQCMD_INQUIRE_PUBSUB_STATUS()
    assert row[f.MQIACF_PUBSUB_STATUS] == f.MQPS_STATUS_ACTIVE
    assert not any(pcf.MQCMD_CREATE_TOPIC({q.MQCA_TOPIC_NAME: b"T", q.MQCA_TOPIC_STRING: b"ab/cd"}))
    rows = pcf.MQCMD_INQUIRE_TOPIC_STATUS({q.MQCA_TOPIC_STRING: b"#"})
    assert [strip(row[q.MQCA_TOPIC_STRING]) for row in rows] == ["ab", "ab/cd"]


def test_a_command_that_the_bridge_does_not_know(pcf: Any, peer: Any) -> None:
    _, f = ids(peer)
    with pytest.raises(peer.MQMIError) as refused:
        pcf.MQCMD_ARCHIVE_LOG({})
    assert refused.value.reason == f.MQRCCF_CFH_COMMAND_ERROR
