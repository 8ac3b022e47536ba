"""What a tree is asked before a command can be processed (``commands.links.engine.filter_registry``)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from commands.links.engine.filter_registry import Questions
from commands.qmgr.link_port import TreeNotAskedError


class Tree:
    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.unused: list[str] = []
        self.questions: Questions[str, str] = Questions(self.answers, self.unused.append)

    def answers(self, questions: Sequence[str]) -> dict[str, str]:
        self.asked.append(tuple(questions))
        return {question: question.upper() for question in questions}


@pytest.fixture
def tree() -> Tree:
    return Tree()


def test_a_question_is_asked_outside_and_its_answer_holds_for_one_unit_of_work(tree: Tree) -> None:
    questions = tree.questions
    for _ in range(2):
        with pytest.raises(TreeNotAskedError):
            questions.answer("a")
        assert tree.asked.count(("a",)) == _, "not where a unit of work is open"
        questions.committed()
        assert questions.ask()
        assert questions.answer("a") == "A"
        questions.committed()
        assert not questions.ask()


def test_what_was_foreseen_is_asked_along_and_kept_until_it_is_used(tree: Tree) -> None:
    questions = tree.questions
    with pytest.raises(TreeNotAskedError):
        questions.answer("a")
    questions.note("b")
    questions.committed()
    questions.ask()
    assert tree.asked == [("a", "b")]
    assert questions.answer("a") == "A"
    with pytest.raises(TreeNotAskedError):
        questions.answer("c")
    questions.committed()
    questions.ask()
    assert not questions.has("a"), "used up"
    assert (questions.answer("b"), questions.answer("c")) == ("B", "C")
    questions.committed()
    assert tree.unused == []


def test_answers_that_nobody_wants_are_told_and_dropped(tree: Tree) -> None:
    questions = tree.questions
    questions.note("a")
    questions.ask()
    questions.committed()
    assert (tree.unused, questions.has("a")) == (["a"], False)


def test_what_is_published_meanwhile_makes_answers_void(tree: Tree) -> None:
    questions = tree.questions
    questions.note("a")
    questions.ask()
    questions.forget()
    with pytest.raises(TreeNotAskedError):
        questions.answer("a")
