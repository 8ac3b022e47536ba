"""Operations as JSON: all that they hold, one object a captured message."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from rfh2.captured import iso
from rfh2.message import Message, encode
from streams.operations import Operation


def to_json(operation: Operation) -> dict[str, Any]:
    """The JSON form of *operation*: its name, and its fields under their own names."""
    return {"operation": type(operation).__name__, **_fields(operation)}


def as_json(value: Any) -> Any:
    """Any part of an operation: bytes as hex, moments in ISO 8601, a message as the hex of its MQMD and its body."""
    if isinstance(value, Message):
        return {"md_hex": value.mqmd.encode().hex(), "body_hex": encode(value).hex()}
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    return value


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
