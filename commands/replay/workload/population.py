"""What a generated workload is made of: its options, its MQSC, its topics, and the subscribers to them.

Each topic and each subscriber is a function of the seed and its number alone. So are random numbers, which depend on a
seed and a position: any part of a workload can be made separately. Their digits come from BLAKE2b: the same on every
machine and in every version of Python.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from hashlib import blake2b
from itertools import accumulate
from struct import Struct
from typing import Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from commands.broker.objects import ADMIN_STREAM, DEFAULT_STREAM
from commands.model import RegOpt
from rfh2.errors import QPubSubError
from streams.topic_objects import QUEUE_NAMELIST

DEFAULT_QMGR: Final = "QM1"
_START: Final = datetime(2026, 1, 5, 8, tzinfo=UTC)


class WorkloadError(QPubSubError):
    """Options that contradict each other."""


class WorkloadOptions(BaseModel):
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

    model_config = ConfigDict(frozen=True, extra="forbid")

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
