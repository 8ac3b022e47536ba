"""Generic profiles: IBM's examples of what each wildcard stands for, and of which profile is the most specific."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby, pairwise

import pytest
from hypothesis import example, given, strategies as st

from commands.broker.authority import Profile, is_generic_profile, parse_profile


def _profile(text: str) -> Profile:
    profile = parse_profile(text)
    assert profile is not None
    return profile


# (id, profile, names that it stands for, names that it does not stand for)
CASES = [
    ("one-character", "ABC.?EF", ["ABC.DEF", "ABC.CEF", "ABC.BEF"], ["ABC.EF", "ABC.DDEF", "ABC..EF.", "ABCDEF"]),
    ("one-character-of-two", "AB.?D", ["AB.CD", "AB.ED", "AB.FD"], ["AB.D", "AB.CCD", "AB..D"]),
    ("one-character-is-no-dot", "AB?CD", ["ABxCD"], ["AB.CD"]),
    ("one-qualifier", "ABC.*.JKL", ["ABC.DEF.JKL", "ABC.GHI.JKL"], ["ABC.JKL", "ABC.DEF.GHI.JKL"]),
    (
        "part-of-a-qualifier",
        "ABC.DE*.JKL",
        ["ABC.DE.JKL", "ABC.DEF.JKL", "ABC.DEGH.JKL"],
        ["ABC.D.JKL", "ABC.DE.F.JKL"],
    ),
    ("part-within-a-qualifier", "A*F.G", ["AF.G", "ABCDEF.G"], ["A.F.G", "ABF"]),
    ("first-qualifier", "*.ABC", ["X.ABC"], ["ABC", "X.Y.ABC"]),
    ("last-qualifier", "AB.*", ["AB.CD", "AB.C"], ["AB", "AB.C.D"]),
    ("one-qualifier-alone", "*", ["ABC"], ["ABC.DEF"]),
    ("every-name", "**", ["ABC", "ABC.DEF", "ABC.DEF.GHI"], []),
    ("ends-with-any", "ABC.**", ["ABC", "ABC.DEF", "ABC.DEF.GHI"], ["ABCD", "AB", "X.ABC"]),
    ("begins-with-any", "**.ABC", ["ABC", "X.ABC", "X.Y.ABC"], ["XABC", "ABC.X"]),
    ("any-in-the-middle", "ABC.**.XYZ", ["ABC.XYZ", "ABC.DEF.XYZ", "ABC.DEF.GHI.XYZ"], ["ABC", "XYZ", "ABCXYZ"]),
    ("any-does-not-overlap", "A.B.**.B.A", ["A.B.B.A"], ["A.B.A"]),
    ("any-and-one", "ABC.*.**", ["ABC.D", "ABC.D.E"], ["ABC"]),
    ("full", "ABC.DEF", ["ABC.DEF"], ["ABC.DEG", "ABC", "abc.def"]),
    ("brackets-and-others-are-ordinary", "A[BC].%/_", ["A[BC].%/_"], ["AB.%/_", "A[BC].x/_"]),
]


@pytest.mark.rule("SEC-4")
@pytest.mark.parametrize(("text", "names", "others"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_a_profile_stands_for(text: str, names: list[str], others: list[str]) -> None:
    profile = _profile(text)
    assert [name for name in names + others if profile.fits(name)] == names
    assert is_generic_profile(text) is ("*" in text or "?" in text)


@pytest.mark.parametrize("text", ["**.**", "A.**.B.**", "A**", "**A", "A.B**.C", "***", "A.***"])
def test_two_asterisks_stand_once_and_as_a_whole_qualifier(text: str) -> None:
    assert parse_profile(text) is None


# (id, a name, profiles that fit it, the most specific first)
SPECIFIC = [
    ("ibms-example", "AB.CD", ["AB.C*", "AB.*"]),
    ("order-of-wildcards", "AB.C", ["AB.C", "AB.?", "AB.*", "AB.**", "**"]),
    ("where-they-first-differ", "AB.CD.EF", ["AB.CD.*", "AB.?D.EF", "AB.*.EF", "AB.**.EF", "*.CD.EF", "**.EF"]),
    ("what-follows-the-first-wildcard", "AB.CD", ["A*.CD", "A*.C*", "A*.*", "A*.**"]),
    ("a-dot-is-no-wildcard", "A", ["A", "A.**", "A*"]),
    ("no-more-is-more-than-a-wildcard", "AB", ["AB", "AB.**", "AB*", "A?", "A?*", "A*B", "A*"]),
    ("no-more-is-more-than-any", "AB.C", ["AB.?", "AB.?.**", "AB.*", "AB.*.**", "AB.**"]),
]


@pytest.mark.rule("SEC-4")
@pytest.mark.parametrize(("name", "profiles"), [case[1:] for case in SPECIFIC], ids=[case[0] for case in SPECIFIC])
def test_which_profile_is_the_most_specific(name: str, profiles: list[str]) -> None:
    assert all(_profile(text).fits(name) for text in profiles)
    for more, less in pairwise(profiles):
        assert _profile(more).specificity < _profile(less).specificity, (more, less)


PARTS = st.sampled_from(["A", "B", "*", "?", "AB", "A*", "*B", "?A*", "A?B", "", "**"])
PROFILES = st.lists(PARTS, min_size=1, max_size=5).map(".".join).filter(lambda text: text.count("**") < 2)


@st.composite
def profiles_and_names(draw: st.DrawFn) -> tuple[str, str]:
    """A profile, and a name made of it, so that it fits or nearly does."""
    text = draw(PROFILES)
    stands_for: dict[str, Callable[[], str]] = {
        "**": lambda: draw(st.sampled_from(["A", "B.A", "", "."])),
        "*": lambda: draw(st.sampled_from(["", "A", "BA", "."])),
        "?": lambda: draw(st.sampled_from(["A", "B", "", "."])),
    }
    name = "".join(stands_for.get(piece, lambda piece=piece: piece)() for piece in re.split(r"(\*\*|\*|\?)", text))
    if draw(st.booleans()):
        name = name.replace("..", ".").strip(".")
    return text, name


def _regex(text: str) -> re.Pattern[str]:
    """The profile as a regular expression, from the words of the rules and not by way of qualifiers."""
    if text == "**":
        return re.compile(".*")
    marked = re.escape(text).replace(r"\.\*\*\.", "<mid>").replace(r"\*\*\.", "<begin>").replace(r"\.\*\*", "<end>")
    for mark, expression in [
        ("<mid>", r"\.(?:[^.]*\.)*"),
        ("<begin>", r"(?:[^.]*\.)*"),
        ("<end>", r"(?:\.[^.]*)*"),
        (r"\*", "[^.]*"),
        (r"\?", "[^.]"),
    ]:
        marked = marked.replace(mark, expression)
    return re.compile(marked)


@given(profiles_and_names())
@example(("A.**", "A"))
@example(("**.A", "A"))
@example(("A.**.B", "A.B"))
def test_agrees_with_a_regular_expression(both: tuple[str, str]) -> None:
    text, name = both
    assert _profile(text).fits(name) is (_regex(text).fullmatch(name) is not None)


@given(st.lists(PROFILES, max_size=6), st.sampled_from(["A", "AB", "A.B", "A.AB.B", "AB.AB"]))
def test_profiles_as_specific_as_each_other_differ_in_ordinary_characters_alone(texts: list[str], name: str) -> None:
    fitting = sorted((_profile(text).specificity, text) for text in set(texts) if _profile(text).fits(name))
    for _, group in groupby(fitting, key=lambda pair: pair[0]):
        shapes = {re.sub(r"[AB]", "x", text) for _, text in group}
        assert len(shapes) == 1
