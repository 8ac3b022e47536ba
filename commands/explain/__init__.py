"""What a queue manager makes of a message: its command, what is wrong with it, and what it would lead to."""
