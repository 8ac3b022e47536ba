"""A capture in blocks. Each has a checkpoint, the state before its first message, so that stepping can begin there.

A block is as long as the state is large, and not shorter than ``SHORTEST``: thus all checkpoints together grow with the
capture, and not with the capture times the state.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from commands.replay.local import LocalReplay
from commands.replay.step.breakpoints import StepFacts
from commands.replay.step.snapshot import SnapshotError
from commands.replay.step.stepper import Stepper
from rfh2.captured import CapturedMessage

SHORTEST: Final = 1_000
_QUICKLY: Final = 1


@dataclass(frozen=True, slots=True)
class BlockHead:
    """Where a block is in the capture. first: position of its first message, from 0."""

    first: int
    count: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Block:
    """Some messages in order, with the snapshot before the first of them; messages and facts are packed."""

    head: BlockHead
    snapshot: bytes
    packed_messages: bytes
    packed_facts: bytes

    def messages(self) -> list[CapturedMessage]:
        """The messages. Raises SnapshotError."""
        try:
            lines = zlib.decompress(self.packed_messages).split(b"\n")
            return [CapturedMessage.model_validate_json(line) for line in lines]
        except (zlib.error, ValueError) as error:
            raise SnapshotError(f"the messages from number {self.head.first_seq} on are damaged: {error}") from error

    def facts(self) -> list[StepFacts]:
        """The facts of each message. Raises SnapshotError."""
        try:
            rows = json.loads(zlib.decompress(self.packed_facts))
            return [StepFacts._make((*row[:3], tuple(row[3]), tuple(row[4]), *row[5:])) for row in rows]
        except (zlib.error, ValueError, TypeError) as error:
            raise SnapshotError(f"the facts from number {self.head.first_seq} on are damaged: {error}") from error


class BlockStore(Protocol):
    """Where blocks are kept, in order."""

    def heads(self) -> list[BlockHead]:
        """Those of all blocks, in order."""

    def block(self, number: int) -> Block:
        """The block of that number, from 0. Raises SnapshotError where it cannot be read."""

    def facts(self, number: int) -> list[StepFacts]:
        """The facts of that block, without its other parts. Raises SnapshotError."""


def blocks_of(
    messages: Iterable[CapturedMessage], setup: str, semantics: str, *, shortest: int = SHORTEST
) -> Iterator[Block]:
    """Replay *messages*, which are in the order of seq, and give them in blocks.

    Raises OutOfOrderError where they are not in order; QPubSubError where the setup fails.
    """
    stepper = Stepper(LocalReplay(setup, semantics))
    first = 0
    held: list[CapturedMessage] = []
    facts: list[StepFacts] = []
    snapshot, length = stepper.snapshot(), shortest
    for message in messages:
        facts.append(stepper.step(message).facts)
        held.append(message)
        if len(held) >= length:
            yield _packed(first, snapshot, held, facts)
            first += len(held)
            held, facts = [], []
            snapshot, length = stepper.snapshot(), max(shortest, len(stepper.state))
    if held:
        yield _packed(first, snapshot, held, facts)


def _packed(first: int, snapshot: bytes, messages: list[CapturedMessage], facts: list[StepFacts]) -> Block:
    head = BlockHead(first, len(messages), messages[0].seq, messages[-1].seq)
    lines = b"\n".join(message.model_dump_json().encode() for message in messages)
    rows = json.dumps(facts, separators=(",", ":")).encode()
    return Block(head, snapshot, zlib.compress(lines, _QUICKLY), zlib.compress(rows, _QUICKLY))
