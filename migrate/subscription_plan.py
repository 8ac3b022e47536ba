"""Subscriptions: each one's topic below its stream and subscription point, its name, its queue, its options.

Those that cannot or need not be in the new state are reported, each with its reason: expired, to metatopics, of a
neighbouring broker, for temporary dynamic queues, with a topic, filter or queue that the queue manager refuses. Of two
of the same registration one is migrated; contradictions between them are reported.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from commands.broker.objects import ADMIN_STREAM, has_unique_part, is_dynamic_name, is_object_name
from commands.broker.times import tenths_until
from commands.model import RegOpt
from migrate.assemble import subscription_name
from migrate.ledger import Severity
from migrate.legacy_state import Key, LegacySubscription, Product
from migrate.plan import AddSubscription
from migrate.subscription_files import kept_options
from migrate.target import Draft, same_registration
from rfh2.constants import LARGEST_MQLONG, MQ_SUB_IDENTITY_LENGTH, MQ_SUB_NAME_LENGTH
from rfh2.errors import CommandError
from rfh2.mqi_constants import MQACT_NONE, MQCI_NONE
from streams.patterns import add_pattern_prefix, parse_pattern
from streams.selectors import compile_selector
from streams.subscriptions import PublicationFormat, Subscription
from streams.topic_objects import DEFAULT_STREAM
from streams.topic_strings import SEPARATOR, check_topic_string

USER_LENGTH: Final = 12
# Version 6 brokers register with each other for this queue of theirs.
NEIGHBOURS_QUEUE: Final = "SYSTEM.BROKER.INTER.BROKER.COMMUNICATIONS"
_OF_JMS: Final = "SYSTEM.JMS."
_WORDS: Final = frozenset(option.value for option in RegOpt)
_BODY_FILTER: Final = ("Body", "Root.", "Root:", "InputRoot", "InputBody")


class _RefusedError(Exception):
    """The subscription is not migrated."""

    def __init__(self, text: str, *ids: str, severity: Severity = Severity.WARNING) -> None:
        super().__init__(text)
        self.text, self.ids, self.severity = text, ids, severity


def plan_subscriptions(draft: Draft) -> None:
    """The steps for all subscriptions of the state, in the order of their numbers."""
    chosen = _without_repetitions(draft)
    names: dict[str, Key] = {}
    for number, legacy in enumerate(draft.state.subscriptions, 1):
        key = (legacy.kind, number)
        merged = chosen.get(key)
        if merged is not None:
            try:
                _plan_one(draft, key, merged, names)
            except _RefusedError as refusal:
                draft.ledger.report(key, refusal.text, *refusal.ids, severity=refusal.severity)
        draft.progress(1)
    _note_names(draft)


def _note_names(draft: Draft) -> None:
    """Guide 7.6.1 appends the stream's name to that of a subscription, and does not say what stands between the two."""
    planned = (draft.state.subscriptions[step.number - 1] for step in draft.steps if isinstance(step, AddSubscription))
    count = sum(legacy.name is not None and legacy.stream != DEFAULT_STREAM for legacy in planned)
    if count:
        subscriptions = "subscription on a stream has a name" if count == 1 else "subscriptions on streams have names"
        why = (
            f"{count} {subscriptions}: '{draft.options.separator}' joins it and the stream's, which IBM does not "
            "document; qpubsub verify --probe-names asks the queue manager"
        )
        draft.warn(why, "P33", severity=Severity.INFO)


def _without_repetitions(draft: Draft) -> dict[Key, LegacySubscription]:
    """Each registration, under the key of the item that represents it; the other items are settled."""
    by_identity: dict[tuple[str, ...], tuple[Key, LegacySubscription]] = {}
    for number, legacy in enumerate(draft.state.subscriptions, 1):
        key = (legacy.kind, number)
        identity = legacy.identity
        known = by_identity.get(identity)
        if known is None:
            by_identity[identity] = (key, legacy)
            continue
        better, worse = ((key, legacy), known) if _has_more(legacy, known[1]) else (known, (key, legacy))
        merged = _merged(better[1], worse[1])
        by_identity[identity] = (better[0], merged)
        contradictions = _contradictions(merged, worse[1])
        what = f"subscription [{better[0][1]}]"
        if contradictions:
            why = f"{what} is the same registration with another {', '.join(contradictions)}; that one is used"
            draft.ledger.report(worse[0], why)
        else:
            draft.ledger.becomes(worse[0], what)
            draft.ledger.note(worse[0], "the sources have it a second time")
    return dict(by_identity.values())


