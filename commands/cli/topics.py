"""``qpubsub topics``: a picture of a queue manager's topic tree."""

from __future__ import annotations

from pathlib import Path

import click

from commands.cli.options.queue_manager import queue_manager
from commands.explain.pictures import page, svg, text_tree
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from rfh2.terminal_escape import visible
from streams.namelists import QUEUE_NAMELIST, SUB_POINT_NAMELIST
from streams.outline import Outline, outline
from streams.topic_prefixes import collisions, places


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

    A square is a topic object, a triangle a stream or a subscription point that lies there, a circle a subscription
    (its name, or its queue), a diamond a retained publication. Streams and subscription points that get in each
    other's way, and streams without a topic object, are reported on stderr.
    """
    with QueueManagerStore.open(home, qmgr) as store:
        objects, subscriptions, retained = store.load_state()
    lists = (objects.namelists.get(QUEUE_NAMELIST), objects.namelists.get(SUB_POINT_NAMELIST), objects.topics)
    kept_topics = (kept.topic_string for kept in retained)
    root = outline(objects.topics, subscriptions, kept_topics, under, depth, places(*lists))
    title = visible(f"{qmgr}: {under}") if under else qmgr
    if form == "text":
        for line in text_tree(root, title, colour=console.coloured):
            console.data(line, coloured=console.coloured)
    else:
        console.binary.write((svg if form == "svg" else page)(root, title).encode())
    for finding in collisions(*lists):
        console.warn(finding.text)
    console.say(_counts(root))
    return ExitCode.DONE


def _counts(root: Outline) -> str:
    nodes = list(root.walk())
    objects, subscriptions = sum(len(n.objects) for n in nodes), sum(len(n.subscriptions) for n in nodes)
    retained = sum(node.retained for node in nodes)
    return f"{objects} topic objects, {subscriptions} subscriptions, {retained} retained publications"
