"""NameValueData: the XML-like folders of an MQRFH2 (guide 6.6.2; wire formats 3.2 and 3.3).

A folder keeps its original bytes; its text is read only when it is needed. The syntax is that of XML, with additions
that programs use: prefixes without a declaration (``xsi:nil``), several roots, blanks or nulls after the last tag, an
``&`` that is not escaped, tags that are names in Java alone (``$price``, a JMS property). It lacks what XML has beyond
elements, attributes, the five entities and character references: a DTD, a processing instruction, a comment or another
entity is refused, so that nothing can be made to grow.

lxml reads the text as it is. If that fails, the text is repaired (``_mended``) and read again. If that fails too,
``_fault`` looks for the fault. Offsets in errors point into the message as it was given.

How a pattern repeats a group and gives nothing back.

``(?:item)*+`` says it, and CPython before 3.11.5 reads it wrongly (gh-106052): where the last repetition breaks off in
the middle, the match goes on there, not where that repetition began. Debian 12 has 3.11.2. Of a single character or
class, ``[a-z]*+``, it is right in every version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from math import isfinite
from typing import Any, Final

from lxml import etree

from rfh2.constants import MQRC_RFH_FORMAT_ERROR
from rfh2.errors import DecodeError, EncodeError

_LOT: Final = 256


def repeated(item: str) -> str:
    """The pattern of *item*, as often as it matches; what follows never gets a repetition back.

    The search takes linear time, as an atomic group does. Such a group remembers each repetition until its end, about
    180 bytes. So there is an inner one of at most 256 of them, and the outer one remembers only these.
    """
    return f"(?>(?>(?:{item}){{1,{_LOT}}})*)"


Scalar = str | int | float | bool | bytes | None
Value = Scalar | dict[str, Any] | list[Any]

# Deeper than any real folder; the limit keeps a program that walks the result from exhausting its stack.
MAX_DEPTH = 64

_BYTE_ORDER_MARK = "\ufeff"
_MARKS_AROUND = re.compile("^\ufeff|\ufeff$")
_SHORT_HEAD = 24
_NAME = re.compile(r"[\s\ufeff]*<([^\s<>/&\"'=]+)")
_BARE_AMPERSAND = re.compile(r"&(?![A-Za-z_][\w.-]*;|#[0-9]+;|#x[0-9A-Fa-f]+;)")
_PREFIX = re.compile(r"[<\s/]([^\W\d][\w.-]*):[^\W\d]")
# No quantifier gives back what it took (``++``, ``*+``), because no other division of the text can match.
_ATTRIBUTES = repeated(r"""\s++[^\s<>/&"'=]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+')""")
_TAG = re.compile(rf"""<(/?)([^\s<>/&"'=]++){_ATTRIBUTES}\s*+(/?)>""")
_FORBIDDEN_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ENTITY = re.compile(r"&([^;&<]*);")
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)

# Names in ASCII, no attributes but dt, no references; no character that XML forbids, or changes (a carriage return).
_LEAF_NAME = r"[A-Za-z_$][A-Za-z0-9_.$-]*+"
LEAF_CHARACTER = r"[^<&>\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]"
"""A character of text that XML neither changes nor refuses, nor takes for the beginning of anything else."""
_DT = r"(?: dt=(?:'[A-Za-z0-9.]*+'|\"[A-Za-z0-9.]*+\"))?"
# Each leaf that is given back is refused by its first characters, so these need no ``repeated``.
_LEAVES = re.compile(rf"<({_LEAF_NAME})>(?:<({_LEAF_NAME})>{LEAF_CHARACTER}*+</\2>)*</\1>")
_LEAF = re.compile(r"<([^>]*+)>([^<]*+)<")
_TYPED_LEAVES = re.compile(rf"<({_LEAF_NAME})>(?:<({_LEAF_NAME}){_DT}>{LEAF_CHARACTER}*+</\2>)*</\1>")
TYPED_LEAF: Final = re.compile(r"<([^<>/ ]+)(?: dt=.([^<>/]*).)?>([^<]*)</")
"""In a folder that is flat: tag, what ``dt`` says and text of each leaf."""
# What Java has in names and XML has not; each stands for the parser as a character of plane 13, which nobody uses.
_NO_XML_NAME = re.compile("[$\xa2-\xa5\xaa\xb5\xba\u2054]")
_STAND_IN = 0xD0000
_RENAMED = "renamed"
"""The element around a folder in whose tags they stand."""
_STANDS_IN = re.compile(f"[{chr(_STAND_IN)}-{chr(_STAND_IN + 0xFFFF)}]")
_RECENT_SIZE = 4_096
_LEAVES_SIZE = 100_000  # well below the size at which the parser refuses a text node

