"""What this program is called where packages are installed, its version, its optional parts, what packages export."""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

NAME: Final = "mq-qpubsub"
"""The distribution. The index has a ``qpubsub`` that is somebody else's: no message may lead there."""

VERSION: Final = "0.1.0"


def how_to_install(extra: str) -> str:
    """What a message says where a library is missing. extra: a name in pyproject.toml's optional dependencies."""
    # Not by name: until the distribution is published, anybody could publish another one under it.
    return f"install it with: {sys.executable} -m pip install '.[{extra}]', in the source directory of {NAME}"


# Names that a package exports, imported when a program first uses them (PEP 562).
#
# ``qpubsub --help`` and ``qpubsub decode`` import a few modules of each package; if its ``__init__`` imported all that
# it exports, the two would load the broker, lark and pydantic first: half a second. The names and their modules stand
# once, in the package's stub, where type checkers read them, too. (``lazy-loader`` does the same, but not from a zip
# archive, in which Spark's executors get the packages.)


def exports_of(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of *package*, by its ``__init__.pyi``.

    No name may be that of a module in the package: an import of the module would hide it.
    """
    stub = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"")
    module_of = {
        alias.name: f"{package}.{node.module}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return get, lambda: sorted(module_of), sorted(module_of)
