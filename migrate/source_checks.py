"""Whether the sources are those of the broker that is migrated, and were read to the end; else nothing is changed.

A migration that was successful enables queued publish/subscribe and is not done again (guide 7.1, 7.4.1). So it must
not be successful with sources that say nothing, that could not be read, or that are another queue manager's or another
broker's. With ``--accept-unread`` and ``--from-qmgr`` an administrator says that they are good nevertheless.

Which subscriptions would match more or fewer topics: each is matched before and after, over all known topics.

Before: streams and subscription points are separate, and a wildcard matches only in its own (guide 6.1). After: all are
in one tree, under the topic objects and WILDCARD(BLOCK) of the target as it will be. The topics are those of the legacy
state: retained publications, registered publishers, subscriptions without wildcards. Topics that only native programs
of the target use are not known here.

A stream's prefix is put before its topics and before the patterns of its subscriptions. So what a subscription matched
before are the topics of its own stream and subscription point that it matches now, those included that WILDCARD(BLOCK)
keeps from it: one index shows both sides.

A topic and a pattern that matches it have the same first level, unless a wildcard is in the first level of the pattern.
So an index has subscriptions of one first level, at most an eighth of all, and is gone before the next one is made.

Cost: each topic is matched in one index, in a few where many subscriptions share a first level, and in those of the
patterns that are wild there.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from commands.broker.objects import AliasQueue, AuthorityRecord, LocalQueue, QueueManager
from migrate.assemble import COMMAND_LINE
from migrate.ledger import Severity
from migrate.legacy_state import LegacyState, LegacySubscription, Principal, Product, Unread
from migrate.plan import (
    AddSubscription,
    Collision,
    KeepRetained,
    MigrationPlan,
    Phase,
    PlanOptions,
    Step,
    Tool,
    Visibility,
    is_marker,
)
from migrate.target import Draft
from rfh2.errors import CommandError, MigrationError
from rfh2.terminal_escape import printable
from streams.index import SubscriptionIndex
from streams.patterns import check_publication_topic, parse_pattern
from streams.topic_objects import DEFAULT_STREAM, Namelist, TopicObject
from streams.topic_strings import SEPARATOR, BlockSet, add_prefix

EXAMPLES = 5
_SHARES = 8
_FEW = 1_000
"""So many subscriptions are in one index, even if they are more than their share."""
_Place = tuple[str, str]

LegacyTopic = tuple[str, str, str]
"""A topic as version 6 knew it: stream, subscription point ("" for the default one), topic."""


def known_topics(draft: Draft) -> dict[LegacyTopic, str]:
    """The topics of the legacy state that can be published to, and where each lies in the target."""
    found: dict[LegacyTopic, str] = {}
    for stream, point, topic in _topics(draft):
        place = draft.streams.get(stream)
        sub_point = draft.sub_points.get(point) if point else None
        if place is None or (point and sub_point is None) or (stream, point, topic) in found:
            continue
        prefix = place.prefix
        if sub_point is not None:
            prefix = add_prefix(prefix, sub_point.prefix)
        try:
            found[stream, point, topic] = check_publication_topic(add_prefix(prefix, topic))
        except CommandError:
            continue
    return found


def collisions(topics: dict[LegacyTopic, str]) -> tuple[Collision, ...]:
    """Different topics that are one now (guide 6.1, third reason for adding a stream by hand)."""
    found: list[Collision] = []
    for topic_string, same in groupby(sorted(topics, key=topics.__getitem__), key=topics.__getitem__):
        each = tuple(sorted(same))
        if len(each) > 1:
            found.append(Collision(topic_string, each))
    return tuple(found)


def visibility(draft: Draft, topics: dict[LegacyTopic, str]) -> tuple[Visibility, ...]:
    """The subscriptions that would see other topics than before, by number."""
    gained: dict[bytes, _Examples] = defaultdict(_Examples)
    lost: dict[bytes, _Examples] = defaultdict(_Examples)
    for matcher, theirs in _matchers(draft, topics):
        for topic in theirs:
            saw, sees = matcher.receivers(topic, topics[topic])
            for sub_id in sees - saw:
                gained[sub_id].add(topic)
            for sub_id in saw - sees:
                lost[sub_id].add(topic)
    return tuple(_visibilities(draft, gained, lost))


def _visibilities(draft: Draft, gained: dict[bytes, _Examples], lost: dict[bytes, _Examples]) -> Iterator[Visibility]:
    none = _Examples()
    for step in draft.steps:
        if not isinstance(step, AddSubscription):
            continue
        sub_id = step.subscription.sub_id
        more, less = gained.get(sub_id, none), lost.get(sub_id, none)
        if more.count or less.count:
            pattern = step.subscription.topic_string
            yield Visibility(step.key, pattern, more.shown(), less.shown(), more.count, less.count)


@dataclass(slots=True)
class _Examples:
    """How many topics a subscription gains or loses, and the first few of them."""

    count: int = 0
    first: list[LegacyTopic] = field(default_factory=list)

    def add(self, topic: LegacyTopic) -> None:
        self.count += 1
        insort(self.first, topic)
        del self.first[EXAMPLES:]

    def shown(self) -> tuple[str, ...]:
        return tuple(topic if stream == DEFAULT_STREAM else f"{stream}: {topic}" for stream, _, topic in self.first)


def _matchers(draft: Draft, topics: dict[LegacyTopic, str]) -> Iterator[tuple[_Matcher, Iterable[LegacyTopic]]]:
    """Each subscription in one matcher, with all topics that it may match."""
    blocks = draft.objects.topics.blocks()
    by_level: dict[str | None, list[AddSubscription]] = defaultdict(list)
    count = 0
    for step in draft.steps:
        if isinstance(step, AddSubscription):
            by_level[_first_level(step)].append(step)
            count += 1
    topics_of: dict[str, list[LegacyTopic]] = defaultdict(list)
    for topic, topic_string in topics.items():
        topics_of[_level(topic_string)].append(topic)
    most = max(count // _SHARES, _FEW)
    for level, steps in by_level.items():
        theirs = topics if level is None else topics_of.get(level, ())
        for first in range(0, len(steps) if theirs else 0, most):
            yield _Matcher(draft, steps[first : first + most], blocks), theirs


class _Matcher:
    """Some subscriptions, by the topics that each receives before and after."""

    def __init__(self, draft: Draft, steps: Iterable[AddSubscription], blocks: BlockSet) -> None:
        self._index = SubscriptionIndex()
        self._places: dict[bytes, _Place] = {}
        for step in steps:
            legacy = draft.state.subscriptions[step.number - 1]
            self._index.add(step.subscription, blocks)
            self._places[step.subscription.sub_id] = (legacy.stream, legacy.sub_point or "")

    def receivers(self, topic: LegacyTopic, topic_string: str) -> tuple[set[bytes], set[bytes]]:
        """The sub_ids of those that received a publication on *topic*, and of those that receive it on *topic_string*.

        topic_string: where the topic lies now.
        """
        place = topic[:2]
        sees = {made.sub_id for made in self._index.match_uncached(topic_string)}
        kept_away = {made.sub_id for made in self._index.blocked(topic_string)}
        return {sub_id for sub_id in sees | kept_away if self._places[sub_id] == place}, sees


def _first_level(step: AddSubscription) -> str | None:
    """The first level of all topics that a subscription selects; None where they have several."""
    pattern = parse_pattern(step.subscription.topic_string, step.subscription.wildcard)
    if pattern.is_wild and not pattern.literal_depth:
        return None
    return _level(pattern.literal_topic)


def _level(topic_string: str) -> str:
    return topic_string.partition(SEPARATOR)[0]


def _topics(draft: Draft) -> Iterator[LegacyTopic]:
    state = draft.state
    for retained in state.retained:
        yield retained.stream, retained.sub_point or "", retained.topic
    for publisher in state.publishers:
        yield publisher.stream, "", publisher.topic
    for subscription in state.subscriptions:
        literal = _literal(subscription)
        if literal:
            yield subscription.stream, subscription.sub_point or "", literal


def _literal(subscription: LegacySubscription) -> str | None:
    try:
        pattern = parse_pattern(subscription.topic, subscription.scheme)
    except CommandError:
        return None
    return None if pattern.is_wild else pattern.literal


_SHOWN: Final = 3
_NO_STATE: Final = (Unread.kind, Principal.kind)


def check_sources(state: LegacyState, options: PlanOptions, tool: Tool) -> None:
    """Raises MigrationError where a migration from *state* would lose state, or be that of another broker."""
    found = list(_refusals(state, options, tool))
    if found:
        raise MigrationError(f"{'; '.join(found)}. Nothing was changed")


def plan_sources(draft: Draft, tool: Tool, *, rehearse: bool) -> None:
    """Say what a run refuses, and what an administrator accepted. Raises MigrationError in a run that is refused."""
    if not rehearse:
        check_sources(draft.state, draft.options, tool)
    for refusal in _refusals(draft.state, draft.options, tool):
        draft.refuse(refusal)
    accepted = _unread(draft.state)
    if draft.options.accept_unread and accepted:
        why = f"--accept-unread: {_shown(accepted)}. If it was state of the broker, it is lost"
        draft.warn(why, severity=Severity.ERROR)
    asked = draft.options.from_qmgr
    if asked is not None and asked != draft.qmgr:
        why = f"--from-qmgr {asked}: what belongs to queue manager {asked} is migrated to {draft.qmgr}"
        draft.warn(why, severity=Severity.INFO)
    for note in (*draft.state.notes, *draft.target.passed_over):
        draft.warn(note, severity=Severity.INFO)
    _check_subscribers(draft)


def _refusals(state: LegacyState, options: PlanOptions, tool: Tool) -> Iterator[str]:
    """The reasons why nothing may be changed, each with what to do; none if the sources are good."""
    if options.from_qmgr is None:
        yield from _foreign(state)
    if tool is Tool.MIGMBBRK:
        yield from _other_broker(state)
    if not options.accept_unread and (unread := _unread(state)):
        yield f"{_shown(unread)}. Correct the sources, or migrate the rest with --accept-unread"
    streams = {stream.name for stream in state.streams}
    for name in sorted(options.prefixes.keys() - streams):
        yield f"--prefix {name}={options.prefixes[name]}: the sources have no stream {name}"
    if not any(item.kind not in _NO_STATE and item.source.file != COMMAND_LINE for _, item in state.items()):
        yield "the sources hold no state of the broker at all: nothing could be migrated"


def _unread(state: LegacyState) -> list[Unread]:
    return [item for item in state.unread if item.is_state]


def _shown(unread: list[Unread]) -> str:
    some = "; ".join(f"{item.source}: {printable(item.why)}" for item in unread[:_SHOWN])
    more = f"; and {len(unread) - _SHOWN} more" if len(unread) > _SHOWN else ""
    pieces = "1 piece" if len(unread) == 1 else f"{len(unread)} pieces"
    return f"{pieces} of the sources could not be read and may be state ({some}{more})"


def _foreign(state: LegacyState) -> Iterator[str]:
    """Sources more than half of which are other queue managers'."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    totals: dict[str, int] = {}
    for item in state.unread:
        if item.qmgr and item.of_count:
            counts[item.source.file][item.qmgr] += item.count
            totals[item.source.file] = item.of_count
    for file, theirs in counts.items():
        if 2 * theirs.total() > totals[file]:
            whose = ", ".join(f"{count} of queue manager {qmgr}" for qmgr, count in theirs.most_common(_SHOWN))
            yield (
                f"{file} is mostly that of another queue manager than {state.qmgr}: {whose}, of {totals[file]} in all. "
                f"--from-qmgr NAME says which one is migrated; --from-qmgr {state.qmgr} leaves the others out"
            )


