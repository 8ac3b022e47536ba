"""One run of ``apply``: which checkpoints it carries out, and where it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from migrate.live.applying import Applier, StoppedError
from migrate.live.checkpoints import Checkpoint
from migrate.live.journal import Journal
from rfh2.errors import MigrationError, StoreError

Shown = Callable[[Checkpoint], AbstractContextManager[Callable[[int], None]]]


@dataclass(slots=True)
class Advance:
    """What a run did. done: names of checkpoints. stopped: why it ended before the last wanted one. left: what remains.

    sent: how many statements and messages.
    """

    done: list[str] = field(default_factory=list)
    stopped: StoppedError | None = None
    left: list[Checkpoint] = field(default_factory=list)
    sent: int = 0

    @property
    def has_changed(self) -> bool:
        """Whether the queue manager or the journal has something that was not there before."""
        return bool(self.sent or self.done)


def wanted_checkpoints(remaining: Sequence[Checkpoint], *, every: bool, until: str | None) -> list[Checkpoint]:
    """The next one of *remaining*; all of them with *every*; those up to the one called *until*."""
    if until is not None:
        names = [each.name for each in remaining]
        return list(remaining[: names.index(until) + 1]) if until in names else []
    return list(remaining if every else remaining[:1])


def advance(applier: Applier, journal: Journal, wanted: Sequence[Checkpoint], shown: Shown | None = None) -> Advance:
    """Carry out *wanted*, one after the other. shown: gives the block in which one is carried out its progress."""
    found = Advance()
    for checkpoint in wanted:
        try:
            with nullcontext(_unseen) if shown is None else shown(checkpoint) as progress:
                applier.progress = progress
                applier.carry_out(checkpoint, journal)
        except StoppedError as error:
            found.stopped = error
            break
        except (MigrationError, StoreError) as error:
            # The connection broke, or the disk is full: what was confirmed is in the journal.
            why = f"{error}. Run the same command again: it goes on from here"
            found.stopped = StoppedError(checkpoint.name, why)
            break
        found.done.append(checkpoint.name)
    found.left, found.sent = applier.remaining(journal), applier.sent
    return found


def would_stop(applier: Applier, journal: Journal | None) -> Iterator[str]:
    """Each statement at which applying the rest would stop, with its checkpoint; nothing is changed.

    That a person has to confirm something, or to load a file by hand, is no such place.
    """
    for checkpoint in applier.remaining(journal):
        if checkpoint.is_script:
            for line, is_stop in applier.rehearsal(checkpoint, journal):
                if is_stop:
                    yield f"checkpoint {checkpoint.name}: {line}"


def _unseen(_more: int) -> None:
    return
