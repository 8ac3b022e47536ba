"""An MQTT 5 broker as the topic tree."""
