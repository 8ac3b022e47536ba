"""The message queue interface on an embedded queue manager: what a program's calls do, whatever way they come in.

calls                   one connection's calls: MQOPEN, MQCLOSE, MQPUT, MQGET, MQINQ, MQSET, MQCMIT, MQBACK
subscriptions           its subscriptions: MQSUB, MQSUBRQ, MQCLOSE of both kinds
subscription_requests   what these ask of the command processor, and its answers
subscription_rules      the subscription that a request makes, resumes or alters; or the reason against it
subscription_server     what the command processor does for them
handles                 what a program has open, and what all programs together have
attributes              what MQINQ tells and MQSET changes
context                 the fields of a descriptor that MQPUT fills in
topic_definitions       what the definitions say to a program about a topic
properties              message properties, as MQGET gives them
async_puts              what became of puts whose answers are not waited for: MQSTAT
"""
