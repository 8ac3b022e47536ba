"""The calls that the bridge makes of IBM MQ: one port, which has two sides.

mq://       ``ChannelConnection``: the client of ``commands.client``, which needs nothing of IBM
ibmmq://    ``LibraryConnection``: IBM's library, by the package ``ibmmq``; both are in ``channel``

The attributes of IBM MQ's queues, read by MQINQ and kept for a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from commands.broker.objects import DEAD_LETTER_QUEUE, PREDEFINED, TEMPORARY, LocalQueue
from commands.client.errors import ConnectionLostError, MqError
from rfh2 import pcf_admin_names as c
from rfh2.constants import MQRC_NOT_AUTHORIZED, MQRC_UNKNOWN_OBJECT_NAME
from rfh2.mqi_constants import MQOO_INQUIRE


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

    def connect(self) -> None:
        """Connect, by the parameters of the URL and the configuration, else as the environment says.

        Raises ConfigError where they are not enough.
        """

    def disconnect(self) -> None:
        """Disconnect; the queue manager backs out what was not committed."""

    def commit(self) -> None:
        """MQCMIT. BackedOutError: nothing was committed. ConnectionLostError: the result is not known yet."""

    def backout(self) -> None:
        """MQBACK."""

    def queue(self, name: str, options: int) -> Any:
        """The handle of a queue, opened with these MQOO_*; it stays open."""

    def temporary_queue(self, model: str) -> tuple[Any, str]:
        """A dynamic queue made from *model*, open for input until the connection ends: its handle and its name."""

    def close_queue(self, name: str, options: int) -> None:
        """Close it again."""

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

    def glance(self, handle: Any, first: bool, *, size: int = 0, correl_id: bytes | None = None) -> Got | None:
        """MQGET that browses, the descriptor and the first *size* bytes. first: at the beginning, else the next one.

        correl_id: of those that are wanted.
        """

    def put1(self, queue: str, qmgr: str, md: bytes, body: bytes, options: int) -> None:
        """MQPUT1 with these MQPMO_*."""

    def inquire(self, handle: Any, selectors: list[int]) -> dict[int, Any]:
        """MQINQ: selector and value; text is trimmed."""

    def inquire_qmgr(self, selectors: list[int]) -> dict[int, Any]:
        """MQINQ of the queue manager."""

    def publish(self, topic_string: str, md: bytes, body: bytes, options: int) -> None:
        """Put to a topic."""

    def subscribe(
        self, topic_string: str, name: str, options: int, queue: Any, selector: str = "", correl_id: bytes | None = None
    ) -> Subscribed:
        """MQSUB with these MQSO_*. queue: a queue's handle, None for a managed one."""

    def request(self, subscribed: Subscribed) -> int:
        """MQSUBRQ: how many retained publications are sent."""

    def close_subscription(self, subscribed: Subscribed, options: int, queue_too: bool = False) -> None:
        """MQCLOSE with these MQCO_*."""

    def pcf(self, command: str, parameters: dict[int, Any]) -> list[Any]:
        """A PCF command, its name MQCMD_*; the parameters of its answers."""


_BELIEVED_S: Final = 60.0
_LOCAL: Final = 1
# MQQDT_*
_DEFINITION_TYPES: Final = {1: PREDEFINED, 2: "PERMDYN", 3: TEMPORARY, 4: "SHAREDYN"}


@dataclass(frozen=True, slots=True)
class InquiredQueue:
    """A queue by its name, whatever its type, as far as MQINQ gives it. kind: MQQT_*."""

    definition: LocalQueue
    kind: int


