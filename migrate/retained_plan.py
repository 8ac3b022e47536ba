"""Retained publications: each on its resolved topic, kept without being delivered to anybody.

The publisher's own message is kept as it is. A copy that the broker delivered becomes the publication that it was made
from, as far as the copy has its contents. If two publications get the same topic, neither replaces the other: the
second is reported, with the first one's name.
"""

from __future__ import annotations

from dataclasses import replace

from commands.broker.objects import ADMIN_STREAM
from commands.broker.times import tenths_until
from commands.headers.registry import parse
from commands.model import Publish
from migrate.draft import Draft
from migrate.ledger import Severity
from migrate.legacy_state import Key, LegacyRetained
from migrate.plan import KeepRetained
from migrate.publications import published_again
from rfh2.constants import LARGEST_MQLONG, MQPER_PERSISTENCE_AS_Q_DEF, MQPER_PERSISTENT
from rfh2.errors import CommandError, QPubSubError
from rfh2.message import Message, decode
from rfh2.mqmd import name_of
from rfh2.rfh1 import MQPS_INTEGER_DATA, MQPS_STRING_DATA
from streams.operations import Publication, RetainedPublication
from streams.patterns import check_publication_topic
from streams.topic_strings import add_prefix


class _RefusedError(Exception):
    """The publication is not migrated."""

    def __init__(self, text: str, *ids: str, severity: Severity = Severity.ERROR) -> None:
        super().__init__(text)
        self.text, self.ids, self.severity = text, ids, severity


def plan_retained(draft: Draft) -> None:
    """The steps for all retained publications of the state."""
    latest = _without_older(draft)
    taken: dict[str, Key] = {}
    shared: dict[tuple[object, ...], Publication] = {}
    for number, legacy in enumerate(draft.state.retained, 1):
        key = (legacy.kind, number)
        if key in latest:
            try:
                _plan_one(draft, key, legacy, taken, shared)
            except _RefusedError as refusal:
                draft.ledger.report(key, refusal.text, *refusal.ids, severity=refusal.severity)
        draft.progress(1)


def carries_string_data(message: Message) -> bool:
    """Whether an MQRFH carries the data that a conversion to MQRFH2 would lose (guide 8.7)."""
    if message.rfh1 is None:
        return False
    try:
        return any(name in (MQPS_STRING_DATA, MQPS_INTEGER_DATA) for name, _ in message.rfh1.pairs())
    except QPubSubError:
        return False


def _without_older(draft: Draft) -> set[Key]:
    """The keys of those to keep; of several on one topic the latest, or the one with a body."""
    chosen: dict[tuple[str, str, str], tuple[Key, LegacyRetained]] = {}
    for number, legacy in enumerate(draft.state.retained, 1):
        key = (legacy.kind, number)
        place = (legacy.stream, legacy.sub_point or "", legacy.topic)
        known = chosen.get(place)
        if known is None:
            chosen[place] = (key, legacy)
            continue
        newer, older = ((key, legacy), known) if _is_newer(legacy, known[1]) else (known, (key, legacy))
        chosen[place] = newer
        what = f"retained publication {newer[0][1]}"
        if older[1].body_hex in (None, newer[1].body_hex):
            draft.ledger.becomes(older[0], what)
            draft.ledger.note(older[0], "the sources have it a second time")
        else:
            draft.ledger.report(older[0], f"{what} is on the same topic, and is the later one", severity=Severity.INFO)
    return {key for key, _ in chosen.values()}


def _is_newer(one: LegacyRetained, other: LegacyRetained) -> bool:
    if (one.body_hex is None) != (other.body_hex is None):
        return other.body_hex is None
    if one.published_at is not None and other.published_at is not None and one.published_at != other.published_at:
        return one.published_at > other.published_at
    return other.delivered and not one.delivered


