"""Replay: captured messages through the broker's core, without a queue manager."""

from commands.broker.reading import natural_queue
from commands.replay.arrivals import OutOfOrderError, RepeatedSeqError
from commands.replay.local import LocalReplay

__all__ = ["LocalReplay", "OutOfOrderError", "RepeatedSeqError", "natural_queue"]
