"""``extract --objects``: the script has the objects of the live queue manager, and ``--existing`` takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.live.snapshot import EVERYTHING, read_live, script_of
from migrate.target import Target, existing_target, same_definitions
from tests.commands.cli_runs import run
from tests.migrate.legacy_messages import NOW
from tests.migrate.live.memory import memory
from tests.migrate.live.rigs import WAYS, rig, write_legacy

SCRIPT = """
ALTER QMGR PSMODE(COMPAT) PSRTYCNT(7) DESCR('it''s mine') PARENT(HUB)
DEFINE QLOCAL('Sport') DEFPSIST(YES) MAXDEPTH(100) DESCR('a stream')
DEFINE QALIAS(ALIAS) TARGET('Sport') TARGTYPE(QUEUE)
DEFINE QMODEL(MODEL) DEFTYPE(PERMDYN)
DEFINE TOPIC('Sport') TOPICSTR('Sport') WILDCARD(BLOCK) DEFPRTY(3) PUB(DISABLED)
ALTER TOPIC(SYSTEM.BASE.TOPIC) DURSUB(NO)
ALTER TOPIC(SYSTEM.BASE.TOPIC) DURSUB(YES)
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, SYSTEM.BROKER.ADMIN.STREAM, 'Sport')
DEFINE NAMELIST(EMPTY)
DEFINE SUB('news') TOPICSTR('News/#') DEST('NewsQ') SUBUSER('anne') USERDATA('a b') SELECTOR('a = ''b''') REQONLY(YES)
SET AUTHREC PROFILE('Sport') OBJTYPE(TOPIC) PRINCIPAL('anne') AUTHADD(PUB, SUB)
SET AUTHREC OBJTYPE(QMGR) GROUP('staff') AUTHADD(CONNECT)
"""


def test_the_script_makes_the_same_objects() -> None:
    live = memory(SCRIPT)
    script = "".join(f"{line}\n" for line in script_of(read_live(live, EVERYTHING), "QM1"))
    target = existing_target("QM1", script, NOW)
    assert list(same_definitions(target.objects, live._administration.objects)) == []
    (news,) = target.subscriptions
    assert (news.name, news.topic_string, news.user, news.user_data) == ("news", "News/#", "anne", "a b")
    assert target.passed_over == ()


def test_remote_queues_are_names_that_are_taken() -> None:
    live = read_live(memory(""))
    live.queues["REMOTE"] = {"QUEUE": "REMOTE", "TYPE": "QREMOTE", "RNAME": "X"}
    live.queues["GONE"] = {"QUEUE": "GONE", "TYPE": "QLOCAL", "DEFTYPE": "TEMPDYN"}
    script = "".join(f"{line}\n" for line in script_of(live, "QM1"))
    assert existing_target("QM1", script, NOW).remote_queues == {"REMOTE"}
    assert "GONE" not in script


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_for_a_live_queue_manager(way: str, tmp_path: Path) -> None:
    """A stream that is there already is not defined again."""
    source, existing = write_legacy(tmp_path), tmp_path / "existing.mqsc"
    with rig(way, tmp_path) as live:
        live.mqsc("DEFINE QLOCAL('Sport')\nDEFINE TOPIC('Sport') TOPICSTR('Sport') WILDCARD(BLOCK)\n")
        ran = live("extract", "-o", str(tmp_path / "state.json"), "--objects", str(existing))
        assert ran.code in (0, 1), ran.talk
    out = tmp_path / "files"
    words = ("--target", "files", "--existing", str(existing), "--out", str(out), str(source))
    assert run("strmqbrk", "-m", "QM1", *words).code in (0, 1, 3)
    assert "DEFINE TOPIC('Sport')" not in (out / "2-objects.mqsc").read_text()
    assert "DEFINE QLOCAL('Sport')" not in (out / "1-queues.mqsc").read_text()
    assert "DEFINE QLOCAL('A.Q')" in (out / "1-queues.mqsc").read_text()
    assert Target.fresh("QM1").objects.topics.get("Sport") is None
