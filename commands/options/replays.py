"""What ``replay``, ``analyse`` and ``differences`` share: their options, the capture that they read, and Spark.

What ``analyse`` and ``differences`` share: their report as text, as JSON, and as an HTML page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from pydantic import BaseModel

from commands.broker.context import SEMANTICS, V6_BROKER, Semantics
from commands.broker.reading import natural_queue
from commands.config.settings import PublishExitConfig, read_config
from commands.explain.selection import MessageSelection
from commands.mqsc.broker import Broker
from commands.network.estate_file import read_estate
from commands.options.captures import STDIN, Captures, files_argument, format_option
from commands.options.verb import FILE, FILE_OR_DASH, FILE_THAT_IS, PATH_OR_DASH
from commands.replay.arrivals import DEFAULT_QMGR, OutOfOrderError, in_order
from commands.replay.differences.report import Gate, parse_gate
from commands.replay.divided import ClockWentBackError
from commands.replay.network.local import NetworkSetup
from commands.replay.step.index_file import IndexFile, mark_of
from commands.replay.step.timeline import Block, Timeline, blocks_of
from commands.terminal.console import Console
from commands.terminal.workers import cores
from rfh2.captured import CapturedMessage
from rfh2.distribution import how_to_install
from rfh2.errors import QPubSubError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
F = Callable[..., Any]

ENGINES: Final = ("local", "spark")
_MOST_JOBS: Final = 64
_MANY_BYTES: Final = 32_000_000
# A path has one slash where there were two.
_TOPIC: Final = re.compile("(kafkas?):/+(.*)")
MOST_SHOWN: Final = 20
"""So many problems are shown one by one, and the others counted."""

SPARK_MISSING: Final = f"Spark needs the package pyspark: {how_to_install('spark')}"
TEXTUAL_MISSING: Final = f"--step needs the package textual: {how_to_install('step')}"
PYARROW_MISSING: Final = f"Parquet needs the package pyarrow: {how_to_install('parquet')}"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What to replay, and how.

    files: captures, or directories of them; none is stdin. form: their format, or ``auto``. engine: one of ENGINES.
    master: the Spark cluster; None, this machine. semantics: ``v7`` or ``v6``. setup: MQSC text that every queue
    manager starts with. monotonic_clock: no message comes earlier than the one before it at its queue manager.
    """

    files: tuple[Path, ...]
    form: str
    engine: str
    master: str | None
    semantics: str
    setup: str
    monotonic_clock: bool = False

    def check(self, selection: MessageSelection) -> None:
        """Raises UsageError where *selection* asks for times that are not those of the capture."""
        if self.monotonic_clock and (selection.since is not None or selection.until is not None):
            raise click.UsageError("--monotonic-clock changes times: it cannot be used with --since and --until")

    @property
    def source(self) -> Path:
        """The one file or directory that Spark reads. Raises UsageError."""
        if len(self.files) != 1 or self.files[0] == STDIN:
            raise click.UsageError("--engine spark reads one FILE or one directory, not several and not standard input")
        return self.files[0]

    @property
    def topic(self) -> str | None:
        """The URL of the topic of Kafka, if FILE is one."""
        found = _TOPIC.fullmatch(str(self.files[0])) if len(self.files) == 1 else None
        return None if found is None else f"{found[1]}://{found[2]}"

    @property
    def label(self) -> str:
        """What the captures are called in a report."""
        return ", ".join("stdin" if file == STDIN else str(file) for file in self.files or (STDIN,))

    @property
    def on_spark(self) -> bool:
        """Whether Spark does the work."""
        return self.engine == "spark"


_FILES: Final = (
    files_argument,
    click.option(
        "--input",
        "inputs",
        multiple=True,
        type=PATH_OR_DASH,
        metavar="FILE|-",
        help="The same as FILE: a capture, or a directory of captures.",
    ),
    format_option,
)
_ENGINE: Final = (
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="local",
        show_default=True,
        help="Run in this process, or on Spark.",
    ),
    click.option("--master", metavar="URL", help="The Spark cluster. The default is local[*]: this machine."),
    click.option(
        "--monotonic-clock",
        is_flag=True,
        help="If a message has an earlier time than the one before it at its queue manager, use the time of that one.",
    ),
)


