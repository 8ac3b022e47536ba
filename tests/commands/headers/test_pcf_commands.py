"""PCF commands and their responses (wire formats 2.5, 5.1): the same as in an MQRFH, numbers for names."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from commands.broker.authority import Action
from commands.headers.pcf import reply
from commands.headers.registry import parse
from commands.headers.response import Completion, Reply, Warned
from commands.model import (
    Command,
    DeletePublication,
    DelOpt,
    DeregisterPublisher,
    DeregisterSubscriber,
    Publish,
    PubOpt,
    RegisterPublisher,
    RegisterSubscriber,
    RegOpt,
    RequestUpdate,
)
from rfh2.constants import MQMT_REQUEST
from rfh2.errors import DecodeError
from rfh2.message import Message, decode
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfbs, Cfin, Cfsl, Cfst, Parameter, Pcf, decode_pcf
from rfh2.pcf_names import (
    MQBACF_CORREL_ID,
    MQCA_Q_MGR_NAME,
    MQCA_Q_NAME,
    MQCACF_PUBLISH_TIMESTAMP,
    MQCACF_REG_USER_ID,
    MQCACF_STREAM_NAME,
    MQCACF_STRING_DATA,
    MQCACF_SUBSCRIPTION_IDENTITY,
    MQCACF_SUBSCRIPTION_NAME,
    MQCACF_SUBSCRIPTION_USER_DATA,
    MQCACF_TOPIC,
    MQIACF_DELETE_OPTIONS,
    MQIACF_ERROR_ID,
    MQIACF_INTEGER_DATA,
    MQIACF_PARAMETER_ID,
    MQIACF_PUBLICATION_OPTIONS,
    MQIACF_REGISTRATION_OPTIONS,
    MQIACF_SEQUENCE_NUMBER,
)
from streams.subscriptions import PublicationFormat
from tests.commands.headers.rfh1_pcf_table import COMMANDS, SPORT, OlderScenario, pcf_groups, pcf_of, pcf_values, string
from tests.commands.scenario import MSG_ID, Result

PCF = PublicationFormat.PCF
TOPIC = Cfst.of(MQCACF_TOPIC, "a")
STREAM = Cfst.of(MQCACF_STREAM_NAME, f"{SPORT:48}")
Values = list[tuple[int, str | int]]


def command(word: str, *parameters: Parameter) -> Command:
    body = Pcf(COMMANDS[word], parameters).encode()
    return parse(Message(Mqmd(format="MQPCF"), (), body))


def options(number: int, value: int) -> Cfin:
    return Cfin(number, value)


TAKEN: list[tuple[str, str, tuple[Parameter, ...], Command]] = [
    (
        "2.5-delete-pub",
        "DeletePub",
        (STREAM, *string(MQCACF_TOPIC, "a*", "b"), Cfin(MQIACF_DELETE_OPTIONS, 4)),
        DeletePublication(header=PCF, topics=("a*", "b"), stream_name=SPORT, options=(DelOpt.LOCAL,)),
    ),
    (
        "2.5-dereg-pub",
        "DeregPub",
        (TOPIC, Cfst.of(MQCA_Q_MGR_NAME, "QM   "), Cfst.of(MQCA_Q_NAME, "Q   ")),
        DeregisterPublisher(header=PCF, topics=("a",), qmgr_name="QM", q_name="Q"),
    ),
    (
        "2.5-dereg-sub",
        "DeregSub",
        (Cfin(MQIACF_REGISTRATION_OPTIONS, 0x40),),
        DeregisterSubscriber(header=PCF, options=(RegOpt.DEREG_ALL,)),
    ),
    (
        "2.5-publish",
        "Publish",
        (
            Cfin(MQIACF_PUBLICATION_OPTIONS, 2 + 8),
            Cfin(MQIACF_REGISTRATION_OPTIONS, 4 + 8),
            *string(MQCACF_TOPIC, "a", "b"),
            Cfst.of(MQCACF_PUBLISH_TIMESTAMP, "2009012811435418"),
            Cfin(MQIACF_SEQUENCE_NUMBER, 7),
            Cfin(MQIACF_INTEGER_DATA, 1),
            Cfst.of(MQCACF_STRING_DATA, "x"),
            Cfin(MQIACF_INTEGER_DATA, 2),
        ),
        Publish(
            header=PCF,
            topics=("a", "b"),
            options=(PubOpt.RETAIN_PUB, PubOpt.NO_REG, PubOpt.LOCAL),
            pub_time="2009012811435418",
            seq_num="7",
            direct_requests=True,
        ),
    ),
    ("2.5-reg-pub", "RegPub", (TOPIC, STREAM), RegisterPublisher(header=PCF, topics=("a",), stream_name=SPORT)),
    (
        "2.5-reg-sub",
        "RegSub",
        (
            TOPIC,
            Cfst.of(MQCACF_SUBSCRIPTION_NAME, "n"),
            Cfst.of(MQCACF_SUBSCRIPTION_IDENTITY, "me"),
            Cfst.of(MQCACF_SUBSCRIPTION_USER_DATA, "u"),
            Cfin(MQIACF_REGISTRATION_OPTIONS, 0x20000 + 0x2000),
        ),
        RegisterSubscriber(
            header=PCF,
            topics=("a",),
            sub_name="n",
            sub_identity="me",
            sub_user_data="u",
            options=(RegOpt.PERS_AS_QUEUE, RegOpt.JOIN_SHARED),
        ),
    ),
    (
        "2.5-req-update",
        "ReqUpdate",
        (TOPIC, Cfin(MQIACF_REGISTRATION_OPTIONS, 0)),
        RequestUpdate(header=PCF, topics=("a",), options=(RegOpt.NONE,)),
    ),
]


@pytest.mark.rule("OLD-1")
@pytest.mark.parametrize(("word", "parameters", "wanted"), [row[1:] for row in TAKEN], ids=[row[0] for row in TAKEN])
def test_command(word: str, parameters: tuple[Parameter, ...], wanted: Command) -> None:
    assert command(word, *parameters) == wanted


def refused(result: Result, reason: int, *values: tuple[int, str | int]) -> None:
    assert pcf_groups(result.response) == [(2, reason, list(values))]
    assert len(result.puts) == 1
    assert not result.outcome.effects


CULPRIT = MQIACF_PARAMETER_ID
REFUSED: list[tuple[str, str, tuple[Parameter, ...], int, Values]] = [
    ("string-not-taken", "RegSub", (TOPIC, Cfst.of(2094, "a")), 3015, [(CULPRIT, 2094)]),
    ("string-of-another-command", "DeletePub", (TOPIC, Cfst.of(MQCA_Q_NAME, "Q")), 3015, [(CULPRIT, 2016)]),
    ("integer-not-taken", "RegSub", (TOPIC, Cfin(1, 1)), 3014, [(CULPRIT, 1)]),
    ("integer-of-another-command", "RegSub", (TOPIC, Cfin(MQIACF_SEQUENCE_NUMBER, 1)), 3014, [(CULPRIT, 1079)]),
    ("string-twice", "RegSub", (TOPIC, STREAM, STREAM), 3018, [(CULPRIT, 3030)]),
    ("integer-twice", "Publish", (TOPIC, *[Cfin(MQIACF_SEQUENCE_NUMBER, 1)] * 2), 3017, [(CULPRIT, 1079)]),
    ("two-topics-in-req-update", "ReqUpdate", (TOPIC, TOPIC), 3018, [(CULPRIT, 3031)]),
    ("no-topic", "RegSub", (), 3019, [(CULPRIT, 3031)]),
    ("topic-as-a-list", "RegSub", (Cfsl.of(MQCACF_TOPIC, ("a", "b")),), 3013, [(CULPRIT, 3031)]),
    ("options-as-a-string", "RegSub", (TOPIC, Cfst.of(MQIACF_REGISTRATION_OPTIONS, "Local")), 3013, [(CULPRIT, 1081)]),
    ("byte-string", "RegSub", (TOPIC, Cfbs.of(MQBACF_CORREL_ID, bytes(24))), 3015, [(CULPRIT, 7011)]),
    ("registration-options", "RegSub", (TOPIC, Cfin(1081, 0x40)), 3083, [(CULPRIT, 1081)]),
    ("unknown-registration-bit", "RegSub", (TOPIC, Cfin(1081, 1 << 24)), 3083, [(CULPRIT, 1081)]),
    ("negative-options", "RegSub", (TOPIC, Cfin(1081, -1)), 3083, [(CULPRIT, 1081)]),
    ("publication-options", "Publish", (TOPIC, Cfin(1082, 32)), 3084, [(CULPRIT, 1082)]),
    ("delete-options", "DeletePub", (TOPIC, Cfin(1092, 1)), 3087, [(CULPRIT, 1092)]),
    ("direct-req-with-anon", "RegPub", (TOPIC, Cfin(1081, 10)), 3083, [(CULPRIT, 1081)]),
    ("stream-name", "RegSub", (TOPIC, Cfst.of(MQCACF_STREAM_NAME, "A-B")), 3071, [(CULPRIT, 3030)]),
    ("unknown-stream", "RegSub", (TOPIC, Cfst.of(MQCACF_STREAM_NAME, "B")), 3082, [(CULPRIT, 3030)]),
    ("incorrect-stream", "Publish", (TOPIC, STREAM), 3075, [(CULPRIT, 3030)]),
    (
        "null-in-a-topic",
        "RegSub",
        (Cfst(MQCACF_TOPIC, b"a\0b", 1208, "utf-8", b"\0"),),
        3072,
        [(CULPRIT, 3031)],
    ),
    ("not-registered", "DeregSub", (TOPIC,), 3073, [(CULPRIT, 3031)]),
    ("correl-id", "RegSub", (TOPIC, Cfin(1081, 1)), 3080, [(CULPRIT, 1081)]),
]


@pytest.mark.rule("OLD-1", "OLD-9")
@pytest.mark.parametrize(
    ("word", "parameters", "reason", "values"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refused(word: str, parameters: tuple[Parameter, ...], reason: int, values: Values) -> None:
    refused(OlderScenario().pcf(word, *parameters), reason, *values)


@pytest.mark.rule("OLD-9")
def test_3007_a_command_that_is_none_of_publish_subscribe() -> None:
    refused(OlderScenario().pcf(184, TOPIC), 3007)


@pytest.mark.rule("OLD-9")
def test_3001_a_header_that_is_of_no_command() -> None:
    refused(OlderScenario().pcf("RegSub", TOPIC, kind=2), 3001)


def test_3079_on_the_wrong_queue() -> None:
    for word, queue in (("RegSub", SPORT), ("Publish", "SYSTEM.BROKER.CONTROL.QUEUE")):
        refused(OlderScenario().pcf(word, TOPIC, queue=queue), 3079)


def test_an_administration_command_on_a_queue_of_somebody_else_is_none_of_ours() -> None:
    result = OlderScenario().pcf(184, TOPIC, queue="SYSTEM.ADMIN.COMMAND.QUEUE")
    assert (result.puts, result.outcome.completion) == ([], None)


@pytest.mark.rule("OLD-9")
def test_3016_a_body_cut_short() -> None:
    world = OlderScenario()
    body = Pcf(COMMANDS["RegSub"], (TOPIC,)).encode()
    md = Mqmd(format="MQPCF", msg_type=MQMT_REQUEST, reply_to_q="REPLY.Q").encode()
    for end in range(36, len(body)):
        result = world.put("SYSTEM.BROKER.CONTROL.QUEUE", md, body[:end])
        ((comp_code, reason, values),) = pcf_groups(result.response)
        assert (comp_code, values) == (2, [])
        assert reason == 3016
    result = world.put("SYSTEM.BROKER.CONTROL.QUEUE", md, body[:20])
    assert len(result.responses) == 1


@pytest.mark.rule("OLD-6")
def test_response_ok() -> None:
    response = OlderScenario().pcf("RegSub", TOPIC, order="big").response
    pcf = pcf_of(response)
    assert (pcf.type, pcf.command, pcf.comp_code, pcf.reason, pcf.control, pcf.parameters, pcf.order) == (
        *(2, 65, 0, 0, 1, ()),
        "big",
    )
    assert (response.mqmd.format, response.mqmd.encoding, response.mqmd.msg_type) == ("MQPCF", 273, 2)
    assert response.mqmd.correl_id == MSG_ID


@pytest.mark.rule("OLD-6")
def test_the_response_has_the_format_of_the_command() -> None:
    assert OlderScenario().pcf("RegSub", TOPIC, format="MQADMIN").response.mqmd.format == "MQADMIN"


@pytest.mark.rule("OLD-6")
def test_one_header_tells_the_first_of_several_warnings() -> None:
    """MsgSeqNumber is 1 and Control MQCFC_LAST in every message of publish/subscribe."""
    world = OlderScenario()
    world.authority.topics = {("app1", Action.PUBLISH, "a"), ("app1", Action.PUBLISH, "c")}
    response = world.pcf("Publish", *string(MQCACF_TOPIC, "a", "b", "c")).response
    assert pcf_groups(response) == [(1, 3081, [(CULPRIT, 3031)])]
    told = pcf_of(response)
    assert (told.msg_seq_number, told.control, told.rest) == (1, 1, b"")


@pytest.mark.rule("OLD-6")
def test_a_further_reason_is_the_error_parameter_where_no_parameter_is_in_error() -> None:
    world = OlderScenario()
    command = world.pcf("RegSub", TOPIC).response.message
    said = reply(command, Reply(Completion.ERROR, (Warned(3081, (("ErrorId", "2292"), ("Topic", "a"))),)))
    assert pcf_values(decode_pcf(said.body)) == [(MQIACF_ERROR_ID, 2292)]


@pytest.mark.rule("OLD-7")
def test_full_resp_as_parameters() -> None:
    world = OlderScenario()
    flags = Cfin(MQIACF_REGISTRATION_OPTIONS, 0x10000 + 0x80 + 0x100)
    result = world.pcf("RegSub", TOPIC, STREAM, flags, Cfst.of(MQCACF_SUBSCRIPTION_NAME, "n"), reply_to="SUB.Q")
    assert pcf_groups(result.response) == [
        (
            0,
            0,
            [
                (3031, "a"),
                (3030, SPORT),
                (2015, "QM1"),
                (2016, "SUB.Q"),
                (MQCACF_REG_USER_ID, "app1"),
                (3052, "n"),
                (1081, 0x80 + 0x100 + 0x1000),
            ],
        )
    ]


def test_character_wildcards_and_streams() -> None:
    world = OlderScenario()
    world.pcf("RegSub", Cfst.of(MQCACF_TOPIC, "Soc*/?"), STREAM, reply_to="SUB.Q")
    (got,) = world.pcf("Publish", Cfst.of(MQCACF_TOPIC, "Soccer/A"), queue=SPORT).publications
    assert (got.queue, got.put.topic) == ("SUB.Q", "Sport/Soccer/A")


def test_strings_in_the_code_page_of_the_message() -> None:
    """CodedCharSetId 0 in a parameter: that of the MQMD."""
    world = OlderScenario()
    topic = "Zürich".encode("cp500")
    world.pcf("RegSub", Cfst(MQCACF_TOPIC, topic, 0, tail=bytes(2)), coded_char_set_id=500, order="big")
    assert [made.topic_string for made in world.subscriptions] == ["Zürich"]


@given(st.binary(max_size=120))
def test_any_body_is_answered_or_kept(rest: bytes) -> None:
    world = OlderScenario()
    md = Mqmd(format="MQPCF", msg_type=MQMT_REQUEST, reply_to_q="REPLY.Q").encode()
    whole = Pcf(COMMANDS["RegSub"], (TOPIC,)).encode()
    for body in (rest, whole[:36] + rest):
        result = world.put("SYSTEM.BROKER.CONTROL.QUEUE", md, body)
        kinds = [received.put.kind.value for received in result.puts]
        assert kinds in (["response"], ["deadletter", "response"])


def test_no_pcf_at_all() -> None:
    with pytest.raises(DecodeError):
        parse(decode(b"no header", Mqmd(format="MQPCF")))
