"""The parameters of each kind of object and of what is shown of it, in PCF: those of MQSC's attributes, and more."""

from __future__ import annotations

from typing import Final

from commands.broker.attribute_kinds import Attribute, Hexadecimal, Name, Text, WordList, number, words
from commands.broker.subscription_attributes import (
    BY_KEYWORD,
    DURABLE,
    SUB_ID,
    SUB_NAME,
    SUB_TYPE,
    SUB_USER,
)
from commands.mqsc import attributes as mqsc, channel_attributes as of_channels
from commands.mqsc.attributes import ObjectKind
from commands.mqsc.connections import OPEN_OPTIONS
from rfh2 import pcf_admin_names as c
from rfh2.pcf_names import MQCA_Q_MGR_NAME, MQCA_Q_NAME

_TEXT: Final = Text(0)
_NAME: Final = Name()
_DATE: Final = Text(12, filled_to=12)
_TIME: Final = Text(8, filled_to=8)
_NUMBER: Final = number()


def _parameters(kind: ObjectKind) -> tuple[Attribute, ...]:
    return tuple(attribute for attribute in kind.attributes if attribute.number)


CLUSTER_QMGR_NAME: Final = Attribute("CLUSQMGR", "", _NAME, c.MQCA_CLUSTER_Q_MGR_NAME)
TOPIC_TYPE: Final = Attribute(
    "TYPE", "", words(LOCAL=c.MQTOPT_LOCAL, CLUSTER=c.MQTOPT_CLUSTER, ALL=c.MQTOPT_ALL), c.MQIA_TOPIC_TYPE
)
TOPIC: Final = (Attribute("TOPIC", "", _NAME, c.MQCA_TOPIC_NAME), TOPIC_TYPE, *_parameters(mqsc.TOPIC))
# As Inquire Topic shows it: also where it is defined, of a cluster topic.
TOPIC_SHOWN: Final = (
    *TOPIC,
    CLUSTER_QMGR_NAME,
    Attribute("CLSTATE", "", words(ACTIVE=c.MQCLST_ACTIVE, INVALID=c.MQCLST_INVALID), c.MQIA_CLUSTER_OBJECT_STATE),
)

CHANNEL_NAME: Final = Attribute("CHANNEL", "", Name(filled_to=20), c.MQCACH_CHANNEL_NAME)
_OF_CLUSTER: Final = _parameters(of_channels.CHANNEL)
CHANNEL: Final = (
    CHANNEL_NAME,
    *_OF_CLUSTER,
    *(each for each in _parameters(of_channels.SERVER_CHANNEL) if each.keyword not in ("CHLTYPE", "DESCR")),
)
AUTHINFO: Final = (
    Attribute("AUTHINFO", "", _NAME, c.MQCA_AUTH_INFO_NAME),
    *_parameters(of_channels.AUTHINFO),
)
LISTENER: Final = (Attribute("LISTENER", "", _NAME, c.MQCACH_LISTENER_NAME), *_parameters(of_channels.LISTENER))
CHANNEL_RULE: Final = (
    Attribute("CHLAUTH", "", Name(filled_to=20), c.MQCACH_CHANNEL_NAME),
    *_parameters(of_channels.CHLAUTH),
)
RULE_ACTION: Final = Attribute(
    "ACTION",
    "",
    words(ADD=c.MQACT_ADD, REPLACE=c.MQACT_REPLACE, REMOVE=c.MQACT_REMOVE, REMOVEALL=c.MQACT_REMOVEALL),
    c.MQIACF_ACTION,
)
RULE_MATCH: Final = Attribute(
    "MATCH",
    "",
    words(GENERIC=c.MQMATCH_GENERIC, RUNCHECK=c.MQMATCH_RUNCHECK, EXACT=c.MQMATCH_EXACT, ALL=c.MQMATCH_ALL),
    c.MQIACH_MATCH,
)

