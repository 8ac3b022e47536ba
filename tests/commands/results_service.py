"""The football results service of IBM's slides, as a capture (``fixtures/results-service``).

Two match simulators publish events; the results service subscribes to them, keeps the latest scores as retained
publications, and, started again after a crash, asks for them with ReqUpdate; a scoreboard follows the scores. The
programs differ as real ones do: one simulator is big-endian, one pads its folders with nulls and leaves rubbish behind
its names.
"""

from __future__ import annotations

import json
from pathlib import Path

from rfh2.captured import CapturedMessage

FIXTURE = Path(__file__).parents[2] / "fixtures" / "results-service"
EVENT = "Sport/Soccer/Event"
SCORES = "Sport/Soccer/State/LatestScore"


def capture() -> list[CapturedMessage]:
    """The whole scenario."""
    lines = (FIXTURE / "capture.jsonl").read_text().splitlines()
    return [CapturedMessage.model_validate_json(line) for line in lines]


def as_lines(messages: list[CapturedMessage]) -> str:
    """JSON Lines."""
    return "".join(json.dumps(json.loads(m.model_dump_json())) + "\n" for m in messages)
