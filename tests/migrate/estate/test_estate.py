"""The verb ``estate``: from sources to verified queue managers and back, one by one (guide 7.4.1); what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from commands.config.home import Home, PostgresqlHome
from commands.qmgr.store import QueueManagerStore
from migrate.estate import live_acting
from migrate.legacy_state import LegacyState, LegacySubscription, Publisher, Relation, Source, Stream, Unread
from migrate.readers import state_json
from tests.commands.cli_runs import Ran, run
from tests.migrate.estate.generated import EstateSize, write_estate
from tests.migrate.legacy_messages import START
from tests.migrate.verbs import state as state_of
from tests.postgresql import needs_postgresql

SOURCE = Source(file="made")


@dataclass
class Place:
    """An estate with its queue managers. database: where they are, if not in a directory."""

    directory: Path
    database: PostgresqlHome | None = None

    @property
    def home(self) -> Path:
        return self.directory / "qmgrs"

    @property
    def where(self) -> Home:
        return self.database or self.home

    def estate(self, action: str, *more: str) -> Ran:
        return run("estate", action, str(self.directory), "--home", str(self.where), *more)

    def json(self, action: str, *more: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.estate(action, *more, "--json").out)
        return found

    def states(self) -> dict[str, str]:
        return {each["qmgr"]: each["state"] for each in self.json("status")["queue_managers"]}

    def known(self, qmgr: str) -> dict[str, object]:
        return state_of(self.where, qmgr)


def subscription(number: int, stream: str = "Sport", **more: object) -> LegacySubscription:
    given = {"topic": f"a/{number}", "queue": f"APP.{number}.Q", "user": "anne", "created": START} | more
    return LegacySubscription(source=SOURCE, stream=stream, **given)  # type: ignore[arg-type]


def broker(qmgr: str, *items: LegacySubscription, **more: object) -> LegacyState:
    streams = (Stream(source=SOURCE, name="Sport"),)
    return LegacyState(qmgr=qmgr, streams=streams, subscriptions=items, **more)  # type: ignore[arg-type]


def made(directory: Path, *states: LegacyState, tail: str = "", **keys: str) -> Place:
    """An estate of these brokers. keys: further lines of a queue manager, by its name."""
    # The sources are of 2009.
    lines = ["[migration]", "sources_within_hours = 0"]
    for each in states:
        (directory / f"{each.qmgr}.json").write_text(state_json.write([each]))
        lines += ["[[queue_manager]]", f'name = "{each.qmgr}"', f'source = "{each.qmgr}.json"', keys.get(each.qmgr, "")]
    (directory / "estate.toml").write_text("\n".join(lines) + tail)
    return Place(directory)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Two brokers without any loss, in two waves."""
    one, two = broker("QM1", subscription(1), subscription(2)), broker("QM2", subscription(3))
    return made(tmp_path, one, two, QM2='parent = "QM1"\nwave = 2')


def test_the_whole_way_and_back(place: Place) -> None:
    whole_way(place)


@needs_postgresql
def test_the_whole_way_and_back_in_postgresql(place: Place, postgresql_home: PostgresqlHome) -> None:
    whole_way(Place(place.directory, postgresql_home))


def whole_way(place: Place) -> None:
    for name in ("QM1", "QM2"):
        assert run("create", name, "--home", str(place.where)).code == 0
    before = {name: place.known(name) for name in ("QM1", "QM2")}
    assert set(place.states().values()) == {"extracted"}
    for action, state in (("plan", "planned"), ("rehearse", "rehearsed")):
        ran = place.estate(action)
        assert (ran.code, set(place.states().values())) == (0, {state}), ran.talk
        assert {name: place.known(name) for name in before} == before
    for action, state in (("apply", "applied"), ("verify", "verified"), ("undo", "undone")):
        ran = place.estate(action)
        assert (ran.code, set(place.states().values())) == (0, {state}), ran.talk
        assert ({name: place.known(name) for name in before} == before) is (action == "undo")


