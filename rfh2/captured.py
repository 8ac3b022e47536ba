"""A captured message: one message as a queue saw it, in the form that every capture format is read into."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from pydantic import ConfigDict, Field, field_serializer, field_validator

from rfh2.errors import DecodeError
from rfh2.message import Message, decode
from rfh2.message_bytes import MessageBytes
from rfh2.mqmd import Mqmd

Hex = str

HIGHEST_SEQ: Final = 2**63 - 1
"""The long of Parquet and SQLite."""


class CapturedMessage(MessageBytes):
    """One line of a JSON Lines capture; unknown keys are ignored.

    seq: order of arrival, unique in each queue manager, 0 to HIGHEST_SEQ. time: UTC. qmgr, queue: where it was put.
    user: None for the MQMD's UserIdentifier. md_hex: an MQMD of version 1 or 2, or None for the defaults. body_hex:
    headers and data.

    >>> CapturedMessage(seq=1, queue="SPORT", body_hex=b"0 1".hex())
    CapturedMessage(seq=1, queue=SPORT, 3 bytes)
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    seq: int = Field(ge=0, le=HIGHEST_SEQ)
    time: datetime | None = None
    qmgr: str | None = None
    queue: str
    user: str | None = None
    md_hex: Hex | None = None
    body_hex: Hex

    @field_validator("md_hex", "body_hex")
    @classmethod
    def _is_hex(cls, value: str | None) -> str | None:
        if value is not None:
            bytes.fromhex(value)
        return value

    @field_validator("time")
    @classmethod
    def _is_utc(cls, value: datetime | None) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    @field_serializer("time")
    def _as_iso(self, value: datetime | None) -> str | None:
        return None if value is None else iso(value)

    def descriptor(self) -> Mqmd | None:
        """The MQMD, or None where there is none or it cannot be decoded."""
        try:
            return None if self.md is None else Mqmd.decode(self.md)
        except DecodeError:
            return None

    def decode(self) -> Message:
        """The same as ``decoded``, decoded anew at each call and not kept. Raises DecodeError."""
        return decode(self.body, self.md)


def iso(time: datetime) -> str:
    """ISO 8601 in UTC with milliseconds (microseconds where there are any) and a Z."""
    precision = "milliseconds" if time.microsecond % 1000 == 0 else "microseconds"
    utc = time if time.tzinfo is UTC else time.astimezone(UTC)
    return utc.isoformat(timespec=precision).removesuffix("+00:00") + "Z"
