"""Kafka as the topic tree."""
