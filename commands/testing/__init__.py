"""A queue manager for the tests of programs that work with MQ."""
