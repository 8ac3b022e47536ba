"""``replay`` on this machine: the capture in, puts or a transcript out, in one process or several."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast

import click

from commands.config.settings import PublishExitConfig
from commands.disk.files import to_disk
from commands.explain.selection import Choosing, MessageSelection
from commands.options.replays import PYARROW_MISSING, CaptureReader, ReplayOptions, importing, network_setup
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.divided import Share, shares
from commands.replay.local import ExitOf, LocalReplay, ReplayCounts, transcript_lines
from commands.replay.network.local import NetworkReplay, NetworkSetup, network_problems, network_transcript_lines
from commands.replay.put_lines import PutLines
from commands.running.publish_exits import publish_exits
from commands.terminal.console import Console
from commands.terminal.output_file import OutputFile
from commands.terminal.workers import worked
from rfh2.captured import CapturedMessage
from rfh2.constants import MQRC_PUBLISH_EXIT_ERROR

if TYPE_CHECKING:
    from commands.replay.put_columns import PutsParquet

_PRINTED_IN_MEMORY: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LocalRun:
    """One replay. target: None is stdout, or nowhere with a transcript. network: an estate.toml. jobs: processes."""

    console: Console
    options: ReplayOptions
    selection: MessageSelection
    target: Path | None
    exit_config: PublishExitConfig | None
    network: Path | None
    transcript: bool
    jobs: int | None

    def run(self) -> tuple[ReplayCounts, int]:
        """Counts, and the number of records that could not be read. Raises UsageError, QPubSubError, OSError."""
        setup = None if self.network is None else network_setup(self.network, self.options.setup)
        if setup is not None:
            for problem in network_problems(setup.build()):
                self.console.warn(problem)
        as_columns = _puts_parquet() if self.target is not None and self.target.suffix == ".parquet" else None
        jobs = self.jobs
        at_once = as_columns is not None or self.exit_config is not None or setup is not None
        if self.transcript or not self.selection.is_all or at_once:
            if jobs is not None and jobs > 1:
                without = "--transcript, --exit, --network and a selection"
                raise click.UsageError(f"--jobs writes puts as JSON Lines, and cannot be used with {without}")
            jobs = 1
        output = None if self.target is None else OutputFile(self.target)
        reader = CaptureReader(self.console, self.options)
        work = _Work(self, reader, output, PutLines if as_columns is None else as_columns, setup)
        try:
            counts = reader.in_several(reader.jobs(jobs), work.replayed)
            if output is not None:
                output.finish()
        except BaseException:
            if output is not None:
                output.discard()
            raise
        return counts, reader.problems


@dataclass(slots=True)
class _Work:
    run: LocalRun
    reader: CaptureReader
    output: OutputFile | None
    sink: type[PutLines] | type[PutsParquet]
    network: NetworkSetup | None

    def replayed(self, messages: Iterable[CapturedMessage], jobs: int) -> ReplayCounts:
        """Replay *messages* with so many processes."""
        run, console = self.run, self.run.console
        # What is printed waits until the whole capture has proved to be in order, on disk where it grows long.
        with (
            publish_exits(run.exit_config) as exit_of,
            tempfile.SpooledTemporaryFile(_PRINTED_IN_MEMORY) as lines,
            self._opened() as file,
            self.reader.progress("messages replayed") as advance,
        ):
            if jobs > 1:
                counts = self._in_several(messages, jobs, file, advance)
            elif self.network is not None:
                counts = self._network(messages, file, lines, advance, self.network)
            else:
                counts = self._in_one(messages, file, lines, advance, exit_of)
            if run.target is not None:
                to_disk(file)
            printed = lines if run.transcript or run.target is not None else file
            printed.seek(0)
            for line in printed:
                console.data(line.decode().rstrip("\n"))
        console.stdout.flush()
        return counts

    def _in_one(
        self,
        messages: Iterable[CapturedMessage],
        file: BinaryIO,
        lines: IO[bytes],
        advance: Callable[[int], None],
        exit_of: ExitOf | None,
    ) -> ReplayCounts:
        run = self.run
        replay = LocalReplay(run.options.setup, run.options.semantics, exit_of)
        chosen = self._chosen(messages, advance, lambda message: replay.replay(message, counted=False))
        with closing(self.sink(file)) as sink:
            for message in chosen:
                if run.transcript or not run.selection.is_all:
                    made, puts = replay.replay(message)
                    if run.transcript:
                        lines.writelines(_encoded(transcript_lines(message, made, puts)))
                else:
                    made = replay.put_all(message)
                sink.add(message.seq, message.qmgr or DEFAULT_QMGR, made.puts)
                if made.undecodable or made.reason == MQRC_PUBLISH_EXIT_ERROR:
                    self._warn(message.seq, message.queue, made.why)
        return replay.counts

    def _network(
        self,
        messages: Iterable[CapturedMessage],
        file: BinaryIO,
        lines: IO[bytes],
        advance: Callable[[int], None],
        setup: NetworkSetup,
    ) -> ReplayCounts:
        replay = NetworkReplay(setup)
        chosen = self._chosen(messages, advance, lambda message: replay.replay(message, counted=False))
        with closing(self.sink(file)) as sink:
            for message in chosen:
                if self.run.transcript:
                    step, puts = replay.replay(message)
                    lines.writelines(_encoded(network_transcript_lines(message, step, puts)))
                    sink.add(message.seq, message.qmgr or DEFAULT_QMGR, step.puts)
                    outcome = step.outcome
                else:
                    outcome = replay.put_all(message, sink)
                if outcome.undecodable:
                    self._warn(message.seq, message.queue, outcome.why)
        return replay.counts

    def _chosen(
        self,
        messages: Iterable[CapturedMessage],
        advance: Callable[[int], None],
        pass_over: Callable[[CapturedMessage], object],
    ) -> Iterator[CapturedMessage]:
        """The messages that are selected; *pass_over* gets the others, up to the last one that matters."""
        choosing = Choosing(self.run.selection)
        for message in messages:
            advance(1)
            if choosing.chooses(message):
                yield message
            elif choosing.is_over:
                break
            else:
                pass_over(message)

    def _in_several(
        self, messages: Iterable[CapturedMessage], jobs: int, file: BinaryIO, advance: Callable[[int], None]
    ) -> ReplayCounts:
        counts = ReplayCounts()
        work = SharedReplay(self.run.options.setup, self.run.options.semantics).replayed
        for done in worked(work, shares(messages, jobs), jobs):
            advance(done.messages)
            file.write(done.lines)
            counts.add(done.counts)
            for each in done.undecodable:
                self._warn(*each)
        return counts

    def _warn(self, seq: int, queue: str, why: str) -> None:
        self.run.console.warn(f"message {seq} on {queue}: {why}")

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        if self.output is not None:
            return self.output.open()
        return cast(AbstractContextManager[BinaryIO], tempfile.SpooledTemporaryFile(_PRINTED_IN_MEMORY))


def _encoded(lines: Iterable[str]) -> Iterable[bytes]:
    return (line.encode() + b"\n" for line in lines)


def _puts_parquet() -> type[PutsParquet]:
    with importing(PYARROW_MISSING):
        from commands.replay.put_columns import PutsParquet  # noqa: PLC0415 - pyarrow is an extra, and slow to load
    return PutsParquet


class Undecodable(NamedTuple):
    """A message that could not be read, and why."""

    seq: int
    queue: str
    why: str


class SharedPuts(NamedTuple):
    """The results of one share. messages: how many were counted. lines: the puts as JSON Lines."""

    messages: int
    lines: bytes
    counts: ReplayCounts
    undecodable: list[Undecodable]


class SharedReplay:
    """Replays the shares of one process."""

    def __init__(self, setup: str, semantics: str) -> None:
        self._replay = LocalReplay(setup, semantics)
        self._file = BytesIO()
        self._lines = PutLines(self._file)

    def replayed(self, share: Share) -> SharedPuts:
        """The results of the next share. Raises QPubSubError where the setup fails."""
        replay, lines, undecodable = self._replay, self._lines, list[Undecodable]()
        replay.counts = ReplayCounts()
        for message in share.messages:
            made = replay.put_all_of(message.qmgr, message.arrival, counted=message.counted)
            if not message.counted:
                continue
            lines.add(message.seq, message.qmgr, made.puts)
            if made.undecodable:
                undecodable.append(Undecodable(message.seq, message.queue, made.why))
        written = self._file.getvalue()
        self._file.seek(0)
        self._file.truncate()
        return SharedPuts(share.counted, written, replay.counts, undecodable)
