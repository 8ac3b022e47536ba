"""What is in a capture: traffic, subscriptions, retained publications, errors."""

from commands.replay.analysis.local import LocalAnalysis
from commands.replay.analysis.report import SECTIONS, Period, Report, Section
from commands.replay.analysis.tables import TABLES, VIEWS, Row, Table, View

__all__ = [
    "SECTIONS",
    "TABLES",
    "VIEWS",
    "LocalAnalysis",
    "Period",
    "Report",
    "Row",
    "Section",
    "Table",
    "View",
]
