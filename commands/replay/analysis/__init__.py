"""What is in a capture: traffic, subscriptions, retained publications, errors."""

from commands.replay.analysis.facts import LocalAnalysis
from commands.replay.analysis.report import SECTIONS, AnalysisPeriod, AnalysisReport, Section
from commands.replay.analysis.tables import TABLES, VIEWS, Row, Table, TableView

__all__ = [
    "SECTIONS",
    "TABLES",
    "VIEWS",
    "AnalysisPeriod",
    "AnalysisReport",
    "LocalAnalysis",
    "Row",
    "Section",
    "Table",
    "TableView",
]
