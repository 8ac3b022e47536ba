"""A Delta table as the output of a continuous replay: the puts of each batch are added to it once.

The file of a batch is written and gets its name as in every output (``following``). Then one commit of the table adds
the file, and notes that this replay has added batch N (the action ``txn`` of the Delta protocol). A kill between the
two leaves a file that the table does not have: the next run finds no note on the batch, and commits. A kill after the
commit leaves the note, and the next run commits nothing. Spark records that the batch is done after that.

The lock of the checkpoint keeps a second process of the same replay out. Other programs may add to the table meanwhile.
"""

from __future__ import annotations

import json
from pathlib import Path

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyarrow import parquet

from commands.disk.files import directory_to_disk, to_disk
from commands.replay.spark.schemas import PUTS, arrow_schema


class PutsTable:
    """The table in *directory*, which is made with its first batch. app_id: names the replay in the table."""

    def __init__(self, directory: Path, app_id: str) -> None:
        self._directory, self._app_id = directory, app_id

    def add(self, batch: int, file: Path) -> None:
        """Add the puts of a batch, unless they have been added. file: below the directory, with the columns PUTS."""
        action = _added(file, file.relative_to(self._directory))
        properties = CommitProperties(app_transactions=[Transaction(self._app_id, batch)])
        place, schema = str(self._directory), Schema.from_arrow(arrow_schema(PUTS))
        if DeltaTable.is_deltatable(place):
            table = DeltaTable(place)
            done = table.transaction_version(self._app_id)
            if done is None or done < batch:
                table.create_write_transaction([action], "append", schema, commit_properties=properties)
        else:
            create_table_with_add_actions(place, schema, [action], commit_properties=properties)
        self._to_disk()

    def _to_disk(self) -> None:
        """The last commit is not lost with the power."""
        log = self._directory / "_delta_log"
        with max(log.glob("*.json")).open("rb") as file:
            to_disk(file)
        directory_to_disk(log)
        directory_to_disk(self._directory)


def _added(file: Path, inside: Path) -> AddAction:
    about = parquet.read_metadata(file)
    column = about.schema.names.index("seq")
    found = [about.row_group(number).column(column).statistics for number in range(about.num_row_groups)]
    bounds = {"minValues": {"seq": min(s.min for s in found)}, "maxValues": {"seq": max(s.max for s in found)}}
    state = file.stat()
    stats = json.dumps({"numRecords": about.num_rows, **bounds, "nullCount": {"seq": 0}})
    return AddAction(inside.as_posix(), state.st_size, {}, state.st_mtime_ns // 1_000_000, True, stats)
