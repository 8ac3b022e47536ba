"""The small configurations of the models: promises hold, and need each rule that one of them leaves out."""

from __future__ import annotations

import pytest

from tests.reliability.model import CONFIGURATIONS, Configuration, check, needs_tlc

SMALL = [each for each in CONFIGURATIONS if each.quick]


@needs_tlc
@pytest.mark.slow
@pytest.mark.parametrize("configuration", SMALL, ids=str)
def test_promises_hold_and_need_every_rule(configuration: Configuration) -> None:
    checked = check(configuration)
    assert checked.broken == ("" if configuration.left_out == "nothing" else "Promises"), checked.said
