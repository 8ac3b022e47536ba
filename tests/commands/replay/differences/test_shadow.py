"""``shadow``: beside a queue manager that goes on, each difference is told with its rule, and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from commands.cli.shadow import page
from commands.explain.build import CommandSpec
from commands.replay.differences.report import FINDING, Change, PutDifference
from commands.replay.differences.shadow import Shadow
from rfh2.captured import CapturedMessage
from tests.commands.cli_runs import run
from tests.commands.replay.differences.test_differences import START, _delivered, capture, pub, reg
from tests.html_pages import check_page

TOPICS = tuple(f"a/{number}" for number in range(10))


def traffic(count: int) -> list[CapturedMessage]:
    """A version 6 queue manager at work: ten subscribers, and *count* publications with their copies."""
    known = [reg(topic, q=f"Q{number}") for number, topic in enumerate(TOPICS)]
    published: list[CommandSpec] = [replace(pub(TOPICS[n % 10]), data=str(n)) for n in range(count)]
    return _delivered("v6", capture(*known, *published))


def shadowed(
    messages: list[CapturedMessage], grace_s: float = 5.0, **more: object
) -> tuple[Shadow, list[PutDifference]]:
    shadow = Shadow(grace_s=grace_s, **more)  # type: ignore[arg-type]
    found = [each for message in messages for each in shadow.take(message)]
    return shadow, [*found, *shadow.end()]


def _lost(messages: list[CapturedMessage], at: int) -> None:
    del messages[at]


def _twice(messages: list[CapturedMessage], at: int) -> None:
    messages.insert(at + 1, messages[at].model_copy(update={"seq": messages[at].seq + 1}))


def _altered(messages: list[CapturedMessage], at: int) -> None:
    body = messages[at].body_hex
    assert body is not None
    messages[at] = messages[at].model_copy(update={"body_hex": f"{body[:-2]}ff"})


def _elsewhere(messages: list[CapturedMessage], at: int) -> None:
    other = "Q1" if messages[at].queue == "Q0" else "Q0"
    messages[at] = messages[at].model_copy(update={"queue": other})


FAULTS: list[tuple[Callable[[list[CapturedMessage], int], None], Counter[Change]]] = [
    (_lost, Counter([Change.GAINED])),
    (_twice, Counter([Change.LOST])),
    (_altered, Counter([Change.GAINED, Change.LOST])),
    (_elsewhere, Counter([Change.GAINED, Change.LOST])),
]


@pytest.mark.parametrize("count", [1_500, pytest.param(50_000, marks=pytest.mark.nightly)])
def test_twenty_differences_are_found_and_no_others(count: int) -> None:
    """Of twice as many messages, each publication having one copy."""
    messages = traffic(count)
    copies = [number for number, message in enumerate(messages) if message.queue.startswith("Q")]
    places = sorted(Random(37).sample(copies, 20), reverse=True)
    expected: Counter[Change] = Counter()
    for number, place in enumerate(places):
        fault, changes = FAULTS[number % len(FAULTS)]
        fault(messages, place)
        expected += changes
    shadow, found = shadowed(messages)
    assert Counter(each.change for each in found) == expected
    assert {each.rule for each in found} == {FINDING}
    near = {messages_seq // 100 for messages_seq in (each.seq for each in found)}
    assert len(near) == 20
    report = shadow.report()
    assert (report.messages, report.open, report.unwatched) == (len(messages), 0, {})
    clean, none = shadowed(traffic(count))
    assert (none, clean.report().same, clean.report().differences) == ([], count, 0)


RULES = [
    ("D01", [reg("t"), pub("t"), pub("t", options=("Local",))], ["gained D01"]),
    ("D02", [reg("t", options=("Local",)), pub("t", options=("Local",)), pub("t")], ["gained D02"]),
    ("D11", [reg("t", "u"), pub("t"), pub("t", "u")], ["gained D11", "gained D11", "lost D11"]),
    ("D12", [reg("t"), reg("t", "t/#"), pub("t")], ["gained D12"]),
    ("same", [reg("t"), pub("t"), pub("u")], []),
]


@pytest.mark.parametrize(("commands", "expected"), [case[1:] for case in RULES], ids=[case[0] for case in RULES])
def test_a_difference_has_the_rule_of_the_two_versions(commands: list[CommandSpec], expected: list[str]) -> None:
    _, found = shadowed(_delivered("v6", capture(*commands)))
    assert sorted(f"{each.change} {each.rule}" for each in found) == expected


def test_a_copy_that_comes_late_is_in_time_within_the_grace() -> None:
    commands = capture(reg("t"), pub("t"), pub("t"))
    messages = _delivered("v6", commands)
    late = messages[-1].model_copy(update={"time": START + timedelta(seconds=20), "seq": 10_000})
    assert len(shadowed([*messages[:-1], late], grace_s=30)[1]) == 0
    found = shadowed([*messages[:-1], late], grace_s=10)[1]
    assert [(each.change, each.seq) for each in found] == [(Change.GAINED, 300), (Change.LOST, 10_000)]


def test_a_queue_that_is_not_captured_is_not_compared_unless_it_is_named() -> None:
    commands = capture(reg("t"), pub("t"))
    shadow, found = shadowed(commands)
    assert (found, shadow.report().unwatched) == ([], {"Q1": 1})
    _, found = shadowed(commands, queues=("Q1",))
    assert [(each.change, each.rule, each.queue) for each in found] == [(Change.GAINED, FINDING, "Q1")]


def test_the_verb_tells_differences_and_ends_by_the_gate(tmp_path: Path) -> None:
    messages = _delivered("v6", capture(reg("t"), pub("t"), pub("t", options=("Local",))))
    (tmp_path / "c.jsonl").write_text("".join(f"{each.model_dump_json()}\n" for each in messages))
    file, html = str(tmp_path / "c.jsonl"), tmp_path / "shadow.html"
    ran = run("shadow", file, "--html", str(html))
    assert ran.code == 1
    assert "D01  message 300" in ran.out
    assert "1 difference, 0 of them without a rule" in ran.out
    check_page(html.read_text())
    (tmp_path / "gate").write_text("D01 1\n* 0\n")
    assert run("shadow", file, "--fail-on", str(tmp_path / "gate")).code == 0
    (tmp_path / "gate").write_text("* 0\n")
    assert run("shadow", file, "--fail-on", str(tmp_path / "gate")).code == 1
    assert json.loads(run("shadow", file, "--json").out)["rules"] == {"D01": 1}


def _while_it_waits(monkeypatch: pytest.MonkeyPatch, write: Callable[[float], None]) -> None:
    """*write* instead of waiting; the time that would have been waited is the time that passes."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        write(seconds)

    monkeypatch.setattr("commands.cli.shadow.time", SimpleNamespace(sleep=sleep, monotonic=lambda: now))


