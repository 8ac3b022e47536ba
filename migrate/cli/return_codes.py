"""The exit codes of the migration verbs, for a script that migrates many brokers.

| outcome | without | with --detailed-exit-code |
|---|---|---|
| done    | 0 | 0 |
| warned  | 0 | 1 |
| changed | 1 | 3 |
| lost    | 1 | 4 |
| refused | 2 | 2 |

Code 1 also reports a failure after the migration, such as an output that could not be written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import click

from commands.terminal.console import ExitCode
from migrate.outcome import Outcome

F = TypeVar("F", bound=Callable[..., Any])


class OutcomeCodes(NamedTuple):
    """The exit codes of one outcome. detailed: with --detailed-exit-code."""

    usual: ExitCode
    detailed: ExitCode


CODES: Final = {
    Outcome.DONE: OutcomeCodes(ExitCode.DONE, ExitCode.DONE),
    Outcome.WARNED: OutcomeCodes(ExitCode.DONE, ExitCode.PROBLEMS),
    Outcome.CHANGED: OutcomeCodes(ExitCode.PROBLEMS, ExitCode.CHANGED),
    Outcome.LOST: OutcomeCodes(ExitCode.PROBLEMS, ExitCode.LOST),
    Outcome.REFUSED: OutcomeCodes(ExitCode.USAGE, ExitCode.USAGE),
}
HELP: Final = {
    0: "done",
    1: "done, with losses or changes that a person must see; with --detailed-exit-code: done, with warnings",
    2: "refused, nothing was changed",
    3: "with --detailed-exit-code: done, and something has another meaning than before",
    4: "with --detailed-exit-code: done, and something is lost unless a person acts; a rehearsal ends with the code of "
    "the run that it rehearses",
}


def exit_code(outcome: Outcome, *, detailed: bool, failed: bool = False) -> ExitCode:
    """The verb's exit code. failed: something went wrong after the migration, which is done."""
    code = CODES[outcome].detailed if detailed else CODES[outcome].usual
    return max(code, ExitCode.PROBLEMS) if failed else code


def detailed_exit_code(function: F) -> F:
    """``--detailed-exit-code``: the verb gets *detailed_exit_code*."""
    option = click.option(
        "--detailed-exit-code",
        is_flag=True,
        help="Tell warnings (1), changes of meaning (3) and losses (4) apart by the exit code.",
    )
    return option(function)
