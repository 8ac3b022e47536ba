"""Decimal sums of options in psc folders, and tags of a program's own in Publish: what IBM's JMS clients put."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from commands.headers.psc_commands import RULES, is_user_tag, parse_psc
from commands.model import Command, Publish, PubOpt, RegOpt
from rfh2.constants import MQRCCF_REG_OPTIONS_ERROR
from rfh2.errors import CommandError
from rfh2.options import DELETE, PUBLICATION, REGISTRATION, OptionSet

BITS: dict[str, OptionSet] = {"RegOpt": REGISTRATION, "PubOpt": PUBLICATION, "DelOpt": DELETE}
# With these no combination is refused for what it lacks; DeregAll, LeaveOnly and the like have rules of their own.
BESIDE = {
    "RegSub": (("Topic", "a"), ("SubName", "S"), ("SubIdentity", "me")),
    "DeregSub": (("Topic", "a"), ("SubIdentity", "me")),
    "ReqUpdate": (("Topic", "a"),),
    "Publish": (("Topic", "a"),),
    "DeletePub": (("Topic", "a"),),
}
TAGS = [(word, tag) for word, rules in RULES.items() for tag in rules.options]


def of(word: str, tag: str, *values: str) -> Command | int:
    """The command with these options, or the reason that refuses it."""
    try:
        return parse_psc([("Command", word), *BESIDE[word], *((tag, value) for value in values)])
    except CommandError as error:
        return error.reason


@pytest.mark.parametrize("word", ["Anon", "DeregAll", "DirectReq", "InclStreamName", "LeaveOnly", "Locked"])
def test_6_7_4_words_of_other_commands_and_of_mqrfh_are_refused(word: str) -> None:
    assert of("RegSub", "RegOpt", word) == MQRCCF_REG_OPTIONS_ERROR


def in_order_of_bits(tag: str, words: list[str]) -> list[str]:
    return sorted(words, key=lambda word: BITS[tag].bits[word][0])


@st.composite
def chosen(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """A command, one of its option tags, and some of the words that psc has for it, in the order of their bits."""
    word, tag = draw(st.sampled_from(TAGS))
    words = sorted(set(RULES[word].options[tag].words) & set(BITS[tag].bits))
    return word, tag, in_order_of_bits(tag, draw(st.lists(st.sampled_from(words), unique=True)))


@pytest.mark.rule("CMD-5")
@given(chosen())
def test_a_sum_is_the_words_that_it_stands_for(given_: tuple[str, str, list[str]]) -> None:
    word, tag, words = given_
    # None with others means nothing (guide 6.7.4), and is no bit.
    words = [each for each in words if each != "None"] or ["None"]
    assert of(word, tag, str(BITS[tag].mask(words))) == of(word, tag, *words)


@pytest.mark.rule("CMD-5")
@given(chosen(), st.integers(0, 8))
def test_sums_and_words_may_be_mixed(given_: tuple[str, str, list[str]], at: int) -> None:
    word, tag, words = given_
    words = [each for each in words if each != "None"]
    mixed = [*words[:at], *([str(BITS[tag].mask(words[at:]))] if words[at:] else [])]
    assert of(word, tag, *mixed) == of(word, tag, *words)


@pytest.mark.rule("CMD-5")
@given(st.sampled_from(TAGS), st.integers(0, (1 << 33) - 1))
def test_a_sum_with_a_bit_that_is_no_option_of_the_tag_is_refused(where: tuple[str, str], mask: int) -> None:
    word, tag = where
    taken = RULES[word].options[tag]
    known = sum({BITS[tag].bits[name][0] for name in {*taken.words, *taken.in_sums} & set(BITS[tag].bits)})
    refused = mask & ~known != 0
    assert (of(word, tag, str(mask)) == taken.reason) or not refused


def test_what_a_jms_client_registers_with() -> None:
    """66561 is 65536 FullResp, 1024 NonPers, 1 CorrelAsId."""
    command = of("RegSub", "RegOpt", "66561")
    assert not isinstance(command, int)
    assert command.options == (RegOpt.CORREL_AS_ID, RegOpt.NON_PERS, RegOpt.FULL_RESP)


def test_anon_is_taken_in_a_sum_though_psc_has_no_word_for_it() -> None:
    command = of("RegSub", "RegOpt", "3")
    assert not isinstance(command, int)
    assert command.options == (RegOpt.CORREL_AS_ID, RegOpt.ANON)


def test_zero_is_none_which_resets_options_where_no_tag_keeps_them() -> None:
    command = of("RegSub", "RegOpt", "0")
    assert not isinstance(command, int)
    assert command.options == (RegOpt.NONE,)


def test_the_last_persistence_option_counts_in_a_sum_too() -> None:
    command = of("RegSub", "RegOpt", "Pers", "1024")
    assert not isinstance(command, int)
    assert command.options == (RegOpt.PERS, RegOpt.NON_PERS)


def test_4_is_other_subs_only_among_publication_options_and_local_among_registration_options() -> None:
    command = parse_psc([("Command", "Publish"), ("Topic", "a"), ("PubOpt", "4"), ("RegOpt", "4")])
    assert command.options == (PubOpt.OTHER_SUBS_ONLY, PubOpt.LOCAL)


# Tags of the program's own


def test_publish_keeps_the_tags_that_are_not_ibms() -> None:
    pairs = [("Command", "Publish"), ("UNIQUE_CONNECTION_ID", "414D"), ("Topic", "a"), ("mine", ""), ("mine", "2")]
    assert parse_psc(pairs) == Publish(
        topics=("a",), user_tags=(("UNIQUE_CONNECTION_ID", "414D"), ("mine", ""), ("mine", "2"))
    )


@pytest.mark.parametrize(
    ("tag", "free"),
    [
        ("UNIQUE_CONNECTION_ID", True),
        ("colour", True),
        ("Topic", False),
        ("topic", False),  # tags keep their case: this is a mistake
        ("SubName", False),
        ("Completion", False),
        ("reason", False),
        ("UserId", False),
        ("MQPSTopic", False),
    ],
)
def test_which_tags_are_a_programs_own(tag: str, free: bool) -> None:
    assert is_user_tag(tag) is free


@pytest.mark.parametrize("word", ["RegSub", "DeregSub", "ReqUpdate", "DeletePub"])
def test_other_commands_take_none(word: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_psc([("Command", word), *BESIDE[word], ("UNIQUE_CONNECTION_ID", "414D")])
    assert caught.value.reason == 2337
