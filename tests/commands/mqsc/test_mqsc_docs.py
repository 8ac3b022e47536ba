"""docs/mqsc.md keeps its word: every message number is listed there, and its example is what is printed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from commands.broker.objects import Objects, QueueManager
from commands.mqsc.administration import Administration
from commands.mqsc.execute import ScriptTally, echo, execute
from commands.mqsc.script import parse
from streams import TopicSpace

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "mqsc.md").read_text()
_NUMBER = re.compile(r"AMQ\d{4}")


def test_every_message_number_is_listed() -> None:
    used = {
        number for path in (ROOT / "commands" / "mqsc").glob("*.py") for number in _NUMBER.findall(path.read_text())
    }
    assert set(_NUMBER.findall(DOCUMENT)) == used


def test_the_example_is_what_is_printed() -> None:
    session = re.findall(r"```\n\$ qpubsub mqsc -m QM1\n(.*?)```", DOCUMENT, re.DOTALL)[0].splitlines()
    typed = [line.partition(" : ")[2] for line in session if re.match(r" +\d+ : ", line)]
    objects = Objects(QueueManager("QM1"))
    administration = Administration.of(objects, TopicSpace(objects.topics), datetime(2026, 1, 1, tzinfo=UTC))
    printed, tally = [], ScriptTally()
    for statement in parse("\n".join(typed)):
        answer = execute(statement, administration)
        tally.count(answer)
        printed += [statement.text, *echo(statement), *answer.lines]
    assert session == [*printed, "end", *tally.lines]
