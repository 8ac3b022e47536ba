"""What a power cut can leave of what a program did below one directory, as ``disk_shim.c`` has recorded it.

The model is stricter than any file system of Linux. Bytes are on the disk after an fsync of their file, and a name
(made, renamed, removed) after one of its directory. What was not synced is there or not, in any subset and in any
order; a write that spans sectors of 512 bytes may be there in part. A rename is whole or not at all. Bytes that a sync
which failed was to write are lost for good, though a later sync says that all is well. A part of a file that was never
written is zero.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

WRITE, SYNC, NAME, CUT, OPEN, MARK, FAILED_SYNC, SYNC_NAMES = 1, 2, 4, 8, 16, 32, 64, 128
_HEAD: Final = struct.Struct("=IIIxxxxQQ")
_SECTOR: Final = 512
Tree = dict[str, bytes | None]
"""Contents by name below the directory; None for a directory."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One change. on: the file's or directory's number. what: (name, number or None) of names, in order."""

    kind: int
    on: int
    offset: int = 0
    data: bytes = b""
    names: tuple[tuple[int, str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """One thing that can be left. how: which of the changes are there, for people."""

    tree: Tree
    acknowledged: tuple[str, ...]
    how: str

    @property
    def key(self) -> bytes:
        """The same for states that differ in nothing."""
        digest = hashlib.sha256(repr(self.acknowledged).encode())
        for name, content in sorted(self.tree.items()):
            digest.update(f"\n{name} {-1 if content is None else len(content)}\n".encode() + (content or b""))
        return digest.digest()


@dataclass(slots=True)
class Cut:
    """A moment: what is on the disk, and what is on its way there."""

    contents: dict[int, bytes]
    names: dict[int, dict[str, int]]
    pending: tuple[Operation, ...]
    acknowledged: tuple[str, ...]
    at: str

    def state(self, how: str, kept: Sequence[Operation]) -> State:
        """What is left where those of the pending changes are there."""
        contents = dict(self.contents)
        names = {number: dict(found) for number, found in self.names.items()}
        for operation in kept:
            _apply(operation, contents, names)
        tree: Tree = {}
        _walk(0, "", contents, names, tree)
        return State(tree, self.acknowledged, f"{self.at}: {how}")

    def plain(self) -> Iterator[State]:
        """All lost, and all there."""
        yield self.state("all lost", ())
        yield self.state("all there", self.pending)

    def enumerated(self) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        """For ``state``: each change alone there or lost, each prefix, each write torn, and the rest there."""
        pending = self.pending
        for number, one in enumerate(pending):
            before, behind = pending[:number], pending[number + 1 :]
            yield f"{number} of {len(pending)} there", (one,)
            yield f"{number} of {len(pending)} lost", (*before, *behind)
            yield f"the first {number} of {len(pending)} there", before
            for which, part in enumerate(_torn(one)):
                yield f"{number} of {len(pending)} torn ({which})", (*before, part, *behind)

    def random(self, chance: Random) -> State:
        """Any subset, with some writes torn."""
        share = chance.choice((0.1, 0.5, 0.9))
        kept = []
        for operation in self.pending:
            if chance.random() < share:
                parts = _torn(operation) if chance.random() < 0.2 else ()
                kept.append(chance.choice(parts) if parts else operation)
        return self.state(f"{len(kept)} of {len(self.pending)} by chance", kept)


def _torn(operation: Operation) -> tuple[Operation, ...]:
    """The first half of its sectors, the second half."""
    start, end = operation.offset, operation.offset + len(operation.data)
    middle = (start + end) // 2 // _SECTOR * _SECTOR
    if operation.kind != WRITE or not start < middle < end:
        return ()
    first, second = operation.data[: middle - start], operation.data[middle - start :]
    return Operation(WRITE, operation.on, start, first), Operation(WRITE, operation.on, middle, second)


def _apply(operation: Operation, contents: dict[int, bytes], names: dict[int, dict[str, int]]) -> None:
    if operation.kind == NAME:
        for directory, name, number in operation.names:
            if number is None:
                names[directory].pop(name, None)
            else:
                names[directory][name] = number
        return
    content, offset = contents[operation.on], operation.offset
    if operation.kind == CUT:
        contents[operation.on] = content[:offset].ljust(offset, b"\0")
    else:
        content = content.ljust(offset, b"\0")
        contents[operation.on] = content[:offset] + operation.data + content[offset + len(operation.data) :]


def _walk(number: int, path: str, contents: dict[int, bytes], names: dict[int, dict[str, int]], tree: Tree) -> None:
    for name, below in names[number].items():
        where = f"{path}{name}"
        if below in names:
            tree[where] = None
            _walk(below, f"{where}/", contents, names, tree)
        else:
            tree[where] = contents[below]


@dataclass(slots=True)
class Disk:
    """A directory as it was when the recording began, all of it on the disk, and what became of it.

    lies: a sync does nothing, and says that all is well.
    """

    root: Path
    lies: bool = False
    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    live: dict[int, dict[str, int]] = field(default_factory=dict)
    pending: list[Operation] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)  # by identity, of pending changes
    marks: list[str] = field(default_factory=list)
    inodes: dict[int, int] = field(default_factory=dict)
    syncs: int = 0
    _next: int = 1

    @classmethod
    def of(cls, root: Path, *, lies: bool = False) -> Disk:
        """As *root* is now."""
        disk = cls(root, lies)
        disk._look(root, 0)
        return disk

    def _look(self, path: Path, number: int) -> None:
        self.inodes[path.stat().st_ino] = number
        if path.is_dir():
            self.names[number], self.live[number] = {}, {}
            for each in sorted(path.iterdir()):
                below, self._next = self._next, self._next + 1
                self.names[number][each.name] = self.live[number][each.name] = below
                self._look(each, below)
        else:
            self.contents[number] = path.read_bytes()

    def cuts(self, log: Path) -> Iterator[Cut]:
        """The moments before each sync, after each remark, and the last one."""
        data, at = log.read_bytes(), 0
        while at < len(data):
            kind, first, second, inode, offset = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            one, two = data[at : at + first], data[at + first : at + first + second]
            at += first + second
            if kind == SYNC:
                self.syncs += 1
                yield self._cut(f"before sync {self.syncs}")
            self._follow(kind, inode, offset, one, two)
            if kind == MARK:
                yield self._cut(f"after {self.marks[-1]}")
        yield self._cut("at the end")

    def _cut(self, at: str) -> Cut:
        names = {number: dict(found) for number, found in self.names.items()}
        return Cut(dict(self.contents), names, tuple(self.pending), tuple(self.marks), at)

    def _follow(self, kind: int, inode: int, offset: int, one: bytes, two: bytes) -> None:
        if kind == MARK:
            self.marks.append(one.decode())
        elif kind == OPEN:
            self._made(inode, one.decode(), two.decode())
        elif kind == NAME:
            self._named(one.decode(), two.decode())
        elif inode in self.inodes:
            number = self.inodes[inode]
            if kind in (SYNC, FAILED_SYNC) and not self.lies:
                self._synced(number, failed=kind == FAILED_SYNC)
            elif kind in (WRITE, CUT):
                self.pending.append(Operation(kind, number, offset, one))

    def _synced(self, number: int, *, failed: bool) -> None:
        left = []
        for operation in self.pending:
            if operation.on != number:
                left.append(operation)
            elif failed:
                if operation.kind != NAME:
                    self.lost.add(id(operation))
                left.append(operation)
            elif id(operation) in self.lost:
                self.lost.remove(id(operation))
            else:
                _apply(operation, self.contents, self.names)
        self.pending = left

    def _made(self, inode: int, path: str, what: str) -> None:
        directory, name = self._place(path)
        if what == "link":
            number = self.inodes[inode]
        else:
            number, self._next = self._next, self._next + 1
            self.inodes[inode] = number
            if what == "file":
                self.contents[number] = b""
            else:
                self.names[number], self.live[number] = {}, {}
        self._rename(directory, ((directory, name, number),))

    def _named(self, source: str, target: str) -> None:
        directory, name = self._place(source)
        if not target:
            self._rename(directory, ((directory, name, None),))
            return
        to, new = self._place(target)
        self._rename(to, ((directory, name, None), (to, new, self.live[directory][name])))

    def _rename(self, directory: int, names: tuple[tuple[int, str, int | None], ...]) -> None:
        operation = Operation(NAME, directory, names=names)
        self.pending.append(operation)
        _apply(operation, {}, self.live)

    def _place(self, path: str) -> tuple[int, str]:
        *above, name = Path(path).relative_to(self.root).parts
        number = 0
        for each in above:
            number = self.live[number][each]
        return number, name


def write_tree(root: Path, tree: Tree) -> None:
    """Make *root* hold that and nothing else; it is empty or not there."""
    root.mkdir(mode=0o700, exist_ok=True)
    for name, content in tree.items():
        if content is None:
            (root / name).mkdir(mode=0o700)
        else:
            (root / name).write_bytes(content)
            (root / name).chmod(0o600)
