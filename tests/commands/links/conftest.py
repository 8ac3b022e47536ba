"""Servers that all tests of links share."""

from __future__ import annotations

from tests.commands.links.shared_servers import name, shared_kafka, shared_mosquitto, shared_nats

__all__ = ["name", "shared_kafka", "shared_mosquitto", "shared_nats"]
