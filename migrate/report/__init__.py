"""The report of a migration: the same facts as text, as JSON, and as one page of HTML; and the files beside it."""

from migrate.report.facts import facts
from migrate.report.outputs import encoded, outline, report_contents

__all__ = ["encoded", "facts", "outline", "report_contents"]
