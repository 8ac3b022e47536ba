"""Access control lists of Event Broker and Message Broker: topic objects for them, and suggested commands (guide 8.1).

In those brokers everybody is authorized unless a list denies it. In MQ nobody is authorized unless a topic object
grants it, and an authority that is granted higher in the tree cannot be denied below. So an allowed right becomes a
``setmqaut`` command, a denied one a line for a person, and an inherited one nothing. A principal whose name may be a
user's or a group's gets both forms, the group's commented out:

    setmqaut -m QM1 -n MIGMBBRK.TOPIC.00001 -t topic -p fred +sub +pub
    # setmqaut -m QM1 -n MIGMBBRK.TOPIC.00001 -t topic -g fred +sub +pub

The migration never runs the commands. It makes one topic object for each topic with a list, unless one with that topic
string exists; the root has SYSTEM.BASE.TOPIC.

Authorities of version 6 on stream queues become authorities on the streams' topic objects (guide 7).

The version 6 broker asked whether a user could put to the stream queue (to publish), or browse it (to subscribe). No
source says what IBM's own migration makes of that; here PUT becomes PUB and BROWSE becomes SUB, on the topic object
of the same name; a generic profile is granted on the topic object of each stream whose queue it covers. The default
stream is the root: an authority there would apply to the whole tree, and cannot be removed further down, so a person
must decide, and until then it is lost. Authorities on queues do not change.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Final

from commands.broker.authority import Action, RecordedAuthority, is_generic_profile, parse_profile
from commands.broker.objects import AuthorityRecord, is_object_name
from commands.terminal.counted import counted
from migrate.assemble import SYSTEM_TOPICS, acl_object_names
from migrate.ledger import Severity
from migrate.legacy_state import Access, AclEntry, Key, LegacyAuthority
from migrate.plan import AddSubscription, KeepRetained, TopicGrant
from migrate.target import Draft
from rfh2.errors import CommandError
from rfh2.mqmd import name_of
from streams.patterns import parse_pattern
from streams.topic_objects import BASE_TOPIC, DEFAULT_STREAM, TopicObject, Wildcard
from streams.topic_strings import add_prefix

FILE_NAME: Final = "amqmigrateacl.txt"
_EVERYBODY: Final = frozenset({"PublicGroup", "PUBLICGROUP", "publicgroup"})


def plan_acl(draft: Draft) -> None:
    """Topic objects for the lists, the fate of every entry, and the lines of the security command file."""
    following = acl_object_names(1, lambda name: name in draft.objects.topics)
    by_topic: dict[str, list[tuple[Key, AclEntry]]] = {}
    for number, entry in enumerate(draft.state.acl, 1):
        key = (entry.kind, number)
        place = draft.streams.get(entry.stream)
        if place is None:
            why = f"its stream {entry.stream} has no place in the topic tree"
            draft.ledger.report(key, why, "P10", severity=Severity.ERROR)
            continue
        if entry.stream == DEFAULT_STREAM and entry.topic in SYSTEM_TOPICS:
            why = f"{entry.topic} held all streams: there is no such topic in MQ. Grant on each stream's topic object"
            draft.ledger.report(key, why, "P02", severity=Severity.ERROR)
            draft.security += ["", f"# {entry.topic} of {_shown(entry.principal)}: {why}. By hand."]
            continue
        topic = add_prefix(place.prefix, entry.topic) if entry.topic else place.prefix
        by_topic.setdefault(topic, []).append((key, entry))
    draft.security += _heading(draft)
    for topic, entries in by_topic.items():
        name = _topic_object(draft, topic, tuple(key for key, _ in entries), following)
        if isinstance(name, CommandError):
            for key, _ in entries:
                why = f"no topic object can have topic string {topic}: {name.why}"
                draft.ledger.report(key, why, severity=Severity.ERROR)
            draft.security += ["", f"# {_shown(topic)}: no topic object can be made: {name.why}. By hand."]
            continue
        draft.security += ["", f"# Topic {_shown(topic) or '(root)'}"]
        for key, entry in entries:
            draft.security += _entry(draft, key, entry, name)
            draft.progress(1)


def _topic_object(draft: Draft, topic: str, keys: tuple[Key, ...], following) -> str | CommandError:  # type: ignore[no-untyped-def]
    existing = draft.objects.topics.at(topic)
    if existing is not None:
        if existing.name != BASE_TOPIC and existing.wildcard is Wildcard.BLOCK and existing.name not in draft.streams:
            for key in keys:
                why = f"topic object {existing.name} is used although it has WILDCARD(BLOCK)"
                draft.ledger.note(key, why, "P07", severity=Severity.WARNING)
        return existing.name
    if not topic:
        return BASE_TOPIC
    name = following()
    try:
        draft.define(TopicObject(name, topic), *keys)
    except CommandError as error:
        return error
    return str(name)


def _entry(draft: Draft, key: Key, entry: AclEntry, name: str) -> Iterator[str]:
    if not entry.principal.isprintable():
        # In a script a line break would end the comment or the command that has the name.
        yield f"# {_shown(entry.principal)}: a command cannot hold this name. By hand."
        draft.ledger.report(
            key, "its principal's name has characters that no command can hold", severity=Severity.ERROR
        )
        return
    granted = [word for word, access in _rights(entry) if access is Access.ALLOW]
    denied = [word for word, access in _rights(entry) if access is Access.DENY]
    draft.grants.append(
        TopicGrant(
            name,
            entry.principal,
            tuple(word.upper() for word in granted),
            tuple(word.upper() for word in denied),
            entry.principal in _EVERYBODY,
        )
    )
    if denied:
        what = " and ".join({"sub": "subscribe", "pub": "publish"}[word] for word in denied)
        yield f"# DENIED: {entry.principal} may not {what} there. MQ cannot deny: migrate this entry by hand."
        why = f"it denies {what}, which no authority of MQ expresses (guide 8.1)"
        draft.ledger.change(key, why, "P02", "D29", severity=Severity.ERROR)
    if entry.persistent is not Access.INHERIT:
        yield f"# persistent={entry.persistent.value} of {entry.principal}: MQ has no such authority."
        draft.ledger.change(key, "MQ has no authority for persistence", severity=Severity.WARNING)
    if not granted:
        if denied or entry.persistent is not Access.INHERIT:
            why = "no command can grant what it says"
            draft.ledger.report(key, why, "P02", severity=Severity.ERROR if denied else Severity.WARNING)
        else:
            draft.ledger.becomes(key, "nothing: it inherits, and so do topics in MQ")
        return
    words = " ".join(f"+{word}" for word in granted)
    if entry.principal in _EVERYBODY:
        yield f"# {entry.principal} is everybody: grant {words} on {name} to a group that all users are in."
        why = "it is for everybody: MQ needs a group that all users are in"
        draft.ledger.change(key, why, "P04", severity=Severity.WARNING)
        draft.ledger.becomes(key, f"a line for a person, about topic object {name}")
        return
    yield from _commands(draft, key, entry, name, words)
    draft.ledger.becomes(key, f"a suggested command for topic object {name}")


def _rights(entry: AclEntry) -> tuple[tuple[str, Access], ...]:
    return ("sub", entry.subscribe), ("pub", entry.publish)


def _commands(draft: Draft, key: Key, entry: AclEntry, name: str, words: str) -> Iterator[str]:
    who = shlex.quote(entry.principal)
    user, group = (
        f"setmqaut -m {draft.qmgr} -n {shlex.quote(name)} -t topic {form} {who} {words}" for form in ("-p", "-g")
    )
    types = {e.principal_type for e in draft.state.acl if e.principal == entry.principal}
    if {"user", "group"} <= types and entry.principal_type != "unknown":
        # The entries say which one is meant: the other form would grant the right to the wrong one.
        yield group if entry.principal_type == "group" else user
        why = f"{entry.principal} is a user and a group; this is the {entry.principal_type}'s entry (guide 8.1)"
        draft.ledger.note(key, why, "P03", severity=Severity.WARNING)
        return
    kinds = {p.type for p in draft.state.principals if p.name == entry.principal}
    if "user" not in kinds and (entry.principal_type == "group" or kinds == {"group"}):
        yield group
        return
    yield user
    # The guide's own example (8.4) has both forms for a user of a listing: without a list of groups nobody knows.
    is_surely_user = draft.state.principals and "group" not in kinds and (entry.principal_type == "user" or kinds)
    if is_surely_user:
        draft.ledger.note(key, "on Unix a user's authority is his primary group's", "P04")
        return
    yield f"# {group}"
    why = "its name may be a user's or a group's: see that the right one of the two commands is run (guide 8.1)"
    draft.ledger.note(key, why, "P03", severity=Severity.WARNING if kinds == {"user", "group"} else Severity.INFO)


def _heading(draft: Draft) -> list[str]:
    return [
        f"# Suggested security commands for queue manager {draft.qmgr}, made from the access control lists of",
        f"# broker {draft.state.broker_name}. Review every line, then run the right ones before the completion phase.",
        "# A line that begins with # is not run: comments, denials that need a person, and the group's form of a",
        "# command where the name may be a user's as well as a group's.",
    ]


def _shown(topic: str) -> str:
    return "".join(c if c.isprintable() else "." for c in topic[:200]) + ("..." if len(topic) > 200 else "")


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
