"""DEFINE, ALTER, DELETE and DISPLAY of subscriptions, however they were made (guide 2.5.4, 4.6.1, 4.8).

What DEFINE SUB makes is durable, delivers to a queue that is given, and gets the retained publications that it matches
at once, as the administrator's subscription of guide 4.3 does; REQONLY(YES) and a SUBLEVEL other than 1 get none. Its
topic, wildcard scheme and SELECTOR cannot be changed: delete it first (guide 2.5.4, note to figure 8; 7.5).

DESTCORL: left out or blank, publications bear the subscription's identifier; zeros keep the publisher's CorrelId.
GROUPSUB is the bridge's own keyword for MQSO_GROUP_SUB (guide 4.8.3), which MQSC does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from commands.broker.attribute_kinds import Shown
from commands.broker.authority import RecordedAuthority
from commands.broker.context import input_queue
from commands.broker.counts import SubscriptionCounts
from commands.broker.objects import LocalQueue, is_object_name, new_queue
from commands.broker.subscription_attributes import BY_KEYWORD, OPTIONS, SUB_ID, sub_type, values_of
from commands.broker.times import tenths_until
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, Change, DefinitionStored, displayed, done, matches_name, select
from commands.mqsc.attributes import SUB, Settings, read_settings
from commands.mqsc.script import Command, MqscError
from commands.mqsc.values import folded_user_notes, object_name, read, shown_moment, single, word_of
from rfh2 import constants as mq
from rfh2.errors import CommandError
from rfh2.mqi_constants import MQCI_NONE
from streams.operations import AlterSubscription, Subscribe, Unsubscribe
from streams.patterns import escape_char_pattern
from streams.selectors import compile_selector, registered_selector
from streams.subscriptions import PublicationFormat, Subscription, SubscriptionOptions, WildcardScheme
from streams.topic_strings import construct_topic_string

_KEYWORDS: Final = tuple(BY_KEYWORD)
# So DISPLAY SUB begins; the others follow, all in the order of the table.
_FIRST: Final = (
    *(keyword for keyword in _KEYWORDS[: _KEYWORDS.index("PSPROP") + 1] if keyword != "GROUPSUB"),
    "SELECTOR",
    "USERDATA",
)
STATUS_KEYWORDS: Final = frozenset(["SUBID", "SUBUSER", "SUBTYPE", "DURABLE", "RESMDATE", "RESMTIME", "ACTCONN"])
# ACTCON is what guide 2.5.3.1 prints.
STATUS_BLANK: Final = frozenset(["ACTCON", "LMSGDATE", "LMSGTIME", "MCASTREL", "NUMMSGS"])
_NOTHING: Final = SubscriptionCounts()
_SCOPE_WORDS: Final = frozenset({"SUBID", "SUBTYPE", "DURABLE", "DISTYPE"})


def display(command: Command, administration: Administration) -> Answer:
    """DISPLAY SUB: by name, generic name or SUBID, with SUBTYPE, DURABLE, DISTYPE and WHERE."""
    defined = _word(command, "DISTYPE", "RESOLVED", "DEFINED") == "DEFINED"
    rows = (_row(s, administration, defined) for s in _candidates(command, administration))
    known = frozenset(a.keyword for a in SUB.attributes) | {"SUB", "SUBID", "SUBTYPE", "DURABLE", "CRDATE", "CRTIME"}
    known |= {"DISTYPE"}
    found = select(
        command,
        rows,
        ("SUBID", "SUB"),
        known=known,
        without_effect=SUB.without_effect,
        passed_over=_scope(command),
    )
    return displayed(answers.SUB_DISPLAY, found)


def display_status(command: Command, administration: Administration) -> Answer:
    """DISPLAY SBSTATUS: NUMMSGS, LMSGDATE and LMSGTIME too, where messages are counted; else those are blank."""
    candidates = _candidates(command, administration)
    counts = counts_of_subscriptions(administration)
    rows = ({"SUB": s.name or "", "TOPICSTR": s.topic_string, **status_row(s, counts)} for s in candidates)
    known = STATUS_KEYWORDS | {"SUB", "TOPICSTR"}
    found = select(
        command,
        rows,
        ("SUB", "SUBID"),
        known=known,
        without_effect=STATUS_BLANK,
        passed_over=_scope(command),
        brief=False,
    )
    return displayed(answers.SBSTATUS_DISPLAY, found)


def shown_sub_id(subscription: Subscription) -> str:
    """SUBID as DISPLAY prints it: 48 hexadecimal digits."""
    return subscription.sub_id.hex().upper()


def _durable(subscription: Subscription) -> str:
    return "NO" if subscription.temporary else "YES"


def _candidates(command: Command, administration: Administration) -> list[Subscription]:
    """The subscriptions that DISPLAY may show: by name and SUBID, SUBTYPE and DURABLE; by name, then as registered."""
    pattern = command.name.text if command.name else "*"
    sub_id = command.keyword("SUBID")
    if sub_id is not None and sub_id.values is None:
        sub_id = None  # it asks for the attribute
    if command.name is None and sub_id is None:
        raise answers.missing_keyword("SUB")
    wanted_id = read(SUB_ID.kind, sub_id) if sub_id is not None else None
    kind = _word(command, "SUBTYPE", "USER", "ADMIN", "API", "PROXY", "ALL")
    durable = _word(command, "DURABLE", "ALL", "YES", "NO")
    now = administration.now
    found = [
        s
        for s in administration.topic_space.subscriptions()
        if matches_name(pattern, s.name or "")
        and wanted_id in (None, s.sub_id)
        and (kind in ("ALL", sub_type(s)) or (kind == "USER" and not s.is_proxy))
        and durable in ("ALL", _durable(s))
        and (s.expires_at is None or s.expires_at > now)
    ]
    return sorted(found, key=lambda s: (s.name or "", s.sub_id))


def _scope(command: Command) -> frozenset[str]:
    """The keywords that say which subscriptions to look at, where they have a value."""
    return frozenset(k.name for k in command.keywords if k.values is not None) & _SCOPE_WORDS


def _word(command: Command, keyword: str, default: str, *others: str) -> str:
    """The value of a keyword that chooses what DISPLAY looks at. Without a value it asks for the attribute."""
    given = command.keyword(keyword)
    if given is None or given.values is None:
        return default
    return word_of(given, default, *others)


def _row(subscription: Subscription, administration: Administration, defined: bool) -> dict[str, Shown]:
    left = tenths_until(subscription.expires_at, administration.now)
    values = values_of(subscription, left)
    row: dict[str, Shown] = dict.fromkeys(_FIRST, "")
    row |= {keyword: BY_KEYWORD[keyword].kind.show(value) for keyword, value in values.items()}
    if defined:
        row["TOPICSTR"] = _defined_string(subscription, administration)
    row["DISTYPE"] = "DEFINED" if defined else "RESOLVED"
    row["DESTCORL"] = _destination_correl_id(subscription).hex().upper()
    row["SUBTYPE"] = sub_type(subscription)
    return row | shown_moment("CRDATE", "CRTIME", subscription.created)


def _defined_string(subscription: Subscription, administration: Administration) -> str:
    """TOPICSTR as it was defined, without the topic object's part; that is known only while the object is there."""
    topic_object = administration.objects.topics.get(subscription.topic_object)
    if topic_object is None or not topic_object.topic_string:
        return subscription.topic_string
    if subscription.topic_string == topic_object.topic_string:
        return ""
    return subscription.topic_string.removeprefix(topic_object.topic_string + "/")


