"""The frame of a page: heading, summary, search, contents, sections; style and script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from commands.pages.text import escaped

_SCRIPTS: Final = ("table.js", "tree.js", "page.js")


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
    """A section. content: HTML. count: a short text beside the title and in the contents. about: a sentence or two."""

    title: str
    content: str
    count: str = ""
    severity: Severity = Severity.NEUTRAL
    about: str = ""


def document(
    heading: str, lead: Sequence[str], figures: Sequence[Figure], sections: Iterable[Section], *, after: str = ""
) -> str:
    """The page. lead: paragraphs of text below the heading. after: HTML between the summary and the sections."""
    listed = list(sections)
    anchors = {section.title: f"s{at}" for at, section in enumerate(listed, 1)}
    script, style = _script(), _asset("page.css")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    head = (
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}; form-action \'none\'">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escaped(heading)}</title><style>\n{style}</style></head>",
        "<body>" if len(listed) > 1 else '<body class="plain">',
        f"<header><h1>{escaped(heading)}</h1>{''.join(f'<p>{escaped(text)}</p>' for text in lead)}</header>",
        _summary(figures, anchors),
        after,
        _bar(listed, anchors),
        "<main>",
    )
    body = (_section(section, anchors[section.title]) for section in listed)
    return "\n".join(filter(None, (*head, *body, f"</main>\n<script>{script}</script></body></html>"))) + "\n"


def _summary(figures: Sequence[Figure], anchors: dict[str, str]) -> str:
    shown = []
    for figure in figures:
        inside = f"<b>{escaped(figure.value)}</b><span>{escaped(figure.label)}</span>"
        anchor = anchors.get(figure.section)
        tag = f'<a href="#{anchor}" class="figure {figure.severity}">{inside}</a>'
        shown.append(tag if anchor else f'<div class="figure {figure.severity}">{inside}</div>')
    return f'<div class="summary">{"".join(shown)}</div>' if shown else ""


def _bar(sections: Sequence[Section], anchors: dict[str, str]) -> str:
    """Contents and search. The search box appears when the script runs."""
    links = "".join(
        f'<li><a href="#{anchors[section.title]}" class="{section.severity}"><span>{escaped(section.title)}</span>'
        f'<span class="count">{escaped(section.count)}</span></a></li>'
        for section in sections
    )
    search = (
        '<div class="search" hidden><input type="search" id="search" placeholder="Search this page" '
        'aria-label="Search this page" autocomplete="off" spellcheck="false"><output id="found"></output></div>'
    )
    contents = f'<details class="contents" open><summary>Contents</summary><ol>{links}</ol></details>'
    return f"<nav>{search}{contents if len(sections) > 1 else ''}</nav>"


def _section(section: Section, anchor: str) -> str:
    count = f' <span class="count">{escaped(section.count)}</span>' if section.count else ""
    about = f'<p class="about">{escaped(section.about)}</p>' if section.about else ""
    return (
        f'<section id="{anchor}" class="{section.severity}"><h2>{escaped(section.title)}{count}</h2>'
        f"{about}{section.content}</section>"
    )


@cache
def _script() -> str:
    return '"use strict";\n' + "".join(map(_asset, _SCRIPTS))


@cache
def _asset(name: str) -> str:
    return (files("commands.pages") / name).read_text(encoding="utf-8")
