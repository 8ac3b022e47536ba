"""What a processor reports while it runs: messages on stderr, a log file, and the status that ``status`` shows.

The status is a small file of a fixed size in the queue manager's directory. The journal writes it at most twice a
second, on a full disk too. It is for people; the processor itself does not use it. An error here does not reach the
processor, which must not stop because its reports fail.

The file of ``--log``: one event on each line, as JSON or as text; opened again when a signal asks for that.

A program that rotates logs renames the file and sends SIGHUP. The next event goes to a new file of the same name.

The file of ``run --record``: every put, as JSON Lines, once it is committed.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any, Final, TextIO

from commands.broker.connections import NotAnsweredError
from commands.broker.puts import Put
from commands.disk.files import private
from commands.qmgr.link_port import ManagedLink
from commands.qmgr.observer import ProcessorTally
from commands.qmgr.store.database import Database
from commands.running.work_page import FixedFile, being_worked_on, read_fixed
from commands.terminal.console import Console
from rfh2.captured import iso
from rfh2.errors import StoreError, system_words
from rfh2.terminal_escape import harmless

STDERR: Final = Path("-")


class LogFormat(StrEnum):
    """How an event is written."""

    JSON = "json"
    TEXT = "text"


class LogFile:
    """Writes events to *path*, or with *show* where that is ``-``. Raises OSError where it cannot be opened.

    follows: open it again wherever it was renamed, for a process that gets no signal.
    """

    def __init__(self, path: Path, style: LogFormat, show: Callable[[str], None], follows: bool = False) -> None:
        self._path, self._style, self._show, self._follows = path, style, show, follows
        self._is_asked = False
        self._file = self._opened()

    @property
    def is_stderr(self) -> bool:
        """Whether it is no file: events are shown as they are, and not in the words for people."""
        return self._path == STDERR

    def write(self, event: dict[str, Any]) -> None:
        """Write *event*, at once. Raises OSError."""
        with suppress(OSError):
            self.reopen_if_asked()
        line = json.dumps(event) if self._style is LogFormat.JSON else as_text(event)
        if self._file is None:
            self._show(line)
            return
        self._file.write(line + "\n")
        self._file.flush()

    def reopen_if_asked(self) -> None:
        """Open the file again if a signal has asked for that. Raises OSError; then the open one is kept for now."""
        if self._file is not None and (self._is_asked or (self._follows and self._was_renamed(self._file))):
            file = self._opened()
            self._is_asked = False
            self._file.close()
            self._file = file

    @contextmanager
    def reopening(self) -> Iterator[None]:
        """SIGHUP asks for a new file, while inside; nothing changes on a thread of a program that embeds this."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def asked(_signal: int, _frame: FrameType | None) -> None:
            # Only noted: the signal may come in the middle of a write.
            self._is_asked = True

        before = signal.signal(signal.SIGHUP, asked)
        try:
            yield
        finally:
            signal.signal(signal.SIGHUP, before)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()

    def _was_renamed(self, file: TextIO) -> bool:
        try:
            return not os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return True

    def _opened(self) -> TextIO | None:
        if self.is_stderr:
            return None
        appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.fdopen(private(str(self._path), appending), "a", encoding="utf-8")


def as_text(event: dict[str, Any]) -> str:
    """One event as a line: time, level, identifiers, text. Control characters are escaped: an event is one line."""
    ids = "".join(f"{each} " for each in event.get("ids", ()))
    return harmless(f"{event['time']} {event['level'].upper():<7} {ids}{event['text']}")


class RecordError(StoreError):
    """The file cannot be written; the put is not lost, and must be written again."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; no command is processed until all committed puts are recorded"


class Recorder:
    """Appends to the file at *path*. Raises OSError where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = private(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        # The state of an incomplete line, which an earlier processor may have left too.
        self._rest = b"\n" if self._is_cut() else b""

    def write(self, put: Put) -> None:
        """Append *put*. Raises RecordError: then it was not taken."""
        self._flush()
        self._rest = put.model_dump_json().encode() + b"\n"
        size_bytes = len(self._rest)
        try:
            self._flush()
        except RecordError:
            if len(self._rest) == size_bytes:
                self._rest = b""
                raise
            # The line was begun, so complete it; the next write reports that there is no room.

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _flush(self) -> None:
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._descriptor, self._rest) :]
        except OSError as error:
            raise RecordError(str(self._path), system_words(error)) from error

    def _is_cut(self) -> bool:
        try:
            size_bytes = os.fstat(self._descriptor).st_size
            return size_bytes > 0 and os.pread(self._descriptor, 1, size_bytes - 1) != b"\n"
        except OSError:
            return False  # no file to read in: a pipe, a device


