"""MQGET on an embedded queue manager: which message a program gets, and what of it.

    which    ``Getting``: the first on the queue, the next behind the cursor of a browse, or by selector and identifiers
    what     ``given``: with its properties, or without them
             ``as_asked``: all of it or its beginning, in the character set and encoding that are asked for

A message that is longer than the program takes is cut behind its conversion, so that what the program gets is the
beginning of the converted message. Its length is said as it is on the queue (IBM's "Processing conventions").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from commands.broker.objects import LocalQueue
from commands.broker.times import to_microseconds
from commands.disk.errors import UnknownQueueError
from commands.qmgr.mqi.handles import ConnectedProgram, Handle, Member, Place, is_complete
from commands.qmgr.mqi.refusals import MqiError, check_get
from commands.qmgr.sending import COD, report
from commands.qmgr.store.database import Database
from commands.qmgr.store.port import BEFORE_ALL, BODY, MD, PERSISTENT, QUEUE, RANK, SEQ, MessageRow, message_of
from commands.qmgr.store.queue_manager import QueueManagerStore
from commands.qmgr.store.uncommitted import ANY, Match, Search, descriptors_of_group
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2 import mqi_constants as m
from rfh2.constants import MQENC_NATIVE, MQFMT_RF_HEADER_2, MQPER_PERSISTENT
from rfh2.conversion import convert
from rfh2.errors import DecodeError, QueueError
from rfh2.layouts import MQMD2
from rfh2.message import ccsid_behind, decode, decode_chain
from rfh2.mqmd import Mqmd, RawMqmd, read_mqmd
from rfh2.rfh2 import Rfh2
from streams.selectors import message_properties

# Message properties as MQGET gives them: in an MQRFH2, or not at all (IBM's description of MQGMO, property options).
#
# A publication for a subscription of MQSUB has its properties in the first MQRFH2, with folder ``mqps``. Programs that
# do not ask for them get the message as it was published, unless it has properties of its own, as JMS messages have:
#
#     option of MQGET                    PROPCTL, for MQGMO_PROPERTIES_AS_Q_DEF
#     FORCE_MQRFH2, IN_HANDLE            FORCE, ALL     the MQRFH2; a client makes properties of it
#     COMPATIBILITY                      COMPAT         the MQRFH2 if it has a folder other than mqps and mqpse
#     NO_PROPERTIES                      NONE           none of the folders that hold properties
#                                        V6COMPAT       the message as it was published, without mqps and mqpse
#
# An MQRFH2 without folders goes. But for NONE, one without ``mqps`` is data: it is never taken off.

_PUBLICATION: Final = b"<mqps>"
_OF_PUBLICATION: Final = frozenset({"mqps", "mqpse"})
# Folders whose content are message properties, whoever wrote them (IBM's description of property folders).
_OF_PROPERTIES: Final = _OF_PUBLICATION | frozenset(
    ["jms", "mcd", "usr", "mq", "mq_svc", "mq_usr", "mqema", "mqext", "mqtt", "sib", "sib_context", "sib_usr"]
)


_CONTROLS: Final = {
    m.MQGMO_PROPERTIES_FORCE_MQRFH2: "FORCE",
    m.MQGMO_PROPERTIES_IN_HANDLE: "ALL",
    m.MQGMO_NO_PROPERTIES: "NONE",
    m.MQGMO_PROPERTIES_COMPATIBILITY: "COMPAT",
}


def given(mqmd: RawMqmd, body: bytes, options: int, control: str) -> tuple[RawMqmd, bytes]:
    """The descriptor and the data that a program gets. options: MQGMO_*. control: PROPCTL of the queue."""
    control = next((word for bit, word in _CONTROLS.items() if options & bit), control)
    if control in ("ALL", "FORCE"):
        return mqmd, body
    takes_all = control == "NONE"
    if (name := mqmd.name(mqmd.format)) != MQFMT_RF_HEADER_2 or not (takes_all or _PUBLICATION in body):
        return mqmd, body
    try:
        headers, _ = decode_chain(body, name, mqmd.coded_char_set_id)
    except DecodeError:
        return mqmd, body
    first = headers[0] if headers else None
    if not isinstance(first, Rfh2):
        return mqmd, body
    names = {folder.name for folder in first.folders}
    goes = _OF_PROPERTIES if takes_all else _OF_PUBLICATION
    if names.isdisjoint(goes) or not (takes_all or "mqps" in names) or (control == "COMPAT" and not names <= goes):
        return mqmd, body
    data = tuple(folder for folder in first.folders if folder.name not in goes)
    if data:
        return mqmd, first.with_folders(data).encode() + body[first.length :]
    described = replace(
        mqmd.decoded,
        format=first.format,
        encoding=first.encoding,
        coded_char_set_id=ccsid_behind(first, mqmd.coded_char_set_id),
    )
    return read_mqmd(described.encode()), body[first.length :]


NO_ID = bytes(24)
NO_DESCRIPTOR: Final = read_mqmd(Mqmd().encode())


class GetOptions(NamedTuple):
    """What MQGET asks for. options: MQGMO_*. match: MQMO_*, of the ids below. longest: bytes of data; None for any.

    seq: of the message that the caller was shown before, as its token says; 0 for none. ccsid, encoding: in which
    MQGMO_CONVERT gives the data. number: MsgSeqNumber.
    """

    options: int
    match: int
    msg_id: bytes = NO_ID
    correl_id: bytes = NO_ID
    group_id: bytes = NO_ID
    longest: int | None = None
    seq: int = 0
    ccsid: int = 0
    encoding: int = MQENC_NATIVE
    number: int = 0


class Got(NamedTuple):
    """A message that MQGET gives. length: of all data, also where *body* is cut. reason: of a warning, or 0."""

    mqmd: RawMqmd
    body: bytes
    length: int
    queue: str
    seq: int
    reason: int = 0

    @property
    def comp_code(self) -> int:
        """MQCC_OK or MQCC_WARNING."""
        return m.MQCC_WARNING if self.reason else 0


class Ahead(NamedTuple):
    """What a program reads ahead. room: for the message that it asks for and those that are got with it, in bytes."""

    room: Callable[[], int]
    messages: list[Got]


NOTHING_AHEAD: Final = Ahead(lambda: 0, [])


def size_of(got: Got) -> int:
    """The bytes of a message, as IBM's clients count what they read ahead."""
    return MQMD2.size + len(got.body)


