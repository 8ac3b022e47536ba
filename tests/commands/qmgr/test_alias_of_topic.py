"""Alias queues of topic objects: what is put on one is published on the object's topic (guide 7.7)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.broker.objects import AliasQueue, QueueManager
from commands.headers.psc_commands import publish_command
from commands.headers.registry import parse
from commands.model import Publish, PubOpt, TopicPut
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueError, QueueManagerStore
from rfh2 import CommandError, Folder, Message, Mqmd, Rfh2, decode
from streams.topic_objects import TopicObject
from tests.commands.qmgr.test_dynamic_queues import depth, register, send
from tests.commands.qmgr.test_processor import CONTROL, DEAD, NOW


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=lambda: NOW) as made:
        with made.unit_of_work() as unit:
            unit.save_definition(TopicObject("STATISTICS", "stats/qm1"))
            unit.save_definition(TopicObject("CLOSED", "closed", pub=False))
            for alias, target in (
                ("TO.STATS", "STATISTICS"),
                ("TO.CLOSED", "CLOSED"),
                ("TO.BASE", "SYSTEM.BASE.TOPIC"),
            ):
                unit.save_definition(AliasQueue(alias, target, "TOPIC"))
            unit.save_definition(AliasQueue("TO.NOTHING", "MISSING", "TOPIC"))
        yield made


@pytest.fixture
def processor(store: QueueManagerStore) -> Processor:
    return Processor(store, lambda: NOW)


def put(store: QueueManagerStore, queue: str, md: bytes | None, body: bytes) -> None:
    with store.unit_of_work() as unit:
        unit.put(queue, md, body, user="app")


RFH2 = Rfh2((Folder.of("<jms><Dst>q</Dst></jms>"), Folder.of("<usr><a>1</a></usr>")), format="MQSTR")
# descriptor, body; headers and data as a subscriber has them behind the psc folder
MESSAGES = [
    ("no-descriptor", None, b"data", [[]], b"data"),
    ("text", Mqmd(format="MQSTR", coded_char_set_id=819), b"text", [[]], b"text"),
    ("7.7-a-statistics-message", Mqmd(format="MQADMIN"), b"not looked at", [[]], b"not looked at"),
    ("jms", Mqmd(format="MQHRF2"), RFH2.encode() + b"text", [["jms", "usr"]], b"text"),
    (
        "a-command-is-data",
        Mqmd(format="MQHRF2", msg_type=1, reply_to_q="REPLY"),
        Rfh2((Folder.of("<psc><Command>DeletePub</Command></psc>"), Folder.of("<usr/>")), format="MQSTR").encode()
        + b"x",
        [["usr"]],
        b"x",
    ),
    (
        "folders-in-another-ccsid",
        Mqmd(format="MQHRF2"),
        Rfh2((Folder.of("<usr/>", "utf-16-le"),), name_value_ccsid=1200).encode() + b"x",
        [[], ["usr"]],
        b"x",
    ),
]


@pytest.mark.rule("MIG-18")
@pytest.mark.parametrize(
    ("mqmd", "body", "folders", "data"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES]
)
def test_7_7_any_message_put_on_it_is_published(
    store: QueueManagerStore,
    processor: Processor,
    mqmd: Mqmd | None,
    body: bytes,
    folders: list[list[str]],
    data: bytes,
) -> None:
    for queue in ("A", "B"):
        register(store, queue, "stats/#", option="PersAsPub")
    put(store, "TO.STATS", None if mqmd is None else mqmd.encode(), body)
    processor.drain()
    assert [depth(store, queue) for queue in ("A", "B", DEAD, "REPLY", "TO.STATS")] == [1, 1, 0, 0, 0]
    (message,) = store.browse("A")
    received = decode(message.body, message.md)
    headers = [header for header in received.headers if isinstance(header, Rfh2)]
    (psc, *_) = headers[0].folders
    assert psc.text == "<psc><Command>Publish</Command><Topic>stats/qm1</Topic></psc>"
    assert [[f.name for f in header.folders if f.name != "psc"] for header in headers] == folders
    assert received.body == data
    if mqmd is not None and mqmd.format != "MQHRF2":
        assert (headers[0].format, headers[0].coded_char_set_id) == (mqmd.format, mqmd.coded_char_set_id)


REFUSED = [
    ("no-such-topic-object", "TO.NOTHING", Mqmd(), 2082),
    ("no-topic-string", "TO.BASE", Mqmd(), 2425),
    ("what-a-broker-puts", "TO.STATS", Mqmd(put_appl_type=26), 2043),
]


@pytest.mark.parametrize(("queue", "mqmd", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(store: QueueManagerStore, queue: str, mqmd: Mqmd, reason: int) -> None:
    with pytest.raises(QueueError) as refused:
        put(store, queue, mqmd.encode(), b"x")
    assert refused.value.reason == reason


def test_pub_disabled_makes_a_dead_letter(store: QueueManagerStore, processor: Processor) -> None:
    put(store, "TO.CLOSED", None, b"x")
    processor.drain()
    (letter,) = store.browse(DEAD)
    assert int.from_bytes(letter.body[8:12], "little") == 2051 or int.from_bytes(letter.body[8:12], "big") == 2051


@pytest.mark.rule("MIG-18")
def test_a_subscriber_queue_is_none(store: QueueManagerStore, processor: Processor) -> None:
    """What a subscription fed back into the topic would never end: 3076."""
    psc = "<Command>RegSub</Command><Topic>stats/qm1</Topic><QName>TO.STATS</QName>"
    send(store, CONTROL, psc, msg_type=1, reply_to_q="REPLY")
    processor.drain()
    (answer,) = store.browse("REPLY")
    assert b"<Reason>3076</Reason>" in answer.body
    assert store.load_state()[1] == []


def test_a_message_with_headers_that_cannot_be_read_is_data() -> None:
    mqmd, command = publish_command("t", Mqmd(format="MQHRF2"), b"RFH broken")
    assert command.endswith(b"RFH broken")
    assert mqmd.format == "MQHRF2"


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("local", [False, True])
def test_7_2_the_options_of_a_put_are_those_of_the_command(retain: bool, local: bool) -> None:
    mqmd, body = publish_command("Sport", Mqmd(format="MQSTR"), b"goal", retain, local)
    command = parse(decode(body, mqmd))
    assert isinstance(command, Publish)
    assert (command.has(PubOpt.RETAIN_PUB), command.has(PubOpt.LOCAL)) == (retain, local)


PUTS = [
    (TopicPut(level=8), "8"),
    (TopicPut(suppress_reply_to=True), "9 R"),
    (TopicPut(level=0, suppress_reply_to=True, own_subs=("AB" * 24, "00" * 24)), f"0 R {'AB' * 24} {'00' * 24}"),
]


@pytest.mark.parametrize(("put", "text"), PUTS)
def test_4_7_what_an_mqput_says_is_in_a_tag_of_its_own(put: TopicPut, text: str) -> None:
    mqmd, body = publish_command("Sport", Mqmd(format="MQSTR"), b"goal", put=put)
    assert f"<MQPut>{text}</MQPut>".encode() in body
    command = parse(decode(body, mqmd.encode()))
    assert isinstance(command, Publish)
    assert command.put == put


@pytest.mark.parametrize("text", ["", "10", "8R", "8 X", "8 AB", "-1", "8 " + "ab" * 24])
def test_another_text_in_the_tag_is_refused(text: str) -> None:
    psc = f"<psc><Command>Publish</Command><Topic>Sport</Topic><MQPut>{text}</MQPut></psc>"
    with pytest.raises(CommandError) as refused:
        parse(Message(Mqmd(), (Rfh2((Folder.of(psc),)),)))
    assert refused.value.reason == 2337
