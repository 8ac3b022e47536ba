"""Queued commands as modern operations: the dialects, the tables of guide 7.2, state that builds up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from commands.broker.objects import Objects, QueueManager
from commands.cli.translate import DIALECTS, render
from commands.explain.build import CommandSpec, command_message
from commands.explain.equivalents.guide_tables import MQRC_NAMES, OPTIONS, REASONS, TAGS, equivalent_reason
from commands.explain.equivalents.mqi import OPTIONS as MQI_OPTIONS, calls, to_mqi
from commands.explain.equivalents.pcf import messages, to_pcf
from commands.explain.equivalents.traced_operations import TraceBroker, TracedMessage, to_json
from commands.headers import rfh1_pcf_commands
from commands.headers.psc_commands import RULES
from commands.mqsc.equivalents import BLANK_TOPIC, OperationContext, sub_name, to_mqsc
from commands.mqsc.execute import run_setup
from commands.mqsc.script import MAX_LINE, NoMqscFormError, parse, statement
from rfh2 import CapturedMessage, Message, Mqmd
from rfh2.captures import read_captures
from rfh2.constants import reason_name
from rfh2.mqi_constants import MQCI_NONE
from rfh2.pcf import decode_pcf
from rfh2.rfh1 import COMMANDS
from streams.operations import (
    AlterSubscription,
    ClearRetained,
    Operation,
    Publication,
    PublishToTopic,
    RequestRetained,
    Subscribe,
    Unsubscribe,
)
from streams.subscriptions import (
    DeliveryPersistence,
    PublicationFormat,
    Subscription,
    SubscriptionOptions,
    WildcardScheme,
)
from streams.topic_space import TopicSpace
from tests.rfh2.explained import damaged

FIXTURES = Path(__file__).parents[3] / "fixtures" / "explain"
NOW = datetime(2009, 1, 28, 11, 43, 54, tzinfo=UTC)
CONTEXT = OperationContext("QM1", NOW)
SUB = Subscription(b"\1" * 24, "a/#", "SUB.Q", "QM1", NOW, name="S", user="app1")


def play(*wanted: CommandSpec, setup: str = "") -> list[TracedMessage]:
    """What each command comes to, one after the other."""
    tracer = TraceBroker("QM1", setup)
    return [tracer.trace(command_message(one)) for one in wanted]


def lines(wanted: Sequence[CommandSpec], dialect: str) -> list[str]:
    """What the last of several commands is in a dialect, without its heading."""
    return list(render(play(*wanted)[-1], dialect, "x", 0))[1:]


def wanted(word: str, *topics: str, options: tuple[str, ...] = (), rfh1: bool = False, **tags: str) -> CommandSpec:
    mqmd = Mqmd(reply_to_q="SUB.Q", user_identifier="app1", msg_type=1)
    return CommandSpec(word, topics, options, tags, rfh1=rfh1, mqmd=mqmd, time=NOW)


REG = wanted("RegSub", "a/#", SubName="S")
DEFINED = ["  TOPICSTR('a/#') +", "  WSCHEMA(TOPIC) +", "  DEST('SUB.Q') +", "  PSPROP(RFH2) +", "  VARUSER(FIXED) +"]

MQSC: list[tuple[str, list[CommandSpec], list[str]]] = [
    ("7.2.6-regsub", [REG], ["DEFINE SUB('S') +", *DEFINED, "  SUBUSER('app1')"]),
    (
        "7.2.6-regsub-again-moves",
        [REG, wanted("RegSub", "a/#", SubName="S", QName="OTHER.Q")],
        ["ALTER SUB('S') +", "  DEST('OTHER.Q')"],
    ),
    (
        "7.2.6-regsub-again-changes-nothing",
        [REG, REG],
        ["* nothing that MQSC knows changes in subscription 'S'"],
    ),
    ("7.2.3-deregsub", [REG, wanted("DeregSub", "a/#", SubName="S")], ["DELETE SUB('S')"]),
    ("7.2.1-deletepub", [wanted("DeletePub", "a/b")], ["CLEAR TOPICSTR('a/b') CLRTYPE(RETAINED)"]),
    (
        "7.2.1-deletepub-wildcards",
        [wanted("Publish", "a/b", options=("RetainPub",)), wanted("DeletePub", "a/#")],
        [
            "* CLEAR TOPICSTR: wildcards cannot be given; 'a/#' stood for one topic with something retained",
            "CLEAR TOPICSTR('a/b') CLRTYPE(RETAINED)",
        ],
    ),
    ("7.2.4-publish", [wanted("Publish", "a/b")], ["* no MQSC command publishes; see --to mqi: a put to topic 'a/b'"]),
    ("7.2.5-regpub", [wanted("RegPub", "a", rfh1=True)], ["* publishers are not registered: nothing to define"]),
    ("7.2.2-deregpub", [wanted("DeregPub", "a", rfh1=True)], ["* publishers are not registered: nothing to delete"]),
    (
        "7.2.7-requpdate",
        [REG, wanted("ReqUpdate", "a/#", SubName="S")],
        [
            "* error: 3077 MQRCCF_NO_RETAINED_MSG: the topic has no retained publication",
            "* reason 3077 (topic a/#): the topic has no retained publication",
            "* a program that uses the MQI gets 2437 MQRC_NO_RETAINED_MSG",
            "* no MQSC command asks for retained publications; see --to mqi: MQSUBRQ on 'S'",
        ],
    ),
    (
        "7.2.3-not-registered",
        [wanted("DeregSub", "a/#")],
        [
            "* error: 3073 MQRCCF_NOT_REGISTERED: the publisher or subscriber is not registered",
            "* reason 3073 (topic a/#): no matching registration exists",
            "* a program that uses the MQI gets 2019 MQRC_HOBJ_ERROR",
        ],
    ),
]


@pytest.mark.parametrize(("commands", "expected"), [pytest.param(*rest, id=name) for name, *rest in MQSC])
def test_mqsc(commands: list[CommandSpec], expected: list[str]) -> None:
    assert lines(commands, "mqsc") == expected


MQI: list[tuple[str, list[CommandSpec], list[tuple[str, str]]]] = [
    (
        "7.2.6-regsub",
        [REG],
        [
            ("MQOPEN", "MQOO_INPUT_AS_Q_DEF"),
            ("MQSUB", "MQSO_CREATE + MQSO_ALTER + MQSO_DURABLE + MQSO_FIXED_USERID + MQSO_WILDCARD_TOPIC"),
        ],
    ),
    (
        "7.2.6-local-any-user",
        [wanted("RegSub", "a", options=("Local", "VariableUserId"))],
        [
            ("MQOPEN", ""),
            (
                "MQSUB",
                "MQSO_CREATE + MQSO_ALTER + MQSO_DURABLE + MQSO_ANY_USERID + MQSO_WILDCARD_TOPIC + MQSO_SCOPE_QMGR",
            ),
        ],
    ),
    (
        "7.2.6-new-pubs-only",
        [wanted("RegSub", "a", options=("NewPubsOnly",))],
        [("MQOPEN", ""), ("MQSUB", "MQSO_NEW_PUBLICATIONS_ONLY")],
    ),
    (
        "7.2.6-on-request",
        [wanted("RegSub", "a", options=("PubOnReqOnly",))],
        [("MQOPEN", ""), ("MQSUB", "MQSO_PUBLICATIONS_ON_REQUEST")],
    ),
    ("7.2.6-characters", [wanted("RegSub", "a*", rfh1=True)], [("MQOPEN", ""), ("MQSUB", "MQSO_WILDCARD_CHAR")]),
    (
        "7.2.6-again",
        [REG, wanted("RegSub", "a/#", SubName="S", SubUserData="x")],
        [("MQOPEN", ""), ("MQSUB", "MQSO_CREATE + MQSO_ALTER")],
    ),
    (
        "7.2.6-no-alter-first",
        [wanted("RegSub", "a", options=("NoAlter",), SubName="S")],
        [("MQOPEN", ""), ("MQSUB", "MQSO_CREATE + MQSO_RESUME + MQSO_DURABLE")],
    ),
    (
        "7.2.6-no-alter-again",
        [REG, wanted("RegSub", "a/#", options=("NoAlter",), SubName="S", SubUserData="x")],
        [("MQOPEN", ""), ("MQSUB", "MQSO_CREATE + MQSO_RESUME + MQSO_DURABLE")],
    ),
    (
        "7.2.6-elsewhere",
        [wanted("RegSub", "a", QName="Q", QMgrName="QM2")],
        [("MQOPEN", "MQOO_OUTPUT"), ("MQSUB", "MQSO_CREATE + MQSO_ALTER")],
    ),
    (
        "7.2.3-deregsub",
        [REG, wanted("DeregSub", "a/#", SubName="S")],
        [("MQSUB", "MQSO_RESUME"), ("MQCLOSE", "MQCO_REMOVE_SUB")],
    ),
    (
        "7.2.3-dereg-all",
        [REG, wanted("RegSub", "b"), wanted("RegSub", "c"), wanted("DeregSub", options=("DeregAll",))],
        [("MQSUB", "MQSO_RESUME"), ("MQCLOSE", ""), ("MQSUB", "MQSO_RESUME"), ("MQCLOSE", "")],
    ),
    (
        "7.2.4-publish",
        [wanted("Publish", "a", options=("RetainPub", "OtherSubsOnly", "Local"))],
        [("MQPUT1", "MQPMO_RETAIN + MQPMO_NOT_OWN_SUBS + MQPMO_SCOPE_QMGR")],
    ),
    ("7.2.4-two-topics", [wanted("Publish", "a", "b")], [("MQPUT1", "'a'"), ("MQPUT1", "'b'")]),
    ("7.2.4-anonymous", [wanted("Publish", "a", rfh1=True)], [("MQPUT1", "none (0x00000000)")]),
    ("7.2.5-regpub", [wanted("RegPub", "a", "b", rfh1=True)], [("MQOPEN", "'a'"), ("MQOPEN", "'b'")]),
    ("7.2.2-deregpub", [wanted("DeregPub", "a", rfh1=True)], [("MQCLOSE", "'a'")]),
    (
        "7.2.7-requpdate",
        [REG, wanted("Publish", "a/b", options=("RetainPub",)), wanted("ReqUpdate", "a/#", SubName="S")],
        [("MQSUB", "MQSO_RESUME"), ("MQSUBRQ", "MQSR_ACTION_PUBLICATION")],
    ),
]


@pytest.mark.parametrize(("commands", "expected"), [pytest.param(*rest, id=name) for name, *rest in MQI])
def test_mqi(commands: list[CommandSpec], expected: list[tuple[str, str]]) -> None:
    text = [line for line in lines(commands, "mqi") if not line.startswith("*")]
    starts = [at for at, line in enumerate(text) if not line.startswith(" ")]
    blocks = ["\n".join(text[at:end]) for at, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    assert [block.split("\n")[0] for block in blocks] == [verb for verb, _ in expected]
    for block, (_, holds) in zip(blocks, expected, strict=True):
        assert holds in block


def test_what_the_program_puts_is_described_and_has_its_properties() -> None:
    command = CommandSpec("Publish", ("a",), ("None",), {"SeqNum": "7", "PubTime": "2009012811435418", "QName": "R.Q"})
    command = replace(command, usr={"Colour": "red", "Size": 3, "On": True}, data="42.5", mqmd=Mqmd(expiry=600))
    text = "\n".join(lines([command], "mqi"))
    for line in (
        "MQPubTime\n  Value                    '2009012811435418'",
        "MQPubSeqNum\n  Value                    7",
        "Colour\n  Value                    'red' (MQTYPE_STRING)",
        "Size\n  Value                    3 (MQTYPE_INT32)",
        "On\n  Value                    TRUE (MQTYPE_BOOLEAN)",
        "MQMD.Format              'MQSTR'",
        "MQMD.Expiry              600",
        "MQMD.ReplyToQ            R.Q",
        "BufferLength             4",
    ):
        assert line in text


@pytest.mark.rule("MIG-20")
def test_7_2_4_integer_and_string_data_become_a_property() -> None:
    """MQPSIntData and MQPSStringData: "replaced with the message property ... MQPubStrIntData"."""
    command = replace(wanted("Publish", "a", rfh1=True), tags={"IntData": "42", "StringData": "forty two"})
    text = "\n".join(lines([command], "mqi"))
    assert "MQPubStrIntData\n  Value                    'MQPSIntData 42 MQPSStringData \"forty two\"'" in text


# Every subscription that DEFINE SUB can say comes back from the script as it was.

_TEXTS = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)
_LONG = st.tuples(_TEXTS, st.integers(1, 100)).map(lambda drawn: (drawn[0] * drawn[1])[:2_500].rstrip(" ") or "x")
_TOPICS = st.lists(st.text("abAB *'-é", min_size=1, max_size=400), min_size=1, max_size=4).map("/".join)


@st.composite
def subscriptions(draw: st.DrawFn) -> Subscription:
    correl_id = draw(st.sampled_from([MQCI_NONE, b"C" * 24]))
    return Subscription(
        sub_id=b"\1" * 24,
        topic_string=draw(_TOPICS).strip(" ") or "a",
        dest_queue=draw(st.sampled_from(["SUB.Q", "a.lower_case/q%"])),
        dest_qmgr=draw(st.sampled_from(["QM1", "QM2"])),
        created=NOW,
        name=draw(_LONG),
        wildcard=WildcardScheme.TOPIC,
        correl_id=correl_id,
        user=draw(st.sampled_from(["app1", "it's me"])),
        accounting_token=draw(st.sampled_from([bytes(32), b"\xab" * 32])),
        appl_identity_data=draw(st.sampled_from(["", "identity"])),
        user_data=draw(st.none() | _LONG),
        selector=draw(st.sampled_from([None, "Colour = 'red'"])),
        options=SubscriptionOptions(
            local=draw(st.booleans()), pub_on_req_only=draw(st.booleans()), variable_user_id=draw(st.booleans())
        ),
        format=draw(st.sampled_from([PublicationFormat.RFH2, PublicationFormat.RFH1])),
        pub_priority=draw(st.sampled_from([None, -1, 0, 9])),
        sub_level=draw(st.integers(0, 9)),
        expires_at=draw(st.sampled_from([None, NOW + timedelta(seconds=60)])),
    )


@pytest.mark.rule("MIG-7")
@given(subscriptions())
def test_a_script_of_define_sub_makes_the_subscription(subscription: Subscription) -> None:
    script = "\n".join(to_mqsc(Subscribe(subscription, True), CONTEXT))
    objects = Objects(QueueManager("QM1"))
    space = TopicSpace(objects.topics)
    run_setup(script, objects, space, NOW)
    made = space.by_name(subscription.name or "")
    assert made is not None
    assert replace(made, sub_id=subscription.sub_id, admin=False) == subscription


@pytest.mark.rule("MIG-7")
@settings(max_examples=20)
@given(subscriptions(), subscriptions())
def test_a_script_of_alter_sub_makes_the_other_subscription(before: Subscription, other: Subscription) -> None:
    after = replace(other, name=before.name, topic_string=before.topic_string, selector=before.selector)
    objects = Objects(QueueManager("QM1"))
    space = TopicSpace(objects.topics)
    context = replace(CONTEXT, before=before)
    script = [*to_mqsc(Subscribe(before, True), CONTEXT), *to_mqsc(AlterSubscription(after, False), context)]
    run_setup("\n".join(script), objects, space, NOW)
    made = space.by_name(before.name or "")
    assert made is not None
    assert replace(made, sub_id=after.sub_id, admin=False) == after


@given(subscriptions())
def test_pcf_is_what_its_bytes_say(subscription: Subscription) -> None:
    for operation in (Subscribe(subscription, True), AlterSubscription(subscription, False), Unsubscribe(subscription)):
        for message in messages(operation, CONTEXT):
            assert decode_pcf(message.encode()) == message


@given(st.lists(st.tuples(st.sampled_from(["TOPICSTR", "USERDATA"]), _LONG), max_size=2, unique_by=lambda v: v[0]))
def test_no_line_of_a_script_is_too_long_and_each_is_one_command(values: list[tuple[str, str]]) -> None:
    try:
        script = statement("DEFINE SUB('S')", values)
    except NoMqscFormError:
        return
    assert max(map(len, script)) <= MAX_LINE + 2
    (found,) = parse("\n".join(script))
    assert found.command is not None
    assert [k.values[0].text for k in found.command.keywords if k.values] == [value for _, value in values]


def test_a_topic_string_that_begins_with_a_blank_is_told_of_everywhere() -> None:
    blank = Subscribe(replace(SUB, topic_string=" a"), True)
    assert to_mqsc(blank, CONTEXT) == [f"* Subscribe: {BLANK_TOPIC}"]
    assert to_pcf(blank, CONTEXT)[0] == to_mqi(blank, CONTEXT)[0] == f"* {BLANK_TOPIC}"


@pytest.mark.parametrize("value", ["a ", "a\nb", "\t", "\x7f"])
def test_what_mqsc_cannot_say_is_a_comment(value: str) -> None:
    (line,) = to_mqsc(Subscribe(replace(SUB, user_data=value), True), CONTEXT)
    assert line.startswith("* Subscribe: ")
    assert "use PCF" in line


PUBLICATION = Publication(Message(Mqmd()), NOW)
EVERY: list[Operation] = [
    Subscribe(SUB, True),
    AlterSubscription(SUB, False),
    Unsubscribe(SUB),
    PublishToTopic("a", PUBLICATION),
    ClearRetained("a"),
    RequestRetained(SUB),
]


@pytest.mark.rule("MIG-2")
@pytest.mark.parametrize("operation", EVERY, ids=lambda operation: type(operation).__name__)
def test_every_operation_is_said_in_every_dialect(operation: Operation) -> None:
    for dialect in (to_mqsc, to_pcf, to_mqi):
        assert dialect(operation, CONTEXT)
    assert json.loads(json.dumps(to_json(operation)))["operation"] == type(operation).__name__
    assert calls(operation, CONTEXT) or messages(operation, CONTEXT)


def test_names_that_are_made_up_tell_subscriptions_apart() -> None:
    unnamed = replace(SUB, name=None)
    others = [
        replace(unnamed, user="app2"),
        replace(unnamed, selector="x = 1"),
        replace(unnamed, correl_id=b"C" * 24),
        replace(unnamed, stream="S"),
        replace(unnamed, dest_queue="Q2"),
        replace(unnamed, topic_string="a/" + "x" * 10_238),
        replace(unnamed, topic_string="a/" + "x" * 10_237 + "y"),
    ]
    names = {sub_name(one) for one in [unnamed, *others]}
    assert len(names) == len(others) + 1
    assert max(map(len, names)) <= 10_240
    assert sub_name(replace(unnamed, sub_id=b"\2" * 24, options=SubscriptionOptions(local=True))) == sub_name(unnamed)


def test_persistence_that_no_keyword_has_is_told() -> None:
    options = SubscriptionOptions(persistence=DeliveryPersistence.NON_PERSISTENT)
    script = to_mqsc(Subscribe(replace(SUB, options=options), True), CONTEXT)
    assert script[0] == "* persistence non-persistent: DEFINE SUB delivers as published"


# The tables of guide 7.2


def words_taken(word: str) -> set[str]:
    """Every option that a command takes in one header or another, but None."""
    found = {
        option for rule in ([RULES[word]] if word in RULES else []) for o in rule.options.values() for option in o.words
    }
    return (
        found | {str(option) for allowed in rfh1_pcf_commands.RULES[word].options.values() for option in allowed}
    ) - {"None"}


@pytest.mark.rule("APP-6", "MIG-5")
@pytest.mark.parametrize("word", COMMANDS)
def test_every_option_has_its_row(word: str) -> None:
    assert words_taken(word) == OPTIONS[word].keys()


@pytest.mark.rule("MIG-5")
@pytest.mark.parametrize("word", COMMANDS)
def test_every_tag_has_its_row(word: str) -> None:
    taken = {"Topic", *rfh1_pcf_commands.RULES[word].single, *rfh1_pcf_commands.RULES[word].ignored}
    if word in RULES:
        taken |= {*RULES[word].once, *RULES[word].repeated}
    assert TAGS[word].keys() == taken


# What the guide prints: reason, the MQRC beside it.
PRINTED: dict[str, dict[int, int | None]] = {
    "DeletePub": {3071: 2085, 3072: 2441, 3075: None},
    "DeregPub": {3071: 2019, 3072: 2019, 3073: 2019, 3074: 2019, 3076: 2019, 3078: 2019, 3082: 2019, 3083: 2046},
    "DeregSub": {3071: 2019, 3072: 2019, 3073: 2019, 3074: 2019, 3076: 2019, 3078: 2019, 3082: 2019, 3083: 2046},
    "RegSub": {3078: 2434, 3152: 2432, 3155: 2429, 3154: None, 3156: None, 3157: None},
}


@pytest.mark.rule("MIG-6")
@pytest.mark.parametrize("word", PRINTED)
def test_reasons_are_those_that_the_guide_prints(word: str) -> None:
    assert REASONS[word] | PRINTED[word] == REASONS[word]


def test_reasons_have_their_names() -> None:
    for table in REASONS.values():
        for reason, instead in table.items():
            assert reason_name(reason) is not None
            assert instead is None or MQRC_NAMES[instead]
    assert equivalent_reason("RegSub", 3152) == "2432 MQRC_SUB_ALREADY_EXISTS"
    assert equivalent_reason("RegSub", 3157) is None


def test_the_values_of_options_have_one_bit_or_none() -> None:
    assert [name for name, value in MQI_OPTIONS.items() if value.bit_count() > 1] == []


# Whole captures


def rendered(dialect: str, captured: Sequence[CapturedMessage]) -> list[str]:
    tracer = TraceBroker("QM1")
    return [
        line for at, one in enumerate(captured) for line in render(tracer.trace(one), dialect, "commands.jsonl", at)
    ]


@pytest.mark.rule("MIG-2")
@pytest.mark.parametrize("dialect", ["mqsc", "pcf", "mqi"])
def test_goldens(dialect: str) -> None:
    found = [record.message for record in read_captures(FIXTURES / "commands.jsonl") if record.message is not None]
    golden = (FIXTURES / f"commands.{dialect}").read_text(encoding="utf-8")
    assert "\n".join(rendered(dialect, found)) + "\n" == golden


def test_json_holds_every_operation() -> None:
    found = [record.message for record in read_captures(FIXTURES / "commands.jsonl") if record.message is not None]
    objects = [json.loads(line) for line in rendered("json", found)]
    assert [o["operation"] for one in objects for o in one["operations"]] == (
        ["Subscribe", "AlterSubscription", "Subscribe", "Subscribe", "Subscribe", "AlterSubscription"]
        + ["PublishToTopic"] * 3
        + ["RequestRetained", "ClearRetained", "ClearRetained", "AlterSubscription"]
        + ["Unsubscribe"] * 3
        + ["Subscribe"]
    )
    assert [one["reason"] for one in objects if one["completion"] == "error"] == [3073, 3083]
    assert {"source", "index", "seq", "command", "completion", "reason", "operations", "notes"} <= objects[0].keys()


@given(damaged(), st.sampled_from(DIALECTS))
def test_any_bytes_are_rendered(message: CapturedMessage, dialect: str) -> None:
    at_home = CapturedMessage(seq=1, queue="", md_hex=message.md_hex, body_hex=message.body_hex)
    for one in (message, at_home):
        for line in render(TraceBroker("QM1").trace(one), dialect, "x", 0):
            assert json.loads(line) if dialect == "json" else line.isprintable()


def test_two_captures_with_the_same_numbers_run_one_after_the_other() -> None:
    again = [command_message(wanted("RegSub", topic)) for topic in ("a", "b")]
    assert again[0].seq == again[1].seq
    assert len([line for line in rendered("mqsc", again) if line.startswith("DEFINE")]) == 2


def test_every_dialect_is_offered() -> None:
    assert DIALECTS == ("mqsc", "pcf", "mqi", "json")
