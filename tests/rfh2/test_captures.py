"""Captures of every format: the same message whatever wrote it, told apart by content, read on behind what is bad."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, strategies as st

from rfh2 import CapturedMessage, CaptureError, Mqmd
from rfh2.captures import FORMATS, CaptureRecord, Numbering, detect, put_time, read_captures, write_captures
from tests.examples import FEW

GOLDEN = Path(__file__).parents[2] / "fixtures" / "captures" / "formats"
FILES = sorted(path for path in GOLDEN.iterdir() if path.suffix != ".md")
WRITABLE = [name for name, entry in FORMATS.items() if entry.writer is not None]

BODY = (GOLDEN / "stock.raw").read_bytes()
MD = (GOLDEN / "stock.mqmd").read_bytes()[:364]
STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"
TIME = datetime(2024, 1, 3, 9, 44, 17, tzinfo=UTC)


def message(seq: int = 1, body: bytes = b"data", md: bytes | None = MD, **more: object) -> CapturedMessage:
    given = {"queue": "Q", "md_hex": None if md is None else md.hex(), "body_hex": body.hex(), **more}
    return CapturedMessage.model_validate({"seq": seq, **given})


def read(data: bytes, form: str = "auto", **more: object) -> list[CaptureRecord]:
    return list(read_captures(io.BytesIO(data), form, name="capture", **more))  # type: ignore[arg-type]


def written(messages: list[CapturedMessage], form: str) -> bytes:
    target = io.BytesIO()
    assert write_captures(messages, target, form) == len(messages)
    return target.getvalue()


class Pipe(io.RawIOBase):
    """What cannot seek, and gives what there is."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__()
        self.pieces = list(pieces)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        if not self.pieces:
            return 0
        piece, rest = self.pieces[0][: len(buffer)], self.pieces[0][len(buffer) :]
        self.pieces[:1] = [rest] if rest else []
        buffer[: len(piece)] = piece
        return len(piece)


# ---- the same message, whatever wrote it ---------------------------------------------------------------------------


