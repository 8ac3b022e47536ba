"""Two processes: a worker, which is the processor, and a supervisor, which only watches it.

    supervisor ── fork ──> worker ── dies on a message, or hangs ──> another worker, which knows of that message
        │ SIGTERM, SIGINT ──> the worker; ended by force where it has not begun to end after GRACE_S

A worker that hangs in Python is interrupted (SIGUSR1) and sets the message aside itself. One that hangs in C, which no
signal handler and no thread of its own can end, is killed. Units of work make that safe: the messages that it had got
are back on their queues. If the supervisor ends in any way, the worker ends too.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

from commands.disk.errors import ServerAwayError, SupersededError
from commands.qmgr.store.port import StoredMessage
from commands.qmgr.watchdog import BACKOUT_THRESHOLD, WAITS, EndedProcessors, OverdueError
from commands.running import work_page
from commands.running.listening import MOST_CRASHES, Crashes, Guardian, Heartbeat, die_with, notify
from commands.running.tenure import Tenure
from commands.terminal.console import Console, ExitCode
from rfh2.captured import iso

SUPERSEDED: Final = 75
AWAY: Final = 76
"""The worker's exit code where another instance has taken over: EX_TEMPFAIL, for this one may wait now."""
GRACE_S: Final = 0.7
ENDING_S: Final = 10.0
HELD_S: Final = 1.0
_TICK_S: Final = 0.1
_SLOW_S: Final = 0.3
# Python runs signal handlers between two of its steps; a worker that does not reach one in this time is in C.
_INTERRUPT_S: Final = 1.0
_STOPS: Final = (signal.SIGTERM, signal.SIGINT)
# Not handled between the fork and the worker's own handlers.
_HELD_BACK: Final = (*_STOPS, signal.SIGHUP)
# How Linux makes the number of the clock of another process's processor time (clock_getcpuclockid).
_CPU_OF_PROCESS: Final = 2
_IDLE, _READING, _HELD_READING = (
    int(work_page.Phase.IDLE),
    int(work_page.Phase.READING),
    int(work_page.Phase.HELD_READING),
)
_WORKING_OUT, _PUTTING = int(work_page.Phase.WORKING_OUT), int(work_page.Phase.PUTTING)


def supervised(
    console: Console,
    directory: Path,
    time_s: float,
    takes_hangup: bool,
    tenure: Tenure,
    guardians: Sequence[Guardian],
) -> work_page.WorkPage | int:
    """Fork a worker: the shared page in the worker, the exit code in the supervisor once there is no worker any more.

    time_s: for one message; 0 for no limit: then no message counts as hung. takes_hangup: whether SIGHUP is for the
    worker, which opens its log again, and does not end the program. tenure: renewed while the worker is not stopped
    (SIGSTOP). guardians: of the servers beside it. Raises SupersededError once another instance has taken over; then
    the worker has ended; and ServerAwayError where the worker has ended because of that, before it began.
    """
    return _Supervisor(console, directory, time_s, takes_hangup, tenure, guardians).run()


