"""The football results service, end to end: the shipped capture gives the golden puts, however it is run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands import Broker, PutKind
from commands.broker.objects import QueueManager
from commands.cli import main
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2 import CapturedMessage, Mqmd
from tests.commands.results_service import FIXTURE, KICK_OFF, SCORES, as_lines, capture

CAPTURE = FIXTURE / "capture.jsonl"
GOLDEN = FIXTURE / "puts.jsonl"


def test_the_shipped_capture_is_what_its_program_makes() -> None:
    assert CAPTURE.read_text() == as_lines(capture())


def test_replayed_twice_it_equals_the_golden_puts_byte_for_byte(tmp_path: Path) -> None:
    for name in ("once.jsonl", "twice.jsonl"):
        arguments = ["replay", "--engine", "local", "--input", str(CAPTURE), "--output", str(tmp_path / name)]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).read_bytes() == GOLDEN.read_bytes()


def test_the_embedded_broker_gives_the_same() -> None:
    broker = Broker("QM1")
    lines = [CapturedMessage.model_validate_json(line) for line in CAPTURE.read_text().splitlines()]
    puts = [json.loads(put.model_dump_json()) for message in lines for put in broker.handle(message)]
    assert puts == [json.loads(line) for line in GOLDEN.read_text().splitlines()]


def test_the_processor_puts_the_same_messages_on_the_queues(tmp_path: Path) -> None:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            for message in capture():
                unit.put(message.queue, message.md, message.body, user=message.user)
        Processor(store, lambda: KICK_OFF).drain()
        with store.unit_of_work() as unit:
            got = Counter(
                (queue, m.body, Mqmd.decode(m.md).correl_id, Mqmd.decode(m.md).msg_type)
                for queue in ("RESULTS.SERVICE", "SCOREBOARD", "LATE.BOARD")
                for m in unit.browse(queue)
            )
    golden = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    assert sum(got.values()) == len(golden)
    wanted = Counter()
    for put in golden:
        md = Mqmd.decode(bytes.fromhex(put["md_hex"]))
        wanted[(put["queue"], bytes.fromhex(put["body_hex"]), md.correl_id, md.msg_type)] += 1
    assert got == wanted


# What the guide says must happen, independent of the golden file.


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    return [json.loads(line) for line in GOLDEN.read_text().splitlines()]


def _data(row: dict[str, object]) -> str:
    return bytes.fromhex(str(row["body_hex"])).rsplit(b"</psc>", 1)[1].strip(b" \0").decode()


def test_events_reach_the_results_service_alone(rows: list[dict[str, object]]) -> None:
    events = [row for row in rows if "Event" in str(row["topic"])]
    assert {row["queue"] for row in events} == {"RESULTS.SERVICE"}
    assert Counter(str(row["topic"]).rsplit("/", 1)[1] for row in events) == {
        "MatchStarted": 2,
        "ScoreUpdate": 3,
        "MatchEnded": 2,
    }


def test_pub_on_req_only_gets_scores_only_when_it_asks(rows: list[dict[str, object]]) -> None:
    """6.7.4 PubOnReqOnly, 6.7.5: nothing until the ReqUpdate after the crash (seq 15), then both latest scores."""
    scores = [row for row in rows if row["queue"] == "RESULTS.SERVICE" and str(row["topic"]).startswith(SCORES)]
    assert [(row["seq"], _data(row)) for row in scores] == [(15, "0 1"), (15, "1 0")]


def test_the_first_req_update_finds_nothing(rows: list[dict[str, object]]) -> None:
    assert [(row["completion"], row["reason"]) for row in rows if row["seq"] == 3] == [("error", 3077)]


def test_retained_scores_greet_the_late_board_as_retained(rows: list[dict[str, object]]) -> None:
    """6.7.4 InformIfRet: IsRetainedPub is in what RegSub sends, not in what comes later."""
    late = [row for row in rows if row["queue"] == "LATE.BOARD" and row["kind"] == PutKind.PUBLICATION]
    assert [_data(row) for row in late] == ["0 1", "1 1"]
    assert all(b"<PubOpt>IsRetainedPub</PubOpt>" in bytes.fromhex(str(row["body_hex"])) for row in late)
    board = [row for row in rows if row["queue"] == "SCOREBOARD" and row["kind"] == PutKind.PUBLICATION]
    assert not any(b"IsRetainedPub" in bytes.fromhex(str(row["body_hex"])) for row in board)


def test_publications_bear_the_registered_correl_id(rows: list[dict[str, object]]) -> None:
    for row in rows:
        if row["queue"] == "RESULTS.SERVICE":
            md = Mqmd.decode(bytes.fromhex(str(row["md_hex"])))
            assert md.correl_id.rstrip(b"\0") == b"RESULTS.SERVICE.1"


def test_a_successful_publish_with_nan_alone_is_not_answered(rows: list[dict[str, object]]) -> None:
    published = {m.seq for m in capture() if m.queue == "SYSTEM.BROKER.DEFAULT.STREAM"}
    assert not [row for row in rows if row["seq"] in published and row["kind"] == PutKind.RESPONSE]
