"""Branches of global transactions of one program: XA, as application servers have it.

What a program puts and gets in syncpoint between xa_start and xa_end belongs to the branch. A branch that is prepared
is the store's, and any program may end it. Until then it is the program's that began it, and is backed out with its
end. The methods return what XA calls return; no branch is ended heuristically.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from commands.qmgr.mqi.handles import Branch, BranchState, ConnectedProgram
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.store.uncommitted import Came
from commands.qmgr.store.unit_of_work import EmbeddedUnitOfWork
from rfh2.channel import segments as xa
from rfh2.mqi_constants import MQCC_FAILED, MQRC_BACKED_OUT

_BEFORE: Final = {xa.TMJOIN: BranchState.ENDED, xa.TMRESUME: BranchState.SUSPENDED}


class BackedOutError(MqiError):
    """A part of the unit of work may be lost, so it is backed out."""

    def __init__(self, comp_code: int = MQCC_FAILED) -> None:
        why = "the database was away or full, so the unit of work is backed out; do all of it again"
        super().__init__(MQRC_BACKED_OUT, why, comp_code)


class Transactions:
    """Those of one program. current: the branch to which its calls belong.

    in_syncpoint: whether the program has a unit of work of its own. since: when it, or the work in the branch, began.
    The other branches that are known are the listener's (``OpenQueues.branches``), since xa_prepare and xa_commit may
    come by another conversation than the calls.
    """

    def __init__(self, connected: ConnectedProgram) -> None:
        self._connected, self._branches = connected, connected.open_queues.branches
        self.current: bytes | None = None
        self.in_syncpoint = False
        self.since: datetime | None = None
        self._own = ""  # the owner of its own unit of work
        self._losses: int | None = 0  # of the database when that began; None where it has to be backed out
        self._numbers = 0
        self._scan: list[bytes] = []

    def owner(self, unit: EmbeddedUnitOfWork) -> str:
        """The owner of what is put and got now: 0 behind the program's is its own unit of work.

        Raises MqiError 2003 where a part of that may be lost.
        """
        if self.current is not None:
            return self._branches[self.current].owner
        if not self.in_syncpoint:
            self._own, self._losses = f"{self._connected.owner(unit)} 0", unit.database.losses
        elif self._losses != unit.database.losses:
            raise BackedOutError
        return self._own

    def worked(self) -> None:
        """Something was put or got in syncpoint."""
        if self.since is None:
            self.in_syncpoint, self.since = self.current is None, self._connected.clock()

    def leave(self, unit: EmbeddedUnitOfWork, commit: bool) -> tuple[bool, Came]:
        """The program's own unit of work ends: whether as it is to, and the queues that have more messages.

        What is put and got in syncpoint is not on the disk before the commit. So where the connection to the database
        was lost meanwhile, the unit of work is backed out: the server may have crashed, and have lost a part of it.
        """
        is_whole = self._losses == unit.database.losses
        end = unit.uncommitted.commit if commit and is_whole else unit.uncommitted.backout
        self.in_syncpoint, self.since = False, None
        return is_whole or not commit, end(self._own)

    def stay(self, since: datetime | None, commit: bool) -> None:
        """The database could not end the unit of work, which goes on; what was to be backed out is never committed."""
        self.in_syncpoint, self.since = since is not None and self.current is None, since
        if not commit:
            self._losses = None

    def start(self, unit: EmbeddedUnitOfWork, xid: bytes, flags: int) -> tuple[int, Came]:
        """xa_start."""
        return self._started(unit, xid, flags), {}

    def _started(self, unit: EmbeddedUnitOfWork, xid: bytes, flags: int) -> int:
        branch = self._branches.get(xid)
        if self.current is not None:
            return xa.XAER_PROTO
        if self.in_syncpoint:
            return xa.XAER_OUTSIDE
        if flags == xa.TMNOFLAGS:
            if branch is not None or unit.prepared.number(xid) is not None:
                return xa.XAER_DUPID
            self._numbers += 1
            owner = f"{self._connected.owner(unit)} {self._numbers}"
            branch = Branch(self._connected.number, owner, unit.database.losses)
            self._branches[xid] = branch
        elif flags not in _BEFORE:
            return xa.XAER_INVAL
        elif branch is None:
            return xa.XAER_NOTA
        elif (branch.program, branch.state) != (self._connected.number, _BEFORE[flags]):
            return xa.XAER_PROTO
        branch.state = BranchState.ACTIVE
        self.current = xid
        return xa.XA_OK

    def end(self, _unit: EmbeddedUnitOfWork, xid: bytes, flags: int) -> tuple[int, Came]:
        """xa_end."""
        return self._left(xid, flags), {}

    def _left(self, xid: bytes, flags: int) -> int:
        branch = self._branches.get(xid)
        if flags not in (xa.TMSUCCESS, xa.TMFAIL, xa.TMSUSPEND):
            return xa.XAER_INVAL
        if branch is None:
            return xa.XAER_NOTA
        if branch.program != self._connected.number or branch.state is BranchState.ENDED:
            return xa.XAER_PROTO
        if branch.state is BranchState.ACTIVE:
            self.current = self.since = None
        branch.state = BranchState.SUSPENDED if flags == xa.TMSUSPEND else BranchState.ENDED
        branch.failed |= flags == xa.TMFAIL
        return xa.XA_OK

    def prepare(self, unit: EmbeddedUnitOfWork, xid: bytes, _flags: int) -> tuple[int, Came]:
        """xa_prepare."""
        return self._unless_failed(
            unit, xid, lambda owner: (xa.XA_OK if unit.prepared.add(xid, owner) else xa.XA_RDONLY, {})
        )

    def commit(self, unit: EmbeddedUnitOfWork, xid: bytes, flags: int) -> tuple[int, Came]:
        """xa_commit, of a branch that is prepared, or with TMONEPHASE of one that is not."""
        if flags not in (xa.TMNOFLAGS, xa.TMONEPHASE):
            return xa.XAER_INVAL, {}
        if flags == xa.TMNOFLAGS:
            return self._ended(unit, xid, commit=True)
        return self._unless_failed(unit, xid, lambda owner: (xa.XA_OK, unit.uncommitted.commit(owner)))

    def rollback(self, unit: EmbeddedUnitOfWork, xid: bytes, _flags: int) -> tuple[int, Came]:
        """xa_rollback."""
        if xid not in self._branches:
            return self._ended(unit, xid, commit=False)
        refused = self._refused(unit, xid)
        if refused:
            return refused, {}
        return xa.XA_OK, unit.uncommitted.backout(self._branches.pop(xid).owner)

    def forget(self, unit: EmbeddedUnitOfWork, xid: bytes, _flags: int) -> tuple[int, Came]:
        """xa_forget: of a branch that was ended heuristically, which none is."""
        is_known = xid in self._branches or unit.prepared.number(xid) is not None
        return (xa.XAER_PROTO if is_known else xa.XAER_NOTA), {}

    def recover(self, unit: EmbeddedUnitOfWork, flags: int, most: int) -> list[bytes]:
        """xa_recover: up to *most* of those that are in doubt, the next ones with each call of a scan."""
        if flags & xa.TMSTARTRSCAN:
            self._scan = [xid for _, xid in unit.prepared.in_doubt()]
        given, self._scan = self._scan[:most], self._scan[most:]
        return given

    def disconnect(self) -> bool:
        """The program ends, and with it its branches that are not prepared; whether there are any."""
        mine = [xid for xid, branch in self._branches.items() if branch.program == self._connected.number]
        for xid in mine:
            del self._branches[xid]
        self.current = None
        return bool(mine)

    def _unless_failed(
        self, unit: EmbeddedUnitOfWork, xid: bytes, end: Callable[[str], tuple[int, Came]]
    ) -> tuple[int, Came]:
        """*end* a branch that is not prepared, by its owner; one that has failed, or may be lost, is backed out."""
        refused = self._refused(unit, xid)
        if refused:
            return refused, {}
        branch = self._branches.pop(xid)
        if branch.failed or branch.losses != unit.database.losses:
            return xa.XA_RBROLLBACK, unit.uncommitted.backout(branch.owner)
        return end(branch.owner)

    def _refused(self, unit: EmbeddedUnitOfWork, xid: bytes) -> int:
        """Why a branch that is not prepared cannot be ended; 0 where it can be."""
        branch = self._branches.get(xid)
        if branch is None:
            return xa.XAER_NOTA if unit.prepared.number(xid) is None else xa.XAER_PROTO
        return xa.XA_OK if branch.state is BranchState.ENDED else xa.XAER_PROTO

    def _ended(self, unit: EmbeddedUnitOfWork, xid: bytes, commit: bool) -> tuple[int, Came]:
        number = unit.prepared.number(xid)
        if number is None:
            return (xa.XAER_PROTO if xid in self._branches else xa.XAER_NOTA), {}
        return xa.XA_OK, unit.prepared.end(number, commit)


XaCall = Callable[[Transactions, EmbeddedUnitOfWork, bytes, int], tuple[int, Came]]
"""One of ``Transactions`` for a branch: its XID and flags in; what XA returns, and what came to queues, out."""
