"""Replay on Spark: captures of any size, with the same puts as the local replay."""

from commands.replay.arrivals import RepeatedSeqError
from commands.replay.spark.captured_values import captured_values, decoded, with_decoded
from commands.replay.spark.differing import Compared, differing
from commands.replay.spark.file_transfers import agents, transfer_items, transfers
from commands.replay.spark.schemas import CAPTURED, DECODED, DIFFERENCES, MESSAGE, PUTS, READ, TRANSLATED, SchemaError
from commands.replay.spark.session import LOCAL, packed, register, session, ship
from commands.replay.spark.twopass import replayed, translated

__all__ = [
    "CAPTURED",
    "DECODED",
    "DIFFERENCES",
    "LOCAL",
    "MESSAGE",
    "PUTS",
    "READ",
    "TRANSLATED",
    "Compared",
    "RepeatedSeqError",
    "SchemaError",
    "agents",
    "captured_values",
    "decoded",
    "differing",
    "packed",
    "register",
    "replayed",
    "session",
    "ship",
    "transfer_items",
    "transfers",
    "translated",
    "with_decoded",
]
