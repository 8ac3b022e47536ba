"""Headers and commands of captured messages as columns, and what is wrong with them: for Spark, pyarrow and pandas.

What a queue manager takes is decoded and parsed, and nothing else is done with it. Only what it refuses is examined as
``qpubsub decode`` does, fault by fault. With ``thorough`` every message is, for the warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat, starmap
from typing import Any, Final

import pyarrow as pa

from commands.explain.problems import explained
from commands.headers.registry import parse
from commands.model import Command
from commands.replay.columns import DECODED, WITH_DECODED, arrow_schema
from rfh2.captured import CapturedMessage
from rfh2.captures.record import CaptureRecord
from rfh2.errors import QPubSubError
from rfh2.explain.form import Problem
from rfh2.explain.problems import of_record
from rfh2.message import Message, body_text, decode
from rfh2.mqmd import Mqmd, name_of
from streams.selectors.properties import user_properties

SCHEMA: Final = arrow_schema(DECODED)
"""One row a message. Of a message that cannot be decoded it has what could be decoded, and the problem.

properties: those of the folder usr as text, ``true`` and ``false`` for booleans and hexadecimal for binary. The names
of nested elements are joined with periods. body_text: the data behind the headers, None where it is not text.
"""

_KEPT: Final = ("seq", "time", "qmgr", "queue", "user")
_MADE: Final = SCHEMA.names[len(_KEPT) :]

MESSAGE_SCHEMA: Final = arrow_schema(WITH_DECODED)
"""What is decoded of a message alone: the columns of SCHEMA that do not come from the capture, and two more.

body: the data behind the headers. error: why the message cannot be decoded, or why its command is refused; None where
there is nothing wrong, and for a message that is no command.
"""
_BATCH_RECORDS: Final = 1000
_NO_COMMAND: Final = (None,) * 12
_NO_MESSAGE: Final = (None,) * len(MESSAGE_SCHEMA)

_Read = tuple[Message, Mqmd, Command | None, tuple[dict[str, Any], ...]]
"""What was decoded of a message: it, its descriptor or the one assumed, its command, and its problems."""


def batches_of(records: Iterable[CaptureRecord], thorough: bool = False) -> Iterator[pa.RecordBatch]:
    """Batches of one row a record. A record that cannot be read has its problem, and None in all other columns."""
    waiting = iter(records)
    while some := list(islice(waiting, _BATCH_RECORDS)):
        columns = zip(*[_record_row(record, thorough) for record in some], strict=True)
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _record_row(record: CaptureRecord, thorough: bool) -> tuple[Any, ...]:
    if record.problem is not None:
        return (*[None] * (len(SCHEMA) - 1), (_problem(of_record(record.position, record.problem)),))
    assert record.message is not None
    m = record.message
    return (m.seq, m.time, m.qmgr, m.queue, m.user, *_fields(*_reader(thorough)(m.queue, m.md, m.body)))


def decoded_batch(batch: pa.RecordBatch, thorough: bool = False) -> pa.RecordBatch:
    """The rows of SCHEMA for a batch with the columns of a capture. No body in it is null."""
    queues, md, body = (batch.column(name).to_pylist() for name in ("queue", "md", "body"))
    rows = list(starmap(_fields, map(_reader(thorough), queues, md, body)))
    kept = [batch.column(name).cast(SCHEMA.field(name).type) for name in _KEPT]
    values = zip(*rows, strict=True) if rows else repeat((), len(_MADE))
    made = [pa.array(list(v), SCHEMA.field(name).type) for name, v in zip(_MADE, values, strict=True)]
    return pa.RecordBatch.from_arrays([*kept, *made], schema=SCHEMA)


def message_arrays(
    bodies: Iterable[bytes | None], mds: Iterable[bytes | None] | None = None, thorough: bool = False
) -> list[pa.Array]:
    """The columns of MESSAGE_SCHEMA for messages that stand alone, in any order. A message of None has None in each.

    bodies: headers and data. mds: their MQMDs; None where there are none.
    """
    read = _reader(thorough)
    rows = [
        _NO_MESSAGE if body is None else _lone_row(*read(None, md, body))
        for body, md in zip(bodies, repeat(None) if mds is None else mds, strict=mds is not None)
    ]
    values = zip(*rows, strict=True) if rows else repeat((), len(MESSAGE_SCHEMA))
    return [pa.array(list(v), field.type) for v, field in zip(values, MESSAGE_SCHEMA, strict=True)]


def _lone_row(
    message: Message, mqmd: Mqmd, command: Command | None, problems: tuple[dict[str, Any], ...]
) -> tuple[Any, ...]:
    error = next((problem["message"] for problem in problems if problem["severity"] == "error"), None)
    return (*_fields(message, mqmd, command, problems), message.body, error)


def _reader(thorough: bool) -> Callable[[str | None, bytes | None, bytes], _Read]:
    return _read_thoroughly if thorough else _read


def _read(queue: str | None, md: bytes | None, body: bytes) -> _Read:
    try:
        message = decode(body, md)
        command = parse(message)
    except QPubSubError:
        return _read_thoroughly(queue, md, body)
    return message, message.mqmd, command, ()


def _read_thoroughly(queue: str | None, md: bytes | None, body: bytes) -> _Read:
    md_hex = None if md is None else md.hex()
    found = explained(CapturedMessage(seq=0, queue=queue or "", md_hex=md_hex, body_hex=body.hex()))
    partial = found.partial
    return partial.message, partial.assumed, found.command, tuple(map(_problem, found.problems))


def _fields(
    message: Message, mqmd: Mqmd, command: Command | None, problems: tuple[dict[str, Any], ...]
) -> tuple[Any, ...]:
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
        list(_properties(message).items()),
        message.body_format,
        message.body_encoding,
        message.body_ccsid,
        message.body_offset,
        len(message.body),
        body_text(message),
        problems,
    )


def _command(command: Command) -> tuple[Any, ...]:
    # Each kind of command has only some of these fields.
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


def _properties(message: Message) -> dict[str, str | None]:
    return {name: _as_text(value) for name, value in user_properties(message).items()}


def _as_text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.hex() if isinstance(value, bytes) else str(value)
