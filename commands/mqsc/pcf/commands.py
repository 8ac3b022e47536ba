"""The PCF commands that the bridge accepts: the MQSC command and the parameters of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from commands.broker.attribute_kinds import Attribute, words
from commands.broker.subscription_attributes import DISPLAY_TYPE, DURABLE, SUB_ID, SUB_TYPE
from commands.mqsc.attributes import CLUSTER, CLUSTER_NAMELIST
from commands.mqsc.channel_attributes import CHANNEL_TYPE, CONNECTION
from commands.mqsc.pcf import attributes as a
from commands.mqsc.script import Command
from rfh2 import pcf_admin_names as c
from rfh2.errors import CommandError
from rfh2.pcf import Cfin, Parameter
from rfh2.pcf_names import MQCA_Q_NAME, MQCA_TOPIC_STRING, MQCMD_CLEAR_TOPIC_STRING, MQRCCF_CFH_COMMAND_ERROR


@dataclass(frozen=True, slots=True)
class Copy:
    """The parameters of a Copy command: *source* is LIKE, *target* is the object that is made."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class PcfCommand:
    """One command.

    verb, target: of MQSC. name: the parameter that names the object, 0 for none; instead: the one that may be given in
    its place. taken: attributes that it may set, or by which Inquire chooses. shown: those that Inquire may return.
    selectors: the parameter that lists which of them are wanted. copy: of a Copy command. names: the parameter in which
    one response lists all names, for the commands that tell nothing else. not_found, exists: the reasons for an object
    that is not there, and for one that is. defaults: what an Inquire command asks for without being told. also:
    parameters of each of its responses.
    """

    verb: str
    target: str
    name: int = 0
    taken: tuple[Attribute, ...] = ()
    shown: tuple[Attribute, ...] = ()
    selectors: int = 0
    copy: Copy | None = None
    instead: int = 0
    names: int = 0
    not_found: int = 2085
    exists: int = 4001
    defaults: Mapping[str, str] = field(default_factory=dict)
    also: tuple[Parameter, ...] = ()


_NO_SUBSCRIPTION: Final = 2428
_SUB_ALREADY_EXISTS: Final = 3311
_TOPIC_STRING_NOT_FOUND: Final = 3308
_NONE_FOUND: Final = 3200
_CHANNEL_NOT_FOUND: Final = 4032
_CHANNEL_ALREADY_EXISTS: Final = 4042


_DELETED_BY_TYPE: Final = {"QUEUE": (a.QUEUE_TYPE,), "CHANNEL": (CHANNEL_TYPE,)}


def _objects(
    target: str, name: int, table: tuple[Attribute, ...], copy: Copy, numbers: tuple[int, int, int, int]
) -> dict[int, PcfCommand]:
    """Change, Copy, Create and Delete of one kind of object."""
    change, copied, create, delete = numbers
    return {
        change: PcfCommand("ALTER", target, name, table),
        copied: PcfCommand("DEFINE", target, 0, table, copy=copy),
        create: PcfCommand("DEFINE", target, name, table),
        delete: PcfCommand("DELETE", target, name, _DELETED_BY_TYPE.get(target, ())),
    }


def _sub(verb: str, instead: int = 0) -> PcfCommand:
    return PcfCommand(
        verb,
        "SUB",
        c.MQCACF_SUB_NAME,
        (SUB_ID,) if verb == "DELETE" else a.SUBSCRIPTION,
        not_found=_NO_SUBSCRIPTION,
        exists=_SUB_ALREADY_EXISTS,
        instead=instead,
    )


_SUB_SCOPE: Final = (SUB_ID, SUB_TYPE, DURABLE)
_STATUS_TYPE: Final = Attribute(
    "TYPE",
    "",
    words(TOPIC=c.MQIACF_TOPIC_STATUS, SUB=c.MQIACF_TOPIC_SUB, PUB=c.MQIACF_TOPIC_PUB),
    c.MQIACF_TOPIC_STATUS_TYPE,
)
_CLEAR: Final = (
    Attribute("CLRTYPE", "", words(RETAINED=c.MQCLRT_RETAINED), c.MQIACF_CLEAR_TYPE),
    Attribute("SCOPE", "", words(LOCAL=c.MQCLRS_LOCAL, GLOBAL=c.MQCLRS_GLOBAL), c.MQIACF_CLEAR_SCOPE),
)