class _Supervisor:
    def __init__(
        self,
        console: Console,
        directory: Path,
        time_s: float,
        takes_hangup: bool,
        tenure: Tenure,
        guardians: Sequence[Guardian],
    ) -> None:
        self._console, self._directory, self._time_s, self._tenure = console, directory, time_s, tenure
        self._guardians = guardians
        self._takes_hangup, self._worker = takes_hangup, 0
        self._page = work_page.WorkPage()
        self._file: work_page.FixedFile | None = None
        self._is_written = False
        self._asked: float | None = None  # when the supervisor was asked to end
        self._crashes = Crashes()
        self._heartbeat = Heartbeat()

    def run(self) -> work_page.WorkPage | int:
        before = {number: signal.signal(number, self._stop) for number in _STOPS}
        if self._takes_hangup:
            signal.signal(signal.SIGHUP, self._hang_up)
        while True:
            self._page.reset()
            self._console.stderr.flush()
            self._console.stdout.flush()
            signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
            alive, held = os.pipe()
            supervisor, worker = os.getpid(), os.fork()
            if worker == 0:
                os.close(alive)
                for number, handler in before.items():
                    signal.signal(number, handler)
                if self._takes_hangup:
                    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the log is open
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
                die_with(supervisor)
                return self._page
            os.close(held)
            self._worker = worker
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
            try:
                code = self._look_after(worker, alive)
            except (SupersededError, ServerAwayError):
                self._end_by_force()
                if self._asked is not None:
                    return ExitCode.DONE
                for number, handler in before.items():
                    signal.signal(number, handler)
                raise
            finally:
                os.close(alive)
            if code is not None:
                return code

    def _end_by_force(self) -> None:
        if self._worker:
            os.kill(self._worker, signal.SIGKILL)
            os.waitpid(self._worker, 0)
            self._worker = 0

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        if self._asked is None:
            self._asked = time.monotonic()
            notify("STOPPING=1")

    def _hang_up(self, _signal: int, _frame: FrameType | None) -> None:
        if self._worker:
            os.kill(self._worker, signal.SIGHUP)

    def _look_after(self, worker: int, alive: int) -> int | None:
        """Wait until *worker* has ended; returns the exit code, None if another worker must be started."""
        seen = _Seen(worker)
        stop_sent, cause = False, ""
        # The worker's end closes the pipe, which nobody else has open.
        while not select.select([alive], [], [], _TICK_S)[0]:
            self._heartbeat.beat()
            self._tenure.renew(works=not is_stopped_child(worker))
            if self._asked is None:
                for guardian in self._guardians:
                    guardian.look_after()
            work = self._page.look()
            if self._asked is not None:
                if not stop_sent:
                    stop_sent = True
                    os.kill(worker, signal.SIGTERM)
                allowed_s = ENDING_S if self._page.phase is work_page.Phase.ENDING else GRACE_S
                if time.monotonic() - self._asked > allowed_s:
                    os.kill(worker, signal.SIGKILL)
                    break
                continue
            if work is None:
                continue
            seen.add(work)
            self._note(work if work.on_message and seen.for_s >= _SLOW_S else None)
            if not cause and self._hangs(worker, work, seen):
                cause = f"hung for {seen.for_s:.0f} s"  # by the clock, as a person sees it
                _kill_with_a_trace(worker)
        self._worker = 0
        _, status = os.waitpid(worker, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == SUPERSEDED:
            raise self._tenure.superseded()
        if code == AWAY and self._asked is None:
            raise ServerAwayError(f"the server was away when the processor of process {os.getpid()} began")
        return self._ended(code, cause)

    def _hangs(self, worker: int, work: work_page.Work, seen: _Seen) -> bool:
        """Whether *worker* is past interrupting; it is interrupted first."""
        if not self._time_s or not work.can_hang:
            return False
        limit_s = min(HELD_S, self._time_s) if work.phase is work_page.Phase.HELD_READING else self._time_s
        if seen.spent_s <= limit_s:
            return False
        if seen.overdue_s is None:
            seen.overdue_s = seen.spent_s
            self._page.mark_overdue(work.number)
            os.kill(worker, signal.SIGUSR1)
        return seen.spent_s - seen.overdue_s > _INTERRUPT_S

    def _ended(self, code: int, cause: str) -> int | None:
        if self._asked is not None:
            self._note(None)
            return code if code >= 0 else ExitCode.INTERRUPTED
        if code >= 0:
            self._note(None)
            return code
        work = self._page.look()
        if work is not None and work.on_message:
            self._note(work, cause or f"ended by signal {-code}{_name_of(-code)}")
            return None
        if not self._crashes.may_restart():
            text = f"the processor ended by signal {-code}{_name_of(-code)}, {MOST_CRASHES} times in a minute"
            self._console.warn(f"{text}; it is not started again")
            return ExitCode.INTERNAL
        return None

    def _note(self, work: work_page.Work | None, died: str = "") -> None:
        """Write to the file the message in work, or the one in work when the worker *died*."""
        if work is None and not self._is_written:
            return
        working: dict[str, Any] | None = None
        if work is not None:
            since = iso(datetime.fromtimestamp(work.since, UTC))
            working = {"pid": os.getpid(), "message": asdict(work.key), "seq": work.seq, "since": since, "died": died}
        # Without the file, only the end of the supervisor itself is not covered.
        with suppress(OSError):
            if self._file is None:
                self._file = work_page.FixedFile(self._directory / work_page.WORKING_FILE, work_page.ROOM)
            self._file.write({"working": working})
        self._is_written = work is not None


class _Seen:
    """How long the supervisor has seen one piece of work; time when it was stopped itself does not count.

    for_s: by the clock. spent_s: processor time, or a third of the time by the clock if the worker waits for something:
    so a busy machine does not look like a message that hangs.
    """

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._number, self._last, self._cpu_before = 0, time.monotonic(), self._cpu_s()
        self.for_s = self.spent_s = 0.0
        self.overdue_s: float | None = None

    def add(self, work: work_page.Work) -> None:
        now, cpu_s = time.monotonic(), self._cpu_s()
        if work.number != self._number or not work.on_message:
            self._number, self.for_s, self.overdue_s, self._cpu_before = work.number, 0.0, None, cpu_s
        else:
            self.for_s += min(now - self._last, 2.5 * _TICK_S)
        self.spent_s = max(cpu_s - self._cpu_before, self.for_s / WAITS)
        self._last = now

    def _cpu_s(self) -> float:
        """Processor time of the worker so far; 0 where the system does not say."""
        if sys.platform != "linux":
            return 0.0
        try:
            return time.clock_gettime(~self._worker << 3 | _CPU_OF_PROCESS)
        except OSError:
            return 0.0


class SupervisedWatchdog:
    """The worker's side (``commands.qmgr.watchdog.Watchdog``). stop: set once the worker was asked to end."""

    def __init__(self, page: work_page.WorkPage, stop: threading.Event, directory: Path) -> None:
        self._page, self._stop, self._enter = page, stop, page.enter
        self._poison_messages = work_page.PoisonMessages(directory)

    def begin(self, message: StoredMessage, held: bool) -> None:
        self._page.begin(message, _HELD_READING if held else _READING)

    def understood(self) -> None:
        self._enter(_WORKING_OUT)

    def worked_out(self) -> None:
        self._enter(_PUTTING)

    def idle(self) -> None:
        self._enter(_IDLE)

    def must_end(self) -> bool:
        return self._stop.is_set()

    def ended_on(self, message: StoredMessage) -> EndedProcessors | None:
        return self._poison_messages.ended_on(message)

    def succeeded(self, message: StoredMessage) -> None:
        # Where it stays in the file, no message to come is taken for it.
        with suppress(OSError):
            self._poison_messages.succeeded(message)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Let the supervisor interrupt, while inside."""
        before = signal.signal(signal.SIGUSR1, self._overdue)
        if sys.stderr is not None:
            faulthandler.register(signal.SIGUSR2, file=sys.stderr, all_threads=False)
        try:
            yield
        except SupersededError:
            # Whatever would be done on the way out, the status, the port or the tree's session is another instance's.
            os._exit(SUPERSEDED)
        finally:
            self._enter(work_page.Phase.ENDING)
            signal.signal(signal.SIGUSR1, before)

    def _overdue(self, _signal: int, _frame: FrameType | None) -> None:
        if self._page.is_overdue:
            raise OverdueError

    def last_ended_on(self, directory: Path) -> str | None:
        """A log line about the message on which the last processor ended, which is noted."""
        found = work_page.being_worked_on(directory)
        if found is None:
            return None
        key = work_page.key_of(found)
        cause = found["died"] or "ended with all that belonged to it"
        ended = EndedProcessors(1, cause)
        with suppress(OSError):
            ended = self._poison_messages.note_end(key, cause)
        with suppress(OSError):
            file = work_page.FixedFile(directory / work_page.WORKING_FILE, work_page.ROOM)
            try:
                file.write({"working": None})
            finally:
                file.close()
        then = "it is tried once more, by itself" if ended.deaths < BACKOUT_THRESHOLD else "it is set aside"
        what = f"message {found['seq']} on {key.queue} (MsgId {key.msg_id}, {key.size_bytes} bytes)"
        return f"{what}: the processor {cause} while it worked on it; {then}"


def is_stopped_child(pid: int) -> bool:
    """Whether somebody has stopped a child of this process (SIGSTOP), where the system says so."""
    if sys.platform != "linux":
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def _kill_with_a_trace(worker: int) -> None:
    """Write to stderr where it hangs: the C handler of the signal does this."""
    os.kill(worker, signal.SIGUSR2)
    time.sleep(_TICK_S)
    os.kill(worker, signal.SIGKILL)


def _name_of(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""
