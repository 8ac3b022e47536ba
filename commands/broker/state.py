"""Subscriptions, retained publications and moments as the database keeps them, and back again."""

from __future__ import annotations

from typing import Final, NamedTuple

from pydantic import ConfigDict, TypeAdapter

from commands.broker.times import from_microseconds, to_microseconds
from rfh2.constants import MQPER_PERSISTENT
from rfh2.message import decode, encode
from streams.operations import Publication, Published, UnreadPublication
from streams.subscriptions import Subscription

# Pydantic takes no configuration beside a bare dataclass, but hands a container's down to it: hence the tuple.
_SUBSCRIPTION: Final = TypeAdapter(tuple[Subscription], config=ConfigDict(ser_json_bytes="hex", val_json_bytes="hex"))


class PublicationRow(NamedTuple):
    """A retained publication in the columns of its table, save its number. Times are microseconds since 1970 in UTC."""

    published_at: int
    expires_at: int | None
    local: bool
    persistent: bool
    md: bytes
    body: bytes


def subscription_state(subscription: Subscription) -> str:
    """*subscription* as JSON text; bytes are hexadecimal."""
    return _SUBSCRIPTION.dump_json((subscription,))[1:-1].decode()


def subscription_of(state: str) -> Subscription:
    """The subscription that ``subscription_state`` wrote; what it did not know has its default. Raises ValueError."""
    return _SUBSCRIPTION.validate_json(f"[{state}]")[0]


def publication_row(publication: Published) -> PublicationRow:
    """*publication* as it is kept.

    Persistence is the message's own, as its queue resolved it (guide 6.7.9): 2, not resolved, counts as not persistent.
    Raises EncodeError for a message that has no bytes.
    """
    at = to_microseconds(publication.published_at)
    if isinstance(publication, UnreadPublication):
        local, persistent = publication.local, publication.persistent
        return PublicationRow(at, None, local, persistent, publication.md, publication.body)
    message = publication.message
    expires_at = None if publication.expires_at is None else to_microseconds(publication.expires_at)
    persistent = message.mqmd.persistence == MQPER_PERSISTENT
    return PublicationRow(at, expires_at, publication.local, persistent, message.mqmd.encode(), encode(message))


def publication_of(row: PublicationRow) -> Publication:
    """What ``publication_row`` wrote. Raises DecodeError."""
    expiry = None if row.expires_at is None else from_microseconds(row.expires_at)
    return Publication(decode(row.body, row.md), from_microseconds(row.published_at), expiry, bool(row.local))
