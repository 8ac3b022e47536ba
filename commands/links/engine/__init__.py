"""What all links to a topic tree elsewhere share: configuration, spooling, filters, threads, and the two directions."""