def as_asked(mqmd: RawMqmd, body: bytes, asked: GetOptions, queue: str, seq: int) -> Got:
    """What MQGET gives of a message on *queue*; its MQMD says in which character set and encoding it is given."""
    whole = Got(mqmd, body, len(body), queue, seq)
    longest, accepts = asked.longest, asked.options & m.MQGMO_ACCEPT_TRUNCATED_MSG
    if longest is not None and len(body) > longest and not accepts:
        return whole._replace(body=body[:longest], reason=m.MQRC_TRUNCATED_MSG_FAILED)
    if asked.options & m.MQGMO_CONVERT and longest != 0:
        converted = convert(body, mqmd.decoded, asked.ccsid, asked.encoding)
        if longest is not None and max(len(body), len(converted.body)) > longest and not accepts:
            return whole._replace(reason=m.MQRC_CONVERTED_MSG_TOO_BIG)
        described = read_mqmd(converted.mqmd.encode())
        whole = Got(described, converted.body, len(converted.body), queue, seq, converted.reason)
    if longest is not None and max(len(body), len(whole.body)) > longest:
        return whole._replace(body=whole.body[:longest], length=len(body), reason=m.MQRC_TRUNCATED_MSG_ACCEPTED)
    return whole


class Getting:
    """MQGET of one program. owner: of what it gets under syncpoint now."""

    def __init__(self, connected: ConnectedProgram, owner: Callable[[EmbeddedUnitOfWork], str]) -> None:
        self._owner = owner
        self._connected, self._open_queues = connected, connected.open_queues

    def _now_us(self) -> int:
        return to_microseconds(self._connected.clock())

    def chooses(self, handle: Handle, asked: GetOptions) -> bool:
        """Whether MQGET is to give one of many messages, for which ``look`` looks first."""
        if asked.options & (m.MQGMO_UNLOCK | m.MQGMO_MSG_UNDER_CURSOR | m.MQGMO_BROWSE_MSG_UNDER_CURSOR):
            return False
        match = _match(asked)
        return match.seq is None and bool(match.ids or handle.selector is not None or _is_by_groups(asked))

    def look(self, store: QueueManagerStore, handle: Handle, asked: GetOptions) -> tuple[int | None, bool]:
        """Look at some messages of the queue, without a unit of work, for that which MQGET is to give.

        Returns its number, or None, and whether there is anything left to look at. What was looked at for one MQGET is
        not looked at for the next that asks for the same. Raises MqiError, StoreError.
        """
        check_get(asked.options, asked.match)
        _gettable(store, handle, asked.options)
        match, after, turn = _match(asked), _after(handle, asked.options), None
        if _is_by_groups(asked):
            turn = Turn(handle, asked.options, asked.number if asked.match & m.MQMO_MATCH_MSG_SEQ_NUMBER else None)
            match, after = turn.narrowed(match, after)
        search = handle.search
        if search is None or (search.match, search.after) != (match, after):
            search = handle.search = Search(handle.queue, match, after)
            self._open_queues.searched(search)
        now_us = self._now_us()

        def fits(row: MessageRow) -> bool:
            is_free = self._is_free(handle, row, asked.options, now_us) and _is_selected(handle, row)
            return is_free and (turn is None or turn.is_of(store.database, row, now_us))

        seq, is_over = search.turn(store.database, now_us, fits)
        if is_over and (asked.options & m.MQGMO_UNMARKED_BROWSE_MSG or turn is not None):
            # A mark ends by itself, and a group is whole later: the next MQGET looks at all again.
            handle.search = None
        return seq, not is_over

    def comes(self, unit: EmbeddedUnitOfWork, handle: Handle, asked: GetOptions) -> tuple[int | None, bool]:
        """Whether MQGET, for which nothing was there, is to give what was just put: its number, or None.

        Also whether that is all that has come to the queue; else older messages come first: ``look`` finds them.
        """
        seq = unit.newest()
        if seq is None or _is_by_groups(asked):
            return None, False
        row, match = unit.uncommitted.message(seq), _match(asked)
        if row[QUEUE] != handle.queue:
            return None, False
        md = read_mqmd(row[MD])
        wanted = ((match.msg_id, md.msg_id), (match.correl_id, md.correl_id), (match.group_id, md.group_id))
        fits = all(asks in (None, has) for asks, has in wanted) and _is_selected(handle, row)
        return (seq if fits else None), True

    def get(
        self, unit: EmbeddedUnitOfWork, handle: Handle, asked: GetOptions, seq: int | None = None
    ) -> tuple[Got, bool]:
        """MQGET without its wait, and whether what it got is uncommitted. seq: what ``look`` has found.

        Raises MqiError 2033 where there is no such message, and as the other calls do.
        """
        options = asked.options
        check_get(options, asked.match)
        if options & m.MQGMO_UNLOCK:
            return self._unlocked(handle), False
        queue = _gettable(unit, handle, options)
        row = self._found(unit, handle, asked, seq)
        message = message_of(unit.database, row, self._now_us())
        try:
            mqmd, body = given(read_mqmd(message.md), message.body, options, handle.defaults.properties)
        except DecodeError:
            mqmd, body = NO_DESCRIPTOR, message.body
        got = as_asked(mqmd, body, asked, queue.name, message.seq)
        if _is_by_groups(asked) and got.reason != m.MQRC_TRUNCATED_MSG_FAILED:
            turn = Turn(handle, options)
            turn.taken(Member.of(message.md), _is_in_syncpoint(got, options), (row[RANK], row[SEQ]))
        self._open_queues.unlock(handle)
        in_syncpoint = False
        if options & m.MQGMO_ANY_BROWSE:
            handle.cursor = (row[RANK], row[SEQ])
            self._open_queues.mark(handle, message.seq, options, self._now_us())
            if options & m.MQGMO_LOCK:
                self._open_queues.locks[message.seq] = handle
        elif got.reason != m.MQRC_TRUNCATED_MSG_FAILED:
            in_syncpoint = self._take(unit, queue.name, got, options)
            if mqmd.report & m.MQRO_COD:
                whole, now = Mqmd.decode(message.md), self._connected.clock()
                confirmed = report(unit, COD, whole, message.body, message.user, now)
                self._connected.sent(unit, confirmed, self._owner(unit) if in_syncpoint else None)
            if handle.options & m.MQOO_SAVE_ALL_CONTEXT:
                handle.passed = mqmd.data
        return got, in_syncpoint

    def is_next_volatile(self, unit: EmbeddedUnitOfWork, handle: Handle, asked: GetOptions, room_bytes: int) -> bool:
        """Whether a further MQGET would give a whole message of at most *room_bytes* that is not persistent."""
        in_order = not asked.options & (m.MQGMO_SYNCPOINT | m.MQGMO_ANY_BROWSE) and _match(asked) == ANY
        if not in_order or handle.selector is not None or _is_by_groups(asked):
            return False
        row = unit.uncommitted.find(handle.queue, self._now_us())
        if row is None or row[PERSISTENT] or not self._is_free(handle, row, asked.options, self._now_us()):
            return False
        size = len(row[BODY] or b"")
        return size + MQMD2.size <= room_bytes and (asked.longest is None or size <= asked.longest)

    def _found(self, unit: EmbeddedUnitOfWork, handle: Handle, asked: GetOptions, seq: int | None) -> MessageRow:
        options, now_us = asked.options, self._now_us()
        match, after = _match(asked) if seq is None else Match(seq=seq), BEFORE_ALL
        under_cursor = options & (m.MQGMO_MSG_UNDER_CURSOR | m.MQGMO_BROWSE_MSG_UNDER_CURSOR)
        if under_cursor:
            match = Match(seq=handle.cursor[1])
        elif seq is None:
            after = _after(handle, options)
        while (row := unit.uncommitted.find(handle.queue, now_us, match, after)) is not None:
            if self._is_free(handle, row, options, now_us):
                return row
            after = (row[RANK], row[SEQ])
        if under_cursor:
            raise MqiError(m.MQRC_NO_MSG_UNDER_CURSOR, "no message is under the cursor")
        raise MqiError(m.MQRC_NO_MSG_AVAILABLE, f"{handle.queue} has no such message")

    def _is_free(self, handle: Handle, row: MessageRow, options: int, now_us: int) -> bool:
        """Whether nobody else has locked the message, and a browse of unmarked messages does not pass it."""
        if self._open_queues.locks.get(row[SEQ], handle) is not handle:
            return False
        return not (options & m.MQGMO_UNMARKED_BROWSE_MSG and self._open_queues.is_marked(handle, row[SEQ], now_us))

    def _unlocked(self, handle: Handle) -> Got:
        if not self._open_queues.unlock(handle):
            raise MqiError(m.MQRC_NO_MSG_LOCKED, "no message is locked", m.MQCC_WARNING)
        return Got(NO_DESCRIPTOR, b"", 0, handle.queue, 0)

    def _take(self, unit: EmbeddedUnitOfWork, queue: str, got: Got, options: int) -> bool:
        """Take the message off its queue; whether that has to be committed by the program."""
        in_syncpoint = _is_in_syncpoint(got, options)
        if in_syncpoint:
            unit.uncommitted.got(queue, got.seq, self._owner(unit))
        else:
            unit.uncommitted.remove(queue, got.seq)
        # Counted when it is got, as a put is; LGETDATE is that of the last MQGET, whatever becomes of it.
        unit.counters.got.append(queue)
        unit.counters.got_us.append(self._now_us())
        return in_syncpoint


