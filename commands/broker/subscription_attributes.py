"""The attributes of a subscription, once: what each language calls them, what DEFINE SUB gives them, where they stand.

The languages are MQSC, PCF, the MQSD of MQSUB, and the registration options of RegSub. Their readers and writers go
through ``SUBSCRIPTION``; where the order of attributes is part of what a language prints, its writer has that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

from commands.broker import attribute_kinds as kinds
from commands.model import RegOpt
from rfh2 import mqi_constants as m, pcf_admin_names as c
from rfh2.constants import MQ_SELECTOR_LENGTH, MQ_TOPIC_STR_LENGTH, MQ_USER_DATA_LENGTH
from rfh2.pcf_names import MQBACF_SUB_ID, MQCA_TOPIC_STRING
from streams.subscriptions import (
    DeliveryPersistence,
    PublicationFormat,
    Subscription,
    SubscriptionOptions,
    WildcardScheme,
)

_UNSAID: Final = object()


@dataclass(frozen=True, slots=True)
class SubscriptionAttribute(kinds.Attribute):
    """One attribute in all languages. keyword: "" where MQSC has none."""

    default: Any = _UNSAID  # of DEFINE SUB; scripts say what differs from it. Without one, scripts never say it
    always: bool = False  # scripts say it even where it is the default
    fixed: bool = False  # ALTER SUB cannot change it (guide 2.5.4, 7.5)
    shown_only: bool = False  # DISPLAY has it, DEFINE and ALTER do not take it
    option: RegOpt | None = None  # the registration option: then it is a field of SubscriptionOptions
    mqsd: str = ""  # the field of the MQSD
    mqso: Mapping[Any, int] = field(default_factory=dict)  # MQSO_* by value

    @property
    def in_scripts(self) -> bool:
        """Whether DEFINE SUB in a script says it."""
        return self.default is not _UNSAID

    def of(self, subscription: Subscription) -> Any:
        """Its value in *subscription*."""
        return getattr(subscription if self.option is None else subscription.options, self.field)


SUB_ID: Final = SubscriptionAttribute("SUBID", "sub_id", kinds.Hexadecimal(24), MQBACF_SUB_ID, shown_only=True)
SUB_NAME: Final = SubscriptionAttribute("SUB", "name", kinds.Text(0), c.MQCACF_SUB_NAME, shown_only=True)
SUB_USER: Final = SubscriptionAttribute(
    "SUBUSER", "user", kinds.Text(12, filled_to=12), c.MQCACF_SUB_USER_ID, default=""
)
DISPLAY_TYPE: Final = SubscriptionAttribute(
    "DISTYPE",
    "",
    kinds.words(RESOLVED=c.MQDOPT_RESOLVED, DEFINED=c.MQDOPT_DEFINED),
    c.MQIA_DISPLAY_TYPE,
    shown_only=True,
)
DURABLE: Final = SubscriptionAttribute(
    "DURABLE",
    "temporary",
    kinds.Choice(
        {"YES": False, "NO": True},
        {"YES": c.MQSUB_DURABLE_YES, "NO": c.MQSUB_DURABLE_NO, "ALL": c.MQSUB_DURABLE_ALL},
    ),
    c.MQIACF_DURABLE_SUBSCRIPTION,
    shown_only=True,
    mqso={False: m.MQSO_DURABLE},
)
SUB_TYPE: Final = SubscriptionAttribute(
    "SUBTYPE",
    "",
    kinds.words(
        ADMIN=c.MQSUBTYPE_ADMIN,
        API=c.MQSUBTYPE_API,
        PROXY=c.MQSUBTYPE_PROXY,
        USER=c.MQSUBTYPE_USER,
        ALL=c.MQSUBTYPE_ALL,
    ),
    c.MQIACF_SUB_TYPE,
    shown_only=True,
)
_PSPROP: Final = kinds.Choice(
    {
        "MSGPROP": PublicationFormat.PROPERTIES,
        "COMPAT": PublicationFormat.RFH1,
        "NONE": PublicationFormat.NONE,
        "RFH2": PublicationFormat.RFH2,
    },
    {
        "MSGPROP": c.MQPSPROP_MSGPROP,
        "COMPAT": c.MQPSPROP_COMPAT,
        "NONE": c.MQPSPROP_NONE,
        "RFH2": c.MQPSPROP_RFH2,
    },
    shown_as={PublicationFormat.PCF: "COMPAT"},
)
_FORMAT: Final = SubscriptionAttribute(
    "PSPROP",
    "format",
    _PSPROP,
    c.MQIACF_PUBSUB_PROPERTIES,
    default=PublicationFormat.PROPERTIES,
    always=True,
)
_NOT_IN_MQSC: Final = kinds.choice(YES=(True, 0), NO=(False, 0))

SUBSCRIPTION: Final = (
    SUB_ID,
    SUB_NAME,
    SubscriptionAttribute(
        "TOPICSTR",
        "topic_string",
        kinds.Text(MQ_TOPIC_STR_LENGTH),
        MQCA_TOPIC_STRING,
        default="",
        always=True,
        fixed=True,
        mqsd="ObjectString",
    ),
    SubscriptionAttribute("TOPICOBJ", "topic_object", kinds.Text(48, filled_to=48), c.MQCA_TOPIC_NAME),
    DISPLAY_TYPE,
    SubscriptionAttribute("DEST", "dest_queue", kinds.Name(), c.MQCACF_DESTINATION, default="", always=True),
    SubscriptionAttribute("DESTQMGR", "dest_qmgr", kinds.Name(), c.MQCACF_DESTINATION_Q_MGR, default=""),
    SubscriptionAttribute(
        "DESTCLAS",
        "managed",
        kinds.choice(PROVIDED=(False, c.MQDC_PROVIDED), MANAGED=(True, c.MQDC_MANAGED)),
        c.MQIACF_DESTINATION_CLASS,
        mqso={True: m.MQSO_MANAGED},
    ),
    SubscriptionAttribute(
        "DESTCORL",
        "correl_id",
        kinds.Hexadecimal(24),
        c.MQBACF_DESTINATION_CORREL_ID,
        default=m.MQCI_NONE,
        mqsd="SubCorrelId",
    ),
    DURABLE,
    SubscriptionAttribute(
        "EXPIRY",
        "lifetime",  # in tenths of a second, that are left
        kinds.number(1, kinds.MAX_INTEGER, UNLIMITED=(None, c.MQEI_UNLIMITED)),
        c.MQIACF_EXPIRY,
        default=None,
        mqsd="SubExpiry",
    ),
    # The bridge's own keyword.
    SubscriptionAttribute(
        "GROUPSUB", "grouped", kinds.choice(YES=(True, 0), NO=(False, 0)), mqso={True: m.MQSO_GROUP_SUB}
    ),
    SUB_TYPE,
    SubscriptionAttribute("CRDATE", "", kinds.Text(12, filled_to=12), c.MQCA_CREATION_DATE, shown_only=True),
    SubscriptionAttribute("CRTIME", "", kinds.Text(8, filled_to=8), c.MQCA_CREATION_TIME, shown_only=True),
    _FORMAT,
    SubscriptionAttribute(
        "PUBACCT",
        "accounting_token",
        kinds.Hexadecimal(32),
        c.MQBACF_ACCOUNTING_TOKEN,
        default=bytes(32),
        mqsd="PubAccountingToken",
    ),
    SubscriptionAttribute(
        "PUBAPPID",
        "appl_identity_data",
        kinds.Text(32, filled_to=32),
        c.MQCACF_APPL_IDENTITY_DATA,
        default="",
        mqsd="PubApplIdentityData",
    ),
    SubscriptionAttribute(
        "PUBPRTY",
        "pub_priority",
        kinds.number(0, 9, ASPUB=(None, c.MQPRI_PRIORITY_AS_PUBLISHED), ASQDEF=(-1, c.MQPRI_PRIORITY_AS_Q_DEF)),
        c.MQIACF_PUB_PRIORITY,
        default=None,
    ),
    SubscriptionAttribute(
        "REQONLY",
        "pub_on_req_only",
        kinds.choice(YES=(True, c.MQRU_PUBLISH_ON_REQUEST), NO=(False, c.MQRU_PUBLISH_ALL)),
        c.MQIACF_REQUEST_ONLY,
        default=False,
        option=RegOpt.PUB_ON_REQ_ONLY,
        mqso={True: m.MQSO_PUBLICATIONS_ON_REQUEST},
    ),
    SubscriptionAttribute(
        "SELECTOR",
        "selector",
        kinds.Text(MQ_SELECTOR_LENGTH),
        c.MQCACF_SUB_SELECTOR,
        default=None,
        fixed=True,
        mqsd="SelectionString",
    ),
    SubscriptionAttribute("SUBLEVEL", "sub_level", kinds.number(0, 9), c.MQIACF_SUB_LEVEL, default=1),
    SubscriptionAttribute(
        "SUBSCOPE",
        "local",
        kinds.choice(QMGR=(True, c.MQTSCOPE_QMGR), ALL=(False, c.MQTSCOPE_ALL)),
        c.MQIACF_SUBSCRIPTION_SCOPE,
        default=False,
        option=RegOpt.LOCAL,
        mqso={True: m.MQSO_SCOPE_QMGR},
    ),
    SUB_USER,
    SubscriptionAttribute(
        "USERDATA",
        "user_data",
        kinds.Text(MQ_USER_DATA_LENGTH),
        c.MQCACF_SUB_USER_DATA,
        default=None,
        mqsd="SubUserData",
    ),
    SubscriptionAttribute(
        "VARUSER",
        "variable_user_id",
        kinds.choice(ANY=(True, c.MQVU_ANY_USER), FIXED=(False, c.MQVU_FIXED_USER)),
        c.MQIACF_VARIABLE_USER_ID,
        default=True,
        always=True,
        option=RegOpt.VARIABLE_USER_ID,
        mqso={True: m.MQSO_ANY_USERID, False: m.MQSO_FIXED_USERID},
    ),
    SubscriptionAttribute(
        "WSCHEMA",
        "wildcard",
        kinds.choice(TOPIC=(WildcardScheme.TOPIC, c.MQWS_TOPIC), CHAR=(WildcardScheme.CHAR, c.MQWS_CHAR)),
        c.MQIACF_WILDCARD_SCHEMA,
        default=WildcardScheme.TOPIC,
        always=True,
        fixed=True,
        mqso={WildcardScheme.CHAR: m.MQSO_WILDCARD_CHAR, WildcardScheme.TOPIC: m.MQSO_WILDCARD_TOPIC},
    ),
    SubscriptionAttribute(
        "",
        "new_pubs_only",
        _NOT_IN_MQSC,
        option=RegOpt.NEW_PUBS_ONLY,
        mqso={True: m.MQSO_NEW_PUBLICATIONS_ONLY},
    ),
    SubscriptionAttribute("", "inform_if_ret", _NOT_IN_MQSC, option=RegOpt.INFORM_IF_RET),
    SubscriptionAttribute("", "incl_stream_name", _NOT_IN_MQSC, option=RegOpt.INCL_STREAM_NAME),
    SubscriptionAttribute("", "dups_ok", _NOT_IN_MQSC, option=RegOpt.DUPS_OK),
    SubscriptionAttribute("", "anonymous", _NOT_IN_MQSC, option=RegOpt.ANON),
)

BY_KEYWORD: Final[Mapping[str, SubscriptionAttribute]] = MappingProxyType(
    {attribute.keyword: attribute for attribute in SUBSCRIPTION if attribute.keyword}
)
MQSO_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {value: name for name, value in vars(m).items() if name.startswith("MQSO_")}
)
_WITH_MQSO: Final = tuple(attribute for attribute in SUBSCRIPTION if attribute.mqso)
_BY_FIELD: Final = {attribute.field: attribute for attribute in SUBSCRIPTION if attribute.option is not None}
OPTIONS: Final = tuple(_BY_FIELD[each.name] for each in fields(SubscriptionOptions) if each.name in _BY_FIELD)
"""The registration options that a subscription keeps as yes or no, in the order of ``SubscriptionOptions``."""
PERSISTENCE: Final[Mapping[str, DeliveryPersistence]] = MappingProxyType(
    {
        RegOpt.PERS: DeliveryPersistence.PERSISTENT,
        RegOpt.NON_PERS: DeliveryPersistence.NON_PERSISTENT,
        RegOpt.PERS_AS_PUB: DeliveryPersistence.AS_PUBLISHED,
        RegOpt.PERS_AS_QUEUE: DeliveryPersistence.AS_QUEUE,
    }
)
"""What the four registration options of persistence ask for."""
PERSISTENCE_WORDS: Final[Mapping[DeliveryPersistence, RegOpt]] = MappingProxyType(
    {kept: RegOpt(word) for word, kept in PERSISTENCE.items()}
)
PSPROP: Final[Mapping[PublicationFormat, int]] = MappingProxyType(
    {each: _PSPROP.numbers[_PSPROP.words[each]] for each in PublicationFormat}
)
"""MQPSPROP_* of each format."""


def values_of(subscription: Subscription, lifetime: int | None) -> dict[str, Any]:
    """What MQSC shows or sets of *subscription*, by keyword. lifetime: tenths of a second that are left, or None."""
    return {
        each.keyword: lifetime if each.field == "lifetime" else each.of(subscription)
        for each in BY_KEYWORD.values()
        if each.field
    }


def in_scripts(*first: str) -> tuple[SubscriptionAttribute, ...]:
    """The attributes that scripts say: those with the keywords *first*, then the others in the order of the table."""
    named = {keyword: BY_KEYWORD[keyword] for keyword in first}
    return tuple(each for each in {**named, **BY_KEYWORD}.values() if each.in_scripts)


def options_of(given: Iterable[str]) -> SubscriptionOptions:
    """What a subscription keeps of registration options; of the four of persistence the last one counts."""
    asked = tuple(given)
    persistence = DeliveryPersistence.AS_PUBLISHED
    for word in asked:
        persistence = PERSISTENCE.get(word, persistence)
    return SubscriptionOptions(**{each.field: each.option in asked for each in OPTIONS}, persistence=persistence)


def options_given(options: SubscriptionOptions) -> list[RegOpt]:
    """The registration options that say yes; nothing of persistence."""
    return [each.option for each in OPTIONS if each.option is not None and getattr(options, each.field)]


def words_of(options: SubscriptionOptions) -> list[str]:
    """The same as words, persistence last; PersAsPub, the default, is left out."""
    given = [option.value for option in options_given(options)]
    persistence = PERSISTENCE_WORDS[options.persistence]
    return given if persistence is RegOpt.PERS_AS_PUB else [*given, persistence.value]


def subscription_options(subscription: Subscription) -> int:
    """MQSO_* of a subscription that exists."""
    return sum(each.mqso.get(each.of(subscription), 0) for each in _WITH_MQSO)


def options_of_mqso(bits: int) -> dict[str, bool]:
    """The fields of ``SubscriptionOptions`` that MQSO_* say."""
    return {each.field: bool(bits & each.mqso[True]) for each in OPTIONS if each.mqso}


def sub_type(subscription: Subscription) -> str:
    """ADMIN for what an administrator made or changed, API for what a program asked for, PROXY for a neighbour's."""
    if subscription.is_proxy:
        return "PROXY"
    return "ADMIN" if subscription.admin else "API"
