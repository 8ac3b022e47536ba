"""A publish exit in a process of its own: calls and answers as lines of JSON through pipes (guide 4.6.2).

    started ── INIT ── PUBLICATION ... ── TERM ── ended
       ^                    │ the process ended in the call: once more, with a new process
       └────────────────────┘ no answer in time, or one that is none: the process is killed, the command fails

The bridge is never in the hands of the exit: it waits for a limited time, and what the exit does to its own process
stays there. A new process gets INIT and an empty user area, like a new connection.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO, Final, Self

from pydantic import ValidationError

from commands.broker.exit_values import (
    ExitAnswer,
    ExitMessage,
    ExitParms,
    ExitReason,
    ExitResponse,
    PublicationContext,
    PublishExit,
    PublishExitError,
    SubscriptionContext,
)
from commands.config.settings import PublishExitConfig
from commands.running.exit_worker import ExitCall
from rfh2.mqi_constants import MQXUA_NONE

_log = logging.getLogger("qpubsub.publish_exit")

START_S: Final = 20.0
"""How long a process may take until it has answered INIT; a call takes less, for nothing has to be loaded."""
MOST_BYTES: Final = 300_000_000
"""The longest answer: a message of the greatest length, in hexadecimal, and some more."""
_END_S: Final = 2.0
_OUT_OF_STEP: Final = "it wrote more than one line for a call, or answered before it had read the call"
_READ: Final = 1 << 16


class _EndedError(Exception):
    """The process has ended, and did not answer."""


class ExitProcess:
    """``PublishExit`` by a process.

    arguments: of the program. qmgr: the queue manager. data: for ExitData. seconds: for each call.
    """

    def __init__(self, arguments: Sequence[str], qmgr: str, data: str, seconds: float) -> None:
        self._arguments, self._qmgr, self._data, self._seconds = tuple(arguments), qmgr, data, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._area = MQXUA_NONE
        self._rest = b""

    @property
    def pid(self) -> int | None:
        """The process; None where there is none at present."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it and call it with INIT. Raises PublishExitError where it cannot be loaded or does not initialize."""
        if self._process is not None:
            return
        self._area, self._rest = MQXUA_NONE, b""
        try:
            # A signal from the terminal is for the bridge, which ends the exit when its own work is done.
            self._process = subprocess.Popen(
                self._arguments, 0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise PublishExitError(f"{self._arguments[0]} cannot be started: {error}") from error
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        try:
            answer = self._answer(ExitCall(parms=self._parms(ExitReason.INIT)), START_S)
        except _EndedError:
            raise PublishExitError("it ended before it was initialized") from None
        if answer.exit_response is not ExitResponse.OK:
            self._kill()
            raise PublishExitError(f"it cannot be initialized: {answer.why or answer.exit_response.name}")

    def publication(
        self, message: ExitMessage, publication: PublicationContext, subscription: SubscriptionContext
    ) -> ExitAnswer:
        """Call it for one message. Raises PublishExitError."""
        for last in (False, True):
            self.start()
            parms = self._parms(ExitReason.PUBLICATION, message)
            try:
                call = ExitCall(parms=parms, publication=publication, subscription=subscription)
                return self._answer(call, self._seconds)
            except _EndedError:
                if last:
                    raise PublishExitError("its process ended twice in the same call") from None
                _log.warning("publish exit: its process ended in a call; it is started again")
        raise AssertionError

    def close(self) -> None:
        """Call it with TERM, and end its process. Raises nothing."""
        if self._process is None:
            return
        try:
            self._answer(ExitCall(parms=self._parms(ExitReason.TERM)), min(self._seconds, _END_S))
        except (PublishExitError, _EndedError) as error:
            _log.warning("publish exit: it did not end in order: %s", error or "its process has ended")
        process = self._process
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                _log.warning("publish exit: its process did not end after MQXR_TERM, and is killed")
        self._kill()

    def _parms(self, reason: ExitReason, message: ExitMessage | None = None) -> ExitParms:
        return ExitParms(
            exit_reason=reason,
            qmgr_name=self._qmgr,
            exit_user_area=self._area,
            exit_data=self._data,
            message=message,
        )

    def _answer(self, call: ExitCall, seconds: float) -> ExitAnswer:
        """Raises _EndedError where the process has ended; PublishExitError where it gave no valid answer in time."""
        try:
            line = self._exchange(call.line(), time.monotonic() + seconds)
        except TimeoutError:
            self._kill()
            raise PublishExitError(f"no answer in {seconds:g} s; its process was killed") from None
        except BaseException:
            # An answer that comes later would be taken for that to another call.
            self._kill()
            raise
        try:
            answer = ExitAnswer.model_validate_json(line)
        except ValidationError as error:
            self._kill()
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise PublishExitError(f"its answer is not valid: {where and where + ': '}{first['msg']}") from None
        if answer.exit_user_area is not None:
            self._area = answer.exit_user_area
        return answer

    def _exchange(self, line: bytes, until: float) -> bytes:
        """Write *line* and read one. Raises _EndedError, TimeoutError, PublishExitError."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        unsent, got = memoryview(line), [self._rest]
        size = len(self._rest)
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdin, selectors.EVENT_WRITE)
            ready.register(process.stdout, selectors.EVENT_READ)
            while True:
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise TimeoutError
                for key, _ in ready.select(left_s):
                    if key.fileobj is process.stdin:
                        unsent = unsent[_written(process.stdin, unsent) :]
                        if not unsent:
                            ready.unregister(process.stdin)
                        continue
                    data = os.read(process.stdout.fileno(), _READ)
                    if not data:
                        raise _EndedError
                    got.append(data)
                    size += len(data)
                    if b"\n" in data:
                        answer, _, self._rest = b"".join(got).partition(b"\n")
                        if unsent or self._rest:
                            raise PublishExitError(_OUT_OF_STEP)
                        return answer
                    if size > MOST_BYTES:
                        raise PublishExitError(f"its answer is longer than {MOST_BYTES:,} bytes")

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its own session: what it has started goes with it
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        process.wait()


def _written(pipe: IO[bytes], data: memoryview) -> int:
    """How much of *data* the pipe took. Raises _EndedError."""
    try:
        return pipe.write(data[:_READ]) or 0
    except BrokenPipeError:
        raise _EndedError from None


# Opens the publish exit that table [publish_exit] of the configuration names.


@contextmanager
def publish_exits(config: PublishExitConfig | None) -> Iterator[Callable[[str], PublishExit | None] | None]:
    """The publish exit of a queue manager, for a replay; None where there is none. Its processes end with the block."""
    if config is None:
        yield None
        return
    with PublishExits(config) as exits:
        yield exits.of


class PublishExits:
    """The publish exit of each queue manager, in a process of its own. The processes end with the block."""

    def __init__(self, config: PublishExitConfig) -> None:
        self._config = config
        self._processes: dict[str, ExitProcess] = {}

    def of(self, qmgr: str) -> PublishExit | None:
        """That of *qmgr*, started and initialized; None where none is configured. Raises PublishExitError."""
        arguments = _arguments(self._config)
        if not arguments:
            return None
        process = self._processes.get(qmgr)
        if process is None:
            process = ExitProcess(arguments, qmgr, self._config.data, self._config.seconds)
            self._processes[qmgr] = process
        try:
            process.start()
        except PublishExitError as error:
            why = (
                f"{error.why}. No command is processed. Correct table [publish_exit] or what it names, and start again"
            )
            raise PublishExitError(why) from error
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.close()


def _arguments(config: PublishExitConfig) -> tuple[str, ...]:
    """The command line of the program that is called; nothing where there is no exit."""
    if config.program:
        return config.program
    worker = (sys.executable, "-m", "commands.running.exit_worker", str(os.getpid()))
    if config.path is not None:
        return (*worker, "path", str(config.path), config.function)
    return () if config.entry_point is None else (*worker, "entry-point", config.entry_point)
