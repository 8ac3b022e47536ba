"""The stream and the bucket: how they are made, and what the bucket holds under filters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from commands.links.engine.config import TopicsConfig
from commands.links.nats.connection import Session
from commands.links.nats.subjects import wildcards_of
from rfh2.errors import StoreError

try:
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, DiscardPolicy, StreamConfig, StreamInfo
    from nats.js.errors import NotFoundError
except ImportError:  # pragma: no cover - the extra is not installed
    pass

# How long the server knows the identifier of a publication that it has taken.
DUPLICATES_S: Final = 600
# Look-ups at the same time, and messages asked for together.
_AT_ONCE: Final = 20
_BATCH: Final = 500
_PATIENCE_S: Final = 5.0


def configs_of(config: TopicsConfig, prefix: str) -> tuple[StreamConfig, StreamConfig]:
    """The stream and the bucket as the bridge makes them."""
    kept_s = config.session_expiry_s or None
    common: dict[str, Any] = {"allow_msg_ttl": True, "allow_direct": True, "num_replicas": config.replicas}
    stream = StreamConfig(
        name=config.stream,
        subjects=[f"{prefix}>"],
        max_age=kept_s,
        duplicate_window=min(DUPLICATES_S, kept_s or DUPLICATES_S),
        **common,
    )
    bucket = StreamConfig(
        name=f"KV_{config.stream}",
        subjects=[f"$KV.{config.stream}.>"],
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


async def make_streams(session: Session, config: TopicsConfig, prefix: str) -> bool:
    """Make the stream and the bucket, if they are not there; whether several servers have them.

    Raises StoreError if the bridge cannot use what is there.
    """
    cluster = False
    for wanted in configs_of(config, prefix):
        about, _ = await make_stream(session, wanted)
        why = why_unfit(about, wanted)
        if why is not None:
            raise StoreError(why)
        cluster = about.cluster is not None
    return cluster


def _has(subjects: Sequence[str], wanted: str) -> bool:
    return any(each == wanted or (each.endswith(">") and wanted.startswith(each[:-1])) for each in subjects)


async def last_values(session: Session, stream: str, filters: Sequence[str]) -> list[Any]:
    """The messages of all keys of the bucket that any of *filters* selects, each once; markers too."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def under(topic_filter: str) -> list[Any]:
        async with limit:
            return await _under(session, stream, topic_filter)

    found = await asyncio.gather(*map(under, filters))
    return list({message.subject: message for messages in found for message in messages}.values())


async def _under(session: Session, stream: str, topic_filter: str) -> list[Any]:
    bucket, jetstream = f"KV_{stream}", session.jetstream
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
        ack_policy=AckPolicy.NONE,
        filter_subjects=list(wildcards_of(topic_filter, f"$KV.{stream}.", key=True)),
        mem_storage=True,
        inactive_threshold=30.0,
    )
    consumer = await jetstream.add_consumer(bucket, config)
    inbox = session.client.new_inbox()
    found: list[Any] = []
    incoming = await session.client.subscribe(inbox)
    try:
        while len(found) < (consumer.num_pending or 0):
            wanted = {"batch": _BATCH, "no_wait": True}
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{bucket}.{consumer.name}"
            await session.client.publish(subject, json.dumps(wanted).encode(), reply=inbox)
            came = 0
            while came < _BATCH:
                message = await incoming.next_msg(_PATIENCE_S)
                if message.subject == inbox:
                    break
                found.append(message)
                came += 1
            if not came:
                break  # what was pending has expired
    finally:
        with suppress(Exception):
            await incoming.unsubscribe()
            await jetstream.delete_consumer(bucket, consumer.name)
    return found
