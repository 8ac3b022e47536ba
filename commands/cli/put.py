"""``qpubsub put``: captured messages onto a queue."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Final

import click

from commands.broker.objects import TEMPORARY, is_object_name
from commands.broker.reading import natural_queue
from commands.config.home import Home
from commands.config.urls import is_mq_address
from commands.explain.selection import MessageSelection
from commands.headers.registry import other_qmgr, renamed
from commands.links.ibmmq.manager import MqMessages
from commands.links.ibmmq.unit import MqUnit
from commands.options.captures import Captures, capture_files, selection_options
from commands.options.queue_manager import batches, complete_queue, queue_manager_or_remote, user_of
from commands.options.remote import messages_at, refuse
from commands.options.verb import json_option, verb
from commands.qmgr.store import MessageRefusedError, QueueError, QueueManagerStore, UnitOfWork
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.captures import CaptureRecord

_APPLICATION: Final = "qpubsub put"
_DYNAMIC: Final = (
    "Make a queue of this name from the model queue QUEUE; digits that no other queue has replace a * at its end."
)


@verb(
    "qpubsub put -m QM1 SYSTEM.BROKER.CONTROL.QUEUE capture.jsonl",
    "qpubsub put -m QM1 --as-captured --as QM1 capture.jsonl",
    "qpubsub put -m 'mq://app@mq.example.com/QM1?channel=APP.SVRCONN' ORDERS capture.jsonl",
    "qpubsub put -m QM1 --as-captured --where \"command = 'RegSub'\" capture.jsonl",
    exit_codes={1: "some messages could not be read or put, or they name another queue manager"},
)
@queue_manager_or_remote
@click.option("--as-captured", is_flag=True, help="Put each message on the queue of its capture; give no QUEUE.")
@click.option(
    "--as",
    "as_qmgr",
    metavar="QMGR",
    help="Rename the queue manager of the capture to QMGR, in ReplyToQMgr and in QMgrName.",
)
@click.option("--dynamic", metavar="NAME", help=_DYNAMIC)
@json_option
@selection_options()
@click.argument("queue", required=False, metavar="QUEUE", shell_complete=complete_queue)
@capture_files
@click.pass_obj
def command(
    console: Console,
    *,
    qmgr: str,
    home: Home,
    form: str,
    queue: str | None,
    files: tuple[Path, ...],
    as_captured: bool,
    as_qmgr: str | None,
    dynamic: str | None,
    as_json: bool,
    selection: MessageSelection,
) -> ExitCode:
    """Put the captured messages in each FILE, or on standard input, on QUEUE.

    put keeps each descriptor as it was captured. Blank fields, and the time of arrival, are set as for a new message.
    put reports the messages that it cannot read or put, and puts the others. If messages name another queue manager,
    put puts them, warns, and ends with exit code 1: replies and publications for them go to a transmission queue.
    --as QMGR renames that queue manager.

    With --dynamic, QUEUE is a model queue of permanent dynamic queues: put makes one, and prints its name on stderr. If
    QUEUE is an alias of a topic object, put publishes the messages on its topic.
    """
    if as_qmgr is not None and not is_object_name(as_qmgr):
        raise click.UsageError(f"--as {as_qmgr}: no queue manager can have this name")
    if as_captured and queue is not None:
        # The first argument is a file then, as the others are.
        files, queue = (Path(queue), *files), None
    if not as_captured and not queue:
        raise click.UsageError("Missing argument 'QUEUE'; or give --as-captured.")
    default_queue = natural_queue if as_captured else ""
    captures = Captures(console, files, form, default_queue=default_queue, selection=selection)
    with _opened(home, qmgr, dynamic) as store:
        if dynamic is not None and isinstance(store, QueueManagerStore):
            if queue is None:
                raise click.UsageError("--dynamic and --as-captured cannot be used together")
            queue = _made(console, store, queue, dynamic)
        putting = _Putting(console, store, queue, as_qmgr)
        with console.progress("messages put", captures.rows(), captures.share) as advance:
            try:
                for batch in batches(captures.records()):
                    advance(putting.put_all(batch))
            except Exception as error:
                if putting.done:
                    were = "message was" if putting.done == 1 else "messages were"
                    error.add_note(f"{putting.done:,} {were} put on {putting.where} before")
                raise
        made = "; there was no such queue, and it was made" if putting.made() else ""
        console.say(f"{counted(putting.done, 'message')} put on {putting.where}{made}")
        if putting.problems:
            console.warn(f"{counted(putting.problems, 'message')} could not be put")
        for name, count in putting.others.most_common():
            console.warn(
                f"{count:,} of the messages name queue manager {name}, not {store.name}: replies and publications for "
                f"them go to transmission queue {name}. To have them here, put them with --as {store.name}"
            )
        if as_json:
            console.json(putting.counts())
        return ExitCode.PROBLEMS if putting.problems or putting.others else ExitCode.DONE


def _opened(
    home: Home, qmgr: str, dynamic: str | None
) -> AbstractContextManager[QueueManagerStore] | AbstractContextManager[MqMessages]:
    if not is_mq_address(qmgr):
        return QueueManagerStore.open(home, qmgr)
    refuse({"--dynamic": dynamic})
    return closing(messages_at(qmgr, _APPLICATION))


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

    queue: where they are put; None is where each was captured. others: of those put, how many name each other queue
    manager. by_queue: how many were put on each queue.
    """

    def __init__(
        self, console: Console, store: QueueManagerStore | MqMessages, queue: str | None, as_qmgr: str | None
    ) -> None:
        self.console, self.store, self.queue, self.as_qmgr = console, store, queue, as_qmgr
        self.done = self.problems = 0
        self.others: Counter[str] = Counter()
        self.by_queue: Counter[str] = Counter()
        self._was_there = self._is_there()

    def made(self) -> bool:
        """Whether the queue is there because of these messages: its name may be mistyped."""
        return not self._was_there and self._is_there()

    def _is_there(self) -> bool:
        if self.queue is None or not isinstance(self.store, QueueManagerStore):
            return True
        return self.store.find_queue(self.queue) is not None

    @property
    def where(self) -> str:
        """The queue that the messages were put on, or how many there are."""
        if self.queue is not None:
            return self.queue
        return next(iter(self.by_queue)) if len(self.by_queue) == 1 else counted(len(self.by_queue), "queue")

    def counts(self) -> dict[str, object]:
        """For programs."""
        return {
            "qmgr": self.store.name,
            "put": self.done,
            "queues": dict(sorted(self.by_queue.items())),
            "problems": self.problems,
            "other_queue_managers": dict(self.others),
        }

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

    def _put(self, unit: UnitOfWork | MqUnit, record: CaptureRecord) -> bool:
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
        queue = self.queue or message.queue
        try:
            unit.put(queue, message.md, message.body, user=user_of(message), application=_APPLICATION)
        except MessageRefusedError as error:
            self.problems += 1
            self.console.warn(f"{record.source}, record {record.index + 1}: {error}")
            return False
        self.by_queue[queue] += 1
        if other is not None:
            self.others[other] += 1
        return True
