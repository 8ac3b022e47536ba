"""The problems of a command: everything for which a queue manager would refuse it.

The parser stops at the first fault. This module removes the pair with the fault and parses the rest again, until the
parser finds no more faults. Then it translates the command for a new queue manager. Anything that depends on the state
of a queue manager is not a problem of the message: registrations (3073, 3077), streams and subscription points.

What a command without its MQMD is taken to be: a log prints the MQRFH2 alone, and the program's MQMD is not known.

A command takes its CorrelId, and its queue where it names none, from the MQMD. They are unknown then; they are not zero
or blank, for which a queue manager would refuse the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from commands.broker.authority import RecordedAuthority
from commands.broker.context import Context, InputQueueKind
from commands.broker.descriptor import Ids
from commands.broker.objects import ADMIN_STREAM, CONTROL_QUEUE, DEFAULT_STREAM, Objects, QueueManager, is_object_name
from commands.broker.translate import translate
from commands.explain.command_text import CommandPairs, TagAndText, command_text, is_report, is_response
from commands.explain.sentence import jms_form
from commands.explain.surprises import is_suspect, surprises
from commands.headers.psc_commands import ALL_TAGS
from commands.headers.publication import BY_MQPS
from commands.headers.registry import parse
from commands.model import Command, DeletePublication, Publish, PubOpt
from rfh2 import constants as mq, pcf_names
from rfh2.captured import CapturedMessage
from rfh2.errors import CommandError, DecodeError, QPubSubError
from rfh2.explain.describe import described
from rfh2.explain.form import Json, Problem, problem
from rfh2.explain.problems import wire_problems
from rfh2.explain.reading import PartialMessage, read_message, salvage
from rfh2.message import Message
from rfh2.mqmd import name_of
from rfh2.options import DELETE, PUBLICATION, REGISTRATION
from rfh2.pcf import FORMATS, Pcf
from rfh2.rfh1 import COMMANDS, MQPS_COMMAND
from streams.topic_objects import QUEUE_NAMELIST, Namelist
from streams.topic_space import TopicSpace

_QUEUE: Final = "ReplyToQ.of.message."
_CORREL_ID: Final = b"of message: "


def with_descriptor(message: Message, seq: int, *, queue: bool = True) -> Message:
    """*message*, which came without an MQMD, with a CorrelId and a ReplyToQ that no other message has.

    queue: whether it has a ReplyToQ.
    """
    correl_id = _CORREL_ID + seq.to_bytes(24 - len(_CORREL_ID), "big")
    reply_to_q = f"{_QUEUE}{seq}" if queue else ""
    return replace(message, mqmd=replace(message.mqmd, correl_id=correl_id, reply_to_q=reply_to_q))


def with_md(captured: CapturedMessage) -> CapturedMessage:
    """*captured*; if it came without an MQMD and can be decoded, with the MQMD that ``with_descriptor`` gives it."""
    if captured.md_hex is not None:
        return captured
    try:
        message = captured.decode()
    except DecodeError:
        return captured
    md = with_descriptor(message, captured.seq).mqmd.encode()
    return captured.model_copy(update={"md_hex": md.hex()})


def is_assumed_queue(name: str) -> bool:
    """Whether a queue stands for the ReplyToQ of an MQMD that is not known."""
    return name.startswith(_QUEUE)


MOST_REFUSALS: Final = 25
"""Faults of one command that are looked for. Each is found by parsing what is left; a message has room for millions."""

_BROKER_QUEUES: Final = (CONTROL_QUEUE, DEFAULT_STREAM, ADMIN_STREAM)
_OPTION_REASONS: Final = (mq.MQRCCF_REG_OPTIONS_ERROR, mq.MQRCCF_PUB_OPTIONS_ERROR, mq.MQRCCF_DEL_OPTIONS_ERROR)
_OPTION_TAGS: Final = ("RegOpt", "PubOpt", "DelOpt")
_UNKNOWN_COMMAND: Final = (mq.MQRC_RFH_COMMAND_ERROR, pcf_names.MQRCCF_CFH_COMMAND_ERROR)
_MISSING: Final = (mq.MQRC_RFH_PARM_MISSING, pcf_names.MQRCCF_PARM_COUNT_TOO_SMALL)
_REPEATED: Final = (
    mq.MQRC_RFH_DUPLICATE_PARM,
    pcf_names.MQRCCF_CFST_DUPLICATE_PARM,
    pcf_names.MQRCCF_CFIN_DUPLICATE_PARM,
)
_NOT_TAKEN: Final = (mq.MQRC_RFH_PARM_ERROR, pcf_names.MQRCCF_CFST_PARM_ID_ERROR, pcf_names.MQRCCF_CFIN_PARM_ID_ERROR)
_STATE: Final = (mq.MQRCCF_NOT_REGISTERED, mq.MQRCCF_NO_RETAINED_MSG, mq.MQRCCF_UNKNOWN_STREAM, mq.MQRCCF_STREAM_ERROR)
_NOTHING: Final = (None, None, None, None, None)
_OF_IDENTITY: Final = (PubOpt.CORREL_AS_ID, PubOpt.OTHER_SUBS_ONLY)
_NO_DESCRIPTOR: Final = "unknown-descriptor"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NEAR: Final = 0.65
_OPTIONS: Final = {"RegOpt": REGISTRATION.bits, "PubOpt": PUBLICATION.bits, "DelOpt": DELETE.bits}


def command_problems(partial: PartialMessage, parsed: Command | None) -> list[Problem]:
    """Everything for which a queue manager would refuse the message as a command; nothing where it is none.

    parsed: what the parser made of the message, if it could. Responses, and publications that publish/subscribe itself
    put, are not commands.
    """
    message = partial.message
    if partial.fault is not None or partial.assumed.put_appl_type == mq.MQAT_BROKER:
        return []
    if parsed is not None:
        refused = list(_refused_later(parsed, message, partial))
        if all(each.code == _NO_DESCRIPTOR for each in refused):
            refused += surprises(parsed, partial)
        return refused
    if is_response(message) or (partial.captured.queue not in _BROKER_QUEUES and is_report(message)):
        return []
    text = command_text(message)
    if text is None:
        return list(_none(partial))
    return list(_problems(text, partial))


def _none(partial: PartialMessage) -> Iterator[Problem]:
    """A message without a command, where only commands belong; one that is broken was reported already."""
    message = partial.message
    if partial.captured.queue not in _BROKER_QUEUES:
        return
    if message.rfh1 is not None or message.body_format in FORMATS or not _folders_are_sound(message):
        return
    try:
        parse(message)
    except (CommandError, DecodeError) as error:
        yield problem("no-command", 0, _answered(error.why, error.reason), reason=error.reason)


def _folders_are_sound(message: Message) -> bool:
    try:
        for folder in message.rfh2.folders if message.rfh2 is not None else ():
            folder.values()
    except DecodeError:
        return False
    return True


def _problems(text: CommandPairs, partial: PartialMessage) -> Iterator[Problem]:
    if text.second is not None:
        why = _answered("a second psc folder", mq.MQRC_RFH_DUPLICATE_PARM)
        yield problem("second-psc", text.second, why, reason=mq.MQRC_RFH_DUPLICATE_PARM)
    culprits: list[TagAndText] = []
    while len(culprits) < MOST_REFUSALS:
        message = text.without(culprits)
        try:
            command = parse(message)
        except DecodeError:
            return  # the text as it stands was reported already
        except CommandError as error:
            left_out = frozenset(culprits)
            left = [pair for pair in text.pairs if pair not in left_out]
            culprit = _blamed(error, left, message)
            yield _refusal(error, culprit, text)
            if culprit is None or error.reason in _UNKNOWN_COMMAND:
                return
            culprits.append(culprit)
        else:
            yield from _refused_later(command, message, partial)
            return
    why = f"{MOST_REFUSALS} parts of the command are refused; the other parts are not examined"
    yield problem("more-refusals", text.offset, why)


def accepted_part(text: CommandPairs) -> Command | None:
    """The command that is left without the parts that are refused; None where the command itself is."""
    culprits: list[TagAndText] = []
    while len(culprits) < MOST_REFUSALS:
        message = text.without(culprits)
        try:
            return parse(message)
        except DecodeError:
            return None
        except CommandError as error:
            left_out = frozenset(culprits)
            culprit = _blamed(error, [pair for pair in text.pairs if pair not in left_out], message)
            if culprit is None or error.reason in _UNKNOWN_COMMAND:
                return None
            culprits.append(culprit)
    return None


def _blamed(error: CommandError, left: list[TagAndText], message: Message) -> TagAndText | None:
    """The pair of *left*, those that *message* still has, that an error is about; None for one that is missing."""
    tags = dict(error.tags)
    if "ErrorPos" in tags and (now := command_text(message)) is not None:
        at = now.offset + int(tags["ErrorPos"])
        return next((pair for pair, moved in zip(left, now.pairs, strict=False) if moved.offset == at), None)
    number = tags.get("ParmId", "")
    # The last one: of a tag that stands twice, the second is one too many.
    for pair in reversed(left):
        if (pair.tag in tags and pair.text == tags[pair.tag]) or (pair.number and str(pair.number) == number):
            return pair
    if error.reason == mq.MQRC_RFH_PARM_ERROR:
        return next((pair for pair in left if not pair.known), None)
    return None


def _refusal(error: CommandError, culprit: TagAndText | None, text: CommandPairs) -> Problem:
    at = text.offset if culprit is None else culprit.offset
    code = _code(error, culprit, text)
    meant = None if culprit is None else _suggestion(code, culprit)
    why = error.why if meant is None else f"{error.why} (perhaps {meant})"
    return problem(code, at, _answered(why, error.reason), reason=error.reason)


def _code(error: CommandError, culprit: TagAndText | None, text: CommandPairs) -> str:
    reason = error.reason
    named = isinstance(text.holder, Pcf) or any(pair.tag == "Command" for pair in text.pairs)
    if reason in _UNKNOWN_COMMAND:
        if not named:
            return "missing-command"
        return "unknown-command" if culprit is None or culprit.tag == "Command" else "misplaced-tag"
    if reason in _MISSING:
        return "missing-tag" if named else "missing-command"
    if reason in _REPEATED:
        return "repeated-tag"
    if reason in _NOT_TAKEN:
        return "misplaced-tag" if culprit is not None and culprit.known else "unknown-tag"
    if reason in _OPTION_REASONS and culprit is not None and culprit.tag in _OPTION_TAGS:
        words = [word for options in (REGISTRATION, PUBLICATION, DELETE) for word in options.read([culprit.text]).words]
        return "misplaced-option" if words and not culprit.text.isdecimal() else "unknown-option"
    return "refused-command"


def _refused_later(command: Command, message: Message, partial: PartialMessage) -> Iterator[Problem]:
    """The faults that translation for a new queue manager finds. message: *partial* without its faults."""
    if isinstance(command, Publish) and command.user_tags:
        yield from _doubtful_tags(partial)
    yield from _translated(command, message, partial)


def _translated(command: Command, message: Message, partial: PartialMessage) -> Iterator[Problem]:
    captured = partial.captured
    queue = _queue_of(command, captured.queue)
    if _asks_for_topics_alone(command) and captured.queue in ("", queue):
        return
    context = _context(message, queue, partial)
    misplaced = InputQueueKind.STREAM if command.on_control_queue else InputQueueKind.CONTROL
    where_put = context if captured.queue == context.queue else replace(context, queue=captured.queue)
    if captured.queue and where_put.place is misplaced:
        where = "the control queue" if command.on_control_queue else "a stream queue"
        why = _answered(f"{command.word} must be put to {where}", mq.MQRCCF_INCORRECT_Q)
        text = command_text(partial.message)
        yield problem("wrong-queue", 0 if text is None else text.offset, why, reason=mq.MQRCCF_INCORRECT_Q)
    error = _error(command, context)
    if error is None:
        return
    text = command_text(partial.message)
    if captured.md_hex is None:
        assumed = _error(command, replace(context, message=with_descriptor(message, captured.seq)))
        if assumed is None or assumed.reason != error.reason:
            why = "there is no MQMD: CorrelId, ReplyToQ and user of the command are unknown"
            yield problem(_NO_DESCRIPTOR, 0 if text is None else text.offset, why)
            error = assumed
    if error is None or error.reason in _STATE or any(tag == "SubPoint" for tag, _ in error.tags):
        return
    if text is not None:
        yield _refusal(error, _blamed(error, list(text.pairs), text.message), text)


def _asks_for_topics_alone(command: Command) -> bool:
    """Whether a new queue manager takes the command, since it is a Publish like nearly all: they name sound topics."""
    return (
        isinstance(command, Publish)
        and (command.stream_name, command.sub_point, command.q_name, command.qmgr_name, command.put) == _NOTHING
        and not any(option in _OF_IDENTITY for option in command.options)
        and all(0 < len(topic) <= mq.MQ_TOPIC_STR_LENGTH and not is_suspect(topic) for topic in command.topics)
    )


def _error(command: Command, context: Context) -> CommandError | None:
    try:
        translate(command, context)
    except CommandError as error:
        return error
    return None


def _queue_of(command: Command, queue: str) -> str:
    """The queue that a command is looked at on: its own, unless that cannot be. Any queue may be a stream's."""
    if command.on_control_queue:
        return CONTROL_QUEUE
    if queue not in ("", CONTROL_QUEUE):
        return queue
    stream = command.stream_name if isinstance(command, Publish | DeletePublication) else None
    return stream if stream and is_object_name(stream) else DEFAULT_STREAM


