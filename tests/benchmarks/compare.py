"""Two revisions of this repository side by side.

``python -m tests.benchmarks.compare REV_A REV_B [ROOM]... [--rounds N]``

Each revision is unpacked into a temporary directory, and measured in processes of its own, in turn with the other: A B,
B A, A B ... So what else the machine does hits both. A figure is processor time (of child processes, too) for one
message, the median of the rounds; the ratio is B over A, the median of the rounds' ratios, with the least and the
greatest of them. Below 1.00, B is faster.

    wire         bytes to a typed command, MQMD included: every header new, and all alike
    matching     a topic published on for the first time, among 20,000 subscriptions; and for the second time
    processor    run --once with durability FULL, in batches: every header new, and all alike
    replay       replay --engine local, from JSON Lines to JSON Lines: every header new, and all alike
    decode       decode --json and the full view, in one process, without the start of the program
    start        decode of one message, and --help, each as a process of its own: milliseconds

Only what docs and packages promise is used: ``rfh2.decode``, ``commands.parse``, what ``streams`` exports, and the
command line. So any two revisions can be compared, wherever their modules are. Both run with the Python and packages
of this process.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

HERE = Path(__file__).resolve()
STREAM, CONTROL = "SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.BROKER.CONTROL.QUEUE"
TOPICS = 200
_KINDS = (("new headers", True), ("alike", False))

Figures = dict[str, float]
"""Microseconds of processor time a message, by what was measured."""


def spent_s(work: Callable[[], object]) -> float:
    """Processor time of *work*, in this process and in the child processes that ended meanwhile."""

    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    before = spent()
    work()
    return spent() - before


def _best_us(work: Callable[[], object], count: int, repeats: int) -> float:
    return min(spent_s(work) for _ in range(repeats)) / count * 1e6


def _messages(count: int, new: bool) -> list[tuple[bytes, bytes]]:
    """Descriptors and bodies of publications. new: each with a header that no other has."""
    from rfh2 import Folder, Mqmd, Rfh2

    made = []
    for n in range(count):
        md = Mqmd(format="MQHRF2", priority=0, persistence=1, msg_id=n.to_bytes(24, "big"), user_identifier="app")
        number = f"<SeqNum>{n}</SeqNum>" if new else ""
        psc = f"<psc><Command>Publish</Command><Topic>sport/{n % TOPICS}/score</Topic>{number}</psc>"
        made.append((md.encode(), Rfh2((Folder.of(psc),), format="MQSTR").encode() + b"x" * 200))
    return made


def wire() -> Figures:
    from commands import parse
    from rfh2 import decode

    def read(messages: Sequence[tuple[bytes, bytes]]) -> None:
        for md, body in messages:
            parse(decode(body, md))

    figures = {}
    for name, new in _KINDS:
        messages = _messages(5_000, new)
        figures[name] = _best_us(lambda messages=messages: read(messages), len(messages), 5)
    return figures


def matching() -> Figures:
    from datetime import UTC, datetime

    from streams import Subscription, TopicObjects, TopicSpace, WildcardScheme

    now, random = datetime(2026, 1, 1, tzinfo=UTC), Random(7)
    words = [f"{random.randrange(10**6)}" for _ in range(40)]
    patterns: dict[str, None] = {}
    while len(patterns) < 20_000:
        levels = random.choices(words, k=random.randint(4, 5))
        kind = random.random()
        if kind > 0.9:
            levels = [*levels[: random.randint(1, len(levels) - 1)], "#"]
        elif kind > 0.7:
            levels[random.randrange(len(levels))] = "+"
        patterns["/".join(levels)] = None
    topics = list(dict.fromkeys("/".join(random.choices(words, k=random.randint(4, 5))) for _ in range(20_000)))
    subscriptions = [
        Subscription(n.to_bytes(24, "big"), pattern, "Q", "QM1", now, wildcard=WildcardScheme.TOPIC)
        for n, pattern in enumerate(patterns)
    ]
    first, second = [], []
    for _ in range(3):
        space = TopicSpace(TopicObjects())
        space.restore(subscriptions, ())

        def match(space: TopicSpace = space) -> None:
            for topic in topics:
                space.match(topic, now)

        first.append(_best_us(match, len(topics), 1))
        second.append(_best_us(match, len(topics), 1))
    return {"first time": min(first), "second time": min(second)}


def processor() -> Figures:
    figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        # Whatever is loaded when it is first used is loaded before the clock runs.
        for name, new in (("", False), *_KINDS):
            taken = []
            for attempt in range(2):
                home, capture = Path(scratch) / f"{name}{attempt}", Path(scratch) / "capture.jsonl"
                count = _capture(capture, 4_000 if name else 10, new)
                _qpubsub("create", "QM1", "--home", str(home))
                for queue in (CONTROL, STREAM):
                    chosen = Path(scratch) / "queue.jsonl"
                    lines = capture.read_text().splitlines(keepends=True)
                    chosen.write_text("".join(line for line in lines if f'"{queue}"' in line))
                    _qpubsub("put", "-m", "QM1", "--home", str(home), queue, str(chosen))
                run = ("run", "-m", "QM1", "--home", str(home), "--once", "--durability", "full")
                taken.append(spent_s(lambda run=run: _qpubsub(*run)) / count * 1e6)
            if name:
                figures[name] = min(taken)
    return figures


def replay() -> Figures:
    figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        capture, puts = Path(scratch) / "capture.jsonl", Path(scratch) / "puts.jsonl"
        arguments = ("replay", "--input", str(capture), "--output", str(puts))
        for name, new in (("", False), *_KINDS):
            count = _capture(capture, 6_000 if name else 10, new)
            taken = _best_us(lambda: _qpubsub(*arguments), count, 2)
            assert len(puts.read_text().splitlines()) == count, "a put for each publication, and a response"
            if name:
                figures[name] = taken
    return figures


def decode() -> Figures:
    figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        capture, one, count = Path(scratch) / "capture.jsonl", Path(scratch) / "one.jsonl", 4_000
        _qpubsub("generate", "--messages", str(count), "--output", str(capture))
        with capture.open() as lines:
            one.write_text(next(lines))
        for name, option in (("JSON", ("--json",)), ("view", ())):
            arguments = ("decode", *option, "--jobs", "1")
            started = min(spent_s(lambda a=arguments: _process(*a, str(one))) for _ in range(2))
            taken = min(spent_s(lambda a=arguments: _process(*a, str(capture))) for _ in range(2))
            figures[name] = (taken - started) / count * 1e6
    return figures


def start() -> Figures:
    with tempfile.TemporaryDirectory() as scratch:
        one = Path(scratch) / "one.jsonl"
        _capture(one, 0, True)
        verbs = {"decode, ms": ("decode", str(one)), "--help, ms": ("--help",)}
        return {name: min(spent_s(lambda a=verb: _process(*a)) for _ in range(4)) * 1e3 for name, verb in verbs.items()}


def _process(*arguments: str) -> None:
    """Run one command as a process of its own, its output discarded."""
    command = [sys.executable, "-m", "commands.cli", *arguments]
    ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    assert ended in (0, 1), ended  # 1: some messages of the workload have errors, as they should


def _capture(path: Path, count: int, new: bool) -> int:
    """Write a RegSub, and *count* publications that it gets; how many messages that are in all."""
    from rfh2 import Folder, Mqmd, Rfh2

    psc = "<psc><Command>RegSub</Command><Topic>sport/#</Topic><QName>SUBSCRIBER</QName></psc>"
    md = Mqmd(format="MQHRF2", msg_type=1, reply_to_q="REPLY", persistence=1, user_identifier="app").encode()
    subscribe = (md, Rfh2((Folder.of(psc),), format="MQSTR").encode())
    rows = [(CONTROL, *subscribe), *((STREAM, *message) for message in _messages(count, new))]
    with path.open("w") as file:
        for seq, (queue, descriptor, body) in enumerate(rows, 1):
            row = {
                "seq": seq,
                "time": f"2026-01-01T00:{seq // 60 % 60:02}:{seq % 60:02}Z",
                "queue": queue,
                "md_hex": descriptor.hex(),
                "body_hex": body.hex(),
            }
            file.write(json.dumps(row) + "\n")
    return len(rows)


def _qpubsub(*arguments: str) -> None:
    from commands.cli import main

    talk = io.StringIO()
    try:
        with redirect_stderr(talk):
            main(list(arguments))
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"qpubsub {' '.join(arguments)}: {talk.getvalue()}") from ended


ROOMS: dict[str, Callable[[], Figures]] = {
    "wire": wire,
    "matching": matching,
    "processor": processor,
    "replay": replay,
    "decode": decode,
    "start": start,
}


# The two revisions


def unpacked(revision: str, root: Path) -> None:
    """The files of *revision* below *root*. Raises CalledProcessError where there is no such revision."""
    packed = subprocess.run(["git", "archive", revision], cwd=HERE.parents[2], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(root, filter="data")


def measured(root: Path, room: str) -> Figures:
    """The figures of one room of the revision below *root*, from a process of its own."""
    command = [sys.executable, "-P", str(HERE), "--measure", room, str(root)]
    environment = os.environ | {"PYTHONPATH": str(root)}
    ran = subprocess.run(command, cwd=root, env=environment, check=False, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{room} could not be measured in {root.name}:\n{ran.stderr}")
    figures: Figures = json.loads(ran.stdout.splitlines()[-1])
    return figures


def lines_of(rounds: Sequence[dict[str, Figures]], room: str) -> Iterator[str]:
    """The rows of the table for one room. rounds: figures by ``A`` and ``B``."""
    for name in rounds[0]["A"]:
        a, b = ([each[side][name] for each in rounds] for side in "AB")
        ratios = [after / before for before, after in zip(a, b, strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        yield f"| {room}, {name} | {median(a):,.1f} | {median(b):,.1f} | {median(ratios):.2f} | {spread} |"


def compared(revisions: tuple[str, str], rooms: Sequence[str], rounds: int) -> Iterator[str]:
    """The table, line by line, as it is measured."""
    yield f"| us a message | {revisions[0]} | {revisions[1]} | ratio | least and greatest |"
    yield "|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as scratch:
        roots = {side: Path(scratch) / side for side in "AB"}
        for side, revision in zip("AB", revisions, strict=True):
            unpacked(revision, roots[side])
        for room in rooms:
            taken: list[dict[str, Figures]] = []
            for number in range(rounds):
                turn = "AB" if number % 2 == 0 else "BA"
                taken.append({side: measured(roots[side], room) for side in turn})
            yield from lines_of(taken, room)


def _measure(room: str, root: str) -> None:
    """In the process of one revision: its figures as JSON, on the last line of stdout."""
    import rfh2

    there: Any = rfh2.__file__
    if not Path(there).is_relative_to(Path(root)):
        raise SystemExit(f"{there} is not below {root}")
    print(json.dumps(ROOMS[room]()))


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        _measure(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.compare", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("revisions", nargs=2, metavar="REV", help="two revisions, as git names them")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", default=[], help=", ".join(ROOMS))
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="how often each is measured")
    options = parser.parse_intermixed_args()
    unknown = set(options.rooms) - set(ROOMS)
    if unknown:
        parser.error(f"no such room: {', '.join(sorted(unknown))}")
    for line in compared(tuple(options.revisions), options.rooms or list(ROOMS), options.rounds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
