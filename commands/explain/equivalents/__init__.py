"""Operations in the dialects of modern publish/subscribe: MQSC, PCF, MQI calls, JSON (guide 7.2).

One module a dialect, each with a function over ``streams.operations``; that of MQSC is ``commands.mqsc.equivalents``.
``guide_tables`` has the tables of guide 7.2, and ``traced_operations`` runs captured commands and keeps the operations
that they lead to.
"""
