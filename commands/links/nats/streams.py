"""The stream and the bucket: what they are, how they are made, and whether the bridge can use those that are there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from commands.config.settings import ConfigError, TopicsConfig
from commands.links.nats.connection import Session

try:
    from nats.js.api import DiscardPolicy, StreamConfig, StreamInfo
    from nats.js.errors import NotFoundError
except ImportError:  # pragma: no cover - the extra is not installed
    pass

# How long the server knows the identifier of a publication that it has taken.
DUPLICATES_S: Final = 600
_PREFIX: Final = re.compile(r"([^\s.*>$][^\s.*>]*\.)+")


@dataclass(frozen=True, slots=True)
class Names:
    """bridge: its name at the server. stream, bucket: of the streams; prefix, keys: what begins their subjects."""

    bridge: str
    stream: str
    prefix: str
    bucket: str
    keys: str

    @classmethod
    def of(cls, config: TopicsConfig, qmgr: str) -> Names:
        """Those of a configuration. Raises ConfigError where it has a prefix that cannot be one."""
        prefix, stream = config.prefix or "mq.", config.stream
        if _PREFIX.fullmatch(prefix) is None:
            raise ConfigError("prefix", f"{prefix} cannot begin NATS subjects; one that can is mq.")
        named = config.client_id or f"qpubsub-{qmgr}"
        bridge = re.sub(r"[^A-Za-z0-9_-]", lambda found: f"={ord(found[0]):02X}", named)
        return cls(bridge, stream, prefix, f"KV_{stream}", f"$KV.{stream}.")


def configs_of(config: TopicsConfig, names: Names) -> tuple[StreamConfig, StreamConfig]:
    """The stream and the bucket as the bridge makes them."""
    kept_s = config.session_expiry_s or None
    common: dict[str, Any] = {"allow_msg_ttl": True, "allow_direct": True, "num_replicas": config.replicas}
    stream = StreamConfig(
        name=names.stream,
        subjects=[f"{names.prefix}>"],
        max_age=kept_s,
        duplicate_window=min(DUPLICATES_S, kept_s or DUPLICATES_S),
        **common,
    )
    bucket = StreamConfig(
        name=names.bucket,
        subjects=[f"{names.keys}>"],
        max_msgs_per_subject=1,
        discard=DiscardPolicy.NEW,
        allow_rollup_hdrs=True,
        deny_delete=True,
        duplicate_window=DUPLICATES_S,
        **common,
    )
    return stream, bucket


async def make_stream(session: Session, wanted: StreamConfig) -> tuple[StreamInfo, bool]:
    """The stream, which is made if it is not there; and whether it was. What an administrator made is left as it is."""
    try:
        return await session.jetstream.stream_info(str(wanted.name)), False
    except NotFoundError:
        return await session.jetstream.add_stream(wanted), True


def why_unfit(about: StreamInfo, wanted: StreamConfig) -> str | None:
    """Why the bridge cannot use a stream; None if it can."""
    missing = [each for each in wanted.subjects or () if not _has(about.config.subjects or (), each)]
    if missing:
        return f"stream {wanted.name} does not have the subjects {missing[0]}; see stream and prefix"
    if not about.config.allow_msg_ttl:
        return f"stream {wanted.name} does not allow Nats-TTL, so nothing can expire in it"
    return None


def _has(subjects: Sequence[str], wanted: str) -> bool:
    return any(each == wanted or (each.endswith(">") and wanted.startswith(each[:-1])) for each in subjects)