def _destination_correl_id(subscription: Subscription) -> bytes:
    if subscription.keep_correl_id or subscription.correl_id != MQCI_NONE:
        return subscription.correl_id
    return subscription.sub_id


def counts_of_subscriptions(administration: Administration) -> Mapping[bytes, SubscriptionCounts] | None:
    """What is counted of all subscriptions; None where nothing is."""
    counters = administration.queues.counters
    return None if counters is None else counters.subscriptions()


def status_row(subscription: Subscription, counts: Mapping[bytes, SubscriptionCounts] | None) -> dict[str, Shown]:
    """What SBSTATUS and TPSTATUS TYPE(SUB) both show of a subscription; blanks where nothing is counted."""
    row: dict[str, Shown] = {
        "SUBID": shown_sub_id(subscription),
        "SUBUSER": subscription.user,
        "SUBTYPE": sub_type(subscription),
        "DURABLE": _durable(subscription),
        **shown_moment("RESMDATE", "RESMTIME", subscription.created),
        "ACTCONN": "0" * 48,
    }
    if counts is None:
        return row
    counted = counts.get(subscription.sub_id, _NOTHING)
    return row | shown_moment("LMSGDATE", "LMSGTIME", counted.last) | {"NUMMSGS": counted.delivered}


_TOPIC_FIELDS: Final = ("topic_string", "topic_object")
_NO_TOKEN: Final = bytes(32)