def _other_broker(state: LegacyState) -> Iterator[str]:
    """Sources that name brokers, and not the one that -b names."""
    named = [broker for broker in state.brokers if broker.source.file != COMMAND_LINE]
    asked = [broker.name for broker in state.brokers if broker.source.file == COMMAND_LINE]
    if named and asked and asked[0] not in {broker.name for broker in named}:
        yield f"-b {asked[0]}: {named[0].source.file} is that of broker {named[0].name}"


def _check_subscribers(draft: Draft) -> None:
    """Most subscribers on one other queue manager: that may be the old name of this one."""
    elsewhere = Counter(s.qmgr for s in draft.state.subscriptions if s.qmgr != draft.state.qmgr)
    for qmgr, count in elsewhere.most_common(1):
        if 2 * count > len(draft.state.subscriptions):
            why = (
                f"{count} of {len(draft.state.subscriptions)} subscriptions have their queues on queue manager {qmgr}, "
                f"not on {draft.qmgr}: if that is the name that this queue manager had, run with --from-qmgr {qmgr}"
            )
            draft.warn(why, "P29")


# The fate of items that have no equivalent in the topic tree, the order of steps, and the plan that is finished.


def ordered(steps: Iterable[Step]) -> tuple[Step, ...]:
    """*steps* in an order that works: those that others need first; PSMODE and the record of the migration last."""
    return tuple(sorted(steps, key=_rank))


