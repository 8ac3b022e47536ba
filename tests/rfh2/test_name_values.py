"""NameValueString grammar (wire formats 2.2)."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from rfh2.errors import DecodeError, EncodeError
from rfh2.rfh1 import NameValue, parse, write

GOOD = [
    pytest.param("", [], id="empty"),
    pytest.param("   ", [], id="blanks"),
    pytest.param('\0anything " at all', [], id="null-first"),
    pytest.param("MQPSCommand RegSub", [("MQPSCommand", "RegSub", 0)], id="one-pair"),
    pytest.param(" A  b C d ", [("A", "b", 1), ("C", "d", 6)], id="field-notes-leading-blank-and-two-blanks"),
    pytest.param("A b\0", [("A", "b", 0)], id="null-terminated"),
    pytest.param("A b \0C", [("A", "b", 0)], id="what-is-behind-the-null-is-nothing"),
    pytest.param('MQPSTopic "IBM Stock Price"', [("MQPSTopic", "IBM Stock Price", 0)], id="slides-quoted-blanks"),
    pytest.param('T "IBM ""Q"" Price"', [("T", 'IBM "Q" Price', 0)], id="2.7-doubled-quotes"),
    pytest.param('T """"', [("T", '"', 0)], id="one-quote"),
    pytest.param('T ""', [("T", "", 0)], id="2.2-empty-token"),
    pytest.param('"A b" c', [("A b", "c", 0)], id="2.2-quoted-name"),
    pytest.param("A b\tc\n", [("A", "b\tc\n", 0)], id="2.2-tab-and-newline-are-characters"),
    pytest.param("A b a B", [("A", "b", 0), ("a", "B", 4)], id="2.2-case-matters"),
    pytest.param("A b A c", [("A", "b", 0), ("A", "c", 4)], id="repeats-stay"),
    pytest.param("MQPSRegOpts  33", [("MQPSRegOpts", "33", 0)], id="2.7-amqsresa"),
]

BAD = [
    pytest.param("A", 0, "has no value", id="odd"),
    pytest.param("A b  Topic", 5, "'Topic' has no value", id="odd-behind-two-blanks"),
    pytest.param('A b"c', 3, "doubled", id="quote-inside-a-plain-token"),
    pytest.param('A b"', 3, "doubled", id="quote-at-the-end-of-a-plain-token"),
    pytest.param('A "b"c', 5, "doubled", id="closing-quote-without-a-blank"),
    pytest.param('A "b""c d', 2, "never closed", id="unterminated"),
    pytest.param('A "', 2, "never closed", id="lone-quote"),
    pytest.param('A """', 2, "never closed", id="three-quotes"),
    pytest.param('A "b\0"', 2, "never closed", id="null-inside-quotes"),
]


@pytest.mark.rule("OLD-3")
@pytest.mark.parametrize(("text", "found"), GOOD)
def test_parse(text: str, found: list[tuple[str, str, int]]) -> None:
    assert parse(text) == [NameValue(*each) for each in found]


@pytest.mark.rule("OLD-3")
@pytest.mark.parametrize(("text", "position", "why"), BAD)
def test_outside_the_grammar(text: str, position: int, why: str) -> None:
    with pytest.raises(DecodeError, match=why) as caught:
        parse(text)
    assert (caught.value.offset, caught.value.reason, caught.value.code) == (position, 2335, "bad-name-value-string")


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([("MQPSCompCode", "0"), ("MQPSReason", "0"), ("MQPSReasonText", "MQRC_NONE")], None),
        ([("MQPSTopic", "a b")], 'MQPSTopic "a b"'),
        ([("MQPSTopic", 'a"b')], 'MQPSTopic "a""b"'),
        ([("MQPSTopic", "")], 'MQPSTopic ""'),
        ([], ""),
    ],
    ids=["2.6-response-begins-exactly-so", "blank", "quote", "empty", "none"],
)
def test_write(pairs: list[tuple[str, str]], text: str | None) -> None:
    assert write(pairs) == (text if text is not None else "MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE")


def test_a_null_has_no_form() -> None:
    with pytest.raises(EncodeError):
        write([("A", "b\0")])


TOKENS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.text(' "a')


@given(st.lists(st.tuples(TOKENS, TOKENS)))
def test_what_is_written_is_read_back(pairs: list[tuple[str, str]]) -> None:
    assert [pair[:2] for pair in parse(write(pairs))] == pairs


@given(st.text(' "a\0\té') | st.text())
@example('"' * 50_000)
@example('"' + "a" * 100_000)
@example("a " * 50_001)
def test_any_text_gives_pairs_or_a_position_inside_it(text: str) -> None:
    position = 0
    try:
        found = parse(text)
    except DecodeError as error:
        position = error.offset
    else:
        assert all(text[at] in (pair_name[:1] or '"') + '"' for pair_name, _, at in found)
    assert 0 <= position < max(len(text), 1)
