"""The calls that the bridge makes, through a client of its own (``commands.client``)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from commands.client import pcf
from commands.client.calls import Subscribing, Target, Wanted
from commands.client.connection import Connection as Client
from commands.client.errors import CONNECT, ConnectionLostError, MqError, reason_word
from commands.client.places import place_of
from commands.config.settings import QueuesConfig
from commands.config.urls import Address
from commands.links.ibmmq.connection import Connection, Got, Subscribed
from rfh2 import mqi_constants as m, pcf_admin_names, pcf_names
from rfh2.pcf_admin_names import MQOT_TOPIC

_GET: Final = m.MQGMO_FAIL_IF_QUIESCING | m.MQGMO_PROPERTIES_FORCE_MQRFH2
_NO_CONNECTION: Final = 2018


class ChannelConnection:
    """One connection of the client channel protocol."""

    def __init__(self, address: Address, config: QueuesConfig, application: str = "qpubsub") -> None:
        self._address, self._config, self._application = address, config, application
        self._client: Client | None = None
        self._open: dict[tuple[str, int], int] = {}

    @property
    def is_up(self) -> bool:
        return self._client is not None

    def connect(self) -> None:
        place = place_of(self._address, self._config, self._application)
        try:
            self._client = Client.to(place)
        except MqError as error:
            raise type(error)(f"{CONNECT} to {self._address}: {_why(error)}", error.reason, error.name) from error

    def disconnect(self) -> None:
        client, self._client = self._client, None
        self._open = {}
        if client is not None:
            client.abandon()

    def commit(self) -> None:
        self._connected().commit()

    def backout(self) -> None:
        self._connected().backout()

    def queue(self, name: str, options: int) -> int:
        handle = self._open.get((name, options))
        if handle is None:
            opened = self._connected().open(Target(name), options | m.MQOO_FAIL_IF_QUIESCING)
            handle = self._open[(name, options)] = opened.handle
        return handle

    def temporary_queue(self, model: str) -> tuple[int, str]:
        options = m.MQOO_INPUT_EXCLUSIVE | m.MQOO_FAIL_IF_QUIESCING
        opened = self._connected().open(Target(model, dynamic="QPUBSUB.*"), options)
        self._open[(opened.name, options)] = opened.handle
        return opened.handle, opened.name

    def close_queue(self, name: str, options: int) -> None:
        handle = self._open.pop((name, options), None)
        if handle is not None and self._client is not None:
            with suppress(MqError):
                self._client.close(handle)

    def get(
        self,
        handle: Any,
        options: int,
        *,
        token: bytes | None = None,
        correl_id: bytes | None = None,
        wait_ms: int = 0,
    ) -> Got | None:
        wanted = Wanted(options | _GET, wait_ms or None)
        if token is not None:
            wanted = replace(wanted, match=m.MQMO_MATCH_MSG_TOKEN, token=token)
        if correl_id is not None:
            wanted = replace(wanted, match=m.MQMO_MATCH_CORREL_ID, correl_id=correl_id)
        got = self._connected().get(handle, wanted)
        return None if got is None else Got(got.md, got.body, got.token, got.length)

    def glance(self, handle: Any, first: bool, *, size: int = 0, correl_id: bytes | None = None) -> Got | None:
        options = m.MQGMO_BROWSE_FIRST if first else m.MQGMO_BROWSE_NEXT
        wanted = Wanted(options | m.MQGMO_ACCEPT_TRUNCATED_MSG | _GET, longest=size)
        if correl_id is not None:
            wanted = replace(wanted, match=m.MQMO_MATCH_CORREL_ID, correl_id=correl_id)
        got = self._connected().get(handle, wanted, "MQGET (browse)")
        return None if got is None else Got(got.md, got.body[:size], got.token, got.length)

    def put1(self, queue: str, qmgr: str, md: bytes, body: bytes, options: int) -> None:
        self._connected().put1(Target(queue, qmgr=qmgr), md, body, options | m.MQPMO_FAIL_IF_QUIESCING)

    def inquire(self, handle: Any, selectors: list[int]) -> dict[int, Any]:
        return self._connected().inquire(handle, selectors)

    def inquire_qmgr(self, selectors: list[int]) -> dict[int, Any]:
        return self._connected().inquire_qmgr(selectors)

    def publish(self, topic_string: str, md: bytes, body: bytes, options: int) -> None:
        target = Target(kind=MQOT_TOPIC, topic=topic_string)
        self._connected().put1(target, md, body, options | m.MQPMO_FAIL_IF_QUIESCING)

    def subscribe(
        self, topic_string: str, name: str, options: int, queue: Any, selector: str = "", correl_id: bytes | None = None
    ) -> Subscribed:
        asked = Subscribing(
            options | m.MQSO_FAIL_IF_QUIESCING,
            topic_string,
            name=name,
            selector=selector,
            correl_id=bytes(24) if correl_id is None else correl_id,
        )
        made = self._connected().subscribe(asked, queue or 0)
        return Subscribed(made.hsub, queue or made.hobj, bytes(made.descriptor["SubCorrelId"]))

    def request(self, subscribed: Subscribed) -> int:
        return self._connected().request_retained(subscribed.handle)

    def close_subscription(self, subscribed: Subscribed, options: int, queue_too: bool = False) -> None:
        client = self._connected()
        client.close(subscribed.handle, options)
        if queue_too:
            with suppress(MqError):  # a managed queue goes with its subscription
                client.close(subscribed.queue)

    def pcf(self, command: str, parameters: dict[int, Any]) -> list[Any]:
        number = vars(pcf_admin_names).get(command) or vars(pcf_names)[command]
        return pcf.execute(self._connected(), number, parameters)

    def _connected(self) -> Client:
        if self._client is None:
            raise ConnectionLostError("the connection", _NO_CONNECTION, reason_word(_NO_CONNECTION))
        return self._client


def _why(error: MqError) -> str:
    return error.what.removeprefix(f"{CONNECT} to ").removeprefix(CONNECT).removeprefix(": ")


def connection_to(address: Address, config: QueuesConfig, application: str = "qpubsub") -> Connection:
    """A connection that is not made yet. Raises ConfigError where the package ``ibmmq`` is needed and missing."""
    if address.needs_library:
        from commands.links.ibmmq.library import LibraryConnection  # noqa: PLC0415 - an extra

        return LibraryConnection(address, config, application)
    return ChannelConnection(address, config, application)
