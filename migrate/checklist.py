"""The checklist for the files of one migration: what to run in which order, and what no file can do.

A step is one line, which begins with its command or its file: tests execute the steps.

Names and reasons in Markdown: what sources hold is text, never markup, in whatever shows the document.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from commands.broker.objects import CONTROL_QUEUE
from migrate.acl import FILE_NAME as SECURITY_COMMANDS
from migrate.known_problems import KNOWN
from migrate.ledger import Severity, Verdict
from migrate.plan import MigrationPlan, Phase, Tool, is_marker
from rfh2.terminal_escape import harmless, printable
from streams.topic_objects import QUEUE_NAMELIST, Namelist

# A number, a bullet or a heading begins a line, and no name does. An underscore within a word is no markup; brackets
# are a link only before what it leads to.
_MARKUP: Final = re.compile(r"[\\`*~|]|\](?=[(\[:])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def document(lines: Iterable[str]) -> str:
    """Lines of Markdown as a text that drives no terminal."""
    return "".join(f"{harmless(line)}\n" for line in lines)


def plain(text: str) -> str:
    """*text* as itself, in a sentence, a list or a heading: no HTML, emphasis, link or code."""
    html = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(lambda found: "\\" + found[0], html)


def in_code(text: str) -> str:
    """*text* between backticks. A backtick in it, for which there is no escape there, becomes an apostrophe."""
    return text.replace("`", "'")


_UNCHANGED: Final = "`sha256sum -c SHA256SUMS` in the directory of the files: each file is as it was made."


def checklist(
    plan: MigrationPlan,
    notes: list[str],
    unloads: dict[str, str],
    kept_back: int = 0,
    *,
    has_registrations: bool = True,
) -> str:
    """Markdown. notes: what the files do not do, a line each. unloads: file of retained publications to its queue.

    kept_back: how many subscriptions are defined so that nothing retained is sent to them again. has_registrations:
    whether there is a file of registrations.
    """
    steps = _initial_phase(plan) if plan.phase is Phase.INITIAL else _all(plan, unloads, kept_back, has_registrations)
    return document(_lines(plan, notes, steps))


def _lines(plan: MigrationPlan, notes: list[str], steps: Iterable[str]) -> Iterator[str]:
    qmgr = plan.qmgr
    yield f"# Migration of broker {plain(plan.state.broker_name)} to queue manager {plain(qmgr)}"
    yield ""
    yield f"Made {plan.now:%Y-%m-%d %H:%M:%S} UTC from a state with fingerprint {plan.fingerprint}. {aged(plan)}"
    yield ""
    yield "## In this order"
    yield ""
    yield from (f"{number}. {step}" for number, step in enumerate(steps, 1))
    if notes:
        yield ""
        yield "## What no file here does"
        yield ""
        yield from (f"- {plain(printable(note))}" for note in notes)
    yield from _by_hand(plan)
    yield from _problems(plan)


def aged(plan: MigrationPlan) -> str:
    """How old the sources are, and what that means."""
    until = plan.state.until
    last = "is not known: they have no times" if until is None else f"is of {until:%Y-%m-%d %H:%M:%S} UTC"
    return f"The last record in the sources {last}. What registered or was published later is not in the plan."


def _all(plan: MigrationPlan, unloads: dict[str, str], kept_back: int, has_registrations: bool) -> Iterator[str]:
    """Every step, in an order in which each can be done: commands are processed from PSMODE(ENABLED) on."""
    qmgr = plan.qmgr
    yield _UNCHANGED
    if plan.tool is Tool.MIGMBBRK:
        yield from _reviewed(plan)
    yield f"`runmqsc {qmgr}`: `ALTER QMGR PSMODE(COMPAT)`. The queue manager processes no command yet."
    yield (
        "Stop the publish/subscribe applications; wait until the broker has processed what is on "
        f"`{CONTROL_QUEUE}`, the stream queues and the transmission queues."
    )
    yield (
        "Take the sources again and run the same command again, with another directory for `--out`. If the fingerprint "
        "is another one, this plan is out of date: review what is new in `report.html`, and go on with the new files."
    )
    # A broker that still runs would get the commands that are loaded below.
    if plan.tool is Tool.STRMQBRK:
        yield f"Stop the version 6 broker if it still runs: `endmqbrk -m {qmgr}`; `dspmqbrk -m {qmgr}` shows it ended."
    else:
        yield f"Stop the broker: `mqsistop {plan.state.broker_name}`; see in its event log that it has ended."
    yield f"Back the queue manager up. `DISPLAY QLOCAL({CONTROL_QUEUE}) CURDEPTH` shows 0."
    yield from _objects(plan)
    if plan.tool is Tool.MIGMBBRK:
        yield f"Run the commands of `{SECURITY_COMMANDS}` that a person has reviewed and found right."
        yield from _upgraded(plan)
    yield (
        f"`runmqsc {qmgr}`: `ALTER QMGR PSMODE(ENABLED)`. Queued publish/subscribe starts; the applications are still "
        "stopped. From here on the queue manager processes what is loaded."
    )
    if "P33" in plan.problem_counts():
        yield (
            "Probe how the queue manager joins the names of subscriptions and streams; IBM does not document "
            "the separator: `qpubsub verify "
            f"--probe-names -m {qmgr}` with this directory. If it does not find the planned name, do not go on."
        )
    if unloads:
        yield "While no program subscribes, load the retained publications, and keep their message context:"
        yield from (_loaded(qmgr, name, queue) for name, queue in unloads.items())
        yield f"Wait until {_these(unloads.values())} {'is' if len(unloads) == 1 else 'are'} empty."
    yield f"`runmqsc {qmgr} < 5-subscriptions.mqsc`.{_kept_back(kept_back)}"
    if has_registrations:
        yield (
            f"{_loaded(qmgr, '6-registrations.qload', CONTROL_QUEUE)} Each command has to arrive with the user "
            "identifier in its descriptor."
        )
        yield f"Wait until `{CONTROL_QUEUE}` is empty."
    if has_registrations or unloads:
        yield "Look at the dead-letter queue: a command of the loads that lies there was not carried out."
    yield f"`runmqsc {qmgr} < 7-enable.mqsc`: it records the migration."
    if plan.tool is Tool.MIGMBBRK:
        yield (
            f"Event Broker alone: add the input queues of its message flows to {QUEUE_NAMELIST}, each after its topic "
            "object. The queue manager reads them now."
        )
        yield "Delete queue SYSTEM.TEMP.MIGMBBRK.REPLY.QUEUE if it is there."
    yield (
        "Compare `DISPLAY SUB(*)`, `TPSTATUS('#') RETAINED`, `PUBSUB TYPE(ALL)` with `report.html`; "
        f"`qpubsub verify -m {qmgr}` with this directory names every difference."
    )
    yield "Start the applications."
    if plan.tool is Tool.MIGMBBRK:
        yield (
            f"Message Broker alone: start the broker for its message flows, `mqsistart {plan.state.broker_name}`. A "
            "broker of a collective stays stopped, with its applications, until all of the collective are migrated."
        )
    if plan.tool is Tool.STRMQBRK:
        yield "When all is well: `dltmqbrk` removes what is left of the version 6 broker."


def _loaded(qmgr: str, file: str, queue: str) -> str:
    """-c a sets all context as the messages of the file have it."""
    command = f"dmpmqmsg -m {qmgr} -o {shlex.quote(queue)} -f {shlex.quote(file)} -c a"
    return (
        f"Load `{in_code(file)}` into `{in_code(queue)}`: `{in_code(command)}`, which needs authority to put and to "
        "set all context (+put +setall)."
    )


def _reviewed(plan: MigrationPlan) -> Iterator[str]:
    """What would happen, before anything does (guide 8.2 and 8.3, step 2; 8.4)."""
    yield (
        f"Review `report.html`, the log and `{SECURITY_COMMANDS}`: they say what will happen. The subscription with "
        "number [4] is the fourth one in the list of `mqsireportproperties`."
    )


def _upgraded(plan: MigrationPlan) -> Iterator[str]:
    """A Message Broker goes on without publish/subscribe, an Event Broker does not (guide 8.2; 8.3, steps 8 and 9)."""
    broker = plan.state.broker_name
    yield (
        "Message Broker alone: upgrade the broker to version 7, and migrate its components with "
        f"`mqsimigratecomponents {broker}`. Leave it stopped."
    )


def _kept_back(count: int) -> str:
    if not count:
        return ""
    subscriptions = "1 subscription, which would be" if count == 1 else f"{count:,} subscriptions, which would be"
    return (
        f" It has two commands for {subscriptions} sent retained publications once more: DEFINE SUB with REQONLY(YES), "
        "and ALTER SUB with REQONLY(NO). Both have to succeed."
    )


def _initial_phase(plan: MigrationPlan) -> Iterator[str]:
    """Only topic objects; the broker and its applications continue to run (guide 8, 8.2)."""
    yield _UNCHANGED
    yield from _reviewed(plan)
    yield f"`runmqsc {plan.qmgr}`: `ALTER QMGR PSMODE(COMPAT)`. The queue manager processes no command yet."
    yield from _objects(plan)
    yield f"`runmqsc {plan.qmgr} < 7-enable.mqsc`: it records this phase."
    yield f"Review `{SECURITY_COMMANDS}` line by line, and run the right commands before the completion phase."


def _objects(plan: MigrationPlan) -> Iterator[str]:
    qmgr = plan.qmgr
    yield f"`runmqsc {qmgr} < 1-queues.mqsc`. AMQ8150 for an existing queue is not an error."
    yield f"`runmqsc {qmgr} < 2-objects.mqsc`. Every command has to succeed: later steps need them.{_lists(plan)}"
    yield f"`runmqsc {qmgr} < 3-authorities.mqsc` or `sh 3-authorities.sh`, whichever you prefer."


def _lists(plan: MigrationPlan) -> str:
    """Guide 6.5.4: ALTER NAMELIST replaces the whole list."""
    stored = (step.definition for step in plan.definitions if step.replaces)
    lists = [each.name for each in stored if isinstance(each, Namelist) and not is_marker(each)]
    if not lists:
        return ""
    return (
        f" First compare `DISPLAY NAMELIST` of {_these(lists)} with its ALTER NAMELIST in the file, which replaces the "
        "list: add the names that it lacks. `qpubsub apply` does that by itself."
    )


def _these(queues: Iterable[str]) -> str:
    return ", ".join(f"`{in_code(queue)}`" for queue in queues)


def _by_hand(plan: MigrationPlan) -> Iterator[str]:
    reported = [fate for fate in plan.fates if fate.verdict is Verdict.REPORTED and fate.severity is not Severity.INFO]
    if not reported:
        return
    yield ""
    yield "## Items that need a person"
    yield ""
    for fate in reported:
        why = "; ".join(plain(printable(reason.text)) for reason in fate.reasons)
        yield f"- [ ] {plain(printable(fate.label))} ({plain(fate.source)}): {why}"


def _problems(plan: MigrationPlan) -> Iterator[str]:
    named = [known for known in sorted(plan.problem_counts()) if known.startswith("P")]
    if not named:
        return
    yield ""
    yield "## Known problems that apply"
    yield ""
    yield from (f"- {known} {KNOWN[known].title}. {KNOWN[known].advice}" for known in named)
