"""``--line`` and ``--csv``: a row for each message, publication or object, in the form that a person chooses."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

import click

from commands.explain.problems import explained
from commands.explain.selection import NAMES, MessageValues
from commands.terminal.console import Console
from rfh2.captured import CapturedMessage, iso

F = Callable[..., Any]
Row = Mapping[str, Any]

MESSAGE_COLUMNS: Final = (*NAMES, "msg_id", "correl_id", "data")
"""Of a message: the names of ``--where``, two of the MQMD, and the data: as text, or as hex if it is not text."""

_FIELD: Final = re.compile(r"\{(\w+)\}|\\([tn])")
_ESCAPES: Final = {"t": "\t", "n": "\n"}


@dataclass(frozen=True, slots=True)
class RowForm:
    """How rows are printed. line: a text with names in braces; None for CSV."""

    columns: tuple[str, ...]
    line: str | None

    def text(self, row: Row) -> str:
        """One row."""
        if self.line is not None:
            return _FIELD.sub(lambda found: _ESCAPES.get(found[2]) or _shown(row[found[1]]), self.line)
        written = io.StringIO()
        csv.writer(written, lineterminator="").writerow([_shown(row[name]) for name in self.columns])
        return written.getvalue()

    def lines(self, rows: Iterable[Row]) -> Iterator[str]:
        """The lines of rows; what is quoted in CSV may have several."""
        for row in rows:
            yield from self.text(row).split("\n")

    def show(self, console: Console, row: Row) -> None:
        """Print one row."""
        for each in self.lines([row]):
            console.data(each)


def row_options(given: tuple[str, ...] | Callable[[Mapping[str, Any]], tuple[str, ...]]) -> Callable[[F], F]:
    """``--line`` and ``--csv``: the verb gets *rows* (RowForm), None without either of them.

    given: the columns, or what makes them of the verb's other options.
    """
    names = f"of {', '.join(given)}" if isinstance(given, tuple) else "those in the first line of --csv"

    def decorated(function: F) -> F:
        @wraps(function)
        def choosing(*args: Any, line: str | None, as_csv: bool, **own: Any) -> Any:
            if line is None and not as_csv:
                return function(*args, rows=None, **own)
            columns = given if isinstance(given, tuple) else given(own)
            unknown = [name for name, _ in _FIELD.findall(line or "") if name and name not in columns]
            if unknown:
                raise click.UsageError(f"--line: {{{unknown[0]}}} is not a name; the names are {', '.join(columns)}")
            if line is None:
                console = click.get_current_context().find_object(Console)
                assert console is not None
                console.data(",".join(columns))
            return function(*args, rows=RowForm(columns, line), **own)

        verb: F = choosing
        verb = click.option("--csv", "as_csv", is_flag=True, help="Print CSV; the first line has the names.")(verb)
        return click.option(
            "--line",
            "-F",
            metavar="FORMAT",
            help=f"Print each as FORMAT: text, \\t, \\n, and names in braces, {names}.",
        )(verb)

    return decorated


def message_row(message: CapturedMessage) -> Row:
    """The row of a message, by MESSAGE_COLUMNS."""
    values, descriptor = MessageValues(message), message.descriptor()
    body = explained(message).form("", 0)["body"]
    return {
        **{name: values(name) for name in NAMES},
        "time": None if values.time is None else iso(values.time),
        "msg_id": None if descriptor is None else descriptor.msg_id.hex(),
        "correl_id": None if descriptor is None else descriptor.correl_id.hex(),
        "data": body["hex"] if body["text"] is None else body["text"],
    }


def _shown(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def show_message(console: Console, message: CapturedMessage, rows: RowForm | None) -> None:
    """Print *message* as a row, or as it is: a line of a JSON Lines capture."""
    if rows is None:
        console.data(message.model_dump_json())
    else:
        rows.show(console, message_row(message))
