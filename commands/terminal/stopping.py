"""How SIGTERM and SIGINT end a verb, at any moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set *stop*: the verb ends after what it is doing. Nothing changes on another thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def noting_interrupts() -> Iterator[threading.Event]:
    """Ctrl-C sets the event, and raises KeyboardInterrupt as always.

    A library in C may replace that exception by one of its own; pydantic does so. Where Python does not handle SIGINT,
    nothing changes.
    """
    interrupted = threading.Event()

    def noted(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.default_int_handler(number, frame)

    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, noted)
    try:
        yield interrupted
    finally:
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


@contextmanager
def deferring_interrupts() -> Iterator[None]:
    """Ctrl-C is raised when the block ends.

    For blocks that import: what is raised in the callback of a weak reference, of which Python has one for each module,
    is printed and lost.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda _number, _frame: interrupted.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupted.is_set():
            signal.raise_signal(signal.SIGINT)
