"""Why publications of a capture did or did not reach each subscriber."""

from commands.replay.why.local import LocalWhy
from commands.replay.why.summary import Summary
from commands.replay.why.text import lines_of, lines_of_each, subscription_words

__all__ = ["LocalWhy", "Summary", "lines_of", "lines_of_each", "subscription_words"]
