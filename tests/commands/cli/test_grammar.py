"""One grammar for all verbs: the same options mean the same on each, and stand before the verb or behind it.

What a verb does is tested with the verb. Here are tables over all of them: what each accepts, and what each help says.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest

from commands.cli import main
from commands.options.rows import MESSAGE_COLUMNS
from commands.options.verb import Verb
from commands.terminal.console import ExitCode
from tests.commands.cli_runs import Ran, run
from tests.waiting import PATIENCE_S

FIXTURES = Path(__file__).parents[3] / "fixtures"
CAPTURE = FIXTURES / "results-service" / "capture.jsonl"

READS_FILES = ["decode", "encode", "convert", "translate", "put", "replay", "differences", "analyse"]
PRINTS = ["decode", "encode", "convert", "translate", "mqsc", "get", "browse", "sub", "check", "cleanup", "topics"]
PRINTS += ["status", "replay", "generate", "strmqbrk", "differences", "extract", "apply", "verify"]
PRINTS += ["why", "passwd", "config check", "estate plan", "estate status", "shares status"]
LOOKS = ["browse", "status", "topics", "why"]


COMMANDS = {words: command for words, command in main.every_command() if isinstance(command, Verb)}
SILENT = ("demo", "mcp", "shares create", "shares run")
"""Without JSON: the demo prints what others print, and an assistant speaks its own."""


def verb(name: str) -> Verb:
    return COMMANDS[name]


def options(name: str) -> set[str]:
    return {word for parameter in verb(name).params for word in parameter.opts}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QPUBSUB_HOME", str(tmp_path / "qmgrs"))
    monkeypatch.delenv("QPUBSUB_QMGR", raising=False)
    monkeypatch.chdir(tmp_path)
    assert run("create", "QM1").code == 0
    return tmp_path


def test_every_verb_has_the_options_of_what_it_does() -> None:
    common, printing = {"-q", "--quiet", "--debug", "--color"}, {"-o", "--output"}
    assert [name for name in COMMANDS if not common <= options(name)] == []
    assert [name for name in COMMANDS if name not in SILENT and "--json" not in options(name)] == []
    assert [name for name in PRINTS if not printing <= options(name)] == []


def test_captures_are_arguments_and_a_dash_is_stdin() -> None:
    for name in READS_FILES:
        (files,) = [each for each in verb(name).params if each.name == "files"]
        assert isinstance(files, click.Argument), name
        assert (files.nargs, files.make_metavar(click.Context(main))) == (-1, "[FILE|-]..."), name
        assert isinstance(files.type, click.Path), name
        assert files.type.allow_dash, name


def test_every_help_says_the_exit_codes_and_has_an_example() -> None:
    for name in COMMANDS:
        ran = run_help(name)
        assert re.search(r"Exit codes: 0 \w+", ran), name
        assert f"  qpubsub {name}" in ran or "| qpubsub " + name in ran, name


# IBM's options, and numbers of plans and of copies, where the word is that of a form or a file elsewhere.
SEVERAL = {
    "-o": "migmbbrk",
    "-l": "migmbbrk",
    "--before": "estate diff",
}
SAME = {"FILE|-": "FILE", "DIRECTORY|URL": "DIRECTORY"}


def test_an_option_means_the_same_wherever_it_is() -> None:
    """A file, a number, a time ... or nothing that follows; what ``--to`` may be are forms, by name."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for name, command in COMMANDS.items():
        for option in (each for each in command.params if isinstance(each, click.Option)):
            metavar = "" if option.is_flag else option.make_metavar(click.Context(command))
            metavar = "FORMAT" if metavar.startswith("[") and "|" in metavar else SAME.get(metavar, metavar)
            for word in option.opts:
                if SEVERAL.get(word) != name:
                    kinds[word].add(metavar)
    assert {word: found for word, found in kinds.items() if len(found) > 1} == {}
    shown = {metavar for found in kinds.values() for metavar in found}
    assert [metavar for metavar in shown if re.search("INTEGER|FLOAT|RANGE", metavar)] == []


