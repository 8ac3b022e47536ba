"""The listener of one queue manager: its socket, its limits, and the worker that all sessions share.

The listener that ``--listen`` and the table [listener] of the configuration ask for.

Where a listener listens that obeys the LISTENER objects: which of them are started, and at which addresses.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Final, NamedTuple

from commands.broker.authority import GroupsOf, no_groups
from commands.broker.channel_objects import TcpListener
from commands.broker.connections import ListeningPlace
from commands.broker.objects import Objects
from commands.config.access import IsRight, by_pam, in_users_file, tls_context
from commands.config.home import Home
from commands.config.settings import ChannelRule, ConfigError, ListenerConfig
from commands.config.urls import is_loopback, parse_listen
from commands.disk.errors import ListenError
from commands.disk.open_files import Acceptor, OutOfFiles, carried, listening_sockets, open_files
from commands.listener.conversation import Shared, deliver_delayed
from commands.listener.presence import Presence
from commands.listener.request import Connections, Memory
from commands.listener.security import Security, requires_passwords
from commands.listener.session import Bounds, Session
from commands.listener.wire import MessageWaiters, Wire, give, status
from commands.listener.worker import Worker
from commands.qmgr.event_numbers import TOO_MANY_CHANNELS
from commands.qmgr.mqi.authority import TopicDefinitions
from commands.qmgr.store import Durability, QueueManagerStore
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.channel.segments import CHANNEL_UNAVAILABLE, CLOSE, ERROR, SegmentHeader, SegmentType
from rfh2.errors import StoreError, system_words

_ALL: Final = ("", "*")
_LOOPBACK: Final = "127.0.0.1"


class Place(NamedTuple):
    """An address to listen at. why: what is to be said of it."""

    host: str
    port: int
    why: str = ""


def place_of(listener: TcpListener, accepts_any: bool, is_safe: bool) -> Place:
    """Where *listener* is to listen.

    One without IPADDR listens at all addresses, but at the loopback address alone as long as no channel is defined, or
    where passwords would come as they are. An IPADDR that is given is meant; then only the first holds. accepts_any: of
    ``ChannelRules``. is_safe: whether no password comes as it is.
    """
    host = "" if listener.address in _ALL else listener.address
    if host and is_loopback(host):
        return Place(host, listener.port)
    if accepts_any:
        return Place(_LOOPBACK, listener.port, "no channel is defined, so only programs of this machine may connect")
    if not is_safe:
        if not listener.address:
            return Place(_LOOPBACK, listener.port, "passwords come as they are: add [listener.tls], or give IPADDR")
        return Place(host, listener.port, "passwords come as they are, without TLS")
    return Place(host, listener.port)


def forget_stops(unit: EmbeddedUnitOfWork, objects: Objects) -> None:
    """STOP LISTENER holds until ``run`` begins again, except where nothing but START LISTENER starts it."""
    for each in objects.own_listeners.values():
        if each.control != "MANUAL" and each.is_started is False:
            unit.save_definition(replace(each, is_started=None))


class Places:
    """The sockets of started listeners. listen: listens at a place; gives what accepts there, and the port."""

    def __init__(self, listen: Callable[[str, int], Awaitable[tuple[Acceptor, int]]]) -> None:
        self._listen = listen
        self._open: dict[str, tuple[Place, Acceptor, int]] = {}

    @property
    def port(self) -> int:
        """The port of the first that listens; 0 where none does."""
        return next((port for _, _, port in self._open.values()), 0)

    async def obey(self, wanted: Mapping[str, Place]) -> None:
        """Listen at the *wanted* places, by the names of their listeners, and at no others.

        A place that cannot be had is logged.
        """
        for name, (place, acceptor, _) in list(self._open.items()):
            if wanted.get(name) != place:
                acceptor.close()
                del self._open[name]
                _log.info("listener %s: stopped", name)
        for name, place in wanted.items():
            if name in self._open:
                continue
            try:
                acceptor, port = await self._listen(place.host, place.port)
            except OSError as error:
                _log.error(
                    "listener %s: cannot listen on %s:%d: %s", name, place.host or "*", place.port, error.strerror
                )
                continue
            self._open[name] = (place, acceptor, port)
            if place.why:
                _log.warning("listener %s: %s", name, place.why)

    @property
    def told(self) -> list[ListeningPlace]:
        """Where it listens now."""
        return [ListeningPlace(name=name, host=at.host, port=port) for name, (at, _, port) in self._open.items()]

    def close(self) -> None:
        """Take no more connections."""
        for _, acceptor, _ in self._open.values():
            acceptor.close()


_log: Final = logging.getLogger("qpubsub.listener")


_HANDSHAKES_WAITING: Final = 512
_MOST_REFUSED: Final = 32
_REFUSED_S: Final = 1.0
# Its socket, and the lock of a program that holds dynamic queues.
_FILES_OF_CONNECTION: Final = 2


@dataclass(frozen=True, slots=True)
class ListenerOptions:
    """Where to listen, and how much to bear. host: None where the LISTENER objects say it.

    connections: the most at a time; of_address: of one address.

    memory_bytes: for messages that are received or sent at a time. quiesce_s: how long programs may go on when the
    listener is asked to end. plain_passwords: whether they may come without TLS from other machines.
    """

    host: str | None = "127.0.0.1"
    port: int = 1414
    bounds: Bounds = field(default_factory=Bounds)
    connections: int = 1_000
    connections_of_address: int = 250
    memory_bytes: int = 512_000_000
    quiesce_s: float = 5.0
    tls: ssl.SSLContext | None = None
    plain_passwords: bool = False


class _Arrival(asyncio.Protocol):
    """A connection that has just come: nothing is read from it before it is admitted."""

    def __init__(self, admit: Callable[[asyncio.Transport], None]) -> None:
        self._admit = admit

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        self._admit(transport)


class Listener:
    """Serves clients from ``start`` to ``stop``.

    open_store: opens the queue manager, on a thread of the listener's. groups_of: the groups of a user.
    """

    def __init__(
        self,
        options: ListenerOptions,
        name: str,
        open_store: Callable[[], QueueManagerStore],
        security: Security,
        groups_of: GroupsOf = no_groups,
    ) -> None:
        self._topics = TopicDefinitions(groups_of)
        self._options, self._open_store = options, open_store
        self._waiters = MessageWaiters()
        self._name, self._security = name, security
        self._files = open_files()
        most = carried(options.connections, _FILES_OF_CONNECTION, self._files)
        self._connections = Connections(most, options.connections_of_address)
        self._is_full, self._refused = False, 0
        self._sessions: dict[asyncio.Task[None], Session | None] = {}
        self._acceptor: Acceptor | None = None
        self._places = Places(self._listen)
        self._obeyed: Objects | None = None
        self._turn, self._is_ending = asyncio.Lock(), False
        self._obeying: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._shared: Shared | None = None
        self._presence: Presence | None = None
        self._port = 0
        self._delayed: asyncio.Task[None] | None = None
        self._fault: BaseException | None = None
        self._failed = asyncio.Event()

    @property
    def where(self) -> str:
        """HOST:PORT."""
        return "*:0" if self._options.host is None else f"{self._options.host}:{self._options.port}"

    async def start(self) -> int:
        """Listen; returns the port, 0 where no LISTENER is started. Raises OSError, StoreError."""
        options = self._options
        self._worker = Worker(self._open_store, self._arrived, self._fail)
        await self._worker.start()
        # A listener that was killed has left what its programs held open.
        await self._worker.alone(lambda store: store.end_lost_connections())
        memory = Memory(options.memory_bytes)
        self._shared = Shared(
            name=self._name,
            worker=self._worker,
            waiters=self._waiters,
            security=self._security,
            new_id=_new_ids(),
            memory=memory,
            failed=self._fail,
            topics=self._topics,
        )
        self._delayed = asyncio.get_running_loop().create_task(deliver_delayed(self._shared))
        most = self._connections.most
        if most < options.connections:
            text = "at most %d connections instead of %d: this process may have %s open files (LimitNOFILE)"
            _log.warning(text, most, options.connections, self._files)
        self._presence = Presence(self._shared, lambda: self._sessions, self._listening)
        await self._presence.serve(await self._worker.alone(lambda store: store.directory))
        if options.host is None:
            await self._worker.do(lambda unit: forget_stops(unit, self._topics.objects(unit)))
            await self._obey()
            return self._places.port
        self._acceptor, port = await self._listen(options.host, options.port)
        self._port = port
        return port

    def _listening(self) -> list[ListeningPlace]:
        if self._options.host is None:
            return self._places.told
        return [ListeningPlace(host=self._options.host, port=self._port)] if self._acceptor is not None else []

    async def _listen(self, host: str, port: int) -> tuple[Acceptor, int]:
        sockets = await listening_sockets(host, port, _HANDSHAKES_WAITING)
        port = sockets[0].getsockname()[1]
        out_of_files = OutOfFiles(_log, f"the listener on {host}:{port}", asyncio.get_running_loop().time)
        _log.info("listening on %s:%d for queue manager %s", host or "*", port, self._name)
        return Acceptor(sockets, lambda: _Arrival(self._admit), out_of_files), port

    async def _obey(self) -> None:
        """Listen where the started LISTENER objects say."""
        assert self._worker is not None
        async with self._turn:
            objects = await self._worker.do(self._topics.objects, lasting=False)
            if objects is self._obeyed:
                return
            rules = self._security.rules(objects)
            is_safe = self._options.tls is not None or self._options.plain_passwords
            is_safe |= not self._security.reads_passwords(rules)
            started = (each for each in objects.listeners.values() if each.is_wanted)
            await self._places.obey({each.name: place_of(each, rules.accepts_any, is_safe) for each in started})
            self._obeyed = objects

    def _look_at_obeying(self, task: asyncio.Task[None]) -> None:
        """They are obeyed again when something changes next."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("the LISTENER objects: %s", error, exc_info=None if isinstance(error, StoreError) else error)

    def _fail(self, error: BaseException) -> None:
        if self._fault is None:
            self._fault = error
            self._failed.set()

    async def until(self, ended: asyncio.Event) -> None:
        """Wait until *ended* is set. Raises the fault after which it cannot go on."""
        waits = [asyncio.ensure_future(each.wait()) for each in (ended, self._failed)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        if self._fault is not None:
            raise self._fault

    async def stop(self) -> None:
        """Take no more connections, let programs end, break the connections that are left, let go of the queue manager.

        A wait for a message ends with 2161 where the program asked for that (MQGMO_FAIL_IF_QUIESCING).
        """
        if self._acceptor is not None:
            self._acceptor.close()
        self._is_ending = True
        if self._obeying is not None:
            await asyncio.wait((self._obeying,))
        self._places.close()
        if self._shared is not None:
            give(self._shared.quiescing)
        if self._sessions and self._fault is None:
            await asyncio.wait(self._sessions, timeout=self._options.quiesce_s)
        for task, session in list(self._sessions.items()):
            if session is not None:
                session.terminate()
            task.cancel()
        ending = [*self._sessions]
        for each in (*(self._shared.ending if self._shared else ()), *([self._delayed] if self._delayed else ())):
            each.cancel()
            ending.append(each)
        await asyncio.gather(*ending, return_exceptions=True)
        if self._presence is not None:
            self._presence.close()
        if self._worker is not None:
            holder = None if self._shared is None else self._shared.holder
            if holder is not None and self._worker.is_running:
                await self._worker.alone(lambda _: holder.disconnect())
            await self._worker.stop()

    def _arrived(self, queues: Iterable[str] | None) -> None:
        self._waiters.wake(queues)
        is_free = not self._is_ending and (self._obeying is None or self._obeying.done())
        if self._options.host is None and queues is None and is_free:
            self._obeying = asyncio.get_running_loop().create_task(self._obey())
            self._obeying.add_done_callback(self._look_at_obeying)

    # Connections

    def _admit(self, transport: asyncio.Transport) -> None:
        """Serve what has come, unless there are too many: this is said once until one goes."""
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        refusal = self._connections.refusal(address)
        if refusal is not None:
            if not self._is_full:
                _log.warning("connections are refused: %s", refusal, extra={"numbers": (TOO_MANY_CHANNELS,)})
            self._is_full = True
            self._refuse(transport)
            return
        self._connections.begin(address)
        task = asyncio.get_running_loop().create_task(self._serve(transport))
        self._sessions[task] = None
        task.add_done_callback(lambda done: self._ended(done, address))

    def _refuse(self, transport: asyncio.Transport) -> None:
        """Tell the client that the channel is not available, unless many are being told, or it would read only TLS."""
        if self._options.tls is not None or self._refused >= _MOST_REFUSED:
            transport.abort()
            return
        self._refused += 1
        transport.resume_reading()
        transport.write(status(SegmentHeader(SegmentType.INITIAL_DATA), ERROR | CLOSE, CHANNEL_UNAVAILABLE))

        def end() -> None:
            self._refused -= 1
            transport.abort()

        asyncio.get_running_loop().call_later(_REFUSED_S, end)

    def _ended(self, task: asyncio.Task[None], address: str) -> None:
        session = self._sessions.pop(task)
        if session is not None and self._presence is not None:
            self._presence.ended(session)
        self._connections.end(address)
        self._is_full = False
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a connection of %s ended by a fault", address, exc_info=error)

    async def _serve(self, transport: asyncio.Transport) -> None:
        options, shared, loop = self._options, self._shared, asyncio.get_running_loop()
        assert shared is not None
        wire = Wire(options.bounds.send_s)
        wire.connection_made(transport)
        if options.tls is not None:
            try:
                encrypted = await loop.start_tls(
                    transport,
                    wire,
                    options.tls,
                    server_side=True,
                    ssl_handshake_timeout=options.bounds.first_s,
                )
            except OSError as error:  # of TLS and of its time limit too
                _log.warning("%s: the TLS handshake failed: %s", transport.get_extra_info("peername"), error)
                transport.abort()
                return
            assert encrypted is not None
            wire.connection_made(encrypted)
        else:
            transport.set_protocol(wire)
        session = Session(wire, shared, options.bounds, os.urandom)
        task = asyncio.current_task()
        assert task is not None
        self._sessions[task] = session
        await session.run()


def _new_ids() -> Callable[[], bytes]:
    """Makes identifiers of 24 bytes: the end is a count that begins with the time, so that no later one repeats it."""
    last = time.time_ns() // 1000 | 1 << 62

    def new() -> bytes:
        nonlocal last
        last += 1
        return b"AMQ qpubsub     " + last.to_bytes(8, "big")

    return new


# A listener that serves until it is asked to end: in this process, or on a thread.


async def serve(listener: Listener, ended: asyncio.Event, started: Callable[[int], None]) -> None:
    """Listen until *ended* is set. started: called with the port. Raises ListenError, StoreError.

    A fault without which clients would wait for ever ends it too, and is raised.
    """
    try:
        port = await listener.start()
    except OSError as error:
        await listener.stop()
        why = system_words(error)
        raise ListenError(listener.where, why) from error
    started(port)
    try:
        await listener.until(ended)
    finally:
        await listener.stop()


class ListenerThread:
    """A listener on a thread, for tests and for programs that embed it: ``with ListenerThread(listener) as port``."""

    def __init__(self, listener: Callable[[], Listener]) -> None:
        self._make = listener
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="listener-loop", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._port = 0
        self._error: BaseException | None = None

    def __enter__(self) -> int:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._port

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._ended is not None:
            with suppress(RuntimeError):  # it has ended by a fault
                self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        async def run() -> None:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            await serve(self._make(), self._ended, self._started)

        try:
            asyncio.run(run())
        except BaseException as error:
            self._error = error
            self._ready.set()

    def _started(self, port: int) -> None:
        self._port = port
        self._ready.set()


_MEGABYTE: Final = 1_000_000


def listener_of(
    config: ListenerConfig,
    listen: str | None,
    home: Home,
    qmgr: str,
    durability: Durability,
    groups_of: GroupsOf = no_groups,
) -> Callable[[], Listener] | None:
    """Makes the listener; None where none is asked for. listen: of the command line, which comes first.

    Where neither says where to listen, the LISTENER objects of the queue manager do, if any was defined.
    groups_of: the groups of a user, for authority records.

    Raises ConfigError for what cannot be listened on, or would let anybody in.
    """
    where = listen or config.listen
    defined = _definitions(home, qmgr)
    if where is None and (defined is None or not defined.own_listeners):
        return None
    host, port = (None, 0) if where is None else parse_listen(where, "--listen")
    is_right = None if config.users_file is None else in_users_file(config.users_file)
    security = Security(_rules(config), is_right, config.connauth, groups_of, _pam(config, defined))
    rules = security.rules(defined)
    if host is not None and not is_loopback(host) and (defined is None or rules.accepts_any) and not config.channels:
        why = f"{host} can be reached from other machines: say in [listener.channels] who may connect"
        raise ConfigError("[listener]", f"{why}, or with DEFINE CHANNEL and SET CHLAUTH")
    if where is not None and requires_passwords(rules) and security.compares(rules) is None:
        raise ConfigError("[listener]", "passwords are required, but there is no users_file")
    tls = None if config.tls is None else tls_context(config.tls, "[listener.tls]")
    is_safe = tls is not None or config.plain_passwords or host is None or is_loopback(host)
    if security.reads_passwords(rules) and not is_safe:
        raise ConfigError(
            "[listener]",
            "passwords are sent as they are: add [listener.tls], listen on 127.0.0.1, set chckclnt to none, or "
            "plain_passwords to true",
        )
    options = ListenerOptions(
        host,
        port,
        Bounds(config.sharing, config.longest_message, config.heartbeat),
        config.connections,
        config.most_of_address,
        config.memory_megabytes * _MEGABYTE,
        tls=tls,
        plain_passwords=config.plain_passwords,
    )

    def open_store() -> QueueManagerStore:
        return QueueManagerStore.open(home, qmgr, durability=durability)

    return lambda: Listener(options, qmgr, open_store, security, groups_of)


def _definitions(home: Home, qmgr: str) -> Objects | None:
    """Those of the queue manager; None where it cannot be opened, which is for others to say."""
    try:
        with QueueManagerStore.open(home, qmgr) as store:
            return store.load_objects()
    except StoreError:
        return None


def _rules(config: ListenerConfig) -> dict[str, ChannelRule]:
    for name, channel in config.channels.items():
        for network in channel.addresses:
            try:
                ip_network(network, strict=False)
            except ValueError as error:
                raise ConfigError(f"[listener.channels.{name}] addresses", str(error)) from error
    return config.channels


def _pam(config: ListenerConfig, defined: Objects | None) -> IsRight | None:
    """What asks PAM, where anything says that it is to be asked. Raises ConfigError where it is not installed."""
    methods = {each.method for each in defined.authentication.values()} if defined is not None else set()
    return by_pam(config.connauth.pam_service) if "PAM" in methods or config.connauth.authenmd == "pam" else None
