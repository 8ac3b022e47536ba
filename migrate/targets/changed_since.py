"""What was changed after a migration on what its undo restores or removes, so that it can be named.

The journal has what the migration left: each definition, and a digest of each subscription and retained publication.
What programs do all the time is no change: a registration that is renewed has another expiry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from commands.broker.objects import kind_of, state_of
from commands.broker.state import subscription_state
from commands.qmgr.store.reading import definitions_in
from migrate.target import Target
from rfh2.message import encode
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription

_RENEWED: Final = ("created", "expires_at")
_UNKNOWN: Final = (
    "what others have changed since is not known: an earlier release migrated, and its journal lacks what it left"
)


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


def since(
    touched: Mapping[str, list[Any]], afterwards: Mapping[str, list[Any]] | None, before: Target, now: Target
) -> Iterator[str]:
    """What was changed, a line each. touched, afterwards: of the journal. before, now: the queue manager's states."""
    if afterwards is None:
        yield _UNKNOWN
        return
    yield from _definitions(touched["definitions"], afterwards["definitions"], before, now)
    there = {subscription.sub_id: subscription for subscription in now.subscriptions}
    were = {subscription.sub_id: subscription for subscription in before.subscriptions}
    for sub_id, left in zip(map(bytes.fromhex, touched["subscriptions"]), afterwards["subscriptions"], strict=True):
        found, old = there.get(sub_id), were.get(sub_id)
        if found is None:
            if old is not None:
                yield f"{called(old)} was deleted, and is there again"
        elif digest_of(found) != left:
            becomes = "it is as before the migration" if old is not None else "it is removed"
            yield f"{called(found)} was altered: {becomes}"
    for topic, left in zip(touched["retained"], afterwards["retained"], strict=True):
        kept = now.retained.get(topic)
        restored = topic in before.retained
        if kept is None and restored:
            yield f"retained publication on {topic} was cleared, and the one before the migration is there again"
        elif kept is not None and digest_of(kept) != left:
            becomes = "replaced by the one before the migration" if restored else "cleared"
            yield f"retained publication on {topic} is a newer one: it is {becomes}"


def _definitions(touched: list[Any], afterwards: list[Any], before: Target, now: Target) -> Iterator[str]:
    then, there = (
        {(kind_of(each), each.name): json.loads(state_of(each)) for each in definitions_in(target.objects)}
        for target in (before, now)
    )
    # Where several steps define one object, the last one holds.
    made = {(kind, name): left for (kind, name), left in zip(touched, afterwards, strict=True)}
    for (kind, name), left in made.items():
        found, old = there.get((kind, name)), then.get((kind, name))
        if found is None:
            if old is not None:
                yield f"{kind} {name} was deleted, and is there again"
            continue
        said = []
        for word in sorted(found.keys() | left.keys()):
            value = found.get(word)
            if value == left.get(word) or (old is not None and value == old.get(word)):
                continue
            if old is None:
                said.append(f"{word} is {value!r}")
            elif isinstance(value, list):
                kept = [*(left.get(word) or ()), *(old.get(word) or ())]
                if more := [str(each) for each in value if each not in kept]:
                    said.append(f"{', '.join(more)} in {word} is taken out")
            else:
                said.append(f"{word} is {value!r}, and {old.get(word)!r} again")
        if said:
            yield f"{kind} {name} was altered: {'; '.join(said)}" + ("" if old is not None else "; it is deleted")
