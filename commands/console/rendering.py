"""The templates of the console, and what they say of moments, sizes and addresses."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, pass_context
from jinja2.runtime import Context

from commands.pages import environment
from rfh2.terminal_escape import visible

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_LONG: Final = 160

ASSETS: Final = {
    "page.css": ("commands.pages", "page.css", "text/css; charset=utf-8"),
    "console.css": ("commands.console", "assets/console.css", "text/css; charset=utf-8"),
    "console.js": ("commands.console", "assets/console.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("commands.console", "assets/icon.svg", "image/svg+xml"),
}
"""Files that pages load: package, path in it, type."""


def render(template: str, **values: Any) -> str:
    """The page that *template* makes of *values*. Raises UndefinedError for a name that it lacks."""
    return _environment().get_template(template).render(values)


@cache
def asset(name: str) -> bytes:
    """The bytes of one of ASSETS."""
    package, path, _ = ASSETS[name]
    return (files(package) / path).read_bytes()


def address(path: str, **values: object) -> str:
    """A path with a query. Values of None are left out."""
    query = urlencode({name: value for name, value in values.items() if value is not None}, quote_via=quote, safe="")
    return f"{path}?{query}" if query else path


@pass_context
def _address_here(context: Context, path: str, **values: object) -> str:
    """The same, of the queue manager whose page is made."""
    return address(f"{context['base']}{path}", **values)


def cut(text: str | None, most: int = _LONG) -> str:
    """The beginning of a long text, and how long it is; one in a row must not fill the window."""
    whole = visible(text or "")
    return whole if len(whole) <= most else f"{whole[:most]}… ({len(text or ''):,} characters)"


def moment(at: datetime | str | None) -> str:
    """A moment in UTC, to the second."""
    if at is None:
        return "never"
    return at.replace("T", " ")[:19] if isinstance(at, str) else f"{at:%Y-%m-%d %H:%M:%S}"


def duration(seconds: float | None) -> str:
    """In the largest unit that makes it at least one."""
    if seconds is None:
        return ""
    return next((f"{seconds / size:.0f} {unit}" for size, unit in _UNITS if seconds >= size), "0 s")


def size(count: int) -> str:
    """Bytes, for a person."""
    return (
        f"{count:,} bytes" if count < 10_000 else f"{count / 1e3:,.1f} kB" if count < 1e6 else f"{count / 1e6:,.1f} MB"
    )


@cache
def _environment() -> Environment:
    made = environment("commands.console")
    made.filters |= {"cut": cut, "duration": duration, "moment": moment, "size": size}
    made.globals["address"] = _address_here
    return made
