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
    decode       Element, AnnotatedLine, Located,           some twenty values for each message
                 PartialMessage

Five more classes of the core would give another hundredth, and have ordinary constructors.

``reader_of`` makes values that keep their bytes, and read most of their fields when one of these is first needed. Such
a value has a class of its own until then, and afterwards is like any other. Mqmd alone is made so: of its thirty fields
the way to a command needs two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import MISSING, FrozenInstanceError, fields
from typing import Any, TypeVar

from rfh2.late_dataclass import Late, arguments_of

T = TypeVar("T")

_MAKE = """
def make({names}):
    self = twin()
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
_REPLACE = """
def replaced(value, {changed}):
    return make({made})
"""
_READER = """
def make(source, {known}):
    self = new(filling)
    self.source = source
    {assignments}
    self.__class__ = unread
    return self
"""
_FILL = """
def fill(self, {others}):
    become(self, "__class__", filling)
    {assignments}
    self.source = None
    self.__class__ = cls
"""


class Source:
    """The base of a class whose values may keep their bytes. source: None once all fields are read."""

    __slots__ = ("source",)
    source: bytes | None


def maker(cls: type[T]) -> Callable[..., T]:
    """A function that makes a value of *cls*, a frozen dataclass with slots, from all of its fields in order.

    Raises TypeError for a class that checks its fields at construction: the twin would not.
    """
    made: Callable[..., T] = _compiled(_MAKE, cls)["make"]
    return made


def replacer(cls: type[T], *changed: str) -> Callable[..., T]:
    """``dataclasses.replace`` for some fields of *cls*, in a quarter of the time: takes a value, then these fields.

    Raises what ``maker`` does.
    """
    taken = [each.name for each in fields(cls)]  # type: ignore[arg-type]
    made = ", ".join(name if name in changed else f"value.{name}" for name in taken)
    space: dict[str, Any] = {"make": maker(cls)}
    exec(_REPLACE.format(changed=", ".join(changed), made=made), space)
    replaced: Callable[..., T] = space["replaced"]
    return replaced


def quick(cls: type[T]) -> type[T]:
    """Give *cls*, a frozen dataclass with slots, a constructor that takes half the time, with the same arguments.

    Afterwards subclassing *cls* raises TypeError. Raises TypeError itself for a class that checks its fields at
    construction, or makes their defaults then.
    """
    if any(each.default_factory is not MISSING for each in fields(cls)):  # type: ignore[arg-type]
        raise TypeError(f"{cls.__name__} makes defaults at construction")
    _check(cls)
    cls.__init__ = Late("__init__", _quick_init)  # type: ignore[method-assign, assignment]
    cls.__init_subclass__ = classmethod(_refuse_subclass)  # type: ignore[assignment]
    return cls


def _quick_init(cls: type[T]) -> Callable[..., Any]:
    init: Any = _compiled(_INIT, cls, become=object.__setattr__)["__init__"]
    init.__defaults__, init.__annotations__ = arguments_of(cls)
    return init  # type: ignore[no-any-return]


def reader_of(cls: type[T], known: tuple[str, ...], read: Callable[[bytes, T], tuple[Any, ...]]) -> Callable[..., T]:
    """A function that makes a value of *cls* from its bytes and the fields *known*; the others are read when needed.

    cls: a frozen dataclass with slots and the base ``Source``. read: gives the other fields in order, and cannot fail.
    Threads may share such a value: each of them would fill in the same.
    """
    others = tuple(each.name for each in fields(cls) if each.name not in known)  # type: ignore[arg-type]
    last = others[-1]

    class Unread(cls, is_unread=True):  # type: ignore[misc, valid-type, call-arg]
        __slots__ = ()

        def __getattr__(self, name: str) -> Any:
            if name not in others:
                raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
            source = self.source
            if source is not None:
                # Refused only if another thread was first; then all fields are there.
                with suppress(FrozenInstanceError):
                    fill(self, *read(source, self))
            return getattr(self, name)

        def __eq__(self, other: object) -> bool:
            getattr(self, last)
            return self == other

        def __hash__(self) -> int:
            getattr(self, last)
            return hash(self)

        def __repr__(self) -> str:
            getattr(self, last)
            return repr(self)

        def __reduce_ex__(self, protocol: Any) -> Any:
            getattr(self, last)
            return self.__reduce_ex__(protocol)

    class Filling(Unread, is_unread=True):  # type: ignore[call-arg]
        __slots__ = ()
        # Both: otherwise Python looks up one of them at each assignment.
        __setattr__ = object.__setattr__
        __delattr__ = object.__delattr__

    space: dict[str, Any] = {"cls": cls, "unread": Unread, "filling": Filling}
    space |= {"new": object.__new__, "become": object.__setattr__}
    exec(_READER.format(known=", ".join(known), assignments=_assignments(known)), space)
    exec(_FILL.format(others=", ".join(others), assignments=_assignments(others)), space)
    fill = space["fill"]
    made: Callable[..., T] = space["make"]
    return made


def _refuse_subclass(cls: type[object], /, *, is_unread: bool = False) -> None:
    if is_unread:
        return
    base = cls.__mro__[1].__name__
    raise TypeError(f"{base} cannot be subclassed: its constructor makes values of {base} itself")


def _check(cls: type[T]) -> None:
    if hasattr(cls, "__post_init__"):
        raise TypeError(f"{cls.__name__} checks its fields at construction")


def _compiled(source: str, cls: type[T], **names: object) -> dict[str, Any]:
    _check(cls)
    taken = [each.name for each in fields(cls)]  # type: ignore[arg-type]
    twin = type(cls.__name__, cls.__bases__, {"__slots__": tuple(taken)})
    space: dict[str, Any] = {"twin": twin, "cls": cls, **names}
    exec(source.format(names=", ".join(taken), assignments=_assignments(taken)), space)
    return space


def _assignments(names: Iterable[str]) -> str:
    return "\n    ".join(f"self.{name} = {name}" for name in names)
