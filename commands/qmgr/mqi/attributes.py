"""What MQINQ tells of a queue manager and of a queue, and what MQSET changes of one (IBM's descriptions of both)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from commands.broker.attribute_kinds import MAX_INTEGER
from commands.broker.objects import ADMIN_COMMAND_QUEUE, PREDEFINED, LocalQueue, QueueManager
from commands.qmgr.mqi.refusals import MqiError
from rfh2 import mqi_constants as m, pcf_admin_names as c
from rfh2.ccsid import QMGR_CCSID
from rfh2.pcf_names import MQCA_Q_MGR_NAME, MQCA_Q_NAME

COMMAND_LEVEL: Final = 943
_PLATFORM_UNIX: Final = 3
_FIRST_CHARACTER_SELECTOR: Final = 2001
_NAME, _DESCRIPTION, _DATE, _TIME = 48, 64, 12, 8
_DEFINITION_TYPES: Final = {PREDEFINED: 1, "PERMDYN": 2, "TEMPDYN": 3, "SHAREDYN": 4}

_TRIGGER_TYPES: Final = ("NONE", "FIRST", "EVERY", "DEPTH")
# What MQSC calls them.
PUT_RESPONSES: Final = {"SYNC": c.MQPRT_SYNC_RESPONSE, "ASYNC": c.MQPRT_ASYNC_RESPONSE}
PROPERTIES: Final = {
    "COMPAT": m.MQPROP_COMPATIBILITY,
    "NONE": m.MQPROP_NONE,
    "ALL": m.MQPROP_ALL,
    "FORCE": m.MQPROP_FORCE_MQRFH2,
    "V6COMPAT": m.MQPROP_V6COMPAT,
}

MARKED_US: Final = 5_000_000
"""How long a mark lasts that programs share: MARKINT, whose default this is."""

_Of = TypeVar("_Of")

Values = tuple[list[int], list[tuple[int, str]], int]
"""Integers, characters with their lengths, both in the order of the selectors; 2068 if one is not for it, else 0."""


@dataclass(frozen=True, slots=True)
class QueueUse:
    """A queue and how it is used now. depth: messages that a get would find."""

    queue: LocalQueue
    depth: int
    inputs: int
    outputs: int


# What is not done here, as a queue manager says that it is off, or that there is none of it.
_OFF_FOR_QUEUE_MANAGERS: Final = (
    m.MQIA_AUTHORITY_EVENT,
    m.MQIA_INHIBIT_EVENT,
    m.MQIA_LOCAL_EVENT,
    m.MQIA_REMOTE_EVENT,
    m.MQIA_START_STOP_EVENT,
    m.MQIA_PERFORMANCE_EVENT,
    m.MQIA_CONFIGURATION_EVENT,
    m.MQIA_CHANNEL_EVENT,
    m.MQIA_CHANNEL_AUTO_DEF,
    m.MQIA_CHANNEL_AUTO_DEF_EVENT,
    m.MQIA_SSL_EVENT,
    m.MQIA_LOGGER_EVENT,
    m.MQIA_COMMAND_EVENT,
    m.MQIA_CLUSTER_WORKLOAD_LENGTH,
    m.MQIA_CLWL_MRU_CHANNELS,
    m.MQIA_CLWL_USEQ,
    m.MQIA_MONITORING_CHANNEL,
    m.MQIA_MONITORING_Q,
    m.MQIA_STATISTICS_MQI,
    m.MQIA_STATISTICS_Q,
    m.MQIA_STATISTICS_CHANNEL,
    m.MQIA_STATISTICS_INTERVAL,
    m.MQIA_ACCOUNTING_MQI,
    m.MQIA_ACCOUNTING_Q,
    m.MQIA_ACCOUNTING_INTERVAL,
    m.MQIA_ACCOUNTING_CONN_OVERRIDE,
    m.MQIA_TRACE_ROUTE_RECORDING,
    m.MQIA_ACTIVITY_RECORDING,
    m.MQIA_XR_CAPABILITY,
    m.MQIA_TRIGGER_INTERVAL,
)
_NONE_FOR_QUEUE_MANAGERS: Final = {
    m.MQCA_CHANNEL_AUTO_DEF_EXIT: 128,
    m.MQCA_CLUSTER_WORKLOAD_EXIT: 128,
    m.MQCA_CLUSTER_WORKLOAD_DATA: 32,
    m.MQCA_REPOSITORY_NAME: _NAME,
    m.MQCA_REPOSITORY_NAMELIST: _NAME,
    m.MQCA_ALTERATION_DATE: _DATE,
    m.MQCA_ALTERATION_TIME: _TIME,
    c.MQCA_CREATION_DATE: _DATE,
    c.MQCA_CREATION_TIME: _TIME,
}
_OFF_FOR_QUEUES: Final = (
    m.MQIA_Q_DEPTH_MAX_EVENT,
    m.MQIA_Q_DEPTH_HIGH_EVENT,
    m.MQIA_Q_DEPTH_LOW_EVENT,
    m.MQIA_Q_SERVICE_INTERVAL_EVENT,
    m.MQIA_NPM_CLASS,
    m.MQIA_CLWL_Q_RANK,
    m.MQIA_CLWL_Q_PRIORITY,
    m.MQIA_CLWL_USEQ,
    m.MQIA_MONITORING_Q,
    m.MQIA_STATISTICS_Q,
    m.MQIA_ACCOUNTING_Q,
    m.MQIA_DEF_READ_AHEAD,
)
_NONE_FOR_QUEUES: Final = {
    c.MQCA_CLUSTER_NAMELIST: _NAME,
    c.MQCA_CUSTOM: 128,
    m.MQCA_ALTERATION_DATE: _DATE,
    m.MQCA_ALTERATION_TIME: _TIME,
}
_OF_QUEUE_MANAGER: Final[Mapping[int, Callable[[QueueManager], int]]] = {
    c.MQIA_CODED_CHAR_SET_ID: lambda _: QMGR_CCSID,
    c.MQIA_COMMAND_LEVEL: lambda _: COMMAND_LEVEL,
    c.MQIA_PLATFORM: lambda _: _PLATFORM_UNIX,
    c.MQIA_SYNCPOINT: lambda _: 1,
    c.MQIA_DIST_LISTS: lambda _: 0,
    c.MQIA_MAX_HANDLES: lambda _: 256,
    c.MQIA_MAX_PRIORITY: lambda _: 9,
    c.MQIA_MAX_UNCOMMITTED_MSGS: lambda _: 10_000,
    c.MQIA_ADVANCED_CAPABILITY: lambda _: 0,
    **dict.fromkeys(_OFF_FOR_QUEUE_MANAGERS, lambda _: 0),
    m.MQIA_MAX_PROPERTIES_LENGTH: lambda _: -1,
    m.MQIA_MSG_MARK_BROWSE_INTERVAL: lambda _: MARKED_US // 1000,
    c.MQIA_MAX_MSG_LENGTH: lambda _: 104_857_600,
    c.MQIA_PUBSUB_MODE: lambda qmgr: {"DISABLED": 0, "COMPAT": 1}.get(qmgr.psmode, 2),
    c.MQIA_TREE_LIFE_TIME: lambda qmgr: qmgr.treelife,
    c.MQIA_PUBSUB_MAXMSG_RETRY_COUNT: lambda qmgr: qmgr.psrtycnt,
}
_TEXTS_OF_QUEUE_MANAGER: Final[Mapping[int, tuple[int, Callable[[QueueManager], str]]]] = {
    **{each: (length, lambda _: "") for each, length in _NONE_FOR_QUEUE_MANAGERS.items()},
    c.MQCA_CUSTOM: (128, lambda qmgr: qmgr.custom),
    c.MQCA_SSL_KEY_REPOSITORY: (256, lambda qmgr: qmgr.key_repository),
    c.MQCA_CERT_LABEL: (64, lambda qmgr: qmgr.certificate_label),
    c.MQCA_COMMAND_INPUT_Q_NAME: (_NAME, lambda _: ADMIN_COMMAND_QUEUE),
    c.MQCA_DEAD_LETTER_Q_NAME: (_NAME, lambda qmgr: qmgr.deadq),
    c.MQCA_Q_MGR_DESC: (_DESCRIPTION, lambda qmgr: qmgr.description),
    MQCA_Q_MGR_NAME: (_NAME, lambda qmgr: qmgr.name),
    c.MQCA_DEF_XMIT_Q_NAME: (_NAME, lambda _: ""),
    c.MQCA_Q_MGR_IDENTIFIER: (_NAME, lambda qmgr: identifier(qmgr.name)),
    c.MQCA_PARENT: (_NAME, lambda qmgr: qmgr.parent),
}
_OF_QUEUE: Final[Mapping[int, Callable[[QueueUse], int]]] = {
    **dict.fromkeys(_OFF_FOR_QUEUES, lambda _: 0),
    m.MQIA_Q_DEPTH_HIGH_LIMIT: lambda _: 80,
    m.MQIA_Q_DEPTH_LOW_LIMIT: lambda _: 20,
    m.MQIA_Q_SERVICE_INTERVAL: lambda _: 999_999_999,
    c.MQIA_DEF_PUT_RESPONSE_TYPE: lambda use: PUT_RESPONSES[use.queue.def_put_response],
    m.MQIA_PROPERTY_CONTROL: lambda use: PROPERTIES[use.queue.properties],
    c.MQIA_CURRENT_Q_DEPTH: lambda use: use.depth,
    c.MQIA_DEF_INPUT_OPEN_OPTION: lambda use: (
        m.MQOO_INPUT_EXCLUSIVE if use.queue.exclusive_by_default else m.MQOO_INPUT_SHARED
    ),
    c.MQIA_DEF_PERSISTENCE: lambda use: int(use.queue.def_persistent),
    c.MQIA_DEF_PRIORITY: lambda use: use.queue.def_priority,
    c.MQIA_DEFINITION_TYPE: lambda use: _DEFINITION_TYPES[use.queue.definition_type],
    c.MQIA_HARDEN_GET_BACKOUT: lambda _: 1,
    c.MQIA_INHIBIT_GET: lambda use: int(not use.queue.get_enabled),
    c.MQIA_INHIBIT_PUT: lambda use: int(not use.queue.put_enabled),
    c.MQIA_USAGE: lambda use: int(use.queue.transmission),
    c.MQIA_MAX_MSG_LENGTH: lambda use: use.queue.max_message_length,
    c.MQIA_MAX_Q_DEPTH: lambda use: use.queue.max_depth,
    m.MQIA_MSG_DELIVERY_SEQUENCE: lambda use: int(use.queue.in_order_of == "FIFO"),
    c.MQIA_OPEN_INPUT_COUNT: lambda use: use.inputs,
    c.MQIA_OPEN_OUTPUT_COUNT: lambda use: use.outputs,
    c.MQIA_Q_TYPE: lambda _: c.MQQT_LOCAL,
    c.MQIA_RETENTION_INTERVAL: lambda _: 999_999_999,
    m.MQIA_TRIGGER_CONTROL: lambda use: int(use.queue.triggered),
    c.MQIA_TRIGGER_MSG_PRIORITY: lambda use: use.queue.trigger_priority,
    c.MQIA_TRIGGER_TYPE: lambda use: _TRIGGER_TYPES.index(use.queue.trigger_type),
    c.MQIA_TRIGGER_DEPTH: lambda use: use.queue.trigger_depth,
    c.MQIA_DEF_BIND: lambda _: 0,
    c.MQIA_SCOPE: lambda _: 1,
    c.MQIA_BACKOUT_THRESHOLD: lambda use: use.queue.backout_threshold,
    m.MQIA_SHAREABILITY: lambda use: int(use.queue.shareable),
    c.MQIA_DIST_LISTS: lambda _: 0,
}
_TEXTS_OF_QUEUE: Final[Mapping[int, tuple[int, Callable[[QueueUse], str]]]] = {
    **{each: (length, lambda _: "") for each, length in _NONE_FOR_QUEUES.items()},
    MQCA_Q_NAME: (_NAME, lambda use: use.queue.name),
    c.MQCA_Q_DESC: (_DESCRIPTION, lambda use: use.queue.description),
    c.MQCA_BACKOUT_REQ_Q_NAME: (_NAME, lambda use: use.queue.backout_queue),
    c.MQCA_INITIATION_Q_NAME: (_NAME, lambda use: use.queue.initiation_queue),
    c.MQCA_PROCESS_NAME: (_NAME, lambda use: use.queue.process),
    c.MQCA_TRIGGER_DATA: (64, lambda use: use.queue.trigger_data),
    c.MQCA_CLUSTER_NAME: (_NAME, lambda _: ""),
    c.MQCA_CREATION_DATE: (_DATE, lambda _: ""),
    c.MQCA_CREATION_TIME: (_TIME, lambda _: ""),
}

# Of queues of other kinds: blank for a local one, with a warning.
_OF_OTHER_QUEUES: Final = frozenset(
    {c.MQCA_BASE_OBJECT_NAME, c.MQCA_REMOTE_Q_MGR_NAME, c.MQCA_REMOTE_Q_NAME, c.MQCA_XMIT_Q_NAME}
)


def identifier(qmgr: str) -> str:
    """The unique identifier of a queue manager (QMID)."""
    return f"{qmgr}_qpubsub"[:_NAME]


def of_queue_manager(qmgr: QueueManager, selectors: list[int]) -> Values:
    """The values of integer selectors, and the lengths and values of character selectors, in their order.

    Raises MqiError 2067 for a selector that a queue manager does not have.
    """
    return _values(qmgr, selectors, _OF_QUEUE_MANAGER, _TEXTS_OF_QUEUE_MANAGER)


def of_queue(use: QueueUse, selectors: list[int]) -> Values:
    """The same of a queue."""
    return _values(use, selectors, _OF_QUEUE, _TEXTS_OF_QUEUE)


def changed_queue(queue: LocalQueue, values: Iterable[tuple[int, int]]) -> LocalQueue:
    """*queue* with what MQSET gives: selectors and their values.

    Raises MqiError 2067 for what cannot be set, 2020 and 2075 to 2078 for a value: 2075 too for triggering that is to
    be on, which only a transmission queue can have.
    """
    for selector, value in values:
        settable = _SETTABLE.get(selector)
        if settable is None:
            raise MqiError(m.MQRC_SELECTOR_ERROR, f"selector {selector} cannot be set")
        allowed, reason, made = settable
        if value not in allowed:
            raise MqiError(reason, f"selector {selector} cannot be {value}")
        queue = made(queue, value)
    if queue.triggered and not queue.transmission:
        raise MqiError(m.MQRC_TRIGGER_CONTROL_ERROR, "no trigger messages are made here")
    return queue


_SETTABLE: Final[Mapping[int, tuple[range, int, Callable[[LocalQueue, int], LocalQueue]]]] = {
    c.MQIA_INHIBIT_GET: (range(2), m.MQRC_INHIBIT_VALUE_ERROR, lambda q, value: replace(q, get_enabled=not value)),
    c.MQIA_INHIBIT_PUT: (range(2), m.MQRC_INHIBIT_VALUE_ERROR, lambda q, value: replace(q, put_enabled=not value)),
    m.MQIA_TRIGGER_CONTROL: (
        range(2),
        m.MQRC_TRIGGER_CONTROL_ERROR,
        lambda q, value: replace(q, triggered=bool(value)),
    ),
    c.MQIA_TRIGGER_DEPTH: (
        range(1, MAX_INTEGER + 1),
        m.MQRC_TRIGGER_DEPTH_ERROR,
        lambda q, value: replace(q, trigger_depth=value),
    ),
    c.MQIA_TRIGGER_MSG_PRIORITY: (
        range(10),
        m.MQRC_TRIGGER_MSG_PRIORITY_ERR,
        lambda q, value: replace(q, trigger_priority=value),
    ),
    c.MQIA_TRIGGER_TYPE: (
        range(len(_TRIGGER_TYPES)),
        m.MQRC_TRIGGER_TYPE_ERROR,
        lambda q, value: replace(q, trigger_type=_TRIGGER_TYPES[value]),
    ),
}


def _values(
    of: _Of,
    selectors: list[int],
    numbers: Mapping[int, Callable[[_Of], int]],
    texts: Mapping[int, tuple[int, Callable[[_Of], str]]],
) -> Values:
    integers: list[int] = []
    characters: list[tuple[int, str]] = []
    reason = 0
    for selector in selectors:
        if selector < _FIRST_CHARACTER_SELECTOR and selector in numbers:
            integers.append(numbers[selector](of))
        elif selector in texts:
            length, value = texts[selector]
            characters.append((length, value(of)))
        elif selector in _OF_OTHER_QUEUES and numbers is _OF_QUEUE:
            characters.append((_NAME, ""))
            reason = m.MQRC_SELECTOR_NOT_FOR_TYPE
        else:
            raise MqiError(m.MQRC_SELECTOR_ERROR, f"selector {selector} is not one of this object")
    return integers, characters, reason
