"""What programs have open.

Message groups: messages that are put and got one after the other, in their order (IBM's MQPMO and MQGMO, Options).

A group is known by its GroupId; its messages are numbered from 1, and the last one says that it is that. With
MQPMO_LOGICAL_ORDER the queue manager numbers them, with MQGMO_LOGICAL_ORDER it gives them in that order wherever they
are on the queue, and with MQGMO_ALL_MSGS_AVAILABLE it begins a group only when all of it is there. A handle has one
group that it puts, one that it gets, and one that it browses.

    no group      MSG_IN_GROUP: a new group, number 1      LAST_MSG_IN_GROUP: a group of one
    in a group    MSG_IN_GROUP: the next number            LAST_MSG_IN_GROUP: the next number, and no group then
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from typing import Final, NamedTuple
from weakref import WeakSet

from commands.broker.objects import AliasQueue, LocalQueue, ModelQueue
from commands.qmgr.mqi.attributes import MARKED_US
from commands.qmgr.mqi.authority import TopicDefinitions
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.mqi.subscription_rules import SubscriptionAnswer
from commands.qmgr.store.connection import OpenQueue, ProgramConnection
from commands.qmgr.store.port import BEFORE_ALL
from commands.qmgr.store.state_table import Close
from commands.qmgr.store.uncommitted import Came, Search
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2 import mqi_constants as m
from rfh2.ccsid import order_of
from rfh2.layouts import MQMD2
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import MQOT_Q
from streams.selectors import Selector

IN_GROUP: Final = m.MQMF_MSG_IN_GROUP | m.MQMF_LAST_MSG_IN_GROUP
"""MsgFlags of a message of a group."""
_NO_GROUP: Final = bytes(24)
_NUMBERS: Final = range(1, 1_000_000_000)
_SPANS: Final = {name: at for name, at, _ in MQMD2.spans()}
_GROUP_ID: Final = slice(_SPANS["GroupId"], _SPANS["GroupId"] + 24)
_NUMBER, _FLAGS = _SPANS["MsgSeqNumber"], _SPANS["MsgFlags"]
Place = tuple[int, int]
"""Where a message is on its queue: rank and seq."""


class Member(NamedTuple):
    """What a message says of its group. group_id: empty for one that is in no group."""

    group_id: bytes
    number: int
    is_last: bool

    @classmethod
    def of(cls, md: bytes) -> Member:
        """What the descriptor *md* says."""
        if len(md) < MQMD2.size:
            return cls(b"", 1, False)
        number, flags = (int.from_bytes(md[at : at + 4], order_of(md)) for at in (_NUMBER, _FLAGS))
        if not flags & IN_GROUP:
            return cls(b"", 1, False)
        return cls(md[_GROUP_ID], number, bool(flags & m.MQMF_LAST_MSG_IN_GROUP))


@dataclass(slots=True)
class Current:
    """The group that a handle is in. group_id: empty for none. number: of its last message. begun: where it began."""

    group_id: bytes = b""
    number: int = 0
    in_syncpoint: bool = False
    persistence: int = 0
    begun: Place | None = None
    available: bytes = b""  # the group all of which was there

    def require_syncpoint(self, in_syncpoint: bool) -> None:
        """Raises MqiError 2245 where a group is not put or got in one way."""
        if self.group_id and in_syncpoint != self.in_syncpoint:
            raise MqiError(m.MQRC_INCONSISTENT_UOW, "some messages of the group are in syncpoint, and others are not")

    def put(self, mqmd: Mqmd, in_syncpoint: bool, new_id: bytes) -> Mqmd:
        """MQPUT with MQPMO_LOGICAL_ORDER: the descriptor with its group. Raises MqiError 2241, 2245, 2185."""
        if not mqmd.msg_flags & IN_GROUP:
            if self.group_id:
                raise MqiError(m.MQRC_INCOMPLETE_GROUP, "the group has no last message yet")
            return mqmd
        self.require_syncpoint(in_syncpoint)
        if self.group_id and self.persistence != mqmd.persistence:
            raise MqiError(m.MQRC_INCONSISTENT_PERSISTENCE, "the messages of a group are persistent, or none is")
        group_id, number = (self.group_id, self.number + 1) if self.group_id else (new_id, 1)
        self.persistence = mqmd.persistence
        self.moved(Member(group_id, number, bool(mqmd.msg_flags & m.MQMF_LAST_MSG_IN_GROUP)), in_syncpoint, None)
        return replace(mqmd, version=2, group_id=group_id, msg_seq_number=number, offset=0)

    def moved(self, member: Member, in_syncpoint: bool, place: Place | None) -> None:
        """The next message was put, got or browsed."""
        if not self.group_id:
            self.begun = place
        self.group_id = b"" if member.is_last else member.group_id
        self.number, self.in_syncpoint = member.number, in_syncpoint

    def is_next(self, member: Member) -> bool:
        """Whether it is this message's turn."""
        if self.group_id:
            return (member.group_id, member.number) == (self.group_id, self.number + 1)
        return not member.group_id or member.number == 1

    def require_next(self, member: Member) -> None:
        """Raises MqiError 2246 where the message under the cursor is not the next one."""
        if not self.is_next(member):
            raise MqiError(m.MQRC_INVALID_MSG_UNDER_CURSOR, "the message under the cursor is not the next of its group")