_UNDECLARED = "urn:undeclared:"
_RETURN = "\r"
_XML_SPACE = " \t\r\n"
_TRUE, _FALSE = ("1", "TRUE", "true"), ("0", "FALSE", "false")
_BITS = {"i1": 8, "i2": 16, "i4": 32, "i8": 64, "int": 64}
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
# Two neighbours match digits. Without ``++`` each division of the digits is tried: the square of their number.
_FLOAT = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_HEX = re.compile(r"[0-9A-Fa-f]*+")

# To get one value lxml walks the attributes from the first: all values take the square of their number. XPath does not.
_MANY_ATTRIBUTES = 32


@dataclass(slots=True, unsafe_hash=True)
class Folder:
    """One NameValueData: *data* as on the wire, padding included, and the codec of its NameValueCCSID.

    offset: where *data* stood in the message it was decoded from; it does not take part in comparison.
    """

    data: bytes
    charset: str = "utf-8"
    offset: int = field(default=0, compare=False)

    @classmethod
    def of(cls, text: str, charset: str = "utf-8") -> Folder:
        """A folder that holds *text*, padded with blanks to a multiple of four bytes.

        Raises EncodeError for a character that *charset* has no form for, half of a surrogate pair above all.
        """
        try:
            data = text.encode(charset)
        except UnicodeEncodeError as error:
            raise EncodeError(f"folder: {text[error.start : error.end]!r} cannot be written in {charset}") from error
        if missing := -len(data) % 4:
            data += (" " * missing).encode(charset)[:missing]
        return cls(data, charset, 0)

    @property
    def text(self) -> str:
        """The characters, without the blanks and nulls that pad them. Raises DecodeError.

        In UTF-16 a byte-order mark at the beginning, as Java programs write it, becomes a blank, and so does one that
        pads the end.
        """
        try:
            text = self.data.decode(self.charset)
            if self.charset != "utf-8" and _BYTE_ORDER_MARK in text:
                text = _MARKS_AROUND.sub(" ", text)
            return text.rstrip(" \0")
        except UnicodeDecodeError as error:
            raise _refused(
                self.offset + error.start, "NameValueData", f"not {self.charset}: {error.reason}", "bad-character"
            ) from error

    @property
    def name(self) -> str:
        """The name of the first element, or an empty string where none begins the folder; never an error."""
        name = _name_in(self.data[:_SHORT_HEAD], self.charset)
        if name is None:
            found = _NAME.match(self.data[:512].decode(self.charset, "replace"))
            return found[1] if found else ""
        return name

    def leaves(self) -> list[tuple[str, str]] | None:
        """(tag, text) of the children, in order, of a folder that holds leaves and nothing else, as programs write psc.

        None for any other folder, well formed or not; ``pairs`` reads those too. Raises DecodeError.
        """
        leaves = _leaves(self.text)
        return None if leaves is None else list(leaves)

    def is_flat(self) -> bool:
        """Whether the folder holds leaves and nothing else, no reference either; they may have types.

        Raises DecodeError.
        """
        text = self.text
        if " dt=" not in text:
            return _leaves(text) is not None
        return len(text) <= _LEAVES_SIZE and _TYPED_LEAVES.fullmatch(text) is not None

    def pairs(self) -> list[tuple[str, str]]:
        """(tag, text) of the children of the first element, in order: what psc and pscr are made of.

        Text is complete only for leaves; a child that holds elements has an empty text. Raises DecodeError.
        """
        text = self.text
        leaves = _leaves(text)
        if leaves is not None:
            return list(leaves)
        return [(tag_of(child), child.text or "") for child in _roots(self, text)[0]]

    def values(self) -> dict[str, Value]:
        """Tag to value, or to a list of values where the tag repeats; several roots are merged. Raises DecodeError.

        ``dt`` decides the type (wire formats 3.3): int, float, bool, bytes; ``xsi:nil`` gives None. Text that is not of
        its type stays text. A group is a dictionary.
        """
        text = self.text
        leaves = _typed_leaves(text)
        if leaves is not None:
            return _merged(leaves)
        roots = _roots(self, text)
        if len(roots) == 1:
            return _merged((tag_of(child), _value(child)) for child in roots[0])
        return _merged((tag_of(root), _value(root)) for root in roots)


# Folders begin alike, and several readers of a message ask for their names.
@lru_cache(maxsize=1024)
def _name_in(head: bytes, charset: str) -> str | None:
    """The name of the first element; None where more of the folder has to be looked at."""
    text = head.decode(charset, "replace")
    found = _NAME.match(text)
    return found[1] if found and found.end() < len(text) else None


