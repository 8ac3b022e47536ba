"""Classes of ``rfh2.late_dataclass`` are as those of ``dataclasses``, and compile their functions when needed."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, astuple, field, fields, replace
from threading import Thread
from typing import Any, ClassVar, NamedTuple

import pytest
from pydantic import TypeAdapter

from rfh2.frozen import maker, quick, replacer
from rfh2.late_dataclass import Late, dataclass

Make = Callable[..., Any]


class Pair(NamedTuple):
    """The same class, made by this project and by dataclasses."""

    late: Any
    plain: Any


def _frozen(make: Make) -> Any:
    @make(frozen=True, slots=True)
    class Topic:
        """A topic."""

        KIND: ClassVar[str] = "topic"
        name: str
        levels: tuple[str, ...] = ()
        hits: int = field(default=0, compare=False, repr=False)
        notes: list[str] = field(default_factory=list, hash=False)

        def first(self) -> str:
            return self.levels[0]

    return Topic


def _changing(make: Make) -> Any:
    @make(slots=True)
    class Topic:
        name: str
        levels: tuple[str, ...] = ()
        hits: int = field(default=0, compare=False, repr=False)
        notes: list[str] = field(default_factory=list)

    return Topic


def _open(make: Make) -> Any:
    @make
    class Topic:
        name: str
        levels: tuple[str, ...] = ()
        hits: int = field(default=0, compare=False, repr=False)
        notes: list[str] = field(default_factory=list)

    return Topic


def _derived(make: Make) -> Any:
    @make(frozen=True, slots=True)
    class Topic:
        name: str
        levels: tuple[str, ...] = ()
        hits: int = field(default=0, init=False, compare=False, repr=False)
        notes: tuple[str, ...] = field(init=False)

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")
            object.__setattr__(self, "notes", (self.name.upper(),))

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.name.lower() == other.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return f"<{self.name}>"

    return Topic


PAIRS = [
    pytest.param(Pair(made(dataclass), made(dataclasses.dataclass)), id=made.__name__[1:])
    for made in (_frozen, _changing, _open, _derived)
]


def _outcome(act: Callable[[Any], object], cls: Any) -> object:
    try:
        return act(cls)
    except Exception as error:
        return type(error)


def _parameters(cls: Any) -> object:
    found = inspect.signature(cls).parameters.values()
    return [(each.name, each.kind, each.annotation, each.default is each.empty) for each in found]


ACTS: list[Any] = [
    pytest.param(lambda cls: repr(cls("a", ("b",))), id="repr"),
    pytest.param(lambda cls: astuple(cls("a")), id="defaults"),
    pytest.param(lambda cls: asdict(cls(levels=("x",), name="a")), id="by-name"),
    pytest.param(lambda cls: cls(), id="too-few"),
    pytest.param(lambda cls: cls("a", (), 0, [], 5), id="too-many"),
    pytest.param(lambda cls: cls("a", other=1), id="unknown"),
    pytest.param(lambda cls: cls("").name, id="checked"),
    pytest.param(lambda cls: cls("a").notes is cls("a").notes, id="own-defaults"),
    pytest.param(lambda cls: (cls("a") == cls("a"), cls("a") == cls("A"), cls("a") != cls("b")), id="equal"),
    pytest.param(lambda cls: (cls("a") == ("a", (), 0, []), cls("a").__eq__("a")), id="other-kind"),
    pytest.param(lambda cls: hash(cls("a")) == hash(cls("a")), id="hash"),
    pytest.param(lambda cls: hash(cls("a", ("b",))) == hash(("a", ("b",))), id="what-is-hashed"),
    pytest.param(lambda cls: setattr(cls("a"), "name", "b"), id="set"),
    pytest.param(lambda cls: delattr(cls("a"), "name"), id="delete"),
    pytest.param(lambda cls: hasattr(cls("a"), "__dict__"), id="slots"),
    pytest.param(lambda cls: getattr(cls, "__slots__", None), id="slot-names"),
    pytest.param(lambda cls: cls.__match_args__, id="match"),
    pytest.param(lambda cls: replace(cls("a"), name="b").name, id="replace"),
    pytest.param(lambda cls: copy.copy(cls("a")) == copy.deepcopy(cls("a")) == cls("a"), id="copy"),
    pytest.param(_parameters, id="parameters"),
    pytest.param(lambda cls: [(each.name, each.type, each.compare, each.init) for each in fields(cls)], id="fields"),
    pytest.param(lambda cls: (cls.__name__, cls.__module__, cls.__qualname__.rpartition(".")[2]), id="name"),
    pytest.param(lambda cls: cls.__init__.__annotations__, id="annotations"),
    pytest.param(lambda cls: str(cls.__dataclass_params__), id="params"),
    pytest.param(dataclasses.is_dataclass, id="is-dataclass"),
    pytest.param(lambda cls: TypeAdapter(cls).validate_python({"name": "a", "levels": ["b"]}).levels, id="pydantic"),
    pytest.param(lambda cls: TypeAdapter(cls).dump_json(cls("a", ("b",))), id="pydantic-json"),
]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("pair", PAIRS)
def test_it_is_as_dataclasses_make_it(pair: Pair, act: Callable[[Any], object]) -> None:
    assert _outcome(act, pair.late) == _outcome(act, pair.plain)


@dataclass(frozen=True, slots=True)
class Kept:
    """One that pickle finds."""

    name: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Below(Kept):
    """One that inherits fields."""

    more: int = 1


class Plain(Kept):
    """One that inherits everything."""

    __slots__ = ()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_can_be_pickled(protocol: int) -> None:
    for value in (Kept("a", 3), Below("a", 3, 4)):
        assert pickle.loads(pickle.dumps(value, protocol)) == value


def test_a_class_below_inherits_fields_and_functions() -> None:
    assert repr(Below("a", 2)) == "Below(name='a', size=2, more=1)"
    assert (Below("a"), hash(Below("a"))) == (Below("a", 0, 1), hash(Below("a", 0, 1)))
    assert Below("a") != Kept("a")
    assert (Plain("a", 2).size, repr(Plain("a"))) == (2, "Plain(name='a', size=0)")
    assert Plain("a") == Plain("a") != Kept("a")
    with pytest.raises(FrozenInstanceError):
        Below("a").more = 2  # type: ignore[misc]


def test_a_function_is_compiled_when_it_is_first_called() -> None:
    made = _frozen(dataclass)
    late = {"__init__", "__eq__", "__hash__"}
    assert {name for name, value in vars(made).items() if isinstance(value, Late)} == late
    value = made("a")
    assert {name for name, value in vars(made).items() if isinstance(value, Late)} == late - {"__init__"}
    assert value == made("a")
    hash(value)
    assert not any(isinstance(each, Late) for each in vars(made).values())


def test_threads_may_need_a_function_at_once() -> None:
    for _ in range(20):
        values: list[Any] = []
        made = _frozen(dataclass)
        threads = [Thread(target=lambda made=made, values=values: values.append(made("a"))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert values == [made("a")] * 4


def test_values_may_be_made_quickly() -> None:
    @quick
    @dataclass(frozen=True, slots=True)
    class Quick:
        name: str
        size: int = 7

    assert (Quick("a"), repr(Quick("a"))) == (Quick("a", 7), repr(Kept("a", 7)).replace("Kept", Quick.__qualname__))
    assert replacer(Quick, "size")(maker(Quick)("a", 1), 7) == Quick("a")
    assert [*inspect.signature(Quick).parameters] == ["name", "size"]
    with pytest.raises(FrozenInstanceError):
        Quick("a").size = 8  # type: ignore[misc]
