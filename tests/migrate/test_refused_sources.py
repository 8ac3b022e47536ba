"""A migration changes nothing where its sources are unread, empty, another's, or not those of the phase before.

Guide 7.1 and 7.4.1: a migration that was successful enables queued publish/subscribe and is not done again. So what was
not read must not be successful: exit code 2, no marker, PSMODE as it was, and the good source works afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import ExitCode
from migrate import embedded
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from tests.migrate.cases import LEGACY
from tests.migrate.legacy_messages import publish, register
from tests.migrate.verbs import Ran, state

STATE = {
    "format": "qpubsub-legacy-state",
    "version": 1,
    "qmgr": "QM1",
    "subscriptions": [
        {"source": {"file": "made.json", "position": n}, "topic": f"a/{n}", "queue": f"Q{n}", "user": "anne"}
        for n in range(20)
    ],
}
OUTFILE = (LEGACY / "log-example" / "outfile.txt").read_text().replace("PSMIG_QM", "QM1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with QueueManagerStore.create(tmp_path / "home", QueueManager("QM1", psmode="COMPAT")):
        return tmp_path / "home"


def good(directory: Path) -> Path:
    path = directory / "good.json"
    path.write_text(json.dumps(STATE, indent=1))
    return path


def capture(path: Path, messages: list[CapturedMessage]) -> Path:
    with path.open("wb") as stream:
        write_captures(messages, stream, path.suffix.removeprefix("."))
    return path


def _cut_json(directory: Path) -> Path:
    path = directory / "cut.json"
    path.write_bytes(good(directory).read_bytes()[:1000])
    return path


def _contradictory(directory: Path) -> Path:
    path = directory / "both.json"
    path.write_text(json.dumps({"format": "qpubsub-legacy-state", "states": [STATE]}))
    return path


def _bytes(content: bytes, name: str = "source") -> Callable[[Path], Path]:
    def made(directory: Path) -> Path:
        path = directory / name
        path.write_bytes(content)
        return path

    return made


def _empty_directory(directory: Path) -> Path:
    path = directory / "nothing"
    path.mkdir()
    return path


def _cut_capture(directory: Path) -> Path:
    path = capture(directory / "capture.jsonl", [register(n, f"c/{n}", queue_name=f"Q{n}") for n in range(1, 9)])
    path.write_bytes(path.read_bytes()[:-300])
    return path


def _cut_unload(directory: Path) -> Path:
    path = capture(directory / "capture.qload", [publish(n, f"a/{n}") for n in range(1, 9)])
    path.write_bytes(path.read_bytes()[:-150])
    return path


def _damaged_command(directory: Path) -> Path:
    whole = register(2, "b", queue_name="B.Q")
    damaged = whole.model_copy(update={"body_hex": whole.body_hex[:40]})
    return capture(directory / "capture.jsonl", [register(1, "a", queue_name="A.Q"), damaged])


AMQSPSD = "Subscribers\nStreamName: Sport\n Topic: t\n ApplCount: 3\n QMgrName: QM1\n QName: A.Q\n"

REFUSED = [
    ("cut-json", _cut_json, "it is not JSON"),
    ("format-beside-states", _contradictory, "there is no such field"),
    ("random-bytes", _bytes(bytes(range(256)) * 8), "could not be read"),
    ("empty-file", _bytes(b""), "the file is empty"),
    ("blank-file", _bytes(b" \n \n"), "the file is empty"),
    ("empty-directory", _empty_directory, "no file in this directory"),
    ("ebcdic-listing", _bytes(OUTFILE.encode("cp037")), "EBCDIC"),
    ("cut-capture", _cut_capture, "could not be read"),
    ("cut-unload", _cut_unload, "could not be read"),
    ("damaged-command", _damaged_command, "not a command that a broker takes"),
    ("counted-and-not-listed", _bytes(AMQSPSD.encode(), "amqspsd.txt"), "3 registrations are counted, 1 are listed"),
    ("nothing-of-a-broker", _bytes(b"# setmqaut -m QM1\nprofile: x\n"), "not complete"),
    ("no-state-at-all", _bytes(b"Broker:\n", "qm.ini"), "no state of the broker at all"),
]
BAD = pytest.mark.parametrize(("source", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])


@pytest.mark.rule("MIG-1", "MIG-15")
@BAD
def test_7_4_1_strmqbrk_is_refused_and_the_good_source_works_afterwards(
    home: Path, tmp_path: Path, source: Callable[[Path], Path], says: str
) -> None:
    before, bad = state(home), source(tmp_path)
    ran = Ran("strmqbrk", home, "--source", str(bad))
    assert ran.code == ExitCode.USAGE, ran.out
    assert says in ran.err
    assert state(home) == before
    assert "Error: " in (home / "QM1" / "psmigr.log").read_text().splitlines()[-1]
    assert not list((home / "QM1").glob("migration/*"))

    ran = Ran("strmqbrk", home, "--source", str(good(tmp_path)))
    assert ran.code == ExitCode.DONE
    after = state(home)
    assert len(after["subscriptions"]) == 20  # type: ignore[arg-type]
    assert after["objects"]["qmgr QM1"]["psmode"] == "ENABLED"  # type: ignore[index]


@pytest.mark.parametrize(("source", "says"), [c[1:] for c in REFUSED[:-1]], ids=[c[0] for c in REFUSED[:-1]])
def test_a_bad_source_beside_a_good_one_is_refused_too(
    home: Path, tmp_path: Path, source: Callable[[Path], Path], says: str
) -> None:
    before, bad = state(home), source(tmp_path)
    ran = Ran("strmqbrk", home, "--source", str(good(tmp_path)), str(bad))
    assert (ran.code, says in ran.err) == (ExitCode.USAGE, True)
    assert state(home) == before


@BAD
def test_a_rehearsal_says_that_a_run_is_refused(
    home: Path, tmp_path: Path, source: Callable[[Path], Path], says: str
) -> None:
    before = state(home)
    ran = Ran("strmqbrk", home, "--rehearse", "--source", str(source(tmp_path)))
    assert ran.code == ExitCode.USAGE
    assert says == "no file in this directory" or "error: a run is refused: " in ran.out
    assert state(home) == before


@BAD
def test_files_for_ibm_mq_are_not_written(tmp_path: Path, source: Callable[[Path], Path], says: str) -> None:
    out = tmp_path / "out"
    ran = Ran("strmqbrk", tmp_path, "--target", "files", "--out", str(out), "--source", str(source(tmp_path)))
    assert (ran.code, says in ran.err) == (ExitCode.USAGE, True)
    assert {path.name for path in out.glob("*")} <= {"psmigr.log"}


NO_STATE = [
    (
        "plain-data-on-the-control-queue",
        {"queue": "SYSTEM.BROKER.CONTROL.QUEUE", "md_hex": None, "body_hex": "00112233"},
    ),
    ("a-message-on-a-subscribers-queue", {"queue": "A.Q", "md_hex": None, "body_hex": "00112233"}),
]


@pytest.mark.parametrize("change", [case[1] for case in NO_STATE], ids=[case[0] for case in NO_STATE])
def test_whole_messages_that_are_no_commands_refuse_nothing(
    home: Path, tmp_path: Path, change: dict[str, str | None]
) -> None:
    """What no broker takes for a command was no state of it either."""
    message = register(2, "x").model_copy(update=change)
    source = capture(tmp_path / "capture.jsonl", [register(1, "a", queue_name="A.Q"), message])
    assert Ran("strmqbrk", home, "--source", str(source)).code != ExitCode.USAGE
    assert len(state(home)["subscriptions"]) == 1  # type: ignore[arg-type]


def test_accept_unread_is_the_way_round_and_is_said(home: Path, tmp_path: Path) -> None:
    sources = ("--source", str(good(tmp_path)), str(_cut_capture(tmp_path)))
    ran = Ran("strmqbrk", home, "--accept-unread", "--out", str(tmp_path / "out"), *sources)
    assert ran.code == ExitCode.PROBLEMS
    assert len(state(home)["subscriptions"]) == 27  # type: ignore[arg-type]
    found = json.loads((tmp_path / "out" / "report.json").read_text())
    assert "--accept-unread" in found["options"]
    for text in (ran.out, ran.err, (tmp_path / "out" / "report.txt").read_text()):
        assert "--accept-unread: 1 piece of the sources could not be read" in text
    log = (home / "QM1" / "psmigr.log").read_text()
    assert "    --accept-unread\n" in log
    assert "Error: --accept-unread: 1 piece" in log


@pytest.mark.rule("MIG-15")
@pytest.mark.parametrize("content", [b"", bytes(range(256)), b"Broker:\n"], ids=["empty", "random", "no-state"])
def test_nothing_read_is_never_migrated(home: Path, tmp_path: Path, content: bytes) -> None:
    before = state(home)
    source = _bytes(content, "qm.ini")(tmp_path)
    ran = Ran("strmqbrk", home, "--accept-unread", "--source", str(source))
    assert (ran.code, "no state of the broker at all" in ran.err) == (ExitCode.USAGE, True)
    assert state(home) == before


CUTS = [OUTFILE.index("Subscription", len(OUTFILE) // 2), len(OUTFILE) - 60]


def listing(path: Path, text: str = OUTFILE) -> Path:
    path.write_text(text)
    return path


def migmbbrk(home: Path, *arguments: str, broker: str = "BRK1") -> Ran:
    return Ran("migmbbrk", home, "-b", broker, "--directory", str(home.parent / "here"), *arguments)


@pytest.mark.rule("MB-2")
@pytest.mark.parametrize("phase", ["-t", "-c"])
@pytest.mark.parametrize("cut", CUTS)
def test_8_a_listing_that_is_cut_is_refused(home: Path, tmp_path: Path, phase: str, cut: int) -> None:
    whole, part = listing(tmp_path / "whole.txt"), listing(tmp_path / "part.txt", OUTFILE[:cut])
    if phase == "-c":
        assert migmbbrk(home, "-t", "--source", str(whole)).code != ExitCode.USAGE
    before = state(home)
    ran = migmbbrk(home, phase, "--source", str(part))
    assert (ran.code, "BIP8071I" in ran.err) == (ExitCode.USAGE, True)
    assert state(home) == before
    assert not (home / "QM1" / "migration" / "retrieved.json").exists()
    assert migmbbrk(home, phase, "--source", str(whole)).code != ExitCode.USAGE


class TestPhases:
    """Each phase is of the broker and the state of the one before (guide 8, 8.2)."""

    OTHER = OUTFILE.replace("Carnac", "Rennes")

    def test_a_refused_run_leaves_nothing_to_the_next(self, home: Path, tmp_path: Path) -> None:
        a, b = listing(tmp_path / "a.txt"), listing(tmp_path / "b.txt", self.OTHER)
        assert migmbbrk(home, "-c", "--source", str(a)).code == ExitCode.USAGE
        ran = migmbbrk(home, "-t", "--source", str(b))
        assert "going on" not in ran.err
        migmbbrk(home, "-c", "--source", str(b))
        assert migmbbrk(home, "-c", "--source", str(a)).code == ExitCode.USAGE
        migmbbrk(home, "-c", "-z", "-o", "--source", str(b))
        topics = {s["topic_string"] for s in state(home)["subscriptions"]}  # type: ignore[attr-defined]
        assert "RFH2/EU/France/Rennes" in topics
        assert "RFH2/EU/France/Carnac" not in topics

    @pytest.mark.parametrize("flags", [(), ("-z",)], ids=["c", "c-z"])
    def test_another_state_than_that_of_the_phase_before(
        self, home: Path, tmp_path: Path, flags: tuple[str, ...]
    ) -> None:
        a, b = listing(tmp_path / "a.txt"), listing(tmp_path / "b.txt", self.OTHER)
        migmbbrk(home, "-t", "--source", str(a))
        if flags:
            migmbbrk(home, "-c", "--source", str(a))
        before = state(home)
        ran = migmbbrk(home, "-c", *flags, "--source", str(b))
        assert ran.code == ExitCode.USAGE
        (was,) = (o["names"][2] for n, o in before["objects"].items() if n.endswith("MIGMBBRK"))  # type: ignore[attr-defined]
        assert f"it had {was}" in ran.err
        assert ran.err.count("fingerprint") >= 1
        assert state(home) == before
        assert migmbbrk(home, "-c", "-o", *flags, "--accept-changed", "--source", str(b)).code == ExitCode.PROBLEMS

    def test_another_broker(self, home: Path, tmp_path: Path) -> None:
        a = listing(tmp_path / "a.txt")
        migmbbrk(home, "-t", "--source", str(a))
        before = state(home)
        for phase in ("-t", "-c"):
            ran = migmbbrk(home, phase, "--source", str(a), broker="BRK2")
            assert ran.code == ExitCode.USAGE
            assert "that of broker BRK1, this is broker BRK2" in ran.err
        assert state(home) == before
        ran = migmbbrk(home, "-r", "--source", str(a), broker="BRK2")
        assert (ran.code, "a run is refused" in ran.out) == (ExitCode.USAGE, True)

    def test_8_2_step_4_the_initial_phase_again_after_the_lists_were_revised(self, home: Path, tmp_path: Path) -> None:
        a, b = listing(tmp_path / "a.txt"), listing(tmp_path / "b.txt", self.OTHER)
        migmbbrk(home, "-t", "--source", str(a))
        assert migmbbrk(home, "-t", "--source", str(b)).code != ExitCode.USAGE
        assert migmbbrk(home, "-c", "--source", str(b)).code != ExitCode.USAGE

    def test_the_log_says_whose_state_was_read(self, home: Path, tmp_path: Path) -> None:
        migmbbrk(home, "-t", "--source", str(listing(tmp_path / "a.txt")))
        log = (home.parent / "here" / "amqmigmbbrk.log").read_text()
        assert "State of queue manager QM1 read from the sources: fingerprint " in log

    @pytest.fixture
    def interrupted(self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A listing whose completion was interrupted when it was being applied."""
        a = listing(tmp_path / "a.txt")
        migmbbrk(home, "-t", "--source", str(a))

        def fails(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(embedded, "apply", fails)
            assert migmbbrk(home, "-c", "--source", str(a)).code == ExitCode.INTERRUPTED
        return a

    def test_an_interrupted_phase_goes_on_with_the_same_sources(self, home: Path, interrupted: Path) -> None:
        assert migmbbrk(home, "-c", "--source", str(interrupted)).code == ExitCode.PROBLEMS
        assert not (home / "QM1" / "migration" / "retrieved.json").exists()

    def test_an_interrupted_phase_says_in_the_log_that_it_goes_on(self, home: Path, interrupted: Path) -> None:
        assert migmbbrk(home, "-c").code == ExitCode.PROBLEMS
        assert "which the interrupted run left: fingerprint" in (home.parent / "here" / "amqmigmbbrk.log").read_text()

    @pytest.mark.parametrize(
        ("arguments", "broker", "says"),
        [
            (("-c", "--source", "OTHER"), "BRK1", "the interrupted complete phase had read a state with fingerprint"),
            (("-c",), "BRK2", "the complete phase of broker BRK1 was interrupted, this is the complete phase of"),
            (("-t",), "BRK1", "the complete phase of broker BRK1 was interrupted, this is the initial phase of"),
        ],
        ids=["other-sources", "other-broker", "other-phase"],
    )
    def test_what_does_not_belong_to_the_interrupted_phase_is_refused(
        self, home: Path, interrupted: Path, arguments: tuple[str, ...], broker: str, says: str
    ) -> None:
        before = state(home)
        other = listing(interrupted.with_name("b.txt"), self.OTHER)
        ran = migmbbrk(home, *(str(other) if word == "OTHER" else word for word in arguments), broker=broker)
        assert (ran.code, says in ran.err) == (ExitCode.USAGE, True)
        assert state(home) == before
        assert migmbbrk(home, "-c").code == ExitCode.PROBLEMS, "what was read is still there"

    def test_s_forgets_it(self, home: Path, interrupted: Path) -> None:
        other = listing(interrupted.with_name("b.txt"), self.OTHER)
        ran = migmbbrk(home, "-c", "-s", "--accept-changed", "--source", str(other))
        assert ran.code == ExitCode.PROBLEMS
        log = (home.parent / "here" / "amqmigmbbrk.log").read_text()
        assert "the state that an interrupted run had read is discarded" in log


class TestForeign:
    """The name of the queue manager: captured messages bear it, and so do listings and state files."""

    def sources(self, directory: Path, theirs: int, ours: int) -> str:
        messages = [register(n, f"a/{n}", queue_name=f"Q{n}", qmgr="PROD") for n in range(1, theirs + 1)]
        messages += [register(100 + n, f"b/{n}", queue_name=f"Q{n}", qmgr="QM1") for n in range(ours)]
        return str(capture(directory / "capture.jsonl", messages))

    @pytest.mark.parametrize(("theirs", "ours"), [(8, 0), (5, 4)], ids=["all", "more-than-half"])
    def test_refused_where_it_is_mostly_anothers(self, home: Path, tmp_path: Path, theirs: int, ours: int) -> None:
        before, source = state(home), self.sources(tmp_path, theirs, ours)
        ran = Ran("strmqbrk", home, "--source", source)
        assert ran.code == ExitCode.USAGE
        assert f"{theirs} of queue manager PROD, of {theirs + ours} in all" in ran.err
        assert "--from-qmgr" in ran.err
        assert state(home) == before

    @pytest.mark.parametrize("listed", ["migmbbrk", "strmqbrk"])
    def test_one_source_of_several(self, home: Path, tmp_path: Path, listed: str) -> None:
        foreign = self.sources(tmp_path, 3, 0)
        if listed == "strmqbrk":
            ran = Ran("strmqbrk", home, "--source", str(good(tmp_path)), foreign)
        else:
            ran = migmbbrk(home, "-t", "--source", str(listing(tmp_path / "a.txt")), foreign)
        assert (ran.code, "3 of queue manager PROD" in ran.err) == (ExitCode.USAGE, True)

    def test_half_and_less_is_a_warning(self, home: Path, tmp_path: Path) -> None:
        ran = Ran("strmqbrk", home, "--source", self.sources(tmp_path, 4, 4))
        assert ran.code == ExitCode.DONE
        assert "of another queue manager: 4 of 8 messages are of queue manager PROD" in ran.out
        assert len(state(home)["subscriptions"]) == 4  # type: ignore[arg-type]

    def test_from_qmgr_says_which_one_is_meant(self, home: Path, tmp_path: Path) -> None:
        ran = Ran("strmqbrk", home, "--from-qmgr", "PROD", "--source", self.sources(tmp_path, 8, 0))
        assert ran.code == ExitCode.DONE
        found = state(home)["subscriptions"]
        assert {s["dest_qmgr"] for s in found} == {"QM1"}  # type: ignore[attr-defined]
        assert len(found) == 8  # type: ignore[arg-type]
        assert "what belongs to queue manager PROD is migrated to QM1" in ran.out
        assert "what belongs to queue manager PROD" in (home / "QM1" / "psmigr.log").read_text()

    def test_from_qmgr_of_the_same_name_leaves_the_others_out(self, home: Path, tmp_path: Path) -> None:
        ran = Ran("strmqbrk", home, "--from-qmgr", "QM1", "--source", self.sources(tmp_path, 8, 2))
        assert ran.code == ExitCode.DONE
        assert len(state(home)["subscriptions"]) == 2  # type: ignore[arg-type]

    def test_from_qmgr_of_which_there_is_nothing(self, home: Path, tmp_path: Path) -> None:
        before = state(home)
        ran = Ran("strmqbrk", home, "--from-qmgr", "TEST", "--source", self.sources(tmp_path, 8, 2))
        assert (ran.code, "no state of the broker at all" in ran.err) == (ExitCode.USAGE, True)
        assert state(home) == before

    def test_commands_for_another_queue_manager(self, home: Path, tmp_path: Path) -> None:
        """setmqaut -m names the queue manager: what is for another one is left out, and a file of such is refused."""
        lines = [f"setmqaut -m {qmgr} -n Q{n} -t queue -p fred +put\n" for n, qmgr in enumerate(["QM1", "QM1", "PROD"])]
        (tmp_path / "authorities.sh").write_text("".join(lines))
        ran = Ran("strmqbrk", home, "--source", str(good(tmp_path)), str(tmp_path / "authorities.sh"))
        assert ran.code != ExitCode.USAGE
        assert "1 of 3 commands are for queue manager PROD" in ran.out
        made = {name for name in state(home)["objects"] if name.startswith("authrec")}  # type: ignore[attr-defined]
        assert len(made) == 2
        (tmp_path / "authorities.sh").write_text(lines[2] * 2)
        ran = Ran("strmqbrk", home, "--source", str(tmp_path / "authorities.sh"))
        assert "already been migrated" in ran.err
        Ran("strmqbrk", home, "--undo")
        ran = Ran("strmqbrk", home, "--source", str(good(tmp_path)), str(tmp_path / "authorities.sh"))
        assert (ran.code, "2 of queue manager PROD, of 2 in all" in ran.err) == (ExitCode.USAGE, True)

    OTHERS = [
        ("state.json", json.dumps(STATE | {"qmgr": "PROD"}), "20 of queue manager PROD"),
        ("amqspsd.txt", "Relations\n Queue manager: PROD\n" + AMQSPSD.replace("3", "1"), "2 of queue manager PROD"),
    ]

    @pytest.mark.parametrize(("name", "text", "says"), OTHERS, ids=[case[0] for case in OTHERS])
    def test_what_says_of_itself_that_it_is_anothers(
        self, home: Path, tmp_path: Path, name: str, text: str, says: str
    ) -> None:
        before = state(home)
        (tmp_path / name).write_text(text)
        ran = Ran("strmqbrk", home, "--source", str(tmp_path / name))
        assert (ran.code, says in ran.err) == (ExitCode.USAGE, True)
        assert state(home) == before
        assert Ran("strmqbrk", home, "--from-qmgr", "PROD", "--source", str(tmp_path / name)).code != ExitCode.USAGE

    def test_an_estate_file_tells_of_others_without_a_warning(self, home: Path, tmp_path: Path) -> None:
        states = [STATE | {"qmgr": qmgr} for qmgr in ("QM1", "QM2", "QM3")]
        (tmp_path / "estate.json").write_text(json.dumps({"states": states}))
        ran = Ran("strmqbrk", home, "--source", str(tmp_path / "estate.json"))
        assert ran.code == ExitCode.DONE
        assert "20 items of queue manager QM3" in ran.out

    def test_subscribers_that_are_all_elsewhere_are_warned_of(self, home: Path, tmp_path: Path) -> None:
        source = listing(tmp_path / "a.txt", OUTFILE.replace("QM1", "PSMIG_QM"))
        ran = migmbbrk(home, "-r", "--source", str(source))
        assert "run with --from-qmgr PSMIG_QM" in ran.out
        ran = migmbbrk(home, "-r", "--from-qmgr", "PSMIG_QM", "--source", str(source))
        assert "8 of 8 subscriptions have their queues" not in ran.out

    def test_events_of_another_broker(self, home: Path, tmp_path: Path) -> None:
        event = (
            '<Broker label="BRK1"><ControlGroup><DynamicSubscriptionEngine><Topic name="a"><Create>'
            '<Subscription clientId="mqrfh2:QM1:A.Q"/></Create></Topic></DynamicSubscriptionEngine></ControlGroup>'
            "</Broker>"
        )
        (tmp_path / "events.xml").write_text(event)
        before = state(home)
        ran = migmbbrk(home, "-t", "--source", str(tmp_path / "events.xml"), broker="BRK2")
        assert (ran.code, "is that of broker BRK1" in ran.err) == (ExitCode.USAGE, True)
        assert state(home) == before
        assert migmbbrk(home, "-t", "--source", str(tmp_path / "events.xml")).code != ExitCode.USAGE
