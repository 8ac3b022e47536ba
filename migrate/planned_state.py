"""What a plan makes of a queue manager, object by object: the file ``planned.jsonl`` beside the scripts.

The scripts say how to get there; this says what has to be there afterwards, so that ``qpubsub verify`` can compare it
with a live queue manager. The first line is the heading. Each following line is an object with the attributes that the
plan fixes, by their MQSC keywords; an attribute that is not there has MQSC's default (``defaults_of``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import ValidationError

from commands.broker import objects as broker_objects
from commands.broker.attribute_kinds import Attribute, Shown
from commands.broker.subscription_attributes import in_scripts
from commands.mqsc import attributes as mqsc_kinds
from commands.mqsc.attributes import ObjectKind
from commands.mqsc.equivalents import OperationContext, attributes as sub_attributes
from commands.mqsc.script import NoMqscFormError
from migrate.legacy_state import Frozen
from migrate.plan import AddSubscription, KeepRetained, MigrationPlan, Phase, Store, is_marker
from migrate.target import Target
from rfh2.errors import MigrationError
from streams.topic_objects import DEFAULT_STREAM, Namelist, TopicObject

FILE_NAME: Final = "planned.jsonl"
FORMAT: Final = "qpubsub-planned-state"

# The value that stands for none.
M = TypeVar("M", bound=Frozen)
Kind = Literal["QMGR", "QUEUE", "TOPIC", "NAMELIST", "AUTHREC", "SUB", "RETAINED"]


class PlannedHeading(Frozen):
    """The first line. made: UTC. is_complete: the plan is for everything, not for the initial phase alone.

    loads: the files of messages, and the queue of each.
    """

    format: Literal["qpubsub-planned-state"] = FORMAT
    version: Literal[1] = 1
    tool: str
    broker: str
    qmgr: str
    fingerprint: str
    made: datetime
    is_complete: bool = True
    loads: dict[str, str] = {}


class PlannedObject(Frozen):
    """One object that has to be there.

    name: the object's, a subscription's (None where it has none), or a topic string. attributes: those that the plan
    fixes. number: of a subscription or a retained publication in the report. own_name, stream: what programs call a
    named subscription on a stream, and the stream; also that of a retained publication, whose attribute DATA is a
    digest of its data. before: of a namelist, the
    names that it had when the plan was made; the plan adds the others.
    """

    kind: Kind
    name: str | None
    attributes: dict[str, str | int | tuple[str, ...]] = {}
    number: int = 0
    own_name: str = ""
    stream: str = ""
    before: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What a person calls it."""
        if self.kind == "SUB":
            at = f" to {self.attributes.get('TOPICSTR', '')} for {self.attributes.get('DEST', '')}"
            return f"subscription [{self.number}]" + (f" {self.name}" if self.name else "") + at
        return f"{WORDS[self.kind]} {'on ' * (self.kind == 'RETAINED')}{self.name}"


WORDS: Final[Mapping[Kind, str]] = {
    "QMGR": "queue manager",
    "QUEUE": "queue",
    "TOPIC": "topic object",
    "NAMELIST": "namelist",
    "AUTHREC": "authority record",
    "SUB": "subscription",
    "RETAINED": "retained publication",
}
"""What a person calls an object of each kind."""


def defaults_of(kind: Kind) -> Mapping[str, Shown]:
    """What MQSC gives an attribute that a definition of this kind does not name."""
    return _DEFAULTS.get(kind, {})


def planned_lines(plan: MigrationPlan, target: Target, loads: Mapping[str, str]) -> Iterator[str]:
    """The lines of the file. target: the queue manager as it was before. loads: files of messages, and their queues."""
    heading = PlannedHeading(
        tool=plan.tool,
        broker=plan.state.broker_name,
        qmgr=plan.qmgr,
        fingerprint=plan.fingerprint,
        made=plan.now,
        is_complete=plan.phase is not Phase.INITIAL,
        loads=dict(loads),
    )
    yield heading.model_dump_json()
    for each in planned_objects(plan, target):
        body = each.model_dump(mode="json", exclude_defaults=True) | {"name": each.name}
        yield json.dumps(body, ensure_ascii=False)


def planned_objects(plan: MigrationPlan, target: Target) -> Iterator[PlannedObject]:
    """Everything that *plan* makes or changes, each object once, as it is at the end."""
    context = OperationContext(plan.qmgr, plan.now)
    definitions: dict[tuple[str, str], PlannedObject] = {}
    for step in plan.steps:
        if isinstance(step, Store):
            made = _definition(step.definition, target.objects)
            if made is not None:
                definitions[made.kind, made.name or ""] = made
    yield from definitions.values()
    for step in plan.steps:
        if isinstance(step, AddSubscription):
            yield _subscription(step, plan, context)
    for step in plan.steps:
        if isinstance(step, KeepRetained):
            topic = step.retained.topic_string
            data = {"DATA": data_digest(step.retained.publication.message.body)}
            yield PlannedObject(kind="RETAINED", name=topic, attributes=data, number=step.number, stream=step.stream)


