"""How long an estate takes to plan, rehearse, apply, verify and undo, and how much memory: the table of docs/estate.md.

    python -m tests.migrate.estate.figures                       300 brokers, 20,000 subscriptions in the largest ten
    python -m tests.migrate.estate.figures --brokers 20 --most 2000 --few 50

Each action is one call of the verb. The memory is that of the largest process; there are as many as ``--jobs`` says,
and the one that waits for them. The sums of each report are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.migrate.estate.generated import EstateSize, write_estate

ACTIONS = (
    ("plan", ()),
    ("plan", ()),
    ("rehearse", ()),
    ("apply", ("--create",)),
    ("verify", ()),
    ("undo", ()),
    ("pack", ("--out", "board")),
)


@dataclass(frozen=True)
class Figure:
    """One action. processor_s: of all its processes. peak_mib: of the largest one."""

    action: str
    seconds: float
    processor_s: float
    peak_mib: float
    said: dict[str, Any]


def measured(directory: Path, action: str, *options: str) -> Figure:
    """Call the verb in a process of its own."""
    home = str(directory / "qmgrs")
    options = tuple(str(directory / "board") if option == "board" else option for option in options)
    code = "import sys; from commands.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "estate", action, str(directory), "--home", home, "--json", *options]
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        talk = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        out.seek(0)
        text = out.read().decode()
    assert process.returncode in (0, 1), talk
    return Figure(action, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, json.loads(text))


def check(figures: list[Figure]) -> None:
    """The sums of all reports agree, and every broker came to where the action leads."""
    (sums,) = {json.dumps(figure.said["sums"], sort_keys=True) for figure in figures}
    known = json.loads(sums)
    assert known["items"] == sum(known[word] for word in ("migrated", "changed", "refused", "left"))
    for figure in figures:
        parts = figure.said["applications"] if figure.action == "pack" else figure.said["states"].values()
        assert sum(part["items"] for part in parts) == known["items"], figure.action
        if figure.action != "pack":
            assert figure.said["refused"] == [], figure.said["refused"][:3]
    verified = next(figure for figure in figures if figure.action == "verify")
    assert all(each["said"] == [] for each in verified.said["acted"])


def table(figures: list[Figure]) -> list[str]:
    """Markdown."""
    lines = ["| | time | processor time | largest process |", "|---|---|---|---|"]
    seen: set[str] = set()
    for figure in figures:
        again = ", when nothing has changed" if figure.action in seen else ""
        seen.add(figure.action)
        times = f"{figure.seconds:.0f} s | {figure.processor_s:.0f} s"
        lines.append(f"| `{figure.action}`{again} | {times} | {figure.peak_mib:.0f} MiB |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for word, number in (("brokers", 300), ("largest", 10), ("most", 20_000), ("few", 50), ("jobs", 2)):
        parser.add_argument(f"--{word}", type=int, default=number)
    given = parser.parse_args()
    size = EstateSize(given.brokers, given.largest, given.most, given.few)
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "estate"
        write_estate(directory, size)
        figures = []
        for action, options in ACTIONS:
            jobs = () if action == "pack" else ("--jobs", str(given.jobs))
            figures.append(measured(directory, action, *options, *jobs))
            print(figures[-1].action, round(figures[-1].seconds), round(figures[-1].processor_s), file=sys.stderr)
        check(figures)
        board = (directory / "board" / "pack.html").stat().st_size
    items = figures[0].said["sums"]["items"]
    print(f"{size.brokers} brokers, {items:,} items, pack.html {board / 1_000:.0f} kB")
    print("\n".join(table(figures)))


if __name__ == "__main__":
    main()
