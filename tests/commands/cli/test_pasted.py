"""Pages that people paste: each one in fixtures/pasted, with what ``decode --brief`` makes of it.

``python -m tests.commands.cli.test_pasted`` writes the expected outputs again; read the difference.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from commands.cli import main
from commands.terminal.console import Console, ExitCode
from rfh2.captures import read_captures

FIXTURES = Path(__file__).parents[3] / "fixtures"
PAGES = FIXTURES / "pasted"
DECODED = PAGES / "decoded"
NAMES = sorted(path.name for path in PAGES.iterdir() if path.is_file() and path.name != "README.md")
(STOCK,) = [record.message for record in read_captures(FIXTURES / "captures" / "formats" / "stock.jsonl")]
assert STOCK is not None

# Pages on which the message is not whole, or that hold none; all others hold only whole messages.
INCOMPLETE = {
    "dump-line-missing.txt": "the bytes from 96 to 112 are missing",
    "hex-left-out.txt": "left out the rest",
    "listing-cut.txt": "64 of 132 bytes are there",
    "listing-dead-letter-cut.txt": "192 of 304 bytes are there",
    "listing-elided-descriptor.txt": "lines are wrapped or cut",
    "listing-elided-dump.txt": "lines are wrapped or cut",
    "literal-python-cut.txt": "no closing quote",
    "segment-tsh-cut.txt": "within a segment",
    "text-folder-in-a-ticket.txt": "the text of folders alone",
    "text-folders-quoted.txt": "the text of folders alone",
    "text-mqrfh-string.log": "the string of an MQRFH alone",
    "segment-without-message.txt": "segments of a channel without a message: MQOPEN",
}
WHOLE = [name for name in NAMES if name not in INCOMPLETE]
# Pages of other messages than the stock price; what they hold is in their expected outputs.
OTHERS = {
    "array-java-casts.java",
    "dump-ebcdic-words.txt",
    "listing-dead-letter-quoted.txt",
    "pcf-dump.txt",
    "pcf-python.txt",
    "rfh1-hex.txt",
    "two-headers-c.txt",
}


class Run:
    """What one run wrote."""

    def __init__(self, *args: str | Path, stdin: bytes = b"") -> None:
        class Standard(Console):
            @property
            def stdin(self) -> io.BytesIO:
                return io.BytesIO(stdin)

        out, err = io.BytesIO(), io.StringIO()
        with pytest.raises(SystemExit) as ended:
            main.main(list(map(str, args)), "qpubsub", obj=Standard(out, err))
        self.code, self.out, self.err = ended.value.code, out.getvalue(), err.getvalue()

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def decoded(name: str) -> str:
    """What ``decode --brief`` prints for a page on standard input, and what it says."""
    run = Run("decode", "--brief", stdin=(PAGES / name).read_bytes())
    return f"{run.out.decode()}\n---- stderr\n{run.err}"


def test_there_are_forty_pages_and_each_has_its_expected_output() -> None:
    assert len(NAMES) >= 40
    assert {path.name for path in DECODED.iterdir()} == set(NAMES)


def test_a_page_is_decoded_as_expected() -> None:
    for name in NAMES:
        assert decoded(name) == (DECODED / name).read_text(encoding="utf-8"), name


def test_whole_messages_are_found_byte_for_byte() -> None:
    for name in WHOLE:
        records = list(read_captures(PAGES / name))
        assert records, name
        assert [record.problem for record in records if record.problem] == [], name
        if name not in OTHERS:
            mds = [r.message.md_hex for r in records if r.message and r.message.body_hex == STOCK.body_hex]
            assert mds[:1] in ([None], [STOCK.md_hex]), name


@pytest.mark.parametrize(("name", "why"), INCOMPLETE.items())
def test_what_is_not_whole_is_shown_and_never_given_as_a_message(name: str, why: str) -> None:
    (record,) = read_captures(PAGES / name)
    assert record.message is None
    assert why in str(record.problem)
    run = Run("decode", "--json", PAGES / name)
    assert run.code == ExitCode.PROBLEMS
    (form,) = run.lines
    assert (record.partial is not None) == form.get("incomplete", False)
    back = Run("encode", stdin=run.out)
    assert (back.out, back.code) == (b"", ExitCode.PROBLEMS)


def test_decode_and_encode_are_inverses_for_a_page() -> None:
    for name in WHOLE:
        plain = Run("convert", PAGES / name)
        again = Run("encode", stdin=Run("decode", "--json", PAGES / name).out)
        assert again.lines == plain.lines, name


def test_the_format_that_is_named_is_taken() -> None:
    page = PAGES / "listing-mail-quoted.txt"
    assert Run("decode", "--brief", "--format", "hex", page).code == ExitCode.PROBLEMS
    raw = Run("decode", "--json", "--format", "raw", page).lines
    assert [form["body"]["length"] for form in raw] == [page.stat().st_size]
    assert Run("decode", "--brief", "--format", "pasted", page).code == ExitCode.DONE


if __name__ == "__main__":
    DECODED.mkdir(exist_ok=True)
    for each in NAMES:
        (DECODED / each).write_text(decoded(each), encoding="utf-8")
