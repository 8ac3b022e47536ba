"""Counts the effects of commands: publications sent to each subscription and excluded by its filter, and published on
each topic.

A command counts when all its messages are put, and with the commit of its unit of work.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from commands.broker.core import BrokerCore
from commands.broker.counts import Counts
from commands.broker.outcome import Outcome
from commands.broker.puts import Outgoing, PutKind
from commands.qmgr.store.port import CountsMessages, UnitOfWork


def count(counts: Counts, outcome: Outcome, delivered: Sequence[Outgoing | None], now: datetime) -> None:
    """Count one command in *counts*. delivered: what was put in place of each of its puts."""
    for topic_string in outcome.topics:
        counts.add_published(topic_string, now)
    for subscription in outcome.filtered:
        counts.add_filtered(subscription.sub_id)
    if delivered is outcome.puts:
        counts.add_all_delivered([sub_id for put in outcome.puts for sub_id in put.sub_ids], now)
        return
    for wanted, put in zip(outcome.puts, delivered, strict=True):
        for sub_id in wanted.sub_ids:
            if put is not None and put.kind is PutKind.PUBLICATION:
                counts.add_delivered(sub_id, now)
            else:
                counts.add_dead_letters(sub_id)


def forget_unused_topics(unit: UnitOfWork, broker: BrokerCore, now: datetime) -> int:
    """Forget the counts of topics that have left the topic tree; how many (guide 2.5.3.1).

    As in IBM MQ, a topic leaves the tree when nothing exists at it and no program has published on it
    for TREELIFE seconds.
    """
    if not isinstance(unit, CountsMessages):
        return 0
    life_s = broker.objects.qmgr.treelife
    before = now - timedelta(seconds=life_s) if life_s else None

    def in_use() -> set[str]:
        return {each.topic_string for each in (*broker.objects.topics, *broker.space.subscriptions())}

    return unit.counters.forget_topics(before, in_use)
