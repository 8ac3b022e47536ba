"""All benchmarks of one machine, one after another, with what they print in ``build/figures.md``.

    python -m tests.benchmarks.report                  # on an idle machine; an hour
    python -m tests.benchmarks.report wire decode      # these sections only; the page keeps its others

Each section names its command, its load before it began, and its date. A commit with changes on top of it is named so.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import cpuinfo

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "build" / "figures.md"
_PYTEST: Final = "pytest --benchmark-enable --benchmark-disable-gc --benchmark-quiet -q -s tests/benchmarks/test_{}.py"
SECTIONS: Final = {
    "wire": _PYTEST.format("wire"),
    "decode": _PYTEST.format("decode_verb"),
    "matching": _PYTEST.format("matching"),
    "processor": _PYTEST.format("processor"),
    "live": _PYTEST.format("live"),
    "replay": "python -m tests.benchmarks.replay",
    "metrics": "python -m tests.benchmarks.metrics",
    "listener": "python -m tests.benchmarks.listener --messages 4000",
    "brokers": "python -m tests.benchmarks.brokers --messages 8000",
    "migration": _PYTEST.format("migration"),
    "migration-memory": "python -m tests.benchmarks.migration_memory 100000",
    "why": "python -m tests.benchmarks.why --messages 100000 --rounds 3",
    "start": "python -m tests.benchmarks.start",
    "spark": "QPUBSUB_SPARK_MESSAGES=1000000 " + _PYTEST.format("spark"),
}
"""The command of each section, in the order of the page."""

_HEAD: Final = """# Figures

What the benchmarks print, one after another on one machine. `python -m tests.benchmarks.report` writes this page again;
docs/performance.md says what to expect. A load of 0 is that of an idle machine.
"""
_SECTION: Final = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.M | re.S)
# What pytest prints of its own: a dot for each test, and what passed.
_DOTS: Final = re.compile(r"^[.sx]+(\s+\[ *\d+%\])?$")
_SUMMARY: Final = re.compile(r"^(=+ )?\d+ (passed|skipped|failed|deselected)\b")


def machine() -> str:
    """Processor, cores, memory, system and Python of this machine, and the time of an fsync on its disk."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = cpuinfo.get_cpu_info().get("brand_raw", platform.machine())
    return (
        f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, {_fsync_ms():.2f} ms for an fsync"
    )


def _fsync_ms(count: int = 50) -> float:
    path = ROOT / ".fsync"
    with path.open("wb", buffering=0) as file:
        begun = time.perf_counter()
        for _ in range(count):
            file.write(bytes(4096))
            os.fsync(file.fileno())
        took = time.perf_counter() - begun
    path.unlink()
    return took / count * 1000


def commit() -> str:
    """The commit of this checkout, and whether it has changes."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty= with changes"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return found.stdout.strip()


def lines_of(printed: str) -> list[str]:
    """What a benchmark printed, without what pytest says of its own."""
    lines = (line.rstrip() for line in printed.splitlines())
    return [line for line in lines if line and not _DOTS.match(line) and not _SUMMARY.match(line)]


def measured(command: str) -> str:
    """The text of a section: where and when it was measured, its command, what that printed."""
    load, now = os.getloadavg()[0], datetime.now(UTC)
    words = shlex.split(command)
    setting = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    words = [word for word in words if word.split("=", 1)[0] not in setting]
    program = [sys.executable, *(words[1:] if words[0] == "python" else ["-m", *words])]
    begun = time.perf_counter()
    done = subprocess.run(
        program,
        check=False,
        cwd=ROOT,
        env=dict(os.environ) | setting,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    took = time.perf_counter() - begun
    failed = f" It ended with exit code {done.returncode}." if done.returncode else ""
    said = "\n".join(lines_of(done.stdout))
    return (
        f"`{command}`\n\n"
        f"{now:%Y-%m-%d}, commit {commit()}, at a load of {load:.1f}, {took:.0f} s.{failed} {machine()}.\n\n"
        f"```text\n{said}\n```\n"
    )


def page_of(sections: dict[str, str]) -> str:
    """The page with *sections*, in the order of SECTIONS."""
    return "\n".join([_HEAD, *(f"## {name}\n\n{sections[name]}" for name in SECTIONS if name in sections)])


def sections_of(page: str) -> dict[str, str]:
    """The sections that a page has."""
    return {name: text.strip() + "\n" for name, text in _SECTION.findall(page)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", nargs="*", help=f"one of {', '.join(SECTIONS)}; all of them without one")
    asked = parser.parse_args().section or list(SECTIONS)
    if unknown := set(asked) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}: there are {', '.join(SECTIONS)}")
    sections = sections_of(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    for name in asked:
        print(f"{name} ...", file=sys.stderr, flush=True)
        sections[name] = measured(SECTIONS[name])
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page_of(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
