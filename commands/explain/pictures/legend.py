"""The signs of what can be at a topic, and what they mean; the same in every picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SIGNS: Final[Mapping[str, str]] = {"object": "■", "place": "▲", "subscription": "●", "retained": "◆", "hidden": "…"}
LEGEND: Final[Mapping[str, str]] = {
    "object": "topic object",
    "place": "stream or subscription point",
    "subscription": "subscription",
    "retained": "retained publication",
}
