"""The frame of a page: heading, summary, search, contents, sections; style and script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final

from markupsafe import Markup

from commands.pages.engine import asset, fill

_SCRIPTS: Final = ("table.js", "tree.js", "page.js")
_NOTHING: Final = Markup()


class Severity(StrEnum):
    """How a figure or a section is coloured."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the summary. label: what is counted. section: the title of the section that it leads to, or ""."""

    value: str
    label: str
    severity: Severity = Severity.NEUTRAL
    section: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A section. content: what a template made. count: beside the title, and in the contents. about: sentences."""

    title: str
    content: Markup
    count: str = ""
    severity: Severity = Severity.NEUTRAL
    about: str = ""


def document(
    heading: str,
    lead: Sequence[str],
    figures: Sequence[Figure],
    sections: Iterable[Section],
    *,
    after: Markup = _NOTHING,
) -> str:
    """The page. lead: paragraphs of text below the heading. after: between the summary and the sections."""
    listed = list(sections)
    script = Markup('"use strict";\n' + "".join(map(asset, _SCRIPTS)))
    page = fill(
        "report.html",
        heading=heading,
        lead=lead,
        figures=figures,
        sections=listed,
        anchors={section.title: f"s{at}" for at, section in enumerate(listed, 1)},
        after=after,
        style=Markup(asset("page.css")),
        script=script,
        digest=b64encode(sha256(script.encode()).digest()).decode(),
    )
    return f"{page}\n"
