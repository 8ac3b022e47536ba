"""A publication like an earlier one: what ``decode`` fills into a template is what all its rules say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given, strategies as st

from commands.explain.reading import explained
from commands.explain.templates import decoded as shown
from commands.explain.templates.decoded import json_of, view_of
from commands.explain.templates.slots import Template, bare_slot, slot
from commands.explain.view import MessageView, view
from rfh2.captured import CapturedMessage
from rfh2.explain.annotate import TextRole, plain
from rfh2.explain.form import json_line
from rfh2.folders import Folder
from rfh2.message import Message, encode
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

HOWS: Final = (MessageView(plain), MessageView(plain, 8), MessageView(plain, None, brief=True))


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    shown._LINES.clear()
    shown._VIEWS.clear()
    yield
    shown._LINES.clear()
    shown._VIEWS.clear()


def publication(
    topic: str = "Sport/Soccer",
    *others: str,
    psc: str = "<psc><Command>Publish</Command><Topic>{}</Topic></psc>",
    body: bytes = b"2 1",
    md: Mqmd | None = None,
    header: Rfh2 | None = None,
    pad: bytes = b" ",
    queue: str = "SPORT",
    seq: int = 1,
) -> CapturedMessage:
    folders = []
    for text in filter(None, (psc.format(topic), *others)):
        data = text.encode()
        folders.append(Folder(data + pad * (-len(data) % 4)))
    header = (header or Rfh2(format="MQSTR", coded_char_set_id=1208)).with_folders(tuple(folders))
    md = md or Mqmd(format="MQHRF2", put_date="20260105", put_time="08000000", user_identifier="app")
    data = encode(Message(md, (header,), body))
    return CapturedMessage(seq=seq, queue=queue, md_hex=md.encode().hex(), body_hex=data.hex())


def string(text: str, nulls: int = 3, body: bytes = b"2 1", fmt: str = "MQSTR") -> CapturedMessage:
    """A message with an MQRFH, whose string is padded with nulls."""
    data = text.encode()
    header = Rfh1(data + bytes(-len(data) % 4 + (nulls & ~3)), format=fmt, coded_char_set_id=1208)
    md = replace(MD, format="MQHRF")
    whole = encode(Message(md, (header,), body))
    return CapturedMessage(seq=1, queue="SPORT", md_hex=md.encode().hex(), body_hex=whole.hex())


MD: Final = Mqmd(format="MQHRF2", put_date="20260105", put_time="08000000", user_identifier="app")
BIG_MD: Final = replace(MD, version=2, order="big", encoding=273)
BIG: Final = Rfh2(format="MQSTR", order="big", encoding=273, coded_char_set_id=1208)
PSC: Final = "<psc><Command>Publish</Command>{}<Topic>{{}}</Topic></psc>"
NUMBERED: Final = "<psc><Command>Publish</Command><SeqNum>{}</SeqNum><PubTime>{}</PubTime><Topic>{}</Topic></psc>"
USR: Final = "<usr><price dt='i4'>{}</price><region>{}</region></usr>"
JMS: Final = '<jms><Dst>topic://Sport</Dst><Tms>{}</Tms><Cid>{}</Cid><a dt="r8">{}</a></jms>'

LIKE = {
    "topic": (publication("Sport"), publication("Weather/Zürich/100%/a b")),
    "was retained": (
        publication(psc=PSC.format("<PubOpt>IsRetainedPub</PubOpt>"), md=replace(MD, put_appl_type=26)),
        publication("b", psc=PSC.format("<PubOpt>IsRetainedPub</PubOpt>"), md=replace(MD, put_appl_type=26)),
    ),
    "data": (publication(body=b"1"), publication(body="zwei é ⟦3⟧".encode() * 40)),
    "identifiers": (
        publication(),
        publication(md=replace(MD, msg_id=b"AMQ QM1         12345678", correl_id=bytes(range(24)))),
    ),
    "user and time": (
        publication(),
        publication(md=replace(MD, user_identifier="o'Neil x", put_date="20260231", put_time="99999999")),
    ),
    "texts of psc": (
        publication("1", psc=NUMBERED.replace("{}", "1", 2)),
        publication("2", psc=NUMBERED.replace("{}", "4711", 1).replace("{}", "2026010508000000", 1)),
    ),
    "texts of other folders": (
        publication("a", USR.format("1", "EU"), JMS.format("1", "x", "1.5")),
        publication("a", USR.format("no number", "Österreich"), JMS.format("1767600000000", "y" * 300, "1e3")),
    ),
    "a value twice": (publication("a", "<usr><a>1</a><a>2</a></usr>"), publication("a", "<usr><a>x</a><a>y</a></usr>")),
    "lengths and padding": (
        publication("abc", "<mcd><Msd>a</Msd></mcd>"),
        publication("abcde", "<mcd><Msd>abc</Msd></mcd>"),
    ),
    "version 2 and big-endian": (publication(md=BIG_MD, header=BIG), publication("B", md=BIG_MD, header=BIG)),
    "no command": (publication(USR.format("1", "EU"), psc="{}"), publication(USR.format("20", "US"), psc="{}")),
    "an MQRFH": (
        string("MQPSCommand Publish MQPSTopic Sport"),
        string("MQPSCommand Publish MQPSTopic Weather/100%", 8, b"12345"),
    ),
    "numbers in an MQRFH": (
        string("MQPSCommand Publish MQPSSeqNum 1 MQPSPubTime 2026010508000000 MQPSTopic a"),
        string("MQPSCommand Publish MQPSSeqNum 99 MQPSPubTime 1 MQPSTopic b/c"),
    ),
    "where it was captured": (
        publication(seq=1),
        publication(seq=2).model_copy(update={"user": "someone", "time": None}),
    ),
}


@pytest.mark.parametrize(("first", "second"), LIKE.values(), ids=LIKE)
def test_a_publication_like_an_earlier_one_is_not_examined(
    first: CapturedMessage, second: CapturedMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [whole(first)[0], whole(second)[0]]
    views = [whole(first)[1:], whole(second)[1:]]
    assert everything(first) == (lines[0], *views[0])

    def examined(_message: CapturedMessage) -> None:
        pytest.fail("it was examined")

    monkeypatch.setattr(shown, "explained", examined)
    assert everything(first) == (lines[0], *views[0])
    assert everything(second) == (lines[1], *views[1])


DECIDES = {
    "a wildcard in the topic": publication("Sport/+"),
    "a blank level": publication("Sport//Soccer"),
    "a comma in the topic, which puts it into quotes": publication("a, b"),
    "an escape": publication("a&amp;b"),
    "a quotation mark": publication('say "a"'),
    "a character that is not printed": publication("a\u200bb"),
    "a blank at the end of a property": publication("a", USR.format("1", "EU ")),
    "data that is not in its CCSID": publication(body=b"\xff\xfe"),
    "another option": publication(
        psc="<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{}</Topic></psc>"
    ),
    "an unknown option": publication(
        psc="<psc><Command>Publish</Command><PubOpt>Retain</PubOpt><Topic>{}</Topic></psc>"
    ),
    "nulls that pad": publication("abcde", pad=b"\0"),
    "a second topic": publication(psc=PSC.format("<Topic>b</Topic>")),
    "quotes in an MQRFH": string('MQPSCommand Publish MQPSTopic "Sport"'),
    "a wildcard in an MQRFH": string("MQPSCommand Publish MQPSTopic Sport/*"),
    "a name as a value in an MQRFH": string("MQPSCommand Publish MQPSStreamName MQPSTopic MQPSTopic a"),
    "a registration in an MQRFH": string("MQPSCommand RegSub MQPSTopic Sport"),
    "another queue": publication(queue="SYSTEM.BROKER.CONTROL.QUEUE"),
    "a user with a null": publication(md=replace(MD, user_identifier="a\0b")),
    "no time": publication(md=replace(MD, put_date="", put_time="")),
    "another expiry": publication(md=replace(MD, expiry=600)),
    "no data": publication(body=b""),
    "data that begins as a header does": publication(body=b"RFH \0\0\0\2", header=Rfh2(format="MINE")),
    "data without a Format": publication(body=b"\0\1\2", header=Rfh2()),
}


@pytest.mark.parametrize("other", DECIDES.values(), ids=DECIDES)
def test_what_a_template_cannot_show_is_examined(other: CapturedMessage) -> None:
    usual = publication()
    for message in (usual, other, usual, other, other):
        assert everything(message) == whole(message)


@pytest.mark.parametrize("body", [b"", b"data"])
def test_a_header_without_folders_is_shown_each_time(body: bytes) -> None:
    raw = Rfh2((), format="MQSTR").encode() + body
    message = CapturedMessage(seq=1, queue="SPORT", md_hex=MD.encode().hex(), body_hex=raw.hex())
    for _ in range(3):
        assert everything(message) == whole(message)


def everything(message: CapturedMessage) -> tuple[object, ...]:
    line, problems = json_of(message, "a%s.jsonl", 7)
    views = [view_of(message, "a%s.jsonl", how) for how in HOWS]
    assert all(list(problems) == list(found) for _, found in views)
    return line, list(problems), *(lines for lines, _ in views)


def whole(message: CapturedMessage) -> tuple[object, ...]:
    found = explained(message)
    views = [list(view(found.partial, "a%s.jsonl", found.command, found.problems, how)) for how in HOWS]
    return json_line(found.form("a%s.jsonl", 7)), found.problems, *views


TEXTS = st.sampled_from(
    ["a", "Sport/Soccer", "b c", "1", "-7", "1.5", "true", "0aff", "é⟦1⟧", "2033", "20260105", "%s"]
)
ODD = st.sampled_from([" a", "a ", "a/", "#", "a,b", '"', "\\", "&amp;", "'", "", "\u2028", "x" * 5000]) | st.text(
    max_size=3
)
TAGS = st.sampled_from(["a", "Topic", "Tms", "Exp", "Pts", "Reason", "PubOpt", "PubTime", "MQPSRegOpts", "Command"])
KINDS = st.sampled_from(["", "", " dt='i4'", ' dt="r8"', " dt='boolean'", " dt='bin.hex'", " xsi:nil='true'"])
ROOTS = st.sampled_from(["usr", "jms", "mqps", "mqpse", "mcd", "mine", "pscr", "mq:usr"])
PSCS = st.sampled_from(
    [
        "<psc><Command>Publish</Command><Topic>{}</Topic></psc>",
        "<psc><Command>Publish</Command><Topic>{}</Topic><SeqNum>{}</SeqNum></psc>",
        "<psc><Command>Publish</Command><PubOpt>CorrelAsId</PubOpt><Topic>{}</Topic></psc>",
        "<psc><Command>Publish</Command><PubTime>{}</PubTime><mine>{}</mine><Topic>{}</Topic></psc>",
        "<psc><Command>RegSub</Command><Topic>{}</Topic></psc>",
        "<psc> <Command>Publish</Command><Topic>{}</Topic><Topic>{}</Topic></psc>",
        "",
    ]
)
HEADERS = st.builds(
    Rfh2,
    encoding=st.sampled_from([546, 273]),
    coded_char_set_id=st.sampled_from([1208, 819, -2, 0, 1200]),
    format=st.sampled_from(["MQSTR", "", "MINE", "MQHRF2", "MQADMIN"]),
    order=st.sampled_from(["big", "little"]),
)
DESCRIPTORS = st.builds(
    Mqmd,
    format=st.just("MQHRF2"),
    msg_id=st.sampled_from([bytes(24), b"AMQ QM1         12345678", bytes(range(24))]),
    correl_id=st.sampled_from([bytes(24), b"x" * 24]),
    user_identifier=st.sampled_from(["app", "", "a b", 'a"b', "Ü"]),
    put_date=st.sampled_from(["20260105", "00000000", ""]),
    put_time=st.sampled_from(["08000000", "99999999"]),
    put_appl_type=st.sampled_from([0, 26]),
)
DATA = st.sampled_from([b"", b"1", b"two lines\nof text", b"\xff", b"RFH \0\0\0\2", b"\0\0\0\1" * 9, b"y" * 400])


@st.composite
def programs(draw: st.DrawFn) -> list[CapturedMessage]:
    """Messages of one program: the same but for texts, data, identifiers, user and time; some texts are odd."""
    psc, header = draw(PSCS), draw(HEADERS)
    others = draw(st.lists(st.tuples(ROOTS, st.lists(st.tuples(TAGS, KINDS), max_size=3)), max_size=2))
    made = []
    for _ in range(draw(st.integers(2, 5))):
        texts = TEXTS if draw(st.integers(0, 3)) else ODD
        filled = psc.format(*(draw(texts) for _ in range(psc.count("{}"))))
        folders = [
            f"<{root}>{''.join(f'<{tag}{kind}>{draw(texts)}</{tag}>' for tag, kind in leaves)}</{root}>"
            for root, leaves in others
        ]
        escaped = filled.replace("{", "{{").replace("}", "}}")
        made.append(publication("", *folders, psc=escaped, body=draw(DATA), md=draw(DESCRIPTORS), header=header))
    return made


STRINGS = st.lists(
    st.sampled_from(["Command Publish", "Topic {}", "SeqNum {}", "PubTime {}", "UserId {}", "Topic MQPSTopic", "x"]),
    min_size=2,
    max_size=4,
)
VALUES = st.sampled_from(["a", "Sport/Soccer", "1", "2026010508000000", "MQPSTopic", '"b c"', "a,b", "é", "#", ""])


@st.composite
def strings(draw: st.DrawFn) -> list[CapturedMessage]:
    """Messages of one program that writes an MQRFH."""
    text = " ".join(f"MQPS{pair}" for pair in ["Command Publish", "Topic {}", *draw(STRINGS)])
    return [
        string(text.format(*(draw(VALUES) for _ in range(text.count("{}")))), draw(st.integers(0, 8)), draw(DATA))
        for _ in range(3)
    ]


@given(st.lists(programs() | strings(), min_size=1, max_size=3))
def test_any_publication_is_shown_as_if_it_were_the_first(found: list[list[CapturedMessage]]) -> None:
    messages = [message for program in found for message in program]
    for _ in range(2):
        for message in messages:
            assert everything(message) == whole(message)


def test_colours_are_never_from_a_template() -> None:
    painted = MessageView(lambda role, text: f"<{text}>" if role is TextRole.VALUE else text)
    usual = publication()
    view_of(usual, "x", HOWS[0])
    found = explained(usual)
    assert view_of(usual, "x", painted)[0] == list(view(found.partial, "x", found.command, [], painted))


def test_a_template_is_not_made_of_text_that_looks_like_a_slot() -> None:
    template = Template.of(f'{{"a":"{bare_slot(1)}","b%":"{slot(0)}"}}')
    assert template is not None
    assert template.filled(("x", 5)) == '{"a":5,"b%":"x"}'
    assert Template.of(f"{slot(0)}⟧{slot(1)}") is None
