"""The message queue interface on an embedded queue manager: what a program's calls do, whatever way they come in.

calls                   one connection's calls: MQOPEN, MQCLOSE, MQPUT, MQINQ, MQSET, MQCMIT, MQBACK
getting                 MQGET: which message a program gets, and what of it
groups     messages that are put and got in the order of their groups
delay                   messages that are put now, to be there later
subscriptions           its subscriptions: MQSUB, MQSUBRQ, MQCLOSE of both kinds
subscription_requests   what these ask of the command processor, and its answers
subscription_rules      the subscription that a request makes, resumes or alters; or the reason against it
subscription_server     what the command processor does for them
handles                 what a program has open, and what all programs together have; what became of asynchronous puts
attributes              what MQINQ tells and MQSET changes
context                 the fields of a descriptor that MQPUT fills in
authority               whether a program's user may open an object, and publish on a topic
refusals                what a program asks for and would not get
"""
