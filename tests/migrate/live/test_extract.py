"""``extract``: the state of a live queue manager, and of a version 6 broker by its metatopics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.broker.objects import ADMIN_STREAM, DEFAULT_STREAM
from migrate.extract import REPLY_QUEUE
from migrate.readers.sources import read_sources
from tests.commands.cli_runs import run
from tests.migrate.live.rigs import WAYS, create, rig, write_legacy
from tests.migrate.live.version6 import Version6


def test_state_apply_extract_is_the_state_again(tmp_path: Path) -> None:
    """What was migrated to a queue manager and extracted from it is what another one has after migrating that."""
    source = write_legacy(tmp_path)
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        create(home)
    assert run("strmqbrk", "-m", "QM1", "--home", str(homes[0]), str(source)).code in (0, 1, 3)
    state = tmp_path / "state.json"
    ran = run("extract", "-m", "QM1", "--home", str(homes[0]), "-o", str(state), "--json")
    assert ran.code == 0, "what no DISPLAY shows is said, and is no exception"
    assert json.loads(ran.out)["items"] == {
        "broker": 1,
        "stream": 1,
        "subscription": 5,
        "retained": 3,
        "attribute": 5,
        "unread": 1,
    }
    assert "InclStreamName" in ran.talk
    again = run("strmqbrk", "-m", "QM1", "--home", str(homes[1]), str(state))
    assert again.code in (0, 1, 3), again.talk
    displays = "DISPLAY SUB(*) ALL\nDISPLAY TPSTATUS('#') ALL\nDISPLAY TOPIC('Sport') ALL\nDISPLAY QMGR ALL\n"
    shown = []
    for home in homes:
        answers = map(
            json.loads, run("mqsc", "-m", "QM1", "--home", str(home), "--json", stdin=displays).out.splitlines()
        )
        shown.append([[_without_identifiers(row) for row in each["objects"]] for each in answers])
    assert shown[0] == shown[1]


def _without_identifiers(row: dict[str, object]) -> dict[str, object]:
    """The row without its SUBID, and without a CorrelId that is made of it."""
    own = ("SUBID", *(["DESTCORL"] if row.get("DESTCORL") == row.get("SUBID") else []))
    return {keyword: value for keyword, value in row.items() if keyword not in own}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_extracts_the_same(way: str, tmp_path: Path) -> None:

    def migrate(home: Path) -> None:
        ran = run("strmqbrk", "-m", "QM1", "--home", str(home), str(write_legacy(tmp_path)))
        assert ran.code in (0, 1, 3), ran.talk

    with rig(way, tmp_path, prepare=migrate) as live:
        live.mqsc("ALTER QMGR PSNPRES(SAFE) PSRTYCNT(7)\n")
        ran = live("extract", "-o", str(tmp_path / "state.json"))
        assert ran.code == (0 if way == "embedded" else 1), "contents of retained publications"
        state = read_sources([str(tmp_path / "state.json")], "QM1")
    assert {(s.stream, s.topic, s.queue, s.name, s.user, s.options) for s in state.subscriptions} == {
        ("Sport", "Soccer/*", "A.Q", None, "anne", ()),
        ("Sport", "Soccer/Results", "B.Q", "evening", "fred", ("Local",)),
        (DEFAULT_STREAM, "Prices/?", "C.Q", None, "desk", ("CorrelAsId",)),
        (DEFAULT_STREAM, "News", "D.Q", "n", "anne", ()),
        (DEFAULT_STREAM, "Weather/*", "E.Q", None, "anne", ()),
    }
    assert {(r.stream, r.topic) for r in state.retained} == {
        ("Sport", "Soccer/Results"),
        (DEFAULT_STREAM, "News"),
        (DEFAULT_STREAM, "Prices/A"),
    }
    assert all((r.body_hex is not None) is (way == "embedded") for r in state.retained)
    assert {(a.name, a.value) for a in state.attributes} >= {
        ("MaxMsgRetryCount", "7"),
        ("DLQNonPersistentResponse", "yes"),
        ("DiscardNonPersistentResponse", "no"),
    }
    assert [b.command_level for b in state.brokers] == [900]


def test_an_output_appears_when_it_is_complete(tmp_path: Path) -> None:
    with rig("stub", tmp_path, processes=False) as live:
        assert live.stub is not None
        target = tmp_path / "state.json"
        target.write_text("before")
        live.stub.dies_after = 3
        ran = live("extract", "-o", str(target))
        assert (ran.code, target.read_text()) == (2, "before")
        assert "was not reached" in ran.talk
        live.stub.dies_after = None
        assert live("extract", "-o", str(target)).code in (0, 1)
        assert json.loads(target.read_text())["qmgr"] == "QM1"


HALVES = ["qmgr", "queue", "topic", "namelist", "authrec", "sub", "tpstatus", "pubsub"]


def test_half_an_answer_is_no_state_and_no_difference(tmp_path: Path) -> None:
    """Whatever it is about: extract writes no file, verify finds nothing missing, apply sends nothing."""
    source, files, target = write_legacy(tmp_path), tmp_path / "files", tmp_path / "state.json"
    run("strmqbrk", "-m", "QM1", "--target", "files", "--out", str(files), str(source))

    def migrate(home: Path) -> None:
        assert run("strmqbrk", "-m", "QM1", "--home", str(home), str(source)).code in (0, 1, 3)

    with rig("stub", tmp_path, processes=False, prepare=migrate) as live:
        assert live.stub is not None
        verbs = {
            "extract": (HALVES, ("-o", str(target), "--objects", str(tmp_path / "objects.mqsc"))),
            "verify": (["qmgr", "queue", "topic", "namelist", "sub", "tpstatus"], (str(files),)),
            "apply": (["qmgr"], (str(files),)),
        }
        for verb, (halves, words) in verbs.items():
            for half in halves:
                live.stub.half = half
                ran = live(verb, *words)
                assert (ran.code, ran.out) == (2, ""), (verb, half)
                assert f"DISPLAY {half.upper()}: AMQ8" in ran.talk
                assert "AMQ8135E: Not authorized" in ran.talk
        assert live.stub.commands == []
        assert not target.exists()
        assert not (tmp_path / "objects.mqsc").exists()


# A version 6 broker


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    create(tmp_path / "qmgrs")
    assert run("mqsc", "-m", "QM1", "--home", "qmgrs", stdin=f"DEFINE QLOCAL({REPLY_QUEUE})\n").code == 0
    return tmp_path / "qmgrs"


def test_a_version_6_broker_is_asked_and_its_answers_are_a_source(home: Path, tmp_path: Path) -> None:
    broker = Version6(home)
    with broker.running():
        ran = run("extract", "-m", "QM1", "--home", str(home), "--metatopics", "-o", "extract.jsonl", "--json")
    assert (ran.code, json.loads(ran.out)["output"]) == (0, "extract.jsonl"), ran.talk
    assert broker.asked == [
        *(f"{ADMIN_STREAM} MQ/QM1/{what}" for what in ("StreamSupport", "Parent", "Children")),
        *(f"{DEFAULT_STREAM} MQ/SA/QM1/{who}/AllIdentities/*" for who in ("Subscribers", "Publishers")),
        f"{DEFAULT_STREAM} *",
        *(f"Sport MQ/SA/QM1/{who}/AllIdentities/*" for who in ("Subscribers", "Publishers")),
        "Sport *",
    ]
    assert not (tmp_path / "extract-QM1.work").exists()
    state = read_sources([str(tmp_path / "extract.jsonl")], "QM1")
    assert [(s.stream, s.topic, s.queue, s.user, s.options) for s in state.subscriptions] == [
        ("Sport", "Soccer/*", "A.Q", "anne", ("Local",))
    ]
    assert [(r.stream, r.topic, r.delivered) for r in state.retained] == [("Sport", "Soccer/Results", True)]
    assert [s.name for s in state.streams if s.name == "Sport"] == ["Sport"]
    assert not [u for u in state.unread if u.is_state]


def test_what_is_refused_is_asked_again_and_nothing_else(home: Path, tmp_path: Path) -> None:
    broker = Version6(home)
    broker.refuses["Publishers"] = 2035
    words = ("extract", "-m", "QM1", "--home", str(home), "--metatopics", "-o", "extract.jsonl")
    with broker.running():
        ran = run(*words)
        assert ran.code == 2
        assert "Publishers of Sport: the broker refuses with reason 2035" in ran.talk
        assert not (tmp_path / "extract.jsonl").exists()
        broker.refuses.clear()
        broker.asked.clear()
        assert run(*words).code == 0
    assert [asked.split("/")[-3] for asked in broker.asked] == ["Publishers", "Publishers"]


def test_what_was_not_answered_is_not_taken_for_nothing(home: Path, tmp_path: Path) -> None:
    """Not registered: of an update that says that the broker has forgotten the question. 2 without a reason: failed."""
    words = ("extract", "-m", "QM1", "--home", str(home), "--metatopics", "-o", "extract.jsonl")
    broker = Version6(home)
    with broker.running():
        for reason, said in ((3073, 3073), (0, 3008)):
            broker.refuses["Subscribers"] = reason
            ran = run(*words)
            assert ran.code == 2
            assert f"Subscribers of Sport: the broker refuses with reason {said}" in ran.talk
    assert not (tmp_path / "extract.jsonl").exists()


def test_a_later_version_publishes_no_metatopics(home: Path) -> None:
    broker = Version6(home)
    broker.refuses["MQ/"] = 3077
    with broker.running():
        ran = run("extract", "-m", "QM1", "--home", str(home), "--metatopics")
    assert ran.code == 2
    assert "Run extract without --metatopics" in ran.talk


def test_a_broker_that_does_not_answer(home: Path) -> None:
    ran = run("extract", "-m", "QM1", "--home", str(home), "--metatopics", "--wait", "0.1")
    assert ran.code == 2
    assert f"no answer on {REPLY_QUEUE}" in ran.talk
