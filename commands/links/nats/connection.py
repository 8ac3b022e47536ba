"""nats-py as the rest of the bridge sees it: calls that are waited for, from any thread, by one connection.

nats-py is for asyncio, so the connection has a thread with an event loop. That thread connects again after each break,
and makes ready what the bridge needs (``opened``) before the connection counts as up. nats-py itself does not connect
again: what was under way when a connection broke fails at once, and only the callers send again what had no answer.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from commands.links.engine.adapter import TreeUnreachableError
from commands.links.engine.backoff import Backoff
from commands.links.engine.config import ConfigError, TopicsConfig
from commands.links.engine.tls import client_context, why_unreachable
from commands.links.engine.urls import Address, parse_address
from rfh2.distribution import how_to_install
from rfh2.errors import StoreError

try:
    import nats
    from nats.aio.client import Client
    from nats.js import JetStreamContext
except ImportError:  # pragma: no cover - the extra is not installed
    nats = None  # type: ignore[assignment]

_log = logging.getLogger("qpubsub.nats")
T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_LONGEST_STOP_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Session:
    """One connection. number: of those that were up. lost: done when the connection is gone."""

    number: int
    client: Client
    jetstream: JetStreamContext
    lost: asyncio.Future[None]


class NatsConnection:
    """Connected to one server of *address* and ``servers``, to another one after a break. name: for people.

    opened: makes ready what is needed; runs in the loop. denied: called in the loop with each permission that is
    missing, in the server's words. is_cluster: whether
    several servers have the stream. Raises ConfigError where nats-py is missing or a file is no good.
    """

    def __init__(
        self,
        address: Address,
        config: TopicsConfig,
        name: str,
        opened: Callable[[Session], Coroutine[Any, Any, None]],
        denied: Callable[[str], None] = lambda _text: None,
    ) -> None:
        if nats is None:
            raise ConfigError("--topics", f"nats:// needs the package nats-py: {how_to_install('nats')}")
        self.name, self._address, self._config = name, address, config
        self._opened, self._denied = opened, denied
        self._options = self._options_of(address, config)
        self._up, self._tried = threading.Event(), threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=f"nats-{name}", daemon=True)
        self._said = ""
        self._session: Session | None = None
        self.number = 0
        self.is_cluster = False
        self.trouble = f"the NATS server at {address} has not answered yet"
        self.next_try_s: float | None = None

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
        }

    def start(self) -> None:
        """Connect, and connect again after each break."""
        self._thread.start()

    def stop(self) -> None:
        """Disconnect."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_LONGEST_STOP_S)

    @property
    def is_up(self) -> bool:
        """Whether there is a connection now, and all that is needed is ready."""
        return self._up.is_set()

    @property
    def max_payload(self) -> int:
        """The longest message that the server takes, in bytes; NATS's default before there was a connection."""
        return 1_048_576 if self._session is None else self._session.client.max_payload

    def wait_up(self, timeout_s: float) -> bool:
        """Wait for a connection; whether there is one."""
        return self._up.wait(timeout_s)

    def wait_tried(self, timeout_s: float) -> bool:
        """Wait until a connection was tried, and no longer; whether there is one."""
        self._tried.wait(timeout_s)
        return self.is_up

    def call(self, work: Callable[[Session], Coroutine[Any, Any, T]], timeout_s: float | None = None) -> T:
        """What *work* returns; it runs in the loop. timeout_s: ``patience_s`` where it is None.

        Raises TreeUnreachableError if no answer comes or the connection breaks, StoreError if the server refuses.
        """
        session = self._session
        if session is None or not self.is_up:
            raise TreeUnreachableError(self.trouble)
        future = asyncio.run_coroutine_threadsafe(self._until_lost(work(session), session), self._loop)
        try:
            return future.result(timeout_s or self._config.patience_s)
        except TimeoutError as error:
            future.cancel()
            raise TreeUnreachableError(f"the NATS server does not answer{self._hint}") from error
        except nats.js.errors.APIError as error:
            raise StoreError(refusal(error)) from error
        except (nats.errors.Error, OSError, concurrent.futures.CancelledError) as error:
            raise TreeUnreachableError(f"the NATS server at {self._address}: {error}{self._hint}") from error

    def renew(self) -> None:
        """Break the connection, so that there is another one, and everything is made ready anew."""
        session = self._session
        if session is not None:
            self._up.clear()
            asyncio.run_coroutine_threadsafe(session.client.close(), self._loop)

    async def _until_lost(self, work: Coroutine[Any, Any, T], session: Session) -> T:
        task = asyncio.ensure_future(work)
        try:
            ends: list[asyncio.Future[Any]] = [task, session.lost]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise TreeUnreachableError(f"the connection to the NATS server at {self._address} is broken")
            return task.result()
        finally:
            task.cancel()

    # The thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._stay_connected())
        finally:
            self._loop.close()

    async def _stay_connected(self) -> None:
        backoff = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        stopping = asyncio.ensure_future(self._stop.wait())
        while not self._stop.is_set():
            lost: asyncio.Future[None] = self._loop.create_future()
            # One for each connection: a client remembers errors of the last one.
            client = Client()
            self._said = ""
            try:
                await self._connect(client, lost)
                self._session = Session(self.number + 1, client, client.jetstream(), lost)
                await self._until_lost(self._opened(self._session), self._session)
                backoff.reset()
                self.number += 1
                self.trouble, self.next_try_s = "", None
                self._up.set()
                self._tried.set()
                ends: list[asyncio.Future[Any]] = [lost, stopping]
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if lost.done():
                    self._trouble(f"the connection to the NATS server at {self._address} is broken{self._hint}")
            except Exception as error:
                why = self._said or why_unreachable(error, self._address.secure, "nats")
                if isinstance(error, nats.js.errors.APIError):
                    why = refusal(error)
                self._trouble(f"the NATS server at {self._address} cannot be used: {why or type(error).__name__}")
            finally:
                self._up.clear()
                if not lost.done():
                    lost.set_result(None)
                with suppress(Exception):
                    await asyncio.wait_for(client.close(), _LONGEST_STOP_S / 2)
            if not self._stop.is_set():
                self.next_try_s = backoff.next()
                await asyncio.wait({stopping}, timeout=self.next_try_s)

    async def _connect(self, client: Client, lost: asyncio.Future[None]) -> None:
        async def closed() -> None:
            self._up.clear()
            if not lost.done():
                lost.set_result(None)

        limit_s = 3 * self._options["connect_timeout"] * len(self._options["servers"])
        connecting = client.connect(error_cb=self._error, closed_cb=closed, **self._options)
        await asyncio.wait_for(connecting, limit_s)

    async def _error(self, error: Exception) -> None:
        text = why_unreachable(error, self._address.secure, "nats") or type(error).__name__
        self._said = text.removeprefix("nats: ")
        if "permissions violation" in text:
            self._denied(text)

    @property
    def _hint(self) -> str:
        return f" ({self._said})" if self._said else ""

    def _trouble(self, text: str) -> None:
        if text != self.trouble:
            _log.warning("%s; trying again", text)
        self.trouble = text
        self._tried.set()


def refusal(error: Any) -> str:
    """What JetStream's API says when it refuses."""
    return f"JetStream refuses it: {error.description} ({error.err_code})"