def _has_more(one: LegacySubscription, other: LegacySubscription) -> bool:
    if len(one.unknown) != len(other.unknown):
        return len(one.unknown) < len(other.unknown)
    return one.created is not None and (other.created is None or one.created > other.created)


def _merged(better: LegacySubscription, worse: LegacySubscription) -> LegacySubscription:
    """*better* with what only *worse* knows."""
    filled: dict[str, Any] = {f: getattr(worse, f) for f in better.unknown if f not in worse.unknown}
    for optional in ("created", "user_data", "name"):
        if getattr(better, optional) is None and getattr(worse, optional) is not None:
            filled[optional] = getattr(worse, optional)
    for text in ("user", "accounting_token", "appl_identity_data", "client_context"):
        if not getattr(better, text) and getattr(worse, text):
            filled[text] = getattr(worse, text)
    if not filled:
        return better
    left = tuple(f for f in better.unknown if f not in filled)
    return replace(better, **filled, unknown=left)


def _contradictions(merged: LegacySubscription, other: LegacySubscription) -> list[str]:
    fields = []
    for field in ("user", "name", "user_data", "expires_at", "format", "scheme", "temp_dynamic"):
        mine, its = getattr(merged, field), getattr(other, field)
        if its not in (None, "") and field not in other.unknown and mine != its:
            fields.append(field)
    lasting = [kept_options(item.options) for item in (merged, other)]
    if lasting[0] != lasting[1]:
        fields.append("options")
    if other.identities and set(other.identities) != set(merged.identities):
        fields.append("identities")
    return fields


def _plan_one(draft: Draft, key: Key, legacy: LegacySubscription, names: dict[str, Key]) -> None:
    made = _subscription(draft, key, legacy)
    if made.name is not None:
        earlier = names.get(made.name)
        if earlier is not None:
            why = f"its name in version 7, {made.name}, is that of subscription [{earlier[1]}]"
            raise _RefusedError(why, "D15", severity=Severity.ERROR)
    existing = _existing(draft, made)
    if existing is not None and not draft.options.overwrite:
        what = f"a subscription named {existing.name}" if existing.name else "a subscription of the same identity"
        raise _RefusedError(f"{what} exists in the queue manager; it was not replaced", "P08")
    if existing is not None:
        made = replace(made, sub_id=existing.sub_id)
        why = "a subscription of this name or identity existed and was replaced"
        draft.ledger.change(key, why, "P08", severity=Severity.WARNING)
    if made.name is not None:
        names[made.name] = key
    _check_queue(draft, key, made)
    step = AddSubscription(made, key[1], existing)
    draft.steps.append(step)
    draft.ledger.becomes(key, step)


def _existing(draft: Draft, made: Subscription) -> Subscription | None:
    """The target's own subscription that *made* would duplicate."""
    return draft.theirs.get(made.name if made.name is not None else same_registration(made))


