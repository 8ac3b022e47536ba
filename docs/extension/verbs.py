"""A page for each verb, from its click command: the same text as its ``--help``, for the site and as a man page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click

from commands.cli import VERBS, main
from commands.cli.schema import COMPARED, FORMS, model_of
from commands.options.verb import VerbGroup
from extension.markdown import Table, code, escape

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
    for words, command in main.every_command():
        text = "\n".join(_page(_context(command, words, context), command, f"{PROGRAM} {words}"))
        summary = VERBS.get(words) or command.get_short_help_str(limit=200)
        found.append(Page(f"{PROGRAM}-{words.replace(' ', '-')}", _clause(summary), text))
    return found


def json_forms() -> Table:
    """The keys of what each verb prints with ``--json``."""
    forms = ((words, model_of(words).model_fields) for words in (*FORMS, *COMPARED))
    rows = tuple((code(words), ", ".join(code(key) for key in fields)) for words, fields in sorted(forms))
    return Table(("verb", "keys"), rows)


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    # As wide as it gets: what is a line here is broken by who shows it.
    wide = {"terminal_width": 10_000, "max_content_width": 10_000, **command.context_settings}
    return click.Context(command, info_name=name, parent=parent, **wide)


def _program(context: click.Context) -> str:
    return "\n".join([*_page(context, main, PROGRAM), *_commands(PROGRAM, VERBS.items())])


def _commands(program: str, summaries: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from ("## Verbs", "")
    for verb, summary in summaries:
        yield f"[{program} {verb}]({program.replace(' ', '-')}-{verb}.md)\n: {escape(summary)}\n"


def _page(context: click.Context, command: click.Command, title: str) -> Iterator[str]:
    yield from (f"# {title}", "", "## Synopsis", "")
    yield from _literal(command.get_usage(context).removeprefix("Usage: "))
    yield from ("## Description", "")
    yield from _paragraphs(command.help or "")
    if isinstance(command, VerbGroup) and command is not main:
        each = ((name, one.get_short_help_str(limit=200)) for name, one in command.commands.items())
        yield from _commands(title, each)
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
        if lines[0].startswith("Exit codes:"):
            codes = " ".join(line.strip() for line in lines).removeprefix("Exit codes:")
            yield from ("## Exit codes", "", escape(codes.strip()), "")
            continue
        if not lines[0].startswith("\b"):
            yield from (escape(" ".join(line.strip() for line in lines)), "")
            continue
        lines[0] = lines[0].removeprefix("\b")
        shown = lines
        if shown[0].rstrip(":") in ("Example", "Examples"):
            yield from ("## Examples", "")
            shown = [line.strip() for line in shown[1:]]
        if shown:
            yield from _literal("\n".join(shown))


def _literal(text: str) -> Iterator[str]:
    yield from ("```text", *text.splitlines(), "```", "")


def _clause(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].rstrip(".")
