"""``qpubsub demo``: what a newcomer sees first, and the files that the examples of the help pages name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from commands.cli.demo import demo_files
from tests.commands.cli_runs import run

FIXTURES = Path(__file__).parents[3] / "fixtures"
SAME = {
    "capture.dat": "captures/ibm/single_rfh2.dat",
    "capture.jsonl": "results-service/capture.jsonl",
    "arriving/results.jsonl": "results-service/capture.jsonl",
    "captures/results-mqrfh.jsonl": "results-service-rfh1/capture.jsonl",
    "captures/stock.pcap": "captures/formats/stock.pcap",
    "browse.txt": "captures/formats/stock.bcg",
    "mail.txt": "pasted/listing-mail-quoted.txt",
    "base64.txt": "pasted/base64-folded-in-a-mail.txt",
    "desk.jsonl": "tutorials/desk.jsonl",
    "coordination.mqsc": "managed-file-transfer/coordination.mqsc",
    "transfers.jsonl": "managed-file-transfer/agents.jsonl",
    "outfile.txt": "legacy/log-example/outfile.txt",
    "qm.ini": "legacy/streams/qm.ini",
    "authorities.sh": "legacy/streams/authorities.sh",
    "state/capture.jsonl": "legacy/streams/capture.jsonl",
    "state/relations.json": "legacy/streams/relations.json",
}


def test_a_message_is_explained_and_the_results_service_replayed() -> None:
    shown = run("demo")
    assert shown.code == 0
    assert "RegSub: PUBOUT on DebugQM subscribes to $topictree/topiccat/topic; options PersAsPub\n" in shown.out
    assert "late: DeregSub [DeregAll]\n" in shown.out
    assert "SCOREBOARD receives Sport/Soccer/State/LatestScore/Liverpool ManUtd: 0 1" in shown.out
    assert (
        "26 messages (2 in error): 16 publications delivered, 12 responses, 0 dead letters written to puts.jsonl"
        in shown.talk
    )


def test_data_and_talk_are_in_order_where_both_go_to_one_file(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with (tmp_path / "shown").open("w") as file:
        command = [sys.executable, "-m", "commands.cli", "demo"]
        subprocess.run(command, stdout=file, stderr=file, env=environment, check=True)
    lines = (tmp_path / "shown").read_text().splitlines()
    assert lines[0] == "$ qpubsub decode capture.dat"
    assert lines.index("1 message, 0 with errors, 0 with warnings") + 2 == lines.index(
        "$ qpubsub replay capture.jsonl --output puts.jsonl --transcript"
    )


def test_the_demo_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run("demo")
    assert list(tmp_path.iterdir()) == []
    assert Path.cwd() == tmp_path


def test_the_files_are_copied_and_the_readme_beside_them_names_each(tmp_path: Path) -> None:
    assert run("demo", "--copy", str(tmp_path / "new")).code == 0
    there = {path.name for path in (tmp_path / "new").iterdir()} - {"README.md"}
    table = re.findall(r"^\|(.*)\|.*\|$", (tmp_path / "new/README.md").read_text(), re.MULTILINE)[2:]
    assert {name.rstrip("/") for cell in table for name in re.findall(r"`(.+?)`", cell)} == there


def test_a_directory_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    refused = run("demo", "--copy", str(tmp_path))
    assert refused.code == 2
    assert "exists and is not empty" in refused.talk
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(("file", "fixture"), SAME.items())
def test_the_captures_are_those_that_the_tests_stand_on(file: str, fixture: str) -> None:
    with demo_files() as directory:
        assert (directory / file).read_bytes() == (FIXTURES / fixture).read_bytes()