STATUS_FILE: Final = "run.status"
ROOM: Final = 32 * 1024
_ERRORS_KEPT: Final = 10
_CAUSES_KEPT: Final = 60
_EVERY_S: Final = 0.5
_RATE_S: Final = 2.0
_SIGN_OF_LIFE_S: Final = 5.0
# The fields of an event that the processor gives beside its text.
_ABOUT: Final = (
    "seq",
    "queue",
    "reason",
    "count",
    "next_try_s",
    "address",
    "channel",
    "user",
    "asserted",
    "program",
)


class Events(logging.Handler):
    """Shows the events of a log to people, and writes them to *log*; None for no file."""

    def __init__(self, console: Console, log: LogFile | None) -> None:
        super().__init__()
        self._console, self._log = console, log

    def emit(self, record: logging.LogRecord) -> None:
        """One event: to the terminal for people, to the log file as a JSON object."""
        event: dict[str, Any] = {
            "time": iso(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
        }
        about = {key: getattr(record, key) for key in _ABOUT if hasattr(record, key)}
        event |= {**_ids(record), **about, "text": record.getMessage()}
        with suppress(OSError, ValueError):
            if self._log is not None:
                self._log.write(event | _stack(record))
        with suppress(OSError, ValueError):
            if self._log is None or not self._log.is_stderr:
                self._report(record, about)
        self._note(record, event)

    def _report(self, record: logging.LogRecord, about: dict[str, Any]) -> None:
        if getattr(record, "is_told", False):
            return
        text = record.getMessage()
        if "next_try_s" in about:
            text += f"; the next try is in {about['next_try_s']:g} seconds"
        if record.levelno >= logging.WARNING:
            self._console.warn(text)
        else:
            self._console.say(text)

    def _note(self, record: logging.LogRecord, event: dict[str, Any]) -> None:
        """For who keeps events too."""


class Journal(Events):
    """The processor's log, while inside ``following``; the processor calls ``batch`` with what it did.

    log: file for the events; None for none. pid: the process to end in order to end the processor.
    errors: the last ones of the processor that this one replaces. beside: other handlers of the log.
    """

    def __init__(
        self,
        console: Console,
        directory: Path,
        log: LogFile | None,
        pid: int | None = None,
        errors: Iterable[dict[str, Any]] = (),
    ) -> None:
        super().__init__(console, log)
        self._path = directory / STATUS_FILE
        self._errors: deque[dict[str, Any]] = deque(errors, maxlen=_ERRORS_KEPT)
        self._causes: dict[tuple[int, str], dict[str, Any]] = {}
        self._pid = os.getpid() if pid is None else pid
        self._file: FixedFile | None = None
        self._started = datetime.now(UTC)
        self._written = 0.0
        self._then: tuple[float, ProcessorTally] = (time.monotonic(), ProcessorTally())
        self._rates: dict[str, float] = {}
        self._tally = self._written_tally = ProcessorTally()
        self._waiting: dict[str, Any] | None = None
        self._signed = time.monotonic()
        self.beside: list[logging.Handler] = []
        self._link: ManagedLink | None = None
        self._written_link: dict[str, Any] | None = None

    def watch(self, link: ManagedLink) -> None:
        """Show the state of the link to a topic tree elsewhere too."""
        self._link = link

    @property
    def waiting(self) -> dict[str, Any] | None:
        """What the processor cannot do and tries again: ``since``, ``text``, ``next_try_s``; None while it goes on."""
        return self._waiting

    @property
    def silence_s(self) -> float:
        """How long the processor has given no sign of life, in seconds."""
        return time.monotonic() - self._signed

    def _note(self, record: logging.LogRecord, event: dict[str, Any]) -> None:
        if (cause := getattr(record, "cause", None)) is not None:
            self._count(cause, event["time"])
        if "next_try_s" in event:
            self._signed = time.monotonic()
            since = event["time"] if self._waiting is None else self._waiting["since"]
            self._waiting = {"since": since, "text": event["text"], "next_try_s": event["next_try_s"]}
            self._write(running=True)
        if record.levelno >= logging.WARNING:
            self._keep(event)

    def _count(self, cause: tuple[int, str], time: str) -> None:
        """Count a command in error: its reason, and the program that put it. Of many, the oldest are forgotten."""
        reason, program = cause
        before = self._causes.pop(cause, {"count": 0})
        self._causes[cause] = {"reason": reason, "program": program, "count": before["count"] + 1, "last": time}
        if len(self._causes) > _CAUSES_KEPT:
            del self._causes[next(iter(self._causes))]

    def _keep(self, event: dict[str, Any]) -> None:
        """Add it to the last errors; equal errors in a row are one."""
        last = self._errors[-1] if self._errors else None
        if last is not None and last["text"] == event["text"]:
            event["times"] = last.get("times", 1) + 1
            self._errors.pop()
        self._errors.append(event)

    def batch(self, tally: ProcessorTally) -> None:
        """Take the totals, after each commit; they are the same while there is nothing to do."""
        self._waiting = None
        self._signed = time.monotonic()
        if self._log is not None:
            with suppress(OSError):
                self._log.reopen_if_asked()
        if tally != self._tally:
            self._tally = replace(tally)
        since_s = time.monotonic() - self._written
        news = self._tally != self._written_tally or any(self._rates.values()) or self._linked() != self._written_link
        if since_s >= (_EVERY_S if news else _SIGN_OF_LIFE_S):
            self._write(running=True)

    def _linked(self) -> dict[str, Any] | None:
        """The link's state, and the time of its last change; pauses between two tries are no change."""
        if self._link is None:
            return None
        state, before = self._link.state.as_dict(), self._written_link
        if before is not None and before["connected"] == state["connected"]:
            return {"since": before["since"], **state}
        return {"since": iso(datetime.now(UTC)), **state}

    def _write(self, running: bool) -> None:
        now = self._written = time.monotonic()
        self._written_tally = self._tally
        self._written_link = self._linked()
        since, before = self._then
        if now - since >= _RATE_S or not running:
            self._rates = {
                name: round((count - getattr(before, name)) / max(now - since, 0.001), 1)
                for name, count in self._tally.as_dict().items()
            }
            self._then = (now, self._tally)
        status = {
            "running": running,
            "pid": self._pid,
            "started": iso(self._started),
            "written": iso(datetime.now(UTC)),
            "done": self._tally.as_dict(),
            "per_second": self._rates,
            "waiting": self._waiting,
            "link": self._written_link,
            "errors_by_program": list(self._causes.values()),
        }
        try:
            if self._file is None:
                self._file = FixedFile(self._path, ROOM)
            errors = list(self._errors)
            while not self._file.write(status | {"last_errors": errors}) and errors:
                del errors[0]
        except OSError as error:
            with suppress(OSError, ValueError):
                self._console.warn(f"{self._path}: {system_words(error)}; the status is not kept")

    @contextmanager
    def following(self) -> Iterator[None]:
        """Receive the log of the processor until it ends."""
        log = logging.getLogger("qpubsub")
        log.handlers, log.propagate = [self, *self.beside], False
        log.setLevel(logging.INFO)
        self._write(running=True)
        try:
            with nullcontext() if self._log is None else self._log.reopening():
                yield
        finally:
            self._write(running=False)
            log.handlers = []
            if self._log is not None:
                self._log.close()
            if self._file is not None:
                self._file.close()


@contextmanager
def reporting(console: Console, log: Path | None, style: LogFormat) -> Iterator[None]:
    """Show the warnings and errors of a process beside the processor, and write them to the same log file.

    Of what is neither, that file has what is for it alone: programs that connect and disconnect. Where the file cannot
    be opened, the processor says so.
    """
    file = None
    with suppress(OSError):
        file = None if log is None else LogFile(log, style, console.lines, follows=True)
    logger = logging.getLogger("qpubsub")
    events = Events(console, file)
    events.addFilter(lambda record: record.levelno >= logging.WARNING or getattr(record, "is_told", False))
    logger.handlers, logger.propagate = [events], False
    logger.setLevel(logging.WARNING if file is None else logging.INFO)
    try:
        yield
    finally:
        logger.handlers = []
        if file is not None:
            file.close()


_LETTERS: Final = {logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}


def _ids(record: logging.LogRecord) -> dict[str, list[str]]:
    """The identifiers of messages of IBM MQ's error log that stand for the event."""
    numbers = getattr(record, "numbers", ())
    return {"ids": [f"AMQ{number}{_LETTERS.get(record.levelno, 'E')}" for number in numbers]} if numbers else {}


def _stack(record: logging.LogRecord) -> dict[str, str]:
    """Where in the program it happened, for faults of ours."""
    return {"stack": logging.Formatter().formatException(record.exc_info)} if record.exc_info else {}


def last_status(directory: Path) -> dict[str, Any]:
    """The status that the last processor on this machine wrote; empty if there is none."""
    return read_fixed(directory / STATUS_FILE, ROOM)


STATUS: Final = "status"
"""The question that asks for ``here`` of another machine."""


def here(directory: Path) -> dict[str, Any]:
    """What the processor on this machine does: ``status`` (``last_status``), ``working`` (``being_worked_on``)."""
    return {"status": last_status(directory), "working": being_worked_on(directory)}


def where_it_works(database: Database) -> dict[str, Any]:
    """``here`` of the machine whose processor works."""
    told = None
    with suppress(NotAnsweredError):
        told = database.ask(STATUS)
    found: dict[str, Any] = here(database.directory) if told is None else json.loads(told)
    return found
