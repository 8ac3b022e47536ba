"""Mutants of every message and capture in ``fixtures/``, fed to every reader.

What holds of each: a value comes out, or an error of the project's own; and it costs a bounded time. What the broker
puts, decodes. A message that has been put is gone from its queue when ``run --once`` ends, whatever it was.
"""

from __future__ import annotations

import base64
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, Objects, QueueManager
from commands.broker.reading import natural_queue
from commands.cli.translate import DIALECTS, render
from commands.explain.equivalents.records import MessageView, view
from commands.explain.equivalents.traced_operations import TraceBroker
from commands.explain.problems import explained
from commands.mqsc.administration import Administration
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from commands.qmgr.store import QueueManagerStore
from migrate import read_sources
from rfh2 import CapturedMessage, Folder, Mqmd, QPubSubError, Rfh1, Rfh2, decode, encode
from rfh2.captures import detect
from rfh2.explain.form import json_line
from streams.topic_space import TopicSpace
from tests.commands import cli_runs
from tests.commands.fuzzing import Mutant, check_message, mutate, with_other_bytes
from tests.commands.scenario import KICK_OFF
from tests.reliability import corpus
from tests.reliability.trials import Json, Target

QUEUES: Final = (CONTROL_QUEUE, CONTROL_QUEUE, DEFAULT_STREAM)
_POINTS: Final = ("USD", "GBP", "EUR", "CHF", "Sport", "P")
_QUOTED: Final = ", ".join(f"'{point}'" for point in _POINTS)
_SETUP: Final = "\n".join(
    (
        "DEFINE TOPIC(N) TOPICSTR('news') PUB(DISABLED)",
        *(f"DEFINE TOPIC('{point}') TOPICSTR('{point}')" for point in _POINTS),
        f"ALTER NAMELIST(SYSTEM.QPUBSUB.SUBPOINT.NAMELIST) NAMES({_QUOTED})",
    )
)
_BATCH: Final = 100


def message_of(mutant: Mutant, queue: str) -> Json:
    """*mutant* on *queue*, as a case."""
    md = mutant.mqmd.encode() if isinstance(mutant.mqmd, Mqmd) else mutant.mqmd
    return {"queue": queue, "md": None if md is None else md.hex(), "body": mutant.body.hex()}


def captured_of(case: Json, seq: int = 1) -> CapturedMessage:
    """The message of a case."""
    return CapturedMessage(
        seq=seq, queue=case["queue"], md_hex=case["md"], body_hex=case["body"], user="app", time=KICK_OFF
    )


def _message(random: Random) -> Json:
    if random.random() < 0.3:
        return message_of(mutate(random, corpus.messages()), random.choice(QUEUES))
    command = random.choice(corpus.commands())
    mutant = mutate(random, corpus.commands()) if random.random() < 0.3 else _mildly(random, command)
    md = mutant.mqmd
    given = CapturedMessage(
        seq=1, queue="", md_hex=md.hex() if isinstance(md, bytes) else None, body_hex=mutant.body.hex()
    )
    return message_of(mutant, natural_queue(given) or random.choice(QUEUES))


def _mildly(random: Random, command: Mutant) -> Mutant:
    """A command with other words in its folder or string: most still parse."""
    message = decode(command.body, command.mqmd)
    headers: list[Any] = list(message.headers)
    for at, header in enumerate(headers):
        if isinstance(header, Rfh2) and header.folders:
            folders = list(header.folders)
            folders[0] = replace(folders[0], data=_other_words(random, folders[0].data, folders[0].charset, b"<", b">"))
            headers[at] = header.with_folders(tuple(folders))
            break
        if isinstance(header, Rfh1):
            headers[at] = replace(header, data=_other_words(random, header.data, header.string_charset, b" ", b" "))
            break
    return Mutant(encode(replace(message, headers=tuple(headers))), command.mqmd)


_WORDS: Final = (
    *(
        "",
        "a",
        "a/b",
        "#",
        "+",
        "a/#",
        "*",
        "?",
        "%",
        "%*",
        "/",
        "//",
        "MQ/x",
        "$SYS/x",
        "news",
        "news/x",
        "\x7f",
        "\u202e",
    ),
    *("x" * 49, "x" * 10_240, "x" * 10_241, "/" * 200, "A.Q", "QM1", "QM2", "no name", "USD", "0", "-1", "4294967296"),
    *("JoinShared", "JoinExcl", "AddName", "NoAlter", "VariableUserId", "FullResp", "CorrelAsId", "PubOnReqOnly"),
    *(
        "InformIfRet",
        "Local",
        "None",
        "RetainPub",
        "OtherSubsOnly",
        "DeregAll",
        "LeaveOnly",
        "PersAsQueue",
        "a = 1",
        "a =",
    ),
)


