"""Wildcards of subscriptions from WebSphere MQ version 6: character-based, with any header.

Guide 2.5.1.1: "Subscriptions that were created before WebSphere MQ Version 7.0 always use the character based wildcard
scheme." The message brokers had the topic-based scheme for MQRFH2 (guide 8.1, Wildcard subscriptions), so only
strmqbrk uses this.
"""

from __future__ import annotations

from dataclasses import replace

from migrate.draft import Draft
from migrate.ledger import Severity
from migrate.legacy_state import LegacyState
from streams.patterns import is_read_alike
from streams.subscriptions import PublicationFormat, WildcardScheme


def by_characters(state: LegacyState) -> LegacyState:
    """*state* with the wildcards that version 6 had in every subscription; that of a later version as it is."""
    if state.is_modern or all(subscription.scheme is WildcardScheme.CHAR for subscription in state.subscriptions):
        return state
    changed = tuple(replace(s, scheme=WildcardScheme.CHAR) for s in state.subscriptions)
    return state.model_copy(update={"subscriptions": changed})


def note_schemes(draft: Draft, sources: LegacyState) -> None:
    """Report where a source has another scheme, and where a program gets another one when it registers again.

    sources: the state as the sources have it.
    """
    if sources.is_modern:
        return
    for number, legacy in enumerate(sources.subscriptions, 1):
        key = (legacy.kind, number)
        if is_read_alike(legacy.topic):
            continue
        if legacy.scheme is WildcardScheme.TOPIC:
            why = "its source has topic-based wildcards; version 6 knew character-based ones alone (guide 2.5.1.1)"
            draft.ledger.change(key, why, "D14", severity=Severity.WARNING)
        if legacy.format is PublicationFormat.RFH2 and "format" not in legacy.unknown:
            why = (
                "it keeps the wildcards * and ? that version 6 had, where # and + are ordinary characters; a program "
                "that deregisters it and registers it again with MQRFH2 gets the topic-based # and + (guide 2.5.1.1)"
            )
            draft.ledger.note(key, why, "D14", severity=Severity.WARNING)