FORMER = [(name, old, new) for name, each in COMMANDS.items() for old, new in each.former.items()]


@pytest.mark.parametrize(("name", "old", "new"), FORMER, ids=[f"{name} {old}" for name, old, _ in FORMER])
def test_a_former_option_is_noted_and_listed(name: str, old: str, new: str) -> None:
    """It is no option of the verb any more, and the one that it stands for is."""
    assert (old in options(name), new.partition("=")[0] in options(name)) == (False, True)
    said = run(*name.split(), old, "1", "x", "y", "--nothing").talk
    assert said.startswith(f"{old} is now {new}; the former name still works\n")
    table = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text().partition("## Former names")[2]
    assert f"`{name} {old}" in table


def run_help(name: str) -> str:
    with click.Context(main, info_name="qpubsub") as parent:
        return verb(name).get_help(click.Context(verb(name), info_name=name, parent=parent))


def example_lines() -> list[str]:
    found = []
    for name in COMMANDS:
        block = (verb(name).epilog or "").split("Exit codes:")[0]
        text = block.replace("\\\n", " ")
        found += [line.strip() for line in text.splitlines() if "qpubsub" in line]
    return found


def test_every_example_is_a_command_line_that_its_verb_accepts() -> None:
    """Each ``qpubsub ...`` of a line parses: its options exist, and its arguments are enough."""
    lines = example_lines()
    assert len(lines) > len(COMMANDS)
    for part in (part for line in lines for part in re.split(r" [|] | < ", line)):
        words = shlex.split(part)
        if words[0] != "qpubsub":
            continue
        own = 2 if words[1] in COMMANDS else 3
        command = verb(" ".join(words[1:own]))
        parser = command.make_parser(click.Context(command))
        _, rest, _ = parser.parse_args(words[own:])
        assert rest == [], part


COMMON = [("-q",), ("--quiet",), ("--debug",), ("--color", "never"), ("--color=always",)]


@pytest.mark.parametrize("given", COMMON, ids=" ".join)
@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_common_options_stand_on_either_side(home: Path, given: tuple[str, ...], before: bool) -> None:
    words = (*given, "decode", "--brief", str(CAPTURE)) if before else ("decode", "--brief", str(CAPTURE), *given)
    ran = run(*words)
    assert ran.code == run("decode", "--brief", str(CAPTURE)).code
    assert (ran.talk == "") is bool({"-q", "--quiet"} & set(given))
    assert ("\x1b[" in ran.out) is ("--color=always" in given)


COLOURS = [
    ("terminal", True, {}, (), True),
    ("pipe", False, {}, (), False),
    ("no-color", True, {"NO_COLOR": "1"}, (), False),
    ("empty-no-color", True, {"NO_COLOR": ""}, (), True),
    ("force", False, {"FORCE_COLOR": "1"}, (), True),
    ("no-color-wins", False, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, (), False),
    ("option-over-no-color", False, {"NO_COLOR": "1"}, ("--color", "always"), True),
    ("option-over-force", True, {"FORCE_COLOR": "1"}, ("--color", "never"), False),
    ("auto", False, {}, ("--color", "auto"), False),
]


