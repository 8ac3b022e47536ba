"""One embedded queue manager and its neighbours: which messages go to them, and what theirs do here.

All decisions are those of ``commands.network``. This module knows who the neighbours are, turns flows into messages for
their transmission queues, and messages of neighbours into flows. What it was told and has sent is recorded in the unit
of work of the command (``commands.qmgr.store.neighbours``); everything else is made again from the subscriptions when
the state is loaded:

    wanted, from the subscriptions and topic objects as they are ── less what neighbours were sent ──> flows

So it does not matter who changed a subscription, a topic object or PARENT: a program, MQSC, or a restored database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from commands.broker.context import Semantics
from commands.broker.core import BrokerCore
from commands.broker.objects import INTER_QMGR_PUBS, Objects, QueueManager
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing
from commands.headers.response import Completion
from commands.network.cluster_topics import Hosts, Repository, RepositoryEntry
from commands.network.flows import DeletionFlow, Flow, Place, ProxyFlow, PublicationFlow
from commands.network.queue_manager import NetworkQueueManager, Routing, proxies_by_link
from commands.network.topology import Link, NeighbourStatus, Refresh, Relation
from commands.qmgr import flow_messages
from commands.qmgr.flow_messages import ProxyRange, ProxyTopics, Relationship, Returned, Sent, Word
from commands.qmgr.store.neighbours import NeighbourRecord, NeighbourRecords
from rfh2.constants import MQRC_UNKNOWN_REMOTE_Q_MGR
from rfh2.errors import CommandError, DecodeError
from streams.operations import Effect, Unsubscribe

_log = logging.getLogger("qpubsub.network")

_TOPICS_A_MESSAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """What ``addressing`` asks of a queue manager of version 7, whose topics lie where they lie here."""

    objects: Objects
    semantics: Semantics = Semantics.V7


@dataclass(frozen=True, slots=True)
class FromNeighbour:
    """What a message of a neighbour did here. outgoing: the messages for neighbours that it causes.

    is_outdated: whether the state has to be loaded again, since definitions of others count no more.
    """

    outcome: Outcome
    outgoing: Sequence[Outgoing] = ()
    is_outdated: bool = False


class LiveNetwork:
    """The network of one loaded broker. records: those of the unit of work that is open."""

    def __init__(self, broker: BrokerCore, records: Callable[[], NeighbourRecords]) -> None:
        self._broker, self._records = broker, records
        self._name = broker.qmgr
        self._own = RepositoryEntry.of(broker.objects)
        self._neighbours: dict[Link, NeighbourRecord] = {}
        self._place = self._placed()
        self._arranged = False
        self._strangers: set[str] = set()  # those that the log names already
        self._synchronised: set[Link] = set()

    @property
    def is_alone(self) -> bool:
        """Whether there are no neighbours, and none are wanted."""
        return not (self._neighbours or self._own.clusters or self._broker.objects.qmgr.parent)

    def arrange(self, now: datetime) -> FromNeighbour | None:
        """Have records and neighbours agree with what was loaded: PARENT, clusters, scope, subscriptions.

        None where that was done since. now: UTC.
        """
        if self._arranged:
            return None
        self._arranged = True
        if self.is_alone:
            return FromNeighbour(Outcome(effects=tuple(self._without_strangers(now))))
        before = set(self._neighbours)
        outgoing = [*self._relate(), *self._gather()]
        effects = self._without_strangers(now)
        if effects or before != set(self._neighbours):
            self._place = self._placed()
        for link, record in list(self._neighbours.items()):
            outgoing += self._refreshed(record, now) if record.refresh else self._differences(link)
        return FromNeighbour(Outcome(effects=tuple(effects), completion=Completion.OK), outgoing)

    def sent_on(self, outcome: Outcome) -> list[Outgoing]:
        """The messages for neighbours that a command of a program causes."""
        return self._outgoing(self._place.sent_on(outcome)) if self._place.routing.links else []

    def changed(self, effects: Iterable[Effect]) -> list[Outgoing]:
        """The same for changes of subscriptions that have no command."""
        return self._outgoing(self._place.changed(effects)) if self._place.routing.links else []

    def receive(self, arrival: Arrival) -> FromNeighbour:
        """Carry out a message of a neighbour. One that cannot be read is a dead letter."""
        try:
            sent = flow_messages.read(arrival, self._name)
        except (DecodeError, CommandError) as error:
            return FromNeighbour(self._broker.set_aside(arrival, error.reason, str(error)))
        link = Link(sent.sender, sent.cluster)
        if link not in self._neighbours and not self._records().has_sent(sent.sender):
            # An answer would make a transmission queue of whatever name a program writes there.
            why = f"it says that queue manager {sent.sender} sent it, but nothing has come from there before"
            return FromNeighbour(self._broker.set_aside(arrival, MQRC_UNKNOWN_REMOTE_Q_MGR, why))
        if isinstance(sent, Relationship):
            return self._membership(sent, arrival.now) if sent.cluster else self._relationship(sent, arrival.now)
        if isinstance(sent, Returned):
            return self._returned(sent, arrival.now)
        if link not in self._neighbours and not self._is_of_a_cluster(sent):
            return self._from_stranger(sent, arrival)
        now = arrival.now
        match sent:
            case ProxyTopics():
                return self._proxies(link, sent.topics, sent.withdrawn, now)
            case ProxyRange():
                return self._range(sent, now)
            case DeletionFlow():
                taken = self._place.receive_deletion(sent, now)
                return _done(taken.effects, self._outgoing(taken.flows))
            case PublicationFlow():
                return self._publication(sent, arrival)

    def _is_of_a_cluster(self, sent: Sent) -> bool:
        """Whether a publication or a deletion was sent within a cluster that this queue manager is in.

        Who sent it may have left since: that it has is seen before its last messages are read.
        """
        return isinstance(sent, PublicationFlow | DeletionFlow) and sent.cluster in self._own.clusters

    def _publication(self, sent: PublicationFlow, arrival: Arrival) -> FromNeighbour:
        carried = replace(arrival, queue=INTER_QMGR_PUBS, md=None, body=b"")
        outcome = self._place.receive_publication(sent, carried)
        self._place.kept_back.clear()
        if outcome is None:
            return _done()
        if outcome.reason is None:
            return FromNeighbour(outcome, self._outgoing(self._place.publication_sent_on(sent, outcome)))
        # The publish exit failed.
        letter = self._broker.set_aside(arrival, outcome.reason, outcome.why)
        return FromNeighbour(
            replace(letter, effects=outcome.effects), self._outgoing(self._place.changed(outcome.effects))
        )

    # Who the neighbours are

    def _placed(self) -> NetworkQueueManager:
        """This queue manager among its neighbours, with what its subscriptions want of each of them."""
        self._neighbours = self._recorded()
        links = self._links()
        there = {link.neighbour: _Neighbour(Objects(QueueManager(link.neighbour))) for link in links}
        hosts = Repository(self._own, self._records().repository()).hosts() if self._own.clusters else Hosts({})
        place = NetworkQueueManager(Routing(self._broker, links, there, hosts))
        if links:
            for _ in place.begin():
                pass  # what was not sent yet is found by comparing
            place.resume()
        return place

    def _recorded(self) -> dict[Link, NeighbourRecord]:
        return {record.link: record for record in self._records().all()}

    def _links(self) -> list[Link]:
        """Those of the hierarchy first."""
        links = [link for link, each in self._neighbours.items() if each.status is not NeighbourStatus.REFUSED]
        return sorted(links, key=lambda link: (link.cluster, link.neighbour))

    def _relate(self) -> list[Outgoing]:
        """Leave the parent that PARENT does not name any more, and attach to the one that it names now."""
        records, wanted = self._records(), self._broker.objects.qmgr.parent
        outgoing = []
        for link, record in list(self._neighbours.items()):
            if record.relation is Relation.PARENT and record.qmgr != wanted:
                outgoing.append(flow_messages.relationship(self._name, link, Word.DETACH))
                records.forget(link)
                del self._neighbours[link]
        if wanted and wanted != self._name and Link(wanted) not in self._neighbours:
            self._save(NeighbourRecord(wanted, Relation.PARENT, NeighbourStatus.STARTING, Refresh.PROXIES))
        return outgoing

    def _gather(self) -> list[Outgoing]:
        """Leave the clusters that this queue manager is no member of any more, and know the members of the others."""
        outgoing = []
        wanted = Repository(self._own, self._records().repository()).links()
        for link in [link for link in self._neighbours if link.cluster and link not in wanted]:
            if link.cluster not in self._own.clusters:
                outgoing.append(flow_messages.relationship(self._name, link, Word.LEAVE))
            else:
                _log.info("queue manager %s is no longer in cluster %s", link.neighbour, link.cluster)
            self._records().forget(link)
            del self._neighbours[link]
        for link in wanted:
            if link not in self._neighbours:
                self._save(_member(link, Refresh.PROXIES))
                _log.info("queue manager %s is in cluster %s", link.neighbour, link.cluster)
        return outgoing

    def _without_strangers(self, now: datetime) -> list[Effect]:
        """Remove the proxy subscriptions of those that are no neighbours any more."""
        space = self._broker.space
        gone = [each for each, link in proxies_by_link(space.subscriptions(), self._links()) if link is None]
        return [effect for subscription in gone for effect in space.apply(Unsubscribe(subscription), now)]

    def _relationship(self, sent: Relationship, now: datetime) -> FromNeighbour:
        link = Link(sent.sender)
        known = self._neighbours.get(link)
        match sent.word:
            case Word.ATTACH if sent.sender in (self._broker.objects.qmgr.parent, self._name):
                _log.warning("queue manager %s cannot be the child of %s: it is its parent", sent.sender, self._name)
                return _done((), [flow_messages.relationship(self._name, link, Word.REFUSE)])
            case Word.ATTACH:
                self._save(NeighbourRecord(sent.sender, Relation.CHILD, NeighbourStatus.ACTIVE))
                _log.info("queue manager %s is a child of %s", sent.sender, self._name)
                self._place = self._placed()
                accepted = flow_messages.relationship(self._name, link, Word.ACCEPT)
                return _done((), [accepted, *self._all_proxies(link)])
            case Word.DETACH if known is not None and known.relation is Relation.CHILD:
                self._records().forget(link)
                _log.info("queue manager %s is not a child of %s any more", sent.sender, self._name)
            case Word.ACCEPT if known is not None and known.relation is Relation.PARENT:
                self._save(replace(known, status=NeighbourStatus.ACTIVE))
                return _done()
            case Word.REFUSE if known is not None and known.relation is Relation.PARENT:
                self._save(replace(known, status=NeighbourStatus.REFUSED))
                _log.error("queue manager %s refuses %s as its child", sent.sender, self._name)
            case _:
                return _done()
        return self._parted(now)

    def _membership(self, sent: Relationship, now: datetime) -> FromNeighbour:
        """A member of a cluster says that it did not know this queue manager, or that it is no member any more."""
        link = Link(sent.sender, sent.cluster)
        if sent.word is Word.JOIN and sent.cluster not in self._own.clusters:
            return _done((), [flow_messages.relationship(self._name, link, Word.LEAVE)])
        entries = {each.qmgr: each for each in self._records().repository()}
        entry = entries.get(sent.sender, RepositoryEntry(sent.sender))
        if sent.word is Word.LEAVE:
            self._records().learn(
                replace(entry, clusters=tuple(each for each in entry.clusters if each != link.cluster))
            )
            if link in self._neighbours:
                self._records().forget(link)
                _log.info("queue manager %s is no longer in cluster %s", link.neighbour, link.cluster)
            return replace(self._parted(now), is_outdated=True)
        if link.cluster not in entry.clusters:
            self._records().learn(replace(entry, clusters=(*entry.clusters, link.cluster)))
        if link not in self._neighbours:
            self._save(_member(link))
            _log.info("queue manager %s is in cluster %s", link.neighbour, link.cluster)
            self._place = self._placed()
        return _done((), self._all_proxies(link))

    def _from_stranger(self, sent: Sent, arrival: Arrival) -> FromNeighbour:
        """Something of a queue manager that is no neighbour here: it gets it back, and nothing is done.

        Where that one has this one as its parent, it attaches, and sends it again; so does a member of a cluster. It
        may also have been sent before that one knew that the two are not connected any more; then nothing more happens.
        """
        if sent.sender not in self._strangers:
            self._strangers.add(sent.sender)
            text = "queue manager %s, which is not a neighbour of %s, sent messages, which go back to it"
            _log.warning(text, sent.sender, self._name)
        return _done((), [flow_messages.returned(self._name, arrival, sent)])

    def _returned(self, sent: Returned, now: datetime) -> FromNeighbour:
        """A neighbour does not know this queue manager any more: attach again, or let go of one that is no child."""
        known = self._neighbours.get(Link(sent.sender, sent.cluster))
        if known is None or known.status is NeighbourStatus.REFUSED:
            return _done()
        if known.relation is Relation.CHILD:
            self._records().forget(known.link)
            _log.info("queue manager %s is not a child of %s any more", sent.sender, self._name)
            return self._parted(now)
        outgoing: list[Outgoing] = []
        # If a parent is not active, it is being attached to; members are synchronised with once, whatever comes back.
        if known.status is NeighbourStatus.ACTIVE and known.link not in self._synchronised:
            self._synchronised |= {known.link} if known.relation is Relation.MEMBER else set()
            _log.warning("queue manager %s does not know %s any more: they synchronise", sent.sender, self._name)
            outgoing += self._refreshed(replace(known, refresh=Refresh.ALL), now)
        if sent.flow is not None and sent.flow.sender == self._name:
            outgoing += self._outgoing([sent.flow])
        return _done((), outgoing)

    def _parted(self, now: datetime) -> FromNeighbour:
        """A neighbour has gone: so have its proxy subscriptions, and what they needed of others."""
        self._neighbours = self._recorded()
        effects = self._without_strangers(now)
        self._place = self._placed()
        return _done(effects, [put for link in self._links() for put in self._differences(link)])

    def _save(self, record: NeighbourRecord) -> None:
        self._records().save(record)
        self._neighbours[record.link] = record

    # Proxy subscriptions

    def _wanted(self, link: Link) -> set[str]:
        return {place.topic_string for place in self._place.proxies.at(link)}

    def _differences(self, link: Link) -> list[Outgoing]:
        """What makes the proxy subscriptions at the other end of *link* those that are wanted there."""
        wanted, sent = self._wanted(link), self._records().sent_proxies(link)
        return [
            *self._proxy_messages(link, sorted(wanted - sent), withdrawn=False),
            *self._proxy_messages(link, sorted(sent - wanted), withdrawn=True),
        ]

    def _refreshed(self, record: NeighbourRecord, now: datetime) -> list[Outgoing]:
        """What a neighbour is to be sent again.

        A parent first hears that this queue manager is its child, and a member of a cluster that it is one too. A child
        that does not know this queue manager answers, and is one no more.
        """
        status = NeighbourStatus.STARTING if record.relation is Relation.PARENT else record.status
        self._save(replace(record, status=status, refresh=Refresh.NOTHING))
        word = flow_messages.INTRODUCTIONS.get(record.relation)
        outgoing = [] if word is None else [flow_messages.relationship(self._name, record.link, word)]
        outgoing += self._all_proxies(record.link)
        if record.refresh is Refresh.ALL:
            outgoing += self._outgoing(self._place.retained_for(record.link, now))
        return outgoing

    def _all_proxies(self, link: Link) -> list[Outgoing]:
        wanted, records = self._wanted(link), self._records()
        records.proxies_withdrawn(link, records.sent_proxies(link) - wanted)
        records.proxies_sent(link, wanted)
        return flow_messages.proxy_ranges(self._name, link, wanted, _TOPICS_A_MESSAGE)

    def _proxy_messages(self, link: Link, topics: Sequence[str], *, withdrawn: bool) -> list[Outgoing]:
        note = self._records().proxies_withdrawn if withdrawn else self._records().proxies_sent
        if topics:
            note(link, topics)
        parts = (topics[at : at + _TOPICS_A_MESSAGE] for at in range(0, len(topics), _TOPICS_A_MESSAGE))
        return [flow_messages.proxy_topics(self._name, link, part, withdrawn=withdrawn) for part in parts]

    def _proxies(self, link: Link, topics: Iterable[str], withdrawn: bool, now: datetime) -> FromNeighbour:
        flows: list[Flow] = []
        effects: list[Effect] = []
        for topic in topics:
            flow = ProxyFlow(link.neighbour, self._name, link.cluster, Place(topic), withdrawn)
            taken = self._place.receive_proxy(flow, now)
            flows += taken.flows
            effects += taken.effects
        return _done(effects, self._outgoing(flows))

    def _range(self, sent: ProxyRange, now: datetime) -> FromNeighbour:
        link = Link(sent.sender, sent.cluster)
        there = (place.topic_string for place in self._place.proxies_of(link))
        within = {
            topic
            for topic in there
            if (sent.after is None or topic > sent.after) and (sent.to is None or topic <= sent.to)
        }
        gone = self._proxies(link, sorted(within.difference(sent.topics)), True, now)
        made = self._proxies(link, sent.topics, False, now)
        return _done([*gone.outcome.effects, *made.outcome.effects], [*gone.outgoing, *made.outgoing])

    # Messages

    def _outgoing(self, flows: Iterable[Flow]) -> list[Outgoing]:
        """*flows* as messages; proxy subscriptions are recorded as sent."""
        self._place.kept_back.clear()
        outgoing: list[Outgoing] = []
        for flow in flows:
            match flow:
                case ProxyFlow():
                    link, topics = Link(flow.receiver, flow.cluster), (flow.place.topic_string,)
                    outgoing += self._proxy_messages(link, topics, withdrawn=flow.withdrawn)
                case PublicationFlow():
                    outgoing.append(flow_messages.publication(flow))
                case DeletionFlow():
                    outgoing.append(flow_messages.deletion(flow))
        return outgoing


def _member(link: Link, refresh: Refresh = Refresh.NOTHING) -> NeighbourRecord:
    return NeighbourRecord(link.neighbour, Relation.MEMBER, NeighbourStatus.ACTIVE, refresh, link.cluster)


def _done(effects: Iterable[Effect] = (), outgoing: Sequence[Outgoing] = ()) -> FromNeighbour:
    return FromNeighbour(Outcome(effects=tuple(effects), completion=Completion.OK), outgoing)
