"""Read one piece into Arrow batches of the schema READ: messages, and problems for records that are not messages."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import from_json

from commands.broker.reading import natural_queue
from commands.replay.spark.pieces import Piece
from commands.replay.spark.schemas import CAPTURED, READ, arrow_schema, batch_of
from rfh2.captured import HIGHEST_SEQ, CapturedMessage
from rfh2.captures import CaptureRecord, Numbering, read_captures
from rfh2.captures.compressed import MAGIC_BYTES, decompressed, is_compressed
from rfh2.captures.parquet import open_parquet
from rfh2.captures.reading import DefaultQueue, partition_values
from rfh2.errors import CaptureError

NATURAL: Final = "natural"
"""The default queue that stands for whichever the command belongs on."""

_SCHEMA: Final = arrow_schema(READ)
_BATCH_ROWS: Final = 2000
_BATCH_BYTES: Final = 16 << 20
_GROUP_ROWS: Final = 4096
_CHUNK: Final = 1 << 20
_BLOCK_BYTES: Final = 1 << 20
_MOST_BLOCK_BYTES: Final = 16 << 20
_TEXTS: Final = frozenset((str, type(None)))
_UTC: Final = re.compile(r"[1-9]\d{3}-\d\d-\d\dT[012]\d:[0-5]\d:[0-5]\d(\.\d{1,6})?Z", re.ASCII)
_NO_MESSAGE: Final = (None,) * len(CAPTURED.names)


def read_piece(piece: Piece, default_queue: str = "") -> Iterator[pa.RecordBatch]:
    """The batches of *piece*.

    default_queue: the queue of messages that name none; ``natural`` for whichever the command in it belongs on.
    """
    default: DefaultQueue = natural_queue if default_queue == NATURAL else default_queue
    if piece.end is not None and piece.form != "jsonl":
        yield from _row_groups(piece, default)
        return
    written = file_time(piece)
    done: int | None = 0
    if piece.numbered and not partition_values(Path(piece.path)):
        done = yield from _in_blocks(piece, written)
    if done is not None:
        records = _whole(piece, default) if piece.end is None else _lines(piece, default)
        yield from batches_of(islice(records, done, None), written, positions=not piece.start)


def _in_blocks(piece: Piece, written: datetime | None) -> Generator[pa.RecordBatch, None, int | None]:
    """The messages of JSON Lines, up to a block that has anything else; how many, or None where those are all."""
    done = 0
    try:
        with Path(piece.path).open("rb") as file:
            head = file.read(MAGIC_BYTES)
            file.seek(max(piece.start - 1, 0))
            if piece.start:
                while (rest := file.readline(_CHUNK)) and not rest.endswith(b"\n"):
                    pass
            stream, left = cast(BinaryIO, file), None if piece.end is None else piece.end - file.tell()
            if is_compressed(head):
                stream = decompressed(head, stream)
            for block in _blocks(stream, left):
                found = _messages_in(block)
                if found is None:
                    return done
                rows = len(found[0])
                arrays = [pa.array(column, field.type) for column, field in zip(found, _SCHEMA, strict=False)]
                position = pa.nulls(rows, pa.int64()) if piece.start else pa.array(np.arange(done + 1, done + rows + 1))
                of_file = (pa.repeat(piece.path, rows), pa.nulls(rows, pa.string()), position)
                time = pa.repeat(pa.scalar(written, _SCHEMA.field("file_time").type), rows)
                yield pa.RecordBatch.from_arrays([*arrays, *of_file, time], schema=_SCHEMA)
                done += rows
    except OSError:
        return done
    return None


def _blocks(stream: BinaryIO, left: int | None) -> Iterator[bytes]:
    """Whole lines of *stream*, some megabytes at a time. left: in so many bytes the last line begins; None: in all."""
    while left is None or left > 0:
        block = stream.read(_BLOCK_BYTES if left is None else min(_BLOCK_BYTES, left))
        if not block:
            return
        if not block.endswith(b"\n"):
            block += stream.readline(_MOST_BLOCK_BYTES)
        left = None if left is None else left - len(block)
        yield block


def _messages_in(block: bytes) -> tuple[Sequence[Any], ...] | None:
    """The columns of CAPTURED of the messages in *block*.

    None where a line is not what every program writes: a message with seq, queue and body, and its time in UTC. What
    else is allowed, and what is wrong, knows ``read_captures``; what is taken here it takes as well.
    """
    if len(block) >= _MOST_BLOCK_BYTES:
        return None
    try:
        rows = [from_json(line) for line in block.removesuffix(b"\n").split(b"\n")]
        seq, queue = [row["seq"] for row in rows], [row["queue"] for row in rows]
        body = [bytes.fromhex(row["body_hex"]) for row in rows]
        md = [None if (digits := row.get("md_hex")) is None else bytes.fromhex(digits) for row in rows]
        time = [None if (text := row.get("time")) is None else _utc(text) for row in rows]
        qmgr, user = [row.get("qmgr") for row in rows], [row.get("user") for row in rows]
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
    of_type = {*map(type, seq)} == {int} and {*map(type, queue)} == {str} and {*map(type, (*qmgr, *user))} <= _TEXTS
    if not of_type or not all(queue) or min(seq) < 0 or max(seq) > HIGHEST_SEQ:
        return None
    return seq, time, qmgr, queue, user, md, body


def _utc(text: str) -> datetime:
    if _UTC.fullmatch(text) is None:
        raise ValueError(text)
    return datetime.fromisoformat(text)


def file_time(piece: Piece) -> datetime | None:
    """When the file was last written; None where it is gone."""
    try:
        return datetime.fromtimestamp(Path(piece.path).stat().st_mtime, UTC)
    except OSError:
        return None


def _whole(piece: Piece, default: DefaultQueue) -> Iterator[CaptureRecord]:
    return read_captures(Path(piece.path), piece.form, default_queue=default, numbering=_numbering(piece))


def _numbering(piece: Piece) -> Numbering:
    numbering = Numbering()
    numbering.saw(piece.first_seq - 1)
    return numbering


def _lines(piece: Piece, default: DefaultQueue) -> Iterator[CaptureRecord]:
    assert piece.end is not None
    with Path(piece.path).open("rb") as file:
        lines = cast(BinaryIO, _LineRange(file, piece.start, piece.end))
        before: int | None = None
        for record in read_captures(lines, "jsonl", name=piece.path, default_queue=default):
            if record.problem is not None and piece.start:
                if before is None:
                    before = _lines_before(piece)
                yield _moved(record, before)
            else:
                yield record


def _moved(record: CaptureRecord, lines: int) -> CaptureRecord:
    problem = record.problem
    assert problem is not None
    position = None if problem.position is None else problem.position + lines
    problem = CaptureError(problem.source, position, problem.why, problem.unit)
    return CaptureRecord(record.source, record.index, None, problem, record.position + lines)


def _lines_before(piece: Piece) -> int:
    """How many lines begin before the piece's own; only who has a problem to report needs to know."""
    count, left = 0, piece.start
    with Path(piece.path).open("rb") as file:
        while left > 0 and (chunk := file.read(min(_CHUNK, left))):
            count += chunk.count(b"\n")
            left -= len(chunk)
        return count if chunk.endswith(b"\n") else count + 1