def _doubtful_tags(partial: PartialMessage) -> Iterator[Problem]:
    """The program's own tags of a Publish that look like one of IBM's: subscribers get them all the same."""
    text = command_text(partial.message)
    unknown = [] if text is None else [pair for pair in text.pairs if not pair.known]
    for pair in unknown[:MOST_REFUSALS]:
        meant = _nearest(pair.tag, ALL_TAGS)
        if meant is not None:
            why = f"{pair.tag} is not a publish/subscribe tag: it goes to the subscribers unchanged (perhaps {meant})"
            yield problem("passed-on-tag", pair.offset, why)


def _context(message: Message, queue: str, partial: PartialMessage) -> Context:
    captured = partial.captured
    objects, space = _nothing_done_yet(captured.qmgr or "QM1", queue)
    user = name_of(message.mqmd.user_identifier) if captured.user is None else captured.user
    now = captured.time or _EPOCH
    ids = Ids(objects.qmgr.name, captured.seq)
    return Context(objects, space, RecordedAuthority(objects), message, queue, user, now, ids)


# Deciding changes neither, so that one of each does for all messages.
@lru_cache(maxsize=64)
def _nothing_done_yet(qmgr: str, stream: str) -> tuple[Objects, TopicSpace]:
    """stream: a queue that is read; the control queue is anyway."""
    objects = Objects(QueueManager(qmgr))
    objects.put(
        Namelist(QUEUE_NAMELIST, (DEFAULT_STREAM, ADMIN_STREAM, *((stream,) if stream != CONTROL_QUEUE else ())))
    )
    return objects, TopicSpace(objects.topics)


