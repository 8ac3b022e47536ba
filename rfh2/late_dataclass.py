"""``dataclass`` for modules that a program imports at its start: the functions of a class are compiled when needed.

``dataclasses.dataclass`` writes up to six functions of each class as text, and compiles them while the module is
imported. Most of them are never called: of the classes that ``qpubsub decode`` imports, one message needs a few. Here a
class has the same fields, and functions with the same results, but ``__init__``, ``__eq__`` and ``__hash__`` are
compiled when somebody first calls them (``tests/rfh2/test_late_dataclass.py``).

To a type checker this is ``dataclasses.dataclass`` itself. Classes that inherit fields, and those with options other
than ``frozen`` and ``slots``, are made by ``dataclasses``. Fields cannot be InitVar.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, NoReturn

Compile = Callable[[Any], Callable[..., Any]]
"""Makes a function of a class."""

_INIT: Final = """
def __init__({parameters}):
    {body}
"""
_EQ: Final = """
def __eq__(self, other):
    if other.__class__ is not self.__class__:
        return NotImplemented
    return ({mine}) == ({others})
"""
_HASH: Final = """
def __hash__(self):
    return hash(({mine}))
"""
_MADE: Final = object()
"""Stands for a default that the constructor has to make."""


class Late:
    """A function of a class that is compiled when it is first needed, and then takes the place of this."""

    __slots__ = ("_compile", "_name")

    def __init__(self, name: str, compile_for: Compile) -> None:
        self._name, self._compile = name, compile_for

    def __get__(self, value: object, owner: Any) -> Any:
        # A class may inherit it. Several threads may be here at once: each compiles the same function.
        cls = next((each for each in owner.__mro__ if each.__dict__.get(self._name) is self), owner)
        function: Any = self._compile(cls)
        function.__qualname__, function.__module__ = f"{cls.__qualname__}.{self._name}", cls.__module__
        setattr(cls, self._name, function)
        return function.__get__(value, owner)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - type checkers take it for exported
else:

    def dataclass(cls=None, /, **options):
        """As ``dataclasses.dataclass``."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if not options.keys() <= {"frozen", "slots"} or any(map(dataclasses.is_dataclass, cls.__mro__[1:])):
            return dataclasses.dataclass(cls, **options)
        return _late(cls, **options)


def _late(cls: Any, *, frozen: bool = False, slots: bool = False) -> Any:
    own = {name for name, value in cls.__dict__.items() if (name, value) != ("__hash__", None)}
    if not cls.__doc__:
        # Otherwise dataclasses would write the signature of the constructor there, which takes long to find out.
        cls.__doc__ = cls.__name__
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    # dataclasses looks there when a class inherits from this one, and so does pydantic.
    params = made.__dataclass_params__
    params.init = params.repr = params.eq = True
    params.frozen = frozen
    functions = {
        "__init__": Late("__init__", _init),
        "__repr__": _repr,
        "__eq__": Late("__eq__", _eq),
        "__hash__": None,
    }
    if frozen:
        functions |= {
            "__hash__": Late("__hash__", _hash),
            "__setattr__": _refuse_to_set,
            "__delattr__": _refuse_to_delete,
        }
        if slots:
            functions |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, function in functions.items():
        if name not in own:
            setattr(made, name, function)
    return made


def arguments_of(cls: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The defaults of the constructor of a dataclass, and its annotations, as a function has them.

    ``_MADE`` is in place of a default that the constructor has to make.
    """
    given = [each for each in fields(cls) if each.init]
    defaults = [_MADE if each.default is MISSING else each.default for each in given if not _is_needed(each)]
    return tuple(defaults), {**{each.name: each.type for each in given}, "return": None}


def _is_needed(each: dataclasses.Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _init(cls: Any) -> Callable[..., Any]:
    frozen = cls.__dataclass_params__.frozen
    space: dict[str, Any] = {"_made": _MADE, "_put": object.__setattr__}
    body = []
    for each in fields(cls):
        value = each.name
        if each.default_factory is not MISSING:
            space[f"_make_{each.name}"] = each.default_factory
            value = f"_make_{each.name}()"
            if each.init:
                value = f"{value} if {each.name} is _made else {each.name}"
        elif not each.init:
            if each.default is MISSING:
                continue
            space[f"_default_{each.name}"] = each.default
            value = f"_default_{each.name}"
        body.append(f"_put(self, {each.name!r}, {value})" if frozen else f"self.{each.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *(each.name for each in fields(cls) if each.init)])
    init: Any = _compiled(_INIT.format(parameters=parameters, body="\n    ".join(body or ["pass"])), space, "__init__")
    init.__defaults__, init.__annotations__ = arguments_of(cls)
    return init  # type: ignore[no-any-return]


def _eq(cls: Any) -> Callable[..., Any]:
    names = [each.name for each in fields(cls) if each.compare]
    mine, others = ("".join(f"{whose}.{name}, " for name in names) for whose in ("self", "other"))
    return _compiled(_EQ.format(mine=mine, others=others), {}, "__eq__")


def _hash(cls: Any) -> Callable[..., Any]:
    names = [each.name for each in fields(cls) if (each.compare if each.hash is None else each.hash)]
    return _compiled(_HASH.format(mine="".join(f"self.{name}, " for name in names)), {}, "__hash__")


def _compiled(source: str, space: dict[str, Any], name: str) -> Callable[..., Any]:
    exec(source, space)
    function: Callable[..., Any] = space[name]
    return function


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """For pickle, as ``dataclasses`` does it."""
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