class _LineRange:
    """The lines of a file that begin at *start* or behind it, and before *end*."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self._file, self._at, self._end = file, start, end
        self._begins = True
        if start:
            file.seek(start - 1)
            while (rest := file.readline(_CHUNK)) and not rest.endswith(b"\n"):
                self._at += len(rest)
            self._at += len(rest) - 1
        self.name = getattr(file, "name", "")

    def seekable(self) -> bool:
        return False

    def readline(self, limit: int = -1) -> bytes:
        if self._begins and self._at >= self._end:
            return b""
        line = self._file.readline(limit)
        self._at += len(line)
        self._begins = line.endswith(b"\n")
        return line


def batches_of(
    records: Iterable[CaptureRecord], written: datetime | None = None, *, positions: bool = True
) -> Iterator[pa.RecordBatch]:
    """*records* as batches of READ. written: when the file was. positions: whether they count from its beginning."""
    rows: list[tuple[Any, ...]] = []
    held = 0
    for record in records:
        message = record.message
        position = record.position if positions else None
        if message is None:
            rows.append((*_NO_MESSAGE, record.source, str(record.problem), position, written))
        else:
            rows.append((*_fields(message), record.source, None, position, written))
            held += len(message.body_hex) // 2
        if len(rows) >= _BATCH_ROWS or held >= _BATCH_BYTES:
            yield batch_of(rows, _SCHEMA)
            rows, held = [], 0
    if rows:
        yield batch_of(rows, _SCHEMA)


def _fields(message: CapturedMessage) -> tuple[Any, ...]:
    return (message.seq, message.time, message.qmgr, message.queue, message.user, message.md, message.body)


def _row_groups(piece: Piece, default: DefaultQueue) -> Iterator[pa.RecordBatch]:
    """Rows taken as they are, column by column."""
    assert piece.end is not None
    try:
        file = open_parquet(Path(piece.path), pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        yield _problem(piece, f"not readable as Parquet: {_first_line(error)}")
        return
    names = [name for name in CAPTURED.names if name in file.schema_arrow.names]
    given, written = partition_values(Path(piece.path)), file_time(piece)
    position = sum(file.metadata.row_group(number).num_rows for number in range(piece.start))
    for group in range(piece.start, piece.end):
        try:
            for batch in file.iter_batches(_GROUP_ROWS, row_groups=[group], columns=names, use_threads=False):
                yield _as_read(batch, piece.path, given, default, position, written)
                position += batch.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            yield _problem(piece, f"row group {group} is not readable: {_first_line(error)}")


def _as_read(
    batch: pa.RecordBatch,
    source: str,
    given: Mapping[str, str],
    default: DefaultQueue,
    position: int,
    written: datetime | None,
) -> pa.RecordBatch:
    rows = batch.num_rows
    of_file = {"source": [source] * rows, "position": range(position, position + rows), "file_time": [written] * rows}
    arrays = []
    for field in _SCHEMA:
        if field.name in of_file:
            arrays.append(pa.array(of_file[field.name], field.type))
        elif field.name in batch.schema.names:
            arrays.append(batch.column(field.name).cast(field.type, safe=False))
        else:
            arrays.append(pa.nulls(rows, field.type))
        if field.name in given:
            arrays[-1] = _filled(arrays[-1], given[field.name])
    at = _SCHEMA.get_field_index("queue")
    arrays[at] = _queues(arrays[at].fill_null(""), batch, default)
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _filled(column: pa.Array, value: str) -> pa.Array:
    own = pc.and_kleene(pc.is_valid(column), pc.not_equal(column, ""))
    return pc.if_else(own, column, pa.scalar(value, column.type))


def _queues(queues: pa.Array, batch: pa.RecordBatch, default: DefaultQueue) -> pa.Array:
    if not default or not pc.any(pc.equal(queues, "")).as_py():
        return queues
    given = queues.to_pylist()
    for at, queue in enumerate(given):
        if not queue:
            given[at] = default if isinstance(default, str) else default(_message(batch, at))
    return pa.array(given, pa.string())


def _message(batch: pa.RecordBatch, at: int) -> CapturedMessage:
    row = {name: batch.column(name)[at].as_py() for name in ("seq", "md", "body") if name in batch.schema.names}
    md = row.get("md")
    return CapturedMessage(
        seq=row["seq"], queue="", md_hex=None if md is None else md.hex(), body_hex=row["body"].hex()
    )


def _problem(piece: Piece, why: str) -> pa.RecordBatch:
    return batch_of(
        [(*_NO_MESSAGE, piece.path, str(CaptureError(piece.path, None, why)), None, file_time(piece))], _SCHEMA
    )


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
