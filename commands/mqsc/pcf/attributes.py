"""The attributes of each kind of object in PCF: MQSC's keyword, the number of its parameter, its form and its words.

What a keyword means, and what it may be, is said in ``commands.mqsc.attributes`` alone. Keywords that PCF has no
parameter for (GROUPSUB, which is the bridge's own) are not returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from commands.mqsc.pcf.forms import Bytes, Characters, Form, Integer, IntegerList, Names, words
from rfh2 import pcf_admin_names as c
from rfh2.pcf_names import MQBACF_SUB_ID, MQCA_Q_MGR_NAME, MQCA_Q_NAME, MQCA_TOPIC_STRING


@dataclass(frozen=True, slots=True)
class PcfAttribute:
    """One keyword of MQSC, and the parameter with the same meaning."""

    keyword: str
    number: int
    form: Form


_TEXT: Final = Characters()
_NAME: Final = Characters(48)
_DESCRIPTION: Final = Characters(64)
_DATE: Final = Characters(12)
_TIME: Final = Characters(8)
_NUMBER: Final = Integer()
_YES_NO: Final = words(YES=c.MQUSEDLQ_YES, NO=c.MQUSEDLQ_NO, ASPARENT=c.MQUSEDLQ_AS_PARENT)
_DELIVERY: Final = words(
    ALL=c.MQDLV_ALL, ALLDUR=c.MQDLV_ALL_DUR, ALLAVAIL=c.MQDLV_ALL_AVAIL, ASPARENT=c.MQDLV_AS_PARENT
)
_ROUTE: Final = words(DIRECT=c.MQCLROUTE_DIRECT, TOPICHOST=c.MQCLROUTE_TOPIC_HOST, NONE=c.MQCLROUTE_NONE)
_SCOPE: Final = words(ALL=c.MQSCOPE_ALL, QMGR=c.MQSCOPE_QMGR, ASPARENT=c.MQSCOPE_AS_PARENT)
_PRIORITY: Final = Integer({"ASPARENT": c.MQPRI_PRIORITY_AS_PARENT})

CLUSTER: Final = PcfAttribute("CLUSTER", c.MQCA_CLUSTER_NAME, _NAME)
CLUSTER_NAMELIST: Final = PcfAttribute("CLUSNL", c.MQCA_CLUSTER_NAMELIST, _NAME)
_CLUSTER_QMGR: Final = PcfAttribute("CLUSQMGR", c.MQCA_CLUSTER_Q_MGR_NAME, _NAME)
_CLUSTER_ROUTE: Final = PcfAttribute("CLROUTE", c.MQIA_CLUSTER_PUB_ROUTE, _ROUTE)

# Of a topic object, and of a topic in the tree, which has inherited what it does not have itself.
_INHERITED: Final = (
    CLUSTER,
    PcfAttribute(
        "DURSUB",
        c.MQIA_DURABLE_SUB,
        words(YES=c.MQSUB_DURABLE_ALLOWED, NO=c.MQSUB_DURABLE_INHIBITED, ASPARENT=c.MQSUB_DURABLE_AS_PARENT),
    ),
    PcfAttribute(
        "PUB",
        c.MQIA_INHIBIT_PUB,
        words(ENABLED=c.MQTA_PUB_ALLOWED, DISABLED=c.MQTA_PUB_INHIBITED, ASPARENT=c.MQTA_PUB_AS_PARENT),
    ),
    PcfAttribute(
        "SUB",
        c.MQIA_INHIBIT_SUB,
        words(ENABLED=c.MQTA_SUB_ALLOWED, DISABLED=c.MQTA_SUB_INHIBITED, ASPARENT=c.MQTA_SUB_AS_PARENT),
    ),
    PcfAttribute(
        "DEFPSIST",
        c.MQIA_TOPIC_DEF_PERSISTENCE,
        words(YES=c.MQPER_PERSISTENT, NO=c.MQPER_NOT_PERSISTENT, ASPARENT=c.MQPER_PERSISTENCE_AS_PARENT),
    ),
    PcfAttribute("DEFPRTY", c.MQIA_DEF_PRIORITY, _PRIORITY),
    PcfAttribute(
        "DEFPRESP",
        c.MQIA_DEF_PUT_RESPONSE_TYPE,
        words(SYNC=c.MQPRT_SYNC_RESPONSE, ASYNC=c.MQPRT_ASYNC_RESPONSE, ASPARENT=c.MQPRT_RESPONSE_AS_PARENT),
    ),
    PcfAttribute("MDURMDL", c.MQCA_MODEL_DURABLE_Q, _NAME),
    PcfAttribute("MNDURMDL", c.MQCA_MODEL_NON_DURABLE_Q, _NAME),
    PcfAttribute("PMSGDLV", c.MQIA_PM_DELIVERY, _DELIVERY),
    PcfAttribute("NPMSGDLV", c.MQIA_NPM_DELIVERY, _DELIVERY),
    PcfAttribute("PUBSCOPE", c.MQIA_PUB_SCOPE, _SCOPE),
    PcfAttribute("SUBSCOPE", c.MQIA_SUB_SCOPE, _SCOPE),
    PcfAttribute("USEDLQ", c.MQIA_USE_DEAD_LETTER_Q, _YES_NO),
)

TOPIC: Final = (
    PcfAttribute("TOPIC", c.MQCA_TOPIC_NAME, _NAME),
    PcfAttribute("TYPE", c.MQIA_TOPIC_TYPE, words(LOCAL=c.MQTOPT_LOCAL, CLUSTER=c.MQTOPT_CLUSTER, ALL=c.MQTOPT_ALL)),
    PcfAttribute("TOPICSTR", MQCA_TOPIC_STRING, _TEXT),
    PcfAttribute("DESCR", c.MQCA_TOPIC_DESC, _DESCRIPTION),
    *_INHERITED,
    _CLUSTER_ROUTE,
    PcfAttribute("PROXYSUB", c.MQIA_PROXY_SUB, words(FORCE=c.MQTA_PROXY_SUB_FORCE, FIRSTUSE=c.MQTA_PROXY_SUB_FIRSTUSE)),
    PcfAttribute("WILDCARD", c.MQIA_WILDCARD_OPERATION, words(BLOCK=c.MQTA_BLOCK, PASSTHRU=c.MQTA_PASSTHRU)),
)
# As Inquire Topic shows it: also where it is defined, of a cluster topic.
TOPIC_SHOWN: Final = (
    *TOPIC,
    _CLUSTER_QMGR,
    PcfAttribute("CLSTATE", c.MQIA_CLUSTER_OBJECT_STATE, words(ACTIVE=c.MQCLST_ACTIVE, INVALID=c.MQCLST_INVALID)),
)

CHANNEL_TYPE: Final = PcfAttribute(
    "CHLTYPE",
    c.MQIACH_CHANNEL_TYPE,
    words(
        CLUSRCVR=c.MQCHT_CLUSRCVR,
        CLUSSDR=c.MQCHT_CLUSSDR,
        SDR=c.MQCHT_SENDER,
        SVR=c.MQCHT_SERVER,
        RCVR=c.MQCHT_RECEIVER,
        RQSTR=c.MQCHT_REQUESTER,
        CLNTCONN=c.MQCHT_CLNTCONN,
        SVRCONN=c.MQCHT_SVRCONN,
        ALL=c.MQCHT_ALL,
    ),
)
CHANNEL_NAME: Final = PcfAttribute("CHANNEL", c.MQCACH_CHANNEL_NAME, Characters(20))
_CONNECTION: Final = (
    PcfAttribute("CONNAME", c.MQCACH_CONNECTION_NAME, Characters(264)),
    PcfAttribute("DESCR", c.MQCACH_DESC, _DESCRIPTION),
)
CHANNEL: Final = (CHANNEL_NAME, CHANNEL_TYPE, CLUSTER, CLUSTER_NAMELIST, *_CONNECTION)

CLUSTER_QMGR: Final = (
    _CLUSTER_QMGR,
    CHANNEL_NAME,
    CLUSTER,
    PcfAttribute("QMTYPE", c.MQIACF_Q_MGR_TYPE, words(REPOS=c.MQQMT_REPOSITORY, NORMAL=c.MQQMT_NORMAL)),
    PcfAttribute(
        "DEFTYPE",
        c.MQIACF_Q_MGR_DEFINITION_TYPE,
        words(
            CLUSRCVR=c.MQQMDT_CLUSTER_RECEIVER,
            CLUSSDR=c.MQQMDT_EXPLICIT_CLUSTER_SENDER,
            CLUSSDRA=c.MQQMDT_AUTO_CLUSTER_SENDER,
            CLUSSDRB=c.MQQMDT_AUTO_EXP_CLUSTER_SENDER,
        ),
    ),
    PcfAttribute(
        "STATUS",
        c.MQIACH_CHANNEL_STATUS,
        words(INACTIVE=c.MQCHS_INACTIVE, STARTING=c.MQCHS_STARTING, RUNNING=c.MQCHS_RUNNING),
    ),
    PcfAttribute("SUSPEND", c.MQIACF_SUSPEND, words(YES=c.MQSUS_YES, NO=c.MQSUS_NO)),
    *_CONNECTION,
)
SUSPEND_MODE: Final = PcfAttribute("MODE", c.MQIACF_MODE, words(QUIESCE=c.MQMODE_QUIESCE, FORCE=c.MQMODE_FORCE))
REFRESH_REPOSITORY: Final = PcfAttribute(
    "REPOS",
    c.MQIACF_REFRESH_REPOSITORY,
    words(YES=c.MQCFO_REFRESH_REPOSITORY_YES, NO=c.MQCFO_REFRESH_REPOSITORY_NO),
)

QUEUE_TYPE: Final = words(
    QLOCAL=c.MQQT_LOCAL, QALIAS=c.MQQT_ALIAS, QMODEL=c.MQQT_MODEL, QREMOTE=c.MQQT_REMOTE, ALL=c.MQQT_ALL
)
QUEUE: Final = (
    PcfAttribute("QUEUE", MQCA_Q_NAME, _NAME),
    PcfAttribute("TYPE", c.MQIA_Q_TYPE, QUEUE_TYPE),
    PcfAttribute("DESCR", c.MQCA_Q_DESC, _DESCRIPTION),
    PcfAttribute("PUT", c.MQIA_INHIBIT_PUT, words(ENABLED=c.MQQA_PUT_ALLOWED, DISABLED=c.MQQA_PUT_INHIBITED)),
    PcfAttribute("GET", c.MQIA_INHIBIT_GET, words(ENABLED=c.MQQA_GET_ALLOWED, DISABLED=c.MQQA_GET_INHIBITED)),
    PcfAttribute("DEFPRTY", c.MQIA_DEF_PRIORITY, _NUMBER),
    PcfAttribute("DEFPSIST", c.MQIA_DEF_PERSISTENCE, words(YES=c.MQPER_PERSISTENT, NO=c.MQPER_NOT_PERSISTENT)),
    PcfAttribute("MAXDEPTH", c.MQIA_MAX_Q_DEPTH, _NUMBER),
    PcfAttribute("MAXMSGL", c.MQIA_MAX_MSG_LENGTH, _NUMBER),
    PcfAttribute("BOTHRESH", c.MQIA_BACKOUT_THRESHOLD, _NUMBER),
    PcfAttribute("BOQNAME", c.MQCA_BACKOUT_REQ_Q_NAME, _NAME),
    PcfAttribute("USAGE", c.MQIA_USAGE, words(NORMAL=c.MQUS_NORMAL, XMITQ=c.MQUS_TRANSMISSION)),
    PcfAttribute(
        "DEFTYPE",
        c.MQIA_DEFINITION_TYPE,
        words(
            PREDEFINED=c.MQQDT_PREDEFINED,
            PERMDYN=c.MQQDT_PERMANENT_DYNAMIC,
            TEMPDYN=c.MQQDT_TEMPORARY_DYNAMIC,
            SHAREDYN=c.MQQDT_SHARED_DYNAMIC,
        ),
    ),
    PcfAttribute("CURDEPTH", c.MQIA_CURRENT_Q_DEPTH, _NUMBER),
    PcfAttribute("TARGET", c.MQCA_BASE_OBJECT_NAME, _NAME),
    PcfAttribute("TARGTYPE", c.MQIA_BASE_TYPE, words(QUEUE=c.MQOT_Q, TOPIC=c.MQOT_TOPIC)),
)

QUEUE_STATUS: Final = (QUEUE[0], next(each for each in QUEUE if each.keyword == "CURDEPTH"))

NAMELIST: Final = (
    PcfAttribute("NAMELIST", c.MQCA_NAMELIST_NAME, _NAME),
    PcfAttribute("DESCR", c.MQCA_NAMELIST_DESC, _DESCRIPTION),
    PcfAttribute("NAMES", c.MQCA_NAMES, Names()),
    PcfAttribute("NAMCOUNT", c.MQIA_NAME_COUNT, _NUMBER),
)

QMGR: Final = (
    PcfAttribute("QMNAME", MQCA_Q_MGR_NAME, _NAME),
    PcfAttribute("DESCR", c.MQCA_Q_MGR_DESC, _DESCRIPTION),
    PcfAttribute("DEADQ", c.MQCA_DEAD_LETTER_Q_NAME, _NAME),
    PcfAttribute("PARENT", c.MQCA_PARENT, _NAME),
    PcfAttribute("CUSTOM", c.MQCA_CUSTOM, Characters(128)),
    PcfAttribute(
        "PSMODE",
        c.MQIA_PUBSUB_MODE,
        words(ENABLED=c.MQPSM_ENABLED, COMPAT=c.MQPSM_COMPAT, DISABLED=c.MQPSM_DISABLED),
    ),
    PcfAttribute("PSNPMSG", c.MQIA_PUBSUB_NP_MSG, words(DISCARD=c.MQUNDELIVERED_DISCARD, KEEP=c.MQUNDELIVERED_KEEP)),
    PcfAttribute(
        "PSNPRES",
        c.MQIA_PUBSUB_NP_RESP,
        words(
            NORMAL=c.MQUNDELIVERED_NORMAL,
            SAFE=c.MQUNDELIVERED_SAFE,
            DISCARD=c.MQUNDELIVERED_DISCARD,
            KEEP=c.MQUNDELIVERED_KEEP,
        ),
    ),
    PcfAttribute("PSRTYCNT", c.MQIA_PUBSUB_MAXMSG_RETRY_COUNT, _NUMBER),
    PcfAttribute("PSSYNCPT", c.MQIA_PUBSUB_SYNC_PT, words(YES=c.MQSYNCPOINT_YES, IFPER=c.MQSYNCPOINT_IFPER)),
    PcfAttribute("TREELIFE", c.MQIA_TREE_LIFE_TIME, _NUMBER),
)

DURABLE: Final = PcfAttribute(
    "DURABLE",
    c.MQIACF_DURABLE_SUBSCRIPTION,
    words(YES=c.MQSUB_DURABLE_YES, NO=c.MQSUB_DURABLE_NO, ALL=c.MQSUB_DURABLE_ALL),
)
SUB_TYPE: Final = PcfAttribute(
    "SUBTYPE",
    c.MQIACF_SUB_TYPE,
    words(
        ADMIN=c.MQSUBTYPE_ADMIN,
        API=c.MQSUBTYPE_API,
        PROXY=c.MQSUBTYPE_PROXY,
        USER=c.MQSUBTYPE_USER,
        ALL=c.MQSUBTYPE_ALL,
    ),
)
DISPLAY_TYPE: Final = PcfAttribute(
    "DISTYPE", c.MQIA_DISPLAY_TYPE, words(RESOLVED=c.MQDOPT_RESOLVED, DEFINED=c.MQDOPT_DEFINED)
)
SUB_ID: Final = PcfAttribute("SUBID", MQBACF_SUB_ID, Bytes())
_SUB_NAME: Final = PcfAttribute("SUB", c.MQCACF_SUB_NAME, _TEXT)
_SUB_USER: Final = PcfAttribute("SUBUSER", c.MQCACF_SUB_USER_ID, Characters(12))

SUBSCRIPTION: Final = (
    SUB_ID,
    _SUB_NAME,
    PcfAttribute("TOPICSTR", MQCA_TOPIC_STRING, _TEXT),
    PcfAttribute("TOPICOBJ", c.MQCA_TOPIC_NAME, _NAME),
    DISPLAY_TYPE,
    PcfAttribute("DEST", c.MQCACF_DESTINATION, _NAME),
    PcfAttribute("DESTQMGR", c.MQCACF_DESTINATION_Q_MGR, _NAME),
    PcfAttribute("DESTCLAS", c.MQIACF_DESTINATION_CLASS, words(PROVIDED=c.MQDC_PROVIDED, MANAGED=c.MQDC_MANAGED)),
    PcfAttribute("DESTCORL", c.MQBACF_DESTINATION_CORREL_ID, Bytes()),
    DURABLE,
    PcfAttribute("EXPIRY", c.MQIACF_EXPIRY, Integer({"UNLIMITED": c.MQEI_UNLIMITED})),
    SUB_TYPE,
    PcfAttribute("CRDATE", c.MQCA_CREATION_DATE, _DATE),
    PcfAttribute("CRTIME", c.MQCA_CREATION_TIME, _TIME),
    PcfAttribute(
        "PSPROP",
        c.MQIACF_PUBSUB_PROPERTIES,
        words(MSGPROP=c.MQPSPROP_MSGPROP, COMPAT=c.MQPSPROP_COMPAT, RFH2=c.MQPSPROP_RFH2, NONE=c.MQPSPROP_NONE),
    ),
    PcfAttribute("PUBACCT", c.MQBACF_ACCOUNTING_TOKEN, Bytes()),
    PcfAttribute("PUBAPPID", c.MQCACF_APPL_IDENTITY_DATA, Characters(32)),
    PcfAttribute(
        "PUBPRTY",
        c.MQIACF_PUB_PRIORITY,
        Integer({"ASPUB": c.MQPRI_PRIORITY_AS_PUBLISHED, "ASQDEF": c.MQPRI_PRIORITY_AS_Q_DEF}),
    ),
    PcfAttribute("REQONLY", c.MQIACF_REQUEST_ONLY, words(YES=c.MQRU_PUBLISH_ON_REQUEST, NO=c.MQRU_PUBLISH_ALL)),
    PcfAttribute("SELECTOR", c.MQCACF_SUB_SELECTOR, _TEXT),
    PcfAttribute("SUBLEVEL", c.MQIACF_SUB_LEVEL, _NUMBER),
    PcfAttribute("SUBSCOPE", c.MQIACF_SUBSCRIPTION_SCOPE, words(ALL=c.MQTSCOPE_ALL, QMGR=c.MQTSCOPE_QMGR)),
    _SUB_USER,
    PcfAttribute("USERDATA", c.MQCACF_SUB_USER_DATA, _TEXT),
    PcfAttribute("VARUSER", c.MQIACF_VARIABLE_USER_ID, words(ANY=c.MQVU_ANY_USER, FIXED=c.MQVU_FIXED_USER)),
    PcfAttribute("WSCHEMA", c.MQIACF_WILDCARD_SCHEMA, words(CHAR=c.MQWS_CHAR, TOPIC=c.MQWS_TOPIC)),
)
# The attributes that MQIACF_SUB_SUMMARY stands for.
SUB_SUMMARY: Final = (
    *("DEST", "DESTCORL", "DESTQMGR", "DURABLE"),
    *("SUB", "SUBID", "SUBTYPE", "SUBUSER", "TOPICSTR"),
)

_SUB_STATUS: Final = (
    SUB_ID,
    _SUB_USER,
    SUB_TYPE,
    DURABLE,
    PcfAttribute("RESMDATE", c.MQCA_RESUME_DATE, _DATE),
    PcfAttribute("RESMTIME", c.MQCA_RESUME_TIME, _TIME),
    PcfAttribute("ACTCONN", c.MQBACF_CONNECTION_ID, Bytes()),
    PcfAttribute("NUMMSGS", c.MQIACF_MESSAGE_COUNT, _NUMBER),
    PcfAttribute("LMSGDATE", c.MQCACF_LAST_MSG_DATE, _DATE),
    PcfAttribute("LMSGTIME", c.MQCACF_LAST_MSG_TIME, _TIME),
)
_TOPIC_STRING: Final = PcfAttribute("TOPICSTR", MQCA_TOPIC_STRING, _TEXT)
SUB_STATUS: Final = (_SUB_NAME, _TOPIC_STRING, *_SUB_STATUS)
TOPIC_STATUS: Final = (
    _TOPIC_STRING,
    PcfAttribute("ADMIN", c.MQCA_ADMIN_TOPIC_NAME, _NAME),
    PcfAttribute("RETAINED", c.MQIACF_RETAINED_PUBLICATION, words(YES=c.MQQSO_YES, NO=c.MQQSO_NO)),
    PcfAttribute("PUBCOUNT", c.MQIA_PUB_COUNT, _NUMBER),
    PcfAttribute("SUBCOUNT", c.MQIA_SUB_COUNT, _NUMBER),
    _CLUSTER_ROUTE,
    *_INHERITED,
)
TOPIC_STATUS_SUB: Final = (_TOPIC_STRING, *_SUB_STATUS)

PUBSUB_TYPE: Final = PcfAttribute(
    "TYPE",
    c.MQIACF_PS_STATUS_TYPE,
    words(LOCAL=c.MQPSST_LOCAL, PARENT=c.MQPSST_PARENT, CHILD=c.MQPSST_CHILD, ALL=c.MQPSST_ALL),
)
PUBSUB: Final = (
    PcfAttribute("QMNAME", MQCA_Q_MGR_NAME, _NAME),
    PUBSUB_TYPE,
    PcfAttribute(
        "STATUS",
        c.MQIACF_PUBSUB_STATUS,
        words(ACTIVE=c.MQPS_STATUS_ACTIVE, COMPAT=c.MQPS_STATUS_COMPAT, INACTIVE=c.MQPS_STATUS_INACTIVE),
    ),
    PcfAttribute("SUBCOUNT", c.MQIA_SUB_COUNT, _NUMBER),
    PcfAttribute("TPCOUNT", c.MQIA_TOPIC_NODE_COUNT, _NUMBER),
)

OBJECT_TYPE: Final = PcfAttribute(
    "OBJTYPE",
    c.MQIACF_OBJECT_TYPE,
    words(QUEUE=c.MQOT_Q, TOPIC=c.MQOT_TOPIC, NAMELIST=c.MQOT_NAMELIST, QMGR=c.MQOT_Q_MGR, ALL=c.MQOT_ALL),
)
_AUTHORITIES: Final = {
    "NONE": c.MQAUTH_NONE,
    "ALTUSR": c.MQAUTH_ALT_USER_AUTHORITY,
    "BROWSE": c.MQAUTH_BROWSE,
    "CHG": c.MQAUTH_CHANGE,
    "CLR": c.MQAUTH_CLEAR,
    "CONNECT": c.MQAUTH_CONNECT,
    "CRT": c.MQAUTH_CREATE,
    "DLT": c.MQAUTH_DELETE,
    "DSP": c.MQAUTH_DISPLAY,
    "GET": c.MQAUTH_INPUT,
    "INQ": c.MQAUTH_INQUIRE,
    "PUT": c.MQAUTH_OUTPUT,
    "PASSALL": c.MQAUTH_PASS_ALL_CONTEXT,
    "PASSID": c.MQAUTH_PASS_IDENTITY_CONTEXT,
    "SET": c.MQAUTH_SET,
    "SETALL": c.MQAUTH_SET_ALL_CONTEXT,
    "SETID": c.MQAUTH_SET_IDENTITY_CONTEXT,
    "CTRL": c.MQAUTH_CONTROL,
    "PUB": c.MQAUTH_PUBLISH,
    "SUB": c.MQAUTH_SUBSCRIBE,
    "RESUME": c.MQAUTH_RESUME,
    "SYSTEM": c.MQAUTH_SYSTEM,
    "ALL": c.MQAUTH_ALL,
    "ALLADM": c.MQAUTH_ALL_ADMIN,
    "ALLMQI": c.MQAUTH_ALL_MQI,
}
PROFILE: Final = PcfAttribute("PROFILE", c.MQCACF_AUTH_PROFILE_NAME, _NAME)
AUTHORITY_ADDED: Final = PcfAttribute("AUTHADD", c.MQIACF_AUTH_ADD_AUTHS, IntegerList(_AUTHORITIES))
AUTHORITY_REMOVED: Final = PcfAttribute("AUTHRMV", c.MQIACF_AUTH_REMOVE_AUTHS, IntegerList(_AUTHORITIES))
AUTHORITY_RECORD: Final = (
    PROFILE,
    OBJECT_TYPE,
    PcfAttribute("ENTITY", c.MQCACF_ENTITY_NAME, _TEXT),
    PcfAttribute("ENTTYPE", c.MQIACF_ENTITY_TYPE, words(PRINCIPAL=c.MQZAET_PRINCIPAL, GROUP=c.MQZAET_GROUP)),
    PcfAttribute("AUTHLIST", c.MQIACF_AUTHORIZATION_LIST, IntegerList(_AUTHORITIES)),
)