def test_a_capture_that_grows_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = _delivered("v6", capture(reg("t"), pub("t"), pub("t")))
    path = tmp_path / "c.jsonl"
    lines = [f"{each.model_dump_json()}\n" for each in messages]
    path.write_text("".join(lines[:2]))

    parts = iter([part for line in lines[2:] for part in (line[:9], line[9:])])

    def write(_seconds: float) -> None:
        with path.open("a") as file:
            file.write(next(parts, ""))

    _while_it_waits(monkeypatch, write)
    ran = run("shadow", "--follow", "--idle", "5", str(path), "--json")
    found = json.loads(ran.out)
    assert (ran.code, found["messages"], found["same"]) == (0, len(messages), 2), ran.talk


def test_a_directory_that_gets_files_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``capture --follow`` writes them: whole, when they have their names."""
    lines = [f"{each.model_dump_json()}\n" for each in _delivered("v6", capture(reg("t"), pub("t"), pub("t")))]
    (tmp_path / ".capture-000003.jsonl.partial").write_text("half\n")
    (tmp_path / "capture-000001.jsonl").write_text("".join(lines[:2]))

    def write(_seconds: float) -> None:
        (tmp_path / "capture-000002.jsonl").write_text("".join(lines[2:]))

    _while_it_waits(monkeypatch, write)
    ran = run("shadow", "--follow", "--idle", "5", str(tmp_path), "--json")
    found = json.loads(ran.out)
    assert (ran.code, found["messages"], found["same"]) == (0, len(lines), 2), ran.talk


def test_the_page_of_a_shadow_without_a_difference() -> None:
    shadow, _ = shadowed(traffic(20))
    text = page(shadow.report(), shadow.judged(), "c.jsonl")
    check_page(text)
    assert "every publication on a subscriber queue was compared" in text
