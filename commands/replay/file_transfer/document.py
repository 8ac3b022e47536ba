"""Reads the XML of a message safely: it loads no DTD, expands no entity and fetches nothing.

An agent's status is a Java properties document: it names java.sun.com's DTD in a DOCTYPE, which is passed over. A
DOCTYPE with declarations of its own is refused, since no agent writes one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from lxml import etree

from rfh2.errors import QPubSubError

MAX_LENGTH: Final = 16_000_000
"""In characters. SYSTEM.FTE is delivered with MAXMSGL(4194304); an administrator can raise it."""

_DECLARATION: Final = re.compile(r"<\?xml[^>]*\?>\s*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")


class DocumentError(QPubSubError):
    """Text that is not a document that an agent could have written."""


class Document:
    """One message's XML. problems: values that are not what their place asks for, in words."""

    def __init__(self, text: str) -> None:
        """Raises DocumentError."""
        if len(text) > MAX_LENGTH:
            raise DocumentError(f"{len(text):,} characters; at most {MAX_LENGTH:,} are read")
        # The declaration names the encoding of the bytes, but the text is already decoded.
        body = text.strip()
        declaration = _DECLARATION.match(body)
        body = body if declaration is None else body[declaration.end() :]
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            dtd_validation=False,
            huge_tree=False,
            encoding="utf-8",
        )
        try:
            self.root = etree.fromstring(body.encode(), parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            raise DocumentError(f"not well-formed XML: {getattr(error, 'msg', error)}") from error
        dtd: Any = self.root.getroottree().docinfo.internalDTD
        if dtd is not None and (any(dtd.iterentities()) or any(dtd.iterelements())):
            raise DocumentError("the DOCTYPE has declarations of its own; they are not read")
        self.problems: list[str] = []

    def integer(self, element: etree._Element | None, name: str) -> int | None:
        """An attribute that is a whole number, None where there is none."""
        return self.as_integer(attribute(element, name), name)

    def as_integer(self, text: str | None, name: str) -> int | None:
        """*text* as a whole number. name: what it is, for a problem."""
        if text is None or not text.strip():
            return None
        if _INTEGER.fullmatch(text.strip()):
            return int(text)
        self.problems.append(f"{name} is not a whole number: {text[:40]!r}")
        return None

    def decimal(self, element: etree._Element | None, name: str) -> float | None:
        """An attribute that is a number of seconds."""
        text = attribute(element, name)
        if text is None or not text.strip():
            return None
        if _DECIMAL.fullmatch(text.strip()):
            return float(text)
        self.problems.append(f"{name} is not a number: {text[:40]!r}")
        return None

    def moment(self, text: str | None, name: str) -> datetime | None:
        """*text*, an xsd:dateTime, in UTC; one without a zone is taken as UTC, as agents write it."""
        if text is None or not text.strip():
            return None
        try:
            found = datetime.fromisoformat(text.strip())
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        except (ValueError, OverflowError):
            self.problems.append(f"{name} is not a date and time: {text[:40]!r}")
            return None


def local_name(element: etree._Element) -> str:
    """The tag without its namespace; empty for a comment or an entity."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def child(element: etree._Element | None, name: str) -> etree._Element | None:
    """The first child of that name, in whichever namespace."""
    if element is None:
        return None
    return next((each for each in element if local_name(each) == name), None)


def children(element: etree._Element | None, name: str) -> list[etree._Element]:
    """All children of that name."""
    return [] if element is None else [each for each in element if local_name(each) == name]


def attribute(element: etree._Element | None, name: str) -> str | None:
    """An attribute in no namespace."""
    found = None if element is None else element.get(name)
    return None if found is None else str(found)


def text_of(element: etree._Element | None) -> str | None:
    """The text of an element without the blanks around it, None where there is none."""
    found = None if element is None else (element.text or "").strip()
    return found or None
