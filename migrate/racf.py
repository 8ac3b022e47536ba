"""Access to topics as RACF commands, for a queue manager on z/OS, which has neither setmqaut nor SET AUTHREC.

The profiles of a topic object are ``HLQ.SUBSCRIBE.object`` and ``HLQ.PUBLISH.object`` in class MXTOPIC; HLQ is the name
of the queue manager or of its queue-sharing group. A subscriber needs ALTER, a publisher UPDATE (IBM MQ's "Profiles for
topic security" and "API-resource security access quick reference"). As on other platforms, a check that fails goes on
with the topic objects further up the tree: a denial has no effect below a grant.

    RDEFINE MXTOPIC QM1.SUBSCRIBE.MIGMBBRK.TOPIC.00001 UACC(NONE)
    PERMIT QM1.SUBSCRIBE.MIGMBBRK.TOPIC.00001 CLASS(MXTOPIC) ID(FRED) ACCESS(ALTER)

RACF names users and groups in one name space, so that it does not matter which of the two a name is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from commands.broker.objects import AuthorityRecord
from migrate.plan import MigrationPlan, Store, TopicGrant

FILE_NAME: Final = "authorities.racf"
HIGH_LEVEL_QUALIFIER: Final = re.compile(r"[A-Z$#@][A-Z0-9$#@]{0,3}")
_ID: Final = re.compile(r"[A-Z$#@][A-Z0-9$#@]{0,7}")
_PROFILES: Final = {"SUB": ("SUBSCRIBE", "ALTER"), "PUB": ("PUBLISH", "UPDATE")}


def racf_commands(plan: MigrationPlan, hlq: str) -> list[str]:
    """The lines of the file. hlq: the queue manager's name on z/OS, or that of its queue-sharing group."""
    return list(_lines(plan, hlq))


def _lines(plan: MigrationPlan, hlq: str) -> Iterator[str]:
    yield _comment(f"RACF commands of class MXTOPIC for queue manager {plan.qmgr}, {hlq} as high-level qualifier.")
    yield _comment("Review every line. Authorities on queues are not here: their profiles stay as they are.")
    defined: set[str] = set()
    for grant in (*_recorded(plan), *plan.grants):
        yield from _grant(grant, hlq, defined)
    if defined:
        yield "SETROPTS RACLIST(MXTOPIC) REFRESH"
        yield _comment(f"Then, as a command to the queue manager: {hlq} REFRESH SECURITY(MXTOPIC)")


def _recorded(plan: MigrationPlan) -> Iterator[TopicGrant]:
    """What authority records of topic objects grant."""
    for step in plan.steps:
        if not isinstance(step, Store) or not isinstance(step.definition, AuthorityRecord):
            continue
        record = step.definition
        granted = tuple(word for word in _PROFILES if word in record.authorities)
        if record.object_type == "TOPIC" and granted:
            yield TopicGrant(record.profile, record.entity, granted)


def _grant(grant: TopicGrant, hlq: str, defined: set[str]) -> Iterator[str]:
    name = grant.principal.upper()
    for word in grant.denied:
        what = f"DENIED: {grant.principal} on {hlq}.{_PROFILES[word][0]}.{grant.object_name}"
        yield _comment(f"{what}. By hand: a denial does not hold below a grant.")
    for word in grant.granted:
        kind, access = _PROFILES[word]
        profile = f"{hlq}.{kind}.{grant.object_name}"
        if profile not in defined:
            defined.add(profile)
            yield f"RDEFINE MXTOPIC {profile} UACC(NONE)"
        if grant.is_everybody:
            yield _comment(f"{grant.principal} is everybody: RALTER MXTOPIC {profile} UACC({access})")
        elif _ID.fullmatch(name) is None:
            yield _comment(f"{grant.principal} cannot be a RACF user or group. By hand: {access} on {profile}")
        else:
            yield f"PERMIT {profile} CLASS(MXTOPIC) ID({name}) ACCESS({access})"


def _comment(text: str) -> str:
    shown = "".join(c if c.isprintable() else "." for c in text).replace("*/", "* /")
    return f"/* {shown} */"
