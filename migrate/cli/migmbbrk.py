"""``qpubsub migmbbrk``: migrate an Event Broker's or Message Broker's state, in phases.

The state that a phase of migmbbrk has read, kept while the phase applies it, for use after an interruption.

A phase that is refused keeps nothing, because it has not begun to apply anything. The file has the broker, the phase
and the fingerprint, and only that phase of that broker uses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from commands.broker.stream_names import NAME_SEPARATOR
from commands.disk.permissions import make_directory, private
from commands.options.queue_manager import HOME, complete_queue_manager
from commands.options.verb import verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from migrate import embedded, log as lines, migmbbrk
from migrate.acl import FILE_NAME
from migrate.assemble import of_product
from migrate.cli import choices, running
from migrate.cli.choices import GivenSources
from migrate.fingerprint import ReadingDifference, difference, fingerprint, labelled
from migrate.legacy_state import LegacyState, Product
from migrate.plan import MigrationPlan, Phase, PlanOptions, Tool
from migrate.readers import state_json
from migrate.report.runbooks import collective_runbook
from migrate.target import Target, existing_target
from rfh2.errors import MigrationError, QPubSubError

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
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise MigrationError(f"{path}: {error.strerror or error}; nothing was changed") from error


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


@dataclass(frozen=True, slots=True)
class _Run:
    """What one call of the verb is to do."""

    console: Console
    broker: str
    phase: Phase
    options: PlanOptions
    again: bool
    discard: bool
    given: GivenSources
    now: datetime
    directory: Path
    out: Path | None
    as_json: bool
    detailed_exit_code: bool
    runbooks: dict[str, str]
    racf: str | None


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
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIRECTORY",
    help=f"Where {LOG_NAME} and {FILE_NAME} go.",
)
@click.option(
    "--prefix", multiple=True, metavar="STREAM=TOPICSTR", help="A topic string for a stream instead of its name."
)
@click.option("--undo", is_flag=True, help="Restore what the last phase changed.")
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
@choices.trust
@choices.cluster
@choices.outputs
@choices.detailed_exit_code
@choices.sources
@click.pass_obj
def command(
    console: Console,
    qmgr: str,
    home: Path,
    broker: str | None,
    rehearse: bool,
    initial: bool,
    complete: bool,
    overwrite: bool,
    leave_running: bool,
    discard: bool,
    again: bool,
    directory: Path,
    prefix: tuple[str, ...],
    undo: bool,
    source: tuple[str, ...],
    more: tuple[str, ...],
    target: str,
    existing: Path | None,
    racf: str | None,
    out: Path | None,
    as_json: bool,
    detailed_exit_code: bool,
    cluster: str | None,
    member: tuple[str, ...],
    connection: tuple[str, ...],
    accept_unread: bool,
    from_qmgr: str | None,
    accept_changed: bool,
) -> ExitCode:
    """Migrate the publish/subscribe state of broker BROKER into its queue manager QMGR.

    Rehearse with -r. Make topic objects with -t. Review and run the security commands in amqmigrateacl.txt. Complete
    with -c. Sources are the listing of mqsireportproperties, the broker's XML events, queue unloads with retained
    publications, and JSON. After an interruption, the next run uses the state that was read then, unless -s is given.
    """
    if undo:
        running.no_others("--undo", source=(*source, *more), initial=initial, complete=complete, out=out, again=again)
        return running.undo(console, qmgr, home, Tool.MIGMBBRK, rehearse=rehearse)
    phases = [p for p, on in zip(Phase, (rehearse, initial, complete), strict=True) if on]
    if len(phases) != 1:
        raise click.UsageError("one of -r, -t and -c is needed, and only one")
    if broker is None:
        raise click.UsageError("-b is needed: name the broker")
    shown = _shown(phases[0], broker, overwrite, leave_running, discard, again, prefix)
    options = PlanOptions(
        None,
        overwrite,
        NAME_SEPARATOR,
        choices.pairs("--prefix", prefix, "STREAM=TOPICSTR"),
        (*shown, *choices.trust_shown(accept_unread, from_qmgr), *["--accept-changed"] * accept_changed),
        accept_unread,
        from_qmgr,
        accept_changed,
    )
    given = GivenSources.of(console, (*source, *more))
    runbooks = {}
    if cluster is not None:
        brokers = {broker: qmgr} | choices.pairs("--member", member, "BROKER=QMGR")
        listeners = choices.pairs("--connection", connection, "QMGR=HOST(PORT)")
        runbooks["runbook-cluster.md"] = collective_runbook(brokers, cluster, listeners)
    run = _Run(
        console,
        broker,
        phases[0],
        options,
        again,
        discard,
        given,
        choices.utc_now(),
        directory,
        out,
        as_json,
        detailed_exit_code,
        runbooks,
        racf,
    )
    choices.check_existing(existing, target)
    choices.check_racf(racf, out)
    if target == "files":
        if out is None:
            raise click.UsageError("--target files needs --out DIRECTORY")
        script = choices.script(existing)
        known = existing_target(qmgr, script, run.now)
        code = _run(run, known, None)
    else:
        with QueueManagerStore.open(home, qmgr) as store:
            code = _run(run, embedded.load(store), store)
    if phases[0] is Phase.COMPLETE and not leave_running:
        console.say(f"stop broker {broker} now, and check in its event log that it has ended (guide 8.2, step 8)")
    return code


def _run(run: _Run, known: Target, store: QueueManagerStore | None) -> ExitCode:
    _prepare(run.directory)
    qmgr = known.objects.qmgr.name
    kept = None if store is None else store.directory / embedded.DIRECTORY / RETRIEVED
    with running.migration_log(run.directory / LOG_NAME, "w") as log:
        log.write_all(lines.opening(Tool.MIGMBBRK, run.broker, qmgr, run.options.shown))
        state = _state(run, qmgr, kept, log)
        since = _since_initial(state, store) if run.phase is Phase.COMPLETE else None
        with run.console.progress("items planned", sum(1 for _ in state.items())) as advance:
            plan = migmbbrk.plan(
                state,
                known,
                run.options,
                run.now,
                run.phase,
                since_initial=since,
                again=run.again,
                progress=advance,
            )
        _write_security(run.directory, plan)
        with _kept_while_applying(kept, Retrieved(run.broker, run.phase, state)) as begin:
            runbooks = run.runbooks | choices.racf_files(plan, run.racf)
            wanted = running.Wanted(run.out, run.as_json, run.detailed_exit_code, runbooks, begin)
            return running.carry_out(run.console, log, plan, known, store, wanted)


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
    try:
        make_directory(directory)
        choices.set_aside(directory / LOG_NAME)
    except OSError as error:
        raise MigrationError(f"{directory}: {error.strerror or error}; nothing was changed") from error


def _state(run: _Run, qmgr: str, kept: Path | None, log: running.MigrationLog) -> LegacyState:
    """The state in the sources; without any, the state that this phase had read when it was interrupted."""
    before = None
    if kept is not None and run.phase is not Phase.REHEARSE:
        if run.discard and kept.is_file():
            log.write_all(iter([f"-s: the state that an interrupted run had read is discarded ({kept})"]))
            kept.unlink()
        before = read_kept(kept)
    if before is not None:
        before.check(run.broker, run.phase)
    if run.given.shown:
        read = run.given.read(run.options.from_qmgr or qmgr, Product.WMB)
        state = of_product(read, run.broker, Product.WMB)
        log.write_all(lines.retrieved(state))
        if before is not None:
            before.check_sources(state)
        return state
    if before is None:
        raise click.UsageError("FILE is missing: give the files with the broker's state")
    run.console.say(f"continuing with the state that the interrupted run had read ({kept}); -s reads the sources again")
    log.write_all(lines.retrieved(before.state, f"{kept}, which the interrupted run left"))
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
    with open(partial, "w", encoding="utf-8", opener=private) as file:
        file.write(text)
    choices.set_aside(path)
    partial.replace(path)


def _shown(
    phase: Phase,
    broker: str,
    overwrite: bool,
    leave_running: bool,
    discard: bool,
    again: bool,
    prefix: tuple[str, ...],
) -> tuple[str, ...]:
    """The options as the log lists them."""
    letter = {Phase.REHEARSE: "-r", Phase.INITIAL: "-t", Phase.COMPLETE: "-c"}[phase]
    flags = [("-z", again), ("-l", leave_running), ("-o", overwrite), ("-s", discard)]
    return (letter, *(flag for flag, on in flags if on), f"-b {broker}", *(f"--prefix {one}" for one in prefix))
