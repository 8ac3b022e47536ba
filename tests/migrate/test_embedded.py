"""Carrying a plan out on the embedded queue manager: all or nothing, a backup, and back again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from commands.broker.objects import LocalQueue, QueueManager
from commands.mqsc.script import parse
from commands.qmgr.store import QueueManagerInUseError, QueueManagerStore
from migrate import embedded, strmqbrk
from migrate.contents import StagedFiles
from migrate.embedded import applied
from migrate.legacy_state import LegacyRetained, LegacyState, LegacySubscription, Source, Stream
from migrate.live.opening import EmbeddedAdministrator
from migrate.plan import MigrationPlan, PlanOptions, Tool
from migrate.report.facts import facts
from migrate.target import Target
from rfh2 import Folder, Mqmd, Rfh2
from rfh2.errors import MigrationError
from streams.operations import RetainedStored
from tests.migrate.cases import Case, output_files, report_files, told
from tests.migrate.legacy_messages import NOW
from tests.postgresql import needs_postgresql, postgresql_server


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QueueManagerStore]:
    with QueueManagerStore.create(tmp_path, QueueManager("QM1", psmode="COMPAT")) as opened:
        yield opened


def mqsc(store: QueueManagerStore, script: str) -> None:
    """What another administrator does."""
    for statement in parse(script):
        outcome = EmbeddedAdministrator(store).run(statement)
        assert outcome.ok, outcome.text


def planned(store: QueueManagerStore, case: str = "streams") -> tuple[MigrationPlan, Target]:
    target = embedded.load(store)
    return strmqbrk.plan(Case.of(case).state(), target, PlanOptions(accept_unread=True), NOW), target


@pytest.mark.rule("MIG-1")
def test_the_store_gets_what_memory_gets(store: QueueManagerStore) -> None:
    plan, target = planned(store)
    embedded.apply(store, plan)
    assert told(embedded.load(store)) == told(applied(plan, target))
    assert strmqbrk.is_migrated(embedded.load(store))


def test_progress_is_told(store: QueueManagerStore) -> None:
    plan, _ = planned(store)
    told_of: list[int] = []
    embedded.apply(store, plan, told_of.append)
    assert sum(told_of) == len(plan.steps)


def test_undo_gives_back_everything(store: QueueManagerStore) -> None:
    before = told(embedded.load(store))
    plan, _ = planned(store)
    embedded.apply(store, plan)
    undone = embedded.undo(store, Tool.STRMQBRK)
    assert (undone.left, undone.others) == ((), ())
    assert told(embedded.load(store)) == before
    assert not strmqbrk.is_migrated(embedded.load(store))
    with pytest.raises(MigrationError, match="nothing to undo"):
        embedded.undo(store, Tool.STRMQBRK)


@needs_postgresql
def test_undo_gives_back_everything_in_postgresql(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with (
        postgresql_server() as server,
        QueueManagerStore.create(server.home(), QueueManager("QM1", psmode="COMPAT")) as store,
    ):
        test_undo_gives_back_everything(store)


def test_undo_keeps_messages_that_have_come_since(store: QueueManagerStore) -> None:
    plan, _ = planned(store)
    embedded.apply(store, plan)
    with store.unit_of_work() as unit:
        unit.put("RESULTS.Q", None, b"a publication")
        unit.put("OTHER.Q", None, b"not of the migration")
    undone = embedded.undo(store, Tool.STRMQBRK)
    assert [left.split(":")[0] for left in undone.left] == ["qlocal RESULTS.Q"]
    assert [message.body for message in store.browse("RESULTS.Q")] == [b"a publication"]
    assert [message.body for message in store.browse("OTHER.Q")] == [b"not of the migration"]


def test_undo_names_the_transmission_queue_that_its_parent_needed(store: QueueManagerStore) -> None:
    embedded.apply(store, planned(store)[0])
    mqsc(store, "DEFINE QLOCAL(HQ)")
    (line,) = (line for line in embedded.undo(store, Tool.STRMQBRK).left if "HQ" in line)
    assert line.startswith("qlocal HQ: it was made after the migration, and holds 0 messages for a parent")


def test_undo_names_what_others_have_changed_since(store: QueueManagerStore) -> None:
    """And keeps it: the rehearsal says so, and so does the undo."""
    mqsc(store, "DEFINE QLOCAL(DLQ)\nALTER QMGR DEADQ(DLQ)\n")
    plan, _ = planned(store)
    embedded.apply(store, plan)
    born = "SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM"
    mqsc(
        store,
        f"""
        ALTER QMGR DESCR('his') PSRTYCNT(20)
        ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES({born}, 'Business', 'Sport', HIS)
        ALTER TOPIC('Sport') PUB(DISABLED)
        ALTER SUB('news') USERDATA('his')
        DELETE TOPIC('Business')
        """,
    )
    kept = embedded.load(store).retained["Sport/Soccer/Results"]
    newer = replace(kept, publication=replace(kept.publication, published_at=NOW))
    with store.unit_of_work() as unit:
        unit.save_effects([RetainedStored(newer)])
    rehearsed = embedded.undo(store, Tool.STRMQBRK, rehearse=True).others
    undone = embedded.undo(store, Tool.STRMQBRK).others
    assert undone == rehearsed
    assert undone == (
        "subscription news to News/* for NEWS.Q: it was altered",
        "retained publication on Sport/Soccer/Results: it is a newer one",
        "qlocal NEWS.Q: subscription news to News/* for NEWS.Q uses it",
        "topic Sport: pub is (False), the migration left ()",
        "qmgr QM1: psrtycnt is (20), the migration left (7)",
    )
    after = embedded.load(store)
    qmgr, streams = after.objects.qmgr, after.objects.namelists["SYSTEM.QPUBSUB.QUEUE.NAMELIST"].names
    assert (qmgr.description, qmgr.psrtycnt, streams[2:]) == ("his", 20, ("HIS",))


def test_a_journal_of_an_earlier_release_says_that_it_does_not_know(store: QueueManagerStore) -> None:
    plan, _ = planned(store)
    journal = embedded.apply(store, plan) / "journal.json"
    found = json.loads(journal.read_text())
    del found["afterwards"]
    journal.write_text(json.dumps(found))
    with pytest.raises(MigrationError, match="what others have changed since is not known"):
        embedded.undo(store, Tool.STRMQBRK)
    assert embedded.undo(store, Tool.STRMQBRK, force=True).others == ()
    assert not strmqbrk.is_migrated(embedded.load(store))


def test_undo_leaves_what_others_have_defined_since(store: QueueManagerStore) -> None:
    plan, _ = planned(store)
    embedded.apply(store, plan)
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("LATER.Q"))
    embedded.undo(store, Tool.STRMQBRK)
    assert "LATER.Q" in embedded.load(store).objects.queues


def test_undo_gives_back_what_was_replaced(store: QueueManagerStore) -> None:
    first, _ = planned(store, "metatopics")
    embedded.apply(store, first)
    with store.unit_of_work() as unit:
        unit.delete_definition("namelist", "QPUBSUB.MIGRATION.STRMQBRK")
    before = told(embedded.load(store))
    target = embedded.load(store)
    state = Case.of("metatopics").state()
    again = strmqbrk.plan(state, target, PlanOptions(overwrite=True, accept_unread=True), NOW)
    assert any(step.replaces is not None for step in again.subscriptions)
    embedded.apply(store, again)
    embedded.undo(store, Tool.STRMQBRK)
    assert told(embedded.load(store)) == before


def legacy_retained(data: bytes, topics: str) -> list[LegacyRetained]:
    """What one message published on several topics left."""
    body = Rfh2((Folder.of("<psc><Command>Publish</Command><Topic>t</Topic></psc>"),)).encode() + data
    md = Mqmd(format="MQHRF2", persistence=1).encode()
    source = Source(file="broker")
    return [LegacyRetained(source=source, topic=topic, md_hex=md.hex(), body_hex=body.hex()) for topic in topics]


def kept(store: QueueManagerStore) -> tuple[bytes, int]:
    """The last bytes of what is retained, in order of topic, and how many publications that is."""
    retained = store.load_state()[2]
    data = b"".join(each.publication.message.body[-1:] for each in retained)
    return data, len({id(each.publication) for each in retained})


def test_what_was_published_on_several_topics_is_stored_once_and_given_back_so(store: QueueManagerStore) -> None:
    for (one, other), found in (((b"1", b"2"), (b"12121", 2)), ((b"3", b"4"), (b"34343", 2))):
        one_by_one = sorted(legacy_retained(one, "ace") + legacy_retained(other, "bd"), key=lambda item: item.topic)
        state = LegacyState(qmgr="QM1", retained=tuple(one_by_one))
        embedded.apply(store, strmqbrk.plan(state, embedded.load(store), PlanOptions(overwrite=True), NOW))
        assert kept(store) == found
    embedded.undo(store, Tool.STRMQBRK)
    assert kept(store) == (b"12121", 2)


def test_a_backup_is_a_whole_queue_manager(store: QueueManagerStore) -> None:
    with store.unit_of_work() as unit:
        unit.put("SOME.Q", None, b"before")
    before = told(embedded.load(store))
    plan, _ = planned(store)
    directory = embedded.apply(store, plan)
    with QueueManagerStore.open(directory, "QM1") as backup:
        assert told(Target.loaded(backup.load_state(), 0)) == before
        assert [message.body for message in backup.browse("SOME.Q")] == [b"before"]


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_backup_journal_and_outputs_are_their_owners(store: QueueManagerStore, tmp_path: Path, mask: int) -> None:
    plan, target = planned(store)
    before = os.umask(mask)
    try:
        directory = embedded.apply(store, plan)
        files = report_files(facts(plan, target)) | output_files(plan, target)
        StagedFiles(tmp_path / "out", files).publish()
    finally:
        os.umask(before)
    made = [directory.parent, *directory.parent.rglob("*"), tmp_path / "out", *(tmp_path / "out").iterdir()]
    assert {path.stat().st_mode & 0o7777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o7777 for path in made if path.is_file()} == {0o600}


def test_a_change_since_the_plan_is_noticed(store: QueueManagerStore) -> None:
    plan, _ = planned(store)
    with store.unit_of_work() as unit:
        unit.save_definition(LocalQueue("MEANWHILE.Q"))
    before = told(embedded.load(store))
    with pytest.raises(MigrationError, match="has changed since"):
        embedded.apply(store, plan)
    assert told(embedded.load(store)) == before
    assert not list((store.directory / embedded.DIRECTORY).iterdir())


@pytest.mark.parametrize("after", [0, 1])
def test_an_interruption_leaves_nothing_behind(store: QueueManagerStore, after: int) -> None:
    """Ctrl-C between two parts; then the same again, which does everything."""
    plan, target = planned(store)
    many = replace(plan, steps=plan.steps * 40)
    before = told(target)

    def interrupt(more: int, seen: list[int] = []) -> None:  # noqa: B006 - remembers between calls
        seen.append(more)
        if len(seen) > after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embedded.apply(store, many, interrupt)
    assert told(embedded.load(store)) == before
    embedded.apply(store, plan)
    assert told(embedded.load(store)) == told(applied(plan, target))


def test_a_running_processor_is_not_disturbed(store: QueueManagerStore, tmp_path: Path) -> None:
    plan, _ = planned(store)
    other = QueueManagerStore.open(tmp_path, "QM1")
    with other, other.processor_lock(), pytest.raises(QueueManagerInUseError):
        embedded.apply(store, plan)


def test_replacing_a_topic_string_works(store: QueueManagerStore) -> None:
    """-f on a topic object of another string: deleted and defined anew (guide 2.5.4, note to figure 7)."""
    from streams.topic_objects import TopicObject

    with store.unit_of_work() as unit:
        unit.save_definition(TopicObject("Sport", "xyz"))
    state = LegacyState(qmgr="QM1", streams=(Stream(source=Source(file="made"), name="Sport"),))
    plan = strmqbrk.plan(state, embedded.load(store), PlanOptions(overwrite=True, accept_unread=True), NOW)
    embedded.apply(store, plan)
    made = embedded.load(store).objects.topics.require("Sport")
    assert (made.topic_string, made.wildcard) == ("Sport", "BLOCK")
    embedded.undo(store, Tool.STRMQBRK)
    assert embedded.load(store).objects.topics.require("Sport") == TopicObject("Sport", "xyz")


KILLED = """
import os, signal, sys
from pathlib import Path
from commands.qmgr.store import QueueManagerStore
from migrate import strmqbrk
from migrate.plan import PlanOptions
from migrate import embedded
from tests.migrate.test_embedded import many_subscriptions
from tests.migrate.legacy_messages import NOW
from tests.postgresql import needs_postgresql, postgresql_server

