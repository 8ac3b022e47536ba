"""Whether two queue managers that messages are carried between remember the same past.

Each batch of messages has a sequence number. The receiver records it with the batch, and the sender when it removes the
batch from its transmission queue. So a crash leaves them equal, or the receiver one ahead, with the whole batch still
on the transmission queue. Anything else means that one of them has another database than before: a backup was restored,
or it was made anew. It has forgotten proxy subscriptions of the other one, or made some that it does not know of; and
retained publications of it may be older. Then both send all proxy subscriptions again, and the one that remembers more
also sends what is retained. The one that is behind does not: it may retain what was deleted since.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from commands.network.neighbours import NeighbourStatus, Refresh
from commands.qmgr.network.flow_messages import INTER_QMGR_CONTROL, INTRODUCTIONS, relationship
from commands.qmgr.store.neighbours import NeighbourRecord, NeighbourRecords
from commands.qmgr.store.unit_of_work import SqliteUnitOfWork


class Memory(StrEnum):
    """What sender and receiver remember of the batches between them."""

    SAME = "the same"
    RECEIVER_BEHIND = "the receiver less"
    SENDER_BEHIND = "the sender less"


def memory(sent: int, received: int, *, is_whole: bool) -> Memory:
    """What they remember. is_whole: whether all messages of the last batch are still on the transmission queue."""
    if received == sent or (received == sent + 1 and is_whole):
        return Memory.SAME
    return Memory.RECEIVER_BEHIND if received < sent else Memory.SENDER_BEHIND


def number_after(sent: int, received: int) -> int:
    """The number from which both go on. A crash before both have it must not look like one after a batch."""
    return max(sent, received) + 2


def ask_there(unit: SqliteUnitOfWork, sender: str, known: Iterable[NeighbourRecord], found: Memory) -> None:
    """Have the receiver, whose *unit* is open, send *sender* everything again. known: what the sender records of it.

    If the sender is its child, or shares a cluster with it, and it has forgotten that, it learns it before the messages
    that wait for it.
    """
    unit.neighbours.ask_refresh(Refresh.PROXIES if found is Memory.RECEIVER_BEHIND else Refresh.ALL, sender)
    remembered = {each.cluster for each in unit.neighbours.all() if each.qmgr == sender}
    for each in known:
        word = INTRODUCTIONS.get(each.relation)
        if word is not None and each.status is not NeighbourStatus.REFUSED and each.cluster not in remembered:
            said = relationship(sender, each.link, word)
            unit.put(INTER_QMGR_CONTROL, said.message.mqmd.encode(), said.body)


def ask_here(records: NeighbourRecords, receiver: str, found: Memory) -> None:
    """Have the sender send *receiver* everything again."""
    records.ask_refresh(Refresh.PROXIES if found is Memory.SENDER_BEHIND else Refresh.ALL, receiver)
