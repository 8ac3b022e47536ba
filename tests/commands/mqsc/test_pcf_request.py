"""A command of MQSC as PCF, and back: what a program asks for is what the command server reads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from commands.broker.objects import Objects, QueueManager
from commands.broker.selection import Selection
from commands.mqsc.administration import Administration
from commands.mqsc.execute import carry_out, execute
from commands.mqsc.pcf import writing
from commands.mqsc.pcf.client import replies, request
from commands.mqsc.pcf.reading import read
from commands.mqsc.script import parse
from rfh2.errors import CommandError
from rfh2.pcf import Pcf, decode_pcf
from streams.topic_space import TopicSpace

NOW = datetime(2026, 1, 2, tzinfo=UTC)

SCRIPT = """
DEFINE QLOCAL('Sport') DEFPSIST(YES) MAXDEPTH(100) DESCR('a stream')
DEFINE TOPIC('Sport') TOPICSTR('Sport') WILDCARD(BLOCK) DEFPRTY(ASPARENT)
ALTER TOPIC('Sport') PUB(DISABLED) DEFPRTY(3)
DEFINE NAMELIST(N) NAMES('Sport', SYSTEM.BROKER.DEFAULT.STREAM) DESCR('it''s')
ALTER NAMELIST(N) NAMES('')
DEFINE SUB('news') TOPICSTR('News/#') DEST(A.Q) DESTCORL(414D51) SUBUSER('anne') USERDATA('x y') EXPIRY(600) +
  REQONLY(YES) SUBSCOPE(QMGR) SELECTOR('a = 1') PUBPRTY(ASQDEF) SUBLEVEL(0) VARUSER(FIXED) WSCHEMA(TOPIC) PSPROP(RFH2)
ALTER SUB('news') USERDATA('')
ALTER QMGR PSMODE(COMPAT) PSRTYCNT(7) PSNPMSG(KEEP)
SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHADD(PUB, SUB)
SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHRMV(SUB)
SET AUTHREC PROFILE('A.**') OBJTYPE(QUEUE) GROUP('staff') AUTHADD(ALLMQI)
CLEAR TOPICSTR('News') CLRTYPE(RETAINED)
DELETE SUB('news')
DELETE TOPIC('Sport')
DELETE QLOCAL('Sport')
DELETE AUTHREC PROFILE('A.**') OBJTYPE(QUEUE) GROUP('staff')
PING QMGR
"""

DISPLAYS = [
    "DISPLAY QMGR ALL",
    "DISPLAY QLOCAL(*) ALL",
    "DISPLAY QUEUE('Sport') ALL",
    "DISPLAY QLOCAL('Sport') CURDEPTH",
    "DISPLAY TOPIC('Sport') ALL",
    "DISPLAY NAMELIST(*) ALL",
    "DISPLAY SUB(*) ALL",
    "DISPLAY SUB(*) SUBTYPE(ALL) ALL",
    "DISPLAY TPSTATUS('#') ALL",
    "DISPLAY PUBSUB TYPE(ALL) ALL",
    "DISPLAY AUTHREC ALL",
    "DISPLAY AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('anne') ALL",
]
# PCF has no parameter for the bridge's own keyword.
ONLY_MQSC = {"GROUPSUB"}


def administration() -> Administration:
    objects = Objects(QueueManager("QM1"))
    return Administration.of(objects, TopicSpace(objects.topics, Selection()), NOW)


def served(pcf: Pcf, on: Administration) -> list[Pcf]:
    """The responses of the command server, through bytes."""
    asked = read(decode_pcf(pcf.encode()), on.objects)
    answers = [carry_out(command, on) for command in asked.commands]
    assert all(answer.ok for answer in answers), answers
    made = writing.success(pcf.command, asked.about, answers[-1].found, pcf.order)
    return [decode_pcf(each.encode()) for each in made]


def test_a_script_as_pcf_makes_what_the_script_makes() -> None:
    one, other = administration(), administration()
    for statement in parse(SCRIPT):
        assert statement.command is not None
        assert execute(statement, one).ok, statement.text
        found = replies(served(request(statement.command), other))
        assert (found.reason, found.rows) == (0, ()), statement.text
        for display in DISPLAYS:
            (asked,) = parse(display)
            assert execute(asked, one).objects == execute(asked, other).objects, (statement.text, display)


@pytest.mark.parametrize("display", DISPLAYS)
def test_the_rows_of_replies_are_those_of_display(display: str) -> None:
    on = administration()
    for statement in parse(SCRIPT)[:11]:
        assert execute(statement, on).ok
    (asked,) = parse(display)
    assert asked.command is not None
    expected = [
        {key: value for key, value in row.items() if key not in ONLY_MQSC} for row in execute(asked, on).objects
    ]
    found = [dict(row) for row in replies(served(request(asked.command), on)).rows]
    # A name in a list of names is as long as names are; a reply says the same without the blanks.
    assert found == expected


REFUSED = [
    ("DISPLAY TOPIC(*) WHERE(PUB EQ ENABLED)", "WHERE"),
    ("DEFINE TOPIC(T) TOPICSTR('T') MCAST(ENABLED)", "MCAST"),
    ("DEFINE SUB(S) TOPICSTR('T') DEST(Q) GROUPSUB(YES)", "GROUPSUB"),
    ("ALTER QMGR PSMODE(OTHER)", "PSMODE(OTHER)"),
    ("REFRESH QMGR TYPE(PROXYSUB)", "REFRESH QMGR"),
    ("START LISTENER(L)", "START LISTENER"),
]


@pytest.mark.parametrize(("text", "named"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_has_no_parameter_is_refused_and_not_left_out(text: str, named: str) -> None:
    (statement,) = parse(text)
    assert statement.command is not None
    with pytest.raises(CommandError) as refused:
        request(statement.command)
    assert named in str(refused.value)


def test_the_first_reason_of_a_failure_is_its_reason() -> None:
    failed = CommandError(4005, why="no such value", tags=(("ParmId", "1086"),))
    found = replies(decode_pcf(each.encode()) for each in writing.failure(155, failed, "big"))
    assert (found.reason, found.parameter, found.rows) == (4005, 1086, ())
    alone = writing.failure(155, CommandError(3008), "little")
    assert replies(alone).reason == 3008
