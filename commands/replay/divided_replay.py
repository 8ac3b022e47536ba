"""A replay in several processes: what each of them does with its shares (``commands.replay.divided``)."""

from __future__ import annotations

from io import BytesIO
from typing import NamedTuple

from commands.replay.divided import Share
from commands.replay.local import LocalReplay, ReplayCounts
from commands.replay.put_lines import PutLines


class Undecodable(NamedTuple):
    """A message that could not be read, and why."""

    seq: int
    queue: str
    why: str


class SharedPuts(NamedTuple):
    """The results of one share. messages: how many were counted. lines: the puts as JSON Lines."""

    messages: int
    lines: bytes
    counts: ReplayCounts
    undecodable: list[Undecodable]


class SharedReplay:
    """Replays the shares of one process."""

    def __init__(self, setup: str, semantics: str) -> None:
        self._replay = LocalReplay(setup, semantics)
        self._file = BytesIO()
        self._lines = PutLines(self._file)

    def replayed(self, share: Share) -> SharedPuts:
        """The results of the next share. Raises QPubSubError where the setup fails."""
        replay, lines, undecodable = self._replay, self._lines, list[Undecodable]()
        replay.counts = ReplayCounts()
        for message in share.messages:
            made = replay.put_all_of(message.qmgr, message.arrival, counted=message.counted)
            if not message.counted:
                continue
            lines.add(message.seq, message.qmgr, made.puts)
            if made.undecodable:
                undecodable.append(Undecodable(message.seq, message.queue, made.why))
        written = self._file.getvalue()
        self._file.seek(0)
        self._file.truncate()
        return SharedPuts(share.counted, written, replay.counts, undecodable)