def _rank(step: Step) -> int:
    if isinstance(step, AddSubscription):
        return 4
    if isinstance(step, KeepRetained):
        return 5
    definition = step.definition
    if isinstance(definition, LocalQueue | AliasQueue):
        return 0
    if isinstance(definition, TopicObject):
        # Of several, those that are made anew first: their old topic string may be another one's new one.
        return 1 if step.anew else 2
    if isinstance(definition, AuthorityRecord):
        return 6
    if isinstance(definition, Namelist) and not is_marker(definition):
        return 3
    return 8 if isinstance(definition, QueueManager) else 7


def brokers(draft: Draft) -> None:
    """The broker is the queue manager now."""
    names = {broker.name for broker in draft.state.brokers}
    for number, broker in enumerate(draft.state.brokers, 1):
        key = (broker.kind, number)
        draft.ledger.becomes(key, f"queue manager {draft.qmgr}")
        if broker.qmgr not in ("", draft.state.qmgr):
            why = f"the source is of queue manager {broker.qmgr}, this is {draft.state.qmgr}: check the source"
            draft.ledger.note(key, why, severity=Severity.WARNING)
    if len(names) > 1:
        draft.warn(f"the sources name several brokers: {', '.join(sorted(names))}")


def publishers(draft: Draft) -> None:
    """Registered publishers: version 7 has none (guide 7.5)."""
    for number, publisher in enumerate(draft.state.publishers, 1):
        why = "publishers are not registered in version 7; RegPub is answered with ok and does nothing (guide 7.5)"
        draft.ledger.report((publisher.kind, number), why, "D06", severity=Severity.INFO)
        draft.progress(1)


