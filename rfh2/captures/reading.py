"""Reads captures of any format, a file, a stream or a directory, one record at a time, and writes them.

``FORMATS`` is the table of the formats: the reader and the writer of each, and the fields that each keeps. ``detect``
says which one a capture is in, by its first bytes; by its name only where these leave it open.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, cast
from urllib.parse import unquote

from rfh2.captured import CapturedMessage
from rfh2.captures.amqsbcg import is_amqsbcg, read_amqsbcg
from rfh2.captures.compressed import (
    MAGIC_BYTES,
    UnreadableDataError,
    decompressed,
    is_compressed,
    name_inside,
    named_compression,
    unreadable,
)
from rfh2.captures.hextext import is_hextext, read_hextext, write_hextext
from rfh2.captures.jsonl import read_jsonl, write_jsonl
from rfh2.captures.mqmd import properties_length, read_mqmd, read_raw, starts_header, write_mqmd, write_raw
from rfh2.captures.parquet import read_parquet, write_parquet
from rfh2.captures.pcap_packets import is_pcap
from rfh2.captures.qload import is_qload, read_qload, write_qload
from rfh2.captures.record import (
    CaptureRecord,
    Incomplete,
    Item,
    Numbering,
    Ration,
    Reader,
    ReadingPosition,
    Refusal,
    TakenFor,
    as_utf8,
    expanded_bytes,
    prefixed,
)
from rfh2.errors import CaptureError
from rfh2.message import sniffed
from rfh2.mqmd import descriptor_length

Writer = Callable[[Iterable[CapturedMessage], BinaryIO, Refusal], int]

_ALL = frozenset({"seq", "time", "qmgr", "queue", "user", "md", "body"})
_DESCRIBED = frozenset({"md", "body"})


def _read_pasted(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    from rfh2.captures.pasted import read_pasted  # noqa: PLC0415 - its expressions take long to compile

    return read_pasted(stream, reading)


def _read_pcap(stream: BinaryIO, reading: ReadingPosition) -> Iterator[Item]:
    # dpkt takes as long to load as all the rest of this package.
    from rfh2.captures.pcap import read_pcap  # noqa: PLC0415

    return read_pcap(stream, reading)


@dataclass(frozen=True, slots=True)
class CaptureFormat:
    """One format. writer: None for a format that is only read. keeps: the fields of a captured message that it writes.

    seeks: whether the reader needs a seekable file. skips: whether it passes over any amount of other data on its way
    to a record, holding none of it.
    """

    name: str
    reader: Reader
    writer: Writer | None
    keeps: frozenset[str]
    description: str
    seeks: bool = False
    skips: bool = False


FORMATS: dict[str, CaptureFormat] = {
    entry.name: entry
    for entry in (
        CaptureFormat("jsonl", read_jsonl, write_jsonl, _ALL, "JSON Lines, one captured message a line"),
        CaptureFormat("parquet", read_parquet, write_parquet, _ALL, "Parquet, one captured message a row", seeks=True),
        CaptureFormat(
            "raw", read_raw, write_raw, frozenset({"body"}), "one message's headers and data, without an MQMD"
        ),
        CaptureFormat("mqmd", read_mqmd, write_mqmd, _DESCRIBED, "MQMD and data, several messages separated by #@#@#"),
        CaptureFormat(
            "hex", read_hextext, write_hextext, _DESCRIBED, "hex text or hex dumps, a blank line between messages"
        ),
        CaptureFormat(
            "qload", read_qload, write_qload, _DESCRIBED | {"qmgr", "queue"}, "queue unload file of dmpmqmsg and qload"
        ),
        CaptureFormat(
            "amqsbcg", read_amqsbcg, None, frozenset(), "browse listing of the sample programs amqsbcg and amqsbcgc"
        ),
        CaptureFormat(
            "pasted",
            _read_pasted,
            None,
            frozenset(),
            "text with messages in it: a page, a mail, a terminal, source code",
        ),
        CaptureFormat("pcap", _read_pcap, None, frozenset(), "packets of MQ channels, pcap or pcapng", skips=True),
    )
}


# Write captured messages in any format that has a writer.


def write_captures(
    messages: Iterable[CapturedMessage],
    target: BinaryIO,
    format: str,  # noqa: A002 - the word that users know from the command line
    *,
    refused: Refusal | None = None,
) -> int:
    """Write *messages* to *target* in *format*, a name in ``FORMATS``, and return how many were written.

    refused: called for a message that the format cannot hold, which is then left out; without it that is an error.
    Raises CaptureError for an unknown format or one that is only read, for a missing library, and for such a message.
    """
    chosen = FORMATS.get(format)
    if chosen is None or chosen.writer is None:
        able = ", ".join(entry.name for entry in FORMATS.values() if entry.writer is not None)
        why = "is only read" if chosen is not None else "is not a format"
        raise CaptureError(format, None, f"{why}; captures are written as {able}")
    return chosen.writer(messages, target, refused or _stop)


def _stop(_message: CapturedMessage, error: CaptureError) -> None:
    raise error


HEAD_BYTES = 65_536
"""How much of a file ``detect`` wants to see; less is enough for everything but RFHUtil's blocks of properties."""