CLUSTER_QMGR: Final = (
    CLUSTER_QMGR_NAME,
    CHANNEL_NAME,
    mqsc.CLUSTER,
    Attribute("QMTYPE", "", words(REPOS=c.MQQMT_REPOSITORY, NORMAL=c.MQQMT_NORMAL), c.MQIACF_Q_MGR_TYPE),
    Attribute(
        "DEFTYPE",
        "",
        words(
            CLUSRCVR=c.MQQMDT_CLUSTER_RECEIVER,
            CLUSSDR=c.MQQMDT_EXPLICIT_CLUSTER_SENDER,
            CLUSSDRA=c.MQQMDT_AUTO_CLUSTER_SENDER,
            CLUSSDRB=c.MQQMDT_AUTO_EXP_CLUSTER_SENDER,
        ),
        c.MQIACF_Q_MGR_DEFINITION_TYPE,
    ),
    Attribute(
        "STATUS",
        "",
        words(INACTIVE=c.MQCHS_INACTIVE, STARTING=c.MQCHS_STARTING, RUNNING=c.MQCHS_RUNNING),
        c.MQIACH_CHANNEL_STATUS,
    ),
    Attribute("SUSPEND", "", words(YES=c.MQSUS_YES, NO=c.MQSUS_NO), c.MQIACF_SUSPEND),
    *of_channels.CONNECTION,
)
SUSPEND_MODE: Final = Attribute("MODE", "", words(QUIESCE=c.MQMODE_QUIESCE, FORCE=c.MQMODE_FORCE), c.MQIACF_MODE)
REFRESH_REPOSITORY: Final = Attribute(
    "REPOS",
    "",
    words(YES=c.MQCFO_REFRESH_REPOSITORY_YES, NO=c.MQCFO_REFRESH_REPOSITORY_NO),
    c.MQIACF_REFRESH_REPOSITORY,
)

QUEUE_KIND: Final = words(
    QLOCAL=c.MQQT_LOCAL, QALIAS=c.MQQT_ALIAS, QMODEL=c.MQQT_MODEL, QREMOTE=c.MQQT_REMOTE, ALL=c.MQQT_ALL
)
QUEUE_TYPE: Final = Attribute("TYPE", "", QUEUE_KIND, c.MQIA_Q_TYPE)
_QUEUE_NAME: Final = Attribute("QUEUE", "", _NAME, MQCA_Q_NAME)
_DEPTH: Final = Attribute("CURDEPTH", "", _NUMBER, c.MQIA_CURRENT_Q_DEPTH)
QUEUE: Final = (
    _QUEUE_NAME,
    QUEUE_TYPE,
    *_parameters(mqsc.QLOCAL),
    Attribute("DEFTYPE", "", words(**mqsc.DEFINITION_TYPES), c.MQIA_DEFINITION_TYPE),
    _DEPTH,
    *(attribute for attribute in _parameters(mqsc.QALIAS) if attribute not in mqsc.QLOCAL.attributes),
)

