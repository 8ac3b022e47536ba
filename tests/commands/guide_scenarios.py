"""The tables and examples of guide 2.4 to 6.7 as scenarios with puts (fixtures/scenarios); run this file to write the
captures and puts again after a step or a setup was changed.

    setup.mqsc      what the queue manager starts with, if anything
    scenario.toml   the steps, and what the guide says comes of each; written by hand, and the measure for the rest
    capture.jsonl   the steps' messages, compiled
    puts.jsonl      what a replay of them gives, byte for byte

A step is a message (``publish``, ``register``, ``deregister``, ``request``, ``delete``), a piece of administration in
between (``mqsc``), or ``restart``. ``gets`` are the publications that leave, in order, as ``QUEUE: topic``, the topic
being what the subscriber is told; ``answer`` is the response; ``dead`` the reason of the dead letter.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.outcome import Outcome
from commands.broker.puts import Put, PutKind
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer
from commands.mqsc.broker import Broker
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from rfh2.captured import CapturedMessage
from rfh2.constants import MQMT_DATAGRAM, MQMT_REQUEST
from rfh2.message import Message, decode, encode
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1
from streams.operations import Delivery
from tests.commands.scenario import KICK_OFF, psc, rfh2_message

FIXTURE = Path(__file__).parents[2] / "fixtures" / "scenarios"
WORDS = {
    "publish": "Publish",
    "register": "RegSub",
    "deregister": "DeregSub",
    "request": "ReqUpdate",
    "delete": "DeletePub",
}
_ADMINISTRATION = frozenset({"mqsc", "restart"})
_ABOUT_COMMANDS = frozenset(
    [
        "at",
        "on",
        "queue",
        "header",
        "stream",
        "sub_point",
        "options",
        "filter",
        "name",
        "properties",
        "data",
        "correl_id",
    ]
)
_EXPECTED = frozenset(["gets", "answer", "dead", "why", "says", "shows", "notes", "flows", "kept"])
_OPTION_TAGS = {"Publish": "PubOpt", "DeletePub": "DelOpt"}


@dataclass(frozen=True)
class Step:
    """One step of a scenario. number: from 1, and the ``seq`` of its message."""

    number: int
    says: Mapping[str, Any]

    def __post_init__(self) -> None:
        unknown = self.says.keys() - WORDS.keys() - _ADMINISTRATION - _ABOUT_COMMANDS - _EXPECTED
        assert not unknown, f"step {self.number}: {unknown}"

    @property
    def verb(self) -> str | None:
        """The step's word for its command; None where it is administration."""
        return next((verb for verb in WORDS if verb in self.says), None)

    @property
    def time(self) -> datetime:
        return KICK_OFF + timedelta(seconds=self.number)

    def message(self, qmgr: str) -> CapturedMessage:
        """The message of a step that is one."""
        assert self.verb is not None
        word, on_stream = WORDS[self.verb], self.verb in ("publish", "delete")
        queue = self.says.get("on", DEFAULT_STREAM if on_stream else CONTROL_QUEUE)
        mqmd = Mqmd(
            msg_type=MQMT_DATAGRAM if self.verb == "publish" else MQMT_REQUEST,
            priority=0,
            persistence=0,
            msg_id=f"STEP {self.number}".encode().ljust(24, b"\0"),
            correl_id=bytes.fromhex(self.says.get("correl_id", "")).ljust(24, b"\0"),
            coded_char_set_id=1208,
            reply_to_q="" if self.verb == "publish" else self.says.get("queue", "REPLY.Q"),
            user_identifier="app1",
        )
        data = str(self.says.get("data", "data")).encode() if self.verb == "publish" else b""
        older = self.says.get("header") == "MQRFH"
        described, body = _rfh1(self, word, mqmd, data) if older else _rfh2(self, word, mqmd, data)
        return CapturedMessage(
            seq=self.number,
            time=self.time,
            qmgr=qmgr,
            queue=queue,
            user="app1",
            md_hex=described.encode().hex(),
            body_hex=body.hex(),
        )

    @property
    def topics(self) -> list[str]:
        given = self.says[self.verb or ""]
        return [given] if isinstance(given, str) else list(given)


def _rfh2(step: Step, word: str, mqmd: Mqmd, data: bytes) -> tuple[Mqmd, bytes]:
    says = step.says
    pairs = [(_OPTION_TAGS.get(word, "RegOpt"), option) for option in says.get("options", ())]
    pairs += [("Topic", _escaped(topic)) for topic in step.topics]
    named = (("SubPoint", "sub_point"), ("Filter", "filter"), ("SubName", "name"))
    pairs += [(tag, _escaped(says[key])) for tag, key in named if key in says]
    if word == "Publish" and "queue" in says:
        pairs.append(("QName", says["queue"]))
    folders = [psc(word, *pairs)]
    if "properties" in says:
        folders.append("<usr>" + "".join(_property(*each) for each in says["properties"].items()) + "</usr>")
    return rfh2_message(folders, mqmd, data)