def _is_in_syncpoint(got: Got, options: int) -> bool:
    if_persistent = options & m.MQGMO_SYNCPOINT_IF_PERSISTENT and got.mqmd.persistence == MQPER_PERSISTENT
    return bool(options & m.MQGMO_SYNCPOINT or if_persistent)


def _is_by_groups(asked: GetOptions) -> bool:
    return bool(asked.options & BY_GROUPS or asked.match & m.MQMO_MATCH_MSG_SEQ_NUMBER)


def _gettable(queues: EmbeddedUnitOfWork | QueueManagerStore, handle: Handle, options: int) -> LocalQueue:
    """The queue from which a get with *options* gives messages. Raises MqiError, QueueError."""
    if options & m.MQGMO_ANY_BROWSE:
        handle.requires(m.MQOO_BROWSE, m.MQRC_NOT_OPEN_FOR_BROWSE)
    else:
        handle.requires(m.MQOO_ANY_INPUT, m.MQRC_NOT_OPEN_FOR_INPUT)
    queue = queues.find_queue(handle.queue)
    if queue is None:
        raise UnknownQueueError(handle.queue)
    if not queue.get_enabled:
        raise QueueError(m.MQRC_GET_INHIBITED, queue.name, "getting is inhibited")
    return queue


def _match(asked: GetOptions) -> Match:
    return Match(
        msg_id=asked.msg_id if asked.match & m.MQMO_MATCH_MSG_ID and asked.msg_id != NO_ID else None,
        correl_id=asked.correl_id if asked.match & m.MQMO_MATCH_CORREL_ID and asked.correl_id != NO_ID else None,
        group_id=asked.group_id if asked.match & m.MQMO_MATCH_GROUP_ID and asked.group_id != NO_ID else None,
        seq=asked.seq if asked.match & m.MQMO_MATCH_MSG_TOKEN and asked.seq else None,
    )


