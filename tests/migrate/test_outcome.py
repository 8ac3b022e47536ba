"""Exit codes that tell a script over many brokers what became of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands.broker.objects import QueueManager
from commands.qmgr.store import QueueManagerStore
from commands.terminal.console import ExitCode
from migrate.cli.choices import CODES, exit_code
from migrate.plan import Outcome
from streams.topic_objects import TopicObject
from tests.migrate.verbs import Ran, state

SOURCE = {"file": "made.json", "position": 1}
PLAIN = {"source": SOURCE, "topic": "a/b", "queue": "A.Q", "user": "anne"}
EXIT = {"source": SOURCE, "name": "RoutingExitPath", "stanza": "Broker", "value": "x"}

CASES: list[tuple[str, dict[str, Any], Outcome]] = [
    ("all-there", {"subscriptions": [PLAIN]}, Outcome.DONE),
    ("a-stream-was-renamed-by-a-prefix-that-exists", {"streams": [{"source": SOURCE, "name": "T"}]}, Outcome.CHANGED),
    ("a-routing-exit", {"subscriptions": [PLAIN], "attributes": [EXIT]}, Outcome.LOST),
    (
        "a-stream-without-a-place",
        {"subscriptions": [PLAIN, {**PLAIN, "stream": "not an object name"}]},
        Outcome.LOST,
    ),
    ("remark-alone", {"unread": [{"source": SOURCE, "text": "x", "why": "y", "is_state": False, "warns": True}],
                      "subscriptions": [PLAIN]}, Outcome.WARNED),
    ("nothing", {}, Outcome.REFUSED),
]  # fmt: skip


@pytest.mark.parametrize("detailed", [False, True], ids=["usual", "detailed"])
@pytest.mark.parametrize("rehearse", [True, False], ids=["rehearsal", "run"])
@pytest.mark.parametrize(("held", "outcome"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_exit_code_is_the_outcome(
    tmp_path: Path, held: dict[str, Any], outcome: Outcome, rehearse: bool, detailed: bool
) -> None:
    """A rehearsal ends with the code of the run that it rehearses."""
    queue_manager = QueueManager("QM1", psmode="COMPAT", deadq="DEAD.Q")
    with QueueManagerStore.create(tmp_path / "home", queue_manager) as store, store.unit_of_work() as unit:
        unit.save_definition(TopicObject("T", "elsewhere"))
    source = tmp_path / "state.json"
    source.write_text(json.dumps({"format": "qpubsub-legacy-state", "version": 1, "qmgr": "QM1", **held}))
    before = state(tmp_path / "home")
    arguments = ["--source", str(source), "--json", *["--rehearse"] * rehearse, *["--detailed-exit-code"] * detailed]
    ran = Ran("strmqbrk", tmp_path / "home", *arguments)
    assert ran.code == exit_code(outcome, detailed=detailed), ran.out + ran.err
    if ran.out:
        assert json.loads(ran.out)["outcome"] == outcome
    if rehearse or outcome is Outcome.REFUSED:
        assert state(tmp_path / "home") == before


NUMBERS: list[tuple[Outcome, int, int]] = [
    (Outcome.DONE, 0, 0),
    (Outcome.WARNED, 0, 1),
    (Outcome.REFUSED, 2, 2),
    (Outcome.CHANGED, 1, 3),
    (Outcome.LOST, 1, 4),
]


@pytest.mark.parametrize(("outcome", "usual", "detailed"), NUMBERS, ids=[outcome for outcome, _, _ in NUMBERS])
def test_the_numbers(outcome: Outcome, usual: int, detailed: int) -> None:
    """Pipelines depend on them; 1 says at least that something went wrong after the migration."""
    assert CODES.keys() == {row[0] for row in NUMBERS} == set(Outcome)
    assert (exit_code(outcome, detailed=False), exit_code(outcome, detailed=True)) == (usual, detailed)
    for told, code in ((False, usual), (True, detailed)):
        assert exit_code(outcome, detailed=told, failed=True) == max(code, ExitCode.PROBLEMS)


def test_what_no_file_carries_is_reported(tmp_path: Path) -> None:
    """The embedded queue manager holds any text; MQSC has no form for a name that begins with a blank."""
    odd = {**PLAIN, "topic": "a/*", "format": "rfh2", "scheme": "char", "name": " padded"}
    source = tmp_path / "state.json"
    held = {"subscriptions": [PLAIN, odd]}
    source.write_text(json.dumps({"format": "qpubsub-legacy-state", "version": 1, "qmgr": "QM1", **held}))
    ran = Ran("strmqbrk", tmp_path, "--target", "files", "--out", str(tmp_path / "out"), "--json", str(source))
    found = json.loads(ran.out)
    fates = {fate["number"]: fate for fate in found["fates"] if fate["kind"] == "subscription"}
    assert (ran.code, found["outcome"]) == (ExitCode.PROBLEMS, "lost")
    assert (fates[1]["verdict"], fates[2]["verdict"]) == ("migrated", "reported")
    assert "no file carries it: Make subscription [2] by hand" in fates[2]["reasons"][-1]["text"]
    assert found["counts"]["reported"] == 1


def test_an_error_on_the_terminal_ends_with_what_is_to_be_done(tmp_path: Path) -> None:
    source = tmp_path / f"{'dspmqbrk' * 20}.txt"
    source.write_text("WebSphere MQ message broker running with queue manager QM1")
    files = "--target", "files", "--out", str(tmp_path / "out")
    ran = Ran("strmqbrk", tmp_path, *files, "--rehearse", str(source))
    assert "characters)" in ran.err
    assert "or migrate the rest with --accept-unread\n" in ran.err


def test_an_error_on_the_terminal_is_cut(tmp_path: Path) -> None:
    held = {"subscriptions": [PLAIN, {**PLAIN, "stream": "no stream " + "x" * 10_000}]}
    source = tmp_path / "state.json"
    source.write_text(json.dumps({"format": "qpubsub-legacy-state", "version": 1, "qmgr": "QM1", **held}))
    ran = Ran("strmqbrk", tmp_path, "--target", "files", "--out", str(tmp_path / "out"), str(source))
    assert "characters)" in ran.err
    assert max(map(len, ran.err.splitlines())) < 1000


def test_an_expiry_beyond_an_mqlong_is_told(tmp_path: Path) -> None:
    """The embedded queue manager keeps the moment; files hold 2,147,483,647 tenths of a second at most."""
    held = {"subscriptions": [{**PLAIN, "expires_at": "2049-01-01T00:00:00Z"}]}
    source = tmp_path / "state.json"
    source.write_text(json.dumps({"format": "qpubsub-legacy-state", "version": 1, "qmgr": "QM1", **held}))
    arguments = ("--target", "files", "--out", str(tmp_path / "out"), "--source", str(source), "--json")
    ran = Ran("strmqbrk", tmp_path, *arguments)
    found = json.loads(ran.out)
    (fate,) = (fate for fate in found["fates"] if fate["kind"] == "subscription")
    assert (fate["verdict"], found["outcome"]) == ("changed", "changed")
    assert any("2147483647 tenths" in reason["text"] for reason in fate["reasons"])
