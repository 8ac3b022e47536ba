"""A page for each verb, from its click command: the same text as its ``--help``, for the site and as a man page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

import click

from commands.cli import VERBS, main, module_of
from extension.markdown import code, escape

PROGRAM = "qpubsub"
_SEE_ALSO = "On a terminal, `{call} --help` shows the same."


@dataclass(frozen=True, slots=True)
class Page:
    """One page. name: of the man page. summary: its line in a list."""

    name: str
    summary: str
    text: str


def pages() -> list[Page]:
    """The page of the program, and one for each verb."""
    context = _context(main, PROGRAM)
    found = [Page(PROGRAM, "IBM MQ's queued publish/subscribe on a modern topic tree", _program(context))]
    for verb in main.list_commands(context):
        command = import_module(module_of(verb)).command
        text = "\n".join(_page(_context(command, verb, context), command, f"{PROGRAM} {verb}"))
        found.append(Page(f"{PROGRAM}-{verb}", _clause(VERBS[verb]), text))
    return found


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    # As wide as it gets: what is a line here is broken by who shows it.
    wide = {"terminal_width": 10_000, "max_content_width": 10_000, **command.context_settings}
    return click.Context(command, info_name=name, parent=parent, **wide)


def _program(context: click.Context) -> str:
    verbs = [
        f"[{PROGRAM} {verb}](qpubsub-{verb}.md)\n: {escape(VERBS[verb])}\n" for verb in main.list_commands(context)
    ]
    return "\n".join([*_page(context, main, PROGRAM), "## Verbs", "", *verbs])


def _page(context: click.Context, command: click.Command, title: str) -> Iterator[str]:
    yield from (f"# {title}", "", "## Synopsis", "")
    yield from _literal(command.get_usage(context).removeprefix("Usage: "))
    yield from ("## Description", "")
    yield from _paragraphs(command.help or "")
    records = [record for parameter in command.get_params(context) if (record := parameter.get_help_record(context))]
    yield from ("## Options", "")
    for written, meaning in records:
        # An argument without a meaning of its own is in the description.
        if meaning:
            yield from (code(written), f": {escape(' '.join(meaning.split()))}", "")
    yield from _paragraphs(command.epilog or "")
    yield from (_SEE_ALSO.format(call=title), "")


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a help text; those that click keeps as they are, because of a line with a backspace, are code."""
    for block in text.strip().split("\n\n"):
        lines = [line for line in block.replace("\b\n", "\b").splitlines() if line]
        if not lines:
            continue
        if not lines[0].startswith("\b"):
            yield from (escape(" ".join(line.strip() for line in lines)), "")
            continue
        lines[0] = lines[0].removeprefix("\b")
        shown = [line for line in lines if not line.startswith("Exit codes:")]
        if shown and shown[0].rstrip(":") in ("Example", "Examples"):
            yield from ("## Examples", "")
            shown = [line.strip() for line in shown[1:]]
        if shown:
            yield from _literal("\n".join(shown))
        for line in lines:
            if line.startswith("Exit codes:"):
                yield from ("## Exit codes", "", escape(line.removeprefix("Exit codes:").strip()), "")


def _literal(text: str) -> Iterator[str]:
    yield from ("```text", *text.splitlines(), "```", "")


def _clause(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].rstrip(".")