def define(command: Command, administration: Administration) -> Answer:
    """DEFINE SUB: a new subscription, or with REPLACE an old one made anew on its topic."""
    name = _name(command)
    space = administration.topic_space
    existing = space.by_name(name)
    if existing is not None and command.keyword("REPLACE") is None:
        raise answers.already_exists(name)
    if command.keyword("REPLACE") and command.keyword("NOREPLACE"):
        raise MqscError("AMQ8411", "Duplicate Keyword Error.")
    settings = read_settings(command, SUB, frozenset({"REPLACE", "NOREPLACE", "LIKE", "CMDSCOPE"}))
    if not any(settings.fields.get(field) for field in _TOPIC_FIELDS):
        raise answers.missing_keyword("TOPICSTR or TOPICOBJ")
    pattern = _pattern(command, administration)
    # The topic is never taken from LIKE, because it distinguishes two subscriptions.
    pattern = replace(pattern, name=name, topic_string="", topic_object="", created=administration.now)
    made = _changed(pattern, settings, administration)
    made = replace(made, topic_string=_topic_string(settings, made.wildcard, administration))
    if existing is not None:
        made = replace(
            made,
            sub_id=existing.sub_id,
            created=existing.created,
            prefix=existing.prefix,
            stream=existing.stream,
            sub_point=existing.sub_point,
            identities=existing.identities,
            exclusive=existing.exclusive,
        )
        _check_same_place(existing, made)
    else:
        made = replace(made, sub_id=administration.new_sub_id())
    made = replace(made, admin=True)
    operation = Subscribe if existing is None else AlterSubscription
    _check_authority(made, administration)
    changes = _apply_checked(operation(made, send_retained=existing is None), administration)
    return done(answers.SUB_CREATED, *changes, notes=_notes(command, settings))


def alter(command: Command, administration: Administration) -> Answer:
    """ALTER SUB, by name or by SUBID: the attributes that the command names. It makes the subscription ADMIN."""
    existing = _existing(command, administration)
    settings = read_settings(command, SUB, frozenset({"SUBID", "CMDSCOPE"}))
    made = _changed(existing, settings, administration)
    if any(field in settings.fields for field in _TOPIC_FIELDS):
        given = {field: settings.fields.get(field, "") for field in _TOPIC_FIELDS}
        made = replace(made, topic_string=_topic_string(Settings(given, ()), made.wildcard, administration))
    _check_same_place(existing, made)
    made = replace(made, topic_object=existing.topic_object, admin=True)
    if (made.user, made.dest_qmgr, made.dest_queue) != (existing.user, existing.dest_qmgr, existing.dest_queue):
        _check_authority(made, administration)
    changes = _apply_checked(AlterSubscription(made, send_retained=False), administration)
    return done(answers.SUB_CHANGED, *changes, notes=_notes(command, settings))


def delete(command: Command, administration: Administration) -> Answer:
    """DELETE SUB, by name or by SUBID; however it was made."""
    existing = _existing(command, administration)
    read_settings(command, replace(SUB, attributes=(), without_effect=frozenset()), frozenset({"SUBID", "CMDSCOPE"}))
    return done(answers.SUB_DELETED, *_apply(Unsubscribe(existing), administration))


def _name(command: Command) -> str:
    if command.name is None:
        raise answers.missing_keyword("SUB")
    name = command.name.text.rstrip(" ")
    if not name or len(name) > mq.MQ_SUB_NAME_LENGTH:
        raise MqscError("AMQ8413", "String Length Error.", (f"A name has 1 to {mq.MQ_SUB_NAME_LENGTH} characters.",))
    return name


