"""apply: what stops it, what it says then, and its journal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from commands.mqsc.script import Statement
from migrate.live import journal as journal_module
from migrate.live.applying import Applier, wanted_checkpoints
from migrate.live.journal import Journal
from migrate.live.loading import PROGRESS_QUEUE
from migrate.live.snapshot import Outcome, Row, read_live
from migrate.live.undoing import Undoing
from migrate.planned_state import read_planned
from tests.commands.cli_runs import run
from tests.migrate.live.memory import MemoryAdministrator, memory
from tests.migrate.live.rigs import Rig, create, rig, write_legacy

UNTIL = {"objects": ("--through", "objects", "--confirm", "stopped")}


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    out = tmp_path / "files"
    run("strmqbrk", "-m", "QM1", "--target", "files", "--out", str(out), str(write_legacy(tmp_path)))
    return out


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Rig]:
    """Nothing processes: PSMODE(COMPAT) is kept."""
    with rig("embedded", tmp_path, processes=False) as made:
        yield made


def test_an_object_of_the_same_name_stops_it_with_the_line(live: Rig, plan: Path) -> None:
    live.mqsc("DEFINE TOPIC('Sport') TOPICSTR('Other')\n")
    ran = live("apply", str(plan), *UNTIL["objects"])
    assert ran.code == 1
    assert "checkpoint objects: 2-objects.mqsc, line 3: DEFINE TOPIC(Sport)" in ran.talk
    assert "TOPICSTR is (Other), planned (Sport)" in ran.talk
    assert "run the same command again" in ran.talk
    again = live("apply", str(plan), "--all", "--confirm", "stopped")
    assert again.code == 2, "nothing was changed"
    live.mqsc("DELETE TOPIC('Sport')\n")
    assert live("apply", str(plan), *UNTIL["objects"]).code == 0


def test_a_refusal_stops_it_with_the_message(live: Rig, plan: Path) -> None:
    script = plan / "2-objects.mqsc"
    script.write_text("* comment\nDEFINE TOPIC(T) TOPICSTR('t') +\n  WILDCARD(SOMETIMES)\n")
    ran = live("apply", str(plan), *UNTIL["objects"])
    assert ran.code == 1
    assert "2-objects.mqsc, line 2: DEFINE TOPIC(T): AMQ8425" in ran.talk


def test_a_statement_about_what_an_earlier_one_has_made(live: Rig, plan: Path) -> None:
    (plan / "2-objects.mqsc").write_text("DEFINE TOPIC(T) TOPICSTR('t')\nALTER TOPIC(T) PUB(DISABLED)\n")
    assert live("apply", str(plan), *UNTIL["objects"]).code == 0
    shown = run("mqsc", "-m", "QM1", "--home", str(live.home), stdin="DISPLAY TOPIC(T) PUB\n").out
    assert "PUB(DISABLED)" in shown
    assert live("apply", str(plan), "--undo").code == 0
    assert "AMQ8147" in run("mqsc", "-m", "QM1", "--home", str(live.home), stdin="DISPLAY TOPIC(T)\n").out


def test_a_script_that_was_corrected_before_what_is_done(live: Rig, plan: Path) -> None:
    """Its statements have other numbers then: what is there is found, and what is new is sent."""
    script = plan / "2-objects.mqsc"
    script.write_text("DEFINE TOPIC(T) TOPICSTR('t')\nDEFINE TOPIC(U) TOPICSTR('u') PUB(SOMETIMES)\n")
    assert live("apply", str(plan), *UNTIL["objects"]).code == 1
    script.write_text("DEFINE TOPIC(S) TOPICSTR('s')\nDEFINE TOPIC(T) TOPICSTR('t')\nDEFINE TOPIC(U) TOPICSTR('u')\n")
    assert live("apply", str(plan), *UNTIL["objects"]).code == 0
    shown = run("mqsc", "-m", "QM1", "--home", str(live.home), stdin="DISPLAY TOPIC(*)\n").out
    assert all(f"TOPIC({name})" in shown for name in "STU")
    assert live("apply", str(plan), "--undo").code == 0
    shown = run("mqsc", "-m", "QM1", "--home", str(live.home), stdin="DISPLAY TOPIC(*)\n").out
    assert not any(f"TOPIC({name})" in shown for name in "STU")


def test_a_script_that_is_none_sends_nothing(live: Rig, plan: Path) -> None:
    (plan / "2-objects.mqsc").write_text("DEFINE TOPIC(T) TOPICSTR('t')\nDEFINE TOPIC(\n")
    ran = live("apply", str(plan), *UNTIL["objects"])
    assert "2-objects.mqsc, line 2" in ran.talk
    assert "nothing of it was sent" in ran.talk
    assert "AMQ8147" in run("mqsc", "-m", "QM1", "--home", str(live.home), stdin="DISPLAY TOPIC(T)\n").out


LIST = "SYSTEM.QPUBSUB.QUEUE.NAMELIST"


def names_of(live: Rig) -> list[str]:
    """The streams, besides the default ones."""
    shown = run("mqsc", "-m", "QM1", "--home", str(live.home), "--json", stdin=f"DISPLAY NAMELIST({LIST}) NAMES\n").out
    return list(json.loads(shown)["objects"][0]["NAMES"][2:])


@pytest.mark.parametrize("way", ["embedded", "rest"])
def test_6_5_4_somebody_elses_stream_stays_in_the_namelist(way: str, plan: Path, tmp_path: Path) -> None:
    """Added after the plan was made, and after it was applied: apply, verify and undo leave both where they are."""
    born = "SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM"
    with rig(way, tmp_path, processes=False) as live:
        live.mqsc(f"ALTER NAMELIST({LIST}) NAMES({born}, SYSTEM.FTE)\n")
        rehearsed = live("apply", str(plan), "--rehearse").out
        assert "'SYSTEM.BROKER.ADMIN.STREAM', 'SYSTEM.FTE', 'Sport')" in rehearsed
        assert live("apply", str(plan), *UNTIL["objects"]).code == 0
        assert names_of(live) == ["SYSTEM.FTE", "Sport"]
        assert LIST not in live("verify", str(plan)).out
        live.mqsc(f"ALTER NAMELIST({LIST}) NAMES({born}, SYSTEM.FTE, 'Sport', HIS)\n")
        assert LIST not in live("verify", str(plan)).out
        assert live("apply", str(plan), "--undo").code == 0
        assert names_of(live) == ["SYSTEM.FTE", "HIS"]


def test_a_stream_that_is_added_while_a_script_runs_stays(plan: Path, tmp_path: Path) -> None:
    """The list is read again right before it is altered; a run that was killed before knows what it has added."""
    with rig("stub", tmp_path, processes=False) as live:
        assert live.stub is not None
        stub, answer = live.stub, live.stub.answer

        def adding(body: dict[str, Any]) -> dict[str, Any]:
            if "DEFINE TOPIC" in body.get("parameters", {}).get("command", ""):
                live.mqsc(
                    f"ALTER NAMELIST({LIST}) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM, HIS)\n"
                )
            return answer(body)

        stub.answer = adding  # type: ignore[method-assign]
        assert live("apply", str(plan), *UNTIL["objects"]).code == 0
        assert names_of(live) == ["HIS", "Sport"]
        assert live("apply", str(plan), "--undo").code == 0
        assert names_of(live) == ["HIS"]


def test_the_script_says_what_it_overwrites(plan: Path) -> None:
    """And with --existing it has every name of that queue manager."""
    lines = (plan / "2-objects.mqsc").read_text().splitlines()
    at = lines.index(f"ALTER NAMELIST('{LIST}') +")
    assert f"replaces all names of {LIST}" in lines[at - 5]
    assert all(line.startswith("* ") for line in lines[at - 5 : at])
    existing, out = plan.parent / "existing.mqsc", plan.parent / "whole"
    existing.write_text(f"ALTER NAMELIST({LIST}) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.FTE)\n")
    words = ("--target", "files", "--existing", str(existing), "--out", str(out))
    run("strmqbrk", "-m", "QM1", *words, str(plan.parent / "capture.jsonl"))
    script, checklist = ((out / name).read_text() for name in ("2-objects.mqsc", "checklist.md"))
    named = "'SYSTEM.BROKER.DEFAULT.STREAM', 'SYSTEM.FTE', 'SYSTEM.BROKER.ADMIN.STREAM', 'Sport'"
    assert f"NAMES({named})" in script
    assert f"First compare `DISPLAY NAMELIST` of `{LIST}`" in checklist


def test_commands_that_wait_are_the_old_brokers(live: Rig, plan: Path) -> None:
    queue = "SYSTEM.BROKER.CONTROL.QUEUE"
    run("put", "-m", "QM1", "--home", str(live.home), queue, str(plan / "6-registrations.qload"))
    ran = live("apply", str(plan), "--all", "--confirm", "stopped")
    assert ran.code == 1
    assert f"{queue} holds 3 commands" in ran.talk


def test_a_queue_that_does_not_become_empty(live: Rig, plan: Path) -> None:
    ran = live("apply", str(plan), "--all", "--confirm", "stopped", "--wait", "0.1")
    assert ran.code == 1
    assert "Sport still holds 1 message after 0.1 s" in ran.talk
    again = live("apply", str(plan), "--all", "--confirm", "stopped", "--wait", "0")
    assert "Sport still holds 1 message" in again.talk, "it was not put a second time"


def test_messages_on_the_dead_letter_queue_stop_it(live: Rig, plan: Path) -> None:
    live("apply", str(plan), "--through", "enabled", "--confirm", "stopped")
    live.mqsc("ALTER TOPIC('Sport') PUB(DISABLED)\n")
    live("apply", str(plan), "--wait", "0")
    run("run", "-m", "QM1", "--home", str(live.home), "--once")
    ran = live("apply", str(plan), "--wait", "0")
    assert ran.code == 2
    assert "the dead-letter queue has 1 more message" in ran.talk
    assert live("apply", str(plan), "--wait", "0", "--confirm", "retained-01").code == 0


def test_a_rehearsal_changes_nothing_and_leaves_no_file(live: Rig, plan: Path) -> None:
    before = sorted(path.name for path in plan.iterdir())
    ran = live("apply", str(plan), "--rehearse")
    assert ran.code == 0
    assert "objects: line 3: send DEFINE TOPIC('Sport')" in ran.out
    assert "registrations: put 3 messages" in ran.out
    assert sorted(path.name for path in plan.iterdir()) == before
    assert json.loads(live("apply", str(plan), "--rehearse", "--json").out)["rehearsal"][0]["checkpoint"] == "compat"
    assert "AMQ8147" in run("mqsc", "-m", "QM1", "--home", str(live.home), stdin="DISPLAY TOPIC(Sport)\n").out


def test_what_was_there_before_is_there_after_undo(live: Rig, plan: Path) -> None:
    live.mqsc("DEFINE QLOCAL('Sport')\nDEFINE QLOCAL('A.Q')\n")
    live("apply", str(plan), "--through", "authorities", "--confirm", "stopped")
    rehearsed = live("apply", str(plan), "--undo", "--rehearse")
    assert "DELETE TOPIC('Sport')" in rehearsed.lines
    assert "DELETE QLOCAL('A.Q')" not in rehearsed.lines
    assert live("apply", str(plan), "--undo").code == 0
    shown = run("mqsc", "-m", "QM1", "--home", str(live.home), stdin="DISPLAY QUEUE(*)\n").out
    assert "QUEUE(A.Q)" in shown
    assert "QUEUE(B.Q)" not in shown
    assert PROGRESS_QUEUE not in shown
    assert not (plan / "apply.journal").exists()


def test_undo_names_what_others_have_changed_since(live: Rig, plan: Path) -> None:
    """And keeps it: attributes of what would be deleted or set back, authorities that were added to a record."""
    qmgr, granted = (
        "ALTER QMGR +\n  PSRTYCNT(10)\n",
        "SET AUTHREC PROFILE(Sport) OBJTYPE(TOPIC) GROUP('g') AUTHADD(PUB)\n",
    )
    for name, text in (("2-objects.mqsc", qmgr), ("3-authorities.mqsc", granted)):
        (plan / name).write_text((plan / name).read_text() + text.replace("(Sport)", "('Sport')"))
    planned = plan / "planned.jsonl"
    record = {"PROFILE": "Sport", "OBJTYPE": "TOPIC", "ENTTYPE": "GROUP", "ENTITY": "g", "AUTHLIST": ["PUB"]}
    added = [
        {"kind": "QMGR", "name": "QM1", "attributes": {"PSRTYCNT": 10}},
        {"kind": "AUTHREC", "name": "TOPIC Sport GROUP g", "attributes": record},
    ]
    planned.write_text(planned.read_text() + "".join(f"{json.dumps(each)}\n" for each in added))
    assert live("apply", str(plan), "--through", "authorities", "--confirm", "stopped").code == 0
    live.mqsc(
        "ALTER QMGR PSRTYCNT(20) DESCR('his')\nALTER TOPIC('Sport') PUB(DISABLED)\nDEFINE TOPIC(HIS) TOPICSTR(his)\n"
    )
    live.mqsc("SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) GROUP('g') AUTHADD(SUB)\n")
    for words, done in ((("--rehearse",), "would be kept"), ((), "kept")):
        ran = live("apply", str(plan), "--undo", *words)
        assert ran.code == 1
        said = [line.partition(f"and {done}: ")[2] for line in ran.talk.splitlines() if "changed since" in line]
        assert said == [
            "authority record TOPIC Sport GROUP g: SUB was added to AUTHLIST",
            "the queue manager: PSRTYCNT is (20), the migration left (10)",
            "topic object Sport: PUB is (DISABLED), the migration left (ASPARENT)",
        ]
    shown = run(
        "mqsc", "-m", "QM1", "--home", str(live.home), stdin="DISPLAY QMGR DESCR PSRTYCNT\nDISPLAY TOPIC(HIS)\n"
    )
    assert "DESCR(his)" in shown.out
    assert "PSRTYCNT(20)" in shown.out
    assert "TOPIC(HIS)" in shown.out


@pytest.mark.parametrize("carried_out", [False, True], ids=["lost", "carried-out"])
@pytest.mark.parametrize("after", [0, 9])
def test_a_server_that_dies_in_the_middle(after: int, carried_out: bool, plan: Path, tmp_path: Path) -> None:
    """The next run goes on; no command is sent a second time after it was confirmed."""
    with rig("stub", tmp_path, processes=False) as live:
        assert live.stub is not None
        words = ("apply", str(plan), "--through", "authorities", "--confirm", "stopped", "--json")
        live.stub.dies_after, live.stub.dies_afterwards = after, carried_out
        ran = live(*words)
        found = json.loads(ran.out)
        assert ran.code == (1 if found["sent"] or found["done"] else 2)
        assert "was not reached" in found["stopped"]["why"]
        assert "Run the same command again" in ran.talk
        live.stub.dies_after = None
        again = live(*words)
        assert (again.code, json.loads(again.out)["stopped"]) == (0, None)
        sent = live.stub.commands
        assert len(sent) == len(set(sent))
        assert len(sent) in ((8, 7) if carried_out else (8,))
        assert live("apply", str(plan), "--undo").code == 0
        assert "QUEUE(A.Q)" not in run("mqsc", "-m", "QM1", "--home", str(live.home), stdin="DISPLAY QUEUE(*)\n").out


# Crashes


class CrashError(BaseException):
    """The program ends here."""


@dataclass
class Crashing:
    """An administrator, and a journal beside it, that end at one of the moments before and after each step."""

    administrator: MemoryAdministrator
    left: int
    sent: list[str] = field(default_factory=list)

    qmgr: str = "QM1"
    where: str = "memory"

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise CrashError

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        return self.administrator.display(target, name, **scope)

    def run(self, statement: Statement) -> Outcome:
        self.tick()
        outcome = self.administrator.run(statement)
        self.sent.append(statement.text)
        self.tick()
        return outcome

    def close(self) -> None:
        return


def _in_turn(crashing: Crashing, plan: Path, journal: Path, *, undo: bool) -> None:
    heading, planned = read_planned(plan / "planned.jsonl")
    with closing(Journal.open(journal, heading, "memory")) as opened:
        if undo:
            undoing = Undoing(crashing, heading, planned)
            undoing.carry_out(opened)
            assert (undoing.left, undoing.others) == ([], [])
            return
        applier = Applier(crashing, None, plan, heading, planned, 0, frozenset({"stopped"}))
        for checkpoint in wanted_checkpoints(applier.remaining(opened), every=False, until="authorities"):
            applier.carry_out(checkpoint, opened)


@pytest.mark.rule("MIG-22")
@pytest.mark.parametrize("undo", [False, True], ids=["apply", "undo"])
def test_7_4_1_a_crash_at_every_step(undo: bool, plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after each command and each line of the journal: the next run goes on, and repeats nothing."""
    write, born = journal_module._write, memory("", "COMPAT")
    before = read_live(born)
    crashes = 0
    for moment in count(1):
        crashing = Crashing(memory("", "COMPAT"), 0)
        journal = plan / f"{undo}{moment}"
        _in_turn(crashing, plan, journal, undo=False) if undo else None
        crashing.sent.clear()

        def ticking(file: FileIO, line: str, path: Path, crashing: Crashing = crashing) -> None:
            crashing.tick()
            write(file, line, path)
            crashing.tick()

        crashing.left = moment
        monkeypatch.setattr(journal_module, "_write", ticking)
        try:
            _in_turn(crashing, plan, journal, undo=undo)
            break
        except CrashError:
            crashes += 1
        _in_turn(crashing, plan, journal, undo=undo)
        monkeypatch.setattr(journal_module, "_write", write)
        repeated = {text for text in crashing.sent if crashing.sent.count(text) > 1}
        # To take something back twice is harmless: what is gone is gone.
        assert not repeated or undo
        if not undo:
            assert "Sport" in read_live(crashing.administrator).topics
            _in_turn(crashing, plan, journal, undo=True)
        assert read_live(crashing.administrator) == before
    assert crashes > 30


