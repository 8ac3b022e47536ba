"""Replay: captured messages through the broker's core, without a queue manager."""

from commands.replay.arrivals import OutOfOrderError
from commands.replay.local import LocalReplay, natural_queue

__all__ = ["LocalReplay", "OutOfOrderError", "natural_queue"]
