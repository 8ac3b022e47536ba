"""The pictures of docs/console.md: the console of a queue manager that has processed the captures of the demo.

python -m tests.console_pictures        # writes docs/pictures/console-*.png; needs Chromium
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

from commands.cli.demo import demo_files
from commands.console.source import SAMPLE_S
from tests.browser import Browser, chromium
from tests.commands.cli_runs import run
from tests.commands.console.served import served

_WIDTH, _HEIGHT = 1180, 760
_ROUNDS: Final = 10
_OPEN: Final = "document.querySelectorAll('#tree details').forEach(node => { node.open = true; })"
SHOWN: Final = {
    "console-overview": "/",
    "console-topics": "/topics",
    "console-message": "/message?queue=SUB.Q&seq={seq}",
    "console-dead-letters": "/dead-letters",
}
"""Name and address of each picture."""


def demo_queue_manager(home: Path) -> None:
    """Make QM1 in *home*: the captures of the demo, each message on its queue, some for a queue that is full."""
    here = ("-m", "QM1", "--home", str(home))
    with demo_files() as demo:
        for command in (
            ("create", "QM1", "--home", str(home)),
            ("mqsc", *here, str(demo / "streams.mqsc")),
            ("put", *here, "--as-captured", str(demo / "capture.jsonl")),
            ("run", *here, "--once"),
        ):
            made = run(*command)
            assert made.code in (0, 1), made.talk
    # The queue of the subscription to all results is full from now on.
    assert run("mqsc", *here, stdin="ALTER QLOCAL(SUB.Q) MAXDEPTH(20)\n").code == 0


def work(home: Path, rounds: int) -> None:
    """Process the captures of the demo again, more each time."""
    here = ("-m", "QM1", "--home", str(home))
    with demo_files() as demo:
        for number in range(rounds):
            for _ in range(1 + number % 4):
                run("put", *here, "--as-captured", str(demo / "capture.jsonl"))
            run("run", *here, "--once")
            time.sleep(SAMPLE_S)


def photographed(browser: Browser, home: Path) -> list[Path]:
    """A screenshot of each page of SHOWN."""
    first = run("browse", "-m", "QM1", "--home", str(home), "SUB.Q", "--limit", "1").lines[0]
    seq = json.loads(first)["seq"]
    pictures = []
    with served(home, write=True) as there:
        work(home, _ROUNDS)
        for name, path in SHOWN.items():
            browser.visit(there + path.format(seq=seq), width=_WIDTH, height=_HEIGHT)
            if name == "console-topics":
                browser.ask(_OPEN)
                browser.ask("new Promise(done => setTimeout(done, 1500))")
            pictures.append(browser.photograph(name))
    return pictures


def write_pictures(directory: Path) -> None:
    """Write the pictures to *directory*."""
    with tempfile.TemporaryDirectory() as scratch, chromium(Path(scratch) / "profile") as browser:
        demo_queue_manager(Path(scratch))
        for picture in photographed(browser, Path(scratch)):
            shutil.copy(picture, directory / picture.name)


if __name__ == "__main__":
    write_pictures(Path(__file__).parents[1] / "docs" / "pictures")