def _subscription(draft: Draft, key: Key, legacy: LegacySubscription) -> Subscription:
    """*legacy* as a subscription of the target. Raises _RefusedError."""
    _check_kind(draft, legacy)
    prefix = _prefix(draft, key, legacy)
    topic_string = _topic_string(legacy, prefix)
    stream = None if legacy.stream == DEFAULT_STREAM else legacy.stream
    if stream is not None and legacy.format is PublicationFormat.RFH2:
        # An MQRFH2 cannot name a stream: such a program uses the full topic strings of the stream's topics.
        draft.ledger.change(key, f"its topic is {topic_string} now: with MQRFH2 a program names it in full", "D08")
        stream, prefix = None, prefix if legacy.sub_point else ""
    if legacy.topic.startswith("$SYS/"):
        why = "nothing publishes on $SYS topics in version 7: the subscription receives nothing"
        draft.ledger.change(key, why, "P32", "D24", severity=Severity.WARNING)
    return Subscription(
        sub_id=draft.new_sub_id(),
        topic_string=topic_string,
        dest_queue=_queue(legacy),
        dest_qmgr=_qmgr(draft, key, legacy),
        created=legacy.created or draft.now,
        name=_name(draft, key, legacy),
        wildcard=legacy.scheme,
        prefix=prefix,
        stream=stream,
        sub_point=legacy.sub_point,
        correl_id=_correl_id(draft, key, legacy),
        user=_user(draft, key, legacy),
        accounting_token=_accounting_token(legacy),
        appl_identity_data=legacy.appl_identity_data,
        user_data=legacy.user_data,
        selector=_selector(draft, key, legacy),
        options=kept_options(_options(draft, key, legacy)),
        format=legacy.format,
        identities=(identities := _identities(draft, key, legacy)),
        exclusive=legacy.exclusive and len(identities) == 1,
        expires_at=_expires_at(draft, key, legacy),
    )


def _check_kind(draft: Draft, legacy: LegacySubscription) -> None:
    if legacy.queue == NEIGHBOURS_QUEUE:
        why = f"{_neighbour(draft, legacy)} registered it for its own subscribers: the hierarchy makes it again"
        raise _RefusedError(why, severity=Severity.INFO)
    if legacy.topic.startswith("MQ/"):
        why = "metatopics are not provided in version 7, where such a subscription is accepted and ignored (guide 7.5)"
        raise _RefusedError(why, "D04")
    if legacy.stream == ADMIN_STREAM:
        raise _RefusedError("version 7 publishes nothing on the administration stream", "D05")
    if legacy.expires_at is not None and legacy.expires_at <= draft.now:
        raise _RefusedError(f"it expired at {legacy.expires_at:%Y-%m-%d %H:%M:%S} UTC", severity=Severity.INFO)
    if legacy.client_id:
        why = (
            f"clientId {legacy.client_id} is not a client with a queue (mqrfh2, mqrfh): no queue manager can deliver "
            "to it. Its program has to subscribe again"
        )
        raise _RefusedError(why, "P29", severity=Severity.ERROR)
    if legacy.temp_dynamic:
        raise _RefusedError("its queue is a temporary dynamic one, gone when its program ends", "D17", "D18")
    if _is_of_a_dynamic_queue(draft, legacy):
        why = (
            f"{legacy.queue} is the name of a dynamic queue, and {draft.qmgr} has no such queue: a temporary one is "
            "gone with its program, which registers again. If it is a permanent one, define it, or give --existing "
            "with its definition, and plan again"
        )
        raise _RefusedError(why, "D17", "D18")
    if legacy.sub_point and legacy.format is not PublicationFormat.RFH2:
        raise _RefusedError("subscription points work with MQRFH2 alone (guide 6.2, 8)", severity=Severity.ERROR)


def _neighbour(draft: Draft, legacy: LegacySubscription) -> str:
    named = f"broker {legacy.qmgr}" if legacy.qmgr not in ("", draft.state.qmgr) else "a broker"
    return f"a neighbour, {named},"


def _is_of_a_dynamic_queue(draft: Draft, legacy: LegacySubscription) -> bool:
    """Whether its queue is gone, as far as its name says; a queue of JMS may be a permanent dynamic one (P23)."""
    is_here = legacy.qmgr in ("", draft.state.qmgr, draft.qmgr)
    is_known = legacy.queue in draft.objects.queues or legacy.queue in draft.objects.aliases
    return is_here and not is_known and has_unique_part(legacy.queue) and not legacy.queue.startswith(_OF_JMS)


