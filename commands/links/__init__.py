"""Live brokers: IBM MQ for the queues, IBM MQ or an MQTT 5 broker for the topic tree (docs/live-brokers.md)."""
