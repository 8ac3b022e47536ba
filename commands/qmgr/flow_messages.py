"""What queue managers send each other, as messages for the queues of guide 3.7.

    SYSTEM.INTER.QMGR.CONTROL   attach, detach; accept, refuse      parent and child
                                join, leave                         members of a cluster
                                unknown                             to one that sent something and is no neighbour
    SYSTEM.INTER.QMGR.FANREQ    subscribe, unsubscribe, synchronise proxy subscriptions
    SYSTEM.INTER.QMGR.PUBS      publish, clear                      publications and deletions

A message begins with an MQRFH2: folder ``qpubsub`` says what it is, and the cluster in which it is sent, unless it is
between parent and child; folder ``ibm`` has the fingerprints. Behind that of
a publication is the publisher's message, whose descriptor is in the folder, since a transmission queue header holds
only one of version 1. The form is the bridge's own: both ends are qpubsub.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from commands.broker.authority import ADMINISTRATOR
from commands.broker.objects import INTER_QMGR_PUBS
from commands.broker.outcome import Arrival
from commands.broker.puts import Outgoing, PutKind
from commands.broker.times import from_microseconds, to_microseconds
from commands.headers.registry import parse
from commands.network.flows import FINGERPRINT, FINGERPRINT_FOLDER, DeletionFlow, PublicationFlow
from commands.network.topology import Link, Relation
from rfh2.constants import MQFMT_RF_HEADER_2, MQPER_PERSISTENT
from rfh2.errors import DecodeError
from rfh2.folders import Folder, write
from rfh2.message import decode, encode
from rfh2.mqmd import Mqmd
from rfh2.rfh2 import Rfh2, decode_rfh2
from streams.operations import ClearRetained, Publication, PublishToTopic
from streams.subscriptions import WildcardScheme

INTER_QMGR_CONTROL: Final = "SYSTEM.INTER.QMGR.CONTROL"
INTER_QMGR_FANREQ: Final = "SYSTEM.INTER.QMGR.FANREQ"
INTER_QMGR_QUEUES: Final = (INTER_QMGR_CONTROL, INTER_QMGR_FANREQ, INTER_QMGR_PUBS)
FOLDER: Final = "qpubsub"
# What the text of a folder cannot hold, or would not give back as it was.
_ODD: Final = re.compile("^[ \t\r\n]|[ \t\r\n]$|[\x00-\x08\x0b-\x1f\ud800-\udfff\ufeff\ufffe\uffff]")
_HEX: Final = "Hex"
_RETURNED: Final = (PublicationFlow, DeletionFlow)


class Word(StrEnum):
    """What a message asks for."""

    ATTACH = "attach"
    DETACH = "detach"
    ACCEPT = "accept"
    REFUSE = "refuse"
    JOIN = "join"
    LEAVE = "leave"
    UNKNOWN = "unknown"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    SYNCHRONISE = "synchronise"
    PUBLISH = "publish"
    CLEAR = "clear"


INTRODUCTIONS: Final = {Relation.PARENT: Word.ATTACH, Relation.MEMBER: Word.JOIN}
"""What a neighbour is told first by one that it may not know. A parent does not introduce itself to its child."""


@dataclass(frozen=True, slots=True)
class Relationship:
    """*sender* becomes a child (attach), is none any more (detach), or answers one that attached.

    Or it is a member of *cluster* that did not know the receiver (join), or is none (leave).
    """

    sender: str
    word: Word
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Returned:
    """*sender* does not know this queue manager as a neighbour, and has not done what it asked for.

    flow: the publication or deletion that it was sent, as it was sent; None for what is sent again anyway.
    """

    sender: str
    flow: PublicationFlow | DeletionFlow | None
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class ProxyTopics:
    """Proxy subscriptions that *sender* makes here or withdraws, by their topic strings, which may hold wildcards."""

    sender: str
    topics: tuple[str, ...]
    withdrawn: bool = False
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class ProxyRange:
    """All proxy subscriptions of *sender* whose topic strings come after *after*, up to *to*, in order of characters.

    Others in that range have to go. None: no limit on that side.
    """

    sender: str
    topics: tuple[str, ...]
    after: str | None
    to: str | None
    cluster: str = ""


Sent = Relationship | Returned | ProxyTopics | ProxyRange | PublicationFlow | DeletionFlow


def relationship(sender: str, link: Link, word: Word) -> Outgoing:
    """A message about parent and child, or about members of a cluster."""
    return _written(sender, link, INTER_QMGR_CONTROL, word, ())


def proxy_topics(sender: str, link: Link, topics: Iterable[str], *, withdrawn: bool = False) -> Outgoing:
    """Proxy subscriptions to make or to withdraw."""
    word = Word.UNSUBSCRIBE if withdrawn else Word.SUBSCRIBE
    return _written(sender, link, INTER_QMGR_FANREQ, word, [_pair("Topic", topic) for topic in topics])


def proxy_ranges(sender: str, link: Link, topics: Iterable[str], most: int) -> list[Outgoing]:
    """All proxy subscriptions: messages of at most *most* that together cover all topic strings."""
    ordered = sorted(topics)
    parts = [ordered[at : at + most] for at in range(0, len(ordered), most)] or [[]]
    made, after = [], None
    for n, part in enumerate(parts):
        to = part[-1] if n < len(parts) - 1 else None
        limits = [_pair(tag, limit) for tag, limit in (("After", after), ("To", to)) if limit is not None]
        pairs = [*limits, *(_pair("Topic", topic) for topic in part)]
        made.append(_written(sender, link, INTER_QMGR_FANREQ, Word.SYNCHRONISE, pairs))
        after = to
    return made


def publication(flow: PublicationFlow) -> Outgoing:
    """A publication on its way to a neighbour, with its fingerprints."""
    operation = flow.operation
    published = operation.publication
    message, expires_at = published.message, published.expires_at
    pairs = [
        _pair("Topic", operation.topic_string),
        ("At", str(to_microseconds(published.published_at))),
        ("Level", str(operation.pub_level)),
        ("Mqmd", message.mqmd.encode().hex()),
    ]
    pairs += [] if expires_at is None else [("Until", str(to_microseconds(expires_at)))]
    pairs += [] if published.stream is None else [_pair("Stream", published.stream)]
    pairs += [] if published.sub_point is None else [_pair("SubPoint", published.sub_point)]
    # The subscriptions that MQPMO_NOT_OWN_SUBS leaves out are all of the publisher's queue manager.
    if isinstance(operation.not_to, tuple):
        qmgr, queue, correl_id = operation.not_to
        pairs += [("NotQMgr", qmgr), ("NotQueue", queue)]
        pairs += [] if correl_id is None else [("NotCorrelId", correl_id.hex())]
    flags = {
        "Retain": operation.retain,
        "WasRetained": operation.was_retained,
        "Local": published.local,
        "Command": flow.command is not None,
    }
    pairs += [(tag, "1") for tag, is_set in flags.items() if is_set]
    mqmd = message.mqmd
    return _written(
        flow.sender,
        _link(flow),
        INTER_QMGR_PUBS,
        Word.PUBLISH,
        pairs,
        flow.fingerprints,
        described=mqmd,
        data=encode(message),
        topic=operation.topic_string,
        expires_at=expires_at,
    )


def deletion(flow: DeletionFlow) -> Outgoing:
    """A deletion of retained publications on its way to a neighbour."""
    operation = flow.operation
    pairs = [_pair("Topic", operation.topic_string), ("Wildcard", operation.wildcard.value)]
    pairs += [] if operation.stream is None else [_pair("Stream", operation.stream)]
    pairs += [("OfScope", "1")] if operation.of_scope else []
    return _written(flow.sender, _link(flow), INTER_QMGR_PUBS, Word.CLEAR, pairs, flow.fingerprints)


def returned(receiver: str, arrival: Arrival, sent: Sent) -> Outgoing:
    """The answer of *receiver* to the sender, which is no neighbour. sent: what *arrival* says."""
    link = Link(sent.sender, sent.cluster)
    if not isinstance(sent, _RETURNED):
        return _written(receiver, link, INTER_QMGR_CONTROL, Word.UNKNOWN, ())
    mqmd = Mqmd() if arrival.md is None else Mqmd.decode(arrival.md)
    pairs = [("Mqmd", mqmd.encode().hex())]
    return _written(receiver, link, INTER_QMGR_CONTROL, Word.UNKNOWN, pairs, described=mqmd, data=arrival.body)


def read(arrival: Arrival, receiver: str) -> Sent:
    """What a neighbour sent to *receiver*. Raises DecodeError."""
    return _read(Mqmd() if arrival.md is None else Mqmd.decode(arrival.md), arrival.body, receiver)


def _read(described: Mqmd, body: bytes, receiver: str, words: Container[Word] = frozenset(Word)) -> Sent:
    header = decode_rfh2(body, 0, described.coded_char_set_id)
    values = _values(header)
    try:
        if Word(_one(values, "Word")) not in words:
            raise ValueError("such a message does not come back")
        return _sent(values, _fingerprints(header), body[header.length :], receiver)
    except (KeyError, ValueError, OverflowError) as error:
        why = f"it is not a message of a neighbour: {error!r}"
        raise DecodeError(0, "MQRFH2", why, "bad-flow") from error


def _sent(values: dict[str, list[str]], fingerprints: tuple[str, ...], data: bytes, receiver: str) -> Sent:
    word, sender, topics = Word(_one(values, "Word")), _one(values, "From"), tuple(values.get("Topic", ()))
    cluster = _maybe(values, "Cluster") or ""
    match word:
        case Word.ATTACH | Word.DETACH | Word.ACCEPT | Word.REFUSE if not cluster:
            return Relationship(sender, word)
        case Word.JOIN | Word.LEAVE if cluster:
            return Relationship(sender, word, cluster)
        case Word.UNKNOWN if "Mqmd" in values:
            mqmd = Mqmd.decode(bytes.fromhex(_one(values, "Mqmd")))
            flow = _read(mqmd, data, sender, (Word.PUBLISH, Word.CLEAR))
            assert isinstance(flow, _RETURNED)
            return Returned(sender, flow, cluster)
        case Word.UNKNOWN:
            return Returned(sender, None, cluster)
        case Word.SUBSCRIBE | Word.UNSUBSCRIBE:
            return ProxyTopics(sender, topics, word is Word.UNSUBSCRIBE, cluster)
        case Word.SYNCHRONISE:
            return ProxyRange(sender, topics, _maybe(values, "After"), _maybe(values, "To"), cluster)
        case Word.CLEAR:
            wildcard = WildcardScheme(_one(values, "Wildcard"))
            stream, of_scope = _maybe(values, "Stream"), "OfScope" in values
            cleared = ClearRetained(_one(values, "Topic"), wildcard, False, stream, of_scope)
            return DeletionFlow(sender, receiver, cluster, cleared, fingerprints)
        case Word.PUBLISH:
            message = decode(data, bytes.fromhex(_one(values, "Mqmd")))
            until = _maybe(values, "Until")
            published = Publication(
                message,
                from_microseconds(int(_one(values, "At"))),
                None if until is None else from_microseconds(int(until)),
                "Local" in values,
                _maybe(values, "Stream"),
                _maybe(values, "SubPoint"),
            )
            operation = PublishToTopic(
                _one(values, "Topic"),
                published,
                "Retain" in values,
                _not_to(values),
                int(_one(values, "Level")),
                sender,
                "WasRetained" in values,
            )
            command = parse(message) if "Command" in values else None
            return PublicationFlow(sender, receiver, cluster, operation, fingerprints, command)
    raise ValueError(f"{word} has to say, or must not say, which cluster it is about")


def _written(
    sender: str,
    link: Link,
    queue: str,
    word: Word,
    pairs: Sequence[tuple[str, str]],
    fingerprints: tuple[str, ...] = (),
    *,
    described: Mqmd | None = None,
    data: bytes = b"",
    topic: str | None = None,
    expires_at: datetime | None = None,
) -> Outgoing:
    """described: the descriptor of *data*."""
    named = [("Word", word.value), ("From", sender), *([("Cluster", link.cluster)] if link.cluster else ())]
    texts = [write(FOLDER, [*named, *pairs])]
    texts += [write(FINGERPRINT_FOLDER, [(FINGERPRINT, each) for each in fingerprints])] if fingerprints else []
    folders = tuple(Folder.of(text) for text in texts)
    if described is None:
        header, persistence = Rfh2(folders), MQPER_PERSISTENT
    else:
        header = Rfh2(folders, described.encoding, described.coded_char_set_id, described.format)
        persistence = described.persistence if described.persistence == MQPER_PERSISTENT else 0
    # All have one priority, so that they stay in order on every queue on their way. The user is the queue manager's own
    # (guide 3.1): no program can be it, so that theirs are known from these.
    mqmd = Mqmd(format=MQFMT_RF_HEADER_2, persistence=persistence, priority=0, user_identifier=ADMINISTRATOR)
    body = header.encode() + data
    return Outgoing(PutKind.PUBLICATION, link.neighbour, queue, mqmd.encode(), body, topic=topic, expires_at=expires_at)


def _link(flow: PublicationFlow | DeletionFlow) -> Link:
    return Link(flow.receiver, flow.cluster)


def _values(header: Rfh2) -> dict[str, list[str]]:
    folder = header.folder(FOLDER)
    if folder is None:
        raise DecodeError(0, "MQRFH2", f"it has no folder {FOLDER}", "bad-flow")
    values: dict[str, list[str]] = {}
    for tag, text in folder.pairs():
        value = bytes.fromhex(text).decode("utf-8", "surrogatepass") if tag.endswith(_HEX) else text
        values.setdefault(tag.removesuffix(_HEX), []).append(value)
    return values


def _fingerprints(header: Rfh2) -> tuple[str, ...]:
    folder = header.folder(FINGERPRINT_FOLDER)
    return () if folder is None else tuple(text for tag, text in folder.pairs() if tag == FINGERPRINT)


def _pair(tag: str, text: str) -> tuple[str, str]:
    if _ODD.search(text):
        return tag + _HEX, text.encode("utf-8", "surrogatepass").hex()
    return tag, text


def _one(values: dict[str, list[str]], tag: str) -> str:
    (text,) = values[tag]
    return text


def _maybe(values: dict[str, list[str]], tag: str) -> str | None:
    return _one(values, tag) if tag in values else None


def _not_to(values: dict[str, list[str]]) -> tuple[str, str, bytes | None] | None:
    if "NotQueue" not in values:
        return None
    correl_id = _maybe(values, "NotCorrelId")
    return _one(values, "NotQMgr"), _one(values, "NotQueue"), None if correl_id is None else bytes.fromhex(correl_id)
