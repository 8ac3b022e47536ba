"""Legacy states of every kind, good and bad: whatever the model can hold."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from commands.model import RegOpt
from migrate.legacy_state import (
    Access,
    AclEntry,
    BrokerItem,
    FlowInput,
    LegacyAuthority,
    LegacyRetained,
    LegacyState,
    LegacySubscription,
    Principal,
    Product,
    Publisher,
    Relation,
    Source,
    StanzaAttribute,
    Stream,
    SubPoint,
    Unread,
)
from migrate.subscription_plan import NEIGHBOURS_QUEUE
from streams.subscriptions import PublicationFormat, WildcardScheme
from streams.topic_objects import ADMIN_STREAM, DEFAULT_STREAM
from tests.migrate.legacy_messages import NOW, psc, publish

QMGR = "QM1"
CORREL_IDS = ("414D5120514D31202020202020202020AABBCCDD20000101", "00" * 24, "FF" * 24)

sources = st.builds(Source, file=st.just("made.txt"), position=st.integers(1, 99))
streams = st.sampled_from(
    (DEFAULT_STREAM, DEFAULT_STREAM, "Sport", "Business", "Sport/UK", ADMIN_STREAM, "no name?", "")
)
points = st.sampled_from((None, None, None, "USD", "GBP", "Sport", "P" * 60, "P" * 200, "a+b"))
topics = st.one_of(
    st.sampled_from(
        ("a", "a/b", "a/*", "a/?", "#", "+/b", "a/#", "Sport", "Sport/x", "USD/x", "MQ/S/x", "$SYS/Broker/x")
    ),
    st.text("ab/*?%#+ \0\né'", max_size=8),
    st.sampled_from(("", "x" * 10_240, "y" * 10_230, "z" * 10_241)),
)
queues = st.sampled_from(
    ("A.Q", "B.Q", "AMQ.4B2C1D", "AMQ.4A8B12CD20004C02", NEIGHBOURS_QUEUE, "", "bad name", "Q" * 48, "Q" * 49)
)
qmgrs = st.sampled_from((QMGR, QMGR, "", "OTHER", "bad name"))
users = st.sampled_from(("", "anne", "fred", "averylongusername"))
names = st.one_of(st.none(), st.none(), st.sampled_from(("s", "t", "s:Sport", "JMS:x", "n" * 10_236, " padded ")))
moments = st.one_of(st.none(), st.sampled_from((NOW - timedelta(days=1), NOW, NOW + timedelta(days=1))))
words = st.lists(st.sampled_from((*(option.value for option in RegOpt), "Unknown", "4194304")), max_size=4).map(tuple)

subscriptions = st.builds(
    LegacySubscription,
    source=sources,
    topic=topics,
    queue=queues,
    qmgr=qmgrs,
    correl_id=st.one_of(st.none(), st.sampled_from(CORREL_IDS)),
    stream=streams,
    sub_point=points,
    scheme=st.sampled_from(WildcardScheme),
    format=st.sampled_from((PublicationFormat.RFH1, PublicationFormat.RFH2, PublicationFormat.PCF)),
    user=users,
    name=names,
    user_data=st.one_of(st.none(), st.text(max_size=4)),
    identities=st.lists(st.sampled_from(("one", "two", "", "i" * 65)), max_size=3).map(tuple),
    exclusive=st.booleans(),
    filter=st.one_of(st.none(), st.none(), st.sampled_from(("a = 1", "Body.x > 1", "not a (filter", ""))),
    options=words,
    unknown_options=st.lists(st.just("32"), max_size=1).map(tuple),
    created=moments,
    expires_at=moments,
    temp_dynamic=st.sampled_from((False, False, False, True)),
    unknown=st.lists(st.sampled_from(("expires_at", "format", "user")), max_size=2, unique=True).map(tuple),
)


def _message(topic: str, of: str) -> tuple[str | None, str | None]:
    if of == "rfh1":
        made = publish(1, topic.replace("\0", "") or "x")
    elif of == "rfh2":
        text = "".join(c for c in topic if c.isprintable() and c not in "<>&") or "x"
        made = psc(1, f"<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{text}</Topic>", data=b"2")
    elif of == "none":
        return None, None
    else:
        return None, "00112233"
    return made.md_hex, made.body_hex


@st.composite
def retained_publications(draw: st.DrawFn) -> LegacyRetained:
    topic = draw(topics)
    md_hex, body_hex = _message(topic, draw(st.sampled_from(("rfh1", "rfh1", "rfh2", "none", "garbage"))))
    return LegacyRetained(
        source=draw(sources),
        topic=topic,
        stream=draw(streams),
        sub_point=draw(points),
        md_hex=md_hex,
        body_hex=body_hex,
        published_at=draw(moments),
        expires_at=draw(moments),
        local=draw(st.booleans()),
        delivered=draw(st.booleans()),
    )


def _some(strategy: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


states = st.builds(
    LegacyState,
    qmgr=st.just(QMGR),
    brokers=_some(
        st.builds(
            BrokerItem,
            source=sources,
            name=st.sampled_from(("BRK1", "BRK2")),
            product=st.sampled_from(Product),
            qmgr=st.sampled_from((QMGR, "", "OTHER")),
        )
    ),
    relations=_some(
        st.builds(
            Relation,
            source=sources,
            role=st.sampled_from(("parent", "child")),
            qmgr=st.sampled_from(("HQ", "BRANCH", QMGR, "bad name", "ALIKE.FIRST.TWELVE1", "ALIKE.FIRST.TWELVE2")),
        )
    ),
    streams=_some(st.builds(Stream, source=sources, name=streams), 5),
    sub_points=_some(st.builds(SubPoint, source=sources, name=points.filter(bool)), 4),
    subscriptions=_some(subscriptions, 6),
    retained=_some(retained_publications(), 4),
    publishers=_some(st.builds(Publisher, source=sources, topic=topics, stream=streams, options=words)),
    acl=_some(
        st.builds(
            AclEntry,
            source=sources,
            topic=topics,
            stream=streams,
            principal=st.sampled_from(("anne", "staff", "PublicGroup", "odd name", "line\nbreak", "it's")),
            principal_type=st.sampled_from(("user", "group", "unknown")),
            publish=st.sampled_from(Access),
            subscribe=st.sampled_from(Access),
            persistent=st.sampled_from(Access),
        ),
        4,
    ),
    authorities=_some(
        st.builds(
            LegacyAuthority,
            source=sources,
            object_type=st.sampled_from(("QUEUE", "TOPIC", "QMGR", "NAMELIST")),
            profile=st.sampled_from(("Sport", DEFAULT_STREAM, "A.*", "bad name?", "")),
            entity_type=st.sampled_from(("PRINCIPAL", "GROUP")),
            entity=st.sampled_from(("anne", "staff")),
            authorities=st.lists(st.sampled_from(("PUT", "BROWSE", "GET", "PUB")), max_size=3).map(tuple),
            removed=st.lists(st.sampled_from(("PUT", "BROWSE")), max_size=1).map(tuple),
        )
    ),
    principals=_some(
        st.builds(
            Principal, source=sources, name=st.sampled_from(("anne", "staff")), type=st.sampled_from(("user", "group"))
        )
    ),
    attributes=_some(
        st.builds(
            StanzaAttribute,
            source=sources,
            stanza=st.just("Broker"),
            name=st.sampled_from(
                ("MaxMsgRetryCount", "DLQNonPersistentResponse", "SyncPointIfPersistent", "RoutingExitPath", "Odd")
            ),
            value=st.sampled_from(("5", "yes", "no", "many", "-1", "")),
        )
    ),
    flow_inputs=_some(st.builds(FlowInput, source=sources, queue=queues)),
    unread=_some(st.builds(Unread, source=sources, text=st.text(max_size=5), why=st.just("odd"))),
    # A state that holds nothing is no migration's (tests/migrate/test_refused_sources.py).
).filter(lambda state: any(item.kind not in (Unread.kind, Principal.kind) for _, item in state.items()))
