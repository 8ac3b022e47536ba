"""Registration options as a subscription keeps them, and as words; the words are what items hold."""

from __future__ import annotations

from functools import lru_cache

from commands.broker import subscription_attributes
from commands.broker.subscription_attributes import words_of
from commands.model import RegOpt
from streams.subscriptions import SubscriptionOptions


def options_of(options: SubscriptionOptions, correl_as_id: bool) -> tuple[str, ...]:
    """The words of *options*, CorrelAsId first where it was given; PersAsPub, the default, is left out."""
    first = [RegOpt.CORREL_AS_ID.value] if correl_as_id else []
    return (*first, *words_of(options))


@lru_cache(maxsize=4096)
def kept_options(words: tuple[str, ...]) -> SubscriptionOptions:
    """What a subscription keeps of registration options."""
    return subscription_attributes.options_of(words)