_OLD: Final = click.option(
    "--old",
    "semantics",
    type=click.Choice([Semantics.V6.value, V6_BROKER]),
    default=Semantics.V6.value,
    show_default=True,
    help="Which broker of version 6: v6-broker is WebSphere MQ's own, whose wildcards are characters in MQRFH2 too.",
)


def semantics_option(when: str = "") -> Callable[[F], F]:
    """``--semantics``. when: the beginning of its help, such as "With --capture: ".

    The verb gets *semantics*, one of SEMANTICS.
    """
    return click.option(
        "--semantics",
        type=click.Choice(SEMANTICS),
        default="v7",
        show_default=True,
        help=_sentence(
            when,
            "the version whose behaviour to use where versions 6 and 7 differ. v6-broker is WebSphere MQ 6's own "
            "broker, whose wildcards are characters in MQRFH2 too.",
        ),
    )


def setup_option(when: str = "", where: str = "") -> Callable[[F], F]:
    """``--setup``. when, where: the beginning and the end of its help. The verb gets *setup*, a path or None."""
    return click.option(
        "--setup",
        type=FILE,
        metavar="SCRIPT",
        help=_sentence(when, f"run this MQSC first on every queue manager{where}."),
    )


def _sentence(when: str, text: str) -> str:
    return when + text if when else text[0].upper() + text[1:]


def replay_options(*, both_versions: bool = False, on_spark: bool = True) -> Callable[[F], F]:
    """The shared options: the verb gets *options* (ReplayOptions).

    both_versions: for a verb that replays under version 6 and version 7; it has ``--old``, the semantics of version 6,
    in the place of ``--semantics``. on_spark: False for a verb that replays in this process alone.
    """
    setup = setup_option(where=", in both versions" if both_versions else "")
    engine = _ENGINE if on_spark else ()
    group = (*_FILES, *engine, _OLD, setup) if both_versions else (*_FILES, *engine, semantics_option(), setup)

    def decorated(function: F) -> F:
        @wraps(function)
        def loaded(
            *args: Any,
            files: tuple[Path, ...],
            inputs: tuple[Path, ...],
            form: str,
            setup: Path | None,
            engine: str = "local",
            master: str | None = None,
            semantics: str = "v7",
            monotonic_clock: bool = False,
            **own: Any,
        ) -> Any:
            if master is not None and engine != "spark":
                raise click.UsageError("--master needs --engine spark")
            script = setup.read_text(encoding="utf-8") if setup is not None else ""
            _note_psmode(script)
            options = ReplayOptions((*inputs, *files), form, engine, master, semantics, script, monotonic_clock)
            if options.on_spark:
                _ = options.source
            return function(*args, options=options, **own)

        verb: F = loaded
        for option in reversed(group):
            verb = option(verb)
        return verb

    return decorated


def _note_psmode(script: str) -> None:
    """Say that PSMODE of the setup does not count: a replay shows the results of all commands (guide 6.3)."""
    if "PSMODE" not in script.upper():
        return
    with suppress(QPubSubError):  # whoever runs the setup says what is wrong with it
        psmode = Broker(DEFAULT_QMGR, script).objects.qmgr.psmode
        if psmode != "ENABLED":
            what = f"PSMODE({psmode}) of the setup is ignored: commands are processed as under PSMODE(ENABLED)"
            click.get_current_context().find_object(Console).warn(what)  # type: ignore[union-attr]


def jobs_option(function: F) -> F:
    """``--jobs``: the verb gets *jobs* (int, or None where the capture decides)."""
    option = click.option(
        "--jobs",
        "-j",
        type=click.IntRange(1, _MOST_JOBS),
        metavar="N",
        help="Replay in N processes. The default for files of 32 MB or more is one for each processor; the output is "
        "the same.",
    )
    return option(function)


