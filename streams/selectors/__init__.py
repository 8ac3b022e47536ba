"""Selection strings over message properties: parsed once, asked many times (guide 2.4.3, 6.7.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from rfh2.bounded_cache import BoundedCache
from rfh2.errors import CommandError
from streams.selectors.expressions import Lookup, Refusal, Value, filter_error
from streams.selectors.properties import EARLIER_FILTERS, FILTERS, Language, message_properties

__all__ = ["Lookup", "Selector", "Value", "compile_selector", "message_properties", "registered_selector"]


# A selection string, compiled: RegSub's Filter, DEFINE SUB's SELECTOR (guide 2.4.3, 6.7.4).


@dataclass(frozen=True, slots=True)
class Selector:
    """The result of compile_selector. Two are equal where their texts are; unpickling compiles the text again.

    text: the selection string as it was given. names: every property it can ask for, by canonical name.
    matches: says whether a message with these properties is selected, that is, whether the condition is TRUE. It asks
    for properties as it needs them, for one perhaps more than once, and raises nothing but what the asking raises.
    """

    text: str
    names: frozenset[str] = field(compare=False)
    matches: Callable[[Lookup], bool] = field(compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return registered_selector, (self.text,)


_COMPILED_BYTES: Final = 64 << 20
# What a compiled selector takes: at least, and for each character of its text.
_LEAST_BYTES: Final = 1_000
_CHARACTER_BYTES: Final = 72
_COMPILED: Final[BoundedCache[str, Selector]] = BoundedCache(_COMPILED_BYTES)


def compile_selector(text: str) -> Selector:
    """Compile a selection string; the work is linear in its length, and done once for equal texts that are in use.

    text: at most 10240 characters; where it is blank, every message is selected, as if there were no selection string.
    Raises CommandError with MQRCCF_FILTER_ERROR (3150): not a selection string, a filter on the message body, a
    property that cannot be, or a condition that no message can fulfil. Its *why* says at which character (from 1), its
    tags hold the Filter. Guide 2.4.3, 6.7.4.
    """
    selector = _COMPILED.get(text)
    if selector is None:
        selector = _compile(text)
        _COMPILED.keep(text, selector, _LEAST_BYTES + _CHARACTER_BYTES * len(text))
    return selector


def registered_selector(text: str) -> Selector:
    """The same for the filter of a subscription that is there: it may be one that is no longer taken.

    Raises what ``compile_selector`` does for a text that never was a selection string.
    """
    selector = _COMPILED.get(text)
    if selector is not None:
        return selector
    try:
        return compile_selector(text)
    except CommandError:
        return _earlier(text)


@lru_cache(maxsize=256)
def _earlier(text: str) -> Selector:
    return _compile(text, EARLIER_FILTERS)


def _compile(text: str, language: Language = FILTERS) -> Selector:
    if not text.strip():
        return Selector(text, frozenset(), lambda lookup: True)
    # lark and the grammar are slow to load, and most programs have no selection string
    from streams.selectors.compile import compile_condition  # noqa: PLC0415
    from streams.selectors.parse import parse  # noqa: PLC0415

    try:
        condition, names = parse(text, language)
        test = compile_condition(condition)
        if not names and not test(lambda name: None):  # it is a constant
            # MQ's MQRC_SELECTOR_ALWAYS_FALSE
            raise Refusal(1, "no message can meet this condition")
    except Refusal as refusal:
        raise filter_error(text, refusal) from refusal
    return Selector(text, names, test)
