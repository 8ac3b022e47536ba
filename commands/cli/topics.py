"""``qpubsub topics``: a picture of a queue manager's topic tree."""

from __future__ import annotations

from pathlib import Path

import click

from commands.cli.console import Console, ExitCode
from commands.cli.options import queue_manager
from commands.pictures import page, svg, text_tree
from commands.queues import QueueManagerStore
from streams.outline import Outline, outline


@click.command(
    epilog="\b\nExamples:\n  qpubsub topics -m QM1 --under Sport\n  qpubsub topics -m QM1 --to html > topics.html"
)
@queue_manager
@click.option("--under", default="", metavar="TOPIC", help="Only this topic string and what lies below it.")
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="At most N levels; what is deeper is counted.")
@click.option(
    "--to", "form", type=click.Choice(["text", "svg", "html"]), default="text", show_default=True, help="What to draw."
)
@click.pass_obj
def command(console: Console, qmgr: str, home: Path, under: str, depth: int | None, form: str) -> ExitCode:
    """Draw the topic tree: topic objects, who subscribes where, and where a publication is retained.

    A square is a topic object, a circle a subscription (its name, or its queue), a diamond a retained publication.
    """
    with QueueManagerStore.open(home, qmgr) as store:
        objects, subscriptions, retained = store.load_state()
    root = outline(objects.topics, subscriptions, (kept.topic_string for kept in retained), under, depth)
    title = f"{qmgr}: {under}" if under else qmgr
    if form == "text":
        for line in text_tree(root, title, colour=console.stdout.isatty()):
            console.data(line)
    else:
        console.stdout.write((svg if form == "svg" else page)(root, title).encode())
    console.say(_counts(root))
    return ExitCode.DONE


def _counts(root: Outline) -> str:
    nodes = list(root.walk())
    objects, subscriptions = sum(len(n.objects) for n in nodes), sum(len(n.subscriptions) for n in nodes)
    retained = sum(node.retained for node in nodes)
    return f"{objects} topic objects, {subscriptions} subscriptions, {retained} retained publications"
