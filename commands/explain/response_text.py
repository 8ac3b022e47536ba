"""A response in one sentence."""

from __future__ import annotations

from commands.explain.command_text import is_response
from rfh2.errors import DecodeError
from rfh2.explain.elements import elements
from rfh2.explain.reasons import reason_text
from rfh2.message import Message
from rfh2.rfh1 import Rfh1

_COMPLETIONS = {"0": "ok", "1": "warning", "2": "error"}


def response_sentence(message: Message) -> str | None:
    """What a response says, for a person; None where *message* is none, or cannot be read."""
    if not is_response(message):
        return None
    try:
        said = _of_folder(message) or _of_string(message)
    except DecodeError:
        return None
    if said is None:
        return None
    completion, reasons = said
    told = [f"{reason} {reason_text(int(reason))}".rstrip() for reason in reasons if reason.isdecimal() and int(reason)]
    return "; ".join([f"Response: {completion}", *told])


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
