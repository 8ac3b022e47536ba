"""The listener: programs connect to a queue manager over the network, as clients of a server-connection channel.

server        sockets, limits, TLS; one session for each
session       one connection: its segments, negotiation, its conversations
negotiation   INITIAL_DATA: what both ends accept
gate          when messages may be sent for an open queue
security      who may connect, and as which user
calls         MQI calls: structures to ``commands.qmgr.mqi`` and back
spi           the calls that Java programs make in place of MQOPEN
streaming     messages that are sent to a program that shares its connection
worker        the thread that works on the queue manager, for all of them
"""
