"""Making frozen values quickly: for the values of the codec, which each message is decoded into, and for nothing else.

The constructor of a frozen dataclass sets each field through ``object.__setattr__``, at five times the price of a plain
assignment. A twin with the same slots that is not frozen takes the fields by plain assignment and then becomes the
frozen class; the value is the same in every respect (``tests/rfh2/test_frozen.py``). Functions that assign are written
as text and compiled, as dataclasses do with their own.

A value of a subclass would silently become one of the class itself, so a class with such a constructor refuses to be
subclassed. What it pays, in microseconds of processor time (docs/performance.md, "Frozen values"):

    quick for                          a descriptor and an MQRFH2    a publication with two
                                       to a command                  subscribers, processed
    nothing                            16.0                          98
    Mqmd                               13.5                          87
    Mqmd, Message, Rfh2, Folder        11.5                          85
    these and 14 classes elsewhere     11.4                          78

Rfh1 has it as Rfh2 has. Outside the codec it would be worth a twelfth, and is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, make_dataclass
from typing import Any, TypeVar

T = TypeVar("T")

_MAKE = """
def make({names}):
    self = new(twin)
    {assignments}
    self.__class__ = cls
    return self
"""
_INIT = """
def __init__(self, {names}):
    become(self, "__class__", twin)
    {assignments}
    self.__class__ = cls
"""


def maker(cls: type[T]) -> Callable[..., T]:
    """A function that makes a value of *cls*, a frozen dataclass with slots, from all of its fields in order.

    Raises TypeError for a class that checks its fields at construction: the twin would not.
    """
    made: Callable[..., T] = _compiled(_MAKE, cls, new=object.__new__)["make"]
    return made


def quick(cls: type[T]) -> type[T]:
    """Give *cls*, a frozen dataclass with slots, a constructor at half the price, with the same arguments.

    Afterwards subclassing *cls* raises TypeError. Raises TypeError itself for a class that checks its fields at
    construction, or makes their defaults then.
    """
    if any(each.default_factory is not MISSING for each in fields(cls)):  # type: ignore[arg-type]
        raise TypeError(f"{cls.__name__} makes defaults at construction")
    slow: Any = cls.__init__
    init = _compiled(_INIT, cls, become=object.__setattr__)["__init__"]
    init.__defaults__, init.__annotations__ = slow.__defaults__, slow.__annotations__
    init.__qualname__ = slow.__qualname__
    cls.__init__ = init  # type: ignore[method-assign]
    cls.__init_subclass__ = classmethod(_refuse_subclass)  # type: ignore[assignment]
    return cls


def _refuse_subclass(cls: type[object], /, **_options: object) -> None:
    base = cls.__mro__[1].__name__
    raise TypeError(f"{base} cannot be subclassed: its constructor makes values of {base} itself")


def _compiled(source: str, cls: type[T], **names: object) -> dict[str, Any]:
    if hasattr(cls, "__post_init__"):
        raise TypeError(f"{cls.__name__} checks its fields at construction")
    taken = [each.name for each in fields(cls)]  # type: ignore[arg-type]
    twin = make_dataclass(cls.__name__, taken, slots=True, eq=False, repr=False)
    space: dict[str, Any] = {"twin": twin, "cls": cls, **names}
    assignments = "\n    ".join(f"self.{name} = {name}" for name in taken)
    exec(source.format(names=", ".join(taken), assignments=assignments), space)
    return space
