"""The single rules of a migration: names, attributes, streams, subscription points, lists, relations, the log."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands.mqsc.attributes import QMGR
from migrate import log, migmbbrk, strmqbrk
from migrate.assemble import acl_object_names, sub_point_object_name, subscription_name
from migrate.attributes import non_persistent_response
from migrate.checklist import KNOWN
from migrate.embedded import applied
from migrate.ledger import Fate, Result, Severity, Verdict
from migrate.legacy_state import (
    Access,
    AclEntry,
    LegacyRetained,
    LegacyState,
    LegacySubscription,
    Principal,
    Product,
    Relation,
    Source,
    StanzaAttribute,
    Stream,
    SubPoint,
    difference,
    fingerprint,
    labelled,
)
from migrate.plan import MigrationPlan, Phase, PlanOptions
from migrate.target import Target, existing_target
from streams.subscriptions import PublicationFormat, WildcardScheme
from streams.topic_objects import DEFAULT_STREAM, QUEUE_NAMELIST, SUB_POINT_NAMELIST
from tests.migrate.legacy_messages import NOW, psc, publish

MADE = Source(file="made", position=1)
LONG_POINT = "Prices/Europe/Frankfurt/Equities/RealTime/VeryLongSubscriptionPoint"

MADE_POINT = "Prices/Europe/Frankfurt00ryLongSubscriptionPoint"


def subscription(**fields: Any) -> LegacySubscription:
    given = {"source": MADE, "topic": "a", "queue": "A.Q", "qmgr": "QM1", "user": "anne"} | fields
    return LegacySubscription(**given)


def retained(topic: str = "a", **fields: Any) -> LegacyRetained:
    message = publish(1, topic)
    given = {"topic": topic, "md_hex": message.md_hex, "body_hex": message.body_hex, "published_at": NOW} | fields
    return LegacyRetained(source=MADE, **given)


def of(**fields: Any) -> LegacyState:
    return LegacyState(qmgr="QM1", **fields)


def planned(state: LegacyState, script: str = "", **options: Any) -> MigrationPlan:
    target = existing_target("QM1", script, NOW)
    return strmqbrk.plan(state, target, PlanOptions(**options), NOW)


def fate(plan: MigrationPlan, kind: str, number: int = 1) -> Fate:
    return next(f for f in plan.fates if f.key == (kind, number))


def ids(found: Fate) -> set[str]:
    return {known for reason in found.reasons for known in reason.ids}


@pytest.mark.rule("MIG-14")
@pytest.mark.parametrize(
    ("name", "stream", "wanted"),
    [("s", DEFAULT_STREAM, "s"), ("s", "Sport", "s:Sport"), ("s:Sport", "Sport", "s:Sport:Sport")],
)
def test_7_6_1_names_of_subscriptions(name: str, stream: str, wanted: str) -> None:
    assert subscription_name(name, stream, ":") == wanted


@pytest.mark.parametrize(
    ("point", "taken", "wanted"),
    [
        ("USD", set(), "USD"),
        ("USD", {"USD"}, "USD00"),
        ("USD", {"USD", "USD00"}, "USD01"),
        (LONG_POINT, set(), MADE_POINT),
        (LONG_POINT, {MADE_POINT}, MADE_POINT.replace("00", "01")),
        ("a b", set(), "a_b00"),
        ("x" * 47, {"x" * 47}, "x" * 23 + "00" + "x" * 23),
    ],
    ids=["free", "taken", "twice", "longer-than-48", "longer-and-taken", "blank", "47-and-taken"],
)
def test_6_2_names_of_topic_objects(point: str, taken: set[str], wanted: str) -> None:
    found = sub_point_object_name(point, taken.__contains__)
    assert found == wanted
    assert len(found) <= 48


def test_6_2_the_counter_is_hexadecimal_and_ends() -> None:
    taken: set[str] = {"USD"}
    for number in range(256):
        name = sub_point_object_name("USD", taken.__contains__)
        assert name == f"USD{number:02X}"
        taken.add(name)
    assert sub_point_object_name("USD", taken.__contains__) is None


@pytest.mark.rule("MB-3")
def test_8_4_names_for_lists_have_five_digits_and_step_over_what_is_there() -> None:
    following = acl_object_names(1, {"MIGMBBRK.TOPIC.00002"}.__contains__)
    assert [following(), following()] == ["MIGMBBRK.TOPIC.00001", "MIGMBBRK.TOPIC.00003"]


RESPONSES = [
    # DLQ, Discard, SyncPointIfPersistent -> PSNPRES
    (True, True, None, "NORMAL"),
    (False, True, None, "DISCARD"),
    (None, True, None, "NORMAL"),
    (True, False, None, "SAFE"),
    (False, False, None, "KEEP"),
    (None, False, None, "SAFE"),
    (True, None, False, "SAFE"),
    (False, None, False, "KEEP"),
    (None, None, False, "SAFE"),
    (True, None, True, "NORMAL"),
    (False, None, None, "DISCARD"),
    (None, None, True, "NORMAL"),
]


@pytest.mark.rule("MIG-3")
@pytest.mark.parametrize(("dlq", "discard", "sync_point", "wanted"), RESPONSES)
def test_7_3_five_attributes_psnpres(
    dlq: bool | None, discard: bool | None, sync_point: bool | None, wanted: str
) -> None:
    assert non_persistent_response(dlq, discard, sync_point) == wanted
    values = QMGR.attribute("PSNPRES")
    assert values is not None
    assert values.kind.show(wanted) == wanted


@pytest.mark.rule("MIG-3")
@pytest.mark.parametrize(
    ("name", "value", "attribute", "wanted"),
    [
        ("MaxMsgRetryCount", "7", "psrtycnt", 7),
        ("DiscardNonPersistentInputMsg", "no", "psnpmsg", "KEEP"),
        ("DiscardNonPersistentInputMsg", "Yes", "psnpmsg", "DISCARD"),
        ("SyncPointIfPersistent", "no", "pssyncpt", "YES"),
        ("SyncPointIfPersistent", "yes", "pssyncpt", "IFPER"),
        ("MaxMsgRetryCount", "many", "psrtycnt", 5),
        ("SyncPointIfPersistent", "maybe", "pssyncpt", "IFPER"),
        ("RoutingExitPath", "/x(y)", "psrtycnt", 5),
    ],
)
def test_7_3_attributes(name: str, value: str, attribute: str, wanted: object) -> None:
    state = of(attributes=(StanzaAttribute(source=MADE, stanza="Broker", name=name, value=value),))
    plan = planned(state)
    after = applied(plan, Target.fresh("QM1"))
    assert getattr(after.objects.qmgr, attribute) == wanted
    understood = value not in ("many", "maybe", "/x(y)")
    assert (fate(plan, "attribute").verdict is Verdict.MIGRATED) is understood


@pytest.mark.rule("D-07")
def test_7_5_a_routing_exit_is_rewritten_by_a_person() -> None:
    exit_path = StanzaAttribute(source=MADE, stanza="Broker", name="RoutingExitPath", value="/x(y)")
    found = fate(planned(of(attributes=(exit_path,))), "attribute")
    (reason,) = found.reasons
    assert (found.verdict, reason.severity, reason.ids) == (Verdict.REPORTED, Severity.ERROR, ("D07",))
    assert "rewrite it as a publish exit" in reason.text


def test_an_attribute_given_twice() -> None:
    twice = tuple(StanzaAttribute(source=MADE, stanza="Broker", name="MaxMsgRetryCount", value=v) for v in "12")
    plan = planned(of(attributes=twice))
    assert [fate(plan, "attribute", n).verdict for n in (1, 2)] == ["reported", "migrated"]
    assert applied(plan, Target.fresh("QM1")).objects.qmgr.psrtycnt == 2


class TestStreams:
    """Guide 6.1, 7.1."""

    def test_6_1_a_stream_becomes_a_topic_object_a_queue_and_a_name_in_the_list(self) -> None:
        plan = planned(of(streams=(Stream(source=MADE, name="Sport"),)))
        after = applied(plan, Target.fresh("QM1")).objects
        made = after.topics.require("Sport")
        assert (made.topic_string, made.wildcard) == ("Sport", "BLOCK")
        assert "Sport" in after.queues
        assert after.namelists[QUEUE_NAMELIST].names == (DEFAULT_STREAM, "SYSTEM.BROKER.ADMIN.STREAM", "Sport")

    def test_p16_names_that_were_in_the_list_stay(self) -> None:
        script = f"ALTER NAMELIST({QUEUE_NAMELIST}) NAMES('SYSTEM.BROKER.DEFAULT.STREAM', 'SYSTEM.FTE')"
        plan = planned(of(streams=(Stream(source=MADE, name="Sport"),)), script)
        (store,) = [s for s in plan.definitions if s.definition.name == QUEUE_NAMELIST]
        assert store.definition.names == (DEFAULT_STREAM, "SYSTEM.FTE", "SYSTEM.BROKER.ADMIN.STREAM", "Sport")  # type: ignore[union-attr]

    def test_p28_256_names_and_no_more(self) -> None:
        streams = tuple(Stream(source=MADE, name=f"S{number}") for number in range(300))
        plan = planned(of(streams=streams))
        (store,) = [s for s in plan.definitions if s.definition.name == QUEUE_NAMELIST]
        assert len(store.definition.names) == 256  # type: ignore[union-attr]
        assert sum("P28" in ids(f) for f in plan.fates) == 46

    def test_p10_another_object_has_the_topic_string(self) -> None:
        state = of(streams=(Stream(source=MADE, name="Sport"),), subscriptions=(subscription(stream="Sport"),))
        script = "DEFINE TOPIC(OTHER) TOPICSTR('Sport')"
        plan = planned(state, script)
        assert [fate(plan, kind).verdict for kind in ("stream", "subscription")] == ["reported", "reported"]
        assert "P10" in ids(fate(plan, "stream"))
        again = planned(state, script, prefixes={"Sport": "Sport.v6"})
        assert [fate(again, kind).verdict for kind in ("stream", "subscription")] == ["changed", "migrated"]

    def test_p09_topics_of_the_default_stream_below_the_prefix(self) -> None:
        streams = (Stream(source=MADE, name="Sport"),)
        plan = planned(of(streams=streams, subscriptions=(subscription(topic="Sport/x"),)))
        assert {"P09", "D09"} <= ids(fate(plan, "stream"))

    def test_colliding_retained_publications_are_never_laid_over_each_other(self) -> None:
        state = of(
            streams=(Stream(source=MADE, name="Sport"),),
            retained=(retained("Sport/x"), retained("x", stream="Sport")),
        )
        plan = planned(state)
        assert [fate(plan, "retained", n).verdict for n in (1, 2)] == ["migrated", "reported"]
        assert [c.topic_string for c in plan.collisions] == ["Sport/x"]

    def test_an_object_that_does_not_block(self) -> None:
        plan = planned(of(streams=(Stream(source=MADE, name="Sport"),)), "DEFINE TOPIC('Sport') TOPICSTR('Sport')")
        assert {"P08", "P17", "D08"} <= ids(fate(plan, "stream"))

    def test_a_stream_that_cannot_be_an_object(self) -> None:
        state = of(streams=(Stream(source=MADE, name="no name"),), subscriptions=(subscription(stream="no name"),))
        plan = planned(state)
        assert {f.verdict for f in plan.fates} == {Verdict.REPORTED}


class TestSubscriptionPoints:
    """Guide 6.2."""

    def _plan(self, script: str = "") -> MigrationPlan:
        state = of(
            sub_points=(SubPoint(source=MADE, name="USD"),),
            subscriptions=(subscription(sub_point="USD", format=PublicationFormat.RFH2, scheme=WildcardScheme.TOPIC),),
        )
        return planned(state, script)

    def test_6_2_a_used_point_becomes_a_topic_object(self) -> None:
        after = applied(self._plan(), Target.fresh("QM1"))
        assert after.objects.topics.require("USD").wildcard == "BLOCK"
        assert after.objects.namelists[SUB_POINT_NAMELIST].names[-1] == "USD"
        assert after.subscriptions[0].topic_string == "USD/a"

    def test_6_2_an_object_of_the_name_with_another_string(self) -> None:
        plan = self._plan("DEFINE TOPIC(USD) TOPICSTR('dollars')")
        made = [s.definition.name for s in plan.definitions]
        assert "USD00" in made
        assert fate(plan, "sub_point").verdict is Verdict.CHANGED

    def test_6_2_an_object_of_the_name_with_the_same_string_is_added_to_the_list(self) -> None:
        plan = self._plan("DEFINE TOPIC(USD) TOPICSTR('USD') WILDCARD(BLOCK)")
        assert [s.definition.name for s in plan.definitions if s.definition.name in ("USD", "USD00")] == []
        before = existing_target("QM1", "DEFINE TOPIC(USD) TOPICSTR('USD')", NOW)
        assert "USD" in applied(plan, before).objects.namelists[SUB_POINT_NAMELIST]

    def test_p19_an_unused_one_is_not_migrated(self) -> None:
        plan = planned(of(sub_points=(SubPoint(source=MADE, name="JPY"),)))
        assert (fate(plan, "sub_point").verdict, ids(fate(plan, "sub_point"))) == ("reported", {"P19"})

    def test_a_retained_publication_makes_it_used(self) -> None:
        message = psc(1, "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a</Topic><SubPoint>EUR</SubPoint>")
        kept = retained(sub_point="EUR", md_hex=message.md_hex, body_hex=message.body_hex)
        plan = planned(of(sub_points=(SubPoint(source=MADE, name="EUR"),), retained=(kept,)))
        assert fate(plan, "sub_point").verdict is Verdict.MIGRATED


TWICE = [
    ("the-same", {}, {}, ["migrated", "migrated"]),
    ("other-user", {}, {"user": "fred"}, ["migrated", "reported"]),
    ("other-options", {"options": ("Local",)}, {}, ["migrated", "reported"]),
    ("metatopics-and-capture", {"unknown": ("expires_at", "format")}, {}, ["migrated", "migrated"]),
    ("another-queue-is-another-one", {}, {"queue": "B.Q"}, ["migrated", "migrated"]),
]


@pytest.mark.parametrize(("one", "other", "verdicts"), [t[1:] for t in TWICE], ids=[t[0] for t in TWICE])
def test_the_same_registration_from_two_sources(
    one: dict[str, Any], other: dict[str, Any], verdicts: list[str]
) -> None:
    plan = planned(of(subscriptions=(subscription(**one), subscription(**other))))
    assert [fate(plan, "subscription", n).verdict for n in (1, 2)] == verdicts
    made = 2 if other.get("queue") else 1
    assert len(plan.subscriptions) == made


def test_what_one_source_cannot_tell_another_may() -> None:
    expiry = datetime(2009, 3, 1, tzinfo=UTC)
    told = subscription(unknown=("expires_at",), name="n", user="")
    other = subscription(expires_at=expiry, name="n")
    plan = planned(of(subscriptions=(told, other)))
    (step,) = plan.subscriptions
    assert (step.subscription.expires_at, step.subscription.user, step.key[1]) == (expiry, "anne", 2)


REFUSED = [
    ("7.5-metatopic", {"topic": "MQ/S/x"}, "D04"),
    ("admin-stream", {"stream": "SYSTEM.BROKER.ADMIN.STREAM"}, "D05"),
    ("expired", {"expires_at": NOW}, None),
    ("temporary-dynamic-queue", {"temp_dynamic": True}, "D17"),
    ("6.7.4-queue-with-the-name-of-a-dynamic-one", {"queue": "AMQ.4A8B12CD20004C02"}, "D18"),
    ("6.7.4-with-the-programs-prefix", {"queue": "AMQSPSDA.4A8B12CD20004C02", "qmgr": "QM1"}, "D17"),
    ("of-a-neighbour", {"queue": "SYSTEM.BROKER.INTER.BROKER.COMMUNICATIONS", "qmgr": "HUB"}, None),
    ("of-a-neighbour-to-a-metatopic", {"queue": "SYSTEM.BROKER.INTER.BROKER.COMMUNICATIONS", "topic": "MQ/x"}, None),
    ("no-queue", {"queue": ""}, "P29"),
    ("no-queue-name", {"queue": "bad name"}, "P29"),
    ("client-without-a-queue", {"queue": "", "client_id": "jms:QM1:CLIENT:T"}, "P29"),
    ("empty-topic", {"topic": ""}, None),
    ("topic-too-long-with-prefix", {"topic": "x" * 10_240, "stream": "Sport"}, None),
    ("name-too-long-with-stream", {"name": "n" * 10_240, "stream": "Sport"}, "D15"),
    ("bad-pattern", {"topic": "50%"}, None),
    ("6.2-point-with-mqrfh", {"sub_point": "USD"}, None),
    ("8-filter-on-the-body", {"filter": "Body.Price > 1"}, "D30"),
    ("no-selector", {"filter": "not a ( selector"}, "D30"),
]


@pytest.mark.parametrize(("fields", "known"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_reported_instead_of_migrated(fields: dict[str, Any], known: str | None) -> None:
    broker = Product.WMB if "filter" in fields else Product.MQ
    from migrate.assemble import assemble, of_product

    state = of_product(assemble([subscription(**fields)], "QM1"), "B", broker)
    found = fate(planned(state), "subscription")
    assert found.verdict is Verdict.REPORTED
    assert known is None or known in ids(found)


KEPT = [
    ("a-topic-of-10240-characters", {"topic": "x" * 10_240}),
    ("all-options", {"options": ("Local", "Pers", "InformIfRet", "VariableUserId", "DupsOK")}),
    ("unknown-option-bit", {"unknown_options": ("4194304",)}),
    ("long-user", {"user": "averylongusername"}),
    ("remote-queue", {"qmgr": "OTHER"}),
    ("dynamic-looking-queue", {"queue": "AMQ.4B2C1D"}),
    ("dynamic-queue-elsewhere", {"queue": "AMQ.4A8B12CD20004C02", "qmgr": "OTHER"}),
    ("permanent-dynamic-queue-of-jms", {"queue": "SYSTEM.JMS.D.4A8B12CD20004C02"}),
    ("jms", {"name": "JMS:QM1:client:sub", "queue": "SYSTEM.JMS.D.SUBSCRIBER"}),
]


@pytest.mark.parametrize("fields", [k[1] for k in KEPT], ids=[k[0] for k in KEPT])
def test_what_is_migrated_all_the_same(fields: dict[str, Any]) -> None:
    plan = planned(of(subscriptions=(subscription(**fields),)))
    assert fate(plan, "subscription").verdict is not Verdict.REPORTED
    assert len(plan.subscriptions) == 1


@pytest.mark.parametrize("command", ["DEFINE QLOCAL(X)", "DEFINE QALIAS(X) TARGET(A.Q)"])
def test_6_7_4_a_dynamic_queue_that_is_there_is_a_permanent_one(command: str) -> None:
    queue = "AMQ.4A8B12CD20004C02"
    plan = planned(of(subscriptions=(subscription(queue=queue),)), command.replace("X", queue))
    assert [step.subscription.dest_queue for step in plan.subscriptions] == [queue]
    assert {"P12", "P13"} <= ids(fate(plan, "subscription"))


@pytest.mark.parametrize(
    ("identities", "is_locked"),
    [((), False), (("one",), True), (("one", "two"), False), (("one", "x" * 65), True)],
    ids=["none", "one", "two", "one-is-too-long"],
)
def test_9_3_a_lock_is_kept_where_one_identity_holds_it_and_its_loss_is_told(
    identities: tuple[str, ...], is_locked: bool
) -> None:
    plan = planned(of(subscriptions=(subscription(name="n", exclusive=True, identities=identities),)))
    found = fate(plan, "subscription")
    assert plan.subscriptions[0].subscription.exclusive is is_locked
    assert any("it is not locked now" in reason.text for reason in found.reasons) is not is_locked
    assert is_locked or found.verdict is Verdict.CHANGED


def test_a_neighbours_registration_is_left_by_choice() -> None:
    """In a report and in an estate alike: the hierarchy makes it again."""
    neighbours = subscription(queue="SYSTEM.BROKER.INTER.BROKER.COMMUNICATIONS", qmgr="HUB", user="mqm")
    plan = planned(of(subscriptions=(neighbours, subscription())))
    found = fate(plan, "subscription")
    assert found.reasons[0].text == (
        "a neighbour, broker HUB, registered it for its own subscribers: the hierarchy makes it again"
    )
    assert (plan.sums.left, found.result) == (1, Result.LEFT)
    assert [step.subscription.dest_queue for step in plan.subscriptions] == ["A.Q"]
    assert not any("INTER.BROKER" in step.definition.name for step in plan.definitions)


@pytest.mark.rule("MIG-9")
def test_7_1_an_existing_subscription_is_skipped_or_replaced() -> None:
    script = "DEFINE QLOCAL(X.Q)\nDEFINE SUB(n) TOPICSTR('old') DEST(X.Q)"
    state = of(subscriptions=(subscription(name="N"),))
    assert fate(planned(state, script), "subscription").verdict is Verdict.REPORTED
    plan = planned(state, script, overwrite=True)
    (step,) = plan.subscriptions
    assert step.replaces is not None
    after = applied(plan, existing_target("QM1", script, NOW))
    assert [s.topic_string for s in after.subscriptions] == ["a"]


RETAINED = [
    ("no-body", {"body_hex": None}, "reported", set()),
    ("garbage", {"body_hex": "00", "md_hex": None}, "reported", set()),
    ("expired", {"expires_at": NOW}, "reported", set()),
    ("wildcard-level", {"topic": "a/#"}, "reported", {"D14"}),
    ("the-brokers-own", {"topic": "MQ/S/x"}, "reported", {"D05"}),
    ("expiry-beyond-an-mqlong", {"expires_at": datetime(2049, 1, 1, tzinfo=UTC)}, "changed", {"P26"}),
    ("not-persistent", {"persistence": 0}, "migrated", {"P11", "D28"}),
    ("persistence-as-queue", {"persistence": 2}, "changed", {"P11"}),
]


@pytest.mark.parametrize(("fields", "verdict", "known"), [r[1:] for r in RETAINED], ids=[r[0] for r in RETAINED])
def test_retained_publications(fields: dict[str, Any], verdict: str, known: set[str]) -> None:
    own = dict(fields)
    persistence = own.pop("persistence", None)
    if persistence is not None:
        message = publish(1, "a", persistence=persistence)
        own |= {"md_hex": message.md_hex, "body_hex": message.body_hex}
    found = fate(planned(of(retained=(retained(**own),))), "retained")
    assert found.verdict == verdict
    assert known <= ids(found)


def test_of_two_retained_on_one_topic_the_later_holds() -> None:
    older = retained(published_at=datetime(2009, 1, 1, tzinfo=UTC))
    message = publish(2, "a", data=b"newer")
    newer = retained(md_hex=message.md_hex, body_hex=message.body_hex)
    plan = planned(of(retained=(newer, older)))
    assert [fate(plan, "retained", n).verdict for n in (1, 2)] == ["migrated", "reported"]
    (step,) = plan.retained
    assert step.retained.publication.message.body == b"newer"


@pytest.mark.rule("MB-7")
def test_p01_string_data_in_an_older_header() -> None:
    from tests.migrate.legacy_messages import rfh1

    pairs = [("Command", "Publish"), ("Topic", "a"), ("PubOpts", "RetainPub"), ("StringData", "x"), ("IntData", "1")]
    message = rfh1(1, pairs, queue=DEFAULT_STREAM, data=b"x")
    plan = planned(of(retained=(retained(md_hex=message.md_hex, body_hex=message.body_hex),)))
    assert "P01" in ids(fate(plan, "retained"))


def test_relations() -> None:
    relations = (
        Relation(source=MADE, role="parent", qmgr="HQ"),
        Relation(source=MADE, role="parent", qmgr="OTHER"),
        Relation(source=MADE, role="child", qmgr="BRANCH"),
        Relation(source=MADE, role="child", qmgr="QM1"),
    )
    plan = planned(of(relations=relations))
    assert [fate(plan, "relation", n).verdict for n in (1, 2, 3, 4)] == ["migrated", "reported", "migrated", "reported"]
    assert applied(plan, Target.fresh("QM1")).objects.qmgr.parent == "HQ"


def test_a_parent_that_is_there_is_not_replaced_unless_told() -> None:
    state = of(relations=(Relation(source=MADE, role="parent", qmgr="HQ"),))
    assert fate(planned(state, "ALTER QMGR PARENT(OLD)"), "relation").verdict is Verdict.REPORTED
    assert fate(planned(state, "ALTER QMGR PARENT(OLD)", overwrite=True), "relation").verdict is Verdict.CHANGED


def entry(**fields: Any) -> AclEntry:
    return AclEntry(source=MADE, **({"topic": "a", "principal": "mquser", "principal_type": "user"} | fields))


def security(*entries: AclEntry, principals: tuple[Principal, ...] = ()) -> list[str]:
    state = of(acl=entries, principals=principals)
    plan = migmbbrk.plan(state, Target.fresh("QM1"), PlanOptions(), NOW, Phase.REHEARSE)
    return [line for line in plan.security if "setmqaut" in line or "DENIED" in line or "everybody" in line]


ALLOW = {"publish": Access.ALLOW, "subscribe": Access.ALLOW}
COMMAND = "setmqaut -m QM1 -n MIGMBBRK.TOPIC.00001 -t topic"
LISTS = [
    ("8.1-both-forms", entry(**ALLOW), [f"{COMMAND} -p mquser +sub +pub", f"# {COMMAND} -g mquser +sub +pub"]),
    ("group", entry(**ALLOW, principal_type="group"), [f"{COMMAND} -g mquser +sub +pub"]),
    ("publish-alone", entry(publish=Access.ALLOW), [f"{COMMAND} -p mquser +pub", f"# {COMMAND} -g mquser +pub"]),
    ("inherit", entry(), []),
    (
        "denied",
        entry(subscribe=Access.DENY),
        ["# DENIED: mquser may not subscribe there. MQ cannot deny: migrate this entry by hand."],
    ),
    (
        "quoted",
        entry(**ALLOW, principal="it's; rm -rf /", principal_type="group"),
        [COMMAND + """ -g 'it'"'"'s; rm -rf /' +sub +pub"""],
    ),
    ("line-break", entry(**ALLOW, principal="a\nrm -rf /"), []),
]


@pytest.mark.rule("D-29", "MB-1")
@pytest.mark.parametrize(("one", "wanted"), [a[1:] for a in LISTS], ids=[a[0] for a in LISTS])
def test_8_1_security_commands(one: AclEntry, wanted: list[str]) -> None:
    assert security(one) == wanted


@pytest.mark.rule("MB-1")
def test_8_1_who_is_known_to_be_a_user_gets_one_form() -> None:
    assert security(entry(**ALLOW), principals=(Principal(source=MADE, name="mquser", type="user"),)) == [
        f"{COMMAND} -p mquser +sub +pub"
    ]


@pytest.mark.rule("MB-1")
def test_8_1_a_user_and_a_group_of_one_name_have_a_command_each() -> None:
    lines = security(entry(**ALLOW), entry(publish=Access.DENY, subscribe=Access.ALLOW, principal_type="group"))
    assert lines == [
        f"{COMMAND} -p mquser +sub +pub",
        "# DENIED: mquser may not publish there. MQ cannot deny: migrate this entry by hand.",
        f"{COMMAND} -g mquser +sub",
    ]


@pytest.mark.rule("MB-1", "MB-16")
def test_8_1_the_root_has_the_base_topic() -> None:
    assert security(entry(**ALLOW, topic="", principal_type="group")) == [
        "setmqaut -m QM1 -n SYSTEM.BASE.TOPIC -t topic -g mquser +sub +pub"
    ]


@pytest.mark.parametrize(
    ("one", "verdict", "severity"),
    [
        (entry(), Verdict.MIGRATED, Severity.INFO),
        (entry(persistent=Access.DENY), Verdict.REPORTED, Severity.WARNING),
        (entry(subscribe=Access.DENY), Verdict.REPORTED, Severity.ERROR),
        (entry(subscribe=Access.ALLOW, persistent=Access.ALLOW), Verdict.CHANGED, Severity.WARNING),
    ],
    ids=["inherits", "persistence-alone", "denies", "persistence-too"],
)
def test_8_1_what_no_authority_says_is_not_said_to_be_inherited(
    one: AclEntry, verdict: Verdict, severity: Severity
) -> None:
    plan = migmbbrk.plan(of(acl=(one,)), Target.fresh("QM1"), PlanOptions(), NOW, Phase.REHEARSE)
    assert (fate(plan, "acl").verdict, fate(plan, "acl").severity) == (verdict, severity)


def test_8_a_suitable_topic_object_is_used_again() -> None:
    target = existing_target("QM1", "DEFINE TOPIC(MINE) TOPICSTR('a')", NOW)
    plan = migmbbrk.plan(of(acl=(entry(**ALLOW),)), target, PlanOptions(), NOW, Phase.REHEARSE)
    assert [s for s in plan.definitions if s.definition.name.startswith("MIGMBBRK.")] == []
    assert any("-n MINE " in line for line in plan.security)


def test_fingerprints_are_of_what_is_said() -> None:
    one = of(subscriptions=(subscription(), subscription(queue="B.Q")))
    other = of(subscriptions=(subscription(queue="B.Q"), subscription(source=Source(file="elsewhere"))))
    assert fingerprint(one) == fingerprint(other)
    changed = of(subscriptions=(subscription(), subscription(queue="C.Q")))
    assert fingerprint(one) != fingerprint(changed)
    found = difference(labelled(one), labelled(changed))
    assert ["C.Q" in label for label in found.added] == [True]
    assert ["B.Q" in label for label in found.removed] == [True]


def test_every_number_that_is_named_is_explained() -> None:
    """In the sources: every P.. and D.. that a plan may name has an entry with advice."""
    import re

    root = Path(__file__).parents[2] / "migrate"
    named = {m for path in root.rglob("*.py") for m in re.findall(r'"([PD]\d\d)"', path.read_text())}
    assert named - KNOWN.keys() == set()
    assert {f"P{number:02}" for number in range(1, 33)} <= KNOWN.keys()


@pytest.mark.rule("MB-3")
def test_8_4_every_line_has_its_time_and_is_one_line() -> None:
    out = io.StringIO()
    writer = log.LogWriter(out, lambda: datetime(2009, 1, 28, 11, 43, 54, 187_654, tzinfo=UTC))
    writer.write("    Option\nwith \x1b[31m something")
    assert out.getvalue() == "2009-01-28 11:43:54.187:     Option.with .[31m something\n"


@pytest.mark.rule("MB-3")
def test_8_4_a_long_topic_is_cut_and_its_length_told() -> None:
    shown = log.printable("a" + "x" * 10_238 + "z")
    assert shown == f"a{'x' * 127}... (10240 characters) ...{'x' * 127}z"
