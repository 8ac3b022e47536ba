"""The rows of the three tables, declared once: the local files, Parquet and Spark take their columns from here.

A message is one row of ``transfers`` or of ``agents``. The files of a transfer that a message names are rows of
``items``. Every column but ``seq``, ``n`` and ``kind`` may be empty: agents of different versions write different
elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from types import UnionType
from typing import Any, Final, NamedTuple, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class TransferRow:
    """One message about a transfer: TransferLog or TransferStatus.

    seq, time, qmgr: of the captured message. topic: whole, with SYSTEM.FTE. kind: ``log`` or ``status``. transfer_id:
    48 hexadecimal digits. action, action_time: ``started``, ``progress``, ``completed`` and others, and when; a status
    has the time alone. total: items in the transfer. first_item, items: the index of the first item in this message,
    and how many it names. current_item, seconds: of a status. result_code, supplement: of the whole transfer. failures,
    warnings: how many files failed, or had a warning. problem: what could not be read.
    """

    seq: int
    time: datetime | None = None
    qmgr: str | None = None
    topic: str | None = None
    kind: str = "log"
    transfer_id: str | None = None
    version: str | None = None
    agent_role: str | None = None
    action: str | None = None
    action_time: datetime | None = None
    source_agent: str | None = None
    source_qmgr: str | None = None
    destination_agent: str | None = None
    destination_qmgr: str | None = None
    originator_host: str | None = None
    originator_user: str | None = None
    mqmd_user: str | None = None
    job: str | None = None
    schedule_id: str | None = None
    start_time: datetime | None = None
    total: int | None = None
    bytes_sent: int | None = None
    first_item: int | None = None
    items: int | None = None
    current_item: int | None = None
    seconds: float | None = None
    actual_start_time: datetime | None = None
    retries: int | None = None
    failures: int | None = None
    warnings: int | None = None
    result_code: int | None = None
    supplement: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One file, queue or data set of a transfer, as one message names it.

    seq: of the message. n: its place there, from 0. index: its place in the transfer, from 0, where the message says
    it. transferred: bytes so far, of a status. sizes in bytes.
    """

    seq: int
    n: int
    time: datetime | None = None
    qmgr: str | None = None
    kind: str = "log"
    transfer_id: str | None = None
    index: int | None = None
    mode: str | None = None
    source_type: str | None = None
    source: str | None = None
    source_size: int | None = None
    source_last_modified: datetime | None = None
    source_checksum_method: str | None = None
    source_checksum: str | None = None
    source_disposition: str | None = None
    destination_type: str | None = None
    destination: str | None = None
    destination_size: int | None = None
    destination_last_modified: datetime | None = None
    destination_checksum_method: str | None = None
    destination_checksum: str | None = None
    destination_exist: str | None = None
    transferred: int | None = None
    result_code: int | None = None
    supplement: str | None = None


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One status of an agent. source_transfers, destination_transfers: how many it has. properties: all, as JSON."""

    seq: int
    time: datetime | None = None
    qmgr: str | None = None
    topic: str | None = None
    agent: str | None = None
    agent_qmgr: str | None = None
    description: str | None = None
    version: str | None = None
    operating_system: str | None = None
    time_zone: str | None = None
    type: str | None = None
    max_source_transfers: int | None = None
    max_destination_transfers: int | None = None
    max_queued_transfers: int | None = None
    source_transfers: int | None = None
    destination_transfers: int | None = None
    properties: str | None = None
    problem: str | None = None


Row = TransferRow | ItemRow | AgentRow


class Rows(NamedTuple):
    """The rows of one message."""

    transfers: tuple[TransferRow, ...] = ()
    items: tuple[ItemRow, ...] = ()
    agents: tuple[AgentRow, ...] = ()


TABLES: Final[Mapping[str, type[Row]]] = {"transfers": TransferRow, "items": ItemRow, "agents": AgentRow}
"""The row of each table, by the names of ``Rows``."""


def columns_of(table: str) -> dict[str, type]:
    """The columns of *table*, in order, with ``int``, ``float``, ``str`` or ``datetime``."""
    row = TABLES[table]
    hints = get_type_hints(row)
    return {field.name: _plain(hints[field.name]) for field in fields(row)}


def values_of(row: Row) -> tuple[Any, ...]:
    """The values of *row*, in the order of its columns."""
    return tuple(getattr(row, name) for name in row.__slots__)


def _plain(hint: Any) -> type:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if isinstance(hint, UnionType) else [hint]
    found: type = kinds[0]
    return found
