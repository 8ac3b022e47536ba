"""What queue managers of a network send each other: proxy subscriptions, publications, deletions (guide 3.1).

A flow is a value. It goes along one link, in the terms of the queue manager that receives it, and prints as one line:

    QM2 -> QM1: subscribe Sport/#
    QM1 -> QM2: publish Sport/Tennis <ibm><Rfp>QM1</Rfp></ibm>
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from commands.model import Command
from commands.network.topology import Link
from rfh2.errors import QPubSubError
from rfh2.folders import write
from rfh2.message import Message
from rfh2.mqi_constants import MQCI_NONE
from streams.operations import ClearRetained, Publication, PublishToTopic, Rule
from streams.subscriptions import WildcardScheme

FINGERPRINT_FOLDER: Final = "ibm"
FINGERPRINT: Final = "Rfp"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a topic string lies at one queue manager. stream, sub_point: for version 6, where topics lie within them.

    wildcard: the scheme of a topic string that is a pattern.
    """

    topic_string: str
    wildcard: WildcardScheme = WildcardScheme.TOPIC
    stream: str | None = None
    sub_point: str | None = None

    def __str__(self) -> str:
        stream = "" if self.stream is None else f" on stream {self.stream}"
        return self.topic_string + stream + ("" if not self.sub_point else f" at subscription point {self.sub_point}")


@dataclass(frozen=True, slots=True)
class ProxyFlow:
    """A proxy subscription that *sender* makes at *receiver*, or withdraws (guide 3.1.1)."""

    sender: str
    receiver: str
    cluster: str
    place: Place
    withdrawn: bool = False

    def __str__(self) -> str:
        return f"{self.sender} -> {self.receiver}: {'unsubscribe' if self.withdrawn else 'subscribe'} {self.place}"


@dataclass(frozen=True, slots=True)
class PublicationFlow:
    """A publication that *sender* sends on to *receiver*, whose proxy subscription selects it.

    cluster: the one through which it goes; "" for parent and child. fingerprints: the queue managers that it has
    visited, in order (guide 3.4). command: the publisher's, for the headers of what subscribers get.
    """

    sender: str
    receiver: str
    cluster: str
    operation: PublishToTopic
    fingerprints: tuple[str, ...]
    command: Command | None = None

    @property
    def folder(self) -> str:
        """The folder ``ibm``, in which fingerprints go with a publication in an MQRFH2 (guide 3.4.1)."""
        return write(FINGERPRINT_FOLDER, [(FINGERPRINT, each) for each in self.fingerprints])

    def __str__(self) -> str:
        operation = self.operation
        word = "send retained" if operation.was_retained else "publish retained" if operation.retain else "publish"
        return f"{self.sender} -> {self.receiver}: {word} {operation.topic_string} {self.folder}"


@dataclass(frozen=True, slots=True)
class DeletionFlow:
    """A deletion of retained publications that is to happen at all queue managers (DeletePub without Local)."""

    sender: str
    receiver: str
    cluster: str
    operation: ClearRetained
    fingerprints: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.sender} -> {self.receiver}: clear retained {self.operation.topic_string}"


Flow = ProxyFlow | PublicationFlow | DeletionFlow


@dataclass(frozen=True, slots=True)
class KeptBack:
    """A publication that a queue manager did not send on, or discarded. why: the rule, with its values.

    to: the neighbours that would have got it; empty for all of them. rule: the kind of rule; None for no connection.
    """

    qmgr: str
    topic_string: str
    why: str
    to: tuple[str, ...] = ()
    rule: Rule | None = Rule.SCOPE

    def __str__(self) -> str:
        return f"{self.topic_string}: kept back at {self.qmgr} by {self.why}"


def fingerprints_of(message: Message) -> tuple[str, ...]:
    """The fingerprints that a program passed on in the MQRFH2 of its publication (guide 3.4.1)."""
    header = message.rfh2
    folder = None if header is None else header.folder(FINGERPRINT_FOLDER)
    if folder is None:
        return ()
    try:
        return tuple(text for tag, text in folder.pairs() if tag == FINGERPRINT)
    except QPubSubError:
        return ()


def without_correl_id(publication: Publication) -> Publication:
    """*publication* as it goes through a hierarchy, which passes no correlation identifier (guide 4.6.1, 4.8)."""
    message = publication.message
    mqmd = message.mqmd
    if mqmd.correl_id == MQCI_NONE:
        return publication
    return replace(publication, message=replace(message, mqmd=replace(mqmd, correl_id=MQCI_NONE)))


# The proxy subscriptions that a queue manager makes at its neighbours (guide 3.1.1, 3.1.2).
#
# One for each topic string and neighbour, however many subscriptions want it: made for the first, withdrawn after the
# last. A subscription counts once; so does a proxy subscription that another neighbour made here, and each topic
# object with PROXYSUB(FORCE).


class Proxies:
    """What one queue manager wants of each neighbour. qmgr: its name."""

    def __init__(self, qmgr: str) -> None:
        self._qmgr = qmgr
        self._wanted: dict[Link, Counter[Place]] = {}

    def __len__(self) -> int:
        """How many proxy subscriptions it has at its neighbours."""
        return sum(map(len, self._wanted.values()))

    def at(self, link: Link) -> Iterator[Place]:
        """Those at one neighbour, in the order in which they were made."""
        return iter(self._wanted.get(link, ()))

    def want(self, targets: Iterable[tuple[Link, Place]]) -> Iterator[ProxyFlow]:
        """One reason more for each of *targets*; the flows for those that are new."""
        for link, place in targets:
            counts = self._wanted.setdefault(link, Counter())
            counts[place] += 1
            if counts[place] == 1:
                yield ProxyFlow(self._qmgr, link.neighbour, link.cluster, place)

    def release(self, targets: Iterable[tuple[Link, Place]]) -> Iterator[ProxyFlow]:
        """One reason less; the flows for those that nothing needs any more."""
        for link, place in targets:
            counts = self._wanted[link]
            counts[place] -= 1
            if not counts[place]:
                del counts[place]
                yield ProxyFlow(self._qmgr, link.neighbour, link.cluster, place, withdrawn=True)
