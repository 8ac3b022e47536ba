"""``qpubsub strmqbrk`` and ``qpubsub migmbbrk`` as an administrator runs them (guide 7.1, 8.2)."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import click
import pytest

from commands.broker.objects import QueueManager
from commands.cli import ELSEWHERE, main
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import ExitCode
from migrate import embedded
from rfh2.captures import read_captures
from streams.topic_objects import TopicObject
from tests.migrate.cases import LEGACY
from tests.migrate.legacy_messages import publish, register
from tests.migrate.verbs import Ran, state

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}: ")
STREAMS = LEGACY / "streams"
SOURCES = [str(STREAMS / name) for name in ("capture.jsonl", "qm.ini", "authorities.sh", "relations.json")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with QueueManagerStore.create(tmp_path / "home", QueueManager("QM1", psmode="COMPAT")):
        return tmp_path / "home"


def log_lines(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    assert all(STAMP.match(line) for line in lines)
    return [STAMP.sub("", line, count=1) for line in lines]


@pytest.mark.parametrize("verb", ELSEWHERE)
def test_help_and_examples(verb: str) -> None:
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    assert command.help
    for each in command.commands.values() if isinstance(command, click.Group) else [command]:
        assert "Example" in str(each.epilog)
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.rule("MIG-10", "MB-3")
def test_the_log_is_that_of_the_guides_example(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    ran = Ran("strmqbrk", home, "-p", "HQ", "-l", str(log), "--source", *SOURCES)
    assert ran.code == ExitCode.PROBLEMS
    expected = (STREAMS / "expected" / "log.txt").read_text().splitlines()
    got = [line.replace(f"{STREAMS}/", "") for line in log_lines(log)]
    # The options are those of this call, the end says how long it took; everything else is as in the golden log.
    begin = got.index("Starting to parse streams ...")
    assert got[begin:-1] == expected[expected.index("Starting to parse streams ...") : -1]
    assert re.fullmatch(r"Done in [\d.]+ s, \d+ warnings", got[-1])


@pytest.mark.rule("MIG-13")
def test_7_4_1_psmode_is_enabled_at_the_end(home: Path) -> None:
    Ran("strmqbrk", home, "--source", *SOURCES)
    with QueueManagerStore.open(home, "QM1") as store:
        assert embedded.load(store).objects.qmgr.psmode == "ENABLED"
        assert (store.directory / "psmigr.log").is_file()


@pytest.mark.rule("MIG-1", "MIG-11")
def test_7_1_already_migrated_no_action(home: Path) -> None:
    Ran("strmqbrk", home, "--source", *SOURCES)
    before = state(home)
    ran = Ran("strmqbrk", home, "-f", "--source", *SOURCES)
    assert ran.code == ExitCode.DONE
    assert "already been migrated: no action was taken" in ran.err
    assert state(home) == before


@pytest.mark.rule("MIG-8")
def test_7_1_the_same_parent_is_a_warning(home: Path) -> None:
    ran = Ran("strmqbrk", home, "-p", "HQ", "--source", *SOURCES)
    assert "-p HQ is deprecated" in ran.out
    assert state(home)["objects"]["qmgr QM1"]["parent"] == "HQ"  # type: ignore[index]


@pytest.mark.rule("MIG-1", "MIG-8")
@pytest.mark.parametrize("parent", ["OTHER", "QM1"])
def test_7_1_another_parent_is_an_error_and_nothing_is_done(home: Path, tmp_path: Path, parent: str) -> None:
    before = state(home)
    log = tmp_path / "log"
    ran = Ran("strmqbrk", home, "-p", parent, "-l", str(log), "--source", *SOURCES)
    assert ran.code == ExitCode.USAGE
    assert "its parent is HQ; nothing was migrated" in ran.err
    assert log_lines(log)[-1].startswith("Error: -p")
    assert state(home) == before


@pytest.mark.rule("MIG-9")
def test_7_1_without_f_an_existing_object_is_a_warning_and_is_skipped(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(TopicObject("Sport", "xyz", "mine"))
    ran = Ran("strmqbrk", home, "--source", *SOURCES)
    assert "topic object Sport exists, with TOPICSTR(xyz), PASSTHRU; it was not replaced" in ran.out
    made = state(home)
    assert made["objects"]["topic Sport"]["description"] == "mine"  # type: ignore[index]
    topics = [s["topic_string"] for s in made["subscriptions"] if s["stream"] == "Sport"]  # type: ignore[attr-defined]
    assert topics == ["xyz/Soccer/Results", "xyz/Soccer/*"]


@pytest.mark.rule("MIG-9")
def test_7_1_with_f_it_is_replaced(home: Path) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_definition(TopicObject("Sport", "xyz"))
    Ran("strmqbrk", home, "-f", "--source", *SOURCES)
    made = state(home)["objects"]["topic Sport"]  # type: ignore[index]
    assert (made["topic_string"], made["wildcard"]) == ("Sport", "BLOCK")


def test_6_1_a_stream_may_have_another_topic_string(home: Path) -> None:
    Ran("strmqbrk", home, "--prefix", "Sport=xyz", "--source", *SOURCES)
    made = state(home)
    assert made["objects"]["topic Sport"]["topic_string"] == "xyz"  # type: ignore[index]
    assert "xyz/Soccer/Results" in made["retained"]  # type: ignore[operator]


def test_a_rehearsal_changes_nothing(home: Path, tmp_path: Path) -> None:
    before = state(home)
    files = sorted(path for path in home.rglob("*") if path.is_file())
    log = tmp_path / "log"
    ran = Ran("strmqbrk", home, "--rehearse", "-l", str(log), "--source", *SOURCES)
    assert "rehearsal, nothing was changed" in ran.out
    assert state(home) == before
    assert sorted(path for path in home.rglob("*") if path.is_file()) == files
    assert log_lines(log)[-1].startswith("Rehearsal done")


def test_a_rehearsal_says_what_a_run_does(home: Path, tmp_path: Path) -> None:
    logs = [tmp_path / "first", tmp_path / "second"]
    Ran("strmqbrk", home, "--rehearse", "-l", str(logs[0]), "--source", *SOURCES)
    Ran("strmqbrk", home, "-l", str(logs[1]), "--source", *SOURCES)
    first, second = ([line for line in log_lines(log) if not line.startswith("    -")] for log in logs)
    first = [
        "Applying changes to queue manager Pub/Sub state." if line.startswith("Rehearsal: ") else line for line in first
    ]
    assert first[:-1] == second[:-1]


def test_strmqbrk_undo(home: Path) -> None:
    before = state(home)
    Ran("strmqbrk", home, "--source", *SOURCES)
    assert state(home) != before
    ran = Ran("strmqbrk", home, "--undo")
    assert (ran.code, "changed since" in ran.err) == (ExitCode.DONE, False)
    assert state(home) == before
    ran = Ran("strmqbrk", home, "--undo")
    assert (ran.code, "nothing to undo" in ran.err) == (ExitCode.USAGE, True)


def test_strmqbrk_undo_says_what_others_have_changed_since(home: Path) -> None:
    Ran("strmqbrk", home, "--source", *SOURCES)
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        objects = unit.load_state()[0]
        unit.save_definition(replace(objects.topics.require("Sport"), pub=False))
    for words, done in (("--rehearse", "would be kept"), ("--rehearse --force", "would be taken back"), ("", "kept")):
        ran = Ran("strmqbrk", home, "--undo", *words.split())
        assert ran.code == ExitCode.PROBLEMS
        assert f"changed since the migration, and {done}: topic Sport: pub is (False)" in ran.err


def test_json_is_one_object(home: Path) -> None:
    ran = Ran("strmqbrk", home, "--rehearse", "--json", "--source", *SOURCES)
    found = json.loads(ran.out)
    assert found["items"] == sum(found["counts"].values()) == len(found["fates"])
    assert found["phase"] == "rehearse"


def test_out_has_every_file(home: Path, tmp_path: Path) -> None:
    Ran("strmqbrk", home, "--out", str(tmp_path / "out"), "--source", *SOURCES)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"report.html", "report.json", "report.txt", "checklist.md", "2-objects.mqsc"} <= names


def test_files_alone_need_no_queue_manager(tmp_path: Path) -> None:
    nowhere, out = tmp_path / "nowhere", tmp_path / "out"
    ran = Ran("strmqbrk", nowhere, "--target", "files", "--out", str(out), "--source", *SOURCES)
    assert ran.code == ExitCode.PROBLEMS
    assert not nowhere.exists()
    assert "ALTER NAMELIST('SYSTEM.QPUBSUB.QUEUE.NAMELIST')" in (out / "2-objects.mqsc").read_text()
    assert (out / "psmigr.log").is_file()


def test_files_for_a_queue_manager_that_has_objects(tmp_path: Path) -> None:
    script, out = tmp_path / "there.mqsc", tmp_path / "out"
    script.write_text("DEFINE TOPIC('Sport') TOPICSTR('xyz')\nDEFINE QLOCAL(RESULTS.Q)\n")
    arguments = ("--target", "files", "--existing", str(script), "--out", str(out), "--source", *SOURCES)
    Ran("strmqbrk", tmp_path, *arguments)
    assert "RESULTS.Q" not in (out / "1-queues.mqsc").read_text()
    assert "DEFINE TOPIC('Sport')" not in (out / "2-objects.mqsc").read_text()


def test_existing_takes_a_script_of_dmpmqcfg_whole(tmp_path: Path) -> None:
    """What is not part of publish/subscribe is passed over, and the report says so."""
    out, there = tmp_path / "out", LEGACY / "listings" / "dmpmqcfg.mqsc"
    arguments = ("--target", "files", "--existing", str(there), "--out", str(out), "--source", *SOURCES)
    ran = Ran("strmqbrk", tmp_path, *arguments)
    assert ran.code != ExitCode.USAGE, ran.err
    assert "DEFINE QLOCAL('Sport')" not in (out / "1-queues.mqsc").read_text()
    warnings = [reason["text"] for reason in json.loads((out / "report.json").read_text())["warnings"]]
    for what in ("DEFINE QREMOTE", "DEFINE CHANNEL"):
        assert any(f"--existing: 1 {what} passed over" in text for text in warnings), what


def test_existing_with_a_remote_queue_where_a_stream_needs_its_queue(tmp_path: Path) -> None:
    script, out = tmp_path / "there.mqsc", tmp_path / "out"
    script.write_text("DEFINE QREMOTE('Sport') RNAME(X) RQMNAME(QM2)\n")
    arguments = ("--target", "files", "--existing", str(script), "--out", str(out), "--source", *SOURCES)
    assert "a definition of a remote queue has its name" in Ran("strmqbrk", tmp_path, *arguments).out


def test_existing_with_a_command_that_fails(tmp_path: Path) -> None:
    script, out = tmp_path / "there.mqsc", tmp_path / "out"
    script.write_text("DEFINE QLOCAL(A)\nDEFINE TOPIC(T) TOPICSTR('a') DURSUB(MAYBE)\n")
    arguments = ("--target", "files", "--existing", str(script), "--out", str(out), "--source", *SOURCES)
    ran = Ran("strmqbrk", tmp_path, *arguments)
    assert (ran.code, "--existing, line 2" in ran.err) == (ExitCode.USAGE, True)


def test_existing_is_refused_where_it_would_be_ignored(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "there.mqsc"
    script.write_text("DEFINE QLOCAL(A)\n")
    ran = Ran("strmqbrk", home, "--existing", str(script), "--source", *SOURCES)
    assert (ran.code, "--existing needs --target files" in ran.err) == (ExitCode.USAGE, True)


def test_a_prefix_of_a_stream_that_is_not_there_is_refused(home: Path) -> None:
    before = state(home)
    ran = Ran("strmqbrk", home, "--prefix", "Nope=X", "--source", *SOURCES)
    assert (ran.code, "--prefix Nope=X: the sources have no stream Nope" in ran.err) == (ExitCode.USAGE, True)
    assert state(home) == before


def test_a_directory_is_a_source(home: Path, tmp_path: Path) -> None:
    directory = tmp_path / "sources"
    directory.mkdir()
    for source in SOURCES:
        shutil.copy(source, directory)
    one = json.loads(Ran("strmqbrk", home, "--rehearse", "--json", "--source", str(directory)).out)
    other = json.loads(Ran("strmqbrk", home, "--rehearse", "--json", "--source", *SOURCES).out)
    assert one["fingerprint"] == other["fingerprint"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "FILE is missing"),
        (("--source", "no-such-file"), "no such file or directory"),
        (("--prefix", "Sport", "--source", SOURCES[0]), "STREAM=TOPICSTR"),
        (("--target", "files", "--source", SOURCES[0]), "--target files needs --out"),
    ],
    ids=["no-source", "missing-source", "bad-prefix", "files-without-out"],
)
def test_strmqbrk_usage(home: Path, arguments: tuple[str, ...], says: str) -> None:
    before = state(home)
    ran = Ran("strmqbrk", home, *arguments)
    assert (ran.code, says in ran.err) == (ExitCode.USAGE, True)
    assert "Traceback" not in ran.err
    assert state(home) == before


def test_extract_writes_commands_for_the_control_queue(home: Path) -> None:
    ran = Ran("strmqbrk", home, "--extract", "--stream", "Sport")
    messages = [json.loads(line) for line in ran.out.splitlines()]
    assert {message["queue"] for message in messages} == {"SYSTEM.BROKER.CONTROL.QUEUE"}
    strings = [bytes.fromhex(message["body_hex"])[32:].rstrip(b"\0").decode() for message in messages]
    assert sum("MQPSCommand RegSub" in text for text in strings) == 9
    assert any(f"MQ/SA/{'QM1':48}/Subscribers/AllIdentities/*" in text for text in strings)
    assert sum("MQPSStreamName Sport" in text for text in strings) == 9


OUTFILE = LEGACY / "log-example" / "outfile.txt"


def migmbbrk(home: Path, tmp_path: Path, *arguments: str) -> Ran:
    return Ran("migmbbrk", home, "-b", "BRK1", "--directory", str(tmp_path / "here"), *arguments)


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    listing = tmp_path / "outfile.txt"
    listing.write_text(OUTFILE.read_text().replace("PSMIG_QM", "QM1"))
    return ["--source", str(listing)]


@pytest.mark.rule("MB-2")
def test_8_2_the_three_phases(home: Path, tmp_path: Path, sources: list[str]) -> None:
    untouched = state(home)
    ran = migmbbrk(home, tmp_path, "-r", *sources)
    assert state(home) == untouched
    assert (tmp_path / "here" / "amqmigrateacl.txt").is_file()

    ran = migmbbrk(home, tmp_path, "-t", *sources)
    initial = state(home)
    made = {name for name in initial["objects"] if name.startswith("topic MIGMBBRK")}  # type: ignore[attr-defined]
    assert made == {f"topic MIGMBBRK.TOPIC.0000{n}" for n in (1, 2, 3, 4)}
    assert (initial["subscriptions"], initial["retained"]) == ([], {})

    ran = migmbbrk(home, tmp_path, "-c", "-o", *sources)
    complete = state(home)
    assert len(complete["subscriptions"]) == 8  # type: ignore[arg-type]
    assert "stop broker BRK1 now" in ran.err
    again = {name for name in complete["objects"] if name.startswith("topic MIGMBBRK")}  # type: ignore[attr-defined]
    assert again == made
    assert complete["objects"]["qmgr QM1"]["psmode"] == "COMPAT"  # type: ignore[index]


@pytest.mark.rule("MB-2", "MB-17")
def test_8_the_initial_phase_has_to_come_first(home: Path, tmp_path: Path, sources: list[str]) -> None:
    before = state(home)
    ran = migmbbrk(home, tmp_path, "-c", *sources)
    assert (ran.code, "the initial phase (-t) has to come before" in ran.err) == (ExitCode.USAGE, True)
    assert state(home) == before


@pytest.mark.rule("MB-17")
def test_repeating_the_initial_phase_makes_nothing_twice(home: Path, tmp_path: Path, sources: list[str]) -> None:
    migmbbrk(home, tmp_path, "-t", *sources)
    once = {name for name in state(home)["objects"] if name.startswith("topic ")}  # type: ignore[attr-defined]
    migmbbrk(home, tmp_path, "-t", *sources)
    assert {name for name in state(home)["objects"] if name.startswith("topic ")} == once  # type: ignore[attr-defined]


@pytest.mark.rule("MB-17")
def test_completed_is_completed_unless_z(home: Path, tmp_path: Path, sources: list[str]) -> None:
    migmbbrk(home, tmp_path, "-t", *sources)
    migmbbrk(home, tmp_path, "-c", *sources)
    before = state(home)
    ran = migmbbrk(home, tmp_path, "-c", *sources)
    assert (ran.code, "-z runs it again" in ran.err) == (ExitCode.USAGE, True)
    assert state(home) == before
    ran = migmbbrk(home, tmp_path, "-c", "-z", "-o", *sources)
    assert ran.code == ExitCode.PROBLEMS
    assert len(state(home)["subscriptions"]) == 8  # type: ignore[arg-type]


@pytest.mark.rule("MB-2")
def test_8_2_what_changed_since_the_initial_phase(home: Path, tmp_path: Path, sources: list[str]) -> None:
    migmbbrk(home, tmp_path, "-t", *sources)
    listing = Path(sources[1])
    listing.write_text(listing.read_text().replace("name='RFH2/EU/France/Carnac'", "name='RFH2/EU/France/Rennes'"))
    ran = migmbbrk(home, tmp_path, "-c", "--accept-changed", *sources)
    assert "the broker has changed since the initial phase" in ran.out
    assert "RFH2/EU/France/Rennes" in ran.out
    made = {name for name in state(home)["objects"] if name.startswith("topic MIGMBBRK")}  # type: ignore[attr-defined]
    assert "topic MIGMBBRK.TOPIC.00005" in made
    assert "topic MIGMBBRK.TOPIC.00002" in made, "the completion phase deletes no topic object"


@pytest.mark.rule("MB-1")
def test_a_security_file_that_was_edited_is_kept(home: Path, tmp_path: Path, sources: list[str]) -> None:
    migmbbrk(home, tmp_path, "-t", *sources)
    security = tmp_path / "here" / "amqmigrateacl.txt"
    security.write_text("# reviewed\n")
    migmbbrk(home, tmp_path, "-c", *sources)
    assert (tmp_path / "here" / "amqmigrateacl.txt.1").read_text() == "# reviewed\n"
    assert "setmqaut" in security.read_text()
    assert (tmp_path / "here" / "amqmigmbbrk.log.1").is_file()


def test_an_interrupted_run_goes_on_with_what_it_had_read(
    home: Path, tmp_path: Path, sources: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    migmbbrk(home, tmp_path, "-t", *sources)

    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(embedded, "apply", fails)
        assert migmbbrk(home, tmp_path, "-c", *sources).code == ExitCode.INTERRUPTED
    Path(sources[1]).unlink()
    ran = migmbbrk(home, tmp_path, "-c")
    assert "continuing with the state that the interrupted run had read" in ran.err
    assert len(state(home)["subscriptions"]) == 8  # type: ignore[arg-type]


def test_s_forgets_what_was_read(
    home: Path, tmp_path: Path, sources: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(embedded, "apply", fails)
        migmbbrk(home, tmp_path, "-t", *sources)
    ran = migmbbrk(home, tmp_path, "-t", "-s")
    assert (ran.code, "FILE is missing" in ran.err) == (ExitCode.USAGE, True)


def test_undo_takes_one_phase_after_the_other(home: Path, tmp_path: Path, sources: list[str]) -> None:
    untouched = state(home)
    migmbbrk(home, tmp_path, "-t", *sources)
    initial = state(home)
    migmbbrk(home, tmp_path, "-c", *sources)
    assert Ran("migmbbrk", home, "--undo").code == ExitCode.DONE
    assert state(home) == initial
    assert Ran("migmbbrk", home, "--undo").code == ExitCode.DONE
    assert state(home) == untouched


@pytest.mark.rule("MB-7")
def test_8_7_older_retained_publications_are_warned_of(home: Path, tmp_path: Path) -> None:
    from rfh2.captures import write_captures

    capture = tmp_path / "capture.jsonl"
    with capture.open("wb") as stream:
        write_captures([register(1, "a"), publish(2, "a")], stream, "jsonl")
    ran = migmbbrk(home, tmp_path, "-r", "--source", str(capture))
    assert "retained publications in MQRFH format may have lost data" in ran.out
    log = log_lines(tmp_path / "here" / "amqmigmbbrk.log")
    assert any("MQPSStringData" in line for line in log)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-r", "-t", "-b", "B", "--source", str(OUTFILE)), "one of -r, -t and -c"),
        (("-b", "B", "--source", str(OUTFILE)), "one of -r, -t and -c"),
        (("-r", "--source", str(OUTFILE)), "-b is needed"),
        (("-r", "-b", "B"), "FILE is missing"),
    ],
    ids=["two-phases", "no-phase", "no-broker", "no-source"],
)
def test_migmbbrk_usage(home: Path, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    ran = Ran("migmbbrk", home, "--directory", str(tmp_path / "here"), *arguments)
    assert (ran.code, says in ran.err) == (ExitCode.USAGE, True)


def test_written_unloads_are_read_back(tmp_path: Path) -> None:
    path = STREAMS / "expected" / "4-retained-01.qload"
    records = list(read_captures(path))
    assert [record.message.queue for record in records if record.message] == ["Sport"]


def test_the_runbooks_of_a_topology(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    Ran("strmqbrk", home, "--rehearse", "--cluster", "DEMO", "--out", str(out), "--source", *SOURCES)
    assert "`qpubsub strmqbrk -m BRANCH1 --rehearse --source ...`" in (out / "runbook-hierarchy.md").read_text()
    assert "QM1: ALTER TOPIC('Sport') CLUSTER('DEMO')" in (out / "runbook-cluster.md").read_text()


def test_the_runbook_of_a_collective(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    collective = ("--cluster", "DEMO", "--member", "BRK2=QM2", "--connection", "QM2=two.example(1415)")
    arguments = ("-r", "-b", "BRK1", *collective, "--out", str(out), "--source", str(OUTFILE))
    Ran("migmbbrk", home, "--directory", str(tmp_path / "here"), *arguments)
    assert "CONNAME('two.example(1415)')" in (out / "runbook-cluster.md").read_text()
