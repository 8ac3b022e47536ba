"""The attributes of channels, of the rules for who may use them, of AUTHINFO and of LISTENER."""

from __future__ import annotations

from typing import Final

from commands.broker.attribute_kinds import Attribute, Names, Text, choice, number, words
from commands.broker.channel_objects import SVRCONN
from commands.broker.objects import CLUSRCVR, CLUSSDR
from commands.mqsc.attributes import (
    CLUSTER,
    CLUSTER_NAMELIST,
    DESCRIPTION_TEXT,
    MAX_MESSAGE_LENGTH,
    ObjectKind,
    keywords,
)
from rfh2 import pcf_admin_names as c

CONNECTION_NAME_LENGTH: Final = 264
_PEER: Final = Text(1024)
_USER: Final = Text(12, filled_to=12)
_CLIENT_USER: Final = Text(1024)

CHANNEL_KIND: Final = words(
    CLUSRCVR,
    CLUSSDR,
    SVRCONN,
    CLUSRCVR=c.MQCHT_CLUSRCVR,
    CLUSSDR=c.MQCHT_CLUSSDR,
    SDR=c.MQCHT_SENDER,
    SVR=c.MQCHT_SERVER,
    RCVR=c.MQCHT_RECEIVER,
    RQSTR=c.MQCHT_REQUESTER,
    CLNTCONN=c.MQCHT_CLNTCONN,
    SVRCONN=c.MQCHT_SVRCONN,
    ALL=c.MQCHT_ALL,
)
CHANNEL_TYPE: Final = Attribute("CHLTYPE", "channel_type", CHANNEL_KIND, c.MQIACH_CHANNEL_TYPE)
CONNECTION: Final = (
    Attribute(
        "CONNAME",
        "connection_name",
        Text(CONNECTION_NAME_LENGTH, filled_to=CONNECTION_NAME_LENGTH),
        c.MQCACH_CONNECTION_NAME,
    ),
    Attribute("DESCR", "description", DESCRIPTION_TEXT, c.MQCACH_DESC),
)
CHANNEL: Final = ObjectKind(
    "CHANNEL",
    "CHANNEL",
    "",
    (
        CHANNEL_TYPE,
        CLUSTER,
        CLUSTER_NAMELIST,
        *CONNECTION,
    ),
    keywords(
        """
        ALTDATE ALTTIME AMQPKA AUTOSTART BATCHHB BATCHINT BATCHLIM BATCHSZ CERTLABL CLWLPRTY CLWLRANK CLWLWGHT COMPHDR
        COMPMSG CONVERT DISCINT HBINT KAINT LOCLADDR LONGRTY LONGTMR MAXMSGL MCANAME MCATYPE MCAUSER MODENAME MONCHL
        MRDATA MREXIT MRRTY MRTMR MSGDATA MSGEXIT NETPRTY NPMSPEED PASSWORD PROPCTL PUTAUT RCVDATA RCVEXIT RESETSEQ
        SCYDATA SCYEXIT SENDDATA SENDEXIT SEQWRAP SHORTRTY SHORTTMR SPLPROT SSLCAUTH SSLCIPH SSLPEER STATCHL TPNAME
        TPROOT TRPTYPE USEDLQ USERID XMITQ
        """
    ),
)

_TCP: Final = words(TCP=c.MQXPT_TCP)
_TRANSPORT: Final = Attribute("TRPTYPE", "transport", _TCP, c.MQIACH_XMIT_PROTOCOL_TYPE)
_MCAUSER: Final = Attribute("MCAUSER", "mcauser", _USER, c.MQCACH_MCA_USER_ID)

SERVER_CHANNEL: Final = ObjectKind(
    "CHANNEL",
    "CHANNEL",
    "",
    (
        CHANNEL_TYPE,
        _TRANSPORT,
        Attribute("DESCR", "description", DESCRIPTION_TEXT, c.MQCACH_DESC),
        _MCAUSER,
        Attribute("SHARECNV", "sharing", number(), c.MQIACH_SHARING_CONVERSATIONS),
        Attribute("MAXINST", "instances", number(), c.MQIACH_MAX_INSTANCES),
        Attribute("MAXINSTC", "instances_of_client", number(), c.MQIACH_MAX_INSTS_PER_CLIENT),
        Attribute("MAXMSGL", "max_message_length", number(0, MAX_MESSAGE_LENGTH), c.MQIACH_MAX_MSG_LENGTH),
        Attribute("HBINT", "heartbeat", number(0, 999_999), c.MQIACH_HB_INTERVAL),
        Attribute("SSLCIPH", "cipher", Text(32, filled_to=32), c.MQCACH_SSL_CIPHER_SPEC),
        Attribute(
            "SSLCAUTH",
            "needs_certificate",
            choice(REQUIRED=(True, c.MQSCA_REQUIRED), OPTIONAL=(False, c.MQSCA_OPTIONAL)),
            c.MQIACH_SSL_CLIENT_AUTH,
        ),
        Attribute("SSLPEER", "peer", _PEER, c.MQCACH_SSL_PEER_NAME),
    ),
    keywords(
        """
        ALTDATE ALTTIME CERTLABL COMPHDR COMPMSG DISCINT KAINT MONCHL RCVDATA RCVEXIT SCYDATA SCYEXIT SENDDATA SENDEXIT
        SPLPROT STATCHL
        """
    ),
)

