"""Two agents of Managed File Transfer on a coordination queue manager (``fixtures/managed-file-transfer``).

Made by hand from IBM's published schemas and from what is known of agents: an MQRFH of version 1, RetainPub for what
describes an agent, its monitors, schedules and templates, nothing retained for transfers and logs. One agent is on
Linux, one on z/OS and writes in EBCDIC. A message of the first is cut off, as one is that was too long for a channel.
"""

from __future__ import annotations

from pathlib import Path

from rfh2.captured import CapturedMessage

FIXTURE = Path(__file__).parents[2] / "fixtures" / "managed-file-transfer"
SETUP = FIXTURE / "coordination.mqsc"
STREAM = "SYSTEM.FTE"
QMGR = "COORD"
FIRST = "414d5120515047202020202020202020a1b2c36920001a01"
"""The identifier of the first transfer."""


def capture() -> list[CapturedMessage]:
    """The whole scenario."""
    lines = (FIXTURE / "capture.jsonl").read_text().splitlines()
    return [CapturedMessage.model_validate_json(line) for line in lines]
