"""Where the pages of the console have their data from: the queue manager, and the history of its totals."""
