"""The probe of names (guide 7.6.1): what a queue manager puts between the name of a subscription and its stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from commands.mqsc.script import Statement
from commands.qmgr.store import QueueManagerStore
from migrate.live.differences import probe_names
from migrate.live.opening import EmbeddedAdministrator
from migrate.live.snapshot import Outcome, Row
from rfh2.errors import MigrationError
from tests.commands.cli_runs import run
from tests.migrate.live.rigs import create, processing, rig, write_legacy

STREAM = """
DEFINE QLOCAL('Sport')
DEFINE TOPIC('Sport') TOPICSTR('Sport') WILDCARD(BLOCK)
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM, 'Sport')
"""


class JoinedOtherwise(EmbeddedAdministrator):
    """A queue manager that shows what is registered on a stream under another name, and finds no planned name."""

    def __init__(self, store: QueueManagerStore, form: str) -> None:
        super().__init__(store)
        self.form = form

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        rows = super().display(target, name, **scope)
        if target != "SUB":
            return rows
        own = [{**row, "SUB": self.form.format(name=str(row["SUB"]).partition(":")[0], stream="Sport")} for row in rows]
        return [*own, *(row for row in rows if ":" in str(row["SUB"]))]


CASES: list[tuple[str, str | None, str, str]] = [
    ("{name}/{stream}", "/", "NAME/Sport", "--name-separator '/'"),
    ("{name}{stream}", "", "NAMESport", "--name-separator ''"),
    ("{name}", None, "NAME", "take their messages out of 6-registrations.qload"),
    ("{stream}.{name}", None, "Sport.NAME", "take their messages out of 6-registrations.qload"),
]


@contextmanager
def stream(directory: Path) -> Iterator[QueueManagerStore]:
    home = directory / "qmgrs"
    create(home, "ENABLED")
    assert run("mqsc", "-m", "QM1", "--home", str(home), stdin=STREAM).code == 0
    with processing(home), QueueManagerStore.open(home, "QM1") as store:
        yield store


def everything(store: QueueManagerStore) -> tuple[set[str], int]:
    objects, subscriptions, _ = store.load_state()
    return set(objects.queues), len(subscriptions)


@pytest.mark.rule("MIG-21")
def test_7_6_1_the_probe_finds_what_joins_names_and_streams(tmp_path: Path) -> None:
    """The bridge itself finds the migrated name by the old one; nothing of the probe is left."""
    with stream(tmp_path) as store:
        before = everything(store)
        probe = probe_names(EmbeddedAdministrator(store), store, None, ":", 10)
        assert (probe.stream, probe.is_found, probe.shown) == ("Sport", True, "NAME")
        assert "the plan is right" in probe.lines[0]
        assert everything(store) == before


def test_a_separator_that_the_bridge_does_not_know_has_the_program_refused(tmp_path: Path) -> None:
    with stream(tmp_path) as store:
        before = everything(store)
        probe = probe_names(EmbeddedAdministrator(store), store, "Sport", "+", 10)
        assert (probe.is_found, probe.shown, probe.reason) == (False, "NAME", 3152)
        assert "is refused with reason 3152" in probe.lines[0]
        assert everything(store) == before


@pytest.mark.parametrize(("form", "live", "shown", "todo"), CASES, ids=[case[0] for case in CASES])
def test_other_ways_to_join_them(form: str, live: str | None, shown: str, todo: str, tmp_path: Path) -> None:
    with stream(tmp_path) as store:
        probe = probe_names(JoinedOtherwise(store, form), store, None, ":", 10)
    assert (probe.is_found, probe.live, probe.shown) == (False, live, shown)
    assert "everything twice" in probe.lines[0]
    assert todo in probe.lines[1]


def test_without_a_stream_there_is_nothing_to_probe(tmp_path: Path) -> None:
    create(tmp_path, "ENABLED")
    with QueueManagerStore.open(tmp_path, "QM1") as store, pytest.raises(Exception, match="needs a stream"):
        probe_names(EmbeddedAdministrator(store), store, None, ":", 1)


class NoQueue(EmbeddedAdministrator):
    def run(self, statement: Statement) -> Outcome:
        return Outcome(False, "AMQ8135", "AMQ8135: Not authorized.")


def test_an_administrator_who_may_not(tmp_path: Path) -> None:
    with stream(tmp_path) as store, pytest.raises(Exception, match="Not authorized"):
        probe_names(NoQueue(store), store, None, ":", 1)


def test_a_user_without_authority_is_told_what_the_probe_needs(tmp_path: Path) -> None:
    with stream(tmp_path) as store:
        records = "SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('somebody') AUTHADD(SUB)"
        assert run("mqsc", "-m", "QM1", "--home", str(tmp_path / "qmgrs"), stdin=records).code == 0
        with pytest.raises(MigrationError, match="3081 MQRCCF_NOT_AUTHORIZED"):
            probe_names(EmbeddedAdministrator(store), store, None, ":", 10)


def test_the_verb_probes_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "files"
    run("strmqbrk", "-m", "QM1", "--target", "files", "--out", str(out), str(write_legacy(tmp_path)))
    with rig("embedded", tmp_path) as live:
        live("apply", str(out), "--through", "enabled", "--confirm", "stopped")
        ran = live("verify", str(out), "--probe-names", "--json")
        found: dict[str, Any] = json.loads(ran.out)
        assert ran.code == 1, "nothing was loaded yet"
        assert found["names"] == {
            "stream": "Sport",
            "planned_separator": ":",
            "live_separator": None,
            "found": True,
            "shown": "NAME",
            "reason": 0,
        }
        assert "names on streams" in live("verify", str(out), "--probe-names").out


def test_no_answer(tmp_path: Path) -> None:
    with stream(tmp_path) as store:
        pass
    with QueueManagerStore.open(tmp_path / "qmgrs", "QM1") as store, pytest.raises(Exception, match="no answer on"):
        probe_names(EmbeddedAdministrator(store), store, None, ":", 0.1)
