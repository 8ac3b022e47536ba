"""Looks up what the tree retains, for the commands that need it before they are processed.

A RegSub waits until the tree has its filter, and gets what the tree retains under it. A ReqUpdate looks this up too if
the tree does not report that a retained publication was cleared (Feature.REQUEST). So does a DeletePub with wildcards,
which may clear more than is known here. The link asks the tree outside the unit of work (``Questions``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from commands.links.engine.adapter import (
    Adapter,
    TreeRefusedError,
    TreeUnreachableError,
    carries,
    how,
)
from commands.links.engine.filter_registry import FilterRegistry
from commands.links.engine.questions import Questions
from commands.links.engine.retained import News, TreeRetained
from commands.links.engine.silence import Silence
from commands.links.engine.subscribing import Subscribing
from commands.qmgr.link_port import Feature, How
from rfh2.errors import StoreError
from streams.operations import AlterSubscription, ClearRetained, Operation, RequestRetained, Subscribe
from streams.patterns import parse_pattern
from streams.port import TopicSpaceView
from streams.subscriptions import Subscription

F = TypeVar("F", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Question(Generic[F]):
    """A question: what the tree retains under a filter. subscribe: also subscribe to the filter."""

    filter: F
    subscribe: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """retained: what the tree retains, None if it gave no answer. has: whether it has the filter."""

    retained: TreeRetained | None = None
    has: bool = False


class Lookups(Generic[F]):
    """Used by the processor's thread alone. filter_of: of a subscription; wake: makes the keeper look for work."""

    def __init__(
        self,
        adapter: Adapter[F, Any],
        registry: FilterRegistry[F],
        filter_of: Callable[[Subscription], F | None],
        silence: Silence,
        news: News,
        wake: Callable[[], None],
    ) -> None:
        self._adapter, self._registry, self._filter_of = adapter, registry, filter_of
        self._silence, self._news, self._wake = silence, news, wake
        self._client = adapter.client()
        self._subscribing = Subscribing(adapter, registry)
        self._questions: Questions[Question[F], Answer] = Questions(self._asked, self._unused)
        self._retains = carries(adapter.capabilities, Feature.RETAIN)
        self._on_request = how(adapter.capabilities, Feature.REQUEST) is How.DOES
        self._clears = carries(adapter.capabilities, Feature.CLEAR)

    def before(self, operation: Operation, space: TopicSpaceView, now: datetime) -> Sequence[Operation]:
        """What the topic space must know first. Raises TreeNotAskedError if the tree must be asked before."""
        question = self._question(operation)
        if question is None:
            return ()
        if question.subscribe and not self._questions.has(question) and not self._registry.needs(question.filter):
            return ()
        answer = self._questions.answer(question)
        if question.subscribe:
            self._registry.answered(question.filter, answer.has)
        if answer.retained is None:
            return ()
        known = space.retained(*self._adapter.pattern_of(question.filter), now)
        return [learnt for _, learnt in self._news.of(answer.retained, known, now)]

    def prefetch(self, operation: Operation) -> None:
        """*operation* comes soon: add its question to the next ones."""
        question = self._question(operation)
        if question is not None and (not question.subscribe or self._registry.needs(question.filter)):
            self._questions.note(question)

    def fetch(self) -> bool:
        """Ask the tree; whether there was anything to ask."""
        return self._questions.ask()

    def forget(self) -> None:
        """The answers may be out of date."""
        self._questions.forget()

    def committed(self) -> None:
        """The unit of work that the answers were for is over."""
        self._questions.committed()

    def answers(self) -> bool:
        """Make a round trip: whether the tree has answered, after all that it had to send. Raises StoreError."""
        return self._client.answers()

    def close(self) -> None:
        """Release the calls."""
        self._client.close()

    def _question(self, operation: Operation) -> Question[F] | None:
        if isinstance(operation, Subscribe | AlterSubscription):
            wanted = self._filter_of(operation.subscription)
            return None if wanted is None else Question(wanted, subscribe=True)
        if isinstance(operation, RequestRetained) and self._on_request:
            wanted = self._filter_of(operation.subscription)
            return None if wanted is None else Question(wanted, subscribe=False)
        if isinstance(operation, ClearRetained) and self._clears:
            # A wildcard may clear more topics than are known here.
            if not parse_pattern(operation.topic_string, operation.wildcard).is_wild:
                return None
            wanted = self._adapter.filter_of(operation.topic_string, operation.wildcard)
            return None if wanted is None else Question(wanted, subscribe=False)
        return None

    def _asked(self, questions: Sequence[Question[F]]) -> dict[Question[F], Answer]:
        answers = dict.fromkeys(questions, Answer())
        at_once = self._adapter.filters_at_once
        for at in range(0, len(questions), at_once):
            answers |= self._answers(questions[at : at + at_once])
        return answers

    def _answers(self, questions: Sequence[Question[F]]) -> dict[Question[F], Answer]:
        """The answers to those that the tree has answered."""
        asked = [each for each in questions if not each.subscribe or self._registry.begin(each.filter)]
        log, name = self._adapter.log, self._adapter.name
        try:
            if self._silence.holds:
                raise TreeUnreachableError(self._adapter.trouble or f"{name} does not answer")
            urgent = [each.filter for each in asked if each.subscribe]
            accepted = set(self._subscribing.subscribe(self._client, urgent, urgent=True))
            asked = [each for each in asked if not each.subscribe or each.filter in accepted]
            return self._looked_up(asked)
        except TreeRefusedError as error:
            log.error("%s: what natives retain there is not known", error)
            if error.lasting:
                for each in asked:
                    if each.subscribe:
                        self._registry.reject(each.filter)
        except StoreError as error:
            if self._silence.begin():
                about = (error, self._adapter.pattern_of(questions[0].filter)[0], len(questions) - 1)
                log.warning("%s; native publications under %.200s and %d more will come once it can be reached", *about)
            self._wake()
        return {}

    def _looked_up(self, asked: Sequence[Question[F]]) -> dict[Question[F], Answer]:
        if not self._retains or not asked:
            return {each: Answer(None, has=True) for each in asked}
        filters = list(dict.fromkeys(each.filter for each in asked))
        there = self._client.retained(filters)
        if len(filters) == 1:
            return {each: Answer(there, has=True) for each in asked}
        under = there.by_filter(self._adapter.matcher(filters))
        return {each: Answer(under.get(each.filter, TreeRetained()), has=True) for each in asked}

    def _unused(self, question: Question[F]) -> None:
        if question.subscribe:
            self._registry.answered(question.filter, False)
            self._wake()
