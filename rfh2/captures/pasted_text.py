"""The text of folders, or the string of an MQRFH, without the header around it: people copy what they can read.

A header is made around it, so that ``decode`` can show what it says. It is given as incomplete: the message that it was
copied from had a header, a descriptor and data that nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rfh2.captures.pasted_page import Page
from rfh2.captures.pasted_piece import Piece
from rfh2.ccsid import UTF8_CCSID
from rfh2.folders import Folder
from rfh2.rfh1 import Rfh1
from rfh2.rfh2 import Rfh2

_OPENING: Final = re.compile(r"<(psc|pscr|mcd|jms|usr|mqps)>")
_DECISIVE: Final = frozenset({"psc", "pscr"})
_BETWEEN: Final = re.compile(r"\s{0,200}+")
_STRING: Final = re.compile(r"(?<!\w)MQPSCommand {1,4}+[^\n]{1,4000}")
_BETWEEN_TAGS: Final = re.compile(r">\s++<")
_MOST_FOLDERS: Final = 20


def find_folders(page: Page) -> Iterator[Piece]:
    """Each run of folders with a psc or pscr among them."""
    text = page.text
    endless: set[str] = set()
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        folders: list[tuple[str, str]] = []
        end = start = opening.start()
        following: re.Match[str] | None = opening
        while following is not None and len(folders) < _MOST_FOLDERS and following[1] not in endless:
            closing = f"</{following[1]}>"
            found = text.find(closing, following.end())
            if found < 0:
                endless.add(following[1])
                break
            end = found + len(closing)
            folders.append((following[1], text[following.start() : end]))
            blank = _BETWEEN.match(text, end)
            following = _OPENING.match(text, blank.end() if blank is not None else end)
        at = max(end, opening.end())
        if not _DECISIVE.isdisjoint(name for name, _ in folders):
            # Line ends and indentation between tags are the page's; programs write none.
            plain = (Folder.of(_clean(_BETWEEN_TAGS.sub("><", folder))) for _, folder in folders)
            header = Rfh2(tuple(plain), coded_char_set_id=UTF8_CCSID)
            why = "the text of folders alone is here; an MQRFH2 was made around it"
            yield Piece(start, end, "the text of folders", header.encode(), why=why)


def find_strings(page: Page) -> Iterator[Piece]:
    """Each string of an MQRFH, up to the end of its line."""
    for found in _STRING.finditer(page.text):
        string = _clean(found[0]).rstrip(" \t\r\"',;)")
        data = string.encode() + bytes(4 - len(string.encode()) % 4)
        why = "the string of an MQRFH alone is here; an MQRFH was made around it"
        header = Rfh1(data, coded_char_set_id=UTF8_CCSID)
        yield Piece(found.start(), found.end(), "the string of an MQRFH", header.encode(), why=why)


def _clean(text: str) -> str:
    """*text* without half surrogate pairs, which no code page has."""
    return text.encode("utf-8", "replace").decode("utf-8")
