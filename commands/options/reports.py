"""What ``analyse`` and ``differences`` share: their report as text, as JSON, and as an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from commands.options.captures import STDIN
from commands.options.verb import FILE_OR_DASH
from commands.replay.differences.report import Gate, parse_gate
from commands.terminal.console import Console
from rfh2.errors import QPubSubError

F = Callable[..., Any]


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
