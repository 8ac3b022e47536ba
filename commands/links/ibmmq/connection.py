"""The calls that the bridge makes of IBM MQ: one port, which has two sides.

mq://       ``channel``: the client of ``commands.client``, which needs nothing of IBM
ibmmq://    ``library``: IBM's library, by the package ``ibmmq``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Got:
    """A message. token: gets the message again. md: its MQMD, little-endian.

    length: of its body, in bytes, of which *body* may be the beginning.
    """

    md: bytes
    body: bytes
    token: bytes
    length: int = 0


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscription's handle, and that of its queue. correl_id: what its publications bear."""

    handle: Any
    queue: Any
    correl_id: bytes


class Connection(Protocol):
    """One connection, for one thread. Errors leave as ``MqError``; ``None`` stands for "no message"."""

    @property
    def is_up(self) -> bool:
        """Whether it is connected, as far as is known."""
        ...

    def connect(self) -> None:
        """Connect, by the parameters of the URL and the configuration, else as the environment says.

        Raises ConfigError where they are not enough.
        """
        ...

    def disconnect(self) -> None:
        """Disconnect; the queue manager backs out what was not committed."""
        ...

    def commit(self) -> None:
        """MQCMIT. BackedOutError: nothing was committed. ConnectionLostError: the result is not known yet."""
        ...

    def backout(self) -> None:
        """MQBACK."""
        ...

    def queue(self, name: str, options: int) -> Any:
        """The handle of a queue, opened with these MQOO_*; it stays open."""
        ...

    def temporary_queue(self, model: str) -> tuple[Any, str]:
        """A dynamic queue made from *model*, open for input until the connection ends: its handle and its name."""
        ...

    def close_queue(self, name: str, options: int) -> None:
        """Close it again."""
        ...

    def get(
        self,
        handle: Any,
        options: int,
        *,
        token: bytes | None = None,
        correl_id: bytes | None = None,
        wait_ms: int = 0,
    ) -> Got | None:
        """MQGET with these MQGMO_*; None where there is no message. token, correl_id: of the one that is wanted."""
        ...

    def glance(self, handle: Any, first: bool, *, size: int = 0, correl_id: bytes | None = None) -> Got | None:
        """MQGET that browses, the descriptor and the first *size* bytes. first: at the beginning, else the next one.

        correl_id: of those that are wanted.
        """
        ...

    def put1(self, queue: str, qmgr: str, md: bytes, body: bytes, options: int) -> None:
        """MQPUT1 with these MQPMO_*."""
        ...

    def inquire(self, handle: Any, selectors: list[int]) -> dict[int, Any]:
        """MQINQ: selector and value; text is trimmed."""
        ...

    def inquire_qmgr(self, selectors: list[int]) -> dict[int, Any]:
        """MQINQ of the queue manager."""
        ...

    def publish(self, topic_string: str, md: bytes, body: bytes, options: int) -> None:
        """Put to a topic."""
        ...

    def subscribe(
        self, topic_string: str, name: str, options: int, queue: Any, selector: str = "", correl_id: bytes | None = None
    ) -> Subscribed:
        """MQSUB with these MQSO_*. queue: a queue's handle, None for a managed one."""
        ...

    def request(self, subscribed: Subscribed) -> int:
        """MQSUBRQ: how many retained publications are sent."""
        ...

    def close_subscription(self, subscribed: Subscribed, options: int, queue_too: bool = False) -> None:
        """MQCLOSE with these MQCO_*."""
        ...

    def pcf(self, command: str, parameters: dict[int, Any]) -> list[Any]:
        """A PCF command, its name MQCMD_*; the parameters of its answers."""
        ...
