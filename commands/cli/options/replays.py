"""What ``replay``, ``analyse`` and ``differences`` share: their options, the capture that they read, and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from commands.mqsc.broker import Broker
from commands.replay.local import DEFAULT_QMGR, OutOfOrderError, natural_queue
from commands.terminal.console import Console
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, read_captures
from rfh2.distribution import how_to_install
from rfh2.errors import QPubSubError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
F = Callable[..., Any]

ENGINES: Final = ("local", "spark")
MOST_SHOWN: Final = 20
"""So many problems are shown one by one, and the others counted."""

SPARK_MISSING: Final = f"Spark is not installed: {how_to_install('spark')}"
PYARROW_MISSING: Final = f"Parquet needs pyarrow: {how_to_install('parquet')}"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What to replay, and how.

    source: a capture, or a directory of them. form: its format, or ``auto``. engine: one of ENGINES. master: the Spark
    cluster; None, this machine. semantics: ``v7`` or ``v6``. setup: MQSC text that every queue manager starts with.
    """

    source: Path
    form: str
    engine: str
    master: str | None
    semantics: str
    setup: str

    @property
    def on_spark(self) -> bool:
        """Whether Spark does the work."""
        return self.engine == "spark"


_CAPTURE: Final = (
    click.option(
        "--input", "source", required=True, type=click.Path(path_type=Path), help="A capture, or a directory of them."
    ),
    click.option(
        "--format", "form", default="auto", show_default=True, type=click.Choice(["auto", *FORMATS]), help="Its format."
    ),
    click.option(
        "--engine", type=click.Choice(ENGINES), default="local", show_default=True, help="What does the work."
    ),
    click.option("--master", metavar="URL", help="The Spark cluster; local[*], this machine, where none is given."),
)
_SEMANTICS: Final = click.option(
    "--semantics",
    type=click.Choice(["v7", "v6"]),
    default="v7",
    show_default=True,
    help="Whose behaviour, where versions 6 and 7 differ.",
)


def replay_options(*, both_versions: bool = False) -> Callable[[F], F]:
    """The shared options: the verb gets *options* (ReplayOptions).

    both_versions: for a verb that replays under version 6 and version 7; it has no ``--semantics``.
    """
    setup = click.option(
        "--setup",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="SCRIPT",
        help=f"MQSC for every queue manager to start with{', in both versions' if both_versions else ''}.",
    )
    group = (*_CAPTURE, setup) if both_versions else (*_CAPTURE, _SEMANTICS, setup)

    def decorated(function: F) -> F:
        @wraps(function)
        def loaded(
            *args: Any,
            source: Path,
            form: str,
            engine: str,
            master: str | None,
            setup: Path | None,
            semantics: str = "v7",
            **own: Any,
        ) -> Any:
            if master is not None and engine != "spark":
                raise click.UsageError("--master needs --engine spark")
            script = setup.read_text(encoding="utf-8") if setup is not None else ""
            _note_psmode(script)
            options = ReplayOptions(source, form, engine, master, semantics, script)
            return function(*args, options=options, **own)

        verb: F = loaded
        for option in reversed(group):
            verb = option(verb)
        return verb

    return decorated


def _note_psmode(script: str) -> None:
    """Say that PSMODE of the setup does not count: a capture is replayed for what its commands come to (guide 6.3)."""
    if "PSMODE" not in script.upper():
        return
    with suppress(QPubSubError):  # whoever runs the setup says what is wrong with it
        psmode = Broker(DEFAULT_QMGR, script).objects.qmgr.psmode
        if psmode != "ENABLED":
            what = f"PSMODE({psmode}) of the setup is not looked at: commands are processed as under PSMODE(ENABLED)"
            click.get_current_context().find_object(Console).warn(what)  # type: ignore[union-attr]


def check_suffix(output: Path) -> None:
    """Raises UsageError where *output* is named for no format that puts and differences are written in."""
    if output.suffix not in (".jsonl", ".parquet"):
        raise click.UsageError(f"--output {output}: the name has to end in .jsonl or .parquet")


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
    from commands.replay.spark import LOCAL, session  # noqa: PLC0415 - Spark is an extra, and slow to load

    spark = session(options.master or LOCAL)
    try:
        yield spark
    finally:
        spark.stop()


def show_problems(console: Console, texts: Sequence[str], problems: int) -> None:
    """Show the first problems of a capture that Spark has read. texts: some in words; problems: how many."""
    for line in texts[:MOST_SHOWN]:
        console.warn(line)
    if problems > MOST_SHOWN:
        console.warn(f"and more: {problems} records could not be read")


class CaptureReader:
    """The messages of a capture, for the local engine; what cannot be read is shown, and counted in ``problems``."""

    def __init__(self, console: Console, options: ReplayOptions) -> None:
        self._console, self._options = console, options
        self.problems = 0

    def in_order(self, replay: Callable[[Iterable[CapturedMessage]], T]) -> T:
        """What *replay* gives for the messages as they come, or, where it raises OutOfOrderError, for all sorted."""
        try:
            return replay(self._messages())
        except OutOfOrderError:
            self.problems = 0
            return replay(sorted(self._messages(), key=lambda message: message.seq))

    def _messages(self) -> Iterator[CapturedMessage]:
        for record in read_captures(self._options.source, self._options.form, default_queue=natural_queue):
            if record.message is None:
                self.problems += 1
                self._console.warn(str(record.problem))
            else:
                yield record.message
