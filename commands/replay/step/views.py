"""Steps, changes and states for people and, as JSON values, for programs. ``inspect`` and the terminal share them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Final, TypeVar

from commands.broker.subscription_attributes import words_of
from commands.replay.step.state import Change, Item, ItemKind, QueueTally, StepState
from commands.replay.step.timeline import Step
from rfh2.captured import iso
from rfh2.constants import REASON_NAMES
from rfh2.mqi_constants import MQCI_NONE
from rfh2.terminal_escape import visible
from streams.operations import RetainedPublication
from streams.subscriptions import Subscription, WildcardScheme

MOST_SHOWN: Final = 20
_MOST_TEXT: Final = 60
T = TypeVar("T")

# JSON


def step_form(at: int, step: Step, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """One step as JSON. at: its position. before, after: ``state_form`` of the states around it."""
    message = step.message
    return {
        "seq": message.seq,
        "index": at,
        "time": None if message.time is None else iso(message.time),
        "qmgr": message.qmgr,
        "queue": message.queue,
        "command": step.facts.command,
        "topics": list(step.facts.topics),
        "completion": step.completion,
        "reason": step.reason,
        "why": step.why,
        "puts": step.puts,
        "transcript": list(step.lines),
        "changes": [change_form(change) for change in step.changes],
        "before": before,
        "after": after,
    }


def change_form(change: Change) -> dict[str, Any]:
    """One change as JSON: the item before and after it, or null."""
    qmgr, name = change.key
    return {
        "kind": change.kind,
        "change": change.verb,
        "qmgr": qmgr,
        "key": name,
        "before": item_form(change.before),
        "after": item_form(change.after),
    }


def state_form(state: StepState) -> dict[str, Any]:
    """A state as JSON, sorted: subscriptions in the order in which they were made, the others by name."""
    return {
        "subscriptions": [{"qmgr": key[0], **_subscription_form(s)} for key, s in sorted(state.subscriptions.items())],
        "retained": [{"qmgr": key[0], **_retained_form(r)} for key, r in sorted(state.retained.items())],
        "queues": [{"qmgr": key[0], "queue": key[1], **_tally_form(t)} for key, t in sorted(state.queues.items())],
    }


def item_form(item: Item | None) -> dict[str, Any] | None:
    """One item as JSON, or null."""
    match item:
        case None:
            return None
        case Subscription():
            return _subscription_form(item)
        case RetainedPublication():
            return _retained_form(item)
        case QueueTally():
            return _tally_form(item)


def _subscription_form(s: Subscription) -> dict[str, Any]:
    return {
        "sub_id": s.sub_id.hex(),
        "name": s.name,
        "topic": s.topic_string,
        "wildcards": s.wildcard,
        "dest_qmgr": s.dest_qmgr,
        "dest_queue": s.dest_queue,
        "correl_id": None if s.correl_id == MQCI_NONE else s.correl_id.hex(),
        "user": s.user,
        "stream": s.stream,
        "sub_point": s.sub_point,
        "filter": s.selector,
        "options": words_of(s.options),
        "identities": list(s.identities),
        "exclusive": s.exclusive,
        "format": s.format,
        "user_data": s.user_data,
        "created": iso(s.created),
        "expires_at": None if s.expires_at is None else iso(s.expires_at),
    }


def _retained_form(retained: RetainedPublication) -> dict[str, Any]:
    publication = retained.publication
    message = publication.message
    return {
        "topic": retained.topic_string,
        "published_at": iso(publication.published_at),
        "expires_at": None if publication.expires_at is None else iso(publication.expires_at),
        "local": publication.local,
        "length": len(message.body),
        "text": message.body_text,
        "user": message.mqmd.user_identifier.rstrip(" \0"),
    }


def _tally_form(tally: QueueTally) -> dict[str, Any]:
    return {field.name: getattr(tally, field.name) for field in fields(tally)}


# Lines


def step_lines(at: int, of: int, step: Step) -> list[str]:
    """The message and its result. at: its position from 0; of: how many there are, 0 where that is not known."""
    message = step.message
    where = f"message {at + 1:,}" + (f" of {of:,}" if of else "")
    when = "" if message.time is None else f", {iso(message.time)}"
    lines = [f"seq {message.seq}, {where}, on {message.queue or 'no queue'}{when}"]
    lines += [line.strip() if not number else line for number, line in enumerate(step.lines)]
    if step.completion is None:
        lines.append(step.why)
    elif step.reason:
        name = REASON_NAMES.get(step.reason, "")
        lines.append(f"{step.completion}: {step.reason} {name}".rstrip() + (f": {step.why}" if step.why else ""))
    if step.puts >= len(step.lines) > 1 and step.puts > len(step.lines) - 1:
        lines.append(f"      and more: {step.puts:,} messages put in all")
    return [visible(line) for line in lines]


def change_lines(changes: Sequence[Change], most: int | None = MOST_SHOWN) -> list[str]:
    """What changed, one line an item. most: as many lines; None for all."""
    if not changes:
        return ["nothing changed"]
    lines = [_change_line(change) for change in changes[:most]]
    return _with_rest(lines, len(changes))


_MARKS: Final = {"added": "+", "removed": "-", "changed": "~"}


def _change_line(change: Change) -> str:
    item = change.after if change.after is not None else change.before
    assert item is not None
    line = f"{_MARKS[change.verb]} {change.kind} {_item_line(change.key, item)}"
    if change.verb == "changed" and change.kind is ItemKind.SUBSCRIPTION:
        line += f" ({', '.join(_differences(change.before, change.after))})"
    if isinstance(change.before, QueueTally) and isinstance(change.after, QueueTally):
        line += f" (+{change.after.messages - change.before.messages:,})"
    return visible(line)


def _differences(before: Item | None, after: Item | None) -> Iterator[str]:
    old, new = item_form(before) or {}, item_form(after) or {}
    for name, value in new.items():
        if old.get(name) != value:
            yield f"{name}: {_shown(old.get(name))} -> {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def state_lines(state: StepState, most: int | None = MOST_SHOWN) -> list[str]:
    """A state in sections. most: lines of each section; None for all."""
    return [
        *_section("subscriptions", subscription_lines(state, most), len(state.subscriptions)),
        *_section("retained publications", retained_lines(state, most), len(state.retained)),
        *_section("queues, and messages put on them", queue_lines(state, most), len(state.queues)),
    ]


def subscription_lines(state: StepState, most: int | None = MOST_SHOWN) -> list[str]:
    """One line a subscription, oldest first."""
    return _item_lines(state.subscriptions.items(), most)


def retained_lines(state: StepState, most: int | None = MOST_SHOWN) -> list[str]:
    """One line a retained publication, by topic."""
    return _item_lines(state.retained.items(), most)


def queue_lines(state: StepState, most: int | None = MOST_SHOWN) -> list[str]:
    """One line a queue, by name."""
    return _item_lines(state.queues.items(), most)


def _item_lines(items: Iterable[tuple[tuple[str, str], Item]], most: int | None) -> list[str]:
    found = sorted(items, key=lambda item: item[0])
    return _with_rest([visible(_item_line(key, item)) for key, item in found[:most]], len(found))


def _section(title: str, lines: list[str], count: int) -> list[str]:
    return [f"{title}: {count:,}", *(f"  {line}" for line in lines)]


def _with_rest(lines: list[str], count: int) -> list[str]:
    return lines if count <= len(lines) else [*lines, f"... and {count - len(lines):,} more"]


def _item_line(key: tuple[str, str], item: Item) -> str:
    qmgr = key[0]
    match item:
        case Subscription():
            return f"{qmgr} {_subscription_words(item)}"
        case RetainedPublication():
            publication = item.publication
            text = publication.message.body_text
            data = f"{len(publication.message.body)} bytes" if text is None or not text.isprintable() else _cut(text)
            until = "" if publication.expires_at is None else f", expires {iso(publication.expires_at)}"
            return f"{qmgr} {item.topic_string}: {data}, published {iso(publication.published_at)}{until}"
        case QueueTally():
            kinds = (
                ("publication", item.publications),
                ("response", item.responses),
                ("dead letter", item.dead_letters),
            )
            words = [f"{count:,} {noun}{'' if count == 1 else 's'}" for noun, count in kinds if count]
            return f"{qmgr} {key[1]}: {', '.join(words)}"


def _subscription_words(s: Subscription) -> str:
    words = [f"{s.topic_string} -> {s.dest_queue}"]
    if s.name is not None:
        words.append(f"name {s.name}")
    if s.correl_id != MQCI_NONE:
        words.append(f"CorrelId {s.correl_id.rstrip(bytes(1)).hex()}")
    if s.wildcard is WildcardScheme.CHAR:
        words.append("character wildcards")
    if s.selector:
        words.append(f"filter {_cut(s.selector)}")
    if s.user:
        words.append(f"user {s.user}")
    if options := words_of(s.options):
        words.append(" ".join(options))
    if s.identities:
        words.append(f"{'exclusive' if s.exclusive else 'shared'} by {', '.join(s.identities)}")
    if s.expires_at is not None:
        words.append(f"expires {iso(s.expires_at)}")
    return ", ".join(words)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."
