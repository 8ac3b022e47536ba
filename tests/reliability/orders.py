"""Order instead of mutation: whole segments of programs at a listener, in orders in which no program sends them.

    python -m tests.reliability.orders 100000

A Markov model: what follows a segment is most often what the client of the product sends next, and else any other
segment (GET in GET, MQCONN before INITIAL_DATA, a call within a put in parts, a second MQCONN). Each sequence is a
connection of its own. ``expected`` is the protocol in short: which calls are answered, in which order, and whether the
listener ends the connection. Afterwards nothing of a connection may be left in the listener.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from commands.broker.objects import LocalQueue, QueueManager
from commands.listener.server import Listener, ListenerOptions, ListenerThread
from commands.qmgr.store import QueueManagerStore
from rfh2 import mqi_constants
from rfh2.channel.layouts import API_HEADER
from rfh2.channel.segments import (
    CLOSE,
    ERROR,
    FIRST,
    LAST,
    PREFIX_BYTES,
    REPLY,
    SegmentHeader,
    SegmentType,
    Structure,
    read_segment,
    segment_length,
    type_name,
)
from rfh2.constants import reason_name
from rfh2.mqi_constants import MQGMO_WAIT, MQOO_INPUT_SHARED, MQOO_OUTPUT, MQPMO_ASYNC_RESPONSE
from tests.commands.listener.conftest import ANYBODY, processing
from tests.commands.listener.mqi_client import MqiClient
from tests.reliability.segments import Recorded, recorded, shared
from tests.waiting import until

GOES_ON: Final = 0.75
LONGEST: Final = 24
TOGETHER: Final = 4
PATIENCE_S: Final = 60
_CALLS: Final = range(SegmentType.MQCONN, SegmentType.MQSUBRQ + 1)
_REASONS: Final = {number for name, number in vars(mqi_constants).items() if name.startswith("MQRC_")}
# The listener itself has one connection, for the queues that programs share.
_LEFT: Final = {
    "connections": "SELECT max(0, count(*) - 1) FROM connections",
    "temporary subscriptions": "SELECT count(*) FROM temporary_subscriptions",
    "dynamic queues": "SELECT count(*) FROM dynamic_queues",
    "uncommitted messages": "SELECT count(*) FROM messages WHERE queue LIKE 'put %' OR queue LIKE 'got %'",
}
_STRANGERS: Final = (SegmentType.MQCONN, SegmentType.MQDISC)


@dataclass(frozen=True, slots=True)
class Letter:
    """A segment. answered: whether a call that it ends has a reply; at_once: whether that needs no message to come.

    shares: whether it offers to share the connection.
    """

    data: bytes
    answered: bool = True
    at_once: bool = True
    shares: bool = False

    @property
    def header(self) -> SegmentHeader:
        return read_segment(self.data)[0]

    def __str__(self) -> str:
        header = self.header
        part = {FIRST | LAST: "", FIRST: " begins", LAST: " ends"}.get(header.flags & (FIRST | LAST), " goes on")
        return type_name(header.kind) + (part if header.kind in _CALLS else "")


Word = tuple[Letter, ...]


class _More(Recorded):
    """Calls that the other programs do not make, after the ones that connect."""

    def made(self) -> list[Letter]:
        self.connect()
        handle = self.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
        self.put(handle, bytes(80_000))
        in_parts = [Letter(each) for each in self.sent[-3:]]
        self.put_unanswered(handle, b"unanswered", MQPMO_ASYNC_RESPONSE)
        unanswered = Letter(self.sent[-1], answered=False)
        self.request_get(handle, MQGMO_WAIT, 50)
        waits = Letter(self.sent[-1], at_once=False)
        self.reply(SegmentType.MQGET)
        self.disconnect()
        return [*in_parts, unanswered, waits, waits, Letter(self.sent[-1])]


def programs(port: int) -> tuple[Word, Word]:
    """The letters in the order in which programs send them: on a connection of its own, on a shared one."""
    alone = recorded(port)
    with _More(port) as client:
        more = client.made()
    own = (*map(Letter, alone), *more, Letter(alone[1]), *map(Letter, alone[2:6]))
    in_common = shared(port, alone)
    conversations = tuple(
        Letter(header._replace(conversation=1).write(payload), each.answered, each.at_once)
        for each in more
        for header, payload in (read_segment(each.data),)
    )
    return own, (Letter(in_common[0], shares=True), *map(Letter, in_common[1:]), *conversations)


def sequence(chance: random.Random, written: Sequence[Word]) -> Word:
    """Segments in an order that nobody sends."""
    letters = chance.choice(written)
    at, word = 0 if chance.random() < 0.9 else chance.randrange(len(letters)), []
    for _ in range(chance.randint(2, LONGEST)):
        word.append(letters[at])
        in_order = at + 1 < len(letters) and chance.random() < GOES_ON
        at = at + 1 if in_order else chance.randrange(len(letters))
        if chance.random() < 0.01:
            letters = chance.choice(written)
            at = min(at, len(letters) - 1)
    return tuple(word)


def expected(word: Word) -> tuple[list[int], bool]:
    """The calls of *word* that have a reply, in order; whether the listener ends the connection."""
    conversation: int | None = None
    phase, is_named, partial, answered = "new", False, None, list[int]()
    for letter in word:
        header = letter.header
        kind, whole = header.kind, header.flags & FIRST and header.flags & LAST
        if phase == "new":
            if kind != SegmentType.INITIAL_DATA:
                return answered, True
            # Whoever offers to share begins with conversation 1.
            phase, conversation = "agreed", 1 if letter.shares else None
        elif kind in (SegmentType.SOCKET_ACTION, SegmentType.HEARTBEAT):
            continue
        elif header.conversation != conversation:
            return answered, True
        elif kind in (SegmentType.USERID, SegmentType.CONAUTH_INFO):
            is_named = True
        elif phase == "agreed":
            if kind not in _STRANGERS or not whole:
                return answered, True
            answered.append(kind)
            phase = "connected" if kind == SegmentType.MQCONN and is_named else phase
        elif kind in _CALLS:
            if bool(header.flags & FIRST) == (partial is not None) or partial not in (None, kind):
                return answered, True
            partial = None if header.flags & LAST else kind
            if partial is None and letter.answered:
                answered.append(kind)
        elif kind not in (SegmentType.NOTIFICATION, SegmentType.REQUEST_MSGS):
            return answered, True
    return answered, False


class Spoken:
    """What came back from one connection on which *word* was sent. patient: waits for each reply that needs no message.

    faults: what is not as ``expected``.
    """

    def __init__(self, port: int, word: Word, patient: bool) -> None:
        self.replies, self.faults = list[int](), list[str]()
        self._is_refused = self._has_ended = False
        wanted, closes = expected(word)
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        try:
            self._speak(word, patient)
            if patient:
                self._listen(None if closes else len(wanted))
            if not self._has_ended:
                self._socket.shutdown(socket.SHUT_WR)
                self._listen(None)
        except TimeoutError:
            self.faults.append("it hung")
        except OSError:
            self._has_ended = True  # the listener has ended the connection
        finally:
            self._socket.close()
        if patient and not self.faults:
            if closes != self._is_refused:
                self.faults.append("the connection was not ended" if closes else "the connection was ended")
            if self.replies != wanted[: len(self.replies)] or (not closes and self.replies != wanted):
                self.faults.append(f"replies {[*map(type_name, self.replies)]}, not {[*map(type_name, wanted)]}")

    def _speak(self, word: Word, patient: bool) -> None:
        waiting = 0
        for n, letter in enumerate(word, 1):
            self._socket.sendall(letter.data)
            due, closes = expected(word[:n])
            if patient and (closes or (letter.at_once and not waiting)):
                self._listen(None if closes else len(due))
                if closes:
                    return
            waiting += not letter.at_once and letter.answered

    def _listen(self, count: int | None) -> None:
        """Read until *count* replies are there, or with None to the end."""
        while not self._has_ended and (count is None or len(self.replies) < count):
            prefix = self._exactly(PREFIX_BYTES)
            if prefix is None:
                self._has_ended = True
                return
            header, payload = read_segment(prefix + (self._exactly(segment_length(prefix) - PREFIX_BYTES) or b""))
            if self._is_refused:
                self.faults.append(f"{type_name(header.kind)} came after the end")
            if header.kind == SegmentType.STATUS:
                self._is_refused |= header.flags & (ERROR | CLOSE) == ERROR | CLOSE
            elif header.kind - REPLY in _CALLS and header.flags & FIRST:
                reason = Structure(API_HEADER, bytearray(payload), 0, header.order)["Reason"]
                if reason_name(reason) is None and reason not in _REASONS:
                    self.faults.append(f"{type_name(header.kind)} has reason {reason}, which IBM MQ does not have")
            if header.kind - REPLY in _CALLS and header.flags & LAST:
                self.replies.append(header.kind - REPLY)

    def _exactly(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                return None
            data += part
        return data


class Faults(logging.Handler):
    """Log records that tell of an error nobody foresaw."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[str] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note them meanwhile."""
        logging.getLogger().addHandler(self)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.name == "asyncio":
            self.told.append(f"{record.getMessage()}: {record.exc_info and record.exc_info[1]!r}")


