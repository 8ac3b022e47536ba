"""What MQSUB, MQSUBRQ and MQCLOSE ask of the command processor about subscriptions, and what it answers.

Only the processor changes the topic space. So a call that changes it is a message on a queue, as an administration
command is, and has its place among the commands and publications that programs have put. The answer is a message too,
with the MsgId of the request as its CorrelId. Both are JSON. A request has the rights of the user who put it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

from commands.broker.descriptor import HIGHEST_PRIORITY
from commands.qmgr.mqi.refusals import MqiError
from rfh2 import mqi_constants as m
from rfh2.constants import MQ_SELECTOR_LENGTH, MQ_SUB_NAME_LENGTH, MQ_TOPIC_STR_LENGTH, MQ_USER_DATA_LENGTH

REQUEST_QUEUE: Final = "SYSTEM.QPUBSUB.MQSUB.REQUEST"
REPLY_QUEUE: Final = "SYSTEM.QPUBSUB.MQSUB.REPLY"
_HIGHEST_LEVEL: Final = 9
_ONE_OF: Final = (
    (m.MQSO_ALTER, m.MQSO_RESUME),
    (m.MQSO_ANY_USERID, m.MQSO_FIXED_USERID),
    (m.MQSO_NEW_PUBLICATIONS_ONLY, m.MQSO_PUBLICATIONS_ON_REQUEST),
    (m.MQSO_WILDCARD_CHAR, m.MQSO_WILDCARD_TOPIC),
    (m.MQSO_READ_AHEAD, m.MQSO_NO_READ_AHEAD),
    (m.MQSO_GROUP_SUB, m.MQSO_MANAGED),
    (m.MQSO_SET_CORREL_ID, m.MQSO_MANAGED),
)


class Verb(StrEnum):
    """What is asked for. RETAINED: MQSUBRQ. REMOVE: MQCLOSE with MQCO_REMOVE_SUB, and the end of a program."""

    SUBSCRIBE = "subscribe"
    RETAINED = "retained"
    REMOVE = "remove"


class SubscriptionDescriptor(BaseModel):
    """An MQSD. topic_object, topic: ObjectName and ObjectString. expiry: tenths of a second, -1 for none.

    accounting_token, identity_data: as given; they count with MQSO_SET_IDENTITY_CONTEXT alone. shared: whether several
    programs may have the subscription open, as JMS can ask beside the MQSD. alternate_user: AlternateUserId, which
    counts with MQSO_ALTERNATE_USER_AUTHORITY alone.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="hex", val_json_bytes="hex")

    options: int = 0
    topic_object: str = ""
    topic: str = ""
    name: str = ""
    user_data: str = ""
    selector: str = ""
    correl_id: bytes = bytes(24)
    expiry: int = -1
    priority: int = m.MQPRI_PRIORITY_AS_PUBLISHED
    accounting_token: bytes = bytes(32)
    identity_data: str = ""
    sub_level: int = 1
    shared: bool = False
    alternate_user: str = ""

    def has(self, option: int) -> bool:
        """Whether *option* (MQSO_*) is set."""
        return bool(self.options & option)

    @property
    def durable(self) -> bool:
        """Whether the subscription outlives its program."""
        return self.has(m.MQSO_DURABLE)

    @property
    def managed(self) -> bool:
        """Whether the queue manager provides the queue."""
        return self.has(m.MQSO_MANAGED)

    def check(self) -> None:
        """Raises MqiError for what can be no subscription: 2425, 2440, 2431, 2050, 2424, and 2046 as below."""
        self._check_options()
        for text, most, reason in (
            (self.topic, MQ_TOPIC_STR_LENGTH, m.MQRC_TOPIC_STRING_ERROR),
            (self.name, MQ_SUB_NAME_LENGTH, m.MQRC_SUB_NAME_ERROR),
            (self.user_data, MQ_USER_DATA_LENGTH, m.MQRC_SUB_USER_DATA_ERROR),
            (self.selector, MQ_SELECTOR_LENGTH, m.MQRC_SELECTION_STRING_ERROR),
        ):
            if len(text) > most or "\0" in text:
                raise MqiError(reason, f"a string is longer than {most} characters, or has a null in it")
        if not m.MQPRI_PRIORITY_AS_PUBLISHED <= self.priority <= HIGHEST_PRIORITY:
            raise MqiError(m.MQRC_PRIORITY_ERROR, f"PubPriority is {self.priority}")
        if not 0 <= self.sub_level <= _HIGHEST_LEVEL:
            raise MqiError(m.MQRC_SD_ERROR, f"SubLevel is {self.sub_level}")

    def _check_options(self) -> None:
        """Raises MqiError 2046 for options that do not go together (IBM's rules for validating MQI options)."""
        if not self.has(m.MQSO_CREATE | m.MQSO_ALTER | m.MQSO_RESUME):
            raise MqiError(m.MQRC_OPTIONS_ERROR, "one of MQSO_CREATE, MQSO_ALTER and MQSO_RESUME must be set")
        for one, other in _ONE_OF:
            if self.has(one) and self.has(other):
                raise MqiError(m.MQRC_OPTIONS_ERROR, f"options {one:#x} and {other:#x} cannot be used together")
        if self.has(m.MQSO_GROUP_SUB) and not self.has(m.MQSO_SET_CORREL_ID):
            raise MqiError(m.MQRC_OPTIONS_ERROR, "MQSO_GROUP_SUB needs MQSO_SET_CORREL_ID")
        if self.has(m.MQSO_NEW_PUBLICATIONS_ONLY) and not self.has(m.MQSO_CREATE):
            raise MqiError(m.MQRC_OPTIONS_ERROR, "MQSO_NEW_PUBLICATIONS_ONLY needs MQSO_CREATE")


class SubscriptionRequest(BaseModel):
    """One request. sub_id: of the subscription; not for ``SUBSCRIBE``.

    qmgr, queue: where the publications go; "" if an existing subscription says it, or the processor makes a managed
    queue. reply: whether the program waits for the answer. keeper: the number of the connection that has the managed
    queue of a durable subscription open; the queue stays until it is closed there, 0 for none.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="hex", val_json_bytes="hex")

    verb: Verb
    sub_id: bytes = b""
    descriptor: SubscriptionDescriptor = SubscriptionDescriptor()
    qmgr: str = ""
    queue: str = ""
    reply: bool = True
    keeper: int = 0


class SubscriptionAnswer(BaseModel):
    """The result. reason: 0 where it is done. why: for people. count: publications that were sent (MQSUBRQ).

    descriptor: the subscription as it now is; topic is its whole topic string. qmgr, queue: where its publications go.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="hex", val_json_bytes="hex")

    reason: int = 0
    why: str = ""
    sub_id: bytes = b""
    descriptor: SubscriptionDescriptor = SubscriptionDescriptor()
    qmgr: str = ""
    queue: str = ""
    count: int = 0
