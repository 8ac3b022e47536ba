"""``shares.toml``: a workload in shares. Each is a queue manager of its own, with some of the queues.

    name = "QM1"

    [[share]]
    qmgr = "QM1.SPORT"
    queues = ["SPORT.*", "SCORES*"]

    [[share]]
    qmgr = "QM1.REST"
    queues = ["*"]
    config = "rest.toml"

A queue belongs to the first share of which a pattern selects its name. Paths are relative to the directory of the file.
docs/scale-out.md explains every key; an unknown one is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from commands.broker.objects import CONTROL_QUEUE, is_object_name
from commands.headers.registry import parse
from commands.network.toml_tables import Table, TableFileError, TomlLines, hint, made, parsed, read_text
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from rfh2.mqmd import name_of

_TABLE: Final = "share"
_KEYS: Final = ("name", _TABLE)


class Share(Table):
    """One ``[[share]]``. qmgr: its queue manager. queues: patterns with ``*`` and ``?`` of the queues that it has.

    config: the file of ``run --config`` for it; None for none.
    """

    qmgr: str
    queues: Annotated[tuple[str, ...], Field(min_length=1)]
    config: Path | None = None


class Shares(Table):
    """The whole file. name: of the workload, under which the bridges find each other."""

    name: str
    shares: tuple[Share, ...]

    def of_queue(self, queue: str) -> Share | None:
        """The share that has *queue*; None where no pattern selects it."""
        found = (each for each in self.shares if any(fnmatchcase(queue, pattern) for pattern in each.queues))
        return next(found, None)


def read_shares(path: Path) -> Shares:
    """The shares in the file *path*. Raises TableFileError."""
    text, file = read_text(path, "docs/scale-out.md shows one"), str(path)
    values, lines = parsed(text, file), TomlLines(text, file)
    for key in values:
        if key not in _KEYS:
            raise TableFileError(lines.of_key(key), f"there is no key {key}{hint(key, _KEYS)}")
    tables = values.get(_TABLE, [])
    if not isinstance(tables, list) or not tables or not all(isinstance(each, dict) for each in tables):
        raise TableFileError(file, "it has no [[share]]: one for each queue manager of the workload")
    name = values.get("name")
    if not isinstance(name, str):
        raise TableFileError(file, "name is missing: the name of the workload")
    _require_name(name, lambda: lines.of_key("name"))
    found: list[Share] = []
    for number, table in enumerate(tables):
        where = partial(lines.of_key, table=_TABLE, number=number)
        share = made(Share, table, where)
        _require_name(share.qmgr, partial(where, "qmgr"))
        if share.qmgr in (each.qmgr for each in found):
            raise TableFileError(where("qmgr"), f"another share has the queue manager {share.qmgr}")
        placed = None if share.config is None else path.parent / share.config
        found.append(share.model_copy(update={"config": placed}))
    return Shares(name=name, shares=tuple(found))


def _require_name(name: str, where: Callable[[], str]) -> None:
    if not is_object_name(name):
        raise TableFileError(where(), f"{name!r} is not a name: 1 to 48 of A-Z a-z 0-9 . _ / %")


# The share that a message is for. Pure.
#
#     on a queue               the share of that queue
#     on the control queue     the share of the subscriber queue that the command names, in QName or in ReplyToQ;
#                              where no share has that, the one of the stream that it names
#
# So a subscription is where its queue is: with the streams of the same share.


class NoShareError(QPubSubError):
    """A message that is for none of the shares. what: the queues that it names."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"no share has {self.what}: add a pattern that selects it to a [[share]]"


def share_of(message: CapturedMessage, shares: Shares) -> Share:
    """The share in whose queue manager *message* must be put. Raises NoShareError, DecodeError, CommandError."""
    names = [message.queue] if message.queue != CONTROL_QUEUE else list(_named(message))
    for name in names:
        found = shares.of_queue(name)
        if found is not None:
            return found
    raise NoShareError(" or ".join(names) if names else f"a queue for it: it is on {CONTROL_QUEUE}, and names none")


def _named(message: CapturedMessage) -> Iterator[str]:
    """The queues that a command on the control queue is about."""
    decoded = message.decode()
    command = parse(decoded)
    for name in (command.q_name, name_of(decoded.mqmd.reply_to_q), command.stream_name):
        if name:
            yield name
