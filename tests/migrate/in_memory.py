"""A plan carried out in memory: what a queue manager knows afterwards, without one."""

from __future__ import annotations

from commands.broker.objects import kind_of
from commands.broker.selection import Selection
from commands.mqsc.broker import Broker
from migrate.plan import AddSubscription, KeepRetained, MigrationPlan
from migrate.target import Target, copied
from streams.topic_space import TopicSpace


def applied(plan: MigrationPlan, target: Target) -> Target:
    """*target* after *plan*; what was given stays as it is."""
    objects = copied(target.objects)
    subscriptions = {s.sub_id: s for s in target.subscriptions}
    retained = dict(target.retained)
    for step in plan.steps:
        if isinstance(step, AddSubscription):
            subscriptions[step.subscription.sub_id] = step.subscription
        elif isinstance(step, KeepRetained):
            retained[step.retained.topic_string] = step.retained
        else:
            if step.anew:
                objects.delete(kind_of(step.definition), step.definition.name)
            objects.put(step.definition)
    ordered = tuple(sorted(subscriptions.values(), key=lambda s: s.sub_id))
    return Target(objects, ordered, retained, target.version)


def broker_of(target: Target, semantics: str = "v7") -> Broker:
    """The queued interface of such a queue manager, in memory."""
    space = TopicSpace(target.objects.topics, Selection(), semantics)
    space.restore(target.subscriptions, target.retained.values())
    return Broker(target.objects.qmgr.name, semantics=semantics, objects=target.objects, space=space)