@dataclass(slots=True)
class Groups:
    """Those of one handle, and as they were when its unit of work began."""

    putting: Current = field(default_factory=Current)
    getting: Current = field(default_factory=Current)
    browsing: Current = field(default_factory=Current)
    _before: tuple[Current, Current] | None = None

    def changing(self, in_syncpoint: bool) -> None:
        """A message is about to be put or got."""
        if in_syncpoint and self._before is None:
            self._before = replace(self.putting), replace(self.getting)

    def ended(self, commit: bool) -> None:
        """The unit of work has ended."""
        if self._before is not None and not commit:
            self.putting, self.getting = self._before
        self._before = None


def numbered(mqmd: Mqmd, new_id: bytes) -> Mqmd:
    """The descriptor of a message whose program numbers it; a group without GroupId gets one. Raises MqiError 2250."""
    if not mqmd.msg_flags & IN_GROUP:
        return mqmd
    if mqmd.msg_seq_number not in _NUMBERS:
        raise MqiError(m.MQRC_MSG_SEQ_NUMBER_ERROR, f"MsgSeqNumber is {mqmd.msg_seq_number}")
    return replace(mqmd, group_id=new_id) if mqmd.group_id == _NO_GROUP else mqmd


def is_complete(descriptors: Iterable[bytes]) -> bool:
    """Whether these are all messages of a group."""
    members = [Member.of(md) for md in descriptors]
    last = max((member.number for member in members if member.is_last), default=0)
    return last > 0 and {member.number for member in members} >= set(range(1, last + 1))


@dataclass(frozen=True, slots=True)
class Application:
    """A program: its user, its name and kind (PutApplName, PutApplType), and its accounting token."""

    user: str
    name: str = ""
    kind: int = 0
    accounting_token: bytes = bytes(32)


@dataclass(slots=True)
class AsyncPuts:
    """Those of one program since it last asked. comp_code, reason, object_type, name: of the first that failed."""

    done: int = 0
    failed: int = 0
    comp_code: int = 0
    reason: int = 0
    object_type: int = 0
    name: str = ""

    def fail(self, reason: int, object_type: int, name: str) -> None:
        """A put to the object of that type and name has failed."""
        self.failed += 1
        if not self.reason:
            self.comp_code, self.reason = m.MQCC_FAILED, reason
            self.object_type, self.name = object_type, name


@dataclass(frozen=True, slots=True)
class ConnectedProgram:
    """One program that is connected, and what it shares with others."""

    qmgr: str
    application: Application
    number: int  # of its conversation, unique in this process
    connection: ProgramConnection
    holder: ProgramConnection  # of the process: makes queues that several programs share
    open_queues: OpenQueues  # of all programs
    topics: TopicDefinitions  # of all programs
    new_id: Callable[[], bytes]  # gives 24 bytes that no other message has
    clock: Callable[[], datetime]  # UTC
    more: list[str] = field(default_factory=list)  # queues that have more messages by its calls, until they are told

    def owner(self, unit: EmbeddedUnitOfWork) -> str:
        """The owner of its deferred messages, and with words behind it of its units of work."""
        return f"{self.holder.number(unit)} {self.number}"

    def sent(self, unit: EmbeddedUnitOfWork, messages: Iterable[tuple[str, int]], owner: str | None) -> None:
        """The queue manager has sent *messages*, queues and numbers, because of a call; owner: of its unit of work."""
        for queue, seq in messages:
            if owner is not None:
                unit.uncommitted.put(queue, seq, owner)
            else:
                self.more.append(queue)


class BranchState(Enum):
    """Whether calls of its program belong to a branch: now, after xa_start with TMRESUME, or after TMJOIN."""

    ACTIVE = auto()
    SUSPENDED = auto()
    ENDED = auto()


@dataclass(slots=True)
class Branch:
    """A branch of a global transaction, not prepared. owner: of its messages. failed: it can only be backed out.

    losses: of the database, when it began.
    """

    program: int
    owner: str
    losses: int
    state: BranchState = BranchState.ACTIVE
    failed: bool = False


