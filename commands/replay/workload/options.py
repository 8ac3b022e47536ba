"""The options of a generated workload: numbers of messages, topics and subscribers, and shares of each kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from commands.broker.objects import DEFAULT_STREAM
from rfh2.errors import QPubSubError

DEFAULT_QMGR: Final = "QM1"
_START: Final = datetime(2026, 1, 5, 8, tzinfo=UTC)


class WorkloadError(QPubSubError):
    """Options that contradict each other."""


class WorkloadOptions(BaseModel):
    """The options of a generated workload; shares are between 0 and 1.

    seed: another seed, another workload. messages: how many in all. start: time of the first message, UTC. per_second:
    messages a second of captured time. qmgrs: queue managers, between which traffic is spread evenly. streams: stream
    queues, the default one included. topics: in all streams together. zipf: exponent of their popularity; 0 is even.
    subscribers: at most one subscription each, registered first. control: share of messages that are RegSub, DeregSub,
    ReqUpdate or DeletePub, once all subscribers are registered. wildcards, named, filters, rfh1: shares of subscribers
    (rfh1: and of publishers). retained: share of topics on which everything published is retained. expiring: share of
    subscribers and of retained topics with an Expiry. properties: share of publications with a usr folder. several:
    share of publications to two topics. persistent: share of publications. errors: share of messages that are wrong in
    one of several ways. strays: share of messages on queues that no broker reads. body_bytes: data in a publication.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 0
    messages: int = Field(default=10_000, ge=0)
    start: datetime = _START
    per_second: float = Field(default=1000.0, gt=0)
    qmgrs: int = Field(default=1, ge=1, le=1000)
    streams: int = Field(default=2, ge=1, le=1000)
    topics: int = Field(default=1000, ge=1, le=10_000_000)
    zipf: float = Field(default=1.0, ge=0, le=5)
    subscribers: int = Field(default=200, ge=0, le=10_000_000)
    control: float = Field(default=0.01, ge=0, le=1)
    wildcards: float = Field(default=0.1, ge=0, le=1)
    named: float = Field(default=0.2, ge=0, le=1)
    filters: float = Field(default=0.05, ge=0, le=1)
    rfh1: float = Field(default=0.1, ge=0, le=1)
    retained: float = Field(default=0.2, ge=0, le=1)
    expiring: float = Field(default=0.05, ge=0, le=1)
    properties: float = Field(default=0.1, ge=0, le=1)
    several: float = Field(default=0.01, ge=0, le=1)
    persistent: float = Field(default=0.5, ge=0, le=1)
    errors: float = Field(default=0.001, ge=0, le=1)
    strays: float = Field(default=0.001, ge=0, le=1)
    body_bytes: int = Field(default=200, ge=0, le=100_000_000)

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.control + self.errors + self.strays > 1:
            raise WorkloadError("control, errors and strays together are more than all messages")
        if self.start.tzinfo is None:
            raise WorkloadError("start needs a time zone")
        return self

    def qmgr(self, number: int) -> str | None:
        """The name of queue manager *number*; None where there is but one."""
        return None if self.qmgrs == 1 else f"QM{number % self.qmgrs + 1}"

    def stream(self, number: int) -> str:
        """The name of stream *number*; 0 is the default one."""
        at = number % self.streams
        return DEFAULT_STREAM if at == 0 else f"WORKLOAD.STREAM.{at}"
