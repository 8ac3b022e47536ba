"""``qpubsub extract``: take the state of a live queue manager, or of a running version 6 broker."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from commands.options.verb import DIRECTORY, FILE, FILE_OR_DASH, verb
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from migrate.cli import live_options
from migrate.cli.live_options import Reached
from migrate.extract import REPLY_QUEUE
from migrate.legacy_state import LegacyState, fingerprint
from migrate.live.snapshot import KINDS, read_live, script_of
from migrate.live.state_of import NEVER_SHOWN, Interrogation, remarks, retained_copies, state_of
from migrate.readers import state_json
from rfh2.captures import write_captures


@verb(
    "qpubsub extract -m QM1 --admin https://mq:9443 --config admin.toml -o state.json --objects existing.mqsc",
    "qpubsub extract -m QM1 --queues 'mq://mq/QM1?channel=ADMIN' --metatopics -o extract.jsonl",
    exit_codes={
        0: "done",
        1: "done; something is missing from the state, and is named",
        2: "the state could not be taken; nothing was changed",
    },
)
@live_options.live_queue_manager
@click.option(
    "--metatopics",
    is_flag=True,
    help="Ask a running version 6 broker, with commands on its queues; the result is a capture.",
)
@click.option(
    "--stream", multiple=True, metavar="QUEUE", help="With --metatopics: a stream besides those that the broker names."
)
@click.option(
    "--reply-queue",
    default=REPLY_QUEUE,
    show_default=True,
    metavar="QUEUE",
    help="With --metatopics: the local queue to which the broker sends its answers.",
)
@click.option(
    "--work",
    type=DIRECTORY,
    metavar="DIRECTORY",
    help="With --metatopics: where answers are kept until all are there. Default: extract-QMGR.work.",
)
@click.option(
    "--objects",
    type=FILE,
    metavar="FILE",
    help="Write the objects of the queue manager to FILE, as MQSC for --existing of strmqbrk and migmbbrk.",
)
@live_options.wait
@click.option(
    "-o",
    "--output",
    type=FILE_OR_DASH,
    default="-",
    metavar="FILE|-",
    help="Write the state to FILE, not to stdout. FILE appears when it is complete.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object; needs --output FILE.")
@click.pass_obj
def command(
    console: Console,
    reached: Reached,
    metatopics: bool,
    stream: tuple[str, ...],
    reply_queue: str,
    work: Path | None,
    objects: Path | None,
    wait_s: float,
    output: Path,
    as_json: bool,
) -> ExitCode:
    """Write the publish/subscribe state of queue manager QMGR as a source of strmqbrk and migmbbrk.

    Without --metatopics, extract reads what the DISPLAY commands of a queue manager of version 7 or later show, and
    writes the state as JSON. With --metatopics, it asks a version 6 broker for its streams, subscribers, publishers and
    retained publications, and writes the answers as a capture. If it is interrupted, run the same command again.
    """
    if metatopics and objects is not None:
        raise click.UsageError("--objects cannot be used with --metatopics: a version 6 broker has no topic objects")
    if not metatopics and (stream or work is not None):
        raise click.UsageError("--stream and --work need --metatopics")
    if as_json and str(output) == "-":
        raise click.UsageError("--json needs --output FILE")
    qmgr = reached.qmgr
    with reached.opened(console) as live:
        if metatopics:
            if live.messages is None:
                raise click.UsageError("--metatopics puts commands on queues: give --queues mq://...")
            asking = Interrogation(
                live.messages,
                qmgr,
                reply_queue,
                work or Path(f"extract-{qmgr}.work"),
                wait_s,
                lambda: datetime.now(UTC),
                lambda what: console.say(f"asking for {what}"),
            )
            answers = asking.ask(stream)
            with console.data_to(output):
                write_captures(answers, console.binary, "jsonl")
            asking.forget()
            console.say(f"{counted(len(answers), 'answer')} of queue manager {qmgr}")
            if as_json:
                console.json({"qmgr": qmgr, "answers": len(answers), "output": str(output)})
            return ExitCode.DONE
        publications = None if live.store is None else live.store.load_state()[2]
        copies = None if live.connection is None else retained_copies(live.connection)
        state = state_of(live.administrator, datetime.now(UTC), publications, copies)
        script = None if objects is None else list(script_of(read_live(live.administrator, KINDS), qmgr))
    if objects is not None and script is not None:
        with console.data_to(objects):
            console.binary.write("".join(f"{line}\n" for line in script).encode("utf-8", "backslashreplace"))
    with console.data_to(output):
        console.binary.write(state_json.write([state]).encode("utf-8", "backslashreplace"))
        console.flush()
    return _summary(console, state, output, as_json=as_json)


_PLURALS: Final = {"authority": "authorities", "retained": "retained"}


def _summary(console: Console, state: LegacyState, output: Path, *, as_json: bool) -> ExitCode:
    kinds = Counter(item.kind for _, item in state.items())
    words = ((kind.replace("_", " "), count) for kind, count in kinds.items() if kind != "unread")
    said = ", ".join(counted(count, word, _PLURALS.get(word)) for word, count in words)
    console.say(f"{said}; fingerprint {fingerprint(state)}")
    found = remarks(state)
    for line in found:
        console.warn(line)
    if any(item.text == NEVER_SHOWN for item in state.unread):
        console.say(f"not in the state, because no DISPLAY shows them: {NEVER_SHOWN}")
    if as_json:
        body = {"qmgr": state.qmgr, "items": dict(kinds), "fingerprint": fingerprint(state), "output": str(output)}
        console.json(body)
    return ExitCode.PROBLEMS if found else ExitCode.DONE
