"""The table of capture formats: the reader and the writer of each, and the fields that each keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from rfh2.captured import CapturedMessage
from rfh2.captures.amqsbcg import read_amqsbcg
from rfh2.captures.hextext import read_hextext, write_hextext
from rfh2.captures.jsonl import read_jsonl, write_jsonl
from rfh2.captures.mqmd import read_mqmd, read_raw, write_mqmd, write_raw
from rfh2.captures.parquet import read_parquet, write_parquet
from rfh2.captures.qload import read_qload, write_qload
from rfh2.captures.record import Item, Reader, ReadingPosition, Refusal
from rfh2.errors import CaptureError

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
