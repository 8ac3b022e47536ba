"""JMS programs in migration mode, end to end: the shipped captures give the golden puts, and those are right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands import Broker, Put
from commands.broker.objects import QueueManager
from commands.cli import main
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2.captured import CapturedMessage
from tests.commands.jms_sessions import (
    FIXTURES,
    OPENING,
    capture,
)
from tests.commands.results_service import as_lines

VERSIONS = ("V1", "V2")
pytestmark = pytest.mark.parametrize("version", VERSIONS)


def files(version: str) -> tuple[Path, Path]:
    """The capture and its golden puts."""
    return FIXTURES / f"{version.lower()}.jsonl", FIXTURES / f"{version.lower()}-puts.jsonl"


def lines(puts: list[Put]) -> str:
    return "".join(put.model_dump_json() + "\n" for put in puts)


# However it is run, the same bytes


def test_the_shipped_capture_is_what_its_program_makes(version: str) -> None:
    assert files(version)[0].read_text() == as_lines(capture(version))


@pytest.mark.parametrize("semantics", ["v7", "v6"])
def test_the_replay_gives_the_golden_puts(tmp_path: Path, version: str, semantics: str) -> None:
    source, golden = files(version)
    target = tmp_path / "puts.jsonl"
    arguments = ["replay", "--semantics", semantics, "--input", str(source), "--output", str(target)]
    result = CliRunner().invoke(main, arguments)
    # The DeregSub that was one too late is answered in error, which is no problem of the data.
    assert result.exit_code == 0, result.output
    assert target.read_bytes() == golden.read_bytes()


def test_the_processor_gives_the_puts_of_the_replay(tmp_path: Path, version: str) -> None:
    """All at one time, for a processor has one clock and a capture a time for each message."""
    messages = [each.model_copy(update={"time": OPENING}) for each in capture(version)]
    broker = Broker("QM1")
    replayed = [put for each in messages for put in broker.handle(each)]
    live: list[Put] = []
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            for message in messages:
                unit.put(message.queue, message.md, message.body, user=message.user)
        Processor(store, lambda: OPENING, live.append).drain()
    assert lines(live) == lines(replayed)


def test_run_refuses_the_clients_tag_where_it_is_told_to(tmp_path: Path, version: str) -> None:
    def run(*arguments: str, stdin: str = "") -> str:
        result = CliRunner().invoke(main, arguments, input=stdin, env={"QPUBSUB_HOME": str(tmp_path)})
        return result.stderr

    run("create", "QM1")
    run("mqsc", "-m", "QM1", stdin="ALTER QMGR CUSTOM('PSCTAGS(STRICT)')\n")
    with QueueManagerStore.open(tmp_path, "QM1") as store, store.unit_of_work() as unit:
        for message in capture(version):
            unit.put(message.queue, message.md, message.body, user=message.user)
    # An MQRFH's own names were always free.
    refused = "10 dead letters" if version == "V2" else "0 dead letters"
    assert refused in run("run", "-m", "QM1", "--once")


def test_nothing_is_left_of_the_subscriptions(version: str) -> None:
    broker = Broker("QM1")
    for each in capture(version):
        broker.handle(each)
    assert broker.space.subscriptions() == ()


def test_decode_finds_nothing_wrong_with_them_nor_with_what_comes_of_them(tmp_path: Path, version: str) -> None:
    golden = [Put.model_validate_json(line) for line in files(version)[1].read_text().splitlines()]
    out = tmp_path / "out.jsonl"
    with out.open("w") as file:
        for seq, put in enumerate(golden, 1):
            fields = {"seq": seq, "time": None, "qmgr": put.qmgr, "queue": put.queue, "user": None}
            file.write(CapturedMessage(**fields, md_hex=put.md_hex, body_hex=put.body_hex).model_dump_json() + "\n")
    for path in (files(version)[0], out):
        result = CliRunner().invoke(main, ["decode", "--json", str(path)])
        assert result.exit_code == 0, result.output
        found = [json.loads(line) for line in result.stdout.splitlines()]
        assert len(found) == len(path.read_text().splitlines())
        assert [problem for one in found for problem in one["problems"]] == []
