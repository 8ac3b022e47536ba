"""The descriptors of puts by templates: cut where each message has bytes of its own, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from commands.broker.descriptor import Accepted, accepted
from commands.broker.identifiers import CARRIED_IDS, message_id
from commands.broker.outcome import Arrival
from rfh2.layouts import MQMD1

APPLICATION: Final = "qpubsub"
"""PutApplName of what the broker puts, where its descriptor leaves that blank."""

_SPANS: Final = {name: (offset, offset + size) for name, offset, size in MQMD1.spans()}
ID: Final = slice(*_SPANS["MsgId"])
CORREL_ID: Final = slice(*_SPANS["CorrelId"])
STAMP: Final = slice(_SPANS["PutDate"][0], _SPANS["PutTime"][1])
_BEFORE_ID: Final = slice(0, ID.start)
_BETWEEN: Final = slice(ID.stop, STAMP.start)
_BEHIND: Final = slice(STAMP.stop, None)
_BEHIND_IDS: Final = slice(CORREL_ID.stop, STAMP.start)
_HUNDREDTH_US: Final = 10_000
_HUNDREDTH: Final = timedelta(microseconds=_HUNDREDTH_US)
_NOTHING: Final = timedelta(0)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


Cut = tuple[bytes, bytes, bytes]
"""The descriptor of a publication before the MsgId, from there to the PutDate, and behind the PutTime."""


def cut_of(md: bytes) -> Cut:
    """The cut of one descriptor."""
    return md[_BEFORE_ID], md[_BETWEEN], md[_BEHIND]


class ResponseCut(NamedTuple):
    """The response to publications that are alike."""

    own_id: bool  # it has a MsgId of its own, and not that of the command
    correl_id: bytes | None  # None for the MsgId of the command
    before: bytes  # the descriptor before the MsgId
    between: bytes  # from behind the CorrelId to the PutDate
    behind: bytes  # behind the PutTime

    @classmethod
    def of(cls, md: bytes, own_id: bool, correl_id: bytes | None) -> ResponseCut:
        """The cut of one response."""
        return cls(own_id, correl_id, md[_BEFORE_ID], md[_BEHIND_IDS], md[_BEHIND])

    def md(self, command_id: bytes, own_id: bytes, stamp: bytes) -> bytes:
        """The descriptor of one more. command_id: the MsgId of the command."""
        ident = own_id if self.own_id else command_id
        correl_id = command_id if self.correl_id is None else self.correl_id
        return b"".join((self.before, ident, correl_id, self.between, stamp, self.behind))


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

    def of(self, cuts: Sequence[Cut], response: ResponseCut | None, arrival: Arrival) -> list[bytes]:
        """Those of the puts of *arrival*: the publications, then the response."""
        now = arrival.now
        begin, stamp = self._stamp
        if not _NOTHING <= now - begin < _HUNDREDTH:
            stamp = stamp_of(now)
            self._stamp = now.replace(microsecond=now.microsecond // _HUNDREDTH_US * _HUNDREDTH_US), stamp
        ident, join = message_id(self._qmgr, arrival.seq, 0)[:-3], b"".join
        # Few publications have more than a thousand subscribers.
        counted = self._counted if len(cuts) < len(self._counted) else _counted(self._begin, len(cuts) + 1)
        mds = [join((a, ident, n, b, stamp, c)) for (a, b, c), n in zip(cuts, counted, strict=False)]
        if response is not None:
            assert arrival.md is not None
            mds.append(response.md(arrival.md[ID], ident + counted[len(cuts)], stamp))
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
