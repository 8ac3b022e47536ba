"""Any command at all: it is answered, and one that is refused has changed nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import Phase, given, settings, strategies as st

from commands.broker.attribute_kinds import Choice, Name, Names, Number
from commands.broker.counts import Counting
from commands.broker.objects import Objects, QueueManager, kind_of
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, DefinitionDeleted, DefinitionStored
from commands.mqsc.attributes import NAMELIST, QALIAS, QLOCAL, QMGR, SUB, TOPIC
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from streams import (
    RetainedCleared,
    Subscription,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionRemoved,
    TopicSpace,
)

NOW = datetime(2009, 1, 28, 11, 43, tzinfo=UTC)
KINDS = {kind.word: kind for kind in (TOPIC, QLOCAL, QALIAS, NAMELIST, QMGR, SUB)}
OTHERS = ["QUEUE", "SBSTATUS", "TPSTATUS", "TOPICSTR", "PUBSUB", "AUTHREC", "CHANNEL", "SECURITY", "NOTHING"]
PAIRS = [(verb, kind) for verb in ("DEFINE", "ALTER", "DELETE", "DISPLAY") for kind in ("SUB", "TOPIC", *KINDS)]
PAIRS += [("DISPLAY", other) for other in OTHERS]
PAIRS += [("SET", "AUTHREC"), ("DELETE", "AUTHREC"), ("CLEAR", "QLOCAL"), ("CLEAR", "TOPICSTR"), ("START", "CHANNEL")]
EXTRA = ["REPLACE", "LIKE", "TYPE", "PURGE", "ALL", "SUBID", "CLRTYPE", "SUBTYPE", "DISTYPE", "PROFILE", "OBJTYPE"]
EXTRA += ["GROUP", "PRINCIPAL", "AUTHADD", "AUTHRMV", "AUTHREC", "RETAINED", "CURDEPTH", "NOKEYWORD", "ALTDATE"]
WORDS = [
    "A",
    "B",
    "T",
    "YES",
    "NO",
    "ENABLED",
    "DISABLED",
    "BLOCK",
    "QUEUE",
    "TOPIC",
    "ALL",
    "ADMIN",
    "RETAINED",
    "PUB",
]
WORDS += ["5", "-1", "0", "999999999999", "*", "A*", "UNLIMITED", "ASPARENT", "CHAR", "COMPAT", "SYSTEM.BASE.TOPIC"]
STRINGS = ["", " ", "a", "a/#", "a/+", "a//", "#", "a=1", "a=", "00", "AB" * 24, "0" * 48, "it''s", "%", "*%", "x" * 70]

NAMES = ["A", "B", "T", "NEW", "'a b'"]
THERE = {"TOPIC": "T", "QLOCAL": "A", "NAMELIST": "A", "SUB": "A", "TPSTATUS": "'a'", "QUEUE": "A*"}
REQUIRED = {"TOPIC": ["TOPICSTR"], "QALIAS": ["TARGET"], "SUB": ["TOPICSTR", "DEST"]}

_values = st.one_of(st.sampled_from(WORDS), st.sampled_from(STRINGS).map(lambda text: f"'{text}'"))
_keywords = sorted({a.keyword for kind in KINDS.values() for a in kind.attributes} | set(EXTRA))
_attributes = {a.keyword: a for kind in KINDS.values() for a in kind.attributes}


def _plausible(keyword: str) -> st.SearchStrategy[str]:
    """A value that the keyword is likely to take."""
    attribute = _attributes.get(keyword)
    match attribute.kind if attribute is not None else None:
        case Choice(meanings):
            return st.sampled_from(sorted(meanings))
        case Number(low, high, meanings):
            return st.sampled_from([str(low), str(high), *meanings])
        case Name() | Names():
            return st.sampled_from(NAMES)
        case _:
            return _values


@st.composite
def commands(draw: st.DrawFn) -> str:
    """A command whose grammar is right and whose words are well known, in any combination."""
    verb, target = draw(st.sampled_from(PAIRS))
    own = [attribute.keyword for attribute in KINDS[target].attributes] if target in KINDS else _keywords
    parts = []
    if target not in ("QMGR", "PUBSUB", "AUTHREC") or not draw(st.integers(0, 5)):
        there = THERE.get(target, "NEW") if verb != "DEFINE" else "NEW"
        parts.append(f"({draw(st.one_of(st.just(there), st.sampled_from(NAMES), _values))})")
    keywords = draw(st.lists(st.sampled_from(own if draw(st.booleans()) else own + EXTRA), max_size=3))
    if verb == "DEFINE" and draw(st.integers(0, 5)):
        keywords += REQUIRED.get(target, [])
    elif verb == "DELETE" and draw(st.booleans()):
        keywords = []
    for keyword in dict.fromkeys(keywords):
        parts.append(" " + keyword)
        if draw(st.integers(0, 5)) and verb != "DISPLAY":
            parts.append(f"({draw(st.one_of(_plausible(keyword), _plausible(keyword), _values))})")
    if verb == "DISPLAY" and draw(st.booleans()):
        operator = draw(st.sampled_from(["LT", "GT", "EQ", "NE", "LE", "GE", "LK", "NL", "CT", "EX", "CTG", "EXG"]))
        parts.append(f" WHERE({draw(st.sampled_from(own))} {operator} {draw(_values)})")
    return f"{verb} {target}{''.join(parts)}"


class Shelf:
    counters: Counting | None = None

    def __init__(self) -> None:
        self.messages = {"A": 2, "B": 1}

    def depth(self, name: str) -> int:
        return self.messages.get(name, 0)

    def clear(self, name: str) -> int:
        return self.messages.pop(name, 0)

    def has_uncommitted(self, name: str) -> bool:
        return False

    def in_doubt(self) -> tuple[()]:
        return ()


def _desk() -> Administration:
    objects = Objects(QueueManager("QM1"))
    administration = Administration.of(objects, TopicSpace(objects.topics), NOW, Shelf())
    setup = "DEFINE QL(A)\nDEFINE QL(B)\nDEFINE TOPIC(T) TOPICSTR('a')\nDEFINE NL(A)\n"
    setup += "DEFINE SUB(A) TOPICSTR('a/+') DEST(A)\nSET AUTHREC PROFILE(T) OBJTYPE(TOPIC) GROUP('a') AUTHADD(PUB)"
    for statement in parse(setup):
        assert execute(statement, administration).ok
    return administration


def _state(administration: Administration) -> dict[object, object]:
    """Everything that there is, as the store keys it."""
    objects = administration.objects
    definitions = [
        objects.qmgr,
        *objects.queues.values(),
        *objects.aliases.values(),
        *objects.namelists.values(),
        *objects.topics,
        *objects.authorities.values(),
    ]
    state: dict[object, object] = {(kind_of(d), d.name): d for d in definitions}
    return state | {s.sub_id: s for s in administration.topic_space.subscriptions()}


def _kept(state: dict[object, object], answer: Answer) -> dict[object, object]:
    """*state* as a store has it after saving the answer's changes."""
    after = dict(state)
    for change in answer.changes:
        match change:
            case DefinitionStored(definition):
                after[kind_of(definition), definition.name] = definition
            case DefinitionDeleted(kind, name):
                del after[kind, name]
            case SubscriptionAdded(subscription) | SubscriptionAltered(after=subscription):
                after[subscription.sub_id] = subscription
            case SubscriptionRemoved(subscription):
                del after[subscription.sub_id]
            case RetainedCleared():
                pass
            case _:
                raise AssertionError(change)
    return after


