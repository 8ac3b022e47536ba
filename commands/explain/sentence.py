"""A command, or a response, in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from commands import model
from commands.broker.objects import RECORD_QUEUES
from commands.explain.command_text import is_response
from rfh2.constants import feedback_text, reason_text
from rfh2.dlh import Dlh
from rfh2.elements import elements
from rfh2.errors import DecodeError
from rfh2.explain.form import Json
from rfh2.explain.reading import PartialMessage
from rfh2.jms_entry import JmsEntry, decode_entry, is_entry
from rfh2.message import Message
from rfh2.mqmd import name_of
from rfh2.pcf import Cfst, decode_pcf
from rfh2.pcf_names import MQCACF_STRING_DATA
from rfh2.rfh1 import Rfh1
from streams.subscriptions import PublicationFormat

_UNNAMED: Final = "a queue that the command does not name"
_COMPLETIONS: Final = {"0": "ok", "1": "warning", "2": "error"}


def sentence(command: model.Command, message: Message) -> str:
    """What *command* asks for, for a person; the descriptor gives the values that the command omits."""
    describe = _SENTENCES.get(type(command), _publisher)
    parts = [describe(command, message)]
    if point := getattr(command, "sub_point", None):
        parts.append(f"subscription point {point}")
    if command.stream_name:
        parts.append(f"stream {command.stream_name}")
    if message.mqmd.expiry > 0 and isinstance(command, model.RegisterSubscriber | model.Publish):
        parts.append(f"expires after {_duration(message.mqmd.expiry)}")
    if command.options:
        parts.append(f"options {' '.join(option.value for option in command.options)}")
    return f"{command.word}: {'; '.join(parts)}"


def dead_letter_sentence(message: Message) -> str | None:
    """That a message is a dead letter, why, and where it was to go first; None where it is none."""
    letters = [header for header in message.headers if isinstance(header, Dlh)]
    if not letters:
        return None
    letter = letters[-1]  # the innermost: what a program put first
    queue = name_of(letter.dest_q_name) or "a queue that is not named"
    qmgr = name_of(letter.dest_qmgr_name)
    reason = f"{letter.reason} {feedback_text(letter.reason)}".rstrip()
    more = " (in the innermost of its dead-letter headers)" if len(letters) > 1 else ""
    return f"Dead letter: {reason}; it was to go to {queue}{f' on {qmgr}' if qmgr else ''}{more}"


def _duration(tenths: int) -> str:
    """A time in tenths of a second, for a person: ``90 s``, ``2 h``."""
    for size, unit in ((864_000, "days"), (36_000, "h"), (600, "min")):
        if tenths % size == 0:
            count = tenths // size
            return f"{count} {'day' if unit == 'days' and count == 1 else unit}"
    return f"{tenths // 10} s" if tenths % 10 == 0 else f"{tenths / 10} s"


def _register(command: model.RegisterSubscriber, message: Message) -> str:
    name = f" as subscription {command.sub_name}" if command.sub_name is not None else ""
    only = f" where {command.filter}" if command.filter else ""
    if command.sub_name is not None and command.has(model.RegOpt.NO_ALTER):
        resumes = f"resumes subscription {command.sub_name} unchanged; if it does not exist, "
        return f"{resumes}{_queue(command, message)} subscribes to {_topics(command)}{only}"
    return f"{_queue(command, message)} subscribes to {_topics(command)}{name}{only}"


def _deregister(command: model.DeregisterSubscriber, message: Message) -> str:
    which = f" of subscription {command.sub_name}" if command.sub_name is not None else ""
    if command.has(model.RegOpt.DEREG_ALL):
        what = f"all its topics{' like ' + _topics(command) if command.topics else ''}"
    else:
        what = _topics(command)
    if command.has(model.RegOpt.LEAVE_ONLY):
        subscription = command.sub_name if command.sub_name is not None else f"to {what}"
        return f"identity {command.sub_identity} leaves subscription {subscription}, which stays"
    return f"{_queue(command, message)} no longer subscribes to {what}{which}"


def _request(command: model.RequestUpdate, message: Message) -> str:
    return f"{_queue(command, message)} requests the retained publications on {_topics(command)}"


def _publish(command: model.Publish, message: Message) -> str:
    own = [tag for tag, _ in command.user_tags]
    passed_on = f"; passes on {_listed(own)}" if own else ""
    return f"publishes {_data_bytes(command, message)} bytes on {_topics(command)}{passed_on}"


def _data_bytes(command: model.Publish, message: Message) -> int:
    """How much data is published: of a command in PCF what is behind its parameters, and its StringData."""
    if command.header is not PublicationFormat.PCF:
        return len(message.body)
    try:
        pcf = decode_pcf(message.body, message.body_ccsid)
    except DecodeError:
        return len(message.body)
    texts = (p for p in pcf.parameters if isinstance(p, Cfst) and p.parameter == MQCACF_STRING_DATA)
    return len(pcf.rest) + sum(len(text.data) for text in texts)


def _delete(command: model.DeletePublication, message: Message) -> str:
    return f"deletes the retained publications on {_topics(command)}"


def _publisher(command: model.Command, message: Message) -> str:
    return f"a publisher on {_topics(command)}; publishers are no longer registered, so this does nothing"


_SENTENCES: Final[dict[type, Callable[..., str]]] = {
    model.RegisterSubscriber: _register,
    model.DeregisterSubscriber: _deregister,
    model.RequestUpdate: _request,
    model.Publish: _publish,
    model.DeletePublication: _delete,
}


def _queue(
    command: model.RegisterSubscriber | model.DeregisterSubscriber | model.RequestUpdate, message: Message
) -> str:
    queue = command.q_name or name_of(message.mqmd.reply_to_q) or _UNNAMED
    qmgr = command.qmgr_name or name_of(message.mqmd.reply_to_qmgr)
    return f"{queue} on {qmgr}" if qmgr else queue


def _topics(command: model.Command) -> str:
    return _listed([_quoted(topic) for topic in command.topics])


def _quoted(topic: str) -> str:
    """A topic, in quotes where blanks at its ends, or commas, would not be seen."""
    return f"'{topic}'" if topic != topic.strip() or "," in topic else topic


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1] if words else "no topic"


def response_sentence(message: Message) -> str | None:
    """What a response says, for a person; None where *message* is none, or cannot be read."""
    said = _said(message)
    if said is None:
        return None
    completion, reasons = said
    shown = [f"{reason} {reason_text(reason)}".rstrip() for reason in reasons]
    return "; ".join([f"Response: {completion}", *shown])


def response_reasons(message: Message) -> list[int]:
    """The reason codes of a response in a folder or an MQRFH, in order; none where *message* is none, or says ok."""
    said = _said(message)
    return [] if said is None else said[1]


def _said(message: Message) -> tuple[str, list[int]] | None:
    """Completion and reason codes of a response; None where *message* is none, or cannot be read."""
    if not is_response(message):
        return None
    try:
        said = _of_folder(message) or _of_string(message)
    except DecodeError:
        return None
    if said is None:
        return None
    completion, reasons = said
    return completion, [int(reason) for reason in reasons if reason.isdecimal() and int(reason)]


def _of_folder(message: Message) -> tuple[str, list[str]] | None:
    header = message.rfh2
    folder = header.folder("pscr") if header is not None else None
    if folder is None:
        return None
    found = elements(folder)
    completion = next((e.text or "" for e in found if e.tag == "Completion"), "no completion")
    return completion, [e.text or "" for e in found if e.tag == "Reason"]


def _of_string(message: Message) -> tuple[str, list[str]] | None:
    for header in message.headers:
        if isinstance(header, Rfh1):
            pairs = header.pairs()
            codes = [value for name, value in pairs if name == "MQPSCompCode"]
            worst = max(codes, default="")
            return _COMPLETIONS.get(worst, worst), [value for name, value in pairs if name == "MQPSReason"]
    return None


# What ``decode`` says of a message on the queues where JMS classes keep subscriptions with SUBSTORE(QUEUE).


def jms_entry(partial: PartialMessage) -> JmsEntry | None:
    """The subscription that the message is, where it can be read."""
    message = partial.message
    if message.headers or not is_entry(message.body):
        return None
    try:
        return decode_entry(message.body, message.mqmd.encoding)
    except DecodeError:
        return None


def jms_sentence(partial: PartialMessage) -> str | None:
    """One sentence; None for a message that has nothing to do with it."""
    entry = jms_entry(partial)
    if entry is not None:
        selector = f", selector {entry.selector}" if entry.selector else ""
        whose = f"client {entry.client_id or '(none)'}, name {entry.name or '(none)'}"
        correl_id = partial.assumed.msg_id.hex().upper()
        what = (
            f"JMS subscription of SUBSTORE(QUEUE), probably: {whose}, to {entry.topic} for {entry.queue_name}{selector}"
        )
        return f"{what}; its messages have CorrelId {correl_id}"
    on_record_queue = (partial.captured.queue or "") in RECORD_QUEUES
    if on_record_queue or (not partial.headers and is_entry(partial.message.body)):
        return "A record that JMS classes keep with SUBSTORE(QUEUE), probably: IBM does not document its format"
    return None


def jms_form(partial: PartialMessage) -> Json | None:
    """The same for ``decode --json``."""
    entry = jms_entry(partial)
    if entry is None:
        return None
    return {
        "version": entry.version,
        "client_id": entry.client_id,
        "name": entry.name,
        "topic": entry.topic,
        "queue": entry.queue_name,
        "selector": entry.selector or None,
        "flags": entry.flags.hex(),
        "correl_id": partial.assumed.msg_id.hex(),
    }
