"""Replay: captured messages through the broker's core, without a queue manager."""

from commands.broker.reading import natural_queue
from commands.replay.arrivals import OutOfOrderError
from commands.replay.local import LocalReplay

__all__ = ["LocalReplay", "OutOfOrderError", "natural_queue"]