@given(st.lists(commands(), min_size=1, max_size=4))
def test_any_command_is_answered_and_its_changes_are_all_there_is(script: list[str]) -> None:
    administration = _desk()
    shelf = administration.queues
    assert isinstance(shelf, Shelf)
    for command in script:
        before, messages = _state(administration), dict(shelf.messages)
        [statement] = parse(command)
        answer = execute(statement, administration)
        assert _state(administration) == _kept(before, answer)
        assert len(answer.lines) >= 1
        assert answer.as_json()["ok"] == answer.ok
        if not answer.ok:
            assert answer.changes == ()
            assert shelf.messages == messages
        if statement.command is not None and statement.command.verb == "DISPLAY":
            assert answer.changes == ()
            assert answer.ok == bool(answer.objects)


def test_the_strategy_reaches_what_succeeds() -> None:
    """The property above would say little if every command were refused."""

    class AllSeenError(Exception):
        """No more examples are needed."""

    # Commands that change something; which of the others are met in so many examples is chance.
    wanted = {(verb, target) for verb in ("DEFINE", "ALTER", "DELETE") for target in ("SUB", "TOPIC")}
    seen: set[tuple[str, str]] = set()

    @settings(max_examples=800, database=None, derandomize=True, phases=[Phase.generate], print_blob=False)
    @given(commands())
    def collect(command: str) -> None:
        if wanted <= seen:
            raise AllSeenError
        [statement] = parse(command)
        answer = execute(statement, _desk())
        if answer.ok and statement.command is not None:
            seen.add((statement.command.verb, statement.command.target))

    with pytest.raises(AllSeenError):
        collect()


def test_subscriptions_are_told_apart_in_the_state() -> None:
    subscriptions = [value for value in _state(_desk()).values() if isinstance(value, Subscription)]
    assert [s.name for s in subscriptions] == ["A"]
