"""Names and reasons in Markdown: what sources hold is text, never markup, in whatever shows the document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from rfh2.terminal_escape import harmless

# A number, a bullet or a heading begins a line, and no name does. An underscore within a word is no markup; brackets
# are a link only before what it leads to.
_MARKUP: Final = re.compile(r"[\\`*~|]|\](?=[(\[:])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def document(lines: Iterable[str]) -> str:
    """Lines of Markdown as a text that drives no terminal."""
    return "".join(f"{harmless(line)}\n" for line in lines)


def plain(text: str) -> str:
    """*text* as itself, in a sentence, a list or a heading: no HTML, emphasis, link or code."""
    html = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(lambda found: "\\" + found[0], html)


def in_code(text: str) -> str:
    """*text* between backticks. A backtick in it, for which there is no escape there, becomes an apostrophe."""
    return text.replace("`", "'")
