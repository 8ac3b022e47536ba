"""The checklist of the files can be followed: carried out step by step it gives what the direct migration gives.

A person follows it on IBM MQ; here each step is read from the checklist itself and carried out on an embedded queue
manager with ``mqsc``, ``put`` and ``run --once``. What a person does elsewhere (stop programs, review, compare) is
named below, so that a step that nobody knows fails.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from commands.broker.objects import CONTROL_QUEUE, QueueManager
from commands.cli import main
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console
from migrate import embedded
from migrate.plan import Marker, Phase, Tool
from rfh2.captures import write_captures
from tests.migrate.cases import Case
from tests.migrate.legacy_messages import psc, publish, register
from tests.migrate.test_files import comparable

BY_HAND = (
    "Take the sources again and run the same command again",
    "Stop the publish/subscribe applications",
    "Back the queue manager up.",
    "Run the commands of `amqmigrateacl.txt`",
    "While no program subscribes, load the retained publications",
    "Look at the dead-letter queue",
    "Event Broker alone: add the input queues of its message flows",
    "Delete queue SYSTEM.TEMP.MIGMBBRK.REPLY.QUEUE",
    "Compare `DISPLAY SUB(*)`",
    "Probe how the queue manager joins the names of subscriptions and streams",
    "Start the applications.",
    "When all is well: `dltmqbrk`",
    "Review `amqmigrateacl.txt`",
    "Review `report.html`, the log and `amqmigrateacl.txt`",
    "Message Broker alone: upgrade the broker to version 7",
    "Message Broker alone: start the broker for its message flows",
)
STOPS_THE_BROKER = ("Stop the version 6 broker", "Stop the broker: `mqsistop ")
SCRIPT = re.compile(r"`runmqsc (\S+) < ([\w.-]+)`")
COMMAND = re.compile(r"`runmqsc (\S+)`: `(ALTER QMGR [^`]+)`")
LOAD = re.compile(r"Load `([\w.-]+)` into `([^`]+)`")
SUMS = re.compile(r"`(sha256sum -c [^`]+)` in the directory of the files")
WAIT = re.compile(r"Wait until (.*) (?:is|are) empty")


def steps_of(checklist: str) -> list[str]:
    """The numbered steps."""
    _, _, rest = checklist.partition("## In this order\n")
    found = re.findall(r"^(\d+)\. (.*)$", rest.partition("\n## ")[0], re.MULTILINE)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
    return [text for _, text in found]


@dataclass
class Administrator:
    """Who follows a checklist on the queue manager in *home*, with the old broker beside it until it is stopped."""

    home: Path
    files: Path
    qmgr: str
    old_broker_runs: bool = True
    done: list[str] = field(default_factory=list)

    def follow(self, checklist: str) -> None:
        for step in steps_of(checklist):
            self._do(step)
            self.done.append(step)

    def load(self, queue: str, file: Path) -> None:
        """Put the messages of *file* on *queue*, each with its context."""
        self._qpubsub("put", queue, str(file))

    def process(self, queues: list[str]) -> None:
        """Wait until these are empty."""
        self._qpubsub("run", "--once")
        with QueueManagerStore.open(self.home, self.qmgr) as store:
            for queue in queues:
                assert store.depth(queue) == 0, queue

    def _do(self, step: str) -> None:
        if step.startswith(STOPS_THE_BROKER):
            self.old_broker_runs = False
        elif found := SUMS.match(step):
            subprocess.run(shlex.split(found[1]), cwd=self.files, check=True, stdout=subprocess.DEVNULL)
        elif found := SCRIPT.match(step):
            assert found[1] == self.qmgr
            self._qpubsub("mqsc", str(self.files / found[2]))
        elif found := COMMAND.match(step):
            assert found[1] == self.qmgr
            script = self.files / "typed.mqsc"
            script.write_text(f"{found[2]}\n")
            self._qpubsub("mqsc", str(script))
        elif found := LOAD.match(step):
            # A broker that still runs takes what is put on these queues, and the new subscriptions are its own.
            assert not self.old_broker_runs, step
            self.load(found[2], self.files / found[1])
        elif found := WAIT.match(step):
            self.process(re.findall("`([^`]+)`", found[1]))
        else:
            assert step.startswith(BY_HAND), f"nobody knows how to do this: {step}"

    def _qpubsub(self, verb: str, *arguments: str) -> None:
        out, err = io.BytesIO(), io.StringIO()
        with pytest.raises(SystemExit) as ended:
            main.main([verb, "-m", self.qmgr, "--home", str(self.home), *arguments], obj=Console(out, err))
        said = out.getvalue().decode() + err.getvalue()
        allowed = {0, 1} if "AMQ8150" in said else {0}
        assert ended.value.code in allowed, (verb, arguments, said)


def made(home: Path, qmgr: str, *definitions: object) -> Path:
    with QueueManagerStore.create(home, QueueManager(qmgr, psmode="COMPAT")) as store, store.unit_of_work() as unit:
        for definition in definitions:
            unit.save_definition(definition)  # type: ignore[arg-type]
    return home


def known(home: Path, qmgr: str) -> dict[str, object]:
    """What the queue manager knows after it was started again, which discards what was not persistent (guide 8.5)."""
    out, err = io.BytesIO(), io.StringIO()
    with pytest.raises(SystemExit):
        main.main(["run", "-m", qmgr, "--home", str(home), "--once"], obj=Console(out, err))
    with QueueManagerStore.open(home, qmgr) as store:
        found = comparable(embedded.load(store))
    # Both describe when the phase was done, each at its own time.
    found["objects"] = {name: value for name, value in found["objects"].items() if "QPUBSUB.MIGRATION" not in name}
    return found


def migrate(verb: str, home: Path, qmgr: str, *arguments: str) -> None:
    out, err = io.BytesIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended:
        main.main([verb, "-m", qmgr, "--home", str(home), *arguments], obj=Console(out, err))
    assert ended.value.code in (0, 1, 3, 4), err.getvalue()


def compare(direct: Path, followed: Path, qmgr: str, by_hand: set[str]) -> None:
    """Both queue managers know the same; what is for an administrator has another name, and is named in the list."""
    wanted, got = known(direct, qmgr), known(followed, qmgr)
    assert got["objects"] == wanted["objects"]
    assert got["retained"] == wanted["retained"]
    for found in (wanted, got):
        subscriptions = found["subscriptions"]
        found["subscriptions"] = [s for s in subscriptions if s["dest_queue"] not in by_hand]  # type: ignore[attr-defined]
    assert got["subscriptions"] == wanted["subscriptions"]


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    """Streams, names, identities, retained publications; a capture of version 6."""
    messages = [
        register(1, "Soccer/*", "Sport", queue_name="A.Q", user="anne"),
        register(2, "Soccer/Results", "Sport", queue_name="B.Q", name="evening", user="fred", options=["Local"]),
        register(3, "Prices/?", queue_name="C.Q", user="desk", correl_id=b"C" * 24, options=["CorrelAsId"]),
        psc(4, "<Command>RegSub</Command><Topic>News</Topic><SubName>n</SubName>", reply_to="D.Q", user="anne"),
        psc(5, "<Command>RegSub</Command><Topic>Weather/*</Topic>", reply_to="E.Q", user="anne"),
        publish(6, "Soccer/Results", "Sport", b"2:1", user="feed"),
        publish(7, "News", data=b"today", user="feed"),
        publish(8, "Prices/A", data=b"100", user="feed", persistence=0),
    ]
    path = tmp_path / "capture.jsonl"
    with path.open("wb") as stream:
        write_captures(messages, stream, "jsonl")
    return path


@pytest.mark.rule("MIG-17")
def test_the_checklist_of_strmqbrk_comes_to_the_direct_migration(estate: Path, tmp_path: Path) -> None:
    direct, followed = made(tmp_path / "direct", "QM1"), made(tmp_path / "followed", "QM1")
    out = tmp_path / "files"
    migrate("strmqbrk", direct, "QM1", "--source", str(estate))
    migrate("strmqbrk", tmp_path, "QM1", "--target", "files", "--out", str(out), "--source", str(estate))
    administrator = Administrator(followed, out, "QM1")
    administrator.follow((out / "checklist.md").read_text())
    # Weather/* was registered with an MQRFH2, which version 6 read by character: no command asks for that now.
    compare(direct, followed, "QM1", {"E.Q"})
    with QueueManagerStore.open(followed, "QM1") as store:
        target = embedded.load(store)
    assert {(s.topic_string, s.wildcard) for s in target.subscriptions if s.dest_queue == "E.Q"} == {
        ("Weather/*", "char")
    }
    with QueueManagerStore.open(followed, "QM1") as store:
        depths = {each.definition.name: each.depth for each in store.overview().queues}
    assert [name for name, depth in depths.items() if depth] == [], "nothing retained is sent a second time"
    assert target.objects.qmgr.psmode == "ENABLED"
    assert "QPUBSUB.MIGRATION.STRMQBRK" in target.objects.namelists


@pytest.mark.rule("MIG-17")
def test_the_checklists_of_migmbbrk_come_to_the_direct_migration(tmp_path: Path) -> None:
    """Both phases, each with its own checklist; the second knows what the first has made."""
    case = Case.of("subscription-points")
    sources = [str(case.directory / name) for name in case.facts["sources"]]
    given = ("-b", "BRK1", "--directory", str(tmp_path / "here"), "--source", *sources)
    direct, followed = made(tmp_path / "direct", "QM1"), made(tmp_path / "followed", "QM1")
    migrate("migmbbrk", direct, "QM1", "-t", *given)
    migrate("migmbbrk", direct, "QM1", "-c", *given)
    initial, complete = tmp_path / "initial", tmp_path / "complete"
    migrate("migmbbrk", tmp_path, "QM1", "-t", "--target", "files", "--out", str(initial), *given)
    first = Administrator(followed, initial, "QM1")
    first.follow((initial / "checklist.md").read_text())
    assert first.old_broker_runs, "the broker goes on after the initial phase"
    script = tmp_path / "existing.mqsc"
    script.write_text("".join((initial / name).read_text() for name in ("2-objects.mqsc", "7-enable.mqsc")))
    files = ("--target", "files", "--existing", str(script), "--out", str(complete))
    migrate("migmbbrk", tmp_path, "QM1", "-c", *files, *given)
    Administrator(followed, complete, "QM1").follow((complete / "checklist.md").read_text())
    with QueueManagerStore.open(direct, "QM1") as store, store.unit_of_work() as unit:
        # migmbbrk leaves PSMODE to a person, who enables it when the broker has ended (guide 8.2, step 9).
        unit.save_definition(replace(unit.load_state()[0].qmgr, psmode="ENABLED"))
    compare(direct, followed, "QM1", set())


@pytest.mark.parametrize("name", ["streams", "subscription-points", "log-example", "metatopics"])
def test_the_order_of_every_checklist(name: str) -> None:
    """The broker ends before anything is loaded or enabled; PSMODE is ENABLED before the first load (guide 8.2)."""
    steps = steps_of(Case.of(name).outputs()["checklist.md"])

    def first(text: str) -> int:
        return next(number for number, step in enumerate(steps) if text in step)

    assert first("PSMODE(COMPAT)") < first("Stop the ") < first("1-queues.mqsc") < first("2-objects.mqsc")
    stopped = next(n for n, step in enumerate(steps) if step.startswith(STOPS_THE_BROKER))
    assert stopped < first("PSMODE(ENABLED)") < first("Load `") < first("Wait until")
    assert first("2-objects.mqsc") < first("PSMODE(ENABLED)")
    assert [n for n, step in enumerate(steps) if "PSMODE(ENABLED)" in step] == [first("PSMODE(ENABLED)")]
    loads = list(_loads(steps))
    assert loads[-1] == ("6-registrations.qload", CONTROL_QUEUE)
    assert first("Load `6-registrations") < first("7-enable.mqsc") < first("Start the applications")


@pytest.mark.parametrize("name", ["streams", "subscription-points", "log-example", "metatopics"])
def test_every_checklist_names_the_files_beside_it(name: str) -> None:
    """Each script and each unload has its step, and no step names a file that is not there."""
    files = Case.of(name).outputs()
    text = files["checklist.md"].partition("## In this order\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"[\w-]+\.(?:mqsc|qload|sh)|amqmigrateacl\.txt", text))
    assert named == {each for each in files if each.endswith((".mqsc", ".qload", ".sh")) or each == "amqmigrateacl.txt"}


def _loads(steps: list[str]) -> Iterator[tuple[str, str]]:
    for step in steps:
        if found := LOAD.match(step):
            yield found[1], found[2]


@pytest.mark.rule("MB-14")
def test_8_3_a_message_broker_is_upgraded_and_started_again() -> None:
    """It goes on without publish/subscribe: upgraded before PSMODE(ENABLED), started after the applications."""
    steps = steps_of(Case.of("subscription-points").outputs()["checklist.md"])

    def place(text: str) -> int:
        (found,) = [number for number, step in enumerate(steps) if text in step]
        return found

    assert place("Review `report.html`") < place("PSMODE(COMPAT)") < place("`mqsistop BRK1`")
    assert place("`mqsistop BRK1`") < place("`mqsimigratecomponents BRK1`") < place("PSMODE(ENABLED)")
    assert place("SYSTEM.TEMP.MIGMBBRK.REPLY.QUEUE") < place("Start the applications") < place("`mqsistart BRK1`")
    assert "until all of the collective are migrated" in steps[place("`mqsistart BRK1`")]
    strmqbrk = Case.of("streams").outputs()["checklist.md"]
    assert "Message Broker" not in strmqbrk


@pytest.mark.rule("MIG-35")
def test_4_8_2_the_checklist_counts_who_would_be_sent_what_is_retained(estate: Path, tmp_path: Path) -> None:
    out = tmp_path / "files"
    migrate("strmqbrk", tmp_path, "QM1", "--target", "files", "--out", str(out), "--source", str(estate))
    (step,) = [step for step in steps_of((out / "checklist.md").read_text()) if "5-subscriptions.mqsc" in step]
    assert "two commands for 1 subscription, which would be sent retained publications once more" in step
    script = (out / "5-subscriptions.mqsc").read_text()
    assert "REQONLY(YES)\nALTER SUB('n') +\n  REQONLY(NO)\n" in script
    assert script.count("REQONLY") == 2, "nothing is retained for the other one"


def test_the_initial_phase_stops_nothing_and_loads_nothing() -> None:
    steps = steps_of(Case.of("access-control").outputs()["checklist.md"])
    assert not list(_loads(steps))
    assert not any("Stop" in step or "PSMODE(ENABLED)" in step for step in steps)
    assert any("7-enable.mqsc" in step for step in steps)


def test_the_marker_of_the_files_is_that_of_the_phase(tmp_path: Path) -> None:
    marker = Marker(Tool.MIGMBBRK, Phase.INITIAL, "20090128T114354Z", "0" * 40, "a broker with blanks")
    names = marker.namelist().names
    assert len(names) == 4
    assert " " not in names[3]
    assert Marker(Tool.MIGMBBRK, Phase.INITIAL, "x", "y", names[3]).is_of("a broker with blanks")
    assert not marker.is_of("another broker")
