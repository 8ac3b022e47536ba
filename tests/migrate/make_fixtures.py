"""Makes the captures among the fixtures of migration: python -m tests.migrate.make_fixtures (from the project's root).

They are bytes; this says what is in them. Run again, it makes the same files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from tests.migrate.legacy_messages import psc, publish, register, rfh1

LEGACY = Path(__file__).parents[2] / "fixtures" / "legacy"
CORREL_ID = bytes.fromhex("414D5120514D31202020202020202020AABBCCDD20000101")


def streams() -> list[CapturedMessage]:
    """The results service of guide 6.1: soccer results on stream Sport, prices on Business, news on the default one."""
    return [
        register(1, "Soccer/Results", "Sport", queue_name="RESULTS.Q", user="scores"),
        register(2, "Soccer/*", "Sport", queue_name="EVENING.Q", name="evening", user="scores"),
        register(3, "Soccer/Results", "Business", queue_name="ODDS.Q", name="evening", user="odds"),
        register(4, "*", queue_name="ALL.Q", user="anne", options=["Local"]),
        register(
            5, "Prices/?", "Business", queue_name="PRICES.Q", user="desk1", correl_id=CORREL_ID, options=["CorrelAsId"]
        ),
        psc(
            6,
            "<Command>RegSub</Command><Topic>News/*</Topic><SubName>news</SubName><RegOpt>VariableUserId</RegOpt>",
            reply_to="NEWS.Q",
            user="anne",
        ),
        publish(7, "Soccer/Results", "Sport", b"2:1", user="scores"),
        publish(8, "Soccer/Results", "Sport", b"2:2", user="scores"),
        publish(9, "Soccer/Results", data=b"default stream", user="anne"),
        publish(10, "Prices/A", "Business", b"100", user="desk1", persistence=0),
        rfh1(11, [("Command", "RegPub"), ("StreamName", "Sport"), ("Topic", "Soccer/Results"), ("QName", "SCORES.Q")]),
        register(12, "MQ/SA/QM1/Subscribers/*", "Sport", queue_name="WATCH.Q"),
        rfh1(13, [("Command", "DeregSub"), ("Topic", "never/registered"), ("QName", "NOBODY.Q")]),
        register(14, "Weather", queue_name="SHORT.Q", expiry=100),
    ]


def retained_points() -> list[CapturedMessage]:
    """Prices that a Publication node published at its subscription point."""
    return [
        psc(
            number,
            f"<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>NYSE/IBM/SPOT</Topic>{point}",
            queue="SYSTEM.BROKER.DEFAULT.STREAM",
            data=data,
        )
        for number, (point, data) in enumerate(
            [("<SubPoint>USD</SubPoint>", b"97.42"), ("<SubPoint>GBP</SubPoint>", b"68.11"), ("", b"shares")], 1
        )
    ]


def retained_status() -> list[CapturedMessage]:
    """The one retained publication of guide 8.4, as the broker delivered it on request."""
    folder = "<Command>Publish</Command><PubOpt>IsRetainedPub</PubOpt><Topic>$SYS/Broker/TEST_BROKER/Status</Topic>"
    reply = "SYSTEM.TEMP.MIGMBBRK.REPLY.QUEUE"
    return [psc(1, folder, queue=reply, data=b"<Broker/>", by_broker=True, qmgr="TEST_QM", user="broker")]


def _write(messages: Iterable[CapturedMessage], path: Path, fmt: str) -> None:
    with path.open("wb") as stream:
        write_captures(messages, stream, fmt)


if __name__ == "__main__":
    _write(streams(), LEGACY / "streams" / "capture.jsonl", "jsonl")
    _write(retained_points(), LEGACY / "subscription-points" / "retained.qload", "qload")
    _write(retained_status(), LEGACY / "log-example" / "retained.jsonl", "jsonl")
