"""Which format a capture is in, by its first bytes; by its name only where these leave it open."""

from __future__ import annotations

from rfh2.captures.amqsbcg import is_amqsbcg
from rfh2.captures.descriptors import descriptor_length, starts_header
from rfh2.captures.hextext import is_hextext
from rfh2.captures.mqmd import properties_length
from rfh2.captures.pcap_packets import is_pcap
from rfh2.captures.qload import is_qload
from rfh2.captures.text_lines import as_utf8

HEAD_BYTES = 65_536
"""How much of a file ``detect`` wants to see; less is enough for everything but RFHUtil's blocks of properties."""

_PARQUET_MAGIC = b"PAR1"
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
        return "jsonl"
    if is_amqsbcg(text):
        return "amqsbcg"
    if is_qload(text):
        return "qload"
    if is_hextext(text):
        return "hex"
    by_name = next((fmt for suffix, fmt in _SUFFIXES.items() if name.lower().endswith(suffix)), None)
    return by_name or ("raw" if head else "jsonl")