_OF_CLIENT: Final = ("TYPE", "ADDRESS", "CLNTUSER", "SSLPEER", "SSLCERTI")
_CLUSTERS: Final = (CLUSTER, CLUSTER_NAMELIST)

COMMANDS: Final[dict[int, PcfCommand]] = {
    c.MQCMD_PING_Q_MGR: PcfCommand("PING", "QMGR"),
    c.MQCMD_REFRESH_SECURITY: PcfCommand("REFRESH", "SECURITY"),
    c.MQCMD_CHANGE_Q_MGR: PcfCommand("ALTER", "QMGR", taken=a.QMGR[1:]),
    c.MQCMD_INQUIRE_Q_MGR: PcfCommand("DISPLAY", "QMGR", shown=a.QMGR, selectors=c.MQIACF_Q_MGR_ATTRS),
    **_objects(
        "QUEUE",
        MQCA_Q_NAME,
        a.QUEUE,
        Copy(c.MQCACF_FROM_Q_NAME, c.MQCACF_TO_Q_NAME),
        (c.MQCMD_CHANGE_Q, c.MQCMD_COPY_Q, c.MQCMD_CREATE_Q, c.MQCMD_DELETE_Q),
    ),
    c.MQCMD_CLEAR_Q: PcfCommand("CLEAR", "QLOCAL", MQCA_Q_NAME),
    c.MQCMD_INQUIRE_Q: PcfCommand("DISPLAY", "QUEUE", MQCA_Q_NAME, (a.QUEUE_TYPE,), a.QUEUE, c.MQIACF_Q_ATTRS),
    c.MQCMD_INQUIRE_Q_NAMES: PcfCommand(
        "DISPLAY", "QUEUE", MQCA_Q_NAME, (a.QUEUE_TYPE,), a.QUEUE, names=c.MQCACF_Q_NAMES
    ),
    c.MQCMD_INQUIRE_Q_STATUS: PcfCommand(
        "DISPLAY",
        "QSTATUS",
        MQCA_Q_NAME,
        (a.QUEUE_STATUS_TYPE, a.OPEN_TYPE),
        a.QUEUE_STATUS,
        c.MQIACF_Q_STATUS_ATTRS,
    ),
    c.MQCMD_INQUIRE_CONNECTION: PcfCommand(
        "DISPLAY",
        "CONN",
        taken=(a.CONNECTION_ID, a.GENERIC_CONNECTION_ID, a.CONNECTION_TYPE),
        shown=a.CONNECTION,
        selectors=c.MQIACF_CONNECTION_ATTRS,
    ),
    c.MQCMD_STOP_CONNECTION: PcfCommand("STOP", "CONN", taken=(a.CONNECTION_ID,)),
    c.MQCMD_INQUIRE_CHANNEL_STATUS: PcfCommand(
        "DISPLAY",
        "CHSTATUS",
        c.MQCACH_CHANNEL_NAME,
        (CONNECTION[0], a.CHANNEL_INSTANCE),
        a.CHANNEL_STATUS,
        c.MQIACH_CHANNEL_INSTANCE_ATTRS,
        also=(Cfin(c.MQIACH_CHANNEL_INSTANCE_TYPE, c.MQOT_CURRENT_CHANNEL),),
    ),
    c.MQCMD_STOP_CHANNEL: PcfCommand("STOP", "CHANNEL", c.MQCACH_CHANNEL_NAME, a.CHANNEL_STOPPED),
    c.MQCMD_START_CHANNEL: PcfCommand("START", "CHANNEL", c.MQCACH_CHANNEL_NAME, (CHANNEL_TYPE,)),
    c.MQCMD_INQUIRE_LISTENER_STATUS: PcfCommand(
        "DISPLAY",
        "LSSTATUS",
        c.MQCACH_LISTENER_NAME,
        shown=a.LISTENER_STATUS,
        selectors=c.MQIACF_LISTENER_STATUS_ATTRS,
    ),
    c.MQCMD_INQUIRE_Q_MGR_STATUS: PcfCommand(
        "DISPLAY", "QMSTATUS", shown=a.QMGR_STATUS, selectors=c.MQIACF_Q_MGR_STATUS_ATTRS
    ),
    **_objects(
        "NAMELIST",
        c.MQCA_NAMELIST_NAME,
        a.NAMELIST,
        Copy(c.MQCACF_FROM_NAMELIST_NAME, c.MQCACF_TO_NAMELIST_NAME),
        (c.MQCMD_CHANGE_NAMELIST, c.MQCMD_COPY_NAMELIST, c.MQCMD_CREATE_NAMELIST, c.MQCMD_DELETE_NAMELIST),
    ),
    c.MQCMD_INQUIRE_NAMELIST: PcfCommand(
        "DISPLAY", "NAMELIST", c.MQCA_NAMELIST_NAME, shown=a.NAMELIST, selectors=c.MQIACF_NAMELIST_ATTRS
    ),
    c.MQCMD_INQUIRE_NAMELIST_NAMES: PcfCommand(
        "DISPLAY", "NAMELIST", c.MQCA_NAMELIST_NAME, shown=a.NAMELIST, names=c.MQCACF_NAMELIST_NAMES
    ),
    **_objects(
        "TOPIC",
        c.MQCA_TOPIC_NAME,
        a.TOPIC,
        Copy(c.MQCACF_FROM_TOPIC_NAME, c.MQCACF_TO_TOPIC_NAME),
        (c.MQCMD_CHANGE_TOPIC, c.MQCMD_COPY_TOPIC, c.MQCMD_CREATE_TOPIC, c.MQCMD_DELETE_TOPIC),
    ),
    c.MQCMD_INQUIRE_TOPIC: PcfCommand(
        "DISPLAY",
        "TOPIC",
        c.MQCA_TOPIC_NAME,
        taken=(a.TOPIC_TYPE,),
        shown=a.TOPIC_SHOWN,
        selectors=c.MQIACF_TOPIC_ATTRS,
    ),
    c.MQCMD_INQUIRE_TOPIC_NAMES: PcfCommand(
        "DISPLAY", "TOPIC", c.MQCA_TOPIC_NAME, shown=a.TOPIC, names=c.MQCACF_TOPIC_NAMES
    ),
    **{
        number: replace(command, not_found=_CHANNEL_NOT_FOUND, exists=_CHANNEL_ALREADY_EXISTS)
        for number, command in _objects(
            "CHANNEL",
            c.MQCACH_CHANNEL_NAME,
            a.CHANNEL,
            Copy(c.MQCACF_FROM_CHANNEL_NAME, c.MQCACF_TO_CHANNEL_NAME),
            (c.MQCMD_CHANGE_CHANNEL, c.MQCMD_COPY_CHANNEL, c.MQCMD_CREATE_CHANNEL, c.MQCMD_DELETE_CHANNEL),
        ).items()
    },
    c.MQCMD_INQUIRE_CHANNEL_NAMES: PcfCommand(
        "DISPLAY",
        "CHANNEL",
        c.MQCACH_CHANNEL_NAME,
        taken=(CHANNEL_TYPE,),
        shown=a.CHANNEL,
        names=c.MQCACH_CHANNEL_NAMES,
        not_found=_CHANNEL_NOT_FOUND,
    ),
    c.MQCMD_INQUIRE_CHANNEL: PcfCommand(
        "DISPLAY",
        "CHANNEL",
        c.MQCACH_CHANNEL_NAME,
        taken=(CHANNEL_TYPE,),
        shown=a.CHANNEL,
        selectors=c.MQIACF_CHANNEL_ATTRS,
        not_found=_CHANNEL_NOT_FOUND,
    ),
    **_objects(
        "AUTHINFO",
        c.MQCA_AUTH_INFO_NAME,
        a.AUTHINFO,
        Copy(c.MQCACF_FROM_AUTH_INFO_NAME, c.MQCACF_TO_AUTH_INFO_NAME),
        (c.MQCMD_CHANGE_AUTH_INFO, c.MQCMD_COPY_AUTH_INFO, c.MQCMD_CREATE_AUTH_INFO, c.MQCMD_DELETE_AUTH_INFO),
    ),
    c.MQCMD_INQUIRE_AUTH_INFO: PcfCommand(
        "DISPLAY", "AUTHINFO", c.MQCA_AUTH_INFO_NAME, (), a.AUTHINFO, c.MQIACF_AUTH_INFO_ATTRS
    ),
    **_objects(
        "LISTENER",
        c.MQCACH_LISTENER_NAME,
        a.LISTENER,
        Copy(c.MQCACF_FROM_LISTENER_NAME, c.MQCACF_TO_LISTENER_NAME),
        (c.MQCMD_CHANGE_LISTENER, c.MQCMD_COPY_LISTENER, c.MQCMD_CREATE_LISTENER, c.MQCMD_DELETE_LISTENER),
    ),
    c.MQCMD_INQUIRE_LISTENER: PcfCommand(
        "DISPLAY", "LISTENER", c.MQCACH_LISTENER_NAME, (), a.LISTENER, c.MQIACF_LISTENER_ATTRS
    ),
    c.MQCMD_SET_CHLAUTH_REC: PcfCommand("SET", "CHLAUTH", c.MQCACH_CHANNEL_NAME, (*a.CHANNEL_RULE[1:], a.RULE_ACTION)),
    c.MQCMD_INQUIRE_CHLAUTH_RECS: PcfCommand(
        "DISPLAY",
        "CHLAUTH",
        c.MQCACH_CHANNEL_NAME,
        (a.RULE_MATCH, *(each for each in a.CHANNEL_RULE if each.keyword in _OF_CLIENT)),
        a.CHANNEL_RULE,
        c.MQIACF_CHLAUTH_ATTRS,
        not_found=c.MQRCCF_CHLAUTH_NOT_FOUND,
    ),
    c.MQCMD_INQUIRE_CLUSTER_Q_MGR: PcfCommand(
        "DISPLAY",
        "CLUSQMGR",
        c.MQCA_CLUSTER_Q_MGR_NAME,
        taken=(a.CHANNEL_NAME, CLUSTER),
        shown=a.CLUSTER_QMGR,
        selectors=c.MQIACF_CLUSTER_Q_MGR_ATTRS,
    ),
    c.MQCMD_SUSPEND_Q_MGR_CLUSTER: PcfCommand("SUSPEND", "QMGR", taken=(*_CLUSTERS, a.SUSPEND_MODE)),
    c.MQCMD_RESUME_Q_MGR_CLUSTER: PcfCommand("RESUME", "QMGR", taken=_CLUSTERS),
    c.MQCMD_REFRESH_CLUSTER: PcfCommand("REFRESH", "CLUSTER", c.MQCA_CLUSTER_NAME, (a.REFRESH_REPOSITORY,)),
    c.MQCMD_CREATE_SUBSCRIPTION: _sub("DEFINE"),
    c.MQCMD_COPY_SUBSCRIPTION: PcfCommand(
        "DEFINE",
        "SUB",
        taken=a.SUBSCRIPTION,
        copy=Copy(c.MQCACF_FROM_SUB_NAME, c.MQCACF_TO_SUB_NAME),
        not_found=_NO_SUBSCRIPTION,
        exists=_SUB_ALREADY_EXISTS,
    ),
    c.MQCMD_CHANGE_SUBSCRIPTION: _sub("ALTER", instead=SUB_ID.number),
    c.MQCMD_DELETE_SUBSCRIPTION: _sub("DELETE", instead=SUB_ID.number),
    c.MQCMD_INQUIRE_SUBSCRIPTION: PcfCommand(
        "DISPLAY",
        "SUB",
        c.MQCACF_SUB_NAME,
        taken=(*_SUB_SCOPE, DISPLAY_TYPE),
        shown=a.SUBSCRIPTION,
        selectors=c.MQIACF_SUB_ATTRS,
        instead=SUB_ID.number,
        not_found=_NO_SUBSCRIPTION,
    ),
    c.MQCMD_INQUIRE_SUB_STATUS: PcfCommand(
        "DISPLAY",
        "SBSTATUS",
        c.MQCACF_SUB_NAME,
        taken=_SUB_SCOPE,
        shown=a.SUB_STATUS,
        selectors=c.MQIACF_SUB_STATUS_ATTRS,
        instead=SUB_ID.number,
        not_found=_NO_SUBSCRIPTION,
    ),
    c.MQCMD_INQUIRE_TOPIC_STATUS: PcfCommand(
        "DISPLAY",
        "TPSTATUS",
        MQCA_TOPIC_STRING,
        taken=(_STATUS_TYPE,),
        shown=(*a.TOPIC_STATUS, *a.TOPIC_STATUS_SUB[1:]),
        selectors=c.MQIACF_TOPIC_STATUS_ATTRS,
        not_found=_TOPIC_STRING_NOT_FOUND,
    ),
    MQCMD_CLEAR_TOPIC_STRING: PcfCommand("CLEAR", "TOPICSTR", MQCA_TOPIC_STRING, _CLEAR),
    c.MQCMD_INQUIRE_PUBSUB_STATUS: PcfCommand(
        "DISPLAY",
        "PUBSUB",
        taken=(a.PUBSUB_TYPE,),
        shown=a.PUBSUB,
        selectors=c.MQIACF_PUBSUB_STATUS_ATTRS,
        not_found=_NONE_FOUND,
        defaults={"TYPE": "ALL"},
    ),
    c.MQCMD_INQUIRE_AUTH_RECS: PcfCommand(
        "DISPLAY",
        "AUTHREC",
        taken=(a.PROFILE, a.OBJECT_TYPE, *a.AUTHORITY_RECORD[2:4]),
        shown=a.AUTHORITY_RECORD,
        selectors=c.MQIACF_AUTH_PROFILE_ATTRS,
    ),
    c.MQCMD_SET_AUTH_REC: PcfCommand(
        "SET", "AUTHREC", taken=(a.PROFILE, a.OBJECT_TYPE, a.AUTHORITY_ADDED, a.AUTHORITY_REMOVED)
    ),
    c.MQCMD_DELETE_AUTH_REC: PcfCommand("DELETE", "AUTHREC", taken=(a.PROFILE, a.OBJECT_TYPE)),
}

QUEUE_KINDS: Final = ("QLOCAL", "QALIAS", "QMODEL", "QUEUE")


def _by_words() -> dict[tuple[str, str], int]:
    """The PCF command for a verb and an object, without Copy and lists of names."""
    found: dict[tuple[str, str], int] = {}
    for number, about in COMMANDS.items():
        if about.copy is None and not about.names:
            found.setdefault((about.verb, about.target), number)
    return found


_NUMBERS: Final = _by_words()


def command_number(command: Command) -> int:
    """MQCMD_* for *command*. Raises CommandError 3007 where PCF has none that the bridge knows."""
    target = "QUEUE" if command.target in QUEUE_KINDS and command.verb != "CLEAR" else command.target
    number = _NUMBERS.get((command.verb, target))
    if number is None:
        why = f"{command.verb} {command.target} has no PCF command that is known here"
        raise CommandError(MQRCCF_CFH_COMMAND_ERROR, why=why)
    return number


def about_command(command: Command) -> PcfCommand:
    """What is known of the PCF command that says the same as *command*; the words alone where PCF has none."""
    try:
        return COMMANDS[command_number(command)]
    except CommandError:
        return PcfCommand(command.verb, command.target)
