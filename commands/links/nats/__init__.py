"""NATS with JetStream as the topic tree."""
