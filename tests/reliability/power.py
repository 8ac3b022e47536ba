"""Power cuts and failing disks: ``python -m tests.reliability.power [ROOM]... [--cuts N] [--faults N] [--seed N]``.

A room is something that keeps what it was given on a disk (``power_rooms``). It is watched at work (``disk_shim.c``).
The states that a power cut can leave before each sync and after each acknowledgement are made (``disk_states``), and
the next start has to find what was promised. Then each write, sync, truncation, new name and new file fails in turn.

--cuts: so many random states, in all rooms together; with 0, they are enumerated. --states: at most so many of a room,
beside those in which all or nothing of what was on its way is there. --faults: so many of each kind for a room.
Each time, some rooms (one, with --states) are tried on a disk whose syncs do nothing, too: that has to be found.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final

from rfh2.errors import QPubSubError
from tests.reliability.disk_states import CUT, NAME, OPEN, SYNC, SYNC_NAMES, WRITE, Disk, State, write_tree
from tests.reliability.power_rooms import ROOMS, Room, remedied
from tests.reliability.workload import unlogged

COMPILER: Final = shutil.which("cc")
_SOURCE: Final = Path(__file__).with_name("disk_shim.c")
_SHIM: Final = "QPUBSUB_TEST_SHIM"
_MOST_TOLD: Final = 5
_LIED_TO: Final = ("journal", "files", "capture", "estate")
FAULTS: Final = (
    ("write", WRITE, errno.EIO, False),
    ("write", WRITE, errno.ENOSPC, True),
    ("fsync", SYNC, errno.EIO, False),
    ("fsync", SYNC, errno.EIO, True),
    ("fsync of a directory", SYNC_NAMES, errno.EIO, False),
    ("truncate", CUT, errno.EIO, False),
    ("name", NAME, errno.EIO, False),
    ("open", OPEN, errno.ENOSPC, False),
)
"""In words, of the shim, what the system says, and whether all later ones fail too."""


class Shim:
    """``disk_shim.c``, which this process was started with."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ[_SHIM])
        self._library.power_watch.argtypes = [ctypes.c_uint64]

    @contextmanager
    def recording(self, root: Path, log: Path, *, lies: bool = False) -> Iterator[Disk]:
        """What is done below *root* meanwhile goes to *log*; the disk as it is now."""
        disk = Disk.of(root, lies=lies)
        log.unlink(missing_ok=True)
        if self._library.power_record(os.fsencode(root), os.fsencode(log)) != 0:
            raise OSError(f"{root} cannot be watched")
        for inode in disk.inodes:
            self._library.power_watch(inode)
        try:
            yield disk
        finally:
            self._library.power_end()

    def mark(self, text: str) -> None:
        """A remark in the log."""
        self._library.power_mark(text.encode())

    def fail(self, kinds: int, nth: int, error: int = errno.EIO, *, lasts: bool = False) -> None:
        """The *nth* change of these kinds from now fails; 0 for none."""
        self._library.power_fail(kinds, nth, error, lasts)

    @property
    def seen(self) -> int:
        """How many changes of the kinds that were named last there were."""
        return int(self._library.power_seen())


@dataclass(slots=True)
class Found:
    """What a room came to."""

    room: str
    cuts: int = 0
    states: int = 0
    faults: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def told(self) -> dict[str, object]:
        """For JSON."""
        figures = {name: getattr(self, name) for name in ("room", "cuts", "states", "faults")}
        return {**figures, "broken": len(self.broken), **self.outcomes}


