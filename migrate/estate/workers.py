"""Brokers in several processes at once, the largest first; one that fails does not stop the others.

Each broker has a process of its own, forked when its turn comes. So the memory is that of as many brokers as work at
once, and a process that is killed costs one broker, which is then as before or done. A worker ends when its parent
does, however that ends: nothing goes on that nobody waits for. A system that cannot fork does one after the other.

What each verb does to one broker: on an embedded queue manager, or on one that is reached over the network.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from migrate.estate import acting, live_acting
from migrate.estate.jobs import BrokerJob, BrokerResult
from migrate.estate.live_acting import extract_broker
from migrate.estate.planning import plan_broker
from migrate.readers import files_of
from rfh2.errors import MigrationError, QPubSubError, system_words

Action = Callable[[BrokerJob], BrokerResult]

_READ_BYTES: Final = 1 << 16


class WorkerFaultError(Exception):
    """A fault of this program in a worker; its text is the traceback."""


@dataclass(slots=True)
class _Worker:
    """A process at work on *job*. received: what it has sent of its result."""

    job: BrokerJob
    process: int
    received: bytearray


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
    waiting = iter(ordered)
    # The parent alone holds the end that is written to: workers read the end of the file when the parent ends.
    lifeline, held = os.pipe()
    selector = selectors.DefaultSelector()
    try:
        while True:
            while len(selector.get_map()) < processes and (job := next(waiting, None)) is not None:
                pipe, worker = _started(action, job, lifeline, held)
                selector.register(pipe, selectors.EVENT_READ, worker)
            if not selector.get_map():
                return
            for key, _ in selector.select():
                data = os.read(key.fd, _READ_BYTES)
                if data:
                    key.data.received += data
                    continue
                selector.unregister(key.fd)
                os.close(key.fd)
                yield _ended(key.data)
    finally:
        os.close(held)
        os.close(lifeline)
        for key in list(selector.get_map().values()):
            os.close(key.fd)
            os.waitpid(key.data.process, 0)
        selector.close()


def _started(action: Action, job: BrokerJob, lifeline: int, held: int) -> tuple[int, _Worker]:
    receiving, sending = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(held)
        os.close(receiving)
        _work(action, job, lifeline, sending)
    os.close(sending)
    return receiving, _Worker(job, process, bytearray())


def _work(action: Action, job: BrokerJob, lifeline: int, sending: int) -> NoReturn:
    """In the worker: Ctrl-C is the parent's, which then ends this process by its own end."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
        try:
            answer: BrokerResult | str = _guarded(action, job)
        except Exception:
            answer = traceback.format_exc()
        with os.fdopen(sending, "wb") as stream:
            pickle.dump(answer, stream)
        status = 0
    finally:
        # Without the clean-up of the parent, whose files and buffers this process has too.
        os._exit(status)


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)


def _ended(worker: _Worker) -> BrokerResult:
    _, status = os.waitpid(worker.process, 0)
    if status:
        how = (
            f"its process was killed (signal {os.WTERMSIG(status)})" if os.WIFSIGNALED(status) else "its process ended"
        )
        why = f"{how}; is there enough memory? --jobs 1 needs least. Run the same command again"
        return BrokerResult(worker.job.qmgr, None, refused=why)
    answer = pickle.loads(bytes(worker.received))
    if isinstance(answer, str):
        raise WorkerFaultError(f"broker of {worker.job.qmgr}:\n{answer}")
    assert isinstance(answer, BrokerResult)
    return answer


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
