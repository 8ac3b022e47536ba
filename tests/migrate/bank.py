"""A fictional bank: 10,000 subscriptions on 12 streams, two brokers, access control lists, 5,000 retained publications.

The head office has a version 6 broker (queue manager BANKHQ: captured commands, authorities, qm.ini), currency trading
an Event Broker (BANKFX: a listing of mqsireportproperties, a queue unload). Everything comes from one seed; the sums of
what is made are kept, so that a change shows. ``python -m tests.migrate.bank`` writes fixtures/legacy/bank anew.
"""

from __future__ import annotations

import lzma
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from random import Random

from commands.broker.objects import DEFAULT_STREAM
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from tests.migrate.legacy_messages import psc, publish, register

SEED = 20090128
DIRECTORY = Path(__file__).parents[2] / "fixtures" / "legacy" / "bank"
HQ, FX = "BANKHQ", "BANKFX"
STREAMS = (
    *("Rates", "Equities", "Bonds", "Options", "Settlement", "Payments"),
    *("Risk", "News", "Branches", "Compliance", "Treasury"),
    DEFAULT_STREAM,
)
HQ_SUBSCRIPTIONS, HQ_RETAINED = 6_000, 3_000
FX_SUBSCRIPTIONS, FX_RETAINED = 4_000, 2_000
ENTRIES = 200
_MARKETS = ("London", "Frankfurt", "NewYork", "Tokyo", "Zurich", "Paris", "Milan", "Sydney")
_PRODUCTS = ("Spot", "Forward", "Swap", "Future", "Note")
_CURRENCIES = ("USD", "GBP", "EUR", "JPY", "CHF", "SEK", "AUD")


def topic(random: Random) -> str:
    """A topic of the bank's: market, product, and sometimes an instrument."""
    levels = [random.choice(_MARKETS), random.choice(_PRODUCTS)]
    if random.random() < 0.7:
        levels.append(f"I{random.randrange(4_000):04}")
    return "/".join(levels)


def pattern(random: Random) -> str:
    """What a program with an MQRFH subscribes to."""
    kind = random.random()
    if kind < 0.6:
        return topic(random)
    if kind < 0.9:
        return f"{random.choice(_MARKETS)}/*"
    return random.choice(("*", "*/Spot/*", f"{random.choice(_MARKETS)}/*/I0?00"))


def hq_capture() -> list[CapturedMessage]:
    """Registrations, then publications that are retained; some of the former have been given up by the end."""
    random = Random(SEED)
    messages: list[CapturedMessage] = []
    for number in range(HQ_SUBSCRIPTIONS):
        seq = len(messages) + 1
        user = f"trader{random.randrange(300)}"
        queue = f"DESK.{number:05}.Q"
        stream = random.choice(STREAMS)
        name = f"sub{number}" if random.random() < 0.25 else None
        if stream == DEFAULT_STREAM and random.random() < 0.5:
            tag = f"<SubName>{name}</SubName>" if name else ""
            folder = f"<Command>RegSub</Command><Topic>{random.choice(_MARKETS)}/*</Topic>{tag}"
            messages.append(psc(seq, folder, reply_to=queue, user=user, qmgr=HQ))
            continue
        options = [o for o in ("Local", "InformIfRet", "VariableUserId", "Pers", "DupsOK") if random.random() < 0.08]
        correl_id = bytes(24)
        if random.random() < 0.4:
            options.append("CorrelAsId")
            correl_id = random.randbytes(24)
        messages.append(
            register(
                seq,
                pattern(random),
                stream,
                name=name,
                options=options,
                queue_name=queue,
                correl_id=correl_id,
                user=user,
                qmgr=HQ,
            )
        )
    places: set[tuple[str, str]] = set()
    while len(places) < HQ_RETAINED:
        place = (random.choice(STREAMS), topic(random))
        if place in places:
            continue
        places.add(place)
        data = f"{random.randrange(10_000) / 100:.2f}".encode()
        persistence = int(random.random() < 0.9)
        seq = len(messages) + 1
        messages.append(publish(seq, place[1], place[0], data, persistence=persistence, user="feed", qmgr=HQ))
    return messages


