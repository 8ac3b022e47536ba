"""``qpubsub status`` and ``topics``: what a queue manager holds, what its processor is doing, and its topic tree."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from commands.broker.context import not_read
from commands.config.home import Home
from commands.config.urls import is_mq_address
from commands.disk import files
from commands.explain.pictures import Outline, marks, outline, page, svg as picture, text_tree
from commands.options import remote
from commands.options.captures import STDIN
from commands.options.queue_manager import queue_manager_to_read, queue_manager_to_read_or_remote
from commands.options.rows import Row, RowForm, row_options
from commands.options.verb import FILE_OR_DASH, verb
from commands.qmgr.delivery import STRANDED_HELP
from commands.qmgr.store import QueueManagerStore
from commands.running.status import MOST_DEAD_LETTERS, activity_lines, activity_list_lines, activity_lists, status_of
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from commands.terminal.stopping import stopping
from rfh2.constants import reason_text
from rfh2.terminal_escape import visible
from streams.mapping import collisions, places
from streams.topic_objects import QUEUE_NAMELIST, SUB_POINT_NAMELIST

_NEARLY_FULL: Final = 0.8
_MOST_DRIFT: Final = 20
_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "queues": ("queue", "depth", "oldest_s", "puts", "last_put", "gets", "last_get", "role", "max_depth"),
    "subscriptions": ("topic", "queue", "qmgr", "name", "delivered", "last_delivery", "filtered", "dead_letters"),
    "topics": ("topic", "published", "last_publication"),
}
"""Of the rows of ``--csv`` and ``--line``: each queue, or each row of a list."""
_COUNTED: Final[dict[str, tuple[str, ...]]] = {
    "errors": ("command in error", "commands in error"),
    "linked": ("publication for the topic tree", "publications for the topic tree"),
    "discarded": ("discarded", "discarded"),
}


def _rows_of(lists: tuple[str, ...]) -> str:
    if len(lists) > 1:
        raise click.UsageError("--csv and --line print one list: give --list once")
    return lists[0] if lists else "queues"


def _columns(own: Mapping[str, Any]) -> tuple[str, ...]:
    return _COLUMNS[_rows_of(own["lists"])]


@verb(
    "qpubsub status -m QM1",
    "qpubsub status -m QM1 --list subscriptions | grep BOARD",
    "qpubsub status -m QM1 --csv",
    "qpubsub status -m QM1 --json | jq .input.oldest_s",
    "qpubsub status -m QM1 --watch 2",
    prints=True,
    former={"--subscriptions": "--list=subscriptions", "--topics": "--list=topics"},
)
@queue_manager_to_read_or_remote
@click.option(
    "--list",
    "lists",
    multiple=True,
    type=click.Choice(["subscriptions", "topics"]),
    help="List each subscription, with what was delivered to it, or each topic on which a program published.",
)
@click.option(
    "--watch",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Show it again every SECONDS, until Ctrl-C; with --json, one object on each line.",
)
@row_options(_columns)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status_command(
    console: Console,
    qmgr: str,
    home: Home,
    lists: tuple[str, ...],
    watch: float | None,
    rows: RowForm | None,
    as_json: bool,
) -> ExitCode:
    """Show the progress of the processor, the messages on each queue, the reasons of dead letters, and the last errors.

    status does not hold up the processor, and is quick on large queue managers. Long lists take longer.
    With --csv and --line, it prints a row for each queue, or with --list for each subscription or topic.
    With -m mq://..., it shows the queue manager and the messages on its local queues.
    """
    is_page = watch is not None and rows is None and console.stdout.isatty()
    show = partial(_show, console, qmgr, home, lists, as_json, rows, is_page=is_page)
    show()
    if watch is None:
        return ExitCode.DONE
    stop = threading.Event()
    with stopping(stop):
        while not stop.wait(watch):
            if not as_json and rows is None:
                console.new_page()
            show()
            console.stdout.flush()
    return ExitCode.DONE


def _show_elsewhere(console: Console, url: str, as_json: bool) -> None:
    status = remote.status_of(url)
    if as_json:
        console.json(status)
        return
    console.data(f"Queue manager {status['qmgr']}, level {status['command_level']}, PSMODE({status['psmode']})")
    for name, row in status["queues"].items():
        if row["depth"]:
            console.data(f"  {name}: {counted(row['depth'], 'message')}")


def _show(
    console: Console,
    qmgr: str,
    home: Home,
    lists: tuple[str, ...],
    as_json: bool,
    rows: RowForm | None,
    *,
    is_page: bool,
) -> None:
    if is_mq_address(qmgr):
        remote.refuse({"--list": lists, "--csv or --line": rows})
        _show_elsewhere(console, qmgr, as_json)
        return
    with QueueManagerStore.open(home, qmgr) as store:
        listed = activity_lists(store, "subscriptions" in lists, "topics" in lists)
        status = status_of(store, datetime.now(UTC)) | listed
    if status["open_to_others"]:
        console.warn(files.warning(store.directory))
    if rows is not None:
        for row in _rows(status, _rows_of(lists)):
            rows.show(console, row)
    elif as_json:
        console.json(status)
    elif is_page:
        status["queues"] = {name: row for name, row in status["queues"].items() if row["depth"]}
        for line in page_of(list(_lines(status)), *shutil.get_terminal_size()):
            console.data(line)
    else:
        for line in _lines(status):
            console.data(line)


def _rows(status: dict[str, Any], of: str) -> Iterator[Row]:
    if of == "queues":
        return ({"queue": name, **row} for name, row in sorted(status["queues"].items()))
    return iter(status[f"{of.removesuffix('s')}_list"])


def _definition_lines(definitions: dict[str, Any] | None) -> Iterator[str]:
    if definitions is None:
        return
    found = definitions["drift"]
    differ = f"{counted(len(found), 'difference')}" if found else "no difference"
    yield f"Definitions of {definitions['directory']}: {definitions['problem'] or differ}"
    for text in found[:_MOST_DRIFT]:
        yield f"  {text}"
    if len(found) > _MOST_DRIFT:
        yield f"  {len(found) - _MOST_DRIFT} more"


def _connection_lines(there: dict[str, Any]) -> Iterator[str]:
    if there["unknown"]:
        yield f"Connected: {there['unknown']}"
    if there["listeners"]:
        by = ", ".join(f"{count} by {channel}" for channel, count in there["channels"].items())
        where = " and ".join(there["listeners"])
        yield f"Listening on {where}: {counted(there['programs'], 'program')} connected{f' ({by})' if by else ''}"


def page_of(lines: list[str], columns: int, rows: int) -> list[str]:
    """The first of *lines*, as many and as much of each as a window shows; the cursor needs a row too."""
    shown = lines if len(lines) < rows else [*lines[: rows - 2], f"{len(lines) - rows + 2} more lines"]
    return [line if len(line) <= columns else f"{line[: columns - 3]}..." for line in shown]


def _lines(status: dict[str, Any]) -> Iterator[str]:
    checked = "authority is checked" if status["authority_checked"] else "authority is not checked"
    yield (
        f"Queue manager {status['qmgr']}, PSMODE({status['psmode']}): "
        f"{counted(status['subscriptions'], 'subscription')}, "
        f"{counted(status['retained'], 'retained publication')}; {checked}"
    )
    processor, waiting = status["processor"], status["input"]
    yield from activity_lines(status["activity"], status["subscriptions"])
    yield _processor_line(processor)
    for each in processor["instances"]:
        if each["mode"] == "standby":
            yield f"Process {each['pid']} on {each['host']}: running as standby"
    if processor["running"] and (stuck := processor.get("waiting")):
        yield f"Waiting since {stuck['since']}: {stuck['text']}"
    if processor["running"] and (link := processor.get("link")):
        yield _link_line(link)
    yield from _connection_lines(status["connections"])
    if work := processor["working_on"]:
        what = f"message {work['seq']} on {work['queue']}, {work['size_bytes']:,} bytes, MsgId {work['msg_id']}"
        yield f"Working on {what}, for {_duration(work['for_s'])}"
    if waiting["waiting"]:
        one = waiting["waiting"] == 1
        wait = f"{counted(waiting['waiting'], 'command')} {'waits' if one else 'wait'}"
        yield f"{wait}, the first for {_duration(waiting['oldest_s'])}"
    for row in status["neighbours"]:
        of = f" of cluster {row['cluster']}" if "cluster" in row else ""
        line = f"{row['relation'].capitalize()} {row['qmgr']}{of}: {row['status']}"
        if row["oldest_s"] is not None:
            line += f"; {counted(row['waiting'], 'message')} for it, the first for {_duration(row['oldest_s'])}"
        yield line
    yield from _definition_lines(status["definitions"])
    size = status["database"]
    megabytes = [f"{size[key] / 1e6:,.1f} MB" for key in ("bytes", "free_bytes", "log_bytes")]
    yield f"Database {megabytes[0]}, {megabytes[1]} of it free; write-ahead log {megabytes[2]}"
    if size["most_sessions"]:
        by = ", ".join(f"{count} by process {process}" for process, count in size["sessions"].items())
        yield f"Connections to the server: {by}; it allows {size['most_sessions']} in all"
    yield ""
    yield "  depth  oldest       put       got  queue"
    for name, row in sorted(status["queues"].items(), key=lambda item: (-item[1]["depth"], item[0])):
        oldest = "" if row["oldest_s"] is None else _duration(row["oldest_s"])
        yield f"{row['depth']:>7}  {oldest:>6}  {row['puts']:>8}  {row['gets']:>8}  {name}{_remarks(name, row)}"
    if status["owed"]:
        yield ""
        yield "Publications that neither their queue nor the dead-letter queue takes, tried again until one does:"
        for row in status["owed"]:
            yield f"{row['count']:>7}  {_duration(row['oldest_s']):>6}  {row['queue']}"
    yield from _dead_letter_lines(status["dead_letters"])
    errors = processor.get("last_errors") or []
    if errors:
        yield ""
        yield "Last errors:"
        for error in errors:
            times = f" ({error['times']} times)" if error.get("times") else ""
            yield f"  {error['time']}  {error['text']}{times}"
    yield from activity_list_lines(status)


def _remarks(name: str, row: dict[str, Any]) -> str:
    remarks = [row["role"]] if row["role"] else []
    remarks += [f"for queue manager {name}: {STRANDED_HELP}"] * row["stranded"]
    if row["max_depth"] is not None:
        state = "full" if row["depth"] >= row["max_depth"] else "nearly full"
        nearly = row["depth"] >= _NEARLY_FULL * row["max_depth"]
        remarks += [f"{state}: MAXDEPTH {row['max_depth']}"] * nearly
    remarks += [f"not processed: {not_read(name)}"] * row["not_read"]
    remarks += ["putting is inhibited"] * row["put_inhibited"] + ["getting is inhibited"] * row["get_inhibited"]
    return f"  ({'; '.join(remarks)})" if remarks else ""


def _dead_letter_lines(dead: dict[str, Any]) -> Iterator[str]:
    if dead["reasons"]:
        yield ""
        which = f", the first {MOST_DEAD_LETTERS:,}" if dead["looked_into"] == MOST_DEAD_LETTERS else ""
        yield f"Dead letters{which}:"
        for row in dead["reasons"]:
            yield f"{row['count']:>7}  {_why_dead(row)}"


def _why_dead(row: dict[str, Any]) -> str:
    reason = row["reason"]
    if reason is None:
        return "without a dead-letter header"
    return f"{reason} {reason_text(reason)}".rstrip() + f", for {row['for']}"


def _processor_line(processor: dict[str, Any]) -> str:
    done = processor.get("done") or {}
    names = {name: _COUNTED.get(name, (name.replace("_", " ").removesuffix("s"),)) for name in done}
    did = ", ".join(counted(count, *names[name]) for name, count in done.items() if count)
    if not processor["running"]:
        return f"No processor is running; the last one did {did or 'nothing'}" if done else "No processor is running"
    rates = processor.get("per_second") or {}
    speed = f", now {rates['commands']:,g} commands/s" if rates.get("commands") else ""
    who = f"Processor {processor.get('pid', '?')} since {processor.get('started', '?')}"
    return f"{who}: {did or 'nothing yet'}{speed}"


def _link_line(link: dict[str, Any]) -> str:
    if link["connected"]:
        return f"Topic tree: connected since {link['since']}" + (f"; {link['trouble']}" if link["trouble"] else "")
    pause = link["next_try_s"]
    again = "" if pause is None else f"; pause before the next try {pause:.1f} s"
    return f"Topic tree: not connected since {link['since']}: {link['trouble'] or 'no answer yet'}{again}"


_UNITS: Final[tuple[tuple[float, str], ...]] = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def _duration(seconds: float) -> str:
    """In the largest unit that makes it at least one."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return "0 s"


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
def topics_command(
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