_PARQUET_MAGIC = b"PAR1"
_OUR_KEYS = re.compile(rb'"(?:body_hex|md_hex|seq)"')
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".qload": "qload",
    ".hex": "hex",
    ".mqmd": "mqmd",
    ".bcg": "amqsbcg",
    ".pcap": "pcap",
    ".pcapng": "pcap",
}


def detect(head: bytes, name: str = "") -> str:
    """The name of the format of a file that begins with *head* and is called *name*.

    The content decides; the name decides if there is no content, or no format recognizes it. Content that no format
    recognizes is ``raw``: one message's bytes. An empty file whose name gives no format is an empty ``jsonl``.
    """
    if is_pcap(head):
        return "pcap"
    if head.startswith(_PARQUET_MAGIC):
        return "parquet"
    if descriptor_length(head) is not None or properties_length(head, 0) is not None:
        return "mqmd"
    if starts_header(head):
        return "raw"
    text = as_utf8(head).lstrip()
    if text.startswith(b"{"):
        # Of a large object, or of what comes through a pipe, only the beginning is here; one of ours is never searched.
        return "jsonl" if _OUR_KEYS.search(text) or not _is_pasted(head) else "pasted"
    if is_amqsbcg(text):
        return "pasted" if _is_dressed(head, read_amqsbcg) else "amqsbcg"
    if is_qload(text):
        return "qload"
    if is_hextext(text):
        return "pasted" if _is_dressed(head, read_hextext) else "hex"
    by_name = next((fmt for suffix, fmt in _SUFFIXES.items() if name.lower().endswith(suffix)), None)
    # JSON Lines whose first line is damaged are read as such: their reader reports the line.
    is_ours = by_name == "jsonl" and _OUR_KEYS.search(text)
    if not is_ours and _is_pasted(head):
        return "pasted"
    return by_name or ("raw" if head else "jsonl")


def refusal(head: bytes, name: str = "") -> str | None:
    """Why a file that begins with *head* and is called *name* is read in no format, and what to do; else None.

    It is an archive, or compressed in a form that is not read, or a file of tables: never one message's data.
    """
    found = unreadable(head)
    if found is None and head and (found := named_compression(name)) is not None:
        is_known = detect(head, name) != "raw" or starts_header(head)
        found = None if is_known else found
    return found


def _is_dressed(head: bytes, reader: Reader) -> bool:
    """Whether a search finds more in *head* than *reader*, to which it seems to belong."""
    items = [item for _, item in reader(BytesIO(head), ReadingPosition("", Numbering()))]
    is_cut = len(head) >= HEAD_BYTES
    problems = sum(not isinstance(item, CapturedMessage) for item in items[: -1 if is_cut else None])
    plain = sum(isinstance(item, CapturedMessage) and _is_message(item) for item in items)
    if not problems and (plain or (is_cut and len(items) == 1)):
        return False
    from rfh2.captures.pasted import messages_found  # noqa: PLC0415 - its expressions take long to compile

    whole, partial = messages_found(head)
    is_open = not is_cut and whole == plain and (problems > 0 or not plain)
    return whole > plain or (is_open and whole + partial > 0)


def _is_message(item: CapturedMessage) -> bool:
    return item.md_hex is not None or sniffed(item.body) is not None


def _is_pasted(head: bytes) -> bool:
    from rfh2.captures.pasted import is_pasted  # noqa: PLC0415 - its expressions take long to compile

    return is_pasted(head)


