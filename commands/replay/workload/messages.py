"""The messages of a generated workload, each from its number alone: any part can be made by itself, in any order.

First every subscriber registers. After that every so many messages one is a control message, in a cycle of ten:

    0 to 3   a subscriber leaves; the next time round he comes again
    4 to 6   a subscriber registers again, which renews an expiry
    7, 8     a subscriber asks for what is retained
    9        what is retained on a topic is deleted

The rest are publications, with some errors and strays among them. A header is made once and used again; what differs
between two publications on a topic is their MsgId, put time and data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from commands.broker.objects import CONTROL_QUEUE
from commands.explain.build import CommandSpec, command_message
from commands.model import PubOpt, RegOpt
from commands.replay.workload.population import (
    DEFAULT_QMGR,
    Population,
    Subscriber,
    SubscriberKind,
    WorkloadOptions,
    draws,
    pick,
)
from rfh2.captured import CapturedMessage
from rfh2.constants import MQMT_DATAGRAM, MQMT_REQUEST, MQRO_NAN
from rfh2.mqmd import Mqmd


class Row(NamedTuple):
    """A captured message as the columns of its Parquet form, unchecked."""

    seq: int
    time: datetime
    qmgr: str | None
    queue: str
    user: str | None
    md: bytes
    body: bytes


_MSG_ID: Final = slice(48, 72)
_PUT_STAMP: Final = slice(304, 320)
_REGIONS: Final = ("EU", "US", "AP")
_STRAY_QUEUE: Final = "SOME.OTHER.QUEUE"
_CYCLE: Final = 10
_LEAVING: Final = 4


@dataclass(frozen=True, slots=True)
class _Made:
    """The parts of a message that are the same in each put. data: whether the data of the publication follow."""

    queue: str
    md: bytes
    body: bytes
    data: bool = False
    qmgr: int | None = None


@dataclass(frozen=True)
class Workload:
    """The messages that *options* describe."""

    options: WorkloadOptions
    _population: Population = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_population", Population(self.options))

    def messages(self, start: int = 0, end: int | None = None) -> Iterator[CapturedMessage]:
        """The messages from number *start* to before *end* (None: all), in order of seq, which is the number and 1."""
        for seq, time, qmgr, queue, user, md, body in self.rows(start, end):
            yield CapturedMessage(
                seq=seq, time=time, qmgr=qmgr, queue=queue, user=user, md_hex=md.hex(), body_hex=body.hex()
            )

    def rows(self, start: int = 0, end: int | None = None) -> Iterator[Row]:
        """The same as plain rows, many times as fast."""
        options = self.options
        last = options.messages if end is None else min(end, options.messages)
        every = round(1 / options.control) if options.control else 0
        headers = lru_cache(maxsize=100_000)(self._publication)
        filler = (b"data " * (options.body_bytes // 5 + 1))[: options.body_bytes]
        step = timedelta(seconds=1 / options.per_second)
        for number in range(start, last):
            d = draws(options.seed, SubscriberKind.MESSAGE, number)
            made = self._control(number, every, d)
            if made is None:
                made = headers(*self._publishing(d))
            time = options.start + number * step
            stamp = time.strftime("%Y%m%d%H%M%S") + f"{time.microsecond // 10_000:02}"
            md = bytearray(made.md)
            md[_MSG_ID] = b"WORK" + number.to_bytes(20, "big")
            md[_PUT_STAMP] = stamp.encode()
            body = made.body
            if made.data:
                body += (b"%012d " % number + filler)[: options.body_bytes]
            qmgr = options.qmgr(int(d[6] * options.qmgrs) if made.qmgr is None else made.qmgr)
            yield Row(number + 1, time, qmgr, made.queue, None, bytes(md), body)

    def _control(self, number: int, every: int, d: tuple[float, ...]) -> _Made | None:
        """The message where it is no publication."""
        options = self.options
        if number < options.subscribers:
            return self._register(number)
        if d[0] < options.errors:
            return self._error(d)
        if d[0] < options.errors + options.strays:
            return replace(self._publication(0, None, False, False, False), queue=_STRAY_QUEUE, body=b"", data=True)
        if not every or (number - options.subscribers) % every:
            return None
        turn = (number - options.subscribers) // every
        place = turn % _CYCLE
        if place == _CYCLE - 1 or not options.subscribers:
            return self._delete(d)
        anyone = int(d[1] * options.subscribers)
        if place < _LEAVING:
            event = turn // _CYCLE * _LEAVING + place
            leaver = event % options.subscribers
            return self._leave(leaver) if event // options.subscribers % 2 == 0 else self._register(leaver)
        return self._register(anyone) if place < 7 else self._request(anyone)

    def _publishing(self, d: tuple[float, ...]) -> tuple[int, int | None, bool, bool, bool]:
        """What a publication is like: topic, second topic, MQRFH, properties, persistent."""
        options = self.options
        topic = self._population.popular(d[1])
        second: int | None = None
        if d[2] < options.several and options.topics > options.streams:
            # Another topic of the same stream: the queue is the same.
            second = (topic + options.streams) % (options.topics - options.topics % options.streams)
            second = second if second % options.streams == topic % options.streams else None
        rfh1 = d[3] < options.rfh1
        return topic, second, rfh1, not rfh1 and d[4] < options.properties, d[5] < options.persistent

    def _publication(self, topic: int, second: int | None, rfh1: bool, properties: bool, persistent: bool) -> _Made:
        first = self._population.topic(topic)
        d = draws(self.options.seed, SubscriberKind.TOPIC, ~topic)
        topics = (first.text,) if second is None else (first.text, self._population.topic(second).text)
        options = (PubOpt.RETAIN_PUB,) if first.retained else ()
        wanted = CommandSpec(
            word="Publish",
            topics=topics,
            options=tuple(option.value for option in options),
            usr={"price": int(d[0] * 100), "region": pick(_REGIONS, d[1])} if properties else {},
            data="x",
            rfh1=rfh1,
            mqmd=_descriptor(f"pub{topic % 1000}", persistence=int(persistent), expiry=first.expiry),
            queue=first.stream,
        )
        made = _made(wanted)
        return replace(made, body=made.body[:-1], data=True)

    def _register(self, number: int) -> _Made:
        who = self._population.subscriber(number)
        return self._from(who, "RegSub", tuple(option.value for option in who.options), who.expiry)

    def _leave(self, number: int) -> _Made:
        who = self._population.subscriber(number)
        return self._from(who, "DeregSub", self._variable(who))

    def _request(self, number: int) -> _Made:
        who = self._population.subscriber(number)
        return self._from(who, "ReqUpdate", self._variable(who))

    def _variable(self, who: Subscriber) -> tuple[str, ...]:
        variable = RegOpt.VARIABLE_USER_ID
        return (variable.value,) if variable in who.options and not who.rfh1 else ()

    def _from(self, who: Subscriber, word: str, options: tuple[str, ...], expiry: int = -1) -> _Made:
        """A control message of *who*; a registration is found again by the same tags that it was made with."""
        tags: dict[str, str | None] = {"SubName": who.sub_name, "Filter": who.filter}
        if who.rfh1:
            tags = {"StreamName": who.stream}
        qmgr = self.options.qmgr(who.qmgr) or DEFAULT_QMGR
        mqmd = _descriptor(
            who.user, expiry=expiry, msg_type=MQMT_REQUEST, reply_to_q=who.queue, reply_to_qmgr=qmgr, persistence=1
        )
        made = _made(CommandSpec(word, (who.topic,), options, tags, rfh1=who.rfh1, mqmd=mqmd, queue=CONTROL_QUEUE))
        return replace(made, qmgr=who.qmgr)

    def _delete(self, d: tuple[float, ...]) -> _Made:
        topic = self._population.topic(self._population.popular(d[2]))
        everywhere = f"{topic.text.rpartition('/')[0]}/#" if d[3] < 0.2 else topic.text
        return _made(
            CommandSpec("DeletePub", (everywhere,), mqmd=_descriptor("admin", persistence=1), queue=topic.stream)
        )

    def _error(self, d: tuple[float, ...]) -> _Made:
        """A message that is wrong; half of them ask for an answer."""
        topic = self._population.topic(self._population.popular(d[1]))
        asks = {"msg_type": MQMT_REQUEST} if d[3] < 0.25 else {"report": MQRO_NAN} if d[3] < 0.5 else {}
        mqmd = _descriptor("clumsy", persistence=1, reply_to_q="CLUMSY.REPLIES", **asks)
        right = CommandSpec("Publish", (topic.text,), mqmd=mqmd, queue=topic.stream)
        wrong = int(d[2] * 7)
        if wrong == 0:
            return replace(_made(right), queue=CONTROL_QUEUE)
        if wrong == 1:
            return _made(replace(right, word="Subscribe"))
        if wrong == 2:
            return _made(replace(right, topics=()))
        if wrong == 3:
            return _made(replace(right, topics=(f"{topic.text}/#",)))
        if wrong == 4:
            return _made(replace(right, options=("RetainPublication",)))
        made = _made(right)
        cut = len(made.body) // 2 if wrong == 5 else len(made.body)
        return replace(made, body=made.body[:cut].replace(b"</psc>", b"</psd>"))


def _descriptor(
    user: str, *, msg_type: int = MQMT_DATAGRAM, expiry: int = -1, persistence: int = 0, **more: object
) -> Mqmd:
    plain = Mqmd(msg_type=msg_type, expiry=expiry, persistence=persistence, priority=4, user_identifier=user)
    return replace(plain, put_appl_name="workload", **more)  # type: ignore[arg-type]


def _made(wanted: CommandSpec) -> _Made:
    message = command_message(wanted)
    assert message.md is not None
    return _Made(message.queue, message.md, message.body)
