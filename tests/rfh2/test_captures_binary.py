"""Captures in binary: one message's bytes, MQMD and data with separators (wire formats 6.1, 6.2), Parquet."""

from __future__ import annotations

import builtins
import io
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyarrow import parquet

from rfh2 import CapturedMessage, CaptureError, Mqmd
from rfh2.captures import CaptureRecord, detect, mqmd, read_captures, write_captures

MD1, MD2 = Mqmd(version=1).encode(), Mqmd(version=2, order="big").encode()
EBCDIC = Mqmd(version=2, order="big", charset="cp500", format="MQSTR").encode()
RFH2 = b"RFH \0\0\0\2\0\0\0\x24" + bytes(24)


def read(data: bytes, form: str) -> list[CaptureRecord]:
    return list(read_captures(io.BytesIO(data), form, name="capture"))


def found(records: list[CaptureRecord]) -> list[tuple[bytes | None, bytes] | str]:
    """(MQMD, data) of each message, why of each problem."""
    return [(r.message.md, r.message.body) if r.message else r.problem.why for r in records if r.message or r.problem]


# ---- raw (wire formats 6.1) --------------------------------------------------------------------------------------


def test_raw_is_taken_as_it_is_even_where_it_begins_with_an_mqmd() -> None:
    assert found(read(MD1 + b"data", "raw")) == [(None, MD1 + b"data")]
    assert found(read(b"", "raw")) == [(None, b"")]


def test_raw_is_no_longer_than_a_message_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqmd, "MAX_MESSAGE_BYTES", 10)
    assert found(read(b"0123456789", "raw")) == [(None, b"0123456789")]
    assert found(read(b"0123456789+", "raw")) == ["more than 10 bytes: longer than any message"]


# ---- MQMD and data (wire formats 6.2) ------------------------------------------------------------------------------

MQMD_FILES = [
    ("version-1", MD1 + b"data", [(MD1, b"data")]),
    ("version-2-big-endian", MD2 + b"data", [(MD2, b"data")]),
    ("ebcdic", EBCDIC + b"data", [(EBCDIC, b"data")]),
    ("no-data", MD1, [(MD1, b"")]),
    ("no-mqmd", b"data", [(None, b"data")]),
    ("several", MD1 + b"a#@#@#" + MD2 + b"b#@#@#" + EBCDIC, [(MD1, b"a"), (MD2, b"b"), (EBCDIC, b"")]),
    ("header-without-mqmd-behind-it", MD1 + b"a#@#@#" + RFH2, [(MD1, b"a"), (None, RFH2)]),
    ("separator-in-data", MD1 + b"a#@#@#b#@#@#" + MD1, [(MD1, b"a#@#@#b"), (MD1, b"")]),
    ("separator-at-the-end-is-data", MD1 + b"a#@#@#", [(MD1, b"a#@#@#")]),
    ("separators-overlap", MD1 + b"#@#@#@#" + MD1 + b"c", [(MD1, b"#@"), (MD1, b"c")]),
    ("mqmd-without-separator-is-data", MD1 + b"a" + MD1, [(MD1, b"a" + MD1)]),
    ("other-separator", MD1 + b"a#####" + MD1, [(MD1, b"a#####" + MD1)]),
    ("cut-mqmd", MD2 + b"a#@#@#" + MD2[:300], [(MD2, b"a"), "the MQMD ends after 300 of 364 bytes"]),
    ("unknown-version", b"MD  \0\0\0\3" + bytes(400), ["the MQMD has a Version that is neither 1 nor 2"]),
    (
        "properties",
        MD1 + b"a#@#@#<usr><c>1</c></usr>$%$%$" + MD1 + b"b#@#@#" + MD2 + b"c",
        [(MD1, b"a"), "message properties before the MQMD are not supported", (MD2, b"c")],
    ),
    ("properties-mark-in-data", MD1 + b"a$%$%$b", [(MD1, b"a$%$%$b")]),
]


@pytest.mark.parametrize(("data", "expected"), [case[1:] for case in MQMD_FILES], ids=[case[0] for case in MQMD_FILES])
def test_mqmd_files(data: bytes, expected: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for chunk in (1, 7, 1 << 20):
        monkeypatch.setattr(mqmd, "_CHUNK_BYTES", chunk)
        assert found(read(data, "mqmd")) == expected, chunk


def test_positions_are_byte_offsets() -> None:
    data = MD1 + b"a#@#@#" + MD2[:100] + b"#@#@#" + MD1
    assert [r.position for r in read(data, "mqmd")] == [0, 324 + 6, 324 + 6 + 100 + 5]


def test_what_is_longer_than_a_message_is_told_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqmd, "_LIMIT_BYTES", 1000)
    monkeypatch.setattr(mqmd, "_CHUNK_BYTES", 100)
    data = MD1 + b"a#@#@#" + MD1 + b"b" * 5000 + b"#@#@#" + MD1 + b"c"
    records = read(data, "mqmd")
    assert found(records)[::2] == [(MD1, b"a"), (MD1, b"c")]
    assert "longer than any message" in str(found(records)[1])
    assert [r.position for r in records] == [0, 330, 330 + 324 + 5000 + 5]


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"MD", b"#@#@#")), max_size=6), st.integers(1, 50))
def test_separators_are_found_wherever_chunks_end(bodies: list[bytes], chunk: int) -> None:
    data = b"#@#@#".join(MD1 + body for body in bodies)
    before, mqmd._CHUNK_BYTES = mqmd._CHUNK_BYTES, chunk
    try:
        assert found(read(data, "mqmd")) == [(MD1, body) for body in bodies]
    finally:
        mqmd._CHUNK_BYTES = before


