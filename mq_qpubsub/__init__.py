"""What a program can import: all that ``rfh2``, ``streams``, ``commands`` and ``migrate`` export.

A name is imported when a program first uses it (PEP 562), as in those packages.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rfh2.distribution import VERSION

__version__ = VERSION
_PACKAGES = ("rfh2", "streams", "commands", "migrate")


def __getattr__(name: str) -> Any:
    for package in map(import_module, _PACKAGES):
        if name in package.__all__:
            return getattr(package, name)
    if name == "__all__":
        return __dir__()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({"__version__"}.union(*(import_module(package).__all__ for package in _PACKAGES)))
