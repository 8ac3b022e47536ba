"""MQSUB, MQSUBRQ and MQCLOSE of subscriptions over a channel, on the embedded topic space (guide 2.4, 4.2, 4.8).

Rows of docs/conformance.md: APP-4a, APP-4b, APP-6a, APP-6b, QM-7, SEC-8a, LSN-10 to LSN-13, LSN-13a, LSN-13b.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commands.broker.authority import no_groups
from commands.broker.objects import AliasQueue, AuthorityRecord, LocalQueue, ModelQueue
from commands.mqsc.script import parse
from commands.qmgr.admin import StatementRunner
from commands.qmgr.mqi.subscription_rules import SubscriptionDescriptor, SubscriptionRequest, Verb, described
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.queue_manager import utc_now
from rfh2.channel.layouts import MQSD
from rfh2.channel.segments import Structure, read_string, write_strings
from rfh2.constants import MQRO_PAN
from rfh2.mqi_constants import (
    MQCO_KEEP_SUB,
    MQCO_REMOVE_SUB,
    MQGMO_NO_PROPERTIES,
    MQGMO_PROPERTIES_FORCE_MQRFH2,
    MQMF_MSG_IN_GROUP,
    MQOO_INPUT_EXCLUSIVE,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQOO_SAVE_ALL_CONTEXT,
    MQPMO_NOT_OWN_SUBS,
    MQPMO_RETAIN,
    MQPMO_SUPPRESS_REPLYTO,
    MQSO_ALTER,
    MQSO_ALTERNATE_USER_AUTHORITY,
    MQSO_ANY_USERID,
    MQSO_CREATE,
    MQSO_DURABLE,
    MQSO_FIXED_USERID,
    MQSO_GROUP_SUB,
    MQSO_MANAGED,
    MQSO_NEW_PUBLICATIONS_ONLY,
    MQSO_PUBLICATIONS_ON_REQUEST,
    MQSO_RESUME,
    MQSO_SET_CORREL_ID,
    MQSO_SET_IDENTITY_CONTEXT,
    MQSO_WILDCARD_CHAR,
    MQSO_WILDCARD_TOPIC,
)
from rfh2.pcf_admin_names import MQIA_MAX_Q_DEPTH, MQOT_TOPIC
from streams.subscriptions import Subscription
from streams.topic_objects import TopicObject
from tests.commands.listener.conftest import processing
from tests.commands.listener.mqi_client import Message, MqiClient
from tests.waiting import PATIENCE_MS, until

QUEUE = MQOO_INPUT_SHARED | MQOO_OUTPUT
EMPTY = 2033
NEW = MQSO_CREATE | MQSO_MANAGED
KEPT = MQSO_CREATE | MQSO_MANAGED | MQSO_DURABLE
SCORES = b"<psc><Command>Publish</Command><Topic>Sport/Soccer</Topic></psc>"


@pytest.fixture(autouse=True)
def processor(home: Path) -> Iterator[None]:
    with processing(home):
        yield


@pytest.fixture
def client(port: int) -> Iterator[MqiClient]:
    with MqiClient(port) as client:
        assert client.connect() == 0
        yield client


@pytest.fixture
def other(port: int) -> Iterator[MqiClient]:
    with MqiClient(port, "big") as client:
        assert client.connect("bob") == 0
        yield client


def subscriptions_of(home: Path) -> list[Subscription]:
    with QueueManagerStore.open(home, "QM1") as store:
        return store.load_state()[1]


def managed_queues(home: Path) -> list[str]:
    with QueueManagerStore.open(home, "QM1") as store:
        queues = store.load_state()[0].queues
        return [name for name in queues if name.startswith("SYSTEM.MANAGED.")]


def until_gone(home: Path) -> None:
    """Wait until there is no subscription and no managed queue."""
    until(lambda: not subscriptions_of(home) and not managed_queues(home))


def got(client: MqiClient, handle: int) -> Message:
    """The next message of a subscription."""
    return client.get(handle, wait_ms=PATIENCE_MS)


def define(home: Path, *definitions: Any) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        for definition in definitions:
            unit.save_definition(definition)


@pytest.mark.rule("PS-4", "LSN-10")
def test_2_4_1_a_managed_subscription_gets_what_is_published(client: MqiClient, other: MqiClient, home: Path) -> None:
    made = client.subscribed(NEW, "Sport/Soccer", SubUserData="mine")
    assert other.publish("Sport/Soccer", b"2:0", format="MQSTR") == 0
    message = client.get(made.hobj, MQGMO_PROPERTIES_FORCE_MQRFH2, PATIENCE_MS)

    assert message.body.endswith(b"2:0")
    assert b"<Top>Sport/Soccer</Top><Sud>mine</Sud>" in message.body
    assert message.mqmd.correl_id == made.descriptor["SubCorrelId"] != bytes(24)
    assert made.string("ResObjectString") == "Sport/Soccer"
    (name,) = managed_queues(home)
    assert name.startswith("SYSTEM.MANAGED.NDURABLE.")
    assert (client.shut(made.hsub), client.shut(made.hobj)) == (0, 0)
    until_gone(home)


@pytest.mark.parametrize("durable", [True, False])
def test_2_5_4_a_managed_queue_is_made_from_the_model_of_its_topic(
    client: MqiClient, home: Path, durable: bool
) -> None:
    models = (ModelQueue("MINE", max_depth=7), ModelQueue("KEPT", max_depth=8, definition_type="PERMDYN"))
    topic = TopicObject("SPORT", topic_string="Sport", non_durable_model_queue="MINE", durable_model_queue="KEPT")
    define(home, *models, topic)
    made = client.subscribed(KEPT if durable else NEW, "Soccer", "a" if durable else "", ObjectName="SPORT")
    assert made.string("ResObjectString") == "Sport/Soccer"
    depth = client.inquire(made.hobj, MQIA_MAX_Q_DEPTH, integers=1).body[-4:]
    assert int.from_bytes(depth, "little") == (8 if durable else 7)


@pytest.mark.rule("APP-1")
def test_4_2_1_a_program_may_close_the_queue_first(client: MqiClient, home: Path) -> None:
    made = client.subscribed(NEW, "Sport/Soccer")
    assert (client.shut(made.hobj), client.shut(made.hsub), client.shut(made.hsub)) == (0, 0, 2019)
    until_gone(home)


@pytest.mark.rule("LSN-11")
@pytest.mark.parametrize("managed", [True, False])
def test_2_4_2_a_non_durable_subscription_goes_with_its_program(port: int, home: Path, managed: bool) -> None:
    with MqiClient(port) as client:
        assert client.connect() == 0
        queue = 0 if managed else client.opened("Q", QUEUE)
        client.subscribed(NEW if managed else MQSO_CREATE, "Sport/Soccer", queue=queue)
        assert len(subscriptions_of(home)) == 1
    until_gone(home)


@pytest.mark.rule("LSN-10")
def test_2_4_2_a_durable_subscription_is_resumed(port: int, other: MqiClient, home: Path) -> None:
    with MqiClient(port) as client:
        assert client.connect() == 0
        client.subscribed(KEPT, "Sport/Soccer", "scores", SubUserData="mine", SelectionString="Root.MQMD.Priority > 3")
        assert client.disconnect() == 0
    other.publish("Sport/Soccer", b"low", priority=1)
    other.publish("Sport/Soccer", b"high", priority=5)
    with MqiClient(port) as client:
        assert client.connect() == 0
        resumed = client.subscribed(MQSO_RESUME | MQSO_DURABLE, "", "scores")
        assert got(client, resumed.hobj).body.endswith(b"high")
        assert resumed.string("ResObjectString") == "Sport/Soccer"
        assert resumed.string("SubUserData") == "mine"
        assert resumed.string("SelectionString") == "Root.MQMD.Priority > 3"
        assert client.shut(resumed.hsub, MQCO_KEEP_SUB) == 0
        assert [each.name for each in subscriptions_of(home)] == ["scores"]

        altered = client.subscribed(
            MQSO_ALTER | MQSO_DURABLE | MQSO_MANAGED, "", "scores", SelectionString="Root.MQMD.Priority > 3"
        )
        assert subscriptions_of(home)[0].user_data is None
        assert client.shut(altered.hsub, MQCO_REMOVE_SUB) == 0
        assert (client.shut(resumed.hobj), client.shut(altered.hobj)) == (0, 0)
        until_gone(home)


@pytest.mark.rule("LSN-13a")
def test_2_4_2_a_program_gets_the_original_expiry() -> None:
    begun = utc_now()
    made = Subscription(bytes(24), "t", "Q", "QM1", begun, expires_at=begun + timedelta(seconds=600))
    assert described(made).expiry == 6000
    assert described(replace(made, renewed=begun + timedelta(seconds=60))).expiry == 5400
    assert described(replace(made, expires_at=None)).expiry == -1


@pytest.mark.rule("LSN-13b")
def test_4_3_a_managed_queue_is_read_to_its_end_after_its_durable_subscription(
    client: MqiClient, other: MqiClient, home: Path
) -> None:
    made = client.subscribed(KEPT, "Sport/Soccer", "scores")
    other.publish("Sport/Soccer", b"one", persistence=1)
    other.publish("Sport/Soccer", b"two", persistence=1)
    assert got(client, made.hobj).body == b"one"
    assert client.shut(made.hsub, MQCO_REMOVE_SUB) == 0
    assert (subscriptions_of(home), len(managed_queues(home))) == ([], 1)
    assert got(client, made.hobj).body == b"two"
    assert client.shut(made.hobj) == 0
    assert managed_queues(home) == []


@pytest.mark.rule("LSN-13b")
def test_4_3_what_is_left_on_it_goes_with_the_program(port: int, other: MqiClient, home: Path) -> None:
    with MqiClient(port) as client:
        assert client.connect() == 0
        made = client.subscribed(KEPT, "Sport/Soccer", "scores")
        other.publish("Sport/Soccer", b"one")
        assert client.shut(made.hsub, MQCO_REMOVE_SUB) == 0
        assert len(managed_queues(home)) == 1
    until_gone(home)


@pytest.mark.rule("SEC-8a")
def test_5_2_who_resumes_a_subscription_of_any_user_gives_it_his_identity(
    client: MqiClient, other: MqiClient, home: Path
) -> None:
    context = {"PubAccountingToken": b"t".ljust(32, b"\0"), "PubApplIdentityData": "data"}
    options = KEPT | MQSO_ANY_USERID | MQSO_SET_IDENTITY_CONTEXT
    client.shut(client.subscribed(options, "Sport/Soccer", "scores", **context).hsub)
    resumed = other.subscribed(MQSO_RESUME | MQSO_DURABLE, "", "scores")
    client.publish("Sport/Soccer", b"goal")
    mqmd = got(other, resumed.hobj).mqmd
    assert (mqmd.user_identifier, mqmd.accounting_token, mqmd.appl_identity_data) == ("bob", bytes(32), "")
    assert [each.user for each in subscriptions_of(home)] == ["bob"]


@pytest.mark.rule("LSN-10")
def test_4_2_3_a_subscription_to_a_queue_of_the_program(client: MqiClient, other: MqiClient, home: Path) -> None:
    queue, correl_id = client.opened("Q", QUEUE), b"mine".ljust(24, b"\0")
    options = MQSO_CREATE | MQSO_DURABLE | MQSO_SET_CORREL_ID
    made = client.subscribed(options, "Sport/Soccer", "a", queue, SubCorrelId=correl_id)
    assert made.hobj == queue
    other.publish("Sport/Soccer", b"one", correl_id=b"publisher".ljust(24, b"\0"))
    assert got(client, queue).mqmd.correl_id == correl_id

    assert client.shut(made.hsub) == 0
    moved = client.opened("Q2", QUEUE)
    options = MQSO_ALTER | MQSO_DURABLE | MQSO_SET_CORREL_ID
    client.subscribed(options, "", "a", moved, SubCorrelId=bytes(24))
    other.publish("Sport/Soccer", b"two", correl_id=b"publisher".ljust(24, b"\0"))
    assert got(client, moved).mqmd.correl_id == b"publisher".ljust(24, b"\0")
    assert [each.dest_queue for each in subscriptions_of(home)] == ["Q2"]


FAILURES: list[tuple[str, int, dict[str, Any], int]] = [
    ("none of create, alter, resume", MQSO_MANAGED, {}, 2046),
    ("alter and resume", MQSO_ALTER | MQSO_RESUME | MQSO_MANAGED, {"name": "there"}, 2046),
    ("both kinds of user", NEW | MQSO_ANY_USERID | MQSO_FIXED_USERID, {}, 2046),
    ("both kinds of wildcard", NEW | MQSO_WILDCARD_CHAR | MQSO_WILDCARD_TOPIC, {}, 2046),
    ("new only, and on request", NEW | MQSO_NEW_PUBLICATIONS_ONLY | MQSO_PUBLICATIONS_ON_REQUEST, {}, 2046),
    ("a group with a managed queue", NEW | MQSO_GROUP_SUB | MQSO_SET_CORREL_ID, {}, 2046),
    ("a CorrelId with a managed queue", NEW | MQSO_SET_CORREL_ID, {}, 2046),
    ("a group without a CorrelId", MQSO_CREATE | MQSO_GROUP_SUB, {}, 2046),
    ("no queue", MQSO_CREATE, {}, 2019),
    ("a queue that is not open", MQSO_CREATE, {"queue": 40}, 2019),
    ("durable without a name", KEPT, {}, 2440),
    ("resumed without a name", MQSO_RESUME, {}, 2440),
    ("no topic", NEW, {"topic": ""}, 2425),
    ("a topic object that is not there", NEW, {"ObjectName": "NONE"}, 2085),
    ("a bad wildcard", NEW | MQSO_WILDCARD_CHAR, {"topic": "a%b"}, 2425),
    ("a bad selector", NEW, {"SelectionString": "a = ="}, 2459),
    ("nothing to resume", MQSO_RESUME | MQSO_DURABLE, {"name": "none"}, 2428),
    ("there already", KEPT, {"name": "there"}, 2432),
    ("another topic", KEPT | MQSO_RESUME, {"name": "there", "topic": "Other"}, 2510),
    ("another selector", KEPT | MQSO_RESUME, {"name": "there", "SelectionString": "a = 1"}, 2524),
    ("not durable", NEW | MQSO_RESUME, {"name": "there"}, 2509),
    ("another kind of queue", MQSO_ALTER | MQSO_DURABLE, {"name": "there"}, 2533),
    ("another level", MQSO_ALTER | MQSO_DURABLE | MQSO_MANAGED, {"name": "there", "SubLevel": 3}, 2512),
    ("durable, on a temporary queue", MQSO_CREATE | MQSO_DURABLE, {"name": "new", "queue": "temporary"}, 2522),
    ("on a queue that the queue manager reads", MQSO_CREATE, {"queue": "stream"}, 2522),
    ("a name with a null", KEPT, {"name": "a\0b"}, 2440),
    ("user data that is too long", NEW, {"SubUserData": "x" * 10_241}, 2431),
    ("no priority", NEW, {"PubPriority": 10}, 2050),
    ("no level", NEW, {"SubLevel": 10}, 2424),
    ("no subscriptions here", NEW, {"topic": "Closed/a"}, 2503),
    ("no durable ones here", KEPT, {"topic": "Brief/a", "name": "brief"}, 2436),
]


@pytest.mark.rule("LSN-12", "D-18")
def test_calls_that_fail_change_nothing(client: MqiClient, home: Path) -> None:
    define(
        home,
        TopicObject("CLOSED", topic_string="Closed", sub=False),
        TopicObject("BRIEF", topic_string="Brief", durable_subs=False),
    )
    made = client.subscribed(KEPT, "Sport/Soccer", "there")
    client.shut(made.hsub)
    client.shut(made.hobj)
    temporary = client.opened("SYSTEM.DEFAULT.MODEL.QUEUE", MQOO_INPUT_SHARED)
    given = {"temporary": temporary, "stream": client.opened("SYSTEM.BROKER.DEFAULT.STREAM", QUEUE)}
    before, queues = subscriptions_of(home), managed_queues(home)
    for what, options, given_fields, reason in FAILURES:
        fields = {"topic": "Sport/Soccer"} | given_fields
        fields["queue"] = given.get(fields.get("queue", 0), fields.get("queue", 0))
        assert client.subscribe(options, **fields).reason == reason, what
    assert (subscriptions_of(home), managed_queues(home)) == (before, queues)


def test_one_program_at_a_time(client: MqiClient, other: MqiClient) -> None:
    made = client.subscribed(KEPT | MQSO_ANY_USERID, "Sport/Soccer", "scores")
    resume = MQSO_RESUME | MQSO_DURABLE
    assert other.subscribe(resume, "", "scores").reason == 2429
    client.shut(made.hsub)
    assert other.subscribed(resume, "", "scores").string("ResObjectString") == "Sport/Soccer"


SHARED = MQSO_CREATE | MQSO_ALTER | MQSO_MANAGED | MQSO_ANY_USERID


def test_programs_share_a_subscription_as_long_as_one_has_it_open(port: int, other: MqiClient, home: Path) -> None:
    with MqiClient(port) as first:
        assert first.connect() == 0
        made = first.share(SHARED, "Sport/Soccer", "team")
        joined = other.share(SHARED, "Sport/Soccer", "team")
        assert (made.reason, joined.reason, len(subscriptions_of(home))) == (0, 0, 1)
        assert first.subscribe(SHARED, "Sport/Soccer", "team").reason == 2429
        other.publish("Sport/Soccer", b"one")
        assert got(first, made.hobj).body == b"one"
    other.publish("Sport/Soccer", b"two")
    assert got(other, joined.hobj).body == b"two"
    assert other.share(SHARED, "Sport/Golf", "team").reason == 2510
    assert (other.shut(joined.hsub), other.shut(joined.hobj)) == (0, 0)
    until_gone(home)


@pytest.mark.parametrize("name", ["", "team"])
def test_a_program_gets_from_a_subscription_that_another_one_has_open(
    client: MqiClient, other: MqiClient, port: int, home: Path, name: str
) -> None:
    """As the sessions of a connection consumer do. Only the one that made it removes it."""
    made = client.subscribed(MQSO_CREATE | MQSO_MANAGED | (MQSO_DURABLE if name else 0), "Sport/Soccer", name)
    (sub_id,) = (each.sub_id for each in subscriptions_of(home))
    assert (other.join(sub_id).reason, client.join(bytes(24)).reason) == (2428, 2428)  # bob's it is not
    with MqiClient(port) as session:
        assert session.connect() == 0
        joined = session.join(sub_id)
        assert joined.reason == 0
        client.publish("Sport/Soccer", b"one")
        assert got(session, joined.hobj).body == b"one"
        assert (session.shut(joined.hsub), session.shut(joined.hobj)) == (0, 0)
    client.publish("Sport/Soccer", b"two")
    assert got(client, made.hobj).body == b"two"
    assert client.shut(made.hsub, MQCO_REMOVE_SUB) == 0
    assert client.join(sub_id).reason == 2428


def test_4_3_a_subscription_of_an_administrator_is_resumed(client: MqiClient, other: MqiClient, home: Path) -> None:
    """Its queue may be behind an alias, at another queue manager, in use, or gone."""
    define(home, LocalQueue("BOARD"), AliasQueue("TO.BOARD", "BOARD"), LocalQueue("QM2", transmission=True))
    user = "SUBUSER('alice')"
    shown(home, f"DEFINE SUB('here') TOPICSTR('Sport/Soccer') DEST(TO.BOARD) {user}")
    shown(home, f"DEFINE SUB('there') TOPICSTR('Sport/Golf') DEST(BOARD) DESTQMGR(QM2) {user}")
    shown(home, f"DEFINE SUB('gone') TOPICSTR('Sport/Chess') DEST(LOST) {user}")
    shown(home, "DELETE QLOCAL(LOST)")
    resume = MQSO_RESUME | MQSO_DURABLE
    made = client.subscribed(resume, "", "here")
    other.publish("Sport/Soccer", b"goal")
    assert got(client, made.hobj).body.endswith(b"goal")
    assert client.subscribed(resume, "", "there").hobj == 0
    assert client.subscribe(resume, "", "gone").reason == 2085
    client.shut(made.hobj)
    client.shut(made.hsub)
    other.opened("BOARD", MQOO_INPUT_EXCLUSIVE)
    assert [client.subscribe(resume, "", "here").reason for _ in range(2)] == [2042, 2042]


def test_another_user_may_not_resume_it(client: MqiClient, other: MqiClient) -> None:
    client.shut(client.subscribed(KEPT, "Sport/Soccer", "scores").hsub)
    assert other.subscribe(MQSO_RESUME | MQSO_DURABLE, "", "scores").reason == 2434


@pytest.mark.rule("LSN-13")
def test_4_8_2_retained_publications(client: MqiClient, other: MqiClient) -> None:
    other.publish("Sport/Soccer", b"kept", MQPMO_RETAIN)
    first = client.subscribed(NEW, "Sport/Soccer")
    fresh = client.subscribed(NEW | MQSO_NEW_PUBLICATIONS_ONLY, "Sport/Soccer")
    asking = client.subscribed(NEW | MQSO_PUBLICATIONS_ON_REQUEST, "Sport/#")
    nothing = client.subscribed(NEW, "Other")
    other.publish("Sport/Soccer", b"later")

    assert [got(client, first.hobj).body[-4:] for _ in range(2)] == [b"kept", b"ater"]
    assert got(client, fresh.hobj).body.endswith(b"later")
    assert client.get(asking.hobj).reason == EMPTY
    assert client.request_retained(asking.hsub) == (0, 1)
    assert got(client, asking.hobj).body.endswith(b"kept")
    assert client.request_retained(nothing.hsub)[0] == 2437
    assert client.request_retained(nothing.hsub, action=2)[0] == 2535
    assert client.request_retained(nothing.hobj)[0] == 2019


WILDCARDS = [
    (MQSO_WILDCARD_TOPIC, "Sport/+", ["Sport/Soccer"]),
    (0, "Sport/#", ["Sport", "Sport/Soccer", "Sport/Soccer/Scores"]),
    (MQSO_WILDCARD_CHAR, "Sport/*o*", ["Sport/Soccer", "Sport/Soccer/Scores"]),
]


def test_2_5_1_both_wildcard_schemes(client: MqiClient, other: MqiClient) -> None:
    made = [client.subscribed(NEW | options, pattern) for options, pattern, _ in WILDCARDS]
    for topic in ("Sport", "Sport/Soccer", "Sport/Soccer/Scores"):
        other.publish(topic, topic.encode())
    for each, (_, pattern, topics) in zip(made, WILDCARDS, strict=True):
        assert [got(client, each.hobj).body.decode() for _ in topics] == topics, pattern
        assert client.get(each.hobj).reason == EMPTY


PROPERTIES = [
    ("as the queue has it", b"hello", 0, b"hello"),
    ("forced", b"hello", MQGMO_PROPERTIES_FORCE_MQRFH2, b"mqps"),
    ("with properties of its own", b"JMS", 0, b"usr"),
    ("none", b"JMS", MQGMO_NO_PROPERTIES, b"hello"),
]


@pytest.mark.rule("LSN-13")
def test_4_4_properties_of_a_publication(client: MqiClient, other: MqiClient) -> None:
    for what, body, options, expected in PROPERTIES:
        made = client.subscribed(NEW, "Sport/Soccer")
        if body == b"JMS":
            other.publish(
                "Sport/Soccer", rfh2(b"<usr><n>1</n></usr>") + b"hello", format="MQHRF2", coded_char_set_id=1208
            )
        else:
            other.publish("Sport/Soccer", body, format="MQSTR")
        message = client.get(made.hobj, options, PATIENCE_MS)
        if expected == b"hello":
            assert (message.mqmd.format, message.body) == ("MQSTR", b"hello"), what
        else:
            assert message.mqmd.format == "MQHRF2", what
            assert expected in message.body, what
        client.shut(made.hsub)
        client.shut(made.hobj)


def rfh2(folder: bytes) -> bytes:
    """An MQRFH2 before text in UTF-8, in big-endian."""
    folder += b" " * (-len(folder) % 4)
    numbers = [2, 40 + len(folder), 273, 1208]
    head = b"RFH " + b"".join(number.to_bytes(4, "big") for number in numbers) + b"MQSTR   "
    return head + b"".join(number.to_bytes(4, "big") for number in (0, 1208, len(folder))) + folder


def test_7_2_queued_programs_and_these_reach_each_other(client: MqiClient, other: MqiClient) -> None:
    """A Publish command on the stream reaches the MQSUB subscriber; test_calls has the other direction."""
    made = client.subscribed(NEW, "Sport/Soccer")
    stream = other.opened("SYSTEM.BROKER.DEFAULT.STREAM", MQOO_OUTPUT)
    other.put(stream, rfh2(SCORES) + b"3:0", format="MQHRF2", encoding=273, coded_char_set_id=1208)
    assert got(client, made.hobj).body.endswith(b"3:0")


@pytest.mark.rule("SEC-12", "LSN-12")
def test_5_authority(client: MqiClient, home: Path) -> None:
    define(
        home,
        TopicObject("SPORT", topic_string="Sport"),
        AuthorityRecord("TOPIC", "SPORT", "PRINCIPAL", "alice", ("SUB",)),
        AuthorityRecord("QUEUE", "MINE", "PRINCIPAL", "alice", ("GET", "PUT")),
        AuthorityRecord("QUEUE", "THEIRS", "PRINCIPAL", "alice", ("GET",)),
        AliasQueue("ALIAS", "THEIRS"),
    )
    define(home, LocalQueue("THEIRS"))
    mine, theirs = client.opened("MINE", QUEUE), client.opened("THEIRS", MQOO_INPUT_SHARED)
    assert client.subscribe(NEW, "News").reason == 2035
    assert client.subscribe(NEW, "Sport/Soccer").reason == 0
    assert client.subscribe(MQSO_CREATE, "Sport/Soccer", queue=theirs).reason == 2035
    assert client.subscribe(MQSO_CREATE, "Sport/Soccer", queue=mine).reason == 0
    define(home, AuthorityRecord("QUEUE", "ALIAS", "PRINCIPAL", "alice", ("PUT",)))
    alias = client.opened("ALIAS", MQOO_OUTPUT)
    assert client.subscribe(MQSO_CREATE, "Sport/Soccer", queue=alias).reason == 0


@pytest.mark.rule("SEC-13")
def test_5_2_the_alternate_user_is_checked_and_has_the_subscription(client: MqiClient, home: Path) -> None:
    define(
        home,
        TopicObject("SPORT", topic_string="Sport"),
        AuthorityRecord("TOPIC", "SPORT", "PRINCIPAL", "bob", ("SUB",)),
    )
    as_other = NEW | MQSO_ALTERNATE_USER_AUTHORITY
    assert client.subscribe(as_other, "Sport/Soccer", AlternateUserId="bob").reason == 2035  # alice has no ALTUSR
    define(home, AuthorityRecord("QMGR", "QM1", "PRINCIPAL", "alice", ("ALTUSR",)))
    assert client.subscribe(as_other, "Sport/Soccer", AlternateUserId="carl").reason == 2035
    assert client.subscribe(NEW, "Sport/Soccer", AlternateUserId="bob").reason == 2035
    made = client.subscribed(as_other, "Sport/Soccer", AlternateUserId="bob")
    assert [each.user for each in subscriptions_of(home)] == ["bob"]
    assert client.request_retained(made.hsub)[0] == 2437
    assert (client.shut(made.hsub), client.shut(made.hobj)) == (0, 0)
    until_gone(home)


@pytest.mark.rule("SEC-12")
def test_5_2_identity_context_needs_authority_for_the_queue_of_a_program(client: MqiClient, home: Path) -> None:
    define(
        home,
        AuthorityRecord("TOPIC", "SYSTEM.BASE.TOPIC", "PRINCIPAL", "alice", ("SUB",)),
        AuthorityRecord("QUEUE", "MINE", "PRINCIPAL", "alice", ("GET", "PUT")),
    )
    queue = client.opened("MINE", QUEUE)
    sets = MQSO_CREATE | MQSO_SET_IDENTITY_CONTEXT
    assert client.subscribe(sets, "Sport", queue=queue).reason == 2035
    assert client.subscribe(sets | MQSO_MANAGED, "Sport").reason == 0
    define(home, AuthorityRecord("QUEUE", "MINE", "PRINCIPAL", "alice", ("GET", "PUT", "SETID")))
    assert client.subscribe(sets, "Sport", queue=queue).reason == 2035
    define(home, AuthorityRecord("QMGR", "QM1", "PRINCIPAL", "alice", ("SETID",)))
    assert client.subscribe(sets, "Sport", queue=queue).reason == 0


@pytest.mark.rule("SEC-12")
def test_5_to_resume_opens_no_queue_that_the_user_may_not_get_from(
    client: MqiClient, other: MqiClient, home: Path
) -> None:
    queue = client.opened("MINE", QUEUE)
    made = client.subscribed(MQSO_CREATE | MQSO_DURABLE | MQSO_ANY_USERID, "Sport", "scores", queue)
    assert client.shut(made.hsub) == 0
    define(home, AuthorityRecord("TOPIC", "SYSTEM.BASE.TOPIC", "PRINCIPAL", "bob", ("SUB",)))
    resumes = MQSO_RESUME | MQSO_DURABLE | MQSO_ANY_USERID
    assert other.subscribe(resumes, "", "scores").reason == 2035
    define(home, AuthorityRecord("QUEUE", "MINE", "PRINCIPAL", "bob", ("BROWSE", "GET", "INQ")))
    assert other.subscribe(resumes, "", "scores").reason == 0


@pytest.mark.rule("LSN-11")
def test_2_4_1_the_managed_queue_goes_with_its_durable_subscription(client: MqiClient, home: Path) -> None:
    client.subscribed(KEPT, "Sport/Soccer", "scores")
    brief = client.subscribed(NEW, "Sport/Golf")
    rows = shown(home, "DISPLAY SUB(*) DESTCLAS DURABLE")
    assert sorted((row["SUB"], row["DESTCLAS"], row["DURABLE"]) for row in rows) == [
        ("", "MANAGED", "NO"),
        ("scores", "MANAGED", "YES"),
    ]
    shown(home, "DELETE SUB('scores')")
    client.shut(brief.hsub)
    client.shut(brief.hobj)
    until_gone(home)


def shown(home: Path, statement: str) -> list[dict[str, Any]]:
    """What an administrator sees of an MQSC command."""
    with QueueManagerStore.open(home, "QM1") as store:
        runner = StatementRunner(store, "admin", no_groups, utc_now)
        ((_, answer),) = runner.run(list(parse(statement)))
        assert answer.ok, answer
        return [dict(row) for row in answer.objects]


@pytest.mark.rule("QM-7", "LSN-16")
def test_5_authority_to_publish(client: MqiClient, home: Path) -> None:
    define(
        home,
        TopicObject("SPORT", topic_string="Sport"),
        TopicObject("CLOSED", topic_string="Sport/Closed", pub=False),
        AliasQueue("NEWS.ALIAS", "NEWS", target_type="TOPIC"),
        TopicObject("NEWS", topic_string="News"),
    )
    assert client.publish("News", b"x") == 0  # nothing is checked before the first record is set
    define(home, AuthorityRecord("TOPIC", "SPORT", "PRINCIPAL", "alice", ("PUB",)))
    reasons = {
        "its topic": client.publish("Sport/Soccer", b"x"),
        "another": client.publish("News", b"x"),
        "an alias of another": client.put1("NEWS.ALIAS", b"x"),
        "opened, its topic": client.open("SPORT", MQOO_OUTPUT, MQOT_TOPIC).reason,
        "opened, another": client.open("NEWS", MQOO_OUTPUT, MQOT_TOPIC).reason,
        "opened, an alias of another": client.open("NEWS.ALIAS", MQOO_OUTPUT).reason,
        "no topic": client.publish("", b"x"),
        "PUB(DISABLED)": client.publish("Sport/Closed/a", b"x"),
    }
    assert list(reasons.values()) == [0, 2035, 2035, 0, 2035, 2035, 2425, 2051], reasons
    shown(home, "ALTER QMGR PSMODE(DISABLED)")
    assert client.publish("Sport/Soccer", b"x") == 2531
    assert client.subscribe(NEW, "Sport/Soccer").reason == 2531


def test_a_subscription_expires(client: MqiClient, home: Path) -> None:
    made = client.subscribed(KEPT, "Sport/Soccer", "brief", SubExpiry=1)
    assert made.descriptor["SubExpiry"] == 1
    client.shut(made.hsub)
    # It is there for a second: who is held up for longer sees no more of it.
    while (again := client.subscribe(MQSO_RESUME | MQSO_DURABLE, "", "brief")).reason == 0:
        client.shut(again.hsub)
    assert again.reason == 2428


def test_a_request_that_cannot_be_read_is_a_dead_letter(client: MqiClient) -> None:
    handle = client.opened("SYSTEM.QPUBSUB.MQSUB.REQUEST", MQOO_OUTPUT)
    client.put(handle, b"hello", format="MQSTR")
    letters = client.opened("SYSTEM.DEAD.LETTER.QUEUE", MQOO_INPUT_SHARED)
    assert got(client, letters).body.endswith(b"hello")
    made = client.subscribed(NEW, "Sport/Soccer")
    assert made.reason == 0


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=3, max_size=3))
def test_strings_behind_a_descriptor_are_read_as_they_were_written(texts: list[str]) -> None:
    names = ("ObjectString", "SubName", "SelectionString")
    written = write_strings(Structure.new(MQSD, "big"), dict(zip(names, texts, strict=True)), names)
    read = Structure(MQSD, bytearray(written), 0, "big")
    assert [read_string(read, name) for name in names] == texts


@given(st.builds(SubscriptionDescriptor), st.sampled_from(Verb), st.binary(max_size=24))
def test_a_request_is_read_as_it_was_written(descriptor: SubscriptionDescriptor, verb: Verb, sub_id: bytes) -> None:
    request = SubscriptionRequest(verb=verb, descriptor=descriptor, sub_id=sub_id)
    assert SubscriptionRequest.model_validate_json(request.model_dump_json()) == request


INTERCEPTS = MQSO_CREATE | MQSO_SET_CORREL_ID


@pytest.mark.rule("APP-4a")
def test_4_6_1_an_interceptor_publishes_again_at_a_lower_level(client: MqiClient, other: MqiClient) -> None:
    """The program of the guide: it gets the context, the options and the topic, and passes them on."""
    save = MQOO_INPUT_SHARED | MQOO_SAVE_ALL_CONTEXT
    queue = client.opened("INTERCEPTED", save | MQOO_OUTPUT)
    client.subscribed(INTERCEPTS, "Sport/#", queue=queue, SubLevel=9)
    middle = client.subscribed(NEW, "Sport/#", SubLevel=5)
    final = other.subscribed(NEW, "Sport/#")
    nobody = other.subscribed(NEW, "Sport/#", SubLevel=0)
    correl_id = b"publisher".ljust(24, b"\0")

    assert other.publish("Sport/Soccer", b"one", MQPMO_RETAIN, correl_id=correl_id) == 0
    first = client.get(queue, MQGMO_PROPERTIES_FORCE_MQRFH2, PATIENCE_MS)
    assert b"""<Pub dt="i4">2097152</Pub><Pbl dt="i4">9</Pbl>""" in first.body
    assert first.mqmd.correl_id == correl_id
    assert client.publish("Sport/Soccer", b"two", MQPMO_RETAIN, level=8, correl_id=correl_id) == 0
    second = client.get(middle.hobj, MQGMO_PROPERTIES_FORCE_MQRFH2, PATIENCE_MS)
    assert b"""<Pbl dt="i4">8</Pbl>""" in second.body
    assert client.publish("Sport/Soccer", b"three", MQPMO_RETAIN, level=4) == 0
    assert got(other, final.hobj).body == b"three"
    # A subscription that is made now has its place behind all of these.
    late = other.subscribed(NEW, "Sport/#")
    assert got(other, late.hobj).body == b"three"  # retained at the end, below the interceptors
    for handle in (queue, middle.hobj):
        assert client.get(handle).reason == EMPTY
    for handle in (final.hobj, nobody.hobj):
        assert other.get(handle).reason == EMPTY


@pytest.mark.rule("APP-4a")
def test_4_6_1_the_catchall_gets_what_is_published_at_level_0(client: MqiClient, other: MqiClient) -> None:
    first, nobody = client.subscribed(NEW, "Sport"), client.subscribed(NEW, "Sport", SubLevel=0)
    assert [other.publish("Sport", b"%d" % level, level=level) for level in (0, 1)] == [0, 0]
    assert (got(client, nobody.hobj).body, got(client, first.hobj).body) == (b"0", b"1")
    assert [other.publish("Sport", b"x", level=level) for level in (-1, 10)] == [2173, 2173]


REPLY_TO: dict[str, Any] = {"reply_to_q": "R.Q", "reply_to_qmgr": "QM2"}


@pytest.mark.rule("APP-6a")
def test_4_7_reply_to_reaches_subscribers_unless_it_is_suppressed(client: MqiClient, other: MqiClient) -> None:
    replies: list[tuple[int, dict[str, Any], tuple[str, str]]] = [
        (0, REPLY_TO, ("R.Q", "QM2")),
        (0, {"reply_to_q": "R.Q"}, ("R.Q", "QM1")),
        (0, {}, ("", "QM1")),
        (MQPMO_SUPPRESS_REPLYTO, REPLY_TO, ("", "")),
        (MQPMO_SUPPRESS_REPLYTO, {}, ("", "")),
    ]
    made = client.subscribed(NEW, "Sport/Soccer")
    for options, fields, expected in replies:
        assert other.publish("Sport/Soccer", b"x", options, **fields) == 0
        mqmd = got(client, made.hobj).mqmd
        assert (mqmd.reply_to_q, mqmd.reply_to_qmgr) == expected
    other.publish("Sport/Golf", b"kept", MQPMO_RETAIN, **REPLY_TO)
    late = client.subscribed(NEW, "Sport/Golf")
    assert got(client, late.hobj).mqmd.reply_to_q == "R.Q"
    assert other.publish("Sport/Soccer", b"x", MQPMO_SUPPRESS_REPLYTO, report=MQRO_PAN, **REPLY_TO) == 2027


@pytest.mark.rule("APP-6a")
def test_6_7_9_reply_to_of_a_command_does_not(client: MqiClient, other: MqiClient) -> None:
    made = client.subscribed(NEW, "Sport/Soccer")
    stream = other.opened("SYSTEM.BROKER.DEFAULT.STREAM", MQOO_OUTPUT)
    other.put(stream, rfh2(SCORES) + b"x", format="MQHRF2", encoding=273, coded_char_set_id=1208, **REPLY_TO)
    mqmd = got(client, made.hobj).mqmd
    assert (mqmd.reply_to_q, mqmd.reply_to_qmgr) == ("", "QM1")


@pytest.mark.rule("APP-6b")
def test_7_2_4_own_subscriptions_are_left_out(client: MqiClient, other: MqiClient) -> None:
    mine, theirs = client.subscribed(NEW, "Sport/Soccer"), other.subscribed(NEW, "Sport/#")
    assert client.publish("Sport/Soccer", b"not mine", MQPMO_NOT_OWN_SUBS) == 0
    assert client.publish("Sport/Soccer", b"mine too") == 0
    assert [got(other, theirs.hobj).body for _ in range(2)] == [b"not mine", b"mine too"]
    assert got(client, mine.hobj).body == b"mine too"


def test_what_is_put_on_an_alias_of_a_topic_keeps_its_options(client: MqiClient, other: MqiClient, home: Path) -> None:
    define(home, TopicObject("SPORT", topic_string="Sport"), AliasQueue("TO.SPORT", "SPORT", "TOPIC"))
    other.put(other.opened("TO.SPORT", MQOO_OUTPUT), b"kept", MQPMO_RETAIN)
    made = client.subscribed(NEW, "Sport")
    assert got(client, made.hobj).body == b"kept"


@pytest.mark.rule("APP-4b")
def test_4_5_a_message_of_a_group_is_not_published(client: MqiClient) -> None:
    assert client.publish("Sport", b"x", msg_flags=MQMF_MSG_IN_GROUP, group_id=b"g".ljust(24)) == 2562
