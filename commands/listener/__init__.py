"""The listener: programs connect to a queue manager over the network, as clients of a server-connection channel.

serving       serves until it is asked to end
server        sockets, TLS; one session for each
limits        connections and memory that clients may use
session       one connection: negotiation, its conversations
wire          its segments, in and out
heartbeat     whether a quiet client is still there
negotiation   INITIAL_DATA: what both ends accept
gate          when messages may be sent for an open queue
security      who may connect, and as which user
passwords     whether a password is right: a file of hashes, PAM
calls         MQI calls: structures to ``commands.qmgr.mqi`` and back
spi           the calls that Java programs make in place of MQOPEN
streaming     messages that are sent to a program that shares its connection
worker        the thread that works on the queue manager, for all of them
"""