# The journal


def test_a_journal_of_another_plan_or_queue_manager(live: Rig, plan: Path, tmp_path: Path) -> None:
    live("apply", str(plan))
    journal = plan / "apply.journal"
    heading, *entries = journal.read_text().splitlines()
    other = json.loads(heading) | {"fingerprint": "other"}
    journal.write_text("\n".join([json.dumps(other), *entries]) + "\n")
    ran = live("apply", str(plan))
    assert (ran.code, "is that of another plan" in ran.talk) == (2, True)
    other = json.loads(heading) | {"where": "queue manager QM1 at https://elsewhere:9443"}
    journal.write_text("\n".join([json.dumps(other), *entries]) + "\n")
    assert "is that of another queue manager" in live("apply", str(plan)).talk
    assert live("apply", str(plan), "--journal", str(tmp_path / "own"), "--confirm", "stopped").code == 0


def test_a_last_line_that_was_cut_off_is_left_out(live: Rig, plan: Path) -> None:
    live("apply", str(plan), *UNTIL["objects"])
    journal = plan / "apply.journal"
    text = journal.read_text()
    whole, _, last = text.rstrip("\n").rpartition("\n")
    journal.write_text(f"{whole}\n{last[:9]}")
    ran = live("apply", str(plan), *UNTIL["objects"], "--json")
    assert (ran.code, json.loads(ran.out)["done"], json.loads(ran.out)["sent"]) == (0, ["objects"], 0)
    assert journal.read_text() == text


