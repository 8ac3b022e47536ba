"""The templates of all pages, of reports and of the console: filled so that no value is markup or acts on the reader.

Each value passes ``visible`` before it is escaped: control characters, what turns the direction of writing round, and
halves of characters are spelt out. What a template has filled is Markup already, and stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rfh2.terminal_escape import visible

_PACKAGE: Final = "commands.pages"
# Inside <script> these would end it, begin a comment, or end a line of JavaScript.
_IN_SCRIPT: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def environment(*packages: str) -> Environment:
    """Jinja2 for the templates in *packages*, and for those that all pages share."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, _PACKAGE)]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": _number, "lines": _lines}
    return made


def fill(template: str, **values: Any) -> Markup:
    """What *template*, of those in this package, makes of *values*. Raises UndefinedError for one that it lacks."""
    return Markup(_shared().get_template(template).render(values))


def listing(lines: Sequence[str], more: str = "") -> Markup:
    """Lines as they are. more: a sentence below them."""
    return fill("listing.html", lines=lines, more=more)


def script_data(value: object) -> Markup:
    """*value* as JSON that can stand in a ``<script>`` element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup("".join(_IN_SCRIPT.get(c, c) for c in text) if any(c in text for c in _IN_SCRIPT) else text)


@cache
def asset(name: str) -> str:
    """The text of a style or script of the pages."""
    return (files(_PACKAGE) / name).read_text(encoding="utf-8")


@cache
def _shared() -> Environment:
    return environment()


def _lines(text: str | Sequence[str]) -> Markup:
    """A text of several lines, or a list of them, with their ends."""
    # Escaped as one text: a paste may have millions of lines.
    return escape("\n".join(map(visible, text.splitlines() if isinstance(text, str) else text)))


def _number(value: int | float | None) -> str:
    return "" if value is None else f"{value:,}"


def _shown(value: object) -> object:
    return value if isinstance(value, Markup) or value is None else visible(str(value))
