"""Apply a plan to the embedded queue manager in one transaction, after a backup; and undo it.

    plan      made from the state that the store has at version N
    backup    a copy of the database, complete, before anything is written
    journal   one JSON file a migration: the backup, what is going to be touched and what it is afterwards, the legacy
              state's fingerprints
    apply     one unit of work; it checks first that the store is still at version N
    commit    everything is stored, with the namelist that records the migration, or nothing

After an interruption at any instant the database has all or nothing; run the command again. Undoing takes back what
the migration added and changed, and nothing else (``inverse``): messages that arrived later stay where they are, and so
does what somebody has changed since, which is named.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

from commands.broker.objects import Definition, Objects, definition_of, kind_of, state_of
from commands.broker.state import subscription_state
from commands.disk.files import directory_to_disk, make_directory, private, put_in_place, to_disk
from commands.qmgr.store import QueueManagerStore, UnitOfWork
from commands.qmgr.store.opening import copy_of
from commands.terminal.counted import counted
from migrate import plan as plans
from migrate.contents import Content, write_content
from migrate.inverse import ALTERED, Inverse, Row, inverse
from migrate.legacy_state import labelled
from migrate.target import Target, copied
from rfh2.errors import MigrationError, QueueError, StoreError, system_words
from rfh2.message import encode
from streams import operations
from streams.subscriptions import Subscription
from streams.topic_strings import is_within

DIRECTORY: Final = "migration"
REPORT: Final = "report"
_JOURNAL: Final = "journal.json"
_CHUNK: Final = 500

Progress = Callable[[int], None]
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Undone:
    """What undoing restored, a line each, and what it could not restore.

    others: what was changed after the migration, by whomever; it is kept unless the undo was forced.
    """

    changes: tuple[str, ...]
    left: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def given_back(self) -> int:
        """How many objects, subscriptions and retained publications are as they were."""
        return len(self.changes)


def load(store: QueueManagerStore) -> Target:
    """The queue manager's state with its version, as of one moment."""
    with store.unit_of_work() as unit:
        return Target.loaded(unit.load_state(), unit.state_version)


def apply(
    store: QueueManagerStore,
    plan: plans.MigrationPlan,
    progress: Progress | None = None,
    reports: Mapping[str, Content] | None = None,
) -> Path:
    """Carry *plan* out; returns the directory of its backup, journal and *reports*, which are file names and contents.

    Raises MigrationError where the queue manager has changed since the plan was made, QueueManagerInUseError while a
    command processor runs, StoreError where the disk fails: nothing has changed then.
    """
    advance = progress or (lambda _more: None)
    with store.processor_lock():
        directory = _new_directory(store.directory, plan)
        try:
            copy_of(store.database, directory, store.name)
            _write_journal(directory, plan)
            _keep_reports(directory, reports or {})
            with store.unit_of_work() as unit:
                if unit.state_version != plan.base_version:
                    raise MigrationError(f"queue manager {plan.qmgr} has changed since the plan was made; run it again")
                _carry_out(unit, plan.steps, advance)
        except BaseException as error:
            # Nothing was committed: the backup is of what is there.
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(error, OSError):
                raise StoreError(f"{directory}: {system_words(error)}; nothing was changed") from error
            raise
    return directory


def applied(plan: plans.MigrationPlan, target: Target) -> Target:
    """*target* after *plan*; what was given stays as it is."""
    objects = copied(target.objects)
    subscriptions = {s.sub_id: s for s in target.subscriptions}
    retained = dict(target.retained)
    for step in plan.steps:
        if isinstance(step, plans.AddSubscription):
            subscriptions[step.subscription.sub_id] = step.subscription
        elif isinstance(step, plans.KeepRetained):
            retained[step.retained.topic_string] = step.retained
        else:
            if step.anew:
                objects.delete(kind_of(step.definition), step.definition.name)
            objects.put(step.definition)
    ordered = tuple(sorted(subscriptions.values(), key=lambda s: s.sub_id))
    return Target(objects, ordered, retained, target.version)


