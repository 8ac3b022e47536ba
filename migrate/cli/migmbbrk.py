"""``qpubsub migmbbrk``: migrate an Event Broker's or Message Broker's state, in phases.

The state that a phase of migmbbrk has read, kept while the phase applies it, for use after an interruption.

A phase that is refused keeps nothing, because it has not begun to apply anything. The file has the broker, the phase
and the fingerprint, and only that phase of that broker uses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from commands.disk.files import make_directory, private, put_in_place, to_disk
from commands.options.queue_manager import HOME, complete_queue_manager
from commands.options.verb import DIRECTORY, verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from commands.terminal.output_file import naming
from migrate import embedded, log as lines, migmbbrk
from migrate.acl import FILE_NAME
from migrate.assemble import of_product
from migrate.cli import choices, running
from migrate.cli.choices import GivenSources, MigrationOptions
from migrate.contents import disk
from migrate.legacy_state import LegacyState, Product, ReadingDifference, difference, fingerprint, labelled
from migrate.plan import MigrationPlan, Phase, PlanOptions, Tool
from migrate.readers import state_json
from migrate.report.runbooks import collective_runbook
from rfh2.errors import MigrationError, QPubSubError, system_words

RETRIEVED: Final = "retrieved.json"


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A state with the broker and the phase that it was read for."""

    broker: str
    phase: Phase
    state: LegacyState

    def check(self, broker: str, phase: Phase) -> None:
        """Raises MigrationError if the interrupted phase was another one, or that of another broker."""
        if (self.broker, self.phase) != (broker, phase):
            raise MigrationError(
                f"the {self.phase} phase of broker {self.broker} was interrupted, this is the {phase} phase of broker "
                f"{broker}: run that one again, or discard it with -s. Nothing was changed"
            )

    def check_sources(self, given: LegacyState) -> None:
        """Raises MigrationError if the sources *given* now are not those that the interrupted phase had read."""
        mine, theirs = fingerprint(self.state), fingerprint(given)
        if mine != theirs:
            raise MigrationError(
                f"the interrupted {self.phase} phase had read a state with fingerprint {mine}; the sources have "
                f"{theirs}: omit --source to continue with the former, or discard it with -s. Nothing was changed"
            )


