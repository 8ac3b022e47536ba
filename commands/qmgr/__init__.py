"""A queue manager at work: the command processor, delivery, and the store behind them."""
