"""What a generated workload is made of: its options, its MQSC, its topics, and the subscribers to them.

Each topic and each subscriber is a function of the seed and its number alone. So are random numbers, which depend on a
seed and a position: any part of a workload can be made separately. Their digits come from BLAKE2b: the same on every
machine and in every version of Python.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate
from struct import Struct
from typing import Final, NamedTuple, Self, TypeVar

from pydantic import BaseModel, Field, model_validator

from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE, DEFAULT_STREAM
from commands.explain.build import CommandSpec, command_message
from commands.model import PubOpt, RegOpt
from rfh2.captured import CapturedMessage
from rfh2.constants import MQMT_DATAGRAM, MQMT_REQUEST, MQRO_NAN
from rfh2.errors import QPubSubError
from rfh2.mqmd import Mqmd
from streams.topic_objects import QUEUE_NAMELIST

DEFAULT_QMGR: Final = "QM1"
_START: Final = datetime(2026, 1, 5, 8, tzinfo=UTC)


class WorkloadError(QPubSubError):
    """Options that contradict each other."""


class WorkloadOptions(BaseModel, frozen=True, extra="forbid"):
    """The options of a generated workload; shares are between 0 and 1.

    seed: another seed, another workload. messages: how many in all. start: time of the first message, UTC. per_second:
    messages a second of captured time. qmgrs: queue managers, between which traffic is spread evenly. streams: stream
    queues, the default one included. topics: in all streams together. zipf: exponent of their popularity; 0 is even.
    subscribers: at most one subscription each, registered first. control: share of messages that are RegSub, DeregSub,
    ReqUpdate or DeletePub, once all subscribers are registered. wildcards, named, filters, rfh1: shares of subscribers
    (rfh1: and of publishers). retained: share of topics on which everything published is retained. expiring: share of
    subscribers and of retained topics with an Expiry. properties: share of publications with a usr folder. several:
    share of publications to two topics. persistent: share of publications. errors: share of messages that are wrong in
    one of several ways. strays: share of messages on queues that no broker reads. body_bytes: data in a publication.
    """

    seed: int = 0
    messages: int = Field(default=10_000, ge=0)
    start: datetime = _START
    per_second: float = Field(default=1000.0, gt=0)
    qmgrs: int = Field(default=1, ge=1, le=1000)
    streams: int = Field(default=2, ge=1, le=1000)
    topics: int = Field(default=1000, ge=1, le=10_000_000)
    zipf: float = Field(default=1.0, ge=0, le=5)
    subscribers: int = Field(default=200, ge=0, le=10_000_000)
    control: float = Field(default=0.01, ge=0, le=1)
    wildcards: float = Field(default=0.1, ge=0, le=1)
    named: float = Field(default=0.2, ge=0, le=1)
    filters: float = Field(default=0.05, ge=0, le=1)
    rfh1: float = Field(default=0.1, ge=0, le=1)
    retained: float = Field(default=0.2, ge=0, le=1)
    expiring: float = Field(default=0.05, ge=0, le=1)
    properties: float = Field(default=0.1, ge=0, le=1)
    several: float = Field(default=0.01, ge=0, le=1)
    persistent: float = Field(default=0.5, ge=0, le=1)
    errors: float = Field(default=0.001, ge=0, le=1)
    strays: float = Field(default=0.001, ge=0, le=1)
    body_bytes: int = Field(default=200, ge=0, le=100_000_000)

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.control + self.errors + self.strays > 1:
            raise WorkloadError("control, errors and strays together are more than all messages")
        if self.start.tzinfo is None:
            raise WorkloadError("start needs a time zone")
        return self

    def qmgr(self, number: int) -> str | None:
        """The name of queue manager *number*; None where there is but one."""
        return None if self.qmgrs == 1 else f"QM{number % self.qmgrs + 1}"

    def stream(self, number: int) -> str:
        """The name of stream *number*; 0 is the default one."""
        at = number % self.streams
        return DEFAULT_STREAM if at == 0 else f"WORKLOAD.STREAM.{at}"


def setup_script(options: WorkloadOptions) -> str:
    """MQSC for every queue manager of the workload to start with; empty where the default stream is the only one."""
    named = [options.stream(number) for number in range(1, options.streams)]
    if not named:
        return ""
    lines = [f"DEFINE QLOCAL({name})" for name in named]
    lines += [f"DEFINE TOPIC({name}) TOPICSTR('{prefix_of(name)}') WILDCARD(BLOCK)" for name in named]
    names = ", ".join([options.stream(0), ADMIN_STREAM, *named])
    lines.append(f"ALTER NAMELIST({QUEUE_NAMELIST}) NAMES({names})")
    return "\n".join(lines) + "\n"


def prefix_of(stream: str) -> str:
    """The TOPICSTR of a named stream's topic object."""
    return stream.replace(".", "/")


_PLACE: Final = Struct("<qqq")
_MANTISSA: Final = (1 << 52) - 1
_WORDS: Final = Struct("<8Q")
_SCALE: Final = 2.0**-52

T = TypeVar("T")


def draws(seed: int, kind: int, number: int) -> tuple[float, ...]:
    """Eight numbers from 0 up to, not including, 1, for the thing of this *kind* and *number*."""
    digest = blake2b(_PLACE.pack(seed, kind, number)).digest()
    return tuple((word & _MANTISSA) * _SCALE for word in _WORDS.unpack(digest))


def pick(of: Sequence[T], draw: float) -> T:
    """One of *of*, each as likely as the next."""
    return of[int(draw * len(of))]