# ---- Parquet --------------------------------------------------------------------------------------------------------


def table(**columns: Any) -> bytes:
    target = io.BytesIO()
    parquet.write_table(pa.table(columns), target)
    return target.getvalue()


def test_parquet_columns_are_those_of_the_pinned_interface() -> None:
    target = io.BytesIO()
    time = datetime(2009, 1, 28, 11, 43, 54, 180000, tzinfo=UTC)
    given = CapturedMessage(seq=3, time=time, qmgr="QM1", queue="Q", user="app1", md_hex="4d44", body_hex="00ff")
    write_captures([given], target, "parquet")
    file = parquet.ParquetFile(target)
    assert [(field.name, str(field.type)) for field in file.schema_arrow] == [
        ("seq", "int64"),
        ("time", "timestamp[us, tz=UTC]"),
        ("qmgr", "string"),
        ("queue", "string"),
        ("user", "string"),
        ("md", "binary"),
        ("body", "binary"),
    ]
    row = {"seq": 3, "time": time, "qmgr": "QM1", "queue": "Q", "user": "app1", "md": b"MD", "body": b"\0\xff"}
    assert file.read().to_pylist() == [row]


def test_parquet_without_any_column_but_body() -> None:
    records = read(table(body=[b"a", b"b"], more=[1, 2]), "parquet")
    assert [(r.position, r.message and (r.message.seq, r.message.queue, r.message.body)) for r in records] == [
        (0, (1, "", b"a")),
        (1, (2, "", b"b")),
    ]


TIMES = [
    ("nanoseconds", pa.array([1_000_000_999], pa.timestamp("ns", "UTC")), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("seconds", pa.array([1], pa.timestamp("s")), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("zone", pa.array([1_000_000], pa.timestamp("us", "Europe/Paris")), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("text", pa.array(["1970-01-01T01:00:01+01:00"]), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("null", pa.array([None], pa.timestamp("us")), None),
]


@pytest.mark.parametrize(("column", "expected"), [case[1:] for case in TIMES], ids=[case[0] for case in TIMES])
def test_parquet_times(column: pa.Array, expected: datetime | None) -> None:
    (record,) = read(table(body=[b"x"], time=column), "parquet")
    assert record.message is not None
    assert record.message.time == expected


def test_a_bad_row_is_told_and_the_next_is_read() -> None:
    offsets, text = b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0", b"A\xffC"
    bad_text = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    data = table(seq=[1, 2, 3], queue=bad_text, body=[b"a", b"b", b"c"])
    records = read(data, "parquet")
    assert [r.message.body if r.message else str(r.problem) for r in records] == [
        b"a",
        "capture, row 1: queue: input should be a valid string, unable to parse raw data as a unicode string",
        b"c",
    ]
    records = read(table(seq=[1, -2, 3], body=[b"a", b"b", None]), "parquet")
    assert [r.problem and r.problem.why.split(":")[0] for r in records] == [None, "seq", "body_hex"]


def test_a_damaged_row_group_costs_its_rows_only() -> None:
    target = io.BytesIO()
    rows = pa.table({"body": [b"%03d" % i * 500 for i in range(30)]})
    parquet.write_table(rows, target, row_group_size=10, use_dictionary=False)
    data = bytearray(target.getvalue())
    column = parquet.ParquetFile(target).metadata.row_group(1).column(0)
    data[column.data_page_offset : column.data_page_offset + 20] = b"\xff" * 20
    records = read(bytes(data), "parquet")
    assert [r.message.body[:3] if r.message else r.position for r in records] == [
        *(b"%03d" % i for i in range(10)),
        10,
        *(b"%03d" % i for i in range(20, 30)),
    ]
    assert "rows up to 19 are not readable" in str(records[10].problem)


BAD_PARQUET = [
    ("cut", table(body=[b"x"])[:-6], "not readable as Parquet"),
    ("nothing-but-the-magic", b"PAR1", "not readable as Parquet"),
    ("no-body", table(seq=[1]), "there is no column body"),
]


@pytest.mark.parametrize(("data", "why"), [case[1:] for case in BAD_PARQUET], ids=[case[0] for case in BAD_PARQUET])
def test_bad_parquet(data: bytes, why: str) -> None:
    assert detect(data) == "parquet"
    (record,) = read(data, "parquet")
    assert why in str(record.problem)


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    message = CapturedMessage(seq=1, queue="Q", body_hex="00")
    for work in (lambda: read(b"PAR1", "auto"), lambda: write_captures([message], io.BytesIO(), "parquet")):
        with pytest.raises(CaptureError, match=r"pip install '\.\[parquet\]'"):
            work()