def test_every_format_has_a_golden_file() -> None:
    assert {detect(path.read_bytes(), path.name) for path in FILES} == set(FORMATS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_golden_files_hold_the_same_message(path: Path) -> None:
    records = list(read_captures(path))
    assert [(r.source, r.index, r.problem) for r in records] == [(str(path), 0, None)]
    found = records[0].message
    assert found is not None
    assert found.body == BODY
    if path.suffix != ".raw":
        assert found.md == MD
        assert found.time is not None
        assert found.time.replace(microsecond=0) == TIME
    if path.suffix in (".jsonl", ".parquet", ".qload", ".bcg", ".pcap", ".pcapng"):
        assert found.queue == STREAM
    if path.suffix in (".jsonl", ".parquet", ".qload", ".pcap", ".pcapng"):
        assert found.qmgr == "QM1"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_content_decides_the_format_not_the_name(path: Path) -> None:
    data = path.read_bytes()
    assert detect(data, "capture.dat") == detect(data, path.name) == detect(data, "misleading.jsonl")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_pipe_is_as_good_as_a_file(path: Path) -> None:
    data = path.read_bytes()
    pipe = Pipe(*(data[at : at + 7] for at in range(0, len(data), 7)))
    stream: BinaryIO = io.BufferedReader(pipe, 16)  # type: ignore[assignment]
    found = [r.message for r in read_captures(stream, name="pipe")]
    assert found == [r.message for r in read_captures(path)]


# ---- detection (wire formats 6.1 to 6.5) ---------------------------------------------------------------------------

DETECTED = [
    ("6.1-rfh2-be", b"RFH \0\0\0\2" + bytes(40), "", "raw"),
    ("6.1-rfh2-ebcdic", "RFH ".encode("cp500") + b"\0\0\0\2" + bytes(40), "", "raw"),
    ("6.1-dlh", b"DLH \1\0\0\0" + bytes(172), "", "raw"),
    ("6.1-anything", b"\x01\x02\x03", "", "raw"),
    ("6.1-name-of-text", b"hello, world", "message.qload", "qload"),
    ("6.2-mqmd-be", b"MD  \0\0\0\1" + bytes(320), "", "mqmd"),
    ("6.2-mqmd-ebcdic", "MD  ".encode("cp500") + b"\0\0\0\2" + bytes(360), "", "mqmd"),
    ("6.2-properties-first", b"<usr><a>1</a></usr>$%$%$MD  \1\0\0\0" + bytes(320), "", "mqmd"),
    ("6.2-not-an-mqmd", b"MD  ill-treated", "", "raw"),
    ("6.3-blank-lines-first", b"\n \n* QLOAD Version:1\n", "", "qload"),
    ("6.3-without-header", b"A VER 2\nA RPT 0\n", "", "qload"),
    ("6.4-newline-first", b"\nAMQSBCG0 - starts here\n", "", "amqsbcg"),
    ("6.4-as400", b"\nAMQSBCG4 - starts here\n", "", "amqsbcg"),
    ("json", b'{"seq": 1}', "", "jsonl"),
    ("json-behind-blanks-and-mark", b'\xef\xbb\xbf\r\n {"seq": 1}', "", "jsonl"),
    ("hex-bare", b"52464820020000008000", "", "hex"),
    ("hex-too-short-to-tell", b"5246\n", "", "raw"),
    ("hex-odd-begins-like-a-message", b"524648200200000080001\n", "", "pasted"),
    ("hex-odd", b"624648200200000080001\n", "", "raw"),
    ("hex-longer-than-is-looked-at", b"52464820" * 20_000, "", "hex"),
    ("hex-of-a-segment", b"54534820 0000001c 02090000 " + b"00" * 16 + b"\n", "", "pasted"),
    ("hex-quoted", b"> 52464820 02000000\n", "", "pasted"),
    ("base64", b"UkZIIAIAAACAAAAA\n", "", "pasted"),
    ("listing-quoted", b"> ****Message descriptor****\n>  StrucId : 'MD  '\n", "", "pasted"),
    ("json-around-base64", b'{"value": "UkZIIAIAAACAAAAA"}\n', "", "pasted"),
    ("json-of-ours-begins", b'{"seq": 1, "md_hex": "4d44202001000000', "", "jsonl"),
    ("json-of-ours-around-base64", b'{"body_hex": "", "value": "UkZIIAIAAACAAAAA"}\n', "", "jsonl"),
    ("hex-words-are-not", b"deadbeef cafe babe goes here\n", "", "raw"),
    ("parquet", b"PAR1\x15\x04", "", "parquet"),
    ("pcap-nanoseconds", b"\x4d\x3c\xb2\xa1" + bytes(20), "", "pcap"),
    ("pcap-big-endian", b"\xa1\xb2\xc3\xd4" + bytes(20), "", "pcap"),
    ("pcapng-is-not-a-line", b"\n\r\r\nhello", "", "raw"),
    ("empty", b"", "", "jsonl"),
    ("empty-with-name", b"", "messages.PARQUET", "parquet"),
]


@pytest.mark.parametrize(("head", "name", "form"), [case[1:] for case in DETECTED], ids=[case[0] for case in DETECTED])
def test_detection(head: bytes, name: str, form: str) -> None:
    assert detect(head, name) == form


@given(st.binary(max_size=200), st.text(max_size=10))
def test_detection_names_a_format_for_anything(head: bytes, name: str) -> None:
    assert detect(head, name) in FORMATS


# ---- round trips ---------------------------------------------------------------------------------------------------

names = st.text(st.characters(codec="ascii", min_codepoint=0x21), max_size=48)
line_fields = st.text(st.characters(codec="latin-1", exclude_characters="\n\r"), max_size=12).map(
    lambda s: s.rstrip(" ")
)
descriptors = st.builds(
    Mqmd,
    version=st.sampled_from([1, 2]),
    report=st.integers(-(2**31), 2**31 - 1),
    format=st.text(st.characters(codec="latin-1", exclude_characters="\n\r"), max_size=8).map(lambda s: s.rstrip(" ")),
    msg_id=st.binary(min_size=24, max_size=24),
    accounting_token=st.binary(min_size=32, max_size=32),
    reply_to_q=line_fields,
    user_identifier=line_fields,
    appl_identity_data=st.text(st.characters(codec="latin-1"), max_size=32).map(lambda s: s.rstrip(" ")),
    put_date=st.sampled_from(["", "20240103", "20240230", "nonsense"]),
    put_time=st.sampled_from(["", "09441799", "99999999", "-1234567"]),
    order=st.sampled_from(["little", "big"]),
    charset=st.sampled_from(["latin-1", "cp500"]),
).map(lambda mqmd: mqmd if mqmd.version == 2 else replace(mqmd, group_id=bytes(24)))
bodies = st.one_of(st.binary(max_size=200), st.binary(max_size=8).map(lambda b: b * 40), st.just(b"#@#@#MD  #@#@#"))
messages = st.builds(
    lambda seq, mqmd, body, queue, qmgr: message(seq, body, mqmd and mqmd.encode(), queue=queue, qmgr=qmgr),
    st.integers(0, 2**62),
    st.one_of(st.none(), descriptors),
    bodies,
    names,
    st.one_of(st.none(), names.filter(bool)),
)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@given(st.lists(messages, min_size=1, max_size=5), st.one_of(st.none(), st.datetimes()), st.one_of(st.none(), names))
def test_everything_survives(form: str, given: list[CapturedMessage], time: datetime | None, user: str | None) -> None:
    utc = None if time is None else time.replace(tzinfo=UTC)
    given = [m.model_copy(update={"time": utc, "user": user}) for m in given]
    assert [r.message for r in read(written(given, form))] == given


@pytest.mark.parametrize("form", ["mqmd", "hex"])
@given(st.lists(messages.filter(lambda m: m.md is not None), min_size=1, max_size=5))
def test_descriptor_and_data_survive_byte_for_byte(form: str, given: list[CapturedMessage]) -> None:
    assert [(m.md, m.body) for m in _found(read(written(given, form)))] == [(m.md, m.body) for m in given]


@given(st.lists(messages, min_size=1, max_size=5))
def test_qload_keeps_every_field_but_not_the_form_of_the_descriptor(given: list[CapturedMessage]) -> None:
    found = _found(read(written(given, "qload"), "qload"))
    assert [(m.queue, m.qmgr, m.body) for m in found] == [(m.queue, m.qmgr, m.body) for m in given]
    plain = [d and replace(d, order="little", charset="latin-1") for d in (m.descriptor() for m in given)]
    assert [m.descriptor() for m in found] == plain
    assert [m.md for m in found] == [d and d.encode() for d in plain]


@given(messages)
def test_raw_keeps_the_data(given: CapturedMessage) -> None:
    assert [m.body for m in _found(read(written([given], "raw"), "raw"))] == [given.body]


@pytest.mark.parametrize("form", WRITABLE)
def test_nothing_is_written_as_nothing(form: str) -> None:
    assert [r for r in read(written([], form), form) if form != "raw"] == []


def _found(records: list[CaptureRecord]) -> list[CapturedMessage]:
    assert [r.problem for r in records if r.problem] == []
    return [r.message for r in records if r.message]


# ---- what is broken is told, what is behind it is read -------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@FEW  # tests.reliability has thousands of each kind of file
@given(st.data())
def test_damage_gives_records_and_nothing_else(path: Path, data: st.DataObject) -> None:
    golden = bytearray(path.read_bytes())
    form = detect(bytes(golden), path.name)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(golden) - 1))
        size = data.draw(st.integers(0, 40))
        golden[at : at + size] = data.draw(st.binary(max_size=40))
        golden = golden or bytearray(b"\0")
    for record in read(bytes(golden), form):
        assert (record.message is None) != (record.problem is None)
        assert record.position >= 0


