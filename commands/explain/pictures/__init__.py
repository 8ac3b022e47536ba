"""Pictures of the topic tree: for the terminal, as SVG, and as a page that needs nothing else."""

from commands.explain.pictures.page import page
from commands.explain.pictures.svg import svg
from commands.explain.pictures.text import text_tree

__all__ = ["page", "svg", "text_tree"]
