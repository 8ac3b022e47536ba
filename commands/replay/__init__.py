"""Replay: captured messages through the broker's core, without a queue manager."""

from commands.replay.local import LocalReplay, OutOfOrderError, natural_queue

__all__ = ["LocalReplay", "OutOfOrderError", "natural_queue"]