def test_apply_does_what_strmqbrk_does(place: Place, tmp_path: Path) -> None:
    place.estate("plan")
    assert place.estate("apply", "--create").code == 0
    alone = tmp_path / "alone"
    for name in ("QM1", "QM2"):
        assert run("create", name, "--home", str(alone)).code == 0
        with QueueManagerStore.open(alone, name) as store, store.unit_of_work() as unit:
            from dataclasses import replace

            unit.save_definition(replace(unit.load_state()[0].qmgr, psmode="COMPAT"))
        assert run("strmqbrk", "-m", name, "--home", str(alone), str(tmp_path / f"{name}.json")).code == 0
        found, wanted = place.known(name), state_of(alone, name)
        for each in (found, wanted):
            objects = each["objects"]
            assert isinstance(objects, dict)
            objects.pop("namelist QPUBSUB.MIGRATION.STRMQBRK")
        assert found == wanted


def test_what_is_done_stays_done(place: Place) -> None:
    assert len(place.json("plan")["acted"]) == 2
    again = place.json("plan")
    assert (again["acted"], len(again["already"])) == ([], 2)
    assert place.estate("apply", "--create").code == 0
    again = place.json("apply")
    assert (again["acted"], len(again["already"])) == ([], 2)
    assert place.json("plan")["acted"] == []


def test_sources_that_are_too_old_are_refused(place: Place) -> None:
    """Their last record is of 2009: the default bound is a day."""
    path = place.directory / "estate.toml"
    path.write_text(path.read_text().replace("sources_within_hours = 0\n", ""))
    place.estate("plan")
    ran = place.estate("apply", "--create")
    assert ran.code == 2
    assert "QM1: its sources end at 2009-01-28T11:4" in ran.talk
    assert "and 24 are allowed: take them again, plan, and see estate diff" in ran.talk
    assert place.estate("apply", "--create", "--accept-old").code == 0


@pytest.mark.rule("MIG-31")
def test_a_wave_waits_for_the_one_before(place: Place) -> None:
    place.estate("plan")
    ran = place.estate("apply", "--create", "--wave", "2")
    assert ran.code == 2
    assert "wave 2 does not begin before the waves before it are done: QM1 is not applied" in ran.talk
    assert not place.home.exists()
    assert place.estate("apply", "--create", "--only", "QM2").code == 0
    assert place.states() == {"QM1": "planned", "QM2": "applied"}


def test_a_refused_broker_stops_the_waves_behind_it(tmp_path: Path) -> None:
    unread = Unread(source=SOURCE, text="x", why="cut off")
    place = made(
        tmp_path,
        broker("QM1", subscription(1), unread=(unread,)),
        broker("QM2", subscription(2)),
        broker("QM3", subscription(3)),
        QM3="wave = 2",
    )
    ran = place.estate("plan")
    assert ran.code == 1
    assert "QM1: a run is refused: 1 piece of the sources could not be read" in ran.talk
    found = place.json("apply", "--create")
    assert [each["qmgr"] for each in found["refused"]] == ["QM1"]
    assert [each["qmgr"] for each in found["acted"]] == ["QM2"]
    assert found["not_begun"] == ["QM3"]
    estate = (tmp_path / "estate.toml").read_text()
    (tmp_path / "estate.toml").write_text(estate.replace('"QM1.json"\n', '"QM1.json"\naccept_unread = true\n'))
    assert place.estate("plan").code == 1
    assert place.estate("apply", "--create").code == 1
    assert set(place.states().values()) == {"applied"}


