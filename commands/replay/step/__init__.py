"""A replay, step by step: the state before and after each message, what changed, forwards and backwards."""

from commands.replay.step.state import Change, ItemKind, QueueTally, SnapshotError, StepState
from commands.replay.step.stepper import Step, StepFacts, Stepper, stops_at
from commands.replay.step.timeline import Block, BlockHead, BlockStore, Timeline, blocks_of

__all__ = [
    "Block",
    "BlockHead",
    "BlockStore",
    "Change",
    "ItemKind",
    "QueueTally",
    "SnapshotError",
    "Step",
    "StepFacts",
    "StepState",
    "Stepper",
    "Timeline",
    "blocks_of",
    "stops_at",
]
