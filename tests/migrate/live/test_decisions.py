"""What becomes of each statement of a plan, given what the queue manager has, and what takes it back."""

from __future__ import annotations

import pytest

from commands.mqsc.script import parse
from migrate.live.decisions import altered_later, decide, follow, key_of
from migrate.live.snapshot import names, read_live, statement_of
from tests.migrate.live.memory import MemoryAdministrator, memory

SCRIPT = """
DEFINE QLOCAL('A.Q')
DEFINE TOPIC('Sport') TOPICSTR('Sport') WILDCARD(BLOCK) DESCR('it''s')
DEFINE TOPIC('News') TOPICSTR('News') DEFPRTY(3) PUB(DISABLED)
DEFINE NAMELIST(N) NAMES('A', 'B')
DEFINE NAMELIST(QPUBSUB.MIGRATION.STRMQBRK) NAMES('X', 'Y')
DEFINE SUB('s') TOPICSTR('News') DEST(A.Q) SUBUSER('anne') EXPIRY(6000)
SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHADD(PUB)
"""
THERE = (False, "", "")

CASES = [
    ("queue", "DEFINE QLOCAL('B.Q') DEFPSIST(YES)", (True, "", "DELETE QLOCAL('B.Q')")),
    ("queue-there", "DEFINE QLOCAL('A.Q') MAXDEPTH(1)", THERE),
    ("topic", "DEFINE TOPIC('T') TOPICSTR('T')", (True, "", "DELETE TOPIC('T')")),
    ("topic-there", "DEFINE TOPIC('Sport') TOPICSTR('Sport') WILDCARD(BLOCK)", THERE),
    (
        "topic-differs",
        "DEFINE TOPIC('Sport') TOPICSTR('Sport') PUB(DISABLED)",
        (False, "TOPIC Sport exists and differs: PUB is (ASPARENT), planned (DISABLED)", ""),
    ),
    ("namelist-order", "DEFINE NAMELIST(N) NAMES('B', 'A')", THERE),
    ("namelist-less", "DEFINE NAMELIST(N) NAMES('A')", THERE),
    (
        "namelist-differs",
        "DEFINE NAMELIST(N) NAMES('A', 'C')",
        (False, "NAMELIST N exists and differs: NAMES is (A,B), planned (A,C)", ""),
    ),
    ("namelist-same", "ALTER NAMELIST(N) NAMES('B', 'A')", THERE),
    ("namelist-others", "ALTER NAMELIST(N) NAMES('A')", THERE),
    (
        "marker",
        "ALTER NAMELIST(QPUBSUB.MIGRATION.STRMQBRK) NAMES('X', 'Z')",
        (True, "", "ALTER NAMELIST('QPUBSUB.MIGRATION.STRMQBRK') NAMES('X', 'Y')"),
    ),
    ("no-namelist", "ALTER NAMELIST(X) NAMES('A')", (False, "NAMELIST X is not there: an earlier step makes it", "")),
    ("qmgr", "ALTER QMGR PSMODE(DISABLED) PSRTYCNT(7)", (True, "", "ALTER QMGR PSMODE(ENABLED) PSRTYCNT(5)")),
    ("qmgr-parent", "ALTER QMGR PARENT(QM2)", (True, "", "ALTER QMGR PARENT(' ')")),
    ("qmgr-same", "ALTER QMGR PSMODE(ENABLED)", THERE),
    ("sub", "DEFINE SUB('t') TOPICSTR('News') DEST(A.Q)", (True, "", "DELETE SUB('t')")),
    ("sub-there", "DEFINE SUB('s') TOPICSTR('News') DEST(A.Q) SUBUSER('anne') EXPIRY(9)", THERE),
    (
        "sub-differs",
        "DEFINE SUB('s') TOPICSTR('News') DEST(B.Q)",
        (False, "SUB s exists and differs: DEST is (A.Q), planned (B.Q)", ""),
    ),
    ("sub-replaced", "DEFINE SUB('s') TOPICSTR('News') DEST(B.Q) REPLACE", (True, "", "")),
    (
        "record",
        "SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('fred') AUTHADD(SUB)",
        (True, "", "DELETE AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('fred')"),
    ),
    (
        "record-more",
        "SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHADD(PUB,SUB)",
        (True, "", "SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHRMV(SUB)"),
    ),
    ("record-there", "SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHADD(PUB)", THERE),
    ("record-all", "SET AUTHREC PROFILE('A.Q') OBJTYPE(QUEUE) GROUP('g') AUTHADD(ALLMQI)", (True, "", None)),
    ("delete-missing", "DELETE TOPIC('T')", THERE),
    ("delete", "DELETE TOPIC('News')", (True, "", None)),
]


