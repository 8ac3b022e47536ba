"""``qpubsub status``: what an operator is shown, while the processor works, waits, or is not there."""

from __future__ import annotations

import fcntl
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from commands.broker.objects import LocalQueue
from commands.cli import main
from commands.cli.status import _link_line, page_of
from commands.qmgr.observer import ProcessorTally
from commands.qmgr.store import QueueManagerStore
from commands.running.journal import STATUS_FILE, Journal
from commands.running.work_page import ROOM as WORKING_ROOM, WORKING_FILE, FixedFile
from commands.terminal.console import Console, ExitCode
from rfh2 import Folder, Mqmd, Rfh2
from tests.commands.results_service import FIXTURE, capture
from tests.waiting import PATIENCE_S, until


def _run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments], env={"QPUBSUB_HOME": str(home)})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A queue manager QM1 with the results service on its queues."""
    assert _run(tmp_path, "create", "QM1").exit_code == ExitCode.DONE
    _fill(tmp_path)
    return tmp_path


def _fill(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        for message in capture():
            unit.put(message.queue, message.md, message.body, user=message.user)


def _status(home: Path) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(_run(home, "status", "-m", "QM1", "--json").stdout)
    return shown


def test_status_shows_depths_and_the_last_processor(home: Path) -> None:
    before = _status(home)
    control = before["queues"]["SYSTEM.BROKER.CONTROL.QUEUE"]
    assert (control["depth"], control["role"], before["input"]["waiting"]) == (12, "control", 26)
    assert 0 <= control["oldest_s"] <= before["input"]["oldest_s"] < 60
    assert before["processor"] == {"running": False, "working_on": None, "instances": []}
    _run(home, "run", "-m", "QM1", "--once")
    after = _status(home)
    assert after["queues"]["SYSTEM.BROKER.CONTROL.QUEUE"]["depth"] == 0
    assert after["input"] == {"waiting": 0, "oldest_s": None}
    assert (after["subscriptions"], after["retained"]) == (1, 0)
    assert after["processor"]["done"]["publications"] == 16
    assert [error["reason"] for error in after["processor"]["last_errors"]] == [3073]
    shown = _run(home, "status", "-m", "QM1").stdout
    there = sum('"queue":"RESULTS.SERVICE"' in line for line in (FIXTURE / "puts.jsonl").read_text().splitlines())
    assert re.search(rf"^ +{there} +\d+ s +{there} +0  RESULTS.SERVICE$", shown, re.MULTILINE)
    assert "No processor is running; the last one did 26 commands, 16 publications" in shown


def test_status_says_what_an_operator_has_to_look_at(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("SHORT", max_depth=2, get_enabled=False))
        unit.save_definition(LocalQueue("SHUT", put_enabled=False))
        for queue, body in (("SHORT", b"1"), ("SHORT", b"2"), ("SYSTEM.DEAD.LETTER.QUEUE", b"no header")):
            unit.put(queue, None, body)
        for _ in range(3):
            unit.put("SYSTEM.BROKER.DEFAULT.STREAM", None, b"RFH \2\0\0\0" + bytes(1_000_000))
    _run(home, "run", "-m", "QM1", "--once")
    dead = _status(home)["dead_letters"]
    assert dead == {
        "queue": "SYSTEM.DEAD.LETTER.QUEUE",
        "looked_into": 4,
        "reasons": [
            {"reason": 2334, "for": "SYSTEM.BROKER.DEFAULT.STREAM", "count": 3},
            {"reason": None, "for": None, "count": 1},
        ],
    }
    shown = _run(home, "status", "-m", "QM1").stdout
    assert "SHORT  (full: MAXDEPTH 2; getting is inhibited)" in shown
    assert "SHUT  (putting is inhibited)" in shown
    assert "SYSTEM.DEAD.LETTER.QUEUE  (dead letters)" in shown
    assert "      3  2334 MQRC_RFH_ERROR: the MQRFH or MQRFH2 is not valid, for SYSTEM.BROKER.DEFAULT.STREAM" in shown
    assert "      1  without a dead-letter header" in shown


def test_status_of_a_processor_at_work_and_of_one_that_waits(home: Path) -> None:
    arguments = [sys.executable, "-m", "commands.cli", "--quiet", "run", "-m", "QM1", "--home", str(home)]
    with QueueManagerStore.open(home, "QM1") as store:
        process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
        try:
            until(lambda: _status(home)["processor"].get("done", {}).get("commands") == 26)
            at_work = _status(home)["processor"]
            with store.unit_of_work() as unit:
                unit.save_definition(LocalQueue("RESULTS.SERVICE", put_enabled=False))
                unit.save_definition(LocalQueue("SYSTEM.DEAD.LETTER.QUEUE", put_enabled=False))
            _fill(home)
            until(lambda: _status(home)["processor"]["waiting"] is not None)
            waiting = _run(home, "status", "-m", "QM1").stdout
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
    assert (at_work["running"], at_work["pid"], at_work["waiting"]) == (True, process.pid, None)
    assert f"Processor {process.pid} since" in waiting
    assert "Waiting since" in waiting
    assert "queue RESULTS.SERVICE: putting is inhibited (reason 2051); the dead-letter queue does not" in waiting
    assert "commands wait, the first for" in waiting


@pytest.mark.parametrize("errors", [0, 10], ids=["small", "errors-longer-than-the-file"])
def test_what_is_waited_for_is_shown_on_a_full_disk_too(
    home: Path, monkeypatch: pytest.MonkeyPatch, errors: int
) -> None:
    """The room of the status was taken before: no new file, and none that grows, is needed to say so."""
    journal = Journal(Console(io.BytesIO(), io.StringIO()), home / "QM1", None)
    journal.batch(ProcessorTally())
    size = (home / "QM1" / STATUS_FILE).stat().st_size
    reached: list[int] = []
    real = os.pwrite

    def full(descriptor: int, data: bytes, at: int) -> int:
        reached.append(at + len(data))
        if at + len(data) > size:
            raise OSError(28, "No space left on device")
        return real(descriptor, data, at)

    monkeypatch.setattr(os, "pwrite", full)
    with journal.following(), QueueManagerStore.open(home, "QM1") as store, store.processor_lock():
        for n in range(errors):
            logging.getLogger("qpubsub.processor").error("%d: %s", n, "x" * 10_000)
        logging.getLogger("qpubsub.processor").error("the disk is full", extra={"next_try_s": 1.0})
        shown = _status(home)["processor"]
        assert shown["waiting"]["text"] == "the disk is full"
        assert shown["running"] is True
    assert reached
    assert max(reached) <= size


def test_looking_keeps_no_processor_from_starting(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, QueueManagerStore.open(home, "QM1") as other:
        assert not store.has_processor()
        with store.processor_lock():
            assert other.has_processor()
        holder = (home / "QM1" / "run.lock").read_text()
        assert not other.has_processor()
        assert (home / "QM1" / "run.lock").read_text() == holder
        looking = os.open(home / "QM1" / "run.lock", os.O_RDONLY)
        fcntl.flock(looking, fcntl.LOCK_SH)
        later = threading.Timer(0.05, os.close, [looking])
        later.start()
        with store.processor_lock():
            pass
        later.join()


def test_status_says_what_is_being_worked_on(home: Path) -> None:
    message = {"queue": "SYSTEM.BROKER.DEFAULT.STREAM", "msg_id": "00ff", "put_at": "", "size_bytes": 4_000_000}
    told = {"message": message, "seq": 7, "since": "2026-01-02T03:04:05Z", "died": "", "pid": 1}
    FixedFile(home / "QM1" / WORKING_FILE, WORKING_ROOM).write({"working": told})
    assert _status(home)["processor"]["working_on"] is None, "no processor is running"
    with QueueManagerStore.open(home, "QM1") as store, store.processor_lock():
        work = _status(home)["processor"]["working_on"]
        shown = _run(home, "status", "-m", "QM1").stdout
    assert (work["queue"], work["msg_id"], work["size_bytes"], work["seq"]) == (message["queue"], "00ff", 4_000_000, 7)
    assert work["for_s"] > 0
    assert "Working on message 7 on SYSTEM.BROKER.DEFAULT.STREAM, 4,000,000 bytes, MsgId 00ff, for" in shown


def test_transmission_queues_that_nobody_defined_are_warned_of_once_and_shown(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("QM2", transmission=True))
        for qmgr in ("ELSEWHERE", "ELSEWHERE", "QM2"):
            psc = (
                f"<psc><Command>RegSub</Command><Topic>{qmgr}</Topic><QName>S</QName><QMgrName>{qmgr}</QMgrName></psc>"
            )
            publish = f"<psc><Command>Publish</Command><Topic>{qmgr}</Topic></psc>"
            for queue, text in (("SYSTEM.BROKER.CONTROL.QUEUE", psc), ("SYSTEM.BROKER.DEFAULT.STREAM", publish)):
                body = Rfh2((Folder.of(text),), format="MQSTR").encode() + b"data"
                unit.put(queue, Mqmd(format="MQHRF2", user_identifier="app").encode(), body)
    talk = _run(home, "run", "-m", "QM1", "--once").stderr
    assert talk.count("are on transmission queue ELSEWHERE, which was not defined") == 1
    assert "transmission queue QM2" not in talk
    roles = {name: queue["role"] for name, queue in _status(home)["queues"].items()}
    assert (roles["ELSEWHERE"], roles["QM2"]) == ("transmission", "transmission")


LINKS = [
    ({"connected": True, "trouble": "", "next_try_s": None}, "Topic tree: connected since 2026-01-01T00:00:00Z"),
    (
        {"connected": False, "trouble": "the connection is broken", "next_try_s": 4.0},
        "Topic tree: not connected since 2026-01-01T00:00:00Z: the connection is broken; "
        "pause before the next try 4.0 s",
    ),
]


@pytest.mark.parametrize(("state", "line"), LINKS, ids=["connected", "waiting"])
def test_the_link_to_a_topic_tree_is_shown(state: dict[str, Any], line: str) -> None:
    assert _link_line({"since": "2026-01-01T00:00:00Z", **state}) == line


@pytest.mark.rule("STR-4")
def test_6_5_4_status_names_a_stream_queue_that_the_namelist_lacks(home: Path) -> None:
    body = Rfh2((Folder.of("<psc><Command>Publish</Command><Topic>a</Topic></psc>"),)).encode()
    ours = Mqmd(format="MQHRF2", put_appl_type=26).encode()
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.put("SCORES", Mqmd(format="MQHRF2").encode(), body)
        unit.put("SUB.Q", ours, body)
        unit.put("APP.Q", None, b"data")
    shown = _run(home, "status", "-m", "QM1").stdout
    assert (
        "SCORES  (not processed: SCORES is not in SYSTEM.QPUBSUB.QUEUE.NAMELIST. "
        "If it is a stream queue, add it with ALTER NAMELIST)" in shown
    )
    assert {name for name, row in _status(home)["queues"].items() if row["not_read"]} == {"SCORES"}


def test_a_page_of_status_fits_the_window_and_begins_with_the_state() -> None:
    lines = ["Queue manager QM1", "x" * 81, *map(str, range(40))]
    assert page_of(lines, 80, 24) == ["Queue manager QM1", "x" * 77 + "...", *map(str, range(20)), "20 more lines"]
    assert page_of(lines[:3], 80, 24)[1:] == ["x" * 77 + "...", "0"]


def test_watch_shows_it_again_until_it_is_stopped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = 0

    def waited(_self: threading.Event, _seconds: float | None = None) -> bool:
        nonlocal shown
        shown += 1
        return shown > 2

    monkeypatch.setattr(threading.Event, "wait", waited)
    result = _run(home, "status", "-m", "QM1", "--watch", "5", "--json")
    assert [json.loads(line)["qmgr"] for line in result.stdout.splitlines()] == ["QM1"] * 3


@pytest.mark.skipif(shutil.which("setpriv") is None or os.geteuid() != 0, reason="root without rights needs setpriv")
def test_a_user_who_may_only_read_sees_the_status(home: Path) -> None:
    subprocess.run(["chown", "-R", "65534:65534", home], check=True)
    subprocess.run(["chmod", "-R", "u=rwX,go=rX", home], check=True)
    dropped = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", sys.executable, "-m", "commands.cli"]
    words = ["-m", "QM1", "--home", str(home)]
    for verb, code in (("status", 0), ("topics", 0), ("sub", 2)):
        more = ["a"] if verb == "sub" else []
        ran = subprocess.run([*dropped, verb, *words, *more], capture_output=True, text=True, check=False)
        assert (ran.returncode, "QM1" in ran.stdout) == (code, code == 0), ran.stderr