def _answered(why: str, reason: int) -> str:
    return f"{why}; a queue manager answers {reason} {mq.reason_name(reason) or ''}".rstrip()


def _suggestion(code: str, pair: TagAndText) -> str | None:
    """The word that *pair*, for which a problem of *code* was found, may have meant; None where nothing is near."""
    if code == "unknown-option" and pair.tag in _OPTIONS:
        known: Iterable[str] = _OPTIONS[pair.tag]
        words = [word for word in pair.text.split() if word not in known]
        return _nearest(words[0], known) if words else None
    if code == "unknown-command":
        return _nearest(pair.text, COMMANDS)
    if code == "unknown-tag" and not pair.number:
        older = pair.tag.upper().startswith("MQPS")
        return _nearest(pair.tag, (MQPS_COMMAND, *BY_MQPS) if older else ALL_TAGS)
    return None


def _nearest(word: str, known: Iterable[str]) -> str | None:
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), by_lower, n=1, cutoff=_NEAR)
    return by_lower[near[0]] if near and by_lower[near[0]] != word else None


# A captured message, decoded as far as possible, with its command and the problems of both.


@dataclass(frozen=True, slots=True)
class Explained:
    """One message, all that is known of it."""

    partial: PartialMessage
    command: Command | None
    problems: list[Problem]

    def form(self, source: str, index: int) -> Json:
        """The JSON form. source, index: the file and the record in it."""
        form = described(self.partial, source, index, command_json(self.command), self.problems)
        if self.partial.fault is not None:
            form["salvaged"]["command"] = command_json(readable_command(self.partial))
        entry = None if self.command is not None else jms_form(self.partial)
        return form if entry is None else {**form, "jms_subscription": entry}


