"""The log and the status file of a processor: nothing that goes wrong with them stops it."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

from commands.qmgr.link_port import LinkState
from commands.qmgr.observer import ProcessorTally
from commands.running.journal import Journal, LogFile, LogFormat, last_status, reporting
from commands.terminal.console import Console


def test_a_terminal_that_goes_away_and_a_log_on_a_full_disk_stop_nothing(tmp_path: Path) -> None:
    class Gone(io.StringIO):
        def write(self, _text: str, /) -> int:
            raise BrokenPipeError

    class Full(LogFile):
        def write(self, _event: dict[str, Any]) -> None:
            raise OSError(28, "No space left on device")

    log = Full(tmp_path / "log", LogFormat.JSON, print)
    journal = Journal(Console(io.BytesIO(), Gone()), tmp_path / "no-such-directory", log)
    with journal.following():
        logging.getLogger("qpubsub.processor").error("this cannot be told", extra={"next_try_s": 1.0})
        journal.batch(ProcessorTally(commands=1))


def test_the_state_of_the_link_is_kept_in_the_status_file(tmp_path: Path) -> None:

    class Link:
        state = LinkState(False, "the broker does not answer", 2.0)

    link: Any = Link()
    journal = Journal(Console(io.BytesIO(), io.StringIO()), tmp_path, None)
    journal.watch(link)
    with journal.following():
        told = last_status(tmp_path)["link"]
    assert {**told, "since": ""} == {
        "since": "",
        "connected": False,
        "trouble": "the broker does not answer",
        "next_try_s": 2.0,
    }


def test_errors_are_counted_by_reason_and_program(tmp_path: Path) -> None:
    log = logging.getLogger("qpubsub.processor")
    journal = Journal(Console(io.BytesIO(), io.StringIO()), tmp_path, None)
    with journal.following():
        for cause in [(3073, "news"), (3072, "news"), (3073, "news"), *((3080, f"p{n}") for n in range(59))]:
            log.info("refused", extra={"cause": cause})
        log.info("no command", extra={"reason": 3073})
    counted = {(row["reason"], row["program"]): row["count"] for row in last_status(tmp_path)["errors_by_program"]}
    assert len(counted) == 60
    assert (3072, "news") not in counted
    assert counted[3073, "news"] == 2


def test_a_process_beside_the_processor_writes_to_the_same_log(tmp_path: Path) -> None:
    shown, log = io.StringIO(), tmp_path / "log"
    about = {"numbers": (9557,), "user": "alice", "channel": "A"}
    with reporting(Console(io.StringIO(), shown), log, LogFormat.JSON):
        logging.getLogger("qpubsub.listener").error("user %r may not connect", "alice", extra=about)
        logging.getLogger("qpubsub.listener").info("nothing to report")
        logging.getLogger("qpubsub.listener").info("for the log alone", extra={"is_told": True, "asserted": "bob"})
    event, other = map(json.loads, log.read_text().splitlines())
    assert event.pop("time").endswith("Z")
    assert (other["level"], other["asserted"], other["text"]) == ("info", "bob", "for the log alone")
    assert event == {
        "level": "error",
        "ids": ["AMQ9557E"],
        "channel": "A",
        "user": "alice",
        "text": "user 'alice' may not connect",
    }
    assert shown.getvalue().strip() == "qpubsub: user 'alice' may not connect"
