"""The small models. The night has larger ones, and each rule left out (``tests.reliability.model``)."""

from __future__ import annotations

import pytest

from tests.reliability.model import CONFIGURATIONS, Configuration, check, needs_tlc

SMALL = [each for each in CONFIGURATIONS if each.quick and each.left_out == "nothing"]
# The first rule of each module.
BROKEN = {each.module: each for each in reversed(CONFIGURATIONS) if each.quick and each.left_out != "nothing"}


@needs_tlc
@pytest.mark.slow
@pytest.mark.parametrize(
    "configuration", [*SMALL, *(pytest.param(each, marks=pytest.mark.nightly) for each in BROKEN.values())], ids=str
)
def test_promises_hold_and_need_the_rules(configuration: Configuration) -> None:
    checked = check(configuration)
    assert checked.broken == ("" if configuration.left_out == "nothing" else "Promises"), checked.said
