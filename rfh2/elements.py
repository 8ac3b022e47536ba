"""The elements of a folder in the order in which they stand in its text, each with the offset of its tag."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from lxml import etree

from rfh2.errors import DecodeError, EncodeError
from rfh2.folders import TYPED_LEAF, Folder, Value, attributes, parse

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
    if text.isascii() and folder.charset == "utf-8" and folder.is_flat():
        return _of_leaves(folder.offset, text)
    roots = parse(folder)
    tags = _start_tags(text, folder)
    return [element for root in roots for element in _walk(root, 0, "", text, tags)]


def _of_leaves(offset: int, text: str) -> list[Element]:
    """The elements of a folder of leaves alone, in ASCII."""
    root = text[1 : text.index(">")]
    found = [Element(0, offset, root, (), None, "")]
    for leaf in TYPED_LEAF.finditer(text, len(root) + 2):
        tag, kind, value = leaf.groups()
        found.append(Element(1, offset + leaf.start(), tag, () if kind is None else (("dt", kind),), value, root))
    if len(found) == 1:
        found[0] = Element(0, offset, root, (), "")
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


# Writes a folder's text again with other values: unedited elements keep their place, attributes and type.
#
# ``values`` is the JSON form (``describe.describe_folder``): tag to value, to a list of values where the tag repeats,
# to an object where it is a group. Tags that stay come in the order in which they stood, new ones behind them. A
# number, a boolean or a null that is new gets the attribute that says so; in psc and pscr everything is text.

Attributes = tuple[tuple[str, str], ...]

UNTYPED: Final = ("psc", "pscr")
"""Folders in which no element has a type."""

# A queue manager writes attributes in single quotes.
_IN_QUOTES: Final = str.maketrans({"'": "&apos;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})
_BITS: Final = {"i1": 8, "i2": 16, "i4": 32, "i8": 64, "int": 64}
# Integers up to here are the same as floating point numbers.
_EXACT: Final = 1 << 53
_INT32: Final = range(-(1 << 31), 1 << 31)
_INT64: Final = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class _ElementNode:
    element: Element
    children: tuple[_ElementNode, ...]


def folder_text(name: str, values: Mapping[str, Any], before: Folder | None = None) -> str:
    """The text of a folder called *name* with *values*; before: the folder whose values were edited.

    Raises EncodeError for a value that cannot be written in a folder.
    """
    roots = _tree(before)
    typed = name not in UNTYPED
    if len(roots) > 1:
        text = "".join(_elements(values, roots, typed))
    else:
        attributes = roots[0].element.attributes if roots else ()
        children = roots[0].children if roots else ()
        text = _tagged(name, attributes, "".join(_elements(values, children, typed)))
    return text


def padded(text: str, charset: str, multiple: int = 4) -> bytes:
    """*text* in *charset*, filled up with blanks to a *multiple* of bytes. Raises EncodeError."""
    try:
        data = text.encode(charset)
    except UnicodeEncodeError as error:
        raise EncodeError(f"NameValueData: {text!r} cannot be written in {charset}") from error
    blank = " ".encode(charset)
    return data + blank * (-len(data) % multiple // len(blank))


def _tree(folder: Folder | None) -> tuple[_ElementNode, ...]:
    if folder is None:
        return ()
    try:
        flat = elements(folder)
    except DecodeError:
        return ()
    return _nodes(flat, 0)


def _nodes(flat: Sequence[Element], depth: int) -> tuple[_ElementNode, ...]:
    starts = [at for at, element in enumerate(flat) if element.depth == depth]
    ends = [*starts[1:], len(flat)][: len(starts)]
    return tuple(
        _ElementNode(flat[start], _nodes(flat[start + 1 : end], depth + 1))
        for start, end in zip(starts, ends, strict=True)
    )


def _elements(values: Mapping[str, Any], before: Sequence[_ElementNode], typed: bool) -> Iterator[str]:
    left = {tag: deque(value if isinstance(value, list) else [value]) for tag, value in values.items()}
    for node in before:
        waiting = left.get(node.element.tag)
        if waiting:
            yield _element(node.element.tag, waiting.popleft(), node, typed)
    for tag, waiting in left.items():
        for value in waiting:
            yield _element(tag, value, None, typed)


def _element(tag: str, value: Any, before: _ElementNode | None, typed: bool) -> str:
    attributes = before.element.attributes if before is not None else ()
    others = tuple((key, text) for key, text in attributes if key.rpartition(":")[2] not in ("dt", "nil"))
    if isinstance(value, dict):
        children = before.children if before is not None else ()
        return _tagged(tag, others, "".join(_elements(value, children, typed)))
    content = escape(leaf_text(value), quote=False).replace("\r", "&#13;")
    if _fits(value, _kind(attributes)):
        return _tagged(tag, attributes, content)
    if isinstance(value, int | float | None) and typed:
        return _tagged(tag, (*others, *_type_of(tag, value)), content)
    return _tagged(tag, others, content)


def _kind(attributes: Attributes) -> str | None:
    for key, text in attributes:
        if key.rpartition(":")[2] == "nil" and text in ("1", "true", "TRUE"):
            return "nil"
    return next((text for key, text in attributes if key == "dt"), None)


def _fits(value: Any, kind: str | None) -> bool:
    """Whether an element of type *kind* can hold *value* as it is."""
    if kind == "nil":
        return value is None
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, int) and kind in _BITS:
        bits = _BITS[kind]
        return -(1 << bits - 1) <= value < 1 << bits - 1
    if isinstance(value, int | float):
        return kind in ("r4", "r8") and (isinstance(value, float) or abs(value) <= _EXACT)
    return isinstance(value, str)


def _type_of(tag: str, value: float | None) -> Attributes:
    if value is None:
        return (("xsi:nil", "true"),)
    if isinstance(value, bool):
        return (("dt", "boolean"),)
    if isinstance(value, float):
        return (("dt", "r8"),)
    if value not in _INT64:
        raise EncodeError(f"{tag}: {value} is not a 64-bit number")
    return (("dt", "i4" if value in _INT32 else "i8"),)


def leaf_text(value: Any) -> str:
    """The text of a leaf that holds *value*."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, int | float):
        return repr(value)
    return str(value)


def _tagged(tag: str, attributes: Attributes, content: str) -> str:
    written = "".join(f" {key}='{escape(text, quote=False).translate(_IN_QUOTES)}'" for key, text in attributes)
    return f"<{tag}{written}>{content}</{tag}>"


def as_json(value: Value) -> Any:
    """A folder's value as JSON has it: bytes as hex, great numbers as strings."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {tag: as_json(item) for tag, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value


def number(value: int) -> int | str:
    """*value* as JSON has it: a string beyond 2^53, for other programs read numbers as floating point."""
    return value if -_EXACT <= value <= _EXACT else str(value)
