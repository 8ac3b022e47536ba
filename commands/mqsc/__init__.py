"""MQSC: the commands that administrators use to define and display publish/subscribe (guide 2.5.4, 6.5).

``parse`` reads a script, ``execute`` carries one statement out on an ``Administration`` and answers; both are pure but
for the queue port. ``run_setup`` runs a script that must not fail.
"""

from commands.mqsc.administration import Administration, NoMessages, QueueAdmin
from commands.mqsc.answers import Answer, Change, DefinitionDeleted, DefinitionStored
from commands.mqsc.execute import ScriptTally, echo, execute, run_setup
from commands.mqsc.script import Command, Condition, Keyword, MqscError, Statement, Value, parse, statements

__all__ = [
    "Administration",
    "Answer",
    "Change",
    "Command",
    "Condition",
    "DefinitionDeleted",
    "DefinitionStored",
    "Keyword",
    "MqscError",
    "NoMessages",
    "QueueAdmin",
    "ScriptTally",
    "Statement",
    "Value",
    "echo",
    "execute",
    "parse",
    "run_setup",
    "statements",
]
