"""``qpubsub why``: for each publication and each subscriber, delivered or the rule that kept it back."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, cast

import click

from commands.broker.objects import DEFAULT_STREAM
from commands.config.home import Home
from commands.config.settings import PublishExitConfig
from commands.explain.selection import MessageSelection, SeqRanges
from commands.explain.why import Asked, Verdict
from commands.explain.why.verdict import Summary, lines_of, lines_of_each, subscription_words
from commands.options import replays
from commands.options.captures import SEQ_RANGES, format_option, selection_options
from commands.options.queue_manager import complete_queue, only_queue_manager, queue_manager_or_none, typed_property
from commands.options.rows import RowForm, row_options
from commands.options.verb import PATH_OR_DASH, given_on_the_line, verb
from commands.qmgr.store import QueueManagerStore
from commands.replay.network.why import LocalWhy, NetworkWhy
from commands.running.publish_exits import publish_exits
from commands.running.subscriber import Received, Subscriber
from commands.running.why import LiveWhy, MadeUp
from commands.terminal.console import Console, ExitCode, harmless_data
from commands.terminal.stopping import stopping
from commands.terminal.users import current_user, groups_of
from rfh2.captured import CapturedMessage

_IN_MEMORY: Final = 8 * 1024 * 1024
_AT_ONCE: Final = 1024 * 1024
_LINES: Final = 256
_FAREWELL_S: Final = 5
_COLUMNS: Final = ("seq", "topic", "queue", "sub_name", "delivered", "reason", "detail")

Line = Callable[[Verdict], str]
"""An answer as a line, where a person wants each: of JSON, of CSV, or as ``--line`` says."""


@verb(
    "qpubsub why --input captures/ --setup streams.mqsc",
    "qpubsub why --input capture.jsonl BOARD --topic Sport/Soccer",
    "qpubsub why --input capture.jsonl --seq 12 --json",
    "qpubsub why --network estate.toml --input captures/ BOARD",
    "qpubsub why --input capture.jsonl BOARD --since 2009-01-28T09:00 --until 2009-01-28T10:00",
    "qpubsub why -m QM1 BOARD --publish Sport/Soccer --property Colour=red",
    prints=True,
    former={"--count": "--limit"},
    exit_codes={0: "everything is delivered or explained", 1: "some records could not be read"},
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=PATH_OR_DASH,
    metavar="FILE|-",
    help="A capture, or a directory of captures; - is standard input.",
)
@format_option
@replays.semantics_option()
@replays.setup_option()
@replays.exit_option
@replays.network_option("Explain the queue managers of this estate.toml as one network.")
@queue_manager_or_none("")
@click.option(
    "--publish", metavar="TOPIC", help="With -m: explain who would receive a publication on TOPIC (a dry run)."
)
@click.option("--data", metavar="TEXT", help="The data of this publication.")
@click.option("--property", "properties", multiple=True, metavar="NAME[:TYPE]=VALUE", help="A property of it.")
@click.option("--stream", metavar="QUEUE", help=f"Its stream queue. The default is {DEFAULT_STREAM}.")
@click.option("--follow", is_flag=True, help="With -m: explain each publication as it is made, until Ctrl-C.")
@click.option("--topic", metavar="TOPIC", help="Only publications on TOPIC, which may have the wildcards # and +.")
@click.option(
    "--seq", type=SEQ_RANGES, metavar="N|N-M", help="Only the messages with these numbers: 7, or 3,10-20,500-."
)
@click.option("--sub", metavar="NAME", help="Only the subscription with this name.")
@selection_options("Explain only", with_seq=False, limit="; with --follow, the first N publications")
@row_options(_COLUMNS)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each answer.")
@click.argument("queue", required=False, shell_complete=complete_queue)
@click.pass_obj
def command(
    console: Console,
    inputs: tuple[Path, ...],
    form: str,
    semantics: str,
    setup: Path | None,
    exit_config: PublishExitConfig | None,
    network: Path | None,
    qmgr: str | None,
    home: Home,
    publish: str | None,
    data: str | None,
    properties: tuple[str, ...],
    stream: str | None,
    follow: bool,
    topic: str | None,
    seq: SeqRanges | None,
    sub: str | None,
    selection: MessageSelection,
    rows: RowForm | None,
    as_json: bool,
    queue: str | None,
) -> ExitCode:
    """Explain for each subscriber QUEUE, or for this one, which publications it got, and which rule kept others back.

    With --input, why replays the capture. It prints an answer for each publication that a subscriber got or might have
    expected, also if the topics differ in spelling, wildcard scheme or stream only, or if the subscription had ended or
    was refused. Without --json, --csv and --line it adds the answers up by queue and reason.

    --where, --since, --until, --seq and --limit choose the messages that are explained. All messages are replayed
    anyway, because the result of one depends on those before it.

    With --network, an answer names the queue manager that kept a publication back: by scope, a cluster or a stream.

    With -m, it says what keeps publications from each subscription at present; with --publish, who would get a
    publication. Neither changes the queue manager. With --follow it subscribes to all topics on a temporary
    dynamic queue, as qpubsub sub does.
    """
    line: Line | None = partial(_row, rows) if rows is not None else Verdict.json_line if as_json else None
    number = None if seq is None else seq.only
    asked = Asked(queue, topic, sub, number)
    if number is None:
        selection = replace(selection, seqs=seq)
    about = (publish, data, stream)
    if inputs:
        if follow or properties or about != (None, None, None):
            raise click.UsageError("--publish and --follow, and their options, need -m QMGR")
        if qmgr is not None and given_on_the_line("qmgr"):
            raise click.UsageError("give --input or -m QMGR, not both")
        script = setup.read_text(encoding="utf-8") if setup is not None else ""
        options = replays.ReplayOptions(inputs, form, "local", None, semantics, script)
        return _of_capture(console, options, asked, selection, line, exit_config, network)
    if setup is not None or semantics != "v7" or exit_config is not None or network is not None:
        raise click.UsageError("--setup, --semantics, --exit and --network need --input FILE")
    if follow:
        count, selection = selection.limit, replace(selection, limit=None)
    if seq is not None or not selection.is_all:
        raise click.UsageError("--where, --since, --until, --seq and, without --follow, --limit need --input FILE")
    if publish is not None and follow:
        raise click.UsageError("give --publish or --follow, not both")
    if publish is None and (data is not None or stream is not None or properties):
        raise click.UsageError("--data, --property and --stream need --publish TOPIC")
    if qmgr is None and queue is not None and Path(queue).exists():
        raise click.UsageError(f"{queue} is a file; to explain a capture: qpubsub why --input {queue}")
    if qmgr is None:
        qmgr = only_queue_manager(click.get_current_context(), home)
    with QueueManagerStore.open(home, qmgr) as store:
        why = LiveWhy(store, groups_of, asked)
        if follow:
            return _follow(console, store, why, count, line or _line)
        if publish is not None:
            usr = dict(typed_property("--property", text) for text in properties)
            made_up = MadeUp(publish, data or "", stream or DEFAULT_STREAM, usr, current_user())
            found: Iterable[Verdict] = why.publication(made_up)
        else:
            found = why.present()
        for text in lines_of_each(found, publication=publish is not None) if line is None else map(line, found):
            console.data(text)
    return ExitCode.DONE


def _of_capture(
    console: Console,
    options: replays.ReplayOptions,
    asked: Asked,
    selection: MessageSelection,
    line: Line | None,
    exit_config: PublishExitConfig | None,
    network: Path | None,
) -> ExitCode:
    if network is not None and (given_on_the_line("semantics") or exit_config is not None):
        raise click.UsageError("--network cannot be used with --exit, nor with --semantics, which estate.toml gives")
    reader = replays.CaptureReader(console, options)

    def explained(messages: Iterable[CapturedMessage]) -> None:
        answers = _Sums() if line is None else _Lines(line)
        with publish_exits(exit_config) as exit_of, reader.progress("messages explained") as advance:
            why: LocalWhy | NetworkWhy = LocalWhy(options.setup, options.semantics, asked, selection, exit_of)
            if network is not None:
                why = NetworkWhy(replays.network_setup(network, options.setup), asked, selection)
            for message in messages:
                why.unread = reader.problems
                for verdict in why.take(message):
                    answers.add(verdict)
                advance(1)
                if why.is_over:
                    break
            why.unread = reader.problems
            for verdict in why.end():
                answers.add(verdict)
        answers.show(console)

    reader.in_order(explained)
    return ExitCode.PROBLEMS if reader.problems else ExitCode.DONE


def _follow(console: Console, store: QueueManagerStore, why: LiveWhy, count: int | None, line: Line) -> ExitCode:
    """Explain publications until Ctrl-C, or until *count* of them."""
    stop, done = threading.Event(), 0
    with store.connect() as connection, stopping(stop):
        if not store.has_processor():
            console.warn(f"no processor is running: nothing is published until qpubsub run -m {store.name} is started")
        subscriber = Subscriber(
            store, connection, why.all_topics(), user=current_user(), application="qpubsub why", retained=False
        )

        def explain(publication: Received) -> None:
            nonlocal done
            for topic in publication.topics:
                for verdict in why.received(topic, publication.text or "", publication.properties, subscriber.queue):
                    console.data(line(verdict))
            done += 1

        why.settle(why.depths())
        subscriber.register(None, stop)
        if not stop.is_set():
            console.say("explaining each publication; Ctrl-C ends it")
        while not stop.is_set() and done != count:
            depths = why.depths()
            if not subscriber.take(explain, console.flush, None if count is None else count - done):
                # All publications that these depths count were explained.
                why.settle(depths)
                subscriber.wait()
        subscriber.deregister(_FAREWELL_S if store.has_processor() else 0, threading.Event())
    return ExitCode.DONE


def _line(verdict: Verdict) -> str:
    queue = verdict.queue or "(no subscriber)"
    what = ": ".join(filter(None, (subscription_words(verdict), verdict.detail)))
    return "\t".join(filter(None, (verdict.topic or "", queue, verdict.reason.value, what)))


def _row(rows: RowForm, verdict: Verdict) -> str:
    return rows.text(verdict.form())


class _Sums:
    def __init__(self) -> None:
        self._summary = Summary()

    def add(self, verdict: Verdict) -> None:
        self._summary.add(verdict)

    def show(self, console: Console) -> None:
        for line in lines_of(self._summary):
            console.data(line)


class _Lines:
    """Answers, a line each. They wait until the whole capture has proved to be in order, on disk if they are many."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._file = cast(BinaryIO, tempfile.SpooledTemporaryFile(_IN_MEMORY))  # noqa: SIM115 - closed when shown
        self._lines: list[str] = []

    def add(self, verdict: Verdict) -> None:
        self._lines.append(self._line(verdict))
        if len(self._lines) == _LINES:
            self._keep()

    def show(self, console: Console) -> None:
        self._keep()
        with self._file as file:
            file.seek(0)
            while data := file.read(_AT_ONCE):
                console.harmless(data)

    def _keep(self) -> None:
        self._file.write(harmless_data(self._lines))
        self._lines.clear()