class Desk:
    """A listener for QM1 in *home*, as long as it is entered. faults: what its log tells of."""

    def __init__(self, home: Path) -> None:
        self._home, self._made, self._log = home, list[Listener](), Faults()

    @contextmanager
    def open(self) -> Iterator[Desk]:
        QueueManagerStore.create(self._home, QueueManager("QM1", strict=True)).close()
        with QueueManagerStore.open(self._home, "QM1") as store, store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("Q", max_depth=500))
            unit.save_definition(LocalQueue("GOOD"))
        with self._log.listening(), processing(self._home), ListenerThread(self._listener) as self.port:
            self.programs = programs(self.port)
            yield self

    def _listener(self) -> Listener:
        options = ListenerOptions(port=0, quiesce_s=0.2)
        self._made.append(Listener(options, "QM1", lambda: QueueManagerStore.open(self._home, "QM1"), ANYBODY))
        return self._made[-1]

    @property
    def faults(self) -> list[str]:
        return self._log.told

    def is_served(self) -> bool:
        """Whether a program that does nothing wrong can put and get."""
        with MqiClient(self.port) as good:
            if good.connect() != 0:
                return False
            handle = good.opened("GOOD", MQOO_INPUT_SHARED | MQOO_OUTPUT)
            good.put(handle, b"as ever")
            return good.get(handle).body == b"as ever"

    def left(self) -> dict[str, int]:
        """What connections that are over have left in the listener and in the store; nothing where it is all right."""
        listener = self._made[0]
        assert listener._shared is not None
        shared, queues = listener._shared, listener._shared.open_queues
        until(lambda: not listener._sessions, "the connections to end")
        with QueueManagerStore.open(self._home, "QM1") as store:
            rows = {what: store.database.connection.execute(asked).fetchone()[0] for what, asked in _LEFT.items()}
        found = {
            "bytes of memory": shared.memory.used_bytes,
            "programs": len(shared.connected),
            "handles": sum(queues.inputs.values()) + sum(queues.outputs.values()),
            "locks": len(queues.locks),
            "subscriptions": len(queues.subscriptions) + len(queues.joinable),
            "units of work": len(queues.branches),
            **rows,
        }
        return {what: count for what, count in found.items() if count}


