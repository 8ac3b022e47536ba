"""A captured workload through the network of today and through another: who gets more, less, twice, later.

A subscriber is a queue at the queue manager where its program is today. A message of a queue manager that the other
network does not have is put at the only one that it has: that is how a move to one broker is compared.

The comparison of two networks as one HTML page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict

from commands.broker.puts import PutKind
from commands.explain.pictures import NetworkNode, network_svg
from commands.network.network import Network, Step, absence
from commands.pages import Cell, Column, ColumnKind, Figure, Section, Series, Severity, document, table
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.network.local import NetworkReplay, NetworkSetup
from rfh2.captured import CapturedMessage
from rfh2.errors import QPubSubError

MOST_EXAMPLES: Final = 20
"""So many examples of each change are in the report; all are counted."""


class NetworkChange(StrEnum):
    """How what a subscriber gets of a publication differs in the other network."""

    MORE = "more"
    LESS = "less"
    TWICE = "twice"
    LATER = "later"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class NetworkExample(_Frozen):
    """One difference. seq: of the message. qmgr, queue: the subscriber. detail: the rule or the way, with values."""

    change: NetworkChange
    seq: int
    topic: str
    qmgr: str
    queue: str
    detail: str


class SubscriberChanges(_Frozen):
    """How many publications differ for one subscriber, by change."""

    qmgr: str
    queue: str
    changes: dict[NetworkChange, int]


class LinkFigures(_Frozen):
    """What went from one queue manager to a neighbour."""

    sender: str
    receiver: str
    proxies: int
    publications: int


class NetworkFigures(_Frozen):
    """A network in numbers: flows between queue managers, and what they hold at the end.

    proxy_flows: proxy subscriptions made and withdrawn. publications_sent: publications that went along a link.
    """

    queue_managers: int
    proxy_flows: int
    proxy_subscriptions: int
    publications_sent: int
    deliveries: int
    retained_copies: int
    links: tuple[LinkFigures, ...]


class NetworkReport(_Frozen):
    """The comparison of two networks."""

    messages: int
    before: NetworkFigures
    after: NetworkFigures
    totals: dict[NetworkChange, int]
    subscribers: tuple[SubscriberChanges, ...]
    examples: tuple[NetworkExample, ...]


class _Key(NamedTuple):
    qmgr: str
    queue: str
    topic: str


class _Got(NamedTuple):
    """copies: how many. hops: over how many links the first came. by: from whom each came, "" for none."""

    copies: int
    hops: int
    by: tuple[str, ...]


class NetworkComparison:
    """Compares captured messages. Raises what ``NetworkSetup.build`` does."""

    def __init__(self, before: NetworkSetup, after: NetworkSetup) -> None:
        self._before, self._after = NetworkReplay(before), NetworkReplay(after)
        self._messages = 0
        self._deliveries = [0, 0]
        self._totals: Counter[NetworkChange] = Counter()
        self._subscribers: dict[tuple[str, str], Counter[NetworkChange]] = {}
        self._examples: list[NetworkExample] = []

    @property
    def networks(self) -> tuple[Network, Network]:
        """The networks, today's and the other."""
        return self._before.network, self._after.network

    def compare(self, message: CapturedMessage, *, counted: bool = True) -> list[NetworkExample]:
        """What differs for one message. Raises what ``NetworkReplay.replay`` does.

        counted: whether it is reported. If not, nothing is returned, and both networks process it all the same.
        """
        today, _ = self._before.replay(message)
        moved = self._at(message.qmgr or DEFAULT_QMGR)
        then, _ = self._after.replay(replace_qmgr(message, moved))
        if not counted:
            return []
        self._messages += 1
        was = self._received(today, moves=True)
        now = self._received(then, moves=False)
        self._deliveries[0] += sum(got.copies for got in was.values())
        self._deliveries[1] += sum(got.copies for got in now.values())
        found = [
            NetworkExample(
                change=change, seq=message.seq, topic=key.topic, qmgr=key.qmgr, queue=key.queue, detail=detail
            )
            for key in dict.fromkeys((*was, *now))
            for change, detail in self._changes(key, was.get(key), now.get(key), today, then)
        ]
        for each in found:
            self._totals[each.change] += 1
            self._subscribers.setdefault((each.qmgr, each.queue), Counter())[each.change] += 1
            if self._totals[each.change] <= MOST_EXAMPLES:
                self._examples.append(each)
        return found

    def report(self) -> NetworkReport:
        """The report on all messages so far."""
        return NetworkReport(
            messages=self._messages,
            before=figures(self._before.network, self._deliveries[0]),
            after=figures(self._after.network, self._deliveries[1]),
            totals={change: self._totals[change] for change in NetworkChange},
            subscribers=tuple(
                SubscriberChanges(qmgr=qmgr, queue=queue, changes=dict(sorted(counts.items())))
                for (qmgr, queue), counts in sorted(self._subscribers.items())
            ),
            examples=tuple(self._examples),
        )

    def _at(self, qmgr: str) -> str:
        names = self._after.network.queue_managers
        if qmgr in names:
            return qmgr
        if len(names) != 1:
            raise QPubSubError(f"queue manager {qmgr} is not in the other network, which has several: add it there")
        return next(iter(names))

    def _received(self, step: Step, *, moves: bool) -> Mapping[_Key, _Got]:
        """What each subscriber got, under the names of the other network."""
        names = self._before.network.queue_managers
        got: dict[_Key, _Got] = {}
        for received in step.received:
            hops = 0 if received.flow is None else len(received.flow.fingerprints)
            by = "" if received.flow is None else received.flow.sender
            for put in received.outcome.puts:
                if put.kind is not PutKind.PUBLICATION:
                    continue
                qmgr = self._at(put.qmgr) if moves and put.qmgr in names else put.qmgr
                key = _Key(qmgr, put.queue, put.topic or "")
                known = got.get(key)
                got[key] = (
                    _Got(1, hops, (by,)) if known is None else _Got(known.copies + 1, known.hops, (*known.by, by))
                )
        return got

    def _changes(
        self, key: _Key, was: _Got | None, now: _Got | None, today: Step, then: Step
    ) -> Iterator[tuple[NetworkChange, str]]:
        if now is None:
            yield NetworkChange.LESS, self._why(self._after.network, then, key)
        elif was is None:
            yield NetworkChange.MORE, f"today {self._why(self._before.network, today, key)}"
        elif now.copies != was.copies:
            if now.copies < was.copies:
                yield NetworkChange.LESS, f"{now.copies} copies instead of {was.copies}"
            else:
                by = " and ".join(each or "the publisher's own queue manager" for each in now.by)
                yield NetworkChange.TWICE, f"would arrive {now.copies} times instead of {was.copies}: by {by}"
        elif now.hops > was.hops:
            yield NetworkChange.LATER, f"over {now.hops} links instead of {was.hops}"

    @staticmethod
    def _why(network: Network, step: Step, key: _Key) -> str:
        """Why a subscriber of this queue got nothing, if it has a subscription that selects the topic."""
        for qmgr, each in network.queue_managers.items():
            for subscription in each.broker.space.match_once(key.topic, step.now):
                if (subscription.dest_qmgr, subscription.dest_queue) == (key.qmgr, key.queue):
                    if qmgr == step.received[0].qmgr:
                        return f"kept back at {qmgr} by a rule for its own subscriptions"
                    kept = absence(network, step, subscription, key.topic, qmgr)
                    return f"kept back at {kept.qmgr} by {kept.why}"
        return "no subscription of this queue selects the topic"