# Directories named ``column=value``, as Hive and Spark lay out a table: what they say of the messages in them.
#
# A table that was written with ``partitionBy("qmgr")`` has no column ``qmgr`` in its files. Without the directory's
# name, the messages of all queue managers would be those of one.

TAKEN: Final = ("qmgr", "queue", "user")
"""The fields of a captured message that a directory can give."""
_REFUSED: Final = ("seq", "time", "md", "body", "md_hex", "body_hex")
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


def partition_values(path: Path) -> dict[str, str]:
    """The fields that the directories of *path* give to messages which have none of their own; others are ignored.

    The deepest directory decides. Raises UnreadableDataError for a field that a directory cannot give: a time there has
    no zone.
    """
    values: dict[str, str] = {}
    for name in path.absolute().parent.parts:
        column, equals, value = name.partition("=")
        column = column.lower()
        if equals and column in _REFUSED:
            raise UnreadableDataError(
                f"it is in the directory {name}, and {column} is read from files only: write the capture again without "
                f"partitions by {column}"
            )
        if equals and column in TAKEN:
            values[column] = "" if value == _NULL else unquote(value)
    return {column: value for column, value in values.items() if value}


DefaultQueue = str | Callable[[CapturedMessage], str]


def read_captures(
    source: Path | str | BinaryIO,
    format: str = "auto",  # noqa: A002 - the word that users know from the command line
    *,
    name: str | None = None,
    default_queue: DefaultQueue = "",
    numbering: Numbering | None = None,
) -> Iterator[CaptureRecord]:
    """Each record of *source*, in order, holding no more than one message in memory.

    source: a file, a directory (its files in order of their paths, below it too; names that begin with ``.`` or ``_``
    are left out, as Spark's own are), or a binary stream. format: a name in ``FORMATS``, or ``auto``. name: what
    records and problems call a stream. default_queue: the queue of messages that name none, or what gives it.

    A record that cannot be read is given with its problem, and reading goes on behind it. ``seq`` is the message's own
    where the format has it, else counted from 1 through all files, or by *numbering*, which several calls may share so
    that their messages differ. What a message does not say of its queue manager, queue or user, directories named
    ``qmgr=NAME`` and the like say. Raises CaptureError for a path that is missing or
    unreadable and for an unknown format; and, as records are taken, for a format whose library is not installed.

    >>> from rfh2.captures import read_captures
    >>> records = list(read_captures("fixtures/results-service/capture.jsonl"))
    >>> len(records), records[0].message.queue, [record.problem for record in records if record.problem]
    (26, 'SYSTEM.BROKER.CONTROL.QUEUE', [])

    How much of a record may be made of data that the file does not hold, such as what is compressed, is bounded
    (``limits``); what is larger is a problem.
    """
    if format != "auto" and format not in FORMATS:
        raise CaptureError(name or str(source), None, f"unknown format {format}; there are {', '.join(FORMATS)}")
    numbering = numbering or Numbering()
    if isinstance(source, str):
        source = Path(source)
    if not isinstance(source, Path):
        label = name or str(getattr(source, "name", "<stream>"))
        return _records(source, label, format, numbering, default_queue)
    if source.is_dir():
        return _read_files(_files_below(source), format, numbering, default_queue)
    try:
        stream = source.open("rb")
    except OSError as error:
        raise CaptureError(str(source), None, _reason(error)) from error
    return _records(stream, name or str(source), format, numbering, default_queue, close=True)


def _read_files(
    paths: Iterator[Path], fmt: str, numbering: Numbering, default_queue: DefaultQueue
) -> Iterator[CaptureRecord]:
    for path in paths:
        try:
            stream = path.open("rb")
        except OSError as error:
            problem = CaptureError(str(path), None, _reason(error))
            yield CaptureRecord(str(path), 0, None, problem, 0)
        else:
            yield from _records(stream, str(path), fmt, numbering, default_queue, close=True)


def _files_below(directory: Path) -> Iterator[Path]:
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        raise CaptureError(str(directory), None, _reason(error)) from error
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from _files_below(entry)
        else:
            yield entry