def tried(desk: Desk, word: Word, patient: bool) -> list[str]:
    """The faults that *word* brings to light."""
    return Spoken(desk.port, word, patient).faults


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of it. ended: connections that the listener ended, as it has to."""

    sequences: int
    segments: int
    ended: int
    served: int
    faults: int
    left: int
    seconds: int


def soak(home: Path, count: int, seed: int) -> tuple[Figures, list[str]]:
    """Try *count* sequences; the figures, and the faults."""
    began, faults, seen = time.monotonic(), list[str](), Counter[str]()
    lock = threading.Lock()

    with Desk(home).open() as desk:

        def one(n: int) -> None:
            chance = random.Random(f"{seed} {n}")
            word = sequence(chance, desk.programs)
            found = tried(desk, word, patient=chance.random() < 0.5)
            served = n % 500 or desk.is_served()
            with lock:
                seen.update(segments=len(word), ended=expected(word)[1], served=0 if n % 500 else served)
                faults.extend(f"sequence {n}: {each}: {', '.join(map(str, word))}" for each in found)
                if not served:
                    faults.append(f"after sequence {n}: a program was not served")

        with ThreadPoolExecutor(TOGETHER) as pool:
            for _ in pool.map(one, range(count)):
                pass
        left = desk.left()
        faults += [*desk.faults, *(f"{number} {what} left" for what, number in left.items())]
    seconds = round(time.monotonic() - began)
    figures = Figures(count, seen["segments"], seen["ended"], seen["served"], len(faults), len(left), seconds)
    return figures, faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures as JSON; 1 where there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", type=int, nargs="?", default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        figures, faults = soak(Path(home), asked.sequences, asked.seed)
    for fault in faults[:20]:
        print(fault, file=sys.stderr)
    print(json.dumps(asdict(figures)))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
