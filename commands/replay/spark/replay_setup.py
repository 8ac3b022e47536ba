"""The setup of a replay, in a form that can be sent to the workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Final

from commands.broker.context import Semantics, has_stream, semantics_of
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM, Objects
from commands.broker.outcome import Arrival
from commands.broker.times import EPOCH
from commands.mqsc.broker import Broker
from commands.replay.arrivals import DEFAULT_QMGR
from commands.replay.spark.pieces import files_of
from streams.topic_objects import QUEUE_NAMELIST

EXPIRY: Final = slice(16, 20)
"""Where Expiry is in an MQMD, in bytes."""
UNLIMITED: Final = b"\xff\xff\xff\xff"
"""MQEI_UNLIMITED, in either byte order."""


@dataclass(frozen=True)
class ReplaySetup:
    """setup: MQSC that every queue manager starts with. semantics: ``v7`` or ``v6``.

    begins: when the first message arrived at each queue manager; needed where the setup defines what expires.
    monotonic_clock: whether a message whose time is earlier than that of the one before it comes at the same moment.
    """

    setup: str = ""
    semantics: str = Semantics.V7.value
    begins: Mapping[str, datetime] = field(default_factory=dict)
    monotonic_clock: bool = False

    def beginning(self, moments: Mapping[str, int]) -> ReplaySetup:
        """The same with ``begins``. moments: by queue manager, in microseconds since 1970."""
        return replace(self, begins={qmgr: EPOCH + timedelta(microseconds=at) for qmgr, at in moments.items()})

    def under(self, semantics: str) -> ReplaySetup:
        """The same under ``v6`` or ``v7``."""
        return replace(self, semantics=semantics)

    def broker(self, qmgr: str) -> Broker:
        """A broker just before its first message. Raises QPubSubError where the setup fails."""
        broker = Broker.of_capture(qmgr, self.setup, self.semantics)
        # The expiry of what the setup defines starts with the first message, so process one that is passed over.
        broker.process(Arrival(0, self.begins.get(qmgr, EPOCH), "", None, b""))
        return broker

    @cached_property
    def stream_queues(self) -> tuple[str, ...]:
        """The queues from which publications are taken; nothing that is captured changes them.

        Under ``v6`` these are those of ``v7``, and every local queue that may become a stream (guide 6.1).
        """
        return self._streams(semantics_of(self.semantics))

    @cached_property
    def listed_queues(self) -> tuple[str, ...]:
        """Those of them from which every message is taken, under either version."""
        return self._streams(Semantics.V7)

    def _streams(self, semantics: Semantics) -> tuple[str, ...]:
        objects: Objects = self.broker(DEFAULT_QMGR).objects
        namelist = objects.namelists.get(QUEUE_NAMELIST)
        known = dict.fromkeys((DEFAULT_STREAM, *(namelist.names if namelist else ()), *objects.queues))
        return tuple(name for name in known if name != CONTROL_QUEUE and has_stream(name, objects, semantics))

    @cached_property
    def expires(self) -> bool:
        """Whether the setup defines anything that expires."""
        return any(s.expires_at is not None for s in self.broker(DEFAULT_QMGR).space.subscriptions())


def check(source: Path, setup: str, semantics: str = Semantics.V7.value) -> None:
    """Raises CaptureError for a path that is missing, QPubSubError for a setup that fails: before Spark starts."""
    files_of([str(source)])
    ReplaySetup(setup, semantics).broker(DEFAULT_QMGR)