class Zipf:
    """Popularity: number *n* from 0 has the weight 1 / (n + 1) ** exponent."""

    __slots__ = ("_cumulated", "_total")

    def __init__(self, size: int, exponent: float) -> None:
        # Ten million topics are 80 MB, not 320.
        self._cumulated = array("d", accumulate((n + 1) ** -exponent for n in range(size)))
        self._total = self._cumulated[-1]

    def __call__(self, draw: float) -> int:
        """The number that *draw* falls on."""
        return min(bisect_right(self._cumulated, draw * self._total), len(self._cumulated) - 1)


_AREAS: Final = ("Stock", "Rate", "Order", "Position", "Weather", "Flight", "Meter", "Sport")
_PLACES: Final = ("London", "Zürich", "Tokyo", "Perth", "Lima", "Accra", "Oslo", "Delhi")
_OPTIONS: Final = (
    RegOpt.INFORM_IF_RET,
    RegOpt.NEW_PUBS_ONLY,
    RegOpt.PUB_ON_REQ_ONLY,
    RegOpt.LOCAL,
    RegOpt.PERS,
    RegOpt.NON_PERS,
    RegOpt.PERS_AS_QUEUE,
    RegOpt.VARIABLE_USER_ID,
)
_FILTERS: Final = ("price > 50", "region = 'EU' AND price <= 80", "region IN ('EU', 'US')")
_EXPIRY_TENTHS: Final = 600


class SubscriberKind(IntEnum):
    """The purpose of a random number."""

    TOPIC = 1
    SUBSCRIBER = 2
    MESSAGE = 3


@dataclass(frozen=True, slots=True)
class Topic:
    """text: within its stream. retained: whatever is published on it is. expiry: in tenths of a second, or -1."""

    text: str
    stream: str
    retained: bool
    expiry: int


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Somebody with one registration. topic: as it is registered. expiry: in tenths of a second, or -1."""

    number: int
    qmgr: int
    topic: str
    stream: str
    queue: str
    user: str
    options: tuple[RegOpt, ...]
    rfh1: bool
    sub_name: str | None
    filter: str | None
    expiry: int


class Population:
    """The topics and the subscribers of one workload."""

    def __init__(self, options: WorkloadOptions) -> None:
        self._options = options
        self._popularity = Zipf(options.topics, options.zipf)

    def topic(self, number: int) -> Topic:
        """Topic *number*, 0 the most popular."""
        options = self._options
        d = draws(options.seed, SubscriberKind.TOPIC, number)
        text = f"{pick(_AREAS, d[0])}/{pick(_PLACES, d[1])}/{number:x}"
        retained = d[2] < options.retained
        expiry = _EXPIRY_TENTHS if retained and d[3] < options.expiring else -1
        return Topic(text, options.stream(number), retained, expiry)

    def popular(self, draw: float) -> int:
        """The number of a random topic; popular topics are more likely."""
        return self._popularity(draw)

    def subscriber(self, number: int) -> Subscriber:
        """Subscriber *number*."""
        options = self._options
        d = draws(options.seed, SubscriberKind.SUBSCRIBER, number)
        e = draws(options.seed, SubscriberKind.SUBSCRIBER, ~number)
        topic = self.topic(self.popular(d[0]))
        rfh1 = d[1] < options.rfh1
        wild = d[2] < options.wildcards
        written = _pattern(topic.text, d[2] / options.wildcards, rfh1) if wild else topic.text
        if not rfh1 and topic.stream != DEFAULT_STREAM:
            # An MQRFH2 subscriber names no stream: it writes the whole topic string.
            written = f"{prefix_of(topic.stream)}/{written}"
        reg_options = tuple(option for option, draw in zip(_OPTIONS, e, strict=True) if draw < 0.05)
        if rfh1:
            reg_options = tuple(option for option in reg_options if option not in (RegOpt.PERS_AS_QUEUE,))
        named = d[3] < options.named
        return Subscriber(
            number=number,
            qmgr=number % options.qmgrs,
            topic=written,
            stream=topic.stream,
            queue=f"SUBSCRIBER.{number % max(1, options.subscribers * 9 // 10)}",
            user=f"sub{number % 1000}",
            options=reg_options if reg_options or d[6] < 0.5 else (RegOpt.NONE,),
            rfh1=rfh1,
            sub_name=f"subscription-{number}" if named and not rfh1 else None,
            filter=pick(_FILTERS, d[5]) if d[4] < options.filters and not rfh1 else None,
            expiry=_EXPIRY_TENTHS if d[7] < options.expiring else -1,
        )


def _pattern(topic: str, draw: float, rfh1: bool) -> str:
    area, place, name = topic.split("/")
    if rfh1:
        return f"{area}*" if draw < 0.3 else f"{area}/{place[0]}?*/*"
    if draw < 0.2:
        return f"{area}/#"
    return f"{area}/{place}/#" if draw < 0.7 else f"+/{place}/{name}"


# The messages of a generated workload, each from its number alone: any part can be made by itself, in any order.
#
# First every subscriber registers. After that every so many messages one is a control message, in a cycle of ten:
#
#     0 to 3   a subscriber leaves; the next time round he comes again
#     4 to 6   a subscriber registers again, which renews an expiry
#     7, 8     a subscriber asks for what is retained
#     9        what is retained on a topic is deleted
#
# The rest are publications, with some errors and strays among them. A header is made once and used again; what differs
# between two publications on a topic is their MsgId, put time and data.


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
