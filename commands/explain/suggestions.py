"""What a person may have meant by a word that does not exist: the nearest that does, whatever its case."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from commands.explain.command_text import TagAndText
from commands.headers.property_names import BY_MQPS
from commands.headers.psc_commands import ALL_TAGS
from rfh2.mqps import COMMANDS, MQPS_COMMAND
from rfh2.options import DELETE, PUBLICATION, REGISTRATION

_NEAR: Final = 0.65
_MQPS: Final = "MQPS"
_OPTIONS: Final = {"RegOpt": REGISTRATION.bits, "PubOpt": PUBLICATION.bits, "DelOpt": DELETE.bits}


def suggestion(code: str, pair: TagAndText) -> str | None:
    """The word that *pair*, for which a problem of *code* was found, may have meant; None where nothing is near."""
    if code == "unknown-option" and pair.tag in _OPTIONS:
        known: Iterable[str] = _OPTIONS[pair.tag]
        words = [word for word in pair.text.split() if word not in known]
        return _nearest(words[0], known) if words else None
    if code == "unknown-command":
        return _nearest(pair.text, COMMANDS)
    if code == "unknown-tag" and not pair.number:
        older = pair.tag.upper().startswith(_MQPS)
        return _nearest(pair.tag, (MQPS_COMMAND, *BY_MQPS) if older else ALL_TAGS)
    return None


def _nearest(word: str, known: Iterable[str]) -> str | None:
    by_lower = {each.lower(): each for each in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=_NEAR)
    return by_lower[found[0]] if found and by_lower[found[0]] != word else None
