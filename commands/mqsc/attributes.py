"""The keywords of each kind of object: how they are spelt, what they take, and where a definition keeps them.

Keywords that IBM MQ has and that mean nothing to the bridge (triggering, clusters, events ...) are listed too: scripts
written for a queue manager run unchanged, and the answer says which of their keywords have no effect here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from commands.broker.objects import CLUSRCVR, CLUSSDR, PERMANENT, TEMPORARY
from commands.mqsc.model import Command, Keyword, MqscError
from commands.mqsc.parser import syntax_error
from commands.mqsc.values import (
    Choice,
    Custom,
    Hexadecimal,
    Name,
    Names,
    Number,
    Shown,
    Text,
    ValueKind,
    flag,
    members,
    words,
)
from rfh2.constants import MQ_SELECTOR_LENGTH, MQ_TOPIC_STR_LENGTH, MQ_USER_DATA_LENGTH
from streams.subscriptions import PublicationFormat, WildcardScheme
from streams.topic_objects import ClusterRoute, MessageDelivery, ProxySubscriptions, PutResponse, Scope, Wildcard

MAX_INTEGER: Final = 999_999_999
MAX_MESSAGE_LENGTH: Final = 104_857_600
MAX_TREE_LIFE_S: Final = 604_000
DESCRIPTION_LENGTH: Final = 64
CONNECTION_NAME_LENGTH: Final = 264


@dataclass(frozen=True, slots=True)
class Attribute:
    """A keyword and the field of the definition that it sets."""

    keyword: str
    field: str
    kind: ValueKind
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """One kind of object for DEFINE, ALTER and DISPLAY.

    names: the attribute that DISPLAY prints first, before ``type_word``. without_effect: keywords taken and not kept.
    """

    word: str
    names: str
    type_word: str
    attributes: tuple[Attribute, ...]
    without_effect: frozenset[str]

    def attribute(self, keyword: str) -> Attribute | None:
        """The attribute that this keyword sets, if it has an effect here."""
        return next((a for a in self.attributes if keyword == a.keyword or keyword in a.aliases), None)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a DEFINE or ALTER sets. fields: by the definition's field name. ignored: keywords without effect here."""

    fields: Mapping[str, Any]
    ignored: tuple[str, ...]


def read_settings(command: Command, kind: ObjectKind, allowed: frozenset[str]) -> Settings:
    """The values that *command* gives to the attributes of *kind*.

    allowed: keywords that the caller deals with (REPLACE, LIKE ...). Raises MqscError for any other keyword, and for a
    value that its attribute does not take.
    """
    fields: dict[str, Any] = {}
    ignored: list[str] = []
    for keyword in command.keywords:
        attribute = kind.attribute(keyword.name)
        if attribute is not None:
            if attribute.field in fields:
                raise syntax_error(_segment(command, keyword), f"{keyword.name} is given twice.")
            fields[attribute.field] = attribute.kind.read(keyword)
        elif keyword.name in kind.without_effect:
            ignored.append(keyword.name)
        elif keyword.name not in allowed:
            raise unknown_keyword(command, keyword, kind)
    return Settings(fields, tuple(ignored))


def unknown_keyword(command: Command, keyword: Keyword, kind: ObjectKind) -> MqscError:
    """AMQ8405 for a keyword that the object does not have, with those that it has."""
    known = " ".join(attribute.keyword for attribute in kind.attributes)
    return syntax_error(_segment(command, keyword), f"{kind.word} has: {known}")


def unexpected_keyword(command: Command, keyword: Keyword) -> MqscError:
    """AMQ8405 for a keyword that the command does not take."""
    return syntax_error(_segment(command, keyword))


def _segment(command: Command, keyword: Keyword) -> str:
    name = f"({command.name.text})" if command.name else ""
    return f"{command.verb} {command.target}{name} {keyword.name}"


def shown(definition: object, attribute: Attribute) -> Shown:
    """The attribute's value in *definition*, as DISPLAY prints it."""
    return attribute.kind.show(getattr(definition, attribute.field))


