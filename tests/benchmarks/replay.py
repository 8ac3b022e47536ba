"""``replay`` beside a loop by hand; ``analyse`` and ``differences`` beside ``replay``; processor time, by process.

    python -m tests.benchmarks.replay [--messages 20000] [--rounds 3] [--jobs N] [TRAFFIC]...

The loop by hand knows its messages: it reads a JSON line, takes the descriptor and the header apart with ``struct``,
parses the psc folder with lxml, looks the topic up in a dictionary, builds the header again, and writes a JSON line
for each subscriber. It checks nothing, and leaves out most keys of a put. Each run is a process of its own that reads
a file and writes one; the time of the same run with one message is taken off. The verbs beside ``replay`` are whole
runs, start and end included. Traffic:

    JMS          folders mcd, jms and usr, of which jms and usr are different in each message, and 1 KiB of data
    numbered     psc alone, with another SeqNum in each message, and 200 bytes of data
    alike        psc alone, equal for all messages on a topic
    generated    what ``qpubsub generate`` makes, without a floor

``--jobs N`` also times ``replay --jobs N`` on the wall, beside ``replay --jobs 1``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from lxml import etree

from tests.benchmarks import by_hand

ROOT: Final = Path(__file__).parents[2]
CONTROL, STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
TOPICS: Final = 200
TRAFFIC: Final = ("JMS", "numbered", "alike")
GENERATED: Final = "generated"
BESIDE_REPLAY: Final = ("analyse", "differences")

# A process inherits the peak of the one that started it; so a small one stands between.
_MEASURE: Final = """
import resource, subprocess, sys, time
began = time.perf_counter()
ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
spent, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
assert ended.returncode in (0, 1) and "Traceback" not in ended.stderr, ended.stderr
print(spent.ru_utime + spent.ru_stime, wall, spent.ru_maxrss)
"""


class Spent(NamedTuple):
    """Processor time and time on the wall, in seconds, and the most memory that was in use."""

    cpu_s: float
    wall_s: float
    kib: int


def run(*arguments: str) -> Spent:
    """Run one Python process of this checkout."""
    command = [sys.executable, "-c", _MEASURE, sys.executable, *arguments]
    cpu, wall, kib = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.split()
    return Spent(float(cpu), float(wall), int(kib))


def messages_of(traffic: str, count: int, topics: int = TOPICS) -> Iterator[dict[str, object]]:
    """The lines of a capture: a RegSub for each topic, then *count* publications."""
    from rfh2 import Folder, Mqmd, Rfh2

    def line(seq: int, queue: str, md: Mqmd, folders: Sequence[str], data: bytes) -> dict[str, object]:
        body = Rfh2(tuple(map(Folder.of, folders)), format="MQSTR").encode() + data
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_767_225_600 + seq / 100)) + f".{seq % 100:02}0Z"
        return {"seq": seq, "time": moment, "queue": queue, "md_hex": md.encode().hex(), "body_hex": body.hex()}

    for n in range(topics):
        psc = f"<psc><Command>RegSub</Command><Topic>sport/{n}</Topic><QName>SUBSCRIBER</QName></psc>"
        yield line(n + 1, CONTROL, Mqmd(format="MQHRF2", user_identifier="app"), (psc,), b"")
    for n in range(count):
        topic, number = f"sport/{n % topics}", f"<SeqNum>{n}</SeqNum>" if traffic == "numbered" else ""
        folders, data = [f"<psc><Command>Publish</Command><Topic>{topic}</Topic>{number}</psc>"], b"x" * 200
        if traffic == "JMS":
            jms = f"<Dst>topic://{topic}</Dst><Tms>{1_767_225_600_000 + n}</Tms><Cid>order-{n}</Cid><Dlv>2</Dlv>"
            usr = f"<order dt='i8'>{n}</order><price dt='r8'>{n / 8}</price><region>EMEA</region><desk>{n % 7}</desk>"
            folders += ["<mcd><Msd>jms_text</Msd></mcd>", f"<jms>{jms}</jms>", f"<usr>{usr}</usr>"]
            data = b"x" * 1024
        md = Mqmd(format="MQHRF2", priority=0, persistence=1, msg_id=n.to_bytes(24, "big"), user_identifier="app")
        yield line(topics + n + 1, STREAM, md, folders, data)


def replay_by_hand(source: Path, target: Path) -> None:
    """The floor."""
    subscribers: dict[str, list[str]] = {}
    with source.open() as lines, target.open("w") as puts:
        for line in lines:
            row = json.loads(line)
            md, body = bytes.fromhex(row["md_hex"]), bytes.fromhex(row["body_hex"])
            descriptor = by_hand.DESCRIPTOR.unpack(md)
            _, folders, data = by_hand.unpack(body)
            tags = {child.tag: child.text for child in etree.fromstring(folders[0].rstrip())}
            if tags["Command"] == "RegSub":
                subscribers.setdefault(tags["Topic"] or "", []).append(tags["QName"] or "")
                continue
            for n, queue in enumerate(subscribers[tags["Topic"] or ""]):
                text = f"<psc><Command>Publish</Command><Topic>{tags['Topic']}</Topic></psc>".encode()
                text += b" " * (-len(text) % 4)
                own = (row["seq"] * 1024 + n).to_bytes(24, "big")
                put_md = by_hand.DESCRIPTOR.pack(*descriptor[:11], own, *descriptor[12:])
                fixed = by_hand.FIXED.unpack_from(body)
                put_body = by_hand.pack((fixed, [text, *folders[1:]], data))
                put = {"seq": row["seq"], "n": n, "queue": queue, "md_hex": put_md.hex(), "body_hex": put_body.hex()}
                puts.write(json.dumps(put) + "\n")


def _by_hand(source: Path, target: Path) -> Spent:
    return run("-m", "tests.benchmarks.replay", "--by-hand", str(source), str(target))


def _verb(verb: str, source: Path, target: Path, *options: str) -> Spent:
    to = () if verb == "analyse" else ("--output", str(target))
    return run("-m", "commands.cli", verb, "-q", *options, "--input", str(source), *to)


def _beside_floor(traffic: str, place: Path, count: int, rounds: int) -> None:
    capture, one = place / "capture.jsonl", place / "one.jsonl"
    puts, few = place / "puts.jsonl", place / "few.jsonl"
    lines = [json.dumps(line) + "\n" for line in messages_of(traffic, count)]
    capture.write_text("".join(lines))
    one.write_text(lines[0])
    ratios, ours, floors = [], [], []
    for _ in range(rounds):
        floor = _by_hand(capture, puts).cpu_s - _by_hand(one, few).cpu_s
        expected = sum(1 for _ in puts.open())
        mine = _verb("replay", capture, puts, "--jobs", "1").cpu_s - _verb("replay", one, few, "--jobs", "1").cpu_s
        assert sum(1 for _ in puts.open()) == expected == count
        ours.append(mine / len(lines) * 1e6)
        floors.append(floor / len(lines) * 1e6)
        ratios.append(floor / mine)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"| {traffic} | {median(ours):.1f} | {median(floors):.1f} | {median(ratios):.2f} | {spread} |", flush=True)


def _beside_replay(traffic: str, place: Path, count: int, rounds: int) -> None:
    capture, setup = place / f"{traffic}.jsonl", place / f"{traffic}.mqsc"
    if traffic == GENERATED:
        made = ("generate", "-q", "--messages", str(count), "--output", str(capture), "--write-setup", str(setup))
        run("-m", "commands.cli", *made)
    else:
        capture.write_text("".join(json.dumps(line) + "\n" for line in messages_of(traffic, count)))
        setup.touch()
    verbs = ("replay", *BESIDE_REPLAY)
    spent = [
        {verb: _verb(verb, capture, place / "out.jsonl", "--setup", str(setup)) for verb in verbs}
        for _ in range(rounds)
    ]
    print(f"{traffic}:")
    for verb in verbs:
        us = median(each[verb].cpu_s for each in spent) / count * 1e6
        ratio = median(each[verb].cpu_s / each["replay"].cpu_s for each in spent)
        mb = max(each[verb].kib for each in spent) >> 10
        print(f"| {verb} | {us:.1f} | {ratio:.2f} | {mb} |", flush=True)


def _beside_one_job(place: Path, traffic: str, count: int, rounds: int, jobs: int) -> None:
    capture, puts = place / "capture.jsonl", place / "puts.jsonl"
    capture.write_text("".join(json.dumps(line) + "\n" for line in messages_of(traffic, count)))
    spent = [[_verb("replay", capture, puts, "--jobs", str(n)) for n in (1, jobs)] for _ in range(rounds)]
    for at, n in enumerate((1, jobs)):
        wall, cpu = (median(getattr(each[at], name) for each in spent) for name in ("wall_s", "cpu_s"))
        print(f"| {traffic}, --jobs {n} | {wall:.2f} s | {cpu:.2f} s of processor time |", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--by-hand"]:
        replay_by_hand(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traffic", nargs="*", metavar="TRAFFIC", choices=[*TRAFFIC, GENERATED, []])
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        for traffic in asked.traffic or (*TRAFFIC, GENERATED):
            if traffic != GENERATED:
                _beside_floor(traffic, place, asked.messages, asked.rounds)
            _beside_replay(traffic, place, asked.messages, asked.rounds)
            if asked.jobs > 1 and traffic != GENERATED:
                _beside_one_job(place, traffic, asked.messages, asked.rounds, asked.jobs)


if __name__ == "__main__":
    main()
