"""The elements of a folder in the order in which they stand in its text, each with the offset of its tag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from rfh2.folders import Folder, parse

_START_TAG = re.compile(r"<([^\s<>/&\"'=]+)")


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
    roots = parse(folder)
    offsets = _tag_offsets(folder)
    return [element for root in roots for element in _walk(root, 0, "", offsets)]


def _walk(element: etree._Element, depth: int, parent: str, offsets: Iterator[tuple[str, int]]) -> Iterator[Element]:
    # Start tags stand in the text in the order in which lxml walks the tree: a parent before its children.
    tag, offset = next(offsets)
    attributes = tuple((_attribute(element, str(key)), str(value)) for key, value in element.attrib.items())
    yield Element(depth, offset, tag, attributes, None if len(element) else element.text or "", parent)
    for child in element:
        yield from _walk(child, depth + 1, tag, offsets)


def _attribute(element: etree._Element, key: str) -> str:
    if key[0] != "{":
        return key
    uri, _, local = key[1:].rpartition("}")
    prefix = next((prefix for prefix, declared in element.nsmap.items() if declared == uri), None)
    return f"{prefix}:{local}" if prefix else local


def _tag_offsets(folder: Folder) -> Iterator[tuple[str, int]]:
    text = folder.text
    at, offset = 0, folder.offset
    for tag in _START_TAG.finditer(text):
        offset += len(text[at : tag.start()].encode(folder.charset))
        at = tag.start()
        yield tag[1], offset
