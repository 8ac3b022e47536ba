"""MQGET with MQGMO_CONVERT over a channel: data in the character set and encoding of the descriptor that is given.

Rows of docs/conformance.md: LSN-30, LSN-31.
"""

from __future__ import annotations

import pytest

from rfh2 import Folder, Message, Mqmd, Pcf, Rfh2, decode, decode_pcf, encode
from rfh2.ccsid import BYTE_ORDERS, ByteOrder
from rfh2.mqi_constants import (
    MQGMO_ACCEPT_TRUNCATED_MSG,
    MQGMO_BROWSE_FIRST,
    MQGMO_CONVERT,
    MQOO_BROWSE,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
)
from rfh2.pcf import Cfin, Cfst
from tests.commands.listener.mqi_client import MqiClient

TEXT = "für"
CASES = [
    ("converted", "MQSTR", TEXT.encode(), 1208, MQGMO_CONVERT, 273, 99, 0, TEXT.encode("cp273"), 273),
    ("not-asked-for", "MQSTR", TEXT.encode(), 1208, 0, 273, 99, 0, TEXT.encode(), 1208),
    ("no-format", "", b"data", 1208, MQGMO_CONVERT, 273, 99, 2110, b"data", 1208),
    ("source-unknown", "MQSTR", b"data", 99999, MQGMO_CONVERT, 273, 99, 2111, b"data", 99999),
    ("target-unknown", "MQSTR", b"data", 1208, MQGMO_CONVERT, 99999, 99, 2115, b"data", 1208),
    ("no-such-character", "MQSTR", "βάσις".encode(), 1208, MQGMO_CONVERT, 819, 99, 2119, "βάσις".encode(), 1208),
    ("too-big", "MQSTR", TEXT.encode("latin-1"), 819, MQGMO_CONVERT, 1208, 3, 2120, TEXT.encode("latin-1"), 819),
    (
        *("too-big-and-cut", "MQSTR", TEXT.encode("latin-1"), 819, MQGMO_CONVERT | MQGMO_ACCEPT_TRUNCATED_MSG),
        *(1208, 3, 2079, TEXT.encode()[:3], 1208),
    ),
    ("too-long", "MQSTR", TEXT.encode("latin-1"), 819, MQGMO_CONVERT, 1208, 2, 2080, TEXT.encode("latin-1")[:2], 819),
]


@pytest.mark.rule("LSN-30")
@pytest.mark.parametrize("order", BYTE_ORDERS)
@pytest.mark.parametrize(
    ("fmt", "data", "ccsid", "options", "wanted", "longest", "reason", "body", "given"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_text(
    port: int,
    order: ByteOrder,
    fmt: str,
    data: bytes,
    ccsid: int,
    options: int,
    wanted: int,
    longest: int,
    reason: int,
    body: bytes,
    given: int,
) -> None:
    """The reason is a warning, and the message has left its queue, except with 2080."""
    with MqiClient(port, order) as client:
        client.connect()
        handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT | MQOO_BROWSE)
        client.put(handle, data, format=fmt, coded_char_set_id=ccsid)
        asked = {"coded_char_set_id": wanted, "encoding": 546}
        for each in (options | MQGMO_BROWSE_FIRST, options):
            got = client.get(handle, each, longest=longest, **asked)
            assert (got.reason, got.body, got.mqmd.coded_char_set_id) == (reason, body, given)
        assert got.length == (len(data) if reason else len(body))
        assert client.get(handle).reason == (0 if reason == 2080 else 2033)


def test_headers_and_pcf(port: int) -> None:
    header = Rfh2((Folder.of("<psc><Command>Publish</Command></psc>"),), format="MQPCF", coded_char_set_id=1208)
    pcf = Pcf(11, (Cfin(1, 2), Cfst(3, "für".encode(), 0, "utf-8")))
    message = Message(Mqmd(format="MQHRF2", coded_char_set_id=1208), (header,), pcf.encode())
    with MqiClient(port) as client:
        client.connect()
        handle = client.opened("Q", MQOO_INPUT_SHARED | MQOO_OUTPUT)
        client.put(handle, encode(message), format="MQHRF2", coded_char_set_id=1208)
        got = client.get(handle, MQGMO_CONVERT, coded_char_set_id=500, encoding=273)
    assert got.reason == 0
    given = decode(got.body, got.mqmd)
    assert given.rfh2 is not None
    assert (given.rfh2.order, given.rfh2.charset, given.rfh2.folders) == ("big", "cp500", header.folders)
    assert (given.body_ccsid, given.body_encoding, given.body_format) == (500, 273, "MQPCF")
    (number, text) = decode_pcf(given.body, given.body_ccsid).parameters
    assert number == Cfin(1, 2)
    assert isinstance(text, Cfst)
    assert (text.text, text.data) == ("für", "für".encode("cp500"))
