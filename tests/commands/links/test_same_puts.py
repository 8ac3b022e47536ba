"""The same captures give the same puts through the embedded ports and through each adapter.

What is wanted is the golden puts of a replay: the results service in both headers, the guide's examples and scenarios.
A link keeps legacy programs from one another in no way, so that what an adapter cannot do makes no difference here;
version 6's behaviour is for replays alone.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import QueueManager
from commands.broker.puts import Put
from commands.cli import main
from commands.config.settings import Config, QueuesConfig, TopicsConfig
from commands.config.urls import parse_address
from commands.links.ibmmq.manager import MqMessages
from commands.links.opening import Places
from commands.qmgr.processor import Processor
from commands.qmgr.store import Durability, QueueManagerStore
from commands.terminal.console import Console
from rfh2 import CapturedMessage, Mqmd
from tests.commands.guide_scenarios import GuideScenario, scenarios
from tests.commands.links.kafka_server import KafkaServer, needs_kafka
from tests.commands.links.mosquitto import Mosquitto, needs_mosquitto
from tests.commands.links.mqi.harness import SYSTEM_QUEUES, StandIn, needs_mqi, stand_in
from tests.commands.links.nats_server import NatsServer, needs_nats
from tests.waiting import PATIENCE_S, until

FIXTURES = Path(__file__).parents[3] / "fixtures"

# Where queues and topic tree are.
ADAPTERS = [
    pytest.param(("embedded", "embedded"), id="embedded"),
    pytest.param(("embedded", "mqtt"), id="embedded queues, MQTT tree", marks=needs_mosquitto),
    pytest.param(("embedded", "nats"), id="embedded queues, NATS tree", marks=needs_nats),
    pytest.param(("embedded", "kafka"), id="embedded queues, Kafka tree", marks=needs_kafka),
    pytest.param(("mq", "embedded"), id="IBM MQ queues", marks=needs_mqi),
    pytest.param(("mq", "mqtt"), id="IBM MQ queues, MQTT tree", marks=[needs_mqi, needs_mosquitto]),
    pytest.param(("mq", "mq"), id="IBM MQ queues and tree", marks=needs_mqi),
    pytest.param(("embedded", "mq"), id="embedded queues, IBM MQ tree", marks=needs_mqi),
]


# A step's message that is not processed: nobody reads a queue that is not a stream any more.
NOT_READ = {"6.5.5-deleting-a-stream": 10}


@dataclass(frozen=True)
class Step:
    """A message and the puts that it comes to; or MQSC, or (neither) a restart of the bridge."""

    message: CapturedMessage | None = None
    puts: tuple[Put, ...] = ()
    mqsc: str = ""


@dataclass(frozen=True)
class Case:
    """A capture with golden puts."""

    name: str
    steps: tuple[Step, ...]
    qmgr: str = "QM1"
    setup: str = ""

    @classmethod
    def of_files(cls, name: str, capture: Path, puts: Path, setup: Path | None) -> Case:
        golden: dict[int, list[Put]] = {}
        for line in puts.read_text().splitlines():
            put = Put.model_validate_json(line)
            golden.setdefault(put.seq, []).append(put)
        messages = [CapturedMessage.model_validate_json(line) for line in capture.read_text().splitlines()]
        steps = [Step(message, tuple(golden.get(message.seq, ()))) for message in messages]
        return cls(name, tuple(steps), setup=setup.read_text() if setup is not None else "")

    @classmethod
    def of_guide(cls, scenario: GuideScenario) -> Case:
        steps = [
            Step(came.step.message(scenario.qmgr), tuple(came.puts))
            if came.step.verb is not None and came.step.number != NOT_READ.get(scenario.name)
            else Step(mqsc=came.step.says.get("mqsc", ""))
            for came in scenario.came
        ]
        return cls(f"guide {scenario.name}", tuple(steps), scenario.qmgr, scenario.setup)

    @property
    def queues(self) -> set[str]:
        """Every queue that is put to, and every queue manager: in IBM MQ they have to be there."""
        names = {step.message.queue for step in self.steps if step.message is not None}
        return names | {put.queue for step in self.steps for put in step.puts} | self.elsewhere

    @property
    def by_mqsc(self) -> set[str]:
        """The subscriptions that MQSC defines."""
        scripts = [self.setup, *(step.mqsc for step in self.steps)]
        return {name for script in scripts for name in re.findall(r"DEFINE SUB\s*\('?([^')]*)'?\)", script)}

    @property
    def elsewhere(self) -> set[str]:
        return {put.qmgr for step in self.steps for put in step.puts if put.qmgr} - {self.qmgr}


def _cases() -> list[Case]:
    results, older, guide = (FIXTURES / name for name in ("results-service", "results-service-rfh1", "guide"))
    cases = [
        Case.of_files("results service", results / "capture.jsonl", results / "puts.jsonl", None),
        Case.of_files("MQRFH results service", older / "capture.jsonl", older / "puts.jsonl", older / "setup.mqsc"),
    ]
    for puts in sorted(guide.glob("*.puts.jsonl")):
        name = puts.name.removesuffix(".puts.jsonl")
        setup = guide / f"{name}.mqsc"
        cases.append(Case.of_files(f"guide {name}", guide / f"{name}.jsonl", puts, setup if setup.exists() else None))
    cases += [Case.of_guide(scenario) for scenario in scenarios() if scenario.semantics == "v7"]
    return [case for case in cases if any(step.puts for step in case.steps)]


CASES = _cases()
# All cases go through the embedded ports, and through IBM MQ alone, where each message has a form of its own. A tree by
# itself sees filters and what is retained, each of which has tests of its own over all kinds of tree.
WHOLE = [("embedded", "embedded"), ("mq", "mq")]
# These go through each.
QUICK = {"results service", "MQRFH results service", "guide 2.5.1.1.2-characters", "guide 4.6.1-retained"}


@pytest.fixture(scope="module")
def mq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with stand_in(tmp_path_factory.mktemp("mq")) as running:
        yield running


class World:
    """A bridge and the programs that put commands, wherever their queues are."""

    def __init__(self, home: Path, case: Case, queues: StandIn | None, topics: str | None, name: str) -> None:
        self._home, self._case, self._mq = home, case, queues
        self.puts: list[Put] = []
        times = (step.message.time for step in case.steps if step.message is not None)
        self._now = next(time for time in times if time is not None)
        self._stack = ExitStack()
        QueueManagerStore.create(home, QueueManager(case.qmgr)).close()
        self._mqsc(case.setup)
        # A prefix and a session of its own: the cases share one server of each kind.
        own: dict[str, Any] = {"client_id": f"bridge-{name}"}
        if topics is not None and topics.startswith("nats"):
            own |= {"prefix": f"{name}.", "stream": name}
        elif topics is not None and topics.startswith("kafka"):
            own |= {"kafka": {"topic": name}}
        elif topics != _mq_url(case):
            own |= {"prefix": f"{name}/"}
        config = Config(topics=TopicsConfig(**own))
        at = None if queues is None else _mq_url(case)
        self._places = Places.of(home, case.qmgr, config, at, topics, Durability.NORMAL)
        self._programs: Any = None

    def __enter__(self) -> World:
        stack = self._stack
        self._manager: Any = stack.enter_context(self._places.manager())
        self._programs = self._manager
        if self._mq is not None:
            self._programs = MqMessages(parse_address(_mq_url(self._case), ""), QueuesConfig())
            stack.callback(self._programs.close)
        self._link: Any = self._places.link("SYSTEM.DEAD.LETTER.QUEUE")
        if self._link is not None:
            self._link.start()
            stack.callback(self._link.stop)
            assert self._link.wait_up(PATIENCE_S)
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def come_to(self, step: Step) -> list[Put]:
        """What the bridge puts because of a step."""
        self.puts.clear()
        if step.message is not None:
            message = step.message
            assert message.time is not None
            self._now = message.time
            with self._programs.unit_of_work() as unit:
                unit.put(message.queue, message.md, message.body, user=message.user)
            self._processor.drain()
        elif step.mqsc:
            self._mqsc(step.mqsc)
        else:
            self._begin()
        return list(self.puts)

    def settled(self) -> None:
        """Wait until the tree has all that it should have."""
        if self._link is not None:
            until(lambda: self._link.is_idle, "the link")

    def _begin(self) -> None:
        self._processor = Processor(self._manager, lambda: self._now, self.puts.append, link=self._link)
        self._processor.start()

    def _mqsc(self, script: str) -> None:
        """By ``qpubsub mqsc``; what it says of queues an administrator says to IBM MQ too."""
        if script:
            path = self._home / "script.mqsc"
            path.write_text(script)
            words = ["mqsc", "-m", self._case.qmgr, "--home", str(self._home), str(path)]
            with pytest.raises(SystemExit):
                main.main(words, obj=Console(io.BytesIO(), io.StringIO()))
        if self._mq is not None:
            with QueueManagerStore.open(self._home, self._case.qmgr) as store:
                defined = store.load_state()[0]
            self._mq.tell(alter={name: {} for name in (*self._case.queues, *defined.queues)})


def _mq_url(case: Case) -> str:
    return f"ibmmq://127.0.0.1:1414/{case.qmgr}?channel=C"


def _comparable(puts: list[Put] | tuple[Put, ...], case: Case) -> list[dict[str, Any]]:
    """Without what a queue manager chooses, which are arrival numbers and identifiers made of them.

    An MQMD's byte order, and the version of one without grouping, are those of the machine at which it is got; the user
    of a subscription made by MQSC is whoever ran that.
    """
    rows = []
    for put in puts:
        mqmd = Mqmd.decode(bytes.fromhex(put.md_hex))
        plain = replace(mqmd, msg_id=bytes(24), version=1, order="little")
        if mqmd.correl_id.startswith(b"AMQ "):
            plain = replace(plain, correl_id=bytes(24))
        if put.sub_name in case.by_mqsc:
            plain = replace(plain, user_identifier="")
        rows.append({**put.model_dump(exclude={"seq", "md_hex"}), "mqmd": plain})
    return rows


def _rows() -> Iterator[Any]:
    """Each case over each adapter."""
    for case in CASES:
        for row in ADAPTERS:
            marks = [*row.marks]
            if case.name not in QUICK:
                marks.append(pytest.mark.slow if row.values[0] in WHOLE else pytest.mark.nightly)
            yield pytest.param(case, row.values[0], id=f"{case.name}-{row.id}", marks=marks)


@pytest.mark.parametrize(("case", "adapter"), list(_rows()))
def test_the_same_captures_give_the_same_puts(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, case: Case, adapter: tuple[str, str]
) -> None:
    queues, topics = adapter
    mq: StandIn | None = request.getfixturevalue("mq") if "mq" in adapter else None
    if mq is not None:
        names: dict[str, Any] = {name: {} for name in (*SYSTEM_QUEUES, *case.queues)}
        mq.tell(anew={"qmgr": case.qmgr, "queues": names})
    url = _url(request, topics) if topics in SERVERS else {"embedded": None, "mq": _mq_url(case)}[topics]
    with World(tmp_path / "qmgrs", case, mq if queues == "mq" else None, url, name) as world:
        for number, step in enumerate(case.steps, 1):
            found = _comparable(world.come_to(step), case)
            assert found == _comparable(step.puts, case), f"step {number}"
        world.settled()


# The fixture of a tree's server.
SERVERS = {"mqtt": "shared_mosquitto", "nats": "shared_nats", "kafka": "shared_kafka"}


def _url(request: pytest.FixtureRequest, topics: str) -> str:
    running: Mosquitto | NatsServer | KafkaServer = request.getfixturevalue(SERVERS[topics])
    return running.url


def test_the_cases_are_there() -> None:
    assert {case.name for case in CASES} >= QUICK
    assert len(CASES) >= 40
