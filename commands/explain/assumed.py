"""What a command without its MQMD is taken to be: a log prints the MQRFH2 alone, and the program's MQMD is not known.

A command takes its CorrelId, and its queue where it names none, from the MQMD. They are unknown then; they are not zero
or blank, for which a queue manager would refuse the command.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rfh2.captured import CapturedMessage
from rfh2.errors import DecodeError
from rfh2.message import Message

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
