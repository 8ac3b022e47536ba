"""What programs wrote into messages drives no terminal: whatever the verb, the stream, and where it goes."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commands.mqsc.script import NoMqscFormError, quoted
from commands.terminal.console import Console
from rfh2.captured import CapturedMessage
from rfh2.terminal_escape import harmless, visible
from tests.commands.cli_runs import Ran, run

ESCAPES = "\x1b]0;pwned\x07\x1b[2J\x7f"
# What XML has room for too: an eight-bit control sequence, a reversed line, line ends of Unicode's own.
XML_ESCAPES = "\x9b2J\u202egnorw\u2066\u2028"
HOSTILE = f"{ESCAPES}{XML_ESCAPES}\nFORGED: a line of its own"
_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def driven(shown: str) -> list[str]:
    """The characters of *shown* that a terminal obeys, but for the ends of lines."""
    return [c for c in shown if c not in "\n\t" and not c.isprintable() and not c.isspace()]


def assert_harmless(ran: Ran, *, terminal: bool = False) -> None:
    out = _COLOUR.sub("", ran.out) if terminal else ran.out
    assert driven(out) == []
    assert driven(ran.talk) == []
    assert not any(line.startswith("FORGED") for line in (ran.out + ran.talk).split("\n"))


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Commands of every kind whose topics, names, users, queues and data are hostile."""
    found: list[CapturedMessage] = []

    def add(*options: str) -> None:
        made = run("encode", "--command", *options)
        assert made.code == 0, made.talk
        message = CapturedMessage.model_validate_json(made.out)
        found.append(message.model_copy(update={"seq": len(found) + 1}))

    older = ("--data", HOSTILE, "--user", HOSTILE)
    hostile = (*older, "--property", f"Note={XML_ESCAPES}")
    add("RegSub", "--topic", f"a/{XML_ESCAPES}/#", "--q-name", "SUB.Q", "--sub-name", XML_ESCAPES, *hostile)
    add("RegSub", "--topic", f"never/{XML_ESCAPES}", "--q-name", "SUB.Q2", "--sub-user-data", XML_ESCAPES, *hostile)
    add("Publish", "--topic", f"a/{XML_ESCAPES}/b", "--option", "RetainPub", *hostile)
    add("Publish", "--topic", f"nobody/{XML_ESCAPES}", *hostile)
    add("Publish", "--topic", f"{ESCAPES}*", "--rfh1", *older)
    add("Publish", "--topic", f"{ESCAPES}x", "--pcf", *older)
    add("RegSub", "--topic", f"{ESCAPES}x", "--pcf", "--q-name", HOSTILE, *older)
    add("RegSub", "--topic", "a", "--q-name", "SUB.Q", "--filter", f"'{XML_ESCAPES}' ===", *hostile)
    add("DeregSub", "--topic", f"gone/{XML_ESCAPES}", "--q-name", "SUB.Q", *hostile)
    unreadable = found[0].model_copy(update={"seq": 99, "body_hex": found[0].body_hex[:80] + "ff" * 30})
    path = tmp_path_factory.mktemp("hostile") / "capture.jsonl"
    lines = [m.model_dump_json() for m in (*found, unreadable)]
    lines.append(json.dumps({"seq": 100, "queue": "SYSTEM.BROKER.CONTROL.QUEUE", "qmgr": HOSTILE, "body_hex": "00"}))
    lines.append(json.dumps({"seq": 101, "queue": HOSTILE, "user": HOSTILE, "body_hex": found[0].body_hex}))
    lines.append('{"seq": 102, "queue": "\x1b[2J"}')
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, capture: Path) -> Path:
    """A queue manager that the messages were put to, and the talk of the processor that took them."""
    home = tmp_path_factory.mktemp("home")
    assert run("create", "QM1", "--home", str(home)).code == 0
    for queue in ("SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM", "KEPT.Q"):
        assert_harmless(run("put", "-m", "QM1", "--home", str(home), queue, str(capture)))
    ran = run("run", "-m", "QM1", "--home", str(home), "--once")
    assert "pwned" in ran.talk
    assert_harmless(ran)
    return home


OF_CAPTURES = [
    "decode",
    "decode --brief",
    "decode --explain",
    "decode --json --explain",
    "convert --to hex",
    "translate --to mqsc",
    "translate --to pcf",
    "translate --to mqi",
    "translate --to json",
    "analyse --input",
    "analyse --json --input",
    "differences --input",
    "differences --json --input",
    "replay --transcript --output OUT --input",
    "strmqbrk -m QM1 --home HOME --rehearse --source",
    "strmqbrk -m QM1 --home HOME --rehearse --json --source",
]


@pytest.mark.parametrize("terminal", [False, True], ids=["file", "terminal"])
@pytest.mark.parametrize("verb", OF_CAPTURES)
def test_of_a_capture(verb: str, terminal: bool, capture: Path, home: Path, tmp_path: Path) -> None:
    arguments = verb.replace("OUT", str(tmp_path / "puts.jsonl")).replace("HOME", str(home)).split()
    ran = run(*arguments, str(capture), terminal=terminal)
    # The capture has pieces that cannot be read: a rehearsal ends with the code of the run, which is refused.
    assert ran.code in ((0, 1, 2) if "--rehearse" in arguments else (0, 1)), ran.talk
    assert ran.out
    assert_harmless(ran, terminal=terminal)


