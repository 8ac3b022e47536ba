"""Runs the command line with a fault put in: messages whose data name it hang or kill the processor as they are read.

    python tests/commands/running/hanging.py run -m QM1 --home DIRECTORY

Data, whatever header they are behind: ``hang in C`` (a loop that runs no signal handler), ``hang in a regex``,
``hang in Python``, ``hang after reading``, ``hang if held`` (in Python, but not outside a unit of work), ``die``
(SIGSEGV).
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import deque
from itertools import repeat
from typing import Any

from commands.broker import core, reading
from commands.cli import main
from commands.running.supervisor import SupervisedWatchdog

_real_decode, _real_translate = core.decode, core.translate  # type: ignore[attr-defined]
_held = 0


def _decode(body: bytes, mqmd: Any) -> Any:
    if body.endswith(b"hang in C"):
        deque(repeat(None), maxlen=0)
    if body.endswith(b"hang in a regex"):
        re.match(r"(a+)+c", "a" * 64)
    if body.endswith(b"hang in Python") or (body.endswith(b"hang if held") and _held):
        while True:
            pass
    if body.endswith(b"die"):
        os.kill(os.getpid(), signal.SIGSEGV)
    return _real_decode(body, mqmd)


def _translate(command: Any, context: Any) -> Any:
    while context.message.body.endswith(b"hang after reading"):
        pass
    return _real_translate(command, context)


def _counting() -> None:
    real = SupervisedWatchdog.begin

    def begin(self: SupervisedWatchdog, message: Any, held: bool) -> None:
        global _held  # noqa: PLW0603
        _held = int(held)
        real(self, message, held)

    SupervisedWatchdog.begin = begin  # type: ignore[method-assign]


if __name__ == "__main__":
    core.decode = reading.decode = _decode  # type: ignore[attr-defined]
    core.translate = _translate  # type: ignore[attr-defined]
    _counting()
    main(sys.argv[1:])