def _prefix(draft: Draft, key: Key, legacy: LegacySubscription) -> str:
    stream = draft.streams.get(legacy.stream)
    if stream is None:
        why = f"its stream {legacy.stream} has no place in the topic tree"
        raise _RefusedError(why, "P10", severity=Severity.ERROR)
    if not legacy.sub_point:
        return stream.prefix
    point = draft.sub_points.get(legacy.sub_point)
    if point is None:
        why = f"its subscription point {legacy.sub_point} has no place in the topic tree"
        raise _RefusedError(why, "P19", severity=Severity.ERROR)
    if not stream.prefix:
        return point.prefix
    draft.ledger.note(key, "it has both a stream and a subscription point", severity=Severity.WARNING)
    return f"{stream.prefix}{SEPARATOR}{point.prefix}"


def _topic_string(legacy: LegacySubscription, prefix: str) -> str:
    try:
        check_topic_string(legacy.topic)
        whole = add_pattern_prefix(prefix, legacy.topic, legacy.scheme)
        parse_pattern(whole, legacy.scheme)
    except CommandError as error:
        raise _RefusedError(f"it is not a topic string of version 7: {error.why}", severity=Severity.ERROR) from error
    return whole


def _queue(legacy: LegacySubscription) -> str:
    if not is_object_name(legacy.queue):
        what = f"{legacy.queue!r} cannot name a queue" if legacy.queue else "no source names its queue"
        raise _RefusedError(what, "P29", severity=Severity.ERROR)
    return legacy.queue


def _qmgr(draft: Draft, key: Key, legacy: LegacySubscription) -> str:
    if legacy.qmgr in ("", draft.state.qmgr):
        return draft.qmgr
    if not is_object_name(legacy.qmgr):
        raise _RefusedError(f"{legacy.qmgr!r} cannot name a queue manager", "P29", severity=Severity.ERROR)
    return legacy.qmgr


def _name(draft: Draft, key: Key, legacy: LegacySubscription) -> str | None:
    if legacy.name is None:
        return None
    name = subscription_name(legacy.name, legacy.stream, draft.options.separator)
    if len(name) > MQ_SUB_NAME_LENGTH:
        why = f"its name has {len(name)} characters with the stream's appended, more than {MQ_SUB_NAME_LENGTH}"
        raise _RefusedError(why, "D15", severity=Severity.ERROR)
    if name != legacy.name:
        draft.ledger.change(key, f"its name is now {name}: names are unique in the queue manager (guide 7.6.1)", "D15")
    draft.ledger.note(key, "a DeregSub that names its queue alone leaves it, for it has a name (guide 8.5)", "D20")
    if legacy.name.startswith("JMS:"):
        draft.ledger.note(key, "a JMS client resumes it in migration mode where BROKERVER is V2 (guide 7.6)", "P22")
    return name


def _accounting_token(legacy: LegacySubscription) -> bytes:
    if not legacy.accounting_token:
        return MQACT_NONE
    return bytes.fromhex(legacy.accounting_token)[:32].ljust(32, b"\0")


def _correl_id(draft: Draft, key: Key, legacy: LegacySubscription) -> bytes:
    if legacy.correl_id is None:
        if "CorrelAsId" in legacy.options:
            why = "CorrelAsId without a CorrelId: it is found by its queue alone"
            draft.ledger.change(key, why, severity=Severity.WARNING)
        return MQCI_NONE
    return bytes.fromhex(legacy.correl_id)


def _user(draft: Draft, key: Key, legacy: LegacySubscription) -> str:
    if len(legacy.user) > USER_LENGTH:
        cut = legacy.user[:USER_LENGTH]
        draft.ledger.change(key, f"its user {legacy.user} is {cut} in a descriptor", severity=Severity.WARNING)
        return cut
    if not legacy.user:
        why = "no source has its user: a program with a user identifier cannot find it by its identity"
        draft.ledger.change(key, why, "P06", severity=Severity.WARNING)
    return legacy.user


