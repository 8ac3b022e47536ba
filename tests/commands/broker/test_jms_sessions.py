"""JMS programs in migration mode, end to end: the shipped captures give the golden puts, and those are right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands import Broker, Put, PutKind
from commands.broker.objects import QueueManager
from commands.cli import main
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from rfh2.captured import CapturedMessage
from rfh2.message import Message, decode
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2
from tests.commands.jms_sessions import (
    DURABLE_QUEUE,
    FIXTURES,
    NON_DURABLE_QUEUE,
    OPENING,
    REPORT,
    SUB_NAME,
    UNKNOWN,
    Client,
    capture,
)
from tests.commands.results_service import as_lines

VERSIONS = ("V1", "V2")
pytestmark = pytest.mark.parametrize("version", VERSIONS)


def files(version: str) -> tuple[Path, Path]:
    """The capture and its golden puts."""
    return FIXTURES / f"{version.lower()}.jsonl", FIXTURES / f"{version.lower()}-puts.jsonl"


def lines(puts: list[Put]) -> str:
    return "".join(put.model_dump_json() + "\n" for put in puts)


# However it is run, the same bytes


def test_the_shipped_capture_is_what_its_program_makes(version: str) -> None:
    assert files(version)[0].read_text() == as_lines(capture(version))


@pytest.mark.parametrize("semantics", ["v7", "v6"])
def test_the_replay_gives_the_golden_puts(tmp_path: Path, version: str, semantics: str) -> None:
    source, golden = files(version)
    target = tmp_path / "puts.jsonl"
    arguments = ["replay", "--semantics", semantics, "--input", str(source), "--output", str(target)]
    result = CliRunner().invoke(main, arguments)
    # The DeregSub that was one too late is answered in error, which is no problem of the data.
    assert result.exit_code == 0, result.output
    assert target.read_bytes() == golden.read_bytes()


def test_the_processor_gives_the_puts_of_the_replay(tmp_path: Path, version: str) -> None:
    """All at one time, for a processor has one clock and a capture a time for each message."""
    messages = [each.model_copy(update={"time": OPENING}) for each in capture(version)]
    broker = Broker("QM1")
    replayed = [put for each in messages for put in broker.handle(each)]
    live: list[Put] = []
    with QueueManagerStore.create(tmp_path, QueueManager("QM1")) as store:
        with store.unit_of_work() as unit:
            for message in messages:
                unit.put(message.queue, message.md, message.body, user=message.user)
        Processor(store, lambda: OPENING, live.append).drain()
    assert lines(live) == lines(replayed)


def test_run_refuses_the_clients_tag_where_it_is_told_to(tmp_path: Path, version: str) -> None:
    def run(*arguments: str, stdin: str = "") -> str:
        result = CliRunner().invoke(main, arguments, input=stdin, env={"QPUBSUB_HOME": str(tmp_path)})
        return result.stderr

    run("create", "QM1")
    run("mqsc", "-m", "QM1", stdin="ALTER QMGR CUSTOM('PSCTAGS(STRICT)')\n")
    with QueueManagerStore.open(tmp_path, "QM1") as store, store.unit_of_work() as unit:
        for message in capture(version):
            unit.put(message.queue, message.md, message.body, user=message.user)
    # An MQRFH's own names were always free.
    refused = "10 dead letters" if version == "V2" else "0 dead letters"
    assert refused in run("run", "-m", "QM1", "--once")


# What has to come of it, independent of the golden files


@pytest.fixture
def puts(version: str) -> list[Put]:
    return [Put.model_validate_json(line) for line in files(version)[1].read_text().splitlines()]


@pytest.fixture
def clients(version: str) -> dict[str, Client]:
    return {name: Client(name, at, version) for at, name in enumerate(("pricer", "viewer", "desk"), 1)}


def message(put: Put) -> Message:
    return decode(bytes.fromhex(put.body_hex), bytes.fromhex(put.md_hex))


def said(put: Put) -> list[tuple[str, str]]:
    """The pairs of the header that is about publish/subscribe, by their psc tags."""
    header = message(put).headers[0]
    if isinstance(header, Rfh2):
        return header.folders[0].pairs()
    assert isinstance(header, Rfh1)
    return [(name.removeprefix("MQPS"), value) for name, value in header.pairs()]


def received(puts: list[Put], queue: str, correl_id: bytes) -> list[Put]:
    """What one subscriber finds on a shared queue."""
    found = [put for put in puts if put.kind is PutKind.PUBLICATION and put.queue == queue]
    return [put for put in found if message(put).mqmd.correl_id == correl_id]


def texts(puts: list[Put]) -> list[str]:
    return [message(put).body.decode() for put in puts]


def answers(puts: list[Put]) -> list[Put]:
    return [put for put in puts if put.kind is PutKind.RESPONSE]


def test_nothing_is_a_dead_letter_and_all_answers_go_to_the_report_queue(puts: list[Put]) -> None:
    assert {put.kind for put in puts} == {PutKind.PUBLICATION, PutKind.RESPONSE}
    assert {put.queue for put in answers(puts)} == {REPORT}


def test_no_local_is_the_clients_work_and_it_finds_what_it_needs(puts: list[Put], clients: dict[str, Client]) -> None:
    pricer = clients["pricer"]
    got = received(puts, NON_DURABLE_QUEUE, pricer.correl_id(1))
    others = [put for put in got if dict(said(put))["UNIQUE_CONNECTION_ID"] != pricer.connection_id]
    assert texts(others) == ["2001", "2002"]
    assert len(got) == 7


def test_each_selector_lets_through_what_it_is_true_of(
    version: str, puts: list[Put], clients: dict[str, Client]
) -> None:
    got = [texts(received(puts, NON_DURABLE_QUEUE, clients["viewer"].correl_id(at))) for at in (2, 3, 4)]
    everything = ["1999", "2000", "2001", "2002", "2003"]
    persistent = [text for text in everything if text != "2002"]
    assert got == ([["2000"], persistent, ["2001"]] if version == "V2" else [everything] * 3)


def test_what_a_crashed_subscriber_had_goes_on_until_its_registrations_do(
    puts: list[Put], clients: dict[str, Client]
) -> None:
    assert texts(received(puts, NON_DURABLE_QUEUE, clients["viewer"].correl_id(1))) == ["25", "26"]


def test_the_durable_subscription_gets_each_publication_once_also_while_nobody_is_there(
    puts: list[Put], clients: dict[str, Client]
) -> None:
    got = received(puts, DURABLE_QUEUE, clients["desk"].correl_id(1))
    assert texts(got) == ["1999", "2000", "2001", "2002", "25", "2003", "26", "2004"]
    assert {put.sub_name for put in got} == {SUB_NAME}


def test_publications_keep_their_persistence_unless_the_subscriber_is_non_durable(
    puts: list[Put], clients: dict[str, Client]
) -> None:
    assert {message(put).mqmd.persistence for put in puts if put.queue == NON_DURABLE_QUEUE} == {0}
    got = received(puts, DURABLE_QUEUE, clients["desk"].correl_id(1))
    assert texts([put for put in got if message(put).mqmd.persistence == 0]) == ["2002"]


def test_the_jms_folders_go_through_untouched(puts: list[Put]) -> None:
    for put in puts:
        if put.kind is PutKind.PUBLICATION:
            *_, jms = (header for header in message(put).headers if isinstance(header, Rfh2))
            assert [folder.name for folder in jms.folders if folder.name in ("mcd", "jms")] == ["mcd", "jms"]


def test_every_answer_in_order(puts: list[Put]) -> None:
    found = [(put.completion, put.reason) for put in answers(puts)]
    ok = ("ok", None)
    assert found == [
        *[ok] * 6,  # the subscribers come
        ("error", 3156),  # a clone, while the first session holds the subscription
        ok,
        ok,
        ("warning", 3157),
        *[ok] * 4,  # what is left of the viewer goes
        ("error", 3073),
        ("error", 3155),  # unsubscribe, while two are there, and then one
        ok,
        ("error", 3155),
        *[ok] * 6,
    ]


def test_unsubscribe_learns_the_true_topic_queue_and_correl_id(
    version: str, puts: list[Put], clients: dict[str, Client]
) -> None:
    resumed, removed, made, _, _ = answers(puts)[-5:]
    for put in (resumed, removed):
        told = dict(said(put))
        assert told["Topic"] == ("prices/#" if version == "V2" else "prices/*")
        assert (told["QMgrName"], told["QName"]) == ("QM1", DURABLE_QUEUE)
        assert told["CorrelId"] == clients["desk"].correl_id(1).hex().upper()
    assert dict(said(made))["Topic"] == UNKNOWN


def test_nothing_is_left_of_the_subscriptions(version: str) -> None:
    broker = Broker("QM1")
    for each in capture(version):
        broker.handle(each)
    assert broker.space.subscriptions() == ()


def test_decode_finds_nothing_wrong_with_them_nor_with_what_comes_of_them(tmp_path: Path, version: str) -> None:
    golden = [Put.model_validate_json(line) for line in files(version)[1].read_text().splitlines()]
    out = tmp_path / "out.jsonl"
    with out.open("w") as file:
        for seq, put in enumerate(golden, 1):
            fields = {"seq": seq, "time": None, "qmgr": put.qmgr, "queue": put.queue, "user": None}
            file.write(CapturedMessage(**fields, md_hex=put.md_hex, body_hex=put.body_hex).model_dump_json() + "\n")
    for path in (files(version)[0], out):
        result = CliRunner().invoke(main, ["decode", "--json", str(path)])
        assert result.exit_code == 0, result.output
        found = [json.loads(line) for line in result.stdout.splitlines()]
        assert len(found) == len(path.read_text().splitlines())
        assert [problem for one in found for problem in one["problems"]] == []