with QueueManagerStore.open(Path(sys.argv[1]), "QM1") as store:
    plan = strmqbrk.plan(many_subscriptions(1200), embedded.load(store), PlanOptions(), NOW)
    seen = 0
    def stop(more):
        global seen
        seen += more
        if seen >= int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
    embedded.apply(store, plan, stop)
"""


def many_subscriptions(count: int) -> LegacyState:
    """A broker with so many subscriptions on two streams."""
    source = Source(file="made")
    subscriptions = tuple(
        LegacySubscription(
            source=source,
            topic=f"Prices/{number % 97}/{number}",
            queue=f"DESK{number % 2_000}.Q",
            qmgr="QM1",
            stream="Business" if number % 2 else "Sport",
            user=f"user{number % 20}",
            name=f"name{number}" if number % 5 == 0 else None,
            created=NOW,
        )
        for number in range(count)
    )
    streams = tuple(Stream(source=source, name=name) for name in ("Sport", "Business"))
    return LegacyState(qmgr="QM1", streams=streams, subscriptions=subscriptions)


@pytest.mark.parametrize("at", [1000])
def test_kill_9_leaves_all_or_nothing(store: QueueManagerStore, tmp_path: Path, at: int) -> None:
    """A process that dies in the middle; the next run finds the queue manager as it was, and does it all."""
    before = told(embedded.load(store))
    store.close()
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(at)]
    ended = subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    with QueueManagerStore.open(tmp_path, "QM1") as again:
        assert told(embedded.load(again)) == before
        target = embedded.load(again)
        plan = strmqbrk.plan(many_subscriptions(1200), target, PlanOptions(), NOW)
        embedded.apply(again, plan)
        assert len(embedded.load(again).subscriptions) == 1200