def foreign_acl(draft: Draft) -> None:
    """Access control lists belong to Message Broker; WebSphere MQ's broker had none."""
    for number, entry in enumerate(draft.state.acl, 1):
        why = "WebSphere MQ's own broker had no access control lists: migrate them with migmbbrk"
        draft.ledger.report((entry.kind, number), why)
        draft.progress(1)


def principals(draft: Draft) -> None:
    """Users and groups belong to the operating system; they were read to distinguish the two."""
    for number, principal in enumerate(draft.state.principals, 1):
        draft.ledger.becomes((principal.kind, number), f"{principal.type} {principal.name} of the operating system")
        draft.progress(1)


def flow_inputs(draft: Draft) -> None:
    """Input queues of message flows: the administrator adds them to the namelist (guide 8.2, step 7)."""
    for number, flow in enumerate(draft.state.flow_inputs, 1):
        why = (
            f"define topic object {flow.queue} with the topic string that its topics are to lie below, then add "
            f"{flow.queue} to SYSTEM.QPUBSUB.QUEUE.NAMELIST, with all names that are there (guide 8.2, step 7)"
        )
        draft.ledger.report((flow.kind, number), why, "P18", "D23")
        draft.progress(1)
    if draft.state.product is Product.WMB and not draft.state.flow_inputs:
        draft.warn("no source names the input queues of message flows: add each to the queue namelist", "P18", "D23")


def unread(draft: Draft) -> None:
    """A person must look at what no reader understood."""
    for number, item in enumerate(draft.state.unread, 1):
        severity = Severity.WARNING if item.is_state or item.warns else Severity.INFO
        ids = (item.problem,) if item.problem else ()
        draft.ledger.report((item.kind, number), item.why, *ids, severity=severity)
        draft.progress(1)


def scopes(draft: Draft) -> None:
    """Report once what a local publication does to global subscriptions (guide 7.5, table 2)."""
    local = any(retained.local for retained in draft.state.retained) or any(
        "Local" in publisher.options for publisher in draft.state.publishers
    )
    if local:
        why = "publications with scope Local are received by global subscriptions of this queue manager too (guide 7.5)"
        draft.warn(why, "D01")


def settle(draft: Draft) -> None:
    """The fates of all of these."""
    for each in (brokers, publishers, principals, flow_inputs, unread, scopes):
        each(draft)


def finished(
    draft: Draft, tool: Tool, phase: Phase, state: LegacyState, print_of: str, kept: Iterable[Step] | None = None
) -> MigrationPlan:
    """The plan. kept: the steps that are carried out, if not all. Raises MigrationError if an item has no fate."""
    # What the ledger held of each item is not needed for what follows, which needs much memory itself.
    fates = draft.ledger.close()
    topics = known_topics(draft)
    return MigrationPlan(
        tool,
        phase,
        draft.qmgr,
        draft.now,
        state,
        draft.options.shown,
        ordered(draft.steps if kept is None else kept),
        fates,
        tuple(draft.warnings),
        visibility(draft, topics),
        collisions(topics),
        tuple(draft.security),
        print_of,
        draft.target.version,
        tuple(draft.grants),
    )
