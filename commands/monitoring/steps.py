"""The steps of one command that was measured."""

from __future__ import annotations

from typing import Final, NamedTuple

DECODE: Final = "decode"
MATCH: Final = "match"
DELIVER: Final = "deliver"
STAGES: Final = (DECODE, MATCH, DELIVER)


class Step(NamedTuple):
    """One step. begin_s, end_s: of ``time.perf_counter``."""

    stage: str
    begin_s: float
    end_s: float


Steps = tuple[Step, Step, Step]
"""Those of STAGES, in this order; the first begins when the command was got."""
