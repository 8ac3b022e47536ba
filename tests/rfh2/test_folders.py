"""NameValueData (guide 6.6.2; wire formats 3.2, 3.3): what folders hold, and what is refused where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from rfh2.errors import DecodeError, EncodeError
from rfh2.folders import MAX_DEPTH, Element, Folder, _leaves, _typed_leaves, _value, parse, tag_of, write, write_nested

CHARSETS = ["utf-8", "utf-16-le", "utf-16-be"]

VALUES: list[Any] = [
    pytest.param(
        "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>",
        {"Command": "Publish", "Topic": "a/b"},
        id="6.6.2-psc",
    ),
    pytest.param(
        "<psc>\n  <Command>DeletePub</Command>\n  <Topic>Team1 Team2</Topic>\n</psc>\n",
        {"Command": "DeletePub", "Topic": "Team1 Team2"},
        id="6.7.1-indented",
    ),
    pytest.param(
        "<psc><Topic>a</Topic><Topic>b</Topic><Topic>c</Topic></psc>", {"Topic": ["a", "b", "c"]}, id="repeat"
    ),
    pytest.param("<psc></psc>", {}, id="no-elements"),
    pytest.param("<psc/>", {}, id="self-closing"),
    pytest.param("<usr><a/><b></b></usr>", {"a": "", "b": ""}, id="3.3-empty-is-the-empty-string"),
    pytest.param("<usr><a>  x </a></usr>", {"a": "  x "}, id="3.3-blanks-of-a-leaf-are-data"),
    pytest.param(
        "<mq_usr><g>\n <a>1</a> <h><b>2</b></h></g></mq_usr>", {"g": {"a": "1", "h": {"b": "2"}}}, id="3.3-group"
    ),
    pytest.param("<ibm><Rfp>1</Rfp><Rfp>2</Rfp></ibm>", {"Rfp": ["1", "2"]}, id="3.2-fingerprints"),
    pytest.param("<usr><a dt='i4'>-7</a></usr>", {"a": -7}, id="3.3-i4"),
    pytest.param('<usr><a dt="i8">9223372036854775807</a></usr>', {"a": 2**63 - 1}, id="3.3-i8-double-quotes"),
    pytest.param("<usr><a dt='int'> 5 </a></usr>", {"a": 5}, id="3.3-int-in-blanks"),
    pytest.param("<usr><a dt='r8'>1.5E2</a><b dt='r4'>-.5</b></usr>", {"a": 150.0, "b": -0.5}, id="3.3-floats"),
    pytest.param(
        "<usr><a dt='boolean'>1</a><b dt='boolean'>FALSE</b></usr>", {"a": True, "b": False}, id="3.3-boolean"
    ),
    pytest.param(
        "<usr><a dt='bin.hex'>00fF</a><b dt='bin.hex'></b></usr>", {"a": b"\0\xff", "b": b""}, id="3.3-bin.hex"
    ),
    pytest.param(
        "<usr><a dt='string'>1</a><b dt='other'>2</b></usr>", {"a": "1", "b": "2"}, id="3.3-string-and-unknown"
    ),
    pytest.param("<usr><a xsi:nil='true'></a><b>x</b></usr>", {"a": None, "b": "x"}, id="3.3-nil-undeclared"),
    pytest.param("<usr><a dt='i4' xsi:nil='true'/></usr>", {"a": None}, id="3.3-nil-of-a-type"),
    pytest.param("<usr><a xsi:nil='false'>x</a></usr>", {"a": "x"}, id="3.3-not-nil"),
    pytest.param(
        "<usr xmlns:xsi='urn:x'><a xsi:nil='true'/><b>R&D</b></usr>", {"a": None, "b": "R&D"}, id="nil-declared"
    ),
    pytest.param("<usr content='properties'><a context='none'>x</a></usr>", {"a": "x"}, id="3.3-descriptor-attributes"),
    pytest.param("<u><p:a>x</p:a><p:a>y</p:a></u>", {"p:a": ["x", "y"]}, id="undeclared-prefix-of-a-tag-stays"),
    pytest.param("<u xmlns:p='urn:p'><p:a>x</p:a></u>", {"p:a": "x"}, id="declared-prefix-of-a-tag-stays"),
    pytest.param("<u xmlns='urn:p'><a>x</a></u>", {"a": "x"}, id="default-namespace-leaves-no-trace"),
    pytest.param("<psc><Topic>Stock/A & B</Topic></psc>", {"Topic": "Stock/A & B"}, id="field-notes-bare-ampersand"),
    pytest.param(
        "<psc><Topic>A &amp; B & C&D</Topic></psc>", {"Topic": "A & B & C&D"}, id="bare-and-escaped-ampersand"
    ),
    pytest.param("<a><b>&amp;&lt;&gt;&quot;&apos;&#65;&#x42;</b></a>", {"b": "&<>\"'AB"}, id="3.3-five-entities"),
    pytest.param("<a><b>x > y</b></a>", {"b": "x > y"}, id="bare-greater-than"),
    pytest.param("<a>1</a><b dt='i4'>2</b>", {"a": "1", "b": 2}, id="two-roots"),
    pytest.param("<a><x>1</x></a> <b><x>2</x></b>", {"a": {"x": "1"}, "b": {"x": "2"}}, id="two-roots-with-children"),
    pytest.param("<é><ü>ß€</ü></é>", {"ü": "ß€"}, id="names-beyond-ascii"),
    pytest.param("<usr><$a>$1</$a><b$>2</b$></usr>", {"$a": "$1", "b$": "2"}, id="names-of-java-that-are-none-of-xml"),
    pytest.param(
        "<usr><$a dt='i4'>1</$a><g><$b xsi:nil='true'/></g><µ$£>5 £</µ$£></usr>",
        {"$a": 1, "g": {"$b": None}, "µ$£": "5 £"},
        id="such-names-that-lxml-has-to-read",
    ),
    pytest.param(
        f"<usr><a{chr(0xD0024)}>1</a{chr(0xD0024)}><b> $</b></usr>",
        {f"a{chr(0xD0024)}": "1", "b": " $"},
        id="a-name-like-what-stands-in-for-such-a-one",
    ),
]

NOT_OF_THEIR_TYPE = [
    ("i4", "x"),
    ("i4", ""),
    ("i4", "2147483648"),
    ("i1", "128"),
    ("i2", "-32769"),
    ("i8", "9" * 30),
    ("i4", "1_000"),
    ("i4", "٣"),
    ("i4", "1.0"),
    ("r8", "nan"),
    ("r8", "1e999"),
    ("r8", "1_0.0"),
    ("boolean", "yes"),
    ("bin.hex", "abc"),
    ("bin.hex", "zz"),
]


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize(("text", "values"), VALUES)
def test_values(text: str, values: dict[str, Any], charset: str) -> None:
    folder = Folder.of(text, charset)
    assert folder.values() == values
    assert [type(value) for value in folder.values().values()] == [type(value) for value in values.values()]


@pytest.mark.parametrize(("kind", "text"), NOT_OF_THEIR_TYPE, ids=[f"{k}-{t[:12]}" for k, t in NOT_OF_THEIR_TYPE])
def test_text_that_is_not_of_its_type_stays_text(kind: str, text: str) -> None:
    assert Folder.of(f"<usr><a dt='{kind}'>{text}</a></usr>").values() == {"a": text}


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (
            "<psc><Command>RegSub</Command><Topic>a</Topic><Topic/></psc>",
            [("Command", "RegSub"), ("Topic", "a"), ("Topic", "")],
        ),
        ("<psc> <x:Topic>a&b</x:Topic> </psc>", [("x:Topic", "a&b")]),
        ("<pscr><Response><Reason>3073</Reason></Response></pscr>", [("Response", "")]),
        ("<psc/>", []),
        ("<psc><Topic>a</Topic></psc><more><Topic>b</Topic></more>", [("Topic", "a")]),
    ],
    ids=["order-and-repeats", "undeclared-prefix", "group", "empty", "first-root-only"],
)
def test_pairs_are_the_leaves_of_the_first_element_in_order(text: str, pairs: list[tuple[str, str]]) -> None:
    assert Folder.of(text).pairs() == pairs


PADDING = [
    pytest.param("   ", id="3.2-blanks"),
    pytest.param("\0", id="3.2-one-null"),
    pytest.param("\0" * 16, id="field-notes-sixteen-nulls"),
    pytest.param(" \0 ", id="blanks-and-nulls"),
    pytest.param("", id="none"),
    pytest.param("\n", id="newline"),
]


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize("padding", PADDING)
def test_padding_is_kept_in_the_bytes_and_left_out_of_the_text(padding: str, charset: str) -> None:
    text = "<psc><Command>Publish</Command></psc>"
    folder = Folder((text + padding).encode(charset), charset)
    assert folder.text.rstrip("\n") == text
    assert folder.pairs() == [("Command", "Publish")]
    assert folder.name == "psc"


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize("length", range(8))
def test_a_written_folder_is_padded_with_blanks_to_four_bytes(length: int, charset: str) -> None:
    text = f"<a>{'x' * length}</a>"
    folder = Folder.of(text, charset)
    assert len(folder.data) % 4 == 0
    assert len(folder.data) - len(text.encode(charset)) < 4
    assert folder.data.decode(charset).rstrip(" ") == text


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"<psc><Topic/></psc>", "psc"),
        (b"  <psc a='1'/>", "psc"),
        (b"<com.ourcompany.xxx/>", "com.ourcompany.xxx"),
        (b"<psc", "psc"),
        (b"", ""),
        (b"    ", ""),
        (b"text<a/>", ""),
        (b"</a>", ""),
        (b"\xff<a/>", ""),
    ],
)
def test_the_name_is_that_of_the_first_element_and_never_an_error(data: bytes, name: str) -> None:
    assert Folder(data).name == name


BAD = [
    pytest.param("<psc><Command>Publish</psc>", 21, "expected </Command>", id="unclosed"),
    pytest.param("<psc><Command>Publish</Command>", 31, "expected </psc>", id="unclosed-root"),
    pytest.param("</psc>", 0, "</psc> closes nothing", id="closes-nothing"),
    pytest.param("<pscr><Response><Reason>1</Reason></Reponse></pscr>", 34, "expected </Response>", id="4.3-misspelt"),
    pytest.param("", 0, "no element", id="empty"),
    pytest.param("   ", 0, "no element", id="blank"),
    pytest.param("text", 0, "no element", id="text-only"),
    pytest.param("text<a/>", 0, "text outside any element", id="text-before"),
    pytest.param("<a/>text", 4, "text outside any element", id="text-behind"),
    pytest.param("<a/>text<b/>", 4, "text outside any element", id="text-between-roots"),
    pytest.param("<a><b</a>", 3, "not a tag", id="not-a-tag"),
    pytest.param("<a x=1></a>", 0, "not a tag", id="unquoted-attribute"),
    pytest.param("<a><!-- x --></a>", 3, "declarations", id="3.3-comment"),
    pytest.param("<a><![CDATA[x]]></a>", 3, "declarations", id="3.3-cdata"),
    pytest.param("<?xml version='1.0'?><a/>", 0, "declarations", id="3.3-xml-declaration"),
    pytest.param("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", 0, "declarations", id="3.3-dtd"),
    pytest.param("<a><?pi?></a>", 3, "declarations", id="processing-instruction"),
    pytest.param("<a>x&e;</a>", 4, "entity &e; is not one of XML's five", id="3.3-other-entity"),
    pytest.param("<a>\x01</a>", 3, "character U+0001", id="control-character"),
    pytest.param("<a>x\0y</a>", 4, "character U+0000", id="null-inside"),
    pytest.param("<a/>\0more", 4, "character U+0000", id="text-behind-a-null"),
    pytest.param("<é><b></é>", 6, "expected </b>", id="offset-in-characters"),
    pytest.param("<d>" * 70, 3 * MAX_DEPTH, "nested more than", id="too-deep-unclosed"),
    pytest.param("<d>" * 70 + "</d>" * 70, 3 * MAX_DEPTH, "nested more than", id="too-deep"),
]


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize(("text", "at", "why"), BAD)
def test_what_is_refused_is_refused_where_it_stands_in_the_message(text: str, at: int, why: str, charset: str) -> None:
    folder = Folder(text.encode(charset), charset, offset=100)
    for read in (folder.pairs, folder.values):
        with pytest.raises(DecodeError) as caught:
            read()
        assert caught.value.offset == 100 + len(text[:at].encode(charset))
        assert why in caught.value.why
        assert (caught.value.code, caught.value.reason) == ("bad-folder", 2421)


@pytest.mark.parametrize(
    ("data", "charset", "offset"),
    [
        pytest.param(b"<a>\xff</a>", "utf-8", 3, id="not-utf-8"),
        pytest.param("<a/>".encode("utf-16-le") + b" ", "utf-16-le", 8, id="half-a-utf-16-unit"),
        pytest.param(b"<\0\xd8\x00", "utf-16-be", 2, id="lone-surrogate"),
    ],
)
def test_bytes_that_are_not_of_the_ccsid_are_refused_where_they_stand(data: bytes, charset: str, offset: int) -> None:
    folder = Folder(data, charset, offset=100)
    with pytest.raises(DecodeError) as caught:
        _ = folder.text
    assert (caught.value.offset, caught.value.code) == (100 + offset, "bad-character")


def test_as_deep_as_allowed() -> None:
    text = "<d>" * MAX_DEPTH + "x" + "</d>" * MAX_DEPTH
    assert json.dumps(Folder.of(text).values()).count("{") == MAX_DEPTH - 1


XML_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))
TAGS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True).filter(lambda name: name.lower() != "xml")


@given(
    name=TAGS,
    pairs=st.lists(st.tuples(TAGS, XML_TEXT | st.text("a&;<>#]\r\n\t '\""))),
    charset=st.sampled_from(CHARSETS),
)
@example(name="psc", pairs=[("Topic", "a\r\nb\rc")], charset="utf-8")
@example(name="psc", pairs=[("Topic", "]]>")], charset="utf-8")
def test_what_is_written_is_read_back(name: str, pairs: list[tuple[str, str]], charset: str) -> None:
    folder = Folder.of(write(name, pairs), charset)
    assert (folder.name, folder.pairs()) == (name, pairs)


@given(name=TAGS, pairs=st.lists(st.tuples(TAGS, XML_TEXT | st.text("a&;<>#]\r\n\t '\""))))
@example(name="psc", pairs=[("Topic", "a\r\nb\rc&<]]>")])
def test_leaves_are_written_alike_by_both_writers(name: str, pairs: list[tuple[str, str]]) -> None:
    assert write_nested(Element(name, [Element(*pair) for pair in pairs])) == write(name, pairs)


def test_elements_are_written_inside_others_and_with_their_type() -> None:
    response = Element("Response", [Element("Reason", "3082"), Element("Topic", "a & b\r")])
    root = Element("pscr", (Element("Completion", "warning"), response, Element("Empty"), Element("Seq", "7", "i4")))
    text = write_nested(root)
    assert text == (
        "<pscr><Completion>warning</Completion><Response><Reason>3082</Reason><Topic>a &amp; b&#13;</Topic></Response>"
        '<Empty></Empty><Seq dt="i4">7</Seq></pscr>'
    )
    assert Folder.of(text).values() == {
        "Completion": "warning",
        "Response": {"Reason": "3082", "Topic": "a & b\r"},
        "Empty": "",
        "Seq": 7,
    }


TAG_TEXT = st.sampled_from(["a", "psc", "Topic", "_x", "a.b-c", "xml", "é", "1", "a:b", "", "²"])
LEAF_TEXT = st.text("ab /#+>&;]\t\n\r\0\x1f\x7f\x85\ufffe\U0001f600é", max_size=4)
LEAVES = st.lists(st.tuples(TAG_TEXT, LEAF_TEXT)).flatmap(
    lambda pairs: st.builds(
        lambda root, pad: f"<{root}>" + "".join(f"<{tag}>{text}</{tag}>{pad}" for tag, text in pairs) + f"</{root}>",
        TAG_TEXT,
        st.sampled_from(["", " "]),
    )
)


@given(text=LEAVES)
@example(text="<psc><Topic>a/b</Topic></psc>")
@example(text="<psc><a></a><b>\t\n</b></psc>")
@example(text="<a><a></a></a>")
@example(text="<a></a>")
def test_the_short_cut_for_leaves_agrees_with_the_xml_parser(text: str) -> None:
    leaves = _leaves(text)
    if leaves is not None:
        (root,) = parse(Folder(text.encode()))
        assert list(leaves) == [(tag_of(child), child.text or "") for child in root]
        assert not any(len(child) or child.attrib or child.tail for child in root)


KINDS = st.sampled_from(
    ["", " dt='i4'", ' dt="boolean"', " dt='bin.hex'", " dt='r8'", " dt=''", " dt='i4\"", " dt=i4", " d='i4'"]
)
VALUE_TEXTS = st.sampled_from(
    ["1", "-7", " 1 ", "0f", "1.5e3", "TRUE", "x", "", "\n1", "é", "\u00a0", "&#49;", "1<!--2-->"]
)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "a.b", "$a$"]), KINDS, VALUE_TEXTS), min_size=1, max_size=4))
def test_the_short_cut_for_typed_leaves_agrees_with_the_xml_parser(leaves: list[tuple[str, str, str]]) -> None:
    text = "<usr>" + "".join(f"<{tag}{kind}>{value}</{tag}>" for tag, kind, value in leaves) + "</usr>"
    found = _typed_leaves(text)
    if found is not None:
        (root,) = parse(Folder(text.encode()))
        assert list(found) == [(tag_of(child), _value(child)) for child in root]


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("<psc><Command>Publish</Command><Topic>a/ü 1</Topic></psc>", True),
        ("<psc><Topic></Topic></psc>", True),
        ("<psc></psc>", True),
        ("<psc><Topic>A &amp; B</Topic></psc>", False),
        ("<usr><a dt='i4'>1</a></usr>", False),
        ("<psc> <Topic>a</Topic></psc>", False),
        ("<usr><$a>1</$a></usr>", True),
        ("<psc><Topic>a</Topic>b</psc></psc>", False),
        ("<psc><Topic><b>a</b></Topic></psc>", False),
        ("<psc><Topic>a</Topic></psc><usr></usr>", False),
        ("<psc><Topic>a>b</Topic></psc>", False),
        ("<psc><Topic/></psc>", False),
        ("<psc><Topic>a\rb</Topic></psc>", False),
        ("<psc><Topic>" + "a" * 100_000 + "</Topic></psc>", False),
    ],
)
def test_the_short_cut_takes_what_programs_write(text: str, taken: bool) -> None:
    assert (_leaves(text) is not None) is taken
    leaves = _leaves(text)
    assert Folder(text.encode()).leaves() == (None if leaves is None else list(leaves))


def test_the_short_cut_takes_typed_properties() -> None:
    text = "<usr><a dt='i4'>1</a><b>x</b><c dt=\"boolean\">1</c></usr>"
    assert _typed_leaves(text) == [("a", 1), ("b", "x"), ("c", True)]


MARKUP = st.lists(
    st.sampled_from(
        [
            *(
                "<",
                ">",
                "/",
                "</",
                "/>",
                "a",
                "psc",
                " ",
                "='",
                "'",
                '"',
                "&",
                ";",
                "&#",
                "x",
                ":",
                "<a>",
                "</a>",
                "]]>",
            ),
            *("<a:b>", "</a:b>", "&amp;", "<!", "<?", "xmlns", " xmlns:a='", " xsi:nil='true'", " dt='i4'", "9", "é"),
            *("\0", "\r", "\x01"),
        ]
    )
).map("".join)


def _reads_or_refuses(folder: Folder) -> None:
    for read in (folder.pairs, folder.values, lambda: folder.text, lambda: folder.name):
        offset: object = folder.offset
        try:
            read()
        except DecodeError as error:
            offset = error.offset
        assert isinstance(offset, int)
        assert folder.offset <= offset <= folder.offset + len(folder.data)


@given(text=MARKUP, charset=st.sampled_from(CHARSETS), offset=st.sampled_from([0, 40]))
@example(text="<a><xml:b/>&</a>", charset="utf-8", offset=0)
@example(text="<xmlns:a>&</xmlns:a>", charset="utf-8", offset=0)
@example(text="<a xmlns:b=''><b:c/>&</a>", charset="utf-8", offset=0)
def test_any_markup_gives_values_or_a_decode_error_inside_it(text: str, charset: str, offset: int) -> None:
    _reads_or_refuses(Folder(text.encode(charset), charset, offset))


@given(data=st.binary(), charset=st.sampled_from(CHARSETS))
def test_any_bytes_give_values_or_a_decode_error_inside_them(data: bytes, charset: str) -> None:
    _reads_or_refuses(Folder(data, charset))


@pytest.mark.parametrize(
    ("text", "charset"), [("<psc>\udcff</psc>", "utf-8"), ("<a>\ud800", "utf-16-le"), ("<a>€", "iso8859_1")]
)
def test_text_without_a_form_makes_no_folder(text: str, charset: str) -> None:
    with pytest.raises(EncodeError, match=f"cannot be written in {charset}"):
        Folder.of(text, charset)


@pytest.mark.rule("LSN-36")
@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("text", ["<psc><Topic>a</Topic></psc>", "<psc x='1'><Topic>a</Topic></psc>"])
def test_a_byte_order_mark_around_a_folder_is_passed_over(text: str, order: str) -> None:
    """IBM's Java class MQRFH2 writes folders in UTF-16 so. Offsets in errors stay those of the message."""
    charset = f"utf-16-{order}"
    folder = Folder(f"\ufeff{text}\ufeff".encode(charset), charset)
    assert (folder.name, folder.pairs(), folder.values()) == ("psc", [("Topic", "a")], {"Topic": "a"})
    faulty = Folder("\ufeff<psc><a></b></psc>".encode(charset), charset, 100)
    with pytest.raises(DecodeError) as caught:
        faulty.pairs()
    assert caught.value.offset == 100 + 2 * len("\ufeff<psc><a>")
