"""Reading as far as it goes, the elements of folders, values written anew, and what values mean."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from rfh2 import DecodeError, Folder, Mqmd
from rfh2.constants import REASON_NAMES, feedback_text, reason_text
from rfh2.elements import elements, folder_text, number, padded
from rfh2.explain.annotate import AnnotatedLine, annotate, chain, layout_lines, plain, visible
from rfh2.explain.fields import layout_of, read_fields, write_fields
from rfh2.explain.meanings import ccsid_text, encoding_text, expiry_text, meaning, tag_meaning, time_text
from rfh2.explain.reading import read_message
from rfh2.explain.rebuild_header import DecodedFolder, describe_folder, rebuild_folder, same
from rfh2.layouts import ALL, MQMD2, MQRFH2
from tests.rfh2.explained import captured, damaged, message, messages

PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"


@given(damaged())
def test_what_decodes_is_read_as_decode_reads_it_and_the_rest_as_far_as_it_goes(given: Any) -> None:
    partial = read_message(given)
    fault = partial.mqmd_fault or partial.fault
    if fault is None:
        assert partial.message == given.decode()
    else:
        with pytest.raises(DecodeError) as raised:
            given.decode()
        assert (raised.value.offset, raised.value.code) == (fault.offset, fault.code)
    start = b"".join(located.header.encode() for located in partial.headers)
    assert given.body == start + partial.rest
    assert partial.rest_offset == len(start)


def test_a_header_behind_a_sound_one_may_be_broken() -> None:
    given = message(PSC, data=b"RFH broken", fmt="MQHRF2")
    partial = read_message(given)
    assert [located.offset for located in partial.headers] == [0]
    assert partial.fault is not None
    assert (partial.fault.code, partial.fault.offset, partial.rest) == ("unknown-version", 100, b"RFH broken")
    assert chain(partial) == "MQMD 324 -> MQRFH2 96 -> 10 bytes that could not be decoded as MQRFH2"


def test_a_broken_descriptor_leaves_the_body_to_be_read_by_itself() -> None:
    given = message(PSC)
    partial = read_message(captured(given.body, b"MD  \7\0\0\0"))
    assert partial.mqmd_fault is not None
    assert (partial.mqmd, partial.mqmd_fault.offset) == (None, 4)
    assert [located.header.kind for located in partial.headers] == ["MQRFH2"]


@given(messages())
def test_every_element_stands_where_its_offset_says(given: Any) -> None:
    for located in read_message(given).headers:
        for folder in getattr(located.header, "folders", ()):
            try:
                found = elements(folder)
            except DecodeError:
                continue
            for element in found:
                tag = f"<{element.tag}".encode(folder.charset)
                assert given.body[element.offset :].startswith(tag)


def test_elements_have_depth_attributes_and_text() -> None:
    folder = Folder.of("<usr><g><h dt='i4'>1</h></g><n xsi:nil='true'/></usr>")
    assert [(e.depth, e.tag, e.attributes, e.text, e.parent) for e in elements(folder)] == [
        (0, "usr", (), None, ""),
        (1, "g", (), None, "usr"),
        (2, "h", (("dt", "i4"),), "1", "g"),
        (1, "n", (("xsi:nil", "true"),), "", "usr"),
    ]


MANY = " ".join(f"p{n}:x{n % 7}='{n}'" for n in range(100))


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ("a='1' b = \"2\"", (("a", "1"), ("b", "2"))),
        ("xml:lang='en' a=\"b='c'\"", (("xml:lang", "en"), ("a", "b='c'"))),
        ("xmlns:p='u' xmlns:q='u' q:a='1' p:b='2' xmlns='v' c='3'", (("q:a", "1"), ("p:b", "2"), ("c", "3"))),
        (MANY, tuple((f"p{n}:x{n % 7}", str(n)) for n in range(100))),
    ],
    ids=["plain", "of-xml", "two-prefixes-of-one-namespace", "many"],
)
def test_attributes_have_the_names_that_are_written(attributes: str, found: tuple[tuple[str, str], ...]) -> None:
    assert elements(Folder.of(f"<usr><a {attributes}>1</a></usr>"))[1].attributes == found


def test_an_element_of_many_attributes_has_its_type() -> None:
    others = " ".join(f"x{n}='{n}'" for n in range(100))
    assert Folder.of(f"<usr><a {others} dt='i4'>7</a><b {others} xsi:nil='true'/></usr>").values() == {
        "a": 7,
        "b": None,
    }


# Values written anew

_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"), max_size=8),
)
_TAGS = st.sampled_from(["a", "b", "Topic", "xsi:q"])
_VALUES = st.recursive(
    st.dictionaries(_TAGS, st.one_of(_LEAVES, st.lists(_LEAVES, min_size=2, max_size=3)), max_size=3),
    lambda inner: st.dictionaries(_TAGS, st.one_of(_LEAVES, inner), max_size=3),
    max_leaves=6,
)


def shown(text: str) -> Any:
    return describe_folder(Folder.of(text)).values


@given(_VALUES, _VALUES)
@example({"a": False}, {"a": "false"})
def test_values_that_were_edited_are_read_back(before: dict[str, Any], after: dict[str, Any]) -> None:
    old = Folder.of(folder_text("usr", before))
    for values in (before, after):
        data = rebuild_folder(DecodedFolder(name="usr", values=values, raw=describe_folder(old).raw), old)
        assert same(describe_folder(Folder(data)).values, without_empty_groups(values))


def without_empty_groups(value: Any) -> Any:
    """An empty group cannot be told from an empty text, and is read as one; great numbers are shown as strings."""
    if isinstance(value, dict):
        return {tag: "" if inner == {} else without_empty_groups(inner) for tag, inner in value.items()}
    if isinstance(value, list):
        return [without_empty_groups(inner) for inner in value]
    return number(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        ("1", 1, False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": [True]}, {"a": [1]}, False),
    ],
)
def test_json_values_are_the_same_if_other_tools_may_write_one_for_the_other(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal


REWRITTEN = [
    (
        "order-and-attributes-stay",
        "<usr><a dt='i1' copy='all'>1</a><b>x</b></usr>",
        {"b": "y", "a": 2},
        "<usr><a dt='i1' copy='all'>2</a><b>y</b></usr>",
    ),
    (
        "3.3-a-new-number-is-typed",
        "<usr></usr>",
        {"a": 1, "b": 1 << 40, "c": 1.5},
        "<usr><a dt='i4'>1</a><b dt='i8'>1099511627776</b><c dt='r8'>1.5</c></usr>",
    ),
    (
        "3.3-a-text-becomes-a-number",
        "<usr><a copy='all'>x</a></usr>",
        {"a": 1},
        "<usr><a copy='all' dt='i4'>1</a></usr>",
    ),
    ("3.3-a-number-becomes-a-text", "<usr><a dt='i4'>1</a></usr>", {"a": "x"}, "<usr><a dt='i4'>x</a></usr>"),
    (
        "3.3-a-number-that-its-type-cannot-hold",
        "<usr><a dt='i1'>1</a></usr>",
        {"a": 300},
        "<usr><a dt='i4'>300</a></usr>",
    ),
    ("3.3-true-is-not-1", "<usr><a dt='i4'>1</a></usr>", {"a": True}, "<usr><a dt='boolean'>1</a></usr>"),
    ("3.3-nothing", "<usr><a>x</a></usr>", {"a": None}, "<usr><a xsi:nil='true'></a></usr>"),
    ("3.3-something", "<usr><a xsi:nil='true'></a></usr>", {"a": "x"}, "<usr><a>x</a></usr>"),
    ("4.1-psc-has-no-types", "<psc></psc>", {"SeqNum": 1}, "<psc><SeqNum>1</SeqNum></psc>"),
    ("3.3-escapes", "<usr></usr>", {"a": "<&>\r"}, "<usr><a>&lt;&amp;&gt;&#13;</a></usr>"),
    (
        "repeated-tags-keep-their-places",
        "<psc><T>1</T><R>x</R><T>2</T></psc>",
        {"T": ["3", "4", "5"], "R": "x"},
        "<psc><T>3</T><R>x</R><T>4</T><T>5</T></psc>",
    ),
    (
        "a-folder-of-several-roots",
        "<psc><T>1</T></psc><usr/>",
        {"psc": {"T": "2"}, "usr": ""},
        "<psc><T>2</T></psc><usr></usr>",
    ),
]


@pytest.mark.parametrize(("before", "values", "after"), [pytest.param(*rest, id=name) for name, *rest in REWRITTEN])
def test_a_folder_written_anew(before: str, values: dict[str, Any], after: str) -> None:
    folder = Folder.of(before)
    assert folder_text(folder.name, values, folder) == after


def test_padding_is_to_four_bytes_in_any_code_page() -> None:
    assert padded("<a/>x", "utf-8") == b"<a/>x   "
    assert len(padded("abc", "utf-16-le")) == 8


# Fields by their layouts


@pytest.mark.parametrize("layout", ALL, ids=lambda layout: layout.name)
def test_writing_the_fields_that_were_read_changes_nothing(layout: Any) -> None:
    data = bytes(range(64, 64 + layout.size)) if layout.size < 190 else (b"A1 \0" * 200)[: layout.size]
    for order in ("big", "little"):
        fields = read_fields(layout, data, order, "latin-1")
        assert write_fields(layout, data, order, "latin-1", {}) == data
        numbers = {name: value for name, value in fields.items() if isinstance(value, int)}
        assert write_fields(layout, data, order, "latin-1", numbers) == data


def test_layouts_are_found_by_the_kind_of_a_header() -> None:
    assert layout_of("MQRFH2") is MQRFH2
    assert layout_of("MQMD") is not MQMD2
    assert layout_of("MQCIH") is not None
    assert layout_of("NOPE") is None


# Meanings

MEANINGS = [
    ("1-msg-type", "MsgType", 8, "MQMT_DATAGRAM"),
    ("1-msg-type-of-an-application", "MsgType", 65_536, "an application's own"),
    ("1-msg-type-unknown", "MsgType", 3, "not known"),
    ("1-report-none", "Report", 0, "MQRO_NONE"),
    ("1-report-negative", "Report", -(1 << 31), "unknown 0x80000000"),
    ("1-report-exception-with-data", "Report", 0x03000000, "MQRO_EXCEPTION_WITH_DATA"),
    ("1-feedback", "Feedback", 275, "MQFB_PAN"),
    ("1-feedback-reason", "Feedback", 2053, "MQRC_Q_FULL: the queue is full"),
    ("1-feedback-of-an-application", "Feedback", 65_536, "an application's own"),
    ("5-reason", "Reason", 2085, "MQRC_UNKNOWN_OBJECT_NAME: no object has this name"),
    ("1-format", "Format", "MQHRF2", "MQFMT_RF_HEADER_2: an MQRFH2 follows"),
    ("1-format-of-an-application", "Format", "MYFMT", "an application's own"),
    ("1-priority", "Priority", -1, "MQPRI_PRIORITY_AS_Q_DEF"),
    ("1-priority-number", "Priority", 4, ""),
    ("1-persistence", "Persistence", 1, "MQPER_PERSISTENT"),
    ("1-identifier", "CorrelId", "00" * 24, "none"),
    ("1-identifier-of-text", "CorrelId", b"job 7".ljust(24, b"\0").hex(), "'job 7'"),
    ("1-identifier-of-bytes", "CorrelId", "ff" * 24, ""),
    ("1-msg-flags", "MsgFlags", 0x18, "MQMF_MSG_IN_GROUP + MQMF_LAST_MSG_IN_GROUP"),
    ("1-original-length", "OriginalLength", -1, "MQOL_UNDEFINED"),
    ("1-name", "ReplyToQ", "Q", ""),
]


@pytest.mark.parametrize(("name", "value", "expected"), [pytest.param(*rest, id=name) for name, *rest in MEANINGS])
def test_meanings(name: str, value: int | str, expected: str) -> None:
    assert meaning(name, value) == expected


def test_meanings_of_numbers_that_describe_text() -> None:
    assert encoding_text(785) == "big-endian integers, normal decimals, S/390 floats"
    assert encoding_text(0) == "integers of undefined byte order"
    assert [ccsid_text(n) for n in (1208, 500, 850, -2, 4711)] == [
        "UTF-8",
        "EBCDIC, cp500",
        "cp850",
        "MQCCSI_INHERIT: as the header before",
        "not known here",
    ]
    assert (expiry_text(-1), expiry_text(36_001), expiry_text(-5)) == ("MQEI_UNLIMITED", "1:00:00.1", "")
    assert (time_text("20090128", "11435418"), time_text("2009", ""), time_text("20090128", "1143541x")) == (
        "2009-01-28 11:43:54.18 UTC",
        "",
        "",
    )
    assert reason_text(9999) == feedback_text(9999) == ""


def test_every_reason_that_the_bridge_gives_has_a_sentence() -> None:
    names = REASON_NAMES.items()
    assert [name for reason, name in names if not reason_text(reason).startswith(f"{name}: ")] == []


@pytest.mark.parametrize(
    ("folder", "tag", "text", "expected"),
    [
        pytest.param("psc", "RegOpt", "Local", "MQREGO_LOCAL", id="2.4-word"),
        pytest.param(
            "MQRFH",
            "MQPSRegOpts",
            "33",
            "MQREGO_CORREL_ID_AS_IDENTITY (CorrelAsId) + MQREGO_PUBLISH_ON_REQUEST_ONLY (PubOnReqOnly)",
            id="2.4-sum",
        ),
        pytest.param("psc", "PubOpt", "Foo", "'Foo' is not an option", id="2.4-unknown"),
        pytest.param("MQRFH", "MQPSCompCode", "2", "MQCC_FAILED", id="2.6-comp-code"),
        pytest.param(
            "pscr", "Reason", "3073", "MQRCCF_NOT_REGISTERED: the publisher or subscriber is not registered", id="4.3"
        ),
        pytest.param("pscr", "Reason", "9" * 5000, "", id="4.3-not-a-number-to-read"),
        pytest.param("psc", "PubTime", "2009012811435418", "2009-01-28 11:43:54.18 UTC", id="4.2"),
        pytest.param("mqps", "Ret", "1", "MQIsRetained", id="3.2-mqps"),
        pytest.param("usr", "Ret", "1", "", id="3.2-a-program's-own"),
    ],
)
def test_meanings_of_tags(folder: str, tag: str, text: str, expected: str) -> None:
    assert tag_meaning(folder, tag, text) == expected


# The annotated view


def test_lines_are_columns() -> None:
    line = AnnotatedLine(16, b"\xff" * 20, "Expiry", "-1", "MQEI_UNLIMITED")
    (text,) = layout_lines([line], lambda _role, shown: shown)
    assert text == f"    16 {'ff' * 12}… Expiry             -1 [MQEI_UNLIMITED]"


def test_every_byte_of_a_header_is_under_a_line() -> None:
    given = message(PSC, "<usr><a>1</a></usr>", data=b"hi")
    partial = read_message(given)
    fields = [line for line in annotate(partial) if line.offset is not None and line.data]
    shown = sum(len(line.data) for line in fields if line.field or line.meaning.startswith("padding"))
    header = partial.message.rfh2
    assert header is not None
    texts = sum(len(folder.data.rstrip(b" ")) for folder in header.folders)
    assert shown + texts == 324 + partial.rest_offset


def test_what_no_terminal_should_see_is_escaped() -> None:
    assert visible("a\x1b[31m\u202e€\n") == "a\\x1b[31m\\u202e€\\n"


def test_the_descriptor_of_a_message_without_one_is_not_shown() -> None:
    partial = read_message(captured(message(PSC).body))
    assert chain(partial) == "MQRFH2 96 -> no data"
    assert next(iter(annotate(partial))).heading.startswith("MQRFH2 at 0")
    assert partial.assumed == Mqmd(format="MQHRF2", encoding=546)


TIMES = [
    ("20090128", "10300050", "2009-01-28 10:30:00.50 UTC"),
    ("20090128", "103000", "2009-01-28 10:30:00.00 UTC"),
    ("20090230", "10300050", ""),
    ("2009012", "10300050", None),
    ("20090128", "1030", None),
    ("", "", ""),
    ("20090128", "103000xx", ""),
    ("99991231", "23595999", "9999-12-31 23:59:59.99 UTC"),
    ("00000101", "00000000", ""),
    ("09991231", "10300050", None),
    ("10000101", "1030005", None),
]


@pytest.mark.parametrize(("date", "moment", "text"), TIMES, ids=[f"{date}-{moment}" for date, moment, _ in TIMES])
def test_a_time_is_read_as_strptime_reads_it(date: str, moment: str, text: str | None) -> None:
    try:
        at = datetime.strptime(date + moment[:6], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        expected = at.strftime("%Y-%m-%d %H:%M:%S.") + f"{int(moment[6:8] or '0'):02} UTC"
    except ValueError:
        expected = ""
    assert time_text(date, moment) == expected
    assert text is None or text == expected


@given(messages())
def test_a_line_without_colours_is_what_any_paint_of_no_colour_gives(given: Any) -> None:
    lines = annotate(read_message(given), None)
    assert layout_lines(lines, plain) == layout_lines(lines, lambda _role, text: text)
