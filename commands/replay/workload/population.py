"""The topics of a generated workload, and the subscribers to them.

Each is a function of the seed and its number alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from commands.broker.objects import DEFAULT_STREAM
from commands.model import RegOpt
from commands.replay.workload.options import WorkloadOptions
from commands.replay.workload.seeded_random import Zipf, draws, pick
from commands.replay.workload.setup import prefix_of

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
