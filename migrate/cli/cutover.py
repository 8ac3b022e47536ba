"""A migration in memory: the broker of a replay becomes a queue manager, as strmqbrk and migmbbrk would make it.

``qpubsub differences --cutover`` begins version 7 with it. The plan is the migration's own; nothing is decided here.
"""

from __future__ import annotations

from datetime import datetime

from commands.broker.selection import Selection
from commands.mqsc.broker import Broker
from migrate import migmbbrk, strmqbrk
from migrate.assemble import assemble, of_product
from migrate.embedded import applied
from migrate.ledger import Verdict
from migrate.legacy_state import LegacySubscription, Product, Source
from migrate.plan import Phase, PlanOptions
from migrate.readers.captures import state_of_broker
from migrate.target import Target, copied
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_space import TopicSpace

_SOURCE = Source(file="the capture")


def migrated(old: Broker, new: Broker, now: datetime) -> tuple[Broker, list[tuple[Subscription, str, str]]]:
    """The queue manager *new* after the migration of the broker *old*, and of what is not migrated, the rule and why.

    By strmqbrk where *old* reads all wildcards as characters, as WebSphere MQ's own broker did, else by migmbbrk. The
    rule is "" where no known difference is the reason. Objects and subscriptions that *new* has are kept. now: UTC.
    """
    product = Product.MQ if old.rfh2_wildcards is WildcardScheme.CHAR else Product.WMB
    state = of_product(assemble(state_of_broker(old, _SOURCE), old.qmgr, product), old.qmgr, product)
    retained = {each.topic_string: each for each in new.space.retained_publications()}
    target = Target(copied(new.objects), new.space.subscriptions(), retained)
    if product is Product.MQ:
        plan = strmqbrk.plan(state, target, PlanOptions(), now, rehearse=True)
    else:
        plan = migmbbrk.plan(state, target, PlanOptions(), now, Phase.REHEARSE)
    subscriptions = old.space.subscriptions()
    left = [
        (
            subscriptions[fate.key[1] - 1],
            next((known for reason in fate.reasons for known in reason.ids if known.startswith("D")), ""),
            "; ".join(reason.text for reason in fate.reasons),
        )
        for fate in plan.fates
        if fate.key[0] == LegacySubscription.kind and fate.verdict is Verdict.REPORTED
    ]
    return broker_of(applied(plan, target)), left


def broker_of(target: Target) -> Broker:
    """The queued interface of such a queue manager."""
    space = TopicSpace(target.objects.topics, Selection(), "v7")
    space.restore(target.subscriptions, target.retained.values())
    return Broker(target.objects.qmgr.name, objects=target.objects, space=space)
