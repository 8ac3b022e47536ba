"""Properties of a message as a person types them: ``Colour=red``, ``Size:int=3``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

_TYPES: Final[dict[str, Callable[[str], Any]]] = {
    "": str,
    "string": str,
    "int": int,
    "float": float,
    "boolean": lambda text: {"true": True, "false": False, "1": True, "0": False}[text.lower()],
}


def typed_property(option: str, text: str) -> tuple[str, Any]:
    """Name and value of ``NAME=VALUE`` or ``NAME:TYPE=VALUE``. Raises UsageError that names *option*."""
    name, equals, value = text.partition("=")
    name, _, kind = name.partition(":")
    if not equals or not name or kind not in _TYPES:
        raise click.UsageError(f"{option} {text}: not NAME=VALUE, nor NAME:TYPE=VALUE with int, float or boolean")
    try:
        return name, _TYPES[kind](value)
    except (ValueError, KeyError) as error:
        raise click.UsageError(f"{option} {text}: {value!r} is no {kind}") from error
