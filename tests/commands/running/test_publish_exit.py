"""Publish exits in processes of their own (guide 4.6.2): loaded, called, limited, and started again."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from commands.broker.exit_values import (
    ExitAnswer,
    ExitMessage,
    ExitResponse,
    PublicationContext,
    PublishExitError,
    SubscriptionContext,
)
from commands.config.settings import PublishExitConfig
from commands.running import publish_exits as exit_process
from commands.running.publish_exits import PublishExits
from rfh2.mqmd import Mqmd

EXITS = Path(__file__).with_name("exits.py")
PUBLICATION = PublicationContext(pub_topic_string="a")
SUBSCRIPTION = SubscriptionContext(
    destination_qmgr_name="QM1",
    destination_q_name="S",
    sub_type=1,
    sub_options=0,
    object_name="",
    object_string="a",
    sub_topic_string="a",
    sub_name="",
    sub_id=bytes(24),
    selection_string="",
    sub_level=1,
    ps_properties=2,
)


def _message(data: str) -> ExitMessage:
    return ExitMessage(md=Mqmd().encode(), body=data.encode())


@pytest.fixture
def opened() -> Iterator[Any]:
    """A function that opens an exit by its configuration."""
    opened: list[PublishExits] = []

    def open_exit(**config: Any) -> Any:
        exits = PublishExits(PublishExitConfig(**{"seconds": 20.0, **config}))
        opened.append(exits)
        return exits.of("QM1")

    yield open_exit
    for exits in opened:
        exits.__exit__(None, None, None)


def _called(exit_: Any, data: str) -> ExitAnswer:
    answer = exit_.publication(_message(data), PUBLICATION, SUBSCRIPTION)
    assert isinstance(answer, ExitAnswer)
    return answer


@pytest.mark.rule("APP-5g")
def test_4_6_2_4_there_is_no_exit_by_default(opened: Any) -> None:
    assert opened() is None


@pytest.mark.rule("APP-5a")
def test_4_6_2_1_init_term_and_the_user_area(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # ExitData has 32 characters, and a temporary path has more
    monkeypatch.setenv("PYTHONPATH", str(EXITS.parents[3]))
    with PublishExits(PublishExitConfig(path=EXITS, function="counting", data="log", seconds=20)) as exits:
        for qmgr in ("QM1", "QM2"):
            exit_ = exits.of(qmgr)
            assert exit_ is not None
            assert exits.of(qmgr) is exit_
            for _ in range(2):
                exit_.publication(_message("x"), PUBLICATION, SUBSCRIPTION)
    assert (tmp_path / "log").read_text().splitlines() == [
        *("INIT QM1 1", "PUBLICATION QM1 2", "PUBLICATION QM1 3"),
        *("INIT QM2 1", "PUBLICATION QM2 2", "PUBLICATION QM2 3"),
        *("TERM QM1 4", "ended QM1", "TERM QM2 4", "ended QM2"),
    ]


def test_what_it_prints_is_no_answer(opened: Any, capfd: pytest.CaptureFixture[str]) -> None:
    exit_ = opened(path=EXITS, function="by_data")
    assert _called(exit_, "please print") == ExitAnswer()
    out, err = capfd.readouterr()
    assert out == ""
    assert "this is no answer" in err


def test_an_exception_is_the_answer_failed(opened: Any) -> None:
    exit_ = opened(path=EXITS, function="by_data")
    answer = _called(exit_, "please raise")
    assert answer.exit_response is ExitResponse.FAILED
    assert re.fullmatch(r"ValueError: no such table \(exits\.py, line \d+\)", answer.why)
    assert _called(exit_, "nothing") == ExitAnswer()


def test_long_messages_both_ways(opened: Any) -> None:
    exit_ = opened(path=EXITS, function="by_data")
    answer = _called(exit_, "y" * 3_000_000 + " please make it longer")
    assert answer.body is not None
    assert len(answer.body) == 3_000_000 + 22 + 5_000_000


def test_a_process_that_dies_once_is_started_again(opened: Any) -> None:
    exit_ = opened(path=EXITS, function="by_data")
    _called(exit_, "nothing")
    assert _called(exit_, "please die once") == ExitAnswer()


def test_a_process_that_was_killed_between_two_calls_is_started_again(opened: Any) -> None:
    exit_ = opened(path=EXITS, function="counting")
    assert _called(exit_, "x").destination_q_name == "S.2"
    assert _called(exit_, "x").destination_q_name == "S.3"
    os.kill(exit_.pid, signal.SIGKILL)
    assert _called(exit_, "x").destination_q_name == "S.2", "a new process has an empty user area"


DURING: list[tuple[str, str]] = [
    ("please hang", "no answer in 0.3 s; its process was killed"),
    ("please spin", "no answer in 0.3 s; its process was killed"),
    ("please die always", "its process ended twice in the same call"),
    ("please exit", "its process ended twice in the same call"),
]


@pytest.mark.parametrize(("data", "why"), DURING, ids=[row[0] for row in DURING])
def test_a_call_that_gives_no_answer(opened: Any, data: str, why: str) -> None:
    exit_ = opened(path=EXITS, function="by_data", seconds=0.3 if "0.3" in why else 20)
    with pytest.raises(PublishExitError) as failed:
        _called(exit_, data)
    assert failed.value.why == why


def test_the_call_after_one_that_hung_has_a_new_process(opened: Any) -> None:
    exit_ = opened(path=EXITS, function="by_data", seconds=2)
    with pytest.raises(PublishExitError):
        _called(exit_, "please hang")
    assert exit_.pid is None
    assert _called(exit_, "nothing") == ExitAnswer()


NONSENSE = [
    ("no JSON", "its answer is not valid: Invalid JSON"),
    ("unknown key", "its answer is not valid: exit_respons: Extra inputs are not permitted"),
    ("two lines", "it wrote more than one line for a call"),
    ("no end", "its answer is longer than 1,000,000 bytes"),
    ("deaf", "no answer in 1 s"),
]


@pytest.mark.parametrize(("what", "why"), NONSENSE, ids=[row[0] for row in NONSENSE])
def test_an_answer_that_is_none(opened: Any, monkeypatch: pytest.MonkeyPatch, what: str, why: str) -> None:
    monkeypatch.setattr(exit_process, "MOST_BYTES", 1_000_000)
    exit_ = opened(program=(sys.executable, str(EXITS), what), seconds=1 if what == "deaf" else 20)
    with pytest.raises(PublishExitError) as failed:
        _called(exit_, "x")
    assert failed.value.why.startswith(why)


def test_a_program_in_any_language(opened: Any) -> None:
    exit_ = opened(program=(sys.executable, str(EXITS), "upper"))
    assert _called(exit_, "shout").body == b"sHOUT"


def _unloadable(tmp_path: Path) -> list[tuple[dict[str, Any], str]]:
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_module\n")
    return [
        ({"path": tmp_path / "none.py"}, f"{tmp_path}/none.py is not a Python file"),
        ({"path": broken}, f"{broken} cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ({"path": EXITS, "function": "absent"}, f"{EXITS} has no function absent"),
        ({"path": EXITS, "function": "refusing"}, "it cannot be initialized: no licence"),
        ({"entry_point": "absent"}, "no installed package has an entry point absent in group qpubsub.publish_exits"),
        ({"program": (str(tmp_path / "absent"),)}, "cannot be started"),
        ({"program": ("/bin/sh", "-c", "exit 3")}, "it ended before it was initialized"),
    ]


@pytest.mark.rule("APP-5f")
@pytest.mark.parametrize("number", range(7))
def test_4_6_2_one_that_cannot_be_loaded_inhibits_the_start(opened: Any, tmp_path: Path, number: int) -> None:
    config, why = _unloadable(tmp_path)[number]
    with pytest.raises(PublishExitError) as failed:
        opened(**config)
    assert why in failed.value.why
    assert "No command is processed. Correct table [publish_exit]" in failed.value.why


def test_an_entry_point(opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "routes-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: routes\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[qpubsub.publish_exits]\nroutes = routes:counting\n")
    (tmp_path / "routes.py").write_text(EXITS.read_text())
    root = Path(__file__).parents[3]
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{root}")
    assert _called(opened(entry_point="routes"), "x").destination_q_name == "S.2"


@pytest.mark.rule("APP-5g")
def test_4_6_2_4_the_configuration_says_one_exit() -> None:
    with pytest.raises(ValidationError, match="only one of path, entry_point and program"):
        PublishExitConfig(path=EXITS, entry_point="x")
    with pytest.raises(ValidationError, match="at most 32 characters"):
        PublishExitConfig(path=EXITS, data="x" * 33)