def _selector(draft: Draft, key: Key, legacy: LegacySubscription) -> str | None:
    if legacy.filter is None:
        return None
    of_wmb = draft.state.product is Product.WMB
    if of_wmb and any(word in legacy.filter for word in _BODY_FILTER):
        why = "its filter looks at the message body, which no selector can: without it everything would be delivered"
        raise _RefusedError(why, "D30", severity=Severity.ERROR)
    try:
        compile_selector(legacy.filter)
    except CommandError as error:
        raise _RefusedError(f"its filter is not a selector: {error.why}", "D30", severity=Severity.ERROR) from error
    if of_wmb:
        why = "its filter is a selector on message properties now; version 7.0.1 had none at all (guide 8)"
        draft.ledger.change(key, why, "D30", severity=Severity.WARNING)
    return legacy.filter


def _options(draft: Draft, key: Key, legacy: LegacySubscription) -> tuple[str, ...]:
    unknown = [*legacy.unknown_options, *(word for word in legacy.options if word not in _WORDS)]
    if unknown:
        why = f"unknown options were left out: {', '.join(unknown)}"
        draft.ledger.change(key, why, severity=Severity.WARNING)
    if legacy.client_context:
        draft.ledger.change(key, f"its client context was left out: {legacy.client_context}")
    if "format" in legacy.unknown:
        why = f"no source shows in which header it was registered; {legacy.format.upper()} is assumed"
        draft.ledger.change(key, why, severity=Severity.WARNING)
    if "expires_at" in legacy.unknown:
        why = "no source shows whether it expires; it does not expire now"
        draft.ledger.change(key, why, "P26", severity=Severity.WARNING)
    if "Local" in legacy.options:
        why = "it also receives global publications made on this queue manager (guide 7.5, table 2)"
        draft.ledger.note(key, why, "D02")
    if legacy.queue.startswith(_OF_JMS):
        why = "a JMS client's: with SUBSTORE(QUEUE) it has a record on SYSTEM.JMS.ADMIN.QUEUE too, which stays there"
        draft.ledger.note(key, why, "P23")
    if is_dynamic_name(legacy.queue):
        why = "its queue has the name of a dynamic queue; the subscription stays when a temporary one goes"
        draft.ledger.note(key, why, "P12", "P13", "D17", severity=Severity.WARNING)
    return tuple(word for word in legacy.options if word in _WORDS)


def _identities(draft: Draft, key: Key, legacy: LegacySubscription) -> tuple[str, ...]:
    kept = tuple(dict.fromkeys(i for i in legacy.identities if 0 < len(i) <= MQ_SUB_IDENTITY_LENGTH))
    if len(kept) != len(legacy.identities):
        why = "identities that are empty, too long or repeated were left out of its identity set"
        draft.ledger.change(key, why, severity=Severity.WARNING)
    if legacy.exclusive and len(kept) > 1:
        why = "it is locked for one identity and has several; it is not locked now"
        draft.ledger.change(key, why, severity=Severity.WARNING)
    if legacy.exclusive and not kept:
        why = "it is locked, and no identity is known that it is locked for; it is not locked now"
        draft.ledger.change(key, why, severity=Severity.WARNING)
    return kept


def _expires_at(draft: Draft, key: Key, legacy: LegacySubscription) -> datetime | None:
    if legacy.expires_at is not None:
        why = f"it expires at {legacy.expires_at:%Y-%m-%d %H:%M:%S} UTC; MQSC and messages count from when they are run"
        draft.ledger.note(key, why, "P26")
        if tenths_until(legacy.expires_at, draft.now) == LARGEST_MQLONG:
            why = f"its expiry is more than MQSC and messages hold: they give it {LARGEST_MQLONG} tenths of a second"
            draft.ledger.change(key, why, severity=Severity.WARNING)
    return legacy.expires_at


def _check_queue(draft: Draft, key: Key, made: Subscription) -> None:
    if made.dest_qmgr != draft.qmgr:
        if made.dest_qmgr not in draft.objects.queues:
            why = f"its queue is on {made.dest_qmgr}; see that messages get there"
            draft.ledger.note(key, why, "P29")
        return
    if made.dest_queue not in draft.objects.queues and made.dest_queue not in draft.objects.aliases:
        draft.ensure_queue(made.dest_queue, key)
        draft.ledger.note(key, f"queue {made.dest_queue} was not known and is made")
