"""Values made quickly are the values that the constructor makes, in every respect."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field, fields, replace
from threading import Thread
from typing import Any

import pytest

from rfh2 import Folder, Message, Mqmd, Rfh1, Rfh2
from rfh2.frozen import maker, quick, replacer


@pytest.mark.parametrize(
    "value",
    [
        Mqmd(format="MQSTR", msg_id=bytes(range(24))),
        Folder(b"<psc/>", "utf-16-le", 40),
        Rfh2((Folder(b""),)),
        Message(Mqmd()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_made_quickly_or_slowly_it_is_the_same(value: Any) -> None:
    made = maker(type(value))(*(getattr(value, each.name) for each in fields(value)))
    assert type(made) is type(value)
    assert made == value
    assert (hash(made), repr(made)) == (hash(value), repr(value))
    assert [getattr(made, each.name) for each in fields(made)] == [getattr(value, each.name) for each in fields(value)]
    assert replace(made) == copy.copy(made) == pickle.loads(pickle.dumps(made)) == value
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(made)[0].name, None)


@pytest.mark.parametrize("mqmd", [Mqmd(format="MQSTR"), Mqmd.decode(Mqmd(user_identifier="app").encode())])
def test_some_fields_are_replaced_as_dataclasses_does_it(mqmd: Mqmd) -> None:
    made = replacer(Mqmd, "coded_char_set_id", "put_time")(mqmd, 819, "12000000")
    wanted = replace(mqmd, coded_char_set_id=819, put_time="12000000")
    assert type(made) is type(wanted)
    assert (made, made.encode()) == (wanted, wanted.encode())


@dataclass(frozen=True, slots=True)
class Slow:
    name: str
    size: int = 7
    offset: int = field(default=0, compare=False)


@quick
@dataclass(frozen=True, slots=True)
class Quick:
    name: str
    size: int = 7
    offset: int = field(default=0, compare=False)


@pytest.mark.parametrize(
    ("args", "keywords"),
    [(("a",), {}), (("a", 1, 2), {}), ((), {"name": "a", "offset": 3}), (("a",), {"size": 1})],
    ids=["defaults", "in-order", "by-name", "both"],
)
def test_a_quick_constructor_takes_what_the_slow_one_takes(args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    made, slow = Quick(*args, **keywords), Slow(*args, **keywords)
    assert type(made) is Quick
    assert repr(made) == repr(slow).replace("Slow", "Quick")
    assert made == Quick(*args, **keywords | ({} if len(args) == 3 else {"offset": 99}))
    assert replace(made, size=2).size == 2
    assert copy.copy(made) == pickle.loads(pickle.dumps(made)) == made
    assert inspect.signature(Quick).parameters == inspect.signature(Slow).parameters
    with pytest.raises(FrozenInstanceError):
        made.size = 8  # type: ignore[misc]


@pytest.mark.parametrize(("args", "why"), [((), "name"), (("a", 1, 2, 3), "positional")], ids=["too-few", "too-many"])
def test_a_quick_constructor_refuses_what_the_slow_one_refuses(args: tuple[Any, ...], why: str) -> None:
    for made in (Quick, Slow):
        with pytest.raises(TypeError, match=why):
            made(*args)


def test_a_class_that_makes_defaults_has_no_quick_constructor() -> None:
    @dataclass(frozen=True, slots=True)
    class Listed:
        names: list[str] = field(default_factory=list)

    with pytest.raises(TypeError, match="Listed"):
        quick(Listed)


def test_a_class_that_checks_its_fields_has_no_short_cut() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        size: int

        def __post_init__(self) -> None:
            raise ValueError(self.size)

    for short_cut in (maker, quick):
        with pytest.raises(TypeError, match="Checked"):
            short_cut(Checked)


@pytest.mark.parametrize("cls", [Quick, Mqmd, Message, Rfh2, Rfh1, Folder], ids=lambda cls: cls.__name__)
def test_a_class_with_a_quick_constructor_refuses_to_be_subclassed(cls: type[Any]) -> None:
    # A value of the subclass would silently become one of the class.
    with pytest.raises(TypeError, match=f"{cls.__name__} cannot be subclassed"):
        type("Sub", (cls,), {"__slots__": ()})


WHOLE = Mqmd(format="MQHRF2", msg_id=bytes(range(24)), put_date="20260102", user_identifier="app")


def _unread() -> Mqmd:
    """The same value, of which most fields are not read yet."""
    return Mqmd.decode(WHOLE.encode())


def _assigned(value: Any) -> type[BaseException] | None:
    try:
        value.report = 5
    except AttributeError as error:
        return type(error)
    return None


LOOKS: list[Callable[[Mqmd], object]] = [
    pytest.param(lambda md: [getattr(md, each.name) for each in fields(md)], id="fields"),
    pytest.param(lambda md: [getattr(md, each.name) for each in reversed(fields(md))], id="fields-backwards"),
    pytest.param(lambda md: (md == WHOLE, md != WHOLE, md == 1), id="equal"),
    pytest.param(lambda md: ([WHOLE].index(md), md == _unread(), _unread() == md), id="equal-the-other-way"),
    pytest.param(lambda md: {md: 1, WHOLE: 2}, id="hash"),
    pytest.param(repr, id="repr"),
    pytest.param(str, id="str"),
    pytest.param(copy.copy, id="copy"),
    pytest.param(copy.deepcopy, id="deepcopy"),
    pytest.param(lambda md: pickle.loads(pickle.dumps(md)), id="pickle"),
    pytest.param(lambda md: replace(md, report=7), id="replace"),
    pytest.param(asdict, id="asdict"),
    pytest.param(astuple, id="astuple"),
    pytest.param(lambda md: isinstance(md, Mqmd), id="class"),
    pytest.param(_assigned, id="frozen"),
    pytest.param(lambda md: [hasattr(md, name) for name in ("report", "__len__", "no_such_field")], id="no-such-field"),
    pytest.param(Mqmd.encode, id="bytes"),
]


@pytest.mark.parametrize("look", LOOKS)
def test_a_value_that_is_read_when_needed_looks_like_any_other(look: Callable[[Mqmd], object]) -> None:
    unread = _unread()
    assert look(unread) == look(WHOLE)
    assert unread == WHOLE
    assert type(unread) is Mqmd


def test_only_what_is_needed_is_read() -> None:
    unread = _unread()
    assert (unread.version, unread.format, unread.encoding, unread.coded_char_set_id) == (1, "MQHRF2", 546, 0)
    assert type(unread) is not Mqmd
    assert unread.report == 0
    assert type(unread) is Mqmd
    assert unread.source is None


def test_threads_may_read_the_same_value() -> None:
    found: list[object] = []
    for _ in range(20):
        unread = _unread()
        threads = [Thread(target=lambda md=unread: found.append(astuple(md))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [astuple(WHOLE)] * 80
