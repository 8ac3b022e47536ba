"""The terminal and who sits at it: the console through which all is shown, signals that end a verb, users."""
