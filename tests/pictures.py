"""The pictures of the README, made from the shipped captures.

    python -m tests.pictures        # writes docs/pictures

``console.svg`` and ``differences.svg`` are what a terminal shows, ``tree.svg`` is what ``topics --to svg`` draws.
``console-*.png`` are pages of the console (``tests.console_pictures``), where there is Chromium.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from commands.cli.demo import demo_files
from tests.browser import EXECUTABLE
from tests.commands.cli_runs import run

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
_FILES = ROOT / "fixtures" / "managed-file-transfer"
_LINE: Final = 17
_CHARACTER: Final = 7.83
_COLUMNS: Final = 112
_COLOURS: Final = (
    (re.compile(r"^\$ .*"), "#7ee787"),
    (re.compile(r"^ +-> .*error.*|^ +\d+  .*: error.*"), "#ff7b72"),
    (re.compile(r"^ +-> .*"), "#79c0ff"),
    (re.compile(r"^D\d\d .*"), "#d2a8ff"),
)


def pictures() -> dict[str, str]:
    """Name and content of each picture."""
    return {"console.svg": _console(), "differences.svg": _differences(), "tree.svg": _tree()}


def _console() -> str:
    lines = run("demo").lines
    at = next(n for n, line in enumerate(lines) if line.startswith("$ qpubsub replay"))
    return _terminal([*lines[at : at + 34], "..."])


def _differences() -> str:
    with demo_files() as demo:
        source, setup = str(demo / "captures"), str(demo / "streams.mqsc")
        lines = run("differences", "--input", source, "--setup", setup).lines
    return _terminal(["$ qpubsub differences --input captures/ --setup streams.mqsc", *lines[:34], "..."])


def _tree() -> str:
    with tempfile.TemporaryDirectory() as home:
        here = ("-m", "COORD", "--home", home)
        for command in (
            ("create", "COORD", "--home", home),
            ("mqsc", *here, str(_FILES / "coordination.mqsc")),
            ("put", *here, "SYSTEM.BROKER.CONTROL.QUEUE", str(_FILES / "subscribers.jsonl")),
            ("run", *here, "--once"),
            ("put", *here, "SYSTEM.FTE", str(_FILES / "agents.jsonl")),
            ("run", *here, "--once"),
        ):
            made = run(*command)
            assert made.code == 0, made.talk
        return run("topics", *here, "--to", "svg").out


def _terminal(lines: list[str]) -> str:
    """A terminal with *lines* in it, as SVG."""
    width, height = round(_COLUMNS * _CHARACTER) + 32, len(lines) * _LINE + 32
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
        '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">',
    ]
    for number, line in enumerate(lines):
        colour = next((colour for pattern, colour in _COLOURS if pattern.match(line)), "#e6edf3")
        text = line if len(line) <= _COLUMNS else f"{line[: _COLUMNS - 3]}..."
        # Browsers show several blanks as one, whatever white-space says.
        shown = escape(text).replace(" ", "\u00a0")
        drawn.append(f'<text x="16" y="{number * _LINE + 28}" fill="{colour}">{shown}</text>')
    return "\n".join([*drawn, "</g>", "</svg>", ""])


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name, content in pictures().items():
        (PICTURES / name).write_text(content, encoding="utf-8")
    if EXECUTABLE is not None:
        from tests.console_pictures import write_pictures

        write_pictures(PICTURES)
