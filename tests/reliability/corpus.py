"""What mutants are made of: every message and every capture file in ``fixtures/``."""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from commands import parse
from rfh2 import CapturedMessage, QPubSubError, decode
from rfh2.captures import FORMATS, read_captures, write_captures
from rfh2.captures.record import CaptureRecord
from tests.commands.fuzzing import Mutant

FIXTURES = Path(__file__).parents[2] / "fixtures"
HOSTILE = FIXTURES / "hostile"
# A mutant of a longer file would be more of the same.
_LONGEST_FILE = 200_000
_LONGEST_MESSAGE = 20_000
_TEXTS = {
    ".md",
    ".py",
    ".sh",
    ".ini",
    ".json",
    ".txt",
    ".xml",
    ".mqsc",
    ".out",
    ".tst",
    ".mqi",
    ".pcf",
    ".html",
    ".csv",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One file. name: where it is from. format: the capture format that it is in."""

    name: str
    format: str
    data: bytes


@cache
def messages() -> tuple[Mutant, ...]:
    """Every message of every capture, once, with its descriptor."""
    found: dict[tuple[bytes | None, bytes], None] = {}
    for path in _captures():
        for record in read_captures(io.BytesIO(_bytes(path)), name=path.name.removesuffix(".xz")):
            if record.message is not None and len(record.message.body) <= _LONGEST_MESSAGE:
                found[record.message.md, record.message.body] = None
    return tuple(Mutant(body, md) for md, body in found)


@cache
def commands() -> tuple[Mutant, ...]:
    """Those of the messages that are commands."""
    return tuple(message for message in messages() if _is_command(message))


def _is_command(message: Mutant) -> bool:
    try:
        parse(decode(message.body, message.mqmd))
    except QPubSubError:
        return False
    return True


@cache
def captures() -> tuple[Sample, ...]:
    """Every capture file that is not too long, and some messages in each format that can be written."""
    samples = [
        Sample(str(path.relative_to(FIXTURES)), "auto", data)
        for path in _captures()
        if len(data := _bytes(path)) <= _LONGEST_FILE
    ]
    some = [
        CapturedMessage(seq=seq, queue="Q", qmgr="QM1", md_hex=None if md is None else md.hex(), body_hex=body.hex())
        for seq, (md, body) in enumerate(((m.mqmd, m.body) for m in messages()[::150]), 1)
        if isinstance(md, bytes) and body
    ]
    for name, form in FORMATS.items():
        if form.writer is not None:
            written = io.BytesIO()
            write_captures(some if name != "raw" else some[:1], written, name)
            samples.append(Sample(f"written as {name}", name, written.getvalue()))
    return tuple(samples)


@cache
def scripts() -> tuple[str, ...]:
    """Every MQSC script."""
    found = [path for path in _files() if path.suffix in (".mqsc", ".tst")]
    return tuple(path.read_text() for path in found)


@cache
def legacy() -> tuple[Sample, ...]:
    """The files of legacy state, but captures. format: their names, by which some are known."""
    found = [path for path in (FIXTURES / "legacy").rglob("*") if path.is_file() and "expected" not in path.parts]
    kinds = (".txt", ".sh", ".ini", ".json", ".xml", ".xz")
    return tuple(
        Sample(str(path.relative_to(FIXTURES)), path.name.removesuffix(".xz"), data)
        for path in sorted(found)
        if path.suffix in kinds and path.name != "case.json" and len(data := _bytes(path)) <= _LONGEST_FILE
    )


def _files() -> Iterator[Path]:
    yield from (path for path in sorted(FIXTURES.rglob("*")) if path.is_file() and HOSTILE not in path.parents)


def _captures() -> Iterator[Path]:
    for path in _files():
        if "bank" in path.parts and "qload" not in path.name:
            continue
        if Path(path.name.removesuffix(".xz")).suffix not in _TEXTS and "." in path.name:
            yield path


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def read_all(data: bytes, form: str, name: str) -> list[CaptureRecord]:
    """All records of a file."""
    return list(read_captures(io.BytesIO(data), form, name=name))
