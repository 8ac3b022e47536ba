"""``qpubsub shares``: several bridges share one workload."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import click

from commands.broker.objects import QueueManager
from commands.broker.reading import natural_queue
from commands.config.home import Home, PostgresqlHome
from commands.disk.errors import MessageRefusedError
from commands.options.captures import Captures
from commands.options.queue_manager import HOME, batches, say_created, user_of
from commands.options.verb import FILE, verb_group
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import queue_managers
from commands.running.sharing import NoShareError, Share, Shares, SharingBridge, read_shares, share_of
from commands.running.status import status_of
from commands.running.tenure import LEASE_S, instances
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.errors import QPubSubError

_APPLICATION: Final = "qpubsub shares"


@verb_group
def command() -> None:
    """Share one workload among several bridges: each works for some of the queue managers that a FILE names.

    In a home in PostgreSQL, start as many bridges as you like, on any machines. Each takes its part of the shares, and
    when one ends, in any way, the others take its shares over. In a directory, start qpubsub run for each share.
    """


_FILE: Final = click.argument("file", type=FILE)
_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def _made(file: Path, home: Home) -> Shares:
    shares, there = read_shares(file), queue_managers(home)
    missing = [share.qmgr for share in shares.shares if share.qmgr not in there]
    if missing:
        how = f"make what is missing with: qpubsub shares create {file} --home {home}"
        raise click.UsageError(f"there is no queue manager {', '.join(missing)} in {home}; {how}")
    return shares


@command.verb("qpubsub shares create shares.toml")
@_FILE
@HOME
@click.pass_obj
def create(console: Console, file: Path, home: Home) -> None:
    """Make the queue managers of FILE that are not there."""
    shares, there = read_shares(file).shares, queue_managers(home)
    for share in shares:
        if share.qmgr in there:
            console.say(f"queue manager {share.qmgr} exists already")
            continue
        with QueueManagerStore.create(home, QueueManager(share.qmgr)) as store:
            say_created(console, store)


@command.verb("qpubsub shares run shares.toml", "qpubsub shares run shares.toml -- --durability normal")
@_FILE
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- OPTION...]")
@HOME
@click.option(
    "--lease",
    "lease_s",
    type=click.FloatRange(min=0.5),
    default=LEASE_S,
    show_default=True,
    metavar="SECONDS",
    help="A bridge that gives no sign of life for this time is considered dead; the others take its shares.",
)
@click.pass_obj
def run(console: Console, file: Path, options: tuple[str, ...], home: Home, lease_s: float) -> None:
    """Run one bridge, until Ctrl-C. OPTIONs after -- are options of qpubsub run for each share."""
    if not isinstance(home, PostgresqlHome):
        how = "in a directory, start qpubsub run for each queue manager; qpubsub home copy takes them to PostgreSQL"
        raise click.UsageError(f"{home}: bridges share the queue managers of a home in PostgreSQL; {how}")
    given = {word.partition("=")[0] for word in options}
    own = given & {"-m", "--qmgr", "--home", "--once", "--config"}
    if own:
        raise click.UsageError(f"{', '.join(sorted(own))}: shares run gives these to run itself, or cannot use them")
    shares = _made(file, home)
    from commands.qmgr.store.postgresql_database import Members  # noqa: PLC0415 - the driver is an extra

    stop = threading.Event()
    with closing(Members(home, shares.name, lease_s)) as members:
        console.say(f"bridge for {shares.name}, {counted(len(shares.shares), 'share')}; stop with Ctrl-C")
        words = ("--home", home.url, "--lease", str(lease_s), *options)
        with stopping(stop):
            serve = partial(_served, console, words)
            SharingBridge(shares.shares, members, serve, console.say, lease_s).run(stop)


def _served(console: Console, options: tuple[str, ...], share: Share) -> int:
    """Work for *share*, in the process of a bridge's child: as ``qpubsub run`` does."""
    from commands.cli import main  # noqa: PLC0415 - the group knows this verb

    words = ["run", "-m", share.qmgr, *options]
    if share.config is not None:
        words += ["--config", str(share.config)]
    try:
        main(words, obj=console)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else ExitCode.INTERNAL
    return ExitCode.DONE


@command.verb("qpubsub shares status shares.toml", prints=True, exit_codes={1: "no bridge works for a share"})
@_FILE
@HOME
@_JSON
@click.pass_obj
def status(console: Console, file: Path, home: Home, as_json: bool) -> ExitCode:
    """Show which bridge works for which share."""
    shares = _made(file, home)
    bridges: list[str] = []
    if isinstance(home, PostgresqlHome):
        from commands.qmgr.store.postgresql_database import members  # noqa: PLC0415 - the driver is an extra

        bridges = members(home, shares.name)
    rows = [_row(home, share) for share in shares.shares]
    if as_json:
        about = {"name": shares.name, "bridges": bridges, "shares": rows}
        console.json(about)
    else:
        console.data(f"{shares.name}: {counted(len(rows), 'share')}, {counted(len(bridges), 'bridge')}")
        console.data("")
        width = max(len("share"), *(len(row["qmgr"]) for row in rows))
        wide = max(len("host"), *(len(row["host"] or "") for row in rows))
        console.data(f"{'share':<{width}}  process  {'host':<{wide}}  waiting  queues")
        for row in rows:
            held = f"{row['process'] or '-':>7}  {row['host'] or '-':<{wide}}  {row['waiting']:>7}"
            console.data(f"{row['qmgr']:<{width}}  {held}  {' '.join(row['queues'])}")
    idle = [row["qmgr"] for row in rows if row["process"] is None]
    if idle:
        console.warn(f"no bridge works for {', '.join(idle)}: start a bridge with qpubsub shares run")
    return ExitCode.PROBLEMS if idle else ExitCode.DONE


