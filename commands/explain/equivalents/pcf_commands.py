"""Numbers of PCF that only modern commands use, under IBM's names (cmqcfc.h; migration sources, section 10)."""

from __future__ import annotations

from typing import Final

from rfh2.pcf_names import COMMAND_NAMES, PARAMETER_NAMES

MQCMD_CREATE_SUBSCRIPTION: Final = 177
MQCMD_CHANGE_SUBSCRIPTION: Final = 178
MQCMD_DELETE_SUBSCRIPTION: Final = 179

MQIACF_REPLACE: Final = 1006
MQIACF_EXPIRY: Final = 1244
MQIACF_PUBSUB_PROPERTIES: Final = 1271
MQIACF_DESTINATION_CLASS: Final = 1273
MQIACF_SUBSCRIPTION_SCOPE: Final = 1275
MQIACF_VARIABLE_USER_ID: Final = 1277
MQIACF_REQUEST_ONLY: Final = 1280
MQIACF_PUB_PRIORITY: Final = 1283
MQIACF_WILDCARD_SCHEMA: Final = 1288
MQIACF_CLEAR_TYPE: Final = 1305
MQIACF_CLEAR_SCOPE: Final = 1306
MQIACF_SUB_LEVEL: Final = 1307
MQCACF_APPL_IDENTITY_DATA: Final = 3135
MQCACF_SUB_NAME: Final = 3152
MQCACF_DESTINATION_Q_MGR: Final = 3153
MQCACF_DESTINATION: Final = 3154
MQCACF_SUB_USER_ID: Final = 3156
MQCACF_SUB_USER_DATA: Final = 3159
MQCACF_SUB_SELECTOR: Final = 3160
MQBACF_ACCOUNTING_TOKEN: Final = 7010
MQBACF_DESTINATION_CORREL_ID: Final = 7015

MQDC_PROVIDED: Final = 2
MQTSCOPE_QMGR: Final = 1
MQTSCOPE_ALL: Final = 2
MQVU_FIXED_USER: Final = 1
MQVU_ANY_USER: Final = 2
MQRU_PUBLISH_ON_REQUEST: Final = 1
MQRU_PUBLISH_ALL: Final = 2
MQWS_CHAR: Final = 1
MQWS_TOPIC: Final = 2
MQPSPROP_NONE: Final = 0
MQPSPROP_COMPAT: Final = 1
MQPSPROP_RFH2: Final = 2
MQPSPROP_MSGPROP: Final = 3
MQCLRS_LOCAL: Final = 1
MQCLRS_GLOBAL: Final = 2
MQCLRT_RETAINED: Final = 1
MQEI_UNLIMITED: Final = -1

_OWN: Final = {name: value for name, value in globals().items() if name.startswith("MQ") and isinstance(value, int)}
COMMANDS: Final = COMMAND_NAMES | {v: n for n, v in _OWN.items() if n.startswith("MQCMD_")}
PARAMETERS: Final = PARAMETER_NAMES | {v: n for n, v in _OWN.items() if n.startswith(("MQIACF_", "MQCACF_", "MQBACF_"))}

# The prefix of the names of a parameter's values.
_VALUES_OF: Final = {
    MQIACF_PUBSUB_PROPERTIES: "MQPSPROP_",
    MQIACF_DESTINATION_CLASS: "MQDC_",
    MQIACF_SUBSCRIPTION_SCOPE: "MQTSCOPE_",
    MQIACF_VARIABLE_USER_ID: "MQVU_",
    MQIACF_REQUEST_ONLY: "MQRU_",
    MQIACF_WILDCARD_SCHEMA: "MQWS_",
    MQIACF_CLEAR_TYPE: "MQCLRT_",
    MQIACF_CLEAR_SCOPE: "MQCLRS_",
    MQIACF_EXPIRY: "MQEI_",
}


def value_name(parameter: int, value: int) -> str | None:
    """IBM's name of a parameter's value; None where it has none."""
    prefix = _VALUES_OF.get(parameter)
    if prefix is None:
        return None
    return next((name for name, own in _OWN.items() if name.startswith(prefix) and own == value), None)
