"""The sessions among the fixtures: each capture gives its golden puts, in each version, and decodes without a problem.

The football results service in MQRFH2, and in MQRFH on a stream of its own; JMS programs in migration mode.
"""

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

FIXTURES = Path(__file__).parents[3] / "fixtures"
OLDER = "results-service-rfh1"
# (capture, semantics, setup, golden puts)
SESSIONS = [
    ("results-service/capture.jsonl", "v7", None, "results-service/puts.jsonl"),
    (f"{OLDER}/capture.jsonl", "v7", f"{OLDER}/setup.mqsc", f"{OLDER}/puts.jsonl"),
    (f"{OLDER}/capture.jsonl", "v6", f"{OLDER}/setup.mqsc", f"{OLDER}/puts-v6.jsonl"),
    *(
        (f"jms/{each}.jsonl", semantics, None, f"jms/{each}-puts.jsonl")
        for each in ("v1", "v2")
        for semantics in ("v7", "v6")
    ),
]
JMS = pytest.mark.parametrize("version", ["v1", "v2"])


def captured(version: str) -> list[CapturedMessage]:
    lines = (FIXTURES / "jms" / f"{version}.jsonl").read_text().splitlines()
    return [CapturedMessage.model_validate_json(line) for line in lines]


@pytest.mark.rule("OLD-18")
@pytest.mark.parametrize(("capture", "semantics", "setup", "golden"), SESSIONS)
def test_a_replay_equals_the_golden_puts_byte_for_byte(
    tmp_path: Path, capture: str, semantics: str, setup: str | None, golden: str
) -> None:
    target = tmp_path / "puts.jsonl"
    arguments = ["replay", "--semantics", semantics, "--input", str(FIXTURES / capture), "--output", str(target)]
    result = CliRunner().invoke(main, arguments + (["--setup", str(FIXTURES / setup)] if setup else []))
    assert result.exit_code == 0, result.output
    assert target.read_bytes() == (FIXTURES / golden).read_bytes()


@JMS
def test_the_processor_gives_the_puts_of_the_replay(tmp_path: Path, version: str) -> None:
    """All at one time, for a processor has one clock and a capture a time for each message."""
    opening = captured(version)[0].time
    assert opening is not None
    messages = [each.model_copy(update={"time": opening}) for each in captured(version)]
    broker = Broker("QM1")
    replayed = [put for each in messages for put in broker.handle(each)]
    live: list[Put] = []
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            for message in messages:
                unit.put(message.queue, message.md, message.body, user=message.user)
        Processor(store, lambda: opening, live.append).drain()
    assert [put.model_dump_json() for put in live] == [put.model_dump_json() for put in replayed]
    assert broker.space.subscriptions() == ()


@JMS
def test_run_refuses_the_clients_tag_where_it_is_told_to(tmp_path: Path, version: str) -> None:
    def run(*arguments: str, stdin: str = "") -> str:
        result = CliRunner().invoke(main, arguments, input=stdin, env={"QPUBSUB_HOME": str(tmp_path)})
        return result.stderr

    run("create", "QM1")
    run("mqsc", "-m", "QM1", stdin="ALTER QMGR CUSTOM('PSCTAGS(STRICT)')\n")
    with QueueManagerStore.open(tmp_path, "QM1") as store, store.unit_of_work() as unit:
        for message in captured(version):
            unit.put(message.queue, message.md, message.body, user=message.user)
    # An MQRFH's own names were always free.
    refused = "10 dead letters" if version == "v2" else "0 dead letters"
    assert refused in run("run", "-m", "QM1", "--once")


@JMS
def test_decode_finds_nothing_wrong_with_them_nor_with_what_comes_of_them(tmp_path: Path, version: str) -> None:
    golden = (FIXTURES / "jms" / f"{version}-puts.jsonl").read_text().splitlines()
    out = tmp_path / "out.jsonl"
    with out.open("w") as file:
        for seq, put in enumerate(map(Put.model_validate_json, golden), 1):
            fields = {"seq": seq, "time": None, "qmgr": put.qmgr, "queue": put.queue, "user": None}
            file.write(CapturedMessage(**fields, md_hex=put.md_hex, body_hex=put.body_hex).model_dump_json() + "\n")
    for path in (FIXTURES / "jms" / f"{version}.jsonl", out):
        result = CliRunner().invoke(main, ["decode", "--json", str(path)])
        assert result.exit_code == 0, result.output
        found = [json.loads(line) for line in result.stdout.splitlines()]
        assert len(found) == len(path.read_text().splitlines())
        assert [problem for one in found for problem in one["problems"]] == []
