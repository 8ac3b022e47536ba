"""Text on its way into a page: what programs wrote stays text."""

from __future__ import annotations

import json
from html import escape

from rfh2.terminal_escape import visible

# Inside <script> these would end it, begin a comment, or end a line of JavaScript.
_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def escaped(text: str) -> str:
    """*text* as HTML: markup as text, control characters and halves of surrogate pairs spelt out."""
    return escape(visible(text))


def script_data(value: object) -> str:
    """*value* as JSON that can stand in a ``<script>`` element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(_IN_SCRIPT.get(c, c) for c in text) if any(c in text for c in _IN_SCRIPT) else text
