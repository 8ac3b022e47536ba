"""What selection strings select: guide 2.4.3, with the syntax that IBM MQ documents for message selectors."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from streams.selectors import Value, compile_selector, registered_selector

MESSAGE: dict[str, Value] = {
    "usr.Colour": "red",
    "usr.Size": 42,
    "usr.Weight": 2.5,
    "usr.Urgent": True,
    "usr.Cancelled": False,
    "usr.Key": bytes.fromhex("0AFC23"),
    "usr.Name": "O'Neill",
    "usr.Percent": "100%_sure",
    "usr.Lines": "one\ntwo",
    "usr.Straße": "lang",
    "usr.Digits": "42",
    "usr.Dot": "a.b",
    "usr.NotANumber": float("nan"),
    "mqps.Top": "Stock/IBM",
    "Root.MQMD.Priority": 5,
    "Root.MQMD.Format": "MQSTR",
    "Root.MQMD.CorrelId": bytes(23) + b"\1",
    "Root.MQMD.MsgId": bytes.fromhex("414D51").ljust(24, b"\0"),
    "Root.MQRFH2.Format": "MQSTR",
    "Root.MQRFH2.CodedCharSetId": 1208,
    "jms.Dlv": 2,
    "psc.Topic": "Stock/IBM",
    "account.owner.name": "Ann",
}

# fmt: off
SELECTS = [
    ("literal-string", "Colour = 'red'"),
    ("literal-string-doubled-quote", "Name = 'O''Neill'"),
    ("literal-exact", "Size = 42"),
    ("literal-exact-long-suffix", "Size = 42L"),
    ("literal-hexadecimal-number", "Size = 0x2A AND Size = 0X2a"),
    ("literal-octal-number", "Size = 052"),
    ("literal-zero", "Size > 0"),
    ("literal-approximate", "Weight = 2.5 AND Weight = 25E-1 AND Weight = .25e+1 AND Weight = 2.5D"),
    ("literal-approximate-no-fraction", "Size = 42."),
    ("literal-signed", "Size > -1 AND Size > +1 AND Size > - -1"),
    ("literal-smallest-exact", "Size > -9223372036854775808"),
    ("literal-boolean-any-case", "Urgent = TRUE AND Cancelled = false"),
    ("literal-bytes", 'Key = "0x0AFC23" AND Key = "0X0afc23"'),
    ("literal-bytes-esql", "Key = X'0AFC23' AND Key = x'0afc23'"),
    ("bytes-leading-zero-counts", 'Key <> "0x000AFC23"'),
    ("bytes-trailing-zero-counts", 'Key <> "0x0AFC2300"'),
    ("keywords-any-case", "colour IS null AND nOt Cancelled oR FALSE"),
    ("keyword-inside-a-name", "ORDER IS NULL AND Not.x IS NULL AND nothing IS NULL"),
    ("name-any-letters", "Straße = 'lang'"),
    ("name-dollar-underscore", "$a_1 IS NULL AND _b IS NULL"),
    ("white-space", "\tSize\n=\f42 \r\n"),
    ("little-white-space", "(Size=42)AND(Colour='red')OR(Size<0)"),
    ("name-usr-folder", "usr.Colour = 'red'"),
    ("name-other-folder", "mqps.Top = 'Stock/IBM'"),
    ("name-mqi-synonym", "MQTopicString = 'Stock/IBM'"),
    ("name-esql-mqrfh2", "Root.MQRFH2.usr.Colour = 'red' AND Root.MQRFH2.psc.Topic = 'Stock/IBM'"),
    ("name-esql-compact-parser", "Root.MQRFH2C.usr.Colour = 'red'"),
    ("name-group", "account.owner.name = 'Ann'"),
    ("name-mqmd", "Root.MQMD.Priority >= 5"),
    ("name-jms-header", "JMSPriority BETWEEN 4 AND 6"),
    ("mqmd-text-unpadded", "Root.MQMD.Format = 'MQSTR'"),
    ("mqmd-text-padded", "Root.MQMD.Format = 'MQSTR   ' AND 'MQSTR   ' = Root.MQMD.Format"),
    ("mqmd-text-padded-in", "Root.MQMD.Format IN ('MQHRF2  ', 'MQSTR   ')"),
    ("mqmd-bytes", 'Root.MQMD.CorrelId = "0x000000000000000000000000000000000000000000000001"'),
    ("mqmd-identifier-of-a-jms-client", f"Root.MQMD.CorrelId = 'ID:{'0' * 46}01'"),
    ("mqmd-identifier-first", f"'ID:{'0' * 46}01' = Root.MQMD.CorrelId"),
    ("mqmd-identifier-filled-up-with-nulls", "Root.MQMD.MsgId = 'ID:414D51' AND Root.MQMD.MsgId = 'ID:414d5100'"),
    ("mqmd-identifier-unequal", "Root.MQMD.MsgId <> 'ID:414D52' AND Root.MQMD.MsgId <> 'ID:'"),
    ("mqmd-identifier-in", "Root.MQMD.MsgId IN ('ID:00', 'ID:414D51')"),
    ("mqrfh2-format", "Root.MQRFH2.Format = 'MQSTR' AND Root.MQRFH2.Format = 'MQSTR   '"),
    ("mqrfh2-format-compact-parser", "Root.MQRFH2C.Format LIKE 'MQ%'"),
    ("mqrfh2-number", "Root.MQRFH2.CodedCharSetId = 1208 AND Root.MQRFH2.Flags IS NULL"),
    ("jms-delivery-mode-of-a-jms-client", "Root.MQRFH2.jms.Dlv = 'PERSISTENT' AND jms.Dlv <> 'NON_PERSISTENT'"),
    ("jms-delivery-mode-in", "jms.Dlv IN ('PERSISTENT', 'NON_PERSISTENT') AND jms.Dlv = 2"),
    ("compare-literal-first", "42 = Size AND 41 < Size AND 43 >= Size AND 'red' = Colour"),
    ("compare-two-properties", "Size > Weight AND Colour <> Name"),
    ("compare-exact-with-approximate", "Size = 42.0 AND Weight > 2 AND Weight <> 2"),
    ("compare-two-literals", "1 < 2"),
    ("compare-booleans", "Urgent <> Cancelled AND Urgent <> FALSE"),
    ("boolean-property-alone", "Urgent"),
    ("boolean-property-negated", "NOT Cancelled"),
    ("boolean-literal-alone", "TRUE"),
    ("precedence-and-before-or", "TRUE OR FALSE AND FALSE"),
    ("precedence-not-before-and", "NOT Cancelled AND Urgent"),
    ("precedence-not-after-comparison", "NOT Size = 41"),
    ("precedence-parentheses", "NOT (Cancelled AND Urgent)"),
    ("arithmetic", "Size + 1 = 43 AND Size - 2 = 40 AND Size * 2 = 84 AND Weight / 2 = 1.25"),
    ("arithmetic-precedence", "2 + Size * 2 = 86 AND (2 + Size) * 2 = 88"),
    ("arithmetic-left-to-right", "Size - 2 - 1 = 39 AND 84 / Size / 2 = 1 AND 7 / 2 * 2 = 6"),
    ("arithmetic-exact-division-cut-off", "Size / 4 = 10 AND -Size / 4 = -10"),
    ("arithmetic-sign-of-property", "-Size = -42 AND +Size = 42"),
    ("arithmetic-without-white-space", "Size+1=43 AND Size-1=41"),
    ("between", "Size BETWEEN 42 AND 42 AND Size BETWEEN 40+1 AND 50"),
    ("between-then-and", "Size BETWEEN 1 AND 50 AND Colour = 'red'"),
    ("not-between", "Size NOT BETWEEN 1 AND 41"),
    ("between-empty-range", "Size NOT BETWEEN 50 AND 1"),
    ("in", "Colour IN ('green', 'red')"),
    ("not-in", "Colour NOT IN ('green', 'blue')"),
    ("like-percent", "Colour LIKE 'r%' AND Colour LIKE '%d' AND Colour LIKE '%e%' AND Colour LIKE 'red%'"),
    ("like-underscore", "Colour LIKE '_e_'"),
    ("like-exact", "Colour LIKE 'red'"),
    ("like-escape", "Percent LIKE '100!%!_s%' ESCAPE '!'"),
    ("like-escaped-escape", "Colour NOT LIKE '!!%' ESCAPE '!'"),
    ("like-escape-of-any-character", r"Percent LIKE '100\%\_s%' ESCAPE '\' AND Dot LIKE 'a..%' ESCAPE '.'"),
    ("like-quote", "Name LIKE 'O''%'"),
    ("like-regex-characters-are-plain", "Colour NOT LIKE '.*' AND Colour NOT LIKE '[r]ed'"),
    ("like-across-lines", "Lines LIKE 'one%two' AND Lines LIKE 'one_two'"),
    ("not-like", "Colour NOT LIKE 'b%'"),
    ("is-null", "Shape IS NULL AND Root.MQMD.ReplyToQ IS NULL"),
    ("is-not-null", "Colour IS NOT NULL"),
    ("unknown-or-true", "Shape = 'round' OR Size = 42"),
    ("not-false-and-unknown", "NOT (Size = 1 AND Shape = 'round')"),
    ("other-kind-negated", "NOT (Size = 'red') AND NOT (Size <> 'red') AND NOT (Key = 'red')"),
    ("other-kind-not-around-between", "NOT (Colour BETWEEN 1 AND 2)"),
    ("other-kind-alone-negated", "NOT Colour"),
    ("other-kind-order-of-strings-negated", "NOT Colour > Name AND NOT Colour <= Name"),
    ("blank", "   "),
    ("empty", ""),
]

DOES_NOT_SELECT = [
    ("false", "Colour = 'blue'"),
    ("case-of-values-counts", "Colour = 'Red'"),
    ("case-of-names-counts", "colour = 'red'"),
    ("blanks-in-properties-count", "Colour = 'red '"),
    ("unknown-property", "Shape = 'round'"),
    ("unknown-property-differs", "Shape <> 'round'"),
    ("unknown-negated", "NOT (Shape = 'round')"),
    ("unknown-in", "Shape IN ('round')"),
    ("unknown-not-in", "Shape NOT IN ('round')"),
    ("unknown-like", "Shape LIKE '%'"),
    ("unknown-not-like", "Shape NOT LIKE 'r%'"),
    ("unknown-between", "Depth BETWEEN 1 AND 9"),
    ("unknown-not-between", "Depth NOT BETWEEN 1 AND 9"),
    ("unknown-alone", "Shape"),
    ("unknown-alone-negated", "NOT Shape"),
    ("unknown-and-true", "Shape = 'round' AND Size = 42"),
    ("unknown-or-false", "Shape = 'round' OR Size = 1"),
    ("unknown-arithmetic", "Depth + 1 > 0 OR Depth * 0 = 0"),
    ("is-null-of-property", "Colour IS NULL"),
    ("is-not-null-of-unknown", "Shape IS NOT NULL"),
    ("string-is-no-number", "Digits = 42 OR Digits > 1 OR Digits <> 41"),
    ("number-is-no-string", "Size = '42'"),
    ("number-is-no-string-differs", "Size <> 'red'"),
    ("other-kind-in", "Size IN ('42') OR Urgent IN ('TRUE') OR Key IN ('0AFC23')"),
    ("other-kind-not-in", "Size NOT IN ('red') OR Urgent NOT IN ('red') OR Key NOT IN ('red')"),
    ("other-kind-in-negated", "NOT (Size IN ('red'))"),
    ("other-kind-like", "Size LIKE '4%' OR Urgent LIKE '%' OR Key LIKE '%'"),
    ("other-kind-not-like", "Size NOT LIKE 'r%' OR Urgent NOT LIKE 'r%' OR Key NOT LIKE 'r%'"),
    ("other-kind-like-negated", "NOT (Size LIKE 'r%')"),
    ("other-kind-is-false-but-null-is-unknown", "NOT (Shape = 1) OR NOT (1 = Shape)"),
    ("other-kind-between", "Colour BETWEEN 1 AND 2 OR Colour NOT BETWEEN 1 AND 2"),
    ("other-kind-alone", "Colour"),
    ("boolean-is-no-number", "Urgent = 1 OR Urgent <> 0 OR Urgent > 0"),
    ("number-is-no-boolean", "Size = TRUE OR Size <> TRUE"),
    ("bytes-are-no-string", "Key = '0AFC23' OR Key <> 'x'"),
    ("bytes-are-no-number", "Key = 0x0AFC23"),
    ("bytes-order-of-bytes-counts", 'Key = "0x23FC0A"'),
    ("strings-have-no-order", "Colour > Name OR Colour <= Name"),
    ("arithmetic-on-a-string", "Colour + 1 = 1 OR -Colour = 0 OR +Digits = 42"),
    ("arithmetic-on-a-boolean", "Urgent + 1 = 2 OR +Urgent = 1"),
    ("division-by-zero", "Size / 0 = 0 OR Size / 0 <> 0 OR Weight / 0.0 > 0"),
    ("exact-out-of-range", "Size * 9223372036854775807 > 0 OR Size * 9223372036854775807 <= 0"),
    ("approximate-out-of-range", "Weight * 1.7E308 > 0 OR Weight * 1.7E308 <= 0"),
    ("nan", "NotANumber = 1 OR NotANumber <> 1 OR NotANumber < 1 OR NOT NotANumber < 1"),
    ("like-escaped-character-is-plain", "Colour LIKE 'r..%' ESCAPE '.'"),
    ("like-whole-value", "Colour LIKE 're' OR Colour LIKE 'ed' OR Colour LIKE '__'"),
    ("like-runs-do-not-overlap", "Colour LIKE 'red%d' OR Colour LIKE '%re%ed%'"),
]
# fmt: on


@pytest.mark.parametrize("text", [pytest.param(text, id=f"2.4.3-{name}") for name, text in SELECTS])
def test_selects(text: str) -> None:
    assert compile_selector(text).matches(MESSAGE.get) is True


@pytest.mark.parametrize("text", [pytest.param(text, id=f"2.4.3-{name}") for name, text in DOES_NOT_SELECT])
def test_does_not_select(text: str) -> None:
    assert compile_selector(text).matches(MESSAGE.get) is False


@pytest.mark.parametrize("value", [41, 42, 43, 41.5, 42.0])
@pytest.mark.parametrize(
    ("operator", "holds"),
    [
        ("=", lambda value: value == 42),
        ("<>", lambda value: value != 42),
        ("<", lambda value: value < 42),
        ("<=", lambda value: value <= 42),
        (">", lambda value: value > 42),
        (">=", lambda value: value >= 42),
    ],
)
def test_comparison_of_numbers(operator: str, holds: Callable[[float], bool], value: float) -> None:
    """2.4.3: each operator, below, at and above, with a literal or a property, and under NOT."""
    properties = {"usr.a": value, "usr.limit": 42}
    for text in (f"a {operator} 42", f"a {operator} limit", f"NOT NOT a {operator} 42", f"a + 0 {operator} 42"):
        assert compile_selector(text).matches(properties.get) is holds(value), text
        assert compile_selector(f"NOT ({text})").matches(properties.get) is not holds(value), text


NAMES = [
    ("none", "TRUE", set[str]()),
    ("blank", " ", set[str]()),
    ("each-once", "a = 1 OR usr.a = 2 AND Root.MQRFH2.usr.a = 3", {"usr.a"}),
    ("everywhere", "a + b > c AND d IN ('1') AND e LIKE 'x' AND NOT f IS NULL AND g", {f"usr.{x}" for x in "abcdefg"}),
    ("mqmd", "Root.MQMD.MsgType = 8 AND JMSXUserID = 'x'", {"Root.MQMD.MsgType", "Root.MQMD.UserIdentifier"}),
    ("folders", "jms.Dst = 'x' OR MQPubLevel = 9 OR psc.Topic = 't'", {"jms.Dst", "mqps.Pbl", "psc.Topic"}),
    ("jms", "JMSMessageID = 'ID:00' OR JMSType = 'x'", {"JMSMessageID", "JMSType"}),
]


@pytest.mark.parametrize(("text", "names"), [pytest.param(t, n, id=f"2.4.3-{i}") for i, t, n in NAMES])
def test_names_are_what_a_selector_can_ask_for(text: str, names: set[str]) -> None:
    asked: set[str] = set()
    selector = compile_selector(text)

    def lookup(name: str) -> None:
        asked.add(name)

    selector.matches(lookup)
    assert selector.names == names
    assert asked <= names


def test_asks_for_nothing_once_the_answer_is_known() -> None:
    asked = []

    def lookup(name: str) -> Value | None:
        asked.append(name)
        return MESSAGE.get(name)

    assert compile_selector("Size = 42 OR Colour = 'red'").matches(lookup)
    assert not compile_selector("Size = 41 AND Colour = 'red' AND Weight > 0").matches(lookup)
    assert asked == ["usr.Size", "usr.Size"]


def test_equal_texts_are_compiled_once_and_equal() -> None:
    assert compile_selector("a = 1") is compile_selector("a = 1")
    assert compile_selector("a = 1") != compile_selector("a =  1")
    assert len({compile_selector("a = 1"), compile_selector("a = 2")}) == 2


def test_survives_pickling() -> None:
    selector = compile_selector("Colour = 'red'")
    again = pickle.loads(pickle.dumps(selector))
    assert again == selector
    assert again.names == selector.names
    assert again.matches(MESSAGE.get)


def test_patterns_of_many_runs_do_not_backtrack() -> None:
    """With plain ``.*`` this takes longer than a life."""
    selector = compile_selector("a LIKE '" + "%a" * 40 + "%b'")
    assert not selector.matches(lambda name: "a" * 5000)
    assert selector.matches(lambda name: "a" * 5000 + "b")


EARLIER = [
    ("numbers", "Size IN (-1, 42) AND Weight IN (2.5) AND Size NOT IN (43)", True),
    ("bytes", 'Key IN ("0x00", "0x0AFC23")', True),
    ("booleans", "Urgent NOT IN (FALSE)", True),
    ("another-kind", "Colour NOT IN (1)", False),
    ("a-filter-of-today", "Colour IN ('red')", True),
]


@pytest.mark.parametrize(("text", "is_selected"), [row[1:] for row in EARLIER], ids=[row[0] for row in EARLIER])
def test_the_filter_of_a_subscription_that_is_there_goes_on(text: str, is_selected: bool) -> None:
    selector = registered_selector(text)
    assert selector.matches(MESSAGE.get) is is_selected
    assert pickle.loads(pickle.dumps(selector)) == selector


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(" OR ".join(["a=0"] * 1400 + ["a=1"]), id="or-chain"),
        pytest.param(" AND ".join(["a=1"] * 1200), id="and-chain"),
        pytest.param("a" + "+a" * 4000 + " = 4001", id="arithmetic-chain"),
        pytest.param("a = 1 OR a IN ('0'" + ",'0'" * 2000 + ",'1')", id="list"),
        pytest.param("(" * 100 + "a=1" + ")" * 100, id="parentheses"),
        pytest.param("NOT " * 100 + "a=1", id="prefix-not"),
        pytest.param(" AND ".join(["NOT (a=0)", "-(-a)=1"] * 200), id="prefixes-side-by-side"),
        pytest.param("NOT (" * 50 + "a=1" + ")" * 50, id="not-and-parentheses"),
        pytest.param("-(" * 50 + "a" + ")" * 50 + "=1", id="signs-and-parentheses"),
        pytest.param("(b=1 OR a=1 AND " * 100 + "a=1" + ")" * 100, id="nested-chains"),
        pytest.param("1 = " + "(0 + " * 100 + "a" + ")" * 100, id="nested-arithmetic"),
        pytest.param("b='" + "x" * 10228 + "' OR a=1", id="as-long-as-allowed"),
    ],
)
def test_long_and_deep_strings_within_the_bounds(text: str) -> None:
    assert compile_selector(text).matches(lambda name: 1 if name == "usr.a" else None)
