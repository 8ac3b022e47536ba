"""The checklist for the files of one migration: what to run in which order, and what no file can do.

A step is one line, which begins with its command or its file: tests execute the steps.

Names and reasons in Markdown: what sources hold is text, never markup, in whatever shows the document.

Known problems (P) and differences of behaviour (D): what each is, and what to do about it.

Where a number is named in a log or a report, this is what it stands for. The site shows the problems (migration sources
14), docs/differences.md has both behaviours of each difference (migration sources 13).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from commands.broker.objects import CONTROL_QUEUE
from migrate.acl import FILE_NAME as SECURITY_COMMANDS
from migrate.ledger import Severity, Verdict
from migrate.plan import MigrationPlan, Phase, Tool, is_marker
from rfh2.terminal_escape import harmless, printable
from streams.topic_objects import QUEUE_NAMELIST, Namelist


@dataclass(frozen=True, slots=True)
class KnownProblem:
    """One entry. advice: what an administrator does about it."""

    id: str
    title: str
    advice: str


def _table(*rows: tuple[str, str, str]) -> dict[str, KnownProblem]:
    return {row[0]: KnownProblem(*row) for row in rows}


KNOWN: Final = _table(
    (
        "P01",
        "Retained publications in MQRFH carry MQPSStringData or MQPSIntData",
        "Have the publishers publish them again with MQRFH2, or make sure that every subscriber reads MQRFH.",
    ),
    (
        "P02",
        "An access control list denies a right",
        "Deny at the root in the broker, grant below it, and run the initial phase again; or write the grants by hand.",
    ),
    (
        "P03",
        "A name is a user's and a group's",
        "Of the two commands in the security command file run the right one; the group's is commented out.",
    ),
    (
        "P04",
        "A right reaches more people or more topics than it names",
        "On UNIX, authority granted to a user applies to the user's whole primary group; authority on "
        "SYSTEM.BASE.TOPIC applies to every topic. Grant to "
        "groups, on the topic objects of streams and applications.",
    ),
    (
        "P05",
        "A wildcard subscription matches a topic that is denied",
        "In MQ it is refused, or receives that topic too: grant the topic, or subscribe further down the tree.",
    ),
    (
        "P06",
        "A user lacks authority for what he is subscribed to",
        "Run the reviewed security commands before the completion phase; then look at these subscriptions again.",
    ),
    (
        "P07",
        "A topic object that is used again has other attributes",
        "Leave topic objects alone between the phases; look at WILDCARD of those named here.",
    ),
    (
        "P08",
        "An object, subscription or retained publication of the same name exists",
        "Run again with -f (strmqbrk) or -o (migmbbrk) to have it replaced, or rename what is there.",
    ),
    (
        "P09",
        "Topics of a stream or subscription point mix with others",
        "Give the stream another topic string with --prefix, or move what else lies below it.",
    ),
    (
        "P10",
        "Another topic object has the topic string already",
        "Give the stream another topic string with --prefix, or delete the other object.",
    ),
    (
        "P11",
        "A retained publication is not persistent",
        "It is lost when the queue manager restarts: publish it again then, or have it published persistently.",
    ),
    (
        "P12",
        "A subscription with MQRFH2 names a dynamic queue",
        "Early fix packs of version 7 refuse a temporary one with 3076: see that the queue is a permanent one.",
    ),
    (
        "P13",
        "A subscription with MQRFH names a dynamic queue",
        "Before 7.0.1.6 publications for it go to the dead-letter queue when the queue is gone: delete it then.",
    ),
    (
        "P14",
        "Messages of a broker's queues are not in the order of their times",
        "They were taken in the order of time (APAR IZ66777); check subscriptions that were made twice.",
    ),
    (
        "P15",
        "An empty ALTER SUB makes a proxy subscription an administrator's",
        "Never alter subscriptions of SUBTYPE(PROXY); nothing here does.",
    ),
    (
        "P16",
        "A namelist altered without the names that it had",
        "The scripts here list all names, after the objects; keep it so when you add to them.",
    ),
    (
        "P17",
        "WILDCARD(BLOCK) came after subscriptions",
        "They keep what held when they were made: restart the queue manager once the topic objects are right.",
    ),
    (
        "P18",
        "Input queues of message flows are not in the queue namelist",
        "For each define the topic object, then add the queue to the list (guide 8.2, step 7).",
    ),
    (
        "P19",
        "A subscription point is not used at present",
        "Only used ones are migrated: define topic object and namelist entry for each that will be (guide 6.5.6).",
    ),
    (
        "P20",
        "The reply queue of the migration may be left over",
        "Delete SYSTEM.TEMP.MIGMBBRK.REPLY.QUEUE when the broker has ended.",
    ),
    (
        "P21",
        "The broker changed between the initial and the completion phase",
        "Review the security commands for what is new; topic objects that are not needed now may be deleted.",
    ),
    (
        "P22",
        "A JMS client with BROKERVER(V2) works in migration mode",
        "Look at BROKERVER, BROKERCONQ and PSMODE together (guide 7.6) before the client starts.",
    ),
    (
        "P23",
        "JMS subscriptions may be kept on SYSTEM.JMS queues, outside the broker",
        "Unload SYSTEM.JMS.ADMIN.QUEUE as well, with the broker's own state; what cannot be read of it, have its "
        "programs make again, or set SUBSTORE(BROKER) before the migration.",
    ),
    (
        "P24",
        "Queue manager names have their first 12 characters in common",
        "Identifiers may meet (AMQ5834): rename one, or keep them out of one hierarchy.",
    ),
    ("P25", "The hierarchy has two parents or a loop", "Break it with ALTER QMGR PARENT('') before you go on."),
    (
        "P26",
        "Expiry is not known, or starts again",
        "MQSC's EXPIRY and a message's Expiry count from when they are run: run them soon after they are made.",
    ),
    (
        "P27",
        "DEFINE SUB lets any user alter a subscription by default",
        "The scripts here always say VARUSER; keep it so.",
    ),
    ("P28", "More than 256 names in a namelist", "Put fewer streams or subscription points on this queue manager."),
    (
        "P29",
        "A subscriber queue is missing, or elsewhere",
        "See that it exists, and that a transmission queue leads to its queue manager.",
    ),
    (
        "P30",
        "The queue manager has no dead-letter queue",
        "Give it one with ALTER QMGR DEADQ before dltmqbrk is run and before anything is published.",
    ),
    (
        "P31",
        "A stream's topic object has to be local on every queue manager of a cluster",
        "Define it on each, with CLUSTER on each copy (guide 7.4.2); the runbook has the commands.",
    ),
    (
        "P32",
        "A subscription to $SYS topics",
        "Nothing is published there now: delete it when its program is gone.",
    ),
    (
        "P33",
        "A named subscription on a stream: IBM does not document what joins its name and the stream's",
        "qpubsub verify --probe-names asks the queue manager. If an old program would not find its subscription, "
        "make the plan again with the separator that the probe prints.",
    ),
    (
        "D01",
        "A local publication reaches global subscribers of the queue manager",
        "Expect more publications than before.",
    ),
    ("D02", "A local subscription receives global publications made here", "Expect more publications than before."),
    ("D04", "Metatopics are not provided", "Use DISPLAY SUB, SBSTATUS, TPSTATUS, PUBSUB instead."),
    ("D05", "Nothing is published on the administration stream", "Use DISPLAY PUBSUB and DISPLAY NAMELIST instead."),
    ("D06", "Publishers are not registered", "Programs that ask who publishes have to ask otherwise."),
    (
        "D07",
        "Routing exits are gone",
        "Rewrite it as a publish exit, or intercept with SUBLEVEL.",
    ),
    ("D08", "A native wildcard subscription may see a stream's topics", "Set WILDCARD(BLOCK) on the stream's topic."),
    ("D09", "A stream's name is also a first level of other topics", "Give the stream another topic string."),
    ("D14", "Wildcards are characters or levels", "A topic with a level # or + cannot be published to in version 7."),
    (
        "D15",
        "Names of subscriptions are unique in the queue manager",
        "Queued programs that name the stream find theirs under the old name too; native ones need the new name.",
    ),
    ("D17", "Subscriptions and dynamic queues end apart", "Delete subscriptions whose queue is gone."),
    ("D18", "A durable subscription cannot have a temporary dynamic queue", "Use a permanent one."),
    ("D20", "Named subscriptions are not found by their queue", "Deregister them by their names."),
    ("D23", "A flow's input queue needs a topic object and a place in the list", "As for P18."),
    ("D24", "Coming and going of subscribers is not published", "Poll with DISPLAY SUB."),
    ("D28", "Non-persistent retained publications end with the queue manager", "As for P11."),
    ("D29", "A wildcard subscription that is partly denied", "As for P05."),
    (
        "D30",
        "Filters look at message properties, not at bodies",
        "Check each; publishers have to set properties.",
    ),
)

CARED_FOR: Final = ("P15", "P16", "P17", "P27")
"""Problems that the order and the completeness of the steps keep from arising."""


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
