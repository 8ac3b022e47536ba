"""Channels: they move messages from transmission queues to other embedded queue managers of the same home."""
