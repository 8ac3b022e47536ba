"""Sources of legacy state: what a file is, and the items in it."""

from migrate.readers.sources import KINDS, files_of, read_others, read_sources

__all__ = ["KINDS", "files_of", "read_others", "read_sources"]
