"""MQRFH commands: what a NameValueString asks for, and what is refused and where (wire formats 2.2 to 2.5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from commands.headers.registry import parse
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
from rfh2.errors import CommandError
from rfh2.message import Message, decode
from rfh2.mqmd import Mqmd
from rfh2.options import DELETE, PUBLICATION, REGISTRATION
from rfh2.rfh1 import Rfh1
from streams.subscriptions import PublicationFormat
from tests.commands.headers.rfh1_pcf_table import OlderScenario, rfh1_done, rfh1_refused

FIXTURES = Path(__file__).parents[3] / "fixtures" / "rfh1"
RFH1 = PublicationFormat.RFH1


def command(string: str) -> Command:
    header = Rfh1().with_pairs([])
    data = (string + "\0").encode("latin-1")
    header = Rfh1(data, header.encoding, header.coded_char_set_id, "")
    return parse(Message(Mqmd(format="MQHRF"), (header,)))


COMMANDS = [
    (
        "2.5-delete-pub",
        "MQPSCommand DeletePub MQPSStreamName S MQPSDelOpts Local MQPSTopic a* MQPSTopic b",
        DeletePublication(header=RFH1, topics=("a*", "b"), stream_name="S", options=(DelOpt.LOCAL,)),
    ),
    (
        "2.5-dereg-pub",
        "MQPSCommand DeregPub MQPSTopic a MQPSQMgrName QM MQPSQName Q",
        DeregisterPublisher(header=RFH1, topics=("a",), qmgr_name="QM", q_name="Q"),
    ),
    (
        "2.5-dereg-pub-all",
        "MQPSCommand DeregPub MQPSRegOpts DeregAll",
        DeregisterPublisher(header=RFH1, options=(RegOpt.DEREG_ALL,)),
    ),
    (
        "2.5-dereg-sub",
        "MQPSCommand DeregSub MQPSTopic a MQPSTopic b MQPSSubName n MQPSSubIdentity me MQPSRegOpts LeaveOnly",
        DeregisterSubscriber(
            header=RFH1, topics=("a", "b"), sub_name="n", sub_identity="me", options=(RegOpt.LEAVE_ONLY,)
        ),
    ),
    (
        "2.5-publish",
        "MQPSCommand Publish MQPSPubOpts RetainPub MQPSPubOpts NoReg MQPSTopic a MQPSTopic b MQPSPubTime "
        "2009012811435418 MQPSSeqNum 7 MQPSIntData 1 MQPSStringData x MQPSIntData 2 colour blue",
        Publish(
            header=RFH1,
            topics=("a", "b"),
            options=(PubOpt.RETAIN_PUB, PubOpt.NO_REG),
            pub_time="2009012811435418",
            seq_num="7",
        ),
    ),
    (
        "2.5-publish-registration-options",
        "MQPSCommand Publish MQPSTopic a MQPSRegOpts Local MQPSRegOpts CorrelAsId MQPSRegOpts DirectReq",
        Publish(header=RFH1, topics=("a",), options=(PubOpt.LOCAL, PubOpt.CORREL_AS_ID), direct_requests=True),
    ),
    (
        "2.5-publish-anonymously",
        "MQPSCommand Publish MQPSTopic a MQPSRegOpts Anon MQPSPubOpts OtherSubsOnly",
        Publish(header=RFH1, topics=("a",), options=(PubOpt.OTHER_SUBS_ONLY,), anonymous=True),
    ),
    (
        "2.5-reg-pub",
        "MQPSCommand RegPub MQPSTopic a MQPSStreamName S MQPSRegOpts 5",
        RegisterPublisher(header=RFH1, topics=("a",), stream_name="S", options=(RegOpt.CORREL_AS_ID, RegOpt.LOCAL)),
    ),
    (
        "2.5-reg-sub",
        "MQPSCommand RegSub MQPSTopic a* MQPSTopic b? MQPSQMgrName QM MQPSQName Q MQPSStreamName S MQPSSubUserData u",
        RegisterSubscriber(
            header=RFH1, topics=("a*", "b?"), qmgr_name="QM", q_name="Q", stream_name="S", sub_user_data="u"
        ),
    ),
    (
        "2.5-req-update",
        "MQPSCommand ReqUpdate MQPSTopic a* MQPSRegOpts VariableUserId",
        RequestUpdate(header=RFH1, topics=("a*",), options=(RegOpt.VARIABLE_USER_ID,)),
    ),
    (
        "2.4-options-as-words",
        "MQPSCommand RegSub MQPSRegOpts Anon MQPSRegOpts Local MQPSTopic a",
        RegisterSubscriber(header=RFH1, topics=("a",), options=(RegOpt.ANON, RegOpt.LOCAL)),
    ),
    (
        "2.4-options-as-a-sum",
        "MQPSCommand RegSub MQPSRegOpts  33 MQPSTopic a",
        RegisterSubscriber(header=RFH1, topics=("a",), options=(RegOpt.CORREL_AS_ID, RegOpt.PUB_ON_REQ_ONLY)),
    ),
    (
        "2.4-words-and-sums-mixed",
        'MQPSCommand RegSub MQPSRegOpts 2 MQPSRegOpts "Local 512" MQPSTopic a',
        RegisterSubscriber(header=RFH1, topics=("a",), options=(RegOpt.ANON, RegOpt.LOCAL, RegOpt.DUPS_OK)),
    ),
    (
        "2.4-no-option-is-none-of-them",
        "MQPSCommand RegSub MQPSRegOpts 0 MQPSTopic a",
        RegisterSubscriber(header=RFH1, topics=("a",), options=(RegOpt.NONE,)),
    ),
    (
        "2.2-topic-in-any-place",
        ' colour red MQPSCommand  RegSub   shape "round ""thing""" MQPSTopic "IBM ""Q"" Price" ',
        RegisterSubscriber(header=RFH1, topics=('IBM "Q" Price',)),
    ),
    (
        "field-names-padded-with-blanks",
        'MQPSCommand RegSub MQPSTopic a MQPSQName "Q    " MQPSStreamName "S  "',
        RegisterSubscriber(header=RFH1, topics=("a",), q_name="Q", stream_name="S"),
    ),
    (
        "2.2-empty-values-ask-for-the-default",
        'MQPSCommand RegSub MQPSTopic a MQPSQName "" MQPSStreamName ""',
        RegisterSubscriber(header=RFH1, topics=("a",)),
    ),
]