def check_suffix(output: Path, *others: str) -> None:
    """Raises UsageError where *output* is named for no format that puts and differences are written in.

    others: suffixes that are allowed beside those.
    """
    allowed = (".jsonl", ".parquet", *others)
    if output.suffix not in allowed:
        raise click.UsageError(f"--output {output}: the name must end in {', '.join(allowed[:-1])} or {allowed[-1]}")


@contextmanager
def importing(missing: str) -> Iterator[None]:
    """Around the imports of an extra. Raises ClickException that says *missing* where it is not installed."""
    try:
        yield
    except ImportError as error:
        raise click.ClickException(missing) from error


@contextmanager
def spark_session(options: ReplayOptions) -> Iterator[SparkSession]:
    """A session that ends with the block. Spark is installed."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - Spark is an extra, and slow to load
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from commands.replay.spark.session import LOCAL, session  # noqa: PLC0415

    try:
        spark = session(options.master or LOCAL)
    except (PySparkException, Py4JError) as error:
        why = str(error).splitlines()[0]
        raise click.ClickException(f"Spark does not start with --master {options.master or LOCAL}: {why}") from error
    try:
        yield spark
    finally:
        spark.stop()


def show_problems(console: Console, texts: Sequence[str], problems: int) -> None:
    """Show the first problems of a capture that Spark has read. texts: some in words; problems: how many."""
    for line in texts[:MOST_SHOWN]:
        console.warn(line)
    if problems > MOST_SHOWN:
        console.warn(f"more records could not be read, {problems:,} in all")


class CaptureReader:
    """The messages of a capture, for the local engine; what cannot be read is shown, and counted in ``problems``."""

    def __init__(self, console: Console, options: ReplayOptions) -> None:
        self._console, self._monotonic_clock = console, options.monotonic_clock
        self._captures = Captures(
            console, options.files, options.form, default_queue=natural_queue, numbered_together=True
        )
        self.problems = 0

    def progress(self, label: str) -> AbstractContextManager[Callable[[int], None]]:
        """A line of progress over the capture; see ``Console.progress``."""
        return self._console.progress(label, self._captures.rows(), self._captures.share)

    def jobs(self, asked: int | None) -> int:
        """How many processes should replay. asked: as ``--jobs`` says."""
        if asked is not None:
            return asked
        return min(cores(), _MOST_JOBS) if self._captures.size() >= _MANY_BYTES else 1

    def in_several(self, jobs: int, replay: Callable[[Iterable[CapturedMessage], int], T]) -> T:
        """What *replay* gives with *jobs* processes or, where it raises ClockWentBackError, with one; see in_order."""
        try:
            return self.in_order(lambda messages: replay(messages, jobs))
        except ClockWentBackError as error:
            self._console.say(f"{error}: replaying in one process")
            self.problems = 0
            return self.in_order(lambda messages: replay(messages, 1))

    def in_order(self, replay: Callable[[Iterable[CapturedMessage]], T]) -> T:
        """What *replay* gives for the messages as they come, or, where it raises OutOfOrderError, for all sorted.

        Raises RepeatedSeqError.
        """
        try:
            return replay(in_order(self._messages(), monotonic_clock=self._monotonic_clock))
        except OutOfOrderError:
            self.problems = 0
            messages = sorted(self._messages(), key=lambda message: message.seq)
            return replay(in_order(messages, monotonic_clock=self._monotonic_clock))

    def _messages(self) -> Iterator[CapturedMessage]:
        for record in self._captures.records(again=True):
            if record.message is None:
                self.problems += 1
                self._console.warn(str(record.problem))
            else:
                yield record.message


# What ``inspect`` and ``replay --step`` share: the index of a capture.


def index_option(function: F) -> F:
    """``--index FILE``: the verb gets *index* (Path or None)."""
    option = click.option(
        "--index",
        type=FILE,
        metavar="FILE",
        help="Keep checkpoints in FILE, so that the capture opens in seconds the next time.",
    )
    return option(function)


@contextmanager
def timeline(console: Console, reader: CaptureReader, options: ReplayOptions, index: Path | None) -> Iterator[Timeline]:
    """The timeline of a capture. index: where it is kept; None for this time only.

    Raises UsageError, StoreError where *index* cannot be used, SnapshotError.
    """

    def made(messages: Iterable[CapturedMessage]) -> Iterator[Block]:
        with reader.progress("messages replayed") as advance:
            for block in blocks_of(messages, options.setup, options.semantics):
                advance(block.head.count)
                yield block

    if index is None:
        opened = reader.in_order(lambda messages: IndexFile.temporary(made(messages)))
    else:
        if not options.files or STDIN in options.files:
            raise click.UsageError("--index is for captures in files, not for standard input")
        mark = mark_of(options.files, options.form, options.setup, options.semantics)
        opened = reader.in_order(lambda messages: IndexFile.of(index, mark, lambda: made(messages), console.say))
    with opened as store:
        yield Timeline(store, options.setup, options.semantics)


# ``--network``: several queue managers as one network, from estate.toml.

ESTATE_PATH = click.Path(path_type=Path, exists=True)


def network_option(does: str) -> Callable[[F], F]:
    """``--network FILE``: the verb gets *network*, a path or None. does: the verb's sentence about it."""
    return click.option("--network", type=ESTATE_PATH, metavar="ESTATE", help=does)