def _existing(command: Command, administration: Administration) -> Subscription:
    """The subscription that ALTER or DELETE means."""
    sub_id = command.keyword("SUBID")
    space = administration.topic_space
    if sub_id is not None:
        subscription = space.subscription(read(SUB_ID.kind, sub_id))
        wanted = command.name.text if command.name else None
        if subscription is None or (wanted is not None and subscription.name != wanted):
            raise answers.not_found(single(sub_id).text)
        return subscription
    name = _name(command)
    subscription = space.by_name(name)
    if subscription is None:
        raise answers.not_found(name)
    return subscription


def _pattern(command: Command, administration: Administration) -> Subscription:
    """The source of attributes that DEFINE SUB does not give."""
    like = command.keyword("LIKE")
    if like is not None:
        source = single(like).text
        subscription = administration.topic_space.by_name(source)
        if subscription is None:
            raise answers.not_found(source)
        begun, end = subscription.renewed or subscription.created, subscription.expires_at
        lifetime = None if end is None else end - begun
        return replace(
            subscription,
            expires_at=None if lifetime is None else administration.now + lifetime,
            renewed=None,
            stream=None,
            sub_point=None,
            prefix="",
            identities=(),
            exclusive=False,
        )
    return Subscription(
        sub_id=b"",
        topic_string="",
        dest_queue="",
        dest_qmgr=administration.objects.qmgr.name,
        created=administration.now,
        user=administration.user,
        options=SubscriptionOptions(variable_user_id=True),
        format=PublicationFormat.PROPERTIES,
    )


def _changed(subscription: Subscription, settings: Settings, administration: Administration) -> Subscription:
    """*subscription* with what the keywords say, its topic string apart."""
    fields = dict(settings.fields)
    fields.pop("topic_string", None)
    options = {each.field: fields.pop(each.field) for each in OPTIONS if each.field in fields}
    if fields.pop("managed", False):
        why = "DESTCLAS(MANAGED) needs a program that holds the subscription open; give the queue with DEST."
        raise answers.failed(why)
    if "lifetime" in fields:
        lifetime = fields.pop("lifetime")
        left = None if lifetime is None else administration.now + timedelta(milliseconds=100 * lifetime)
        begins_now = left is None or subscription.created == administration.now
        fields |= {"expires_at": left, "renewed": None if begins_now else administration.now}
    if "correl_id" in fields:
        given = fields["correl_id"]
        fields["correl_id"] = given or MQCI_NONE
        fields["keep_correl_id"] = given == MQCI_NONE
    if "accounting_token" in fields:
        fields["accounting_token"] = fields["accounting_token"] or _NO_TOKEN
    if "dest_qmgr" in fields:
        fields["dest_qmgr"] = fields["dest_qmgr"] or administration.objects.qmgr.name
    if "user" in fields:
        fields["user"] = fields["user"].rstrip(" ") or administration.user
    for field in ("selector", "user_data"):
        if field in fields:
            fields[field] = fields[field] or None
    changed: Subscription = replace(subscription, **fields)
    return replace(changed, options=replace(changed.options, **options))


def _topic_string(settings: Settings, scheme: WildcardScheme, administration: Administration) -> str:
    """The topic string of TOPICOBJ, whose wildcards mean nothing, then ``/`` and TOPICSTR (guide 2.5.2)."""
    name = settings.fields.get("topic_object", "")
    above = ""
    if name:
        topic_object = administration.objects.topics.get(object_name(name, topic=True))
        if topic_object is None:
            raise answers.not_found(name)
        above = topic_object.topic_string
        if scheme is WildcardScheme.CHAR:
            above = escape_char_pattern(above)
    try:
        return construct_topic_string(above, settings.fields.get("topic_string", ""))
    except CommandError as error:
        raise answers.failed_with(error) from error


def _check_same_place(before: Subscription, after: Subscription) -> None:
    if (before.topic_string, before.wildcard) != (after.topic_string, after.wildcard):
        why = "TOPICOBJ, TOPICSTR and WSCHEMA cannot be changed; delete the subscription first."
        raise answers.failed(why, mq.MQRC_TOPIC_NOT_ALTERABLE)
    if before.selector != after.selector:
        why = "SELECTOR cannot be changed; delete the subscription first (reason 2524)."
        raise answers.failed(why, mq.MQRC_SELECTOR_NOT_ALTERABLE)