def _records(
    stream: BinaryIO, source: str, fmt: str, numbering: Numbering, default_queue: DefaultQueue, *, close: bool = False
) -> Iterator[CaptureRecord]:
    index = position = 0
    bound = expanded_bytes()
    ration = Ration(bound)
    try:
        given = _given_by_directories(stream)
        chosen, whole = _prepared(stream, source, fmt, ration)
        for position, found in chosen.reader(whole, ReadingPosition(source, numbering, bound)):
            ration.renew()
            yield _record(source, index, position, found, given, default_queue)
            index += 1
    except UnreadableDataError as error:
        yield CaptureRecord(source, index, None, CaptureError(source, None, str(error)), position)
    except OSError as error:
        problem = CaptureError(source, None, f"cannot be read further: {_reason(error)}")
        yield CaptureRecord(source, index, None, problem, position)
    finally:
        if close:
            stream.close()


def _record(
    source: str,
    index: int,
    position: int,
    found: CapturedMessage | CaptureError | Incomplete | TakenFor,
    given: Mapping[str, str],
    default_queue: DefaultQueue,
) -> CaptureRecord:
    if isinstance(found, CapturedMessage):
        return CaptureRecord(source, index, _completed(found, given, default_queue), None, position)
    if isinstance(found, TakenFor):
        return replace(_record(source, index, position, found.record, given, default_queue), taken_for=found.what)
    if isinstance(found, Incomplete):
        partial = _completed(found.partial, given, default_queue)
        return CaptureRecord(source, index, None, found.problem, position, partial)
    return CaptureRecord(source, index, None, found, position)


def _given_by_directories(stream: BinaryIO) -> dict[str, str]:
    """What the directories say in which the file is that *stream* reads; nothing of any other stream."""
    name = getattr(stream, "name", None)
    if not isinstance(name, str | os.PathLike):
        return {}
    path = Path(name)
    return partition_values(path) if path.exists() else {}


def _prepared(stream: BinaryIO, source: str, fmt: str, ration: Ration) -> tuple[CaptureFormat, BinaryIO]:
    """The format, and *stream* from its beginning in the shape that the format's reader needs, decompressed.

    With ``raw``, compressed data is a message's data like any other. Raises UnreadableDataError for data of a form that
    no reader takes.
    """
    if fmt != "raw":
        magic = _magic(stream)
        if (why := unreadable(magic)) is not None:
            raise UnreadableDataError(why)
        if is_compressed(magic):
            stream, source = decompressed(magic, stream, ration), name_inside(source)
    seekable = stream.seekable()
    if fmt == "auto":
        start = stream.tell() if seekable else 0
        head = _head(stream)
        if (why := refusal(head, source)) is not None:
            raise UnreadableDataError(why)
        chosen = FORMATS[detect(head, source)]
        if seekable:
            stream.seek(start)
        else:
            stream = prefixed(head, stream)
    else:
        chosen = FORMATS[fmt]
    if chosen.skips:
        ration.lift()
    if chosen.seeks and not seekable:
        ration.on_disk()
        spool = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - lives as long as its reader
        shutil.copyfileobj(stream, spool)
        spool.seek(0)
        return chosen, spool
    return chosen, stream


def _magic(stream: BinaryIO) -> bytes:
    """The very first bytes of *stream*, left in it; nothing of a stream that cannot give them back."""
    if stream.seekable():
        start = stream.tell()
        found = stream.read(MAGIC_BYTES)
        stream.seek(start)
        return found
    return stream.peek(MAGIC_BYTES)[:MAGIC_BYTES] if isinstance(stream, io.BufferedReader) else b""


def _head(stream: BinaryIO) -> bytes:
    """The first bytes of *stream*; of JSON Lines only what is there, so that a pipe's first line need not wait."""
    head = b""
    read = getattr(stream, "read1", stream.read)
    while len(head) < HEAD_BYTES and not head.lstrip().startswith(b"{"):
        chunk = read(HEAD_BYTES - len(head))
        if not chunk:
            break
        head += chunk
    return head


def _completed(message: CapturedMessage, given: Mapping[str, str], default: DefaultQueue) -> CapturedMessage:
    """*message* with what it does not say itself. given: by its directories. default: its queue, if nothing says it."""
    if given and (missing := {name: value for name, value in given.items() if not getattr(message, name)}):
        message = message.model_copy(update=missing)
    if message.queue or not default:
        return message
    queue = default if isinstance(default, str) else default(message)
    return message.model_copy(update={"queue": queue}) if queue else message


def _reason(error: OSError) -> str:
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
