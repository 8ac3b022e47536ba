"""The terminal and its user: the console, which shows all output, signals that end a verb, users."""
