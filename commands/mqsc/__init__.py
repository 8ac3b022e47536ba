"""MQSC: the commands that administrators use to define and display publish/subscribe (guide 2.5.4, 6.5).

``script.parse`` reads a script, ``execute.execute`` carries one statement out on an ``Administration`` and answers;
both are pure but for the queue port. ``execute.run_setup`` runs a script that must not fail.
"""
