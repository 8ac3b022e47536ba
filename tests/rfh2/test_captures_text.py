"""Captures in lines of text: JSON Lines, hex, unload files, listings; what each line may be, and what is wrong."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path
from shutil import which

import pytest
from hypothesis import example, given, strategies as st

from rfh2 import CapturedMessage, CaptureError, Mqmd
from rfh2.captures import CaptureRecord, amqsbcg, read_captures, write_captures
from rfh2.captures.record import numbered_lines

GOLDEN = Path(__file__).parents[2] / "fixtures" / "captures" / "formats"
QLOAD = (GOLDEN / "stock.qload").read_bytes()
BCG = (GOLDEN / "stock.bcg").read_bytes()
BODY = (GOLDEN / "stock.raw").read_bytes()
MD = (GOLDEN / "stock.mqmd").read_bytes()[:364]


def read(data: bytes, form: str) -> list[CaptureRecord]:
    return list(read_captures(io.BytesIO(data), form, name="capture"))


def bodies(records: list[CaptureRecord]) -> list[bytes | None]:
    return [record.message and record.message.body for record in records]


def problems(records: list[CaptureRecord]) -> list[tuple[int, str]]:
    """(line, why) of each problem."""
    found = [r.problem for r in records if r.problem is not None]
    assert all(isinstance(p, CaptureError) and p.unit == "line" and p.source == "capture" for p in found)
    return [(p.position or 0, p.why) for p in found]


# ---- lines ---------------------------------------------------------------------------------------------------------


def test_lines_are_numbered_and_longer_ones_than_any_message_left_out() -> None:
    text = b"one\r\n" + b"x" * 11 + b"\n\nfour"
    assert list(numbered_lines(io.BytesIO(text), limit=10)) == [(1, b"one"), (2, None), (3, b""), (4, b"four")]
    assert [line for _, line in numbered_lines(io.BytesIO(b"a\r\nb"), keep_ends=True)] == [b"a\r\n", b"b"]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_lines_in_what_shells_write(codec: str) -> None:
    mark = b"\xfe\xff" if codec == "utf-16-be" else b""
    text = mark + f"one\r\n{'x' * 11}\r\nthree".encode(codec)
    assert list(numbered_lines(io.BytesIO(text), limit=10)) == [(1, b"one"), (2, None), (3, b"three")]


# ---- JSON Lines ----------------------------------------------------------------------------------------------------

BAD_JSON = [
    ("not-json", b"nonsense", "invalid JSON"),
    ("cut", b'{"seq":1,"queue":"Q","body_hex":"00"', "EOF while parsing"),
    ("not-an-object", b"[1]", "object"),
    ("no-body", b'{"seq":1,"queue":"Q"}', "body_hex: field required"),
    ("odd-hex", b'{"seq":1,"queue":"Q","body_hex":"0"}', "body_hex"),
    ("negative-seq", b'{"seq":-1,"queue":"Q","body_hex":"00"}', "seq"),
    ("seq-beyond-a-long", b'{"seq":9223372036854775808,"queue":"Q","body_hex":"00"}', "seq: input should be less"),
    ("bad-time", b'{"seq":1,"time":"yesterday","queue":"Q","body_hex":"00"}', "time"),
    ("null-queue", b'{"seq":1,"queue":null,"body_hex":"00"}', "queue"),
    ("not-utf8", b'{"seq":1,"queue":"\xff","body_hex":"00"}', "unicode"),
]


@pytest.mark.parametrize(("line", "why"), [case[1:] for case in BAD_JSON], ids=[case[0] for case in BAD_JSON])
def test_a_bad_line_is_told_and_the_next_is_read(line: bytes, why: str) -> None:
    good = b'{"seq":5,"queue":"Q","body_hex":"01"}\n'
    records = read(good + b"\n" + line + b"\n" + good, "jsonl")
    assert bodies(records) == [b"\1", None, b"\1"]
    ((at, said),) = problems(records)
    assert at == 3
    assert why in said
    assert "\n" not in said


def test_a_bad_line_does_not_show_the_message() -> None:
    (problem,) = problems(read(b'{"seq":1,"queue":"Q","body_hex":"736563726574x"}\n', "jsonl"))
    assert "736563726574" not in problem[1]


def test_unknown_keys_are_ignored_and_missing_ones_filled_in() -> None:
    lines = b'{"body_hex":"00","x":{}}\n{"seq":7,"queue":"Q","body_hex":"01"}\n{"body_hex":"02"}\n'
    found = [r.message for r in read(lines, "jsonl") if r.message]
    assert [(m.seq, m.queue, m.time, m.md_hex) for m in found] == [
        (1, "", None, None),
        (7, "Q", None, None),
        (8, "", None, None),
    ]


# ---- hex -----------------------------------------------------------------------------------------------------------

HEX = [
    ("bare", b"5246 48 20\n0A", [b"RFH \n"]),
    ("upper-and-lower", b"fF", [b"\xff"]),
    ("blocks", b"01\n\n \n02\n03\n\n", [b"\1", b"\2\3"]),
    ("comments", b"# a message\n01\n# and\n02\n", [b"\1\2"]),
    ("xxd-text-looks-like-hex", b"00000000: 4142 4344  4142 4344\n", [b"ABCD"]),
    ("xxd-text-has-a-bar", b"00000000: 207c 207c  | | \n", [b" | |"]),
    ("hexdump-text-has-a-bar", b"00000000  20 7c 20 7c  |  | | |\n00000004\n", [b" | |"]),
    ("hexdump-blanks-squeezed", b"00000000 20 7c 20 7c | | ||\n00000004\n", [b" | |"]),
    ("hexdump-repeats", b"00000000  01 01  |..|\n*\n00000006  02  |.|\n00000007\n", [b"\1\1\1\1\1\1\2"]),
    ("hexdump-repeats-to-the-end", b"00000000  01 01  |..|\n*\n00000008\n", [b"\1" * 8]),
    ("od-octal", b"0000000 " + b"41 " * 16 + b"\n0000020 42\n0000021\n", [b"A" * 16 + b"B"]),
    ("amqsbcg-lines", b"00000000:  4142 43   'ABC             '\n", [b"ABC"]),
    ("empty-message", b"00000000:\n", [b""]),
    ("crlf", b"01\r\n\r\n02\r\n", [b"\1", b"\2"]),
    ("blank-in-front", b"   00000000: 4142\n   00000002: 43\n", [b"ABC"]),
    ("nothing", b"\n \n", []),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in HEX], ids=[case[0] for case in HEX])
def test_hex(text: bytes, expected: list[bytes]) -> None:
    assert bodies(read(text, "hex")) == expected


BAD_HEX = [
    ("odd", b"012", 1, "not hex"),
    ("not-hex", b"01\n0x02", 2, "not hex"),
    ("a-line-is-missing", b"00000000: 4142\n00000004: 43", 2, "offset is 4 where 2 is due"),
    ("a-line-is-cut", b"00000000: 41\n00000002: 43", 2, "offset is 2 where 1 is due"),
    ("not-a-dump-line", b"00000000: 4142\n4344", 2, "offset is 17220 where 2 is due"),
    ("words-in-a-dump", b"00000000: 4142\nhello", 2, "no offset"),
    ("column-is-garbled", b"00000000: 4142 43zz", 1, "not hex"),
    ("host-order-words", b"0000000 4241 4443", 1, "host byte order"),
    ("repeats-without-an-end", b"00000000  01  |.|\n*", 2, "the offset at which the repeated lines end is missing"),
    ("repeats-a-fraction", b"00000000  01 02  |..|\n*\n00000005", 3, "not a whole number"),
    ("not-octal", b"0000000 41\n0000009 42", 2, "not octal"),
    ("cut-mqmd", b"4D442020 02000000 00", 1, "the MQMD ends after 9 of 364 bytes"),
    ("no-version", b"4D442020 03000000", 1, "Version that is neither 1 nor 2"),
]


@pytest.mark.parametrize(("text", "line", "why"), [case[1:] for case in BAD_HEX], ids=[case[0] for case in BAD_HEX])
def test_a_bad_block_is_told_and_the_next_is_read(text: bytes, line: int, why: str) -> None:
    records = read(text + b"\n\n05\n", "hex")
    assert bodies(records) == [None, b"\5"]
    ((at, said),) = problems(records)
    assert (at, why in said) == (line, True), said
    assert records[0].position == 1


DUMPERS = ["xxd", "xxd -u", "xxd -g1 -c32", "xxd -p", "hexdump -C", "od -tx1z -Ax", "od -tx1 -v"]


@pytest.mark.parametrize("command", DUMPERS)
def test_what_dumpers_write_is_read_back(command: str, tmp_path: Path) -> None:
    program, *_ = command.split()
    if which(program) is None:
        pytest.skip(f"{program} is not installed")
    data = bytes(range(256)) + bytes(96) + b"#" * 70 + b"tail"
    (tmp_path / "data").write_bytes(data)
    text = subprocess.run([*command.split(), tmp_path / "data"], capture_output=True, check=True).stdout
    assert bodies(read(text, "auto")) == [data]


def test_hex_of_a_block_too_long_is_told() -> None:
    class Endless(io.RawIOBase):
        """Lines of a megabyte of hex, 101 of them, then a good block."""

        count = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            self.count += 1
            line = b"00" * (len(buffer) // 2 - 1) + b"\n\n"
            line = line[:-1] if self.count * len(buffer) < 220 << 20 else line
            if self.count * len(buffer) > 230 << 20:
                return 0
            buffer[: len(line)] = line
            return len(line)

    first = next(iter(read_captures(io.BufferedReader(Endless(), 1 << 20), "hex", name="capture")))  # type: ignore[arg-type]
    assert first.problem is not None
    assert "longer than any message" in first.problem.why


# ---- unload files (wire formats 6.3) -------------------------------------------------------------------------------

ATTRIBUTES = QLOAD[QLOAD.index(b"A VER") : QLOAD.index(b"X 5246")]


def test_unload_files_are_written_as_dmpmqmsg_does() -> None:
    (record,) = read(QLOAD, "qload")
    assert record.message is not None
    target = io.BytesIO()
    write_captures([record.message], target, "qload")
    assert target.getvalue().split(b"\n", 1)[1].rstrip(b"\n") == QLOAD.split(b"\n", 1)[1].rstrip(b"\n")


@pytest.mark.parametrize("queue", ["Q\nN\nX 00", "Q\rX 00", "Q\x85", "Q\u2028", "Q\0", " Q", "Q\t", "\n"], ids=ascii)
def test_a_name_that_no_line_of_an_unload_file_can_hold_is_refused(queue: str) -> None:
    """Else what stands behind a line break in it would be read as attributes, data and messages."""
    for names in ({"queue": queue}, {"queue": "Q", "qmgr": queue}):
        message = CapturedMessage.model_validate({"seq": 1, "md_hex": None, "body_hex": "6f6e65", **names})
        target = io.BytesIO()
        with pytest.raises(CaptureError, match="no line can hold the name"):
            write_captures([message], target, "qload")
        assert read(target.getvalue(), "qload") == []


DATA_LINES = [
    ("hex", b"X 0102\nX 03\n", b"\1\2\3"),
    ("hex-and-text-column", b"X 4142  <AB>\nX 43    <C>\n", b"ABC"),
    ("hex-text-column-of-hex", b"X 4142  <4142>\n", b"AB"),
    ("hex-without-blank", b"X\n", b""),
    ("string", b'S "a ~" ~~ b "\n', b'a " ~ b '),
    ("string-then-hex", b'S "ab"\nX 00\nS "c"\n', b"ab\0c"),
    ("string-unquoted", b"S  abc  \n", b"abc"),
    ("string-empty", b'S ""\n', b""),
    ("string-none", b"S \n", b""),
    ("text", b"T one \nT \nT  two\n", b"one \n\n two\n"),
    ("blank-line-between", b"X 01\n", b"\1"),
]


@pytest.mark.parametrize(("lines", "expected"), [case[1:] for case in DATA_LINES], ids=[case[0] for case in DATA_LINES])
@pytest.mark.parametrize("attributes", [b"N\n", ATTRIBUTES], ids=["N", "A"])
def test_unload_data_lines(attributes: bytes, lines: bytes, expected: bytes) -> None:
    (record,) = read(attributes + lines, "qload")
    assert record.problem is None
    assert record.message is not None
    assert (record.message.body, record.message.md) == (expected, None if attributes == b"N\n" else MD)


ATTRIBUTE_LINES = [
    ("version-1", b"A VER 1\n", lambda m: (m.version, len(m.encode())) == (1, 324)),
    ("none-is-version-2", b"A RPT 0\n", lambda m: (m.version, m.msg_type, m.expiry, m.persistence) == (2, 8, -1, 2)),
    ("empty-name-is-nulls", b"A RTQ \n", lambda m: m.reply_to_q == "\0" * 48),
    ("short-name-gets-blanks", b"A RTQ REPLY\n", lambda m: m.encode()[100:148] == b"REPLY".ljust(48)),
    ("short-hex-gets-nulls", b"A MSI 0102\n", lambda m: m.msg_id == b"\1\2" + bytes(22)),
    ("lower-case-hex", b"A COI ff\n", lambda m: m.correl_id[:1] == b"\xff"),
    ("identity-data-as-characters", b"A AID who\n", lambda m: m.appl_identity_data == "who"),
    ("origin-data-as-characters", b"A AOD back\n", lambda m: m.appl_origin_data == "back"),
    ("negative", b"A RPT -2147483648\n", lambda m: m.report == -(2**31)),
    ("last-one-counts", b"A PRI 1\nA PRI 2\n", lambda m: m.priority == 2),
    ("crlf", b"A FMT MQSTR   \r\n", lambda m: m.format == "MQSTR"),
]


@pytest.mark.parametrize(
    ("lines", "holds"), [case[1:] for case in ATTRIBUTE_LINES], ids=[case[0] for case in ATTRIBUTE_LINES]
)
def test_unload_attributes(lines: bytes, holds) -> None:  # type: ignore[no-untyped-def]
    (record,) = read(lines + b"X 00\n", "qload")
    assert record.message is not None, record.problem
    mqmd = record.message.descriptor()
    assert isinstance(mqmd, Mqmd)
    assert holds(mqmd), mqmd


BAD_UNLOAD = [
    ("unknown-attribute", b"A XYZ 1\nX 00\n", 1, "XYZ is not an attribute"),
    ("not-a-number", b"A VER two\nX 00\n", 1, "Version is not a 32-bit number"),
    ("number-too-great", b"A RPT 4294967296\nX 00\n", 1, "Report is not a 32-bit number"),
    ("unknown-version", b"A VER 3\nX 00\n", 1, "Version is 3"),
    ("id-too-long", b"A MSI " + b"00" * 25 + b"\nX 00\n", 1, "MsgId is longer than 24 bytes"),
    ("name-too-long", b"A FMT MQHRF2    \nX 00\n", 1, "Format is longer than 8 bytes"),
    ("id-not-hex", b"A COI xyz\nX 00\n", 1, "CorrelId is not hex"),
    ("odd-hex", b"N\nX 000\n", 2, "not hex"),
    ("hex-garbled", b"N\nX 00\nX 0g00\n", 3, "not hex"),
    ("hex-garbled-after-hex", b"N\nX 00 11\n", 2, "not hex"),
    ("string-not-ended", b'N\nS "abc\n', 2, "not a string"),
    ("string-ends-twice", b'N\nS "a"b"\n', 2, "not a string"),
    ("string-bad-escape", b'N\nS "~a"\n', 2, "not a string"),
    ("no-data-lines", b"A VER 2\nA RPT 0\n", 1, "no data lines"),
    ("cut-in-data", b"N\nX 0001", 2, "ends within a data line"),
    ("data-without-attributes", b"X 00\nX 01\n", 1, "not an attribute line"),
    ("garbage-in-data", b"N\nX 00\nY 01\nX 02\n", 3, "not an attribute line"),
    ("garbage", b"hello\nworld\n", 1, "not an attribute line"),
]


@pytest.mark.parametrize(
    ("text", "line", "why"), [case[1:] for case in BAD_UNLOAD], ids=[case[0] for case in BAD_UNLOAD]
)
def test_a_bad_unloaded_message_is_told_and_the_next_is_read(text: bytes, line: int, why: str) -> None:
    records = read(text, "qload")
    if text.endswith(b"\n"):
        records = read(text + b"\nA VER 2\nX 05\n", "qload")
        assert bodies(records) == [None, b"\5"]
    ((at, said),) = problems(records)
    assert (at, why in said) == (line, True), said


def test_a_message_without_data_lines_does_not_take_the_next_ones() -> None:
    records = read(b"A VER 1\nA PRI 3\nA VER 2\nX 01\n\n", "qload")
    assert bodies(records) == [None, b"\1"]
    assert records[1].message is not None
    assert records[1].message.descriptor() == Mqmd(version=2, **_nulls())


def _nulls() -> dict[str, str]:
    names = {
        "reply_to_q": 48,
        "reply_to_qmgr": 48,
        "user_identifier": 12,
        "appl_identity_data": 32,
        "put_appl_name": 28,
    }
    return {name: "\0" * size for name, size in (names | {"put_date": 8, "put_time": 8, "appl_origin_data": 4}).items()}


def test_joined_unload_files_keep_their_queues() -> None:
    other = QLOAD.replace(b"= QM1", b"= QM2").replace(b"SYSTEM.BROKER.DEFAULT.STREAM", b"OTHER")
    without = QLOAD[QLOAD.index(b"A VER") :]
    found = [
        r.message for r in read(QLOAD + b"\n" + without + other + b"\n* Index 2\n" + without, "qload") if r.message
    ]
    stream = "SYSTEM.BROKER.DEFAULT.STREAM"
    assert [(m.qmgr, m.queue) for m in found] == [("QM1", stream), ("QM1", stream), ("QM2", "OTHER"), ("QM2", "OTHER")]


def test_no_queue_is_written_so_that_it_is_none_again() -> None:
    def captured(seq: int, queue: str, qmgr: str | None) -> CapturedMessage:
        return CapturedMessage(seq=seq, queue=queue, qmgr=qmgr, body_hex="00")

    given = [captured(1, "A", "QM1"), captured(2, "", None), captured(3, "A", None)]
    target = io.BytesIO()
    write_captures(given, target, "qload")
    assert [r.message for r in read(target.getvalue(), "qload")] == given


# ---- browse listings (wire formats 6.4) ----------------------------------------------------------------------------


def listing(*messages: bytes) -> bytes:
    """A listing of *messages*, put together as the program prints it, page breaks included."""
    start, end = BCG.index(b" MQGET of"), BCG.index(b"00000000:")
    out, printed = BCG[:start], 29
    for number, body in enumerate(messages, 1):
        head = BCG[start:end].replace(b"number 1,", b"number %d," % number)
        out += head.replace(b"length - 132 of 132", b"length - %d of %d" % (len(body), len(body))).rstrip(b"\n")
        for at in range(0, max(len(body), 1), 16):
            piece = body[at : at + 16]
            groups = b" ".join(piece[i : i + 2].hex().upper().encode().ljust(4) for i in range(0, 16, 2))
            text = bytes(c if 0x20 <= c < 0x7F else 0x2E for c in piece).ljust(16)
            out += b"\n%08X:  %s '%s'" % (at, groups, text)
            printed += 1
            if printed >= 60:
                printed = 0
                out += b"\n "
        out, printed = out + b"\n \n", 22
    return out + b" \n \n No more messages \n MQCLOSE\n MQDISC"


@given(st.lists(st.one_of(st.binary(max_size=40), st.binary(min_size=500, max_size=1200)), min_size=1, max_size=4))
def test_listings_of_any_data(data: list[bytes]) -> None:
    assert bodies(read(listing(*data), "auto")) == data


def test_a_listing_of_the_golden_message_is_the_golden_listing() -> None:
    assert listing(BODY).split() == BCG.split()


def test_a_multi_byte_character_may_cross_the_end_of_a_line() -> None:
    # 15 letters, then three bytes of one character: the line has 18, the next begins with two bytes' worth of blanks.
    first = b"00000000:  " + b"4141 " * 7 + b"41E2 82AC 'AAAAAAAAAAAAAAA\xe2\x82\xac'"
    second = b"\n00000012:       4242" + b" " * 30 + b"           '  BB            '"
    text = BCG[: BCG.index(b"00000000:")].replace(b"132 of 132", b"20 of 20") + first + second + b"\n"
    assert bodies(read(text, "amqsbcg")) == [b"A" * 15 + "\N{EURO SIGN}".encode() + b"BB"]


def test_a_listing_without_properties_says_so() -> None:
    text = BCG.replace(b"****   Message  ", b"****Message properties****\n\n  None\n \n****   Message  ")
    assert bodies(read(text, "amqsbcg")) == [BODY]


@pytest.mark.parametrize("start", [b" MQGET of", b"****Message descriptor"])
def test_a_listing_from_which_the_beginning_was_cut(start: bytes) -> None:
    assert bodies(read(BCG[BCG.index(start) :].lstrip(), "auto")) == [BODY]


def test_an_empty_queue_is_no_problem_but_a_listing_of_nothing_is() -> None:
    empty = BCG[: BCG.index(b" MQGET of")] + BCG[BCG.index(b" No more messages") :]
    assert read(empty, "amqsbcg") == []
    (record,) = read(b"> " + BCG.replace(b"\n", b"\n> "), "amqsbcg")
    assert record.problem is not None
    assert str(record.problem) == "capture, line 1: no message of an amqsbcg listing begins here"


def test_the_old_program_printed_no_reason() -> None:
    text = b" MQOPEN - 'Q1'\n MQGET of message number 1 \n" + BCG[BCG.index(b"****Message") :]
    (record,) = read(text, "amqsbcg")
    assert record.message is not None
    assert (record.message.queue, record.position) == ("Q1", 2)


def test_names_that_ended_at_a_null_get_blanks() -> None:
    text = re.sub(rb"ReplyToQ       : '.*?'", b"ReplyToQ       : 'REPLY.Q'", BCG)
    (record,) = read(text, "amqsbcg")
    assert record.message is not None
    assert record.message.md is not None
    assert record.message.md[100:148] == b"REPLY.Q".ljust(48)


BAD_LISTING = [
    ("a-dump-line-is-missing", re.sub(rb"00000010:.*\n", b"", BCG), "offset is 32 where 16 is due"),
    ("hex-is-garbled", BCG.replace(b"5246 4820", b"5246 482", 1), "not hex"),
    ("last-line-is-missing", re.sub(rb"00000080:.*\n", b"", BCG), "128 of 132 bytes are there"),
    ("truncated", BCG.replace(b"132 of 132", b"132 of 70000"), "showed 132 of 70000 bytes"),
    ("no-length", re.sub(rb" length.*\n", b"", BCG), "ends before"),
    (
        "no-descriptor",
        re.sub(rb"\*\*\*\*Message descriptor.*Message      \*\*\*\*", b"", BCG, flags=re.S),
        "ends before",
    ),
    ("id-is-cut", re.sub(rb"MsgId : X'41", b"MsgId : X'4", BCG), "MsgId is not hex"),
    ("number-is-not-one", BCG.replace(b"Priority : 0", b"Priority : x"), "not a line of a message descriptor"),
    ("unknown-field", BCG.replace(b"  BackoutCount : 0", b"  Backout : 0"), "Backout is not a field"),
    ("version", BCG.replace(b"Version : 2", b"Version : 7"), "Version is 7"),
    ("a-field-is-missing", re.sub(rb"  Expiry .*\n", b"", BCG), "the message descriptor lacks Expiry"),
    ("token-is-missing", re.sub(rb"   X'0+'\n  Appl", b"  Appl", BCG), "AccountingToken is not on the line below"),
    (
        "properties",
        BCG.replace(b"****   Message  ", b"****Message properties****\n\n  colour : 'blue'\n \n****   Message  "),
        "its properties are listed apart",
    ),
]


@pytest.mark.parametrize(("text", "why"), [case[1:] for case in BAD_LISTING], ids=[case[0] for case in BAD_LISTING])
def test_a_bad_listed_message_is_told_and_the_next_is_read(text: bytes, why: str) -> None:
    records = read(text[: text.index(b" No more")] + listing(b"next"), "amqsbcg")
    assert bodies(records) == [None, b"next"]
    ((_, said),) = problems(records)
    assert why in said


def test_a_browse_that_failed_is_told() -> None:
    text = BCG.replace(b" No more messages ", b" MQGET 2, failed with CompCode:2 Reason:2009")
    records = read(text, "amqsbcg")
    assert bodies(records) == [BODY, None]
    assert problems(records) == [(54, "the browse ended: CompCode:2 Reason:2009")]


# What a line of a listing with a string in it says, as one expression each; they take the square of a line's length.
TWO_STRINGS = re.compile(rb"\s*(\w+)\s*: '(.*)'\s+(\w+)\s*: '(.*)'\s*\Z", re.DOTALL)
STRING_AND_NUMBER = re.compile(rb"\s*(\w+)\s*: '(.*)'\s+(\w+)\s*: (-?\d+)\s*\Z", re.DOTALL)
ONE_STRING = re.compile(rb"\s*(\w+)\s*: '(.*)'\s*\Z", re.DOTALL)
PIECES = [b"a", b"b1", b" : '", b"'", b" ", b": ", b"12", b"-3", b"\t", b"'  b : '", b"' c : 5"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))
@example(b"a : 'x' b : 'y' c : 'z'")
@example(b"a : 'x' b : 5")
@example(b" a : '''  ")
def test_a_line_of_a_listing_is_divided_where_its_last_field_can_begin(line: bytes) -> None:
    two = TWO_STRINGS.match(line) or STRING_AND_NUMBER.match(line)
    one = ONE_STRING.match(line)
    fields = [(two[1], two[2]), (two[3], two[4])] if two else [(one[1], one[2])] if one else []
    assert amqsbcg._strings(line) == fields
