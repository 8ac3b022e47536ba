"""What the commands of MQRFH and PCF take: one table, because both say the same things (wire formats 2.5).

The headers' own modules turn names or parameters into ``Given`` values; ``command_of`` makes the command from them. It
ends at the first broken rule, with a reason of the header's ``Reasons`` and the place of the property in error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from commands.headers import publication
from commands.headers.psc_commands import check_fields, distinct
from commands.headers.response import Tags
from commands.model import (
    Command,
    DeletePublication,
    DelOpt,
    DeregisterPublisher,
    DeregisterSubscriber,
    Publish,
    PubOpt,
    RegisterPublisher,
    RegisterSubscriber,
    RegOpt,
    RequestUpdate,
)
from rfh2 import constants as mq
from rfh2.errors import CommandError
from rfh2.mqmd import Mqmd
from rfh2.options import Options
from streams.subscriptions import PublicationFormat


@dataclass(frozen=True, slots=True)
class Given:
    """One property as a program gave it.

    text: as in the header, decimal for integers. options: the options of an option property. where: tags that tell the
    program where the property stands, if it is in error. integer: whether the header has it as a number.
    """

    tag: str
    text: str
    where: Tags = ()
    options: Options | None = None
    integer: bool = False


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reasons with which a header refuses a property: not taken by the command, given twice, or missing.

    unknown, duplicate: for a string and for an integer. missing: gives the tag, as ``where`` of a Given does.
    """

    unknown: tuple[int, int]
    duplicate: tuple[int, int]
    missing: int


@dataclass(frozen=True, slots=True)
class _Rules:
    """What one command takes: the field of each single property, and the options of each option property.

    one_topic: whether it takes one topic only. ignored: properties that it takes but does not use.
    """

    model: type[Any]
    single: Mapping[str, str]
    options: Mapping[str, frozenset[StrEnum]]
    one_topic: bool = False
    ignored: frozenset[str] = frozenset()


_QUEUE: Final = {"QMgrName": "qmgr_name", "QName": "q_name", "StreamName": "stream_name"}
_NAMED: Final = {**_QUEUE, "SubName": "sub_name"}
_IDENTIFIED: Final = {**_NAMED, "SubIdentity": "sub_identity", "SubUserData": "sub_user_data"}
_PUBLISHER: Final = frozenset({RegOpt.ANON, RegOpt.CORREL_AS_ID, RegOpt.DIRECT_REQ, RegOpt.LOCAL, RegOpt.NONE})
_LEAVER: Final = frozenset({RegOpt.CORREL_AS_ID, RegOpt.DEREG_ALL, RegOpt.NONE})

RULES: Final[dict[str, _Rules]] = {
    "DeletePub": _Rules(
        DeletePublication, {"StreamName": "stream_name"}, {"DelOpt": frozenset({DelOpt.LOCAL, DelOpt.NONE})}
    ),
    "DeregPub": _Rules(DeregisterPublisher, _QUEUE, {"RegOpt": _LEAVER}),
    "DeregSub": _Rules(
        DeregisterSubscriber,
        _IDENTIFIED,
        {"RegOpt": _LEAVER | {RegOpt.FULL_RESP, RegOpt.LEAVE_ONLY, RegOpt.VARIABLE_USER_ID}},
    ),
    "Publish": _Rules(
        Publish,
        {**_QUEUE, "PubTime": "pub_time", "SeqNum": "seq_num"},
        {
            "PubOpt": frozenset(
                {
                    PubOpt.CORREL_AS_ID,
                    PubOpt.IS_RETAINED_PUB,
                    PubOpt.NO_REG,
                    PubOpt.NONE,
                    PubOpt.OTHER_SUBS_ONLY,
                    PubOpt.RETAIN_PUB,
                }
            ),
            "RegOpt": _PUBLISHER,
        },
        ignored=frozenset({"IntData", "StringData"}),  # they are data, and go with the message
    ),
    "RegPub": _Rules(RegisterPublisher, _QUEUE, {"RegOpt": _PUBLISHER}),
    "RegSub": _Rules(
        RegisterSubscriber,
        _IDENTIFIED,
        {"RegOpt": frozenset(RegOpt) - {RegOpt.DEREG_ALL, RegOpt.LEAVE_ONLY, RegOpt.DIRECT_REQ}},
    ),
    "ReqUpdate": _Rules(
        RequestUpdate,
        _NAMED,
        {"RegOpt": frozenset({RegOpt.CORREL_AS_ID, RegOpt.NONE, RegOpt.VARIABLE_USER_ID})},
        one_topic=True,
    ),
}

