"""What the bridge puts is what ``decode`` finds nothing wrong in."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.explain.problems import explained
from commands.mqsc.broker import Broker
from rfh2.captured import CapturedMessage

FIXTURES = Path(__file__).parents[3] / "fixtures"
CAPTURES = sorted(
    path
    for folder in ("scenarios", "guide", "explain", "results-service", "results-service-rfh1", "legacy")
    for path in (FIXTURES / folder).rglob("*.jsonl")
    if not path.name.endswith(("puts.jsonl", "decoded.jsonl", "puts-v6.jsonl", "planned.jsonl"))
)


def captured(path: Path) -> list[CapturedMessage]:
    return [CapturedMessage.model_validate_json(line) for line in path.read_text().splitlines()]


def setup_of(path: Path) -> str:
    own = path.parent / "setup.mqsc" if path.name == "capture.jsonl" else path.with_suffix(".mqsc")
    return own.read_text() if own.exists() else ""


def test_there_are_captures() -> None:
    assert len(CAPTURES) > 40


@pytest.mark.rule("HDR-15")
@pytest.mark.parametrize("semantics", ["v7", "v6"])
@pytest.mark.parametrize("path", CAPTURES, ids=[str(path.relative_to(FIXTURES)) for path in CAPTURES])
def test_decode_finds_nothing_wrong_in_what_is_put(path: Path, semantics: str) -> None:
    """MQCCSI_INHERIT above all, which a message with PutApplType MQAT_BROKER must not have."""
    broker = Broker("QM1", setup_of(path), semantics)
    wrong = []
    for message in captured(path):
        for put in broker.handle(message):
            received = CapturedMessage(seq=put.seq, queue=put.queue, md_hex=put.md_hex, body_hex=put.body_hex)
            wrong += [(put.seq, put.n, found.code, found.message) for found in explained(received).problems]
    assert wrong == []
