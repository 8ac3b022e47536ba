"""Brokers in several processes at once, the largest first; one that fails does not stop the others.

Each broker has a process of its own, forked when its turn comes. So the memory is that of as many brokers as work at
once, and a process that is killed costs one broker, which is then as before or done. A worker ends when its parent
does, however that ends: nothing goes on that nobody waits for. A system that cannot fork does one after the other.

What each verb does to one broker: on an embedded queue manager, or on one that is reached over the network.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, NoReturn

from migrate.estate import acting, live_acting
from migrate.estate.acting import plan_broker
from migrate.estate.jobs import BrokerJob, BrokerResult
from migrate.estate.live_acting import extract_broker
from migrate.readers.sources import files_of
from rfh2.errors import MigrationError, QPubSubError, system_words

Action = Callable[[BrokerJob], BrokerResult]


class WorkerFaultError(Exception):
    """A fault of this program in a worker; its text is the traceback."""


def default_processes() -> int:
    """As many as this process may use processors."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def results(action: Action, jobs: Sequence[BrokerJob], processes: int) -> Iterator[BrokerResult]:
    """The result of *action* for each job, as they are done; at most *processes* at once.

    A broker whose action fails, or whose process is killed, is refused with the reason. Raises WorkerFaultError.
    """
    ordered = sorted(jobs, key=_size, reverse=True)
    if not hasattr(os, "fork"):
        yield from (_guarded(action, job) for job in ordered)
        return
    forking, waiting = multiprocessing.get_context("fork"), iter(ordered)
    working: dict[Connection, tuple[BrokerJob, BaseProcess]] = {}
    try:
        while True:
            while len(working) < processes and (job := next(waiting, None)) is not None:
                receiving, sending = multiprocessing.Pipe(duplex=False)
                process: BaseProcess = forking.Process(target=_work, args=(action, job, sending))
                process.start()
                sending.close()
                working[receiving] = job, process
            if not working:
                return
            for pipe in wait(working):
                assert isinstance(pipe, Connection)
                yield _ended(pipe, *working.pop(pipe))
    finally:
        for _, process in working.values():
            process.kill()
            process.join()


def _work(action: Action, job: BrokerJob, sending: Connection) -> NoReturn:
    """In the worker: Ctrl-C is the parent's, which then ends this process by its own end."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        try:
            answer: BrokerResult | str = _guarded(action, job)
        except Exception:
            answer = traceback.format_exc()
        sending.send(answer)
        status = 0
    finally:
        # Without the clean-up of the parent, whose files and buffers this process has too.
        os._exit(status)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _ended(pipe: Connection, job: BrokerJob, process: BaseProcess) -> BrokerResult:
    with pipe:
        try:
            answer = pipe.recv()
        except EOFError:
            answer = None
    process.join()
    if isinstance(answer, str):
        raise WorkerFaultError(f"broker of {job.qmgr}:\n{answer}")
    if isinstance(answer, BrokerResult):
        return answer
    code = process.exitcode or 0
    how = f"its process was killed (signal {-code})" if code < 0 else "its process ended"
    why = f"{how}; is there enough memory? --jobs 1 needs least. Run the same command again"
    return BrokerResult(job.qmgr, None, refused=why)


def _guarded(action: Action, job: BrokerJob) -> BrokerResult:
    try:
        return action(job)
    except QPubSubError as error:
        return BrokerResult(job.qmgr, None, refused="; ".join([str(error), *getattr(error, "__notes__", ())]))
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return BrokerResult(job.qmgr, None, refused=f"{where}{system_words(error)}")


def _size(job: BrokerJob) -> int:
    """Of its sources, in bytes; -1 where they cannot be looked at, which its action says."""
    try:
        return sum(file.stat().st_size for source in job.sources for file in files_of(source))
    except (MigrationError, OSError):
        return -1


def _either(embedded: Action, live: Action) -> Action:
    def act(job: BrokerJob) -> BrokerResult:
        return live(job) if job.is_live else embedded(job)

    return act


ACTIONS: Final[Mapping[str, Action]] = {
    "extract": extract_broker,
    "plan": plan_broker,
    "rehearse": _either(acting.rehearse_broker, live_acting.rehearse_broker),
    "apply": _either(acting.apply_broker, live_acting.apply_broker),
    "verify": _either(acting.verify_broker, live_acting.verify_broker),
    "undo": _either(acting.undo_broker, live_acting.undo_broker),
}
