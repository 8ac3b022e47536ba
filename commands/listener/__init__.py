"""The listener: programs connect to a queue manager over the network, as clients of a server-connection channel.

server        sockets, TLS; one session for each; serves until it is asked to end
opening       a listener as its configuration says
limits        connections and memory that clients may use
session       one connection: negotiation, its conversations
line          one of these, as the session sees it: whose turn it is
conversation  what its program has connected, opened, and waits for
wire          segments in and out, and whether a quiet client is still there
negotiation   INITIAL_DATA: what both ends accept
gate          when messages may be sent for an open queue
security      who may connect, and as which user
passwords     whether a password is right: a file of hashes, PAM
request       one call: its bytes and structures, and its reply
calls         MQI calls: structures to ``commands.qmgr.mqi`` and back
spi           the calls that Java programs make in place of MQOPEN
streaming     messages that are sent to a program that shares its connection
worker        the thread that works on the queue manager, for all of them
"""
