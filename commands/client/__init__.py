"""A client of the channel protocol, without IBM's library (docs/client.md)."""
