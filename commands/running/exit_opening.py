"""Opens the publish exit that table [publish_exit] of the configuration names."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from commands.broker.exit_values import PublishExit, PublishExitError
from commands.config.settings import PublishExitConfig
from commands.running.exit_process import ExitProcess


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
