"""The publish exit's side of the broker: what it is called with, and what it answers (guide 4.6.2).

The guide's three structures are frozen values here, with its field names in PEP 8. As JSON they are what a program in
another language reads and writes (docs/publish-exit.md).

    MQPSXP    ExitParms             MsgDescPtr, MsgInPtr and MsgHandle are one value, ``message``
    MQPBC     PublicationContext
    MQSBC     SubscriptionContext
    output    ExitAnswer            the fields that an exit may set, of MQPSXP and of MQSBC
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Final, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, StringConstraints

from rfh2.errors import QPubSubError
from rfh2.mqi_constants import MQFB_NONE, MQXUA_NONE
from rfh2.mqmd import Mqmd

_LARGEST: Final = 2**31 - 1


class ExitReason(IntEnum):
    """Why the exit is called: MQXR_*. The guide also has MQXR_MSG for a publication; MQXR_PUBLICATION is meant."""

    INIT = 11
    TERM = 12
    PUBLICATION = 30


class ExitResponse(IntEnum):
    """What is done next: MQXCC_*."""

    OK = 0
    SUPPRESS_FUNCTION = -1
    FAILED = -8


def _from_hex(value: object) -> object:
    return bytes.fromhex(value) if isinstance(value, str) else value


HexBytes = Annotated[bytes, BeforeValidator(_from_hex), PlainSerializer(bytes.hex, when_used="json")]
"""Bytes, as JSON in hexadecimal."""
PropertyValue = bool | int | float | str
"""The value of a message property; one of bytes is shown in hexadecimal."""
_Name = Annotated[str, StringConstraints(strip_whitespace=True, max_length=48)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class ExitMessage(_Value):
    """The message for one subscriber, as it would be put.

    md: its MQMD. body: all bytes behind that, headers included. properties: those in folder usr of its first MQRFH2.
    """

    md: HexBytes = Field(alias="md_hex")
    body: HexBytes = Field(alias="body_hex")
    properties: dict[str, PropertyValue] = {}

    @property
    def mqmd(self) -> Mqmd:
        """The fields of the descriptor."""
        return Mqmd.decode(self.md)


class ExitParms(_Value):
    """MQPSXP (guide 4.6.2.1): the call.

    exit_user_area: 16 bytes that the exit set at the last call; zeros at the first. exit_data: ``data`` of the
    configuration, without the blanks that pad it. message: None unless the reason is PUBLICATION.
    """

    exit_reason: ExitReason
    qmgr_name: str
    exit_user_area: HexBytes = MQXUA_NONE
    exit_data: str = ""
    message: ExitMessage | None = None


class PublicationContext(_Value):
    """MQPBC (guide 4.6.2.2): the publisher. pub_topic_string: the whole topic string that was published on."""

    pub_topic_string: str


class SubscriptionContext(_Value):
    """MQSBC (guide 4.6.2.3): the subscription that the message is for.

    sub_type: MQSUBTYPE_*. sub_options: MQSO_*. object_name: the topic object of DEFINE SUB or MQSUB, else empty.
    object_string: the whole topic string. sub_topic_string: the same without the prefix of a stream or a subscription
    point, as the subscriber wrote it. ps_properties: MQPSPROP_*.
    """

    destination_qmgr_name: str
    destination_q_name: str
    sub_type: int
    sub_options: int
    object_name: str
    object_string: str
    sub_topic_string: str
    sub_name: str
    sub_id: HexBytes
    selection_string: str
    sub_level: int
    ps_properties: int


class ExitAnswer(_Value):
    """The output of one call; what is None stays as it is.

    exit_response: as the guide says. why: for people, with FAILED. feedback: with SUPPRESS_FUNCTION, the reason of the
    dead letter; MQFB_NONE stands for MQFB_STOPPED_BY_PUBSUB_EXIT. destination_qmgr_name: empty for this queue manager.
    md, body: the whole new descriptor and the whole new body. properties: those to set in folder usr, or with None to
    delete; they are set in *body* if there is one.
    """

    exit_response: ExitResponse = ExitResponse.OK
    why: str = ""
    feedback: Annotated[int, Field(ge=0, le=_LARGEST)] = MQFB_NONE
    exit_user_area: Annotated[HexBytes, Field(min_length=16, max_length=16)] | None = None
    destination_qmgr_name: _Name | None = None
    destination_q_name: _Name | None = None
    md: HexBytes | None = Field(None, alias="md_hex")
    body: HexBytes | None = Field(None, alias="body_hex")
    properties: dict[str, PropertyValue | None] = {}


class PublishExitError(QPubSubError):
    """The publish exit cannot be started, failed, or answered what is not valid. why: for people."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"publish exit: {self.why}"


class PublishExit(Protocol):
    """The port to a publish exit."""

    def publication(
        self, message: ExitMessage, publication: PublicationContext, subscription: SubscriptionContext
    ) -> ExitAnswer:
        """Call it for one message. Raises PublishExitError where it gives no answer."""
