"""A queue manager in a network of embedded queue managers, live: what it sends neighbours, and takes from them."""