def test_a_column_of_parquet_whose_name_is_damaged_in_its_row_group_alone() -> None:
    """The footer names each column twice: in the schema, and where its data is."""
    golden = (GOLDEN / "stock.parquet").read_bytes()
    at = golden.rindex(b"body")
    (record,) = read(golden[:at] + b"\x80" + golden[at + 1 :], "parquet")
    assert record.problem is not None
    assert "rows up to 0 are not readable" in str(record.problem)


@pytest.mark.parametrize("form", [name for name in FORMATS if name not in ("raw",)])
@given(st.binary(max_size=300))
def test_any_bytes_in_any_format_give_records(form: str, data: bytes) -> None:
    assert all(isinstance(record, CaptureRecord) for record in read(data, form))


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.suffix in (".qload", ".bcg", ".pcap", ".pcapng", ".parquet")], ids=str
)
def test_a_cut_file_never_gives_a_shorter_message(path: Path) -> None:
    whole = path.read_bytes()
    form = detect(whole, path.name)
    for end in range(0, len(whole), 1 if len(whole) < 1000 else 7):
        if form == "qload" and whole[:end].endswith(b"\n"):
            continue  # the format does not say how long a message is: a cut between two of its lines cannot be seen
        for record in read(whole[:end], form):
            assert record.message is None or record.message.body == BODY


