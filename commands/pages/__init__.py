"""One design for all pages: a frame with a summary and contents, tables, timelines and trees, in one HTML file.

A page needs no network: its style and script are in it, and its policy (Content-Security-Policy) forbids everything
else. Templates (Jinja2) escape each text; what they made is Markup. Without JavaScript the first rows of each table can
be read.
"""

from commands.pages.frame import Figure, Section, Severity, document
from commands.pages.table import MOST_ROWS, Cell, Column, ColumnKind, table
from commands.pages.timeline import Series, timeline
from commands.pages.tree import TreeNode, tree

__all__ = [
    "MOST_ROWS",
    "Cell",
    "Column",
    "ColumnKind",
    "Figure",
    "Section",
    "Series",
    "Severity",
    "TreeNode",
    "document",
    "table",
    "timeline",
    "tree",
]
