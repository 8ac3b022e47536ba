"""Which messages of a capture a verb reads or shows: ``--where``, ``--since``, ``--until``, ``--seq``, ``--limit``."""

from commands.explain.selection.message_selection import EVERYTHING, Choosing, MessageSelection, SeqRanges
from commands.explain.selection.values import NAMES, MessageValues, moment
from commands.explain.selection.where import SelectionError, Where, compile_where

__all__ = [
    "EVERYTHING",
    "NAMES",
    "Choosing",
    "MessageSelection",
    "MessageValues",
    "SelectionError",
    "SeqRanges",
    "Where",
    "compile_where",
    "moment",
]
