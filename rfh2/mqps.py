"""The names and commands of an MQRFH's NameValueString, under IBM's own names (cmqpsc.h; wire formats 2.3)."""

from __future__ import annotations

from typing import Final

MQPS_COMMAND: Final = "MQPSCommand"
MQPS_COMP_CODE: Final = "MQPSCompCode"
MQPS_CORREL_ID: Final = "MQPSCorrelId"
MQPS_DELETE_OPTIONS: Final = "MQPSDelOpts"
MQPS_ERROR_ID: Final = "MQPSErrorId"
MQPS_ERROR_POS: Final = "MQPSErrorPos"
MQPS_INTEGER_DATA: Final = "MQPSIntData"
MQPS_PARAMETER_ID: Final = "MQPSParmId"
MQPS_PUBLICATION_OPTIONS: Final = "MQPSPubOpts"
MQPS_PUBLISH_TIMESTAMP: Final = "MQPSPubTime"
MQPS_Q_MGR_NAME: Final = "MQPSQMgrName"
MQPS_Q_NAME: Final = "MQPSQName"
MQPS_REASON: Final = "MQPSReason"
MQPS_REASON_TEXT: Final = "MQPSReasonText"
MQPS_REGISTRATION_OPTIONS: Final = "MQPSRegOpts"
MQPS_SEQUENCE_NUMBER: Final = "MQPSSeqNum"
MQPS_STREAM_NAME: Final = "MQPSStreamName"
MQPS_STRING_DATA: Final = "MQPSStringData"
MQPS_SUBSCRIPTION_IDENTITY: Final = "MQPSSubIdentity"
MQPS_SUBSCRIPTION_NAME: Final = "MQPSSubName"
MQPS_SUBSCRIPTION_USER_DATA: Final = "MQPSSubUserData"
MQPS_TOPIC: Final = "MQPSTopic"
MQPS_USER_ID: Final = "MQPSUserId"

NAMES: Final = frozenset(
    value for name, value in globals().items() if name.startswith("MQPS_") and isinstance(value, str)
)

MQPS_DELETE_PUBLICATION: Final = "DeletePub"
MQPS_DEREGISTER_PUBLISHER: Final = "DeregPub"
MQPS_DEREGISTER_SUBSCRIBER: Final = "DeregSub"
MQPS_PUBLISH: Final = "Publish"
MQPS_REGISTER_PUBLISHER: Final = "RegPub"
MQPS_REGISTER_SUBSCRIBER: Final = "RegSub"
MQPS_REQUEST_UPDATE: Final = "ReqUpdate"

COMMANDS: Final = (
    MQPS_DELETE_PUBLICATION,
    MQPS_DEREGISTER_PUBLISHER,
    MQPS_DEREGISTER_SUBSCRIBER,
    MQPS_PUBLISH,
    MQPS_REGISTER_PUBLISHER,
    MQPS_REGISTER_SUBSCRIBER,
    MQPS_REQUEST_UPDATE,
)
