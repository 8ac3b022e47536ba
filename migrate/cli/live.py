"""``qpubsub extract``, ``apply`` and ``verify``: the verbs for a live queue manager, and the options that they share.

extract takes the state of a live queue manager, or of a running version 6 broker; apply sends a plan to one, one
checkpoint at a time; verify compares what was planned with what is live.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from commands.config.home import Home
from commands.config.settings import exposed_secrets, read_config
from commands.options.queue_manager import queue_manager
from commands.options.verb import DIRECTORY, FILE, FILE_OR_DASH, verb
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from migrate.extract import REPLY_QUEUE
from migrate.legacy_state import LegacyState, fingerprint
from migrate.live.applying import Applier, advance, wanted_checkpoints
from migrate.live.differences import Comparison, NameProbe, compare, planned_separator, probe_names
from migrate.live.journal import JOURNAL, Checkpoint, Journal
from migrate.live.opening import LiveQueueManager, open_live
from migrate.live.snapshot import KINDS, read_live, script_of
from migrate.live.state_of import NEVER_SHOWN, Interrogation, remarks, retained_copies, state_of
from migrate.live.undoing import Undoing
from migrate.log import changed_since
from migrate.planned_state import FILE_NAME, WORDS, PlannedHeading, PlannedObject, by_kind, read_planned
from migrate.readers import state_json
from rfh2.captures import write_captures

F = TypeVar("F", bound=Callable[..., Any])

WAIT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Reached:
    """Which queue manager, and how it is reached."""

    qmgr: str
    home: Home
    admin: str | None
    queues: str | None
    config: Path | None

    @contextmanager
    def opened(self, console: Console) -> Iterator[LiveQueueManager]:
        """The queue manager, closed at the end. Raises ConfigError, StoreError."""
        settings = read_config(self.config)
        for exposed in exposed_secrets(settings):
            console.warn(exposed)
        with closing(open_live(self.home, self.qmgr, settings, self.admin, self.queues)) as live:
            yield live

    def planned(self, directory: Path) -> tuple[PlannedHeading, list[PlannedObject]]:
        """The plan in *directory*. Raises UsageError for that of another queue manager, MigrationError."""
        heading, planned = read_planned(directory / FILE_NAME)
        if heading.qmgr != self.qmgr:
            raise click.UsageError(f"{directory} is the plan for queue manager {heading.qmgr}, not {self.qmgr}")
        return heading, planned


def live_queue_manager(function: Callable[..., Any]) -> Callable[..., Any]:
    """``-m``, ``--home``, ``--admin``, ``--queues``, ``--config``: the verb gets *reached* (Reached)."""

    @wraps(function)
    def reaching(*args: Any, **given: Any) -> Any:
        own = {each.name: given.pop(each.name) for each in fields(Reached)}
        return function(*args, reached=Reached(**own), **given)

    verb: Callable[..., Any] = reaching
    for option in (
        click.option(
            "--config",
            type=FILE,
            metavar="FILE",
            help="The file with users, passwords and certificates: tables [admin] and [queues].",
        ),
        click.option(
            "--queues",
            metavar="URL",
            help="IBM MQ through its client, for messages and, without --admin, for commands as PCF: "
            "mq://host/QMGR?channel=NAME, or ibmmq:// with IBM's library.",
        ),
        click.option("--admin", metavar="URL", help="IBM MQ by its REST interface: https://host:9443."),
    ):
        verb = option(verb)
    return queue_manager(verb)


def wait(function: F) -> F:
    """``--wait SECONDS``: the verb gets *wait_s*."""
    return click.option(
        "--wait",
        "wait_s",
        type=click.FloatRange(min=0),
        default=WAIT_S,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for answers, and for a queue to become empty.",
    )(function)


def directory_of_plan(function: F) -> F:
    """The argument DIRECTORY: what ``--out`` of strmqbrk or migmbbrk wrote."""
    return click.argument(
        "directory", type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIRECTORY"
    )(function)


@verb(
    "qpubsub extract -m QM1 --admin https://mq:9443 --config admin.toml -o state.json --objects existing.mqsc",
    "qpubsub extract -m QM1 --queues 'mq://mq/QM1?channel=ADMIN' --metatopics -o extract.jsonl",
    exit_codes={
        0: "done",
        1: "done; something is missing from the state, and is named",
        2: "the state could not be taken; nothing was changed",
    },
)
@live_queue_manager
@click.option(
    "--metatopics",
    is_flag=True,
    help="Ask a running version 6 broker, with commands on its queues; the result is a capture.",
)
@click.option(
    "--stream", multiple=True, metavar="QUEUE", help="With --metatopics: a stream besides those that the broker names."
)
@click.option(
    "--reply-queue",
    default=REPLY_QUEUE,
    show_default=True,
    metavar="QUEUE",
    help="With --metatopics: the local queue to which the broker sends its answers.",
)
@click.option(
    "--work",
    type=DIRECTORY,
    metavar="DIRECTORY",
    help="With --metatopics: where answers are kept until all are there. Default: extract-QMGR.work.",
)
@click.option(
    "--objects",
    type=FILE,
    metavar="FILE",
    help="Write the objects of the queue manager to FILE, as MQSC for --existing of strmqbrk and migmbbrk.",
)
@wait
@click.option(
    "-o",
    "--output",
    type=FILE_OR_DASH,
    default="-",
    metavar="FILE|-",
    help="Write the state to FILE, not to stdout. FILE appears when it is complete.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object; needs --output FILE.")
@click.pass_obj
def extract_command(
    console: Console,
    reached: Reached,
    metatopics: bool,
    stream: tuple[str, ...],
    reply_queue: str,
    work: Path | None,
    objects: Path | None,
    wait_s: float,
    output: Path,
    as_json: bool,
) -> ExitCode:
    """Write the publish/subscribe state of queue manager QMGR as a source of strmqbrk and migmbbrk.

    Without --metatopics, extract reads what the DISPLAY commands of a queue manager of version 7 or later show, and
    writes the state as JSON. With --metatopics, it asks a version 6 broker for its streams, subscribers, publishers and
    retained publications, and writes the answers as a capture. If it is interrupted, run the same command again.
    """
    if metatopics and objects is not None:
        raise click.UsageError("--objects cannot be used with --metatopics: a version 6 broker has no topic objects")
    if not metatopics and (stream or work is not None):
        raise click.UsageError("--stream and --work need --metatopics")
    if as_json and str(output) == "-":
        raise click.UsageError("--json needs --output FILE")
    qmgr = reached.qmgr
    with reached.opened(console) as live:
        if metatopics:
            if live.messages is None:
                raise click.UsageError("--metatopics puts commands on queues: give --queues mq://...")
            asking = Interrogation(
                live.messages,
                qmgr,
                reply_queue,
                work or Path(f"extract-{qmgr}.work"),
                wait_s,
                lambda: datetime.now(UTC),
                lambda what: console.say(f"asking for {what}"),
            )
            answers = asking.ask(stream)
            with console.data_to(output):
                write_captures(answers, console.binary, "jsonl")
            asking.forget()
            console.say(f"{counted(len(answers), 'answer')} of queue manager {qmgr}")
            if as_json:
                console.json({"qmgr": qmgr, "answers": len(answers), "output": str(output)})
            return ExitCode.DONE
        publications = None if live.store is None else live.store.load_state()[2]
        copies = None if live.connection is None else retained_copies(live.connection)
        state = state_of(live.administrator, datetime.now(UTC), publications, copies)
        script = None if objects is None else list(script_of(read_live(live.administrator, KINDS), qmgr))
    if objects is not None and script is not None:
        with console.data_to(objects):
            console.binary.write("".join(f"{line}\n" for line in script).encode("utf-8", "backslashreplace"))
    with console.data_to(output):
        console.binary.write(state_json.write([state]).encode("utf-8", "backslashreplace"))
        console.flush()
    return _summary(console, state, output, as_json=as_json)


_PLURALS: Final = {"authority": "authorities", "retained": "retained"}


def _summary(console: Console, state: LegacyState, output: Path, *, as_json: bool) -> ExitCode:
    kinds = Counter(item.kind for _, item in state.items())
    words = ((kind.replace("_", " "), count) for kind, count in kinds.items() if kind != "unread")
    said = ", ".join(counted(count, word, _PLURALS.get(word)) for word, count in words)
    console.say(f"{said}; fingerprint {fingerprint(state)}")
    found = remarks(state)
    for line in found:
        console.warn(line)
    if any(item.text == NEVER_SHOWN for item in state.unread):
        console.say(f"not in the state, because no DISPLAY shows them: {NEVER_SHOWN}")
    if as_json:
        body = {"qmgr": state.qmgr, "items": dict(kinds), "fingerprint": fingerprint(state), "output": str(output)}
        console.json(body)
    return ExitCode.PROBLEMS if found else ExitCode.DONE


@verb(
    "qpubsub apply -m QM1 migration --admin https://mq:9443 --queues 'mq://mq/QM1?channel=A' --rehearse",
    "qpubsub apply -m QM1 migration --config live.toml",
    "qpubsub apply -m QM1 migration --config live.toml --all --confirm stopped",
    "qpubsub apply -m QM1 migration --config live.toml --undo",
    prints=True,
    former={"--until": "--through"},
    exit_codes={
        0: "done",
        1: "stopped in the middle, something could not be taken back, or others have changed something since, which "
        "--undo keeps; each is named",
        2: "nothing was changed",
    },
)
@live_queue_manager
@click.option("--all", "every", is_flag=True, help="All checkpoints that are left, not only the next one.")
@click.option("--through", "until", metavar="CHECKPOINT", help="All checkpoints up to this one, and this one.")
@click.option(
    "--confirm",
    multiple=True,
    metavar="CHECKPOINT",
    help="What a person has to do at this checkpoint is done; you can repeat it.",
)
@click.option("--rehearse", is_flag=True, help="Print what would be sent, and what is there already; change nothing.")
@click.option("--undo", is_flag=True, help="Undo what was applied, by the journal.")
@click.option("--force", is_flag=True, help="With --undo: also undo what others have changed since.")
@click.option(
    "--journal",
    "journal_file",
    type=FILE,
    metavar="FILE",
    help="Where to note what was confirmed. Default: apply.journal in DIRECTORY.",
)
@wait
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@directory_of_plan
@click.pass_obj
def apply_command(
    console: Console,
    reached: Reached,
    every: bool,
    until: str | None,
    confirm: tuple[str, ...],
    rehearse: bool,
    undo: bool,
    force: bool,
    journal_file: Path | None,
    wait_s: float,
    as_json: bool,
    directory: Path,
) -> ExitCode:
    """Send the plan in DIRECTORY to queue manager QMGR, one checkpoint at a time.

    DIRECTORY is what --out of strmqbrk or migmbbrk wrote. Each run carries out the next checkpoint, and says which one
    follows. What the queue manager has already is left as it is. After an interruption at any moment, run the same
    command again: it goes on, and does nothing twice. A refusal stops the run and names the line.
    """
    if force and not undo:
        raise click.UsageError("--force needs --undo")
    heading, planned = reached.planned(directory)
    path = journal_file or directory / JOURNAL
    with reached.opened(console) as live:
        administrator = live.administrator
        applier = Applier(administrator, live.messages, directory, heading, planned, wait_s, frozenset(confirm))
        known = [each.name for each in applier.checkpoints]
        for name in (*confirm, *([until] if until is not None else [])):
            if name not in known:
                raise click.UsageError(f"there is no checkpoint {name}; there are {', '.join(known)}")
        if rehearse and not path.exists():
            if undo:
                raise click.UsageError(f"{path}: there is no journal, so nothing was applied")
            return _rehearse(console, applier, None, as_json)
        if undo and not path.exists():
            raise click.UsageError(f"{path}: there is no journal, so nothing was applied")
        with closing(Journal.open(path, heading, administrator.where)) as journal:
            if undo:
                undoing = Undoing(administrator, heading, planned, live.retained_data, force)
                return _undo(console, undoing, journal, rehearse=rehearse)
            if rehearse:
                return _rehearse(console, applier, journal, as_json)
            wanted = wanted_checkpoints(applier.remaining(journal), every=every, until=until)
            return _apply(console, applier, journal, wanted, as_json)


def _apply(console: Console, applier: Applier, journal: Journal, wanted: list[Checkpoint], as_json: bool) -> ExitCode:
    @contextmanager
    def shown(checkpoint: Checkpoint) -> Iterator[Callable[[int], None]]:
        with console.progress(f"{checkpoint.name}: sent") as progress:
            yield progress
        console.say(f"checkpoint {checkpoint.name}: done")

    found = advance(applier, journal, wanted, shown)
    stopped, remaining = found.stopped, found.left
    following = remaining[0].name if remaining else None
    if as_json:
        told: dict[str, Any] = {"qmgr": applier.heading.qmgr, "where": applier.administrator.where, "done": found.done}
        told |= {"sent": found.sent, "next": following, "remaining": [each.name for each in remaining]}
        told["stopped"] = None if stopped is None else {"checkpoint": stopped.checkpoint, "why": stopped.why}
        console.json(told)
    if stopped is not None:
        console.warn(str(stopped))
        return ExitCode.PROBLEMS if found.has_changed else ExitCode.USAGE
    if following is None:
        console.say("all checkpoints are done; qpubsub verify compares the queue manager with the plan")
    else:
        asks = remaining[0].asks
        console.say(f"next: checkpoint {following}" + (f", where a person has to act: {asks}" if asks else ""))
    return ExitCode.DONE


def _rehearse(console: Console, applier: Applier, journal: Journal | None, as_json: bool) -> ExitCode:
    stops = 0
    listed: list[dict[str, Any]] = []
    for checkpoint in applier.remaining(journal):
        lines = list(applier.rehearsal(checkpoint, journal))
        stops += any(would_stop for _, would_stop in lines)
        listed.append({"checkpoint": checkpoint.name, "lines": [line for line, _ in lines]})
        if not as_json:
            for line, _ in lines:
                console.data(f"{checkpoint.name}: {line}")
    if as_json:
        console.json({"qmgr": applier.heading.qmgr, "rehearsal": listed})
    said = f"{stops} of which would stop the run" if stops else "none of which would stop the run"
    console.say(f"rehearsal: {counted(len(listed), 'checkpoint')} left, {said}; nothing was changed")
    return ExitCode.DONE


def _undo(console: Console, undoing: Undoing, journal: Journal, *, rehearse: bool) -> ExitCode:
    if rehearse:
        for line in undoing.rehearsal(journal):
            console.data(line)
        console.say("rehearsal: nothing was changed")
    else:
        undoing.carry_out(journal)
        journal.set_aside()
        console.say(f"what was applied was taken back with {counted(len(undoing.done), 'command')}")
    for left in undoing.left:
        console.warn(f"it would be left: {left}" if rehearse else f"left: {left}")
    for line in undoing.others:
        console.warn(changed_since(line, rehearse=rehearse, force=undoing.force))
    return ExitCode.PROBLEMS if undoing.left or undoing.others else ExitCode.DONE


_TOLD: Final = ("how", "kind", "what", "attribute", "planned", "live", "todo")


@verb(
    "qpubsub verify -m QM1 migration",
    "qpubsub verify -m QM1 migration --admin https://mq.example.com:9443 --config admin.toml --json",
    "qpubsub verify -m QM1 migration --queues 'mq://mq/QM1?channel=ADMIN' --probe-names",
    prints=True,
    exit_codes={
        0: "what is planned is live",
        1: "there are differences; each one is named",
        2: "they could not be compared",
    },
)
@live_queue_manager
@click.option(
    "--probe-names",
    is_flag=True,
    help="Register subscriptions on a stream, see how the queue manager names them, and remove them.",
)
@click.option("--stream", metavar="QUEUE", help="With --probe-names: the stream. Default: the first that there is.")
@wait
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@directory_of_plan
@click.pass_obj
def verify_command(
    console: Console,
    reached: Reached,
    probe_names: bool,
    stream: str | None,
    wait_s: float,
    as_json: bool,
    directory: Path,
) -> ExitCode:
    """Compare the plan in DIRECTORY with what queue manager QMGR has now.

    DIRECTORY is what --out of strmqbrk or migmbbrk wrote. verify looks at the attributes of the queue manager, queues,
    topic objects, namelists, authority records, subscriptions and retained publications, and prints each difference. It
    changes nothing, except with --probe-names, which removes what it made.
    """
    heading, planned = reached.planned(directory)
    if stream is not None and not probe_names:
        raise click.UsageError("--stream needs --probe-names")
    with reached.opened(console) as live:
        state = read_live(live.administrator, ("QMGR", *by_kind(planned)))
        found = compare(heading, planned, state, datetime.now(UTC))
        probe = None
        if probe_names:
            if live.messages is None:
                raise click.UsageError("--probe-names puts commands on queues: give --queues mq://... too")
            separator = planned_separator(planned)
            probe = _probe(live.administrator, live.messages, stream, separator, wait_s)
        where = live.administrator.where
    if as_json:
        console.json(_as_json(heading, where, found, probe))
    else:
        _print(console, found, probe)
    is_same = not found.differences and (probe is None or probe.is_found)
    console.say(f"{where}: {_verify_summary(found)}")
    return ExitCode.DONE if is_same else ExitCode.PROBLEMS


_probe = probe_names


def _print(console: Console, found: Comparison, probe: NameProbe | None) -> None:
    for difference in found.differences:
        console.data(f"{difference.how:8}{difference}")
    if probe is not None:
        for line in probe.lines:
            console.data(line)


def _verify_summary(found: Comparison) -> str:
    total = sum(found.compared.values())
    said = [counted(count, WORDS[kind]) for kind, count in found.compared.items() if kind != "QMGR"]
    compared = f"{counted(total, 'object')} compared" + (f" ({', '.join(said)})" if said else "")
    more = [f"{counted(found.others, 'other live subscription')} not in the plan"] * bool(found.others)
    more += [f"{found.expired:,} planned subscriptions have expired"] * bool(found.expired)
    count = len(found.differences)
    differ = counted(count, "difference") if count else "no difference"
    return "; ".join([f"{differ}, {compared}", *more])


def _as_json(heading: PlannedHeading, where: str, found: Comparison, probe: NameProbe | None) -> dict[str, Any]:
    return {
        "qmgr": heading.qmgr,
        "where": where,
        "plan": {"tool": heading.tool, "broker": heading.broker, "fingerprint": heading.fingerprint},
        "same": not found.differences,
        "compared": found.compared,
        "differences": [{word: getattr(each, word) for word in _TOLD} for each in found.differences],
        "other_subscriptions": found.others,
        "expired": found.expired,
        "names": None
        if probe is None
        else {
            "stream": probe.stream,
            "planned_separator": probe.planned,
            "live_separator": probe.live,
            "found": probe.is_found,
            "shown": probe.shown,
            "reason": probe.reason,
        },
    }
