"""Which messages a verb reads or shows: ``--where``, ``--since``, ``--until``, ``--seq``, ``--limit``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, Final

import click

from commands.explain.selection import MessageSelection, SelectionError, SeqRanges, Where, compile_where, moment

F = Callable[..., Any]


class _WhereType(click.ParamType[Where]):
    name = "condition"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Where:
        if isinstance(value, Where):
            return value
        try:
            return compile_where(value)
        except SelectionError as error:
            self.fail(error.pointed, param, ctx)


class _MomentType(click.ParamType[datetime]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return moment(value)
        except ValueError:
            self.fail(f"{value!r} is not a time: write 2009-01-28 or 2009-01-28T11:43:54, in UTC", param, ctx)


class _SeqType(click.ParamType[SeqRanges]):
    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> SeqRanges:
        if isinstance(value, SeqRanges):
            return value
        try:
            return SeqRanges.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


WHERE: Final = _WhereType()
SEQ_RANGES: Final = _SeqType()


def _options(what: str) -> tuple[Callable[[F], F], ...]:
    return (
        click.option(
            "--where",
            type=WHERE,
            metavar="CONDITION",
            help=f"{what} messages of which this selection string is true: \"command = 'RegSub' and topic like "
            "'Sport/%' and size > 1000\". docs/selection.md has the names.",
        ),
        click.option(
            "--since",
            type=_MomentType(),
            metavar="TIME",
            help=f"{what} messages of this time or later, UTC: 2009-01-28T11:43.",
        ),
        click.option("--until", type=_MomentType(), metavar="TIME", help=f"{what} messages of before this time."),
        click.option(
            "--limit", type=click.IntRange(min=1), metavar="N", help=f"{what} the first N messages that are selected."
        ),
    )


def selection_options(what: str = "Only", *, with_seq: bool = True) -> Callable[[F], F]:
    """The options: the verb gets *selection* (MessageSelection).

    what: the first words of the help. with_seq: False where the verb has a
    ``--seq`` of its own, which must have the type SEQ_RANGES; it gets that too.
    """
    seq = click.option(
        "--seq", type=SEQ_RANGES, metavar="N|N-M", help=f"{what} messages with these numbers: 7, or 3,10-20,500-."
    )

    def decorated(function: F) -> F:
        @wraps(function)
        def selecting(
            *args: Any,
            where: Where | None,
            since: datetime | None,
            until: datetime | None,
            limit: int | None,
            seq: SeqRanges | None = None,
            **own: Any,
        ) -> Any:
            if since is not None and until is not None and until <= since:
                raise click.UsageError("--until must be later than --since")
            own["selection"] = MessageSelection(where, since, until, seq, limit)
            if not with_seq:
                own["seq"] = seq
            return function(*args, **own)

        verb: F = selecting
        for option in reversed((*_options(what), *((seq,) if with_seq else ()))):
            verb = option(verb)
        return verb

    return decorated
