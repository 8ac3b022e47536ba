"""Making frozen values quickly: for values that are made several times for each message, and for no others.

The constructor of a frozen dataclass sets each field through ``object.__setattr__``, which takes five times as long as
a plain assignment. A twin class with the same slots that is not frozen takes the fields by plain assignment; its value
then becomes one of the frozen class, and is the same in every respect (``tests/rfh2/test_frozen.py``). Functions that
assign are written as text and compiled, as dataclasses do with their own.

A value of a subclass would become one of the class itself without notice, so a class with such a constructor cannot be
subclassed. Where it is used, and what it gives (microseconds of processor time; docs/performance.md, "Frozen values"):

    the codec    Mqmd, Message, Rfh2, Rfh1, Folder          a descriptor and an MQRFH2 to a command: 16.0 to 11.5
    the core     Arrival, Context, PublishToTopic,          a publication with two subscribers through
                 Publication, Delivery, DeliveryForm,       ``BrokerCore.process``: 88.8 to 82.4
                 Outgoing, Outcome

Five more classes of the core would give another hundredth, and have ordinary constructors.
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
    """Give *cls*, a frozen dataclass with slots, a constructor that takes half the time, with the same arguments.

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
