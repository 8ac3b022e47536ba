"""The attributes of each kind of object: keyword, what it takes, the field of the definition, its parameter in PCF.

Keywords that IBM MQ has and that mean nothing to the bridge (triggering, clusters, events ...) are listed too: scripts
written for a queue manager run unchanged, and the answer says which of their keywords have no effect here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from commands.broker import attribute_kinds as kinds
from commands.broker.objects import PERMANENT, TEMPORARY
from commands.broker.subscription_attributes import BY_KEYWORD
from commands.mqsc.script import Command, Keyword, MqscError, syntax_error
from commands.mqsc.values import read
from rfh2 import mqi_constants as m, pcf_admin_names as c
from rfh2.constants import MQ_TOPIC_STR_LENGTH
from rfh2.pcf_names import MQCA_TOPIC_STRING
from streams.topic_objects import ClusterRoute, MessageDelivery, ProxySubscriptions, PutResponse, Scope, Wildcard

MAX_MESSAGE_LENGTH: Final = 104_857_600
MAX_TREE_LIFE_S: Final = 604_000
DESCRIPTION_LENGTH: Final = 64
TRIGGER_DATA_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """One kind of object for DEFINE, ALTER and DISPLAY.

    names: the attribute that DISPLAY prints first, before ``type_word``. without_effect: keywords taken and not kept.
    """

    word: str
    names: str
    type_word: str
    attributes: tuple[kinds.Attribute, ...]
    without_effect: frozenset[str]

    def attribute(self, keyword: str) -> kinds.Attribute | None:
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
            fields[attribute.field] = read(attribute.kind, keyword)
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


def keywords(text: str) -> frozenset[str]:
    return frozenset(text.split())


DESCRIPTION_TEXT: Final = kinds.Text(DESCRIPTION_LENGTH, filled_to=DESCRIPTION_LENGTH)
CLUSTER: Final = kinds.Attribute("CLUSTER", "cluster", kinds.Name(), c.MQCA_CLUSTER_NAME)
CLUSTER_NAMELIST: Final = kinds.Attribute("CLUSNL", "cluster_namelist", kinds.Name(), c.MQCA_CLUSTER_NAMELIST)
_DELIVERY: Final = kinds.members(
    MessageDelivery,
    ALL=c.MQDLV_ALL,
    ALLDUR=c.MQDLV_ALL_DUR,
    ALLAVAIL=c.MQDLV_ALL_AVAIL,
    ASPARENT=c.MQDLV_AS_PARENT,
)
_SCOPE: Final = kinds.members(Scope, ALL=c.MQSCOPE_ALL, QMGR=c.MQSCOPE_QMGR, ASPARENT=c.MQSCOPE_AS_PARENT)

TOPIC: Final = ObjectKind(
    "TOPIC",
    "TOPIC",
    "LOCAL",
    (
        kinds.Attribute("TOPICSTR", "topic_string", kinds.Text(MQ_TOPIC_STR_LENGTH), MQCA_TOPIC_STRING),
        kinds.Attribute("DESCR", "description", DESCRIPTION_TEXT, c.MQCA_TOPIC_DESC),
        CLUSTER,
        kinds.Attribute(
            "CLROUTE",
            "cluster_route",
            kinds.members(
                ClusterRoute,
                DIRECT=c.MQCLROUTE_DIRECT,
                TOPICHOST=c.MQCLROUTE_TOPIC_HOST,
                NONE=c.MQCLROUTE_NONE,
            ),
            c.MQIA_CLUSTER_PUB_ROUTE,
        ),
        kinds.Attribute(
            "DURSUB",
            "durable_subs",
            kinds.choice(
                YES=(True, c.MQSUB_DURABLE_ALLOWED),
                NO=(False, c.MQSUB_DURABLE_INHIBITED),
                ASPARENT=(None, c.MQSUB_DURABLE_AS_PARENT),
            ),
            c.MQIA_DURABLE_SUB,
        ),
        kinds.Attribute(
            "PUB",
            "pub",
            kinds.choice(
                ENABLED=(True, c.MQTA_PUB_ALLOWED),
                DISABLED=(False, c.MQTA_PUB_INHIBITED),
                ASPARENT=(None, c.MQTA_PUB_AS_PARENT),
            ),
            c.MQIA_INHIBIT_PUB,
        ),
        kinds.Attribute(
            "SUB",
            "sub",
            kinds.choice(
                ENABLED=(True, c.MQTA_SUB_ALLOWED),
                DISABLED=(False, c.MQTA_SUB_INHIBITED),
                ASPARENT=(None, c.MQTA_SUB_AS_PARENT),
            ),
            c.MQIA_INHIBIT_SUB,
        ),
        kinds.Attribute(
            "DEFPSIST",
            "def_persistence",
            kinds.choice(
                YES=(True, c.MQPER_PERSISTENT),
                NO=(False, c.MQPER_NOT_PERSISTENT),
                ASPARENT=(None, c.MQPER_PERSISTENCE_AS_PARENT),
            ),
            c.MQIA_TOPIC_DEF_PERSISTENCE,
        ),
        kinds.Attribute(
            "DEFPRTY",
            "def_priority",
            kinds.number(0, 9, ASPARENT=(None, c.MQPRI_PRIORITY_AS_PARENT)),
            c.MQIA_DEF_PRIORITY,
        ),
        kinds.Attribute(
            "DEFPRESP",
            "def_put_response",
            kinds.members(
                PutResponse,
                SYNC=c.MQPRT_SYNC_RESPONSE,
                ASYNC=c.MQPRT_ASYNC_RESPONSE,
                ASPARENT=c.MQPRT_RESPONSE_AS_PARENT,
            ),
            c.MQIA_DEF_PUT_RESPONSE_TYPE,
        ),
        kinds.Attribute("MDURMDL", "durable_model_queue", kinds.Name(absent=None), c.MQCA_MODEL_DURABLE_Q),
        kinds.Attribute("MNDURMDL", "non_durable_model_queue", kinds.Name(absent=None), c.MQCA_MODEL_NON_DURABLE_Q),
        kinds.Attribute("PMSGDLV", "pmsgdlv", _DELIVERY, c.MQIA_PM_DELIVERY),
        kinds.Attribute("NPMSGDLV", "npmsgdlv", _DELIVERY, c.MQIA_NPM_DELIVERY),
        kinds.Attribute("PUBSCOPE", "pub_scope", _SCOPE, c.MQIA_PUB_SCOPE),
        kinds.Attribute("SUBSCOPE", "sub_scope", _SCOPE, c.MQIA_SUB_SCOPE),
        kinds.Attribute(
            "PROXYSUB",
            "proxy_subs",
            kinds.members(ProxySubscriptions, FIRSTUSE=c.MQTA_PROXY_SUB_FIRSTUSE, FORCE=c.MQTA_PROXY_SUB_FORCE),
            c.MQIA_PROXY_SUB,
        ),
        kinds.Attribute(
            "WILDCARD",
            "wildcard",
            kinds.members(Wildcard, PASSTHRU=c.MQTA_PASSTHRU, BLOCK=c.MQTA_BLOCK),
            c.MQIA_WILDCARD_OPERATION,
        ),
        kinds.Attribute(
            "USEDLQ",
            "use_dead_letter_queue",
            kinds.choice(
                YES=(True, c.MQUSEDLQ_YES),
                NO=(False, c.MQUSEDLQ_NO),
                ASPARENT=(None, c.MQUSEDLQ_AS_PARENT),
            ),
            c.MQIA_USE_DEAD_LETTER_Q,
        ),
    ),
    frozenset({"ALTDATE", "ALTTIME", "CAPEXPRY", "CLSTATE", "COMMINFO", "CUSTOM", "MCAST", "OTELPCTL", "OTELTRAC"}),
)

_QUEUE_WITHOUT_EFFECT: Final = keywords(
    """
    ACCTQ ALTDATE ALTTIME CAPEXPRY CFSTRUCT CLCHNAME CLUSDATE CLUSNL CLUSTER CLUSTIME CLWLPRTY CLWLRANK CLWLUSEQ CRDATE
    CRTIME CUSTOM DEFBIND DEFREADA DEFTYPE DISTL FORCE HARDENBO IMGRCOVQ INDXTYPE IPPROCS MONQ NOHARDENBO NPMCLASS
    OPPROCS OTELPCTL OTELTRAC QDEPTHHI QDEPTHLO QDPHIEV QDPLOEV QDPMAXEV QSVCIEV QSVCINT RETINTVL SCOPE STATQ STGCLASS
    STREAMQ STRMQOS TPIPE
    """
)

_QUEUE_DESCRIPTION: Final = kinds.Attribute("DESCR", "description", DESCRIPTION_TEXT, c.MQCA_Q_DESC)
_WHAT_PROGRAMS_HAVE: Final = (
    kinds.Attribute(
        "PROPCTL",
        "properties",
        kinds.words(
            COMPAT=m.MQPROP_COMPATIBILITY,
            NONE=m.MQPROP_NONE,
            ALL=m.MQPROP_ALL,
            FORCE=m.MQPROP_FORCE_MQRFH2,
            V6COMPAT=m.MQPROP_V6COMPAT,
        ),
        m.MQIA_PROPERTY_CONTROL,
    ),
    kinds.Attribute(
        "DEFPRESP",
        "def_put_response",
        kinds.words(SYNC=c.MQPRT_SYNC_RESPONSE, ASYNC=c.MQPRT_ASYNC_RESPONSE),
        c.MQIA_DEF_PUT_RESPONSE_TYPE,
    ),
)
DEFINITION_TYPES: Final = {
    "PREDEFINED": c.MQQDT_PREDEFINED,
    "PERMDYN": c.MQQDT_PERMANENT_DYNAMIC,
    "TEMPDYN": c.MQQDT_TEMPORARY_DYNAMIC,
    "SHAREDYN": c.MQQDT_SHARED_DYNAMIC,
}
_LOCAL_ATTRIBUTES: Final = (
    _QUEUE_DESCRIPTION,
    kinds.Attribute(
        "PUT",
        "put_enabled",
        kinds.choice(ENABLED=(True, c.MQQA_PUT_ALLOWED), DISABLED=(False, c.MQQA_PUT_INHIBITED)),
        c.MQIA_INHIBIT_PUT,
    ),
    kinds.Attribute(
        "GET",
        "get_enabled",
        kinds.choice(ENABLED=(True, c.MQQA_GET_ALLOWED), DISABLED=(False, c.MQQA_GET_INHIBITED)),
        c.MQIA_INHIBIT_GET,
    ),
    kinds.Attribute("DEFPRTY", "def_priority", kinds.number(0, 9), c.MQIA_DEF_PRIORITY),
    kinds.Attribute(
        "DEFPSIST",
        "def_persistent",
        kinds.choice(YES=(True, c.MQPER_PERSISTENT), NO=(False, c.MQPER_NOT_PERSISTENT)),
        c.MQIA_DEF_PERSISTENCE,
    ),
    kinds.Attribute("MAXDEPTH", "max_depth", kinds.number(), c.MQIA_MAX_Q_DEPTH),
    kinds.Attribute("MAXMSGL", "max_message_length", kinds.number(0, MAX_MESSAGE_LENGTH), c.MQIA_MAX_MSG_LENGTH),
    kinds.Attribute("BOTHRESH", "backout_threshold", kinds.number(), c.MQIA_BACKOUT_THRESHOLD),
    kinds.Attribute("BOQNAME", "backout_queue", kinds.Name(), c.MQCA_BACKOUT_REQ_Q_NAME),
    kinds.Attribute(
        "USAGE",
        "transmission",
        kinds.choice(XMITQ=(True, c.MQUS_TRANSMISSION), NORMAL=(False, c.MQUS_NORMAL)),
        c.MQIA_USAGE,
    ),
    kinds.switch("SHARE", "shareable", m.MQIA_SHAREABILITY),
    kinds.Attribute(
        "DEFSOPT",
        "exclusive_by_default",
        kinds.choice(SHARED=(False, m.MQOO_INPUT_SHARED), EXCL=(True, m.MQOO_INPUT_EXCLUSIVE)),
        c.MQIA_DEF_INPUT_OPEN_OPTION,
    ),
    kinds.Attribute("MSGDLVSQ", "in_order_of", kinds.words(PRIORITY=0, FIFO=1), m.MQIA_MSG_DELIVERY_SEQUENCE),
    *_WHAT_PROGRAMS_HAVE,
    kinds.switch("TRIGGER", "triggered", m.MQIA_TRIGGER_CONTROL),
    kinds.Attribute("TRIGTYPE", "trigger_type", kinds.words(NONE=0, FIRST=1, EVERY=2, DEPTH=3), c.MQIA_TRIGGER_TYPE),
    kinds.Attribute("TRIGDPTH", "trigger_depth", kinds.number(1), c.MQIA_TRIGGER_DEPTH),
    kinds.Attribute("TRIGMPRI", "trigger_priority", kinds.number(0, 9), c.MQIA_TRIGGER_MSG_PRIORITY),
    kinds.Attribute("TRIGDATA", "trigger_data", kinds.Text(TRIGGER_DATA_LENGTH, filled_to=64), c.MQCA_TRIGGER_DATA),
    kinds.Attribute("INITQ", "initiation_queue", kinds.Name(), c.MQCA_INITIATION_Q_NAME),
    kinds.Attribute("PROCESS", "process", kinds.Name(), c.MQCA_PROCESS_NAME),
)

QLOCAL: Final = ObjectKind("QLOCAL", "QUEUE", "QLOCAL", _LOCAL_ATTRIBUTES, _QUEUE_WITHOUT_EFFECT)

QMODEL: Final = ObjectKind(
    "QMODEL",
    "QUEUE",
    "QMODEL",
    (
        *_LOCAL_ATTRIBUTES,
        kinds.Attribute(
            "DEFTYPE", "definition_type", kinds.words(TEMPORARY, *PERMANENT, **DEFINITION_TYPES), c.MQIA_DEFINITION_TYPE
        ),
    ),
    _QUEUE_WITHOUT_EFFECT - {"DEFTYPE"},
)

QALIAS: Final = ObjectKind(
    "QALIAS",
    "QUEUE",
    "QALIAS",
    (
        _QUEUE_DESCRIPTION,
        kinds.Attribute("TARGET", "target", kinds.Name(), c.MQCA_BASE_OBJECT_NAME, aliases=("TARGQ",)),
        kinds.Attribute("TARGTYPE", "target_type", kinds.words(QUEUE=c.MQOT_Q, TOPIC=c.MQOT_TOPIC), c.MQIA_BASE_TYPE),
        *_WHAT_PROGRAMS_HAVE,
    ),
    _QUEUE_WITHOUT_EFFECT | {"DEFPRTY", "DEFPSIST", "GET", "PUT"},
)

NAMELIST: Final = ObjectKind(
    "NAMELIST",
    "NAMELIST",
    "",
    (
        kinds.Attribute("DESCR", "description", DESCRIPTION_TEXT, c.MQCA_NAMELIST_DESC),
        kinds.Attribute("NAMES", "names", kinds.Names(), c.MQCA_NAMES),
    ),
    frozenset({"ALTDATE", "ALTTIME", "CLUSNL", "CLUSTER", "NAMCOUNT", "NLTYPE"}),
)

QMGR: Final = ObjectKind(
    "QMGR",
    "QMNAME",
    "",
    (
        kinds.Attribute("DESCR", "description", DESCRIPTION_TEXT, c.MQCA_Q_MGR_DESC),
        kinds.Attribute("CUSTOM", "custom", kinds.Custom(), c.MQCA_CUSTOM),
        kinds.Attribute("DEADQ", "deadq", kinds.Name(), c.MQCA_DEAD_LETTER_Q_NAME),
        kinds.Attribute("PARENT", "parent", kinds.Name(), c.MQCA_PARENT),
        kinds.Attribute(
            "PSMODE",
            "psmode",
            kinds.words(ENABLED=c.MQPSM_ENABLED, COMPAT=c.MQPSM_COMPAT, DISABLED=c.MQPSM_DISABLED),
            c.MQIA_PUBSUB_MODE,
        ),
        kinds.Attribute(
            "PSNPMSG",
            "psnpmsg",
            kinds.words(DISCARD=c.MQUNDELIVERED_DISCARD, KEEP=c.MQUNDELIVERED_KEEP),
            c.MQIA_PUBSUB_NP_MSG,
        ),
        kinds.Attribute(
            "PSNPRES",
            "psnpres",
            kinds.words(
                NORMAL=c.MQUNDELIVERED_NORMAL,
                SAFE=c.MQUNDELIVERED_SAFE,
                DISCARD=c.MQUNDELIVERED_DISCARD,
                KEEP=c.MQUNDELIVERED_KEEP,
            ),
            c.MQIA_PUBSUB_NP_RESP,
        ),
        kinds.Attribute("PSRTYCNT", "psrtycnt", kinds.number(), c.MQIA_PUBSUB_MAXMSG_RETRY_COUNT),
        kinds.Attribute(
            "PSSYNCPT", "pssyncpt", kinds.words(YES=c.MQSYNCPOINT_YES, IFPER=c.MQSYNCPOINT_IFPER), c.MQIA_PUBSUB_SYNC_PT
        ),
        kinds.Attribute("TREELIFE", "treelife", kinds.number(0, MAX_TREE_LIFE_S), c.MQIA_TREE_LIFE_TIME),
        kinds.Attribute("CONNAUTH", "connauth", kinds.Name(), c.MQCA_CONN_AUTH),
        kinds.Attribute(
            "CHLAUTH",
            "chlauth",
            kinds.choice(ENABLED=(True, c.MQCHLA_ENABLED), DISABLED=(False, c.MQCHLA_DISABLED)),
            c.MQIA_CHLAUTH_RECORDS,
        ),
        kinds.Attribute("SSLKEYR", "key_repository", kinds.Text(256, filled_to=256), c.MQCA_SSL_KEY_REPOSITORY),
        kinds.Attribute("CERTLABL", "certificate_label", kinds.Text(64, filled_to=64), c.MQCA_CERT_LABEL),
    ),
    keywords(
        """
        ACCTCONO ACCTINT ACCTMQI ACCTQ ACTIVREC ACTVCONO ACTVTRC ADVCAP ALTDATE ALTTIME AUTHOREV BRIDGEEV CCSID
        CERTVPOL CHAD CHADEV CHADEXIT CHLEV CLWLDATA CLWLEXIT CLWLLEN CLWLMRUC CLWLUSEQ CMDEV CMDLEVEL COMMANDQ
        CONFIGEV CPILEVEL CRDATE CRTIME DEFCLXQ DEFXMITQ DISTL FORCE IMGINTVL IMGLOGLN IMGRCOVO IMGRCOVQ
        IMGSCHED INHIBTEV INITKEY IPADDRV KEYRPWD LOCALEV LOGGEREV MARKINT MAXHANDS MAXMSGL MAXPRTY MAXPROPL MAXUMSGS
        MONACLS MONCHL MONQ OTELPCTL OTELTRAC PERFMEV PLATFORM QMID REMOTEEV REPOS REPOSNL REVDNS ROUTEREC SCHINIT
        SCMDSERV SPLCAP SSLCRLNL SSLCRYP SSLEV SSLFIPS SSLRKEYC STATACLS STATCHL STATINT STATMQI STATQ STRSTPEV
        SUITEB SYNCPT TRIGINT VERSION XRCAP
        """
    ),
)

SUB: Final = ObjectKind(
    "SUB",
    "SUB",
    "",
    tuple(each for each in BY_KEYWORD.values() if not each.shown_only),
    frozenset({"ALTDATE", "ALTTIME", "SELTYPE", "ACTCONN", "ACTCON"}),
)
