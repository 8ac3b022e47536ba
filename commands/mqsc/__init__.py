"""MQSC: the commands with which administrators define and look at publish/subscribe (guide 2.5.4, 6.5)."""