def keep(path: Path, retrieved: Retrieved) -> None:
    """Write *retrieved*, whole or not at all. Raises MigrationError."""
    body = {
        "broker": retrieved.broker,
        "phase": retrieved.phase,
        "state": json.loads(state_json.write([retrieved.state])),
    }
    partial = path.with_name(path.name + ".partial")
    try:
        make_directory(path.parent)
        with open(partial, "w", encoding="utf-8", opener=private) as file:
            file.write(json.dumps(body, ensure_ascii=False))
            to_disk(file)
        put_in_place(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise MigrationError(f"{path}: {system_words(error)}; nothing was changed") from error


def read_kept(path: Path) -> Retrieved | None:
    """What an interrupted phase had read, or None. Raises MigrationError if the file is damaged."""
    if not path.is_file():
        return None
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        states, problems = state_json.read(json.dumps(body["state"]), str(path))
        if len(states) == 1 and not problems:
            return Retrieved(str(body["broker"]), Phase(body["phase"]), states[0])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    why = "the state that an interrupted run had read is damaged: discard it with -s. Nothing was changed"
    raise MigrationError(f"{path}: {why}")


LOG_NAME = "amqmigmbbrk.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(MigrationOptions):
    """What an administrator gives to migmbbrk."""

    broker: str | None
    initial: bool
    complete: bool
    overwrite: bool
    leave_running: bool
    discard: bool  # what an interrupted run had read
    again: bool
    directory: Path  # of the log and the security commands
    member: tuple[str, ...]  # BROKER=QMGR
    connection: tuple[str, ...]  # QMGR=HOST(PORT)
    accept_changed: bool

    def phase(self) -> Phase:
        """Raises UsageError unless one phase is given."""
        phases = [p for p, on in zip(Phase, (self.rehearse, self.initial, self.complete), strict=True) if on]
        if len(phases) != 1:
            raise click.UsageError("give one of -r, -t and -c")
        return phases[0]

    @property
    def shown(self) -> tuple[str, ...]:
        """As the log lists them."""
        letter = {Phase.REHEARSE: "-r", Phase.INITIAL: "-t", Phase.COMPLETE: "-c"}[self.phase()]
        flags = [("-z", self.again), ("-l", self.leave_running), ("-o", self.overwrite), ("-s", self.discard)]
        shown = (letter, *(flag for flag, on in flags if on), f"-b {self.broker}")
        changed = ("--accept-changed",) if self.accept_changed else ()
        return (*shown, *(f"--prefix {one}" for one in self.prefix), *self.trust_shown, *changed)

    def of_plan(self) -> PlanOptions:
        own = MigrationOptions.of_plan(self)
        return replace(own, overwrite=self.overwrite, accept_changed=self.accept_changed)

    def runbooks(self, broker: str) -> dict[str, str]:
        """The runbook for a collective, by file name; none without ``--cluster``. Raises UsageError."""
        if self.cluster is None:
            return {}
        brokers = {broker: self.qmgr} | choices.pairs("--member", self.member, "BROKER=QMGR")
        listeners = choices.pairs("--connection", self.connection, "QMGR=HOST(PORT)")
        return {"runbook-cluster.md": collective_runbook(brokers, self.cluster, listeners)}


@dataclass(frozen=True, slots=True)
class _Task:
    """A broker and a phase of its migration, with the sources that a person named."""

    broker: str
    phase: Phase
    given: GivenSources


@verb(
    "qpubsub migmbbrk -r -b BRK1 -m QM1 outfile.txt retained.qload",
    "qpubsub migmbbrk -t -b BRK1 -m QM1 outfile.txt retained.qload",
    "qpubsub migmbbrk -c -o -b BRK1 -m QM1 outfile.txt retained.qload",
    "qpubsub migmbbrk -m QM1 --undo",
    exit_codes=choices.HELP,
)
@click.option(
    "--qmgr",
    "-m",
    required=True,
    metavar="QMGR",
    help="The queue manager of the broker.",
    shell_complete=complete_queue_manager,
)
@HOME
@click.option("--broker", "-b", metavar="BROKER", help="The broker to migrate from.")
@click.option("--rehearse", "-r", is_flag=True, help="Rehearsal phase: write the log and the security commands.")
@click.option("--initial", "-t", is_flag=True, help="Initial phase: make topic objects for access control lists.")
@click.option("--complete", "-c", is_flag=True, help="Completion phase: migrate everything.")
@click.option(
    "--overwrite", "-o", is_flag=True, help="Replace subscriptions and retained publications of the same name."
)
@click.option("--leave-running", "-l", is_flag=True, help="Do not print the reminder to stop the broker.")
@click.option("--discard", "-s", is_flag=True, help="Discard what an interrupted run had read; read the sources again.")
@click.option("--again", "-z", is_flag=True, help="Run even if an earlier run was completed.")
@click.option(
    "--directory",
    default=".",
    show_default=True,
    type=DIRECTORY,
    metavar="DIRECTORY",
    help=f"Where {LOG_NAME} and {FILE_NAME} go.",
)
@click.option("--undo", is_flag=True, help="Undo the last phase.")
@click.option("--force", is_flag=True, help="With --undo: also undo what others have changed since.")
@click.option(
    "--member", multiple=True, metavar="BROKER=QMGR", help="With --cluster: another broker of the collective."
)
@click.option(
    "--connection",
    multiple=True,
    metavar="QMGR=HOST(PORT)",
    help="With --cluster: the address of a queue manager's listener.",
)
@click.option("--accept-changed", is_flag=True, help="Complete even if the broker has changed since the phase before.")
@choices.shared
@click.pass_obj
def command(console: Console, /, **given: Any) -> ExitCode:
    """Migrate the publish/subscribe state of broker BROKER into its queue manager QMGR.

    Rehearse with -r. Make topic objects with -t. Review and run the security commands in amqmigrateacl.txt. Complete
    with -c. Sources are the listing of mqsireportproperties, the broker's XML events, queue unloads with retained
    publications, and JSON. After an interruption, the next run uses the state that was read then, unless -s is given.
    """
    options = _Options(**given)
    if options.undo:
        others = {"source": options.given, "initial": options.initial, "complete": options.complete}
        running.no_others("--undo", **others, out=options.out, again=options.again)
        return running.undo(console, options, Tool.MIGMBBRK)
    phase = options.phase()
    if options.broker is None:
        raise click.UsageError("-b is needed: name the broker")
    of_plan = options.of_plan()
    task = _Task(options.broker, phase, GivenSources.of(console, options.given))
    runbooks = options.runbooks(task.broker)
    options.check()
    with options.known() as (known, store):
        _prepare(options.directory)
        with running.migration_log(options.directory / LOG_NAME, "w") as log:
            code = _run(running.Run(console, options, log, known, store), of_plan, task, runbooks)
    if phase is Phase.COMPLETE and not options.leave_running:
        console.say(f"stop broker {task.broker} now, and check in its event log that it has ended (guide 8.2, step 8)")
    return code


def _run(run: running.Run[_Options], of_plan: PlanOptions, task: _Task, runbooks: dict[str, str]) -> ExitCode:
    options, store = run.options, run.store
    path = None if store is None else store.directory / embedded.DIRECTORY / RETRIEVED
    run.log.write_all(lines.opening(Tool.MIGMBBRK, task.broker, options.qmgr, of_plan.shown))
    state = _state(run, task, path)
    since = _since_initial(state, store) if task.phase is Phase.COMPLETE else None
    with run.console.progress("items planned", sum(1 for _ in state.items())) as advance:
        plan = migmbbrk.plan(
            state,
            run.known,
            of_plan,
            options.now,
            task.phase,
            since_initial=since,
            again=options.again,
            progress=advance,
        )
    _write_security(options.directory, plan)
    with _kept_while_applying(path, Retrieved(task.broker, task.phase, state)) as begin:
        return running.carry_out(run, plan, runbooks, begin)


@contextmanager
def _kept_while_applying(path: Path | None, read: Retrieved) -> Iterator[Callable[[], None]]:
    """Gives the function that keeps *read* when applying begins; it is discarded when applying ends or is refused."""

    was_there = path is not None and path.is_file()

    def begin() -> None:
        if path is not None:
            keep(path, read)

    try:
        yield begin
    except QPubSubError:
        # If this run is refused, keep what an earlier, interrupted run had read.
        if path is not None and not was_there:
            path.unlink(missing_ok=True)
        raise
    if path is not None and read.phase is not Phase.REHEARSE:
        path.unlink(missing_ok=True)


def _prepare(directory: Path) -> None:
    with disk(directory, "; nothing was changed"):
        make_directory(directory)
        choices.set_aside(directory / LOG_NAME)


def _state(run: running.Run[_Options], task: _Task, path: Path | None) -> LegacyState:
    """The state in the sources; without any, the state that this phase had read when it was interrupted."""
    before = None
    if path is not None and task.phase is not Phase.REHEARSE:
        if run.options.discard and path.is_file():
            run.log.write_all(iter([f"-s: the state that an interrupted run had read is discarded ({path})"]))
            path.unlink()
        before = read_kept(path)
    if before is not None:
        before.check(task.broker, task.phase)
    if task.given.shown:
        read = task.given.read(run.options.from_qmgr or run.options.qmgr, Product.WMB)
        state = of_product(read, task.broker, Product.WMB)
        run.log.write_all(lines.retrieved(state))
        if before is not None:
            before.check_sources(state)
        return state
    if before is None:
        raise click.UsageError("FILE is missing: give the files with the broker's state")
    run.console.say(f"continuing with the state that the interrupted run had read ({path}); -s reads the sources again")
    run.log.write_all(lines.retrieved(before.state, f"{path}, which the interrupted run left"))
    return before.state


def _since_initial(state: LegacyState, store: QueueManagerStore | None) -> ReadingDifference | None:
    before = None if store is None else embedded.initial_items(store)
    return None if before is None else difference(before, labelled(state))


def _write_security(directory: Path, plan: MigrationPlan) -> None:
    """Write a new security command file; an older one, which a person may have edited, gets another name."""
    path = directory / FILE_NAME
    text = "".join(f"{line}\n" for line in plan.security)
    if path.exists() and path.read_text(encoding="utf-8", errors="replace") == text:
        return
    partial = path.with_name(f".{path.name}.partial")
    with naming(str(path)), open(partial, "w", encoding="utf-8", opener=private) as file:
        file.write(text)
        to_disk(file)
    if path.exists():
        choices.numbered(path).hardlink_to(path)
    put_in_place(partial, path)
