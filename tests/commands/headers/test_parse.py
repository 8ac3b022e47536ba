"""From psc folder to command (guide 6.6.2, 6.7.1 to 6.7.5): what each command takes, and what refuses the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.headers.registry import parse
from commands.model import (
    Command,
    DeletePublication,
    DelOpt,
    DeregisterSubscriber,
    Publish,
    PubOpt,
    RegisterSubscriber,
    RegOpt,
    RequestUpdate,
)
from rfh2.constants import MQRC_FORMAT_ERROR, MQRC_RFH_FORMAT_ERROR
from rfh2.errors import CommandError, DecodeError
from rfh2.message import Message, decode
from rfh2.mqmd import Mqmd
from tests.commands.scenario import rfh2_message

SCORES = "Sport/Soccer/State/LatestScore"
CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures" / "ibm"


def message(*folders: str | bytes, **wire: object) -> Message:
    described, body = rfh2_message(folders, Mqmd(), **wire)  # type: ignore[arg-type]
    return decode(body, described)


GOOD: list[tuple[str, str, Command]] = [
    (
        "6.7.1-example",
        f"<psc><Command>DeletePub</Command><Topic>{SCORES}/Team1 Team2</Topic><DelOpt>Local</DelOpt></psc>",
        DeletePublication(topics=(f"{SCORES}/Team1 Team2",), options=(DelOpt.LOCAL,)),
    ),
    (
        "6.7.2-example",
        f"<psc><Command>DeregSub</Command><RegOpt>CorrelAsId</RegOpt><Topic>{SCORES}/#</Topic></psc>",
        DeregisterSubscriber(topics=(f"{SCORES}/#",), options=(RegOpt.CORREL_AS_ID,)),
    ),
    (
        "6.7.3-example-1",
        "<psc><Command>Publish</Command><Topic>Sport/Soccer/Event/MatchStarted</Topic></psc>",
        Publish(topics=("Sport/Soccer/Event/MatchStarted",)),
    ),
    (
        "6.7.3-example-2",
        f"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{SCORES}/Team1 Team2</Topic></psc>",
        Publish(topics=(f"{SCORES}/Team1 Team2",), options=(PubOpt.RETAIN_PUB,)),
    ),
    (
        "6.7.4-example",
        "<psc><Command>RegSub</Command><RegOpt>PubOnReqOnly</RegOpt><RegOpt>CorrelAsId</RegOpt>"
        f"<Topic>{SCORES}/#</Topic></psc>",
        RegisterSubscriber(topics=(f"{SCORES}/#",), options=(RegOpt.PUB_ON_REQ_ONLY, RegOpt.CORREL_AS_ID)),
    ),
    (
        "6.7.5-example",
        f"<psc><Command>ReqUpdate</Command><RegOpt>CorrelAsId</RegOpt><Topic>{SCORES}/#</Topic></psc>",
        RequestUpdate(topics=(f"{SCORES}/#",), options=(RegOpt.CORREL_AS_ID,)),
    ),
    (
        "6.7.4-everything",
        "<psc><Command>RegSub</Command><Topic>a</Topic><Topic>b/#</Topic><SubPoint>USD</SubPoint><Filter>x = 1</Filter>"
        "<RegOpt>AddName</RegOpt><RegOpt>JoinShared</RegOpt><QMgrName>QM2</QMgrName><QName>Q</QName><SubName>S</SubName>"
        "<SubIdentity>me</SubIdentity><SubUserData>mine</SubUserData></psc>",
        RegisterSubscriber(
            topics=("a", "b/#"),
            sub_point="USD",
            filter="x = 1",
            options=(RegOpt.ADD_NAME, RegOpt.JOIN_SHARED),
            qmgr_name="QM2",
            q_name="Q",
            sub_name="S",
            sub_identity="me",
            sub_user_data="mine",
        ),
    ),
    (
        "6.7.2-everything",
        "<psc><Command>DeregSub</Command><RegOpt>DeregAll</RegOpt><Topic>a</Topic><Topic>b</Topic>"
        "<Filter>x = 1</Filter>"
        "<Filter>y = 2</Filter><SubPoint>USD</SubPoint><SubName>S</SubName><SubIdentity>me</SubIdentity>"
        "<SubUserData>mine</SubUserData><QMgrName>QM2</QMgrName><QName>Q</QName></psc>",
        DeregisterSubscriber(
            topics=("a", "b"),
            filters=("x = 1", "y = 2"),
            options=(RegOpt.DEREG_ALL,),
            sub_point="USD",
            sub_name="S",
            sub_identity="me",
            sub_user_data="mine",
            qmgr_name="QM2",
            q_name="Q",
        ),
    ),
    (
        "6.7.3-everything",
        "<psc><Command>Publish</Command><Topic>a</Topic><Topic>b</Topic><SubPoint>USD</SubPoint>"
        "<PubOpt>OtherSubsOnly</PubOpt><PubOpt>CorrelAsId</PubOpt><PubOpt>Local</PubOpt>"
        "<PubTime>2009012811435418</PubTime><SeqNum>7</SeqNum><QMgrName>QM2</QMgrName><QName>Q</QName></psc>",
        Publish(
            topics=("a", "b"),
            sub_point="USD",
            options=(PubOpt.OTHER_SUBS_ONLY, PubOpt.CORREL_AS_ID, PubOpt.LOCAL),
            pub_time="2009012811435418",
            seq_num="7",
            qmgr_name="QM2",
            q_name="Q",
        ),
    ),
    (
        "6.7.5-everything",
        "<psc><Command>ReqUpdate</Command><Topic>a</Topic><SubPoint>USD</SubPoint><Filter>x = 1</Filter>"
        "<RegOpt>VariableUserId</RegOpt><QMgrName>QM2</QMgrName><QName>Q</QName><SubName>S</SubName></psc>",
        RequestUpdate(
            topics=("a",),
            sub_point="USD",
            filter="x = 1",
            options=(RegOpt.VARIABLE_USER_ID,),
            qmgr_name="QM2",
            q_name="Q",
            sub_name="S",
        ),
    ),
    (
        "6.7-indented",
        "<psc>\n  <Command>Publish</Command>\n  <Topic>a b</Topic>\n</psc>",
        Publish(topics=("a b",)),
    ),
    (
        "6.7.2-DeregAll-without-topic",
        "<psc><Command>DeregSub</Command><RegOpt>DeregAll</RegOpt></psc>",
        DeregisterSubscriber(options=(RegOpt.DEREG_ALL,)),
    ),
    (
        "6.7.4-None-is-not-omission",
        "<psc><Command>RegSub</Command><RegOpt>None</RegOpt><Topic>a</Topic></psc>",
        RegisterSubscriber(topics=("a",), options=(RegOpt.NONE,)),
    ),
    (
        "6.7.3-InformIfRetained-spelt-long",
        "<psc><Command>RegSub</Command><RegOpt>InformIfRetained</RegOpt><Topic>a</Topic></psc>",
        RegisterSubscriber(topics=("a",), options=(RegOpt.INFORM_IF_RET,)),
    ),
    (
        "field-DupsOK",
        "<psc><Command>RegSub</Command><RegOpt>DupsOK</RegOpt><Topic>a</Topic></psc>",
        RegisterSubscriber(topics=("a",), options=(RegOpt.DUPS_OK,)),
    ),
    (
        "options-again-count-at-their-last-place",
        "<psc><Command>RegSub</Command><Topic>a</Topic><RegOpt>Pers</RegOpt><RegOpt>Local</RegOpt>"
        "<RegOpt>NonPers</RegOpt><RegOpt>Local</RegOpt><RegOpt>Pers</RegOpt></psc>",
        RegisterSubscriber(topics=("a",), options=(RegOpt.NON_PERS, RegOpt.LOCAL, RegOpt.PERS)),
    ),
    (
        "field-publish-with-RegOpt-CorrelAsId",
        "<psc><Command>Publish</Command><RegOpt>CorrelAsId</RegOpt><Topic>a</Topic></psc>",
        Publish(topics=("a",), options=(PubOpt.CORREL_AS_ID,)),
    ),
    (
        "field-bare-ampersand",
        "<psc><Command>Publish</Command><Topic>Stock/A & B</Topic></psc>",
        Publish(topics=("Stock/A & B",)),
    ),
    (
        "3.3-entities",
        "<psc><Command>Publish</Command><Topic>&lt;a&gt; &amp; &quot;b&quot; &apos;c&apos; &#65;</Topic></psc>",
        Publish(topics=("<a> & \"b\" 'c' A",)),
    ),
    (
        "empty-elements-ask-for-the-default",
        "<psc><Command>RegSub</Command><Topic>a</Topic><QName></QName><QMgrName/><SubPoint></SubPoint><Filter/></psc>",
        RegisterSubscriber(topics=("a",)),
    ),
]


@pytest.mark.rule("CMD-1", "DEREG-7", "DEREG-24")
@pytest.mark.parametrize(("text", "command"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
def test_a_psc_folder_is_a_command(text: str, command: Command) -> None:
    assert parse(message(text)) == command


def psc(body: str) -> str:
    return f"<psc>{body}</psc>"


REG, DEREG, PUB, DEL, REQ = (
    f"<Command>{word}</Command><Topic>a</Topic>" for word in ("RegSub", "DeregSub", "Publish", "DeletePub", "ReqUpdate")
)
BAD: list[tuple[str, str, int, tuple[tuple[str, str], ...]]] = [
    ("6.7.7-2336-unknown-command", psc("<Command>Nonsense</Command>"), 2336, (("Command", "Nonsense"),)),
    ("6.7.7-2336-RegPub-is-no-psc-command", psc("<Command>RegPub</Command>"), 2336, (("Command", "RegPub"),)),
    ("6.7.7-2336-commands-keep-their-case", psc("<Command>publish</Command>"), 2336, (("Command", "publish"),)),
    ("6.7.7-2337-filter-in-publish", psc(PUB + "<Filter>x = 1</Filter>"), 2337, (("Filter", "x = 1"),)),
    ("6.7.7-2337-subname-in-publish", psc(PUB + "<SubName>S</SubName>"), 2337, (("SubName", "S"),)),
    ("6.7.7-2337-subpoint-in-delete", psc(DEL + "<SubPoint>USD</SubPoint>"), 2337, (("SubPoint", "USD"),)),
    ("6.7.7-2337-identity-in-request", psc(REQ + "<SubIdentity>me</SubIdentity>"), 2337, (("SubIdentity", "me"),)),
    ("6.7.7-2337-PubOpt-in-RegSub", psc(REG + "<PubOpt>Local</PubOpt>"), 2337, (("PubOpt", "Local"),)),
    ("6.7.7-2337-no-psc-property-at-all", psc(REG + "<Colour>red</Colour>"), 2337, ()),
    ("6.7.7-2337-tags-keep-their-case", psc("<Command>Publish</Command><topic>a</topic>"), 2337, ()),
    ("6.7.7-2337-value-with-elements", psc("<Command>Publish</Command><Topic>a<b>c</b></Topic>"), 2337, ()),
    ("6.7.7-2338-command-twice", psc(PUB + "<Command>Publish</Command>"), 2338, (("Command", "Publish"),)),
    ("6.7.7-2338-QName-twice", psc(REG + "<QName>A</QName><QName>B</QName>"), 2338, (("QName", "B"),)),
    (
        "6.7.7-2338-SubPoint-twice",
        psc(DEREG + "<SubPoint>A</SubPoint><SubPoint>B</SubPoint>"),
        2338,
        (("SubPoint", "B"),),
    ),
    ("6.7.5-2338-two-topics-in-ReqUpdate", psc(REQ + "<Topic>b</Topic>"), 2338, (("Topic", "b"),)),
    ("6.7.4-2338-Filter-twice-in-RegSub", psc(REG + "<Filter>a</Filter><Filter>b</Filter>"), 2338, (("Filter", "b"),)),
    ("6.7.7-2339-no-command", psc("<Topic>a</Topic>"), 2339, ()),
    ("6.7.7-2339-empty-folder", "<psc></psc>", 2339, ()),
    *(
        (f"6.7-2339-{word}-needs-a-topic", psc(f"<Command>{word}</Command>"), 2339, ())
        for word in ("RegSub", "DeregSub", "Publish", "DeletePub", "ReqUpdate")
    ),
    ("6.7.7-3083-unknown", psc(REG + "<RegOpt>Nonsense</RegOpt>"), 3083, (("RegOpt", "Nonsense"),)),
    ("6.7.7-3083-DeregAll-in-RegSub", psc(REG + "<RegOpt>DeregAll</RegOpt>"), 3083, (("RegOpt", "DeregAll"),)),
    ("6.7.7-3083-JoinExcl-in-DeregSub", psc(DEREG + "<RegOpt>JoinExcl</RegOpt>"), 3083, (("RegOpt", "JoinExcl"),)),
    ("6.7.7-3083-Local-in-ReqUpdate", psc(REQ + "<RegOpt>Local</RegOpt>"), 3083, (("RegOpt", "Local"),)),
    ("6.7.7-3083-Anon-is-for-MQRFH", psc(REG + "<RegOpt>Anon</RegOpt>"), 3083, (("RegOpt", "Anon"),)),
    ("6.7.7-3083-unknown-bit", psc(REG + "<RegOpt>4194305</RegOpt>"), 3083, (("RegOpt", "4194305"),)),
    ("6.7.7-3083-sum-with-DeregAll", psc(REG + "<RegOpt>65</RegOpt>"), 3083, (("RegOpt", "65"),)),
    ("6.7.7-3083-sum-of-JoinExcl", psc(DEREG + "<RegOpt>262144</RegOpt>"), 3083, (("RegOpt", "262144"),)),
    ("6.7.7-3083-negative", psc(REG + "<RegOpt>-1</RegOpt>"), 3083, (("RegOpt", "-1"),)),
    ("6.7.7-3083-two-sums-in-one", psc(REG + "<RegOpt>1 4</RegOpt>"), 3083, (("RegOpt", "1 4"),)),
    ("6.7.7-3083-endless", psc(REG + f"<RegOpt>{'1' * 99}</RegOpt>"), 3083, (("RegOpt", "1" * 99),)),
    ("6.7.7-3083-other-digits", psc(REG + "<RegOpt>\u0661</RegOpt>"), 3083, (("RegOpt", "\u0661"),)),
    ("6.7.7-3084-unknown-bit", psc(PUB + "<PubOpt>64</PubOpt>"), 3084, (("PubOpt", "64"),)),
    ("6.7.7-3087-unknown-bit", psc(DEL + "<DelOpt>1</DelOpt>"), 3087, (("DelOpt", "1"),)),
    ("6.7.4-3083-AddName-without-SubName", psc(REG + "<RegOpt>AddName</RegOpt>"), 3083, (("RegOpt", "AddName"),)),
    (
        "6.7.2-3083-LeaveOnly-without-SubIdentity",
        psc(DEREG + "<RegOpt>LeaveOnly</RegOpt>"),
        3083,
        (("RegOpt", "LeaveOnly"),),
    ),
    (
        "6.7.4-3083-JoinShared-without-SubIdentity",
        psc(REG + "<RegOpt>JoinShared</RegOpt>"),
        3083,
        (("RegOpt", "JoinShared"),),
    ),
    (
        "6.7.4-3083-both-joins",
        psc(REG + "<RegOpt>JoinShared</RegOpt><RegOpt>JoinExcl</RegOpt><SubIdentity>me</SubIdentity>"),
        3083,
        (("RegOpt", "JoinExcl"),),
    ),
    (
        "6.7.2-3083-FullResp-with-DeregAll",
        psc(DEREG + "<RegOpt>FullResp</RegOpt><RegOpt>DeregAll</RegOpt>"),
        3083,
        (("RegOpt", "FullResp"),),
    ),
    (
        "6.7.2-3083-FullResp-with-DeregAll-and-no-topic",
        psc("<Command>DeregSub</Command><RegOpt>FullResp</RegOpt><RegOpt>DeregAll</RegOpt>"),
        3083,
        (("RegOpt", "FullResp"),),
    ),
    (
        "6.7.2-3083-FullResp-with-two-topics",
        psc(DEREG + "<Topic>b</Topic><RegOpt>FullResp</RegOpt>"),
        3083,
        (("RegOpt", "FullResp"),),
    ),
    (
        "6.7.4-3083-FullResp-with-two-topics",
        psc(REG + "<Topic>b</Topic><RegOpt>FullResp</RegOpt>"),
        3083,
        (("RegOpt", "FullResp"),),
    ),
    ("6.7.7-3084-unknown", psc(PUB + "<PubOpt>Nonsense</PubOpt>"), 3084, (("PubOpt", "Nonsense"),)),
    (
        "6.7.3-3084-IsRetainedPub-is-the-queue-managers",
        psc(PUB + "<PubOpt>IsRetainedPub</PubOpt>"),
        3084,
        (("PubOpt", "IsRetainedPub"),),
    ),
    ("6.7.7-3084-NoReg-is-for-MQRFH", psc(PUB + "<PubOpt>NoReg</PubOpt>"), 3084, (("PubOpt", "NoReg"),)),
    ("6.7.7-3087-unknown", psc(DEL + "<DelOpt>Global</DelOpt>"), 3087, (("DelOpt", "Global"),)),
    ("6.7.7-3153-empty-SubName", psc(REG + "<SubName></SubName>"), 3153, (("SubName", ""),)),
    ("6.7.7-3153-long-SubName", psc(REG + f"<SubName>{'n' * 10241}</SubName>"), 3153, (("SubName", "n" * 10241),)),
    (
        "6.7.4-3154-65-characters",
        psc(REG + f"<SubIdentity>{'i' * 65}</SubIdentity>"),
        3154,
        (("SubIdentity", "i" * 65),),
    ),
    ("6.6.2-2336-no-psc-folder", "<usr><a>1</a></usr>", 2336, ()),
]


@pytest.mark.rule(
    "CMD-1",
    "CMD-2",
    "DEL-5",
    "DEREG-7",
    "DEREG-8",
    "DEREG-15",
    "DEREG-16",
    "PUB-4",
    "PUB-7",
    "REG-4",
    "REG-7",
    "REG-26",
    "REQ-5",
)
@pytest.mark.parametrize(("text", "reason", "tags"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_broken_rule_has_its_reason_and_its_culprit(
    text: str, reason: int, tags: tuple[tuple[str, str], ...]
) -> None:
    with pytest.raises(CommandError) as caught:
        parse(message(text))
    assert (caught.value.reason, caught.value.tags) == (reason, tags)


WITHIN_LIMITS = [
    ("6.7.4-SubIdentity-64", REG + f"<RegOpt>JoinExcl</RegOpt><SubIdentity>{'i' * 64}</SubIdentity>"),
    ("6.7.4-SubName-10240", REG + f"<SubName>{'n' * 10240}</SubName>"),
]


@pytest.mark.rule("REG-26")
@pytest.mark.parametrize("body", [row[1] for row in WITHIN_LIMITS], ids=[row[0] for row in WITHIN_LIMITS])
def test_limits_are_inclusive(body: str) -> None:
    assert isinstance(parse(message(psc(body))), RegisterSubscriber)


UNREADABLE = [
    ("6.6-psc-unclosed", "<psc><Command>Publish", 36 + 4 + 21, "bad-folder", MQRC_RFH_FORMAT_ERROR),
    ("6.6-wrong-end-tag", "<psc><Command>Publish</Topic></psc>", 36 + 4 + 21, "bad-folder", MQRC_RFH_FORMAT_ERROR),
    (
        "6.6-foreign-entity",
        "<psc><Command>Publish</Command><Topic>&nbsp;</Topic></psc>",
        36 + 4 + 38,
        "bad-folder",
        MQRC_RFH_FORMAT_ERROR,
    ),
]


@pytest.mark.parametrize(
    ("text", "offset", "code", "reason"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE]
)
def test_broken_text_is_a_decode_error_at_its_place(text: str, offset: int, code: str, reason: int) -> None:
    with pytest.raises(DecodeError) as caught:
        parse(message(text))
    assert (caught.value.offset, caught.value.code, caught.value.reason) == (offset, code, reason)


@pytest.mark.rule("HDR-4")
def test_a_message_without_mqrfh2_holds_no_command() -> None:
    with pytest.raises(DecodeError) as caught:
        parse(decode(b"hello", Mqmd(format="MQSTR")))
    assert (caught.value.code, caught.value.reason) == ("no-command-header", MQRC_FORMAT_ERROR)


PUBLISH_A = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"
PUBLISH_B = "<psc><Command>Publish</Command><Topic>b</Topic></psc>"
PLACES: list[tuple[str, tuple[str | bytes, ...]]] = [
    ("alone", (PUBLISH_A,)),
    ("field-mcd-before-psc", ("<mcd><Msd>jms_text</Msd></mcd>", PUBLISH_A)),
    ("field-jms-after-psc", (PUBLISH_A, "<jms><Dst>topic://a</Dst></jms>")),
    ("field-padded-with-nulls", (PUBLISH_A.encode() + bytes(11),)),
    ("field-padded-with-nulls-and-blanks", (PUBLISH_A.encode() + b"\0  \0 ",)),
    ("field-several-roots-psc-first", (PUBLISH_A + "<mcd><Msd>none</Msd></mcd>",)),
    ("field-several-roots-psc-last", ("<mcd><Msd>none</Msd></mcd>" + PUBLISH_A,)),
    ("field-undeclared-prefix-beside-it", ("<usr><x xsi:nil='true'/></usr>", PUBLISH_A)),
    ("6.6.2-pscr-is-ignored", ("<pscr><Completion>ok</Completion></pscr>", PUBLISH_A)),
    ("6.6.2-broken-folder-of-somebody-else", ("<usr><x></usr>", PUBLISH_A)),
    ("text-that-mentions-psc-beside-it", ("so: <psc> is a folder", PUBLISH_A)),
    ("a-psc-within-another-folder-is-not-one", ("<usr><psc>x</psc></usr>", PUBLISH_A)),
]


@pytest.mark.rule("HDR-9", "HDR-11")
@pytest.mark.parametrize("folders", [row[1] for row in PLACES], ids=[row[0] for row in PLACES])
def test_psc_is_found_wherever_it_stands(folders: tuple[str | bytes, ...]) -> None:
    assert parse(message(*folders)) == Publish(topics=("a",))


@pytest.mark.rule("HDR-10")
@pytest.mark.parametrize(
    "folders", [(PUBLISH_A, PUBLISH_B), (PUBLISH_A + PUBLISH_B,)], ids=["two-folders", "two-roots"]
)
def test_6_6_2_only_one_psc_folder_is_allowed(folders: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as caught:
        parse(message(*folders))
    assert caught.value.reason == 2338


@pytest.mark.rule("HDR-2")
def test_6_6_the_first_of_two_headers_is_the_command() -> None:
    inner = decode(rfh2_message((PUBLISH_B,), Mqmd(), b"data")[1]).headers[0]
    assert parse(message(PUBLISH_A, more=(inner,))) == Publish(topics=("a",))


REAL = [
    ("single_rfh2.dat", "RegSub"),
    ("multiple_rfh2.dat", "RegSub"),
]


@pytest.mark.parametrize(("name", "word"), REAL, ids=[row[0] for row in REAL])
def test_messages_of_programs_that_this_project_did_not_write(name: str, word: str) -> None:
    command = parse(decode((CAPTURES / name).read_bytes()))
    assert command.word == word
    assert command.topics
