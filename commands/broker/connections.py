"""Who is connected: what a listener tells of its channels, of the programs on them, and of what these have open.

It is the same for MQSC, PCF, the console, ``status`` and metrics: each shows some of these fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from rfh2.errors import StoreError
from rfh2.mqi_constants import MQOO_ANY_INPUT, MQOO_BROWSE, MQOO_OUTPUT


class NotAnsweredError(StoreError):
    """A process that works for a queue manager has not told in time what it alone knows, such as who is connected."""

    def __init__(self, name: str, waited_s: float) -> None:
        super().__init__(name, waited_s)
        self.name, self.waited_s = name, waited_s

    def __str__(self) -> str:
        return f"{self.name} has not answered within {self.waited_s:g} s, so what it does is not known; ask again"


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)


class OpenHandle(_Told):
    """One object that a program has open.

    name: as opened. object_type, options: MQOT_*, MQOO_*. queue: the local queue, "" for no queue. sub_id: 48
    hexadecimal digits, "" for no subscription. waits: whether a call waits for a message of it.
    """

    name: str
    object_type: int
    options: int
    queue: str = ""
    topic: str = ""
    sub_id: str = ""
    sub_name: str = ""
    waits: bool = False


class Connection(_Told):
    """One program. id: its connection identifier, 48 hexadecimal digits. pid: of the listener's process.

    user: as whom it works. asserted: who it said that it is. since, unit_of_work: since when it is connected, and has a
    unit of work; UTC. puts, gets: messages.
    """

    id: str
    pid: int
    channel: str
    address: str
    user: str
    asserted: str
    application: str
    since: datetime
    unit_of_work: datetime | None = None
    puts: int = 0
    gets: int = 0
    handles: tuple[OpenHandle, ...] = ()

    @property
    def extended_id(self) -> str:
        """EXTCONN: the beginning of the identifier, the same for all programs of a queue manager."""
        return self.id[:32]

    @property
    def short_id(self) -> str:
        """CONN: its end."""
        return self.id[32:]


class ChannelInstance(_Told):
    """One connection of a client, which several programs may share.

    user, application: of the first of them. last: when the client last sent something, UTC. sharing: the most programs
    (SHARECNV), 0 where it is not shared. cipher: of TLS, "" for none.
    """

    channel: str
    address: str
    port: int
    started: datetime
    last: datetime
    user: str = ""
    application: str = ""
    calls: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    received_segments: int = 0
    sent_segments: int = 0
    heartbeat_s: int = 0
    sharing: int = 0
    longest_message: int = 0
    cipher: str = ""
    programs: tuple[Connection, ...] = ()


class ChannelTotals(_Told):
    """What all programs of a channel have done since the listener started, those that have gone too."""

    calls: int = 0
    puts: int = 0
    gets: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0


class ListeningPlace(_Told):
    """Where a listener listens. name: of its LISTENER object, "" where an option says where. host: "" for all."""

    name: str = ""
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host or '*'}:{self.port}"


class ListenerReport(_Told):
    """What one listener tells. totals: by channel. stopped: channels by which no program may connect."""

    pid: int
    places: tuple[ListeningPlace, ...]
    started: datetime
    instances: tuple[ChannelInstance, ...] = ()
    totals: Mapping[str, ChannelTotals] = {}
    stopped: tuple[str, ...] = ()


def programs(reports: Iterable[ListenerReport]) -> Iterator[Connection]:
    """All that are connected."""
    return (each for report in reports for instance in report.instances for each in instance.programs)


def open_counts(reports: Iterable[ListenerReport]) -> tuple[Counter[str], Counter[str]]:
    """How many handles each queue is open by for input, browsing included, and for output (IPPROCS, OPPROCS)."""
    inputs, outputs = Counter[str](), Counter[str]()
    for connection in programs(reports):
        for handle in connection.handles:
            inputs[handle.queue] += bool(handle.options & (MQOO_ANY_INPUT | MQOO_BROWSE))
            outputs[handle.queue] += bool(handle.options & MQOO_OUTPUT)
    return inputs, outputs


class Order(_Told):
    """What a listener is to do. connection: end the program whose identifier is this. channel: end its connections.

    address: those of this address alone. stopped: whether programs may not connect by the channel any more; None
    leaves that as it is. branch: commit, or with *commits* false back out, the branch that is in doubt under this
    number; 0 for none.
    """

    connection: str = ""
    channel: str = ""
    address: str = ""
    stopped: bool | None = None
    branch: int = 0
    commits: bool = False


class Obeyed(_Told):
    """What a listener did. ended: how many programs, or connections, it ended. changed: whether channels have.

    resolved: whether it has ended the branch.
    """

    ended: int = 0
    changed: bool = False
    resolved: bool = False


class Listeners(Protocol):
    """The listeners of one queue manager."""

    def reports(self) -> Sequence[ListenerReport]:
        """What each of them tells now; nothing where none runs. Raises NotAnsweredError."""

    def obey(self, order: Order) -> Sequence[Obeyed]:
        """What each of them did. Raises NotAnsweredError."""


class NoListeners:
    """Those of a queue manager that has none."""

    def reports(self) -> Sequence[ListenerReport]:
        return ()

    def obey(self, order: Order) -> Sequence[Obeyed]:
        return ()
