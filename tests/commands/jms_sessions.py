"""JMS programs in migration mode (PROVIDERVERSION 6): run this file to write their captures and golden puts again.

A pricing application at work, once with BROKERVER(V2), which puts MQRFH2s, and once with BROKERVER(V1), which puts
MQRFHs with an MQRFH2 behind. The messages are made here by hand, as IBM's classes shape them: one decimal sum of
options, big-endian numbers, requests without Report whose answers go to SYSTEM.JMS.REPORT.QUEUE, shared subscriber
queues on which each subscriber has its CorrelId, a tag of the client's own in each publication.

*pricer* publishes, and subscribes with noLocal; *viewer* has non-durable subscribers, with selectors, and crashes;
*desk* and its clone share a durable subscription, leave it, and somebody unsubscribes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from rfh2.captured import CapturedMessage
from rfh2.constants import MQMT_DATAGRAM, MQMT_REQUEST
from rfh2.folders import Folder
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1, write as write_string
from rfh2.rfh2 import Rfh2
from tests.commands.results_service import as_lines

FIXTURES = Path(__file__).parents[2] / "fixtures" / "jms"
CONTROL = "SYSTEM.BROKER.CONTROL.QUEUE"
STREAM = "SYSTEM.BROKER.DEFAULT.STREAM"
REPORT = "SYSTEM.JMS.REPORT.QUEUE"
DURABLE_QUEUE = "SYSTEM.JMS.D.SUBSCRIBER.QUEUE"
NON_DURABLE_QUEUE = "SYSTEM.JMS.ND.SUBSCRIBER.QUEUE"
OPENING = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
UNKNOWN = "JMS:SYS:Unknown"
SUB_NAME = "JMS:QM1:desk:prices"

# MQREGO_*
CORREL_AS_ID, NON_PERS, NO_ALTER, FULL_RESP = 0x1, 0x400, 0x8000, 0x10000
JOIN_SHARED, JOIN_EXCL, LEAVE_ONLY, VARIABLE_USER_ID = 0x20000, 0x40000, 0x80000, 0x100000
NON_DURABLE = FULL_RESP + NON_PERS + CORREL_AS_ID
DURABLE = VARIABLE_USER_ID + FULL_RESP + NO_ALTER + CORREL_AS_ID

Message = tuple[Mqmd, bytes]
Pair = tuple[str, str]

# What an MQRFH calls the tags of psc.
_MQPS: Final = {"RegOpt": "MQPSRegOpts", "PubOpt": "MQPSPubOpts"}


@dataclass(frozen=True)
class Client:
    """One connection of a JMS program. broker_version: ``V1`` or ``V2``. number: makes its identifiers."""

    user: str
    number: int
    broker_version: str

    @property
    def connection_id(self) -> str:
        """What noLocal compares."""
        return b"AMQCQM1         ".hex().upper() + f"{self.number:016X}"

    @property
    def identity(self) -> str:
        """SubIdentity: 48 hexadecimal digits."""
        return f"{self.number:048X}"

    def correl_id(self, subscriber: int) -> bytes:
        """By which one subscriber finds its publications on a shared queue."""
        return b"AMQCJMS ".ljust(16) + bytes([self.number, 0, 0, 0, 0, 0, 0, subscriber])

    def asks(self, word: str, *pairs: Pair, correl_id: bytes = bytes(24)) -> Message:
        """A command that is to be answered."""
        header = self._command(word, pairs, "")
        return self._mqmd(MQMT_REQUEST, reply_to_q=REPORT, correl_id=correl_id), header

    def publishes(
        self, topic: str, text: str, usr: str = "", *, retain: bool = False, persistent: bool = True
    ) -> Message:
        """A TextMessage."""
        folders = [
            "<mcd><Msd>jms_text</Msd></mcd>",
            f"<jms><Dst>topic://{topic}</Dst><Tms>1767603600000</Tms><Dlv>{1 + persistent}</Dlv></jms>",
            *([f"<usr>{usr}</usr>"] if usr else []),
        ]
        pairs = (("PubOpt", "2" if retain else "None"), ("Topic", topic))
        body = self._command("Publish", pairs, "MQSTR", folders) + text.encode()
        return self._mqmd(MQMT_DATAGRAM, persistence=int(persistent)), body

    def _command(self, word: str, pairs: tuple[Pair, ...], fmt: str, folders: list[str] | None = None) -> bytes:
        own = () if folders is None else (("UNIQUE_CONNECTION_ID", self.connection_id),)
        if self.broker_version == "V2":
            tags = (("Command", word), *pairs, *own)
            psc = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in tags)
            return self._rfh2([f"<psc>{psc}</psc>", *(folders or [])], fmt)
        names = (*own, ("MQPSCommand", word), *((_MQPS.get(tag, "MQPS" + tag), text) for tag, text in pairs))
        string = write_string(names).encode() + b"\0"
        following = "" if folders is None else "MQHRF2"
        string += bytes(-len(string) % 4)
        header = Rfh1(string, 273, 1208, following, 0, "big").encode()
        return header if folders is None else header + self._rfh2(folders, fmt)

    @staticmethod
    def _rfh2(folders: list[str], fmt: str) -> bytes:
        return Rfh2(tuple(Folder.of(text) for text in folders), 273, 1208, fmt, order="big").encode()

    def _mqmd(self, msg_type: int, **fields: object) -> Mqmd:
        mqmd = Mqmd(
            msg_type=msg_type,
            encoding=273,
            coded_char_set_id=1208,
            format="MQHRF2" if self.broker_version == "V2" else "MQHRF",
            priority=4,
            persistence=0,
            user_identifier=self.user,
            put_appl_type=28,
            put_appl_name="WebSphere MQ Client for Java",
            order="big",
        )
        return replace(mqmd, **fields)  # type: ignore[arg-type]


def script(broker_version: str) -> Iterator[tuple[Client, str, Message]]:
    """(client, queue, message) of each step. The comments say what has to come of it."""
    pricer, viewer = Client("pricer", 1, broker_version), Client("viewer", 2, broker_version)
    desk, clone = Client("desk", 3, broker_version), Client("desk2", 4, broker_version)
    admin = Client("admin", 5, broker_version)
    selects = broker_version == "V2"  # with V1 the clients select for themselves

    def registers(client: Client, at: int, topic: str, *more: Pair) -> tuple[Client, str, Message]:
        pairs = (("Topic", topic), ("RegOpt", str(NON_DURABLE)), *_queue(NON_DURABLE_QUEUE), *more)
        return client, CONTROL, client.asks("RegSub", *pairs, correl_id=client.correl_id(at))

    def leaves(client: Client, at: int, topic: str, *more: Pair) -> tuple[Client, str, Message]:
        pairs = (("Topic", topic), ("RegOpt", str(CORREL_AS_ID)), *_queue(NON_DURABLE_QUEUE), *more)
        return client, CONTROL, client.asks("DeregSub", *pairs, correl_id=client.correl_id(at))

    def durable(client: Client, joins: int) -> tuple[Client, str, Message]:
        options = ("RegOpt", str(DURABLE + joins))
        pairs = (("Topic", "prices/#" if selects else "prices/*"), options, *_queue(DURABLE_QUEUE), *_named(client))
        return client, CONTROL, client.asks("RegSub", *pairs, ("SubUserData", ""), correl_id=desk.correl_id(1))

    def closes(client: Client) -> tuple[Client, str, Message]:
        options = ("RegOpt", str(VARIABLE_USER_ID + LEAVE_ONLY + FULL_RESP + CORREL_AS_ID))
        pairs = (("Topic", "prices/#" if selects else "prices/*"), options, *_queue(DURABLE_QUEUE), *_named(client))
        return client, CONTROL, client.asks("DeregSub", *pairs, correl_id=desk.correl_id(1))

    def resumes(client: Client) -> tuple[Client, str, Message]:
        options = ("RegOpt", str(VARIABLE_USER_ID + JOIN_EXCL + FULL_RESP + NO_ALTER))
        pairs = (("Topic", UNKNOWN), options, *_queue(DURABLE_QUEUE), *_named(client))
        return client, CONTROL, client.asks("RegSub", *pairs)

    def publishes(client: Client, topic: str, text: str, usr: str = "", **how: Any) -> tuple[Client, str, Message]:
        return client, STREAM, client.publishes(topic, text, usr, **how)

    # Retained before there are subscribers: each new one whose selector it fits gets it.
    yield publishes(pricer, "prices/gold", "1999", retain=True)
    yield registers(pricer, 1, "prices/gold")  # with noLocal: gets its own back, and drops it
    yield registers(viewer, 1, "prices/silver")
    if selects:
        red = ("Filter", "Root.MQRFH2.usr.colour = 'red' AND Root.MQMD.Priority > 3 AND Root.MQMD.Persistence = 1")
        text = ("Filter", "Root.MQRFH2.Format = 'MQSTR' AND Root.MQRFH2.jms.Dlv = 'PERSISTENT'")
        one = ("Filter", f"Root.MQMD.MsgId = 'ID:{_msg_id(9).hex()}'")
    else:
        red = text = one = ()
    for at, selector in enumerate((red, text, one), 2):
        yield registers(viewer, at, "prices/gold", *([selector] if selector else []))
    yield durable(desk, JOIN_EXCL)
    yield publishes(pricer, "prices/gold", "2000", "<colour>red</colour>")  # red, text
    yield publishes(viewer, "prices/gold", "2001", "<colour>blue</colour>")  # text, one; the 9th message
    yield publishes(viewer, "prices/gold", "2002", "<colour>red</colour>", persistent=False)  # none of them
    yield publishes(pricer, "prices/silver", "25")
    # A clone: the subscription is locked; the first session makes it shared, and both work.
    yield durable(clone, JOIN_EXCL)  # 3156
    yield durable(desk, JOIN_SHARED)
    yield durable(clone, JOIN_SHARED)
    yield durable(clone, JOIN_SHARED)  # 3157, a warning
    yield publishes(pricer, "prices/gold", "2003")  # once on the shared queue
    # The viewer's connection breaks. What it had on hold is released: a DeregSub for each subscriber, one too late.
    yield publishes(pricer, "prices/silver", "26")  # nobody reads it any more
    yield leaves(viewer, 1, "prices/silver")
    for at, selector in enumerate((red, text, one), 2):
        yield leaves(viewer, at, "prices/gold", *([selector] if selector else []))
    yield leaves(viewer, 1, "prices/silver")  # 3073: it is gone
    # Unsubscribing: not while somebody is there; then by the name alone.
    yield resumes(admin)  # 3155
    yield closes(desk)
    yield resumes(admin)  # 3155 still: the clone
    yield closes(clone)
    yield publishes(pricer, "prices/gold", "2004")  # kept for the durable subscriber that is not there
    yield resumes(admin)  # the true topic, queue and CorrelId
    options = ("RegOpt", str(VARIABLE_USER_ID + FULL_RESP + CORREL_AS_ID))
    topic = ("Topic", "prices/#" if selects else "prices/*")
    pairs = (topic, options, *_queue(DURABLE_QUEUE), *_named(admin))
    yield admin, CONTROL, admin.asks("DeregSub", *pairs, correl_id=desk.correl_id(1))
    yield resumes(admin)  # it does not exist: made on the unknown topic, as the answer says, and taken away again
    yield admin, CONTROL, admin.asks("DeregSub", ("Topic", UNKNOWN), *_queue(DURABLE_QUEUE), *_named(admin))
    yield publishes(pricer, "prices/gold", "2005")  # the publisher's own, once more
    yield leaves(pricer, 1, "prices/gold")
    yield publishes(pricer, "prices/gold", "2006")  # nobody


def _queue(name: str) -> tuple[Pair, ...]:
    return (("QMgrName", "QM1"), ("QName", name))


def _named(client: Client) -> tuple[Pair, ...]:
    return (("SubName", SUB_NAME), ("SubIdentity", client.identity))


def _msg_id(seq: int) -> bytes:
    return b"AMQ QM1".ljust(16) + seq.to_bytes(8, "big")


def capture(broker_version: str) -> list[CapturedMessage]:
    """The sessions of one BROKERVER, a message every two seconds."""
    return [
        CapturedMessage(
            seq=seq,
            time=OPENING + timedelta(seconds=2 * seq),
            qmgr="QM1",
            queue=queue,
            user=client.user,
            md_hex=replace(mqmd, msg_id=_msg_id(seq)).encode().hex(),
            body_hex=body.hex(),
        )
        for seq, (client, queue, (mqmd, body)) in enumerate(script(broker_version), 1)
    ]


if __name__ == "__main__":
    from commands import Broker

    FIXTURES.mkdir(parents=True, exist_ok=True)
    for version in ("V1", "V2"):
        name = version.lower()
        (FIXTURES / f"{name}.jsonl").write_text(as_lines(capture(version)))
        broker = Broker("QM1")
        puts = [put.model_dump_json() + "\n" for each in capture(version) for put in broker.handle(each)]
        (FIXTURES / f"{name}-puts.jsonl").write_text("".join(puts))
