"""What keeps something on a disk, for power cuts and failing disks: its work, and what must be there afterwards."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, LocalQueue, QueueManager
from commands.broker.puts import Put, PutKind
from commands.cli import capture, maintenance
from commands.links.engine.filters import read_state, write_state
from commands.qmgr.processor import Processor, ProcessorSettings
from commands.qmgr.store import QueueManagerNotFoundError, QueueManagerStore, StoreDamagedError, UnitOfWork, opening
from commands.qmgr.store.database import Durability
from commands.qmgr.store.reading import definitions_in
from commands.running.capture_files import CaptureFiles
from commands.running.journal import LogFile, LogFormat, Recorder
from commands.running.work_page import FixedFile, read_fixed
from commands.terminal.console import Console
from migrate import embedded
from migrate.acl import FILE_NAME
from migrate.cli import migmbbrk
from migrate.cli.migmbbrk import Retrieved
from migrate.contents import SUMS, sums_of
from migrate.estate.records import BrokerFiles, BrokerState, Record
from migrate.legacy_state import LegacyState
from migrate.live.journal import JOURNAL, Entry, Journal, entries_in
from migrate.plan import Phase, Tool
from migrate.planned_state import PlannedHeading
from rfh2.captured import CapturedMessage
from rfh2.captures import read_captures
from rfh2.errors import QPubSubError
from rfh2.mqmd import Mqmd
from tests.commands.cli_runs import run
from tests.migrate.cases import LEGACY
from tests.reliability.workload import NOW, clock, put

After = Callable[[str], None]
"""Called after each step: ``acked`` where it was promised to last, ``done`` where it was not."""


class Room:
    """A step is there whole or not at all; what was acknowledged is there, and nothing that came after what is lost."""

    name: ClassVar[str]
    every: ClassVar = 1
    """Where not all is tried, only each so many-th cut: what is checked takes long."""
    has_database: ClassVar = False
    """SQLite syncs the directory of its log, and passes over an error of that."""

    def prepare(self, root: Path) -> None:
        """What is there, and on the disk, before."""

    def work(self, root: Path, after: After) -> None:
        """The steps. Raises QPubSubError, OSError where the disk does not let it."""
        raise NotImplementedError

    def look(self, root: Path) -> object:
        """What a program that starts now finds."""
        raise NotImplementedError

    def check(self, root: Path, done: Sequence[str], looks: Sequence[object]) -> None:
        """Raises AssertionError. looks: what is to be found before the first step, and after each."""
        found = self.look(root)
        first = max((number for number, text in enumerate(done, 1) if text == "acked"), default=0)
        allowed = looks[first : len(done) + 2]
        assert found in allowed, f"after {len(done)} steps, {first} acknowledged: {found} is not one of {allowed}"
        self.go_on(root)

    def go_on(self, root: Path) -> None:
        """The next start. Raises what shows that it does not work."""


_LONG = bytes(range(256)) * 36


def remedied(root: Path) -> int:
    """Do what the message about a write-ahead log that was removed says; how often.

    The name of -shm without that of -wal, which SQLite makes before and removes after it, is what a person leaves who
    has removed -wal; and a disk that does not keep the order of names in one directory.
    """
    left = [path for path in root.rglob("*-shm") if not path.with_name(path.name.replace("-shm", "-wal")).exists()]
    for path in left:
        with suppress(StoreDamagedError):
            QueueManagerStore.open(path.parent.parent, "QM1").close()
        path.unlink(missing_ok=True)
    return len(left)


class Store(Room):
    """A queue manager of its own: made, put to, processed and got from; written back, and opened again."""

    durability = Durability.FULL
    name = "store"
    has_database = True

    def work(self, root: Path, after: After) -> None:
        with self._made(root) as store:
            after(self._acked)
            self._steps(store, after)
        with QueueManagerStore.open(root, "QM1", durability=self.durability, clock=clock) as store:
            self._step(store, after, 9)
        after(self._acked)

    @property
    def _acked(self) -> str:
        return "acked" if self.durability is Durability.FULL else "done"

    def _made(self, root: Path) -> QueueManagerStore:
        made = QueueManagerStore.create(root, QueueManager("QM1"), durability=self.durability, clock=clock)
        # Written back often, so that cuts fall into that too.
        made.database.connection.execute("PRAGMA wal_autocheckpoint = 8")
        return made

    def _steps(self, store: QueueManagerStore, after: After) -> None:
        processor = Processor(store, clock, settings=ProcessorSettings(batch=1))
        for number in range(3):
            self._step(store, after, number)
        with store.unit_of_work() as unit:
            put(unit, CONTROL_QUEUE, "<Command>RegSub</Command><Topic>a</Topic><QName>S</QName>")
        after(self._acked)
        processor.drain()
        after(self._acked)
        with store.unit_of_work() as unit:
            put(unit, DEFAULT_STREAM, "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a</Topic>", b"p")
        after(self._acked)
        processor.drain()
        after(self._acked)
        with store.unit_of_work() as unit:
            assert unit.get("Q") is not None
        after(self._acked)

    def _step(self, store: QueueManagerStore, after: After, number: int) -> None:
        with store.unit_of_work() as unit:
            self._put(unit, number)
        after(self._acked)

    @staticmethod
    def _put(unit: UnitOfWork, number: int) -> None:
        if unit.find_queue("Q") is None:
            unit.save_definition(LocalQueue("Q"))
        for part in b"ab":
            unit.put("Q", None, b"%d%c" % (number, part) + _LONG[: 2_000 * number % 9_000], time=clock())

    def look(self, root: Path) -> object:
        return _looked(root)

    def go_on(self, root: Path) -> None:
        if _looked(root) is None:
            QueueManagerStore.create(root, QueueManager("QM1"), clock=clock).close()
        with QueueManagerStore.open(root, "QM1", clock=clock) as store:
            self._step(store, lambda _: None, 8)
            Processor(store, clock).drain()
            assert [m.body[:2] for m in store.browse("Q")][-2:] == [b"8a", b"8b"]


def _looked(home: Path) -> object:
    """What the queue manager holds; None where there is none, or it was never finished."""
    try:
        with QueueManagerStore.open(home, "QM1", clock=clock) as store:
            objects, subscriptions, retained = store.load_state()
            queues = {name: [m.body[:2] + b"%d" % len(m.body) for m in store.browse(name)] for name in objects.queues}
            topics = sorted(each.topic_string for each in subscriptions)
            return {name: found for name, found in queues.items() if found}, topics, len(retained)
    except QueueManagerNotFoundError:
        return None
    except StoreDamagedError as error:
        if "run qpubsub create again" in str(error):
            return None
        raise


class Lasting(Store):
    """The same with ``--durability normal``: the last commits may be missing, and nothing in between."""

    durability = Durability.NORMAL
    name = "normal"


class Group(Store):
    """As the listener commits: units of work that do not last by themselves, and one sync for several."""

    name = "listener"

    def prepare(self, root: Path) -> None:
        QueueManagerStore.create(root, QueueManager("QM1"), clock=clock).close()

    def work(self, root: Path, after: After) -> None:
        with QueueManagerStore.open(root, "QM1", clock=clock) as store:
            log = store.database.take_log()
            for number in range(1, 7):
                with store.unit_of_work(lasting=False) as unit:
                    self._put(unit, number)
                after("done")
                if number % 2 == 0:
                    log.sync()
                    after("acked")
                if number % 3 == 0:
                    log.checkpoint()


class Copy(Room):
    """``home copy``: the queue manager in the other home is there whole or not at all, and the command goes on."""

    name = "copy"
    has_database = True

    def prepare(self, root: Path) -> None:
        with (
            QueueManagerStore.create(root / "from", QueueManager("QM1"), clock=clock) as store,
            store.unit_of_work() as u,
        ):
            for number in range(5):
                Store._put(u, number)

    def work(self, root: Path, after: After) -> None:
        opening.copy(root / "from", root / "to", "QM1")
        after("acked")

    def look(self, root: Path) -> object:
        return _looked(root / "to")

    def go_on(self, root: Path) -> None:
        opening.copy(root / "from", root / "to", "QM1")
        assert _looked(root / "to") == _looked(root / "from")


class _Source:
    """A queue of another machine, which loses nothing: so many of its messages have left it for good."""

    is_up = True

    def __init__(self, left: int, committed: Callable[[int], None] = lambda _: None) -> None:
        self._left = self._at = left
        self._committed = committed

    def connect(self) -> None:
        """It is."""

    def take(self, most: int, _bytes: int) -> list[CapturedMessage]:
        """The next few."""
        first, self._at = self._at, min(self._at + min(most, 3), MESSAGES)
        return [_message(number) for number in range(first, self._at)]

    def backout(self) -> None:
        """They come again."""
        self._at = self._left

    def commit(self) -> None:
        """They have left it."""
        self._left = self._at
        self._committed(self._left)


MESSAGES = 11


def _message(number: int) -> CapturedMessage:
    md = Mqmd(msg_id=b"%024d" % number).encode()
    return CapturedMessage(seq=0, queue="S", md_hex=md.hex(), body_hex=(b"%d" % number + _LONG[: number * 99]).hex())


class Capture(Room):
    """``capture --take``: what has left its queue is in the files, once, in order; the same command goes on."""

    name = "capture"
    form = "jsonl"

    def work(self, root: Path, after: After) -> None:
        self._captured(root, _Source(0, lambda left: after(f"left {left}")))
        after("acked")

    def _captured(self, root: Path, source: _Source) -> None:
        with CaptureFiles(root / "captured", self.form, 4) as place:
            console = Console(io.BytesIO(), io.StringIO())
            run = capture._Run(console, cast(Any, source), place, threading.Event(), lambda _: None, None)
            run.all(takes=True, every_s=None)
            place.finish()

    def look(self, root: Path) -> object:
        return None

    def check(self, root: Path, done: Sequence[str], looks: Sequence[object]) -> None:
        """Raises AssertionError."""
        left = max((int(text.removeprefix("left ")) for text in done if text.startswith("left ")), default=0)
        self._captured(root, _Source(left))
        records = [record.message for record in read_captures(root / "captured")]
        found = [(each.seq, each.body_hex) for each in records if each is not None]
        assert found == [(n + 1, _message(n).body_hex) for n in range(MESSAGES)], (
            f"{left} left: {[s for s, _ in found]}"
        )


class CaptureColumns(Capture):
    """The same into Parquet."""

    name = "capture-parquet"
    form = "parquet"


class _SaidError(QPubSubError):
    """What a verb said before it ended with 2, or with 1 where it should not."""


def _said(*words: str, fine: tuple[int, ...] = (0,)) -> None:
    ran = run(*words)
    if ran.code not in fine:
        raise _SaidError(ran.talk)


class Get(Room):
    """``get -o``: each message is in the file, under whatever name, or on its queue."""

    name = "get"
    has_database = True
    count = 150

    def prepare(self, root: Path) -> None:
        made = QueueManagerStore.create(root, QueueManager("QM1"), clock=clock)
        with made as store, store.unit_of_work() as unit:
            unit.save_definition(LocalQueue("Q"))
            for number in range(self.count):
                unit.put("Q", None, b"%d" % number, time=clock())

    def work(self, root: Path, after: After) -> None:
        _said("get", "-m", "QM1", "--home", str(root), "Q", "-o", str(root / "got.jsonl"))
        after("acked")

    def look(self, root: Path) -> object:
        return None

    def check(self, root: Path, done: Sequence[str], looks: Sequence[object]) -> None:
        """Raises AssertionError."""
        with QueueManagerStore.open(root, "QM1", clock=clock) as store:
            queued = [int(message.body) for message in store.browse("Q")]
        written = [number for path in root.glob("*got.jsonl*") for number in _numbers(path)]
        assert queued == list(range(self.count - len(queued), self.count))
        assert {*written, *queued} == {*range(self.count)}, f"{len(written)} written, {len(queued)} on the queue"
        assert len(written) + len(queued) <= self.count + 100
        if done:
            assert (root / "got.jsonl").exists()
        _said("get", "-m", "QM1", "--home", str(root), "Q", "-o", str(root / "again.jsonl"))
        assert _numbers(root / "again.jsonl") == queued


def _numbers(path: Path) -> list[int]:
    found = []
    for line in path.read_bytes().splitlines():
        with suppress(ValueError):  # what was torn, and not acknowledged
            found.append(int(CapturedMessage.model_validate_json(line).body))
    return found


class Files(Room):
    """Small files that are replaced: each has its old content or its new one, and the new one once that was said."""

    name = "files"

    def prepare(self, root: Path) -> None:
        write_state(root / "link.json", {"at": 0})
        (root / "passwords").touch()
        for number in (1, 2):
            (root / f"in{number}.jsonl").write_text(_message(number).model_dump_json() + "\n")

    def work(self, root: Path, after: After) -> None:
        for number in (1, 2):
            write_state(root / "link.json", {"at": number, "much": "x" * 3_000 * number})
            after("acked")
            maintenance._rewrite(root / "passwords", f"user{number}", "secret" * 300)
            after("acked")
            _said("convert", str(root / f"in{number}.jsonl"), "-o", str(root / "out.jsonl"))
            after("acked")
            state = Retrieved("B", Phase.INITIAL, LegacyState(qmgr=f"Q{number}"))
            migmbbrk.keep(root / "kept.json", state)
            after("acked")
            migmbbrk._write_security(root, cast(Any, SimpleNamespace(security=[f"setmqaut {number}"] * 300)))
            after("acked")

    def look(self, root: Path) -> object:
        kept = migmbbrk.read_kept(root / "kept.json")
        texts = [self._text(root / name) for name in ("passwords", "out.jsonl", FILE_NAME)]
        return read_state(root / "link.json"), None if kept is None else kept.state.qmgr, texts

    @staticmethod
    def _text(path: Path) -> str | None:
        return path.read_text() if path.exists() else None


class Migration(Room):
    """``strmqbrk`` on a queue manager of its own: done or not done, and what is done can be undone."""

    name = "migration"
    every = 4
    has_database = True
    words = ("--source", *(str(LEGACY / "streams" / name) for name in ("capture.jsonl", "qm.ini", "relations.json")))

    def prepare(self, root: Path) -> None:
        QueueManagerStore.create(root / "home", QueueManager("QM1", psmode="COMPAT")).close()

    def work(self, root: Path, after: After) -> None:
        places = ("--home", str(root / "home"), "--out", str(root / "out"), "-l", str(root / "log"))
        _said("strmqbrk", "-m", "QM1", *places, *self.words, "--accept-unread", fine=(0, 1))
        after("acked" if (root / "out" / SUMS).exists() else "done")

    def look(self, root: Path) -> object:
        with QueueManagerStore.open(root / "home", "QM1") as store:
            known = embedded.load(store)
            objects = sorted((type(each).__name__, each.name) for each in definitions_in(known.objects))
            return objects, [each.sub_id for each in known.subscriptions], sorted(known.retained)

    def check(self, root: Path, done: Sequence[str], looks: Sequence[object]) -> None:
        """Raises AssertionError."""
        found = self.look(root)
        assert found == looks[1] or (found == looks[0] and "acked" not in done)
        sums = sums_of(root / "out")
        assert all(sha256((root / "out" / name).read_bytes()).hexdigest() == found for name, found in sums.items())
        assert sums or "acked" not in done
        with QueueManagerStore.open(root / "home", "QM1") as store:
            if found == looks[1]:
                embedded.undo(store, Tool.STRMQBRK)
        assert self.look(root) == looks[0]
        self.work(root, lambda _: None)
        assert self.look(root) == looks[1]


class ApplyJournal(Room):
    """The journal of ``apply``: what was synced is there, the rest in order, and it goes on."""

    name = "journal"
    heading = PlannedHeading(tool="strmqbrk", broker="B", qmgr="QM1", fingerprint="f", made=NOW)

    def work(self, root: Path, after: After) -> None:
        for number in (1, 2):
            with closing(Journal.open(root / JOURNAL, self.heading, "here")) as journal:
                for statement in range(3):
                    journal.note(Entry(checkpoint=f"c{number}", did="made", statement=statement, sent="x" * 400))
                    after("done")
                journal.sync()
                after("acked")
        with closing(Journal.open(root / JOURNAL, self.heading, "here")) as journal:
            journal.set_aside()
        after("acked")

    def look(self, root: Path) -> object:
        path = root / JOURNAL
        if not path.exists():
            return len([*root.glob(f"{JOURNAL}.undone*")]), 0
        return 0, len(entries_in(path) or ())

    def go_on(self, root: Path) -> None:
        before = self.look(root)
        with closing(Journal.open(root / JOURNAL, self.heading, "here")) as journal:
            journal.note(Entry(checkpoint="c", did="done"))
            journal.sync()
        assert self.look(root) == (0, before[1] + 1)  # type: ignore[index]


class Estate(Room):
    """Of an estate: records and plans, and a queue manager that is made for it."""

    name = "estate"
    plan: ClassVar = {"report.json": b"{}" * 900, "scripts/1.mqsc": b"DEFINE", "scripts/2.mqsc": b"ALTER" * 300}

    def work(self, root: Path, after: After) -> None:
        files = BrokerFiles(root, "QM1")
        for number in (1, 2):
            files.write_record(Record(qmgr="QM1", state=BrokerState.PLANNED, at="now", plan=number, decided="x" * 900))
            after("acked")
            files.write_plan(number, self.plan)
            after("acked")
        files.write_extracted("a.jsonl", b"x" * 2_000)
        after("acked")

    def look(self, root: Path) -> object:
        files = BrokerFiles(root, "QM1")
        record, extracted = files.record(), files.extracted("a.jsonl")
        for number in files.plans():
            assert all((files.plan(number) / name).read_bytes() == content for name, content in self.plan.items())
        return record and record.plan, files.plans(), extracted.exists() and len(extracted.read_bytes())


class Reports(Room):
    """What ``run`` writes for people, which is not synced: whatever is left of it, the next start writes on."""

    name = "reports"

    def work(self, root: Path, after: After) -> None:
        put = Put(seq=1, n=0, kind=PutKind.PUBLICATION, qmgr=None, queue="S", md_hex="", body_hex="ab" * 300)
        with closing(Recorder(root / "record")) as record, closing(LogFile(root / "log", LogFormat.JSON, str)) as log:
            for number in range(4):
                record.write(put)
                # As the program does: a report that fails does not stop what it reports.
                with suppress(OSError), closing(FixedFile(root / "run.status", 2_048)) as status:
                    status.write({"number": number, "text": "x" * 1_000})
                with suppress(OSError):
                    log.write({"number": number, "text": "x" * 600})
                after("done")

    def look(self, root: Path) -> object:
        return None

    def check(self, root: Path, done: Sequence[str], looks: Sequence[object]) -> None:
        """Raises AssertionError."""
        assert read_fixed(root / "run.status", 2_048).get("number", 0) in range(4)
        self.work(root, lambda _: None)
        assert read_fixed(root / "run.status", 2_048)["number"] == 3
        for name in ("record", "log"):
            last = (root / name).read_bytes().splitlines()[-4 + (name == "log") :]
            assert all(json.loads(line) for line in last)


ROOMS: dict[str, Room] = {
    room.name: room
    for room in (
        *(Store(), Lasting(), Group(), Copy(), Capture(), CaptureColumns(), Get()),
        *(Files(), Migration(), ApplyJournal(), Estate(), Reports()),
    )
}