def replace_qmgr(message: CapturedMessage, qmgr: str) -> CapturedMessage:
    """*message* as if it had been put at another queue manager."""
    return message if message.qmgr == qmgr else message.model_copy(update={"qmgr": qmgr})


def figures(network: Network, deliveries: int) -> NetworkFigures:
    """The network in numbers. deliveries: publications that subscribers got."""
    links = tuple(
        LinkFigures(sender=sender, receiver=receiver, proxies=each.proxies, publications=each.publications)
        for (sender, receiver), each in sorted(network.traffic.items())
    )
    return NetworkFigures(
        queue_managers=len(network.queue_managers),
        proxy_flows=sum(each.proxies for each in links),
        proxy_subscriptions=sum(each.proxies_here for each in network.queue_managers.values()),
        publications_sent=sum(each.publications for each in links),
        deliveries=deliveries,
        retained_copies=sum(network.retained_copies.values()),
        links=links,
    )


def network_picture(network: Network, title: str) -> str:
    """The text of an SVG file."""
    retained, links = network.retained_copies, network.topology.links()
    nodes = [
        NetworkNode(
            position.qmgr,
            position.parent,
            position.clusters,
            (f"{network.queue_managers[position.qmgr].proxies_here:,} proxies, {retained[position.qmgr]:,} retained",),
        )
        for position in network.topology.positions
    ]
    number = {qmgr: n for n, qmgr in enumerate(links)}
    pairs = [(qmgr, link.neighbour) for qmgr in links for link in links[qmgr] if number[qmgr] < number[link.neighbour]]
    publications = {channel: each.publications for channel, each in network.traffic.items() if each.publications}
    return network_svg(nodes, list(dict.fromkeys(pairs)), publications, title)


# The comparison of two networks as text.

_WORDS = {
    NetworkChange.MORE: "more",
    NetworkChange.LESS: "less",
    NetworkChange.TWICE: "twice",
    NetworkChange.LATER: "later",
}
FIGURES: Final = (
    ("queue managers", "queue_managers"),
    ("publications that subscribers get", "deliveries"),
    ("publications sent between queue managers", "publications_sent"),
    ("proxy subscriptions sent or withdrawn", "proxy_flows"),
    ("proxy subscriptions at the end", "proxy_subscriptions"),
    ("retained publications, all copies", "retained_copies"),
)
"""What a person calls each of ``NetworkFigures``."""


