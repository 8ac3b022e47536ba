"""Sources of legacy state: what a file is, and the items in it."""
