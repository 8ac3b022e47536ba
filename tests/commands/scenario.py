"""A small world for tests of commands: say what a program puts, read back what the broker puts.

    world = Scenario()
    world.register("Sport/#", reply_to="SUB.Q")
    result = world.publish("Sport/Soccer", data=b"2:1")
    result.publications[0].topic == "Sport/Soccer"

Every message is built and read with the codec; what a test says in folder text is what goes on the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from lxml import etree

from commands.broker.authority import Action
from commands.broker.context import Semantics
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, Objects, QueueManager
from commands.broker.outcome import Outcome
from commands.broker.puts import Put, PutKind
from commands.headers.response import Completion
from commands.mqsc.broker import Broker
from rfh2.captured import CapturedMessage
from rfh2.ccsid import ByteOrder
from rfh2.constants import MQFMT_RF_HEADER_2, MQMT_DATAGRAM, MQMT_REQUEST
from rfh2.folders import Folder
from rfh2.message import Header, Message, decode, encode
from rfh2.mqmd import Mqmd, name_of
from rfh2.rfh2 import Rfh2
from streams.subscriptions import Subscription

KICK_OFF = datetime(2009, 1, 28, 11, 43, 54, 180_000, tzinfo=UTC)
CORREL_ID = b"CORREL".ljust(24, b"\0")
MSG_ID = b"MSG".ljust(24, b"\0")


@dataclass(frozen=True)
class Answer:
    """One Response of a pscr folder."""

    reason: int
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Received:
    """One put, decoded."""

    put: Put

    @cached_property
    def message(self) -> Message:
        return decode(bytes.fromhex(self.put.body_hex), bytes.fromhex(self.put.md_hex))

    @property
    def mqmd(self) -> Mqmd:
        return self.message.mqmd

    @property
    def queue(self) -> str:
        return self.put.queue

    @property
    def header(self) -> Rfh2:
        """The first MQRFH2."""
        header = self.message.rfh2
        assert header is not None
        return header

    @property
    def folders(self) -> list[str]:
        """The texts of the folders of the first MQRFH2, without their padding."""
        return [folder.text for folder in self.header.folders]

    @property
    def psc(self) -> list[tuple[str, str]]:
        """The properties of a forwarded publication."""
        assert self.header.folders[0].name == "psc"
        return self.header.folders[0].pairs()

    def told(self, tag: str) -> str | None:
        """The value of one psc property."""
        return dict(self.psc).get(tag)

    @property
    def topic(self) -> str | None:
        """The topic that the subscriber is told."""
        return self.told("Topic")

    @property
    def data(self) -> bytes:
        return self.message.body

    @cached_property
    def _pscr(self) -> etree._Element:
        return etree.fromstring(self.folders[0])

    @property
    def completion(self) -> str:
        found = self._pscr.findtext("Completion")
        assert found is not None
        return found

    @property
    def answers(self) -> list[Answer]:
        """The Responses of a response message."""
        found = []
        for response in self._pscr.findall("Response"):
            reason, *rest = response
            assert reason.tag == "Reason"
            found.append(Answer(int(reason.text or ""), tuple((str(e.tag), e.text or "") for e in rest)))
        return found

    @property
    def attributes(self) -> list[tuple[str, str]]:
        """What FullResp added to a response."""
        return [(str(e.tag), e.text or "") for e in self._pscr if e.tag not in ("Completion", "Response")]


@dataclass(frozen=True)
class Result:
    """What one message came to."""

    outcome: Outcome
    puts: list[Received]

    def _of(self, kind: PutKind) -> list[Received]:
        return [received for received in self.puts if received.put.kind is kind]

    @property
    def publications(self) -> list[Received]:
        return self._of(PutKind.PUBLICATION)

    @property
    def responses(self) -> list[Received]:
        return self._of(PutKind.RESPONSE)

    @property
    def dead_letters(self) -> list[Received]:
        return self._of(PutKind.DEADLETTER)

    @property
    def response(self) -> Received:
        """The one response."""
        (only,) = self.responses
        return only

    @property
    def answer(self) -> Answer:
        """The one Response in the one response."""
        (only,) = self.response.answers
        return only

    @property
    def queues(self) -> list[str]:
        """Where publications went, in order."""
        return [received.queue for received in self.publications]

    @property
    def topics(self) -> list[str | None]:
        """What subscribers were told that publications are about, in order."""
        return [received.topic for received in self.publications]


class Allowed:
    """An authority that knows what is forbidden: (user, action, topic string) and (user, queue)."""

    def __init__(self) -> None:
        self.topics: set[tuple[str, str, str]] = set()
        self.queues: set[tuple[str, str]] = set()

    def may_use_topic(self, user: str, action: Action, topic_string: str) -> bool:
        return (user, action, topic_string) not in self.topics

    def may_put(self, user: str, queue: str) -> bool:
        return (user, queue) not in self.queues

    def may_set_identity(self, user: str, queue: str) -> bool:
        return self.may_put(user, queue)


def rfh2_message(
    folders: Sequence[str | bytes],
    mqmd: Mqmd,
    data: bytes = b"",
    *,
    fmt: str = "MQSTR",
    order: ByteOrder = "little",
    charset: str = "latin-1",
    nv_ccsid: int = 1208,
    more: tuple[Header, ...] = (),
) -> tuple[Mqmd, bytes]:
    """A descriptor and a body with one MQRFH2 of these folders, bytes as they are; *more* headers follow it."""
    codec = "utf-8" if nv_ccsid == 1208 else f"utf-16-{order[0]}e"
    of = tuple(Folder(f, codec) if isinstance(f, bytes) else Folder.of(f, codec) for f in folders)
    encoding = 273 if order == "big" else 546
    following = MQFMT_RF_HEADER_2 if more else fmt if data else ""
    header = Rfh2(of, encoding, 1208, following, name_value_ccsid=nv_ccsid, order=order, charset=charset)
    described = replace(mqmd, format=MQFMT_RF_HEADER_2, encoding=encoding)
    return described, encode(Message(described, (header, *more), data))


class Scenario:
    """A broker, and programs that talk to it. Each message comes a second after the one before."""

    def __init__(
        self,
        semantics: Semantics | str = Semantics.V7,
        *,
        qmgr: str = "QM1",
        objects: Objects | None = None,
    ) -> None:
        self.objects = objects if objects is not None else Objects(QueueManager(qmgr))
        self.authority = Allowed()
        self.broker = Broker(qmgr, semantics=str(semantics), objects=self.objects, authority=self.authority)
        self.seq = 0
        self.now = KICK_OFF

    def send(
        self,
        *folders: str | bytes,
        queue: str = CONTROL_QUEUE,
        data: bytes = b"",
        user: str | None = "app1",
        reply_to: str = "REPLY.Q",
        request: bool = True,
        wire: dict[str, Any] | None = None,
        **mqmd: Any,
    ) -> Result:
        """Put one message. request: MsgType, unless *mqmd* says it; wire: what else ``rfh2_message`` takes."""
        settings = {
            "msg_type": MQMT_REQUEST if request else MQMT_DATAGRAM,
            "msg_id": MSG_ID,
            "priority": 0,
            "persistence": 0,
            "coded_char_set_id": 1208,
            "reply_to_q": reply_to,
            "user_identifier": user or "",
            **mqmd,
        }
        described, body = rfh2_message(folders, Mqmd(**settings), data, **(wire or {}))
        return self.put(queue, described.encode(), body, user=user)

    def put(self, queue: str, md: bytes | None, body: bytes, *, user: str | None = "app1") -> Result:
        """Put these bytes."""
        self.seq += 1
        self.now += timedelta(seconds=1)
        captured = CapturedMessage(
            seq=self.seq,
            time=self.now,
            qmgr="QM1",
            queue=queue,
            user=user,
            md_hex=None if md is None else md.hex(),
            body_hex=body.hex(),
        )
        outcome, puts = self.broker.replay(captured)
        return Result(outcome, [Received(put) for put in puts])

    def command(self, word: str, *pairs: tuple[str, str], queue: str = CONTROL_QUEUE, **settings: Any) -> Result:
        """Put one command, given as its psc properties."""
        return self.send(psc(word, *pairs), queue=queue, **settings)

    def register(
        self, *topics: str, options: Sequence[str] = (), tags: Sequence[tuple[str, str]] = (), **settings: Any
    ) -> Result:
        """RegSub."""
        return self.command("RegSub", *_options("RegOpt", options), *_topics(topics), *tags, **settings)

    def deregister(
        self, *topics: str, options: Sequence[str] = (), tags: Sequence[tuple[str, str]] = (), **settings: Any
    ) -> Result:
        """DeregSub."""
        return self.command("DeregSub", *_options("RegOpt", options), *_topics(topics), *tags, **settings)

    def request_update(
        self, topic: str, options: Sequence[str] = (), tags: Sequence[tuple[str, str]] = (), **settings: Any
    ) -> Result:
        """ReqUpdate."""
        return self.command("ReqUpdate", *_options("RegOpt", options), ("Topic", topic), *tags, **settings)

    def publish(
        self,
        *topics: str,
        options: Sequence[str] = (),
        tags: Sequence[tuple[str, str]] = (),
        data: bytes = b"data",
        queue: str = DEFAULT_STREAM,
        request: bool = False,
        **settings: Any,
    ) -> Result:
        """Publish, to the default stream unless told otherwise; a datagram, as publications are."""
        pairs = (*_options("PubOpt", options), *_topics(topics), *tags)
        return self.command("Publish", *pairs, queue=queue, data=data, request=request, **settings)

    def delete(self, *topics: str, options: Sequence[str] = (), queue: str = DEFAULT_STREAM, **settings: Any) -> Result:
        """DeletePub, to the default stream unless told otherwise."""
        return self.command("DeletePub", *_topics(topics), *_options("DelOpt", options), queue=queue, **settings)

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        return self.broker.space.subscriptions()

    @property
    def retained(self) -> list[str]:
        """The topic strings with a retained publication."""
        return [retained.topic_string for retained in self.broker.space.retained_publications()]

    def subscription(self, name: str) -> Subscription:
        """The subscription of that name."""
        found = self.broker.space.by_name(name)
        assert found is not None
        return found


def psc(word: str, *pairs: tuple[str, str]) -> str:
    """The text of a psc folder; values are taken as they are, escaped or not."""
    tags = (("Command", word), *pairs)
    return "<psc>" + "".join(f"<{tag}>{value}</{tag}>" for tag, value in tags) + "</psc>"


def refused(result: Result, reason: int, *tags: tuple[str, str]) -> None:
    """Assert that a request was refused: one response, error, that reason, those culprits, and nothing else put."""
    assert result.response.answers == [Answer(reason, tags)]
    assert result.response.completion == "error"
    assert len(result.puts) == 1
    assert result.outcome.completion is Completion.ERROR
    assert not result.outcome.effects


def warned(result: Result, *answers: Answer) -> None:
    """Assert that a request was done in part."""
    assert result.response.completion == "warning"
    assert result.response.answers == list(answers)


def done(result: Result) -> None:
    """Assert that a request was answered with ok, and no more."""
    assert result.response.completion == "ok"
    assert result.response.answers == []
    assert len(result.response.header.folders) == 1


def dlh_queue(received: Received) -> str:
    """DestQName of a dead letter."""
    return name_of(getattr(received.message.headers[0], "dest_q_name", ""))


def _options(tag: str, options: Sequence[str]) -> list[tuple[str, str]]:
    return [(tag, option) for option in options]


def _topics(topics: Sequence[str]) -> list[tuple[str, str]]:
    return [("Topic", topic) for topic in topics]
