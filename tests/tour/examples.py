"""The examples of help pages: which cannot run, which run until they are stopped, which do not end in 0."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from commands.cli import main
from tests.tour.pages import joined

NOT_RUN = {
    r"ibmmq://": "needs IBM MQ",
    r"(mqtts?|nats|kafka)://broker": "needs a broker of that name",
    r"strmqbrk .*--undo|migmbbrk .*--undo": "needs a migration that was made before",
    r"strmqbrk .*--extract": "needs a migration that was made before",
}
"""What a command contains, and why it is not run."""

ENDLESS = re.compile(r"\bqpubsub (?:run\b(?!.*--once)|replay\b.*--follow|get\b.*--follow|sub\b(?!.*(?:-C|--count)))")
"""Commands that run until they are stopped: they are, with Ctrl-C's signal, and then end in 0 or 130."""

SPARK = re.compile(r"--engine spark|commands\.replay\.spark")
"""Commands and programs that start Spark: half a minute each, so that they are a tour of their own."""

EXITS = {
    r"decode --json capture\.jsonl \| jq": (0, "jq's own"),
    r"replay .*--input captures/": (1, "the capture holds a message without a queue"),
}
"""What a command contains, the exit code of the data in the demo's files, and why."""

PROVOKED = {
    "demo": {2: "qpubsub demo --copy ."},
    "decode": {1: "head -c 100 capture.dat | qpubsub decode --format raw", 2: "qpubsub decode missing.dat"},
    "encode": {1: "echo '{}' | qpubsub encode", 2: "qpubsub encode --command RegSub --bad"},
    "convert": {
        1: "head -c 3000 captures/stock.pcap | head -c 300 | qpubsub convert --format jsonl",
        2: "qpubsub convert no.dat",
    },
    "translate": {1: "qpubsub translate --to mqi capture.dat missing.dat", 2: "qpubsub translate missing.dat"},
}
"""For verbs whose examples do not show each exit code of their help page: code, and a command that ends in it."""


def examples() -> Iterator[tuple[str, str]]:
    """Verb and example, in the order of the verbs, as the help pages have them."""
    context = click.Context(main)
    for verb in main.list_commands(context):
        command = main.get_command(context, verb)
        assert command is not None
        for line in joined([line.strip() for line in (command.epilog or "").split("\n")]):
            if re.match(r"(\S+=\S+ )?qpubsub |echo .*qpubsub", line):
                yield verb, line


def codes_of(verb: str) -> set[int]:
    """The exit codes that the help page of a verb names."""
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    text = " ".join(f"{command.help} {command.epilog}".split())
    _before, _, behind = text.partition("Exit codes:")
    return {int(code) for code in re.findall(r"(?:^|[,;.] )(\d{1,3})(?=:? )", behind.strip())}
