"""MQPSStreamName: which stream an MQRFH or PCF command means (guide 6.1, 7.2; wire formats 2.5).

The stream of a subscriber determines the prefix of its topics. The queue to which a publisher puts determines its
stream; a different stream name in the command is an error.
"""

from __future__ import annotations

from typing import Final

from commands.broker.context import Context
from commands.broker.objects import DEFAULT_STREAM, is_object_name
from commands.model import DeletePublication, Publish, QueuedCommand
from rfh2.constants import MQRCCF_INCORRECT_STREAM, MQRCCF_STREAM_ERROR, MQRCCF_UNKNOWN_STREAM
from rfh2.errors import CommandError

NAME_SEPARATOR: Final = ":"


def stream_of(command: QueuedCommand, context: Context) -> str | None:
    """The stream that a subscriber's command means; None for the default one.

    Raises CommandError 3071 for a name that is not valid for a stream, 3082 for a stream that does not exist.
    """
    name = command.stream_name
    if name is None or name == DEFAULT_STREAM:
        return None
    _check_name(name)
    if not context.is_stream(name):
        tags = (("StreamName", name),)
        raise CommandError(MQRCCF_UNKNOWN_STREAM, why="it is not in the queue namelist", tags=tags)
    return name


def check_stream(command: Publish | DeletePublication, context: Context) -> None:
    """Raise CommandError 3071 or 3075 where a command names a stream other than that of the queue it was put to."""
    name = command.stream_name
    if name is None:
        return
    _check_name(name)
    if name != context.queue:
        tags = (("StreamName", name),)
        raise CommandError(MQRCCF_INCORRECT_STREAM, why=f"it was put to {context.queue}", tags=tags)


def name_in_stream(name: str, stream: str) -> str:
    """The name in version 7 of what version 6 called *name* on a stream other than the default one (guide 7.6.1).

    Names were unique in a stream, and are now unique in the queue manager; migration appends the stream's name. The
    guide does not say which characters stand between the two.
    """
    return f"{name}{NAME_SEPARATOR}{stream}"


def name_without_stream(name: str, stream: str | None) -> str:
    """A program's own name for a subscription that migration may have renamed: the inverse of ``name_in_stream``."""
    return name if stream is None else name.removesuffix(f"{NAME_SEPARATOR}{stream}")


def _check_name(name: str) -> None:
    if not is_object_name(name):
        raise CommandError(MQRCCF_STREAM_ERROR, why="not a valid name", tags=(("StreamName", name),))
