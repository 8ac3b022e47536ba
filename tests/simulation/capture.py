"""The commands that processors carried out, in the order of their commits: a capture for the replay."""

from __future__ import annotations

from collections import defaultdict

from commands.broker.outcome import Arrival
from commands.qmgr.execution import Execution
from commands.qmgr.store.port import StoredMessage
from rfh2.captured import CapturedMessage
from tests.simulation.kernel import Kernel

_arrival, _carry_out = Execution.arrival, Execution.carry_out


class Capture:
    """committed: by database."""

    def __init__(self, kernel: Kernel) -> None:
        self.committed: dict[str, list[CapturedMessage]] = defaultdict(list)
        pending: dict[int, list[CapturedMessage]] = defaultdict(list)
        arrived: dict[int, Arrival] = {}

        def arrival(execution: Execution, message: StoredMessage) -> Arrival:
            found = arrived[kernel.current.number] = _arrival(execution, message)
            return found

        def carry_out(execution: Execution, unit: object, message: object, batch: object) -> None:
            _carry_out(execution, unit, message, batch)  # type: ignore[arg-type]
            pending[kernel.current.number].append(_captured(arrived[kernel.current.number]))

        def begun(_path: str) -> None:
            pending.pop(kernel.current.number, None)

        def committed(path: str) -> None:
            self.committed[path] += pending.pop(kernel.current.number, ())

        kernel.replace(Execution, arrival=arrival, carry_out=carry_out)
        kernel.on_begin, kernel.on_commit = begun, committed


def _captured(one: Arrival) -> CapturedMessage:
    md_hex = None if one.md is None else one.md.hex()
    return CapturedMessage(
        seq=one.seq, time=one.now, queue=one.queue, user=one.user, md_hex=md_hex, body_hex=one.body.hex()
    )
