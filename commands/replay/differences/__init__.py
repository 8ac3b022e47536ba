"""What version 7 does differently from version 6 with a captured workload, and why."""

from commands.replay.differences.causes import Causes
from commands.replay.differences.explain import Explainer
from commands.replay.differences.model import FINDING, Change, Difference
from commands.replay.differences.observe import Observed, Pair, Step
from commands.replay.differences.report import Report, Tally
from commands.replay.differences.rules import RULES, Rule

__all__ = [
    "FINDING",
    "RULES",
    "Causes",
    "Change",
    "Difference",
    "Explainer",
    "Observed",
    "Pair",
    "Report",
    "Rule",
    "Step",
    "Tally",
]
