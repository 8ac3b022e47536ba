"""The report of a migration: the same facts as text, as JSON, and as one page of HTML; and the files beside it."""

from migrate.report.facts import facts
from migrate.report.outputs import StagedFiles, encoded, output_files, report_contents, report_files
from migrate.report.text import outline

__all__ = ["StagedFiles", "encoded", "facts", "outline", "output_files", "report_contents", "report_files"]