# Who is connected, and what of queues they have open.
_NO_OR_YES: Final = words(NO=c.MQQSO_NO, YES=c.MQQSO_YES)
_CONNECTION_NAME: Final = of_channels.CONNECTION[0]
_CHANNEL_TYPE: Final = of_channels.CHANNEL_TYPE
_PROGRAM: Final = (
    Attribute("PID", "", _NUMBER, c.MQIACF_PROCESS_ID),
    Attribute("APPLTAG", "", Text(28, filled_to=28), c.MQCACF_APPL_TAG),
    Attribute("APPLTYPE", "", words(USER=c.MQAT_USER), c.MQIA_APPL_TYPE),
    CHANNEL_NAME,
    _CONNECTION_NAME,
    Attribute("USERID", "", Text(64, filled_to=64), c.MQCACF_USER_IDENTIFIER),
)
_HANDLE_STATE: Final = Attribute(
    "HSTATE", "", words(INACTIVE=c.MQHSTATE_INACTIVE, ACTIVE=c.MQHSTATE_ACTIVE), c.MQIACF_HANDLE_STATE
)
CONNECTION_ID: Final = Attribute("CONNID", "", Hexadecimal(24), c.MQBACF_CONNECTION_ID)
GENERIC_CONNECTION_ID: Final = Attribute("CONNID", "", Hexadecimal(24), c.MQBACF_GENERIC_CONNECTION_ID)
CONNECTION_TYPE: Final = Attribute(
    "TYPE",
    "",
    words(CONN=c.MQIACF_CONN_INFO_CONN, HANDLE=c.MQIACF_CONN_INFO_HANDLE, ALL=c.MQIACF_CONN_INFO_ALL),
    c.MQIACF_CONN_INFO_TYPE,
)
CONNECTION: Final = (
    CONNECTION_ID,
    CONNECTION_TYPE,
    *_PROGRAM,
    Attribute("UOWSTDA", "", _DATE, c.MQCACF_UOW_START_DATE),
    Attribute("UOWSTTI", "", _TIME, c.MQCACF_UOW_START_TIME),
    Attribute(
        "UOWSTATE",
        "",
        words(NONE=c.MQUOWST_NONE, ACTIVE=c.MQUOWST_ACTIVE, PREPARED=c.MQUOWST_PREPARED),
        c.MQIACF_UOW_STATE,
    ),
    Attribute("OBJNAME", "", _NAME, c.MQCACF_OBJECT_NAME),
    Attribute("OBJTYPE", "", words(QUEUE=c.MQOT_Q, TOPIC=c.MQOT_TOPIC, QMGR=c.MQOT_Q_MGR), c.MQIACF_OBJECT_TYPE),
    _HANDLE_STATE,
    Attribute("OPENOPTS", "", OPEN_OPTIONS, c.MQIACF_OPEN_OPTIONS),
    BY_KEYWORD["TOPICSTR"],
    SUB_ID,
    Attribute("SUBNAME", "", SUB_NAME.kind, SUB_NAME.number),
)
QUEUE_STATUS_TYPE: Final = Attribute(
    "TYPE", "", words(QUEUE=c.MQIACF_Q_STATUS, HANDLE=c.MQIACF_Q_HANDLE), c.MQIACF_Q_STATUS_TYPE
)
OPEN_TYPE: Final = Attribute(
    "OPENTYPE", "", words(ALL=c.MQQSOT_ALL, INPUT=c.MQQSOT_INPUT, OUTPUT=c.MQQSOT_OUTPUT), c.MQIACF_OPEN_TYPE
)
QUEUE_STATUS: Final = (
    _QUEUE_NAME,
    QUEUE_STATUS_TYPE,
    _DEPTH,
    Attribute("IPPROCS", "", _NUMBER, c.MQIA_OPEN_INPUT_COUNT),
    Attribute("OPPROCS", "", _NUMBER, c.MQIA_OPEN_OUTPUT_COUNT),
    Attribute("UNCOM", "", words(NO=c.MQQSUM_NO, YES=c.MQQSUM_YES), c.MQIACF_UNCOMMITTED_MSGS),
    Attribute("MONQ", "", words(OFF=c.MQMON_OFF, HIGH=c.MQMON_HIGH), c.MQIA_MONITORING_Q),
    Attribute("LPUTDATE", "", _DATE, c.MQCACF_LAST_PUT_DATE),
    Attribute("LPUTTIME", "", _TIME, c.MQCACF_LAST_PUT_TIME),
    Attribute("LGETDATE", "", _DATE, c.MQCACF_LAST_GET_DATE),
    Attribute("LGETTIME", "", _TIME, c.MQCACF_LAST_GET_TIME),
    Attribute("MSGAGE", "", _NUMBER, c.MQIACF_OLDEST_MSG_AGE),
    *_PROGRAM,
    _HANDLE_STATE,
    Attribute("BROWSE", "", _NO_OR_YES, c.MQIACF_OPEN_BROWSE),
    Attribute(
        "INPUT",
        "",
        words(NO=c.MQQSO_NO, SHARED=c.MQQSO_SHARED, EXCL=c.MQQSO_EXCLUSIVE),
        c.MQIACF_OPEN_INPUT_TYPE,
    ),
    Attribute("INQUIRE", "", _NO_OR_YES, c.MQIACF_OPEN_INQUIRE),
    Attribute("OUTPUT", "", _NO_OR_YES, c.MQIACF_OPEN_OUTPUT),
    Attribute("SET", "", _NO_OR_YES, c.MQIACF_OPEN_SET),
)
CHANNEL_INSTANCE: Final = Attribute(
    "INSTANCE", "", words(CURRENT=c.MQOT_CURRENT_CHANNEL, SAVED=c.MQOT_SAVED_CHANNEL), c.MQIACH_CHANNEL_INSTANCE_TYPE
)
CHANNEL_STATUS: Final = (
    CHANNEL_NAME,
    _CHANNEL_TYPE,
    _CONNECTION_NAME,
    Attribute("STATUS", "", words(RUNNING=c.MQCHS_RUNNING, STOPPED=c.MQCHS_STOPPED), c.MQIACH_CHANNEL_STATUS),
    Attribute(
        "SUBSTATE",
        "",
        words(RECEIVE=c.MQCHSSTATE_RECEIVING, MQGET=c.MQCHSSTATE_IN_MQGET),
        c.MQIACH_CHANNEL_SUBSTATE,
    ),
    Attribute("RAPPLTAG", "", Text(28, filled_to=28), c.MQCACH_REMOTE_APPL_TAG),
    Attribute("MCAUSER", "", Text(64, filled_to=64), c.MQCACH_MCA_USER_ID),
    Attribute("CURSHCNV", "", _NUMBER, c.MQIACH_CURRENT_SHARING_CONVS),
    Attribute("MAXSHCNV", "", _NUMBER, c.MQIACH_MAX_SHARING_CONVS),
    Attribute("MSGS", "", _NUMBER, c.MQIACH_MSGS),
    Attribute("BYTSRCVD", "", _NUMBER, c.MQIACH_BYTES_RCVD),
    Attribute("BYTSSENT", "", _NUMBER, c.MQIACH_BYTES_SENT),
    Attribute("BUFSRCVD", "", _NUMBER, c.MQIACH_BUFFERS_RCVD),
    Attribute("BUFSSENT", "", _NUMBER, c.MQIACH_BUFFERS_SENT),
    Attribute("CHSTADA", "", _DATE, c.MQCACH_CHANNEL_START_DATE),
    Attribute("CHSTATI", "", _TIME, c.MQCACH_CHANNEL_START_TIME),
    Attribute("LSTMSGDA", "", _DATE, c.MQCACH_LAST_MSG_DATE),
    Attribute("LSTMSGTI", "", _TIME, c.MQCACH_LAST_MSG_TIME),
    Attribute("HBINT", "", _NUMBER, c.MQIACH_HB_INTERVAL),
    Attribute("MAXMSGL", "", _NUMBER, c.MQIACH_MAX_MSG_LENGTH),
    Attribute("JOBNAME", "", Text(28, filled_to=28), c.MQCACH_MCA_JOB_NAME),
    Attribute("SSLCIPH", "", Text(32, filled_to=32), c.MQCACH_SSL_CIPHER_SPEC),
    Attribute("STOPREQ", "", words(NO=c.MQCHSR_STOP_NOT_REQUESTED), c.MQIACH_STOP_REQUESTED),
)
# STOP CHANNEL.
CHANNEL_STOPPED: Final = (
    _CHANNEL_TYPE,
    _CONNECTION_NAME,
    Attribute(
        "MODE",
        "",
        words(QUIESCE=c.MQMODE_QUIESCE, FORCE=c.MQMODE_FORCE, TERMINATE=c.MQMODE_TERMINATE),
        c.MQIACF_MODE,
    ),
    Attribute("STATUS", "", words(STOPPED=c.MQCHS_STOPPED, INACTIVE=c.MQCHS_INACTIVE), c.MQIACH_CHANNEL_STATUS),
)
LISTENER_STATUS: Final = (
    Attribute("LISTENER", "", _NAME, c.MQCACH_LISTENER_NAME),
    Attribute("STATUS", "", words(RUNNING=c.MQSVC_STATUS_RUNNING), c.MQIACH_LISTENER_STATUS),
    Attribute("PID", "", _NUMBER, c.MQIACF_PROCESS_ID),
    Attribute("STARTDA", "", _DATE, c.MQCACH_LISTENER_START_DATE),
    Attribute("STARTTI", "", _TIME, c.MQCACH_LISTENER_START_TIME),
    Attribute("TRPTYPE", "", words(TCP=c.MQXPT_TCP), c.MQIACH_XMIT_PROTOCOL_TYPE),
    Attribute("IPADDR", "", Text(48, filled_to=48), c.MQCACH_IP_ADDRESS),
    Attribute("PORT", "", _NUMBER, c.MQIACH_PORT),
)
QMGR_STATUS: Final = (
    Attribute("QMNAME", "", _NAME, MQCA_Q_MGR_NAME),
    Attribute("STATUS", "", words(RUNNING=c.MQQMSTA_RUNNING), c.MQIACF_Q_MGR_STATUS),
    Attribute("CONNS", "", _NUMBER, c.MQIACF_CONNECTION_COUNT),
    Attribute(
        "CHINIT", "", words(RUNNING=c.MQSVC_STATUS_RUNNING, STOPPED=c.MQSVC_STATUS_STOPPED), c.MQIACF_CHINIT_STATUS
    ),
)