def _keywords(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DESCRIPTION: Final = Attribute("DESCR", "description", Text(DESCRIPTION_LENGTH))

TOPIC: Final = ObjectKind(
    "TOPIC",
    "TOPIC",
    "LOCAL",
    (
        Attribute("TOPICSTR", "topic_string", Text(MQ_TOPIC_STR_LENGTH)),
        _DESCRIPTION,
        Attribute("CLUSTER", "cluster", Name()),
        Attribute("CLROUTE", "cluster_route", members(ClusterRoute)),
        Attribute("DURSUB", "durable_subs", flag("YES", "NO", "ASPARENT")),
        Attribute("PUB", "pub", flag("ENABLED", "DISABLED", "ASPARENT")),
        Attribute("SUB", "sub", flag("ENABLED", "DISABLED", "ASPARENT")),
        Attribute("DEFPSIST", "def_persistence", flag("YES", "NO", "ASPARENT")),
        Attribute("DEFPRTY", "def_priority", Number(0, 9, {"ASPARENT": None})),
        Attribute("DEFPRESP", "def_put_response", members(PutResponse, "ASPARENT")),
        Attribute("MDURMDL", "durable_model_queue", Name(absent=None)),
        Attribute("MNDURMDL", "non_durable_model_queue", Name(absent=None)),
        Attribute("PMSGDLV", "pmsgdlv", members(MessageDelivery, "ASPARENT")),
        Attribute("NPMSGDLV", "npmsgdlv", members(MessageDelivery, "ASPARENT")),
        Attribute("PUBSCOPE", "pub_scope", members(Scope, "ASPARENT")),
        Attribute("SUBSCOPE", "sub_scope", members(Scope, "ASPARENT")),
        Attribute("PROXYSUB", "proxy_subs", members(ProxySubscriptions)),
        Attribute("WILDCARD", "wildcard", members(Wildcard)),
        Attribute("USEDLQ", "use_dead_letter_queue", flag("YES", "NO", "ASPARENT")),
    ),
    frozenset({"ALTDATE", "ALTTIME", "CAPEXPRY", "CLSTATE", "COMMINFO", "CUSTOM", "MCAST", "OTELPCTL", "OTELTRAC"}),
)

_QUEUE_WITHOUT_EFFECT: Final = _keywords(
    """
    ACCTQ ALTDATE ALTTIME CAPEXPRY CFSTRUCT CLCHNAME CLUSDATE CLUSNL CLUSTER CLUSTIME CLWLPRTY CLWLRANK CLWLUSEQ CRDATE
    CRTIME CUSTOM DEFBIND DEFPRESP DEFREADA DEFSOPT DEFTYPE DISTL FORCE HARDENBO IMGRCOVQ INDXTYPE INITQ IPPROCS MONQ
    MSGDLVSQ NOHARDENBO NOSHARE NOTRIGGER NPMCLASS OPPROCS OTELPCTL OTELTRAC PROCESS PROPCTL QDEPTHHI QDEPTHLO QDPHIEV
    QDPLOEV QDPMAXEV QSVCIEV QSVCINT RETINTVL SCOPE SHARE STATQ STGCLASS STREAMQ STRMQOS TPIPE TRIGDATA TRIGDPTH TRIGGER
    TRIGMPRI TRIGTYPE
    """
)

_LOCAL_ATTRIBUTES: Final = (
    _DESCRIPTION,
    Attribute("PUT", "put_enabled", flag("ENABLED", "DISABLED")),
    Attribute("GET", "get_enabled", flag("ENABLED", "DISABLED")),
    Attribute("DEFPRTY", "def_priority", Number(0, 9)),
    Attribute("DEFPSIST", "def_persistent", flag("YES", "NO")),
    Attribute("MAXDEPTH", "max_depth", Number(0, MAX_INTEGER)),
    Attribute("MAXMSGL", "max_message_length", Number(0, MAX_MESSAGE_LENGTH)),
    Attribute("BOTHRESH", "backout_threshold", Number(0, MAX_INTEGER)),
    Attribute("BOQNAME", "backout_queue", Name()),
    Attribute("USAGE", "transmission", flag("XMITQ", "NORMAL")),
)

QLOCAL: Final = ObjectKind("QLOCAL", "QUEUE", "QLOCAL", _LOCAL_ATTRIBUTES, _QUEUE_WITHOUT_EFFECT)

QMODEL: Final = ObjectKind(
    "QMODEL",
    "QUEUE",
    "QMODEL",
    (*_LOCAL_ATTRIBUTES, Attribute("DEFTYPE", "definition_type", words(TEMPORARY, *PERMANENT))),
    _QUEUE_WITHOUT_EFFECT - {"DEFTYPE"},
)

QALIAS: Final = ObjectKind(
    "QALIAS",
    "QUEUE",
    "QALIAS",
    (
        _DESCRIPTION,
        Attribute("TARGET", "target", Name(), aliases=("TARGQ",)),
        Attribute("TARGTYPE", "target_type", words("QUEUE", "TOPIC")),
    ),
    _QUEUE_WITHOUT_EFFECT | {"DEFPRTY", "DEFPSIST", "GET", "PUT"},
)

NAMELIST: Final = ObjectKind(
    "NAMELIST",
    "NAMELIST",
    "",
    (_DESCRIPTION, Attribute("NAMES", "names", Names())),
    frozenset({"ALTDATE", "ALTTIME", "CLUSNL", "CLUSTER", "NAMCOUNT", "NLTYPE"}),
)

CHANNEL: Final = ObjectKind(
    "CHANNEL",
    "CHANNEL",
    "",
    (
        Attribute("CHLTYPE", "channel_type", words(CLUSRCVR, CLUSSDR)),
        Attribute("CLUSTER", "cluster", Name()),
        Attribute("CLUSNL", "cluster_namelist", Name()),
        Attribute("CONNAME", "connection_name", Text(CONNECTION_NAME_LENGTH)),
        _DESCRIPTION,
    ),
    _keywords(
        """
        ALTDATE ALTTIME AMQPKA AUTOSTART BATCHHB BATCHINT BATCHLIM BATCHSZ CERTLABL CLWLPRTY CLWLRANK CLWLWGHT COMPHDR
        COMPMSG CONVERT DISCINT HBINT KAINT LOCLADDR LONGRTY LONGTMR MAXMSGL MCANAME MCATYPE MCAUSER MODENAME MONCHL
        MRDATA MREXIT MRRTY MRTMR MSGDATA MSGEXIT NETPRTY NPMSPEED PASSWORD PROPCTL PUTAUT RCVDATA RCVEXIT RESETSEQ
        SCYDATA SCYEXIT SENDDATA SENDEXIT SEQWRAP SHORTRTY SHORTTMR SPLPROT SSLCAUTH SSLCIPH SSLPEER STATCHL TPNAME
        TPROOT TRPTYPE USEDLQ USERID XMITQ
        """
    ),
)

QMGR: Final = ObjectKind(
    "QMGR",
    "QMNAME",
    "",
    (
        _DESCRIPTION,
        Attribute("CUSTOM", "custom", Custom()),
        Attribute("DEADQ", "deadq", Name()),
        Attribute("PARENT", "parent", Name()),
        Attribute("PSMODE", "psmode", words("ENABLED", "COMPAT", "DISABLED")),
        Attribute("PSNPMSG", "psnpmsg", words("DISCARD", "KEEP")),
        Attribute("PSNPRES", "psnpres", words("NORMAL", "SAFE", "DISCARD", "KEEP")),
        Attribute("PSRTYCNT", "psrtycnt", Number(0, MAX_INTEGER)),
        Attribute("PSSYNCPT", "pssyncpt", words("YES", "IFPER")),
        Attribute("TREELIFE", "treelife", Number(0, MAX_TREE_LIFE_S)),
    ),
    _keywords(
        """
        ACCTCONO ACCTINT ACCTMQI ACCTQ ACTIVREC ACTVCONO ACTVTRC ADVCAP ALTDATE ALTTIME AUTHOREV BRIDGEEV CCSID CERTLABL
        CERTVPOL CHAD CHADEV CHADEXIT CHLAUTH CHLEV CLWLDATA CLWLEXIT CLWLLEN CLWLMRUC CLWLUSEQ CMDEV CMDLEVEL COMMANDQ
        CONFIGEV CONNAUTH CPILEVEL CRDATE CRTIME DEFCLXQ DEFXMITQ DISTL FORCE IMGINTVL IMGLOGLN IMGRCOVO IMGRCOVQ
        IMGSCHED INHIBTEV INITKEY IPADDRV KEYRPWD LOCALEV LOGGEREV MARKINT MAXHANDS MAXMSGL MAXPRTY MAXPROPL MAXUMSGS
        MONACLS MONCHL MONQ OTELPCTL OTELTRAC PERFMEV PLATFORM QMID REMOTEEV REPOS REPOSNL REVDNS ROUTEREC SCHINIT
        SCMDSERV SPLCAP SSLCRLNL SSLCRYP SSLEV SSLFIPS SSLKEYR SSLRKEYC STATACLS STATCHL STATINT STATMQI STATQ STRSTPEV
        SUITEB SYNCPT TRIGINT VERSION XRCAP
        """
    ),
)

_PSPROP: Final = Choice(
    {
        "MSGPROP": PublicationFormat.PROPERTIES,
        "COMPAT": PublicationFormat.RFH1,
        "NONE": PublicationFormat.NONE,
        "RFH2": PublicationFormat.RFH2,
    }
)
_EXPIRY: Final = Number(1, MAX_INTEGER, {"UNLIMITED": None})
_PRIORITY: Final = Number(0, 9, {"ASPUB": None, "ASQDEF": -1})
_SCHEME: Final = Choice({"TOPIC": WildcardScheme.TOPIC, "CHAR": WildcardScheme.CHAR})

SUB: Final = ObjectKind(
    "SUB",
    "SUB",
    "",
    (
        Attribute("TOPICSTR", "topic_string", Text(MQ_TOPIC_STR_LENGTH)),
        Attribute("TOPICOBJ", "topic_object", Text(48)),
        Attribute("DEST", "dest_queue", Name()),
        Attribute("DESTQMGR", "dest_qmgr", Name()),
        Attribute("DESTCLAS", "destination_class", words("PROVIDED", "MANAGED")),
        Attribute("DESTCORL", "correl_id", Hexadecimal(24)),
        Attribute("EXPIRY", "lifetime", _EXPIRY),
        Attribute("GROUPSUB", "grouped", flag("YES", "NO")),
        Attribute("PSPROP", "format", _PSPROP),
        Attribute("PUBACCT", "accounting_token", Hexadecimal(32)),
        Attribute("PUBAPPID", "appl_identity_data", Text(32)),
        Attribute("PUBPRTY", "pub_priority", _PRIORITY),
        Attribute("REQONLY", "pub_on_req_only", flag("YES", "NO")),
        Attribute("SELECTOR", "selector", Text(MQ_SELECTOR_LENGTH)),
        Attribute("SUBLEVEL", "sub_level", Number(0, 9)),
        Attribute("SUBSCOPE", "local", flag("QMGR", "ALL")),
        Attribute("SUBUSER", "user", Text(12)),
        Attribute("USERDATA", "user_data", Text(MQ_USER_DATA_LENGTH)),
        Attribute("VARUSER", "variable_user_id", flag("ANY", "FIXED")),
        Attribute("WSCHEMA", "wildcard", _SCHEME),
    ),
    frozenset({"ALTDATE", "ALTTIME", "SELTYPE", "ACTCONN", "ACTCON"}),
)

# Fields of SUB that a subscription keeps in its options.
SUB_OPTIONS: Final = frozenset({"pub_on_req_only", "local", "variable_user_id"})
