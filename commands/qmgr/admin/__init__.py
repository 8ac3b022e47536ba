"""The command server: administration that comes as a message or as MQSC, carried out in units of work."""