def _apply_checked(operation: Subscribe | AlterSubscription, administration: Administration) -> list[Change]:
    """Carry *operation* out if the subscription can be; the queue that it delivers to comes first."""
    _check(operation.subscription, administration, new=isinstance(operation, Subscribe))
    queue = _missing_queue(operation.subscription, administration)
    effects = _apply(operation, administration)
    if queue is None:
        return effects
    administration.objects.put(queue)
    return [DefinitionStored(queue), *effects]


def _check(made: Subscription, administration: Administration, new: bool) -> None:
    """Raises MqscError; SUB and DURSUB of the topic matter to a new subscription only, as they do to MQSUB."""
    if not made.dest_queue:
        raise answers.missing_keyword("DEST")
    if made.grouped and (made.correl_id == MQCI_NONE or made.keep_correl_id):
        raise answers.failed("GROUPSUB(YES) needs a DESTCORL that all subscriptions of the group share.")
    try:
        if made.selector is not None:
            (compile_selector if new else registered_selector)(made.selector)
        resolved = administration.objects.topics.resolve_subscription(made.topic_string, made.wildcard)
    except CommandError as error:
        raise answers.failed_with(error) from error
    if new and not resolved.sub:
        why = f"Topic object {resolved.object_name} is SUB(DISABLED) (reason {mq.MQRC_SUB_INHIBITED})."
        raise answers.failed(why, mq.MQRC_SUB_INHIBITED)
    if new and not resolved.durable_subs:
        why = f"Topic object {resolved.object_name} is DURSUB(NO) (reason {mq.MQRC_DURABILITY_NOT_ALLOWED})."
        raise answers.failed(why, mq.MQRC_DURABILITY_NOT_ALLOWED)


def _check_authority(made: Subscription, administration: Administration) -> None:
    """Whether SUBUSER may put on DEST (guide 5, table 2); an administrator could grant it to himself: he always may."""
    if made.user == administration.user or made.dest_qmgr != administration.objects.qmgr.name:
        return
    authority = RecordedAuthority(administration.objects, administration.groups_of)
    if not authority.may_put(made.user, made.dest_queue):
        raise answers.not_authorized(f"{made.user or 'no user'} may not put on {made.dest_queue}.")


def _missing_queue(made: Subscription, administration: Administration) -> LocalQueue | None:
    """The queue that is to be made for a destination here that is not there; a strict queue manager makes none."""
    objects, name = administration.objects, made.dest_queue
    if made.dest_qmgr != objects.qmgr.name:
        return None
    if (read := input_queue(name, objects)) is not None:
        why = f"The queue manager takes commands from {read}, so no subscription can deliver to it (reason 2522)."
        raise answers.failed(why)
    found = objects.queue(name)
    if found is not None and found.is_temporary:
        why = f"{name} is a temporary dynamic queue; only a Register Subscriber command may name it (reason 2522)."
        raise answers.failed(why)
    if name in objects.queues:
        return None
    if name in objects.models:
        raise answers.failed(
            f"{name} is a model queue; publications are delivered to queues made from it (reason 2522)."
        )
    alias = objects.aliases.get(name)
    if alias is not None:
        if alias.target_type == "TOPIC":
            raise answers.failed(f"{name} is an alias of a topic; publications are delivered to queues only.")
        if alias.target in objects.queues:
            return None
        name = alias.target
    if objects.qmgr.strict or name in objects.aliases or not is_object_name(name):
        raise answers.not_found(name)
    return new_queue(name)


def _apply(operation: Subscribe | AlterSubscription | Unsubscribe, administration: Administration) -> list[Change]:
    try:
        return list(administration.topic_space.apply(operation, administration.now))
    except CommandError as error:
        raise answers.failed_with(error) from error


def _notes(command: Command, settings: Settings) -> tuple[str, ...]:
    return (*_ignored(settings), *folded_user_notes(command.keyword("SUBUSER")))


def _ignored(settings: Settings) -> tuple[str, ...]:
    return (f"without effect here: {' '.join(settings.ignored)}",) if settings.ignored else ()
