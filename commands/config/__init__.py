"""The configuration of `run`, `capture`, `listener` and `console`, and the URLs in it."""
