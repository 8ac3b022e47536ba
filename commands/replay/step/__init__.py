"""A replay, step by step: the state before and after each message, what changed, forwards and backwards."""
