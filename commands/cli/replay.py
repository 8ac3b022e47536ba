"""``qpubsub replay``: captured commands through the bridge, without a queue manager."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from commands.broker.context import SETUP, not_read
from commands.broker.puts import PutKind
from commands.config.settings import PublishExitConfig
from commands.config.urls import parse_topic_address
from commands.explain.selection import MessageSelection, Where
from commands.options import replays
from commands.options.captures import STDIN, WHERE, selection_options
from commands.options.local_replay import LocalRun
from commands.options.verb import DIRECTORY, PATH_OR_DASH, given_on_the_line, verb
from commands.replay.local import ReplayCounts
from commands.replay.network.local import network_problems
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from commands.replay.spark.engine import Done
    from commands.replay.spark.following import Batch, Following

_LOOK_S: Final = 1
_NAP_S: Final = 0.1


@verb(
    "qpubsub replay capture.jsonl --output puts.jsonl --transcript",
    "qpubsub replay capture.jsonl | jq -r .queue",
    "qpubsub replay --network estate.toml captures/ --transcript",
    "qpubsub replay --transcript --where \"topic like 'Sport/%'\" capture.jsonl",
    'qpubsub replay --step --break "reason = 3072" --index capture.steps capture.jsonl',
    "qpubsub replay --engine spark captures/ --output puts.parquet",
    "qpubsub replay --engine spark --follow --checkpoint place/ arriving/ --output puts.jsonl",
    "qpubsub replay --engine spark --follow --checkpoint place/ kafka://broker/qm1.capture --output puts.jsonl",
    former={"--tell": "--transcript"},
    exit_codes={1: "there were dead letters, or records could not be read"},
)
@replays.replay_options()
@selection_options("Write only the results of")
@click.option(
    "-o",
    "--output",
    "target",
    type=PATH_OR_DASH,
    metavar="FILE|-",
    help="Write the puts to FILE; its name ends in .jsonl or .parquet. With Spark it is a directory. The default is "
    "stdout, as JSON Lines, or nothing with --transcript. With --checkpoint the name can end in .delta: a Delta table.",
)
@click.option("--transcript", is_flag=True, help="Print the result of each command, and who received what.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object; needs --output FILE.")
@click.option("--step", is_flag=True, help="Step through the messages on a terminal, forwards and backwards.")
@click.option(
    "--break",
    "breakpoints",
    type=WHERE,
    multiple=True,
    metavar="CONDITION",
    help='With --step: stop where this is true: "reason = 3072". You can repeat it.',
)
@replays.index_option
@replays.exit_option
@replays.jobs_option
@replays.network_option(
    "Replay the queue managers of this estate.toml as one network, with proxy subscriptions and scope."
)
@click.option(
    "--checkpoint",
    type=DIRECTORY,
    metavar="DIRECTORY",
    help="With Spark: replay only the messages that are new in FILE. DIRECTORY keeps the position of the last run.",
)
@click.option("--follow", is_flag=True, help="With --checkpoint: do not end; wait for more files.")
@click.option(
    "--hold",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="With --checkpoint: process a message after a message has arrived whose seq is higher by N.",
)
@click.option(
    "--idle",
    "idle_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With --hold and --follow: also process held messages when nothing has arrived for this time.",
)
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    options: replays.ReplayOptions,
    selection: MessageSelection,
    target: Path | None,
    transcript: bool,
    as_json: bool,
    step: bool,
    breakpoints: tuple[Where, ...],
    index: Path | None,
    exit_config: PublishExitConfig | None,
    jobs: int | None,
    network: Path | None,
    checkpoint: Path | None,
    follow: bool,
    hold: int,
    idle_s: float | None,
) -> ExitCode:
    """Replay the captured messages in each FILE, or on standard input, in the order of seq, and write every put.

    With --network, each message is processed at the queue manager that it names, and publications go on to the others
    as hierarchies and clusters connect them. The estate says the semantics of each.

    The time is that of the messages, and identifiers are derived from seq, so that two replays are equal byte for
    byte. A message that cannot be decoded becomes a dead letter. replay leaves out messages on queues that a broker
    does not read, and says how many. On Spark, the output is a directory of files in the order of seq, and a replay
    that was interrupted continues. With --checkpoint, replay processes files when they are moved into the directory
    FILE, or the new records of the topic if FILE is kafka://host:9092/TOPIC (see capture --out), and writes each batch
    of puts to a directory of its own. If it is killed and started again, no put is lost or written twice.

    --where, --since, --until, --seq and --limit choose whose puts are written, shown and counted. All messages are
    replayed anyway, because the result of one depends on those before it.
    """
    options.check(selection)
    _check_topic(options, checkpoint)
    _check_network(network, step or checkpoint is not None, options.on_spark and not selection.is_all)
    if exit_config is not None and (step or options.on_spark or network is not None):
        raise click.UsageError("--exit cannot be used with --engine spark, --step and --network")
    if options.on_spark and checkpoint is None and (transcript or jobs is not None):
        raise click.UsageError("--transcript and --jobs cannot be used with --engine spark")
    if step:
        if target is not None or transcript or as_json or options.on_spark or checkpoint or not selection.is_all:
            raise click.UsageError("--step can be used with --setup, --semantics, --break, --index and --format only")
        return _step(console, options, breakpoints, index)
    if breakpoints or index is not None:
        raise click.UsageError("--break and --index need --step")
    to_stdout = target is None or target == STDIN
    if as_json and to_stdout:
        raise click.UsageError("--json prints the counts: --output FILE has to say where the puts go")
    if transcript and target == STDIN:
        raise click.UsageError("--transcript and --output - would be mixed on stdout: give --output a FILE")
    if to_stdout and (options.on_spark or checkpoint is not None):
        raise click.UsageError("--engine spark needs --output FILE: it writes a directory")
    if target is not None and not to_stdout:
        replays.check_suffix(target, *((".delta",) if checkpoint is not None else ()))
    if checkpoint is not None:
        if not selection.is_all:
            raise click.UsageError("--checkpoint cannot be used with --where, --since, --until, --seq and --limit")
        if not options.on_spark or transcript:
            raise click.UsageError("--checkpoint needs --engine spark, and cannot be used with --transcript")
        if idle_s is not None and not (hold and follow):
            raise click.UsageError("--idle needs --hold and --follow")
        assert target is not None
        return _continuous(console, options, target, checkpoint, follow=follow, hold=hold, idle_s=idle_s)
    if follow or hold or idle_s is not None:
        raise click.UsageError("--follow, --hold and --idle need --checkpoint")
    if not options.on_spark:
        where = None if to_stdout else target
        run = LocalRun(console, options, selection, where, exit_config, network, transcript, jobs)
        return _sum_up(console, *run.run(), where, as_json=as_json)
    assert target is not None
    return _on_spark(console, options, selection, target, network, as_json=as_json)


def _step(
    console: Console, options: replays.ReplayOptions, breakpoints: tuple[Where, ...], index: Path | None
) -> ExitCode:
    """Show the replay on the terminal until the person ends it."""
    with replays.importing(replays.TEXTUAL_MISSING):
        from commands.replay.step.app import StepApp  # noqa: PLC0415 - textual is an extra, and slow to load
    if not (console.stdout.isatty() and console.stdin.isatty()):
        raise click.UsageError("--step needs a terminal, and the capture in a file; qpubsub inspect prints the same")
    reader = replays.CaptureReader(console, options)
    with replays.timeline(console, reader, options, index) as line:
        StepApp(line, options.label, breakpoints).run()
    return ExitCode.PROBLEMS if reader.problems else ExitCode.DONE


def _check_topic(options: replays.ReplayOptions, checkpoint: Path | None) -> None:
    """Raises UsageError for a topic of Kafka that is not read continuously."""
    if options.topic is not None and not (options.on_spark and checkpoint is not None):
        raise click.UsageError(f"{options.topic}: a topic needs --engine spark and --checkpoint")


def _check_network(network: Path | None, in_parts: bool, selects_on_spark: bool) -> None:
    """Raises UsageError for what does not go with --network. in_parts: with --step or --checkpoint."""
    if network is None:
        return
    if in_parts or given_on_the_line("semantics"):
        raise click.UsageError("--network cannot be used with --step, --checkpoint and --semantics")
    if selects_on_spark:
        raise click.UsageError("--network on Spark cannot be used with --where, --since, --until, --seq and --limit")


def _on_spark(
    console: Console,
    options: replays.ReplayOptions,
    selection: MessageSelection,
    target: Path,
    network: Path | None,
    *,
    as_json: bool,
) -> ExitCode:
    if network is not None:
        return _network_on_spark(console, options, target, network, as_json=as_json)
    with replays.importing(replays.SPARK_MISSING):
        from commands.replay.spark.engine import Order, run  # noqa: PLC0415 - Spark is an extra, and slow to load
    order = Order(
        options.source,
        options.form,
        target,
        options.setup,
        options.semantics,
        selection=selection,
        monotonic_clock=options.monotonic_clock,
    )
    order.check()
    with replays.spark_session(options) as spark, console.progress("messages replayed") as advance:
        done = run(spark, order, advance, console.say)
    return _shown(console, done, target, as_json=as_json)


def _network_on_spark(
    console: Console, options: replays.ReplayOptions, target: Path, network: Path, *, as_json: bool
) -> ExitCode:
    with replays.importing(replays.SPARK_MISSING):
        from commands.replay.spark.engine import NetworkOrder, run_network  # noqa: PLC0415 - Spark is an extra
    setup = replays.network_setup(network, options.setup)
    for problem in network_problems(setup.build()):
        console.warn(problem)
    with replays.spark_session(options) as spark:
        done = run_network(spark, NetworkOrder(options.source, options.form, target, setup, options.monotonic_clock))
    return _shown(console, done, target, as_json=as_json)


def _shown(console: Console, done: Done, target: Path, *, as_json: bool) -> ExitCode:
    """Show what a replay on Spark came to."""
    for line in done.problem_texts[: replays.MOST_SHOWN]:
        console.warn(line)
    if len(done.problem_texts) > replays.MOST_SHOWN:
        console.warn(f"and more: {done.problems} records could not be read, {done.undecodable} not decoded")
    return _sum_up(console, done.counts, done.problems, target, as_json=as_json)


def _continuous(
    console: Console,
    options: replays.ReplayOptions,
    target: Path,
    checkpoint: Path,
    *,
    follow: bool,
    hold: int,
    idle_s: float | None,
) -> ExitCode:
    with replays.importing(replays.SPARK_MISSING):
        from commands.replay.spark.following import Following  # noqa: PLC0415 - Spark is an extra, and slow to load
        from commands.replay.spark.source import TopicSource  # noqa: PLC0415
    setup, semantics = options.setup, options.semantics
    source: Path | TopicSource = options.source
    if options.topic is not None:
        address, topic = parse_topic_address(options.topic, "FILE")
        source = TopicSource(",".join(address.hosts), topic, address.secure)
    order = Following(
        source,
        options.form,
        target,
        checkpoint,
        setup,
        semantics,
        hold,
        idle_s,
        monotonic_clock=options.monotonic_clock,
    )
    order.check()
    with replays.spark_session(options) as spark:
        return _follow(console, spark, order, once=not follow)


def _follow(console: Console, spark: SparkSession, following: Following, *, once: bool) -> ExitCode:
    """Run a continuous replay; once: end when what is there now is done. *following* is checked."""
    from commands.replay.spark.following import LATE_FILE, PROBLEM_FILE  # noqa: PLC0415 - Spark is an extra
    from commands.replay.spark.streaming import LATE, PROBLEM  # noqa: PLC0415

    stop = threading.Event()
    kinds: Counter[str] = Counter()
    with stopping(stop), console.progress("puts written") as advance:

        def show(batch: Batch) -> None:
            before = kinds[PROBLEM]
            kinds.update(batch.kinds)
            advance(sum(batch.kinds.values()))
            for line in batch.problem_texts[: max(0, replays.MOST_SHOWN - before)]:
                console.warn(line)

        with following.running(spark, show, once=once) as query:
            if not once:
                console.say(f"waiting for captures in {following.source}; Ctrl-C ends it")
            while not stop.is_set() and not query.awaitTermination(_LOOK_S):
                pass
            interrupted = stop.is_set()
            if interrupted:
                _end_after_batch(console, query, stop)
                # Of a batch that is broken off, which is tried again the next time, Spark would say much.
                with suppress(AttributeError):  # Spark Connect: the server has its own log
                    spark.sparkContext.setLogLevel("OFF")
    target = following.target
    if kinds[PROBLEM]:
        console.warn(f"{kinds[PROBLEM]} records could not be read; see {target}/batch=*/{PROBLEM_FILE}")
    if kinds[LATE]:
        console.warn(
            f"{kinds[LATE]} messages were not replayed, because they came too late or have the seq of another message: "
            f"they are in {target}/batch=*/{LATE_FILE}"
        )
    console.say(f"{_made({kind: kinds[kind] for kind in PutKind})} written to {target}")
    if interrupted:
        console.say("run the same command again to go on from here")
    return ExitCode.PROBLEMS if kinds[PROBLEM] or kinds[LATE] or kinds[PutKind.DEADLETTER] else ExitCode.DONE


def _end_after_batch(console: Console, query: StreamingQuery, stop: threading.Event) -> None:
    """Wait for the end of the batch that is under way; a second signal breaks it off."""
    stop.clear()
    if query.status["isTriggerActive"]:
        console.say("ending after this batch; press Ctrl-C again to end now")
    while query.isActive and query.status["isTriggerActive"] and not stop.wait(_NAP_S):
        pass


def _made(puts: Mapping[PutKind, int]) -> str:
    delivered = counted(puts.get(PutKind.PUBLICATION, 0), "publication delivered", "publications delivered")
    others = ((PutKind.RESPONSE, "response"), (PutKind.DEADLETTER, "dead letter"))
    return ", ".join((delivered, *(counted(puts.get(kind, 0), noun) for kind, noun in others)))


def _sum_up(
    console: Console, counts: ReplayCounts, problems: int, target: Path | None, *, as_json: bool = False
) -> ExitCode:
    for queue, passed in sorted(counts.passed_over.items()):
        console.say(f"{counted(passed, 'message')} on {queue or 'no queue'} not processed: {not_read(queue, SETUP)}")
    to = "" if target is None else f" written to {target}"
    console.say(f"{counted(counts.messages, 'message')} ({counts.errors:,} in error): {_made(counts.puts)}{to}")
    if as_json:
        console.json(_json(counts, problems, target))
    return ExitCode.PROBLEMS if problems or counts.puts[PutKind.DEADLETTER] else ExitCode.DONE


def _json(counts: ReplayCounts, problems: int, target: Path | None) -> dict[str, object]:
    return {
        "messages": counts.messages,
        "errors": counts.errors,
        "unreadable": problems,
        "publications": counts.puts[PutKind.PUBLICATION],
        "responses": counts.puts[PutKind.RESPONSE],
        "dead_letters": counts.puts[PutKind.DEADLETTER],
        "not_processed": dict(sorted(counts.passed_over.items())),
        "output": None if target is None else str(target),
    }
