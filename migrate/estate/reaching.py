"""The live queue manager of a broker of the estate: reached as estate.toml says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from commands.links.engine.config import ConfigError, read_config
from migrate.estate.jobs import BrokerJob
from migrate.live.opening import LiveQueueManager, open_live


@contextmanager
def queue_manager(job: BrokerJob) -> Iterator[LiveQueueManager]:
    """The live queue manager of *job*; its connections end with the block.

    Raises ConfigError if estate.toml does not say how it is reached.
    """
    settings, own = read_config(job.config), job.definition
    if not (own.admin or own.queues or settings.admin.url or settings.queues.url):
        raise ConfigError(str(job.config), "it has no url in [admin] or [queues]: give it one, or estate.toml has it")
    called = ("admin in estate.toml", "queues in estate.toml")
    live = open_live(job.home, job.qmgr, settings, own.admin, own.queues, called)
    try:
        yield live
    finally:
        live.close()
