"""Pictures of the topic tree: for the terminal, as SVG, and as a page that needs nothing else."""

from commands.pictures.page import page
from commands.pictures.svg import svg
from commands.pictures.text import text_tree

__all__ = ["page", "svg", "text_tree"]
