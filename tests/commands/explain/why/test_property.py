"""In generated captures: delivered is what replay puts, and no reason is false.

A reason is checked without ``why``: the capture is changed in what the reason blames, and then the publication reaches
the subscriber. ``CURES`` has the change for each reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given, strategies as st

from commands.broker.objects import DEFAULT_STREAM
from commands.broker.puts import Put, PutKind
from commands.explain.build import CommandSpec, command_message
from commands.explain.why import Reason, Verdict
from commands.replay import LocalReplay
from commands.replay.network.why import LocalWhy
from rfh2.captured import CapturedMessage
from rfh2.mqmd import Mqmd
from streams.patterns import escape_char_pattern

START: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
OTHER_STREAM: Final = "OTHER.STREAM"
BLOCK: Final = "DEFINE TOPIC(BLOCK) TOPICSTR('a/b') WILDCARD(BLOCK)\n"
DISABLED: Final = "DEFINE TOPIC(DISABLED) TOPICSTR('a/c') PUB(DISABLED)\n"
PLACES: Final = """\
DEFINE QLOCAL(OTHER.STREAM)
DEFINE TOPIC(OTHER.STREAM) TOPICSTR('other')
ALTER NAMELIST(SYSTEM.QPUBSUB.QUEUE.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.STREAM, OTHER.STREAM)
DEFINE TOPIC(POINT) TOPICSTR('point')
ALTER NAMELIST(SYSTEM.QPUBSUB.SUBPOINT.NAMELIST) NAMES(SYSTEM.BROKER.DEFAULT.SUBPOINT, POINT)
"""


@dataclass(frozen=True)
class Step:
    """One command of a program. number: of the subscriber's queue. lasts: whether it has no Expiry."""

    word: str
    topic: str
    number: int = 0
    options: tuple[str, ...] = ()
    rfh1: bool = False
    selector: str | None = None
    sub_point: str | None = None
    stream: bool = False
    lasts: bool = True
    colour: str | None = None
    names_queue: bool = False

    def message(self, seq: int) -> CapturedMessage:
        """The command as it is captured."""
        tags = {"Filter": self.selector, "SubPoint": self.sub_point}
        publishes = self.word == "Publish"
        if self.rfh1:
            tags = {"StreamName": OTHER_STREAM if self.stream and not publishes else None}
        queue = (OTHER_STREAM if self.stream else DEFAULT_STREAM) if publishes else ""
        if self.names_queue and not publishes:
            tags["QName"] = f"Q{self.number}"
        mqmd = Mqmd(
            reply_to_q=f"Q{self.number}",
            expiry=-1 if self.lasts else 60,
            user_identifier="app",
            correl_id=bytes([self.number] * 24),
        )
        usr = {} if self.colour is None or self.rfh1 else {"Colour": self.colour}
        made = command_message(
            CommandSpec(self.word, (self.topic,), self.options, tags, usr=usr, rfh1=self.rfh1, mqmd=mqmd, queue=queue)
        )
        return made.model_copy(update={"seq": seq, "time": START + timedelta(seconds=seq), "user": "app"})


@dataclass(frozen=True)
class World:
    """A setup and the steps of its programs."""

    steps: tuple[Step, ...]
    semantics: str = "v7"
    blocks: bool = False
    disables: bool = False

    @property
    def setup(self) -> str:
        return PLACES + (BLOCK if self.blocks else "") + (DISABLED if self.disables else "")

    @property
    def messages(self) -> list[CapturedMessage]:
        return [step.message(seq) for seq, step in enumerate(self.steps, 1)]

    def puts(self) -> list[Put]:
        replayed = LocalReplay(self.setup, self.semantics).puts(self.messages)
        return [put for put in replayed if put.kind is PutKind.PUBLICATION]

    def answers(self) -> list[Verdict]:
        return list(LocalWhy(self.setup, self.semantics).answers(self.messages))

    def with_step(self, seq: int, step: Step | None) -> World:
        """With another step; None for one that does nothing, so that the numbers stay."""
        there = step or Step("Publish", "nothing/at/all", 99)
        return replace(self, steps=(*self.steps[: seq - 1], there, *self.steps[seq:]))

    def reaches(self, verdict: Verdict) -> bool:
        return any(put.seq == verdict.seq and put.queue == verdict.queue for put in self.puts())


