"""What version 7 does differently from version 6 with a captured workload, and why."""

from commands.replay.differences.causes import Causes
from commands.replay.differences.explain import Explainer
from commands.replay.differences.observe import BothVersions, ComparedMessage, Observed
from commands.replay.differences.report import (
    FINDING,
    RULES,
    Change,
    DifferenceReport,
    DifferenceRule,
    DifferenceTally,
    PutDifference,
)

__all__ = [
    "FINDING",
    "RULES",
    "BothVersions",
    "Causes",
    "Change",
    "ComparedMessage",
    "DifferenceReport",
    "DifferenceRule",
    "DifferenceTally",
    "Explainer",
    "Observed",
    "PutDifference",
]
