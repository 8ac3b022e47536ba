"""What a queue's attributes say of how programs use it: MQOPEN, MQPUT and MQGET follow them, and MQINQ tells them.

Rows of docs/conformance.md: LSN-19.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.broker.objects import AliasQueue, Definition, LocalQueue
from commands.qmgr.store import QueueManagerStore
from rfh2 import Folder, Rfh2, decode
from rfh2.channel.layouts import FOPA
from rfh2.channel.segments import SegmentType, Structure
from rfh2.mqi_constants import (
    MQGMO_PROPERTIES_COMPATIBILITY,
    MQOO_INPUT_AS_Q_DEF,
    MQOO_INPUT_EXCLUSIVE,
    MQOO_INPUT_SHARED,
    MQOO_INQUIRE,
    MQOO_OUTPUT,
    MQOO_SET,
)
from rfh2.pcf_admin_names import MQOT_TOPIC
from streams.topic_objects import PutResponse, TopicObject
from tests.commands.listener.mqi_client import MqiClient

AS_DEFINED, SHARED, ALONE = MQOO_INPUT_AS_Q_DEF, MQOO_INPUT_SHARED, MQOO_INPUT_EXCLUSIVE
IN_USE = 2042

pytestmark = pytest.mark.rule("LSN-19")


def define(home: Path, *definitions: Definition) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        for each in definitions:
            unit.save_definition(each)


@pytest.fixture
def client(port: int) -> Iterator[MqiClient]:
    with MqiClient(port) as client:
        assert client.connect() == 0
        yield client


@pytest.mark.parametrize(
    ("queue", "first", "second", "reason"),
    [
        (LocalQueue("Q"), AS_DEFINED, AS_DEFINED, 0),
        (LocalQueue("Q", exclusive_by_default=True), AS_DEFINED, SHARED, IN_USE),
        (LocalQueue("Q", exclusive_by_default=True), SHARED, AS_DEFINED, IN_USE),
        (LocalQueue("Q", exclusive_by_default=True), SHARED, SHARED, 0),
        (LocalQueue("Q", shareable=False), AS_DEFINED, AS_DEFINED, IN_USE),
        (LocalQueue("Q", shareable=False), SHARED, SHARED, IN_USE),
        (LocalQueue("Q", shareable=False), SHARED, MQOO_OUTPUT, 0),
    ],
)
def test_how_many_programs_get_from_a_queue(
    client: MqiClient, port: int, home: Path, queue: LocalQueue, first: int, second: int, reason: int
) -> None:
    define(home, queue)
    with MqiClient(port) as other:
        assert other.connect("bob") == 0
        held = other.opened("Q", first)
        assert client.open("Q", second).reason == reason
        assert other.shut(held) == 0
    assert client.open("Q", first).reason == 0


def test_first_in_first_out(client: MqiClient, home: Path) -> None:
    """Those that were there keep their places; one that comes has that of the default priority."""
    define(home, LocalQueue("Q"))
    handle = client.opened("Q", SHARED | MQOO_OUTPUT)
    client.put(handle, b"low", priority=1)
    client.put(handle, b"high", priority=7)
    define(home, LocalQueue("Q", in_order_of="FIFO", def_priority=4))
    client.put(handle, b"first", priority=1)
    client.put(handle, b"second", priority=9)
    got = [client.get(handle) for _ in range(4)]
    assert [(each.body, each.mqmd.priority) for each in got] == [
        (b"high", 7),
        (b"first", 1),
        (b"second", 9),
        (b"low", 1),
    ]


OWN, MQPS, JMS = "<mine><a>1</a></mine>", "<mqps><Top>t</Top></mqps>", "<usr><a>1</a></usr>"


@pytest.mark.parametrize(
    ("control", "folders", "given"),
    [
        ("COMPAT", (MQPS,), []),
        ("COMPAT", (MQPS, JMS), ["mqps", "usr"]),
        ("COMPAT", (JMS, OWN), ["usr", "mine"]),
        ("V6COMPAT", (MQPS, JMS), ["usr"]),
        ("V6COMPAT", (MQPS,), []),
        ("V6COMPAT", (JMS, OWN), ["usr", "mine"]),
        ("NONE", (MQPS, JMS), []),
        ("NONE", (JMS, OWN), ["mine"]),
        ("ALL", (MQPS,), ["mqps"]),
        ("FORCE", (MQPS, JMS), ["mqps", "usr"]),
    ],
)
def test_which_properties_a_get_gives(
    client: MqiClient, home: Path, control: str, folders: tuple[str, ...], given: list[str]
) -> None:
    """As PROPCTL says, of the alias where the queue is opened by one; an option of MQGET comes before it."""
    define(home, LocalQueue("Q", properties=control), LocalQueue("Q2"), AliasQueue("A", "Q2", properties=control))
    header = Rfh2(tuple(map(Folder.of, folders)), coded_char_set_id=1208, format="MQSTR")
    for name in ("Q", "A"):
        handle = client.opened(name, SHARED | MQOO_OUTPUT)
        for option in (0, MQGMO_PROPERTIES_COMPATIBILITY):
            client.put(handle, header.encode() + b"text", format="MQHRF2", encoding=546, coded_char_set_id=1208)
            got = client.get(handle, option)
            message = decode(got.body, got.mqmd.encode())
            found = [each.name for header in message.headers if isinstance(header, Rfh2) for each in header.folders]
            assert message.body == b"text"
            if not option:
                assert found == given, name
            else:
                assert ("mqps" in found) == (MQPS in folders and len(folders) > 1)


SYNC, ASYNC = 1, 2


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("Q", 1, (0, SYNC, 0)),
        ("Q.ASYNC", 1, (1, ASYNC, 2)),
        ("A", 1, (1, SYNC, 4)),
        ("T", MQOT_TOPIC, (1, ASYNC, 0)),
    ],
)
def test_mqopen_tells_what_is_left_to_the_queue(
    client: MqiClient, home: Path, name: str, kind: int, told: tuple[int, int, int]
) -> None:
    """DEFPSIST, DEFPRESP and PROPCTL: by the second a client decides whether it waits for the answers to its puts."""
    define(
        home,
        LocalQueue("Q"),
        LocalQueue("Q.ASYNC", def_put_response="ASYNC", properties="ALL", def_persistent=True),
        AliasQueue("A", "Q.ASYNC", properties="V6COMPAT"),
        TopicObject("T", "t", def_put_response=PutResponse.ASYNC, def_persistence=True),
    )
    od = client.od(name, kind)
    asked = od + client.long(MQOO_OUTPUT) + bytes(client.structure(FOPA, "FOPA", 1))
    reply = client.call(SegmentType.MQOPEN, asked)
    fields = Structure(FOPA, bytearray(reply.body), len(od) + 4, client.order)
    assert tuple(fields[each] for each in ("DefPersistence", "DefPutResponseType", "PropertyControl")) == told


def test_mqinq_tells_the_attributes_and_mqset_sets_them(client: MqiClient, home: Path) -> None:
    define(
        home,
        LocalQueue(
            "Q",
            shareable=False,
            exclusive_by_default=True,
            in_order_of="FIFO",
            properties="FORCE",
            def_put_response="ASYNC",
            initiation_queue="I",
        ),
    )
    handle = client.opened("Q", MQOO_INQUIRE | MQOO_SET)
    reply = client.inquire(handle, 23, 4, 16, 190, 184, 24, 26, 28, 29, 2008, integers=9, characters=48)
    told = (0, ALONE, 1, 3, 2, 0, 0, 1, 1)
    assert reply.body[12 + 40 :] == b"".join(map(client.long, told)) + b"I".ljust(48)
    assert client.set(handle, {26: 5, 28: 3, 29: 100}) == 0
    assert client.inquire(handle, 26, 28, 29, integers=3).body[12 + 12 :] == b"".join(map(client.long, (5, 3, 100)))
    refused = {24: (1, 2075), 29: (0, 2076), 26: (10, 2077), 28: (4, 2078)}
    assert {each: client.set(handle, {each: value}) for each, (value, _) in refused.items()} == {
        each: reason for each, (_, reason) in refused.items()
    }
