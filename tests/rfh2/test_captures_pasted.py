"""Messages on pages of text: any message, in any shape, in any dressing; and damage that nothing crashes at."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given, settings, strategies as st

from commands.explain.equivalents.records import MessageView, view
from commands.explain.problems import explained
from rfh2 import CapturedMessage, Folder, Message, Mqmd, Rfh2, encode
from rfh2.captures import CaptureRecord, detect, pasted, read_captures, write_captures

PAGES = [path for path in (Path(__file__).parents[2] / "fixtures" / "pasted").iterdir() if path.is_file()]


def read(data: bytes, form: str = "pasted") -> list[CaptureRecord]:
    return list(read_captures(io.BytesIO(data), form, name="page"))


def bodies(records: list[CaptureRecord]) -> list[bytes | None]:
    return [record.message and (record.message.md or b"") + record.message.body for record in records]


# ---- any message in any shape, in any dressing ----------------------------------------------------------------------


def _xxd(data: bytes) -> str:
    target = io.BytesIO()
    write_captures([CapturedMessage(seq=1, queue="", body_hex=data.hex())], target, "hex")
    return target.getvalue().decode()


def _rows(data: bytes, size: int, row: Callable[[int, bytes], str]) -> str:
    return "".join(row(at, data[at : at + size]) + "\n" for at in range(0, len(data), size))


def _printable(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)


def _hexdump(data: bytes) -> str:
    def line(at: int, row: bytes) -> str:
        return f"{at:08x}  {row[:8].hex(' '):23}  {row[8:].hex(' '):23}  |{_printable(row)}|"

    return f"{_rows(data, 16, line)}{len(data):08x}\n"


def _amqsbcg(data: bytes) -> str:
    return _rows(data, 16, lambda at, row: f"{at:08X}:  {row.hex(' ', -2).upper():40}'{_printable(row):16}'")


def _java(data: bytes) -> str:
    return _rows(data, 12, lambda _at, row: ", ".join(str(byte - (byte & 0x80) * 2) for byte in row) + ",")


def _od(data: bytes) -> str:
    return _rows(data, 16, lambda at, row: f"{at:07o} {row.hex(' ')}") + f"{len(data):07o}\n"


def _host_words(data: bytes) -> str:
    even = data + bytes(len(data) % 2)
    swapped = b"".join(even[at + 1 : at + 2] + even[at : at + 1] for at in range(0, len(even), 2))
    return _rows(swapped, 16, lambda at, row: f"{at:07x} {row.hex(' ', 2)}") + f"{len(data):07x}\n"


def _folded(text: str, width: int) -> str:
    return "".join(text[at : at + width] + "\n" for at in range(0, len(text), width))


def _c_string(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:03o}" for byte in data)


SHAPES: dict[str, Callable[[bytes], str]] = {
    "xxd": _xxd,
    "hexdump": _hexdump,
    "od": _od,
    "words in host order": _host_words,
    "amqsbcg": _amqsbcg,
    "hex": lambda data: data.hex() + "\n",
    "hex, folded": lambda data: _folded(data.hex(), 64),
    "hex, colons": lambda data: data.hex(":").upper() + "\n",
    "hex, blanks": lambda data: _folded(data.hex(" "), 48),
    "X''": lambda data: f"MSG = X'{data.hex().upper()}'\n",
    "\\x": lambda data: "".join(f"\\x{byte:02x}" for byte in data) + "\n",
    "array of C": lambda data: "{" + ", ".join(f"0x{byte:02X}" for byte in data) + "};\n",
    "array of Java": _java,
    "numbers": lambda data: "[" + ", ".join(map(str, data)) + "]\n",
    "one number a line": lambda data: "".join(f"{byte}\n" for byte in data),
    "literal of Python": lambda data: f"x = {data!r}\n",
    "literals of Python": lambda data: _rows(data, 20, lambda _at, row: f"    {row!r}"),
    "literal of C": lambda data: f'char m[] = "{_c_string(data)}";\n',
    "base64": lambda data: base64.b64encode(data).decode() + "\n",
    "base64, folded": lambda data: base64.encodebytes(data).decode(),
    "base64 of hex": lambda data: base64.b64encode(data.hex().encode()).decode() + "\n",
}
DRESSINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "in a mail": lambda text: f"Hello,\n\nthis is it:\n\n{text}\nBest regards\nAda\n",
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "quoted twice": lambda text: "".join(f">> {line}\n" for line in text.splitlines()),
    "indented": lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "in Markdown": lambda text: f"# A ticket\n\n```\n{text}```\n\nWhy?\n",
    "in colours": lambda text: f"\x1b[32m$ \x1b[0mshow\n{text}\x1b[32m$ \x1b[0m\n",
    "in HTML": lambda text: (
        "<html><pre>\n"
        + text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
        + "</pre></html>\n"
    ),
    "no line end": lambda text: text.rstrip("\n"),
}


@st.composite
def a_message(draw: st.DrawFn) -> bytes:
    """Any message with a header, with or without its descriptor."""
    topic = draw(st.text("abc/é ", min_size=1, max_size=12))
    folder = Folder.of(f"<psc><Command>Publish</Command><Topic>{topic}</Topic></psc>")
    order = draw(st.sampled_from(["big", "little"]))
    charset = draw(st.sampled_from(["latin-1", "cp500"]))
    header = Rfh2((folder,), format="MQSTR", order=order, charset=charset)
    body = encode(Message(Mqmd(), (header,), draw(st.binary(max_size=60))))
    with_md = draw(st.booleans())
    return (Mqmd(format="MQHRF2", order=order, charset=charset).encode() if with_md else b"") + body


@pytest.mark.parametrize("shape", SHAPES)
@given(data=a_message(), dressing=st.sampled_from(sorted(DRESSINGS)))
@settings(max_examples=25)
def test_any_message_in_any_shape_and_dressing_is_found(shape: str, data: bytes, dressing: str) -> None:
    page = DRESSINGS[dressing](SHAPES[shape](data)).encode()
    assert bodies(read(page)) == [data]


@given(st.lists(a_message(), min_size=2, max_size=3), st.lists(st.sampled_from(sorted(SHAPES)), min_size=3, max_size=3))
def test_several_messages_of_several_shapes_are_on_a_page(messages: list[bytes], shapes: list[str]) -> None:
    parts = [
        f"Number {n}:\n\n{SHAPES[shape](data)}\n" for n, (data, shape) in enumerate(zip(messages, shapes, strict=False))
    ]
    assert bodies(read("\n".join(parts).encode())) == messages


# ---- lines that a mailer wrapped -------------------------------------------------------------------------------------

LISTING = (PAGES[0].parents[1] / "captures" / "formats" / "stock.bcg").read_text("ascii")


def _wrapped(text: str, width: int, prefix: str) -> str:
    """As mailers wrap: at the last blank that fits, which goes with those around it; else in the middle of a word."""
    lines = []
    for line in text.splitlines():
        rest = line
        while len(rest) > width:
            at = rest.rfind(" ", 1, width + 1)
            at = width if at < 0 or not rest[:at].strip() else at
            lines.append(rest[:at].rstrip())
            rest = rest[at:].lstrip()
        lines.append(rest)
    return "".join(f"{prefix}{line}\n" for line in lines)


@pytest.mark.parametrize("prefix", ["", "> > ", "| "])
@pytest.mark.parametrize("width", [76, 72, 70, 68, 66, 64, 60, 50, 40])
def test_a_listing_that_a_mailer_wrapped_is_whole(width: int, prefix: str) -> None:
    (expected,) = bodies(read(LISTING.encode(), "amqsbcg"))
    page = f"Hello,\n\n{_wrapped(LISTING, width, prefix)}\nBest regards\n"
    (record,) = read(page.encode())
    assert record.problem is None
    assert bodies([record]) == [expected]
    assert record.message is not None
    assert record.message.queue == "SYSTEM.BROKER.DEFAULT.STREAM"


@pytest.mark.parametrize("prefix", ["", "> > "])
@pytest.mark.parametrize("width", [76, 72, 68, 66, 62, 60, 58])
@pytest.mark.parametrize("shape", ["xxd", "hexdump", "amqsbcg"])
@pytest.mark.parametrize("data", [b"hello\1\2\3\4\5\6", bytes(20), b"."])
def test_a_dump_that_a_mailer_wrapped_is_whole(shape: str, width: int, prefix: str, data: bytes) -> None:
    folder = Folder.of("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
    message = encode(Message(Mqmd(), (Rfh2((folder,), format="MQSTR"),), data))
    (record,) = read(f"Hello,\n\n{_wrapped(SHAPES[shape](message), width, prefix)}\nBest regards\n".encode())
    assert (record.problem, bodies([record])) == (None, [message])


def test_what_its_author_left_out_of_a_wrapped_listing_is_missed() -> None:
    lines = _wrapped(LISTING, 60, "> ").splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("> 00000030:"))
    (record,) = read("\n".join([*lines[:at], "> [...]", *lines[at + 4 :]]).encode())
    assert str(record.problem).endswith("the listing is incomplete here: lines are wrapped or cut")


# ---- what is on no page, and damage ---------------------------------------------------------------------------------

NOTHING = [
    ("prose", "Dear all,\n\nthe broker is down. We added a decade of beef: 0000 1111.\n"),
    ("code", "for (int i = 0; i < 82; i++) { x[i] = 70, 72, 32; }\n"),
    ("hex of something else", "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"),
    ("base64 of something else", "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4\n"),
    ("a table of numbers", "82 70\n72 33\n1 2 3 4\n"),
    ("empty", " \n\n"),
]


@pytest.mark.parametrize("text", [text for _, text in NOTHING], ids=[name for name, _ in NOTHING])
def test_text_without_a_message_is_not_taken_for_a_page(text: str) -> None:
    assert detect(text.encode()) == "raw"
    (record,) = read(text.encode())
    assert str(record.problem) == "page, line 1: no message was found in this text"


def test_a_long_text_is_searched_up_to_a_limit() -> None:
    page = b"52464820 02000000\n\n" + b"x" * 2000 + b"\n" + b"52464820 02000000\n"
    with mock.patch.object(pasted, "MAX_PAGE_BYTES", 1000):
        first, last = read(page)
    assert first.message is not None
    assert "only the first 1000 bytes were searched" in str(last.problem)


DAMAGE = [b"...", b"\n", b"\n\n", b"> ", b"'", b'"', b"00000010: "]
PIECES = [
    *("RFH ", "5246 4820 ", "0000", ": ", "\n", "'", '"', "b", "\\x", "82, ", "UkZI", "> ", "...", "*\n"),
    *("****Message descriptor****", "StrucId : 'MD", "00000000:  "),
]


@given(path=st.sampled_from(PAGES), data=st.data())
def test_a_damaged_page_gives_records_that_can_be_shown(path: Path, data: st.DataObject) -> None:
    page = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(page)))
        cut = data.draw(st.integers(0, 60))
        page[at : at + cut] = data.draw(st.one_of(st.binary(max_size=12), st.sampled_from(DAMAGE)))
    for form in ("auto", "pasted"):
        for record in read(bytes(page), form):
            shown = record.message or record.partial
            assert (record.message is None) == (record.problem is not None)
            if shown is not None:
                found = explained(shown)
                how = MessageView(lambda _role, text: text)
                assert list(view(found.partial, "page", found.command, found.problems, how))


@given(st.text(max_size=300))
@example("b'RFH ")
@example("82, 70, 72, 32,")
@example("UkZIIA==")
@example("00000000: 5246 4820\n*\n")
def test_any_text_gives_records(text: str) -> None:
    assert all(isinstance(record, CaptureRecord) for record in read(text.encode("utf-8", "surrogatepass")))


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_pieces_of_shapes_in_any_order_give_records(text: str) -> None:
    assert all(isinstance(record, CaptureRecord) for record in read(text.encode()))
