"""Several folders in one NameValueData: taking them apart without touching their bytes.

An MQRFH2 has one folder in each NameValueData (guide 6.6.2); some programs put ``<mcd>...</mcd><psc>...</psc>`` into
one. This module finds only where each begins and ends. ``folders.parse`` checks the text.
"""

from __future__ import annotations

import re

from rfh2.errors import DecodeError
from rfh2.folders import Folder
from rfh2.patterns import repeated

# A tag without its end matches too, and no quantifier gives back what it took (``++``, ``*+``): the search goes on
# where the tag broke off, and looks at each character once. Backtracking takes the square of the length of "<aaa...".
_REST = repeated(r"""(?:/(?!>)|"[^"]*+"|'[^']*+')[^<>/"']*+""")
_TAG = re.compile(rf"""<(/?)([^\s<>/&"'=]++)[^<>/"']*+{_REST}(/?>)?""")


def split_roots(folder: Folder) -> tuple[Folder, ...]:
    """One folder for each root element of *folder*; *folder* itself where it has one, or is no sequence of elements.

    Each keeps its text and its offset in the message; blanks between two belong to the first.
    """
    try:
        text = folder.text
    except DecodeError:
        return (folder,)
    starts: list[int] = []
    open_tags: list[str] = []
    for tag in _TAG.finditer(text):
        closing, name, end = tag.groups()
        if end is None:
            continue
        if closing:
            if not open_tags or open_tags.pop() != name:
                return (folder,)
            continue
        if not open_tags:
            starts.append(tag.start())
        if end == ">":
            open_tags.append(name)
    if open_tags or len(starts) < 2:
        return (folder,)
    starts[0] = 0
    parts = [text[at:end] for at, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    split: list[Folder] = []
    offset = folder.offset
    for part in parts:
        split.append(Folder(Folder.of(part, folder.charset).data, folder.charset, offset))
        offset += len(part.encode(folder.charset))
    return tuple(split)
