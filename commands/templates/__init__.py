"""Publications like earlier ones: what the broker made of one shows what it would make of the next."""
