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
from commands.network.flows import DeletionFlow, Flow, Link, Place, ProxyFlow, PublicationFlow
from commands.network.neighbours import NeighbourStatus, Refresh, Relation
from commands.network.queue_manager import NetworkQueueManager
from commands.network.routing import Routing
from commands.qmgr.network import flow_messages
from commands.qmgr.network.flow_messages import ProxyRange, ProxyTopics, Relationship, Returned, Sent, Word
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
    """What a message of a neighbour did here. outgoing: the messages for neighbours that it causes."""

    outcome: Outcome
    outgoing: Sequence[Outgoing] = ()


class LiveNetwork:
    """The network of one loaded broker. records: those of the unit of work that is open."""

    def __init__(self, broker: BrokerCore, records: Callable[[], NeighbourRecords]) -> None:
        self._broker, self._records = broker, records
        self._name = broker.qmgr
        self._neighbours: dict[str, NeighbourRecord] = {}
        self._place = self._placed()
        self._arranged = False
        self._strangers: set[str] = set()  # those that the log names already

    @property
    def is_alone(self) -> bool:
        """Whether there are no neighbours, and none are wanted."""
        return not self._neighbours and not self._broker.objects.qmgr.parent

    def arrange(self, now: datetime) -> FromNeighbour | None:
        """Have records and neighbours agree with what was loaded: PARENT, scope, subscriptions.

        None where that was done since. now: UTC.
        """
        if self._arranged:
            return None
        self._arranged = True
        if self.is_alone:
            return FromNeighbour(Outcome(effects=tuple(self._without_strangers(now))))
        before = set(self._neighbours)
        outgoing = self._relate()
        effects = self._without_strangers(now)
        if effects or before != set(self._neighbours):
            self._place = self._placed()
        for record in list(self._neighbours.values()):
            outgoing += self._refreshed(record, now) if record.refresh else self._differences(record.qmgr)
        return FromNeighbour(Outcome(effects=tuple(effects)), outgoing)

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
        if sent.sender not in self._neighbours and not self._records().has_sent(sent.sender):
            # An answer would make a transmission queue of whatever name a program writes there.
            why = f"it says that queue manager {sent.sender} sent it, and no carrier has brought anything of that one"
            return FromNeighbour(self._broker.set_aside(arrival, MQRC_UNKNOWN_REMOTE_Q_MGR, why))
        if isinstance(sent, Relationship):
            return self._relationship(sent, arrival.now)
        if isinstance(sent, Returned):
            return self._returned(sent, arrival.now)
        if sent.sender not in self._neighbours:
            return self._from_stranger(sent, arrival)
        now = arrival.now
        match sent:
            case ProxyTopics():
                return self._proxies(sent.sender, sent.topics, sent.withdrawn, now)
            case ProxyRange():
                return self._range(sent, now)
            case DeletionFlow():
                taken = self._place.receive_deletion(sent, now)
                return _done(taken.effects, self._outgoing(taken.flows))
            case PublicationFlow():
                return self._publication(sent, arrival)

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
        self._neighbours = {record.qmgr: record for record in self._records().all()}
        linked = [each.qmgr for each in self._neighbours.values() if each.status is not NeighbourStatus.REFUSED]
        there = {qmgr: _Neighbour(Objects(QueueManager(qmgr))) for qmgr in linked}
        place = NetworkQueueManager(Routing(self._broker, [Link(qmgr) for qmgr in linked], there, {}))
        if linked:
            for _ in place.begin():
                pass  # what was not sent yet is found by comparing
            place.resume()
        return place

    def _relate(self) -> list[Outgoing]:
        """Leave the parent that PARENT does not name any more, and attach to the one that it names now."""
        records, wanted = self._records(), self._broker.objects.qmgr.parent
        outgoing = []
        for record in list(self._neighbours.values()):
            if record.relation is Relation.PARENT and record.qmgr != wanted:
                outgoing.append(flow_messages.relationship(self._name, record.qmgr, Word.DETACH))
                records.forget(record.qmgr)
                del self._neighbours[record.qmgr]
        if wanted and wanted != self._name and wanted not in self._neighbours:
            self._save(NeighbourRecord(wanted, Relation.PARENT, NeighbourStatus.STARTING, Refresh.PROXIES))
        return outgoing

    def _without_strangers(self, now: datetime) -> list[Effect]:
        """Remove the proxy subscriptions of those that are no neighbours any more."""
        space = self._broker.space
        known = {each.qmgr for each in self._neighbours.values() if each.status is not NeighbourStatus.REFUSED}
        gone = [each for each in space.subscriptions() if each.is_proxy and each.dest_qmgr not in known]
        return [effect for subscription in gone for effect in space.apply(Unsubscribe(subscription), now)]

    def _relationship(self, sent: Relationship, now: datetime) -> FromNeighbour:
        known = self._neighbours.get(sent.sender)
        match sent.word:
            case Word.ATTACH if sent.sender in (self._broker.objects.qmgr.parent, self._name):
                _log.warning("queue manager %s cannot be the child of %s: it is its parent", sent.sender, self._name)
                return _done((), [flow_messages.relationship(self._name, sent.sender, Word.REFUSE)])
            case Word.ATTACH:
                self._save(NeighbourRecord(sent.sender, Relation.CHILD, NeighbourStatus.ACTIVE))
                _log.info("queue manager %s is a child of %s", sent.sender, self._name)
                self._place = self._placed()
                accepted = flow_messages.relationship(self._name, sent.sender, Word.ACCEPT)
                return _done((), [accepted, *self._all_proxies(sent.sender)])
            case Word.DETACH if known is not None and known.relation is Relation.CHILD:
                self._records().forget(sent.sender)
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

    def _from_stranger(self, sent: Sent, arrival: Arrival) -> FromNeighbour:
        """Something of a queue manager that is no neighbour here: it gets it back, and nothing is done.

        Where that one has this one as its parent, it attaches, and sends it again. It may also have been sent before
        that one knew that the two are not connected any more; then nothing more happens.
        """
        if sent.sender not in self._strangers:
            self._strangers.add(sent.sender)
            text = "queue manager %s, which is no neighbour of %s, sent messages: it gets them back"
            _log.warning(text, sent.sender, self._name)
        return _done((), [flow_messages.returned(self._name, sent.sender, arrival, sent)])

    def _returned(self, sent: Returned, now: datetime) -> FromNeighbour:
        """A neighbour does not know this queue manager any more: attach again, or let go of one that is no child."""
        known = self._neighbours.get(sent.sender)
        if known is None or known.status is NeighbourStatus.REFUSED:
            return _done()
        if known.relation is Relation.CHILD:
            self._records().forget(sent.sender)
            _log.info("queue manager %s is not a child of %s any more", sent.sender, self._name)
            return self._parted(now)
        outgoing: list[Outgoing] = []
        if known.status is NeighbourStatus.ACTIVE:  # if not, it is being attached to
            _log.warning("parent %s does not know %s any more: they synchronise", sent.sender, self._name)
            outgoing += self._refreshed(replace(known, refresh=Refresh.ALL), now)
        if sent.flow is not None and sent.flow.sender == self._name:
            outgoing += self._outgoing([sent.flow])
        return _done((), outgoing)

    def _parted(self, now: datetime) -> FromNeighbour:
        """A neighbour has gone: so have its proxy subscriptions, and what they needed of others."""
        self._neighbours = {record.qmgr: record for record in self._records().all()}
        effects = self._without_strangers(now)
        self._place = self._placed()
        others = [each.qmgr for each in self._neighbours.values() if each.status is not NeighbourStatus.REFUSED]
        return _done(effects, [put for qmgr in others for put in self._differences(qmgr)])

    def _save(self, record: NeighbourRecord) -> None:
        self._records().save(record)
        self._neighbours[record.qmgr] = record

    # Proxy subscriptions

    def _wanted(self, neighbour: str) -> set[str]:
        return {place.topic_string for place in self._place.proxies.at(Link(neighbour))}

    def _differences(self, neighbour: str) -> list[Outgoing]:
        """What makes the proxy subscriptions at *neighbour* those that are wanted there."""
        records, wanted = self._records(), self._wanted(neighbour)
        sent = records.sent_proxies(neighbour)
        return [
            *self._proxy_messages(neighbour, sorted(wanted - sent), withdrawn=False),
            *self._proxy_messages(neighbour, sorted(sent - wanted), withdrawn=True),
        ]

    def _refreshed(self, record: NeighbourRecord, now: datetime) -> list[Outgoing]:
        """What a neighbour is to be sent again. A parent first hears that this queue manager is its child.

        A child that does not know this queue manager answers, and is one no more.
        """
        status = NeighbourStatus.STARTING if record.relation is Relation.PARENT else record.status
        self._save(replace(record, status=status, refresh=Refresh.NOTHING))
        attach = [flow_messages.relationship(self._name, record.qmgr, Word.ATTACH)]
        outgoing = [*(attach if record.relation is Relation.PARENT else ()), *self._all_proxies(record.qmgr)]
        if record.refresh is Refresh.ALL:
            outgoing += self._outgoing(self._place.retained_for(Link(record.qmgr), now))
        return outgoing

    def _all_proxies(self, neighbour: str) -> list[Outgoing]:
        wanted, records = self._wanted(neighbour), self._records()
        records.proxies_withdrawn(neighbour, records.sent_proxies(neighbour) - wanted)
        records.proxies_sent(neighbour, wanted)
        return flow_messages.proxy_ranges(self._name, neighbour, wanted, _TOPICS_A_MESSAGE)

    def _proxy_messages(self, neighbour: str, topics: Sequence[str], *, withdrawn: bool) -> list[Outgoing]:
        note = self._records().proxies_withdrawn if withdrawn else self._records().proxies_sent
        if topics:
            note(neighbour, topics)
        parts = (topics[at : at + _TOPICS_A_MESSAGE] for at in range(0, len(topics), _TOPICS_A_MESSAGE))
        return [flow_messages.proxy_topics(self._name, neighbour, part, withdrawn=withdrawn) for part in parts]

    def _proxies(self, sender: str, topics: Iterable[str], withdrawn: bool, now: datetime) -> FromNeighbour:
        flows: list[Flow] = []
        effects: list[Effect] = []
        for topic in topics:
            taken = self._place.receive_proxy(ProxyFlow(sender, self._name, "", Place(topic), withdrawn), now)
            flows += taken.flows
            effects += taken.effects
        return _done(effects, self._outgoing(flows))

    def _range(self, sent: ProxyRange, now: datetime) -> FromNeighbour:
        there = (place.topic_string for place in self._place.proxies_of(Link(sent.sender)))
        within = {
            topic
            for topic in there
            if (sent.after is None or topic > sent.after) and (sent.to is None or topic <= sent.to)
        }
        gone = self._proxies(sent.sender, sorted(within.difference(sent.topics)), True, now)
        made = self._proxies(sent.sender, sent.topics, False, now)
        return _done([*gone.outcome.effects, *made.outcome.effects], [*gone.outgoing, *made.outgoing])

    # Messages

    def _outgoing(self, flows: Iterable[Flow]) -> list[Outgoing]:
        """*flows* as messages; proxy subscriptions are recorded as sent."""
        self._place.kept_back.clear()
        outgoing: list[Outgoing] = []
        for flow in flows:
            match flow:
                case ProxyFlow():
                    topics = (flow.place.topic_string,)
                    outgoing += self._proxy_messages(flow.receiver, topics, withdrawn=flow.withdrawn)
                case PublicationFlow():
                    outgoing.append(flow_messages.publication(flow))
                case DeletionFlow():
                    outgoing.append(flow_messages.deletion(flow))
        return outgoing


def _done(effects: Iterable[Effect] = (), outgoing: Sequence[Outgoing] = ()) -> FromNeighbour:
    return FromNeighbour(Outcome(effects=tuple(effects), completion=Completion.OK), outgoing)