_OPTION_REASONS: Final = {
    "RegOpt": mq.MQRCCF_REG_OPTIONS_ERROR,
    "PubOpt": mq.MQRCCF_PUB_OPTIONS_ERROR,
    "DelOpt": mq.MQRCCF_DEL_OPTIONS_ERROR,
}
# In a Publish command, these registration options mean the same as these publication options (wire formats 2.5).
_AS_PUBLICATION_OPTION: Final[dict[StrEnum, PubOpt]] = {
    RegOpt.CORREL_AS_ID: PubOpt.CORREL_AS_ID,
    RegOpt.LOCAL: PubOpt.LOCAL,
}


def command_of(
    word: str, given: Sequence[Given], header: PublicationFormat, reasons: Reasons, no_topic: Tags
) -> Command:
    """The command *word* with these properties. no_topic: what a response says where the topic is missing.

    Raises CommandError: *reasons* for properties, 3083, 3084, 3087 for options, 3153, 3154 for names.
    """
    rules = RULES[word]
    fields: dict[str, Any] = {}
    topics: list[str] = []
    options: dict[str, list[StrEnum]] = {}
    for one in given:
        if (allowed := rules.options.get(one.tag)) is not None:
            options.setdefault(one.tag, []).extend(_options(word, one, allowed))
        elif one.tag == "Topic" and not (rules.one_topic and topics):
            topics.append(one.text)
        elif (field := "topics" if one.tag == "Topic" else rules.single.get(one.tag)) is not None:
            if field in fields or field == "topics":
                raise CommandError(reasons.duplicate[one.integer], why=f"{one.tag} occurs twice", tags=one.where)
            fields[field] = one.text
        elif one.tag not in rules.ignored:
            raise CommandError(reasons.unknown[one.integer], why=f"{word} takes no {one.tag}", tags=one.where)
    if topics:
        fields["topics"] = tuple(topics)
    registration = options.get("RegOpt", [])
    if RegOpt.ANON in registration and RegOpt.DIRECT_REQ in registration:
        tags = (("RegOpt", RegOpt.DIRECT_REQ.value),)
        raise CommandError(mq.MQRCCF_REG_OPTIONS_ERROR, why="Anon and DirectReq cannot be used together", tags=tags)
    if not fields.get("topics") and RegOpt.DEREG_ALL not in registration:
        raise CommandError(reasons.missing, why=f"{word} needs a Topic", tags=no_topic)
    check_fields(word, fields, registration)
    for blank in ("q_name", "qmgr_name", "stream_name"):
        if fields.get(blank) == "":
            del fields[blank]  # an empty value asks for the default
    if word == "Publish":
        of_publication = [_AS_PUBLICATION_OPTION[o] for o in registration if o in _AS_PUBLICATION_OPTION]
        fields["options"] = distinct([*options.get("PubOpt", ()), *of_publication])
        fields["anonymous"] = RegOpt.ANON in registration
        fields["direct_requests"] = RegOpt.DIRECT_REQ in registration
    else:
        for found in options.values():
            fields["options"] = distinct(found)
    command: Command = rules.model(header=header, **fields)
    return command


def _options(word: str, one: Given, allowed: frozenset[StrEnum]) -> list[StrEnum]:
    assert one.options is not None
    words: Mapping[str, StrEnum] = {option.value: option for option in allowed}
    wrong = [*one.options.unknown, *(option for option in one.options.words if option not in words)]
    if wrong:
        why = f"{word} takes no {one.tag} {' '.join(wrong)!r}"
        raise CommandError(_OPTION_REASONS[one.tag], why=why, tags=((one.tag, one.text), *one.where))
    return [words[option] for option in one.options.words]


def publisher_of(command: Publish, mqmd: Mqmd) -> publication.Pairs:
    """The queue for requests to the publisher: the one it names or, with DirectReq, its reply queue; none with Anon."""
    if command.anonymous:
        return ()
    qmgr, queue = command.qmgr_name, command.q_name
    if command.direct_requests:
        qmgr, queue = qmgr or mqmd.reply_to_qmgr, queue or mqmd.reply_to_q
    return tuple((tag, name) for tag, name in (("QMgrName", qmgr), ("QName", queue)) if name)