@pytest.mark.rule("OLD-1")
@pytest.mark.parametrize(("string", "wanted"), [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS])
def test_command(string: str, wanted: Command) -> None:
    assert command(string) == wanted


# string, reason, details in the response
REFUSED = [
    ("2.2-quote-in-a-token", 'MQPSCommand RegSub MQPSTopic a"b', 2335, [("MQPSErrorPos", "30")]),
    ("2.2-unterminated-quote", 'MQPSCommand RegSub MQPSTopic "a', 2335, [("MQPSErrorPos", "29")]),
    ("2.2-odd-number-of-tokens", "MQPSCommand RegSub MQPSTopic", 2335, [("MQPSErrorPos", "19")]),
    ("2.2-command-not-first", "MQPSTopic a MQPSCommand RegSub", 2336, [("MQPSErrorPos", "0")]),
    ("2.2-command-not-first-of-mqps", "x y MQPSTopic a MQPSCommand RegSub", 2336, [("MQPSErrorPos", "4")]),
    ("2.2-no-command", "colour blue", 2336, [("MQPSErrorPos", "0")]),
    (
        "2.3-unknown-command",
        " MQPSCommand Regsub MQPSTopic a",
        2336,
        [("MQPSCommand", "Regsub"), ("MQPSErrorPos", "1")],
    ),
    (
        "2.3-unknown-name",
        "MQPSCommand RegSub MQPSTopic a MQPSFoo b",
        2337,
        [("MQPSParmId", "MQPSFoo"), ("MQPSErrorPos", "31")],
    ),
    (
        "2.5-name-of-another-command",
        "MQPSCommand RegSub MQPSTopic a MQPSSeqNum 1",
        2337,
        [("MQPSParmId", "MQPSSeqNum"), ("MQPSErrorPos", "31")],
    ),
    (
        "2.3-second-command",
        "MQPSCommand RegSub MQPSCommand RegSub",
        2338,
        [
            ("MQPSParmId", "MQPSCommand"),
            ("MQPSErrorPos", "19"),
        ],
    ),
    (
        "2.3-no-repetition",
        "MQPSCommand RegSub MQPSTopic a MQPSQName Q MQPSQName R",
        2338,
        [("MQPSParmId", "MQPSQName"), ("MQPSErrorPos", "43")],
    ),
    (
        "2.5-req-update-takes-one-topic",
        "MQPSCommand ReqUpdate MQPSTopic a MQPSTopic b",
        2338,
        [("MQPSParmId", "MQPSTopic"), ("MQPSErrorPos", "34")],
    ),
    ("2.5-topic-missing", "MQPSCommand RegSub MQPSQName Q", 2339, [("MQPSParmId", "MQPSTopic")]),
    ("2.5-topic-missing-in-publish", "MQPSCommand Publish", 2339, [("MQPSParmId", "MQPSTopic")]),
    (
        "2.4-unknown-option",
        "MQPSCommand RegSub MQPSTopic a MQPSRegOpts Foo",
        3083,
        [
            ("MQPSRegOpts", "Foo"),
            ("MQPSErrorPos", "31"),
        ],
    ),
    (
        "2.5-option-of-another-command",
        "MQPSCommand RegSub MQPSTopic a MQPSRegOpts DeregAll",
        3083,
        [
            ("MQPSRegOpts", "DeregAll"),
            ("MQPSErrorPos", "31"),
        ],
    ),
    (
        "2.4-sum-with-an-unknown-bit",
        "MQPSCommand RegSub MQPSTopic a MQPSRegOpts 4194305",
        3083,
        [
            ("MQPSRegOpts", "4194305"),
            ("MQPSErrorPos", "31"),
        ],
    ),
    (
        "2.4-negative-sum",
        "MQPSCommand RegSub MQPSTopic a MQPSRegOpts -1",
        3083,
        [
            ("MQPSRegOpts", "-1"),
            ("MQPSErrorPos", "31"),
        ],
    ),
    (
        "2.5-direct-req-not-with-anon",
        "MQPSCommand RegPub MQPSTopic a MQPSRegOpts 10",
        3083,
        [("MQPSRegOpts", "DirectReq")],
    ),
    (
        "6.7.4-add-name-needs-a-name",
        "MQPSCommand RegSub MQPSTopic a MQPSRegOpts AddName",
        3083,
        [("MQPSRegOpts", "AddName")],
    ),
    (
        "2.4-publication-option",
        "MQPSCommand Publish MQPSTopic a MQPSPubOpts Retain",
        3084,
        [
            ("MQPSPubOpts", "Retain"),
            ("MQPSErrorPos", "32"),
        ],
    ),
    (
        "2.4-delete-option",
        "MQPSCommand DeletePub MQPSTopic a MQPSDelOpts 2",
        3087,
        [
            ("MQPSDelOpts", "2"),
            ("MQPSErrorPos", "34"),
        ],
    ),
    (
        "6.7.4-sub-identity-too-long",
        f"MQPSCommand RegSub MQPSTopic a MQPSSubIdentity {'x' * 65}",
        3154,
        [
            ("MQPSSubIdentity", "x" * 65),
        ],
    ),
]


