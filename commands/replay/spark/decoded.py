"""``decoded``: headers and commands of captured messages, flat, and what is wrong with them.

Batches of Arrow go to the workers and come back; columns that do not change are not touched. What a queue manager takes
is decoded and parsed, and that is all. Only what it refuses is looked at as ``qpubsub decode`` does, fault by fault;
with ``thorough`` everything is, for the warnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from commands.explain.reading import explained
from commands.headers.registry import parse
from commands.model import Command
from commands.replay.spark.schemas import CAPTURED, DECODED, arrow_schema, check_columns
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError
from rfh2.explain.form import Problem
from rfh2.message import Message, decode
from rfh2.mqmd import Mqmd, name_of

_SCHEMA: Final = arrow_schema(DECODED)
_KEPT: Final = ("seq", "time", "qmgr", "queue", "user")
_MADE: Final = DECODED.names[len(_KEPT) :]
_NO_COMMAND: Final = (None,) * 12


def decoded(captured: DataFrame, *, thorough: bool = False) -> DataFrame:
    """One row of DECODED for each message of *captured*, in the same partitions and order.

    Rows without a body (problems of the capture) are left out. thorough: look for everything that ``qpubsub decode``
    warns of, too, at several times the price. Raises SchemaError.
    """
    check_columns(captured.schema, CAPTURED, "the capture")

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield decoded_batch(batch, thorough)

    return captured.select(*CAPTURED.names).where("body is not null").mapInArrow(run, DECODED)


def decoded_batch(batch: pa.RecordBatch, thorough: bool = False) -> pa.RecordBatch:
    """The rows of DECODED for a batch with the columns of CAPTURED, in none of which the body is null."""
    queues, md, body = (batch.column(name).to_pylist() for name in ("queue", "md", "body"))
    row = _thorough_row if thorough else _row
    rows = list(map(row, queues, md, body))
    kept = [batch.column(name).cast(_SCHEMA.field(name).type) for name in _KEPT]
    values = zip(*rows, strict=True) if rows else repeat((), len(_MADE))
    made = [pa.array(list(v), _SCHEMA.field(name).type) for name, v in zip(_MADE, values, strict=True)]
    return pa.RecordBatch.from_arrays([*kept, *made], schema=_SCHEMA)


def _row(queue: str | None, md: bytes | None, body: bytes) -> tuple[Any, ...]:
    try:
        message = decode(body, md)
        command = parse(message)
    except QPubSubError:
        return _thorough_row(queue, md, body)
    return _fields(message, message.mqmd, command, ())


def _thorough_row(queue: str | None, md: bytes | None, body: bytes) -> tuple[Any, ...]:
    md_hex = None if md is None else md.hex()
    found = explained(CapturedMessage(seq=0, queue=queue or "", md_hex=md_hex, body_hex=body.hex()))
    partial = found.partial
    return _fields(partial.message, partial.assumed, found.command, tuple(map(_problem, found.problems)))


def _fields(message: Message, mqmd: Mqmd, command: Command | None, problems: tuple[Any, ...]) -> tuple[Any, ...]:
    return (
        mqmd.msg_type,
        mqmd.report,
        mqmd.expiry,
        mqmd.encoding,
        mqmd.coded_char_set_id,
        name_of(mqmd.format),
        mqmd.priority,
        mqmd.persistence,
        mqmd.msg_id,
        mqmd.correl_id,
        name_of(mqmd.reply_to_q),
        name_of(mqmd.reply_to_qmgr),
        name_of(mqmd.user_identifier),
        name_of(mqmd.put_appl_name),
        [header.kind for header in message.headers],
        *(_NO_COMMAND if command is None else _command(command)),
        message.body_format,
        message.body_encoding,
        message.body_ccsid,
        message.body_offset,
        len(message.body),
        problems,
    )


def _command(command: Command) -> tuple[Any, ...]:
    # A command has only those of these fields that its kind has.
    given = command.__dict__
    return (
        command.header.value,
        command.word,
        command.topics,
        given.get("options"),
        command.stream_name,
        given.get("sub_point"),
        given.get("sub_name"),
        given.get("sub_identity"),
        given.get("sub_user_data"),
        given.get("filter"),
        command.q_name,
        command.qmgr_name,
    )


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "code": problem.code,
        "severity": problem.severity,
        "offset": problem.offset,
        "message": problem.message,
    }
