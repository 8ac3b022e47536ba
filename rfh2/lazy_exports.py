"""Names that a package exports, imported when a program first uses them (PEP 562).

``qpubsub --help`` and ``qpubsub decode`` import a few modules of each package, and every one of these imports runs the
package's ``__init__``. If ``__init__`` imported all that it exports, the two would load the broker, lark and pydantic
first: half a second. The imports of an ``__init__`` are under ``TYPE_CHECKING``, for type checkers and editors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, names_of: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of *package*. names_of: module to the names that it has, with blanks between.

    The two raise AttributeError for other names, as a package without them does. No name may be that of a module in
    the package: an import of the module would hide it (``tests/test_exports.py``).
    """
    module_of = {name: module for module, names in names_of.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return get, names