# Few topics, so that many subscriptions select them or nearly do; what comes first is drawn most often.
PUBLISHED = st.sampled_from(["a/b", "a/c", "a/b", "A/b", "a/b/c", "a/ b", "/a/b", "b"])
TOPICS = st.sampled_from(
    ["a/b", "a/#", "a/*", "a/c", "A/B", "a/b ", "a//b", "a/+", "#", "*", "a/B/?", "/a/b", "b/", "B"]
)
NUMBERS = st.integers(1, 5)
POINTS = st.sampled_from([None, None, None, None, None, "point"])

registrations = st.builds(
    Step,
    st.just("RegSub"),
    TOPICS,
    NUMBERS,
    st.sampled_from([(), (), (), ("PubOnReqOnly",), ("NewPubsOnly",), ("Local",)]),
    st.booleans(),
    st.sampled_from([None, None, None, None, "Colour = 'red'", "Colour = 'red'", "Colour ="]),
    POINTS,
    st.sampled_from([False, False, False, True]),
    st.sampled_from([True, True, False]),
)
publications = st.builds(
    Step,
    st.just("Publish"),
    PUBLISHED,
    NUMBERS,
    st.sampled_from([(), (), (), ("RetainPub",), ("RetainPub",), ("OtherSubsOnly",), ("Local",), ("Bad",)]),
    st.booleans(),
    st.none(),
    POINTS,
    st.sampled_from([False, False, False, True]),
    st.sampled_from([True, True, False]),
    st.sampled_from([None, "red", "blue"]),
)
others = st.builds(Step, st.sampled_from(["DeregSub", "ReqUpdate"]), TOPICS, NUMBERS, rfh1=st.booleans())


@st.composite
def worlds(draw: st.DrawFn) -> World:
    before = draw(st.lists(publications, max_size=2))
    steps = before + draw(st.lists(registrations, min_size=1, max_size=6))
    steps += draw(st.lists(publications | publications | publications | registrations | others, min_size=2, max_size=9))
    # Most commands of subscribers that name a topic should find what was registered.
    there = [step for step in steps if step.word == "RegSub"]
    if there:
        for word in draw(st.lists(st.sampled_from(["DeregSub", "ReqUpdate"]), max_size=3)):
            about = draw(st.sampled_from(there))
            at = draw(st.integers(0, len(steps)))
            steps.insert(at, replace(about, word=word, options=()))
    return World(tuple(steps), draw(st.sampled_from(["v7", "v7", "v6"])), draw(st.booleans()), draw(st.booleans()))


def delivered_is_what_replay_puts(world: World) -> None:
    said = Counter((v.seq, v.topic, v.queue, v.sub_name) for v in world.answers() if v.delivered)
    put = Counter((put.seq, put.topic, put.queue, put.sub_name) for put in world.puts())
    assert said == put


Cure = Callable[[World, Verdict, int], World]
"""What changes so that the publication reaches the subscriber: the world, the answer, the seq of the RegSub."""


def _step(world: World, seq: int) -> Step:
    return world.steps[seq - 1]


def _register(**changes: object) -> Cure:
    """Each RegSub of the subscriber to this topic is changed: a later one would undo it."""

    def cure(world: World, _: Verdict, seq: int) -> World:
        of = ("RegSub", _step(world, seq).number, _step(world, seq).topic)
        steps = (replace(s, **changes) if (s.word, s.number, s.topic) == of else s for s in world.steps)  # type: ignore[arg-type]
        return replace(world, steps=tuple(steps))

    return cure


def _written_right(world: World, verdict: Verdict, seq: int) -> World:
    assert verdict.seq is not None
    topic, step = _step(world, verdict.seq).topic, _step(world, seq)
    return world.with_step(seq, replace(step, topic=escape_char_pattern(topic) if step.rfh1 else topic))


def _publish(**changes: object) -> Cure:
    def cure(world: World, verdict: Verdict, _: int) -> World:
        assert verdict.seq is not None
        return world.with_step(verdict.seq, replace(_step(world, verdict.seq), **changes))  # type: ignore[arg-type]

    return cure


def _unfiltered(world: World, _: Verdict, seq: int) -> World:
    """A ReqUpdate and a DeregSub name the Filter too, to find the subscription."""
    of = (_step(world, seq).number, _step(world, seq).topic)
    steps = (replace(s, selector=None) if (s.number, s.topic) == of else s for s in world.steps)
    return replace(world, steps=tuple(steps))


