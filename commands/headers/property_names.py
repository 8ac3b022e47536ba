"""One property, three spellings: its psc tag, its name in an MQRFH, its parameter in PCF (wire formats 2.3, 4.1, 5.1).

The rest of the bridge uses the psc tags of properties. A property without a psc tag has its MQRFH name without the
``MQPS`` in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rfh2 import pcf_names, rfh1
from rfh2.options import DELETE, PUBLICATION, REGISTRATION, OptionSet


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a command, a publication or a response.

    tag: its name in psc. mqps: its name in an MQRFH. pcf: its parameter. integer: whether PCF has it as an MQCFIN.
    options: the set of its options, if it holds options. padded: whether blanks at its end are ignored.
    """

    tag: str
    mqps: str
    pcf: int
    integer: bool = False
    options: OptionSet | None = None
    padded: bool = False


PROPERTIES: Final = (
    Property("Topic", rfh1.MQPS_TOPIC, pcf_names.MQCACF_TOPIC),
    Property("StreamName", rfh1.MQPS_STREAM_NAME, pcf_names.MQCACF_STREAM_NAME, padded=True),
    Property("QMgrName", rfh1.MQPS_Q_MGR_NAME, pcf_names.MQCA_Q_MGR_NAME, padded=True),
    Property("QName", rfh1.MQPS_Q_NAME, pcf_names.MQCA_Q_NAME, padded=True),
    Property("RegOpt", rfh1.MQPS_REGISTRATION_OPTIONS, pcf_names.MQIACF_REGISTRATION_OPTIONS, True, REGISTRATION),
    Property("PubOpt", rfh1.MQPS_PUBLICATION_OPTIONS, pcf_names.MQIACF_PUBLICATION_OPTIONS, True, PUBLICATION),
    Property("DelOpt", rfh1.MQPS_DELETE_OPTIONS, pcf_names.MQIACF_DELETE_OPTIONS, True, DELETE),
    Property("PubTime", rfh1.MQPS_PUBLISH_TIMESTAMP, pcf_names.MQCACF_PUBLISH_TIMESTAMP),
    Property("SeqNum", rfh1.MQPS_SEQUENCE_NUMBER, pcf_names.MQIACF_SEQUENCE_NUMBER, True),
    Property("IntData", rfh1.MQPS_INTEGER_DATA, pcf_names.MQIACF_INTEGER_DATA, True),
    Property("StringData", rfh1.MQPS_STRING_DATA, pcf_names.MQCACF_STRING_DATA),
    Property("SubName", rfh1.MQPS_SUBSCRIPTION_NAME, pcf_names.MQCACF_SUBSCRIPTION_NAME),
    Property("SubIdentity", rfh1.MQPS_SUBSCRIPTION_IDENTITY, pcf_names.MQCACF_SUBSCRIPTION_IDENTITY),
    Property("SubUserData", rfh1.MQPS_SUBSCRIPTION_USER_DATA, pcf_names.MQCACF_SUBSCRIPTION_USER_DATA),
    Property("CorrelId", rfh1.MQPS_CORREL_ID, pcf_names.MQCACF_CORREL_ID),
    Property("UserId", rfh1.MQPS_USER_ID, pcf_names.MQCACF_REG_USER_ID),
    Property("ErrorId", rfh1.MQPS_ERROR_ID, pcf_names.MQIACF_ERROR_ID, True),
    Property("ErrorPos", rfh1.MQPS_ERROR_POS, pcf_names.MQIACF_ERROR_OFFSET, True),
    Property("ParmId", rfh1.MQPS_PARAMETER_ID, pcf_names.MQIACF_PARAMETER_ID, True),
)

BY_TAG: Final = {known.tag: known for known in PROPERTIES}
BY_MQPS: Final = {known.mqps: known for known in PROPERTIES}
BY_PCF: Final = {known.pcf: known for known in PROPERTIES}

# The command words, and their values in the Command field of the MQCFH.
COMMAND_IDS: Final = {
    rfh1.MQPS_DELETE_PUBLICATION: pcf_names.MQCMD_DELETE_PUBLICATION,
    rfh1.MQPS_DEREGISTER_PUBLISHER: pcf_names.MQCMD_DEREGISTER_PUBLISHER,
    rfh1.MQPS_DEREGISTER_SUBSCRIBER: pcf_names.MQCMD_DEREGISTER_SUBSCRIBER,
    rfh1.MQPS_PUBLISH: pcf_names.MQCMD_PUBLISH,
    rfh1.MQPS_REGISTER_PUBLISHER: pcf_names.MQCMD_REGISTER_PUBLISHER,
    rfh1.MQPS_REGISTER_SUBSCRIBER: pcf_names.MQCMD_REGISTER_SUBSCRIBER,
    rfh1.MQPS_REQUEST_UPDATE: pcf_names.MQCMD_REQUEST_UPDATE,
}
COMMAND_WORDS: Final = {number: word for word, number in COMMAND_IDS.items()}
