"""What is wrong with a message as a command: everything for which a queue manager would refuse it.

The parser stops at the first fault. Here the pair that it blames is left out and the rest is parsed again, until
nothing is blamed any more; then the command is translated against a queue manager on which nothing was done yet. What
depends on what is registered there (3073, 3077), or on streams and subscription points that it may have, is no problem
of the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from commands.authority import RecordedAuthority
from commands.context import Context, Place
from commands.explain.command_text import CommandText, Pair, command_text, is_response
from commands.model import Command, DelOpt, PubOpt, RegOpt
from commands.objects import ADMIN_STREAM, CONTROL_QUEUE, DEFAULT_STREAM, Objects, QueueManager
from commands.parse import parse
from commands.parse_psc import ALL_TAGS
from commands.stamps import Ids
from commands.translate import translate
from rfh2 import mqps
from rfh2.constants import (
    MQAT_BROKER,
    MQRC_RFH_COMMAND_ERROR,
    MQRC_RFH_DUPLICATE_PARM,
    MQRC_RFH_PARM_ERROR,
    MQRC_RFH_PARM_MISSING,
    MQRCCF_DEL_OPTIONS_ERROR,
    MQRCCF_INCORRECT_Q,
    MQRCCF_NO_RETAINED_MSG,
    MQRCCF_NOT_REGISTERED,
    MQRCCF_PUB_OPTIONS_ERROR,
    MQRCCF_REG_OPTIONS_ERROR,
    MQRCCF_STREAM_ERROR,
    MQRCCF_UNKNOWN_STREAM,
)
from rfh2.errors import CommandError, DecodeError
from rfh2.explain.codes import problem
from rfh2.explain.form import Problem
from rfh2.explain.reading import PartialMessage
from rfh2.explain.reasons import reason_name
from rfh2.message import Message
from rfh2.mqmd import name_of
from streams.topic_space import TopicSpace

_BROKER_QUEUES: Final = (CONTROL_QUEUE, DEFAULT_STREAM, ADMIN_STREAM)
_OPTION_REASONS: Final = (MQRCCF_REG_OPTIONS_ERROR, MQRCCF_PUB_OPTIONS_ERROR, MQRCCF_DEL_OPTIONS_ERROR)
_OPTION_WORDS: Final = frozenset(option.value for options in (RegOpt, PubOpt, DelOpt) for option in options)
_ALL_NAMES: Final = ALL_TAGS | mqps.NAMES
_STATE: Final = (MQRCCF_NOT_REGISTERED, MQRCCF_NO_RETAINED_MSG, MQRCCF_UNKNOWN_STREAM, MQRCCF_STREAM_ERROR)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def command_problems(partial: PartialMessage) -> list[Problem]:
    """Everything for which a queue manager would refuse the message as a command; nothing where it is none.

    Responses, and publications that publish/subscribe itself put, are not commands.
    """
    message = partial.message
    if partial.fault is not None or is_response(message) or partial.assumed.put_appl_type == MQAT_BROKER:
        return []
    text = command_text(message)
    if text is None:
        return list(_none(partial))
    return list(_problems(text, partial))


def _none(partial: PartialMessage) -> Iterator[Problem]:
    """A message without a command, where only commands belong."""
    if partial.captured.queue in _BROKER_QUEUES:
        try:
            parse(partial.message)
        except CommandError as error:
            yield problem("no-command", 0, _answered(error.why, error.reason), reason=error.reason)
        except DecodeError as error:
            # A folder that is not well formed was told of already.
            if error.code == "no-command-header":
                yield problem("no-command", error.offset, _answered(error.why, error.reason), reason=error.reason)


def _problems(text: CommandText, partial: PartialMessage) -> Iterator[Problem]:
    if text.second is not None:
        why = _answered("a second psc folder", MQRC_RFH_DUPLICATE_PARM)
        yield problem("second-psc", text.second, why, reason=MQRC_RFH_DUPLICATE_PARM)
    culprits: list[Pair] = []
    while True:
        message = text.without(culprits)
        try:
            command = parse(message)
        except DecodeError:
            return  # the text as it stands was told of already
        except CommandError as error:
            found = _blamed(error, text, culprits)
            yield _refusal(error, found, text)
            if found is None or error.reason == MQRC_RFH_COMMAND_ERROR:
                return
            culprits.append(found)
        else:
            break
    yield from _refused_later(command, message, text, partial)


def _blamed(error: CommandError, text: CommandText, culprits: list[Pair]) -> Pair | None:
    """The pair that an error is about; None where it is about one that is missing."""
    left = [pair for pair in text.pairs if pair not in culprits]
    for tag, value in error.tags:
        # The last one: of a tag that stands twice, the second is one too many.
        for pair in reversed(left):
            if pair.tag.removeprefix("MQPS").rstrip("s") == tag.removeprefix("MQPS").rstrip("s") and pair.text == value:
                return pair
    if error.reason == MQRC_RFH_PARM_ERROR:
        return next((pair for pair in left if pair.tag not in _ALL_NAMES), None)
    return None


def _refusal(error: CommandError, found: Pair | None, text: CommandText) -> Problem:
    at = text.offset if found is None else found.offset
    return problem(_code(error, found), at, _answered(error.why, error.reason), reason=error.reason)


def _code(error: CommandError, found: Pair | None) -> str:
    reason = error.reason
    if reason == MQRC_RFH_COMMAND_ERROR:
        return "unknown-command"
    if reason == MQRC_RFH_DUPLICATE_PARM:
        return "repeated-tag"
    if reason == MQRC_RFH_PARM_MISSING:
        return "missing-command" if "Command" in error.why.split() else "missing-tag"
    if reason == MQRC_RFH_PARM_ERROR:
        return "misplaced-tag" if found is not None and found.tag in _ALL_NAMES else "unknown-tag"
    if reason in _OPTION_REASONS and found is not None and "Opt" in found.tag:
        return "misplaced-option" if found.text in _OPTION_WORDS else "unknown-option"
    return "refused-command"


def _refused_later(command: Command, message: Message, text: CommandText, partial: PartialMessage) -> Iterator[Problem]:
    """What translating finds, on a queue manager on which nothing was done yet."""
    captured = partial.captured
    belongs = CONTROL_QUEUE if command.on_control_queue else DEFAULT_STREAM
    context = _context(message, captured.queue or belongs, partial)
    right = Place.CONTROL if command.on_control_queue else Place.STREAM
    if context.place not in (right, Place.OTHER):
        why = f"{command.word} belongs on {'the control queue' if right is Place.CONTROL else 'a stream queue'}"
        yield problem("wrong-queue", text.offset, _answered(why, MQRCCF_INCORRECT_Q), reason=MQRCCF_INCORRECT_Q)
    try:
        translate(command, _context(message, belongs, partial))
    except CommandError as error:
        if error.reason in _STATE or any(tag == "SubPoint" for tag, _ in error.tags):
            return
        yield _refusal(error, _blamed(error, text, []), text)


def _context(message: Message, queue: str, partial: PartialMessage) -> Context:
    captured = partial.captured
    objects = Objects(QueueManager(captured.qmgr or "QM1"))
    user = name_of(message.mqmd.user_identifier) if captured.user is None else captured.user
    now = captured.time or _EPOCH
    ids = Ids(objects.qmgr.name, captured.seq)
    return Context(objects, TopicSpace(objects.topics), RecordedAuthority(objects), message, queue, user, now, ids)


def _answered(why: str, reason: int) -> str:
    return f"{why}; a queue manager answers {reason} {reason_name(reason) or ''}".rstrip()
