"""The runbook for migrating a version 6 hierarchy to version 7, one queue manager at a time (guide 7.4.1)."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.runbooks.markdown import document, in_code, plain
from migrate.runbooks.topology import Topology, check_topology


def hierarchy_runbook(topology: Topology) -> str:
    """Markdown with the commands filled in."""
    return document(_lines(topology))


def _lines(topology: Topology) -> Iterator[str]:
    yield "# From a version 6 hierarchy to a version 7 hierarchy"
    yield ""
    yield "The hierarchy works all the time, some queue managers at version 6 and some at version 7, in any order."
    yield "All queue managers of one installation change together."
    yield ""
    yield "```"
    yield from (f"{'  ' * depth}{in_code(qmgr)}" for qmgr, depth in topology.from_the_top())
    yield "```"
    yield from findings(topology)
    for qmgr, _ in topology.from_the_top():
        parent = topology.parents.get(qmgr, "")
        yield ""
        yield f"## {plain(qmgr)}"
        yield ""
        yield f"1. `strmqm {in_code(qmgr)}` (upgraded; PSMODE is COMPAT)"
        yield f"2. `qpubsub strmqbrk -m {in_code(qmgr)} --rehearse --source ...`, and read its report"
        yield f"3. `qpubsub strmqbrk -m {in_code(qmgr)} --source ...`"
        yield "4. read `psmigr.log`"
        yield "5. `DISPLAY QMGR PSMODE PARENT`: PSMODE(ENABLED)" + (
            f", PARENT({plain(parent)})" if parent else ", no parent"
        )
        neighbours = [n for n in (parent, *topology.children(qmgr)) if n]
        if neighbours:
            yield f"6. `DISPLAY PUBSUB TYPE(ALL)`: ACTIVE for {plain(', '.join(neighbours))}, once they are migrated"


def findings(topology: Topology) -> Iterator[str]:
    """What must be corrected first."""
    found = check_topology(topology)
    if not found:
        return
    yield ""
    yield "**First of all:**"
    yield ""
    yield from (f"- {finding.id}: {plain(finding.text)}" for finding in found)
