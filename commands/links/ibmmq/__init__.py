"""IBM MQ through its official client, the package ``ibmmq``: queues, and its topic tree."""
