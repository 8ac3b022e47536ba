"""Processes that do the same work on one batch after another; results come in the order of the batches.

A worker is a fork of this process: it has all that is loaded and kept here, and starts in milliseconds. It reads
batches from one pipe and writes results to another. It ends when its batches do, so none outlives this process, however
that ends. Each worker has one batch at a time: neither side ever waits to write while the other does.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, Final, Generic, NoReturn, TypeVar

from rfh2.errors import QPubSubError

I = TypeVar("I")  # noqa: E741 - what goes in
O = TypeVar("O")  # noqa: E741 - what comes out

_LENGTH: Final = struct.Struct("<Q")
_PIPE_BYTES: Final = 1 << 20
"""Room in a pipe, where the system gives it: what fits is written at once, without a turn of the reader."""


class WorkerError(QPubSubError):
    """A worker ended before its work was done."""


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worked(work: Callable[[I], O], batches: Iterable[I], count: int) -> Iterator[O]:
    """What *work* gives for each of *batches*, in their order, made by *count* processes.

    Batches and results can be pickled. Where no process can be forked, as on Windows, this one does the work. Raises
    what *work* raises; WorkerError.
    """
    if not hasattr(os, "fork"):
        yield from map(work, batches)
        return
    workers: list[_Worker[I, O]] = []
    busy: deque[_Worker[I, O]] = deque()
    try:
        for batch in batches:
            if len(workers) < count:
                workers.append(_Worker(work, workers))
                workers[-1].send(_pickled(batch))
                busy.append(workers[-1])
                continue
            # While all are at work.
            packed = _pickled(batch)
            worker = busy.popleft()
            answer = worker.receive()
            # Before the result is used: the worker has something to do meanwhile.
            worker.send(packed)
            busy.append(worker)
            yield _result(answer)
        while busy:
            yield _result(busy.popleft().receive())
    finally:
        for worker in workers:
            worker.end()


class _Worker(Generic[I, O]):
    """A process. others: those that were started before it."""

    def __init__(self, work: Callable[[I], O], others: Sequence[_Worker[I, O]]) -> None:
        batches, self._batches = _pipe()
        self._results, results = _pipe()
        self._process = os.fork()
        if self._process == 0:
            # Each end is open in one process, so that a reader sees that its writer has ended.
            for stream in (self._batches, self._results, *(each for other in others for each in other.streams)):
                stream.close()
            _serve(work, batches, results)
        batches.close()
        results.close()

    @property
    def streams(self) -> tuple[IO[bytes], IO[bytes]]:
        """This process's ends of the two pipes."""
        return self._batches, self._results

    def send(self, batch: bytes) -> None:
        try:
            _write(self._batches, batch)
        except BrokenPipeError as error:
            raise self._ended() from error

    def receive(self) -> bytes:
        try:
            return _read(self._results)
        except EOFError as error:
            raise self._ended() from error

    def _ended(self) -> WorkerError:
        code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        self._process = 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return WorkerError(f"a process that was started for --jobs ended with {how}; --jobs 1 starts none")

    def end(self) -> None:
        """End the process; what it is doing is lost."""
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        for stream in self.streams:
            # There may be a batch in it that nobody will read.
            with suppress(OSError):
                stream.close()


def _serve(work: Callable[[I], O], batches: IO[bytes], results: IO[bytes]) -> NoReturn:
    """In the worker: do the work for one batch after another."""
    status = 1
    try:
        # Ctrl-C is for whoever started it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(EOFError, BrokenPipeError):
            while True:
                batch = pickle.loads(_read(batches))
                try:
                    answer: tuple[bool, O | Exception] = True, work(batch)
                except Exception as error:
                    answer = False, error
                _write(results, _pickled(answer))
        status = 0
    finally:
        # Without the clean-up of the process that was forked, whose files and buffers this one has too.
        os._exit(status)


def _result(answer: bytes) -> Any:
    succeeded, result = pickle.loads(answer)
    if not succeeded:
        raise result
    return result


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    import fcntl  # noqa: PLC0415 - Windows has none

    receiving, sending = os.pipe()
    # Not every system has it, and an ordinary user may have used up all the room for pipes.
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(sending, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return os.fdopen(receiving, "rb"), os.fdopen(sending, "wb")


def _pickled(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data
