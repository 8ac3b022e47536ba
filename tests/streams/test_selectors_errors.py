"""Selection strings that are refused with MQRCCF_FILTER_ERROR, and where: guide 6.7.4, 6.7.8."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from rfh2.constants import MQRCCF_FILTER_ERROR
from rfh2.errors import CommandError
from streams.selectors import compile_selector

# (id, selection string, character that is to blame, part of the reason)
REFUSED = [
    ("body", "Body.Order.Total > 100", 1, "message body"),
    ("body-any-case", "a = 1 AND BODY.x = 1", 11, "message body"),
    ("body-input", "InputBody.x = 1", 1, "message body"),
    ("body-xml", "Root.XML.Order = 'x'", 1, "message body"),
    ("body-xmlnsc-subscript", "a = 1 OR Root.XMLNSC.Orders.Order[1] = 2", 10, "message body"),
    ("body-mrm", "Root.MRM.x = 1", 1, "message body"),
    ("esql-properties", "Root.Properties.Topic = 'x'", 1, "cannot be selected on"),
    ("esql-properties-alone", "Properties.Topic = 'x'", 1, "not a message property"),
    ("esql-environment", "Environment.Variables.x = 1", 1, "not a message property"),
    ("esql-input-root", "InputRoot.MQMD.Priority = 1", 1, "not a message property"),
    ("esql-other-header", "Root.MQCIH.x = 1", 1, "only MQMD fields and MQRFH2 elements"),
    ("esql-header-field", "Root.MQRFH2.StrucLength = 36", 1, "names no element"),
    ("name-root-case", "root.mqmd.Priority = 1", 1, "write Root.MQMD"),
    ("name-mqmd-case", "Root.Mqmd.Priority = 1", 1, "write Root.MQMD"),
    ("name-mqmd-without-root", "MQMD.Priority = 1", 1, "write Root.MQMD"),
    ("name-mqmd-unknown-field", "Root.MQMD.Prio = 1", 1, "not an MQMD field"),
    ("name-mqmd-field-case", "Root.MQMD.priority = 1", 1, "not an MQMD field"),
    ("name-mqmd-struc-id", "Root.MQMD.StrucId = 'MD  '", 1, "not an MQMD field"),
    ("name-mqmd-alone", "Root.MQMD = 1", 1, "not an MQMD field"),
    ("name-jms-reserved", "JMSDestination = 'x'", 1, "reserved"),
    ("name-jms-unknown", "JMSprio = 1", 1, "reserved"),
    ("name-ends-in-a-dot", "a = 1 AND b. = 2", 11, "not a name"),
    ("name-empty-part", "a..b = 2", 1, "not a name"),
    ("name-part-begins-with-a-digit", "a.1 = 2", 1, "not a name"),
    ("name-is-a-keyword", "and = 1", 1, "not expected"),
    ("syntax-unfinished", "a = 1 AND  ", 10, "ends too early"),
    ("syntax-operator-missing", "a 1", 3, "not expected"),
    ("syntax-operand-missing", "a = = 1", 5, "not expected"),
    ("syntax-double-equals", "a == 1", 4, "not expected"),
    ("syntax-exclamation", "a != 1", 3, "write <> for not equal"),
    ("syntax-ampersand", "a = 1 && b = 1", 7, "write AND"),
    ("syntax-bar", "a = 1 || b = 1", 7, "write OR"),
    ("syntax-range", "20 < b < 30", 8, "not expected"),
    ("syntax-range-in-parentheses", "(20 < b) < 30", 2, "not a condition"),
    ("syntax-unclosed-parenthesis", "(a = 1", 7, "ends too early"),
    ("syntax-unopened-parenthesis", "a = 1)", 6, "not expected"),
    ("syntax-empty-list", "a IN ()", 7, "not expected"),
    ("syntax-list-of-names", "a IN (b)", 7, "not expected"),
    ("syntax-is-true", "a IS TRUE", 6, "not expected"),
    ("syntax-like-name", "a LIKE b", 8, "not expected"),
    ("syntax-null-literal", "a = NULL", 5, "not expected"),
    ("syntax-unknown-character", "a = 1; b = 1", 6, "';'"),
    ("syntax-null-character", "a = 1\0", 6, "not part of"),
    ("string-unclosed", "a = 'red", 5, "not closed"),
    ("string-double-quotes", 'a = "red"', 5, "byte strings"),
    ("string-typographic-quotes", "a = \u2018red\u2019", 5, "not part of"),
    ("bytes-odd", 'a = "0xAFC23"', 5, "pairs of hexadecimal"),
    ("bytes-empty", 'a = "0x"', 5, "pairs of hexadecimal"),
    ("number-bad-octal", "a = 09", 5, "octal"),
    ("number-bad-hexadecimal", "a = 0xG", 5, "not a number"),
    ("number-two-points", "a = 1.2.3", 5, "not a number"),
    ("number-runs-into-a-name", "a = 5AND b = 1", 5, "not a number"),
    ("number-exact-too-large", "a = 9223372036854775809", 5, "64 bits"),
    ("number-exact-of-very-many-digits", "a = " + "9" * 5000, 5, "64 bits"),
    ("number-approximate-too-large", "a = 1E400", 5, "too large"),
    ("like-escape-too-long", "a LIKE 'x' ESCAPE 'ab'", 19, "one character"),
    ("like-escape-empty", "a LIKE 'x' ESCAPE ''", 19, "one character"),
    ("like-escape-of-nothing", "a LIKE 'x!' ESCAPE '!'", 8, "has to be followed"),
    ("like-escape-of-a-letter", "a LIKE '!xyz' ESCAPE '!'", 8, "has to be followed"),
    ("like-number", "5 LIKE 'x'", 1, "LIKE takes a string"),
    ("like-condition", "(a = 1) LIKE 'x'", 2, "not a condition"),
    ("kinds-literals", "1 = 'x'", 5, "a string cannot be compared with a number"),
    ("kinds-mqmd-number", "Root.MQMD.Priority = 'high'", 22, "a string cannot be compared with a number"),
    ("kinds-mqmd-bytes", "Root.MQMD.MsgId = '0x00'", 19, "a string cannot be compared with a byte string"),
    ("kinds-mqmd-identifier-digits", "Root.MQMD.MsgId = 'ID:0'", 19, "hexadecimal digits"),
    ("kinds-mqmd-identifier-length", f"Root.MQMD.MsgId = 'ID:{'00' * 25}'", 19, "at most 48 hexadecimal digits"),
    ("kinds-mqmd-identifier-in", "Root.MQMD.CorrelId IN ('ID:00', 'ID:x')", 33, "hexadecimal digits"),
    ("kinds-jms-delivery-mode", "jms.Dlv = 'persistent'", 11, "cannot be compared"),
    ("kinds-jms-delivery-mode", "JMSDeliveryMode = 2", 19, "a number cannot be compared with a string"),
    ("kinds-list", "a IN ('x', 1)", 12, "IN takes a list of strings, not a number"),
    ("kinds-list-not", "a NOT IN (1, 2, 3)", 11, "IN takes a list of strings, not a number"),
    ("kinds-list-boolean", "a IN (TRUE)", 7, "IN takes a list of strings, not a boolean"),
    ("kinds-list-bytes", 'a IN ("0x00")', 7, "IN takes a list of strings, not a byte string"),
    ("kinds-mqmd-list", "Root.MQMD.Priority IN ('x')", 24, "a string cannot be compared with a number"),
    ("kinds-order-of-strings", "a > 'x'", 5, "only numbers are ordered"),
    ("kinds-order-of-booleans", "TRUE < a", 1, "only numbers are ordered"),
    ("kinds-order-of-bytes", "Root.MQMD.MsgId > a", 1, "only numbers are ordered"),
    ("kinds-between-strings", "a BETWEEN 'a' AND 'z'", 11, "only numbers are ordered"),
    ("kinds-arithmetic", "a + 'x' = 1", 5, "arithmetic takes numbers"),
    ("kinds-sign", "a = -'x'", 6, "arithmetic takes numbers"),
    ("kinds-arithmetic-on-condition", "(a = 1) + 1 = 2", 2, "not a condition"),
    ("kinds-condition-compared", "(a = 1 AND b = 1) = TRUE", 2, "not a condition"),
    ("kinds-condition-in-list", "(NOT a) IN ('x')", 6, "not a condition"),
    ("kinds-condition-is-null", "(a LIKE 'x' OR b) IS NULL", 2, "not a condition"),
    ("kinds-number-alone", "a = 1 OR 5", 10, "condition is expected"),
    ("kinds-arithmetic-alone", "a + 1", 1, "condition is expected"),
    ("kinds-string-alone", "'x'", 1, "condition is expected"),
    ("kinds-mqmd-alone", "NOT Root.MQMD.Format", 5, "condition is expected"),
    ("never-true", "1 = 2", 1, "no message can meet"),
    ("never-known", "1 / 0 = 1", 1, "no message can meet"),
    ("too-deep-parentheses", "(" * 101 + "a" + ")" * 101, 101, "deeper than 100"),
    ("too-deep-not", "NOT " * 101 + "a", 401, "deeper than 100"),
    ("too-deep-signs", "a = " + "-" * 101 + "1", 105, "deeper than 100"),
    ("too-deep-mixed", "NOT (" * 51 + "a" + ")" * 51, 251, "deeper than 100"),
    ("too-deep-arithmetic", "1 - (" * 101 + "a" + ")" * 101, 505, "deeper than 100"),
    ("too-long", "a = '" + "x" * 10240 + "'", 10241, "longer than 10240"),
]


@pytest.mark.parametrize(
    ("text", "at", "why"), [pytest.param(text, at, why, id=f"6.7.4-{name}") for name, text, at, why in REFUSED]
)
def test_refused_with_3150_and_the_place(text: str, at: int, why: str) -> None:
    with pytest.raises(CommandError) as caught:
        compile_selector(text)
    assert caught.value.reason == MQRCCF_FILTER_ERROR == 3150
    assert f"at character {at}: " in caught.value.why
    assert why in caught.value.why
    assert caught.value.tags == (("Filter", text),)


def test_a_hundred_thousand_parentheses_are_refused_by_length() -> None:
    with pytest.raises(CommandError, match="longer than 10240"):
        compile_selector("(" * 100_000)


PIECES = st.sampled_from(
    [
        *("a", "Root.MQMD.Priority", "Body.x", "usr.b", "1", "2.5", "'s'", "'", '"0xFF"', '"', "X'00'", "TRUE", "NULL"),
        *("=", "<>", "<", ">=", "+", "-", "*", "/", "(", ")", ",", ".", " ", "\n", "[", "!", "é"),
        *("AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "BETWEEN", "IS"),
    ]
)


@given(st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=20).map(" ".join), st.lists(PIECES).map("".join)))
def test_any_text_is_a_selector_or_our_error(text: str) -> None:
    try:
        selector = compile_selector(text)
    except CommandError as error:
        place = re.search(r"at character (\d+): ", error.why)
        assert place is not None
        assert 1 <= int(place[1]) <= len(text) + 1
    else:
        assert selector.matches(lambda name: None) in (True, False)
