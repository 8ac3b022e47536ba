"""A replay, step by step: the state before and after each message, what changed, forwards and backwards."""

from commands.replay.step.breakpoints import StepFacts, stops_at
from commands.replay.step.checkpoints import Block, BlockHead, BlockStore, blocks_of
from commands.replay.step.snapshot import SnapshotError
from commands.replay.step.state import Change, ItemKind, QueueTally, StepState
from commands.replay.step.stepper import Step, Stepper
from commands.replay.step.timeline import Timeline

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