def test_sources_that_changed_since_the_plan_are_refused(place: Place) -> None:
    place.estate("plan")
    path = place.directory / "QM1.json"
    path.write_text(path.read_text().replace("a/2", "a/9"))
    ran = place.estate("apply", "--create")
    assert ran.code == 2
    assert "QM1: its sources or its part of estate.toml have changed since the plan" in ran.talk
    place.estate("plan")
    ran = place.estate("diff")
    assert ran.code == 1
    assert "QM1: plan 1 to plan 2: 2 differences" in ran.out
    assert "new: subscription to a/9 on Sport for APP.2.Q (migrated)" in ran.out
    assert "gone: subscription to a/2 on Sport for APP.2.Q (migrated)" in ran.out
    assert place.estate("apply", "--create").code == 0


@pytest.mark.rule("MIG-31")
def test_a_queue_manager_that_changed_since_the_plan_is_refused(place: Place) -> None:
    """What was approved is done, or nothing: the stream's topic object is another one now."""
    assert run("create", "QM1", "--home", str(place.home)).code == 0
    place.estate("plan")
    script = place.directory / "other.mqsc"
    script.write_text("DEFINE TOPIC('Sport') TOPICSTR('elsewhere')\n")
    assert run("mqsc", "-m", "QM1", "--home", str(place.home), str(script)).code == 0
    before = place.known("QM1")
    for action in ("rehearse", "apply"):
        ran = place.estate(action, "--only", "QM1")
        assert ran.code == (1 if action == "rehearse" else 2)
        assert "plan 1 of" in ran.talk
        assert "does not hold any more" in ran.talk
    assert place.known("QM1") == before


def test_verify_names_every_difference(place: Place) -> None:
    place.estate("plan")
    place.estate("apply", "--create")
    script = place.directory / "other.mqsc"
    script.write_text("ALTER TOPIC('Sport') PUB(DISABLED)\nDELETE SUB('x')\nALTER QMGR PSMODE(COMPAT)\n")
    run("mqsc", "-m", "QM1", "--home", str(place.home), str(script))
    ran = place.estate("verify")
    assert ran.code == 1
    assert "QM1: queue manager QM1: PSMODE is (COMPAT), planned (ENABLED). ALTER QMGR PSMODE(ENABLED)" in ran.talk
    assert "QM1: topic object Sport: PUB is (DISABLED), planned (ASPARENT)" in ran.talk
    assert place.states() == {"QM1": "applied", "QM2": "verified"}


def test_a_kill_between_the_transaction_and_the_record_is_found_out(place: Place) -> None:
    """The queue manager's own record is the truth, in both directions."""
    place.estate("plan")
    record = place.directory / "migration" / "QM1" / "record.json"
    planned = record.read_bytes()
    place.estate("apply", "--create")
    applied = record.read_bytes()
    record.write_bytes(planned)
    assert place.states()["QM1"] == "applied"
    assert [each["qmgr"] for each in place.json("apply")["already"]] == ["QM1", "QM2"]
    place.estate("undo", "--only", "QM1")
    record.write_bytes(applied)
    assert place.states()["QM1"] == "undone"
    assert "it was undone: run estate plan again" in place.estate("apply", "--only", "QM1").talk


def test_a_worker_that_is_killed_is_told_and_the_next_call_finishes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.estate("plan")
    parent = os.getpid()

    def killed(*_: object) -> None:
        assert os.getpid() != parent
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(live_acting, "_guarded", killed)
    ran = place.estate("apply", "--create")
    assert ran.code == 2
    assert "its process was killed (signal 9)" in ran.out + ran.talk
    monkeypatch.undo()
    assert set(place.states().values()) == {"planned"}
    assert place.estate("apply", "--create").code == 0


def test_what_was_migrated_otherwise_is_left_alone(place: Place) -> None:
    run("create", "QM1", "--home", str(place.home))
    assert run("strmqbrk", "-m", "QM1", "--home", str(place.home), str(place.directory / "QM1.json")).code == 0
    ran = place.estate("plan")
    assert ran.code == 1
    assert "QM1: it was migrated at" in ran.talk
    assert "QM1" not in [each["qmgr"] for each in place.json("undo")["acted"]]