def hq_authorities() -> str:
    """Traders may subscribe to all streams but two, feeds may publish."""
    lines = [f"setmqaut -m {HQ} -n {stream} -t queue -p feed +put" for stream in STREAMS]
    lines += [f"setmqaut -m {HQ} -n {s} -t queue -g traders +browse" for s in STREAMS if s not in ("Risk", "Treasury")]
    lines += [f"setmqaut -m {HQ} -n DESK.*.Q -t queue -g traders +put +get"]
    return "".join(f"{line}\n" for line in lines)


def fx_listing() -> str:
    """Subscriptions and access control entries, topic by topic, at three subscription points and the default one."""
    random = Random(SEED + 1)
    lines = ["DynamicSubscriptionEngine", "  uuid='DynamicSubscriptionEngine'"]
    entries = 0
    for number in range(FX_SUBSCRIPTIONS):
        name = topic(random) if random.random() < 0.8 else f"{random.choice(_MARKETS)}/#"
        lines += ["  Topic", f"    name='{name}'", "    Subscription"]
        lines.append(f"      clientId='mqrfh2:{FX}:FX.{number:05}.Q'")
        if random.random() < 0.3:
            lines.append(f"      subscriptionPoint='{random.choice(_CURRENCIES[:3])}'")
        lines.append(f"      user='dealer{random.randrange(100)}'")
        if random.random() < 0.05:
            lines.append("      localOnly='true'")
        if random.random() < 0.01:
            lines.append("      tempDynamicQueue='true'")
        if entries < ENTRIES and "#" not in name and random.random() < 0.2:
            entries += 1
            right = "false" if random.random() < 0.05 else "true"
            lines += ["    ACLEntry", f"      principalName='dealer{random.randrange(100)}'"]
            lines += ["      principalType='user'", "      publish='inherit'", f"      subscribe='{right}'"]
    return "\n".join([*lines, "", "BIP8071I: Successful command completion.", ""])


def fx_retained() -> list[CapturedMessage]:
    """Prices that the Publication nodes have retained."""
    random = Random(SEED + 2)
    found: dict[tuple[str, str], CapturedMessage] = {}
    while len(found) < FX_RETAINED:
        point, name = random.choice(("", *_CURRENCIES[:3])), topic(random)
        tag = f"<SubPoint>{point}</SubPoint>" if point else ""
        folder = f"<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{name}</Topic>{tag}"
        data = f"{random.randrange(10_000) / 100:.2f}".encode()
        message = psc(len(found) + 1, folder, queue=DEFAULT_STREAM, data=data, user="feed", qmgr=FX)
        found.setdefault((point, name), message)
    return list(found.values())


def contents() -> dict[str, bytes]:
    """Every source, by file name."""
    made: dict[str, bytes] = {}
    for name, messages, fmt in (
        ("hq/capture.jsonl", hq_capture(), "jsonl"),
        ("fx/retained.qload", fx_retained(), "qload"),
    ):
        stream = BytesIO()
        write_captures(messages, stream, fmt)
        made[name] = stream.getvalue()
    made["hq/authorities.sh"] = hq_authorities().encode()
    made["hq/qm.ini"] = b"Broker:\n   MaxMsgRetryCount=3\n   SyncPointIfPersistent=yes\n   PublishBatchSize=5\n"
    made["fx/outfile.txt"] = fx_listing().encode()
    return made


def kept(name: str) -> bytes:
    """One source as the fixtures keep it."""
    return lzma.decompress((DIRECTORY / f"{name.replace('/', '-')}.xz").read_bytes())


def sums(made: dict[str, bytes]) -> str:
    """The lines of SHA256SUMS."""
    return "".join(f"{sha256(data).hexdigest()}  {name}\n" for name, data in sorted(made.items()))


def unpack(directory: Path) -> None:
    """Write all sources below *directory*."""
    for line in (DIRECTORY / "SHA256SUMS").read_text().splitlines():
        name = line.split("  ")[1]
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(kept(name))


if __name__ == "__main__":
    everything = contents()
    DIRECTORY.mkdir(exist_ok=True)
    for file, data in everything.items():
        (DIRECTORY / f"{file.replace('/', '-')}.xz").write_bytes(lzma.compress(data, preset=9))
    (DIRECTORY / "SHA256SUMS").write_text(sums(everything))
