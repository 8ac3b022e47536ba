"""The rooms of the house, which folders and modules are in each, and which rooms it may import from.

It is a partial order: what stands in no row below a room, the room does not know. ``tests/test_house.py`` checks it,
``python -m tests.structure`` counts by it, docs/architecture.md draws it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Room(NamedTuple):
    """places: packages and modules, by their dotted names; the longest name that fits a module decides."""

    places: tuple[str, ...]
    knows: tuple[str, ...] = ()


_CORE: Final = ("wire", "captures", "streams", "base", "core")

ROOMS: Final[Mapping[str, Room]] = {
    # The library: from bytes to puts.
    "wire": Room(("rfh2",)),
    "captures": Room(("rfh2.captures",), ("wire",)),
    "annotation": Room(("rfh2.explain",), ("wire",)),
    "streams": Room(("streams",), ("wire",)),
    "base": Room(("commands.config", "commands.disk", "commands.pages", "commands.terminal"), ("wire",)),
    "client": Room(("commands.client",), ("wire", "base")),
    "core": Room(
        ("commands.model", "commands.headers", "commands.broker", "commands.network", "commands.templates"),
        ("wire", "streams"),
    ),
    "mqsc": Room(("commands.mqsc",), ("wire", "streams", "core")),
    # A queue manager at work.
    "qmgr": Room(("commands.qmgr",), ("wire", "streams", "base", "core", "mqsc")),
    "links": Room(("commands.links",), (*_CORE, "client", "qmgr")),
    "listener": Room(("commands.listener",), ("wire", "base", "core", "qmgr")),
    "running": Room(
        ("commands.running", "commands.monitoring"), (*_CORE, "mqsc", "qmgr", "links", "listener", "analysis")
    ),
    "console": Room(("commands.console",), (*_CORE, "annotation", "mqsc", "qmgr", "running", "analysis")),
    # Analysis, which needs no queue manager.
    "analysis": Room(("commands.explain", "commands.replay"), (*_CORE, "annotation", "mqsc")),
    "spark": Room(("commands.replay.spark",), (*_CORE, "mqsc", "analysis")),
    # Migration.
    "plan": Room(("migrate",), (*_CORE, "mqsc", "qmgr")),
    "live": Room(("migrate.live",), (*_CORE, "client", "mqsc", "qmgr", "links", "plan")),
    "estate": Room(("migrate.estate",), (*_CORE, "qmgr", "plan", "live")),
    # Over all.
    "cli": Room(
        ("commands.cli", "commands.options", "commands.testing", "migrate.cli"),
        (
            *_CORE,
            "annotation",
            "client",
            "mqsc",
            "qmgr",
            "links",
            "running",
            "console",
            "analysis",
            "spark",
            "plan",
            "live",
            "estate",
        ),
    ),
}


def room_of_module(name: str) -> str:
    """The room of a module; the tops of the packages, which re-export, are in the room that has the package."""
    fitting = [
        (len(place), room)
        for room, (places, _) in ROOMS.items()
        for place in places
        if name == place or name.startswith(place + ".")
    ]
    return max(fitting)[1] if fitting else name
