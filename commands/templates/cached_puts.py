"""The puts of a publication like one before: what all such publications have in common, and the fields of each put."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from commands.broker.descriptor import Accepted, accepted
from commands.broker.identifiers import CARRIED_IDS, message_id
from commands.broker.outcome import Arrival
from commands.broker.puts import Put, PutKind
from commands.broker.reading import as_kept
from commands.headers.response import Completion
from rfh2.layouts import MQMD1
from rfh2.message import decode
from streams.operations import Publication, Published, RetainedPublication, UnreadPublication
from streams.subscriptions import Subscription

APPLICATION: Final = "qpubsub"
"""PutApplName of what the broker puts, where its descriptor leaves that blank."""

_SPANS: Final = {name: (offset, offset + size) for name, offset, size in MQMD1.spans()}
ID: Final = slice(*_SPANS["MsgId"])
CORREL_ID: Final = slice(*_SPANS["CorrelId"])
STAMP: Final = slice(_SPANS["PutDate"][0], _SPANS["PutTime"][1])
BEFORE_ID: Final = slice(0, ID.start)
BETWEEN: Final = slice(ID.stop, STAMP.start)
BEHIND: Final = slice(STAMP.stop, None)
_BEHIND_IDS: Final = slice(CORREL_ID.stop, STAMP.start)
_HUNDREDTH_US: Final = 10_000
_HUNDREDTH: Final = timedelta(microseconds=_HUNDREDTH_US)
_NOTHING: Final = timedelta(0)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class RetainedForm(NamedTuple):
    """What publications that are alike leave retained, but for the message and its time.

    persistent: None where the message is not retained in the bytes in which it arrived.
    """

    local: bool
    stream: str | None
    sub_point: str | None
    persistent: bool | None


class ResponseCut(NamedTuple):
    """The response to publications that are alike.

    own_id: whether it has a MsgId of its own, or that of the command. correl_id: its CorrelId; None for the MsgId of
    the command. before, between, behind: its descriptor before the MsgId, from behind the CorrelId to the PutDate, and
    behind the PutTime.
    """

    own_id: bool
    correl_id: bytes | None
    before: bytes
    between: bytes
    behind: bytes
    body: bytes

    @classmethod
    def of(cls, md: bytes, body: bytes, own_id: bool, correl_id: bytes | None) -> ResponseCut:
        """The cut of one response."""
        return cls(own_id, correl_id, md[BEFORE_ID], md[_BEHIND_IDS], md[BEHIND], body)

    def md(self, command_id: bytes, own_id: bytes, stamp: bytes) -> bytes:
        """The descriptor of one more. command_id: the MsgId of the command."""
        ident = own_id if self.own_id else command_id
        correl_id = command_id if self.correl_id is None else self.correl_id
        return b"".join((self.before, ident, correl_id, self.between, stamp, self.behind))


@dataclass(frozen=True, slots=True, eq=False)
class CacheEntry:
    """What the puts of publications that are alike have in common. Entries are compared by identity: they are large.

    user: who publishes. topics, matches: on what was published, and the subscriptions of each. kinds to sub_names: one
    item a put; the response is the last one. cuts: of each publication the descriptor before the MsgId, from there to
    the PutDate, and behind the PutTime. sub_ids: whom each is for. temporary: of these, the ones that end with their
    queue. filtered: the subscriptions whose filter keeps the publication away. retained: what each topic retains; None
    where nothing is retained. accepted: of each put, the columns in which a queue keeps it; None where the queue has to
    look at it.
    """

    user: str
    topics: tuple[str, ...]
    matches: tuple[tuple[Subscription, ...], ...]
    kinds: tuple[PutKind, ...]
    qmgrs: tuple[str, ...]
    queues: tuple[str, ...]
    topic_strings: tuple[str | None, ...]
    sub_names: tuple[str | None, ...]
    cuts: tuple[tuple[bytes, bytes, bytes], ...]
    sub_ids: tuple[bytes, ...]
    temporary: frozenset[bytes]
    filtered: tuple[bytes, ...]
    response: ResponseCut | None = None
    retained: RetainedForm | None = None
    accepted: tuple[Accepted | None, ...] = ()

    def retained_by(self, arrival: Arrival) -> list[RetainedPublication]:
        """What each of the topics retains when *arrival* is such a publication."""
        publication = self.to_retain(arrival)
        return [] if publication is None else [RetainedPublication(topic, publication) for topic in self.topics]

    def to_retain(self, arrival: Arrival) -> Published | None:
        """What all topics retain when *arrival* is such a publication; None for nothing."""
        if self.retained is None:
            return None
        local, stream, sub_point, persistent = self.retained
        if persistent is None:
            _, message = as_kept(arrival.body, decode(arrival.body, arrival.md))
            return Publication(message, arrival.now, None, local, stream, sub_point)
        assert arrival.md is not None
        return UnreadPublication(arrival.md, arrival.body, persistent, arrival.now, local, stream, sub_point)


class CachedPuts(NamedTuple):
    """The puts of one more publication like one before. mds, bodies: of each put."""

    kept: CacheEntry
    mds: list[bytes]
    bodies: list[bytes]

    @property
    def completions(self) -> tuple[Completion | None, ...]:
        """Of each put: a response is always ok."""
        return tuple(Completion.OK if kind is PutKind.RESPONSE else None for kind in self.kept.kinds)

    def puts(self, seq: int) -> Iterator[Put]:
        """The same in the recorded form."""
        kept = self.kept
        names = zip(kept.kinds, kept.qmgrs, kept.queues, kept.topic_strings, kept.sub_names, strict=True)
        of_each = zip(names, self.completions, self.mds, self.bodies, strict=True)
        for n, ((kind, qmgr, queue, topic, sub_name), completion, md, body) in enumerate(of_each):
            yield Put(
                seq=seq,
                n=n,
                kind=kind,
                qmgr=qmgr,
                queue=queue,
                topic=topic,
                sub_name=sub_name,
                completion=completion,
                md_hex=md.hex(),
                body_hex=body.hex(),
            )


class Descriptors:
    """Makes the descriptors of such puts, for one queue manager. begin: the number before the first
    identifier, 0 or ``CARRIED_IDS``.
    """

    __slots__ = ("_begin", "_counted", "_qmgr", "_stamp")

    def __init__(self, qmgr: str, begin: int = 0) -> None:
        self._qmgr, self._begin = qmgr, begin
        self._counted = _COUNTED[begin]
        self._stamp = (_NEVER, b"")  # since when, for a hundredth of a second

    def ident(self, arrival: Arrival, n: int) -> bytes:
        """The MsgId of put *n* of *arrival*, from 1."""
        return message_id(self._qmgr, arrival.seq, self._begin + n)

    def of(self, kept: CacheEntry, arrival: Arrival) -> list[bytes]:
        """Those of the puts of *arrival*, which is like the publications of *kept*."""
        now = arrival.now
        begin, stamp = self._stamp
        if not _NOTHING <= now - begin < _HUNDREDTH:
            stamp = stamp_of(now)
            self._stamp = now.replace(microsecond=now.microsecond // _HUNDREDTH_US * _HUNDREDTH_US), stamp
        ident = message_id(self._qmgr, arrival.seq, 0)[:-3]
        cuts, join = kept.cuts, b"".join
        # Few publications have more than a thousand subscribers.
        counted = self._counted if len(cuts) < len(self._counted) else _counted(self._begin, len(cuts) + 1)
        mds = [join((a, ident, n, b, stamp, c)) for (a, b, c), n in zip(cuts, counted, strict=False)]
        if kept.response is not None:
            assert arrival.md is not None
            mds.append(kept.response.md(arrival.md[ID], ident + counted[len(cuts)], stamp))
        return mds


def accepted_of(md: bytes, body: bytes, user: str | None = None) -> Accepted | None:
    """The columns in which a queue keeps a put of the broker, and all like it.

    user: who puts it, where that is not the one in *md*.
    """
    found = accepted(md, body, APPLICATION)
    return found if found is None or user is None else found._replace(user=user)


def stamp_of(now: datetime) -> bytes:
    """PutDate and PutTime, as ``commands.broker.identifiers`` makes them."""
    day, clock = (now.year, now.month, now.day), (now.hour, now.minute, now.second)
    return b"%04d%02d%02d%02d%02d%02d%02d" % (*day, *clock, now.microsecond // _HUNDREDTH_US)


def _counted(begin: int, count: int) -> tuple[bytes, ...]:
    return tuple([n.to_bytes(3, "big") for n in range(begin + 1, begin + count + 1)])


_COUNTED: Final = {begin: _counted(begin, 1024) for begin in (0, CARRIED_IDS)}
