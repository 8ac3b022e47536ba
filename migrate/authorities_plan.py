"""Authorities of version 6 on stream queues become authorities on the streams' topic objects (guide 7).

The version 6 broker asked whether a user could put to the stream queue (to publish), or browse it (to subscribe). No
source says what IBM's own migration makes of that; here PUT becomes PUB and BROWSE becomes SUB, on the topic object
of the same name; a generic profile is granted on the topic object of each stream whose queue it covers. The default
stream is the root: an authority there would apply to the whole tree, and cannot be removed further down, so a person
must decide, and until then it is lost. Authorities on queues do not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from commands.broker.authority import Action, RecordedAuthority, is_generic_profile, parse_profile
from commands.broker.objects import AuthorityRecord, is_object_name
from commands.terminal.counted import counted
from migrate.draft import Draft
from migrate.ledger import Severity
from migrate.legacy_state import Key, LegacyAuthority
from migrate.plan import AddSubscription, KeepRetained
from rfh2.mqmd import name_of
from streams.patterns import parse_pattern
from streams.topic_objects import DEFAULT_STREAM

_ON_TOPIC: Final = {"PUT": "PUB", "BROWSE": "SUB"}
_EVERYTHING: Final = {"ALLMQI": ("PUT", "BROWSE"), "ALL": ("PUT", "BROWSE")}


def plan_authorities(draft: Draft) -> None:
    """The steps that grant, and the fate of every authority of the state."""
    began = bool(draft.objects.authorities)
    for number, authority in enumerate(draft.state.authorities, 1):
        _plan_one(draft, (authority.kind, number), authority)
        draft.progress(1)
    if draft.state.authorities and not began and draft.objects.authorities:
        why = "this migration makes the first authority records: from then on, access that no record grants is refused"
        draft.warn(why, "P06")
    check_subscribers(draft)


def _plan_one(draft: Draft, key: Key, authority: LegacyAuthority) -> None:
    given = set(_expanded(authority.authorities)) - set(authority.removed)
    if authority.object_type != "QUEUE":
        if authority.object_type == "TOPIC" and authority.profile not in draft.objects.topics:
            draft.ledger.report(key, f"there is no topic object {authority.profile}")
            return
        _grant(draft, key, authority, authority.object_type, authority.profile, set(authority.authorities))
        draft.ledger.becomes(key, f"authority on {authority.object_type.lower()} {authority.profile}, as it was")
        return
    becomes = []
    if is_object_name(authority.profile) or is_generic_profile(authority.profile):
        _grant(draft, key, authority, "QUEUE", authority.profile, set(authority.authorities))
        becomes.append(f"authority on queue {authority.profile}, as it was")
    on_topic = {word for old, word in _ON_TOPIC.items() if old in given}
    words = " and ".join(sorted(on_topic))
    if on_topic and _applies(draft, authority, DEFAULT_STREAM):
        why = f"{words} on SYSTEM.BASE.TOPIC would apply to every topic; grant it on topic objects below"
        draft.ledger.change(key, why, "P04", severity=Severity.ERROR)
    for stream, place in draft.streams.items():
        if on_topic and place.object_name and _applies(draft, authority, stream):
            _grant(draft, key, authority, "TOPIC", place.object_name, on_topic)
            becomes.append(f"{words} on topic object {place.object_name}")
    if becomes:
        draft.ledger.becomes(key, "; ".join(becomes))
    else:
        draft.ledger.report(key, f"{authority.profile!r} is neither a queue nor a stream")


def _applies(draft: Draft, authority: LegacyAuthority, queue: str) -> bool:
    """Whether it is about *queue*: of the profiles of one user or group only the most specific that fits applies."""
    own = parse_profile(authority.profile)
    if own is None or not own.fits(queue):
        return False
    return not any(
        other.profile != authority.profile
        and other.object_type == "QUEUE"
        and (other.entity_type, other.entity) == (authority.entity_type, authority.entity)
        and (found := parse_profile(other.profile)) is not None
        and found.fits(queue)
        and found.specificity < own.specificity
        for other in draft.state.authorities
    )


def _expanded(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for word in words for part in (word, *_EVERYTHING.get(word, ())))


def _grant(
    draft: Draft, key: Key, authority: LegacyAuthority, object_type: str, profile: str, words: set[str]
) -> AuthorityRecord:
    record = AuthorityRecord(object_type, profile, authority.entity_type, authority.entity)
    before = draft.objects.authorities.get(record.name, record)
    removed = {_ON_TOPIC.get(word, word) if object_type == "TOPIC" else word for word in authority.removed}
    after = tuple(sorted((set(before.authorities) | words) - removed - {"NONE"}))
    made = AuthorityRecord(object_type, profile, authority.entity_type, authority.entity, after)
    draft.define(made, key)
    return made


def check_subscribers(draft: Draft) -> None:
    """Report users who, with the new records, may no longer subscribe or publish where they did."""
    if not draft.objects.authorities:
        return
    authority = RecordedAuthority(draft.objects, _groups_of(draft))
    known: dict[tuple[str, str], bool] = {}
    # The first of the subscriptions that a sentence is about has it, with the number of the others.
    said: dict[str, list[Key]] = {}
    for step in draft.steps:
        if isinstance(step, KeepRetained):
            user = name_of(step.retained.publication.message.mqmd.user_identifier)
            if user and not authority.may_use_topic(user, Action.PUBLISH, step.retained.topic_string):
                why = f"user {user}, who published it, has no authority to publish there"
                draft.ledger.note(step.key, why, "P06", severity=Severity.WARNING)
        if not isinstance(step, AddSubscription):
            continue
        subscription = step.subscription
        topic = parse_pattern(subscription.topic_string, subscription.wildcard).literal_topic
        asked = (subscription.user, topic)
        if asked not in known:
            known[asked] = authority.may_use_topic(subscription.user, Action.SUBSCRIBE, topic)
        user = subscription.user or "(none)"
        if not known[asked]:
            said.setdefault(f"user {user} has no authority to subscribe there: registering again fails", []).append(
                step.key
            )
        if subscription.dest_qmgr == draft.qmgr and not authority.may_put(subscription.user, subscription.dest_queue):
            said.setdefault(f"user {user} has no authority to put to {subscription.dest_queue}", []).append(step.key)
    for why, (first, *others) in said.items():
        more = f"; the same holds for {counted(len(others), 'other subscription')}" if others else ""
        draft.ledger.note(first, f"{why}{more}", "P06", severity=Severity.WARNING)


def _groups_of(draft: Draft) -> Callable[[str], tuple[str, ...]]:
    """Who is in which group, if the sources say so; other users may be in any group that has a record."""
    groups = {p.name: p.groups for p in draft.state.principals if p.type == "user"}
    any_group = tuple(sorted({r.entity for r in draft.objects.authorities.values() if r.entity_type == "GROUP"}))
    users = {step.subscription.user for step in draft.steps if isinstance(step, AddSubscription)}
    if any_group and users - groups.keys():
        why = "no source has the groups of all users: who has authority as a member of a group is not certain"
        draft.warn(why, "P06", severity=Severity.INFO)
    return lambda user: groups.get(user, any_group)
