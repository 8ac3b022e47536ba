"""Stepping through a replay on a terminal, and the file that keeps its checkpoints."""
