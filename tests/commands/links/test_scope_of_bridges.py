"""Scope between two bridges that share a real topic tree; ``engine/test_scope.py`` has all of it in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands.links.engine.test_scope import BY_OBJECTS, QMGRS, TABLE
from tests.commands.links.mosquitto import Native, mosquitto, needs_mosquitto
from tests.commands.links.nats_server import nats_server, needs_nats
from tests.commands.links.test_mqtt import Bridge
from tests.waiting import until

TREES = [
    pytest.param(mosquitto, id="mosquitto", marks=needs_mosquitto),
    pytest.param(nats_server, id="NATS", marks=needs_nats),
]


# docs/conformance.md: DIS-30
@pytest.mark.rule("DIS-30")
@pytest.mark.parametrize("tree", TREES)
def test_scope_between_bridges_that_share_a_tree(tmp_path: Path, tree: Any) -> None:
    home = tmp_path / "qmgrs"
    with (
        tree(tmp_path / "tree") as server,
        Bridge(home, server.url, "HERE", local="keep") as here,
        Bridge(home, server.url, "THERE", local="keep") as there,
    ):
        for bridge in (here, there):
            bridge.mqsc(BY_OBJECTS)
        here.register("#", "OTHER")
        for pub, sub in TABLE:
            here.register(f"{pub}/{sub}", f"{pub}.{sub}")
        for qmgr, bridge in zip(QMGRS, (here, there), strict=True):
            for pub, sub in TABLE:
                bridge.publish(f"{pub}/{sub}", qmgr.encode())
        there.publish("Fence", b"fence")
        until(lambda: b"fence" in here.data("OTHER"), "the last publication of the other bridge")
        until(lambda: here.depth("QMGR.QMGR") > 0, "the last publication of this bridge")
        got = {(pub, sub): set(here.data(f"{pub}.{sub}")) for pub, sub in TABLE}
        assert got == {row: {qmgr.encode() for qmgr in names & set(QMGRS)} for row, names in TABLE.items()}


@needs_mosquitto
def test_a_native_program_sees_what_is_of_scope_all_alone(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "tree") as server, Bridge(tmp_path / "qmgrs", server.url, local="keep") as bridge:
        bridge.mqsc(BY_OBJECTS)
        native = Native(server, "native", "#")
        for pub, sub in TABLE:
            bridge.publish(f"{pub}/{sub}", b"x")
        bridge.publish("Fence", b"x")
        until(lambda: any(each.topic == "Fence" for each in native.messages), "the last publication")
        native.close()
        assert [each.topic for each in native.messages] == ["ALL/ALL", "ALL/QMGR", "Fence"]
