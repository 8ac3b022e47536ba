"""``qpubsub export``: the script makes the same again; what other brokers get, and what is lost there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hypothesis import given, strategies as st

from commands.broker.objects import Objects, QueueManager
from commands.broker.selection import Selection
from commands.mqsc.administration import Administration
from commands.mqsc.execute import execute
from commands.mqsc.export import exported
from commands.mqsc.script import parse
from streams.topic_space import TopicSpace
from tests.commands.cli_runs import run
from tests.commands.mqsc.test_mqsc_any import commands

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DISPLAYS = [
    f"DISPLAY {target} ALL"
    for target in ("QMGR", "QUEUE(*)", "TOPIC(*)", "NAMELIST(*)", "CHANNEL(*)", "CHLAUTH(*)", "AUTHINFO(*)", "AUTHREC")
] + ["DISPLAY LISTENER(*) ALL", "DISPLAY SUB(*) SUBTYPE(ALL) ALL"]
# Of each subscription by itself, whoever defines it.
OWN = ("SUBID", "DESTCORL", "CRDATE", "CRTIME", "SUBUSER")

EXAMPLE = """
ALTER QMGR PSRTYCNT(7) DESCR('it''s') DEADQ(D.Q)
DEFINE QLOCAL(D.Q) MAXDEPTH(100) NOSHARE
DEFINE QLOCAL('Mixed') DESCR('a + b -') PUT(DISABLED)
DEFINE QALIAS(AL) TARGET('Sport') TARGTYPE(TOPIC)
DEFINE QMODEL(M.Q) DEFTYPE(PERMDYN)
DEFINE NAMELIST(N) NAMES('Sport', B)
DEFINE TOPIC('Sport') TOPICSTR('Sport') WILDCARD(BLOCK) DEFPRTY(3)
DEFINE CHANNEL(APP) CHLTYPE(SVRCONN) MCAUSER('app') MAXINST(5)
SET CHLAUTH(APP) TYPE(ADDRESSMAP) ADDRESS('10.*') USERSRC(MAP) MCAUSER('anne')
SET CHLAUTH('*') TYPE(BLOCKUSER) USERLIST('nobody', '*MQADMIN') ACTION(REPLACE)
SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHADD(PUB, SUB)
SET AUTHREC OBJTYPE(QMGR) GROUP('staff') AUTHADD(CONNECT, DSP)
DEFINE SUB('one') TOPICSTR('Sport/+/Score') DEST('Mixed') SELECTOR('Colour = ''red''') USERDATA('x y')
DEFINE SUB('two') TOPICSTR('News/#') DEST('Mixed') SUBLEVEL(3) REQONLY(YES)
DEFINE SUB('three') TOPICSTR('a*c?') WSCHEMA(CHAR) DEST(D.Q)
DEFINE SUB('four') TOPICSTR('v1.2/x') DEST(D.Q)
DEFINE SUB('five') TOPICSTR('Weather') DEST(D.Q) DESTQMGR(ELSEWHERE)
"""


def _administration() -> Administration:
    objects = Objects(QueueManager("QM1"))
    return Administration.of(objects, TopicSpace(objects.topics, Selection()), NOW, user="u")


def _rows(on: Administration) -> list[list[dict[str, Any]]]:
    found = []
    for display in DISPLAYS:
        (asked,) = parse(display)
        rows = [{key: value for key, value in row.items() if key not in OWN} for row in execute(asked, on).objects]
        found.append(sorted(rows, key=str))
    return found


def _again(on: Administration) -> Administration:
    """Another queue manager, made by the script that is exported."""
    script = "\n".join(exported(on.objects, on.topic_space.subscriptions(), NOW))
    made = _administration()
    for statement in parse(script):
        answer = execute(statement, made)
        assert answer.ok, (statement.text, answer.lines)
    return made


def test_the_script_makes_the_same_again() -> None:
    on = _administration()
    for statement in parse(EXAMPLE):
        answer = execute(statement, on)
        assert answer.ok, (statement.text, answer.lines)
    assert _rows(_again(on)) == _rows(on)


@given(st.lists(commands(), max_size=30))
def test_whatever_is_defined_is_made_again(texts: list[str]) -> None:
    on = _administration()
    for text in texts:
        for statement in parse(text):
            if statement.command is not None and statement.command.verb in ("DEFINE", "ALTER", "SET"):
                execute(statement, on)
    assert _rows(_again(on)) == _rows(on)


def _made(home: Path) -> tuple[str, ...]:
    words = ("-m", "QM1", "--home", str(home))
    assert run("create", "QM1", "--home", str(home)).code == 0
    ran = run("mqsc", *words, stdin=EXAMPLE)
    assert ran.code == 0, ran.out
    return words


LOST = {
    "three": "wildcards of characters",
    "four": "a dot or an asterisk",
    "five": "ELSEWHERE",
    "authority records": "2 ",
    "alias queue AL": "",
    "model queue M.Q": "",
    "topic object Sport": "",
}


def test_rabbitmq_gets_queues_and_bindings_and_the_rest_is_named(tmp_path: Path) -> None:
    words = _made(tmp_path)
    ran = run("export", *words, "--to", "rabbitmq", "--json")
    assert ran.code == 1
    found = json.loads(ran.out)
    made = json.loads(found["text"])
    queues = {queue["name"]: queue["arguments"] for queue in made["queues"]}
    assert queues["D.Q"] == {"x-queue-type": "quorum", "x-max-length": 100, "x-overflow": "reject-publish"}
    assert {(each["destination"], each["routing_key"]) for each in made["bindings"]} == {
        ("Mixed", "Sport.*.Score"),
        ("Mixed", "News.#"),
    }
    for name, why in (LOST | {"one": "selection string"}).items():
        assert any(name in each and why in each for each in found["lost"]), name
        assert name in ran.talk


def test_artemis_gets_addresses_with_filters(tmp_path: Path) -> None:
    words = _made(tmp_path)
    found = json.loads(run("export", *words, "--to", "artemis", "--json").out)
    root = ElementTree.fromstring(found["text"])
    multicast = {address.attrib["name"]: address.find("multicast/queue") for address in root}
    one, two = multicast["Sport.*.Score"], multicast["News.#"]
    assert one is not None
    assert two is not None
    assert {one.attrib["name"], two.attrib["name"]} == {"Mixed", "Mixed.2"}
    selects = one.find("filter")
    assert selects is not None
    assert selects.attrib["string"] == "Colour = 'red'"
    for name, why in (LOST | {"Mixed.2": "must read too", "MAXDEPTH(100)": ""}).items():
        assert any(name in each and why in each for each in found["lost"]), name


def test_the_verb_prints_a_script_that_the_verb_mqsc_runs(tmp_path: Path) -> None:
    words = _made(tmp_path / "one")
    ran = run("export", *words)
    assert ran.code == 0, ran.talk
    assert run("create", "QM1", "--home", str(tmp_path / "two")).code == 0
    again = run("mqsc", "-m", "QM1", "--home", str(tmp_path / "two"), stdin=ran.out)
    assert again.code == 0, again.out
    second = run("export", "-m", "QM1", "--home", str(tmp_path / "two"))
    assert second.out.splitlines()[1:] == ran.out.splitlines()[1:]
