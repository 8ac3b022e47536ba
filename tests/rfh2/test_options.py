"""Option words and their bits (wire formats 2.4)."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from rfh2.options import DELETE, PUBLICATION, REGISTRATION, Options, OptionSet

SETS = [
    pytest.param(REGISTRATION, id="MQREGO"),
    pytest.param(PUBLICATION, id="MQPUBO"),
    pytest.param(DELETE, id="MQDELO"),
]


@pytest.mark.parametrize(
    ("options", "values", "words", "unknown"),
    [
        pytest.param(REGISTRATION, ["Anon", "Local"], ("Anon", "Local"), (), id="2.4-one-word-to-a-tag"),
        pytest.param(REGISTRATION, ["33"], ("CorrelAsId", "PubOnReqOnly"), (), id="2.4-33"),
        pytest.param(REGISTRATION, ["0"], ("None",), (), id="0-is-none"),
        pytest.param(REGISTRATION, ["None"], ("None",), (), id="none"),
        pytest.param(REGISTRATION, ["000000002"], ("Anon",), (), id="leading-zeros"),
        pytest.param(REGISTRATION, ["Pers", "NonPers"], ("Pers", "NonPers"), (), id="order-stays"),
        pytest.param(REGISTRATION, ["Local", "32", "Anon"], ("Local", "PubOnReqOnly", "Anon"), (), id="2.4-mixture"),
        pytest.param(REGISTRATION, ["Anon  Local"], ("Anon", "Local"), (), id="several-words-in-a-value"),
        pytest.param(REGISTRATION, ["4194308"], ("Local",), ("4194304",), id="unknown-bit"),
        pytest.param(REGISTRATION, ["local", "RetainPub"], (), ("local", "RetainPub"), id="not-of-this-set"),
        pytest.param(REGISTRATION, ["-1", "+2", "0x4"], (), ("-1", "+2", "0x4"), id="decimals-only"),
        pytest.param(REGISTRATION, ["", " "], (), ("", " "), id="empty"),
        pytest.param(REGISTRATION, ["9" * 5000], (), ("9" * 5000,), id="endless-number"),
        pytest.param(REGISTRATION, ["٢"], (), ("٢",), id="other-digits"),
        pytest.param(REGISTRATION, [], (), (), id="nothing"),
        pytest.param(PUBLICATION, ["12"], ("OtherSubsOnly", "NoReg"), (), id="2.4-same-bits-in-another-set"),
        pytest.param(DELETE, ["4", "2"], ("Local",), ("2",), id="2.4-delete"),
    ],
)
def test_read(options: OptionSet, values: list[str], words: tuple[str, ...], unknown: tuple[str, ...]) -> None:
    assert options.read(values) == Options(words, unknown)


@pytest.mark.parametrize(
    ("options", "word", "constant", "bit"),
    [
        (REGISTRATION, "Local", "MQREGO_LOCAL", 4),
        (PUBLICATION, "OtherSubsOnly", "MQPUBO_OTHER_SUBSCRIBERS_ONLY", 4),
        (REGISTRATION, "DirectReq", "MQREGO_DIRECT_REQUESTS", 8),
        (PUBLICATION, "NoReg", "MQPUBO_NO_REGISTRATION", 8),
        (REGISTRATION, "PersAsQueue", "MQREGO_PERSISTENT_AS_Q", 8192),
        (REGISTRATION, "Locked", "MQREGO_LOCKED", 2097152),
        (DELETE, "Local", "MQDELO_LOCAL", 4),
        (DELETE, "None", "MQDELO_NONE", 0),
    ],
)
def test_constants(options: OptionSet, word: str, constant: str, bit: int) -> None:
    assert (options.constant(word), options.mask([word])) == (constant, bit)


@pytest.mark.parametrize("options", SETS)
def test_the_bits_of_a_set_are_single_and_distinct(options: OptionSet) -> None:
    bits = [bit for bit, _ in options.bits.values()]
    assert bits == sorted(set(bits))
    assert all(bit & (bit - 1) == 0 for bit in bits)


@pytest.mark.parametrize("options", SETS)
@given(mask=st.integers(0, 2**31 - 1))
def test_no_bit_of_a_mask_is_lost(options: OptionSet, mask: int) -> None:
    found = options.of_mask(mask)
    assert options.mask(found.words) | sum(map(int, found.unknown)) == mask
    assert options.read([str(mask)]) == found


def test_a_negative_mask_is_unknown_as_it_is() -> None:
    assert REGISTRATION.of_mask(-2) == Options((), ("-2",))
