"""A captured message: one message as a queue saw it, in the form that every capture format is read into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import BaseModel, Field, field_serializer, field_validator

from rfh2.errors import DecodeError, QPubSubError
from rfh2.message import Message, body_text, decode
from rfh2.mqmd import Mqmd
from rfh2.terminal_escape import visible

# What a captured message and a put have in common: an MQMD and data in hexadecimal, and what can be read in them.

# How much of a name, and of a body, a line or a table shows.
_NAME_CHARACTERS: Final = 64
_BODY_CHARACTERS: Final = 400
_COMMAND_TAGS: Final = {"Command": "command", "Topic": "topic", "MQPSCommand": "command", "MQPSTopic": "topic"}


class MessageBytes(BaseModel, frozen=True, defer_build=True):
    """A message in a model whose fields are ``md_hex`` and ``body_hex``.

    Nothing is decoded when the model is made. Each property does its work when it is first read, and keeps the result.
    """

    # The models declare these fields themselves: the order of a model's fields is the order of its JSON.
    if TYPE_CHECKING:
        md_hex: str | None
        body_hex: str

    @cached_property
    def md(self) -> bytes | None:
        """The bytes of the MQMD."""
        return None if self.md_hex is None else bytes.fromhex(self.md_hex)

    @cached_property
    def body(self) -> bytes:
        """The bytes behind the MQMD: headers and data."""
        return bytes.fromhex(self.body_hex)

    @cached_property
    def decoded(self) -> Message:
        """The MQMD, the headers and the data behind them, as ``rfh2.decode`` gives them. Raises DecodeError."""
        return decode(self.body, self.md)

    @cached_property
    def text(self) -> str | None:
        """The data behind the headers as text, in the CCSID that the last header or the MQMD gives it.

        None where the message cannot be decoded; where the CCSID is unknown or the data does not fit it, because no
        character is replaced or guessed; and where the data holds control characters and its Format is not MQSTR. Nulls
        at the end are left out. ``decoded.body`` has the bytes in every case.
        """
        try:
            return body_text(self.decoded)
        except DecodeError:
            return None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed. Nothing that was decoded from the old fields is kept."""
        copied = super().model_copy(update=update, deep=deep)
        if update and not update.keys().isdisjoint(("md_hex", "body_hex")):
            for name in ("md", "body", "decoded", "text"):
                copied.__dict__.pop(name, None)
        return copied

    def __repr__(self) -> str:
        parts = [f"{name}={value}" for name, value in self._summary()]
        return f"{type(self).__name__}({', '.join([*parts, f'{len(self.body_hex) // 2} bytes'])})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """A small table, for notebooks. Everything in it is escaped."""
        rows = [*self._summary(), ("length", f"{len(self.body_hex) // 2} bytes")]
        if self.text:
            rows.append(("text", _shortened(self.text, _BODY_CHARACTERS)))
        lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
        return f"<table><caption>{type(self).__name__}</caption>{lines}</table>"

    def _summary(self) -> Iterator[tuple[str, str]]:
        """The fields that are given, in their order, and what the first header commands."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if value is not None and name not in ("md_hex", "body_hex"):
                yield name, _shown(value)
        try:
            message = self.decoded
        except DecodeError as error:
            yield "problem", _shown(str(error))
            return
        if message.headers:
            yield "headers", "+".join(header.kind for header in islice(message.headers, 8))
        given = {name for name in type(self).model_fields if getattr(self, name) is not None}
        yield from ((name, value) for name, value in _commanded(message) if name not in given)


def _commanded(message: Message) -> Iterator[tuple[str, str]]:
    """Command and first topic, as the header has them. Whether they make a command is not asked here."""
    found: dict[str, str] = {}
    try:
        if message.rfh2 is not None:
            folders = [folder for folder in message.rfh2.folders if folder.name == "psc"]
            pairs: list[tuple[str, Any]] = [pair for folder in folders[:1] for pair in folder.values().items()]
        else:
            pairs = [] if message.rfh1 is None else list(message.rfh1.pairs())
    except QPubSubError:
        return
    for tag, value in pairs:
        if (name := _COMMAND_TAGS.get(tag)) is not None:
            first = value[0] if isinstance(value, list) and value else value
            found.setdefault(name, _shown(str(first)))
    yield from found.items()


def _shown(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return _shortened(str(value), _NAME_CHARACTERS)


def _shortened(text: str, most: int) -> str:
    """*text* in one line of at most *most* characters."""
    # Cut before it is escaped, too: a body may have millions of characters.
    line = visible(text[: most + 1])
    return line if len(line) <= most else line[: most - 1] + "…"


Hex = str

HIGHEST_SEQ: Final = 2**63 - 1
"""The long of Parquet and SQLite."""


class CapturedMessage(MessageBytes, frozen=True, extra="ignore", defer_build=True):
    """One line of a JSON Lines capture; unknown keys are ignored.

    seq: order of arrival, unique in each queue manager, 0 to HIGHEST_SEQ. time: UTC. qmgr, queue: where it was put.
    user: None for the MQMD's UserIdentifier. md_hex: an MQMD of version 1 or 2, or None for the defaults. body_hex:
    headers and data.

    >>> CapturedMessage(seq=1, queue="SPORT", body_hex=b"0 1".hex())
    CapturedMessage(seq=1, queue=SPORT, 3 bytes)
    """

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
