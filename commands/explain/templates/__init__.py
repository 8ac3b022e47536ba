"""Output for messages like an earlier one: templates, filled with what differs."""