def test_an_estate_is_worked_on_by_one(place: Place) -> None:
    from commands.disk.lock import exclusive

    place.estate("plan")
    with exclusive(place.directory / "migration" / "estate.lock", ""):
        ran = place.estate("apply")
        assert ran.code == 2
        assert "is in use by process" in ran.talk
        assert place.estate("status").code == 0


def test_a_topic_string_makes_plans_anew_where_its_stream_is(tmp_path: Path) -> None:
    other = LegacyState(qmgr="QM2", streams=(Stream(source=SOURCE, name="Business"),))
    place = made(tmp_path, broker("QM1", subscription(1)), other)
    assert len(place.json("plan")["acted"]) == 2
    text = (tmp_path / "estate.toml").read_text()
    (tmp_path / "estate.toml").write_text(text + '\n[migration.prefixes]\nBusiness = "Trade"\n')
    assert [each["qmgr"] for each in place.json("plan")["acted"]] == ["QM2"]


@pytest.mark.rule("MIG-30")
def test_one_set_of_prefixes(tmp_path: Path) -> None:
    default = subscription(1, "SYSTEM.BROKER.DEFAULT.STREAM", topic="Sport/x")
    place = made(tmp_path, broker("QM1", subscription(2)), broker("QM2", default), QM2='parent = "QM1"')
    found = place.json("plan")
    assert place.estate("plan").code == 1
    (finding,) = [each for each in found["findings"] if each["kind"] == "topics"]
    assert (finding["queue_managers"], finding["stream"]) == (["QM2"], "Sport")
    assert found["proposed_prefixes"] == {"Sport": "Sport.stream"}
    proposal = '\n[migration.prefixes]\n"Sport" = "Sport.stream"\n'
    with (tmp_path / "estate.toml").open("a") as file:
        file.write(proposal)
    found = place.json("plan")
    assert found["findings"] == []
    assert found["prefixes"] == {"Sport": ["Sport.stream"]}
    assert place.estate("apply", "--create").code == 0
    assert "Sport.stream/a/2" in str(place.known("QM1")["subscriptions"])


def test_the_sums_agree_everywhere(tmp_path: Path) -> None:
    """Every item is migrated, changed, refused, or left by choice: also one that belongs to another queue manager."""
    others = broker("OTHER", subscription(9), subscription(8))
    own = broker(
        "QM1",
        subscription(1),
        subscription(2, topic="x" * 10_239),
        publishers=(Publisher(source=SOURCE, topic="t"),),
        relations=(Relation(source=SOURCE, role="child", qmgr="QM2"),),
    )
    (tmp_path / "QM1.json").write_text(state_json.write([own, others]))
    (tmp_path / "estate.toml").write_text('[[queue_manager]]\nname = "QM1"\nsource = "QM1.json"\n')
    place = Place(tmp_path)
    found = place.json("plan")
    sums = found["sums"]
    assert sums["left"] == 2
    assert sums["refused"] >= 1
    assert sums["items"] == sum(sums[word] for word in ("migrated", "changed", "refused", "left"))
    assert found["queue_managers"][0]["sums"] == sums
    report = json.loads((tmp_path / "migration" / "QM1" / "plans" / "0001" / "report.json").read_text())
    assert (report["items"], report["counts"]["reported"]) == (sums["items"], sums["refused"] + sums["left"])
    assert report["left_by_choice"] == sums["left"]
    assert sum(each["items"] for each in found["states"].values()) == sums["items"]


