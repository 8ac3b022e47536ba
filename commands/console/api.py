"""The pages as JSON: the values that their templates show, for programs; and what describes them (OpenAPI 3.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from html import unescape
from typing import Any, Final

from markupsafe import Markup

from commands.console.pages import PAGES, Page
from commands.explain.why import Verdict
from rfh2.distribution import VERSION

_MARKUP: Final = re.compile(r"<[^>]*>")
# Pictures, and what only the forms of a page need.
_OF_THE_PAGE: Final = frozenset({"plot", "formats", "lengths", "most", "longest", "most_below", "forms"})

API_PAGES: Final = {f"/api{'/overview' if page.path == '/' else page.path}": page for page in PAGES if page.about}
"""By path."""


def answer_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a program gets of a page's values; ``format`` grows when a key goes or changes its meaning."""
    return {name: _plain(value) for name, value in values.items() if name not in _OF_THE_PAGE} | {"format": 1}


def _plain(value: Any) -> Any:
    match value:
        case Markup():
            return unescape(_MARKUP.sub("", value))
        case Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Verdict():
            return value.form()
        case Mapping():
            return {str(_plain(key)): _plain(each) for key, each in value.items()}
        case Iterable():
            return [_plain(each) for each in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return str(value)


def description() -> dict[str, Any]:
    """The API as an OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "qpubsub console", "version": VERSION, "description": "Each page of the console as JSON."},
        "paths": {path: {"get": _operation(path, page)} for path, page in API_PAGES.items()},
    }


def _operation(path: str, page: Page) -> dict[str, Any]:
    keys = {"format": {"const": 1}, **{name: {} for name in page.gives}}
    schema = {"type": "object", "properties": keys, "required": ["format"]}
    problem = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    return {
        "operationId": path.removeprefix("/api/").replace("/", "_").replace("-", "_"),
        "summary": page.title,
        "description": page.about,
        "parameters": [
            {"name": name, "in": "query", "description": PARAMETERS[name], "schema": {"type": "string"}}
            for name in page.asks
        ],
        "responses": {
            "200": _response(page.about, schema),
            "404": _response("What is asked for does not exist.", problem),
            "503": _response("The queue manager cannot be read at present.", problem),
        },
    }


def _response(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


PARAMETERS: Final = {
    "after": "where the page begins: what the answer before gave",
    "at": "the position of the message in the capture, from 0",
    "data": "the data of the publication",
    "explain": "given: what each message would cause on a new queue manager",
    "first": "the first row, a multiple of 100",
    "format": "the format of text: auto, or the name of a capture format",
    "id": "SubId of the subscription, in hex",
    "length": "seconds of a period: 5, 60 or 900",
    "list": "given: all topics as rows, instead of a level of the tree",
    "name": "the queue",
    "ask": "given: the question is answered",
    "publish": "the topic of a publication to explain; without it, what keeps publications from each subscription",
    "q": "text in one of the columns",
    "queue": "the queue",
    "seq": "the number of the message",
    "setup": "MQSC to run before, with explain",
    "sort": "a column, with - before it from high to low",
    "stream": "the stream queue",
    "sub": "the name of the subscription",
    "text": "a message in any form that qpubsub decode reads",
    "topic": "the topic string",
    "under": "the topic whose children are listed; without it, the root",
    "user": "who publishes",
    "where": "a condition, as for --where of qpubsub decode",
    "go": "on or back: to the next message for which where is true",
}
"""What each parameter of a page is."""