@pytest.mark.rule("OLD-1")
@pytest.mark.parametrize(("text", "reason", "details"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(text: str, reason: int, details: list[tuple[str, str]]) -> None:
    result = OlderScenario().rfh1(text)
    rfh1_refused(result, reason, *details)
    # 2.6: the original string follows as data.
    assert result.response.data.split(b"\0")[0].decode() == text


@pytest.mark.rule("OLD-3")
def test_2_1_the_error_position_counts_bytes_of_the_string() -> None:
    result = OlderScenario().rfh1(
        "MQPSCommand RegSub MQPSTopic Zürich MQPSFoo b", codec="utf-8", coded_char_set_id=1208
    )
    rfh1_refused(result, 2337, ("MQPSParmId", "MQPSFoo"), ("MQPSErrorPos", "37"))


@pytest.mark.rule("OLD-14")
@pytest.mark.parametrize("word", ["DeletePub", "DeregPub", "DeregSub", "Publish", "RegPub", "RegSub", "ReqUpdate"])
def test_names_that_are_not_ibms_disturb_no_command(word: str) -> None:
    assert command(f"OPT_APP_GRP x MQPSCommand {word} MQPSTopic a _my.name-1 y").topics == ("a",)


@pytest.mark.rule("V7-3")
@pytest.mark.parametrize("word", ["RegPub", "DeregPub"])
def test_7_5_publisher_registrations_succeed_and_do_nothing(word: str) -> None:
    result = OlderScenario().rfh1(f"MQPSCommand {word} MQPSTopic a MQPSRegOpts CorrelAsId MQPSStreamName NO.SUCH")
    rfh1_done(result)
    assert not result.outcome.effects


@pytest.mark.parametrize("word", ["RegPub", "DeregPub", "RegSub", "DeregSub", "ReqUpdate"])
def test_6_7_7_control_commands_belong_on_the_control_queue(word: str) -> None:
    result = OlderScenario().rfh1(f"MQPSCommand {word} MQPSTopic a", queue="SYSTEM.BROKER.DEFAULT.STREAM")
    rfh1_refused(result, 3079, ("MQPSCommand", word))


@pytest.mark.parametrize("word", ["Publish", "DeletePub"])
def test_6_7_7_publications_belong_on_a_stream_queue(word: str) -> None:
    result = OlderScenario().rfh1(f"MQPSCommand {word} MQPSTopic a", queue="SYSTEM.BROKER.CONTROL.QUEUE")
    rfh1_refused(result, 3079, ("MQPSCommand", word))


SAMPLES = sorted(FIXTURES.glob("*.bin"))
SAMPLE_COMMANDS = {
    "amqspr1a": ("Publish", "Sport/Soccer", [PubOpt.NO_REG]),
    "amqssr1a": ("RegSub", "Sport/Soccer", []),
    "amqsresa": ("RegSub", "Sport/Soccer/State/LatestScore/*", [RegOpt.CORREL_AS_ID, RegOpt.PUB_ON_REQ_ONLY]),
    "amqsresa-full": ("RegSub", "Sport/Soccer/Event/*", [RegOpt.CORREL_AS_ID]),
    "amqsgama": ("Publish", "Sport/Soccer/Event/MatchStarted", [PubOpt.NO_REG]),
    "slides": ("RegSub", "IBM Stock Price", [RegOpt.ANON]),
    "worked-example": ("Publish", 'IBM "Q" Price', [PubOpt.RETAIN_PUB]),
}


def test_there_are_samples() -> None:
    assert {path.stem for path in SAMPLES} == set(SAMPLE_COMMANDS)


@pytest.mark.rule("OLD-4")
@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_2_7_what_ibms_samples_put(path: Path) -> None:
    word, topic, options = SAMPLE_COMMANDS[path.stem]
    found = parse(decode(path.read_bytes()))
    assert (found.word, found.topics, list(getattr(found, "options", None) or ())) == (word, (topic,), options)


@given(st.text(st.characters(codec="latin-1"), max_size=80))
def test_any_string_is_a_command_or_a_command_error(text: str) -> None:
    try:
        word, reason = command("MQPSCommand RegSub MQPSTopic " + text).word, None
    except CommandError as error:
        word, reason = None, error.reason
    assert word == "RegSub" or reason in {*range(2335, 2340), 3083, 3153, 3154}


@pytest.mark.rule("OLD-2")
@pytest.mark.parametrize(
    ("option_set", "name", "word"),
    [
        (REGISTRATION, "MQPSRegOpts", "RegSub"),
        (PUBLICATION, "MQPSPubOpts", "Publish"),
        (DELETE, "MQPSDelOpts", "DeletePub"),
    ],
)
@given(data=st.data())
def test_2_4_words_and_their_sum_are_the_same(option_set, name, word, data) -> None:  # type: ignore[no-untyped-def]
    words = data.draw(st.lists(st.sampled_from([w for w in option_set.bits if w != "None"]), unique=True, min_size=1))

    def outcome(options: str) -> object:
        try:
            return sorted(set(getattr(command(f"MQPSCommand {word} MQPSTopic a {options}"), "options", ()) or ()))
        except CommandError as error:
            return error.reason

    assert outcome(" ".join(f"{name} {w}" for w in words)) == outcome(f"{name} {option_set.mask(words)}")
