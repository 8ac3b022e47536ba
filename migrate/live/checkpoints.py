"""The steps of applying a plan, in the order of the checklist: files of ``--out``, and what a person has to confirm.

    compat         ALTER QMGR PSMODE(COMPAT)
    stopped        a person: applications and the old broker are stopped, the queue manager is backed up
    queues         1-queues.mqsc
    objects        2-objects.mqsc
    authorities    3-authorities.mqsc
    security       a person: the security commands of migmbbrk were reviewed and run
    upgraded       a person: a Message Broker that goes on with its message flows is upgraded
    enabled        ALTER QMGR PSMODE(ENABLED)
    retained-NN    4-retained-NN.qload, then wait until its queue is empty
    subscriptions  5-subscriptions.mqsc
    registrations  6-registrations.qload, then wait until the control queue is empty
    record         7-enable.mqsc

The initial phase of migmbbrk has compat, queues, objects, authorities and record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from migrate.acl import FILE_NAME as SECURITY_COMMANDS
from migrate.plan import AUTHORITIES, ENABLE, OBJECTS, QUEUES, REGISTRATIONS, SUBSCRIPTIONS, Tool
from migrate.planned_state import Kind, PlannedHeading


class Action(StrEnum):
    """MQSC: run a script. LOAD: put the messages of a file on a queue and wait. PERSON: somebody confirms it."""

    MQSC = "mqsc"
    LOAD = "load"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One step. script: MQSC itself, else it is that of *file*. queue: of a load. kinds: what has to be read before it.

    asks: what a person has to do and confirm.
    """

    name: str
    action: Action
    file: str = ""
    script: str = ""
    queue: str = ""
    kinds: tuple[Kind, ...] = ()
    asks: str = ""

    @property
    def is_script(self) -> bool:
        """Whether it runs MQSC."""
        return self.action is Action.MQSC

    def text(self, directory: Path) -> str:
        """The MQSC. Raises OSError."""
        return self.script or (directory / self.file).read_text(encoding="utf-8")


def checkpoints(heading: PlannedHeading) -> tuple[Checkpoint, ...]:
    """All steps for the plan."""
    return tuple(_steps(heading))


def _steps(heading: PlannedHeading) -> Iterator[Checkpoint]:
    is_complete, mqsc = heading.is_complete, Action.MQSC
    yield Checkpoint("compat", mqsc, script="ALTER QMGR PSMODE(COMPAT)\n", kinds=("QMGR",))
    if is_complete:
        yield Checkpoint("stopped", Action.PERSON, asks=_stopping(heading))
    yield Checkpoint("queues", mqsc, QUEUES, kinds=("QUEUE",))
    yield Checkpoint("objects", mqsc, OBJECTS, kinds=("QMGR", "TOPIC", "NAMELIST", "AUTHREC"))
    yield Checkpoint("authorities", mqsc, AUTHORITIES, kinds=("AUTHREC",))
    if is_complete:
        if heading.tool == Tool.MIGMBBRK:
            asks = f"run the commands of {SECURITY_COMMANDS} that a person has reviewed and found right"
            yield Checkpoint("security", Action.PERSON, asks=asks)
            yield Checkpoint("upgraded", Action.PERSON, asks=_upgrading(heading))
        yield Checkpoint("enabled", mqsc, script="ALTER QMGR PSMODE(ENABLED)\n", kinds=("QMGR",))
        for file, queue in heading.loads.items():
            if file != REGISTRATIONS:
                name = "retained-" + "".join(c for c in file.removeprefix("4-retained-") if c.isdigit())
                yield Checkpoint(name, Action.LOAD, file, queue=queue, kinds=("RETAINED",))
        yield Checkpoint("subscriptions", mqsc, SUBSCRIPTIONS, kinds=("SUB",))
        if REGISTRATIONS in heading.loads:
            queue = heading.loads[REGISTRATIONS]
            yield Checkpoint("registrations", Action.LOAD, REGISTRATIONS, queue=queue, kinds=("SUB",))
    yield Checkpoint("record", mqsc, ENABLE, kinds=("QMGR", "NAMELIST"))


def _stopping(heading: PlannedHeading) -> str:
    broker = f"endmqbrk -m {heading.qmgr}" if heading.tool == Tool.STRMQBRK else f"mqsistop {heading.broker}"
    return (
        f"stop the publish/subscribe applications, wait until the old broker has processed its queues, stop it "
        f"({broker}), and back the queue manager up"
    )


def _upgrading(heading: PlannedHeading) -> str:
    return (
        "if the broker is a Message Broker, which goes on with its message flows, upgrade it to version 7, run "
        f"mqsimigratecomponents {heading.broker}, and leave it stopped; an Event Broker needs nothing"
    )
