"""From a psc folder to a command (guide 6.7; wire formats 4.1 and 4.2).

One table, ``RULES``, says what each command takes; the rest of the module applies it. At the first rule that a folder
breaks, reading ends with the reason that a broker would give: 2336 to 2339 for tags, 3083, 3084 and 3087 for options.

IBM's JMS clients give the options of a tag as one decimal sum (guide 7.2: "an integer constant"), and put a tag of
their own into Publish, which their subscribers look for.

``publish_command`` goes from a message that a program puts on a topic to the equivalent Publish (guide 7.7).

The command is an MQRFH2 before the message. If the message itself begins with an MQRFH2, as those of JMS do, psc
becomes its first folder, so that subscribers find the other folders at the usual place. Its own psc or pscr folder is
removed, because the queue determines the topic. The message becomes a datagram, because its program did not ask the
broker for a response.

A tag of its own says what no tag of a command says: PubLevel, then R for MQPMO_SUPPRESS_REPLYTO, then the identifiers
of the subscriptions that MQPMO_NOT_OWN_SUBS leaves out. It is there only if the program said such a thing, or gave a
ReplyToQ, which its subscribers get. Subscribers do not get the tag.

    <MQPut>8</MQPut>      <MQPut>9 R</MQPut>      <MQPut>9 414D5120... 414D5120...</MQPut>
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from commands.model import (
    Command,
    DeletePublication,
    DelOpt,
    DeregisterSubscriber,
    Publish,
    PubOpt,
    RegisterSubscriber,
    RegOpt,
    RequestUpdate,
    TopicPut,
)
from rfh2 import constants as mq
from rfh2.ccsid import UTF8_CCSID
from rfh2.errors import CommandError, DecodeError
from rfh2.folders import Folder, write
from rfh2.message import decode_chain
from rfh2.mqmd import Mqmd, name_of
from rfh2.options import DELETE, PUBLICATION, REGISTRATION, OptionSet
from rfh2.rfh2 import Rfh2

PUT_TAG: Final = "MQPut"
_PLAIN: Final = TopicPut()
_SUPPRESSES: Final = "R"
_COMMAND_FOLDERS: Final = frozenset({"psc", "pscr"})
_PUT: Final = re.compile(r"([0-9])( R)?((?: [0-9A-F]{48})*)")


def format_put(put: TopicPut) -> str:
    """The text of the tag."""
    return " ".join((str(put.level), *((_SUPPRESSES,) if put.suppress_reply_to else ()), *put.own_subs))


def parse_put(text: str) -> TopicPut:
    """What the tag says. Raises CommandError 2337."""
    found = _PUT.fullmatch(text)
    if found is None:
        why = "it is not PubLevel, R, and identifiers of subscriptions"
        raise CommandError(mq.MQRC_RFH_PARM_ERROR, why=why, tags=((PUT_TAG, text),))
    level, suppresses, own = found.groups()
    return TopicPut(level=int(level), suppress_reply_to=suppresses is not None, own_subs=tuple(own.split()))


def publish_command(
    topic: str, mqmd: Mqmd, body: bytes, retain: bool = False, local: bool = False, put: TopicPut = _PLAIN
) -> tuple[Mqmd, bytes]:
    """The descriptor and the bytes of the command that publishes a message on *topic*. Raises EncodeError.

    retain, local: MQPMO_RETAIN, MQPMO_SCOPE_QMGR (guide 7.2, tables of options).
    """
    chosen = ((retain, PubOpt.RETAIN_PUB), (local, PubOpt.LOCAL))
    options = [("PubOpt", option.value) for is_set, option in chosen if is_set]
    if put != _PLAIN or name_of(mqmd.reply_to_q):
        options.append((PUT_TAG, format_put(put)))
    psc = Folder.of(write("psc", (("Command", Publish.word), ("Topic", topic), *options)))
    first = _first_header(mqmd, body)
    datagram = replace(mqmd, msg_type=mq.MQMT_DATAGRAM, report=0)
    if first is not None:
        others = tuple(folder for folder in first.folders if folder.name not in _COMMAND_FOLDERS)
        return datagram, first.with_folders((psc, *others)).encode() + body[first.length :]
    header = Rfh2(
        (psc,), encoding=mqmd.encoding, coded_char_set_id=mqmd.coded_char_set_id, format=mqmd.format.rstrip(" \0")
    )
    described = replace(datagram, format=mq.MQFMT_RF_HEADER_2, encoding=mq.MQENC_NATIVE, coded_char_set_id=UTF8_CCSID)
    return described, header.encode() + body


def _first_header(mqmd: Mqmd, body: bytes) -> Rfh2 | None:
    """The MQRFH2 at the start of *body*, if a folder in UTF-8 can be added to it."""
    try:
        headers, _ = decode_chain(body, mqmd.format, mqmd.coded_char_set_id)
    except DecodeError:
        return None
    first = headers[0] if headers else None
    return first if isinstance(first, Rfh2) and first.name_value_ccsid == UTF8_CCSID else None


@dataclass(frozen=True, slots=True)
class OptionWords:
    """One option tag as one command takes it: its words, and the reason code for any other word.

    bits: the constants that a decimal sum may contain. in_sums: options that a sum may contain although psc has no word
    for them.
    """

    words: Mapping[str, StrEnum]
    reason: int
    bits: OptionSet
    in_sums: Mapping[str, StrEnum]

    def of_sum(self, text: str) -> list[StrEnum] | None:
        """The options of the decimal sum *text*, in the order of their bits; None where this tag has no such sum."""
        if not text.isdecimal():
            return None
        given = self.bits.read([text])
        found = [self.words.get(word) or self.in_sums.get(word) for word in given.words]
        return None if given.unknown or None in found else [option for option in found if option is not None]


def _options(reason: int, *words: StrEnum, in_sums: tuple[StrEnum, ...] = ()) -> OptionWords:
    return OptionWords(
        {word.value: word for word in words}, reason, _BITS[reason], {word.value: word for word in in_sums}
    )


_BITS = {
    mq.MQRCCF_REG_OPTIONS_ERROR: REGISTRATION,
    mq.MQRCCF_PUB_OPTIONS_ERROR: PUBLICATION,
    mq.MQRCCF_DEL_OPTIONS_ERROR: DELETE,
}


@dataclass(frozen=True, slots=True)
class Rules:
    """What one command takes.

    make: the model of its fields. once, repeated: the field that each tag fills. options: option tags, which repeat.
    passes_tags_on: whether tags that are not IBM's belong to the message, as such names of an MQRFH do.
    """

    make: Callable[[Mapping[str, Any]], Command]
    once: Mapping[str, str]
    repeated: Mapping[str, str]
    options: Mapping[str, OptionWords]
    passes_tags_on: bool = False


def _model(model: type[BaseModel]) -> Callable[[Mapping[str, Any]], Any]:
    # This takes two thirds of the time of a call of the class. It is built for the first command of its kind.
    validator = cache(lambda: TypeAdapter(model).validator.validate_python)

    def make(fields: Mapping[str, Any]) -> Any:
        return validator()(fields)

    return make


_publish = _model(Publish)


def _published(fields: Mapping[str, Any]) -> Any:
    put = fields.get("put")
    return _publish(fields if put is None else {**fields, "put": parse_put(put)})


_NOT_OF_REG_SUB = frozenset(
    {RegOpt.ANON, RegOpt.DEREG_ALL, RegOpt.DIRECT_REQ, RegOpt.INCL_STREAM_NAME, RegOpt.LEAVE_ONLY, RegOpt.LOCKED}
)
_QUEUE = {"QMgrName": "qmgr_name", "QName": "q_name"}

RULES: dict[str, Rules] = {
    "RegSub": Rules(
        _model(RegisterSubscriber),
        {
            **_QUEUE,
            "SubPoint": "sub_point",
            "Filter": "filter",
            "SubName": "sub_name",
            "SubIdentity": "sub_identity",
            "SubUserData": "sub_user_data",
        },
        {"Topic": "topics"},
        {
            "RegOpt": _options(
                mq.MQRCCF_REG_OPTIONS_ERROR,
                *(option for option in RegOpt if option not in _NOT_OF_REG_SUB),
                # Only MQRFH has the word Anon. JMS clients use the same sum of options for both headers.
                in_sums=(RegOpt.ANON,),
            )
        },
    ),
    "DeregSub": Rules(
        _model(DeregisterSubscriber),
        {
            **_QUEUE,
            "SubPoint": "sub_point",
            "SubName": "sub_name",
            "SubIdentity": "sub_identity",
            "SubUserData": "sub_user_data",
        },
        {"Topic": "topics", "Filter": "filters"},
        {
            "RegOpt": _options(
                mq.MQRCCF_REG_OPTIONS_ERROR,
                RegOpt.DEREG_ALL,
                RegOpt.CORREL_AS_ID,
                RegOpt.FULL_RESP,
                RegOpt.LEAVE_ONLY,
                RegOpt.NONE,
                RegOpt.VARIABLE_USER_ID,
            )
        },
    ),
    "ReqUpdate": Rules(
        _model(RequestUpdate),
        {**_QUEUE, "Topic": "topics", "SubPoint": "sub_point", "Filter": "filter", "SubName": "sub_name"},
        {},
        {"RegOpt": _options(mq.MQRCCF_REG_OPTIONS_ERROR, RegOpt.CORREL_AS_ID, RegOpt.NONE, RegOpt.VARIABLE_USER_ID)},
    ),
    "Publish": Rules(
        _published,
        {**_QUEUE, "SubPoint": "sub_point", "PubTime": "pub_time", "SeqNum": "seq_num", PUT_TAG: "put"},
        {"Topic": "topics"},
        {
            "PubOpt": _options(
                mq.MQRCCF_PUB_OPTIONS_ERROR,
                PubOpt.RETAIN_PUB,
                PubOpt.LOCAL,
                PubOpt.OTHER_SUBS_ONLY,
                PubOpt.CORREL_AS_ID,
                PubOpt.NONE,
            ),
            # IBM's own sample publishes with CorrelAsId in a RegOpt, and the broker took it.
            "RegOpt": _options(mq.MQRCCF_REG_OPTIONS_ERROR, PubOpt.CORREL_AS_ID, PubOpt.LOCAL, PubOpt.NONE),
        },
        passes_tags_on=True,
    ),
    "DeletePub": Rules(
        _model(DeletePublication),
        {},
        {"Topic": "topics"},
        {"DelOpt": _options(mq.MQRCCF_DEL_OPTIONS_ERROR, DelOpt.LOCAL, DelOpt.NONE)},
    ),
}

# The guide's prose has a longer spelling of what its header file and examples call InformIfRet.
_SPELLINGS = {"InformIfRetained": "InformIfRet"}

_DEFAULTED = frozenset({"q_name", "qmgr_name", "sub_point", "filter"})


def parse_psc(pairs: Sequence[tuple[str, str]]) -> Command:
    """The command in a psc folder, given as (tag, text) in order. Raises CommandError with the first reason found."""
    word = _command(pairs)
    rules = RULES[word]
    option_tags, repeated, once = rules.options, rules.repeated, rules.once
    fields: dict[str, Any] = {}
    lists: dict[str, list[str]] = {}
    options: list[StrEnum] = []
    user_tags: list[tuple[str, str]] = []
    for tag, text in pairs:
        if tag == "Command":
            continue
        if (taken := option_tags.get(tag)) is not None:
            found = taken.words.get(_SPELLINGS.get(text, text))
            if found is not None:
                options.append(found)
            elif (in_sum := taken.of_sum(text)) is not None:
                options += in_sum
            else:
                raise CommandError(taken.reason, why=f"{word} takes no {tag} {text!r}", tags=((tag, text),))
        elif (field := repeated.get(tag)) is not None:
            lists.setdefault(field, []).append(text)
        elif (field := once.get(tag)) is not None:
            if field in fields:
                raise CommandError(mq.MQRC_RFH_DUPLICATE_PARM, why=f"{tag} occurs twice", tags=((tag, text),))
            fields[field] = (text,) if field == "topics" else text
        elif rules.passes_tags_on and is_user_tag(tag):
            user_tags.append((tag, text))
        else:
            known = tag in ALL_TAGS
            raise CommandError(
                mq.MQRC_RFH_PARM_ERROR, why=f"{word} takes no {tag}", tags=((tag, text),) if known else ()
            )
    if user_tags:
        fields["user_tags"] = tuple(user_tags)
    for field, texts in lists.items():
        fields[field] = tuple(texts)
    if options:
        fields["options"] = distinct(options)
    check_fields(word, fields, options)
    if "" in fields.values():
        # An empty element asks for the default.
        fields = {name: value for name, value in fields.items() if value != "" or name not in _DEFAULTED}
    return rules.make(fields)


def distinct(options: Sequence[StrEnum]) -> tuple[StrEnum, ...]:
    """Each of *options* once, at its last place: of the persistence options the last one counts.

    One message can hold many thousands of topics and repeat one option as often, and each topic looks up the options.
    """
    return tuple(options) if len(options) < 2 else tuple(dict.fromkeys(reversed(options)))[::-1]


def _command(pairs: Sequence[tuple[str, str]]) -> str:
    words = [text for tag, text in pairs if tag == "Command"]
    if len(words) == 1 and words[0] in RULES:
        return words[0]
    if not words:
        raise CommandError(mq.MQRC_RFH_PARM_MISSING, why="the psc folder has no Command")
    if len(words) > 1:
        raise CommandError(mq.MQRC_RFH_DUPLICATE_PARM, why="Command occurs twice", tags=(("Command", words[1]),))
    why = f"{words[0]!r} is not one of {', '.join(RULES)}"
    raise CommandError(mq.MQRC_RFH_COMMAND_ERROR, why=why, tags=(("Command", words[0]),))


def check_fields(word: str, fields: Mapping[str, Any], options: Sequence[StrEnum]) -> None:
    """The rules that hold between tags, and the lengths."""
    if not fields.get("topics") and RegOpt.DEREG_ALL not in options:
        raise CommandError(mq.MQRC_RFH_PARM_MISSING, why=f"{word} needs a Topic")
    sub_name, identity = fields.get("sub_name"), fields.get("sub_identity")
    if sub_name is not None and not 0 < len(sub_name) <= mq.MQ_SUB_NAME_LENGTH:
        raise CommandError(
            mq.MQRCCF_SUB_NAME_ERROR,
            why=f"a SubName has 1 to {mq.MQ_SUB_NAME_LENGTH} characters",
            tags=(("SubName", sub_name),),
        )
    if identity is not None and not 0 < len(identity) <= mq.MQ_SUB_IDENTITY_LENGTH:
        why = f"a SubIdentity has 1 to {mq.MQ_SUB_IDENTITY_LENGTH} characters"
        raise CommandError(mq.MQRCCF_SUB_IDENTITY_ERROR, why=why, tags=(("SubIdentity", identity),))
    if options and isinstance(options[0], RegOpt):
        _check_options(options, fields)


def _check_options(options: Sequence[StrEnum], fields: Mapping[str, Any]) -> None:
    sub_name, identity, topics = fields.get("sub_name"), fields.get("sub_identity"), fields.get("topics", ())
    joins = [option for option in (RegOpt.JOIN_SHARED, RegOpt.JOIN_EXCL, RegOpt.LEAVE_ONLY) if option in options]
    if RegOpt.ADD_NAME in options and sub_name is None:
        raise _bad_option(RegOpt.ADD_NAME, "AddName needs a SubName")
    if joins and identity is None:
        raise _bad_option(joins[0], f"{joins[0]} needs a SubIdentity")
    if len(joins) > 1:
        raise _bad_option(joins[1], "JoinShared and JoinExcl cannot be used together")
    if RegOpt.FULL_RESP in options and RegOpt.DEREG_ALL in options:
        raise _bad_option(RegOpt.FULL_RESP, "FullResp and DeregAll cannot be used together")
    if RegOpt.FULL_RESP in options and len(topics) > 1:
        raise _bad_option(RegOpt.FULL_RESP, "FullResp takes one Topic")


def _bad_option(option: RegOpt, why: str) -> CommandError:
    return CommandError(mq.MQRCCF_REG_OPTIONS_ERROR, why=why, tags=(("RegOpt", option.value),))


# Every tag that a psc folder may have in one command or another (wire formats 4.1).
ALL_TAGS = frozenset({"Command"}.union(*({*rules.once, *rules.repeated, *rules.options} for rules in RULES.values())))

# Psc's tags in another case are mistakes; with those of pscr, what a subscriber reads would look like a response.
_NOT_FREE = frozenset(tag.lower() for tag in ALL_TAGS | {"Completion", "Response", "Reason", "UserId", "CorrelId"})


def is_user_tag(tag: str) -> bool:
    """Whether *tag* is a program's own: it is no tag of psc or pscr, and does not begin with MQ as IBM's names do."""
    return tag.lower() not in _NOT_FREE and not tag.startswith("MQ")
