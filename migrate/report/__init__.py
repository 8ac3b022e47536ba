"""The report of a migration: the same facts as text, as JSON, and as one page of HTML."""

from migrate.report.outputs import write_outputs
from migrate.report.text import outline

__all__ = ["outline", "write_outputs"]
