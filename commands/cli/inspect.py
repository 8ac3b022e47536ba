"""``qpubsub inspect``: the broker before and after one message of a capture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from commands.options.replays import CaptureReader, ReplayOptions, index_option, replay_options, timeline
from commands.options.verb import json_option, verb
from commands.replay import LocalReplay
from commands.replay.arrivals import OutOfOrderError
from commands.replay.step.state import StepState
from commands.replay.step.timeline import Step, Stepper
from commands.replay.step.views import MOST_SHOWN, change_lines, state_form, state_lines, step_form, step_lines
from commands.terminal.console import Console, ExitCode
from rfh2.captured import HIGHEST_SEQ, CapturedMessage


@verb(
    "qpubsub inspect --at 12 capture.jsonl",
    "qpubsub inspect --at 12 --json capture.jsonl | jq -c '.changes[]'",
    "qpubsub inspect --at 12 --index capture.steps --setup streams.mqsc capture.jsonl",
    prints=True,
    exit_codes={1: "some records could not be read"},
)
@replay_options(on_spark=False)
@click.option(
    "--at", type=click.IntRange(0, HIGHEST_SEQ), required=True, metavar="SEQ", help="The number of the message."
)
@index_option
@click.option("--all", "everything", is_flag=True, help=f"Print every line, not only {MOST_SHOWN} of each section.")
@json_option
@click.pass_obj
def command(
    console: Console,
    /,
    *,
    options: ReplayOptions,
    at: int,
    index: Path | None,
    everything: bool,
    as_json: bool,
) -> ExitCode:
    """Print the state of the broker before and after message SEQ of a capture, and what the message changed.

    The captured messages in each FILE, or on standard input, are replayed in the order of seq. The state has
    subscriptions with their options and identity sets, retained publications, and the queues with the number of
    messages that were put on them. docs/time-travel.md explains the output. "qpubsub replay --step" shows the same on
    a terminal, forwards and backwards.
    """
    reader = CaptureReader(console, options)
    if index is None:
        found = reader.in_order(lambda messages: _replayed_to(at, messages, options))
        _show(console, found, as_json=as_json, most=None if everything else MOST_SHOWN)
    else:
        with timeline(console, reader, options, index) as line:
            position = line.position_of(at)
            if position is None:
                raise _missing(at, line.seqs)
            before = line.before(position).copy()
            found = _Found(position, len(line), line.step(position), before, line.after(position))
            _show(console, found, as_json=as_json, most=None if everything else MOST_SHOWN)
    return ExitCode.PROBLEMS if reader.problems else ExitCode.DONE


@dataclass(frozen=True, slots=True)
class _Found:
    """The message, its position in the capture, how many messages there are, and the states around it."""

    position: int
    of: int
    step: Step
    before: StepState
    after: StepState


def _replayed_to(seq: int, messages: Iterable[CapturedMessage], options: ReplayOptions) -> _Found:
    """Replay up to message *seq*. Raises UsageError, OutOfOrderError; QPubSubError where the setup fails."""
    stepper = Stepper(LocalReplay(options.setup, options.semantics))
    reached: tuple[int, Step, StepState] | None = None
    first = last = None
    count = 0
    for message in messages:
        if last is not None and message.seq < last:
            # Also behind the message that is looked for: one that comes later may belong before it.
            raise OutOfOrderError(f"seq {message.seq} comes after seq {last}")
        first, last = message.seq if first is None else first, message.seq
        if reached is None:
            before = stepper.state.copy() if message.seq == seq else None
            step = stepper.step(message)
            if before is not None:
                reached = count, step, before
        count += 1
    if reached is None:
        raise _missing(seq, None if first is None or last is None else (first, last))
    return _Found(reached[0], count, reached[1], reached[2], stepper.state)


def _missing(seq: int, seqs: tuple[int, int] | None) -> click.UsageError:
    have = "the capture has no messages" if seqs is None else f"the capture has messages {seqs[0]} to {seqs[1]}"
    return click.UsageError(f"--at {seq}: no message has this number; {have}")


def _show(console: Console, found: _Found, *, as_json: bool, most: int | None) -> None:
    if as_json:
        form = step_form(found.position, found.step, state_form(found.before), state_form(found.after))
        console.json(form)
        return
    for line in step_lines(found.position, found.of, found.step):
        console.data(line)
    for title, lines in (
        ("Changed", change_lines(found.step.changes, most)),
        ("Before", state_lines(found.before, most)),
        ("After", state_lines(found.after, most)),
    ):
        console.data("")
        console.data(f"{title}:")
        for line in lines:
            console.data(f"  {line}")
