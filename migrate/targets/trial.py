"""Commands tried out in memory before they are written to a file: each has to make exactly what was planned.

The queued interface has many rules for what a command makes. So each command is run there, with the objects of the plan
and without checks of authority. A command that makes something else raises CommandError, and is reported to a person
instead of written to a file.
"""

from __future__ import annotations

from dataclasses import replace

from commands.broker.outcome import Arrival, Outcome
from commands.broker.selection import Selection
from commands.mqsc.broker import Broker
from migrate.plan import MigrationPlan, Store
from migrate.target import Target, copied
from rfh2.captured import CapturedMessage
from rfh2.errors import CommandError
from streams.operations import RetainedStored, SubscriptionAdded, SubscriptionAltered, Unsubscribe
from streams.patterns import is_read_alike
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_space import TopicSpace


class Trial:
    """The queue manager as it will be, as far as the commands so far have made it."""

    def __init__(self, plan: MigrationPlan, target: Target) -> None:
        objects = copied(target.objects)
        for step in plan.steps:
            if isinstance(step, Store):
                if step.anew:
                    objects.delete("topic", step.definition.name)
                objects.put(step.definition)
        # The queue manager grants authority; the report says who lacks it.
        objects.authorities = {}
        space = TopicSpace(objects.topics, Selection())
        space.restore(target.subscriptions, target.retained.values())
        self._broker = Broker(plan.qmgr, objects=objects, space=space)
        self._now = plan.now
        self._seq = 0

    def publish(self, message: CapturedMessage, topic_string: str) -> None:
        """Raises CommandError where *message* does not have *topic_string* keep it."""
        effects = self._run(message).effects
        kept = [effect.retained.topic_string for effect in effects if isinstance(effect, RetainedStored)]
        if kept != [topic_string]:
            raise CommandError(0, topic_string, f"the command would be kept on {', '.join(kept) or 'no topic'}")

    def register(self, messages: list[CapturedMessage], wanted: Subscription, *, is_alone: bool = False) -> None:
        """Raises CommandError where *messages* together do not make *wanted*.

        is_alone: no later command can concern it, so that it need not be kept in memory.
        """
        made: Subscription | None = None
        for message in messages:
            for effect in self._run(message).effects:
                if isinstance(effect, SubscriptionAdded):
                    made = effect.subscription
                elif isinstance(effect, SubscriptionAltered):
                    made = effect.after
        if made is None or _essence(made) != _essence(wanted):
            raise CommandError(0, wanted.topic_string, "the command would make another subscription")
        if is_alone:
            self._broker.space.apply(Unsubscribe(made), self._now)

    def _run(self, message: CapturedMessage) -> Outcome:
        self._seq += 1
        arrival = Arrival(self._seq, self._now, message.queue, message.md, message.body, message.user)
        outcome = self._broker.process(arrival)
        if outcome.completion != "ok":
            raise CommandError(outcome.reason or 0, None, f"the queued interface refuses the command: {outcome.why}")
        return outcome


def _essence(subscription: Subscription) -> Subscription:
    """*subscription* without what a command cannot set, sets on purpose (NewPubsOnly), or what does not matter."""
    options = replace(subscription.options, new_pubs_only=False)
    alike = is_read_alike(subscription.topic_string)
    return replace(
        subscription,
        wildcard=WildcardScheme.CHAR if alike else subscription.wildcard,
        sub_id=bytes(24),
        created=subscription.created.min,
        expires_at=None,
        options=options,
        identities=tuple(sorted(subscription.identities)),
    )
