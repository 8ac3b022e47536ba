"""``qpubsub shares``: several bridges share one workload."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import click

from commands.broker.objects import QueueManager
from commands.broker.reading import natural_queue
from commands.config.home import Home
from commands.disk.errors import MessageRefusedError
from commands.options.captures import Captures
from commands.options.queue_manager import HOME, batches, user_of
from commands.options.verb import verb
from commands.qmgr.store import QueueManagerStore
from commands.qmgr.store.opening import directory_of, is_there
from commands.running.lease import instances
from commands.running.shares_file import NoShareError, Share, Shares, read_shares, share_of
from commands.running.sharing import Membership, SharingBridge, present
from commands.running.status import status_of
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.errors import QPubSubError

_APPLICATION: Final = "qpubsub shares"
_ACTIONS: Final = ("create", "run", "status", "where", "put")


@verb(
    "qpubsub shares create shares.toml",
    "qpubsub shares run shares.toml",
    "qpubsub shares run shares.toml -- --durability normal",
    "qpubsub shares status shares.toml",
    "qpubsub shares where shares.toml SPORT.STREAM",
    "qpubsub shares put shares.toml capture.jsonl",
    exit_codes={1: "put: some messages could not be read or put; status: nobody works for a share"},
)
@click.argument("action", type=click.Choice(_ACTIONS), metavar="|".join(_ACTIONS))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[WORD]...")
@HOME
@click.option(
    "--lease",
    type=click.FloatRange(min=0.5),
    default=3.0,
    show_default=True,
    help="run: seconds without a sign of life after which other bridges count this one no more.",
)
@click.option("--json", "as_json", is_flag=True, help="status, where, put: print one JSON object.")
@click.pass_obj
def command(
    console: Console, action: str, file: Path, words: tuple[str, ...], home: Home, lease: float, as_json: bool
) -> ExitCode:
    """Share one workload among several bridges: each works for some of the queue managers that FILE names.

    create makes the queue managers that are not there. run is one bridge; start as many as you like. Each takes its
    part of the shares, and when one ends, in any way, the others take its shares over. WORDs behind -- are options of
    run for each share.

    status shows which bridge works for which share. where prints the queue manager that has each queue WORD. put puts
    the captured messages in each file WORD on the queues of their capture, each in the share that has its queue.
    """
    shares = read_shares(file)
    if words and action in ("create", "status"):
        raise click.UsageError(f"shares {action} takes no {words[0]}")
    if action == "create":
        return _create(console, shares, home)
    _require_made(shares, home, file)
    if action == "run":
        return _run(console, shares, home, lease, words)
    if action == "status":
        return _status(console, shares, home, as_json)
    if not words:
        raise click.UsageError(f"shares {action} needs {'the name of a queue' if action == 'where' else 'a capture'}")
    if action == "where":
        return _where(console, shares, words, as_json)
    return _put(console, shares, home, tuple(map(Path, words)), as_json)


def _is_made(home: Home, share: Share) -> bool:
    return is_there(home, share.qmgr)


def _require_made(shares: Shares, home: Home, file: Path) -> None:
    missing = [share.qmgr for share in shares.shares if not _is_made(home, share)]
    if missing:
        how = f"make what is missing with: qpubsub shares create {file} --home {home}"
        raise click.UsageError(f"there is no queue manager {', '.join(missing)} in {home}; {how}")


def _create(console: Console, shares: Shares, home: Home) -> ExitCode:
    for share in shares.shares:
        if _is_made(home, share):
            console.say(f"queue manager {share.qmgr} is there already")
            continue
        with QueueManagerStore.create(home, QueueManager(share.qmgr)) as store:
            console.say(f"queue manager {share.qmgr} created in {store.directory}")
    return ExitCode.DONE


def _run(console: Console, shares: Shares, home: Home, lease_s: float, options: tuple[str, ...]) -> ExitCode:
    given = {word.partition("=")[0] for word in options}
    own = given & {"-m", "--qmgr", "--home", "--once", "--standby", "--config"}
    if own:
        raise click.UsageError(f"{', '.join(sorted(own))}: shares run gives these to run itself, or cannot use them")
    stop = threading.Event()
    membership = Membership(home, shares.name, lease_s)
    try:
        console.say(f"bridge for {shares.name}, {counted(len(shares.shares), 'share')}; stop with Ctrl-C")
        with stopping(stop):
            serve = partial(_served, console, home, options)
            SharingBridge(home, shares.shares, membership, serve, console.say).run(stop)
    finally:
        membership.leave()
    return ExitCode.DONE


def _served(console: Console, home: Home, options: tuple[str, ...], share: Share, as_standby: bool) -> int:
    """Work for *share*, in the process of a bridge's child: as ``qpubsub run`` does."""
    from commands.cli import main  # noqa: PLC0415 - the group knows this verb

    words = ["run", "-m", share.qmgr, "--home", str(home), *options]
    if share.config is not None:
        words += ["--config", str(share.config)]
    if as_standby:
        words.append("--standby")
    try:
        main(words, obj=console)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else ExitCode.INTERNAL
    return ExitCode.DONE


