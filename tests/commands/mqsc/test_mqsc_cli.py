"""``qpubsub mqsc`` on a queue manager's store: what is printed is kept, and only that."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands.broker.objects import QueueManager
from commands.cli import main
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import Console, ExitCode
from rfh2 import decode
from streams import Publication, RetainedPublication, RetainedStored

SCRIPTS = Path(__file__).parents[3] / "fixtures" / "mqsc"
NOW = datetime(2009, 1, 28, 11, 43, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")):
        return tmp_path


class Ran:
    """What one call of the command came to."""

    def __init__(self, home: Path, *arguments: str) -> None:
        out, err = io.BytesIO(), io.StringIO()
        with pytest.raises(SystemExit) as ended:
            main.main(["mqsc", "-m", "QM1", "--home", str(home), *arguments], obj=Console(out, err))
        self.code, self.out, self.err = ended.value.code, out.getvalue().decode(), err.getvalue()


def _stdin(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def _script(home: Path, text: str) -> str:
    path = home / "script.mqsc"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["add-stream", "add-subscription-points", "stock-ticker"])
def test_a_script_of_the_guide(home: Path, name: str) -> None:
    ran = Ran(home, str(SCRIPTS / f"{name}.mqsc"))
    assert ran.out == "Starting MQSC for queue manager QM1.\n" + (SCRIPTS / f"{name}.out").read_text()
    assert (ran.code, ran.err) == (ExitCode.DONE, "")


def test_standard_input_and_problems(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stdin(monkeypatch, "DEFINE TOPIC(T1) TOPICSTR('t/1')\nDISPLAY TOPIC(T1) TOPICSTR\nNONSENSE\n")
    ran = Ran(home)
    assert ran.code == ExitCode.PROBLEMS
    assert "AMQ8690" in ran.out
    assert "TOPICSTR(t/1)" in ran.out
    assert ran.out.endswith("One command has a syntax error.\nAll valid MQSC commands were processed.\n")


def test_json_is_an_object_a_command(home: Path) -> None:
    ran = Ran(
        home,
        "--json",
        _script(home, "* c\nDEFINE TOPIC(É) TOPICSTR('é')\nDEFINE TOPIC(T) TOPICSTR('é')\nDIS TOPIC(T)\n"),
    )
    first, second, third = (json.loads(line) for line in ran.out.splitlines())
    assert (first["number"], first["line"], first["ok"], first["amq"]) == (1, 2, False, "AMQ8424")
    assert (second["command"], second["ok"]) == ("DEFINE TOPIC(T) TOPICSTR('é')", True)
    assert third["objects"][0]["TOPICSTR"] == "é"
    assert "3 MQSC commands read." in ran.err


def test_what_was_defined_is_there_for_the_next_one(home: Path) -> None:
    script = (
        "DEFINE TOPIC(T) TOPICSTR('a')\nDEFINE QLOCAL(Q)\nDEFINE QALIAS(A) TARGET(Q)\nDEFINE NL(N) NAMES(T)\n"
        "ALTER QMGR PSRTYCNT(7)\nDEFINE SUB(S) TOPICSTR('a/#') DEST(A)\n"
        "SET AUTHREC PROFILE(T) OBJTYPE(TOPIC) GROUP('g') AUTHADD(PUB)\n"
        "DEFINE TOPIC(GONE) TOPICSTR('b')\nDELETE TOPIC(GONE)\n"
    )
    assert Ran(home, _script(home, script)).code == ExitCode.DONE
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        objects, subscriptions, _ = unit.load_state()
    assert objects.topics.require("T").topic_string == "a"
    assert objects.topics.get("GONE") is None
    assert {"Q"} <= set(objects.queues)
    assert (set(objects.aliases), objects.namelists["N"].names, objects.qmgr.psrtycnt) == ({"A"}, ("T",), 7)
    assert [s.name for s in subscriptions] == ["S"]
    assert [record.profile for record in objects.authorities.values()] == ["T"]


def test_many_commands_are_several_units_of_work(home: Path) -> None:
    script = "".join(f"DEFINE SUB('S{i}') TOPICSTR('t/{i}') DEST(Q{i})\n" for i in range(250))
    assert Ran(home, _script(home, script)).code == ExitCode.DONE
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        _, subscriptions, _ = unit.load_state()
    assert [s.name for s in subscriptions] == [f"S{i}" for i in range(250)]


def _put(home: Path, queue: str) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.put(queue, None, b"x", time=NOW)


def test_messages_are_counted_cleared_and_purged(home: Path) -> None:
    _put(home, "Q")
    _put(home, "R")
    ran = Ran(home, _script(home, "DIS QL(Q) CURDEPTH\nDELETE QL(Q)\nCLEAR QL(Q)\nDELETE QL(Q)\nDELETE QL(R) PURGE\n"))
    assert "CURDEPTH(1)" in ran.out
    assert [line[:7] for line in ran.out.splitlines() if line.startswith("AMQ")] == [
        "AMQ8409",
        "AMQ8143",
        "AMQ8022",
        "AMQ8007",
        "AMQ8007",
    ]


def _retain(home: Path, topic: str, data: bytes) -> None:
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        unit.save_effects([RetainedStored(RetainedPublication(topic, Publication(decode(data), NOW)))])


def test_a_retained_publication_goes_to_the_new_subscribers_queue(home: Path) -> None:
    _retain(home, "t/1", b"kept")
    assert Ran(home, _script(home, "DEFINE SUB(S) TOPICSTR('t/+') DEST(Q)\n")).code == ExitCode.DONE
    with QueueManagerStore.open(home, "QM1") as store, store.unit_of_work() as unit:
        message = unit.get("Q")
        assert message is not None
        assert message.body.endswith(b"kept")
        assert unit.get("Q") is None


def test_another_process_in_between_is_seen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal each command is its own unit of work; what others did before it counts."""

    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

        def readline(self, size: int | None = -1) -> bytes:
            line = super().readline(-1)
            if line.startswith(b"DISPLAY"):
                Ran(home, _script(home, "DEFINE TOPIC(THEIRS) TOPICSTR('x')\n"))
            return line

        def __next__(self) -> bytes:
            line = self.readline()
            if not line:
                raise StopIteration
            return line

    terminal = Terminal(b"DEFINE TOPIC(MINE) TOPICSTR('y')\nDISPLAY TOPIC(THEIRS) TOPICSTR\nend\n")
    monkeypatch.setattr(Console, "stdin", property(lambda _console: terminal))
    ran = Ran(home)
    assert (ran.code, "TOPICSTR(x)" in ran.out) == (ExitCode.DONE, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-script.mqsc"], "no-such-script.mqsc: no such file or directory"),
        (["-m", "QM2"], "queue manager QM2 does not exist"),
        (["--colours"], "No such option"),
    ],
)
def test_usage(home: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str) -> None:
    _stdin(monkeypatch, "")
    ran = Ran(home, *arguments)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert said in ran.err


def test_a_script_that_is_no_text(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stdin(monkeypatch, b"PING QMGR\n\xff")
    ran = Ran(home)
    assert ran.code == ExitCode.USAGE
    assert "standard input: it is not UTF-8 at byte 10" in ran.err


def test_what_a_script_holds_does_not_reach_the_terminal_as_control(home: Path) -> None:
    ran = Ran(home, _script(home, "DEFINE TOPIC(T) TOPICSTR('\x1b]0;title\x07')\n\x1b[2J NONSENSE\n\tPING QMGR\n"))
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", ran.out) is None
    assert "     1 : DEFINE TOPIC(T) TOPICSTR('.]0;title.')" in ran.out.splitlines()
    assert "     3 : \tPING QMGR" in ran.out.splitlines()