def data_digest(data: bytes) -> str:
    """16 hexadecimal digits for the data of a retained publication."""
    return sha256(data).hexdigest()[:16]


def read_heading(path: Path) -> PlannedHeading:
    """The first line of the file at *path* alone. Raises MigrationError."""
    try:
        with path.open(encoding="utf-8") as file:
            return _read(PlannedHeading, file.readline(), f"{path}, line 1")
    except (OSError, UnicodeDecodeError) as error:
        raise MigrationError(f"{path}: {error}") from error


def read_planned(path: Path) -> tuple[PlannedHeading, list[PlannedObject]]:
    """The file at *path*. Raises MigrationError with the line that cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        why = "there is no such file; it is made by --out of strmqbrk and migmbbrk"
        raise MigrationError(f"{path}: {why}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MigrationError(f"{path}: {error}") from error
    heading = _read(PlannedHeading, lines[0] if lines else "", f"{path}, line 1")
    return heading, [_read(PlannedObject, line, f"{path}, line {number}") for number, line in enumerate(lines[1:], 2)]


def _read(model: type[M], line: str, place: str) -> M:
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MigrationError(f"{place}: {f'{where}: ' if where else ''}{first['msg']}") from error


def _definition(definition: object, before: broker_objects.Objects) -> PlannedObject | None:
    match definition:
        case broker_objects.QueueManager():
            changed = {
                a.keyword: _shown(a, definition)
                for a in mqsc_kinds.QMGR.attributes
                if getattr(definition, a.field) != getattr(before.qmgr, a.field)
            }
            return PlannedObject(kind="QMGR", name=definition.name, attributes=changed)
        case broker_objects.LocalQueue() | broker_objects.AliasQueue() | broker_objects.ModelQueue():
            # A queue that exists already is not changed: what matters is that there is one.
            return PlannedObject(kind="QUEUE", name=definition.name)
        case TopicObject():
            given = _differing(mqsc_kinds.TOPIC, definition, TopicObject(definition.name, ""))
            return PlannedObject(kind="TOPIC", name=definition.name, attributes=given)
        case Namelist():
            known = before.namelists.get(definition.name)
            there = () if known is None or is_marker(definition) else known.names
            return PlannedObject(
                kind="NAMELIST", name=definition.name, attributes={"NAMES": definition.names}, before=there
            )
        case broker_objects.AuthorityRecord():
            attributes: dict[str, str | int | tuple[str, ...]] = {
                "PROFILE": definition.profile,
                "OBJTYPE": definition.object_type,
                "ENTTYPE": definition.entity_type,
                "ENTITY": definition.entity,
                "AUTHLIST": definition.authorities,
            }
            return PlannedObject(kind="AUTHREC", name=definition.name, attributes=attributes)
    return None


def _subscription(step: AddSubscription, plan: MigrationPlan, context: OperationContext) -> PlannedObject:
    made = step.subscription
    legacy = plan.state.subscriptions[step.number - 1]
    try:
        given = dict(sub_attributes(made, context))
    except NoMqscFormError:
        # A topic string of blanks, which MQSC takes for none; a display shows it all the same.
        given = {"TOPICSTR": made.topic_string, "DEST": made.dest_queue}
    on_stream = legacy.stream if legacy.name and legacy.stream != DEFAULT_STREAM else ""
    return PlannedObject(
        kind="SUB",
        name=made.name,
        attributes={word: value if isinstance(value, int) else str(value) for word, value in given.items()},
        number=step.number,
        own_name=legacy.name or "" if on_stream else "",
        stream=on_stream,
    )


def _differing(kind: ObjectKind, one: object, other: object) -> dict[str, Any]:
    return {
        a.keyword: _shown(a, one)
        for a in kind.attributes
        if a.keyword == "TOPICSTR" or getattr(one, a.field) != getattr(other, a.field)
    }


def _shown(attribute: Attribute, definition: object) -> Shown:
    return attribute.kind.show(getattr(definition, attribute.field))


def _defaults(kind: ObjectKind, definition: object) -> dict[str, Shown]:
    return {a.keyword: _shown(a, definition) for a in kind.attributes}


_DEFAULTS: Final[Mapping[str, Mapping[str, Shown]]] = {
    "TOPIC": _defaults(mqsc_kinds.TOPIC, TopicObject("", "")),
    "SUB": {
        each.keyword: each.kind.show(each.default)
        for each in in_scripts()
        if each.keyword not in ("DESTCORL", "PUBACCT", "SUBUSER")
    },
}


def by_kind(objects: Iterable[PlannedObject]) -> dict[Kind, list[PlannedObject]]:
    """The objects of each kind, in their order."""
    found: dict[Kind, list[PlannedObject]] = {}
    for each in objects:
        found.setdefault(each.kind, []).append(each)
    return found