def _after(handle: Handle, options: int) -> tuple[int, int]:
    """Behind which place a get looks."""
    return handle.cursor if options & m.MQGMO_ANY_BROWSE and not options & m.MQGMO_BROWSE_FIRST else BEFORE_ALL


def _is_selected(handle: Handle, row: MessageRow) -> bool:
    if handle.selector is None:
        return True
    try:
        message = decode(row[BODY] or b"", row[MD])
    except DecodeError:
        return False
    return handle.selector.matches(message_properties(message))


# Whose turn it is: which message MQGET gives to a program that gets messages by their groups.

BY_GROUPS: Final = m.MQGMO_LOGICAL_ORDER | m.MQGMO_ALL_MSGS_AVAILABLE


class Turn:
    """One MQGET with *options* of *handle*. number: the MsgSeqNumber that it asks for, if it does."""

    def __init__(self, handle: Handle, options: int, number: int | None = None) -> None:
        self._handle, self._options, self._number = handle, options, number
        browses = bool(options & m.MQGMO_ANY_BROWSE)
        if options & m.MQGMO_BROWSE_FIRST:
            handle.groups.browsing = replace(handle.groups.browsing, group_id=b"", begun=None)
        self._current = handle.groups.browsing if browses else handle.groups.getting
        self._in_order = bool(options & m.MQGMO_LOGICAL_ORDER)
        self._complete: dict[bytes, bool] = {}

    def narrowed(self, match: Match, after: Place) -> tuple[Match, Place]:
        """What to look for, and behind which place: the rest of a group is wherever it is."""
        if self._in_order and self._current.group_id:
            return match._replace(group_id=self._current.group_id), BEFORE_ALL
        if self._in_order and after != BEFORE_ALL and self._current.begun is not None:
            return match, self._current.begun
        return match, after

    def is_of(self, database: Database, row: MessageRow, now_us: int) -> bool:
        """Whether it is the turn of the message in *row*. Raises StoreError."""
        member, current = Member.of(row[MD]), self._current
        if self._number is not None and member.number != self._number:
            return False
        if self._in_order and not current.is_next(member):
            return False
        if not self._options & m.MQGMO_ALL_MSGS_AVAILABLE:
            return True
        if member.group_id in (b"", current.group_id, current.available):
            return True
        if member.group_id not in self._complete:
            of_group = descriptors_of_group(database, self._handle.queue, member.group_id, now_us)
            self._complete[member.group_id] = is_complete(of_group)
        return self._complete[member.group_id]

    def taken(self, member: Member, in_syncpoint: bool, place: Place) -> None:
        """The message is got or browsed. Raises MqiError 2245, 2246."""
        current = self._current
        if self._in_order:
            if self._options & (m.MQGMO_MSG_UNDER_CURSOR | m.MQGMO_BROWSE_MSG_UNDER_CURSOR):
                current.require_next(member)
            if not self._options & m.MQGMO_ANY_BROWSE:
                current.require_syncpoint(in_syncpoint)
                self._handle.groups.changing(in_syncpoint)
            current.moved(member, in_syncpoint, place)
        if self._options & m.MQGMO_ALL_MSGS_AVAILABLE:
            current.available = member.group_id