def _everywhere(change: Callable[[Step], Step]) -> Cure:
    """All registrations and publications are changed: what is retained was published by any of them."""
    return lambda world, _verdict, _seq: replace(world, steps=tuple(map(change, world.steps)))


def _where_it_is(world: World, verdict: Verdict, seq: int) -> World:
    """The subscriber's commands about this topic go where the publication is.

    Under version 7 that is its full topic in an MQRFH2. Under version 6 an MQRFH names the stream, or an MQRFH2 the
    subscription point.
    """
    assert verdict.topic is not None
    levels = verdict.topic.split("/")
    place = "/".join(level for level in levels[:2] if level in ("other", "point"))
    of, v7 = _step(world, seq), world.semantics == "v7"
    to_stream = place == "other" and not v7

    def moved(step: Step) -> Step:
        if step.word == "Publish" or (step.number, step.topic) != (of.number, of.topic):
            return step
        topic = step.topic
        if to_stream and not step.rfh1:
            topic = escape_char_pattern(topic).replace("#", "*").replace("+", "*")
        elif step.rfh1 and not to_stream:
            topic = topic.replace("*", "#")
        if v7 and place:
            topic = f"{place}/{topic}"
        point = place if place and not (v7 or to_stream) else None
        selector = None if step.rfh1 else step.selector  # an MQRFH has no Filter
        return replace(step, topic=topic, stream=to_stream, sub_point=point, rfh1=to_stream, selector=selector)

    return replace(world, steps=tuple(map(moved, world.steps)))


def _not_local(step: Step) -> Step:
    return replace(step, options=tuple(option for option in step.options if option != "Local"))


CURES: dict[Reason, Cure] = {
    Reason.CASE: _written_right,
    Reason.BLANK: _written_right,
    Reason.SLASH: _written_right,
    Reason.WILDCARD_SCHEME: _written_right,
    Reason.FILTER: _unfiltered,
    Reason.BLOCKED: lambda world, _verdict, _seq: replace(world, blocks=False),
    Reason.PUBLISH_DISABLED: lambda world, _verdict, _seq: replace(world, disables=False),
    Reason.OWN_PUBLICATION: _publish(options=()),
    Reason.REQUEST_ONLY: _register(options=()),
    Reason.NEW_ONLY: _register(options=()),
    Reason.SCOPE: _everywhere(_not_local),
    Reason.STREAM: _where_it_is,
    Reason.SUB_POINT: _where_it_is,
    Reason.EXPIRED_SUBSCRIPTION: _register(lasts=True),
    Reason.DEREGISTERED: lambda world, verdict, _seq: world.with_step(int(verdict.detail.split()[1]), None),
}


def _registered_by(world: World, verdict: Verdict) -> list[int]:
    """The RegSubs that the subscription of an answer may come from."""
    number = int(verdict.queue.removeprefix("Q"))
    return [seq for seq, s in enumerate(world.steps, 1) if (s.word, s.number) == ("RegSub", number)]


def is_cured(world: World, verdict: Verdict, left: frozenset[Reason] = frozenset(CURES)) -> bool:
    """Whether the publication reaches the subscriber once the reason is gone, or once a second reason is gone too."""
    for seq in _registered_by(world, verdict):
        changed = CURES[verdict.reason](world, verdict, seq)
        if changed.reaches(verdict):
            return True
        second = [v for v in changed.answers() if (v.seq, v.queue) == (verdict.seq, verdict.queue)]
        # A subscription may have been deregistered several times.
        rest = left if verdict.reason is Reason.DEREGISTERED else left - {verdict.reason}
        if any(is_cured(changed, one, rest) for one in second if one.reason in rest):
            return True
    return False


def no_reason_is_false(world: World) -> None:
    puts = {(put.seq, put.topic, put.queue) for put in world.puts()}
    for verdict in world.answers():
        if verdict.delivered or not verdict.queue or "changed the subscription" in verdict.detail:
            continue
        if verdict.reason in CURES and (verdict.seq, verdict.topic, verdict.queue) not in puts:
            assert is_cured(world, verdict), (verdict, verdict.detail)
        if verdict.reason is Reason.NO_MATCH:
            assert verdict.seq is None


@given(worlds())
def test_delivered_is_what_replay_puts(world: World) -> None:
    delivered_is_what_replay_puts(world)


@given(worlds())
def test_no_reason_is_false(world: World) -> None:
    no_reason_is_false(world)
