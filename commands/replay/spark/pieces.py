"""Which files a load reads, in which pieces, and where counting begins in files whose messages have no ``seq``.

Files are taken in the order in which ``read_captures`` takes them, so that messages which are numbered by counting get
the numbers that they get everywhere else. A JSON Lines file is cut at the ends of lines, a Parquet file at its row
groups; any other file is one piece.
"""

from __future__ import annotations

import copy
import glob
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from rfh2.captures import FORMATS, Numbering, detect, read_captures
from rfh2.captures.compressed import UnreadableDataError, is_compressed
from rfh2.captures.detect import HEAD_BYTES, refusal
from rfh2.captures.parquet import open_parquet
from rfh2.captures.reading import partition_values
from rfh2.errors import CaptureError, system_words

PIECE_BYTES: Final = 64 << 20
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_WILD: Final = frozenset("*?[")
_TYPES: Final = {"seq": pa.types.is_int64, "time": pa.types.is_timestamp, "md": pa.types.is_binary}


@dataclass(frozen=True)
class Piece:
    """One file, or a part of one.

    first_seq: where counting begins. start, end: bytes of JSON Lines, row groups of Parquet, as columns of the right
    types; end None: the whole file, whatever is in it.
    """

    path: str
    form: str
    first_seq: int = 1
    start: int = 0
    end: int | None = None


class ReadTask(InputPartition):
    """A piece as Spark hands it to a worker."""

    def __init__(self, piece: Piece) -> None:
        super().__init__(piece)
        self.piece = piece


@dataclass(frozen=True)
class _File:
    piece: Piece
    numbered: bool
    cuts: tuple[int, ...]


def files_of(paths: Iterable[str]) -> list[Path]:
    """The files that *paths*, each a file, a directory or a glob, stand for. Raises CaptureError for a missing one."""
    found: dict[Path, None] = {}
    for text in paths:
        path = Path(text.removeprefix("file://").removeprefix("file:"))
        if path.exists():
            found.update(dict.fromkeys(_below(path)))
        elif _WILD & set(text) and (matching := sorted(glob.glob(str(path), recursive=True))):  # noqa: PTH207 - it takes absolute ones
            for match in matching:
                found.update(dict.fromkeys(_below(Path(match))))
        else:
            raise CaptureError(text, None, "no such file or directory")
    return list(found)


def pieces_of(
    files: Iterable[Path], form: str = "auto", first_seq: int = 1, piece_bytes: int = PIECE_BYTES
) -> list[Piece]:
    """The pieces of *files*, in order.

    form: a name in FORMATS, or ``auto``. first_seq: where counting begins. Where messages have no seq, all files up to
    the last such one but one are read through here, to count. Raises CaptureError.
    """
    if form != "auto" and form not in FORMATS:
        raise CaptureError(form, None, f"unknown format; there are {', '.join(FORMATS)}")
    looked_at = [_look_at(path, form, piece_bytes) for path in files]
    last = max((at for at, file in enumerate(looked_at) if not file.numbered), default=-1)
    numbering = Numbering()
    numbering.saw(first_seq - 1)
    pieces: list[Piece] = []
    for at, file in enumerate(looked_at):
        counted = replace(file.piece, first_seq=copy.copy(numbering).take())
        if at < last:
            _count(counted, numbering)
        cuts = file.cuts
        pieces += [replace(counted, start=a, end=b) for a, b in pairwise(cuts)] or [counted]
    return pieces


def seq_after(pieces: Iterable[Piece], first_seq: int) -> int:
    """Where counting goes on behind *pieces*: they are read through."""
    numbering = Numbering()
    numbering.saw(first_seq - 1)
    for path, form in dict.fromkeys((piece.path, piece.form) for piece in pieces):
        _count(Piece(path, form), numbering)
    return numbering.take()


def _count(piece: Piece, numbering: Numbering) -> None:
    for _ in read_captures(Path(piece.path), piece.form, numbering=numbering):
        pass


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for entry in sorted(path.iterdir()):
        if not entry.name.startswith((".", "_")):
            yield from _below(entry)


def _look_at(path: Path, form: str, piece_bytes: int) -> _File:
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise CaptureError(str(path), None, system_words(error)) from error
    if is_compressed(head) or _is_refused(path, head):
        return _File(Piece(str(path), form), False, ())
    chosen = detect(head, str(path)) if form == "auto" else form
    piece = Piece(str(path), chosen)
    if chosen == "jsonl":
        # A file whose first line has a seq is taken to have one in every line.
        numbered = not head.strip() or b'"seq"' in head.lstrip().partition(b"\n")[0]
        whole = not numbered or head.startswith(_UTF16)
        return _File(piece, numbered, () if whole else _line_cuts(path.stat().st_size, piece_bytes))
    if chosen == "parquet":
        cuts = _group_cuts(path, piece_bytes)
        return _File(piece, cuts is not None, cuts or ())
    return _File(piece, False, ())


def _is_refused(path: Path, head: bytes) -> bool:
    """Whether all that is read of a file is a problem."""
    try:
        partition_values(path)
    except UnreadableDataError:
        return True
    return refusal(head, str(path)) is not None


def _line_cuts(size: int, piece_bytes: int) -> tuple[int, ...]:
    return (*range(0, max(size, 1), piece_bytes), size)


def _group_cuts(path: Path, piece_bytes: int) -> tuple[int, ...] | None:
    """Where to cut a Parquet file whose rows can be taken as they are; None for any other."""
    try:
        file = open_parquet(path)
        schema, about = file.schema_arrow, file.metadata
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None
    if not {"seq", "body"} <= set(schema.names) or not pa.types.is_binary(schema.field("body").type):
        return None
    if any(name in schema.names and not fits(schema.field(name).type) for name, fits in _TYPES.items()):
        return None
    seq, body = (schema.names.index(name) for name in ("seq", "body"))
    cuts, held = [0], 0
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        numbers = group.column(seq).statistics
        if numbers is None or numbers.null_count or not numbers.has_min_max or numbers.min < 0:
            return None
        if _nulls(group.column(body)):
            return None
        if held and held + group.total_byte_size > piece_bytes:
            cuts.append(number)
            held = 0
        held += group.total_byte_size
    return (*cuts, about.num_row_groups)


def _nulls(column: Any) -> bool:
    return column.statistics is None or not column.statistics.has_null_count or column.statistics.null_count > 0
