"""What each verb does to one broker: on an embedded queue manager, or on one that is reached over the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from migrate.estate import acting, live_acting
from migrate.estate.extracting import extract_broker
from migrate.estate.jobs import BrokerJob, BrokerResult
from migrate.estate.planning import plan_broker
from migrate.estate.workers import Action


def _either(embedded: Action, live: Action) -> Action:
    def act(job: BrokerJob) -> BrokerResult:
        return live(job) if job.is_live else embedded(job)

    return act


ACTIONS: Final[Mapping[str, Action]] = {
    "extract": extract_broker,
    "plan": plan_broker,
    "rehearse": _either(acting.rehearse_broker, live_acting.rehearse_broker),
    "apply": _either(acting.apply_broker, live_acting.apply_broker),
    "verify": _either(acting.verify_broker, live_acting.verify_broker),
    "undo": _either(acting.undo_broker, live_acting.undo_broker),
}
