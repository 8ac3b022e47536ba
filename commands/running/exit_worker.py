"""The process in which a publish exit written in Python runs: ``python -m commands.running.exit_worker``.

    stdin     a call on each line          {"parms": {...}, "publication": {...}, "subscription": {...}}
    stdout    an answer on each line       {"exit_response": 0, ...}

A program in another language is called in the same way. What the exit prints goes to stderr. The worker ends with
its input, and with the process that started it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import BaseModel, ConfigDict

from commands.broker import exit_values as exits
from commands.running.listening import die_with


class ExitCall(BaseModel):
    """One call: the parameters of MQ_PUBLISH_EXIT. The last two are None for initialization and termination."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True)

    parms: exits.ExitParms
    publication: exits.PublicationContext | None = None
    subscription: exits.SubscriptionContext | None = None

    def line(self) -> bytes:
        """As JSON, with the end of the line."""
        return self.model_dump_json().encode() + b"\n"


GROUP: Final = "qpubsub.publish_exits"
"""The entry points of packages that have publish exits."""
_STDOUT: Final = 1
_STDERR: Final = 2

ExitFunction = Callable[
    [exits.ExitParms, exits.PublicationContext | None, exits.SubscriptionContext | None], exits.ExitAnswer | None
]


def by_path(path: Path, function: str) -> ExitFunction:
    """The function of that name in a Python file; modules beside it can be imported. Raises PublishExitError."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise exits.PublishExitError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        raise exits.PublishExitError(f"{path} cannot be loaded: {_last_line(error)}") from error
    return _callable(getattr(module, function, None), f"{path} has no function {function}")


def by_entry_point(name: str) -> ExitFunction:
    """The function that an installed package offers under this name. Raises PublishExitError."""
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        raise exits.PublishExitError(f"no installed package has an entry point {name} in group {GROUP}")
    try:
        return _callable(found[0].load(), f"entry point {name} is not a function")
    except (ImportError, AttributeError) as error:
        raise exits.PublishExitError(f"entry point {name} cannot be loaded: {error}") from error


def _callable(found: object, otherwise: str) -> ExitFunction:
    if not callable(found):
        raise exits.PublishExitError(otherwise)
    return found


def answer_to(function: ExitFunction, call: ExitCall) -> exits.ExitAnswer:
    """What *function* answers; an exception, or what is no answer, is MQXCC_FAILED."""
    try:
        answer = function(call.parms, call.publication, call.subscription)
    except Exception as error:
        return exits.ExitAnswer(exit_response=exits.ExitResponse.FAILED, why=f"{_last_line(error)}{_place(error)}")
    if answer is None:
        return exits.ExitAnswer()
    if not isinstance(answer, exits.ExitAnswer):
        why = f"it returned {type(answer).__name__}, not an ExitAnswer or None"
        return exits.ExitAnswer(exit_response=exits.ExitResponse.FAILED, why=why)
    return answer


def serve(load: Callable[[], ExitFunction], calls: BinaryIO, answers: BinaryIO) -> None:
    """Answer calls until there are no more, or until the exit was told to end."""
    function: ExitFunction | None = None
    for line in calls:
        call = ExitCall.model_validate_json(line)
        try:
            if function is None:
                function = load()
            answer = answer_to(function, call)
        except exits.PublishExitError as error:
            answer = exits.ExitAnswer(exit_response=exits.ExitResponse.FAILED, why=error.why)
        answers.write(answer.model_dump_json(exclude_defaults=True).encode() + b"\n")
        answers.flush()
        if call.parms.exit_reason is exits.ExitReason.TERM:
            return


def _last_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()


def _place(error: BaseException) -> str:
    """The line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def main(arguments: list[str]) -> None:
    """``path FILE FUNCTION`` or ``entry-point NAME``, after the process id of the parent."""
    parent, kind, *where = arguments
    die_with(int(parent))
    # What the exit prints must not come between the answers.
    with os.fdopen(os.dup(_STDOUT), "wb") as answers:
        os.dup2(_STDERR, _STDOUT)
        serve(
            lambda: by_entry_point(*where) if kind == "entry-point" else by_path(Path(where[0]), where[1]),
            sys.stdin.buffer,
            answers,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