@dataclass(slots=True)
class ManagedQueue:
    """The queue of a managed subscription: a temporary dynamic one, or that of a durable one that was removed.

    maker: closes it, with *option*. users: the handles that keep it.
    """

    opened: OpenQueue
    maker: ProgramConnection
    users: int = 0
    option: Close = Close.NONE

    def release(self) -> None:
        """One handle of it is closed; with the last one it goes. Raises QueueError, StoreError."""
        self.users -= 1
        if not self.users:
            self.maker.close(self.opened, self.option)


@dataclass(slots=True)
class SubscriptionUse:
    """A named subscription that programs have open. shared: by several, as JMS can ask. users: how many."""

    shared: bool
    managed: ManagedQueue | None
    users: int = 0


@dataclass(frozen=True, slots=True)
class JoinableSubscription:
    """A subscription that a program of *user* has open. answer: what MQSUB gave."""

    answer: SubscriptionAnswer
    user: str
    managed: ManagedQueue | None


@dataclass(frozen=True, slots=True)
class OpenSubscription:
    """What MQSUB opened. queue: the handle of its queue. deferred: MsgId of the request that removes it in the end.

    user: as whom the program asked for it.
    """

    sub_id: bytes
    name: str
    durable: bool
    queue: int
    deferred: bytes | None
    user: str


@dataclass(frozen=True, slots=True)
class Defaults:
    """What an object says for what a program's options leave to it, when it is opened: DEFPSIST, DEFPRESP, PROPCTL."""

    persistent: bool = False
    put_response: str = "SYNC"
    properties: str = "COMPAT"


def defaults_of(queue: LocalQueue, opened: AliasQueue | LocalQueue | ModelQueue | None = None) -> Defaults:
    """Those of *queue*; where it is opened by an alias, that says how puts are answered and properties are given."""
    by = opened if isinstance(opened, AliasQueue) else queue
    return Defaults(queue.def_persistent, by.def_put_response, by.properties)


def input_options(queue: LocalQueue, options: int) -> int:
    """*options* as they count for *queue*: what MQOO_INPUT_AS_Q_DEF means, and alone where it cannot be shared."""
    if not options & m.MQOO_ANY_INPUT:
        return options
    as_defined = options & m.MQOO_INPUT_AS_Q_DEF and queue.exclusive_by_default
    alone = as_defined or options & m.MQOO_INPUT_EXCLUSIVE or not queue.shareable
    return options & ~m.MQOO_ANY_INPUT | (m.MQOO_INPUT_EXCLUSIVE if alone else m.MQOO_INPUT_SHARED)


@dataclass(slots=True)
class Handle:
    """One open object. name: as opened, which may be an alias. queue: the local queue, "" for no queue.

    qmgr: another queue manager, to which the messages go; "" for this one. made: the dynamic queue that was made.
    cursor: rank and seq of the message browsed last. passed: descriptor of the message got last, where its context is
    saved. managed: the queue that goes when all handles of it are closed. subscription: of a handle that MQSUB gave.
    sub_id: of a queue's handle that MQSUB gave. marks: messages that were marked for this handle alone.
    search: what was looked at for the last MQGET that chose among the messages.
    """

    object_type: int
    name: str
    options: int
    queue: str = ""
    qmgr: str = ""
    topic: str = ""
    defaults: Defaults = Defaults()
    made: OpenQueue | None = None
    cursor: tuple[int, int] = BEFORE_ALL
    passed: bytes | None = None
    selector: Selector | None = None
    managed: ManagedQueue | None = None
    subscription: OpenSubscription | None = None
    sub_id: bytes = b""
    marks: set[int] = field(default_factory=set)
    search: Search | None = None
    groups: Groups = field(default_factory=Groups)

    def requires(self, options: int, reason: int) -> None:
        """Raises MqiError with *reason* where the object was opened with none of *options*."""
        if not self.options & options:
            raise MqiError(reason, f"{self.name} is not open for that")


class Handles:
    """The open objects of one program, by number: even ones, the lowest that is free."""

    def __init__(self) -> None:
        self._open: dict[int, Handle] = {}

    def __getitem__(self, number: int) -> Handle:
        """The object open under *number*. Raises MqiError 2019."""
        found = self._open.get(number)
        if found is None:
            raise MqiError(m.MQRC_HOBJ_ERROR, f"handle {number} is not open")
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._open))

    def all(self) -> list[tuple[int, Handle]]:
        """The open objects, with their numbers. Any thread may ask."""
        return list(self._open.items())

    def add(self, handle: Handle) -> int:
        """The number of a new handle."""
        number = next(n for n in range(2, 2 * len(self._open) + 4, 2) if n not in self._open)
        self._open[number] = handle
        return number

    def pop(self, number: int) -> Handle:
        """Forget an object that is closed."""
        return self._open.pop(number)


