"""What ``run`` and ``dev`` ask of a bridge (``commands.running.bridge``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from commands.broker.authority import GroupsOf
from commands.broker.budget import Budget
from commands.config.home import Home
from commands.config.settings import Config
from commands.qmgr.store import Durability
from commands.running.journal import LogFormat
from commands.terminal.users import groups_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the command line, the environment and the file of ``--config`` ask for; named as the options of ``run``."""

    qmgr: str
    home: Home
    config: Config = field(default_factory=Config)  # the tables of the file; an option below comes before its table
    once: bool = False  # end when the queues are empty
    record: Path | None = None  # JSON Lines with every put
    log: Path | None = None  # ``-`` for stderr
    log_format: LogFormat = LogFormat.JSON
    durability: Durability = Durability.FULL
    lease: float | None = None  # in PostgreSQL: seconds without a sign of life after which another run takes over
    budget: Budget = field(default_factory=Budget)  # of one command
    queues: str | None = None  # URL of the queue manager that has the queues
    topics: str | None = None  # URL of the topic tree
    listen: str | None = None  # [HOST:]PORT for MQ clients
    metrics: str | None = None  # [HOST:]PORT for metrics and probes
    tracing: str | None = None  # URL of a collector, or ``console``
    groups_of: GroupsOf = groups_of  # the groups of a user
