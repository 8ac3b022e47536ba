"""MQSC in JSON, for the REST interface of the console."""
