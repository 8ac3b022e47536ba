"""Values made quickly are the values that the constructor makes, in every respect."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from typing import Any

import pytest

from rfh2 import Folder, Message, Mqmd, Rfh2
from rfh2.frozen import maker


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


def test_a_class_that_checks_its_fields_has_no_short_cut() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        size: int

        def __post_init__(self) -> None:
            raise ValueError(self.size)

    with pytest.raises(TypeError, match="Checked"):
        maker(Checked)
