"""Options that several verbs share, and what they stand for."""