def undo(store: QueueManagerStore, tool: plans.Tool, *, rehearse: bool = False, force: bool = False) -> Undone:
    """Take back what the last migration by *tool* did. rehearse: only report it. force: also what others have changed.

    Raises MigrationError where there is none, or its backup is gone.
    """
    with store.processor_lock():
        directory = _latest(store, tool)
        journal = _read_journal(directory)
        # Open until the end: the former retained publications are read from it when they are restored.
        with QueueManagerStore.open(directory, store.name) as backup, store.unit_of_work() as unit:
            undone = _give_back(unit, journal, Target.loaded(backup.load_state(), 0), force)
            if rehearse:
                unit.backout()
                return undone
    # The queue manager has no record of the migration any more: the name of the journal is for people.
    with suppress(OSError):
        (directory / _JOURNAL).rename(directory / "undone.json")
    return undone


def report_of(store: QueueManagerStore, tool: plans.Tool) -> Path | None:
    """The directory with the report of the last migration by *tool*; None where it was not kept."""
    try:
        directory = _latest(store, tool) / REPORT
    except MigrationError:
        return None
    return directory if directory.is_dir() else None


def initial_items(store: QueueManagerStore) -> list[tuple[str, str]] | None:
    """(digest, label) of the legacy items as they were at migmbbrk's last phase; None where nothing is kept."""
    try:
        journal = _read_journal(_latest(store, plans.Tool.MIGMBBRK))
    except MigrationError:
        return None
    return [(digest, label) for digest, label in journal.get("items", ())]


def _effect_of(step: plans.AddSubscription) -> operations.Effect:
    if step.replaces is not None:
        return operations.SubscriptionAltered(step.replaces, step.subscription)
    return operations.SubscriptionAdded(step.subscription)


def _carry_out(unit: UnitOfWork, steps: tuple[plans.Step, ...], advance: Progress) -> None:
    rest = iter(steps)
    retained: list[operations.RetainedPublication] = []
    while some := list(islice(rest, _CHUNK)):
        for step in some:
            if isinstance(step, plans.Store):
                if step.anew:
                    unit.delete_definition(kind_of(step.definition), step.definition.name)
                unit.save_definition(step.definition)
            elif isinstance(step, plans.KeepRetained):
                retained.append(step.retained)
            else:
                unit.save_effects([_effect_of(step)])
        advance(len(some))
    _retain(unit, retained)


def _new_directory(home: Path, plan: plans.MigrationPlan) -> Path:
    make_directory(home / DIRECTORY)
    stem = f"{plans.moment(plan.now)}-{plan.tool}-{plan.phase}"
    for number in range(1000):
        directory = home / DIRECTORY / (f"{stem}-{number}" if number else stem)
        if not directory.exists():
            make_directory(directory)
            return directory
    raise StoreError(f"{home / DIRECTORY}: there are a thousand directories named {stem}")


def _write_journal(directory: Path, plan: plans.MigrationPlan) -> None:
    partial = directory / f"{_JOURNAL}.partial"
    with open(partial, "w", encoding="utf-8", opener=private) as file:
        file.writelines(_journal(plan))
        to_disk(file)
    put_in_place(partial, directory / _JOURNAL)


def _journal(plan: plans.MigrationPlan) -> Iterator[str]:
    """One JSON object, in pieces."""
    head = {"tool": plan.tool, "phase": plan.phase, "at": plans.moment(plan.now), "fingerprint": plan.fingerprint}
    yield json.dumps(head, ensure_ascii=False).removesuffix("}")
    definitions = (
        [kind_of(step.definition), step.definition.name] for step in plan.steps if isinstance(step, plans.Store)
    )
    subscriptions = (step.subscription.sub_id.hex() for step in plan.steps if isinstance(step, plans.AddSubscription))
    retained = (step.retained.topic_string for step in plan.steps if isinstance(step, plans.KeepRetained))
    yield ', "touched": {"definitions": '
    yield from _array(definitions)
    yield ', "subscriptions": '
    yield from _array(subscriptions)
    yield ', "retained": '
    yield from _array(retained)
    yield '}, "afterwards": {"definitions": '
    yield from _array(json.loads(state_of(step.definition)) for step in plan.steps if isinstance(step, plans.Store))
    yield ', "subscriptions": '
    yield from _array(_digest(step.subscription) for step in plan.steps if isinstance(step, plans.AddSubscription))
    yield ', "retained": '
    yield from _array(_digest(step.retained) for step in plan.steps if isinstance(step, plans.KeepRetained))
    yield '}, "items": '
    yield from _array(labelled(plan.state))
    yield "}\n"


def _array(values: Iterable[object]) -> Iterator[str]:
    before = "["
    for value in values:
        yield f"{before}\n{json.dumps(value, ensure_ascii=False)}"
        before = ","
    yield "]" if before == "," else "[]"


