"""nats-py as the rest of the bridge sees it: calls that are waited for, from any thread, by one connection.

A call connects if there is no connection. nats-py itself does not connect again: what was under way when a connection
broke fails at once, and only the callers send again what had no answer.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import re
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import Address, parse_address
from commands.links.engine.adapter import TreeUnreachableError, client_context, why_unreachable
from rfh2.distribution import how_to_install
from rfh2.errors import StoreError

_LONGEST_STOP_S: Final = 5.0


class LoopThread:
    """A thread with an event loop, from the first call on. name: of the thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._starting = threading.Lock()

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """What *work* returns; raises what it raises. After timeout_s it is cancelled: raises TimeoutError."""
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def stop(self, last: Coroutine[Any, Any, None]) -> None:
        """Do *last*, and end the thread, if it has begun. Raises nothing."""
        if not self._thread.is_alive():
            last.close()
            return
        with suppress(Exception):
            self.call(last, _LONGEST_STOP_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_LONGEST_STOP_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()


async def unless(over: asyncio.Future[Any], work: Coroutine[Any, Any, T], error: Exception) -> T:
    """What *work* returns; if *over* is done before it, it is cancelled, and *error* raised."""
    task = asyncio.ensure_future(work)
    try:
        ends: list[asyncio.Future[Any]] = [task, over]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise error
    finally:
        task.cancel()


try:
    import nats
    from nats.aio.client import Client
    from nats.js import JetStreamContext
except ImportError:  # pragma: no cover - the extra is not installed
    nats = None  # type: ignore[assignment]

_log = logging.getLogger("qpubsub.nats")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NatsSession:
    """One connection. lost: done when it is gone."""

    client: Client
    jetstream: JetStreamContext
    lost: asyncio.Future[None]


Work = Callable[[NatsSession], Coroutine[Any, Any, T]]


async def nothing(_session: NatsSession) -> None:
    """Nothing has to be ready."""


class NatsConnection:
    """To one server of *address* and ``servers``, to another one after a break. name: for people.

    ready: makes ready what is needed, in each new connection, before anything else. denied: called in the loop with
    each permission that is missing, in the server's words. max_payload: the longest message that the server takes, in
    bytes. Raises ConfigError where nats-py is missing or a file is no good.
    """

    def __init__(self, address: Address, config: TopicsConfig, name: str, ready: Work[Any] = nothing) -> None:
        if nats is None:
            raise ConfigError("--topics", f"nats:// needs the package nats-py: {how_to_install('nats')}")
        self.name, self._address, self._config, self._ready = name, address, config, ready
        self._options = self._options_of(address, config)
        self._thread = LoopThread(f"nats-{name}")
        self._attempt: asyncio.Task[NatsSession] | None = None
        self._said = ""
        self.denied: Callable[[str], None] = lambda _text: None
        self.max_payload = 1_048_576

    def _options_of(self, address: Address, config: TopicsConfig) -> dict[str, Any]:
        more = [each if "://" in each else f"{address.scheme}://{each}" for each in config.servers]
        user = address.user or config.user
        if config.credentials_file is not None and not config.credentials_file.is_file():
            raise ConfigError("credentials_file", f"{config.credentials_file}: there is no such file")
        return {
            "servers": [str(address), *(str(parse_address(each, "servers")) for each in more)],
            "name": self.name,
            "user": user,
            "password": config.password() if user is not None else None,
            "user_credentials": None if config.credentials_file is None else str(config.credentials_file),
            "tls": client_context(config) if address.secure else None,
            "ping_interval": config.keepalive_s,
            "max_outstanding_pings": 2,
            "connect_timeout": max(1, round(config.patience_s)),
            "allow_reconnect": False,
            # nats-py tries a server once more than this says before it gives up.
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": 0.05,
            "error_cb": self._error,
        }

    def call(self, work: Work[T], timeout_s: float | None = None) -> T:
        """What *work* returns; it runs in the loop. timeout_s: ``patience_s`` where it is None.

        Raises TreeUnreachableError if no answer comes or the connection breaks, StoreError if the server refuses.
        """
        try:
            return self._thread.call(self._called(work), timeout_s or self._config.patience_s)
        except nats.js.errors.APIError as error:
            raise StoreError(refusal(error)) from error
        except (TimeoutError, nats.errors.Error, OSError, concurrent.futures.CancelledError) as error:
            what = "does not answer" if isinstance(error, TimeoutError) else "cannot be used"
            why = self._said or self._why(error)
            raise TreeUnreachableError(f"the NATS server at {self._address} {what}: {why}".rstrip(": ")) from error

    def close(self) -> None:
        """Disconnect."""
        self._thread.stop(self._leave())

    # The loop's thread

    async def _called(self, work: Work[T]) -> T:
        if self._attempt is None or self._is_over(self._attempt):
            self._attempt = asyncio.ensure_future(self._connected())
        # Whoever loses patience does not end the attempt: others wait for it.
        session = await asyncio.shield(self._attempt)
        return await self._within(session, work)

    @staticmethod
    def _is_over(attempt: asyncio.Task[NatsSession]) -> bool:
        return attempt.done() and (attempt.exception() is not None or attempt.result().lost.done())

    async def _connected(self) -> NatsSession:
        # One for each connection: a client remembers errors of the last one.
        client, lost, self._said = Client(), self._thread.loop.create_future(), ""

        async def closed() -> None:
            if not lost.done():
                lost.set_result(None)

        try:
            await client.connect(closed_cb=closed, **self._options)
            session = NatsSession(client, client.jetstream(), lost)
            await self._within(session, self._ready)
        except BaseException:
            with suppress(Exception):
                await client.close()
            raise
        self.max_payload = client.max_payload
        _log.info("connected to the NATS server as %s", self.name)
        return session

    async def _within(self, session: NatsSession, work: Work[T]) -> T:
        return await unless(session.lost, work(session), nats.errors.ConnectionClosedError())

    async def _leave(self) -> None:
        if self._attempt is not None and not self._is_over(self._attempt):
            await (await self._attempt).client.close()

    async def _error(self, error: Exception) -> None:
        text = self._why(error) or type(error).__name__
        self._said = text.removeprefix("nats: ")
        if "permissions violation" in text:
            self.denied(text)

    def _why(self, error: Exception) -> str:
        why = why_unreachable(error, self._address.secure, "nats")
        if isinstance(error, ConnectionResetError):
            # What the server says before it closes is lost where it closes before all that was sent has been read.
            why += " (so does a server that refuses the authorization: see user, password_file, credentials_file)"
        return why


def refusal(error: Any) -> str:
    """What JetStream's API says when it refuses."""
    return f"JetStream refuses it: {error.description} ({error.err_code})"


# The stream and the bucket: what they are, how they are made, and whether the bridge can use those that are there.

try:
    from nats.js.api import DiscardPolicy, StreamConfig, StreamInfo
    from nats.js.errors import NotFoundError
except ImportError:  # pragma: no cover - the extra is not installed
    pass

# How long the server knows the identifier of a publication that it has taken.
DUPLICATES_S: Final = 600
_PREFIX: Final = re.compile(r"([^\s.*>$][^\s.*>]*\.)+")


@dataclass(frozen=True, slots=True)
class Names:
    """bridge: its name at the server. stream, bucket: of the streams; prefix, keys: what begins their subjects."""

    bridge: str
    stream: str
    prefix: str
    bucket: str
    keys: str

    @classmethod
    def of(cls, config: TopicsConfig, qmgr: str) -> Names:
        """Those of a configuration. Raises ConfigError where it has a prefix that cannot be one."""
        prefix, stream = config.prefix or "mq.", config.stream
        if _PREFIX.fullmatch(prefix) is None:
            raise ConfigError("prefix", f"{prefix} cannot begin NATS subjects; one that can is mq.")
        named = config.client_id or f"qpubsub-{qmgr}"
        bridge = re.sub(r"[^A-Za-z0-9_-]", lambda found: f"={ord(found[0]):02X}", named)
        return cls(bridge, stream, prefix, f"KV_{stream}", f"$KV.{stream}.")


def configs_of(config: TopicsConfig, names: Names) -> tuple[StreamConfig, StreamConfig]:
    """The stream and the bucket as the bridge makes them."""
    kept_s = config.session_expiry_s or None
    common: dict[str, Any] = {"allow_msg_ttl": True, "allow_direct": True, "num_replicas": config.replicas}
    stream = StreamConfig(
        name=names.stream,
        subjects=[f"{names.prefix}>"],
        max_age=kept_s,
        duplicate_window=min(DUPLICATES_S, kept_s or DUPLICATES_S),
        **common,
    )
    bucket = StreamConfig(
        name=names.bucket,
        subjects=[f"{names.keys}>"],
        max_msgs_per_subject=1,
        discard=DiscardPolicy.NEW,
        allow_rollup_hdrs=True,
        deny_delete=True,
        duplicate_window=DUPLICATES_S,
        **common,
    )
    return stream, bucket


async def make_stream(session: NatsSession, wanted: StreamConfig) -> tuple[StreamInfo, bool]:
    """The stream, which is made if it is not there; and whether it was. What an administrator made is left as it is."""
    try:
        return await session.jetstream.stream_info(str(wanted.name)), False
    except NotFoundError:
        return await session.jetstream.add_stream(wanted), True


def why_unfit(about: StreamInfo, wanted: StreamConfig) -> str | None:
    """Why the bridge cannot use a stream; None if it can."""
    missing = [each for each in wanted.subjects or () if not _has(about.config.subjects or (), each)]
    if missing:
        return f"stream {wanted.name} does not have the subjects {missing[0]}; see stream and prefix"
    if not about.config.allow_msg_ttl:
        return f"stream {wanted.name} does not allow Nats-TTL, so nothing can expire in it"
    return None


def _has(subjects: Sequence[str], wanted: str) -> bool:
    return any(each == wanted or (each.endswith(">") and wanted.startswith(each[:-1])) for each in subjects)