OF_QUEUE_MANAGERS = [
    "status",
    "status --json",
    "topics",
    "topics --to html",
    "topics --to svg",
    "browse KEPT.Q",
    "browse SYSTEM.DEAD.LETTER.QUEUE",
    "mqsc SCRIPT",
    "mqsc --json SCRIPT",
]


@pytest.mark.parametrize("terminal", [False, True], ids=["file", "terminal"])
@pytest.mark.parametrize("verb", OF_QUEUE_MANAGERS)
def test_of_a_queue_manager(verb: str, terminal: bool, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.mqsc"
    script.write_text(
        "DISPLAY SUB(*) ALL\nDISPLAY TPSTATUS('#')\nDISPLAY TOPIC(*)\n" + HOSTILE.replace("\n", " ") + "\n"
    )
    name, *rest = verb.replace("SCRIPT", str(script)).split()
    ran = run(name, "-m", "QM1", "--home", str(home), *rest, terminal=terminal)
    assert ran.code in (0, 1), ran.talk
    assert ran.out
    assert_harmless(ran, terminal=terminal)


def test_the_last_errors_of_status_are_a_line_each(home: Path) -> None:
    lines = run("status", "-m", "QM1", "--home", str(home)).lines
    errors = lines[lines.index("Last errors:") + 1 :]
    assert errors
    assert [line for line in errors if not re.match(r"  \d{4}-\d\d-\d\dT", line)] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", HOSTILE),
        ("get", "-m", HOSTILE, "Q"),
        ("get", "-m", "QM1", "--home", "HOME", HOSTILE),
        (HOSTILE,),
        (f"--{HOSTILE}",),
        ("encode", "--command", "RegSub", "--property", HOSTILE),
        ("replay", "--input", "x", "--output", HOSTILE),
    ],
    ids=lambda given: given[0][:6] if given[0][0].isalpha() else "verb",
)
def test_of_an_error(arguments: tuple[str, ...], home: Path) -> None:
    ran = run(*(str(home) if one == "HOME" else one for one in arguments))
    assert ran.code == 2
    assert ran.talk
    assert driven(ran.talk) == []


def test_binary_captures_drive_no_terminal(capture: Path) -> None:
    for form in ("mqmd", "qload", "jsonl"):
        ran = run("convert", "--to", form, str(capture), terminal=True)
        assert ran.out
        assert driven(ran.out) == []


def test_json_means_the_same(capture: Path) -> None:
    """Escapes stand for what they replace: a program that reads JSON sees no difference."""
    read = CapturedMessage.model_validate_json(
        run("convert", "--to", "jsonl", str(capture), terminal=True).out.split("\n")[-2]
    )
    assert (read.queue, read.user) == (HOSTILE, HOSTILE)
    seen = json.loads(run("decode", "--json", str(capture)).out.split("\n")[-3])
    assert seen["captured"]["queue"] == HOSTILE


# The console


def test_lines_are_made_harmless_and_colours_stay() -> None:
    to = Console(io.BytesIO(), io.StringIO())
    to.data(f"{HOSTILE}\tend")
    to.data(f"\x1b[1m{visible(HOSTILE)}\x1b[0m", coloured=True)
    to.line(f'{{"name":"{XML_ESCAPES}\x7f"}}'.encode())
    to.say(HOSTILE)
    to.warn(HOSTILE)
    to.lines(f"one\n{ESCAPES}\n")

    assert isinstance(to.stdout, io.BytesIO)
    assert isinstance(to.stderr, io.StringIO)
    plain, coloured, as_json = to.stdout.getvalue().decode().splitlines()
    assert plain == harmless(HOSTILE) + "\tend"
    assert coloured == f"\x1b[1m{visible(HOSTILE)}\x1b[0m"
    assert json.loads(as_json) == {"name": f"{XML_ESCAPES}\x7f"}
    assert driven(to.stderr.getvalue()) == []
    assert len(to.stderr.getvalue().splitlines()) == 4


WRITERS = {
    "logging": "import logging; logging.getLogger('nobody.hears').warning(text)",
    "warnings": "import warnings; warnings.warn(text)",
    "thread": "import threading; t = threading.Thread(target=int, args=(text,)); t.start(); t.join()",
    "print": "print(text, file=sys.stderr)",
    "lines": "sys.stderr.writelines([text])",
}


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS.keys())
def test_whoever_writes_to_stderr(writer: str) -> None:
    program = f"import sys; from commands.terminal.console import guarded_stderr; text = {ESCAPES + XML_ESCAPES!r}\n"
    program += f"with guarded_stderr():\n    {writer}\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert "pwned" in ran.stderr
    assert driven(ran.stderr) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 日本\u3000\N{NO-BREAK SPACE}", None),
        ("tab\there", None),
        ("\u0641\u200c\u0647\u0627 \u200e", None),
        ("a\nb", "a\\u000ab"),
        ("\x1b[2J", "\\u001b[2J"),
        ("\x9b2J\x7f", "\\u009b2J\\u007f"),
        ("\u202ea\u2066", "\\u202ea\\u2066"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_drives_a_terminal(text: str, shown: str | None) -> None:
    assert harmless(text) == (text if shown is None else shown)


@pytest.mark.parametrize("value", [f"a{c}b" for c in "\t\n\x1b\x7f\x9b\u2028\u202e\ud800"])
def test_mqsc_has_no_form_for_what_the_terminal_would_not_show(value: str) -> None:
    """A script that is printed and run again has to name the same topic."""
    with pytest.raises(NoMqscFormError):
        quoted(value)
