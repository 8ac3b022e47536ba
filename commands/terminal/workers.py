"""Processes that do the same work on one batch after another; results come in the order of the batches.

A worker is another Python that reads batches from its standard input and writes results to its standard output. It ends
when its input does, so none outlives this process, however that ends. Each worker has one batch at a time: neither side
ever waits to write while the other does.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any, Final, Generic, TypeVar, cast

from rfh2.errors import QPubSubError

I = TypeVar("I")  # noqa: E741 - what goes in
O = TypeVar("O")  # noqa: E741 - what comes out

_LENGTH: Final = struct.Struct("<Q")
_PROGRAM: Final = "import sys; sys.path[:] = sys.argv[1:]; from commands.terminal.workers import serve; serve()"


class WorkerError(QPubSubError):
    """A worker ended before its work was done."""


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worked(work: Callable[[I], O], batches: Iterable[I], count: int) -> Iterator[O]:
    """What *work* gives for each of *batches*, in their order, made by *count* processes.

    work: can be pickled, as its arguments and results can. Raises what *work* raises; WorkerError.
    """
    workers: list[_Worker[I, O]] = []
    busy: deque[_Worker[I, O]] = deque()
    try:
        for batch in batches:
            if len(workers) < count:
                workers.append(_Worker(work))
                workers[-1].send(batch)
                busy.append(workers[-1])
                continue
            worker = busy.popleft()
            result = worker.receive()
            # Before the result is used: the worker has something to do meanwhile.
            worker.send(batch)
            busy.append(worker)
            yield result
        while busy:
            yield busy.popleft().receive()
    finally:
        for worker in workers:
            worker.end()


class _Worker(Generic[I, O]):
    def __init__(self, work: Callable[[I], O]) -> None:
        arguments = [sys.executable, "-c", _PROGRAM, *filter(None, sys.path)]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._put(work)

    def send(self, batch: I) -> None:
        self._put(batch)

    def _put(self, value: object) -> None:
        assert self._process.stdin is not None
        try:
            _write(self._process.stdin, value)
        except BrokenPipeError as error:
            raise self._ended() from error

    def receive(self) -> O:
        assert self._process.stdout is not None
        try:
            succeeded, result = _read(self._process.stdout)
        except EOFError as error:
            raise self._ended() from error
        if not succeeded:
            raise result
        return cast(O, result)

    def _ended(self) -> WorkerError:
        code = self._process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return WorkerError(f"a process that was started for --jobs ended with {how}; --jobs 1 starts none")

    def end(self) -> None:
        """End the process; what it is doing is lost."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            # There may be a batch in it that nobody will read.
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def serve() -> None:
    """What a worker does: read the work, then do it for one batch after another."""
    # Ctrl-C is for whoever started it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    # What prints by mistake must not stand among the results.
    sys.stdout = sys.stderr
    try:
        work = _read(source)
        while True:
            batch = _read(source)
            try:
                answer = True, work(batch)
            except Exception as error:
                answer = False, error
            _write(target, answer)
    except (EOFError, BrokenPipeError):
        pass


def _write(stream: IO[bytes], value: object) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _read(stream: IO[bytes]) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)