def _row(home: Home, share: Share) -> dict[str, Any]:
    """One share. process, host, epoch: of who works for it; None where nobody does."""
    with QueueManagerStore.open(home, share.qmgr) as store:
        active = [each for each in instances(store.database) if each["mode"] == "active"]
        waiting = status_of(store, datetime.now(UTC))["input"]["waiting"]
    return {
        "qmgr": share.qmgr,
        "process": active[0]["pid"] if active else None,
        "host": active[0]["host"] if active else None,
        "epoch": active[0]["epoch"] if active else None,
        "waiting": waiting,
        "queues": list(share.queues),
    }


@command.verb("qpubsub shares where shares.toml SPORT.STREAM", prints=True)
@_FILE
@click.argument("queues", nargs=-1, required=True, metavar="QUEUE...")
@HOME
@_JSON
@click.pass_obj
def where(console: Console, file: Path, queues: tuple[str, ...], home: Home, as_json: bool) -> None:
    """Print the queue manager that has each QUEUE."""
    shares = _made(file, home)
    found = {queue: shares.of_queue(queue) for queue in queues}
    missing = [queue for queue, share in found.items() if share is None]
    if missing:
        raise NoShareError(" or ".join(missing))
    places = {queue: share.qmgr for queue, share in found.items() if share is not None}
    if as_json:
        console.json({"queues": places})
    else:
        for name in places.values():
            console.data(name)


@command.verb("qpubsub shares put shares.toml capture.jsonl", exit_codes={1: "some messages could not be read or put"})
@_FILE
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="CAPTURE...")
@HOME
@_JSON
@click.pass_obj
def put(console: Console, file: Path, files: tuple[Path, ...], home: Home, as_json: bool) -> ExitCode:
    """Put captured messages on the queues of their capture, each in the share that has its queue."""
    shares = _made(file, home)
    captures = Captures(console, files, "auto", default_queue=natural_queue)
    putting = _Putting(console, shares, home)
    with putting.open, console.progress("messages put", captures.rows(), captures.share) as advance:
        for batch in batches(captures.records()):
            advance(putting.put_all(batch))
    for name, count in sorted(putting.by_qmgr.items()):
        console.say(f"{counted(count, 'message')} put in {name}")
    if putting.problems:
        console.warn(f"{counted(putting.problems, 'message')} could not be put")
    if as_json:
        console.json({"put": dict(sorted(putting.by_qmgr.items())), "problems": putting.problems})
    return ExitCode.PROBLEMS if putting.problems else ExitCode.DONE


class _Putting:
    """One ``shares put``. open: closes the queue managers. by_qmgr: how many messages each has got."""

    def __init__(self, console: Console, shares: Shares, home: Home) -> None:
        self._console, self._shares, self._home = console, shares, home
        self._stores: dict[str, QueueManagerStore] = {}
        self.open = ExitStack()
        self.by_qmgr: Counter[str] = Counter()
        self.problems = 0

    def put_all(self, batch: list[CaptureRecord]) -> int:
        """Put *batch*, in a unit of work for each share; how many. Messages of one queue keep their order."""
        before = self.by_qmgr.total()
        placed = sorted(self._placed(batch), key=lambda each: each[0])
        for name, messages in groupby(placed, key=lambda each: each[0]):
            with self._store(name).unit_of_work() as unit:
                for _, record, message in messages:
                    try:
                        unit.put(
                            message.queue, message.md, message.body, user=user_of(message), application=_APPLICATION
                        )
                    except MessageRefusedError as error:
                        self._problem(record, error)
                    else:
                        self.by_qmgr[name] += 1
        return self.by_qmgr.total() - before

    def _placed(self, batch: list[CaptureRecord]) -> Iterator[tuple[str, CaptureRecord, CapturedMessage]]:
        for record in batch:
            if record.message is None:
                self.problems += 1
                self._console.warn(str(record.problem))
                continue
            try:
                yield share_of(record.message, self._shares).qmgr, record, record.message
            except QPubSubError as error:
                self._problem(record, error)

    def _problem(self, record: CaptureRecord, error: QPubSubError) -> None:
        self.problems += 1
        self._console.warn(f"{record.source}, record {record.index + 1}: {error}")

    def _store(self, name: str) -> QueueManagerStore:
        if name not in self._stores:
            self._stores[name] = self.open.enter_context(QueueManagerStore.open(self._home, name))
        return self._stores[name]
