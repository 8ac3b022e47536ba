"""Copies of what IBM MQ retains, through the stand-in: each becomes the command that publishes it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.config.settings import QueuesConfig
from commands.config.urls import parse_address
from commands.headers.registry import parse
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.tree import RETAIN
from commands.model import Publish
from commands.mqsc.script import Statement
from migrate import strmqbrk
from migrate.live.snapshot import Outcome, Row
from migrate.live.state_of import retained_copies, state_of
from migrate.plan import PlanOptions
from migrate.target import Target
from rfh2.message import decode
from rfh2.mqmd import Mqmd
from tests.commands.links.mqi.harness import needs_mqi, stand_in
from tests.migrate.legacy_messages import NOW
from tests.migrate.live.memory import MemoryAdministrator, memory
from tests.migrate.live.rigs import URL

STREAM = "DEFINE TOPIC('Sport') TOPICSTR('Sport')\nDEFINE QLOCAL('Sport')\n"
LIST = "ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, 'Sport')\n"


class Retains:
    """A queue manager that retains something on these topics."""

    where, qmgr = "queue manager QM1", "QM1"

    def __init__(self, administrator: MemoryAdministrator, topics: list[str]) -> None:
        self._administrator, self._topics = administrator, topics

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        if target == "TPSTATUS":
            return [{"TOPICSTR": topic, "RETAINED": "YES"} for topic in self._topics]
        return self._administrator.display(target, name, **scope)

    def run(self, statement: Statement) -> Outcome:
        raise AssertionError(statement.text)

    def close(self) -> None:
        return


@needs_mqi
@pytest.mark.servers
def test_copies_are_retained_again(tmp_path: Path) -> None:
    with stand_in(tmp_path):
        messages = MqMessages(parse_address(URL, "--queues"), QueuesConfig())
        assert retained_copies(messages) == {}
        for topic, data, persistence in (("Sport/Soccer", b"2:1", 1), ("News", b"today", 0)):
            md = Mqmd(version=2, format="MQSTR", coded_char_set_id=1208, persistence=persistence).encode()
            messages.connection.publish(topic, md, data, RETAIN)
        copies = retained_copies(messages)
        messages.close()
    assert copies.keys() == {"Sport/Soccer", "News"}
    for topic, data in (("Sport/Soccer", b"2:1"), ("News", b"today")):
        message = decode(copies[topic][1], copies[topic][0])
        command = parse(message)
        assert isinstance(command, Publish)
        assert (command.topics, message.body) == ((topic,), data)
    state = state_of(Retains(memory(STREAM + LIST), [*copies, "Other"]), NOW, None, copies)
    assert {(r.stream, r.topic, r.delivered) for r in state.retained} == {
        ("Sport", "Soccer", True),
        ("SYSTEM.BROKER.DEFAULT.STREAM", "News", True),
        ("SYSTEM.BROKER.DEFAULT.STREAM", "Other", False),
    }
    plan = strmqbrk.plan(state, Target.fresh("QM1"), PlanOptions(), NOW, rehearse=True)
    assert {step.retained.topic_string for step in plan.retained} == {"Sport/Soccer", "News"}
    (left,) = [fate for fate in plan.fates if fate.key[0] == "retained" and fate.verdict == "reported"]
    assert "Other" in left.label