class OpenQueues:
    """What all programs together have open: OpenInputCount and OpenOutputCount of queues, exclusive use, locks.

    subscriptions: named ones, by name. joinable: all, by identifier. branches: of global transactions, those that are
    not prepared, by their XIDs.
    """

    def __init__(self) -> None:
        self.inputs: Counter[str] = Counter()
        self.outputs: Counter[str] = Counter()
        self._exclusive: set[str] = set()
        self.subscriptions: dict[str, SubscriptionUse] = {}
        self.joinable: dict[bytes, JoinableSubscription] = {}
        self.branches: dict[bytes, Branch] = {}
        self._searches: WeakSet[Search] = WeakSet()
        self.locks: dict[int, Handle] = {}  # messages that a program has browsed with MQGMO_LOCK, by seq
        self._marks: dict[int, int] = {}  # when marks end that programs share, in microseconds, by seq, the first first

    def is_marked(self, handle: Handle, seq: int, now_us: int) -> bool:
        """Whether a message is marked for *handle*: by itself, or by any that shares marks as it does (MQOO_CO_OP)."""
        return seq in handle.marks or bool(handle.options & m.MQOO_CO_OP and self._marks.get(seq, 0) > now_us)

    def mark(self, handle: Handle, seq: int, options: int, now_us: int) -> None:
        """Mark a message that was browsed, or take its marks away, as *options* say (MQGMO_*)."""
        if options & m.MQGMO_MARK_BROWSE_HANDLE:
            handle.marks.add(seq)
        if options & m.MQGMO_UNMARK_BROWSE_HANDLE:
            handle.marks.discard(seq)
        if options & (m.MQGMO_MARK_BROWSE_CO_OP | m.MQGMO_UNMARK_BROWSE_CO_OP):
            self._marks.pop(seq, None)
        if options & m.MQGMO_MARK_BROWSE_CO_OP:
            self._marks[seq] = now_us + MARKED_US
            while (first := next(iter(self._marks))) != seq and self._marks[first] <= now_us:
                del self._marks[first]

    def unlock(self, handle: Handle) -> bool:
        """Let go of what *handle* has locked; whether there was anything."""
        held = [seq for seq, holder in self.locks.items() if holder is handle]
        for seq in held:
            del self.locks[seq]
            self.came({handle.queue: seq})
        return bool(held)

    def searched(self, search: Search) -> None:
        """*search* is to know what comes to its queue by ``came``, as long as it lasts."""
        self._searches.add(search)

    def came(self, came: Came) -> None:
        """Messages that may have old numbers have come to queues, or can be got again."""
        for search in list(self._searches):
            if search.queue in came:
                search.came(came[search.queue])

    def opened(self, queue: str, options: int) -> None:
        """*queue* is opened. Raises MqiError 2042 where its use is exclusive, or cannot be."""
        if options & m.MQOO_ANY_INPUT:
            if queue in self._exclusive or (options & m.MQOO_INPUT_EXCLUSIVE and self.inputs[queue]):
                raise MqiError(m.MQRC_OBJECT_IN_USE, f"another program has {queue} open for input")
            self.inputs[queue] += 1
            if options & m.MQOO_INPUT_EXCLUSIVE:
                self._exclusive.add(queue)
        if options & m.MQOO_OUTPUT:
            self.outputs[queue] += 1

    def subscribed(self, name: str, shared: bool) -> SubscriptionUse | None:
        """The use that others make of a subscription; None if nobody does. Raises MqiError 2429 if that excludes it."""
        use = self.subscriptions.get(name)
        if use is not None and not (shared and use.shared):
            raise MqiError(m.MQRC_SUBSCRIPTION_IN_USE, f"a program has subscription {name} open")
        return use

    def unsubscribed(self, name: str) -> None:
        """One program has closed the subscription, or has not got it."""
        use = self.subscriptions.get(name)
        if use is not None:
            use.users -= 1
            if not use.users:
                del self.subscriptions[name]

    def closed(self, queue: str, options: int) -> None:
        """What ``opened`` was called for is closed."""
        if options & m.MQOO_ANY_INPUT:
            self.inputs[queue] -= 1
            if options & m.MQOO_INPUT_EXCLUSIVE:
                self._exclusive.discard(queue)
        if options & m.MQOO_OUTPUT:
            self.outputs[queue] -= 1


@dataclass(frozen=True, slots=True)
class Target:
    """What is opened: as MQOD says. topic: ObjectString. selector: SelectionString, which messages a get gives.

    alternate_user: whose authorities count, where the options ask for that.
    """

    object_type: int = MQOT_Q
    name: str = ""
    qmgr: str = ""
    topic: str = ""
    selector: str = ""
    alternate_user: str = ""