def _other_words(random: Random, data: bytes, charset: str, left: bytes, right: bytes) -> bytes:
    """*data* with some stretches of text between *right* and *left* replaced, cut out or doubled."""
    text = data.decode(charset, "replace")
    begin, end = left.decode(), right.decode()
    for _ in range(random.choice((1, 1, 2, 3))):
        parts = text.split(begin)
        # Every second part begins a name and a value; the first two are the folder's own tag.
        at = 2 * random.randrange(1, len(parts) // 2) if len(parts) >= 4 else 0
        name, found, value = parts[at].partition(end) if begin != end else ("", "", parts[at])
        match random.randrange(6):
            case 0:
                parts[at] = name + found + value + random.choice(_WORDS)
            case 1:
                parts[at:at] = parts[at : at + 2]
            case 2:
                del parts[at : at + 2]
            case _:
                parts[at] = name + found + random.choice(_WORDS)
        text = begin.join(parts)
    out = text.encode(charset, "replace")
    return out + " ".encode(charset) * (-len(out) // len(" ".encode(charset)) % 4)


def _decode(case: Json) -> str:
    md = case["md"]
    return check_message(bytes.fromhex(case["body"]), None if md is None else bytes.fromhex(md))


def _explain(case: Json) -> str:
    found = explained(captured_of(case))
    json_line(found.form("case", 0))
    lines = list(view(found.partial, "case", found.command, found.problems, MessageView(lambda _role, text: text)))
    assert all(character.isprintable() for line in lines for character in line), "control characters on the terminal"
    return "with problems" if found.problems else "without"


def subscribed() -> TraceBroker:
    """A broker with subscribers of every kind, who are given what mutants publish."""
    tracer = TraceBroker("QM1", _SETUP)
    seq = 0
    for text in (
        "<Topic>#</Topic><QName>ALL</QName>",
        "<Topic>#</Topic><QName>SEL</QName><Filter>Root.MQMD.Priority &gt;= 0</Filter>",
        "<Topic>+/+</Topic><QName>TWO</QName><SubName>two</SubName><RegOpt>InformIfRet</RegOpt>",
    ):
        header = Rfh2((Folder.of(f"<psc><Command>RegSub</Command>{text}</psc>"),))
        md = Mqmd(format="MQHRF2", user_identifier="sub")
        tracer.trace(
            CapturedMessage(
                seq=(seq := seq + 1), queue=CONTROL_QUEUE, md_hex=md.encode().hex(), body_hex=header.encode().hex()
            )
        )
    for text in (
        "MQPSCommand RegSub MQPSTopic * MQPSQName RFH1.Q",
        "MQPSCommand RegSub MQPSTopic ?*/?* MQPSQName PCF.Q",
    ):
        md = Mqmd(format="MQHRF", user_identifier="sub")
        body = Rfh1(text.encode().ljust(-(-len(text) // 4) * 4)).encode()
        tracer.trace(
            CapturedMessage(seq=(seq := seq + 1), queue=CONTROL_QUEUE, md_hex=md.encode().hex(), body_hex=body.hex())
        )
    return tracer


def _broker(case: Json) -> str:
    tracer = subscribed()
    before = len(tuple(tracer.broker.space.subscriptions()))
    assert before == 5
    traced = tracer.trace(captured_of(case, 100))
    for put in traced.outcome.puts:
        if put.kind.value != "deadletter":
            decode(put.body, put.message.mqmd.encode())
    outcome = traced.outcome
    if outcome.completion is not None and outcome.completion.value == "error":
        assert not outcome.effects, "an error, and yet effects"
    return "no command" if outcome.completion is None else outcome.completion.value


def _translate(case: Json) -> str:
    traced = TraceBroker("QM1").trace(captured_of(case))
    for dialect in DIALECTS:
        lines = list(render(traced, dialect, "case", 0))
        assert all(line.isprintable() for line in lines if dialect != "json"), "control characters on the terminal"
    return f"{len(traced.operations)} operations" if traced.operations else "none"


def _batch(random: Random) -> Json:
    return [_message(random) for _ in range(_BATCH)]


def _put_and_run(case: Json) -> str:
    with tempfile.TemporaryDirectory() as directory:
        home = ["--home", directory]
        assert cli_runs.run("create", "QM1", *home).code == 0
        put = 0
        for queue in dict.fromkeys(QUEUES):
            lines = [
                captured_of(each, seq).model_dump_json() for seq, each in enumerate(case) if each["queue"] == queue
            ]
            ran = cli_runs.run("put", "-m", "QM1", *home, queue, stdin="\n".join(lines))
            assert ran.code in (0, 1), f"put: {ran.code}: {ran.talk}"
            put += int(ran.talk.split("messages put")[0].split()[-1])
        ran = cli_runs.run("run", "-m", "QM1", *home, "--once")
        assert ran.code in (0, 1), f"run: {ran.code}: {ran.talk}"
        assert "6005" not in ran.talk, "the broker failed on a message"
        with QueueManagerStore.open(Path(directory), "QM1") as store:
            assert sum(store.depth(queue) for queue in dict.fromkeys(QUEUES)) == 0
            status = store.load_state()[0]
            queues = [queue for queue in status.queues if store.depth(queue)]
        for queue in queues:
            assert cli_runs.run("browse", "-m", "QM1", *home, queue).code == 0
    return f"{put} put"


def _file(random: Random) -> Json:
    groups: dict[str, list[corpus.Sample]] = {}
    for sample in corpus.captures():
        form = sample.format if sample.format != "auto" else detect(sample.data, sample.name)
        groups.setdefault(form, []).append(sample)
    form = random.choice(sorted(groups))
    sample = random.choice(groups[form])
    data = changed(random, sample.data, random.choice(corpus.captures()).data)
    return {"format": random.choice((form, "auto")), "data": base64.b64encode(data).decode()}


def _captures(case: Json) -> str:
    try:
        records = corpus.read_all(base64.b64decode(case["data"]), case["format"], "case")
    except QPubSubError as error:
        return type(error).__name__
    problems = sum(record.problem is not None for record in records)
    for record in records:
        str(record.problem)
    return "read" if not problems else "in part" if problems < len(records) else "nothing read"


def _legacy(random: Random) -> Json:
    sample = random.choice(corpus.legacy())
    data = changed(random, sample.data, random.choice(corpus.legacy()).data)
    return {"name": sample.format, "data": base64.b64encode(data).decode()}


def _read_legacy(case: Json) -> str:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, case["name"])
        path.write_bytes(base64.b64decode(case["data"]))
        try:
            state = read_sources([str(path)], "QM1")
        except QPubSubError as error:
            return type(error).__name__
    understood = any(True for _ in state.items())
    return "read" if not state.unread else "in part" if understood else "not understood"


def _script(random: Random) -> Json:
    text = random.choice(corpus.scripts()).encode()
    return changed(random, text, random.choice(corpus.scripts()).encode()).decode("utf-8", "replace")


def run_script(case: str) -> str:
    """Run an MQSC script; whether all of its commands were carried out."""
    objects = Objects(QueueManager("QM1"))
    administration = Administration.of(objects, TopicSpace(objects.topics), KICK_OFF)
    good = bad = 0
    for statement in parse(case):
        answer = execute(statement, administration)
        assert answer.lines
        json_line(answer.as_json())
        good, bad = good + answer.ok, bad + (not answer.ok)
    return "done" if not bad else "in part" if good else "refused"


def changed(random: Random, data: bytes, other: bytes) -> bytes:
    """*data* with a few changes, to its bytes or, where it is made of lines, to its lines, words and numbers."""
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        data = (
            _with_other_lines(random, data, other) if random.random() < 0.5 else with_other_bytes(random, data, other)
        )
    return data


_NUMBERS: Final = (b"0", b"-1", b"4294967295", b"99999999999999999999", b"1e9", b"NaN", b"\xd9\xa1", b"65536", b"")


def _with_other_lines(random: Random, data: bytes, other: bytes) -> bytes:
    separator = random.choice((b"\n", b"\n", b" ", b",", b'"'))
    parts = data.split(separator)
    at = random.randrange(len(parts))
    match random.randrange(7):
        case 0:
            parts[at:at] = [parts[at]] * random.choice((1, 2, 50))
        case 1:
            del parts[at]
        case 2:
            parts[at] = random.choice(other.split(separator))
        case 3:
            parts[at], parts[-1] = parts[-1], parts[at]
        case 4:
            parts[at] = random.choice(_NUMBERS)
        case 5:
            parts[at] += random.choice((b" ", b"\t", b"'", b"\\", b"{", b"[", b"\0", b"\r")) * random.choice(
                (1, 2, 500)
            )
        case _:
            parts[at] = parts[at][: random.randrange(len(parts[at]) + 1)]
    return separator.join(parts)


OWN_ERRORS: Final = "a value or an error of the project's own, in bounded time"
TARGETS: Final[tuple[Target, ...]] = (
    Target(
        "decode", f"rfh2.decode, encode, commands.parse: {OWN_ERRORS}; encode is the inverse", _message, _decode, 15_000
    ),
    Target(
        "explain", f"decode's view and JSON: {OWN_ERRORS}; nothing but printable characters", _message, _explain, 2_500
    ),
    Target("broker", "Broker: puts that decode; no effects with an error", _message, _broker, 1_500),
    Target("translate", f"translate to every dialect: {OWN_ERRORS}", _message, _translate, 3_000),
    Target(
        "put-run",
        f"put, run --once, browse of {_BATCH} messages: exit code 0 or 1, nothing left",
        _batch,
        _put_and_run,
        20,
        20.0,
    ),
    Target("captures", f"readers of capture files: {OWN_ERRORS}", _file, _captures, 1_000),
    Target("legacy", f"readers of legacy state: {OWN_ERRORS}", _legacy, _read_legacy, 3_000),
    Target("scripts", f"MQSC: {OWN_ERRORS}; every command is answered", _script, run_script, 1_500),
)
