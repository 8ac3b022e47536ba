"""The queued commands as values (guide 6.7), whatever header they came in.

A command says what the program asked for, not what becomes of it: defaults that depend on the descriptor, on the queue
or on what is registered already belong to ``translate``. ``options`` is None where the program gave none: on a
re-registration that means something other than ``None`` (guide 6.7.4).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel

from streams.subscriptions import HIGHEST_PUB_LEVEL, PublicationFormat


class RegOpt(StrEnum):
    """Registration options, by the words of psc and MQRFH."""

    ADD_NAME = "AddName"
    ANON = "Anon"
    CORREL_AS_ID = "CorrelAsId"
    DEREG_ALL = "DeregAll"
    DIRECT_REQ = "DirectReq"
    DUPS_OK = "DupsOK"
    FULL_RESP = "FullResp"
    INCL_STREAM_NAME = "InclStreamName"
    INFORM_IF_RET = "InformIfRet"
    JOIN_EXCL = "JoinExcl"
    JOIN_SHARED = "JoinShared"
    LEAVE_ONLY = "LeaveOnly"
    LOCAL = "Local"
    LOCKED = "Locked"
    NEW_PUBS_ONLY = "NewPubsOnly"
    NO_ALTER = "NoAlter"
    NON_PERS = "NonPers"
    NONE = "None"
    PERS = "Pers"
    PERS_AS_PUB = "PersAsPub"
    PERS_AS_QUEUE = "PersAsQueue"
    PUB_ON_REQ_ONLY = "PubOnReqOnly"
    VARIABLE_USER_ID = "VariableUserId"


class PubOpt(StrEnum):
    """Publication options."""

    CORREL_AS_ID = "CorrelAsId"
    IS_RETAINED_PUB = "IsRetainedPub"
    LOCAL = "Local"
    NO_REG = "NoReg"
    NONE = "None"
    OTHER_SUBS_ONLY = "OtherSubsOnly"
    RETAIN_PUB = "RetainPub"


class DelOpt(StrEnum):
    """Delete options."""

    LOCAL = "Local"
    NONE = "None"


class QueuedCommand(BaseModel, frozen=True, defer_build=True):
    """What all commands have. q_name, qmgr_name: QName and QMgrName where given; ``header``: the family it came in."""

    word: ClassVar[str]
    on_control_queue: ClassVar[bool]

    header: PublicationFormat = PublicationFormat.RFH2
    topics: tuple[str, ...] = ()
    q_name: str | None = None
    qmgr_name: str | None = None
    stream_name: str | None = None


class _ByName(QueuedCommand):
    options: tuple[RegOpt, ...] | None = None
    sub_point: str | None = None
    sub_name: str | None = None

    def has(self, option: RegOpt) -> bool:
        """Whether the program asked for *option*."""
        return self.options is not None and option in self.options


class RegisterSubscriber(_ByName):
    """RegSub (guide 6.7.4)."""

    word = "RegSub"
    on_control_queue = True

    filter: str | None = None
    sub_identity: str | None = None
    sub_user_data: str | None = None


class DeregisterSubscriber(_ByName):
    """DeregSub (guide 6.7.2)."""

    word = "DeregSub"
    on_control_queue = True

    filters: tuple[str, ...] = ()
    sub_identity: str | None = None
    sub_user_data: str | None = None


class RequestUpdate(_ByName):
    """ReqUpdate (guide 6.7.5)."""

    word = "ReqUpdate"
    on_control_queue = True

    filter: str | None = None


class TopicPut(BaseModel, frozen=True, defer_build=True):
    """What MQPUT said of a publication that no tag of a command says (guide 4.6.1, 4.7).

    level: PubLevel. suppress_reply_to: MQPMO_SUPPRESS_REPLYTO. own_subs: MQPMO_NOT_OWN_SUBS, the identifiers of the
    program's subscriptions, in hexadecimal.
    """

    level: int = HIGHEST_PUB_LEVEL
    suppress_reply_to: bool = False
    own_subs: tuple[str, ...] = ()


class Publish(QueuedCommand):
    """Publish (guide 6.7.3). anonymous, direct_requests: Anon and DirectReq, which MQRFH and PCF alone have.

    put: where the command stands for an MQPUT that said more than a command can. user_tags: tags of a psc folder that
    are the program's own, with their texts, in order: subscribers get them.
    """

    word = "Publish"
    on_control_queue = False

    options: tuple[PubOpt, ...] = ()
    sub_point: str | None = None
    pub_time: str | None = None
    seq_num: str | None = None
    anonymous: bool = False
    direct_requests: bool = False
    put: TopicPut | None = None
    user_tags: tuple[tuple[str, str], ...] = ()

    def has(self, option: PubOpt) -> bool:
        """Whether the program asked for *option*."""
        return option in self.options


class DeletePublication(QueuedCommand):
    """DeletePub (guide 6.7.1)."""

    word = "DeletePub"
    on_control_queue = False

    options: tuple[DelOpt, ...] = ()


class RegisterPublisher(QueuedCommand):
    """RegPub, in MQRFH and PCF alone: it does nothing but succeed (guide 7.5)."""

    word = "RegPub"
    on_control_queue = True

    options: tuple[RegOpt, ...] = ()


class DeregisterPublisher(QueuedCommand):
    """DeregPub, in MQRFH and PCF alone: it does nothing but succeed (guide 7.5)."""

    word = "DeregPub"
    on_control_queue = True

    options: tuple[RegOpt, ...] = ()


Command = (
    RegisterSubscriber
    | DeregisterSubscriber
    | Publish
    | DeletePublication
    | RequestUpdate
    | RegisterPublisher
    | DeregisterPublisher
)

C = TypeVar("C", bound=QueuedCommand)
_set_fields = object.__setattr__
_set_given, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def command_like(command: C, fields: dict[str, Any]) -> C:
    """A command with these values of all its fields; the same fields were given to it as to *command*.

    ``command.model_copy(update=fields)`` does the same in three times the time. Neither checks values.
    """
    made = object.__new__(type(command))
    _set_fields(made, "__dict__", fields)
    _set_given(made, command.__pydantic_fields_set__.copy())
    _set_extra(made, None)
    _set_private(made, None)
    return made
