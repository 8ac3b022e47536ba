"""The shape of pymqi and ibmmq: programs that were written for these do here what they did there.

The cases are what the public tests of pymqi expect of a queue manager (docs/client.md).

Rows of docs/conformance.md: MQC-6.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from commands.client import pymqi
from commands.client.pymqi import CMQC, CMQCFC, GMO, MD, OD, SD, MQMIError, PYIFError

DATA = b"0123456789"


@pytest.fixture
def qmgr(url: str) -> Iterator[pymqi.QueueManager]:
    where = url.removeprefix("mq://").partition("/")[0].replace(":", "(") + ")"
    made = pymqi.connect("QM1", "C", where)
    yield made
    if made.is_connected:
        made.disconnect()


@pytest.fixture
def queue(qmgr: pymqi.QueueManager) -> pymqi.Queue:
    return pymqi.Queue(qmgr, "Q", CMQC.MQOO_INPUT_AS_Q_DEF | CMQC.MQOO_OUTPUT)


# The longest message that the program takes, its options, and what it gets: data, or reason, data and length.
GETS: list[tuple[str, int | None, int, Any]] = [
    ("any length", None, 0, DATA),
    ("long enough", len(DATA), 0, DATA),
    ("nothing", 0, 0, (2080, b"", 10)),
    ("too short", 4, 0, (2080, b"0123", 10)),
    ("nothing, cut", 0, CMQC.MQGMO_ACCEPT_TRUNCATED_MSG, (2079, b"", 10)),
    ("too short, cut", 4, CMQC.MQGMO_ACCEPT_TRUNCATED_MSG, (2079, b"0123", 10)),
    ("long enough, cut", 10, CMQC.MQGMO_ACCEPT_TRUNCATED_MSG, DATA),
]


@pytest.mark.rule("MQC-6")
@pytest.mark.parametrize(("longest", "options", "wanted"), [row[1:] for row in GETS], ids=[row[0] for row in GETS])
def test_what_a_get_takes(queue: pymqi.Queue, longest: int | None, options: int, wanted: Any) -> None:
    put = MD()
    queue.put(DATA, put)
    got = MD()
    if isinstance(wanted, bytes):
        assert queue.get(longest, got, GMO(Options=options)) == wanted
        assert (got.MsgId, got.PutDate) == (put.MsgId, put.PutDate)
        return
    with pytest.raises(MQMIError) as refused:
        queue.get(longest, got, GMO(Options=options))
    error: Any = refused.value
    assert (error.comp, error.reason, error.message, error.original_length) == (1, *wanted)


@pytest.mark.rule("MQC-6")
def test_no_message_a_wait_and_a_long_one(queue: pymqi.Queue) -> None:
    with pytest.raises(MQMIError, match="Reason 2033: MQRC_NO_MSG_AVAILABLE"):
        queue.get()
    with pytest.raises(MQMIError, match="2033"):
        queue.get(None, MD(), GMO(Options=CMQC.MQGMO_WAIT, WaitInterval=20))
    queue.put(bytes(4_097))
    assert len(queue.get()) == 4_097
    queue.put("Grüße")
    md = MD()
    assert (queue.get(None, md).decode(), md.CodedCharSetId, md.Format) == ("Grüße", 1208, b"MQSTR   ")
    queue.close()
    with pytest.raises(PYIFError):
        queue.close()


@pytest.mark.rule("MQC-6")
def test_a_message_by_its_identifier_and_put1(qmgr: pymqi.QueueManager, queue: pymqi.Queue) -> None:
    first, second = MD(CorrelId=b"a" * 24), MD(CorrelId=b"b" * 24)
    qmgr.put1("Q", "one", first)
    qmgr.put1(OD(ObjectName=b"Q"), b"two", second)
    by_id = GMO(MatchOptions=CMQC.MQMO_MATCH_MSG_ID)
    assert queue.get(None, MD(MsgId=second.MsgId), by_id) == b"two"
    by_correl = GMO(MatchOptions=CMQC.MQMO_MATCH_CORREL_ID)
    assert queue.get(None, MD(CorrelId=b"a" * 24), by_correl) == b"one"


@pytest.mark.rule("MQC-6")
def test_units_of_work(qmgr: pymqi.QueueManager, queue: pymqi.Queue) -> None:
    queue.put(b"x", pymqi.PMO(Options=CMQC.MQPMO_SYNCPOINT))
    qmgr.backout()
    with pytest.raises(MQMIError, match="2033"):
        queue.get()
    queue.put(b"x", pymqi.PMO(Options=CMQC.MQPMO_SYNCPOINT))
    qmgr.commit()
    assert queue.get() == b"x"


@pytest.mark.rule("MQC-6")
def test_the_life_of_a_connection(qmgr: pymqi.QueueManager) -> None:
    assert qmgr.is_connected
    assert qmgr.inquire(CMQC.MQCA_Q_MGR_NAME).strip() == b"QM1"
    qmgr.disconnect()
    assert not qmgr.is_connected
    assert not pymqi.QueueManager(None).is_connected
    with pytest.raises(MQMIError, match="2018"):
        pymqi.Queue(qmgr, "Q", CMQC.MQOO_OUTPUT)
    with pytest.raises(MQMIError, match="2538"):
        pymqi.connect("QM1", "C", "127.0.0.1(1)")
    with pytest.raises(PYIFError, match="no field Nonsense"):
        MD(Nonsense=1)


@pytest.mark.rule("MQC-6")
def test_pcf(qmgr: pymqi.QueueManager) -> None:
    execute = pymqi.PCFExecute(qmgr, response_wait_interval=10_000)
    assert execute.MQCMD_INQUIRE_Q_MGR()[0][CMQC.MQCA_Q_MGR_NAME] == b"QM1"
    name = {CMQC.MQCA_Q_NAME: b"MADE", CMQC.MQIA_Q_TYPE: CMQC.MQQT_LOCAL}
    execute.MQCMD_CREATE_Q({**name, CMQC.MQIA_MAX_Q_DEPTH: 7, CMQCFC.MQIACF_REPLACE: 1})
    (row,) = execute.MQCMD_INQUIRE_Q({CMQC.MQCA_Q_NAME: b"MADE"})
    assert (row[CMQC.MQCA_Q_NAME], row[CMQC.MQIA_MAX_Q_DEPTH]) == (b"MADE", 7)
    with pytest.raises(MQMIError):
        execute.MQCMD_DELETE_Q({CMQC.MQCA_Q_NAME: b"NO.SUCH"})


@pytest.mark.rule("MQC-6")
@pytest.mark.parametrize("durable", [0, CMQC.MQSO_DURABLE], ids=["non-durable", "durable"])
@pytest.mark.parametrize("managed", [True, False], ids=["managed", "provided"])
def test_subscriptions(qmgr: pymqi.QueueManager, durable: int, managed: bool) -> None:
    asked = SD(Options=CMQC.MQSO_CREATE | durable | (CMQC.MQSO_MANAGED if managed else 0))
    asked.set_vs("SubName", "MINE")
    asked.set_vs("ObjectString", "a/b")
    subscription = pymqi.Subscription(qmgr)
    subscription.sub(asked, None if managed else pymqi.Queue(qmgr, "R", CMQC.MQOO_INPUT_AS_Q_DEF))
    topic = pymqi.Topic(qmgr, topic_string="a/b")
    topic.open(open_opts=CMQC.MQOO_OUTPUT)
    topic.pub("news")
    topic.close()
    wait = GMO(Options=CMQC.MQGMO_NO_SYNCPOINT | CMQC.MQGMO_WAIT, WaitInterval=10_000)
    wait.MatchOptions = CMQC.MQMO_NONE
    assert subscription.get(None, MD(), wait) == b"news"
    subscription.close(CMQC.MQCO_REMOVE_SUB if durable else CMQC.MQCO_NONE, close_sub_queue=managed)


def test_the_names_of_earlier_versions() -> None:
    assert (pymqi.gmo, pymqi.pmo, pymqi.od, pymqi.md, pymqi.cd) == (GMO, pymqi.PMO, OD, MD, pymqi.CD)
    assert pymqi.QueueManager.connectTCPClient is pymqi.QueueManager.connect_tcp_client
