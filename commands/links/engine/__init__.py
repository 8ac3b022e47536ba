"""What all links to another topic tree share: configuration, spooling, filters, threads, and the two directions."""
