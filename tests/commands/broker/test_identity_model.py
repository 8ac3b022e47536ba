"""Identity, restated: the rules of guide 6.7.2 and 6.7.4 (version 7) as one plain list, against the broker.

The model knows nothing of plans, indexes or operations: it walks over all subscriptions for each command.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, strategies as st

from tests.commands.scenario import Scenario

IDENTIFIER = b"C" * 24
FILTERS = {"": None, "f": "x = 1"}


@dataclass(frozen=True)
class Asked:
    """One command. options: None for omitted; filter: a key of FILTERS; name: "" for none."""

    word: str
    user: str
    queue: str
    topic: str
    filter: str
    name: str
    options: tuple[str, ...] | None

    def says(self, option: str) -> bool:
        return option in (self.options or ())

    @property
    def correlated(self) -> bool:
        return self.says("CorrelAsId")


@dataclass(frozen=True)
class Held:
    """One subscription."""

    user: str
    queue: str
    topic: str
    filter: str
    name: str
    correlated: bool
    variable: bool
    local: bool

    def is_at(self, asked: Asked) -> bool:
        any_filter = asked.says("DeregAll") and not asked.filter
        place = (self.queue, self.correlated, self.topic, asked.filter if any_filter else self.filter)
        return place == (asked.queue, asked.correlated, asked.topic, asked.filter)


class Model:
    """Subscriptions in the order of their registration."""

    def __init__(self) -> None:
        self.held: list[Held] = []

    def ask(self, asked: Asked) -> int | None:
        """Do it; the reason code where it is refused."""
        return self._register(asked) if asked.word == "RegSub" else self._deregister(asked)

    def _named(self, asked: Asked) -> tuple[Held | None, int | None]:
        for each in self.held:
            if asked.name and each.name == asked.name:
                return (None, 3078) if each.user != asked.user and not each.variable else (each, None)
        return None, None

    def _own_unnamed(self, asked: Asked) -> list[Held]:
        return [
            each
            for each in self.held
            if not each.name
            and each.is_at(asked)
            and (each.user == asked.user or (each.variable and asked.says("VariableUserId")))
        ]

    def _register(self, asked: Asked) -> int | None:
        named, reason = self._named(asked)
        if reason is not None:
            return reason
        if named is not None:
            return self._move(named, asked)
        own = self._own_unnamed(asked)
        own = [each for each in own if each.user == asked.user] or own
        if not asked.name:
            if own:
                self._alter(own[0], own[0], asked)
            else:
                self._create(asked)
            return None
        if own:
            if not asked.says("AddName"):
                return 3152
            self._alter(own[0], replace(own[0], name=asked.name), asked)
            return None
        if any(each.name and each.is_at(asked) and each.user == asked.user for each in self.held):
            return 3152
        self._create(asked)
        return None

    def _move(self, named: Held, asked: Asked) -> int | None:
        if asked.topic != named.topic:
            return 2510
        if asked.filter and asked.filter != named.filter:
            return 2524
        correlated = named.correlated if asked.options is None else asked.correlated
        moved = replace(named, queue=asked.queue, correlated=correlated)
        place = (moved.queue, moved.correlated, moved.topic, moved.filter)
        for each in self.held:
            same = (each.queue, each.correlated, each.topic, each.filter) == place
            if moved != named and each is not named and same and each.user == asked.user:
                return 3152
        self._alter(named, moved, asked)
        return None

    def _alter(self, before: Held, after: Held, asked: Asked) -> None:
        after = replace(after, user=asked.user)
        if asked.options is not None:
            after = replace(after, variable=asked.says("VariableUserId"), local=asked.says("Local"))
        self.held[self.held.index(before)] = after

    def _create(self, asked: Asked) -> None:
        self.held.append(
            Held(
                asked.user,
                asked.queue,
                asked.topic,
                asked.filter,
                asked.name,
                asked.correlated,
                asked.says("VariableUserId"),
                asked.says("Local"),
            )
        )

    def _deregister(self, asked: Asked) -> int | None:
        if asked.name:
            named, reason = self._named(asked)
            if reason is not None:
                return reason
            if named is not None:
                self.held.remove(named)
                return None
            unnamed = [e for e in self.held if not e.name and replace(e, filter=asked.filter).is_at(asked)]
            return 3153 if unnamed else 3073
        own = self._own_unnamed(asked)
        if not own:
            return 3151 if any(not each.name and each.is_at(asked) for each in self.held) else 3073
        if not asked.says("DeregAll"):
            if asked.says("VariableUserId"):
                own = [each for each in own if each.variable] or own
            own = [each for each in own if each.user == asked.user] or own
        for each in own:
            self.held.remove(each)
        return None


REGISTRATION = [
    None,
    ("None",),
    ("Local",),
    ("VariableUserId",),
    ("CorrelAsId",),
    ("AddName",),
    ("AddName", "CorrelAsId"),
]
DEREGISTRATION = [
    None,
    ("None",),
    ("VariableUserId",),
    ("CorrelAsId",),
    ("CorrelAsId", "VariableUserId"),
    ("DeregAll", "VariableUserId"),
]


@st.composite
def commands(draw: st.DrawFn) -> Asked:
    word = draw(st.sampled_from(["RegSub", "RegSub", "RegSub", "DeregSub"]))
    name = draw(st.sampled_from(["", "", "S", "T"]))
    options = draw(st.sampled_from(REGISTRATION if word == "RegSub" else DEREGISTRATION))
    if not name and options and "AddName" in options:
        options = None
    return Asked(
        word,
        draw(st.sampled_from(["app1", "app2"])),
        draw(st.sampled_from(["A.Q", "B.Q"])),
        draw(st.sampled_from(["a", "b/#"])),
        draw(st.sampled_from(["", "", "f"])),
        name,
        options,
    )


def put(world: Scenario, asked: Asked) -> int | None:
    """The same command to the broker."""
    pairs = [("RegOpt", option) for option in asked.options or ()]
    pairs.append(("Topic", asked.topic))
    if asked.name:
        pairs.append(("SubName", asked.name))
    text = FILTERS[asked.filter]
    if text:
        pairs.append(("Filter", text))
    return world.command(asked.word, *pairs, user=asked.user, reply_to=asked.queue, correl_id=IDENTIFIER).outcome.reason


def held_by(world: Scenario) -> list[Held]:
    return [
        Held(
            s.user,
            s.dest_queue,
            s.topic_string,
            "f" if s.selector else "",
            s.name or "",
            s.correl_id == IDENTIFIER,
            s.options.variable_user_id,
            s.options.local,
        )
        for s in world.subscriptions
    ]


@pytest.mark.rule("DEREG-29")
@given(st.lists(commands(), min_size=1, max_size=14))
def test_the_broker_knows_who_is_who(asked: list[Asked]) -> None:
    world, model = Scenario(), Model()
    for each in asked:
        assert put(world, each) == model.ask(each), each
        assert held_by(world) == model.held, each