class AttributeCache:
    """The queues of one connection. clock: monotonic seconds."""

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection, self._clock = connection, clock
        self._known: dict[str, tuple[float, InquiredQueue | None]] = {}
        self._dead: str | None = None

    @property
    def dead_letter_queue(self) -> str:
        """DEADQ of the queue manager; the default name if it has none. Raises MqError."""
        if self._dead is None:
            selector = c.MQCA_DEAD_LETTER_Q_NAME
            self._dead = str(self._connection.inquire_qmgr([selector])[selector]) or DEAD_LETTER_QUEUE
        return self._dead

    def look(self, name: str) -> InquiredQueue | None:
        """The queue of that name; None where there is none. Raises MqError."""
        known = self._known.get(name)
        if known is not None and self._clock() - known[0] < _BELIEVED_S:
            return known[1]
        found = self._inquire(name)
        self._known[name] = (self._clock(), found)
        return found

    def forget(self, name: str | None = None) -> None:
        """Read the attributes again; those of all queues if no name is given."""
        if name is None:
            self._known.clear()
            self._dead = None
        else:
            self._known.pop(name, None)

    def _inquire(self, name: str) -> InquiredQueue | None:
        connection = self._connection
        try:
            handle = connection.queue(name, MQOO_INQUIRE)
        except ConnectionLostError:
            raise
        except MqError as error:
            if error.reason == MQRC_NOT_AUTHORIZED:
                return InquiredQueue(LocalQueue(name), _LOCAL)  # it is there; what it is like may not be asked
            if error.reason == MQRC_UNKNOWN_OBJECT_NAME:
                return None
            raise
        try:
            every = [c.MQIA_Q_TYPE, c.MQIA_DEF_PERSISTENCE, c.MQIA_DEF_PRIORITY, c.MQIA_INHIBIT_PUT]
            values = connection.inquire(handle, every)
            if values[c.MQIA_Q_TYPE] == _LOCAL:
                texts = [c.MQCA_BACKOUT_REQ_Q_NAME]
                numbers = [c.MQIA_INHIBIT_GET, c.MQIA_BACKOUT_THRESHOLD]
                numbers += [c.MQIA_MAX_MSG_LENGTH, c.MQIA_MAX_Q_DEPTH, c.MQIA_DEFINITION_TYPE]
                values |= connection.inquire(handle, [*numbers, *texts])
        finally:
            # An open handle would prevent that the queue is deleted.
            connection.close_queue(name, MQOO_INQUIRE)
        definition = LocalQueue(
            name,
            def_priority=int(values[c.MQIA_DEF_PRIORITY]),
            def_persistent=values[c.MQIA_DEF_PERSISTENCE] == 1,
            max_depth=int(values.get(c.MQIA_MAX_Q_DEPTH, 999_999_999)),
            max_message_length=int(values.get(c.MQIA_MAX_MSG_LENGTH, 104_857_600)),
            get_enabled=not values.get(c.MQIA_INHIBIT_GET, 0),
            put_enabled=not values[c.MQIA_INHIBIT_PUT],
            backout_threshold=int(values.get(c.MQIA_BACKOUT_THRESHOLD, 0)),
            backout_queue=str(values.get(c.MQCA_BACKOUT_REQ_Q_NAME, "")),
            definition_type=_DEFINITION_TYPES.get(values.get(c.MQIA_DEFINITION_TYPE, 1), PREDEFINED),
        )
        return InquiredQueue(definition, int(values[c.MQIA_Q_TYPE]))


class QueueAttributes(dict[str, LocalQueue]):
    """IBM MQ's queues in the form of the embedded ones; each is looked up when the broker asks for it."""

    def __init__(self, queues: AttributeCache) -> None:
        super().__init__()
        self._queues = queues

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._queues.look(name) is not None

    def __missing__(self, name: str) -> LocalQueue:
        found = self._queues.look(name)
        if found is None:
            raise KeyError(name)
        return found.definition

    def get(self, name: str, default: LocalQueue | None = None) -> LocalQueue | None:  # type: ignore[override]
        found = self._queues.look(name)
        return default if found is None else found.definition

    def __iter__(self) -> Iterator[str]:
        return iter(())
