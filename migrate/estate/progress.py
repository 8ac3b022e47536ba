"""How far a live queue manager is with its plan, by the journal of what it has confirmed."""

from __future__ import annotations

from pathlib import Path

from migrate.estate.records import BEGUN, DONE, BrokerState, Record
from migrate.live.checkpoints import checkpoints
from migrate.live.journal import JOURNAL, entries_in, still_there
from migrate.planned_state import FILE_NAME, read_heading


def reached(record: Record, scripts: Path) -> Record:
    """*record* as the journal in *scripts* has it. Raises MigrationError if the journal or the plan is damaged.

    A process that was killed before the record was replaced leaves the two different.
    """
    if not record.plan:
        return record
    entries = entries_in(scripts / JOURNAL)
    if entries is None:
        # An undo that is complete gives the journal another name.
        was_undone = record.state in BEGUN and any(scripts.glob(f"{JOURNAL}.undone*"))
        return _changed(record, BrokerState.UNDONE) if was_undone else record
    there = list(still_there(entries))
    if not there:
        return _changed(record, BrokerState.UNDONE) if entries else record
    done = {entry.checkpoint for entry in there if entry.did == "done"}
    left = [each.name for each in checkpoints(read_heading(scripts / FILE_NAME)) if each.name not in done]
    if left:
        return _changed(record, BrokerState.APPLYING, left[0])
    return record if record.state in DONE else _changed(record, BrokerState.APPLIED)


def _changed(record: Record, state: BrokerState, checkpoint: str = "") -> Record:
    if (record.state, record.checkpoint) == (state, checkpoint):
        return record
    return record.model_copy(update={"state": state, "checkpoint": checkpoint, "said": ()})
