"""Which value of a message a name in a selection string stands for: guide 2.4.3, wire formats 3.2 and 3.3."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, strategies as st

from rfh2.folders import Folder
from rfh2.message import Message
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2
from streams.selectors import Value, compile_selector, message_properties
from streams.selectors.properties import MQMD_FIELDS, canonical_name

MSG_ID = bytes.fromhex("414d5120514d31" + "00" * 17)
MQMD = Mqmd(
    version=2,
    msg_type=8,
    priority=5,
    persistence=1,
    msg_id=MSG_ID,
    correl_id=bytes(23) + b"\1",
    format="MQHRF2",
    reply_to_q="REPLY\0leftover",
    user_identifier="ann",
    put_appl_name="prog",
    put_date="20110126",
    put_time="10570812",
)

FOLDERS = (
    "<psc><Command>Publish</Command><Topic>Stock/IBM</Topic><Topic>Stock/HP</Topic></psc>",
    "<mcd><Msd>jms_text</Msd></mcd>",
    "<jms><Dst>topic://Stock</Dst><Dlv>2</Dlv><Tms>1361285341562</Tms><Cid>order 7</Cid><Seq>3</Seq></jms>",
    "<usr><Colour>red</Colour><Digits>42</Digits><Size dt='i4'>42</Size><Weight dt=\"r8\">2.5</Weight>"
    "<Urgent dt='boolean'>1</Urgent><Key dt='bin.hex'>0AFC</Key><Nothing xsi:nil='true'/><Empty></Empty>"
    "<Text>a &amp; b</Text><Blank> x </Blank><a.b>dotted</a.b></usr>",
    "<mqps><Top>Stock/IBM</Top><Ret>1</Ret><Pub dt='i4'>1</Pub><Pbl>9</Pbl></mqps>",
    "<account><owner><name>Ann</name></owner><tag>one</tag><tag>two</tag></account>",
    "<mq_usr><depot><bay dt='i4'>7</bay></depot></mq_usr>",
)

PROPERTIES: list[tuple[str, str, Value | None]] = [
    ("mqmd-number", "Root.MQMD.Priority", 5),
    ("mqmd-text", "Root.MQMD.Format", "MQHRF2"),
    ("mqmd-text-ends-at-null", "Root.MQMD.ReplyToQ", "REPLY"),
    ("mqmd-blank", "Root.MQMD.ReplyToQMgr", ""),
    ("mqmd-bytes", "Root.MQMD.MsgId", MSG_ID),
    ("mqmd-version-2", "Root.MQMD.MsgSeqNumber", 1),
    ("mqrfh2-format", "Root.MQRFH2.Format", "MQSTR"),
    ("mqrfh2-number", "Root.MQRFH2.NameValueCCSID", 1208),
    ("untyped-is-string", "Digits", "42"),
    ("i4", "Size", 42),
    ("r8", "usr.Weight", 2.5),
    ("boolean", "Urgent", True),
    ("bin-hex", "Key", b"\x0a\xfc"),
    ("nil", "Nothing", None),
    ("empty-is-the-empty-string", "Empty", ""),
    ("entity", "Text", "a & b"),
    ("blanks-are-data", "Blank", " x "),
    ("esql", "Root.MQRFH2.usr.Colour", "red"),
    ("missing", "Shape", None),
    ("missing-folder", "mqext.Arm", None),
    ("name-is-case-sensitive", "colour", None),
    ("group", "account.owner.name", "Ann"),
    ("group-itself", "account.owner", None),
    ("below-a-leaf", "usr.Colour.x", None),
    ("repeated-first", "account.tag", "one"),
    ("psc-repeated-first", "Root.MQRFH2.psc.Topic", "Stock/IBM"),
    ("mq-usr-group", "depot.bay", 7),
    ("dotted-tag", "a.b", "dotted"),
    ("mqps", "MQTopicString", "Stock/IBM"),
    ("mqps-implied-boolean", "MQIsRetained", True),
    ("mqps-implied-number", "MQPubLevel", 9),
    ("jms-implied-number", "JMSXGroupSeq", 3),
    ("jms-priority", "JMSPriority", 5),
    ("jms-message-id", "JMSMessageID", "ID:414d5120514d31" + "00" * 17),
    ("jms-correlation-id", "JMSCorrelationID", "order 7"),
    ("jms-delivery-mode", "JMSDeliveryMode", "PERSISTENT"),
    ("jms-timestamp", "JMSTimestamp", 1361285341562),
    ("jms-type", "JMSType", None),
    ("jms-user", "JMSXUserID", "ann"),
    ("jms-application", "JMSXAppID", "prog"),
]


def message(*texts: str, mqmd: Mqmd = MQMD, charset: str = "utf-8") -> Message:
    return Message(mqmd, (Rfh2(tuple(Folder.of(text, charset) for text in texts), format="MQSTR   "),))


@pytest.mark.parametrize(("name", "value"), [pytest.param(n, v, id=f"2.4.3-{i}") for i, n, v in PROPERTIES])
def test_a_property(name: str, value: Value | None) -> None:
    found = message_properties(message(*FOLDERS))(canonical_name(name, 1))
    assert found == value
    assert type(found) is type(value)


def test_every_mqmd_field_has_its_kind_of_value() -> None:
    lookup = message_properties(Message(Mqmd()))
    types = {field: type(lookup(f"Root.MQMD.{field}")) for field in MQMD_FIELDS}
    expected = {"number": int, "string": str, "byte string": bytes}
    assert types == {field: expected[kind] for field, kind in MQMD_FIELDS.items()}
    ours = {"version", "order", "charset"}
    assert len(types) == len([field for field in fields(Mqmd) if field.name not in ours])


# (id, folders, name, value)
UNUSUAL: list[tuple[str, tuple[str, ...], str, Value | None]] = [
    ("dollar", ("<usr><$price dt='i4'>5</$price><Colour>red</Colour></usr>",), "usr.$price", 5),
    ("dollar-in-another", ("<usr><my$price>5</my$price><Colour>red</Colour></usr>",), "usr.Colour", "red"),
    ("dollar-where-there-are-groups", ("<usr><g><$a>1</$a></g></usr>",), "usr.g.$a", "1"),
    ("several-roots", ("<jms><Dst>q</Dst></jms><usr><Colour>red</Colour></usr>",), "usr.Colour", "red"),
    ("several-roots-first", ("<usr><Colour>red</Colour></usr><jms><Dst>q</Dst></jms>",), "usr.Colour", "red"),
    ("same-root-twice", ("<usr><a>1</a></usr><usr><b>2</b></usr>",), "usr.b", "2"),
    ("same-folder-twice", ("<usr><a>1</a></usr>", "<usr><a>2</a><b>2</b></usr>"), "usr.a", "1"),
    ("same-folder-twice-second", ("<usr><a>1</a></usr>", "<usr><a>2</a><b>3</b></usr>"), "usr.b", "3"),
    ("child-is-no-folder", ("<psc><usr><Colour>red</Colour></usr></psc>",), "usr.Colour", None),
    ("name-begins-alike", ("<usr2><Colour>red</Colour></usr2>",), "usr.Colour", None),
    ("blanks-in-tags", ("<usr ><Colour >red</Colour ></usr >",), "usr.Colour", "red"),
    ("attributes", ('<ship content="properties"><Mast dt="i4">3</Mast></ship>',), "ship.Mast", 3),
    ("empty-element", ("<usr/>",), "usr.Colour", None),
    ("bare-ampersand", ("<usr><Colour>red & blue</Colour></usr>",), "usr.Colour", "red & blue"),
    ("damaged", ("<usr><Colour>red</usr>",), "usr.Colour", None),
    ("damaged-others-are-read", ("<usr><Colour>red</usr>", "<jms><Dst>q</Dst></jms>"), "jms.Dst", "q"),
    ("no-element", ("Colour=red",), "usr.Colour", None),
    ("nothing", (), "usr.Colour", None),
    ("implied-type-not-met", ("<jms><Tms>soon</Tms></jms>",), "jms.Tms", None),
    ("implied-boolean-not-met", ("<mqps><Ret>maybe</Ret></mqps>",), "mqps.Ret", None),
    ("leaf-and-group", ("<a><b>1</b><b><c>2</c></b></a>",), "a.b", "1"),
    ("mq-usr-is-no-usr", ("<mq_usr><usr><Colour>red</Colour></usr></mq_usr>",), "usr.Colour", None),
]


@pytest.mark.parametrize(("folders", "name", "value"), [pytest.param(f, n, v, id=f"3.2-{i}") for i, f, n, v in UNUSUAL])
def test_an_unusual_folder(folders: tuple[str, ...], name: str, value: Value | None) -> None:
    assert message_properties(message(*folders))(name) == value


@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le", "utf-16-be"])
def test_folders_in_any_name_value_ccsid(charset: str) -> None:
    lookup = message_properties(message("<usr><Colour>größer</Colour></usr>", charset=charset))
    assert lookup("usr.Colour") == "größer"


def test_properties_come_from_the_first_mqrfh2() -> None:
    first, second = (Rfh2((Folder.of(f"<usr><{tag}>x</{tag}></usr>"),)) for tag in ("a", "b"))
    lookup = message_properties(Message(MQMD, (first, second)))
    assert (lookup("usr.a"), lookup("usr.b")) == ("x", None)


# (id, MQMD, folders, name, value)
JMS: list[tuple[str, Mqmd, tuple[str, ...], str, Value | None]] = [
    ("message-id-none", Mqmd(), (), "JMSMessageID", None),
    ("correlation-id-from-mqmd", MQMD, (), "JMSCorrelationID", "ID:" + "00" * 23 + "01"),
    ("correlation-id-none", Mqmd(), (), "JMSCorrelationID", None),
    ("delivery-mode-from-mqmd", MQMD, (), "JMSDeliveryMode", "PERSISTENT"),
    ("delivery-mode-not-persistent", Mqmd(persistence=0), (), "JMSDeliveryMode", "NON_PERSISTENT"),
    ("delivery-mode-as-queue", Mqmd(persistence=2), (), "JMSDeliveryMode", None),
    ("delivery-mode-folder-wins", MQMD, ("<jms><Dlv>1</Dlv></jms>",), "JMSDeliveryMode", "NON_PERSISTENT"),
    ("timestamp-from-mqmd", MQMD, (), "JMSTimestamp", 1296039428120),
    ("timestamp-none", Mqmd(), (), "JMSTimestamp", None),
    ("timestamp-no-date", Mqmd(put_date="yesterda", put_time="10570812"), (), "JMSTimestamp", None),
    ("timestamp-bad-hundredths", Mqmd(put_date="20110126", put_time="105708xx"), (), "JMSTimestamp", None),
    ("type", MQMD, ("<mcd><Msd>jms_text</Msd><Type>order</Type></mcd>",), "JMSType", "order"),
    (
        "type-uri",
        MQMD,
        ("<mcd><Msd>mrm</Msd><Set>S</Set><Type>order</Type><Fmt>CWF</Fmt></mcd>",),
        "JMSType",
        "mcd://mrm/S/order?format=CWF",
    ),
]


@pytest.mark.parametrize(
    ("mqmd", "folders", "name", "value"), [pytest.param(m, f, n, v, id=f"2.4.3-{i}") for i, m, f, n, v in JMS]
)
def test_a_jms_header_field(mqmd: Mqmd, folders: tuple[str, ...], name: str, value: Value | None) -> None:
    assert message_properties(message(*folders, mqmd=mqmd))(name) == value


def test_a_selector_over_a_message() -> None:
    selector = compile_selector(
        "Colour = 'red' AND Size > 40 AND JMSPriority = 5 AND Root.MQRFH2.jms.Dst LIKE 'topic:%'"
    )
    assert selector.matches(message_properties(message(*FOLDERS)))
    assert not selector.matches(message_properties(Message(MQMD)))


def test_a_folder_is_read_once_and_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    values = Folder.values

    def counted(folder: Folder) -> object:
        read.append(folder.name)
        return values(folder)

    monkeypatch.setattr(Folder, "values", counted)
    lookup = message_properties(message(*FOLDERS))
    assert lookup("Root.MQMD.Priority") == 5
    assert read == []
    assert [lookup("usr.Colour"), lookup("usr.Size"), lookup("usr.Missing")] == ["red", 42, None]
    assert read == ["usr"]


TEXT = st.one_of(
    st.text(max_size=20),
    st.lists(st.sampled_from(["<usr>", "</usr>", "<a>", "</a>", "<usr/>", "1", "&", "<", " dt='i4'", "\0", "é"])).map(
        "".join
    ),
)


@given(
    st.lists(TEXT, max_size=3), st.sampled_from(["usr.a", "a.usr", "jms.Tms", "mqps.Ret", "JMSType", "JMSTimestamp"])
)
def test_looking_up_raises_nothing(texts: list[str], name: str) -> None:
    folders = tuple(Folder(text.encode("utf-8", "replace")) for text in texts)
    found = message_properties(Message(MQMD, (Rfh2(folders),)))(name)
    assert found is None or isinstance(found, str | int | float | bool | bytes)


@given(st.binary(max_size=40))
def test_looking_up_in_any_bytes_raises_nothing(data: bytes) -> None:
    for charset in ("utf-8", "utf-16-le"):
        found = message_properties(Message(MQMD, (Rfh2((Folder(b"<usr>" + data + b"</usr>", charset),)),)))("usr.a")
        assert found is None or isinstance(found, str)