def _property(name: str, value: object) -> str:
    kind = ' dt="i4"' if isinstance(value, int) else ""
    return f"<{name}{kind}>{_escaped(str(value))}</{name}>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _rfh1(step: Step, word: str, mqmd: Mqmd, data: bytes) -> tuple[Mqmd, bytes]:
    says = step.says
    options = {"Publish": "MQPSPubOpts", "DeletePub": "MQPSDelOpts"}.get(word, "MQPSRegOpts")
    pairs = [("MQPSCommand", word), *((options, option) for option in says.get("options", ()))]
    pairs += [("MQPSTopic", topic) for topic in step.topics]
    if "stream" in says:
        pairs.append(("MQPSStreamName", says["stream"]))
    written = (" ".join(f'{name} "{value}"' for name, value in pairs) + "\0").encode()
    header = Rfh1(written + bytes(-len(written) % 4), 546, -2, "MQSTR" if data else "", 0, "little", "latin-1")
    described = Mqmd(**{**_fields(mqmd), "format": "MQHRF", "encoding": 546, "coded_char_set_id": 819})
    return described, encode(Message(described, (header,), data))


def _fields(mqmd: Mqmd) -> dict[str, Any]:
    return {name: getattr(mqmd, name) for name in ("msg_type", "priority", "persistence", "msg_id", "reply_to_q")} | {
        "user_identifier": mqmd.user_identifier
    }


@dataclass
class Came:
    """What one step came to. gets, answer, dead: as scenario.toml has them."""

    step: Step
    gets: list[str] = field(default_factory=list)
    answer: str | None = None
    dead: int | None = None
    outcome: Outcome | None = None
    answers: list[Answer] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)


class GuideScenario:
    """One directory of the fixture."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        told = tomllib.loads((path / "scenario.toml").read_text())
        self.sections: list[str] = told["section"].split(", ")
        self.shows: str = told["shows"]
        self.qmgr: str = told.get("qmgr", "QM1")
        self.semantics: str = told.get("semantics", "v7")
        self.names: bool = told.get("names", False)
        self.steps = [Step(number, says) for number, says in enumerate(told["steps"], 1)]

    @property
    def setup(self) -> str:
        script = self.path / "setup.mqsc"
        return script.read_text() if script.exists() else ""

    @property
    def is_replay(self) -> bool:
        """Whether the setup and the capture are all there is, so that ``qpubsub replay`` gives the same."""
        return not any(_ADMINISTRATION & step.says.keys() for step in self.steps)

    @property
    def messages(self) -> list[CapturedMessage]:
        return [step.message(self.qmgr) for step in self.steps if step.verb is not None]

    @cached_property
    def came(self) -> list[Came]:
        """What each step comes to, on a new queue manager."""
        broker = Broker(self.qmgr, self.setup, self.semantics)
        return [self._run(step, broker) for step in self.steps]

    @property
    def files(self) -> dict[str, bytes]:
        """The files that are made from the others, by name."""
        messages = [message.model_dump_json().encode() + b"\n" for message in self.messages]
        puts = [put.model_dump_json().encode() + b"\n" for came in self.came for put in came.puts]
        return {"capture.jsonl": b"".join(messages), "puts.jsonl": b"".join(puts)}

    def _run(self, step: Step, broker: Broker) -> Came:
        came = Came(step)
        if "restart" in step.says:
            broker.space.restore(broker.space.subscriptions(), broker.space.retained_publications())
        elif step.verb is None:
            administration = Administration.of(broker.objects, broker.space, step.time, user="admin")
            came.answers = [execute(statement, administration) for statement in parse(step.says["mqsc"])]
            changes = [change for answer in came.answers for change in answer.changes]
            deliveries = [change for change in changes if isinstance(change, Delivery)]
            came.gets = [f"{delivery.subscription.dest_queue}: {delivery.topic_string}" for delivery in deliveries]
        else:
            came.outcome, came.puts = broker.replay(step.message(self.qmgr))
            for put in came.puts:
                if put.kind is PutKind.PUBLICATION:
                    came.gets.append(self._received(put))
                elif put.kind is PutKind.RESPONSE:
                    came.answer = " ".join(str(each) for each in (put.completion, put.reason) if each is not None)
                else:
                    came.dead = put.reason
        return came

    def _received(self, put: Put) -> str:
        where = put.queue if put.qmgr == self.qmgr else f"{put.queue} at {put.qmgr}"
        return f"{where}: {told_topic(put)}" + (f" ({put.sub_name})" if self.names else "")


def told_topic(put: Put) -> str | None:
    """The topic that a publication's header names, whichever header that is."""
    message = decode(bytes.fromhex(put.body_hex), bytes.fromhex(put.md_hex))
    if message.rfh1 is not None:
        return dict(message.rfh1.pairs())["MQPSTopic"]
    header = message.rfh2
    if header is None:
        return put.topic
    told, properties = header.folder("psc"), header.folder("mqps")
    if told is not None:
        return dict(told.pairs())["Topic"]
    assert properties is not None
    return dict(properties.pairs())["Top"]


def scenarios() -> Iterator[GuideScenario]:
    """All scenarios of the fixture, in order of their names."""
    return (GuideScenario(path.parent) for path in sorted(FIXTURE.glob("*/scenario.toml")))


if __name__ == "__main__":
    for scenario in scenarios():
        for file_name, content in scenario.files.items():
            (scenario.path / file_name).write_bytes(content)
