"""The message queue interface on an embedded queue manager: what a program's calls do, whatever way they come in.

calls         one connection's calls: MQOPEN, MQCLOSE, MQPUT, MQGET, MQINQ, MQCMIT, MQBACK
handles       what it has open, and what all programs together have
attributes    what MQINQ tells
context       the fields of a descriptor that MQPUT fills in
"""
