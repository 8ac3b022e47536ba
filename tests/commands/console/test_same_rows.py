"""The same question, by MQSC, PCF, REST and the console's pages: the same rows, whatever is defined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, strategies as st
from starlette.testclient import TestClient

from commands.broker.attribute_kinds import SWITCHES
from commands.broker.authority import no_groups
from commands.broker.objects import QueueManager
from commands.console import queues
from commands.console.source import History, Query, State
from commands.mqsc.pcf.client import replies, request
from commands.mqsc.script import parse
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.listing import Listing, TopicLevels
from commands.running.mqsc_scripts import runner_of
from tests.commands.console.places import opened
from tests.commands.mqsc.pcf_desk import Desk
from tests.commands.mqsc.test_mqsc_any import commands
from tests.examples import FEW

Row = dict[str, Any]
QUESTIONS = {
    "QMGR": "DISPLAY QMGR ALL",
    "QUEUE": "DISPLAY QUEUE(*) ALL",
    "TOPIC": "DISPLAY TOPIC(*) ALL",
    "NAMELIST": "DISPLAY NAMELIST(*) ALL",
    "SUB": "DISPLAY SUB(*) SUBTYPE(ALL) ALL",
    "CHANNEL": "DISPLAY CHANNEL(*) ALL",
    "CHLAUTH": "DISPLAY CHLAUTH(*) ALL",
    "AUTHREC": "DISPLAY AUTHREC ALL",
}
# PCF has no parameter for the bridge's own keywords; the depth changes by asking: question and answer are messages.
LEFT_OUT = frozenset({"GROUPSUB", "CURDEPTH"})
MQSC = "/ibmmq/rest/v2/admin/action/qmgr/QM1/mqsc"


@dataclass(frozen=True)
class Asked:
    """One queue manager, asked in each way."""

    store: QueueManagerStore
    client: TestClient

    def mqsc(self, question: str) -> list[Row]:
        ((_, answer),) = runner_of(self.store, no_groups).run(parse(question))
        return [dict(row) for row in answer.objects]

    def pcf(self, question: str) -> list[Row]:
        (statement,) = parse(question)
        assert statement.command is not None
        desk = Desk(self.store)
        desk.now = datetime.now(UTC)
        found = replies(reply.pcf for reply in desk.put(request(statement.command).encode()))
        return [dict(row) for row in found.rows]

    def rest(self, question: str) -> list[Row]:
        """By both forms of the body, which say the same."""
        (statement,) = parse(question)
        command = statement.command
        assert command is not None
        body: dict[str, Any] = {"type": "runCommandJSON", "command": "display", "qualifier": command.target.lower()}
        body |= {"responseParameters": ["all"]} | ({} if command.name is None else {"name": command.name.text})
        body["parameters"] = {k.name.lower(): k.values[0].text for k in command.keywords if k.values}
        rows = [each["parameters"] for each in self._posted(body) if "parameters" in each]
        lines = self._posted({"type": "runCommand", "parameters": {"command": question}})
        assert len([each for each in lines if not each["completionCode"]]) == len(rows)
        return [{key.upper(): _shown(key.upper(), value) for key, value in row.items()} for row in rows]

    def _posted(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        answer = self.client.post(MQSC, headers={"ibm-mq-rest-csrf-token": "x"}, json=body)
        found: list[dict[str, Any]] = answer.json()["commandResponse"]
        return found

    def pages(self) -> tuple[set[str], set[tuple[str, str, str, str]]]:
        """The queues, and the subscriptions with topic string, queue, user and identifier, of the console."""
        listing = Listing(self.store)
        state = State(self.store, listing, TopicLevels(listing), History(), datetime.now(UTC), no_groups)
        listed = queues.subscriptions(state, Query())["rows"]
        subscriptions = {(each.topic, each.queue, each.user, each.sub_id.hex().upper()) for each in listed}
        return {row["name"] for row in queues.queues(state, Query())["rows"]}, subscriptions


def _shown(keyword: str, value: Any) -> Any:
    if keyword in SWITCHES:
        return keyword if value == "YES" else f"NO{keyword}"
    return tuple(value) if isinstance(value, list) else value


@contextmanager
def asked(script: list[str]) -> Iterator[Asked]:
    with TemporaryDirectory() as directory:
        home = Path(directory)
        QueueManagerStore.create(home, QueueManager("QM1")).close()
        with QueueManagerStore.open(home, "QM1") as store, opened(home) as console:
            runner_of(store, no_groups).run_script("DEFINE QLOCAL(REPLY.Q)\n" + "\n".join(script))
            yield Asked(store, console.client)


def _compared(rows: list[Row]) -> list[Row]:
    found = [{key: value for key, value in row.items() if key not in LEFT_OUT} for row in rows]
    return sorted(found, key=lambda row: sorted((key, str(value)) for key, value in row.items()))


def _makes(text: str) -> bool:
    """What is left of a lifetime differs from question to question; PSMODE decides whether questions are answered."""
    return text.split(None, 1)[0] in ("DEFINE", "ALTER") and "EXPIRY" not in text and "PSMODE" not in text


@pytest.mark.rule("PCF-13")
@FEW
@given(st.lists(commands(), min_size=10, max_size=40))
def test_the_same_question_has_the_same_rows_however_it_is_asked(texts: list[str]) -> None:
    with asked([text for text in texts if _makes(text)]) as qmgr:
        by_mqsc = {target: _compared(qmgr.mqsc(question)) for target, question in QUESTIONS.items()}
        for target, question in QUESTIONS.items():
            assert _compared(qmgr.rest(question)) == by_mqsc[target], target
            assert _compared(qmgr.pcf(question)) == by_mqsc[target], target
        names, subscriptions = qmgr.pages()
        assert names == {row["QUEUE"] for row in by_mqsc["QUEUE"] if row["TYPE"] == "QLOCAL"}
        assert subscriptions == {(row["TOPICSTR"], row["DEST"], row["SUBUSER"], row["SUBID"]) for row in by_mqsc["SUB"]}
