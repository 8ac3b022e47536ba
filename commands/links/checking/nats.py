"""Trying NATS: the connection, JetStream, the stream and the bucket, and the subjects that the bridge needs.

The check uses a connection of its own, removes the streams and consumers that it made, and its messages expire after a
second. So it does not disturb a bridge that is running.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Final

from commands.config.settings import TopicsConfig
from commands.config.urls import Address
from commands.links.checking.findings import CheckResult
from commands.links.nats.connection import NatsConnection, Session, nothing
from commands.links.nats.streams import Names, configs_of, make_stream, why_unfit
from rfh2.errors import StoreError

# A client gets sync_interval neither from INFO nor from JetStream's API, so this is said to everybody.
_ON_DISK: Final = CheckResult(
    "power failure of the server",
    True,
    "not checked, since a client cannot see sync_interval: by default the server answers before it writes to disk, so "
    "publications that count as sent can be lost; 'sync_interval: always' in its jetstream block prevents that",
)
_BRIEFLY: Final = {"Nats-TTL": "1s"}


class NatsCheck:
    """Tries one server. qmgr: whose bridge asks. Raises ConfigError."""

    def __init__(self, address: Address, config: TopicsConfig, qmgr: str) -> None:
        self._address, self._config, self._names = address, config, Names.of(config, qmgr)
        self._connection = NatsConnection(address, config, f"{self._names.bridge}-check")
        self._made: list[str] = []

    def connect(self) -> CheckResult:
        """Whether there is a connection; every other test needs one."""
        logging.getLogger("qpubsub.nats").disabled = True
        subject = f"connection to {self._address}"
        try:
            self._connection.call(nothing, 2 * self._config.patience_s)
        except StoreError as error:
            return CheckResult(subject, False, str(error))
        return CheckResult(subject, True, f"connected as {self._connection.name}")

    def grants(self) -> Iterator[CheckResult]:
        """JetStream, the stream and the bucket, and what the user may do."""
        jetstream = self._tried("JetStream", lambda session: session.jetstream.account_info(), "available")
        yield jetstream
        if not jetstream.ok:
            return
        for wanted, subject in zip(configs_of(self._config, self._names), self._subjects, strict=True):
            name = str(wanted.name)
            yield self._stream(wanted)
            yield self._tried(f"publishing on {subject}", self._publication(subject), "allowed")
            yield self._tried(f"consumer of stream {name}", self._consumer(name, subject), "allowed")
        most = self._connection.max_payload
        yield CheckResult("size of a publication", True, f"{most} bytes; larger ones are dead letters")
        yield _ON_DISK

    def close(self) -> None:
        """Remove what was made, and disconnect."""
        with suppress(StoreError):
            self._connection.call(self._remove)
        self._connection.close()
        logging.getLogger("qpubsub.nats").disabled = False

    async def _remove(self, session: Session) -> None:
        for name in self._made:
            await session.jetstream.delete_stream(name)

    @property
    def _subjects(self) -> tuple[str, str]:
        own = f"qpubsub.{self._names.bridge}.check"
        return self._names.prefix + own, self._names.keys + own

    def _stream(self, wanted: Any) -> CheckResult:
        subject = f"stream {wanted.name}"
        try:
            about, is_new = self._connection.call(lambda session: make_stream(session, wanted))
        except StoreError as error:
            return CheckResult(subject, False, str(error), self._permissions)
        if is_new:
            self._made.append(wanted.name)
            return CheckResult(subject, True, "not there; run makes it")
        why = why_unfit(about, wanted)
        return CheckResult(subject, why is None, why or f"{about.config.num_replicas} replicas")

    def _publication(self, subject: str) -> Callable[[Session], Coroutine[Any, Any, Any]]:
        return lambda session: session.jetstream.publish(subject, b"check", headers=dict(_BRIEFLY))

    def _consumer(self, stream: str, subject: str) -> Callable[[Session], Coroutine[Any, Any, Any]]:
        async def work(session: Session) -> None:
            name = self._connection.name
            await session.jetstream.add_consumer(stream, name=name, durable_name=name, filter_subjects=[subject])
            await session.jetstream.delete_consumer(stream, name)

        return work

    def _tried(self, subject: str, work: Callable[[Session], Coroutine[Any, Any, Any]], what: str) -> CheckResult:
        try:
            self._connection.call(work)
        except StoreError as error:
            return CheckResult(subject, False, str(error), self._permissions)
        return CheckResult(subject, True, what)

    @property
    def _permissions(self) -> tuple[str, ...]:
        """Lines of the server's file, for the user of the bridge."""
        subjects = ", ".join(f'"{each}"' for each in (f"{self._names.prefix}>", f"{self._names.keys}>", "$JS.API.>"))
        return (f'permissions: {{ publish: [{subjects}], subscribe: ["_INBOX.>"] }}',)
