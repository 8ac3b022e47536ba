"""A running queue manager: extract its state, apply a plan to it, verify that it has what was planned."""
