"""Access control lists of Event Broker and Message Broker: topic objects for them, and suggested commands (guide 8.1).

In those brokers everybody is authorized unless a list denies it. In MQ nobody is authorized unless a topic object
grants it, and an authority that is granted higher in the tree cannot be denied below. So an allowed right becomes a
``setmqaut`` command, a denied one a line for a person, and an inherited one nothing. A principal whose name may be a
user's or a group's gets both forms, the group's commented out:

    setmqaut -m QM1 -n MIGMBBRK.TOPIC.00001 -t topic -p fred +sub +pub
    # setmqaut -m QM1 -n MIGMBBRK.TOPIC.00001 -t topic -g fred +sub +pub

The migration never runs the commands. It makes one topic object for each topic with a list, unless one with that topic
string exists; the root has SYSTEM.BASE.TOPIC.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from migrate.assemble import SYSTEM_TOPICS, acl_object_names
from migrate.draft import Draft
from migrate.ledger import Severity
from migrate.legacy_state import Access, AclEntry, Key
from migrate.plan import TopicGrant
from rfh2.errors import CommandError
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
