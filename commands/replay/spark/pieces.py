"""Which files a load reads, in which pieces, and where counting begins in files whose messages have no ``seq``.

Files are taken in the order in which ``read_captures`` takes them, so that messages which are numbered by counting get
the numbers that they get everywhere else. A JSON Lines file is cut at the ends of lines, a Parquet file at its row
groups; any other file is one piece. Small pieces share a task.
"""

from __future__ import annotations

import copy
import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from rfh2.captures import FORMATS, Numbering, detect, read_captures
from rfh2.captures.compressed import UnreadableDataError, decompressed, is_compressed, name_inside
from rfh2.captures.parquet import open_parquet
from rfh2.captures.reading import HEAD_BYTES, partition_values, refusal
from rfh2.errors import CaptureError, system_words

PIECE_BYTES: Final = 64 << 20
_OPENINGS: Final = 512
"""So many files that hold nothing cost a task as much as one full piece."""
_MANY_TASKS: Final = 200
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_WILD: Final = frozenset("*?[")
_TYPES: Final = {"seq": pa.types.is_int64, "time": pa.types.is_timestamp, "md": pa.types.is_binary}


@dataclass(frozen=True)
class Piece:
    """One file, or a part of one.

    first_seq: where counting begins. start, end: bytes of JSON Lines, row groups of Parquet, as columns of the right
    types; end None: the whole file, whatever is in it. numbered: whether each message has its own seq, as far as the
    beginning of the file shows. size: of the data, in bytes.
    """

    path: str
    form: str
    first_seq: int = 1
    start: int = 0
    end: int | None = None
    numbered: bool = False
    size: int = 0


class ReadTask(InputPartition):
    """Pieces as Spark hands them to a worker."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        super().__init__(pieces)
        self.pieces = pieces


def tasks_of(pieces: Sequence[Piece], piece_bytes: int = PIECE_BYTES, many: int = _MANY_TASKS) -> list[ReadTask]:
    """*pieces* dealt out to tasks, in order: small ones share a task.

    many: with fewer tasks than these, none has more pieces than it must.
    """
    # A file costs time however small it is; Spark counts it in the same way (spark.sql.files.openCostInBytes).
    opening = piece_bytes // _OPENINGS
    total = sum(piece.size + opening for piece in pieces)
    most = min(piece_bytes, max(opening, total // many))
    tasks: list[list[Piece]] = []
    held = most
    for piece in pieces:
        held += piece.size + opening
        if held > most or not tasks:
            tasks.append([])
            held = piece.size + opening
        tasks[-1].append(piece)
    return [ReadTask(tuple(task)) for task in tasks]


@dataclass(frozen=True)
class _File:
    """The whole of it as a piece, and where it is cut: the place and the size of each part."""

    piece: Piece
    cuts: tuple[tuple[int, int], ...] = ()


def path_of(text: str) -> Path:
    """The path that *text* names: itself, or what a file: URL has. Raises CaptureError for another kind of URL."""
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "file":
        return Path(unquote(rest.removeprefix("//")))
    if colon and rest.startswith("//"):
        raise CaptureError(
            text,
            None,
            "only paths of a file system are read here: read it with Spark, and give the DataFrame to replayed",
        )
    return Path(text)


def files_of(paths: Iterable[str]) -> list[Path]:
    """The files that *paths*, each a file, a directory or a glob, stand for. Raises CaptureError for a missing one."""
    found: dict[Path, None] = {}
    for text in paths:
        path = path_of(text)
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
    last = max((at for at, file in enumerate(looked_at) if not file.piece.numbered), default=-1)
    numbering = Numbering()
    numbering.saw(first_seq - 1)
    pieces: list[Piece] = []
    for at, file in enumerate(looked_at):
        counted = replace(file.piece, first_seq=copy.copy(numbering).take())
        if at < last:
            _count(counted, numbering)
        cuts = pairwise(file.cuts)
        pieces += [replace(counted, start=a, end=b, size=size) for (a, size), (b, _) in cuts] or [counted]
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
    size = path.stat().st_size
    whole = Piece(str(path), form, size=size)
    if _is_refused(path, head):
        return _File(whole)
    if is_compressed(head):
        return _File(replace(whole, numbered=_is_numbered_inside(path, head, form)))
    whole = replace(whole, form=detect(head, str(path)) if form == "auto" else form)
    if whole.form == "jsonl":
        numbered = _is_numbered(head)
        cuts = _line_cuts(size, piece_bytes) if numbered and not head.startswith(_UTF16) else ()
        return _File(replace(whole, numbered=numbered), cuts)
    if whole.form == "parquet":
        groups = _group_cuts(path, piece_bytes)
        return _File(replace(whole, numbered=groups is not None), groups or ())
    return _File(whole)


def _is_numbered(head: bytes) -> bool:
    """Whether JSON Lines that begin with *head* are numbered: all lines, if the first one has a seq."""
    return not head.strip() or b'"seq"' in head.lstrip().partition(b"\n")[0]


def _is_numbered_inside(path: Path, head: bytes, form: str) -> bool:
    """The same for a compressed file, which begins with *head*; False for other formats and for damaged data."""
    try:
        with path.open("rb") as stream:
            inside = decompressed(head, stream).read(HEAD_BYTES)
    except OSError:
        return False
    return (detect(inside, name_inside(str(path))) if form == "auto" else form) == "jsonl" and _is_numbered(inside)


def _is_refused(path: Path, head: bytes) -> bool:
    """Whether all that is read of a file is a problem."""
    try:
        partition_values(path)
    except UnreadableDataError:
        return True
    return refusal(head, str(path)) is not None


def _line_cuts(size: int, piece_bytes: int) -> tuple[tuple[int, int], ...]:
    return (*((at, min(piece_bytes, size - at)) for at in range(0, max(size, 1), piece_bytes)), (size, 0))


def _group_cuts(path: Path, piece_bytes: int) -> tuple[tuple[int, int], ...] | None:
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
    cuts, begin, held = list[tuple[int, int]](), 0, 0
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        numbers = group.column(seq).statistics
        if numbers is None or numbers.null_count or not numbers.has_min_max or numbers.min < 0:
            return None
        if _nulls(group.column(body)):
            return None
        if held and held + group.total_byte_size > piece_bytes:
            cuts.append((begin, held))
            begin, held = number, 0
        held += group.total_byte_size
    return (*cuts, (begin, held), (about.num_row_groups, 0))


def _nulls(column: Any) -> bool:
    return column.statistics is None or not column.statistics.has_null_count or column.statistics.null_count > 0
