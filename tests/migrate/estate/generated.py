"""A generated estate: brokers in a tree, with the applications of a bank, in sources of several kinds.

The largest brokers have JSON states, as ``extract`` writes them; others have captured commands. Everything comes from
the number of a broker, so that an estate is the same each time. Items that are lost or changed are among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random

from commands.broker.objects import DEFAULT_STREAM
from migrate.legacy_state import (
    LegacyRetained,
    LegacyState,
    LegacySubscription,
    Relation,
    Source,
    StanzaAttribute,
    Stream,
)
from migrate.readers import state_json
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from streams.subscriptions import PublicationFormat
from tests.migrate.legacy_messages import START, publish, register

STREAMS = ("Rates", "Equities", "Bonds", "Settlement", "Payments", "Risk", DEFAULT_STREAM)
APPLICATIONS = ("DESK", "RISK", "PAY", "SETTLE", "BRANCH", "AUDIT")
MARKETS = ("London", "Frankfurt", "NewYork", "Tokyo", "Zurich")
SOURCE = Source(file="generated")
_FAN_OUT = 8
_OF_A_WAVE = 60


@dataclass(frozen=True)
class EstateSize:
    """brokers: how many. largest: so many of them have *most* subscriptions, the others *few*."""

    brokers: int
    largest: int
    most: int
    few: int


def qmgr_name(number: int) -> str:
    """Of a broker; the first twelve characters differ."""
    return f"QM{number:03}"


def parent_of(number: int) -> int | None:
    """In a tree with eight children for each; None for the root."""
    return None if number == 0 else (number - 1) // _FAN_OUT


def wave_of(number: int) -> int:
    """The first wave has one broker."""
    return 1 if number == 0 else 2 + (number - 1) // _OF_A_WAVE


def write_estate(directory: Path, size: EstateSize) -> None:
    """estate.toml and the sources below *directory*."""
    directory.mkdir(parents=True, exist_ok=True)
    # The sources are of 2009.
    lines = ["[migration]", "sources_within_hours = 0", ""]
    for number in range(size.brokers):
        name, count = qmgr_name(number), size.most if number < size.largest else size.few
        own = directory / "sources" / name
        own.mkdir(parents=True, exist_ok=True)
        if number < size.largest or number % 2 == 0:
            state = broker_state(number, count, size.brokers)
            (own / "state.json").write_text(state_json.write([state]), encoding="utf-8")
        else:
            with (own / "capture.jsonl").open("wb") as file:
                write_captures(broker_capture(number, count), file, "jsonl")
            (own / "qm.ini").write_text("Broker:\n   MaxMsgRetryCount=3\n   SyncPointIfPersistent=yes\n")
        lines += ["[[queue_manager]]", f'name = "{name}"', f'source = ["sources/{name}"]', f"wave = {wave_of(number)}"]
        parent = parent_of(number)
        lines += [f'parent = "{qmgr_name(parent)}"'] if parent is not None else []
        lines.append("")
    (directory / "estate.toml").write_text("\n".join(lines))


def broker_state(number: int, subscriptions: int, brokers: int) -> LegacyState:
    """A broker with so many subscriptions, a twentieth as many retained publications, and its neighbours."""
    random, name = Random(number), qmgr_name(number)
    parent = parent_of(number)
    relations = [] if parent is None else [Relation(source=SOURCE, role="parent", qmgr=qmgr_name(parent))]
    relations += [
        Relation(source=SOURCE, role="child", qmgr=qmgr_name(child))
        for child in range(1, brokers)
        if parent_of(child) == number
    ]
    return LegacyState(
        qmgr=name,
        relations=tuple(relations),
        streams=tuple(Stream(source=SOURCE, name=stream) for stream in STREAMS if stream != DEFAULT_STREAM),
        subscriptions=tuple(_subscription(random, name, each) for each in range(subscriptions)),
        retained=tuple(_retained(name, each) for each in range(subscriptions // 20)),
        attributes=(
            StanzaAttribute(source=SOURCE, stanza="Broker", name="MaxMsgRetryCount", value="3"),
            # Version 7 has no exits for routing: this one is lost.
            StanzaAttribute(source=SOURCE, stanza="Broker", name="RoutingExitPath", value="/opt/exits/route"),
        ),
    )


def _subscription(random: Random, qmgr: str, number: int) -> LegacySubscription:
    application = random.choice(APPLICATIONS)
    stream = random.choice(STREAMS)
    wild = random.random() < 0.2
    topic = f"{random.choice(MARKETS)}/*" if wild else f"{random.choice(MARKETS)}/Spot/I{number:05}"
    is_named = random.random() < 0.3
    return LegacySubscription(
        source=SOURCE,
        topic=topic,
        queue=f"{application}.{number:05}.Q",
        qmgr=qmgr,
        stream=stream,
        user=f"{application.lower()}{random.randrange(30)}",
        name=f"sub{number}" if is_named else None,
        format=PublicationFormat.RFH1 if stream != DEFAULT_STREAM else PublicationFormat.RFH2,
        options=("Local",) if random.random() < 0.05 else (),
        created=START,
        # One in a hundred has expired, and is reported.
        expires_at=START + timedelta(hours=1) if random.random() < 0.01 else None,
    )


def _retained(qmgr: str, number: int) -> LegacyRetained:
    stream = STREAMS[number % len(STREAMS)]
    topic = f"{MARKETS[number % len(MARKETS)]}/Spot/I{number:05}"
    message = publish(number + 1, topic, stream, b"101.5", user="feed", qmgr=qmgr)
    return LegacyRetained(
        source=SOURCE, topic=topic, stream=stream, md_hex=message.md_hex, body_hex=message.body_hex, published_at=START
    )


def broker_capture(number: int, subscriptions: int) -> Iterator[CapturedMessage]:
    """The commands that a smaller broker processed."""
    random, name = Random(number), qmgr_name(number)
    for each in range(subscriptions):
        made = _subscription(random, name, each)
        yield register(
            each + 1, made.topic, made.stream, name=made.name, queue_name=made.queue, user=made.user, qmgr=name
        )
    for each in range(subscriptions // 20):
        stream = STREAMS[each % len(STREAMS)]
        yield publish(subscriptions + each + 1, f"London/Spot/I{each:05}", stream, b"1", user="feed", qmgr=name)
