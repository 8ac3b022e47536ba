"""Data that is no MQ message: what a person is told that it looks like."""

from __future__ import annotations

import base64
import gzip
import io
import subprocess
import tarfile
import zipfile

import pytest
from hypothesis import given, strategies as st

from rfh2 import Folder, Message, Mqmd, Rfh2, encode
from rfh2.explain.problems import look_alike, lost_header

PSC = "<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
MESSAGE = Mqmd(format="MQHRF2").encode() + encode(Message(Mqmd(), (Rfh2((Folder.of(PSC),), format="MQSTR"),), b"hello"))
HEX = MESSAGE.hex()


def _zip() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("message", MESSAGE)
    return target.getvalue()


def _tar() -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("message"))
    return target.getvalue()


def _words(mark: str) -> bytes:
    rows = [MESSAGE[at : at + 16] for at in range(0, 96, 16)]
    words = [[int.from_bytes(row[i : i + 2], "little") for i in range(0, 16, 2)] for row in rows]
    form = "{:07x} {}" if mark == "x" else "{:07o} {}"
    each = "{:04x}" if mark == "x" else "{:06o}"
    lines = [form.format(16 * i, " ".join(map(each.format, row))) for i, row in enumerate(words)]
    return "\n".join(lines).encode() + b"\n"


CASES = [
    ("zip", _zip(), "a zip archive"),
    ("tar", _tar(), "a tar archive"),
    ("gzip", gzip.compress(MESSAGE), "compressed data"),
    ("hex", HEX.encode(), "hex text"),
    ("hex-in-lines", b"\n".join(HEX[at : at + 60].encode() for at in range(0, len(HEX), 60)) + b"\n", "hex text"),
    ("hex-long", (HEX * 500).encode(), "hex text"),
    ("base64", base64.encodebytes(MESSAGE), "base64 of a message"),
    ("base64-of-hex", base64.encodebytes(HEX.encode()), "base64 of hex text"),
    ("base64-long", base64.encodebytes(MESSAGE * 500), "base64 of a message"),
    ("hexdump", _words("x"), "a dump of 16-bit words"),
    ("od", _words("o"), "a dump of octal words"),
    ("python", repr(MESSAGE).encode(), "a literal of Python"),
    ("c", b"unsigned char m[] = {\n  0x4d, 0x44, 0x20, 0x20\n};", "an array of C"),
    ("folder", PSC.encode(), "the text of a folder"),
    ("string", b"MQPSCommand Publish MQPSTopic a", "the string of an MQRFH"),
    ("behind-others", b"[trace] " + MESSAGE, "8 bytes of something else in front of a structure 'MD'"),
    ("behind-others-ebcdic", b"x" + "RFH ".encode("cp500") + b"\0\0\0\2", "1 bytes of something else"),
    ("0x", b"0x4d 0x44 0x20 0x20 0x01 0x00 0x00 0x00 0x00", "hex text with 0x"),
    ("dump-in-a-mail", b"From: me\n\n00000000: 5246 4820 0200 0000 8000 0000\n", "a hex dump with other text"),
    ("dump-quoted", b"> 00000000  52 46 48 20 02 00 00 00  80 00\n", "a hex dump with other text"),
    ("listing-quoted", b"> AMQSBCG0 - starts here\n> ****", "a listing of amqsbcg with other text"),
    ("utf-16", "hello, world".encode("utf-16"), "text in UTF-16"),
    ("text", b"hello world, nothing of the kind", None),
    ("words", b"deadbeef", None),
    ("empty", b"", None),
]


@pytest.mark.parametrize(("data", "looks"), [pytest.param(*rest, id=name) for name, *rest in CASES])
def test_look_alike(data: bytes, looks: str | None) -> None:
    found = look_alike(data)
    assert (found is None) if looks is None else (found is not None and found.startswith(looks))


@given(st.binary(max_size=200))
def test_any_bytes_are_looked_at(data: bytes) -> None:
    found = look_alike(data)
    assert found is None or found
    assert lost_header(data) in (None, found)


@pytest.mark.parametrize(
    ("data", "command"),
    [
        pytest.param(HEX.encode().hex().encode(), "xxd -r -p", id="hex-of-hex"),
        pytest.param(base64.encodebytes(MESSAGE), "base64 -d", id="base64"),
        pytest.param(b"12345" + MESSAGE, "tail -c +6", id="behind-others"),
    ],
)
def test_the_advice_helps(data: bytes, command: str) -> None:
    found = look_alike(data)
    assert found is not None
    assert command in found
    try:
        out = subprocess.run(command.split(), input=data, capture_output=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip(f"{command} is not installed")
    assert out in (MESSAGE, HEX.encode())