def _keep_reports(directory: Path, reports: Mapping[str, Content]) -> None:
    """Called before anything is changed: these reports remain if the disk of the other outputs is full."""
    make_directory(directory / REPORT)
    for name, content in reports.items():
        with open(directory / REPORT / name, "wb", opener=private) as file:
            write_content(content, file)
            to_disk(file)
    directory_to_disk(directory / REPORT)


def _read_journal(directory: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((directory / _JOURNAL).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise MigrationError(f"{directory / _JOURNAL}: cannot be read: {error}") from error
    return found


def _latest(store: QueueManagerStore, tool: plans.Tool) -> Path:
    """The directory of the migration that the queue manager records; others were never committed."""
    objects, _, _ = store.load_state()
    marker = plans.marker_of(objects, tool)
    if marker is None:
        raise MigrationError(
            f"queue manager {store.name} has no record of a migration by {tool}; there is nothing to undo"
        )
    for directory in sorted((store.directory / DIRECTORY).glob(f"{marker.at}-{tool}-{marker.phase}*"), reverse=True):
        if (directory / _JOURNAL).is_file():
            return directory
    raise MigrationError(f"the backup of the migration of {marker.at} is gone from {store.directory / DIRECTORY}")


def _give_back(unit: UnitOfWork, journal: dict[str, Any], before: Target, force: bool) -> Undone:
    now = Target.loaded(unit.load_state(), 0)
    touched = journal["touched"]
    left = journal.get("afterwards") or _as_now(touched, now, force)
    work = _TakingBack(unit, before, now, force)
    subscriptions = dict(zip(map(bytes.fromhex, touched["subscriptions"]), left["subscriptions"], strict=True))
    # Where several steps define one object, the last one holds.
    definitions = {
        (kind, name): row for (kind, name), row in zip(touched["definitions"], left["definitions"], strict=True)
    }
    staying = work.subscriptions(subscriptions)
    work.retained(dict(zip(touched["retained"], left["retained"], strict=True)))
    gone = work.definitions(definitions, _uses(now, staying, definitions))
    left_behind = _left_behind(now.objects, staying, gone, {*subscriptions, *(s.sub_id for s in before.subscriptions)})
    waiting = _waiting_for_parent(unit, before, now)
    return Undone(tuple(work.done), (*work.left, *left_behind, *waiting), tuple(work.others))


@dataclass(slots=True)
class _TakingBack:
    """Takes back one object after the other by the rule of ``inverse``; the lines are those of ``Undone``."""

    unit: UnitOfWork
    before: Target
    now: Target
    force: bool
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def subscriptions(self, left: Mapping[bytes, str]) -> list[Subscription]:
        """left: a digest of each. The subscriptions that are there afterwards."""
        were, there = ({s.sub_id: s for s in target.subscriptions} for target in (self.before, self.now))
        for sub_id, digest in left.items():
            old, now = were.get(sub_id), there.get(sub_id)
            found = self._inverse(_digest_row(old), {"": digest}, _digest_row(now))
            if (known := now or old) is not None:
                self._say(found, called(known))
            if found.deletes and now is not None:
                self.unit.save_effects([operations.SubscriptionRemoved(now)])
                del there[sub_id]
            elif found.does and old is not None:
                self.unit.save_effects([operations.SubscriptionAdded(old)])
                there[sub_id] = old
        return list(there.values())

    def retained(self, left: Mapping[str, str]) -> None:
        """left: a digest of each, by topic string."""
        restored: list[operations.RetainedPublication] = []
        for topic, digest in left.items():
            old = self.before.retained.get(topic)
            found = self._inverse(_digest_row(old), {"": digest}, _digest_row(self.now.retained.get(topic)))
            self._say(found, f"retained publication on {topic}", altered="it is a newer one")
            if found.deletes:
                self.unit.save_effects([operations.RetainedCleared(topic)])
            elif found.does and old is not None:
                restored.append(old)
        _retain(self.unit, restored)

    def definitions(self, left: Mapping[_Key, dict[str, Any]], uses: Mapping[str, str]) -> set[_Key]:
        """uses: who needs a queue. Those that are gone."""
        were, there = ({key: _row(each) for key, each in t.definitions.items()} for t in (self.before, self.now))
        gone = set()
        for key, row in left.items():
            kind, name = key
            now = there.get(key)
            used_by = uses.get(name, "") if kind.startswith("q") else ""
            found = self._inverse(were.get(key), row, now, used_by, whole=name.startswith(plans.PREFIX))
            try:
                if found.deletes:
                    self.unit.delete_definition(kind, name)
                    gone.add(key)
                elif found.does:
                    state = {**(found.makes or now or {}), **found.alters}
                    self.unit.save_definition(definition_of(kind, json.dumps(state)))
            except QueueError as refusal:
                self.left.append(f"{kind} {name}: {refusal}")
                continue
            self._say(found, f"{kind} {name}")
        return gone

    def _inverse(
        self, before: Row | None, left: Row, now: Row | None, used_by: str = "", whole: bool = False
    ) -> Inverse:
        return inverse(before, left, now, force=self.force, used_by=used_by, whole=whole)

    def _say(self, found: Inverse, what: str, altered: str = ALTERED) -> None:
        if found.changed:
            self.others.append(f"{what}: {'; '.join(altered if said == ALTERED else said for said in found.changed)}")
        if found.does:
            self.done.append(
                f"{what}: {'deleted' if found.deletes else 'as others have it' if found.changed else 'as before'}"
            )


def _as_now(touched: dict[str, list[Any]], now: Target, force: bool) -> dict[str, list[Any]]:
    """What a migration left whose journal does not say it: with *force*, what is there counts as that."""
    if not force:
        raise MigrationError(
            "an earlier release migrated, and its journal does not say what it left: what others have changed since is "
            "not known. Look at the objects that --undo --force --rehearse lists; --undo --force takes them back whole"
        )
    there, subscriptions = now.definitions, {each.sub_id.hex(): each for each in now.subscriptions}
    return {
        "definitions": [
            _row(there[kind, name]) if (kind, name) in there else {} for kind, name in touched["definitions"]
        ],
        "subscriptions": [(_digest_row(subscriptions.get(each)) or {"": ""})[""] for each in touched["subscriptions"]],
        "retained": [(_digest_row(now.retained.get(each)) or {"": ""})[""] for each in touched["retained"]],
    }


def _row(definition: Definition) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(state_of(definition))
    return row


# What programs do all the time is no change: a registration that is renewed has another expiry.
_RENEWED: Final = ("created", "expires_at")


def _digest(what: Subscription | operations.RetainedPublication) -> str:
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


def _digest_row(what: Subscription | operations.RetainedPublication | None) -> Row | None:
    """One attribute without a name: all of it, as far as only a change changes it."""
    return None if what is None else {"": _digest(what)}


def _uses(now: Target, staying: Iterable[Subscription], ours: Mapping[_Key, object]) -> dict[str, str]:
    """Queues that something needs which is there when the migration is gone, and what that is."""
    found = {each.dest_queue: called(each) for each in staying}
    for alias in now.objects.aliases.values():
        if ("qalias", alias.name) not in ours:
            found.setdefault(alias.target, f"alias queue {alias.name}")
    return found


def _left_behind(
    objects: Objects, staying: Iterable[Subscription], gone: Collection[_Key], known: Collection[bytes]
) -> Iterator[str]:
    """Subscriptions made since the migration, on streams and subscription points that undoing has removed."""
    removed = [t for t in objects.topics.own if ("topic", t.name) in gone and t.topic_string]
    for subscription in staying:
        if subscription.sub_id in known:
            continue
        for topic in removed:
            if subscription.stream == topic.name or is_within(topic.topic_string, subscription.topic_string):
                why = f"it was made after the migration, on topic object {topic.name}, which is removed"
                yield f"{called(subscription)}: {why}"
                break


def _waiting_for_parent(unit: UnitOfWork, before: Target, now: Target) -> Iterator[str]:
    """The transmission queue that was made since for the parent that the migration set."""
    parent = now.objects.qmgr.parent
    if parent and parent != before.objects.qmgr.parent and parent in now.objects.queues.keys() - before.objects.queues:
        what = f"{counted(unit.depth(parent), 'message')} for a parent that the queue manager no longer has"
        yield f"qlocal {parent}: it was made after the migration, and holds {what}"


def _retain(unit: UnitOfWork, retained: Iterable[operations.RetainedPublication]) -> None:
    """Store these, each publication's topics one after the other, so that it is stored once."""
    together: dict[int, list[operations.RetainedStored]] = {}
    for each in retained:
        together.setdefault(id(each.publication), []).append(operations.RetainedStored(each))
    for effects in together.values():
        unit.save_effects(effects)
