"""The publish exit (guide 4.6.2) of a queue manager that gets publications from its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.broker.exit_values import ExitAnswer, ExitResponse
from rfh2.constants import MQRC_PUBLISH_EXIT_ERROR
from rfh2.dlh import Dlh
from rfh2.message import decode
from tests.commands.broker.test_publish_exit import Exit
from tests.commands.network.live_world import LiveWorld
from tests.commands.network.test_live_network import LINE, message
from tests.commands.network.test_live_restored import bodies, retain

FAILED = ExitAnswer(exit_response=ExitResponse.FAILED)


@pytest.mark.rule("APP-5j")
def test_4_6_2_1_a_publication_of_a_neighbour_for_which_it_fails_is_a_dead_letter(tmp_path: Path) -> None:
    """Nothing of it is done there: it is not retained, and does not go on. Where it came from, nothing changes."""
    exit_ = Exit(FAILED)
    with LiveWorld(tmp_path, *LINE, exits={"QM2": exit_}) as world:
        for qmgr in ("QM1", "QM2", "QM3"):
            world.put(message("RegSub", qmgr, "a", "BOARD"))
        world.settle()
        world.put(retain("QM1", "a", b"first", 1))
        world.settle()
        assert {qmgr: bodies(world, qmgr) for qmgr in ("QM1", "QM2", "QM3")} == {
            "QM1": [b"first"],
            "QM2": [],
            "QM3": [],
        }
        assert {qmgr: "a" in world.retained(qmgr) for qmgr in ("QM1", "QM2", "QM3")} == {
            "QM1": True,
            "QM2": False,
            "QM3": False,
        }
        (letter,) = world.on("QM2", "SYSTEM.DEAD.LETTER.QUEUE")
        dead = decode(letter.body, letter.md).headers[0]
        assert isinstance(dead, Dlh)
        assert (dead.reason, dead.dest_q_name) == (MQRC_PUBLISH_EXIT_ERROR, "SYSTEM.INTER.QMGR.PUBS")
        exit_.answers = [ExitAnswer()]
        world.put(retain("QM1", "a", b"second", 2))
        world.settle()
        assert bodies(world, "QM2") == bodies(world, "QM3") == [b"second"]
        assert "a" in world.retained("QM3")


@pytest.mark.rule("APP-5j")
def test_4_6_2_what_is_retained_elsewhere_passes_it_on_its_way_to_a_subscription_of_define_sub(tmp_path: Path) -> None:
    """What is retained here already does not: administration puts it (APP-5h)."""
    exit_ = Exit(ExitAnswer())
    with LiveWorld(tmp_path, *LINE, exits={"QM2": exit_}) as world:
        world.settle()
        world.put(retain("QM1", "a", b"there", 1))
        world.settle()
        world.mqsc("QM2", "DEFINE QLOCAL(BOARD)\nDEFINE SUB(S) TOPICSTR('a') DEST(BOARD)")
        world.settle()
        assert bodies(world, "QM2") == [b"there"]
        assert [(call[1].pub_topic_string, call[2].sub_name) for call in exit_.calls] == [("a", "S")]
        world.mqsc("QM2", "DEFINE QLOCAL(OTHER)\nDEFINE SUB(T) TOPICSTR('a') DEST(OTHER)")
        world.settle()
        assert bodies(world, "QM2", "OTHER") == [b"there"]
        assert len(exit_.calls) == 1