_CHECKS: Final = {
    "NONE": c.MQCHK_NONE,
    "OPTIONAL": c.MQCHK_OPTIONAL,
    "REQUIRED": c.MQCHK_REQUIRED,
    "REQDADM": c.MQCHK_REQUIRED_ADMIN,
}
AUTHINFO: Final = ObjectKind(
    "AUTHINFO",
    "AUTHINFO",
    "",
    (
        Attribute("AUTHTYPE", "authentication_type", words(IDPWOS=c.MQAIT_IDPW_OS), c.MQIA_AUTH_INFO_TYPE),
        Attribute("DESCR", "description", DESCRIPTION_TEXT, c.MQCA_AUTH_INFO_DESC),
        Attribute("CHCKCLNT", "check_client", words(**_CHECKS), c.MQIA_CHECK_CLIENT_BINDING),
        Attribute("CHCKLOCL", "check_local", words(**_CHECKS), c.MQIA_CHECK_LOCAL_BINDING),
        Attribute(
            "ADOPTCTX", "adopts", choice(YES=(True, c.MQADPCTX_YES), NO=(False, c.MQADPCTX_NO)), c.MQIA_ADOPT_CONTEXT
        ),
        Attribute("FAILDLAY", "delay", number(0, 60), c.MQIA_AUTHENTICATION_FAIL_DELAY),
        Attribute(
            "AUTHENMD",
            "method",
            words(OS=c.MQAUTHENTICATE_OS, PAM=c.MQAUTHENTICATE_PAM),
            c.MQIA_AUTHENTICATION_METHOD,
        ),
    ),
    frozenset({"ALTDATE", "ALTTIME"}),
)

LISTENER: Final = ObjectKind(
    "LISTENER",
    "LISTENER",
    "",
    (
        _TRANSPORT,
        Attribute("DESCR", "description", DESCRIPTION_TEXT, c.MQCACH_LISTENER_DESC),
        Attribute("PORT", "port", number(0, 65_535), c.MQIACH_PORT),
        Attribute("IPADDR", "address", Text(48, filled_to=48), c.MQCACH_IP_ADDRESS),
        Attribute(
            "CONTROL",
            "control",
            words(
                QMGR=c.MQSVC_CONTROL_Q_MGR,
                STARTONLY=c.MQSVC_CONTROL_Q_MGR_START,
                MANUAL=c.MQSVC_CONTROL_MANUAL,
            ),
            c.MQIACH_LISTENER_CONTROL,
        ),
    ),
    frozenset({"ADAPTER", "ALTDATE", "ALTTIME", "BACKLOG", "COMMANDS", "LOCLNAME", "NTBNAMES", "SESSIONS", "SOCKET"})
    | {"TPNAME"},
)

RULE_TYPE: Final = Attribute(
    "TYPE",
    "type",
    words(
        "BLOCKUSER",
        "BLOCKADDR",
        "SSLPEERMAP",
        "ADDRESSMAP",
        "USERMAP",
        BLOCKUSER=c.MQCAUT_BLOCKUSER,
        BLOCKADDR=c.MQCAUT_BLOCKADDR,
        SSLPEERMAP=c.MQCAUT_SSLPEERMAP,
        ADDRESSMAP=c.MQCAUT_ADDRESSMAP,
        USERMAP=c.MQCAUT_USERMAP,
        QMGRMAP=c.MQCAUT_QMGRMAP,
        ALL=c.MQCAUT_ALL,
    ),
    c.MQIACF_CHLAUTH_TYPE,
)
CHLAUTH: Final = ObjectKind(
    "CHLAUTH",
    "CHLAUTH",
    "",
    (
        RULE_TYPE,
        Attribute("DESCR", "description", DESCRIPTION_TEXT, c.MQCA_CHLAUTH_DESC),
        Attribute("USERLIST", "user_list", Names(of_objects=False), c.MQCACH_MCA_USER_ID_LIST),
        Attribute("ADDRLIST", "address_list", Names(of_objects=False), c.MQCACH_CONNECTION_NAME_LIST),
        Attribute("SSLPEER", "peer", _PEER, c.MQCACH_SSL_PEER_NAME),
        Attribute("SSLCERTI", "issuer", _PEER, c.MQCA_SSL_CERT_ISSUER_NAME),
        Attribute(
            "ADDRESS",
            "address",
            Text(CONNECTION_NAME_LENGTH, filled_to=CONNECTION_NAME_LENGTH),
            c.MQCACH_CONNECTION_NAME,
        ),
        Attribute("CLNTUSER", "client_user", _CLIENT_USER, c.MQCACH_CLIENT_USER_ID),
        Attribute(
            "USERSRC",
            "user_source",
            words(MAP=c.MQUSRC_MAP, NOACCESS=c.MQUSRC_NOACCESS, CHANNEL=c.MQUSRC_CHANNEL),
            c.MQIACH_USER_SOURCE,
        ),
        _MCAUSER,
        Attribute(
            "CHCKCLNT",
            "check_client",
            words(ASQMGR=c.MQCHK_AS_Q_MGR, REQUIRED=c.MQCHK_REQUIRED, REQDADM=c.MQCHK_REQUIRED_ADMIN),
            c.MQIA_CHECK_CLIENT_BINDING,
        ),
        Attribute("WARN", "warns", choice(YES=(True, c.MQWARN_YES), NO=(False, c.MQWARN_NO)), c.MQIACH_WARNING),
    ),
    frozenset({"ALTDATE", "ALTTIME", "CUSTOM"}),
)