@pytest.mark.parametrize(("text", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_decisions(text: str, expected: tuple[bool, str, str | None]) -> None:
    """And what takes a statement back gives the queue manager as it was."""
    administrator = memory(SCRIPT)
    before = read_live(administrator)
    decision = decide(statement_of(text), before)
    send, refused, undo = expected
    assert (decision.send, decision.refused) == (send, refused)
    if undo is not None:
        assert decision.undo == undo
    if not decision.send:
        return
    assert administrator.run(statement_of(text)).ok
    if decision.undo:
        assert administrator.run(statement_of(decision.undo)).ok, decision.undo
        assert read_live(administrator) == before
    else:
        assert decision.left


NAMES = [
    ("added", "NAMES('A', 'C')", (), "A B C"),
    ("known-and-gone", "NAMES('A', 'OLD', 'C')", ("A", "OLD"), "A B C"),
    ("known-and-gone-alone", "NAMES('A', 'OLD')", ("A", "OLD"), "A B"),
    ("by-hand", "NAMES('A', 'MINE', 'C')", ("A",), "A B MINE C"),
    ("description-alone", "NAMES('A') DESCR('mine')", (), "A B"),
]


@pytest.mark.parametrize(("given", "known", "after"), [n[1:] for n in NAMES], ids=[n[0] for n in NAMES])
def test_6_5_4_names_are_added_to_a_namelist(given: str, known: tuple[str, ...], after: str) -> None:
    """What others have put there stays, in its order."""
    administrator = memory(SCRIPT)
    decision = decide(statement_of(f"ALTER NAMELIST(N) {given}"), read_live(administrator), (), known)
    if decision.send:
        assert administrator.run(statement_of(decision.instead)).ok
    assert _names(administrator) == [*after.split()]


def test_a_script_that_adds_twice_adds_both() -> None:
    live = read_live(memory(SCRIPT))
    for name in "CD":
        decision = decide(statement_of(f"ALTER NAMELIST(N) NAMES('A', '{name}')"), live)
        follow(statement_of(decision.instead), live)
    assert decision.instead == "ALTER NAMELIST('N') NAMES('A', 'B', 'C', 'D')"


def _names(administrator: MemoryAdministrator) -> list[str]:
    (row,) = administrator.display("NAMELIST", "N")
    return [*names(row, "NAMES")]


def test_authority_records_that_go_with_their_object_are_named() -> None:
    decision = decide(statement_of("DELETE TOPIC('Sport')"), read_live(memory(SCRIPT)))
    assert decision.left == "authority records of Sport went with it: TOPIC Sport PRINCIPAL anne"


def test_a_statement_that_is_none() -> None:
    (statement,) = parse("DEFINE (")
    assert "AMQ84" in decide(statement, read_live(memory(""))).refused


PAIR = """
DEFINE SUB('new') TOPICSTR('News') DEST(A.Q) REQONLY(YES)
ALTER SUB('new') REQONLY(NO)
"""


@pytest.mark.rule("MIG-35")
@pytest.mark.parametrize(("before", "sent"), [("", [1, 1]), ("YES", [0, 1]), ("NO", [0, 0])])
def test_4_8_2_a_subscription_that_is_defined_and_altered(before: str, sent: list[int]) -> None:
    """A run that was killed before, between or after the two commands goes on; nothing is read in between."""
    made = f"DEFINE SUB('new') TOPICSTR('News') DEST(A.Q) REQONLY({before})\n" if before else ""
    administrator = memory(SCRIPT + made)
    live, statements = read_live(administrator), parse(PAIR)
    later = altered_later(statements)
    decisions = []
    for statement in statements:
        decision = decide(statement, live, later.get(key_of(statement) or ("", ""), ()))
        assert not decision.refused
        decisions.append(int(decision.send))
        if decision.send:
            assert administrator.run(statement).ok
            follow(statement, live)
    assert decisions == sent
    (row,) = [row for row in administrator.display("SUB", "*") if row["SUB"] == "new"]
    assert row["REQONLY"] == "NO"
