"""LIKE patterns as regular expressions that never backtrack far (guide 2.4.3).

Between two ``%`` stands a run of fixed length, and the leftmost place where it fits is as good as any. So each run but
the last is searched for once, in an atomic group that is never tried again: ``'a%b%c'`` becomes ``a(?>.*?b).*c``, and a
match costs at most (length of the value) x (length of the pattern), where ``a.*b.*c`` could cost the value's length to
the power of the number of ``%``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from streams.selectors.errors import Refusal


@lru_cache(maxsize=1024)
def like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    """What the whole value has to match (``fullmatch``). The escape was checked by check_escapes."""
    runs = [""]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            runs[-1] += re.escape(next(characters))
        elif character == "%":
            runs.append("")
        else:
            runs[-1] += "." if character == "_" else re.escape(character)
    first, *middle = runs
    if not middle:
        return re.compile(first, re.DOTALL)
    last = middle.pop()
    searched = "".join(f"(?>.*?{run})" for run in middle if run)
    return re.compile(f"{first}{searched}.*{last}", re.DOTALL)


def check_escapes(pattern: str, escape: str | None, at: int) -> None:
    """Raise Refusal where the escape character precedes anything but ``%``, ``_`` or itself, as SQL92 has it.

    at: position of the pattern in the selection string.
    """
    characters = iter(pattern)
    for character in characters:
        if character == escape and next(characters, "") not in ("%", "_", escape):
            raise Refusal(at, f"in the pattern the escape character {escape} has to be followed by %, _ or itself")
