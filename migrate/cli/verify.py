"""``qpubsub verify``: compare what was planned with what is live."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from commands.options.verb import verb
from commands.terminal.console import Console, ExitCode
from commands.terminal.counted import counted
from migrate.cli import live_options
from migrate.cli.live_options import Reached
from migrate.live.differences import Comparison, NameProbe, compare, planned_separator, probe_names
from migrate.live.snapshot import read_live
from migrate.planned_state import WORDS, PlannedHeading, by_kind

_TOLD: Final = ("how", "kind", "what", "attribute", "planned", "live", "todo")


@verb(
    "qpubsub verify -m QM1 migration",
    "qpubsub verify -m QM1 migration --admin https://mq.example.com:9443 --config admin.toml --json",
    "qpubsub verify -m QM1 migration --queues 'mq://mq/QM1?channel=ADMIN' --probe-names",
    prints=True,
    exit_codes={
        0: "what is planned is live",
        1: "there are differences; each one is named",
        2: "they could not be compared",
    },
)
@live_options.live_queue_manager
@click.option(
    "--probe-names",
    is_flag=True,
    help="Register subscriptions on a stream, see how the queue manager names them, and remove them.",
)
@click.option("--stream", metavar="QUEUE", help="With --probe-names: the stream. Default: the first that there is.")
@live_options.wait
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@live_options.directory_of_plan
@click.pass_obj
def command(
    console: Console,
    reached: Reached,
    probe_names: bool,
    stream: str | None,
    wait_s: float,
    as_json: bool,
    directory: Path,
) -> ExitCode:
    """Compare the plan in DIRECTORY with what queue manager QMGR has now.

    DIRECTORY is what --out of strmqbrk or migmbbrk wrote. verify looks at the attributes of the queue manager, queues,
    topic objects, namelists, authority records, subscriptions and retained publications, and prints each difference. It
    changes nothing, except with --probe-names, which removes what it made.
    """
    heading, planned = reached.planned(directory)
    if stream is not None and not probe_names:
        raise click.UsageError("--stream needs --probe-names")
    with reached.opened(console) as live:
        state = read_live(live.administrator, ("QMGR", *by_kind(planned)))
        found = compare(heading, planned, state, datetime.now(UTC))
        probe = None
        if probe_names:
            if live.messages is None:
                raise click.UsageError("--probe-names puts commands on queues: give --queues mq://... too")
            separator = planned_separator(planned)
            probe = _probe(live.administrator, live.messages, stream, separator, wait_s)
        where = live.administrator.where
    if as_json:
        console.json(_as_json(heading, where, found, probe))
    else:
        _print(console, found, probe)
    is_same = not found.differences and (probe is None or probe.is_found)
    console.say(f"{where}: {_summary(found)}")
    return ExitCode.DONE if is_same else ExitCode.PROBLEMS


_probe = probe_names


def _print(console: Console, found: Comparison, probe: NameProbe | None) -> None:
    for difference in found.differences:
        console.data(f"{difference.how:8}{difference}")
    if probe is not None:
        for line in probe.lines:
            console.data(line)


def _summary(found: Comparison) -> str:
    total = sum(found.compared.values())
    said = [counted(count, WORDS[kind]) for kind, count in found.compared.items() if kind != "QMGR"]
    compared = f"{counted(total, 'object')} compared" + (f" ({', '.join(said)})" if said else "")
    more = [f"{counted(found.others, 'other live subscription')} not in the plan"] * bool(found.others)
    more += [f"{found.expired:,} planned subscriptions have expired"] * bool(found.expired)
    count = len(found.differences)
    differ = counted(count, "difference") if count else "no difference"
    return "; ".join([f"{differ}, {compared}", *more])


def _as_json(heading: PlannedHeading, where: str, found: Comparison, probe: NameProbe | None) -> dict[str, Any]:
    return {
        "qmgr": heading.qmgr,
        "where": where,
        "plan": {"tool": heading.tool, "broker": heading.broker, "fingerprint": heading.fingerprint},
        "same": not found.differences,
        "compared": found.compared,
        "differences": [{word: getattr(each, word) for word in _TOLD} for each in found.differences],
        "other_subscriptions": found.others,
        "expired": found.expired,
        "names": None
        if probe is None
        else {
            "stream": probe.stream,
            "planned_separator": probe.planned,
            "live_separator": probe.live,
            "found": probe.is_found,
            "shown": probe.shown,
            "reason": probe.reason,
        },
    }