def network_report_lines(report: NetworkReport) -> Iterator[str]:
    """The lines of the report."""
    yield f"{'':<44}{'before':>12}{'after':>12}"
    for label, name in FIGURES:
        yield f"{label:<44}{getattr(report.before, name):>12,}{getattr(report.after, name):>12,}"
    yield ""
    if not any(report.totals.values()):
        yield "Every subscriber gets the same."
        return
    yield f"{'subscriber':<44}{'more':>8}{'less':>8}{'twice':>8}{'later':>8}"
    for each in report.subscribers:
        counts = "".join(f"{each.changes.get(change, 0):>8,}" for change in NetworkChange)
        yield f"{f'{each.queue} at {each.qmgr}':<44}{counts}"
    yield ""
    for example in report.examples:
        where = f"{example.queue} at {example.qmgr}"
        yield f"{example.seq:>6}  {where}: {_WORDS[example.change]}: {example.topic}: {example.detail}"


_SERIES: Final = {
    NetworkChange.LESS: Series("less", "red"),
    NetworkChange.TWICE: Series("twice", "violet"),
    NetworkChange.LATER: Series("later", "amber"),
    NetworkChange.MORE: Series("more", "blue"),
}
"""The worst first."""
_LABELS: Final = {
    NetworkChange.LESS: ("publications that subscribers miss", Severity.BAD),
    NetworkChange.TWICE: ("publications that come more than once", Severity.BAD),
    NetworkChange.LATER: ("publications over more links", Severity.WARNING),
    NetworkChange.MORE: ("publications more", Severity.WARNING),
}
_SUBSCRIBERS: Final = "Subscribers that would notice"
_TOGETHER: Final = "The two networks in numbers"


def network_page(report: NetworkReport, estates: tuple[str, str], picture: str) -> str:
    """The page. estates: the names of the two files. picture: of the second network, as SVG."""
    before, after = estates
    sections = [
        Section(_SUBSCRIBERS, _subscribers(report), f"{len(report.subscribers):,}"),
        Section("Examples, with the rule or the way", _examples(report), f"{len(report.examples):,}"),
        Section(_TOGETHER, _numbers(report)),
        Section("The network after, with its publications", Markup(picture)),
        Section("Links after", _links(report), f"{len(report.after.links):,}"),
    ]
    lead = [f"{report.messages:,} messages, replayed through {before} and through {after}."]
    heading = f"What {after} does differently from {before}"
    return document(heading, lead, list(_figures(report)), [each for each in sections if each.content])


def _figures(report: NetworkReport) -> Iterator[Figure]:
    for change, (label, severity) in _LABELS.items():
        count = report.totals[change]
        yield Figure(f"{count:,}", label, severity if count else Severity.GOOD, _SUBSCRIBERS)
    yield Figure(f"{report.after.deliveries:,}", "publications that subscribers get", section=_TOGETHER)


def _subscribers(report: NetworkReport) -> Markup:
    if not report.subscribers:
        return Markup()
    met = [change for change in _SERIES if report.totals[change]]
    bars = Column("differences", ColumnKind.BARS, tuple(_SERIES[change] for change in met))
    columns = [Column("queue", ColumnKind.CODE), Column("queue manager", ColumnKind.CODE), bars]
    rows: list[list[Cell]] = [
        [each.queue, each.qmgr, tuple(each.changes.get(change, 0) for change in met)] for each in report.subscribers
    ]
    return table(columns, rows, varies=("queue",))


def _examples(report: NetworkReport) -> Markup:
    if not report.examples:
        return Markup()
    columns = [
        Column("message", ColumnKind.NUMBER),
        Column("change"),
        Column("queue", ColumnKind.CODE),
        Column("queue manager", ColumnKind.CODE),
        Column("topic", ColumnKind.CODE),
        Column("rule or way"),
    ]
    rows: list[list[Cell]] = [
        [each.seq, each.change.value, each.queue, each.qmgr, each.topic, each.detail] for each in report.examples
    ]
    return table(columns, rows)


def _numbers(report: NetworkReport) -> Markup:
    columns = [Column("figure"), Column("before", ColumnKind.NUMBER), Column("after", ColumnKind.NUMBER)]
    rows: list[list[Cell]] = [
        [label, getattr(report.before, name), getattr(report.after, name)] for label, name in FIGURES
    ]
    return table(columns, rows)


def _links(report: NetworkReport) -> Markup:
    if not report.after.links:
        return Markup()
    columns = [
        Column("from", ColumnKind.CODE),
        Column("to", ColumnKind.CODE),
        Column("publications", ColumnKind.NUMBER),
        Column("proxy subscriptions", ColumnKind.NUMBER),
    ]
    rows: list[list[Cell]] = [
        [each.sender, each.receiver, each.publications, each.proxies] for each in report.after.links
    ]
    return table(columns, rows)
