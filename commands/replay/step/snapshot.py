"""A snapshot: the state of a replay between two messages as bytes, from which the replay can go on.

JSON, sorted, compressed; equal states give equal bytes. It holds nothing of the setup, which runs again. A publication
that several topics retain is written once, and is one again when it is read, because version 6 asks whether it is.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from commands.broker.state import from_microseconds, subscription_of, subscription_state, to_microseconds
from commands.mqsc.broker import BrokerState
from commands.replay.local import LocalReplay
from commands.replay.step.state import Key, QueueTally, StepState
from rfh2.errors import QPubSubError
from rfh2.message import decode, encode
from streams.operations import Publication, Published, RetainedPublication

VERSION: Final = 1
_QUICKLY: Final = 1


class SnapshotError(QPubSubError):
    """A snapshot that cannot be read: it is damaged, or another version wrote it."""


def snapshot_of(replay: LocalReplay, queues: Mapping[Key, QueueTally]) -> bytes:
    """The snapshot of *replay*. queues: what it has put. Raises EncodeError for a message that has no bytes."""
    form = {
        "version": VERSION,
        "last_seq": replay.last_seq,
        "brokers": {qmgr: _broker_form(broker.state()) for qmgr, broker in sorted(replay.brokers.items())},
        "queues": [[*key, t.publications, t.responses, t.dead_letters] for key, t in sorted(queues.items())],
    }
    return zlib.compress(json.dumps(form, separators=(",", ":")).encode(), _QUICKLY)


def resumed(data: bytes, setup: str, semantics: str) -> tuple[LocalReplay, StepState]:
    """The replay that a snapshot was taken of, and its state. setup, semantics: those of that replay.

    Raises SnapshotError.
    """
    try:
        form = json.loads(zlib.decompress(data))
        if form["version"] != VERSION:
            raise SnapshotError(f"version {form['version']} of snapshots cannot be read, only version {VERSION}")
        states = {qmgr: _broker_state(each) for qmgr, each in form["brokers"].items()}
        replay = LocalReplay.resumed(setup, semantics, form["last_seq"], states)
        queues = {(qmgr, queue): QueueTally(*counts) for qmgr, queue, *counts in form["queues"]}
    except SnapshotError:
        raise
    except (zlib.error, KeyError, TypeError, ValueError, QPubSubError) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from error
    return replay, state_of(replay, queues)


def state_of(replay: LocalReplay, queues: Mapping[Key, QueueTally]) -> StepState:
    """The items of a replay."""
    state = StepState(queues=dict(queues))
    for qmgr, broker in replay.brokers.items():
        for subscription in broker.space.subscriptions():
            state.subscriptions[qmgr, subscription.sub_id.hex()] = subscription
        for retained in broker.space.retained_publications():
            state.retained[qmgr, retained.topic_string] = retained
    return state


def _broker_form(state: BrokerState) -> dict[str, Any]:
    numbers: dict[int, int] = {}
    publications: list[Any] = []
    retained: list[tuple[str, int]] = []
    for each in state.retained:
        publication = each.publication
        number = numbers.setdefault(id(publication), len(publications))
        if number == len(publications):
            publications.append(_publication_form(publication))
        retained.append((each.topic_string, number))
    return {
        "last_time": to_microseconds(state.last_time),
        "begun": state.begun,
        "subscriptions": [subscription_state(each) for each in state.subscriptions],
        "publications": publications,
        "retained": retained,
    }


def _publication_form(publication: Published) -> dict[str, Any]:
    message = publication.message
    return {
        "md": message.mqmd.encode().hex(),
        "body": encode(message).hex(),
        "published_at": to_microseconds(publication.published_at),
        "expires_at": _micros(publication.expires_at),
        "local": publication.local,
        "stream": publication.stream,
        "sub_point": publication.sub_point,
    }


def _micros(time: datetime | None) -> int | None:
    return None if time is None else to_microseconds(time)


def _broker_state(form: dict[str, Any]) -> BrokerState:
    publications = [_publication(each) for each in form["publications"]]
    return BrokerState(
        from_microseconds(form["last_time"]),
        bool(form["begun"]),
        tuple(subscription_of(each) for each in form["subscriptions"]),
        tuple(RetainedPublication(topic, publications[number]) for topic, number in form["retained"]),
    )


def _publication(form: dict[str, Any]) -> Publication:
    expires_at = form["expires_at"]
    return Publication(
        decode(bytes.fromhex(form["body"]), bytes.fromhex(form["md"])),
        from_microseconds(form["published_at"]),
        None if expires_at is None else from_microseconds(expires_at),
        form["local"],
        form["stream"],
        form["sub_point"],
    )
