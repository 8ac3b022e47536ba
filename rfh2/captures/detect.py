"""Which format a capture is in, by its first bytes; by its name only where these leave it open."""

from __future__ import annotations

import re
from io import BytesIO

from rfh2.captured import CapturedMessage
from rfh2.captures.amqsbcg import is_amqsbcg, read_amqsbcg
from rfh2.captures.compressed import named_compression, unreadable
from rfh2.captures.hextext import is_hextext, read_hextext
from rfh2.captures.mqmd import descriptor_length, properties_length, starts_header
from rfh2.captures.pcap_packets import is_pcap
from rfh2.captures.qload import is_qload
from rfh2.captures.record import Numbering, Reader, ReadingPosition
from rfh2.captures.text_lines import as_utf8
from rfh2.chain import sniffed

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
