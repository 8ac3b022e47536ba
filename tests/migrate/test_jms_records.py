"""SUBSTORE(QUEUE): what is read of SYSTEM.JMS.ADMIN.QUEUE, and what is said of what cannot be read (P23)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.broker.objects import ADMIN_QUEUE, STATUS_QUEUE
from migrate.legacy_state import LegacyState
from migrate.readers.sources import read_sources
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from rfh2.jms_entry import JmsEntry
from rfh2.mqmd import Mqmd
from streams.subscriptions import WildcardScheme
from tests.commands.cli_runs import run
from tests.migrate.legacy_messages import captured, rfh1

SHARED = "SYSTEM.JMS.D.SUBSCRIBER.QUEUE"
FLAGS = b"\0n\0y\0i"
MSG_ID = (9).to_bytes(24, "big")


def entry(queue: str = SHARED, selector: str = "", seq: int = 9) -> CapturedMessage:
    """An entry of the admin queue whose MsgId ends with *seq*."""
    body = JmsEntry(2, "client:news", "Sport/*", queue, selector, FLAGS).encode()
    return captured(seq, ADMIN_QUEUE, (), body, Mqmd(encoding=273, coded_char_set_id=819))


def registered(queue: str = SHARED, correl_id: bytes = MSG_ID) -> CapturedMessage:
    """The RegSub by which the broker knows of it."""
    pairs = [("Command", "RegSub"), ("RegOpts", "CorrelAsId"), ("Topic", "Sport/*"), ("QName", queue)]
    return rfh1(1, pairs, correl_id=correl_id)


def state(tmp_path: Path, *messages: CapturedMessage) -> LegacyState:
    path = tmp_path / "capture.jsonl"
    with path.open("wb") as file:
        write_captures(messages, file, "jsonl")
    return read_sources([str(path)], "QM1")


def test_an_entry_that_no_other_source_tells_of_is_a_subscription(tmp_path: Path) -> None:
    (found,) = state(tmp_path, entry()).subscriptions
    assert (found.topic, found.queue, found.correl_id) == ("Sport/*", SHARED, MSG_ID.hex().upper())
    assert (found.scheme, found.options, found.filter) == (WildcardScheme.CHAR, ("CorrelAsId",), None)
    assert found.unknown == ("expires_at", "format", "user")


def test_a_selector_in_the_brokers_own_words_is_its_filter(tmp_path: Path) -> None:
    (found,) = state(tmp_path, entry(selector="Root.MQRFH2.usr.x = 1")).subscriptions
    assert found.filter == "Root.MQRFH2.usr.x = 1"


@pytest.mark.parametrize("queue", [SHARED, "SYSTEM.JMS.D.MINE"])
def test_an_entry_whose_subscription_the_broker_tells_of_adds_nothing(tmp_path: Path, queue: str) -> None:
    found = state(tmp_path, registered(queue), entry(queue))
    assert [item.queue for item in found.subscriptions] == [queue]
    (left,) = found.unread
    assert (left.is_state, left.count, left.problem) == (False, 1, "P23")


def test_the_subscription_of_another_client_on_the_shared_queue_is_another_one(tmp_path: Path) -> None:
    found = state(tmp_path, registered(correl_id=b"x" * 24), entry())
    assert len(found.subscriptions) == 2


UNREAD = [
    ("another format", lambda: replace_body(entry(), b"MQJMS_PS_SUBENTRY_v3...."), "no signature"),
    ("cut off", lambda: replace_body(entry(), entry().body[:-3]), "3 bytes are left for the flags"),
    ("a status", lambda: entry().model_copy(update={"queue": STATUS_QUEUE, "body_hex": "00"}), "no signature"),
    ("a queue of its own", lambda: entry("SYSTEM.JMS.D.MINE"), "whether its subscription has a CorrelId is not known"),
    ("a selector of the program's", lambda: entry(selector="x = 1"), "applies its selector is not known"),
]


def replace_body(message: CapturedMessage, body: bytes) -> CapturedMessage:
    return message.model_copy(update={"body_hex": body.hex()})


@pytest.mark.parametrize(("made", "why"), [each[1:] for each in UNREAD], ids=[each[0] for each in UNREAD])
def test_p23_what_may_be_a_subscription_and_is_not_known_well_enough_is_unread_state(
    tmp_path: Path, made: object, why: str
) -> None:
    assert callable(made)
    found = state(tmp_path, made())
    assert found.subscriptions == ()
    (left,) = found.unread
    assert (left.is_state, left.problem) == (True, "P23")
    assert why in left.why


def test_p23_strmqbrk_refuses_a_source_with_such_a_message(tmp_path: Path) -> None:
    assert run("create", "QM1", "--home", str(tmp_path / "q")).code == 0
    bad = replace_body(entry(), b"MQJMS?")
    state(tmp_path, registered(), bad)
    words = ("strmqbrk", "-m", "QM1", "--home", str(tmp_path / "q"), "--source", str(tmp_path / "capture.jsonl"))
    ran = run(*words, "-l", str(tmp_path / "log"))
    assert ran.code == 2
    assert run(*words, "-l", str(tmp_path / "log"), "--accept-unread").code == 1
    assert "P23" in (tmp_path / "log").read_text()


# decode


def decoded(tmp_path: Path, message: CapturedMessage, *words: str) -> str:
    state(tmp_path, message)
    return run("decode", *words, str(tmp_path / "capture.jsonl")).out


def test_decode_says_what_an_entry_probably_is(tmp_path: Path) -> None:
    text = decoded(tmp_path, entry(selector="x = 1"), "--brief")
    assert (
        f"JMS subscription of SUBSTORE(QUEUE), probably: client client, name news, to Sport/* for {SHARED}, "
        f"selector x = 1; its messages have CorrelId {MSG_ID.hex().upper()}"
    ) in text


def test_decode_as_json_has_the_entry(tmp_path: Path) -> None:
    assert json.loads(decoded(tmp_path, entry(), "--json"))["jms_subscription"] == {
        "version": 2,
        "client_id": "client",
        "name": "news",
        "topic": "Sport/*",
        "queue": SHARED,
        "selector": None,
        "flags": FLAGS.hex(),
        "correl_id": MSG_ID.hex(),
    }


def test_decode_says_so_of_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    text = decoded(tmp_path, replace_body(entry(), b"MQJMS?"), "--brief")
    assert "A record that JMS classes keep with SUBSTORE(QUEUE), probably: IBM does not document its format" in text