def test_a_broker_of_message_broker_in_its_phases(tmp_path: Path) -> None:
    from tests.migrate.cases import Case

    case = Case.of("subscription-points")
    sources = json.dumps([str(case.directory / name) for name in case.facts["sources"]])
    (tmp_path / "estate.toml").write_text(
        "[migration]\nsources_within_hours = 0\n"
        f'[[queue_manager]]\nname = "QM1"\nsource = {sources}\nbroker = "{case.facts["broker"]}"\n'
    )
    place = Place(tmp_path)
    assert place.estate("plan").code in (0, 1)
    assert place.estate("rehearse").code in (0, 1)
    assert place.states() == {"QM1": "rehearsed"}
    ran = place.estate("apply", "--create")
    assert ran.code == 2
    assert "its initial phase comes first" in ran.talk
    before = place.known("QM1")
    assert place.estate("apply", "--initial").code in (0, 1)
    plans = tmp_path / "migration" / "QM1" / "plans"
    assert "Suggested security commands" in (plans / "0002" / "amqmigrateacl.txt").read_text()
    assert place.known("QM1") != before
    assert place.estate("apply").code in (0, 1)
    assert place.estate("verify").code == 0
    assert place.estate("undo").code == 0
    assert place.known("QM1") == before


def test_the_setup_of_a_queue_manager_that_is_made(tmp_path: Path) -> None:
    place = made(tmp_path, broker("QM1", subscription(1)), QM1='setup = "setup.mqsc"')
    (tmp_path / "setup.mqsc").write_text("DEFINE QLOCAL('MINE')\nDEFINE TOPIC('T') TOPICSTR('t')\n")
    assert place.estate("plan").code == 0
    assert place.estate("rehearse").code == 0
    assert not place.home.exists()
    assert place.estate("apply", "--create").code == 0
    assert {"qlocal MINE", "topic T"} <= set(place.known("QM1")["objects"])  # type: ignore[arg-type]
    assert place.estate("verify").code == 0
    (tmp_path / "setup.mqsc").write_text("DEFINE NONSENSE\n")
    ran = place.estate("plan", "--only", "QM1")
    assert ran.code == 0, "it was applied: nothing is planned any more"


def test_files_for_ibm_mq(place: Place) -> None:
    assert place.estate("plan", "--scripts").code == 0
    scripts = place.directory / "migration" / "QM1" / "plans" / "0001" / "scripts"
    assert {"2-objects.mqsc", "checklist.md"} <= {path.name for path in scripts.iterdir()}
    assert "1. `sha256sum -c SHA256SUMS` in the directory of the files" in (scripts / "checklist.md").read_text()
    subprocess.run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=scripts, check=True, stdout=subprocess.DEVNULL)
    sums = (scripts / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in sums} == {path.name for path in scripts.iterdir()} - {"SHA256SUMS"}


def test_only_the_latest_plan_is_whole(place: Place) -> None:
    place.estate("plan")
    place.estate("plan", "--again")
    plans = place.directory / "migration" / "QM1" / "plans"
    assert [path.name for path in (plans / "0001").iterdir()] == ["fates.jsonl.gz"]
    assert (plans / "0002" / "report.html").is_file()
    ran = place.estate("diff")
    assert (ran.code, ran.out.count("0 differences")) == (0, 2)


USAGE = [
    ("option-of-another-action", ("status", "--again"), "No such option '--again'"),
    ("no-such-wave", ("plan", "--wave", "7"), "--wave 7: estate.toml has no such wave; it has 1, 2"),
    ("no-such-broker", ("plan", "--only", "QM3"), "no queue manager QM3; did you mean QM"),
    ("no-such-action", ("plna",), "No such command 'plna'. Did you mean plan?"),
]


@pytest.mark.parametrize(("words", "said"), [c[1:] for c in USAGE], ids=[c[0] for c in USAGE])
def test_usage(place: Place, words: tuple[str, ...], said: str) -> None:
    ran = place.estate(*words)
    assert ran.code == 2
    assert said in ran.talk
    assert not (place.directory / "migration").exists()


def test_a_generated_estate(tmp_path: Path) -> None:
    """State files and captures, several waves, and losses that are named."""
    write_estate(tmp_path, EstateSize(brokers=4, largest=1, most=60, few=20))
    place = Place(tmp_path)
    assert place.estate("plan").code == 1
    assert place.estate("rehearse").code == 1
    assert place.estate("apply", "--create").code == 1
    assert place.estate("verify").code == 0
    assert place.estate("undo").code == 0
