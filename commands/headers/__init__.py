"""The three headers of the queued interface, one module each: how it is parsed, answered in, and told in."""
