"""``qpubsub topics``: a picture of a queue manager's topic tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from commands.config.home import Home
from commands.explain.pictures import Outline, marks, outline, page, svg as picture, text_tree
from commands.options.captures import STDIN
from commands.options.queue_manager import queue_manager_to_read
from commands.options.rows import RowForm, row_options
from commands.options.verb import FILE_OR_DASH, verb
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from rfh2.terminal_escape import visible
from streams.mapping import collisions, places
from streams.topic_objects import QUEUE_NAMELIST, SUB_POINT_NAMELIST

_PICTURE: Final = FILE_OR_DASH


@verb("qpubsub topics -m QM1 --under Sport", "qpubsub topics -m QM1 --html topics.html", prints=True)
@queue_manager_to_read
@click.option("--under", default="", metavar="TOPIC", help="Show only this topic string and the topics below it.")
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Show at most N levels; count the rest.")
@click.option("--to", "form", type=click.Choice(["text", "json", "svg", "html"]), default="text", hidden=True)
@click.option("--html", type=_PICTURE, metavar="FILE|-", help="Draw the tree as an HTML page.")
@click.option("--svg", type=_PICTURE, metavar="FILE|-", help="Draw the tree as a picture.")
@row_options(("topic", "topic_objects", "subscriptions", "retained", "hidden_below"))
@click.option("--json", "form", flag_value="json", help="Print one JSON object for each topic.")
@click.pass_obj
def command(
    console: Console,
    qmgr: str,
    home: Home,
    under: str,
    depth: int | None,
    form: str,
    html: Path | None,
    svg: Path | None,
    rows: RowForm | None,
) -> ExitCode:
    """Show the topic tree: topic objects, subscriptions and retained publications.

    A square is a topic object, a triangle is a stream or a subscription point, a circle is a subscription (with its
    name, or its queue), and a diamond is a retained publication. topics reports on stderr streams and subscription
    points whose topics collide, and streams without a topic object.
    """
    with QueueManagerStore.open(home, qmgr) as store:
        objects, subscriptions, retained = store.load_state()
    lists = (objects.namelists.get(QUEUE_NAMELIST), objects.namelists.get(SUB_POINT_NAMELIST), objects.topics)
    kept_topics = (kept.topic_string for kept in retained)
    root = outline(
        objects.topics, subscriptions, kept_topics, under, depth, places(*lists), copies=objects.topics.copies
    )
    title = visible(f"{qmgr}: {under}") if under else qmgr
    for path, draw in ((html, page), (svg, picture)):
        if path is not None and path != STDIN:
            path.write_text(draw(root, title), encoding="utf-8")
        elif path is not None:
            console.binary.write(draw(root, title).encode())
    if form in ("svg", "html"):
        console.say(f"--to {form} is now --{form} FILE; the former name still works")
    if rows is not None:
        for topic in _topics(root):
            names = [each["name"] or each["queue"] for each in topic["subscriptions"]]
            joined = {"topic_objects": " ".join(topic["topic_objects"]), "subscriptions": " ".join(names)}
            rows.show(console, topic | joined)
    elif html is not None or svg is not None:
        pass  # there is a picture instead
    elif form == "text":
        for line in text_tree(root, title, colour=console.coloured):
            console.data(line, coloured=console.coloured)
    elif form == "json":
        for topic in _topics(root):
            console.json(topic)
    else:
        console.binary.write((picture if form == "svg" else page)(root, title).encode())
    for finding in collisions(*lists):
        console.warn(finding.text)
    console.say(_counts(root))
    return ExitCode.DONE


def _topics(root: Outline) -> Iterator[dict[str, Any]]:
    """The topics, top down, as far as anything is at them."""
    for one in root.walk():
        if at := marks(one):
            found: dict[str, Any] = {"topic": one.topic_string, "retained": one.retained, "hidden_below": one.hidden}
            found["topic_objects"] = [topic_object.name for topic_object in one.objects]
            found["subscriptions"] = [
                {"name": each.name, "queue": each.dest_queue, "qmgr": each.dest_qmgr} for each in one.subscriptions
            ]
            found["marks"] = [text for _, text in at]
            yield found


def _counts(root: Outline) -> str:
    nodes = list(root.walk())
    objects, subscriptions = sum(len(n.objects) for n in nodes), sum(len(n.subscriptions) for n in nodes)
    retained = sum(node.retained for node in nodes)
    return ", ".join(
        counted(number, noun)
        for number, noun in (
            (objects, "topic object"),
            (subscriptions, "subscription"),
            (retained, "retained publication"),
        )
    )