NAMELIST: Final = (
    Attribute("NAMELIST", "", _NAME, c.MQCA_NAMELIST_NAME),
    *_parameters(mqsc.NAMELIST),
    Attribute("NAMCOUNT", "", _NUMBER, c.MQIA_NAME_COUNT),
)
QMGR: Final = (Attribute("QMNAME", "", _NAME, MQCA_Q_MGR_NAME), *_parameters(mqsc.QMGR))

SUBSCRIPTION: Final = tuple(attribute for attribute in BY_KEYWORD.values() if attribute.number)
# The attributes that MQIACF_SUB_SUMMARY stands for.
SUB_SUMMARY: Final = ("DEST", "DESTCORL", "DESTQMGR", "DURABLE", "SUB", "SUBID", "SUBTYPE", "SUBUSER", "TOPICSTR")

_SUB_STATUS: Final = (
    SUB_ID,
    SUB_USER,
    SUB_TYPE,
    DURABLE,
    Attribute("RESMDATE", "", _DATE, c.MQCA_RESUME_DATE),
    Attribute("RESMTIME", "", _TIME, c.MQCA_RESUME_TIME),
    Attribute("ACTCONN", "", Hexadecimal(24), c.MQBACF_CONNECTION_ID),
    Attribute("NUMMSGS", "", _NUMBER, c.MQIACF_MESSAGE_COUNT),
    Attribute("LMSGDATE", "", _DATE, c.MQCACF_LAST_MSG_DATE),
    Attribute("LMSGTIME", "", _TIME, c.MQCACF_LAST_MSG_TIME),
)
_TOPIC_STRING: Final = BY_KEYWORD["TOPICSTR"]
SUB_STATUS: Final = (SUB_NAME, _TOPIC_STRING, *_SUB_STATUS)
TOPIC_STATUS: Final = (
    _TOPIC_STRING,
    Attribute("ADMIN", "", _NAME, c.MQCA_ADMIN_TOPIC_NAME),
    Attribute("RETAINED", "", words(YES=c.MQQSO_YES, NO=c.MQQSO_NO), c.MQIACF_RETAINED_PUBLICATION),
    Attribute("PUBCOUNT", "", _NUMBER, c.MQIA_PUB_COUNT),
    Attribute("SUBCOUNT", "", _NUMBER, c.MQIA_SUB_COUNT),
    # A topic in the tree has inherited what it does not have itself.
    *(a for a in _parameters(mqsc.TOPIC) if a.keyword not in ("TOPICSTR", "DESCR", "PROXYSUB", "WILDCARD")),
)
TOPIC_STATUS_SUB: Final = (_TOPIC_STRING, *_SUB_STATUS)