def test_a_journal_that_is_damaged(live: Rig, plan: Path) -> None:
    live("apply", str(plan))
    (plan / "apply.journal").write_text("{}\n")
    ran = live("apply", str(plan))
    assert (ran.code, "is damaged" in ran.talk) == (2, True)


USAGE = [
    (("--confirm", "nothing"), "there is no checkpoint nothing"),
    (("--through", "nothing"), "there are compat, stopped, queues"),
    (("--undo",), "nothing was applied"),
    (("--undo", "--rehearse"), "nothing was applied"),
]


@pytest.mark.parametrize(("words", "said"), USAGE, ids=[" ".join(words) for words, _ in USAGE])
def test_usage(words: tuple[str, ...], said: str, live: Rig, plan: Path) -> None:
    ran = live("apply", str(plan), *words)
    assert (ran.code, said in ran.talk) == (2, True), ran.talk


def test_the_plan_of_another_queue_manager(plan: Path, tmp_path: Path) -> None:
    create(tmp_path / "home")
    for verb in ("apply", "verify"):
        ran = run(verb, "-m", "QM2", "--home", str(tmp_path / "home"), str(plan))
        assert (ran.code, "is the plan for queue manager QM1, not QM2" in ran.talk) == (2, True)


DAMAGED = [("", "line 1"), ('{"format":"x"}', "line 1"), ("HEADING\n{}", "line 2: kind"), ("HEADING\n{", "line 2")]


@pytest.mark.parametrize(("text", "said"), DAMAGED)
def test_a_plan_that_cannot_be_read(text: str, said: str, live: Rig, plan: Path) -> None:
    file = plan / "planned.jsonl"
    file.write_text(text.replace("HEADING", file.read_text().splitlines()[0]))
    ran = live("verify", str(plan))
    assert (ran.code, said in ran.talk) == (2, True), ran.talk


def test_a_directory_without_a_plan(live: Rig, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = live("verify", str(tmp_path / "empty"))
    assert (ran.code, "planned.jsonl: there is no such file" in ran.talk) == (2, True)
