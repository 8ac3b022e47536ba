"""Live brokers: queues of IBM MQ; a topic tree of IBM MQ, MQTT 5, NATS or Kafka (docs/live-brokers.md); channels."""
