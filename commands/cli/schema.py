"""``qpubsub schema``: the JSON Schema of what a verb prints with ``--json``."""

from __future__ import annotations

import json
from typing import Final

import click
from pydantic import BaseModel

from commands.broker.puts import Put
from commands.options.json_forms import COMPARED, FORMS, model_of
from commands.options.verb import verb
from commands.terminal.console import Console
from rfh2.captured import CapturedMessage

_MESSAGES: Final[dict[str, type[BaseModel]]] = {"message": CapturedMessage, "put": Put}


@verb("qpubsub schema", "qpubsub schema status", "qpubsub schema estate plan", prints=True)
@click.argument("words", nargs=-1, metavar="[VERB]")
@click.option("--json", is_flag=True, expose_value=False, help="Print JSON; the default for a VERB.")
@click.pass_obj
def command(console: Console, words: tuple[str, ...]) -> None:
    """Print the JSON Schema of the objects that VERB prints with --json; without VERB, the names of all schemas.

    The schema named message is that of captured messages, which get, browse and convert print; that named put is of
    what replay and run --record write.
    """
    name = " ".join(words)
    if name and name not in (*FORMS, *COMPARED, *_MESSAGES):
        raise click.UsageError(f"there is no schema {name}. qpubsub schema lists them")
    if not name:
        for each in (*_MESSAGES, *COMPARED, *FORMS):
            console.data(each)
    else:
        model = _MESSAGES.get(name) or model_of(name)
        for line in json.dumps(model.model_json_schema(), ensure_ascii=False, indent=2).splitlines():
            console.data(line)
