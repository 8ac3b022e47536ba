"""The checklist that comes with the files of one migration: what is run in which order, and what no file can do."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.known_problems import KNOWN
from migrate.ledger import Severity, Verdict
from migrate.log import printable
from migrate.plan import Plan, Tool
from migrate.runbooks.markdown import document, in_code, plain


def checklist(plan: Plan, notes: list[str], unloads: dict[str, str]) -> str:
    """Markdown. notes: what the files do not do, a line each. unloads: file of retained publications to its queue."""
    return document(_lines(plan, notes, unloads))


def _lines(plan: Plan, notes: list[str], unloads: dict[str, str]) -> Iterator[str]:
    qmgr = plan.qmgr
    yield f"# Migration of broker {plain(plan.state.broker_name)} to queue manager {plain(qmgr)}"
    yield ""
    yield f"Made {plan.now:%Y-%m-%d %H:%M:%S} UTC from a state with fingerprint {plan.fingerprint}."
    yield ""
    yield "## In this order"
    yield ""
    steps = [*_preparation(plan), *_running(plan, unloads), *_afterwards(plan)]
    yield from (f"{number}. {step}" for number, step in enumerate(steps, 1))
    if notes:
        yield ""
        yield "## What no file here does"
        yield ""
        yield from (f"- {plain(printable(note))}" for note in notes)
    yield from _by_hand(plan)
    yield from _problems(plan)


def _preparation(plan: Plan) -> Iterator[str]:
    yield "Stop the publish/subscribe applications; let queues and transmission queues run empty."
    yield f"`ALTER QMGR PSMODE(COMPAT)` on {plan.qmgr}, and a backup of the queue manager."
    if plan.tool is Tool.MIGMBBRK:
        yield "Review `amqmigrateacl.txt` line by line; run what is right of it when the topic objects are there."


def _running(plan: Plan, unloads: dict[str, str]) -> Iterator[str]:
    yield f"`runmqsc {plan.qmgr} < 1-queues.mqsc`. AMQ8150 for a queue that is there already is as it should be."
    yield f"`runmqsc {plan.qmgr} < 2-objects.mqsc`. Every command has to succeed: later steps need them."
    yield f"`runmqsc {plan.qmgr} < 3-authorities.mqsc` or `sh 3-authorities.sh`, whichever you prefer."
    if unloads:
        yield (
            "`ALTER QMGR PSMODE(ENABLED)`. Load the retained publications while nobody subscribes, each file into its "
            "queue, with the context that it has; wait until the queues are empty:"
        )
        yield from (f"load `{in_code(name)}` into `{in_code(queue)}`" for name, queue in unloads.items())
    yield f"`runmqsc {plan.qmgr} < 5-subscriptions.mqsc`."
    yield (
        "Load `6-registrations.qload` into `SYSTEM.BROKER.CONTROL.QUEUE` with the context that it has: each command "
        "has to arrive with the user identifier in its descriptor. Wait until the queue is empty; look at the "
        "dead-letter queue."
    )


def _afterwards(plan: Plan) -> Iterator[str]:
    if plan.tool is Tool.STRMQBRK:
        yield f"`runmqsc {plan.qmgr} < 7-enable.mqsc`: PSMODE(ENABLED), and the memory that this was done."
        yield "Compare `DISPLAY SUB(*)`, `TPSTATUS('#') RETAINED`, `PUBSUB TYPE(ALL)` with `report.html`."
        yield "Start the applications."
        yield "When all is well: `dltmqbrk` removes what is left of the version 6 broker."
    else:
        yield "See in the broker's event log that it has ended."
        yield "Add the input queues of message flows to SYSTEM.QPUBSUB.QUEUE.NAMELIST, each behind its topic object."
        yield "`ALTER QMGR PSMODE(ENABLED)`."
        yield "Delete queue SYSTEM.TEMP.MIGMBBRK.REPLY.QUEUE if it is there."
        yield "Start the applications."


def _by_hand(plan: Plan) -> Iterator[str]:
    reported = [fate for fate in plan.fates if fate.verdict is Verdict.REPORTED and fate.severity is not Severity.INFO]
    if not reported:
        return
    yield ""
    yield "## Items that need a person"
    yield ""
    for fate in reported:
        why = "; ".join(plain(printable(reason.text)) for reason in fate.reasons)
        yield f"- [ ] {plain(printable(fate.label))} ({plain(fate.source)}): {why}"


def _problems(plan: Plan) -> Iterator[str]:
    named = [known for known in sorted(plan.problem_counts()) if known.startswith("P")]
    if not named:
        return
    yield ""
    yield "## Known problems that apply"
    yield ""
    yield from (f"- {known} {KNOWN[known].title}. {KNOWN[known].advice}" for known in named)
