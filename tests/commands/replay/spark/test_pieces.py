"""The pieces that the data source reads: however a capture is cut, the rows are what ``read_captures`` gives."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("pyspark")

import pyarrow as pa
from pyarrow import parquet

from commands.broker.reading import natural_queue
from commands.replay.spark.in_order import in_order
from commands.replay.spark.piece_reader import NATURAL, read_piece
from commands.replay.spark.pieces import Piece, files_of, pieces_of, seq_after, tasks_of
from commands.replay.workload import Workload, WorkloadOptions
from rfh2.captured import CapturedMessage
from rfh2.captures import FORMATS, Numbering, read_captures, write_captures
from rfh2.captures.reading import HEAD_BYTES
from rfh2.errors import CaptureError

FIXTURES = Path(__file__).parents[4] / "fixtures/captures/formats"
STOCK = sorted(path for path in FIXTURES.iterdir() if path.name.startswith("stock"))
MESSAGES = list(Workload(WorkloadOptions(messages=60, subscribers=20, qmgrs=2, errors=0.1, body_bytes=20)).messages())
COUNTED = [name for name, entry in FORMATS.items() if "seq" not in entry.keeps]

Row = tuple[Any, ...]


def rows_of(pieces: Iterable[Piece], default_queue: str = "") -> list[Row]:
    """Sequence number, queue manager, queue, user, descriptor, data, file and problem of each record."""
    rows: list[Row] = []
    for piece in pieces:
        for batch in read_piece(piece, default_queue):
            # Not when the file was written, and not where in it: that a part of a file may not know.
            rows += [tuple(row.values())[:9] for row in batch.to_pylist()]
    return rows


def expected(paths: Iterable[Path], default_queue: Any = "", first_seq: int = 1) -> list[Row]:
    found: list[Row] = []

    numbering = Numbering()
    numbering.saw(first_seq - 1)
    for path in paths:
        for record in read_captures(path, default_queue=default_queue, numbering=numbering):
            m = record.message
            what: Row = (None,) * 7
            if m is not None:
                what = (m.seq, m.time, m.qmgr, m.queue, m.user, m.md, m.body)
            found.append((*what, record.source, None if record.problem is None else str(record.problem)))
    return found


def written(path: Path, messages: Iterable[CapturedMessage], form: str) -> Path:
    with path.open("wb") as file:
        write_captures(messages, file, form, refused=lambda *_: None)
    return path


@pytest.mark.parametrize("path", STOCK, ids=lambda path: path.name)
def test_every_format_is_read(path: Path) -> None:
    pieces = pieces_of(files_of([str(path)]))
    rows = rows_of(pieces)
    assert rows == expected([path])
    assert [row[-1] for row in rows] == [None]
    assert {FORMATS[piece.form].name for piece in pieces} <= set(FORMATS)


def test_every_format_has_a_file() -> None:
    assert {pieces_of([path])[0].form for path in STOCK} == set(FORMATS)


def test_one_load_of_all_formats_counts_on_from_file_to_file() -> None:
    rows = rows_of(pieces_of(files_of([str(FIXTURES / "stock*")])))
    assert rows == expected(STOCK)


@pytest.mark.parametrize("form", [entry.name for entry in FORMATS.values() if entry.writer is not None])
@given(piece_bytes=st.integers(500, 60_000), cut=st.integers(0, 60))
@settings(max_examples=15)
def test_however_it_is_cut(tmp_path_factory: pytest.TempPathFactory, form: str, piece_bytes: int, cut: int) -> None:
    directory = tmp_path_factory.mktemp("capture")
    written(directory / f"a.{form}", MESSAGES[:cut], form)
    written(directory / f"b.{form}", MESSAGES[cut:], form)
    pieces = pieces_of(files_of([str(directory)]), piece_bytes=piece_bytes)
    assert rows_of(pieces) == expected(sorted(directory.iterdir()))


def test_of_compressed_files_only_the_heads_are_read_before_the_tasks_begin(tmp_path: Path) -> None:
    """Damage behind the head is met by the task that reads the file, and not while Spark plans."""
    for number in range(4):
        body = Random(number).randbytes(4 * HEAD_BYTES).hex()
        line = CapturedMessage(seq=number, queue="Q", body_hex=body).model_dump_json().encode()
        (tmp_path / f"{number}.jsonl.gz").write_bytes(gzip.compress(line)[:-40])
    pieces = pieces_of(files_of([str(tmp_path)]))
    assert [(piece.numbered, piece.first_seq) for piece in pieces] == [(True, 1)] * 4
    without = written(tmp_path / "a", MESSAGES[:3], "mqmd").read_bytes()
    (tmp_path / "a").write_bytes(gzip.compress(without))
    assert not pieces_of([tmp_path / "a"])[0].numbered


# sizes of pieces, how many each task gets where a task reads 3,200 bytes, and opening a file counts as 6
PACKED = [
    ("few", [10] * 8, [1] * 8),
    ("many-small", [0] * 3000, [15] * 200),
    ("large", [3200] * 300, [1] * 300),
    ("between-large", [3200, 100, 100, *[3200] * 300], [1, 2, *[1] * 300]),
    ("none", [], []),
]


@pytest.mark.parametrize(("sizes", "wanted"), [case[1:] for case in PACKED], ids=[case[0] for case in PACKED])
def test_small_pieces_share_a_task(sizes: list[int], wanted: list[int]) -> None:
    pieces = [Piece(str(at), "jsonl", size=size) for at, size in enumerate(sizes)]
    tasks = tasks_of(pieces, 3200)
    assert [len(task.pieces) for task in tasks] == wanted
    assert [piece for task in tasks for piece in task.pieces] == pieces


@pytest.mark.parametrize("form", ["auto", "jsonl"])
def test_what_is_packed_is_read_whole_and_what_is_in_no_format_is_a_problem(tmp_path: Path, form: str) -> None:
    lines = written(tmp_path / "a", MESSAGES[:9], "jsonl").read_bytes()
    (tmp_path / "a").unlink()
    (tmp_path / "a.jsonl.zst").write_bytes(pa.compress(lines, "zstd", asbytes=True))
    (tmp_path / "b.jsonl.lz4").write_bytes(pa.compress(lines, "lz4", asbytes=True))
    (tmp_path / "c.zip").write_bytes(b"PK\3\4" + lines)
    rows = rows_of(pieces_of(files_of([str(tmp_path)]), form, piece_bytes=50))
    assert rows == expected(sorted(tmp_path.iterdir()))
    assert [row[-1] is None for row in rows] == [True] * 18 + [False]
    assert "zip archive" in rows[-1][-1]


@pytest.mark.parametrize(("form", "first"), [("jsonl", 1), ("parquet", 0)])
def test_a_row_has_its_place_in_its_file(tmp_path: Path, form: str, first: int) -> None:
    path = written(tmp_path / f"c.{form}", MESSAGES[:9], form)
    if form == "parquet":
        parquet.write_table(parquet.read_table(path), path, row_group_size=2)
    pieces = pieces_of([path], piece_bytes=1 if form == "parquet" else 1 << 30)
    rows = [row for piece in pieces for batch in read_piece(piece) for row in batch.to_pylist()]
    assert [row["position"] for row in rows] == list(range(first, first + 9))
    assert {row["file_time"].timestamp() for row in rows} == {round(path.stat().st_mtime, 6)}


def test_json_lines_are_cut_at_line_ends(tmp_path: Path) -> None:
    path = written(tmp_path / "c.jsonl", MESSAGES, "jsonl")
    pieces = pieces_of([path], piece_bytes=5000)
    assert len(pieces) == -(-path.stat().st_size // 5000) > 5
    assert sum(len(rows_of([piece])) > 0 for piece in pieces) > 5


def test_parquet_is_cut_at_row_groups(tmp_path: Path) -> None:
    table = parquet.read_table(written(tmp_path / "whole.parquet", MESSAGES, "parquet"))
    path = tmp_path / "c.parquet"
    parquet.write_table(table, path, row_group_size=7)
    pieces = pieces_of([path], piece_bytes=1)
    assert [(piece.start, piece.end) for piece in pieces] == [(at, at + 1) for at in range(-(-60 // 7))]
    assert rows_of(pieces) == expected([path])


@pytest.mark.parametrize("form", COUNTED)
def test_messages_without_numbers_are_counted_through_all_files(tmp_path: Path, form: str) -> None:
    if FORMATS[form].writer is None:
        paths = [path for path in STOCK if pieces_of([path])[0].form == form]
    else:
        count = 1 if form == "raw" else 3
        paths = [written(tmp_path / f"{n}.{form}", MESSAGES[n * count : (n + 1) * count], form) for n in range(3)]
    pieces = pieces_of(paths, first_seq=100)
    rows = rows_of(pieces)
    assert [row[0] for row in rows] == list(range(100, 100 + len(rows)))
    assert seq_after(pieces, 100) == 100 + len(rows)


BAD_LINES = [
    b"nonsense\n",
    b'{"seq": -1, "queue": "Q", "body_hex": ""}\n',
    b'{"seq": 1, "queue": "Q"}\n',
    b"\n",
    b"\xff\n",
]


@given(
    lines=st.lists(st.sampled_from([*BAD_LINES, b'{"seq": 5, "queue": "Q", "body_hex": "00"}\n']), max_size=12),
    piece_bytes=st.integers(1, 200),
)
def test_bad_records_are_rows_with_their_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], piece_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("capture") / "c.jsonl"
    path.write_bytes(b'{"seq": 1, "queue": "Q", "body_hex": "00"}\n' + b"".join(lines))
    rows = rows_of(pieces_of([path], piece_bytes=piece_bytes))
    assert rows == expected([path])
    for *message, source, problem in rows:
        assert source == str(path)
        assert (problem is None) == (message[0] is not None)
        assert problem is None or (message == [None] * 7 and "line " in problem)


# lines of which each is the third of a file: some are read at one go with those before, some as read_captures does it
LINES = [
    b'{"seq": 3, "queue": "Q", "body_hex": "0aF0", "time": "2026-07-01T12:00:00.5Z", "more": [1.5]}',
    b'{"seq": 3, "queue": "Q", "body_hex": "0a f0", "seq": 4, "md_hex": null}',
    b'{"seq": 3, "queue": "Q", "body_hex": "0a", "user": "\\u00e9\\u0000"}\r',
    b'{"seq": 3, "queue": "Q", "body_hex": "0a", "time": "2026-07-01T12:00:00"}',
    b'{"seq": 3, "queue": "Q", "body_hex": "0a", "time": "2026-W27-3T12:00:00.12Z"}',
    b'{"seq": 3, "queue": "Q", "body_hex": "0a", "time": "2026-07-01T24:00:00Z"}',
    b'{"seq": 3, "queue": "Q", "body_hex": "0a", "time": 1782900000}',
    b'{"seq": "3", "queue": "Q", "body_hex": "0a"}',
    b'{"seq": true, "queue": "Q", "body_hex": "0a"}',
    b'{"seq": 9223372036854775808, "queue": "Q", "body_hex": "0a"}',
    b'{"seq": -1, "queue": "Q", "body_hex": "0a"}',
    b'{"queue": "Q", "body_hex": "0a"}',
    b'{"seq": 3, "body_hex": "0a"}',
    b'{"seq": 3, "queue": "", "body_hex": "0a"}',
    b'{"seq": 3, "queue": 5, "body_hex": "0a"}',
    b'{"seq": 3, "queue": "Q", "qmgr": 5, "body_hex": "0a"}',
    b'{"seq": 3, "queue": "Q", "body_hex": "0"}',
    b'{"seq": 3, "queue": "Q", "body_hex": null}',
    b'{"seq": 3, "queue": "Q", "body_hex": "0a", "md_hex": 5}',
    b'{"seq": 3, "queue": "Q", "body_hex": "0a"} {"seq": 5, "queue": "Q", "body_hex": "0a"}',
    b'{"seq": 3, "queue": "Q", "user": "a\nb", "body_hex": "0a"}',
    b'{"seq": 3, "queue": "\xff", "body_hex": "0a"}',
    b"[]",
    b"",
]


@pytest.mark.parametrize("line", LINES, ids=repr)
@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz"])
def test_a_line_among_others_is_read_as_anywhere(tmp_path: Path, name: str, line: bytes) -> None:
    around = [b'{"seq": %d, "queue": "Q", "body_hex": "%02x"}' % (seq, seq) for seq in (1, 2, 7)]
    content = b"\n".join([*around[:2], line, around[2]])
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (piece,) = pieces_of([path])
    rows = [tuple(row.values()) for batch in read_piece(piece) for row in batch.to_pylist()]
    assert [row[:9] for row in rows] == expected([path])
    assert [row[9] for row in rows] == [record.position for record in read_captures(path)]


@pytest.mark.parametrize("path", STOCK, ids=lambda path: path.name)
def test_a_file_that_is_cut_off_never_stops_a_load(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    for part in range(0, len(whole), max(1, len(whole) // 12)):
        target = tmp_path / path.name
        target.write_bytes(whole[:part])
        try:
            form = pieces_of([path])[0].form
            rows = rows_of(pieces_of([target], form))
        except CaptureError as error:
            pytest.fail(f"{part} bytes: {error}")
        assert rows == [(*what, str(target), problem) for *what, _, problem in _expected_as(target, form)], (
            f"{part} bytes"
        )


def _expected_as(path: Path, form: str) -> list[Row]:
    found: list[Row] = []
    for record in read_captures(path, form):
        m = record.message
        what: Row = (None,) * 7
        if m is not None:
            what = (m.seq, m.time, m.qmgr, m.queue, m.user, m.md, m.body)
        found.append((*what, record.source, None if record.problem is None else str(record.problem)))
    return found


def test_a_row_group_that_is_broken_is_one_problem(tmp_path: Path) -> None:
    table = parquet.read_table(written(tmp_path / "whole.parquet", MESSAGES, "parquet"))
    path = tmp_path / "c.parquet"
    parquet.write_table(table, path, row_group_size=20, compression="zstd")
    about = parquet.ParquetFile(path).metadata.row_group(1).column(6)
    with path.open("r+b") as file:
        file.seek(about.data_page_offset)
        file.write(b"\xff" * 64)
    rows = rows_of(pieces_of([path], piece_bytes=1))
    assert [row[0] for row in rows if row[-1] is None] == [*range(1, 21), *range(41, 61)]
    (problem,) = [row[-1] for row in rows if row[-1] is not None]
    assert "row group 1 is not readable" in problem


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_table_in_directories_is_read_as_what_was_written(tmp_path: Path, codec: str) -> None:
    """As Spark's partitionBy leaves it: the files have no column for what is in the directories' names."""
    table = parquet.read_table(written(tmp_path / "whole.parquet", MESSAGES, "parquet"))
    parquet.write_to_dataset(table, tmp_path / "in", partition_cols=["qmgr", "queue"], compression=codec)
    lines = tmp_path / "in" / "qmgr=QM7" / "lines.jsonl"
    lines.parent.mkdir()
    lines.write_text("".join(m.model_copy(update={"qmgr": None}).model_dump_json() + "\n" for m in MESSAGES[:9]))
    files = files_of([str(tmp_path / "in")])
    pieces = pieces_of(files, piece_bytes=500)
    assert sum(piece.form == "jsonl" and piece.end is not None for piece in pieces) > 1
    rows = rows_of(pieces)
    assert rows == expected(files)
    assert sorted(row[2:4] for row in rows) == sorted(
        [(m.qmgr, m.queue) for m in MESSAGES] + [("QM7", m.queue) for m in MESSAGES[:9]]
    )


def test_a_table_in_directories_is_written_out_before_a_replay_in_files(tmp_path: Path) -> None:
    path = tmp_path / "qmgr=QM1" / "c.parquet"
    path.parent.mkdir()
    written(path, MESSAGES, "parquet")
    assert in_order([path]) is None
    assert in_order([path], checked=True) is not None
    (tmp_path / "time=1").mkdir()
    other = path.rename(tmp_path / "time=1" / "c.parquet")
    (problem,) = rows_of(pieces_of([other]))
    assert "time is read from files only" in problem[-1]


def test_parquet_of_other_types_is_read_by_the_reader(tmp_path: Path) -> None:
    """Hex text, plain integers, no statistics: taken as ``read_captures`` takes it, not by row groups."""
    path = tmp_path / "c.parquet"
    rows = [{"seq": n, "queue": "Q", "md_hex": None, "body_hex": "00ff"} for n in (3, 4)]
    parquet.write_table(pa.Table.from_pylist(rows), path)
    (piece,) = pieces_of([path])
    assert piece.end is None
    assert rows_of([piece]) == expected([path])


# Where files are looked for


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """a.jsonl, b.jsonl, deep/c.jsonl; and what Spark and editors leave."""
    for number, name in enumerate(["a.jsonl", "b.jsonl", "deep/c.jsonl", "_SUCCESS", ".a.swp", "deep/_tmp/d.jsonl"]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"seq": number, "queue": "Q", "body_hex": ""}) + "\n")
    return tmp_path


URLS = [
    ("file:{}/a%20b.jsonl", True),
    ("file://{}/a%20b.jsonl", True),
    ("{}/a b.jsonl", True),
    ("{}/a%20b.jsonl", False),
    ("s3a://bucket/a.jsonl", False),
]


@pytest.mark.parametrize(("url", "is_there"), URLS)
def test_urls(tmp_path: Path, url: str, is_there: bool) -> None:
    (tmp_path / "a b.jsonl").write_text("")
    if is_there:
        assert files_of([url.format(tmp_path)]) == [tmp_path / "a b.jsonl"]
    else:
        with pytest.raises(CaptureError, match=r"no such file|give the DataFrame to replayed"):
            files_of([url.format(tmp_path)])


PATHS = [
    ("file", ["a.jsonl"], ["a.jsonl"]),
    ("directory", [""], ["a.jsonl", "b.jsonl", "deep/c.jsonl"]),
    ("glob", ["*.jsonl"], ["a.jsonl", "b.jsonl"]),
    ("glob-of-directories", ["d*"], ["deep/c.jsonl"]),
    ("glob-deep", ["**/[bc].jsonl"], ["b.jsonl", "deep/c.jsonl"]),
    ("several", ["b.jsonl", "a.jsonl"], ["b.jsonl", "a.jsonl"]),
    ("twice", ["a.jsonl", "*.jsonl", ""], ["a.jsonl", "b.jsonl", "deep/c.jsonl"]),
]


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
@pytest.mark.parametrize(("paths", "found"), [case[1:] for case in PATHS], ids=[case[0] for case in PATHS])
def test_paths(tree: Path, prefix: str, paths: list[str], found: list[str]) -> None:
    assert files_of(f"{prefix}{tree}/{path}" for path in paths) == [tree / name for name in found]


def test_a_name_with_a_wildcard_character_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "c[1].jsonl"
    path.write_text("")
    assert files_of([str(path)]) == [path]


@pytest.mark.parametrize("name", ["missing.jsonl", "missing/*.jsonl", "deep/x?"])
def test_a_missing_path_is_an_error(tree: Path, name: str) -> None:
    with pytest.raises(CaptureError, match="no such file or directory"):
        files_of([str(tree / name)])


def test_an_empty_directory_is_an_empty_capture(tmp_path: Path) -> None:
    assert pieces_of(files_of([str(tmp_path)])) == []


def test_an_unknown_format_is_an_error(tree: Path) -> None:
    with pytest.raises(CaptureError, match="unknown format"):
        pieces_of(files_of([str(tree)]), "csv")


@pytest.mark.parametrize("form", ["jsonl", "parquet", "mqmd"])
def test_messages_that_name_no_queue(tmp_path: Path, form: str) -> None:
    nameless = [message.model_copy(update={"queue": ""}) for message in MESSAGES[:30]]
    path = written(tmp_path / f"c.{form}", nameless, form)
    pieces = pieces_of([path])
    for default, same in (("", ""), ("SOME.Q", "SOME.Q"), (NATURAL, natural_queue)):
        assert rows_of(pieces, default) == expected([path], same)
    assert len({row[3] for row in rows_of(pieces, NATURAL)}) > 1
