"""A queue manager at work: the command processor, delivery, the publication cache, and the store behind them."""
