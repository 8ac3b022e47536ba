"""The worlds, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.simulation.bridge_world import BridgeWorld
from tests.simulation.kernel import Kernel
from tests.simulation.listener_world import ListenerWorld
from tests.simulation.network_world import NetworkWorld
from tests.simulation.takeover_world import TakeoverWorld
from tests.simulation.world import World

WORLDS: Final[Mapping[str, Callable[[Kernel, float], World]]] = {
    "bridge": BridgeWorld,
    "listener": ListenerWorld,
    "network": NetworkWorld,
    "takeover": TakeoverWorld,
}