PUBSUB_TYPE: Final = Attribute(
    "TYPE",
    "",
    words(LOCAL=c.MQPSST_LOCAL, PARENT=c.MQPSST_PARENT, CHILD=c.MQPSST_CHILD, ALL=c.MQPSST_ALL),
    c.MQIACF_PS_STATUS_TYPE,
)
PUBSUB: Final = (
    Attribute("QMNAME", "", _NAME, MQCA_Q_MGR_NAME),
    PUBSUB_TYPE,
    Attribute(
        "STATUS",
        "",
        words(ACTIVE=c.MQPS_STATUS_ACTIVE, COMPAT=c.MQPS_STATUS_COMPAT, INACTIVE=c.MQPS_STATUS_INACTIVE),
        c.MQIACF_PUBSUB_STATUS,
    ),
    Attribute("SUBCOUNT", "", _NUMBER, c.MQIA_SUB_COUNT),
    Attribute("TPCOUNT", "", _NUMBER, c.MQIA_TOPIC_NODE_COUNT),
)

OBJECT_TYPE: Final = Attribute(
    "OBJTYPE",
    "",
    words(QUEUE=c.MQOT_Q, TOPIC=c.MQOT_TOPIC, NAMELIST=c.MQOT_NAMELIST, QMGR=c.MQOT_Q_MGR, ALL=c.MQOT_ALL),
    c.MQIACF_OBJECT_TYPE,
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
PROFILE: Final = Attribute("PROFILE", "", _NAME, c.MQCACF_AUTH_PROFILE_NAME)
AUTHORITY_ADDED: Final = Attribute("AUTHADD", "", WordList(_AUTHORITIES), c.MQIACF_AUTH_ADD_AUTHS)
AUTHORITY_REMOVED: Final = Attribute("AUTHRMV", "", WordList(_AUTHORITIES), c.MQIACF_AUTH_REMOVE_AUTHS)
AUTHORITY_RECORD: Final = (
    PROFILE,
    OBJECT_TYPE,
    Attribute("ENTITY", "", _TEXT, c.MQCACF_ENTITY_NAME),
    Attribute("ENTTYPE", "", words(PRINCIPAL=c.MQZAET_PRINCIPAL, GROUP=c.MQZAET_GROUP), c.MQIACF_ENTITY_TYPE),
    Attribute("AUTHLIST", "", WordList(_AUTHORITIES), c.MQIACF_AUTHORIZATION_LIST),
)
