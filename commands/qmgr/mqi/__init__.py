"""The message queue interface on an embedded queue manager: what a program's calls do, whatever way they come in.

calls                 one connection's calls: MQOPEN, MQCLOSE, MQPUT, MQINQ, MQSET, MQCMIT, MQBACK
putting               the fields of a descriptor that MQPUT fills in; messages that are put now, to be there later
getting               MQGET: which message a program gets, and what of it
subscriptions         its subscriptions: MQSUB, MQSUBRQ, MQCLOSE of both kinds
subscription_rules    what these ask of the command processor; what a request makes, or the reason against it
subscription_server   what the command processor does for them
transactions          branches of global transactions
handles               what a program has open, and what all programs together have; the groups of its messages
attributes            what MQINQ tells and MQSET changes
authority             whether a program's user may open an object, and publish on a topic
refusals              what a program asks for and would not get
"""
