"""The results service in MQRFH, end to end: the capture gives the golden puts, and they are what they must be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands import Put, PutKind
from commands.cli import main
from rfh2.message import Message, decode
from rfh2.pcf import decode_pcf
from rfh2.pcf_names import MQCACF_STREAM_NAME
from rfh2.pcf_parameters import Cfst
from tests.commands.results_service import EVENT, SCORES, as_lines
from tests.commands.results_service_rfh1 import FIXTURE, GOLDEN, SERVICE_ID, SETUP, STREAM, capture

CAPTURE = FIXTURE / "capture.jsonl"


def test_the_shipped_capture_is_what_its_program_makes() -> None:
    assert CAPTURE.read_text() == as_lines(capture())


# docs/conformance.md: OLD-18
@pytest.mark.rule("OLD-18")
@pytest.mark.parametrize("semantics", ["v7", "v6"])
def test_replayed_twice_it_equals_the_golden_puts_byte_for_byte(tmp_path: Path, semantics: str) -> None:
    for name in ("once.jsonl", "twice.jsonl"):
        arguments = ["replay", "--semantics", semantics, "--setup", str(SETUP), "--input", str(CAPTURE)]
        result = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).read_bytes() == GOLDEN[semantics].read_bytes()


# What the guide says must happen, independent of the golden files.


def golden(semantics: str = "v7") -> list[Put]:
    return [Put.model_validate_json(line) for line in GOLDEN[semantics].read_text().splitlines()]


def message(put: Put) -> Message:
    return decode(bytes.fromhex(put.body_hex), bytes.fromhex(put.md_hex))


@pytest.fixture(scope="module")
def puts() -> list[Put]:
    return golden()


def publications(puts: list[Put], queue: str) -> list[Put]:
    return [put for put in puts if put.kind is PutKind.PUBLICATION and put.queue == queue]


def test_6_1_all_topics_lie_below_the_streams_topic_string(puts: list[Put]) -> None:
    topics = {put.topic for put in puts if put.topic is not None}
    assert topics
    assert all(topic.startswith((f"{STREAM}/{EVENT}/", f"{STREAM}/{SCORES}/")) for topic in topics)


@pytest.mark.rule("OLD-18")
def test_mqrfh_subscribers_are_told_topics_without_it(puts: list[Put]) -> None:
    told = []
    for put in publications(puts, "RESULTS.SERVICE"):
        header = message(put).rfh1
        assert header is not None
        told.append(dict(header.pairs())["MQPSTopic"])
    events = Counter(topic.removeprefix(f"{EVENT}/") for topic in told if topic.startswith(EVENT))
    assert events == {"MatchStarted": 2, "ScoreUpdate": 2, "MatchEnded": 2}
    assert len(told) == 8  # and both scores, once asked for


def test_2_4_33_is_correl_as_id_and_pub_on_req_only(puts: list[Put]) -> None:
    """Scores come to the service only in answer to its ReqUpdate; everything has its CorrelId."""
    scores = [put for put in publications(puts, "RESULTS.SERVICE") if SCORES in str(put.topic)]
    assert {put.seq for put in scores} == {16}
    assert all(
        message(put).mqmd.correl_id == SERVICE_ID for put in puts if put.queue == "RESULTS.SERVICE" and put.topic
    )


def test_what_an_ebcdic_simulator_says_keeps_its_code_page(puts: list[Put]) -> None:
    first = message(publications(puts, "RESULTS.SERVICE")[0])
    assert (first.mqmd.coded_char_set_id, first.body_text) == (500, "Newcastle Southampton")


def test_the_scoreboard_hears_in_mqrfh2_with_the_whole_topic(puts: list[Put]) -> None:
    for put in publications(puts, "SCOREBOARD"):
        header = message(put).rfh2
        assert header is not None
        assert dict(header.folders[0].pairs())["Topic"] == put.topic
        assert header.folders[1].text.startswith("<mqpse><Sid>MQPSIntData ")


def test_the_archive_hears_everything_in_pcf_with_the_name_of_the_stream(puts: list[Put]) -> None:
    heard = publications(puts, "ARCHIVE")
    assert len(heard) == 10
    for put in heard:
        said = message(put)
        stream = decode_pcf(said.body, said.body_ccsid).first(MQCACF_STREAM_NAME)
        assert isinstance(stream, Cfst)
        assert stream.text == STREAM


def test_inform_if_ret_and_incl_stream_name_have_a_name_each(puts: list[Put]) -> None:
    for put in publications(puts, "LATE.BOARD"):
        header = message(put).rfh1
        assert header is not None
        assert header.pairs()[:3] == [
            ("MQPSCommand", "Publish"),
            ("MQPSPubOpts", "IsRetainedPub"),
            ("MQPSStreamName", STREAM),
        ]


def test_answers_are_in_the_header_of_the_command(puts: list[Put]) -> None:
    formats = {put.queue: message(put).mqmd.format for put in puts if put.kind is PutKind.RESPONSE}
    assert formats == {
        "RESULTS.SERVICE": "MQHRF",
        "LATE.BOARD": "MQHRF",
        "SCOREBOARD": "MQHRF2",
        "ARCHIVE": "MQPCF",
    }
    reasons = [put.reason for put in puts if put.reason is not None]
    assert reasons == [3077, 3073, 3075]


def test_version_6_keeps_the_stream_from_whoever_names_none() -> None:
    """The MQRFH2 scoreboard's topic string is nothing special there; the others hear the same."""
    old, new = golden("v6"), golden()
    assert publications(old, "SCOREBOARD") == []
    for queue in ("RESULTS.SERVICE", "ARCHIVE", "LATE.BOARD"):
        assert [put.body_hex for put in publications(old, queue)] == [put.body_hex for put in publications(new, queue)]
