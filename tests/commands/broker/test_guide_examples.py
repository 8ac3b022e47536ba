"""The worked examples of the guide (fixtures/guide): they decode to what the guide says, and lead to what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands.broker.puts import Put, PutKind
from commands.headers.registry import parse
from commands.model import Publish, RegisterSubscriber, RegOpt
from commands.mqsc.broker import Broker
from rfh2.captured import CapturedMessage
from tests.commands.scenario import Answer, Received

FIXTURE = Path(__file__).parents[3] / "fixtures" / "guide"
SERVICE = b"RESULTS.SERVICE".ljust(24, b"\0")


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURE / name).read_text().splitlines()]


def puts(name: str) -> list[Received]:
    return [Received(Put.model_validate(line)) for line in lines(f"{name}.puts.jsonl")]


@pytest.mark.parametrize("name", ["commands", "headers", "streams", "subscription-points"])
def test_every_example_is_a_command_and_has_its_puts(name: str) -> None:
    setup = FIXTURE / f"{name}.mqsc"
    broker = Broker("QM1", setup.read_text() if setup.exists() else "")
    given = [CapturedMessage.model_validate(line) for line in lines(f"{name}.jsonl")]
    assert all(parse(message.decode()).word for message in given)
    made = [put.model_dump_json() for message in given for put in broker.handle(message)]
    assert made == (FIXTURE / f"{name}.puts.jsonl").read_text().splitlines()


@pytest.mark.rule("CMD-3")
def test_6_7_what_becomes_of_the_examples() -> None:
    got = puts("commands")
    assert [(p.put.seq, p.put.kind, p.queue) for p in got] == [
        (1, PutKind.RESPONSE, "RESULTS.Q"),
        (4, PutKind.PUBLICATION, "RESULTS.Q"),
        (4, PutKind.RESPONSE, "RESULTS.Q"),
        (6, PutKind.RESPONSE, "RESULTS.Q"),
    ]
    assert [p.completion for p in got if p.put.kind is PutKind.RESPONSE] == ["ok"] * 3
    assert {p.mqmd.correl_id for p in got} == {SERVICE}
    assert (got[1].topic, got[1].data) == ("Sport/Soccer/State/LatestScore/Team1 Team2", b"2:1")


def test_6_7_4_the_example_asks_for_two_options() -> None:
    command = parse(CapturedMessage.model_validate(lines("commands.jsonl")[0]).decode())
    assert isinstance(command, RegisterSubscriber)
    assert command.options == (RegOpt.PUB_ON_REQ_ONLY, RegOpt.CORREL_AS_ID)


@pytest.mark.rule("RESP-9")
def test_6_7_6_the_responses_as_the_guide_prints_them() -> None:
    read = [CapturedMessage.model_validate(line).decode() for line in lines("responses.jsonl")]
    texts = [[folder.name for folder in message.headers[0].folders] for message in read]  # type: ignore[attr-defined]
    assert texts == [["pscr"], ["pscr", "psc"], ["pscr", "psc"]]
    responses = [_response(line) for line in lines("responses.jsonl")]
    assert [(r.completion, r.answers) for r in responses] == [
        ("ok", []),
        ("error", [Answer(3150)]),
        ("warning", [Answer(3081, (("Topic", "topic1"),)), Answer(3081, (("Topic", "topic2"),))]),
    ]


def _response(line: dict[str, Any]) -> Received:
    return Received(
        Put(seq=1, n=0, kind=PutKind.RESPONSE, qmgr="QM1", queue="Q", md_hex=line["md_hex"], body_hex=line["body_hex"])
    )


@pytest.mark.rule("HDR-12")
def test_6_6_headers() -> None:
    with_folders, with_two = (CapturedMessage.model_validate(line).decode() for line in lines("headers.jsonl"))
    assert parse(with_folders) == parse(with_two) == Publish(topics=("Sport/Soccer/Event/MatchStarted",))
    header = with_folders.rfh2
    assert header is not None
    assert [folder.name for folder in header.folders] == ["mcd", "psc", "usr", "jms", "com.ourcompany.xxx"]
    assert [header.kind for header in with_two.headers] == ["MQRFH2", "MQRFH2"]
    assert (with_two.headers[0].format, with_two.body_format) == ("MQHRF2", "")


@pytest.mark.rule("SP-1")
def test_6_2_subscription_points() -> None:
    got = puts("subscription-points")
    assert [(p.queue, p.data) for p in got if p.put.kind is PutKind.PUBLICATION] == [
        ("USD.Q", b"91.51"),
        ("GBP.Q", b"64.36"),
    ]
    assert [p.put.topic for p in got if p.put.topic] == ["USD/NYSE/IBM/SPOT", "GBP/NYSE/IBM/SPOT"]
    assert [p.answers for p in got if p.queue == "EUR.Q"] == [[Answer(3072, (("SubPoint", "EUR"),))]]


@pytest.mark.rule("STR-1")
def test_6_1_streams() -> None:
    got = puts("streams")
    assert [(p.queue, p.topic, p.data) for p in got if p.put.kind is PutKind.PUBLICATION] == [
        ("READER.Q", "xyz/Soccer/Results", b"2:1")
    ]
