"""Making frozen values quickly, for the hot path of the decoder.

The constructor of a frozen dataclass sets each field through ``object.__setattr__``, at five times the price of a plain
assignment: for the 29 fields of a descriptor that is as much as all the rest of its decoding. A twin with the same
slots that is not frozen takes the fields by plain assignment and then becomes the frozen class; the value is the same
in every respect (``tests/rfh2/test_frozen.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def maker(cls: type[T]) -> Callable[..., T]:
    """A function that makes a value of *cls*, a frozen dataclass with slots, from all of its fields in order.

    Raises TypeError for a class that checks its fields at construction: the twin would not.
    """
    if hasattr(cls, "__post_init__"):
        raise TypeError(f"{cls.__name__} checks its fields at construction")
    names = [(each.name, each.type) for each in fields(cls)]  # type: ignore[arg-type]
    twin = make_dataclass(cls.__name__, names, slots=True, eq=False, repr=False)

    def make(*values: Any) -> T:
        made: Any = twin(*values)
        made.__class__ = cls
        return made  # type: ignore[no-any-return]

    return make
