"""``config check``, and where the options of ``run`` come from: the command line, the environment, the file."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import click
import pytest

from commands.cli import main
from commands.config.settings import RunConfig
from commands.terminal.console import Console
from tests.commands.cli_runs import run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QPUBSUB_QMGR", raising=False)
    (tmp_path / "qmgrs").mkdir()
    assert run("create", "QM1").code == 0
    return tmp_path


ERROR = "c.toml: error: "
# A file, and the lines that name what is wrong with it.
FAULTS: list[tuple[str, str, list[str]]] = [
    ("nothing", "", []),
    ("all of run", '[run]\nqmgr = "QM1"\nlog = "-"\nlog_format = "text"\ncommand_seconds = 2.5\n', []),
    (
        "several at once, by line",
        "[run]\ncommand_topics = -1\n\n[metrics]\nqueue = []\n",
        [
            "c.toml:2: error: run.command_topics: Input should be greater than or equal to 0",
            "c.toml:5: error: metrics.queue: there is no such key; did you mean queues?",
        ],
    ),
    ("a table", "[metric]\nlisten = 'x'\n", ["c.toml:1: error: metric: there is no such key; did you mean metrics?"]),
    (
        "a dotted key",
        "run.log_formt = 'x'\n",
        ["c.toml:1: error: run.log_formt: there is no such key; did you mean log_fo"],
    ),
    ("no TOML", "[run\n", [f"{ERROR}Expected ']'"]),
    ("a missing variable", "[topics]\npassword_env = 'NO_SUCH'\n", [f"{ERROR}topics.password: there is no env"]),
    (
        "a missing file",
        "[topics]\nca_file = 'none.pem'\n",
        [f"{ERROR}topics.ca_file: none.pem: there is no such"],
    ),
    ("a missing directory", "[run]\nlog = 'none/log'\n", [f"{ERROR}run.log: none: there is no such directory"]),
    ("no scripts", "[mqsc]\ndirectory = 'none'\n", [f"{ERROR}mqsc.directory: none: there is no such directory"]),
    ("a URL", "[queues]\nurl = 'mqtt://host'\n", [f"{ERROR}queues.url: mqtt:// has no queues"]),
    ("another URL", "[topics]\nurl = 'ftp://host'\n", [f"{ERROR}topics.url: "]),
    (
        "an open listener",
        "[listener]\nlisten = '0.0.0.0:1414'\n",
        [f"{ERROR}[listener]: 0.0.0.0 can be reached"],
    ),
    ("a port", "[metrics]\nlisten = 'x'\n", [f"{ERROR}[metrics] listen: x is not HOST:PORT"]),
    (
        "a collector",
        "[tracing]\nendpoint = 'x'\n",
        [f"{ERROR}[tracing] endpoint: x is neither console nor a URL"],
    ),
    (
        "no queue manager",
        "[run]\nqmgr = 'QM9'\n",
        ["c.toml: warning: run.qmgr: there is no such queue manager in "],
    ),
]


@pytest.mark.parametrize(("text", "lines"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_everything_that_is_wrong_is_named(home: Path, text: str, lines: list[str]) -> None:
    (home / "c.toml").write_text(text)
    ran = run("config", "check", "c.toml")
    assert [line[: len(begin)] for line, begin in zip(ran.lines, lines, strict=True)] == lines
    errors = sum(": error: " in line for line in lines)
    assert ran.code == (1 if errors else 0)
    assert ran.talk.startswith(f"c.toml: {errors} error")


def test_a_file_that_is_not_there_is_an_error_of_the_check(home: Path) -> None:
    ran = run("config", "check", "none.toml")
    assert (ran.code, ran.out, "none.toml" in ran.talk) == (2, "", True)


def test_json_for_programs(home: Path) -> None:
    (home / "c.toml").write_text("[run]\ncommand_topics = -1\n")
    ran = run("config", "check", "c.toml", "--json")
    assert ran.code == 1
    finding = {"severity": "error", "key": "run.command_topics", "text": "Input should be greater than or equal to 0"}
    assert json.loads(ran.out) == {"format": 1, "file": "c.toml", "valid": False, "findings": [{**finding, "line": 2}]}


def test_a_secret_that_others_may_read_is_a_warning(home: Path) -> None:
    (home / "secret").write_text("x")
    (home / "secret").chmod(0o644)
    (home / "c.toml").write_text("[topics]\npassword_file = 'secret'\n")
    ran = run("config", "check", "c.toml")
    assert (ran.code, ran.lines) == (
        0,
        ["c.toml: warning: secret: everybody may read this secret; run chmod 600 on it"],
    )


# What the file, the environment and the command line say of --log-format, and what counts.
SOURCES = [
    (None, None, None, "json"),
    ("text", None, None, "text"),
    ("text", "json", None, "json"),
    ("json", "json", "text", "text"),
    (None, "text", None, "text"),
]


@pytest.mark.parametrize(("file", "variable", "option", "counts"), SOURCES)
def test_the_command_line_comes_before_the_environment_and_that_before_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, file: str | None, variable: str | None, option: str | None, counts: str
) -> None:
    style = f"log_format = '{file}'\n" if file else ""
    (home / "c.toml").write_text(f"[run]\nqmgr = 'QM1'\nhome = 'qmgrs'\nlog = 'run.log'\n{style}")
    if variable:
        monkeypatch.setenv("QPUBSUB_RUN_LOG_FORMAT", variable)
    ran = run("run", "--once", "--config", "c.toml", *(("--log-format", option) if option else ()))
    assert ran.code == 0
    assert (home / "run.log").read_text().startswith("{") is (counts == "json")


def test_the_environment_can_name_the_file_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "qmgrs").rename(home / "elsewhere")
    (home / "c.toml").write_text("[run]\nqmgr = 'QM1'\nhome = 'elsewhere'\n")
    monkeypatch.setenv("QPUBSUB_RUN_CONFIG", "c.toml")
    assert run("run", "--once").code == 0


def test_a_file_that_is_not_valid_starts_nothing(home: Path) -> None:
    (home / "c.toml").write_text("[run]\nqmgr = 5\n")
    ran = run("run", "--once", "--config", "c.toml")
    assert (ran.code, ran.talk) == (2, "qpubsub: c.toml: run.qmgr: Input should be a valid string\n")


# Of each option of ``run``: its key, a value as text, and that value as ``run`` gets it. An option with a table of its
# own gets nothing from its key: what it is for reads that table where the option is not given.
OPTIONS: list[tuple[str, str, str, object]] = [
    ("--qmgr", "run.qmgr", "QM2", "QM2"),
    ("--home", "run.home", "elsewhere", Path("elsewhere")),
    ("--once", "run.once", "true", True),
    ("--json", "run.json", "true", True),
    ("--record", "run.record", "puts.jsonl", Path("puts.jsonl")),
    ("--log", "run.log", "-", Path("-")),
    ("--log-format", "run.log_format", "text", "text"),
    ("--durability", "run.durability", "normal", "normal"),
    ("--lease", "run.lease", "1.5", 1.5),
    ("--console", "run.console", "8414", "8414"),
    ("--command-seconds", "run.command_seconds", "2.5", 2.5),
    ("--command-topics", "run.command_topics", "7", 7),
    ("--command-puts", "run.command_puts", "8", 8),
    ("--command-megabytes", "run.command_megabytes", "9", 9),
    ("--queues", "queues.url", "ibmmq://h:1414/QM1", "ibmmq://h:1414/QM1"),
    ("--listen", "listener.listen", "1414", "1414"),
    ("--topics", "topics.url", "mqtt://h", "mqtt://h"),
    ("--metrics", "metrics.listen", "9157", "9157"),
    ("--tracing", "tracing.endpoint", "console", "console"),
]
# How the program talks, and the file itself.
WITHOUT_A_KEY = {"--quiet", "--debug", "--color", "--config", "--standby"}
TABLES_OF_THEIR_OWN = {"--queues", "--listen", "--topics", "--metrics", "--tracing"}


def option_of_run(spelled: str) -> click.Option:
    (found,) = (each for each in _run().params if isinstance(each, click.Option) and spelled in each.opts)
    return found


def parsed(*words: str) -> dict[str, Any]:
    """What ``run`` gets when it is called with these words."""
    context = _run().make_context("run", list(words), click.Context(main, obj=Console(io.BytesIO(), io.StringIO())))
    return context.params


def _run() -> click.Command:
    command = main.get_command(click.Context(main), "run")
    assert command is not None
    return command


def test_every_option_of_run_has_a_key_and_every_key_is_tried() -> None:
    options = {option.opts[0] for option in _run().params if isinstance(option, click.Option)}
    assert {row[0] for row in OPTIONS} == options - WITHOUT_A_KEY
    keys = {f"run.{field.alias or name}" for name, field in RunConfig.model_fields.items()}
    assert keys <= {row[1] for row in OPTIONS}


@pytest.mark.parametrize(("option", "key", "text", "value"), OPTIONS, ids=[row[0] for row in OPTIONS])
def test_every_option_of_run_can_be_a_variable_and_a_key(
    home: Path, monkeypatch: pytest.MonkeyPatch, option: str, key: str, text: str, value: object
) -> None:
    given, name = ("-m", "QM1") if option != "--qmgr" else (), option_of_run(option).name
    assert name is not None
    assert parsed("-m", "QM1")[name] != value, "another value than the default shows something"

    with monkeypatch.context() as environment:
        environment.setenv(f"QPUBSUB_RUN_{option[2:].replace('-', '_').upper()}", text)
        assert parsed(*given)[name] == value

    table, _, last = key.partition(".")
    plain = isinstance(value, bool | int | float)
    (home / "c.toml").write_text(f"[{table}]\n{last} = {text if plain else json.dumps(text)}\n")
    found = parsed(*given, "--config", "c.toml")
    if option in TABLES_OF_THEIR_OWN:
        assert getattr(getattr(found["config"], table), last) == value
        assert found[name] is None
    else:
        assert found[name] == value


def test_a_variable_that_other_verbs_have_too_counts_less(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QPUBSUB_QMGR", "QM1")
    assert parsed()["qmgr"] == "QM1"
    monkeypatch.setenv("QPUBSUB_RUN_QMGR", "QM2")
    assert parsed()["qmgr"] == "QM2"
