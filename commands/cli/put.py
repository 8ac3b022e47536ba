"""``qpubsub put``: captured messages onto a queue."""

from __future__ import annotations

import getpass
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from commands.broker.objects import TEMPORARY, is_object_name
from commands.cli.options.captures import capture_files, records
from commands.cli.options.queue_manager import queue_manager
from commands.headers.qmgr_renaming import other_qmgr, renamed
from commands.qmgr.store import MessageRefusedError, QueueError, QueueManagerStore, UnitOfWork
from commands.terminal.console import Console, ExitCode
from rfh2.captured import CapturedMessage
from rfh2.captures import CaptureRecord
from rfh2.mqmd import name_of

_BATCH_MESSAGES: Final = 1_000
_BATCH_BYTES: Final = 16 * 1024 * 1024
_APPLICATION: Final = "qpubsub put"
_DYNAMIC: Final = "Make a queue of this name from the model queue QUEUE, and put there; * at its end becomes unique."


@click.command(epilog="\b\nExample:\n  qpubsub put -m QM1 SYSTEM.BROKER.CONTROL.QUEUE capture.jsonl")
@queue_manager
@click.argument("queue")
@click.option(
    "--as",
    "as_qmgr",
    metavar="QMGR",
    help="Put the messages as those of this queue manager: ReplyToQMgr and QMgrName are renamed to it.",
)
@click.option("--dynamic", metavar="NAME", help=_DYNAMIC)
@capture_files
@click.pass_obj
def command(
    console: Console,
    *,
    qmgr: str,
    home: Path,
    form: str,
    queue: str,
    files: tuple[Path, ...],
    as_qmgr: str | None,
    dynamic: str | None,
) -> ExitCode:
    """Put the captured messages in FILEs, or on stdin, on QUEUE, whichever queue they were captured from.

    A descriptor is kept as it was captured; what it leaves blank, and the time of arrival, are as for any new message.
    What cannot be read or put is reported, and the rest is put. Messages of another queue manager are put and counted
    in a warning: their answers go there, through a transmission queue. With --as they are renamed.

    With --dynamic QUEUE is a model queue of permanent dynamic queues: one is made, and its name printed on stderr. What
    is put on an alias of a topic object is published on its topic.
    """
    if as_qmgr is not None and not is_object_name(as_qmgr):
        raise click.UsageError(f"--as {as_qmgr}: no queue manager can have this name")
    with QueueManagerStore.open(home, qmgr) as store:
        if dynamic is not None:
            queue = _made(console, store, queue, dynamic)
        putting = _Putting(console, store, queue, as_qmgr)
        with console.progress("messages put") as advance:
            try:
                for batch in _batches(records(files, form)):
                    advance(putting.put_all(batch))
            except Exception as error:
                if putting.done:
                    error.add_note(f"{putting.done} messages were put on {queue} before")
                raise
        console.say(f"{putting.done} messages put on {queue}")
        if putting.problems:
            console.warn(f"{putting.problems} could not be put")
        for name, count in putting.others.most_common():
            console.warn(
                f"{count} of the messages name queue manager {name}, not {qmgr}: replies and publications for them go "
                f"to transmission queue {name}. To have them here, put them with --as {qmgr}"
            )
        return ExitCode.PROBLEMS if putting.problems or putting.others else ExitCode.DONE


def _made(console: Console, store: QueueManagerStore, model: str, name: str) -> str:
    """The name of the queue that opening *model* makes, and that stays."""
    found = store.load_state()[0].models.get(model)
    if found is None or found.definition_type == TEMPORARY:
        why = "it makes temporary queues, which would go with this command" if found else "it is not a model queue"
        raise click.UsageError(f"--dynamic {name}: {model}: {why}")
    with store.connect() as connection:
        made = connection.open(model, name).name
    console.say(f"dynamic queue {made}")
    return made


class _Putting:
    """One run of the verb. done: how many messages were put and committed. problems: how many could not be.

    others: of those put, how many name each other queue manager.
    """

    def __init__(self, console: Console, store: QueueManagerStore, queue: str, as_qmgr: str | None) -> None:
        self.console, self.store, self.queue, self.as_qmgr = console, store, queue, as_qmgr
        self.done = self.problems = 0
        self.others: Counter[str] = Counter()

    def put_all(self, batch: list[CaptureRecord]) -> int:
        """Put *batch* in one unit of work; returns how many. What a queue took before it refused more is kept."""
        put, refusal = 0, None
        with self.store.unit_of_work() as unit:
            for record in batch:
                try:
                    put += self._put(unit, record)
                except QueueError as error:
                    refusal = error
                    break
        self.done += put
        if refusal is not None:
            raise refusal
        return put

    def _put(self, unit: UnitOfWork, record: CaptureRecord) -> bool:
        message = record.message
        if message is None:
            self.problems += 1
            self.console.warn(str(record.problem))
            return False
        other = None
        if self.as_qmgr is not None:
            message = renamed(message, self.as_qmgr)
        else:
            other = other_qmgr(message, self.store.name)
        try:
            unit.put(self.queue, message.md, message.body, user=_user(message), application=_APPLICATION)
        except MessageRefusedError as error:
            self.problems += 1
            self.console.warn(f"{record.source}, record {record.index + 1}: {error}")
            return False
        if other is not None:
            self.others[other] += 1
        return True


def _batches(found: Iterable[CaptureRecord]) -> Iterator[list[CaptureRecord]]:
    # Read before the unit of work begins: a slow reader must not keep other processes from the queues.
    batch: list[CaptureRecord] = []
    size = 0
    for record in found:
        batch.append(record)
        size += 0 if record.message is None else len(record.message.body_hex) // 2
        if len(batch) >= _BATCH_MESSAGES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _user(message: CapturedMessage) -> str | None:
    """Who puts: the user captured, else the MQMD's (None), else whoever calls this program."""
    if message.user is not None:
        return message.user
    descriptor = message.descriptor()
    if descriptor is not None and name_of(descriptor.user_identifier):
        return None
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
