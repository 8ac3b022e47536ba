"""The live queue managers of a broker of the estate: reached as estate.toml says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commands.config.settings import ConfigError, read_config
from migrate.estate.jobs import BrokerJob
from migrate.live.opening import LiveQueueManager, open_live


@contextmanager
def queue_manager(job: BrokerJob) -> Iterator[LiveQueueManager]:
    """The queue manager that is migrated to; its connections end with the block.

    Raises ConfigError if estate.toml does not say how it is reached.
    """
    own = job.definition
    with _opened(job, job.qmgr, job.config, own.admin, own.queues, "{} in estate.toml") as live:
        yield live


@contextmanager
def source_queue_manager(job: BrokerJob) -> Iterator[LiveQueueManager]:
    """The queue manager from which the source is extracted. Raises ConfigError."""
    extract = job.definition.extract
    if extract is None or not extract.is_elsewhere:
        with queue_manager(job) as live:
            yield live
        return
    qmgr = job.definition.from_qmgr or job.qmgr
    called = "{} of extract in estate.toml"
    with _opened(job, qmgr, job.source_config, extract.admin, extract.queues, called) as live:
        yield live


@contextmanager
def _opened(
    job: BrokerJob, qmgr: str, config: Path | None, admin: str | None, queues: str | None, called: str
) -> Iterator[LiveQueueManager]:
    settings = read_config(config)
    if not (admin or queues or settings.admin.url or settings.queues.url):
        raise ConfigError(str(config), "it has no url in [admin] or [queues]: give it one, or estate.toml has it")
    live = open_live(job.home, qmgr, settings, admin, queues, (called.format("admin"), called.format("queues")))
    try:
        yield live
    finally:
        live.close()
