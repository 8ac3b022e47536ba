"""An authority of a generic profile reaches the topic objects of the streams that it covers (guide 7, MIG)."""

from __future__ import annotations

import pytest

from migrate import strmqbrk
from migrate.legacy_state import LegacyAuthority, LegacyState, Source, Stream
from migrate.plan import PlanOptions, outcome_of
from migrate.target import Target
from tests.migrate.legacy_messages import NOW

SOURCE = Source(file="made")
STREAMS = ("CB.FX", "CB.RATES", "NEWS")
CASES = [
    ("two-stars", [("CB.**", "BROWSE")], ["CB.FX SUB", "CB.RATES SUB"], "done"),
    ("one-star", [("CB.*", "PUT")], ["CB.FX PUB", "CB.RATES PUB"], "done"),
    ("one-character", [("CB.F?", "PUT")], ["CB.FX PUB"], "done"),
    ("no-stream", [("APP.**", "PUT")], [], "done"),
    ("most-specific", [("CB.**", "BROWSE"), ("CB.FX", "PUT")], ["CB.FX PUB", "CB.RATES SUB"], "done"),
    ("full", [("NEWS", "PUT")], ["NEWS PUB"], "done"),
    ("everything", [("**", "PUT")], ["CB.FX PUB", "CB.RATES PUB", "NEWS PUB"], "lost"),
    ("default-stream", [("SYSTEM.BROKER.DEFAULT.STREAM", "PUT")], [], "lost"),
]


@pytest.mark.parametrize(("given", "granted", "outcome"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_profiles(given: list[tuple[str, str]], granted: list[str], outcome: str) -> None:
    """What would be granted on the root is lost unless a person acts."""
    state = LegacyState(
        qmgr="QM1",
        streams=tuple(Stream(source=SOURCE, name=name) for name in STREAMS),
        authorities=tuple(
            LegacyAuthority(SOURCE, "QUEUE", profile, "GROUP", "risk", (word,)) for profile, word in given
        ),
    )
    plan = strmqbrk.plan(state, Target.fresh("QM1"), PlanOptions(), NOW)
    records = [step.definition for step in plan.definitions if getattr(step.definition, "object_type", "") == "TOPIC"]
    assert sorted(f"{each.profile} {','.join(each.authorities)}" for each in records) == granted  # type: ignore[union-attr]
    assert ("lost" if outcome_of(plan) == "lost" else "done") == outcome
