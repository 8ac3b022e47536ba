"""What a plan makes, as rows that can be compared with a queue manager later: nothing more is needed to verify it.

Identifiers that a queue manager makes, and the time at which it makes something, are left out. A subscription is found
by its name, or without one by what makes two registrations the same (``same_registration``).

The journal of a migration has a digest of each subscription and retained publication as it left them. What programs do
all the time is no change: a registration that is renewed has another expiry.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from commands.broker.objects import Definition, kind_of, state_of
from commands.broker.state import subscription_state
from migrate.draft import same_registration
from migrate.marker import is_marker
from migrate.plan import AddSubscription, MigrationPlan, Store
from migrate.target import Target
from rfh2.errors import MigrationError
from rfh2.message import encode
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription

_MADE_UP = frozenset({"sub_id", "created"})


@dataclass(frozen=True, slots=True)
class WantedRow:
    """One thing: its kind, what it is found by, and its attributes."""

    kind: str
    key: str
    attributes: dict[str, Any]


def wanted_of(plan: MigrationPlan) -> Iterator[WantedRow]:
    """What is there when *plan* was carried out. Where several steps define one object, the last one holds."""
    stored = {(kind_of(step.definition), step.definition.name): step.definition for step in plan.definitions}
    yield from (_definition(definition) for definition in stored.values() if not is_marker(definition))
    for step in plan.steps:
        if isinstance(step, Store):
            continue
        if isinstance(step, AddSubscription):
            yield _subscription(step.subscription)
        else:
            yield _retained(step.retained)


def differences(wanted: Iterable[WantedRow], live: Target, *, exactly: bool = False) -> Iterator[str]:
    """What *live* has otherwise than planned, a line each; nothing where it is as planned.

    A namelist may have more names than planned, which others have added, unless it has to be *exactly* as it was.
    """
    there = {(row.kind, row.key): row for row in rows_of(live)}
    for row in wanted:
        found = there.get((row.kind, row.key))
        if found is None:
            yield f"{_called(row)} is not there"
        elif found.attributes != row.attributes and (exactly or not _has_only_more_names(row, found)):
            yield f"{_called(row)}: {_changed(row.attributes, found.attributes)}"


def _has_only_more_names(planned: WantedRow, found: WantedRow) -> bool:
    """Whether *found* is the namelist that was planned, with names that others have added."""
    if planned.kind != "namelist":
        return False
    wanted, there = ({**row.attributes, "names": ()} for row in (planned, found))
    return wanted == there and set(planned.attributes["names"]) <= set(found.attributes["names"])


def packed(rows: Iterable[WantedRow]) -> bytes:
    """*rows* as they are kept in a file."""
    lines = (json.dumps([row.kind, row.key, row.attributes], ensure_ascii=False) for row in rows)
    return gzip.compress("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"), 5, mtime=0)


def unpacked(path: Path) -> Iterator[WantedRow]:
    """The rows in the file at *path*. Raises MigrationError if it is missing or damaged."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as file:
            for line in file:
                kind, key, attributes = json.loads(line)
                yield WantedRow(kind, key, attributes)
    except (OSError, EOFError, ValueError) as error:
        raise MigrationError(f"{path}: cannot be read: {error}; plan the broker again") from error


def rows_of(target: Target) -> Iterator[WantedRow]:
    """Everything that a queue manager has, the records of migrations apart."""
    yield from (_definition(each) for each in target.definitions.values() if not is_marker(each))
    yield from map(_subscription, target.subscriptions)
    yield from map(_retained, target.retained.values())


def _definition(definition: Definition) -> WantedRow:
    return WantedRow(kind_of(definition), definition.name, json.loads(state_of(definition)))


def _subscription(subscription: Subscription) -> WantedRow:
    attributes = json.loads(subscription_state(subscription))
    for word in _MADE_UP:
        attributes.pop(word, None)
    name = subscription.name
    key = f"named {name}" if name is not None else f"unnamed {_text(same_registration(subscription))}"
    return WantedRow("subscription", key, attributes)


def _text(identity: tuple[object, ...]) -> str:
    return json.dumps(identity, default=lambda value: value.hex() if isinstance(value, bytes) else str(value))


def _retained(retained: RetainedPublication) -> WantedRow:
    publication = retained.publication
    expires = publication.expires_at
    attributes = {
        "message": sha256(encode(publication.message)).hexdigest()[:32],
        "published_at": publication.published_at.isoformat(),
        "expires_at": None if expires is None else expires.isoformat(),
        "local": publication.local,
    }
    return WantedRow("retained", retained.topic_string, attributes)


def _called(row: WantedRow) -> str:
    if row.kind == "retained":
        return f"retained publication on {row.key}"
    if row.kind != "subscription":
        return f"{row.kind} {row.key}"
    name = row.key.removeprefix("named ") if row.key.startswith("named ") else "without a name"
    return f"subscription {name} to {row.attributes.get('topic_string', '')} for {row.attributes.get('dest_queue', '')}"


def _changed(planned: dict[str, Any], live: dict[str, Any]) -> str:
    words = sorted(word for word in planned.keys() | live.keys() if planned.get(word) != live.get(word))
    return "; ".join(f"{word} is {live.get(word)!r}, planned {planned.get(word)!r}" for word in words)


_RENEWED: Final = ("created", "expires_at")


def digest_of(what: Subscription | RetainedPublication) -> str:
    """16 hexadecimal digits for all of it that only a change changes."""
    if isinstance(what, Subscription):
        kept = {word: value for word, value in json.loads(subscription_state(what)).items() if word not in _RENEWED}
        return sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]
    publication = what.publication
    return sha256(f"{publication.published_at} ".encode() + encode(publication.message)).hexdigest()[:16]


def called(subscription: Subscription) -> str:
    """What a person calls it."""
    name = f" {subscription.name}" if subscription.name is not None else ""
    return f"subscription{name} to {subscription.topic_string} for {subscription.dest_queue}"