def network_setup(path: Path, setup: str = "") -> NetworkSetup:
    """The network of an estate. setup: MQSC that runs first on each. Raises TableFileError."""
    return NetworkSetup.of(read_estate(path), setup)


# ``--exit``: the publish exit that a replay calls.


def _exit_of(ctx: click.Context, param: click.Parameter, path: Path | None) -> PublishExitConfig | None:
    if path is None or ctx.resilient_parsing:
        return None
    config = read_config(path).publish_exit
    if not config.is_there:
        raise click.BadParameter(
            f"{path} names no exit: table [publish_exit] needs path, entry_point or program", ctx, param
        )
    return config


def exit_option(function: F) -> F:
    """The verb gets *exit_config* (PublishExitConfig or None). Raises ConfigError."""
    option = click.option(
        "--exit",
        "exit_config",
        type=FILE_THAT_IS,
        callback=_exit_of,
        metavar="FILE",
        help="Call the publish exit in table [publish_exit] of this configuration file of run.",
    )
    return option(function)


@dataclass(frozen=True, slots=True)
class ReportForms:
    """In which forms a person wants a report. page: the file of the HTML page; ``-`` is stdout; None is no page."""

    page: Path | None
    as_json: bool

    @property
    def has_every_row(self) -> bool:
        """Whether some form shows more than the first lines of each table."""
        return self.as_json or self.page is not None

    def show(
        self, console: Console, report: BaseModel, page: Callable[[], str], lines: Callable[[], Iterable[str]]
    ) -> None:
        """Write the page if there is one, and print the report, as JSON or as *lines*. Raises OSError.

        A page that goes to stdout is printed alone.
        """
        if self.page == STDIN:
            console.binary.write(page().encode())
            return
        if self.page is not None:
            self.page.write_text(page(), encoding="utf-8")
            console.say(f"page written to {self.page}")
        if self.as_json:
            console.json(report.model_dump(mode="json"))
            return
        for line in lines():
            console.data(line)


def report_options(function: F) -> F:
    """``--html`` and ``--json``: the verb gets *forms* (ReportForms)."""

    @wraps(function)
    def loaded(*args: Any, html: Path | None, as_json: bool, **own: Any) -> Any:
        return function(*args, forms=ReportForms(html, as_json), **own)

    verb: F = loaded
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object."),
        click.option(
            "--html",
            type=FILE_OR_DASH,
            metavar="FILE|-",
            help="Write the report as one HTML page. With - only the page is printed.",
        ),
    ):
        verb = option(verb)
    return verb


def read_gate(path: Path) -> Gate:
    """The gate of ``--fail-on``. Raises UsageError."""
    try:
        return parse_gate(path.read_text(encoding="utf-8"))
    except (QPubSubError, ValueError) as error:
        raise click.UsageError(f"--fail-on {path}: {error}") from error