class Trial:
    """One room, in a directory below *place*."""

    def __init__(self, room: Room, shim: Shim, place: Path) -> None:
        self._room, self._shim = room, shim
        self._root, self._log = place / "disk", place / "log"
        self.found = Found(room.name)
        self._seen: set[bytes] = set()
        self._begin()
        self._looks: list[object] = [room.look(self._root)]
        self._room.work(self._root, self._look)

    def _look(self, text: str) -> None:
        self._looks.append(self._room.look(self._root))

    def _begin(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)
        self._root.mkdir(mode=0o700)
        self._room.prepare(self._root)

    def cuts(self, chance: Random | None, most: int | None, *, lies: bool = False) -> None:
        """Power cuts: enumerated, *most* states beside all lost and all there; or so many random ones."""
        self._begin()
        with self._shim.recording(self._root, self._log, lies=lies) as disk:
            self._room.work(self._root, self._shim.mark)
        cuts = list(disk.cuts(self._log))
        self.found.cuts = len(cuts)
        if chance is None:
            for cut in cuts[:: self._room.every if most else 1]:
                for state in cut.plain():
                    self._try(state)
            states = [(cut, how, kept) for cut in cuts for how, kept in cut.enumerated()]
            for cut, how, kept in states[:: max(1, len(states) // most) if most else 1]:
                self._try(cut.state(how, kept))
        else:
            for _ in range(most or 0):
                self._try(chance.choice(cuts).random(chance))

    def faults(self, most: int) -> None:
        """Each change fails in its turn; where there are more than *most* of a kind, so many of them."""
        for what, kinds, error, lasts in FAULTS:
            self._fail(kinds, 0, error, lasts=lasts)
            there = self._shim.seen
            step = max(1, -(-there // most))
            for nth in range((step + 1) // 2, there + 1, step):
                self.found.faults += 1
                name = f"{what} {nth} of {there}: {os.strerror(error)}"
                try:
                    self._fault(f"{name}, and all after it" if lasts else name, kinds, nth, error, lasts=lasts)
                except Exception as failure:  # whatever it is: it is what is looked for
                    self._note(name, failure)

    def _fault(self, name: str, kinds: int, nth: int, error: int, *, lasts: bool) -> None:
        disk = self._fail(kinds, nth, error, lasts=lasts)
        *_, last = disk.cuts(self._log)
        self._check(State({}, last.acknowledged, name))
        if kinds != SYNC_NAMES or not self._room.has_database:
            self._try(last.state(f"{name}, then a power cut", ()))

    def _fail(self, kinds: int, nth: int, error: int, *, lasts: bool) -> Disk:
        self._begin()
        with self._shim.recording(self._root, self._log) as disk:
            self._shim.fail(kinds, nth, error, lasts=lasts)
            try:
                self._room.work(self._root, self._shim.mark)
            except (QPubSubError, OSError) as failure:
                said = str(failure)
                if not nth or "Traceback" in said or not (isinstance(failure, QPubSubError) or failure.filename):
                    raise
                self.found.outcomes["said"] += 1
        return disk

    def _try(self, state: State) -> None:
        key = state.key
        if key in self._seen:
            return
        self._seen.add(key)
        self.found.states += 1
        shutil.rmtree(self._root)
        write_tree(self._root, state.tree)
        try:
            self._check(state)
        except Exception as failure:  # whatever it is: it is what is looked for
            self._note(state.how, failure)

    def _check(self, state: State) -> None:
        self.found.outcomes["log missing"] += remedied(self._root)
        self._room.check(self._root, state.acknowledged, self._looks)

    def _note(self, how: str, failure: Exception) -> None:
        where = traceback.extract_tb(failure.__traceback__)[-1]
        why = f"{type(failure).__name__}: {failure} ({Path(where.filename).name}:{where.lineno})"
        if os.environ.get("POWER_DEBUG"):
            traceback.print_exception(failure)
        self.found.broken.append(f"{self.found.room}, {how}: {why}")


def _tried(rooms: Sequence[Room], options: argparse.Namespace, place: Path) -> list[Found]:
    found = []
    shim = Shim()
    chance = Random(options.seed) if options.cuts else None
    with unlogged():
        for room in rooms:
            trial = Trial(room, shim, place)
            trial.cuts(chance, options.cuts // len(rooms) if chance else options.states)
            if options.faults:
                trial.faults(options.faults)
            found.append(trial.found)
        found += [_lied_to(name, shim, place) for name in _LIED_TO[: 1 if options.states else None]]
    return found


def _lied_to(name: str, shim: Shim, place: Path) -> Found:
    trial = Trial(ROOMS[name], shim, place)
    trial.cuts(None, 1, lies=True)
    missed = [] if trial.found.broken else [f"{name}: nobody noticed that syncs do nothing"]
    return replace(trial.found, room=f"{name}, syncs do nothing", broken=missed)


def compiled(place: Path) -> Path:
    """The library, made in *place*."""
    library = place / "disk_shim.so"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE)], check=True)
    return library


@contextmanager
def _directory() -> Iterator[Path]:
    """In memory, where the system has such a place: what is asked of the disk counts, not the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as place:
        yield Path(place).resolve()


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the rooms; 1 where one of them broke a promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.power", description=__doc__)
    parser.add_argument("room", nargs="*", help=", ".join(ROOMS))
    parser.add_argument("--cuts", type=int, default=10_000)
    parser.add_argument("--states", type=int)
    parser.add_argument("--faults", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if unknown := set(options.room) - set(ROOMS):
        parser.error(f"no room {', '.join(sorted(unknown))}; there are {', '.join(ROOMS)}")
    with _directory() as place:
        if _SHIM not in os.environ:
            if COMPILER is None:
                print("passed over: there is no C compiler")
                return 0
            shim = str(compiled(place))
            words = [
                sys.executable,
                "-m",
                "tests.reliability.power",
                *(sys.argv[1:] if arguments is None else arguments),
            ]
            watched = {**os.environ, _SHIM: shim, "LD_PRELOAD": shim}
            ran = subprocess.run(words, env=watched, stdout=subprocess.PIPE, text=True, check=False)
            print(ran.stdout, end="", flush=True)
            return ran.returncode
        found = _tried([ROOMS[name] for name in options.room or ROOMS], options, place)
    for each in found:
        for line in each.broken[:_MOST_TOLD]:
            print(line, file=sys.stderr)
        print(json.dumps(each.told()))
    sums = {name: sum(getattr(each, name) for each in found) for name in ("cuts", "states", "faults")}
    broken = sum(len(each.broken) for each in found)
    print(json.dumps({**sums, "broken": broken, "processor_s": round(time.process_time())}))
    return int(bool(broken))


if __name__ == "__main__":
    raise SystemExit(main())
