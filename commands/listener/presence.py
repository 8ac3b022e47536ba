"""Who is connected, told to whoever asks on the listener's socket; and the end of programs that somebody asks for.

mqsc, command server, console, metrics ── listener-*.sock ──> Presence ── what the sessions know, at this moment
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from pydantic import ValidationError

from commands.broker.connections import (
    ChannelInstance,
    ChannelTotals,
    Connection,
    ListenerReport,
    ListeningPlace,
    Obeyed,
    OpenHandle,
    Order,
)
from commands.listener.conversation import Conversation, Shared
from commands.listener.wire import Terms, Wire
from commands.qmgr.event_numbers import CHANNEL_STOPPED
from commands.qmgr.store.listeners import ANSWERED_S, SOCKETS, answer, reached
from rfh2.errors import StoreError, system_words

_log: Final = logging.getLogger("qpubsub.listener")
# Another listener of the queue manager, while this one begins.
_OTHERS_S: Final = 1.0
# After a client was told that it is ended, until its connection is cut.
_LINGER_S: Final = 0.5
# Without channels of its own the listener takes any name: what further ones do is counted together.
_MOST_CHANNELS: Final = 1_000
_OTHER_CHANNELS: Final = "(others)"


class Connected(Protocol):
    """A session, as far as it is shown and ended."""

    @property
    def wire(self) -> Wire: ...

    @property
    def terms(self) -> Terms | None: ...

    @property
    def conversations(self) -> list[Conversation]: ...

    @property
    def calls(self) -> int: ...

    @property
    def done(self) -> tuple[int, int]: ...

    def terminate(self) -> None: ...


Sessions = Callable[[], Mapping[asyncio.Task[None], Connected | None]]


class Presence:
    """Those of one listener. sessions: the connections that there are, each with the task that serves it.

    places: where it listens.
    """

    def __init__(self, shared: Shared, sessions: Sessions, places: Callable[[], list[ListeningPlace]]) -> None:
        self._shared, self._sessions, self._places = shared, sessions, places
        self._started = datetime.now(UTC)
        self._gone: dict[str, ChannelTotals] = {}
        self._path: Path | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, directory: Path) -> None:
        """Answer on a socket in *directory* until ``close``. What listeners have left that died is removed."""
        for path in directory.glob(SOCKETS.format("*")):
            try:
                answer(path, b"", _OTHERS_S)
            except ConnectionRefusedError:
                with suppress(OSError):
                    path.unlink()
            except OSError:
                continue
        path = directory / SOCKETS.format(f"{os.getpid()}-{secrets.token_hex(4)}")
        try:
            self._server = await asyncio.start_unix_server(self._answer, sock=_bound(path))
        except OSError as error:
            _log.warning("%s: %s; who is connected cannot be shown", path, system_words(error))
            return
        self._path = path

    def close(self) -> None:
        """Answer nobody any more."""
        if self._server is not None:
            self._server.close()
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    def ended(self, session: Connected) -> None:
        """A connection has ended: keep what was done on it."""
        if session.terms is None:
            return
        channel = session.terms.channel
        if channel not in self._gone and len(self._gone) >= _MOST_CHANNELS:
            channel = _OTHER_CHANNELS
        self._gone[channel] = _sum(self._gone.get(channel, ChannelTotals()), session)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValidationError):  # of the one who asks
            async with asyncio.timeout(ANSWERED_S):
                question = (await reader.readline()).strip()
            told = await self._obeyed(Order.model_validate_json(question)) if question else self.report()
            writer.write(told.model_dump_json().encode())
            await writer.drain()
        writer.close()

    def report(self) -> ListenerReport:
        """Who is connected now."""
        sessions = [each for each in self._sessions().values() if each is not None and each.terms is not None]
        totals = dict(self._gone)
        for session in sessions:
            assert session.terms is not None
            totals[session.terms.channel] = _sum(totals.get(session.terms.channel, ChannelTotals()), session)
        return ListenerReport(
            pid=os.getpid(),
            places=tuple(self._places()),
            started=self._started,
            instances=tuple(_instance(session) for session in sessions),
            totals=totals,
            stopped=tuple(sorted(self._shared.stopped)),
        )

    async def _obeyed(self, order: Order) -> Obeyed:
        if not order.branch:
            return self.obey(order)
        shared, number = self._shared, order.branch
        try:
            came = await shared.worker.do(lambda unit: unit.prepared.resolve(number, order.commits))
        except StoreError as error:
            _log.warning("transaction 0.%d: %s", number, error)
            return Obeyed()
        if came is None:
            return Obeyed()
        _log.warning(
            "transaction 0.%d, which was in doubt, was %s", number, "committed" if order.commits else "backed out"
        )
        shared.open_queues.came(came)
        shared.wake(came)
        return Obeyed(resolved=True)

    def obey(self, order: Order) -> Obeyed:
        """End programs or connections, or open and close a channel, as *order* says."""
        before = len(self._shared.stopped)
        if order.stopped is not None:
            (self._shared.stopped.add if order.stopped else self._shared.stopped.discard)(order.channel)
        ended = 0
        for task, session in list(self._sessions().items()):
            if session is None or session.terms is None:
                continue
            if order.connection:
                ended += self._end_program(task, session, bytes.fromhex(order.connection))
            elif order.stopped is not False and order.channel == session.terms.channel:
                if order.address not in ("", session.wire.address):
                    continue
                self._end(task, session, f"STOP CHANNEL({order.channel})")
                ended += 1
        return Obeyed(ended=ended, changed=len(self._shared.stopped) != before)

    def _end_program(self, task: asyncio.Task[None], session: Connected, identifier: bytes) -> int:
        """End the program with that identifier, and the connection where no other program is on it."""
        connected = session.conversations
        wanted = [each for each in connected if each.connection_id.startswith(identifier)]
        if not wanted:
            return 0
        why = f"STOP CONN of {wanted[0].connection_id[16:24].hex().upper()}"
        if len(connected) == 1:
            self._end(task, session, why)
            return 1
        _log.warning("%s: %s", session.wire.trace, why, extra={"numbers": (CHANNEL_STOPPED,)})
        stopping = asyncio.create_task(wanted[0].stop())
        self._tasks.add(stopping)
        stopping.add_done_callback(self._tasks.discard)
        return 1

    def _end(self, task: asyncio.Task[None], session: Connected, why: str) -> None:
        text = "%s: %s; the connection is closed"
        _log.warning(text, session.wire.trace, why, extra={"numbers": (CHANNEL_STOPPED,)})
        session.terminate()
        task.cancel()
        asyncio.get_running_loop().call_later(_LINGER_S, session.wire.abort)


def _bound(path: Path) -> socket.socket:
    """A socket that listens at *path*, for those who may use the directory. Raises OSError."""
    bound = socket.socket(socket.AF_UNIX)
    try:
        with reached(path) as where:
            bound.bind(where)
            # Nobody can connect before it listens.
            path.chmod(path.parent.stat().st_mode & 0o666)
    except BaseException:
        bound.close()
        raise
    return bound


def _sum(before: ChannelTotals, session: Connected) -> ChannelTotals:
    puts, gets = session.done
    return ChannelTotals(
        calls=before.calls + session.calls,
        puts=before.puts + puts,
        gets=before.gets + gets,
        received_bytes=before.received_bytes + session.wire.received_bytes,
        sent_bytes=before.sent_bytes + session.wire.sent_bytes,
    )


def _instance(session: Connected) -> ChannelInstance:
    wire, terms = session.wire, session.terms
    assert terms is not None
    programs = tuple(_connection(each) for each in session.conversations)
    return ChannelInstance(
        channel=terms.channel,
        address=wire.address,
        port=wire.port,
        started=datetime.fromtimestamp(wire.started_s, UTC),
        last=datetime.fromtimestamp(wire.heard_s, UTC),
        user=programs[0].user if programs else "",
        application=programs[0].application if programs else "",
        calls=session.calls,
        received_bytes=wire.received_bytes,
        sent_bytes=wire.sent_bytes,
        received_segments=wire.received_segments,
        sent_segments=wire.sent_segments,
        heartbeat_s=terms.heartbeat_s,
        sharing=terms.conversations,
        longest_message=terms.longest_message,
        cipher="" if wire.cipher is None else wire.cipher[0],
        programs=programs,
    )


def _connection(conversation: Conversation) -> Connection:
    program, waiting = conversation.program, conversation.waiting
    assert program is not None
    handles = tuple(
        OpenHandle(
            name=handle.name,
            object_type=handle.object_type,
            options=handle.options,
            queue=handle.queue,
            topic=handle.topic,
            sub_id="" if handle.subscription is None else handle.subscription.sub_id.hex().upper(),
            sub_name="" if handle.subscription is None else handle.subscription.name,
            waits=number in waiting,
        )
        for number, handle in program.handles
    )
    return Connection(
        id=conversation.connection_id[:24].hex().upper(),
        pid=os.getpid(),
        channel=conversation.identity.channel,
        address=conversation.identity.address,
        user=program.application.user,
        asserted=conversation.identity.user,
        application=program.application.name,
        since=program.since,
        unit_of_work=program.transactions.since,
        puts=program.puts,
        gets=program.gets,
        handles=handles,
    )
