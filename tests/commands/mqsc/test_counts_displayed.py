"""DISPLAY SBSTATUS, TPSTATUS and QSTATUS show what the processor counted, and ``qpubsub status`` shows it too."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.cli import main
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console
from tests.commands.qmgr.test_processor import CONTROL, STREAM, _publish, _put, _register

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOBODY = "0" * 48


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """S gets two publications on a and one on b, RED keeps two of three away, FULL takes one of two."""
    with QueueManagerStore.create(tmp_path, QueueManager("QM1"), clock=lambda: WHEN) as store:
        with store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("FULL", max_depth=1))
            _register(unit, "S", "#")
            red = "<SubName>red</SubName><Topic>#</Topic><Filter>Root.MQMD.Priority = 3</Filter>"
            _put(unit, CONTROL, f"<Command>RegSub</Command>{red}<QName>RED</QName>")
            _register(unit, "FULL", "a")
            _register(unit, "IDLE", "c")
        Processor(store, lambda: WHEN).drain()
        with store.unit_of_work() as unit:
            for topic, priority in (("a", 0), ("b", 3), ("a", 0)):
                _publish(unit, topic, priority=priority)
        Processor(store, lambda: WHEN).drain()
    return tmp_path


def _run(home: Path, *arguments: str) -> str:
    out = io.BytesIO()
    with pytest.raises(SystemExit):
        main.main([*arguments, "-m", "QM1", "--home", str(home)], obj=Console(out, io.StringIO()))
    return out.getvalue().decode()


def _display(home: Path, command: str) -> list[dict[str, Any]]:
    script = home / "script.mqsc"
    script.write_text(command + "\n")
    out = io.BytesIO()
    with pytest.raises(SystemExit):
        main.main(["mqsc", "-m", "QM1", "--home", str(home), "--json", str(script)], obj=Console(out, io.StringIO()))
    answer = json.loads(out.getvalue())
    objects: list[dict[str, Any]] = answer["objects"]
    assert answer["ok"] is bool(objects)
    return objects


MOMENT = {"LMSGDATE": "2026-01-02", "LMSGTIME": "03.04.05"}


@pytest.mark.rule("ST-1")
def test_sbstatus_counts_each_subscription(home: Path) -> None:
    rows = _display(home, "DISPLAY SBSTATUS(*) NUMMSGS LMSGDATE LMSGTIME TOPICSTR")
    by_topic = sorted((row["TOPICSTR"], row["NUMMSGS"], row["LMSGDATE"], row["LMSGTIME"]) for row in rows)
    last = tuple(MOMENT.values())
    assert by_topic == [("#", 1, *last), ("#", 3, *last), ("a", 1, *last), ("c", 0, "", "")]
    [named] = _display(home, "DISPLAY SBSTATUS(red)".replace("red", "'red'"))
    assert {key: named[key] for key in (*MOMENT, "NUMMSGS")} == MOMENT | {"NUMMSGS": 1}
    assert len(_display(home, "DISPLAY SBSTATUS(*) WHERE(NUMMSGS EQ 0)")) == 1


@pytest.mark.rule("ST-2")
def test_tpstatus_counts_publications_and_subscriptions(home: Path) -> None:
    assert _display(home, "DISPLAY TPSTATUS('a') TYPE(PUB)") == [
        {"TOPICSTR": "a", "LPUBDATE": "2026-01-02", "LPUBTIME": "03.04.05", "ACTCONN": NOBODY, "NUMPUBS": 2}
    ]
    assert [(row["TOPICSTR"], row["NUMPUBS"]) for row in _display(home, "DISPLAY TPSTATUS('#') TYPE(PUB)")] == [
        ("a", 2),
        ("b", 1),
    ]
    assert _display(home, "DISPLAY TPSTATUS('c') TYPE(PUB)") == []
    rows = _display(home, "DISPLAY TPSTATUS('+') TYPE(TOPIC) PUBCOUNT SUBCOUNT")
    assert rows[-3:] == [
        {"TOPICSTR": "a", "PUBCOUNT": 1, "SUBCOUNT": 1},
        {"TOPICSTR": "b", "PUBCOUNT": 1, "SUBCOUNT": 0},
        {"TOPICSTR": "c", "PUBCOUNT": 0, "SUBCOUNT": 1},
    ]
    [row] = _display(home, "DISPLAY TPSTATUS('a') TYPE(SUB) NUMMSGS LMSGDATE LMSGTIME")
    assert row == row | MOMENT | {"NUMMSGS": 1}


@pytest.mark.rule("ST-4")
def test_qstatus_of_a_queue(home: Path) -> None:
    [row] = _display(home, "DISPLAY QSTATUS(S)")
    age = row.pop("MSGAGE")
    assert age == pytest.approx((datetime.now(UTC) - WHEN).total_seconds(), abs=60)
    assert row == {
        "QUEUE": "S",
        "TYPE": "QUEUE",
        "CURDEPTH": 3,
        "IPPROCS": 0,
        "OPPROCS": 0,
        "UNCOM": "NO",
        "MONQ": "HIGH",
        "LPUTDATE": "2026-01-02",
        "LPUTTIME": "03.04.05",
        "LGETDATE": "",
        "LGETTIME": "",
    }
    [stream] = _display(home, f"DISPLAY QSTATUS({STREAM}) TYPE(QUEUE) CURDEPTH LGETDATE MSGAGE QTIME")
    assert stream == {
        "QUEUE": STREAM,
        "TYPE": "QUEUE",
        "CURDEPTH": 0,
        "LGETDATE": "2026-01-02",
        "MSGAGE": 0,
        "QTIME": "",
    }
    deep = _display(home, "DISPLAY QSTATUS(*) WHERE(CURDEPTH GT 1)")
    assert [row["QUEUE"] for row in deep] == ["S"]


@pytest.mark.parametrize("command", ["QSTATUS(S) TYPE(HANDLE)", "QSTATUS(NOT.THERE)", "QSTATUS(N*)"])
def test_qstatus_finds_nothing(home: Path, command: str) -> None:
    assert _display(home, f"DISPLAY {command}") == []


def test_status_sums_up_and_lists(home: Path) -> None:
    plain = json.loads(_run(home, "status", "--json"))
    assert plain["activity"] == {
        "published": 3,
        "last_publication": "2026-01-02T03:04:05Z",
        "topics": 2,
        "delivered": 5,
        "last_delivery": "2026-01-02T03:04:05Z",
        "filtered": 2,
        "dead_letters": 1,
        "subscriptions_reached": 3,
    }
    queue = plain["queues"]["S"]
    assert (queue["puts"], queue["last_put"], queue["gets"]) == (3, "2026-01-02T03:04:05Z", 0)
    assert "subscription_list" not in plain
    listed = json.loads(_run(home, "status", "--json", "--list", "subscriptions", "--list", "topics"))
    found = [
        (row["queue"], row["delivered"], row["filtered"], row["dead_letters"]) for row in listed["subscription_list"]
    ]
    assert found == [("RED", 1, 2, 0), ("S", 3, 0, 0), ("FULL", 1, 0, 1), ("IDLE", 0, 0, 0)]
    assert [(row["topic"], row["published"]) for row in listed["topic_list"]] == [("a", 2), ("b", 1)]


def test_status_for_a_person(home: Path) -> None:
    shown = _run(home, "status", "--list", "subscriptions", "--list", "topics")
    assert "Published: 3 on 2 topics, the last at 2026-01-02 03:04:05" in shown
    delivered = "Delivered: 5 to 3 of 4 subscriptions, the last at 2026-01-02 03:04:05"
    assert f"{delivered}; 2 not selected by filters; 1 dead letters" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["1", "2026-01-02", "03:04:05", "2", "0", "RED", "#", "(red)"] in lines
    assert ["0", "never", "0", "0", "IDLE", "c"] in lines
    assert ["2", "2026-01-02", "03:04:05", "a"] in lines
    assert "RED  #" not in _run(home, "status")


def test_counts_stay_over_a_restart_and_go_on(home: Path) -> None:
    later = WHEN + timedelta(days=1)
    with QueueManagerStore.open(home, "QM1", clock=lambda: later) as store:
        processor = Processor(store, lambda: later)
        processor.start()
        with store.unit_of_work() as unit:
            _publish(unit, "a")
        processor.drain()
    [row] = _display(home, "DISPLAY TPSTATUS('a') TYPE(PUB)")
    assert (row["NUMPUBS"], row["LPUBDATE"]) == (3, "2026-01-03")


def test_a_retained_publication_for_a_new_subscription_counts(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1", clock=lambda: WHEN) as store:
        with store.unit_of_work() as unit:
            _put(unit, STREAM, "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>kept</Topic>")
        Processor(store, lambda: WHEN).drain()
    _run_script = "DEFINE SUB(NEW) TOPICSTR('kept') DEST(NEW)\nDISPLAY SBSTATUS(NEW) NUMMSGS\n"
    script = home / "script.mqsc"
    script.write_text(_run_script)
    assert "NUMMSGS(1)" in _run(home, "mqsc", str(script))
