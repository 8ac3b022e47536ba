"""The tables that a page may ask for with ``from-code``."""

from __future__ import annotations

from collections.abc import Callable

from extension import columns, equivalents, metrics, mqsc, options, problems, reasons, rules, verbs, wire
from extension.markdown import Table

TABLES: dict[str, Callable[..., Table]] = {
    "calls-reasons": equivalents.calls_reasons,
    "code-pages": wire.code_pages,
    "columns": columns.table,
    "equivalent-reasons": equivalents.reasons,
    "equivalents": equivalents.table,
    "json-forms": verbs.json_forms,
    "known-problems": problems.table,
    "layout": wire.layout,
    "metrics": metrics.table,
    "mqi-options": equivalents.mqi_options,
    "mqsc-commands": mqsc.commands,
    "mqsc-attributes": mqsc.attribute_table,
    "options": options.table,
    "reasons": reasons.table,
    "rules": rules.table,
}
"""What ``from-code`` can show: its first word, and the function that takes the words behind it."""
