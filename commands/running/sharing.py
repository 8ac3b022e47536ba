"""A bridge that shares a workload with others: it runs as many of the shares as are its part.

    bridge ── fork ──> run of QM1.SPORT ── fork ──> worker        all of them die with the bridge
           ── fork ──> run of QM1.NEWS  ── fork ──> worker

The bridges know of each other, and of who works for what, from locks of sessions in PostgreSQL, which the server
releases when a session ends, or is silent. Ten times a second a bridge compares what it runs with its part.

    it runs too few     it takes a share that nobody works for
    it runs too many    another bridge has come: it ends one, in order, which that bridge takes then
    one of its own      has lost its place, or is stopped: it ends that one by force, and runs it again

Two bridges that take the same share at once do no harm: the second ``run`` waits, and is ended here.

``shares.toml``: a workload in shares. Each is a queue manager of its own, with some of the queues.

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

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Protocol

from pydantic import Field

from commands.broker.objects import CONTROL_QUEUE, is_object_name
from commands.config.home import process_here
from commands.headers.registry import parse
from commands.links.engine.threads import Backoff
from commands.network.estate_file import Table, TableFileError, TomlLines, hint, made, parsed, read_text
from commands.running.listening import die_with
from commands.running.supervisor import is_stopped_child
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError, StoreError
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


TICK_S: Final = 0.1
ENDING_S: Final = 15.0
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0

Serve = Callable[[Share], int]
"""Called in a process of its own: work for the share; the exit code."""


class Membership(Protocol):
    """A bridge among the others (``postgresql_database.Members``)."""

    @property
    def me(self) -> int: ...
    def look(self) -> tuple[list[int], dict[str, str]]: ...


def part_of(shares: int, members: Sequence[int], me: int) -> int:
    """How many of *shares* are the part of *me*: as many as of each other of *members*, or one more.

    >>> [part_of(5, [7, 8, 9], each) for each in (7, 8, 9)]
    [2, 2, 1]
    """
    each, rest = divmod(shares, len(members))
    return each + (members.index(me) < rest)


class _Seat:
    """The place of one share at this bridge. holder: who works for it, as seen last. pid: of its ``run`` here, or 0."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.holder = ""
        self.pid = 0
        self.is_asked = self.was_active = False
        self.works_s = self.due_s = 0.0
        self.backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    def see(self, holder: str) -> None:
        """Note who works for it."""
        self.holder = holder
        self.was_active = self.was_active or self.is_active
        # One that is stopped before it has begun has no place that it could lose.
        if self.pid and not is_stopped_child(self.pid) and (self.is_active or not self.was_active):
            self.works_s = time.monotonic()

    def ask(self) -> None:
        """Have its ``run`` here end, in order."""
        self.is_asked = True
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    @property
    def is_active(self) -> bool:
        """Whether it is this bridge's ``run`` that works for it."""
        return self.pid != 0 and self.holder == process_here(self.pid)


class SharingBridge:
    """One bridge of *shares*, as a member among others. serve: see ``Serve``. say: for people.

    lease_s: for so long one of its own may be stopped, or without its place.
    """

    def __init__(
        self, shares: Sequence[Share], membership: Membership, serve: Serve, say: Callable[[str], None], lease_s: float
    ) -> None:
        self._seats = [_Seat(share) for share in shares]
        self._membership, self._serve, self._say, self._lease_s = membership, serve, say, lease_s
        self._trouble = ""

    def run(self, stop: threading.Event) -> None:
        """Work for a part of the shares until *stop* is set, then give them all up."""
        try:
            while not stop.wait(TICK_S):
                self.step()
        finally:
            self._end()

    def step(self) -> None:
        """Compare what this bridge runs with its part, and begin or end one."""
        self._reap()
        try:
            members, holders = self._membership.look()
        except StoreError as error:
            if not self._trouble:
                self._trouble = str(error)
                self._say(f"{error}; it is tried again")
            return
        self._trouble = ""
        for seat in self._seats:
            seat.see(holders.get(seat.share.qmgr, ""))
        running = [seat for seat in self._seats if seat.pid and not seat.is_asked]
        room = part_of(len(self._seats), members, self._membership.me) - len(running)
        if room < 0:
            self._give_up(running[-1], "another bridge takes it")
        elif room > 0:
            self._take_one(members)
        for seat in running:
            self._look_after(seat)

    @property
    def shares(self) -> dict[str, int]:
        """The process of ``run`` for each queue manager that this bridge works for."""
        return {seat.share.qmgr: seat.pid for seat in self._seats if seat.is_active}

    def _take_one(self, members: Sequence[int]) -> None:
        for seat in self._in_turn(members):
            if not seat.holder:
                self._begin(seat)
                return

    def _in_turn(self, members: Sequence[int]) -> Iterator[_Seat]:
        """Seats to take; each member begins elsewhere, so that two seldom want the same one."""
        count, now = len(self._seats), time.monotonic()
        first = members.index(self._membership.me) * count // len(members)
        for at in range(count):
            seat = self._seats[(first + at) % count]
            if seat.pid == 0 and seat.due_s <= now:
                yield seat

    def _look_after(self, seat: _Seat) -> None:
        if seat.holder and not seat.is_active:
            self._give_up(seat, f"process {seat.holder} works for it")
        elif time.monotonic() - seat.works_s > self._lease_s:
            self._say(f"{seat.share.qmgr}: process {seat.pid} is held up; it is ended")
            os.kill(seat.pid, signal.SIGKILL)

    def _begin(self, seat: _Seat) -> None:
        bridge, process = os.getpid(), os.fork()
        if process == 0:
            code = 1
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL if number is signal.SIGTERM else signal.default_int_handler)
                die_with(bridge)
                code = self._serve(seat.share)
            finally:
                os._exit(code)
        seat.pid, seat.is_asked, seat.was_active, seat.works_s = process, False, False, time.monotonic()

    def _give_up(self, seat: _Seat, why: str) -> None:
        self._say(f"{seat.share.qmgr}: {why}")
        seat.ask()

    def _reap(self) -> None:
        for seat in self._seats:
            if not seat.pid or os.waitpid(seat.pid, os.WNOHANG)[0] == 0:
                continue
            if seat.was_active:
                seat.backoff.reset()
            # What it gave up is another bridge's, which needs a moment to take it.
            seat.due_s = time.monotonic() + seat.backoff.next()
            seat.pid = 0

    def _end(self) -> None:
        for seat in self._seats:
            if seat.pid and not seat.is_asked:
                seat.ask()
        end = time.monotonic() + ENDING_S
        while any(seat.pid for seat in self._seats) and time.monotonic() < end:
            self._reap()
            time.sleep(TICK_S / 5)
        for seat in self._seats:
            if seat.pid:
                with suppress(ProcessLookupError):
                    os.kill(seat.pid, signal.SIGKILL)
                os.waitpid(seat.pid, 0)
                seat.pid = 0