def parse(folder: Folder) -> list[etree._Element]:
    """The folder's root elements: one as a rule. Raises DecodeError with the offset of the fault."""
    return _roots(folder, folder.text)


# What these two take, they read as the XML parser does, without its price (``tests/rfh2/test_folders.py``).


def _leaves(text: str) -> Sequence[tuple[str, str]] | None:
    """The leaves of a folder that holds nothing else; None for any other text."""
    return _recent_leaves(text) if len(text) <= _RECENT_SIZE else _read_leaves(text)


def _read_leaves(text: str) -> Sequence[tuple[str, str]] | None:
    if len(text) > _LEAVES_SIZE:
        return None
    found = _LEAVES.fullmatch(text)
    return None if found is None else tuple(_LEAF.findall(text, found.end(1)))


# Several readers of a message ask for the leaves of its folders.
_recent_leaves = lru_cache(maxsize=64)(_read_leaves)


def _typed_leaves(text: str) -> Sequence[tuple[str, Value]] | None:
    """The same, with values of the types that dt attributes give."""
    if " dt=" not in text:
        return _leaves(text)
    if len(text) > _LEAVES_SIZE:
        return None
    found = _TYPED_LEAVES.fullmatch(text)
    if found is None:
        return None
    return [(tag, typed_value(value, kind)) for tag, kind, value in TYPED_LEAF.findall(text, found.end(1))]


def _roots(folder: Folder, text: str) -> list[etree._Element]:
    if text.count("<") > MAX_DEPTH and _too_deep(text):
        raise _at(folder, text, *_fault(text, f"elements nested more than {MAX_DEPTH} deep"))
    if "<!" in text or "<?" in text:
        at = min(i for i in (text.find("<!"), text.find("<?")) if i >= 0)
        raise _at(folder, text, at, "declarations, comments, CDATA and processing instructions are not allowed")
    try:
        return [etree.fromstring(text.lstrip(_XML_SPACE), _PARSER)]
    except (etree.XMLSyntaxError, ValueError):
        pass
    try:
        wrapper = etree.fromstring(_mended(text), _PARSER)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _at(folder, text, *_fault(text, str(error))) from error
    strays = (wrapper.text, *(root.tail for root in wrapper))
    if not len(wrapper) or any((stray or "").strip(_XML_SPACE) for stray in strays):
        raise _at(folder, text, *_fault(text, "text outside any element"))
    return list(wrapper)


def write(name: str, pairs: Iterable[tuple[str, str]]) -> str:
    """The compact text of a folder of leaves, escaped: no blanks between tags, no attributes."""
    pairs = list(pairs)
    text = f"<{name}>{''.join([f'<{tag}>{text}</{tag}>' for tag, text in pairs])}</{name}>"
    marks = 2 * len(pairs) + 2
    if text.count("<") == marks == text.count(">") and "&" not in text and _RETURN not in text:
        return text  # nothing to escape, as nearly always
    leaves = "".join(f"<{tag}>{_escaped(text)}</{tag}>" for tag, text in pairs)
    return f"<{name}>{leaves}</{name}>"


@dataclass(frozen=True, slots=True)
class Element:
    """An element to be written: its text, or the elements in it. kind: the ``dt`` of its value (wire formats 3.3)."""

    tag: str
    content: str | Sequence[Element] = ""
    kind: str | None = None


def write_nested(root: Element) -> str:
    """The compact text of a folder whose elements may hold others, escaped as by ``write``."""
    content = root.content
    inner = _escaped(content) if isinstance(content, str) else "".join(map(write_nested, content))
    kind = "" if root.kind is None else f' dt="{root.kind}"'
    return f"<{root.tag}{kind}>{inner}</{root.tag}>"


def _escaped(text: str) -> str:
    # A bare carriage return would be read back as a newline.
    return escape(text, quote=False).replace(_RETURN, "&#13;")


def _mended(text: str) -> str:
    root = "folder"
    if _NO_XML_NAME.search(text) and not _STANDS_IN.search(text):
        text, root = _TAG.sub(_in_xml_names, text), _RENAMED
    found = dict.fromkeys(p for tag in _TAG.finditer(text) for p in _PREFIX.findall(tag[0]))
    declared = "".join(f' xmlns:{p}="{_UNDECLARED}{p}"' for p in found if p not in ("xml", "xmlns"))
    return f"<{root}{declared}>{_BARE_AMPERSAND.sub('&amp;', text)}</{root}>"


def _in_xml_names(tag: re.Match[str]) -> str:
    """A tag whose name XML takes; ``tag_of`` gives the name back."""
    start, end = (at - tag.start() for at in tag.span(2))
    name = _NO_XML_NAME.sub(lambda found: chr(_STAND_IN + ord(found[0])), tag[2])
    return f"{tag[0][:start]}{name}{tag[0][end:]}"