def explained(captured: CapturedMessage) -> Explained:
    """All that is known of one captured message; bad bytes are problems, never an error."""
    partial = read_message(captured)
    parsed = _parsed(partial)
    problems = [*wire_problems(partial), *command_problems(partial, parsed)]
    return Explained(partial, parsed if parsed is not None else _marked(partial), problems)


def command_of(partial: PartialMessage) -> Command | None:
    """The command that a message carries; None where there is none that can be parsed.

    A response may carry the command that it answers, but is none. A publication from a queue manager may say that it
    was retained, which no program may: it is shown all the same.
    """
    parsed = _parsed(partial)
    return parsed if parsed is not None else _marked(partial)


def readable_command(partial: PartialMessage) -> Command | None:
    """The command in what can be read of a message that has a fault, for a person: a queue manager refuses it.

    Of a command with tags and options that are refused, the rest.
    """
    message = partial.message if partial.fault is None else salvage(partial).message
    if message is None or (message.rfh2 is None and message.rfh1 is None) or is_response(message):
        return None
    text = command_text(message)
    return None if text is None else accepted_part(text)


def _is_none(partial: PartialMessage) -> bool:
    return is_response(partial.message) or (partial.fault is not None and not partial.headers)


def _parsed(partial: PartialMessage) -> Command | None:
    """What the parser makes of the message, if it can."""
    if _is_none(partial):
        return None
    try:
        return parse(partial.message)
    except QPubSubError:
        return None


def _marked(partial: PartialMessage) -> Command | None:
    """The publication in a message that says that it was retained."""
    text = None if _is_none(partial) else command_text(partial.message)
    if text is None:
        return None
    marks = [pair for pair in text.pairs if (pair.tag, pair.text) == ("PubOpt", PubOpt.IS_RETAINED_PUB)]
    if not marks:
        return None
    try:
        command = parse(text.without(marks))
    except QPubSubError:
        return None
    assert isinstance(command, Publish)
    return command.model_copy(update={"options": (PubOpt.IS_RETAINED_PUB, *command.options)})


def command_json(command: Command | None) -> dict[str, Any] | None:
    """A command as JSON: its word, and what the program asked for."""
    if command is None:
        return None
    fields = command.model_dump(mode="json")
    if fields.get("put", "") is None:
        del fields["put"]  # only a program's MQPUT has it
    return {"word": command.word, **fields}
