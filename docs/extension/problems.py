"""Known problems of a migration: what each is, and what to do about it."""

from __future__ import annotations

from extension.markdown import Table, escape
from migrate.checklist import KNOWN


def table() -> Table:
    """The problems, without the differences of behaviour."""
    problems = [known for known in KNOWN.values() if known.id.startswith("P")]
    rows = tuple((known.id, escape(known.title), escape(known.advice)) for known in problems)
    return Table(("number", "problem", "what to do"), rows)
