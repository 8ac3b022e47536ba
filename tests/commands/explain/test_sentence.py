"""What ``decode --brief`` says of a message in one sentence: subscription point, stream, expiry, dead letters."""

from __future__ import annotations

import pytest

from commands.explain.equivalents.records import consequence_lines, consequences
from commands.explain.problems import explained
from commands.explain.sentence import dead_letter_sentence, sentence
from rfh2 import CapturedMessage, Dlh, Folder, Rfh2
from tests.commands.explain.test_decode_problems import chained, md, psc, put, rfh1


def said(captured: CapturedMessage) -> str:
    found = explained(captured)
    assert found.command is not None
    return sentence(found.command, found.partial.message)


SENTENCES = [
    ("plain", put(psc()), "RegSub: SUB.Q subscribes to a"),
    (
        "subscription-point",
        put(psc("RegSub", "<Topic>a</Topic><SubPoint>USD</SubPoint>")),
        "RegSub: SUB.Q subscribes to a; subscription point USD",
    ),
    (
        "stream",
        rfh1("MQPSCommand RegSub MQPSTopic a MQPSStreamName S.STREAM"),
        "RegSub: SUB.Q subscribes to a; stream S.STREAM",
    ),
    ("tenths", put(psc(), mqmd=md(expiry=15)), "RegSub: SUB.Q subscribes to a; expires after 1.5 s"),
    ("seconds", put(psc(), mqmd=md(expiry=900)), "RegSub: SUB.Q subscribes to a; expires after 90 s"),
    ("minutes", put(psc(), mqmd=md(expiry=1200)), "RegSub: SUB.Q subscribes to a; expires after 2 min"),
    ("a-day", put(psc(), mqmd=md(expiry=864_000)), "RegSub: SUB.Q subscribes to a; expires after 1 day"),
    ("days", put(psc(), mqmd=md(expiry=1_728_000)), "RegSub: SUB.Q subscribes to a; expires after 2 days"),
    (
        "of-a-publication",
        put(psc("Publish"), mqmd=md(expiry=36_000)),
        "Publish: publishes 0 bytes on a; expires after 1 h",
    ),
    (
        "blanks-are-seen",
        put(psc("RegSub", "<Topic>a </Topic><Topic>b,c</Topic>")),
        "RegSub: SUB.Q subscribes to 'a ' and 'b,c'",
    ),
]


@pytest.mark.parametrize(("captured", "text"), [c[1:] for c in SENTENCES], ids=[c[0] for c in SENTENCES])
def test_what_a_command_asks_for(captured: CapturedMessage, text: str) -> None:
    assert said(captured) == text


def letter(*headers: Dlh) -> str | None:
    command = Rfh2((Folder.of(psc()),), coded_char_set_id=1208)
    return dead_letter_sentence(explained(chained(md(format="MQDEAD"), *headers, command)).partial.message)


def test_a_dead_letter_says_its_reason_and_its_first_destination() -> None:
    full = Dlh(2053, "SUB.Q", "QM1", format="MQHRF2")
    assert letter(full) == "Dead letter: 2053 MQRC_Q_FULL: the queue is full; it was to go to SUB.Q on QM1"
    assert letter(Dlh(271, "SUB.Q", format="MQHRF2")) == "Dead letter: 271; it was to go to SUB.Q"
    outer = Dlh(2035, "DEAD.Q", "QM2", format="MQDEAD")
    assert letter(outer, full) == (
        "Dead letter: 2053 MQRC_Q_FULL: the queue is full; it was to go to SUB.Q on QM1"
        " (in the innermost of its dead-letter headers)"
    )


def test_what_is_no_dead_letter() -> None:
    assert dead_letter_sentence(explained(put(psc())).partial.message) is None


def test_6_2_an_unknown_subscription_point_is_called_so() -> None:
    lines = list(consequence_lines(consequences(put(psc("RegSub", "<Topic>a</Topic><SubPoint>USD</SubPoint>")))))
    assert lines[1].startswith("  completion error 3072")
    assert lines[2] == (
        "  because SubPoint 'USD' is unknown: no object in SYSTEM.QPUBSUB.SUBPOINT.NAMELIST has that TOPICSTR"
    )
