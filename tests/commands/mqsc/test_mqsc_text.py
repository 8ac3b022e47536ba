"""MQSC as text: lines to commands, commands to statements, and where it says a statement is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from commands.mqsc.script import (
    Command,
    Condition,
    Keyword,
    Statement,
    Value,
    lines_of,
    parse,
    split_script,
    statements,
)


def _commands(text: str) -> list[str]:
    return [command.text.strip() for command in split_script(lines_of(text))]


JOINED = [
    ("one-line-one-command", "DEFINE QLOCAL(A)\nDEFINE QLOCAL(B)\n", ["DEFINE QLOCAL(A)", "DEFINE QLOCAL(B)"]),
    ("last-line-without-end", "PING QMGR", ["PING QMGR"]),
    ("crlf-and-cr", "PING QMGR\r\nPING QMGR\rPING QMGR", ["PING QMGR"] * 3),
    ("byte-order-mark", "\ufeffPING QMGR", ["PING QMGR"]),
    ("blank-lines", "\n  \nPING QMGR\n\t\n", ["PING QMGR"]),
    ("comment-in-column-1", "* PING QMGR\nPING QMGR", ["PING QMGR"]),
    ("comment-indented", "   * PING QMGR +\nPING QMGR", ["PING QMGR"]),
    ("plus-drops-leading-blanks", "DEFINE +\n   QLOCAL(A)", ["DEFINE QLOCAL(A)"]),
    ("minus-keeps-leading-blanks", "DEFINE-\n QLOCAL(A)", ["DEFINE QLOCAL(A)"]),
    ("plus-inside-quotes", "DEFINE TOPIC(A) TOPICSTR('Fr+\n   ed')", ["DEFINE TOPIC(A) TOPICSTR('Fred')"]),
    ("minus-inside-quotes", "DEFINE TOPIC(A) TOPICSTR('Fr-\ned')", ["DEFINE TOPIC(A) TOPICSTR('Fred')"]),
    ("minus-inside-quotes-blanks", "X('a-\n  b')", ["X('a  b')"]),
    ("mark-before-trailing-blanks", "DEFINE +  \nQLOCAL(A)", ["DEFINE QLOCAL(A)"]),
    ("plus-as-a-level", "DEFINE SUB(S) TOPICSTR('a/+') DEST(Q)", ["DEFINE SUB(S) TOPICSTR('a/+') DEST(Q)"]),
    ("blank-line-in-a-command", "DEFINE +\n\nQLOCAL(A)", ["DEFINE QLOCAL(A)"]),
    ("comment-in-a-command", "DEFINE +\n* no\nQLOCAL(A)", ["DEFINE QLOCAL(A)"]),
    ("asterisk-as-a-value", "DISPLAY TOPIC( +\n  *)", ["DISPLAY TOPIC( *)"]),
    ("semicolon", "PING QMGR;", ["PING QMGR"]),
    ("semicolon-after-plus", "PING QMGR +\n;\nPING QMGR", ["PING QMGR", "PING QMGR"]),
    ("semicolon-between", "PING QMGR; DISPLAY QMGR", ["PING QMGR", "DISPLAY QMGR"]),
    ("semicolon-in-quotes", "DEFINE TOPIC(A) DESCR('a;b')", ["DEFINE TOPIC(A) DESCR('a;b')"]),
    ("end", "PING QMGR\nend\nPING QMGR", ["PING QMGR"]),
    ("quit", "  QUIT  \nPING QMGR", []),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in JOINED], ids=[case[0] for case in JOINED])
def test_lines_become_commands(text: str, expected: list[str]) -> None:
    assert _commands(text) == expected


def test_a_command_knows_its_first_line_and_its_source() -> None:
    first, second = split_script(lines_of("* c\nDEFINE +\n  QLOCAL(A)\n\nPING QMGR"))
    assert (first.line, first.source) == (2, ("DEFINE +", "  QLOCAL(A)"))
    assert (second.line, second.source) == (5, ("PING QMGR",))


def test_a_statement_comes_as_soon_as_its_last_line_has() -> None:
    typed: list[str] = []

    def terminal() -> object:
        for line in ("PING +\n", "QMGR\n", "DISPLAY QMGR\n"):
            typed.append(line)
            yield line

    first = next(statements(terminal()))  # type: ignore[arg-type]
    assert first.text == "PING QMGR"
    assert typed == ["PING +\n", "QMGR\n"]


def test_a_continuation_with_nothing_after_it_is_not_carried_out() -> None:
    [statement] = parse("DEFINE QLOCAL(A) +\n")
    assert statement.command is None
    assert statement.error is not None
    assert statement.error.amq == "AMQ8406"


# Breaking a command anywhere, in either way, must not change it.
@given(
    text=st.text(st.sampled_from("ab 'x/#(),"), min_size=1, max_size=30).map(lambda t: f"D{t}E"),
    breaks=st.lists(st.integers(1, 29), max_size=4),
    mark=st.sampled_from("+-"),
)
def test_a_break_changes_nothing(text: str, breaks: list[int], mark: str) -> None:
    places = sorted({b for b in breaks if b < len(text) and (mark == "-" or text[b] != " ")})
    # A line of blanks alone would be passed over, and one beginning with an asterisk would be a comment.
    parts = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    if any(not part.strip() for part in parts):
        return
    broken = f"{mark}\n".join(parts)
    assert [c.text for c in split_script([*broken.split("\n")])] == [text]


def _only(text: str) -> Statement:
    [statement] = parse(text)
    return statement


PARSED = [
    (
        "unquoted-folds-quoted-keeps",
        "define topic('Sport') TOPICSTR(Sport) descr('It''s')",
        Command(
            "DEFINE",
            "TOPIC",
            Value("Sport", quoted=True),
            (
                Keyword("TOPICSTR", (Value("SPORT", quoted=False, folded=True),)),
                Keyword("DESCR", (Value("It's", quoted=True),)),
            ),
        ),
    ),
    (
        "blanks-and-commas-anywhere",
        "DEF , QL ( 'Account' ),, MAXDEPTH ( 1 )",
        Command("DEFINE", "QLOCAL", Value("Account", quoted=True), (Keyword("MAXDEPTH", (Value("1", quoted=False),)),)),
    ),
    (
        "list-of-names",
        "ALT NL(N) NAMES('Sport', B C)",
        Command(
            "ALTER",
            "NAMELIST",
            Value("N", quoted=False),
            (Keyword("NAMES", (Value("Sport", quoted=True), Value("B", quoted=False), Value("C", quoted=False))),),
        ),
    ),
    (
        "where",
        "dis sub(*) where(dest lk 'SYS*') all",
        Command(
            "DISPLAY",
            "SUB",
            Value("*", quoted=False),
            (Keyword("ALL", None),),
            Condition("DEST", "LK", (Value("SYS*", quoted=True),)),
        ),
    ),
    ("no-name", "DIS QMGR PSMODE", Command("DISPLAY", "QMGR", None, (Keyword("PSMODE", None),))),
    ("empty-string", "ALTER QMGR PARENT('')", Command("ALTER", "QMGR", None, (Keyword("PARENT", (Value("", True),)),))),
    ("short-forms", "DIS TPS('#')", Command("DISPLAY", "TPSTATUS", Value("#", quoted=True))),
    (
        "double-quotes-as-in-guide-3.1.2",
        'ALTER TOPIC ("SYSTEM.BASE.TOPIC") PROXYSUB (FORCE)',
        Command(
            "ALTER",
            "TOPIC",
            Value("SYSTEM.BASE.TOPIC", quoted=True),
            (Keyword("PROXYSUB", (Value("FORCE", quoted=False),)),),
        ),
    ),
    ("where-is-a-word-too", "DIS Q(WHERE)", Command("DISPLAY", "QUEUE", Value("WHERE", quoted=False))),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in PARSED], ids=[case[0] for case in PARSED])
def test_commands_parse(text: str, expected: Command) -> None:
    assert _only(text).command == expected


WRONG = [
    ("unknown-verb", "NONSENSE", "AMQ8405", "NONSENSE"),
    ("defi-is-no-synonym", "DEFI QLOCAL(A)", "AMQ8405", "DEFI"),
    ("delete-has-no-synonym", "DEL QLOCAL(A)", "AMQ8405", "DEL"),
    ("verb-alone", "DEFINE", "AMQ8405", "DEFINE"),
    ("parenthesis-not-closed", "DEFINE QLOCAL(A", "AMQ8405", "DEFINE QLOCAL(A"),
    ("parenthesis-too-many", "DEFINE QLOCAL(A))", "AMQ8405", "DEFINE QLOCAL(A))"),
    ("parenthesis-inside", "DEFINE QLOCAL(A(B))", "AMQ8405", "DEFINE QLOCAL(A("),
    ("quote-not-closed", "DEFINE QLOCAL('A)", "AMQ8405", "DEFINE QLOCAL('A)"),
    ("two-names", "DEFINE QLOCAL(A B)", "AMQ8405", "DEFINE QLOCAL(A B"),
    ("no-name-in-parentheses", "DEFINE QLOCAL()", "AMQ8405", "DEFINE QLOCAL("),
    ("value-where-a-keyword-belongs", "DEFINE QLOCAL(A) 'x'", "AMQ8405", "DEFINE QLOCAL(A) 'x'"),
    ("where-without-operator", "DISPLAY SUB(*) WHERE(DEST)", "AMQ8405", "DISPLAY SUB(*) WHERE(DEST)"),
    ("where-unknown-operator", "DISPLAY SUB(*) WHERE(DEST XX A)", "AMQ8405", "DISPLAY SUB(*) WHERE(DEST XX"),
    ("keyword-twice", "DEFINE QLOCAL(A) REPLACE REPLACE", "AMQ8411", None),
    ("where-twice", "DISPLAY Q(*) WHERE(A EQ B) WHERE(C EQ D)", "AMQ8411", None),
]


@pytest.mark.parametrize(("text", "amq", "segment"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_wrong_is_an_item_with_its_error(text: str, amq: str, segment: str | None) -> None:
    before, wrong, after = parse(f"PING QMGR\n{text}\nDISPLAY QMGR")
    assert (before.command, after.command) != (None, None)
    assert (wrong.number, wrong.line, wrong.command) == (2, 2, None)
    assert wrong.error is not None
    assert wrong.error.amq == amq
    if segment is not None:
        assert wrong.error.detail[0] == segment


@given(st.text(max_size=120))
def test_any_text_is_statements(text: str) -> None:
    for statement in parse(text):
        assert (statement.command is None) == (statement.error is not None)


# What is written in quotes comes back exactly, whatever it is.
@given(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=40))
def test_quoted_text_comes_back(text: str) -> None:
    quoted = text.replace("'", "''")
    [statement] = parse(f"DEFINE TOPIC(A) DESCR('{quoted}')")
    assert statement.command is not None
    keyword = statement.command.keyword("DESCR")
    assert keyword == Keyword("DESCR", (Value(text, quoted=True),))
