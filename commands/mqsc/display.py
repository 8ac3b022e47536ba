"""DISPLAY SUB and DISPLAY SBSTATUS: subscriptions, however they were made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commands.broker.attribute_kinds import Shown
from commands.broker.counts import SubscriptionCounts
from commands.broker.subscription_attributes import BY_KEYWORD, SUB_ID, sub_type, values_of
from commands.broker.times import tenths_until
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, displayed, matches_name, select
from commands.mqsc.attributes import SUB
from commands.mqsc.model import Command
from commands.mqsc.values import read, shown_moment, word_of
from rfh2.mqi_constants import MQCI_NONE
from streams.subscriptions import Subscription

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
