"""``-m QMGR`` and ``--home``: the queue manager that a verb is for."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from commands.broker.objects import is_object_name
from commands.config.home import Home, parse_home
from commands.config.urls import is_mq_address
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import queue_managers
from commands.terminal.console import Console
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.errors import QPubSubError, StoreError
from rfh2.mqmd import name_of

F = TypeVar("F", bound=Callable[..., Any])

_HOME_VARIABLE: Final = "QPUBSUB_HOME"
_QMGR_VARIABLE: Final = "QPUBSUB_QMGR"


def say_created(console: Console, store: QueueManagerStore) -> None:
    """Say where a queue manager was made."""
    where = store.directory if isinstance(store.home, Path) else store.home
    console.say(f"queue manager {store.name} created in {where}")


def default_home() -> Path:
    """``./qmgrs`` where that is; else a directory of the user, which is the same wherever the command is given."""
    if (local := Path("qmgrs")).is_dir():
        return local
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "qpubsub")


def complete_queue_manager(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the queue managers under --home, where that is on the line already."""
    home = ctx.params.get("home") or os.environ.get(_HOME_VARIABLE) or default_home()
    return [name for name in _there(parse_home(str(home))) if name.startswith(incomplete)]


def _there(home: Home) -> list[str]:
    try:
        return [name for name in queue_managers(home) if is_object_name(name)]
    except (OSError, StoreError):
        return []


class HomeType(click.ParamType[Home]):
    """A directory, or a URL of PostgreSQL."""

    name = "home"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Home:
        if not isinstance(value, str):
            return cast(Home, value)
        try:
            home = parse_home(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if isinstance(home, Path) and home.is_file():
            self.fail(f"{value} is a file, not a directory", param, ctx)
        return home


HOME: Final = click.option(
    "--home",
    envvar=_HOME_VARIABLE,
    default=default_home,
    show_default="./qmgrs if it is there, else ~/.local/state/qpubsub",
    show_envvar=True,
    metavar="DIRECTORY|URL",
    type=HomeType(),
    help="The directory that holds the queue managers, or postgresql://[USER@]HOST/DATABASE.",
    is_eager=True,
)


def _at_home(ctx: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
    if given is not None and is_mq_address(given):
        why = "put, get, browse, pub, sub, mqsc, status and check work at mq://..."
        raise click.UsageError(f"-m {given}: {ctx.info_name} works with a queue manager of the home; {why}", ctx)
    return given


def _option(help_text: str, callback: Callable[..., Any] | None, *, required: bool) -> Callable[[F], F]:
    return click.option(
        "--qmgr",
        "-m",
        required=required,
        envvar=_QMGR_VARIABLE,
        show_envvar=True,
        metavar="QMGR",
        help=help_text,
        shell_complete=complete_queue_manager,
        callback=callback,
    )


def complete_queue(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the local queues of the queue manager on the line, or of the only one in the home."""
    home = parse_home(str(ctx.params.get("home") or default_home()))
    there = [ctx.params["qmgr"]] if ctx.params.get("qmgr") else _there(home)
    if len(there) != 1:
        return []
    from commands.qmgr.store import QueueManagerStore  # noqa: PLC0415 - for whoever presses TAB, and nobody else

    with suppress(QPubSubError), QueueManagerStore.open(home, there[0]) as store:
        names = (queue.definition.name for queue in store.overview().queues)
        return sorted(name for name in names if name.startswith(incomplete))
    return []


QUEUE: Final = click.argument("queue", shell_complete=complete_queue)
QMGR: Final = _option("The queue manager.", _at_home, required=True)
_AND_ELSEWHERE: Final = "The queue manager, or mq://[USER@]HOST/QMGR?channel=NAME for one elsewhere."


def only_queue_manager(ctx: click.Context, home: Home) -> str:
    """The one queue manager in *home*, for a verb that changes nothing; it is said which one. Raises UsageError."""
    found = _there(home)
    if len(found) != 1:
        there = f"{home} holds {', '.join(found)}" if found else f"{home} holds none; make one with: qpubsub create QM1"
        raise click.UsageError(f"Missing option '--qmgr' / '-m': {there}.", ctx)
    console = ctx.find_object(Console)
    assert console is not None
    console.say(f"queue manager {found[0]}, the only one in {home}")
    return found[0]


def _given_or_only(ctx: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
    if given is not None or ctx.resilient_parsing:
        return given
    return only_queue_manager(ctx, ctx.params["home"])


def queue_manager(function: F) -> F:
    """``-m`` and ``--home``: the verb gets *qmgr* (str) and *home*."""
    return QMGR(HOME(function))


def queue_manager_or_remote(function: F) -> F:
    """The same for a verb that works at a queue manager elsewhere too (``commands.options.remote``)."""
    return _option(_AND_ELSEWHERE, None, required=True)(HOME(function))


def queue_manager_to_read(function: F, *, remote: bool = False) -> F:
    """The same for a verb that changes nothing: without ``-m`` it takes the only queue manager in the home."""
    text = f"{_AND_ELSEWHERE if remote else 'The queue manager.'} You can omit it if the home has only one."

    def chosen(ctx: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
        return _given_or_only(ctx, parameter, given if remote else _at_home(ctx, parameter, given))

    return _option(text, chosen, required=False)(HOME(function))


def queue_manager_to_read_or_remote(function: F) -> F:
    """The same, at a queue manager elsewhere too."""
    return queue_manager_to_read(function, remote=True)


def queue_manager_or_none(when: str) -> Callable[[F], F]:
    """The same for a verb that needs none with some of its input: *qmgr* is None without ``-m``."""
    text = f"The queue manager. You can omit it {when}if the home has only one."
    return lambda function: _option(text, None, required=False)(HOME(function))


# What the verbs that put captured messages share: in which batches, and as whom.

_BATCH_MESSAGES: Final = 1_000
_BATCH_BYTES: Final = 16 * 1024 * 1024


def batches(found: Iterable[CaptureRecord]) -> Iterator[list[CaptureRecord]]:
    """*found* in the batches that are put together.

    Read before the unit of work begins: a slow reader must not keep other processes from the queues.
    """
    batch: list[CaptureRecord] = []
    size = 0
    for record in found:
        batch.append(record)
        size += 0 if record.message is None else len(record.message.body_hex) // 2
        if len(batch) >= _BATCH_MESSAGES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def user_of(message: CapturedMessage) -> str | None:
    """Who puts: the user captured, else the MQMD's (None), else whoever calls this program."""
    if message.user is not None:
        return message.user
    descriptor = message.descriptor()
    if descriptor is not None and name_of(descriptor.user_identifier):
        return None
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


# Properties of a message as a person types them: ``Colour=red``, ``Size:int=3``.

_TYPES: Final[dict[str, Callable[[str], Any]]] = {
    "": str,
    "string": str,
    "int": int,
    "float": float,
    "boolean": lambda text: {"true": True, "false": False, "1": True, "0": False}[text.lower()],
}


def typed_property(option: str, text: str) -> tuple[str, Any]:
    """Name and value of ``NAME=VALUE`` or ``NAME:TYPE=VALUE``. Raises UsageError that names *option*."""
    name, equals, value = text.partition("=")
    name, _, kind = name.partition(":")
    if not equals or not name or kind not in _TYPES:
        raise click.UsageError(f"{option} {text}: not NAME=VALUE, nor NAME:TYPE=VALUE with int, float or boolean")
    try:
        return name, _TYPES[kind](value)
    except (ValueError, KeyError) as error:
        raise click.UsageError(f"{option} {text}: {value!r} is not a valid {kind}") from error
