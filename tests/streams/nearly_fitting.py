"""Character-based patterns, each with a topic that is made of it, so that it fits or just does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

FRAGMENTS = ["", "", "ab", "a?", "a?b", "?b", "/?", "/ab", "b?", "%*?", "%?a%%"]
# What is done to a fragment, so that a topic made of them does not fit, or only just does.
CHANGES: list[Callable[[str], str]] = [
    lambda text: text + text,
    lambda text: text[1:],
    lambda text: text[:-1],
    lambda text: "a" + text,
    lambda text: text + "/b",
]


def pattern_and_topic(random: Random) -> tuple[str, str]:
    """A pattern, and a topic made of its own fragments: some left out, changed, or overlapping what is before them.

    Of topics drawn for themselves hardly one in 60,000 is of a kind that a wrong matcher takes for the right one.
    """
    fragments = random.choices(FRAGMENTS, k=random.randint(1, 4))
    kept = random.choice([1, 0.5, 0, 0])
    topic = ""
    for place, fragment in enumerate(fragments):
        is_inner = 0 < place < len(fragments) - 1
        if is_inner and random.random() > kept:
            continue
        letters = re.findall(r"%.|.", fragment)
        text = "".join(random.choice("ab/") if one == "?" else one[-1] for one in letters)
        if random.random() < 0.2:
            text = random.choice(CHANGES)(text)
        overlap = max(n for n in range(len(text) + 1) if topic.endswith(text[:n]))
        topic += text[random.choice([0, overlap]) :]
    return "*".join(fragments) or "*", topic or "a"