def _plan_one(
    draft: Draft,
    key: Key,
    legacy: LegacyRetained,
    taken: dict[str, Key],
    shared: dict[tuple[object, ...], Publication],
) -> None:
    """taken: the topics that have one already. shared: publications by what they were made of."""
    topic_string = _topic_string(draft, legacy)
    message = _message(draft, key, legacy)
    earlier = taken.get(topic_string)
    if earlier is not None:
        why = f"retained publication {earlier[1]} has the same topic {topic_string}; choose another --prefix"
        raise _RefusedError(why, "P09", "D09")
    existing = draft.target.retained.get(topic_string)
    if existing is not None and not draft.options.overwrite:
        raise _RefusedError(f"{topic_string} has a retained publication already", "P08", severity=Severity.WARNING)
    if existing is not None:
        why = f"the retained publication that {topic_string} had was replaced"
        draft.ledger.change(key, why, "P08", severity=Severity.WARNING)
    publication = Publication(message, legacy.published_at or draft.now, legacy.expires_at, legacy.local)
    if not legacy.delivered:
        # A publication on several topics stays one publication, and is stored once.
        what = (legacy.md_hex, legacy.body_hex, publication.published_at, legacy.expires_at, legacy.local)
        publication = shared.setdefault(what, publication)
    taken[topic_string] = key
    retained = RetainedPublication(topic_string, publication)
    step = KeepRetained(retained, key[1], legacy.stream, legacy.sub_point, existing is not None)
    draft.steps.append(step)
    draft.ledger.becomes(key, step)


def _topic_string(draft: Draft, legacy: LegacyRetained) -> str:
    if legacy.topic.startswith("MQ/") or legacy.stream == ADMIN_STREAM:
        raise _RefusedError("the version 6 broker's own; version 7 publishes none", "D05", severity=Severity.INFO)
    stream = draft.streams.get(legacy.stream)
    if stream is None:
        raise _RefusedError(f"its stream {legacy.stream} has no place in the topic tree", "P10")
    prefix = stream.prefix
    if legacy.sub_point:
        point = draft.sub_points.get(legacy.sub_point)
        if point is None:
            raise _RefusedError(f"its subscription point {legacy.sub_point} has no place in the topic tree", "P19")
        prefix = add_prefix(prefix, point.prefix) if prefix else point.prefix
    try:
        return check_publication_topic(add_prefix(prefix, check_publication_topic(legacy.topic)))
    except CommandError as error:
        raise _RefusedError(f"version 7 accepts no publication on this topic: {error.why}", "D14") from error


def _message(draft: Draft, key: Key, legacy: LegacyRetained) -> Message:
    if legacy.body_hex is None:
        why = (
            "the source shows that it exists, and not its contents: get it with strmqbrk --extract, or publish it again"
        )
        raise _RefusedError(why)
    if legacy.expires_at is not None and legacy.expires_at <= draft.now:
        why = f"it expired at {legacy.expires_at:%Y-%m-%d %H:%M:%S} UTC"
        raise _RefusedError(why, severity=Severity.INFO)
    if tenths_until(legacy.expires_at, draft.now) == LARGEST_MQLONG:
        why = f"its expiry is more than a message holds: files give it {LARGEST_MQLONG} tenths of a second"
        draft.ledger.change(key, why, "P26", severity=Severity.WARNING)
    try:
        descriptor = None if legacy.md_hex is None else bytes.fromhex(legacy.md_hex)
        message = decode(bytes.fromhex(legacy.body_hex), descriptor)
        if legacy.delivered:
            message = published_again(message, legacy.topic, legacy.sub_point)
            why = "a copy that the broker delivered: who published it and its own identifiers are not known"
            draft.ledger.change(key, why)
        elif not isinstance(parse(message), Publish):
            raise _RefusedError("its message is not a publication")
    except QPubSubError as error:
        raise _RefusedError(f"its message cannot be read: {error}") from error
    if name_of(message.mqmd.reply_to_qmgr) == draft.state.qmgr != draft.qmgr:
        # A program that replies to the publisher needs the present name of its queue manager.
        message = replace(message, mqmd=replace(message.mqmd, reply_to_qmgr=draft.qmgr))
    if message.mqmd.persistence == MQPER_PERSISTENCE_AS_Q_DEF:
        message = replace(message, mqmd=replace(message.mqmd, persistence=MQPER_PERSISTENT))
        why = "its persistence was that of its queue, which is not known; it is persistent now, to be safe"
        draft.ledger.change(key, why, "P11")
    elif message.mqmd.persistence != MQPER_PERSISTENT:
        why = "it is not persistent: a restart of the queue manager discards it (guide 8.5)"
        draft.ledger.note(key, why, "P11", "D28", severity=Severity.WARNING)
    if carries_string_data(message):
        why = "its MQRFH carries MQPSStringData or MQPSIntData: kept here, lost to subscribers with MQRFH2 (guide 8.7)"
        draft.ledger.note(key, why, "P01", severity=Severity.WARNING)
    return message
