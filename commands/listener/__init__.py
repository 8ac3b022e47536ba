"""The listener: programs connect to a queue manager over the network, as clients of a server-connection channel.

server        as its configuration says: addresses, sockets, TLS, limits; one session for each
session       one connection: its conversations, and whose turn it is
conversation  what its program has connected, opened, and waits for
wire          segments in and out; what both ends agree on first; whether a quiet client is still there
presence      who is connected, told to whoever asks
gate          when messages may be sent for an open queue
security      who may connect, and as which user; whether a password is right
request       one call: its bytes and structures, and its reply
calls         MQI and XA calls: structures to ``commands.qmgr.mqi`` and back
spi           the calls that Java programs make in place of MQOPEN
streaming     messages that are sent to a program that shares its connection
worker        the thread that works on the queue manager, for all of them
"""