@pytest.mark.parametrize(
    ("terminal", "variables", "given", "coloured"), [c[1:] for c in COLOURS], ids=[c[0] for c in COLOURS]
)
def test_colours(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, variables: dict[str, str], given: tuple[str, ...], coloured: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ran = run("decode", str(CAPTURE), *given, terminal=terminal)
    assert ("\x1b[" in ran.out) is coloured


TYPOS = [
    ("decod", "Did you mean decode"),
    ("stauts", "Did you mean status"),
    ("strmqbkr", "Did you mean strmqbrk"),
    ("zzz", "qpubsub --help lists the commands"),
]


@pytest.mark.parametrize(("typed", "said"), TYPOS, ids=[typed for typed, _ in TYPOS])
def test_an_unknown_verb_gets_a_suggestion(typed: str, said: str) -> None:
    ran = run(typed)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"No such command '{typed}'" in ran.talk
    assert said in ran.talk


def test_analyze_is_analyse() -> None:
    given = (str(CAPTURE), "--json")
    assert run("analyze", *given).out == run("analyse", *given).out != ""


WORDS = [(("help",), ("--help",)), (("help", "decode"), ("decode", "--help")), (("version",), ("--version",))]


@pytest.mark.parametrize(("words", "options_"), WORDS, ids=[" ".join(words) for words, _ in WORDS])
def test_help_and_version_are_words_too(
    words: tuple[str, ...], options_: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for given in (words, options_):
        assert run(*given).code == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != ""


FORMER = [
    (("replay", str(CAPTURE), "--tell"), "--tell is now --transcript"),
    (("generate", "--messages", "3", "--to", "jsonl", "--setup", "s.mqsc"), "--setup is now --write-setup"),
]


@pytest.mark.parametrize(("words", "note"), FORMER, ids=[note for _, note in FORMER])
def test_a_former_spelling_works_with_a_note(home: Path, words: tuple[str, ...], note: str) -> None:
    ran = run(*words)
    assert ran.code == 0
    assert ran.talk.startswith(f"{note}; the former name still works\n")


# Output


@pytest.mark.parametrize(
    "words",
    [("decode", "--json"), ("translate",), ("convert", "--to", "hex"), ("replay",)],
    ids=" ".join,
)
def test_o_writes_what_stdout_would_get(home: Path, words: tuple[str, ...]) -> None:
    printed = run(*words, str(CAPTURE))
    to_file = run(*words, str(CAPTURE), "-o", "out.jsonl")
    assert (to_file.code, to_file.out) == (printed.code, "")
    assert (home / "out.jsonl").read_text() == printed.out != ""
    assert run(*words, str(CAPTURE), "-o", "-").out == printed.out
    assert [path.name for path in home.iterdir() if path.name.startswith(".")] == []


def test_what_a_verb_that_failed_had_written_stays_under_another_name(home: Path) -> None:
    (home / "out.json").write_text("before")
    ran = run("decode", "--json", str(CAPTURE), str(home), "no-such-file", "-o", "out.json")
    assert (ran.code, (home / "out.json").read_text()) == (ExitCode.USAGE, "before")
    assert [path.name for path in home.iterdir() if path.name.startswith(".")] == []


def test_messages_that_were_got_are_not_lost_with_their_file(home: Path) -> None:
    """A partial file of a killed ``get -o`` is not written over."""
    (home / ".out.jsonl.partial").write_text("of a killed get")
    assert run("put", "-m", "QM1", "A", str(CAPTURE)).code == 0
    assert run("get", "-m", "QM1", "A", "-o", "out.jsonl").code == 0
    assert (home / ".out.jsonl.partial").read_text() == "of a killed get"
    assert len((home / "out.jsonl").read_text().splitlines()) == 26


WRITERS = [("decode",), ("convert", "--to", "hex"), ("generate", "--messages", "10", "--to", "jsonl")]


@pytest.mark.parametrize("words", WRITERS, ids=" ".join)
def test_a_device_is_written_and_not_replaced(home: Path, words: tuple[str, ...]) -> None:
    os.mkfifo(home / "pipe")
    capture = () if words[0] == "generate" else (str(CAPTURE),)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((home / "pipe").read_bytes)
        assert run(*words, *capture, "-o", "pipe").code == 0
        assert read.result(timeout=PATIENCE_S).count(b"\n") > 9
    assert (home / "pipe").is_fifo()
    assert [path.name for path in home.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("words", [*WRITERS, ("replay",), ("differences",)], ids=" ".join)
def test_a_link_stays_and_its_file_is_written(home: Path, words: tuple[str, ...]) -> None:
    (home / "there").mkdir()
    (home / "there" / "file.jsonl").write_text("before")
    (home / "link.jsonl").symlink_to(home / "there" / "file.jsonl")
    capture = () if words[0] == "generate" else (str(CAPTURE),)
    assert run(*words, *capture, "-o", "link.jsonl").code in (0, 1)
    assert (home / "link.jsonl").is_symlink()
    assert (home / "there" / "file.jsonl").read_text() != "before"
    assert [path.name for path in (home / "there").iterdir()] == ["file.jsonl"]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [*WRITERS, ("analyse", "--html")], ids=" ".join)
def test_a_full_disk_is_one_line(words: tuple[str, ...]) -> None:
    capture = () if words[0] == "generate" else (str(CAPTURE),)
    ran = run("-q", words[0], *capture, *words[1:], *(() if "--html" in words else ("-o",)), "/dev/full")
    assert ran.code == ExitCode.USAGE
    assert ran.talk.splitlines()[-1].endswith("no space left on device")
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("words", [*WRITERS, ("replay",), ("differences",)], ids=" ".join)
def test_a_missing_directory_is_named_as_it_was_given(words: tuple[str, ...]) -> None:
    capture = () if words[0] == "generate" else (str(CAPTURE),)
    ran = run("-q", *words, *capture, "-o", "nodir/x.jsonl")
    assert (ran.code, ran.talk) == (ExitCode.USAGE, "qpubsub: nodir/x.jsonl: no such file or directory\n")


# Input


@pytest.mark.parametrize("verb", ["decode", "replay", "analyse", "translate", "differences"])
def test_a_directory_without_captures_is_named(home: Path, verb: str) -> None:
    (home / "empty").mkdir()
    assert "qpubsub: empty: there is no capture in this directory" in run(verb, "empty").talk


@pytest.mark.parametrize("words", [("replay",), ("analyse", "--json"), ("differences", "--json")], ids=" ".join)
def test_a_capture_is_an_argument_an_input_or_stdin(words: tuple[str, ...]) -> None:
    ran = run(*words, str(CAPTURE))
    assert ran.out
    assert run(*words, "--input", str(CAPTURE)).out == ran.out
    assert run(*words, "-", stdin=CAPTURE.read_bytes()).out == ran.out
    assert run(*words, stdin=CAPTURE.read_bytes()).out == ran.out


def test_stdin_that_is_out_of_order_is_sorted(tmp_path: Path) -> None:
    lines = CAPTURE.read_text().splitlines(keepends=True)
    assert run("replay", "-", stdin="".join(reversed(lines))).out == run("replay", str(CAPTURE)).out


def test_several_files_are_one_capture(tmp_path: Path) -> None:
    lines = CAPTURE.read_text().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines[:9]))
    (tmp_path / "b.jsonl").write_text("".join(lines[9:]))
    whole = run("replay", str(CAPTURE)).out
    assert run("replay", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")).out == whole
    assert run("replay", str(tmp_path / "b.jsonl"), "--input", str(tmp_path / "a.jsonl")).out == whole


SPARK = [(("a", "b"), "reads one FILE"), (("-",), "reads one FILE"), (("a",), "needs --output FILE")]


@pytest.mark.parametrize(("files", "said"), SPARK, ids=[" ".join(files) for files, _ in SPARK])
def test_spark_takes_one_path_and_writes_a_directory(files: tuple[str, ...], said: str) -> None:
    ran = run("replay", "--engine", "spark", *files)
    assert ran.code == ExitCode.USAGE
    assert said in ran.talk


# The queue manager


@pytest.mark.parametrize("name", LOOKS)
def test_the_only_queue_manager_is_taken_and_said_where_nothing_is_changed(home: Path, name: str) -> None:
    words = (name, *(["SYSTEM.BROKER.CONTROL.QUEUE"] if name == "browse" else []))
    ran = run(*words)
    assert ran.code == 0
    assert "queue manager QM1, the only one in " in ran.talk
    assert run("create", "QM2").code == 0
    two = run(*words)
    assert (two.code, "holds QM1, QM2" in two.talk) == (ExitCode.USAGE, True)


CHANGES = [("put", "Q", str(CAPTURE)), ("get", "Q"), ("run", "--once"), ("pub", "a", "b"), ("sub", "a"), ("cleanup",)]


@pytest.mark.parametrize("words", CHANGES, ids=[words[0] for words in CHANGES])
def test_what_changes_something_asks_for_it(home: Path, words: tuple[str, ...]) -> None:
    ran = run(*words)
    assert (ran.code, "Missing option '--qmgr' / '-m'" in ran.talk) == (ExitCode.USAGE, True)


def test_the_environment_names_it_for_every_verb(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QPUBSUB_QMGR", "QM1")
    assert run("pub", "a", "b").code == 0
    assert run("run", "--once").code == 0
    assert run("status").talk == ""


DISPLAYS = [("DISPLAY QMGR\n", 0), ("dis qmgr\n* note\nDISPLAY TOPIC(*)\n", 0), ("DEFINE QLOCAL(A)\n", 2), ("", 0)]


@pytest.mark.parametrize(("script", "code"), DISPLAYS)
def test_a_script_of_display_commands_needs_none(home: Path, script: str, code: int) -> None:
    ran = run("mqsc", stdin=script)
    assert ran.code == code
    assert ("the only one in" in ran.talk) is (code == 0)


# Rows


ROWS = [
    ("{topic}={data}", "a,b=c d"),
    (r"{queue}\t{command}", "SYSTEM.BROKER.DEFAULT.STREAM\tPublish"),
    (r"{reason}|{data}\n--", "|c d\n--"),
    ("{}", "{}"),
]


@pytest.mark.parametrize(("form", "line"), ROWS)
@pytest.mark.parametrize("name", ["browse", "get"])
def test_a_message_is_printed_as_a_person_likes(home: Path, name: str, form: str, line: str) -> None:
    assert run("pub", "-m", "QM1", "a,b", "c d").code == 0
    ran = run(name, "-m", "QM1", "SYSTEM.BROKER.DEFAULT.STREAM", "-F", form)
    assert (ran.code, ran.out) == (0, f"{line}\n")


def test_rows_as_csv_begin_with_their_names(home: Path) -> None:
    words = ("browse", "SYSTEM.BROKER.DEFAULT.STREAM", "--csv")
    assert run(*words).out == ",".join(MESSAGE_COLUMNS) + "\n"
    assert run("pub", "-m", "QM1", "a,b", 'c "d"').code == 0
    (row,) = csv.DictReader(run(*words).lines)
    assert (row["topic"], row["data"], row["size"].isdecimal()) == ("a,b", 'c "d"', True)
    assert run("list", "--csv").out == f"qmgr,status,directory\nQM1,Ended,{home}/qmgrs/QM1\n"
    assert run("topics", "--csv").lines[0] == "topic,topic_objects,subscriptions,retained,hidden_below"


CSV = [
    ("status --csv", "queue,depth,oldest_s,puts", {"queue": "SYSTEM.BROKER.CONTROL.QUEUE", "depth": "0"}),
    ("status --list topics --csv", "topic,published,last_publication", None),
    ("status --list subscriptions --csv", "topic,queue,qmgr,name,delivered", None),
    ("why -m QM1 --publish Sport --csv", "seq,topic,queue,sub_name,delivered,reason,detail", None),
    (
        f"why --input {CAPTURE} --csv",
        "seq,topic,queue,sub_name",
        {"seq": "12", "queue": "SCOREBOARD", "reason": "delivered"},
    ),
    (f"analyse {CAPTURE} --table topics --csv", "qmgr,topic,publications", {"publications": "3", "retained": "3"}),
    (f"analyse {CAPTURE} --table never_matched --csv", "qmgr,sub_id,deliveries", None),
]


@pytest.mark.parametrize(("line", "columns", "row"), CSV, ids=[line.partition(" --csv")[0][-30:] for line, *_ in CSV])
def test_each_verb_with_rows_prints_them_as_csv(
    home: Path, line: str, columns: str, row: dict[str, str] | None
) -> None:
    """row: what one of them has; None where there may be none."""
    ran = run(*shlex.split(line))
    assert ran.lines[0].startswith(columns)
    rows = list(csv.DictReader(ran.lines))
    assert row is None or [each for each in rows if row.items() <= each.items()] != []
    assert [each for each in rows if None in each or None in each.values()] == []


def test_a_row_of_status_and_of_analyse_is_printed_as_a_person_likes(home: Path) -> None:
    assert "SYSTEM.BROKER.CONTROL.QUEUE=0" in run("status", "--line", "{queue}={depth}").lines
    line = run("analyse", str(CAPTURE), "--table", "qmgrs", "-F", "{qmgr}: {messages}")
    assert line.lines == ["QM1: 26"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("status --csv --list topics --list subscriptions", "give --list once"),
        (f"analyse {CAPTURE} --csv", "give --table qmgrs|streams|topics"),
        (f"analyse {CAPTURE} --table topics", "--table needs --csv or --line"),
    ],
)
def test_rows_need_one_table(home: Path, line: str, said: str) -> None:
    ran = run(*shlex.split(line))
    assert (ran.code, said in ran.talk) == (ExitCode.USAGE, True)


def test_a_name_that_a_row_lacks_is_refused(home: Path) -> None:
    ran = run("browse", "-m", "QM1", "Q", "-F", "{nothing}")
    assert (ran.code, "{nothing} is not a name; the names are command, topic" in ran.talk) == (ExitCode.USAGE, True)


# JSON


def only_json(ran: Ran) -> dict[str, object]:
    found = json.loads(ran.out)
    assert isinstance(found, dict)
    return found


def test_json_of_what_changes_something(home: Path) -> None:
    assert only_json(run("create", "QM2", "--json"))["qmgr"] == "QM2"
    put = only_json(run("put", "-m", "QM1", "Q", str(CAPTURE), "--json"))
    assert (put["put"], put["queues"]) == (26, {"Q": 26})
    replay = only_json(run("replay", str(CAPTURE), "-o", "puts.jsonl", "--json"))
    assert (replay["messages"], replay["output"]) == (26, "puts.jsonl")
    assert only_json(run("generate", "--messages", "9", "-o", "g.jsonl", "--json"))["messages"] == 9
    assert only_json(run("pub", "-m", "QM1", "a", "b", "--json"))["processor"] is False
    assert only_json(run("run", "-m", "QM1", "--once", "--json"))["commands"] == 1


def test_json_of_the_topics_is_an_object_a_topic(home: Path) -> None:
    script = "DEFINE TOPIC(SPORT) TOPICSTR('Sport')\nDEFINE SUB(S) TOPICSTR('Sport/Soccer') DEST(Q)\n"
    assert run("mqsc", "-m", "QM1", stdin=script).code == 0
    rows = {row["topic"]: row for row in map(json.loads, run("topics", "-m", "QM1", "--json").lines)}
    assert rows["Sport"]["topic_objects"] == ["SPORT"]
    assert rows["Sport/Soccer"]["subscriptions"] == [{"name": "S", "queue": "Q", "qmgr": "QM1"}]


# Files that are written


def test_generate_does_not_replace_a_setup_that_is_there(home: Path) -> None:
    words = ("generate", "--messages", "3", "--to", "jsonl", "--write-setup", "s.mqsc")
    assert run(*words).code == 0
    assert run(*words).code == 0, "the same script is left as it is"
    (home / "s.mqsc").write_text("mine\n")
    ran = run(*words)
    assert (ran.code, ran.out, (home / "s.mqsc").read_text()) == (ExitCode.USAGE, "", "mine\n")
    assert "s.mqsc: the file exists and is not replaced" in ran.talk
