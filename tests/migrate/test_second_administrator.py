"""A second administrator changes objects between plan, apply and undo: nothing of that is lost, all else is as before.

Each history is drawn from a table by its number. Undone with --force, what was migrated goes although he altered it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from commands.broker.objects import QueueManager
from commands.mqsc.script import parse
from commands.qmgr.processor import Processor
from commands.qmgr.store import QueueManagerStore
from migrate import embedded, strmqbrk
from migrate.contents import StagedFiles
from migrate.legacy_state import LegacyAuthority, LegacyRetained, LegacyState, LegacySubscription, Source, Stream
from migrate.live.applying import Applier, StoppedError
from migrate.live.journal import Action, Journal
from migrate.live.opening import EmbeddedAdministrator, LiveQueueManager
from migrate.live.snapshot import LiveState, names, read_live, text
from migrate.live.undoing import Undoing
from migrate.plan import MigrationPlan, PlanOptions, Tool
from migrate.planned_state import read_planned
from rfh2 import Folder, Mqmd, Rfh2
from streams.operations import Publication, RetainedStored
from tests.migrate.cases import output_files

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LIST = "SYSTEM.QPUBSUB.QUEUE.NAMELIST"
SETUP = """
DEFINE QLOCAL(OLDDLQ)
ALTER QMGR DEADQ(OLDDLQ)
DEFINE QLOCAL(FX)
DEFINE QLOCAL(HIS.Q)
DEFINE TOPIC(OLD) TOPICSTR(old)
DEFINE NAMELIST(LISTED) NAMES(A, B)
SET AUTHREC PROFILE(FX) OBJTYPE(QUEUE) GROUP('desk') AUTHADD(BROWSE)
SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHADD(PUB, SUB)
SET AUTHREC PROFILE('**') OBJTYPE(QUEUE) PRINCIPAL('anne') AUTHADD(PUT)
"""


def _legacy() -> LegacyState:
    source = Source(file="made")
    made = {"source": source, "qmgr": "QM1", "user": "anne", "created": NOW}
    body = Rfh2((Folder.of("<psc><Command>Publish</Command><Topic>EUR</Topic></psc>"),)).encode() + b"1.1"
    message = Mqmd(format="MQHRF2", persistence=1, user_identifier="anne").encode().hex()
    return LegacyState(
        qmgr="QM1",
        streams=(Stream(source=source, name="FX"), Stream(source=source, name="EQ")),
        subscriptions=(
            LegacySubscription(topic="EUR/*", queue="DESK1.Q", stream="FX", name="desk", **made),  # type: ignore[arg-type]
            LegacySubscription(topic="NEWS", queue="NEWS.Q", name="news", **made),  # type: ignore[arg-type]
        ),
        retained=(
            LegacyRetained(source=source, topic="EUR", stream="FX", md_hex=message, body_hex=body.hex()),
            LegacyRetained(source=source, topic="USD", stream="FX", md_hex=message, body_hex=body.hex()),
        ),
        authorities=(
            LegacyAuthority(source, "QUEUE", "FX", "GROUP", "desk", ("BROWSE", "PUT")),
            LegacyAuthority(source, "QUEUE", "EQ", "PRINCIPAL", "feed", ("PUT",)),
        ),
    )


def _grants(kind: str, profile: str, group: str, word: str) -> tuple[str, str, str, str, str]:
    command = f"SET AUTHREC PROFILE({profile}) OBJTYPE({kind}) GROUP('{group}') AUTHADD({word})"
    return command, "AUTHREC", f"{kind} {profile} GROUP {group}", "AUTHLIST", word


# What he does: MQSC with {n}, and what it is about: kind and name, with the attribute and its value, or "" for the
# whole object. A command that is refused, because an earlier one took the object away, is no deed.
DEEDS = [
    ("ALTER QMGR DESCR('his {n}')", "QMGR", "", "DESCR", "his {n}"),
    ("ALTER QMGR DEADQ(HIS.DLQ.{n})", "QMGR", "", "DEADQ", "HIS.DLQ.{n}"),
    ("ALTER QMGR PSRTYCNT({n})", "QMGR", "", "PSRTYCNT", "{n}"),
    ("ALTER QMGR PSMODE(DISABLED)", "QMGR", "", "PSMODE", "DISABLED"),
    ("ALTER TOPIC(FX) PUB(DISABLED)", "TOPIC", "FX", "PUB", "DISABLED"),
    ("ALTER TOPIC(EQ) DESCR('his {n}')", "TOPIC", "EQ", "DESCR", "his {n}"),
    ("ALTER TOPIC(OLD) DESCR('his {n}')", "TOPIC", "OLD", "DESCR", "his {n}"),
    ("ALTER SUB('news') DEST(HIS.Q)", "SUB", "news", "DEST", "HIS.Q"),
    ("ALTER SUB('desk:FX') USERDATA('{n}')", "SUB", "desk:FX", "USERDATA", "{n}"),
    ("DEFINE TOPIC(HIS.{n}) TOPICSTR('his/{n}')", "TOPIC", "HIS.{n}", "TOPICSTR", "his/{n}"),
    ("DEFINE QLOCAL(HIS.{n})", "QUEUE", "HIS.{n}", "", ""),
    ("DEFINE QALIAS(ALIAS.{n}) TARGET(DESK1.Q)", "QUEUE", "DESK1.Q", "", ""),
    ("DEFINE SUB('his{n}') TOPICSTR('NEWS') DEST(NEWS.Q)", "QUEUE", "NEWS.Q", "", ""),
    ("DEFINE SUB('hers{n}') TOPICSTR('NEWS') DEST(HIS.Q)", "SUB", "hers{n}", "DEST", "HIS.Q"),
    ("ALTER QLOCAL(DESK1.Q) MAXDEPTH({n}00)", "QUEUE", "DESK1.Q", "MAXDEPTH", "{n}00"),
    ("ALTER QLOCAL(OLDDLQ) MAXDEPTH({n}00)", "QUEUE", "OLDDLQ", "MAXDEPTH", "{n}00"),
    ("ALTER NAMELIST(LISTED) NAMES(HIS.{n})", "NAMELIST", "LISTED", "NAMES", "HIS.{n}"),
    (f"ALTER NAMELIST({LIST}) NAMES({{more}})", "NAMELIST", LIST, "NAMES", "HIS.{n}"),
    _grants("TOPIC", "FX", "desk", "RESUME"),
    _grants("QUEUE", "FX", "desk", "GET"),
    _grants("TOPIC", "EQ", "his", "SUB"),
    ("DELETE TOPIC(EQ)", "TOPIC", "EQ", "", "gone"),
    ("DELETE TOPIC(OLD)", "TOPIC", "OLD", "", "gone"),
    ("DELETE SUB('news')", "SUB", "news", "", "gone"),
    ("CLEAR TOPICSTR('FX/USD') CLRTYPE(RETAINED)", "RETAINED", "FX/USD", "", "gone"),
    ("PUBLISH", "RETAINED", "FX/EUR", "", ""),
]  # fmt: skip


@dataclass
class Second:
    """The second administrator. told: what he did last, by kind, name and attribute."""

    store: QueueManagerStore
    random: Random
    told: dict[tuple[str, str, str], str] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    number: int = 0

    def acts(self, times: int) -> None:
        for _ in range(times):
            self.number += 1
            command, kind, name, attribute, value = (
                word.replace("{n}", str(self.number)) for word in self.random.choice(DEEDS)
            )
            if self._does(command, value):
                if value == "gone":
                    self.told = {key: said for key, said in self.told.items() if key[:2] != (kind, name)}
                    self._forget(kind, name)
                elif (kind, name, "") in self.told and self.told[kind, name, ""] == "gone":
                    del self.told[kind, name, ""]
                if attribute != "NAMES" or name == "LISTED":
                    self.told[kind, name, attribute] = value

    def _forget(self, kind: str, name: str) -> None:
        """Records of an object go with it."""
        for key in [key for key in self.told if key[0] == "AUTHREC" and key[1].startswith(f"{kind} {name} ")]:
            self.told[key[0], key[1], ""] = "gone"
            del self.told[key]

    def _does(self, command: str, value: str) -> bool:
        administrator = EmbeddedAdministrator(self.store)
        if command == "PUBLISH":
            kept = {each.topic_string: each for each in self.store.load_state()[2]}.get("FX/EUR")
            if kept is not None:
                newer = Publication(replace(kept.publication.message, body=b"%d" % self.number), NOW)
                with self.store.unit_of_work() as unit:
                    unit.save_effects([RetainedStored(replace(kept, publication=newer))])
            return kept is not None
        if "{more}" in command:
            (row,) = administrator.display("NAMELIST", LIST)
            command = command.replace("{more}", ", ".join(f"'{each}'" for each in (*names(row, "NAMES"), value)))
            self.listed.add(value)
        (statement,) = parse(command)
        return administrator.run(statement).ok


def _rows(live: LiveState) -> dict[tuple[str, str], dict[str, object]]:
    """All objects, without what changes by itself."""
    found: dict[tuple[str, str], dict[str, object]] = {("QMGR", ""): dict(live.qmgr)}
    found |= {("QUEUE", name): dict(row) for name, row in live.queues.items()}
    found |= {("TOPIC", name): dict(row) for name, row in live.topics.items()}
    found |= {("NAMELIST", name): {"NAMES": names(row, "NAMES")} for name, row in live.namelists.items()}
    found |= {("AUTHREC", name): {"AUTHLIST": granted} for name, granted in live.records.items()}
    found |= {("SUB", text(row, "SUB") or text(row, "SUBID")): dict(row) for row in live.subscriptions}
    found |= {("RETAINED", topic): {} for topic in live.retained}
    return {
        key: {word: value for word, value in row.items() if word[:3] not in ("ALT", "CUR")}
        for key, row in found.items()
    }


def check(before: LiveState, after: LiveState, second: Second) -> None:
    were, are = _rows(before), _rows(after)
    his = {key[:2] for key in second.told}
    for (kind, name, attribute), value in second.told.items():
        row = are.get((kind, name))
        if value == "gone":
            assert row is None, f"{kind} {name} is there again"
            continue
        assert row is not None, f"{kind} {name} is lost"
        if attribute:
            there = row[attribute]
            listed = there if isinstance(there, frozenset | tuple) else (str(there),)
            assert value in listed, f"{kind} {name}: {attribute} is {there}, he left {value}"
    assert second.listed <= set(are["NAMELIST", LIST]["NAMES"])  # type: ignore[call-overload]
    for key, row in were.items():
        mine = {word for (*about, word) in second.told if tuple(about) == key}
        if key == ("NAMELIST", LIST):
            row["NAMES"] = tuple(dict.fromkeys((*row["NAMES"], *sorted(second.listed, key=lambda each: int(each[4:])))))  # type: ignore[misc]
        if key not in are:
            assert second.told.get((*key, "")) == "gone", f"{key} of before is lost"
        elif key[0] != "AUTHREC":
            left = {
                word: (row[word], are[key][word]) for word in row if word not in mine and row[word] != are[key][word]
            }
            assert not left, f"{key}: {left}"
    needed = {("QUEUE", text(row, word)) for row in are.values() for word in ("DEST", "TARGET")}  # type: ignore[arg-type]
    for key in are.keys() - were.keys() - his - needed:
        # What he made, and what that needs.
        assert "HIS" in key[1].upper() or "ALIAS" in key[1] or "hers" in key[1], f"{key} is left"


@contextmanager
def _histories(tmp_path: Path, seed: int) -> Iterator[tuple[QueueManagerStore, Second]]:
    with QueueManagerStore.create(tmp_path / "home", QueueManager("QM1", psmode="COMPAT")) as store:
        for statement in parse(SETUP):
            assert EmbeddedAdministrator(store).run(statement).ok, statement.text
        yield store, Second(store, Random(seed))


def _plan(store: QueueManagerStore, *, rehearse: bool = False) -> MigrationPlan:
    return strmqbrk.plan(_legacy(), embedded.load(store), PlanOptions(accept_unread=True), NOW, rehearse=rehearse)


SEEDS = [
    *range(8),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 24)),
    *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(24, 100)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_embedded_queue_manager(seed: int, tmp_path: Path) -> None:
    with _histories(tmp_path, seed) as (store, second):
        second.acts(second.random.randrange(3))
        second.told.clear()
        second.listed.clear()
        before = read_live(EmbeddedAdministrator(store))
        embedded.apply(store, _plan(store))
        second.acts(second.random.randrange(1, 9))
        rehearsed = embedded.undo(store, Tool.STRMQBRK, rehearse=True)
        assert embedded.undo(store, Tool.STRMQBRK) == rehearsed
        check(before, read_live(EmbeddedAdministrator(store)), second)


def _carried_out(live: LiveQueueManager, directory: Path, journal: Journal, second: Second | None = None) -> None:
    """All checkpoints, with the loads processed at once. second: acts between them."""
    heading, planned = read_planned(directory / "planned.jsonl")
    applier = Applier(live.administrator, live.messages, directory, heading, planned, 0, frozenset({"stopped"}))
    assert live.store is not None
    for checkpoint in applier.checkpoints:
        if checkpoint.action is Action.LOAD:
            # What the load finds empty has been processed.
            with suppress(StoppedError):
                applier.carry_out(checkpoint, journal)
            processor = Processor(live.store, lambda: NOW)
            with live.store.processor_lock():
                processor.start()
                processor.drain()
        applier.carry_out(checkpoint, journal)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_live_queue_manager(seed: int, tmp_path: Path) -> None:
    """By MQSC and loads; he acts between plan and apply too, which has to leave what he did to a list."""
    with _histories(tmp_path, seed) as (store, second):
        files = output_files(_plan(store, rehearse=True), embedded.load(store))
        StagedFiles(tmp_path / "plan", files).publish()
        second.number = 50
        second.acts(second.random.randrange(2))
        before = read_live(EmbeddedAdministrator(store))
        heading, planned = read_planned(tmp_path / "plan" / "planned.jsonl")
        live = LiveQueueManager(EmbeddedAdministrator(store), store, store)
        with closing(Journal.open(tmp_path / "journal", heading, "here")) as journal:
            try:
                _carried_out(live, tmp_path / "plan", journal)
            except StoppedError:
                # He has altered what the plan defines: it is taken back as far as it came.
                assert second.told
            second.acts(second.random.randrange(1, 9))
            Undoing(live.administrator, heading, planned, live.retained_data).carry_out(journal)
        check(before, read_live(EmbeddedAdministrator(store)), second)


FORCED = ["ALTER TOPIC(FX) PUB(DISABLED)", "ALTER QMGR PSRTYCNT(20)", "ALTER SUB('news') DEST(HIS.Q)", "PUBLISH"]


def test_forced_it_takes_back_what_he_altered(tmp_path: Path) -> None:
    """And the rehearsal names it; what he added to a list stays even then."""
    with _histories(tmp_path, 0) as (store, second):
        before = read_live(EmbeddedAdministrator(store))
        embedded.apply(store, _plan(store))
        for number, command in enumerate((*FORCED, f"ALTER NAMELIST({LIST}) NAMES({{more}})"), 1):
            second.number = number
            assert second._does(command, f"HIS.{number}")
        kept = embedded.undo(store, Tool.STRMQBRK, rehearse=True, force=True).others
        assert embedded.undo(store, Tool.STRMQBRK, force=True).others == kept
        assert [line.partition(":")[0] for line in kept] == [
            "subscription news to NEWS for HIS.Q",
            "retained publication on FX/EUR",
            "topic FX",
        ]
        second.told = {("QMGR", "", "PSRTYCNT"): "20"}
        check(before, read_live(EmbeddedAdministrator(store)), second)
