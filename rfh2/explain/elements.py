"""The elements of a folder in the order in which they stand in its text, each with the offset of its tag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from rfh2.folders import Folder, attributes, parse

_START_TAG = re.compile(r"<([^\s<>/&\"'=]+)")
_ATTRIBUTE = re.compile(r"""\s*+([^\s<>/&"'=]++)\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+')""")


@dataclass(frozen=True, slots=True)
class Element:
    """One element. depth: 0 for a root. offset: of its ``<``, from the start of the first header.

    tag: as it is written, prefix included. attributes: as written too. text: None where it holds elements. parent: the
    tag around it, empty for a root.
    """

    depth: int
    offset: int
    tag: str
    attributes: tuple[tuple[str, str], ...]
    text: str | None
    parent: str = ""

    def attribute(self, name: str) -> str | None:
        """The value of an attribute, any prefix left aside."""
        return next((value for key, value in self.attributes if key.rpartition(":")[2] == name), None)


def elements(folder: Folder) -> list[Element]:
    """All elements of *folder*. Raises DecodeError where its text is not well formed."""
    text = folder.text
    if text.isascii() and folder.charset == "utf-8" and (leaves := folder.leaves()) is not None:
        return _of_leaves(folder.offset, text[1 : text.index(">")], leaves)
    roots = parse(folder)
    tags = _start_tags(text, folder)
    return [element for root in roots for element in _walk(root, 0, "", text, tags)]


def _of_leaves(offset: int, root: str, leaves: list[tuple[str, str]]) -> list[Element]:
    """The elements of a folder in which no character stands between two leaves: each is as long as it looks."""
    found = [Element(0, offset, root, (), None if leaves else "")]
    offset += len(root) + 2
    for tag, text in leaves:
        found.append(Element(1, offset, tag, (), text, root))
        offset += 2 * len(tag) + 5 + len(text)
    return found


def _walk(
    element: etree._Element, depth: int, parent: str, text: str, tags: Iterator[tuple[re.Match[str], int]]
) -> Iterator[Element]:
    # Start tags stand in the text in the order in which lxml walks the tree: a parent before its children.
    found, offset = next(tags)
    tag = found[1]
    given = attributes(element)
    if any(key[0] == "{" for key, _ in given):
        given = list(zip(_names(text, found.end()), [value for _, value in given], strict=True))
    yield Element(depth, offset, tag, tuple(given), None if len(element) else element.text or "", parent)
    for child in element:
        yield from _walk(child, depth + 1, tag, text, tags)


def _names(text: str, at: int) -> Iterator[str]:
    """The names of the attributes behind *at*, as they are written; declarations of namespaces are none."""
    while (found := _ATTRIBUTE.match(text, at)) is not None:
        if found[1] != "xmlns" and not found[1].startswith("xmlns:"):
            yield found[1]
        at = found.end()


def _start_tags(text: str, folder: Folder) -> Iterator[tuple[re.Match[str], int]]:
    """Each start tag of *folder*, which has *text*, with its offset in the message."""
    at, offset = 0, folder.offset
    for tag in _START_TAG.finditer(text):
        offset += len(text[at : tag.start()].encode(folder.charset))
        at = tag.start()
        yield tag, offset