def test_a_record_is_a_message_or_a_problem() -> None:
    problem = CaptureError("f", 1, "why")
    for both_or_neither in ((message(), problem), (None, None)):
        with pytest.raises(ValueError, match="either"):
            CaptureRecord("f", 0, *both_or_neither, 0)
    record = CaptureRecord("f", 0, None, problem, 1)
    assert pickle.loads(pickle.dumps(record)).problem.args == problem.args


# ---- numbers, queues, names ----------------------------------------------------------------------------------------


def test_seq_is_counted_where_the_format_has_none() -> None:
    records = read(written([message(7), message(9)], "mqmd"))
    assert [m.seq for m in _found(records)] == [1, 2]
    assert [(r.index, r.position) for r in records] == [(0, 0), (1, 364 + 4 + 5)]


def test_a_directory_is_read_in_order_of_names_and_below(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_bytes(written([message(10), message(11)], "jsonl"))
    (tmp_path / "c.dat").write_bytes(BODY)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.dat").write_bytes(BODY + b"!")
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / ".b.jsonl.crc").write_bytes(b"crc")
    found = [(Path(r.source).name, r.message and r.message.seq) for r in read_captures(tmp_path)]
    assert found == [("1.dat", 1), ("b.jsonl", 10), ("b.jsonl", 11), ("c.dat", 12)]


def test_calls_may_share_their_numbers() -> None:
    numbering = Numbering()
    seqs = [m.seq for _ in range(2) for m in _found(read(BODY, numbering=numbering))]
    assert seqs == [1, 2]


def _below(directory: Path, message: CapturedMessage, name: str = "c.jsonl") -> Path:
    directory.mkdir(parents=True)
    path = directory / name
    path.write_text(message.model_dump_json() + "\n")
    return path


# (directories, the message's own, what is read: each is queue manager, queue, user)
PARTITIONS = [
    ("qmgr=QM2", (None, "Q", None), ("QM2", "Q", None)),
    ("date=2026-01-01/QMGR=QM2/user=ann", (None, "", None), ("QM2", "", "ann")),
    ("qmgr=QM%2F2%25/queue=A.B", ("", "", None), ("QM/2%", "A.B", None)),
    ("qmgr=QM2/queue=A.B", ("QM1", "Q", "bob"), ("QM1", "Q", "bob")),
    ("qmgr=QM1/qmgr=QM2", (None, "Q", None), ("QM2", "Q", None)),
    ("qmgr=__HIVE_DEFAULT_PARTITION__", (None, "Q", None), (None, "Q", None)),
    ("qmgr=", (None, "Q", None), (None, "Q", None)),
]
Said = tuple[str | None, str, str | None]


