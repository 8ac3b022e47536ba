"""The verb ``estate`` on live queue managers: extracted, planned, applied by checkpoints, verified, undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.cli_runs import run
from tests.migrate.cases import Case
from tests.migrate.estate.live_estate import LiveEstate, Servers, broker, servers

UNREACHABLE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("live") / "qmgrs", "QM1", "QM2", "QM3") as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, reached: Servers) -> LiveEstate:
    """Two live brokers in two waves."""
    return reached.live_estate(tmp_path, broker("QM1"), broker("QM2"), QM2="wave = 2")


def test_the_whole_way_and_back(place: LiveEstate) -> None:
    before = {name: place.known(name) for name in ("QM1", "QM2")}
    for action, state in (("extract", "extracted"), ("plan", "planned"), ("rehearse", "rehearsed")):
        ran = place.estate(action)
        assert (ran.code, set(place.states().values())) == (0, {(state, "")}), ran.talk
    assert {name: place.known(name) for name in before} == before
    assert place.apply_all() == ["retained-01", "registrations"]
    assert set(place.states().values()) == {("applied", "")}
    ran = place.estate("verify")
    assert (ran.code, set(place.states().values())) == (0, {("verified", "")}), ran.talk

    place.mqsc("QM2", "ALTER TOPIC('Sport') PUB(DISABLED)\nDELETE SUB('sub1')\n")
    ran = place.estate("verify")
    assert ran.code == 1
    assert "QM2: topic object Sport: PUB is (DISABLED), planned (ASPARENT)" in ran.talk
    assert "QM2: subscription [4] sub1 to b/1 for APP.1.Q: is not there" in ran.talk
    assert place.states() == {"QM1": ("verified", ""), "QM2": ("applied", "")}
    place.mqsc("QM2", "ALTER TOPIC('Sport') PUB(ASPARENT)\n")

    # No DISPLAY shows whether what is retained is still what was loaded.
    ran = place.estate("undo", "--force")
    assert (ran.code, set(place.states().values())) == (1, {("undone", "")}), ran.talk
    assert ran.talk.count("cannot be seen without a connection for messages") == 2
    assert {name: place.known(name) for name in before} == before
    assert "it was undone: run estate plan again" in place.estate("apply").talk
    assert place.estate("plan").code == 0
    assert set(place.states().values()) == {("planned", "")}


@pytest.mark.rule("MIG-34")
def test_7_4_1_one_checkpoint_a_run_and_wave_after_wave(place: LiveEstate) -> None:
    place.estate("plan")
    ran = place.estate("apply")
    assert ran.code == 0
    assert "next: checkpoint stopped of QM1" in ran.talk
    assert "a wave before has checkpoints left; not begun: QM2" in ran.talk
    assert place.states() == {"QM1": ("applying", "stopped"), "QM2": ("planned", "")}
    ran = place.estate("apply")
    assert ran.code == 2, "nothing was changed"
    assert "QM1: checkpoint stopped: stop the publish/subscribe applications" in ran.talk
    assert "--confirm stopped" in ran.talk
    ran = place.estate("apply", "--through", "objects", "--confirm", "stopped")
    assert (ran.code, place.states()["QM1"]) == (0, ("applying", "authorities"))
    assert "QM1: it is applying, and checkpoint authorities follows" in place.estate("verify", "--only", "QM1").talk
    assert [each["qmgr"] for each in place.json("plan", "--again")["already"]] == ["QM1"]
    ran = place.estate("apply", "--through", "object")
    assert (ran.code, "there is no checkpoint object; there are compat, stopped," in ran.talk) == (2, True)


def test_qpubsub_apply_goes_on_where_the_estate_stopped(place: LiveEstate) -> None:
    place.estate("plan")
    place.estate("apply", "--through", "queues", "--confirm", "stopped")
    scripts = place.directory / "migration" / "QM1" / "plans" / "0001" / "scripts"
    config = ("--admin", place.urls["QM1"], "--config", str(place.directory / "live.toml"))
    assert run("apply", "-m", "QM1", str(scripts), *config).code == 0
    assert place.states()["QM1"] == ("applying", "authorities")


@pytest.mark.rule("MIG-34")
def test_a_broker_that_cannot_be_reached_is_named_and_the_others_go_on(tmp_path: Path, reached: Servers) -> None:
    place = reached.live_estate(tmp_path, broker("QM1"), broker("QM2"), broker("QM3"), QM3="wave = 2")
    path = tmp_path / "estate.toml"
    text = path.read_text()
    path.write_text(text.replace(place.urls["QM1"], UNREACHABLE))
    for action in ("extract", "rehearse", "apply"):
        if action == "rehearse":
            assert place.estate("plan").code == 0, "planning connects to nothing"
        found = place.json(action)
        (refused,) = found["refused"]
        assert refused["qmgr"] == "QM1"
        assert "queue manager QM1 at http://127.0.0.1:9 was not reached: Connection refused" in refused["why"]
        acted = ["QM2"] if action == "apply" else ["QM2", "QM3"]
        assert sorted(each["qmgr"] for each in found["acted"]) == acted
    assert place.states() == {
        "QM1": ("planned", ""),
        "QM2": ("applying", "stopped"),
        "QM3": ("rehearsed", ""),
    }
    path.write_text(text)
    assert place.estate("apply", "--only", "QM1").code == 0, "where it is reached is not part of the plan"


def test_a_journal_is_never_lost(place: LiveEstate) -> None:
    """Also where somebody has removed the record, and plans the broker again."""
    place.estate("plan")
    place.estate("apply", "--through", "queues", "--confirm", "stopped")
    (place.directory / "migration" / "QM1" / "record.json").unlink()
    assert place.estate("plan", "--only", "QM1").code == 0
    first = place.directory / "migration" / "QM1" / "plans" / "0001" / "scripts"
    config = ("--admin", place.urls["QM1"], "--config", str(place.directory / "live.toml"))
    assert run("apply", "-m", "QM1", str(first), *config, "--undo").code == 0


def test_the_runbook_of_the_pack_has_the_command_of_each_wave(place: LiveEstate) -> None:
    place.estate("plan")
    assert place.estate("pack", "--out", str(place.directory / "board")).code == 0
    book = (place.directory / "board" / "runbook.md").read_text()
    for wave in (1, 2):
        assert f"qmgrs --wave {wave} --all --confirm stopped`. Where it names a file" in book
    assert "checklist.md" not in book


def test_8_3_the_runbook_of_a_live_message_broker_has_its_phases(tmp_path: Path) -> None:
    """The review before the outage; topic objects, the reviewed commands and the upgrade, then everything else."""
    case = Case.of("subscription-points")
    sources = json.dumps([str(case.directory / name) for name in case.facts["sources"]])
    (tmp_path / "estate.toml").write_text(
        f'[[queue_manager]]\nname = "QM1"\nsource = {sources}\nbroker = "BRK1"\nadmin = "https://h"\n'
    )
    assert run("estate", "plan", str(tmp_path)).code in (0, 1)
    assert run("estate", "pack", str(tmp_path), "--out", str(tmp_path / "board")).code == 0
    book = (tmp_path / "board" / "runbook.md").read_text()
    steps = [
        "While the brokers run: review `amqmigrateacl.txt` of each plan",
        "--through authorities --confirm stopped`. It makes topic objects",
        "Run those commands of `amqmigrateacl.txt` that were found right",
        "Upgrade each Message Broker",
        "--all --confirm stopped --confirm security --confirm upgraded`.",
        "`qpubsub estate verify",
    ]
    places = [book.index(step) for step in steps]
    assert places == sorted(places)


def test_what_was_extracted_is_what_is_planned_for(place: LiveEstate) -> None:
    """The objects that are there already are not made, and one that differs refuses the rehearsal."""
    place.mqsc("QM1", "DEFINE QLOCAL('APP.1.Q')\nDEFINE TOPIC('Sport') TOPICSTR('Games')\n")
    assert place.estate("extract").code == 0
    assert "DEFINE QLOCAL('APP.1.Q')" in (place.directory / "migration/QM1/extracted/objects.mqsc").read_text()
    assert place.json("extract")["acted"] == [], "what is done stays done"
    place.estate("plan", "--only", "QM1")
    scripts = place.directory / "migration" / "QM1" / "plans" / "0001" / "scripts"
    assert "'APP.1.Q'" not in (scripts / "1-queues.mqsc").read_text()
    assert "TOPIC('Sport')" not in (scripts / "2-objects.mqsc").read_text()
    place.mqsc("QM1", "DEFINE SUB('sub1') TOPICSTR('other') DEST('APP.1.Q')\n")
    ran = place.estate("rehearse", "--only", "QM1")
    assert ran.code == 1
    assert "QM1: checkpoint subscriptions: line" in ran.talk
    assert "TOPICSTR is (other), planned (b/1)" in ran.talk
    assert place.states()["QM1"] == ("planned", "")
    place.mqsc("QM1", "DELETE SUB('sub1')\nDEFINE TOPIC('More') TOPICSTR('More')\n")
    assert [each["qmgr"] for each in place.json("extract", "--again", "--only", "QM1")["acted"]] == ["QM1"]
    assert "QM1: its sources or its part of estate.toml have changed" in place.estate("apply", "--only", "QM1").talk


@pytest.mark.parametrize("target", ["embedded", "live"])
def test_a_source_is_taken_from_another_queue_manager(target: str, tmp_path: Path, reached: Servers) -> None:
    """By DISPLAY, of a queue manager with another name."""
    place = reached.live_estate(tmp_path, broker("QM1"), broker("QM2"))
    script = "DEFINE QLOCAL(A.Q)\nDEFINE SUB('s') TOPICSTR('t') DEST(A.Q)\n"
    place.mqsc("QM2", script)
    lines = [
        "[migration]",
        'config = "live.toml"',
        "sources_within_hours = 0",
        "[[queue_manager]]",
        'name = "QM1"',
        'from_qmgr = "QM2"',
    ]
    lines += [f'admin = "{place.urls["QM1"]}"'] if target == "live" else []
    lines += [f'extract = {{ by = "display", admin = "{place.urls["QM2"]}" }}']
    (tmp_path / "estate.toml").write_text("\n".join(lines))
    assert place.states() == {"QM1": ("missing", "")}
    assert "QM1: nothing was taken from it yet: run estate extract first" in place.estate("plan").talk
    assert place.estate("extract").code == 0, "what no DISPLAY shows is no remark"
    assert place.states() == {"QM1": ("extracted", "")}
    there = {path.name for path in (tmp_path / "migration" / "QM1" / "extracted").iterdir()}
    assert there == {"state.json"} | ({"objects.mqsc"} if target == "live" else set())
    assert place.json("extract")["acted"] == []
    place.estate("plan")
    if target == "embedded":
        assert place.estate("apply", "--create").code == 0
        assert place.states() == {"QM1": ("applied", "")}
        shown = run("mqsc", "-m", "QM1", "--home", str(tmp_path / "qmgrs"), stdin="DISPLAY SUB('s') TOPICSTR\n").out
        assert "TOPICSTR(t)" in shown
    else:
        (wanted,) = (tmp_path / "migration" / "QM1" / "plans").glob("*/scripts/5-subscriptions.mqsc")
        assert "DEFINE SUB('s')" in wanted.read_text()


USAGE = [
    ("option-of-another-action", ("verify", "--all"), "No such option '--all'"),
    ("wait", ("plan", "--wait", "3"), "No such option '--wait'"),
    ("checkpoint", ("apply", "--confirm", "stoped"), "there is no checkpoint stoped"),
]


EXTRACT = [
    ("no-address", '"metatopics"', "", "it needs admin or queues, by which the broker is reached"),
    ("itself", '"display"', 'admin = "https://h"', "the source is another queue manager than QM1 itself"),
    ("no-such-way", '{ by = "magic" }', "", "extract.by: input should be 'metatopics' or 'display'"),
]


@pytest.mark.parametrize(("extract", "more", "said"), [c[1:] for c in EXTRACT], ids=[c[0] for c in EXTRACT])
def test_what_cannot_be_extracted_from(tmp_path: Path, extract: str, more: str, said: str) -> None:
    (tmp_path / "estate.toml").write_text(f'[[queue_manager]]\nname = "QM1"\n{more}\nextract = {extract}\n')
    ran = run("estate", "status", str(tmp_path))
    assert (ran.code, said in ran.talk) == (2, True), ran.talk
    assert "estate.toml, line 4" in ran.talk


@pytest.mark.parametrize(("words", "said"), [c[1:] for c in USAGE], ids=[c[0] for c in USAGE])
def test_usage(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "estate.toml").write_text('[[queue_manager]]\nname = "QM1"\nsource = "x"\nadmin = "https://h"\n')
    ran = run("estate", words[0], str(tmp_path), *words[1:])
    assert (ran.code, said in ran.talk) == (2, True), ran.talk
