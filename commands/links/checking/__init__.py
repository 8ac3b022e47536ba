"""Whether the bridge would work: connections, rights and queues, tried one by one, and what mends what is missing."""