@pytest.mark.parametrize(("directories", "own", "read"), PARTITIONS, ids=[row[0] for row in PARTITIONS])
def test_directories_named_column_and_value_say_what_a_message_does_not(
    tmp_path: Path, directories: str, own: Said, read: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = CapturedMessage(seq=1, qmgr=own[0], queue=own[1], user=own[2], body_hex="00")
    path = _below(tmp_path / directories, message)
    monkeypatch.chdir(path.parent)
    with path.open("rb") as stream:
        found = [*read_captures(tmp_path), *read_captures(path), *read_captures(path.name), *read_captures(stream)]
    said = [(r.message.qmgr, r.message.queue, r.message.user) for r in found if r.message is not None]
    assert said == [read] * 4
    (record,) = read_captures(path, default_queue="ANY")
    assert record.message is not None
    assert record.message.queue == (read[1] or "ANY")


def test_data_that_is_in_no_file_is_in_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _below(tmp_path / "qmgr=QM2", CapturedMessage(seq=1, queue="Q", body_hex="00"))
    monkeypatch.chdir(path.parent)
    (record,) = read_captures(io.BytesIO(path.read_bytes()), name="stdin")
    assert record.message is not None
    assert record.message.qmgr is None


@pytest.mark.parametrize("column", ["seq", "time", "md", "body"])
def test_a_directory_that_a_message_cannot_be_read_from_is_a_problem(tmp_path: Path, column: str) -> None:
    path = _below(tmp_path / f"{column}=1", CapturedMessage(seq=1, queue="Q", body_hex="00"))
    (record,) = read_captures(tmp_path)
    assert str(record.problem) == (
        f"{path}: it is in the directory {column}=1, and {column} is read from files only: write the capture again "
        f"without partitions by {column}"
    )


def test_an_empty_directory_has_no_records(tmp_path: Path) -> None:
    assert list(read_captures(tmp_path)) == list(read_captures(str(tmp_path))) == []


@pytest.mark.parametrize(("name", "before"), [("md", b"before"), ("body", b"before")])
def test_a_changed_copy_has_the_bytes_of_what_was_changed(name: str, before: bytes) -> None:
    message = CapturedMessage(seq=1, queue="Q", md_hex=before.hex(), body_hex=before.hex())
    assert getattr(message, name) == before
    assert getattr(message.model_copy(update={f"{name}_hex": b"after".hex()}), name) == b"after"
    assert getattr(message.model_copy(update={"seq": 2}), name) == before


def test_the_queue_is_filled_in_where_there_is_none() -> None:
    lines = b'{"seq":1,"queue":"","body_hex":"01"}\n{"seq":2,"queue":"MINE","body_hex":"02"}\n'
    assert [m.queue for m in _found(read(lines, default_queue="DEFAULT.Q"))] == ["DEFAULT.Q", "MINE"]
    by_body = _found(read(lines, default_queue=lambda m: f"Q{m.body_hex}"))
    assert [m.queue for m in by_body] == ["Q01", "MINE"]
    assert [m.queue for m in _found(read(BODY))] == [""]


def test_a_stream_is_called_what_the_caller_says(tmp_path: Path) -> None:
    path = tmp_path / "m.dat"
    path.write_bytes(BODY)
    with path.open("rb") as stream:
        assert [r.source for r in read_captures(stream)] == [str(path)]
        stream.seek(0)
        assert [r.source for r in read_captures(stream, name="here")] == ["here"]


def test_reading_begins_where_the_stream_is() -> None:
    stream = io.BytesIO(b"skipped" + MD + BODY)
    stream.seek(7)
    assert [m.body for m in _found(list(read_captures(stream)))] == [BODY]


MISSING = [
    ("missing", "nowhere.jsonl", "auto", "no such file"),
    ("unknown-format", "here.jsonl", "csv", "unknown format csv; there are jsonl, parquet"),
]


@pytest.mark.parametrize(("name", "form", "why"), [case[1:] for case in MISSING], ids=[case[0] for case in MISSING])
def test_what_cannot_be_opened_is_an_error_at_once(tmp_path: Path, name: str, form: str, why: str) -> None:
    (tmp_path / "here.jsonl").write_bytes(b"")
    with pytest.raises(CaptureError, match=why):
        read_captures(tmp_path / name, form)


def test_an_unreadable_file_of_a_directory_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.dat").symlink_to("nowhere")
    (tmp_path / "b.dat").write_bytes(BODY)
    records = list(read_captures(tmp_path))
    assert [r.problem is None for r in records] == [False, True]
    assert str(records[0].problem) == f"{tmp_path / 'a.dat'}: no such file or directory"


def test_a_failing_disk_is_a_problem_at_the_end() -> None:
    class Failing(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            if self.tell() > 30:
                raise OSError(5, "Input/output error")
            return super().readline(size)

    stream = Failing(b'{"seq":1,"queue":"Q","body_hex":"00"}\n{"seq":2')
    records = list(read_captures(stream, name="disk"))
    assert [r.message is not None for r in records] == [True, False]
    assert str(records[1].problem) == "disk: cannot be read further: input/output error"


def test_the_first_lines_of_a_pipe_need_not_wait_for_the_next(tmp_path: Path) -> None:
    given: list[bytes] = [written([message(n)], "jsonl") for n in (1, 2)]
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        for piece in given:
            taken += 1
            yield piece

    class Live(io.RawIOBase):
        source = pieces()

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            piece = next(self.source, b"")
            buffer[: len(piece)] = piece
            return len(piece)

    records = read_captures(io.BufferedReader(Live()), name="live")  # type: ignore[arg-type]
    assert next(records).message == message(1)
    assert taken == 1


# ---- times ---------------------------------------------------------------------------------------------------------

PUT_TIMES = [
    ("1-hundredths", "20240103", "09441799", TIME + timedelta(milliseconds=990)),
    ("1-blank", "", "", None),
    ("1-no-such-day", "20240230", "00000000", None),
    ("1-no-such-hour", "20240101", "99000000", None),
    ("1-sign", "20240101", "-1234567", None),
    ("1-leap-second", "20161231", "23596000", datetime(2017, 1, 1, tzinfo=UTC)),
    ("1-no-year", "00000101", "00000000", None),
]


@pytest.mark.parametrize(("date", "time", "expected"), [c[1:] for c in PUT_TIMES], ids=[c[0] for c in PUT_TIMES])
def test_put_time(date: str, time: str, expected: datetime | None) -> None:
    assert put_time(Mqmd(put_date=date, put_time=time).encode()) == expected


def test_put_time_of_no_descriptor() -> None:
    assert put_time(b"MD") is None


# ---- writing -------------------------------------------------------------------------------------------------------

CONTROL_IN_NAME = Mqmd(reply_to_q="A\nB").encode()
REFUSED = [
    ("raw-second", "raw", [message(1), message(2)], [2]),
    ("mqmd-separator", "mqmd", [message(1, b"#@#@#" + MD), message(2)], [1]),
    ("mqmd-separator-header", "mqmd", [message(1, b"x#@#@#RFH \2\0\0\0"), message(2)], [1]),
    ("qload-line-end", "qload", [message(1), message(2, md=CONTROL_IN_NAME), message(3)], [2]),
    ("qload-no-mqmd", "qload", [message(1, md=b"MD"), message(2)], [1]),
    ("qload-more-than-an-mqmd", "qload", [message(1, md=MD + b"x"), message(2)], [1]),
]


@pytest.mark.parametrize(("form", "given", "seqs"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_a_format_cannot_hold_is_refused(form: str, given: list[CapturedMessage], seqs: list[int]) -> None:
    refused: list[int] = []
    target = io.BytesIO()
    count = write_captures(given, target, form, refused=lambda m, error: refused.append(m.seq))
    assert refused == seqs
    assert count == len(given) - len(seqs) == len(_found(read(target.getvalue(), form)))
    with pytest.raises(CaptureError, match=f"message {seqs[0]}"):
        write_captures(given, io.BytesIO(), form)


def test_what_is_only_read_is_not_written() -> None:
    for form, why in (("pcap", "is only read"), ("amqsbcg", "is only read"), ("csv", "is not a format")):
        with pytest.raises(CaptureError, match=why):
            write_captures([], io.BytesIO(), form)


def test_mqmd_makes_the_default_descriptor_explicit() -> None:
    (found,) = _found(read(written([message(md=None, body=BODY)], "mqmd")))
    assert (found.body, found.descriptor()) == (BODY, Mqmd(format="MQHRF2", encoding=546))
