"""The table of capabilities of a tree that is logs, whose messages have headers: what is the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from commands.qmgr.link_port import Capability, Feature, How

Rows = Mapping[Feature, tuple[How, str]]
_COMMON: Final[Rows] = {
    Feature.ALTER: (How.EMULATED, "a subscription more and one less; options are the bridge's"),
    Feature.RETAIN_EMPTY: (How.DOES, "an empty value; from natives it is a publication that is not retained"),
    Feature.PROPERTIES: (How.DOES, "headers and folder usr; types (dt) become text"),
    Feature.HEADERS: (How.NOT_CARRIED, "folders other than usr, and headers before the MQRFH2"),
    Feature.SELECTORS: (How.EMULATED, "the bridge evaluates them on what comes"),
    Feature.SCOPE: (
        How.EMULATED,
        "local = share: carried as any other; keep: scope QMGR stays here, and gets nothing from there",
    ),
    Feature.OTHER_SUBS_ONLY: (
        How.DOES,
        "the bridge leaves the publisher out; mq.Bridge keeps it from coming back",
    ),
    Feature.IDENTITY: (How.EMULATED, "the bridge's, wherever the tree is"),
}


def capabilities_of(rows: Rows) -> tuple[Capability, ...]:
    """The table, in the order of the features. rows: what is the tree's own."""
    all_rows = {**_COMMON, **rows}
    return tuple(Capability(feature, *all_rows[feature]) for feature in Feature)
