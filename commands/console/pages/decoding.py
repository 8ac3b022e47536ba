"""The box into which a message is pasted: decoded and explained as ``qpubsub decode --explain`` does."""

from __future__ import annotations

import io
from itertools import islice
from typing import Any, Final

from commands.console.pages.messages import shown_record
from commands.console.pages.query import Query
from commands.console.reading.source import State
from rfh2.captures import FORMATS, read_captures
from rfh2.errors import QPubSubError

LONGEST_PASTE: Final = 4_000_000
"""Characters that the box takes."""

_MOST_MESSAGES: Final = 20


def decoding(_state: State, query: Query) -> dict[str, Any]:
    """The form, and the messages in what was pasted."""
    text, form = query.text("text", LONGEST_PASTE), query.text("format")
    form = form if form in FORMATS else "auto"
    explain, setup = query.has("explain"), query.text("setup", 100_000)
    shown: list[dict[str, Any]] = []
    problem = ""
    if text.strip():
        script = setup if explain else None
        try:
            stream = io.BytesIO(text.encode("utf-8", "replace"))
            records = read_captures(stream, form, name="pasted")
            shown = [shown_record(record, script) for record in islice(records, _MOST_MESSAGES + 1)]
        except QPubSubError as error:
            problem = str(error)
        if not shown and not problem:
            problem = "No message was found in it. Paste a message in hexadecimal digits, or a part of a capture."
    return {
        "text": text,
        "format": form,
        "formats": ["auto", *FORMATS],
        "explain": explain or not text,
        "setup": setup,
        "messages": shown[:_MOST_MESSAGES],
        "more": len(shown) > _MOST_MESSAGES,
        "most": _MOST_MESSAGES,
        "problem": problem,
    }
