"""The verbs that read and write captured messages, as processes of their own: messages a second, memory at its peak.

The capture is what ``qpubsub generate`` makes: publications for the most part, one in ten with an MQRFH, 200 bytes of
data. The floor is a program by hand (``by_hand``) for messages that are known to be sound: descriptor, header and
folders of each line read, and written as JSON. Shown with
``pytest tests/benchmarks/test_decode_verb.py --benchmark-enable --benchmark-disable-gc -s``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import timeit
from pathlib import Path
from typing import NamedTuple

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.benchmarks import by_hand

ROOT = Path(__file__).parents[2]
COUNT = 40_000
QPUBSUB = [sys.executable, "-m", "commands.cli"]

# A process inherits the peak of the one that started it, which here has read all tests; so a small one stands between.
_MEASURE = """
import resource, subprocess, sys
with open(sys.argv[1], "wb") as target:
    code = subprocess.run(sys.argv[2:], stdout=target, stderr=subprocess.DEVNULL).returncode
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, spent.ru_utime + spent.ru_stime, spent.ru_maxrss)
"""

VERBS = {
    "decode --json": ("decode", "--json", "--jobs", "1", "capture"),
    "decode": ("decode", "--jobs", "1", "capture"),
    "decode --brief": ("decode", "--brief", "--jobs", "1", "capture"),
    "decode --json, 2 jobs": ("decode", "--json", "--jobs", "2", "capture"),
    "decode, 2 jobs": ("decode", "--jobs", "2", "capture"),
    "encode": ("encode", "decoded"),
    "convert to mqmd": ("convert", "--to", "mqmd", "capture"),
    "translate to mqsc": ("translate", "--to", "mqsc", "capture"),
}


class Spent(NamedTuple):
    """Processor time, and the most memory that was in use."""

    seconds: float
    kib: int


def run(arguments: list[str], target: Path) -> Spent:
    """Run one process, its output into *target*."""
    command = [sys.executable, "-c", _MEASURE, str(target), *arguments]
    code, seconds, kib = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.split()
    assert int(code) in (0, 1)  # 1: some messages of the workload have errors, as they should
    return Spent(float(seconds), int(kib))


@pytest.fixture(scope="module")
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if not request.config.getoption("benchmark_enable"):
        pytest.skip("only measured")
    where = tmp_path_factory.mktemp("verbs")
    files = {"capture": where / "capture.jsonl", "decoded": where / "decoded.jsonl", "one": where / "one.jsonl"}
    run([*QPUBSUB, "generate", "--messages", str(COUNT), "--output", str(files["capture"])], where / "none")
    run([*QPUBSUB, "decode", "--json", str(files["capture"])], files["decoded"])
    with files["capture"].open() as lines:
        files["one"].write_text(next(lines))
    return files


@pytest.mark.parametrize("verb", VERBS)
def test_verb(benchmark: BenchmarkFixture, capture: dict[str, Path], verb: str, tmp_path: Path) -> None:
    arguments = [*QPUBSUB, *(str(capture.get(word, word)) for word in VERBS[verb])]
    started = run([*QPUBSUB, "decode", str(capture["one"])], tmp_path / "one")
    runs = [run(arguments, tmp_path / "out") for _ in range(2)]
    runs.append(benchmark.pedantic(run, (arguments, tmp_path / "out")))
    rate = COUNT / (min(spent.seconds for spent in runs) - started.seconds)
    floor = by_hand_rate(capture["decoded"])
    peak = max(spent.kib for spent in runs) >> 10
    print(f"\n{verb:<22}{rate:>9,.0f} /s   floor {floor:>9,.0f} /s   ratio {rate / floor:.2f}", end="")
    print(f"   peak {peak} MB, of one message {started.kib >> 10} MB")
    assert (tmp_path / "out").stat().st_size > COUNT


def by_hand_rate(decoded: Path) -> float:
    """Messages a second that a program by hand reads and writes, as far as they have an MQRFH2 and no faults."""
    forms = [json.loads(line) for line in decoded.read_bytes().splitlines()[:5000]]
    sound = [form for form in forms if not form["problems"] and [h["type"] for h in form["headers"]] == ["MQRFH2"]]
    lines = [json.dumps(form["captured"]) for form in sound]

    def write() -> None:
        for line in lines:
            given = json.loads(line)
            fixed, folders, body = by_hand.unpack(bytes.fromhex(given["body_hex"]))
            md = by_hand.unpack_descriptor(bytes.fromhex(given["md_hex"]))
            shown = [by_hand.fields(folder) for folder in folders]
            json.dumps([*map(_text, md), *map(_text, fixed), shown, body.hex()])

    return len(lines) / min(timeit.repeat(write, timer=time.process_time, number=1, repeat=3))


def _text(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value
