"""The properties of a PUBLISH, as paho takes them: packed once for all publications that have the same.

Importing this module needs paho.
"""

from __future__ import annotations

from typing import Final, cast

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from commands.links.engine.properties import Pairs
from rfh2.bounded_cache import BoundedCache

_Key = tuple[int | None, str | None, bool, Pairs]
_KNOWN_BYTES: Final = 1 << 20
_ENTRY_BYTES: Final = 1_500


class _Packed(Properties):
    """Properties that nobody changes any more."""

    def pack(self) -> bytes:
        packed = self.__dict__.get("packed")
        if packed is None:
            packed = self.__dict__["packed"] = super().pack()  # type: ignore[no-untyped-call]
        return cast(bytes, packed)


_KNOWN: Final[BoundedCache[_Key, Properties]] = BoundedCache(_KNOWN_BYTES)


def publish_properties(expiry_s: int | None, content_type: str | None, is_text: bool, user: Pairs) -> Properties:
    """Those of a publication, which the caller does not change. expiry_s: seconds, None for never."""
    key = (expiry_s, content_type, is_text, user)
    known = _KNOWN.get(key)
    if known is not None:
        return known
    properties = _Packed(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    if expiry_s is not None:
        properties.MessageExpiryInterval = expiry_s
    if content_type is not None:
        properties.ContentType = content_type
    if is_text:
        properties.PayloadFormatIndicator = 1
    if user:
        properties.UserProperty = list(user)
    _KNOWN.keep(key, properties, _ENTRY_BYTES + 12 * sum(len(name) + len(value) for name, value in user))
    return properties
