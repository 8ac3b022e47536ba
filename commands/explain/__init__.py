"""Explains a message as a queue manager reads it: its command, its problems, and its effects."""