def _too_deep(text: str) -> bool:
    depth = 0
    for tag in _TAG.finditer(text):
        if tag[1]:
            depth -= 1
        elif not tag[3]:
            depth += 1
            if depth > MAX_DEPTH:
                return True
    return False


def _fault(text: str, otherwise: str) -> tuple[int, str]:
    """Index of the first thing wrong in *text*, and what it is; *otherwise* where only lxml knows."""
    if bad := _FORBIDDEN_CHARACTER.search(text):
        return bad.start(), f"character U+{ord(bad[0]):04X} is not allowed"
    open_tags: list[str] = []
    at = 0
    while (left := text.find("<", at)) >= 0:
        if not open_tags and text[at:left].strip(_XML_SPACE):
            return at, "text outside any element"
        tag = _TAG.match(text, left)
        if tag is None:
            return left, "not a tag"
        closing, name, empty = tag.groups()
        if closing:
            if not open_tags or open_tags[-1] != name:
                return left, f"expected </{open_tags[-1]}>" if open_tags else f"</{name}> closes nothing"
            open_tags.pop()
        elif not empty:
            open_tags.append(name)
            if len(open_tags) > MAX_DEPTH:
                return left, f"elements nested more than {MAX_DEPTH} deep"
        at = tag.end()
    if open_tags:
        return len(text), f"expected </{open_tags[-1]}>"
    if not at:
        return 0, "no element"
    if text[at:].strip(_XML_SPACE):
        return at, "text outside any element"
    for entity in _ENTITY.finditer(text):
        if entity[1] not in ("amp", "lt", "gt", "quot", "apos") and not entity[1].startswith("#"):
            return entity.start(), f"entity {entity[0]} is not one of XML's five"
    return 0, otherwise


def _at(folder: Folder, text: str, index: int, why: str) -> DecodeError:
    offset = folder.offset + len(text[:index].encode(folder.charset, "surrogatepass"))
    return _refused(offset, folder.name or "NameValueData", why, "bad-folder")


def _refused(offset: int, header: str, why: str, code: str) -> DecodeError:
    return DecodeError(offset, header, why, code, MQRC_RFH_FORMAT_ERROR)


def _value(element: etree._Element) -> Value:
    if len(element):
        return _merged((tag_of(child), _value(child)) for child in element)
    text = element.text or ""
    kind = None
    for key, setting in attributes(element):
        if key.rpartition("}")[2] == "nil" and setting in _TRUE:
            return None
        if key == "dt":
            kind = setting
    return text if kind is None else typed_value(text, kind)


def attributes(element: etree._Element) -> list[tuple[str, str]]:
    """(name, value) of each attribute in order, a name in a namespace as ``{namespace}name``."""
    if len(element.attrib) < _MANY_ATTRIBUTES:
        return [(str(key), str(value)) for key, value in element.items()]
    found: Any = element.xpath("@*")
    return [(str(value.attrname), str(value)) for value in found]


def tag_of(element: etree._Element) -> str:
    """The tag as it is written: a prefix stays, declared or not."""
    tag = str(element.tag)
    if not tag.isascii() and element.getroottree().getroot().tag == _RENAMED:
        tag = _STANDS_IN.sub(lambda found: chr(ord(found[0]) - _STAND_IN), tag)
    if tag[0] != "{":
        return tag
    local = tag.rpartition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix else local


def typed_value(text: str, kind: str) -> Scalar:
    """The value of *text* of the type that ``dt`` names (wire formats 3.3); the text itself where it is not of it."""
    plain = text.strip(_XML_SPACE)
    if (bits := _BITS.get(kind)) and _INTEGER.fullmatch(plain):
        number = int(plain)
        return number if -(1 << bits - 1) <= number < 1 << bits - 1 else text
    if kind in ("r4", "r8") and _FLOAT.fullmatch(plain):
        real = float(plain)
        return real if isfinite(real) else text
    if kind == "bin.hex" and len(plain) % 2 == 0 and _HEX.fullmatch(plain):
        return bytes.fromhex(plain)
    if kind == "boolean" and plain in _TRUE + _FALSE:
        return plain in _TRUE
    return text


def _merged(pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    out: dict[str, Value] = {}
    repeated: set[str] = set()
    for tag, value in pairs:
        if tag not in out:
            out[tag] = value
        elif tag in repeated:
            out[tag].append(value)  # type: ignore[union-attr]
        else:
            out[tag] = [out[tag], value]
            repeated.add(tag)
    return out