def _status(console: Console, shares: Shares, home: Home, as_json: bool) -> ExitCode:
    bridges = present(home, shares.name)
    by_run = {pid: bridge.pid for bridge in bridges for pid in bridge.shares.values()}
    rows = [_row(home, share, by_run) for share in shares.shares]
    if as_json:
        about = {"name": shares.name, "bridges": [bridge.pid for bridge in bridges], "shares": rows}
        console.data(json.dumps(about))
    else:
        console.data(f"{shares.name}: {counted(len(rows), 'share')}, {counted(len(bridges), 'bridge')}")
        console.data("")
        width = max(len("share"), *(len(row["qmgr"]) for row in rows))
        console.data(f"{'share':<{width}}   bridge  process  waiting  queues")
        for row in rows:
            held = f"{row['bridge'] or '-':>7}  {row['process'] or '-':>7}  {row['waiting']:>7}"
            console.data(f"{row['qmgr']:<{width}}  {held}  {' '.join(row['queues'])}")
    idle = [row["qmgr"] for row in rows if row["process"] is None]
    if idle:
        console.warn(f"nobody works for {', '.join(idle)}: start a bridge with qpubsub shares run")
    return ExitCode.PROBLEMS if idle else ExitCode.DONE


def _row(home: Home, share: Share, by_run: dict[int, int]) -> dict[str, Any]:
    """One share. bridge: None where none works for it, or a ``run`` that no bridge has started does."""
    active = [each for each in instances(directory_of(home, share.qmgr)) if each["mode"] == "active"]
    process = active[0]["pid"] if active else None
    with QueueManagerStore.open(home, share.qmgr) as store:
        waiting = status_of(store, datetime.now(UTC))["input"]["waiting"]
    return {
        "qmgr": share.qmgr,
        "bridge": None if process is None else by_run.get(process),
        "process": process,
        "epoch": active[0]["epoch"] if active else None,
        "waiting": waiting,
        "queues": list(share.queues),
    }


def _where(console: Console, shares: Shares, queues: tuple[str, ...], as_json: bool) -> ExitCode:
    found = {queue: shares.of_queue(queue) for queue in queues}
    missing = [queue for queue, share in found.items() if share is None]
    if missing:
        raise NoShareError(" or ".join(missing))
    places = {queue: share.qmgr for queue, share in found.items() if share is not None}
    for line in [json.dumps(places)] if as_json else places.values():
        console.data(line)
    return ExitCode.DONE


def _put(console: Console, shares: Shares, home: Home, files: tuple[Path, ...], as_json: bool) -> ExitCode:
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
        console.data(json.dumps({"put": dict(sorted(putting.by_qmgr.items())), "problems": putting.problems}))
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
