"""Authority (guide 5): the example of 5.1, records of groups, generic profiles, and off until the first record."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given, strategies as st

from commands import Broker, CapturedMessage
from commands.broker import authority as authority_module
from commands.broker.authority import Action, RecordedAuthority
from commands.broker.objects import AuthorityRecord
from rfh2 import Folder, Mqmd, Rfh2

CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"

# Guide 5.1: Price/Fruit for USER1, Price/Fruit/Apples for USER1 by inheritance and for USER2 alone.
FRUIT = """
DEFINE TOPIC(FRUIT) TOPICSTR('Price/Fruit')
DEFINE TOPIC(APPLE) TOPICSTR('Price/Fruit/Apples')
SET AUTHREC PROFILE(FRUIT) OBJTYPE(TOPIC) PRINCIPAL('USER1') AUTHADD(SUB)
SET AUTHREC PROFILE(APPLE) OBJTYPE(TOPIC) PRINCIPAL('USER2') AUTHADD(SUB, PUB)
SET AUTHREC PROFILE('S.**') OBJTYPE(QUEUE) GROUP('nobody') AUTHADD(PUT)
"""


def _authority(setup: str, groups: dict[str, Collection[str]] | None = None) -> RecordedAuthority:
    return RecordedAuthority(Broker("QM1", setup).objects, lambda user: (groups or {}).get(user, ()))


@pytest.mark.rule("SEC-2", "SEC-3")
@pytest.mark.parametrize(
    ("user", "action", "topic", "allowed"),
    [
        ("USER1", Action.SUBSCRIBE, "Price/Fruit", True),
        ("USER1", Action.SUBSCRIBE, "Price/Fruit/Apples", True),
        ("USER1", Action.SUBSCRIBE, "Price", False),
        ("USER1", Action.PUBLISH, "Price/Fruit/Apples", False),
        ("USER2", Action.SUBSCRIBE, "Price/Fruit", False),
        ("USER2", Action.SUBSCRIBE, "Price/Fruit/Apples/Green", True),
        ("USER2", Action.PUBLISH, "Price/Fruit/Apples", True),
        ("USER2", Action.RESUME, "Price/Fruit/Apples", True),
        ("mqm", Action.PUBLISH, "anything", True),
    ],
)
def test_5_1_rights_go_down_the_tree(user: str, action: Action, topic: str, allowed: bool) -> None:
    assert _authority(FRUIT).may_use_topic(user, action, topic) is allowed


@pytest.mark.rule("SEC-1")
def test_without_any_record_nothing_is_checked() -> None:
    authority = _authority("DEFINE TOPIC(FRUIT) TOPICSTR('Price/Fruit')")
    assert authority.may_use_topic("anybody", Action.PUBLISH, "Price/Fruit")
    assert authority.may_put("anybody", "ANY.QUEUE")


@pytest.mark.rule("SEC-3")
def test_a_group_gives_its_members_its_rights() -> None:
    setup = "SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) GROUP('traders') AUTHADD(PUB)"
    authority = _authority(setup, {"kim": ["traders"]})
    assert authority.may_use_topic("kim", Action.PUBLISH, "Price")
    assert not authority.may_use_topic("lee", Action.PUBLISH, "Price")


@pytest.mark.rule("SEC-4")
def test_the_most_specific_profile_alone_counts() -> None:
    setup = """
    SET AUTHREC PROFILE('PAY.**') OBJTYPE(QUEUE) PRINCIPAL('kim') AUTHADD(PUT)
    SET AUTHREC PROFILE('PAY.SECRET.*') OBJTYPE(QUEUE) PRINCIPAL('kim') AUTHADD(GET)
    """
    authority = _authority(setup)
    assert authority.may_put("kim", "PAY.ROLL")
    assert not authority.may_put("kim", "PAY.SECRET.ROLL")


# (what a user's records grant PUT by, the queue, whether PUT is granted)
GRANTS = [
    pytest.param(["S.*"], "S.A", True, id="one-qualifier"),
    pytest.param(["S.*"], "S.A.B", False, id="one-qualifier-is-not-two"),
    pytest.param(["*"], "ONE", True, id="any-name-of-one-qualifier"),
    pytest.param(["*"], "S.A", False, id="any-one-qualifier-is-not-everything"),
    pytest.param(["**"], "S.A.B", True, id="everything"),
    pytest.param(["S.**"], "S", True, id="no-qualifier"),
    pytest.param(["S.**"], "S.A.B", True, id="two-qualifiers"),
    pytest.param(["S.**"], "SA", False, id="another-qualifier"),
    pytest.param(["S.?"], "S.[", True, id="brackets-are-ordinary"),
    pytest.param(["*.[AB]"], "S.A", False, id="brackets-are-no-wildcard"),
    pytest.param(["S.**", "-S.*"], "S.A", False, id="the-more-specific-one-takes-away"),
    pytest.param(["-S.**", "S.*"], "S.A", True, id="the-more-specific-one-gives"),
    pytest.param(["-S.A"], "S.A", False, id="a-full-name"),
    pytest.param(["S.*", "-S.A"], "S.A", False, id="a-full-name-is-the-most-specific"),
    pytest.param(["*A*", "-*B*"], "AB", False, id="of-equals-what-all-grant"),
    pytest.param(["*A*", "*B*"], "AB", True, id="equals-that-agree"),
]


RECORDS = st.builds(
    AuthorityRecord,
    st.sampled_from(["TOPIC", "QUEUE"]),
    st.sampled_from(["FRUIT", "F*", "**", "SYSTEM.BASE.TOPIC", "S.A"]),
    st.sampled_from(["PRINCIPAL", "GROUP"]),
    st.sampled_from(["kim", "lee", "nobody"]),
    st.sampled_from([(), ("PUB",), ("PUB", "SUB"), ("PUT",)]),
)


@given(
    steps=st.lists(st.tuples(RECORDS, st.booleans(), st.sampled_from([(), ("lee",), ("kim", "mqm")])), max_size=12),
    most=st.sampled_from([2, 4_096]),
)
def test_what_is_known_of_records_is_what_they_grant(
    steps: list[tuple[AuthorityRecord, bool, tuple[str, ...]]], most: int
) -> None:
    """One that is asked between all changes answers as a new one does; groups change as well."""
    objects = Broker("QM1", "DEFINE TOPIC(FRUIT) TOPICSTR('Price/Fruit')").objects
    groups: tuple[str, ...] = ()
    asked = RecordedAuthority(objects, lambda _user: groups)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authority_module, "_MOST_KNOWN", most)
        for record, is_kept, groups in steps:
            if is_kept:
                objects.put(record)
            elif record.name in objects.authorities:
                objects.delete("authrec", record.name)
            fresh = RecordedAuthority(objects, lambda _user, now=groups: now)  # type: ignore[misc]
            for user in ("kim", "lee", "sam"):
                for topic in ("Price/Fruit", "Other"):
                    for action in Action:
                        wanted = fresh.may_use_topic(user, action, topic)
                        assert asked.may_use_topic(user, action, topic) is wanted
                for queue in ("S.A", "FRUIT"):
                    assert asked.may_put(user, queue) is fresh.may_put(user, queue)


@pytest.mark.rule("SEC-4")
@pytest.mark.parametrize(("profiles", "queue", "granted"), GRANTS)
def test_generic_profiles_grant_what_they_fit_and_no_more(profiles: list[str], queue: str, granted: bool) -> None:
    """A profile after a minus sign has a record without PUT."""
    setup = "\n".join(
        f"SET AUTHREC PROFILE('{profile.removeprefix('-')}') OBJTYPE(QUEUE) PRINCIPAL('kim') "
        f"AUTHADD({'GET' if profile.startswith('-') else 'PUT'})"
        for profile in profiles
    )
    assert _authority(setup).may_put("kim", queue) is granted


def test_what_one_entity_lacks_another_of_the_users_may_have() -> None:
    """The most specific profile is looked for in the records of each entity, not among those of all of them."""
    setup = """
    SET AUTHREC PROFILE('PAY.SECRET.*') OBJTYPE(QUEUE) PRINCIPAL('kim') AUTHADD(GET)
    SET AUTHREC PROFILE('PAY.**') OBJTYPE(QUEUE) GROUP('clerks') AUTHADD(PUT)
    """
    assert _authority(setup, {"kim": ["clerks"]}).may_put("kim", "PAY.SECRET.ROLL")
    assert not _authority(setup).may_put("kim", "PAY.SECRET.ROLL")


def _answers(
    setup: str, user: str, queue: str, psc: str, destination: str = "S.Q"
) -> list[tuple[object, object, bytes]]:
    body = Rfh2((Folder.of(f"<psc>{psc}</psc>"),)).encode()
    md = Mqmd(msg_type=1, format="MQHRF2", reply_to_q=destination, user_identifier=user)
    message = CapturedMessage(seq=1, queue=queue, md_hex=md.encode().hex(), body_hex=body.hex())
    puts = Broker("QM1", setup).handle(message)
    return [(put.completion, put.reason, bytes.fromhex(put.body_hex)) for put in puts]


@pytest.mark.rule("SEC-6")
def test_6_7_6_unauthorized_topics_among_others_are_warnings() -> None:
    psc = "<Command>RegSub</Command><Topic>Price</Topic><Topic>Price/Fruit/#</Topic><Topic>Price/Fish</Topic>"
    ((completion, reason, body),) = _answers(FRUIT, "USER1", CONTROL, psc)
    assert (completion, reason) == ("warning", 3081)
    assert (
        b"<Reason>3081</Reason><Topic>Price</Topic></Response><Response><Reason>3081</Reason><Topic>Price/Fish<" in body
    )


@pytest.mark.rule("SEC-6")
def test_a_command_with_no_authorized_topic_is_an_error() -> None:
    psc = "<Command>Publish</Command><Topic>Price/Fruit/Apples</Topic>"
    ((completion, reason, _),) = _answers(FRUIT, "USER1", STREAM, psc)
    assert (completion, reason) == ("error", 3081)


@pytest.mark.rule("SEC-5")
def test_2_5_4_a_wildcard_is_checked_where_it_begins() -> None:
    psc = "<Command>RegSub</Command><Topic>Price/#/Apples</Topic>"
    ((completion, reason, _),) = _answers(FRUIT, "USER2", CONTROL, psc)
    assert (completion, reason) == ("error", 3081)


@pytest.mark.rule("SEC-7", "REG-32")
def test_a_subscriber_needs_put_on_its_queue() -> None:
    psc = "<Command>RegSub</Command><Topic>Price/Fruit</Topic>"
    ((completion, reason, body),) = _answers(FRUIT, "USER1", CONTROL, psc, "OTHER.Q")
    assert (completion, reason) == ("error", 3081)
    assert b"<Reason>3081</Reason><QName>OTHER.Q</QName>" in body


@pytest.mark.rule("SEC-12")
@pytest.mark.parametrize(
    ("records", "refused"),
    [("", True), ("SET AUTHREC PROFILE(QM2) OBJTYPE(QUEUE) PRINCIPAL('USER1') AUTHADD(PUT)", False)],
)
def test_a_queue_of_another_queue_manager_needs_put_on_its_transmission_queue(records: str, refused: bool) -> None:
    psc = "<Command>RegSub</Command><Topic>Price/Fruit</Topic><QMgrName>QM2</QMgrName>"
    ((completion, reason, _),) = _answers(FRUIT + records, "USER1", CONTROL, psc, "S.Q")
    assert (completion, reason) == (("error", 3081) if refused else ("ok", None))


def test_some_queues_need_no_record_and_some_no_record_opens() -> None:
    authority = _authority(FRUIT + "SET AUTHREC PROFILE('**') OBJTYPE(QUEUE) PRINCIPAL('kim') AUTHADD(PUT)")
    assert authority.may_put("kim", "ANY.QUEUE")
    assert authority.may_use_queue("kim", "AMQ.1", ("GET", "PUT"), owner="kim")
    assert not authority.may_use_queue("kim", "AMQ.1", ("GET", "PUT"), owner="lee")
    assert authority.may_use_queue("lee", "SYSTEM.MANAGED.DURABLE.1", ("GET",), owner="lee")
    for queue in ("SYSTEM.MANAGED.DURABLE.1", "SYSTEM.QPUBSUB.MQSUB.REQUEST"):
        assert not authority.may_put("kim", queue)
        assert authority.may_put("mqm", queue)
