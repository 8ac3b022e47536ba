"""The differences between the versions that are known (guide 7.5, 8.5; migration sources 13), D01 to D34.

A rule explains puts that differ (PUTS), or is known by its sign in the capture (SIGN), or cannot be seen in a capture
at all (ELSEWHERE). D03, and others that are listed for completeness, are the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Seen(StrEnum):
    """Where the effect of a rule can be seen."""

    PUTS = "puts"
    SIGN = "sign"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class DifferenceRule:
    """One known difference. old, new: what version 6 (or a message broker), and version 7, does. advice: what to do."""

    id: str
    title: str
    old: str
    new: str
    seen: Seen
    advice: str = ""


def _rule(number: int, seen: Seen, title: str, old: str, new: str) -> DifferenceRule:
    name = f"D{number:02}"
    return DifferenceRule(name, title, old, new, seen, _ADVICE.get(name, ""))


_ADVICE: Final = {
    "D01": "use another topic for what these subscribers must not get",
    "D02": "use another topic for what these subscribers must not get",
    "D04": "ask with DISPLAY SUB, DISPLAY TPSTATUS or PCF instead",
    "D05": "ask with DISPLAY PUBSUB instead",
    "D06": "make sure that no program waits for events about publishers",
    "D08": "define a topic object with WILDCARD(BLOCK) for each stream",
    "D09": "give the stream's topic object another TOPICSTR",
    "D10": "deregister, then register the name again",
    "D11": "expect one message for each topic",
    "D12": "remove one of the subscriptions that overlap, or expect duplicates",
    "D13": "give each user a queue",
    "D14": "use MQSO_WILDCARD_CHAR or WSCHEMA(CHAR) where you rewrite the subscriber",
    "D15": "use names that are unique in the queue manager",
    "D17": "deregister before the queue is deleted",
    "D18": "use a permanent or a managed queue where you rewrite the subscriber",
    "D20": "deregister with the SubName",
    "D21": "add a topic object with the subscription point as its TOPICSTR to SYSTEM.QPUBSUB.SUBPOINT.NAMELIST",
    "D22": "set WILDCARD(BLOCK) on the point's topic object, and use no other topics below its TOPICSTR",
    "D23": "put the stream's prefix in the topics of MQRFH2 subscribers, or publish to the default stream",
    "D24": "ask with DISPLAY SUB or PCF from time to time instead",
    "D25": "deregister the old name first",
    "D28": "make publications persistent that must survive a restart",
    "D30": "use only message properties in a Filter: MQSUB selects by nothing else",
    "D31": "set PSPROP of the subscription where you rewrite the subscriber",
    "D32": "keep the queued interface: MQSUB has no identity sets",
    "D33": "publish again what must stay retained",
    "D34": "add the stream's queue to SYSTEM.QPUBSUB.QUEUE.NAMELIST, and define a topic object with its name",
}

_P, _S, _E = Seen.PUTS, Seen.SIGN, Seen.ELSEWHERE

RULES: Final[dict[str, DifferenceRule]] = {
    rule.id: rule
    for rule in (
        _rule(1, _P, "local publication, global subscription", "not delivered", "delivered"),
        _rule(2, _P, "global publication, local subscription", "not delivered", "delivered"),
        _rule(3, _E, "publication and subscription of the same scope", "delivered", "delivered"),
        _rule(4, _P, "subscription to a metatopic", "registered", "accepted, but not kept"),
        _rule(5, _S, "events on the admin stream", "published", "none"),
        _rule(6, _S, "registered publishers", "kept, and published on metatopics", "a response, and nothing else"),
        _rule(7, _E, "routing exit", "may change what is delivered", "none; publish exits, subscription levels"),
        _rule(8, _P, "streams", "kept apart", "kept apart by topic objects with WILDCARD(BLOCK)"),
        _rule(9, _P, "topics below a stream's prefix", "other topics", "the stream's topics"),
        _rule(10, _P, "registering a name again, with another topic or filter", "altered", "refused"),
        _rule(11, _P, "one publication to several topics", "one message per subscriber", "one message per topic"),
        _rule(12, _P, "several subscriptions that match", "one message per subscriber", "one message per subscription"),
        _rule(13, _P, "a second user of one identity", "refused", "a second subscription"),
        _rule(14, _S, "wildcards by character", "the only kind", "of MQRFH; elsewhere wildcards are by level"),
        _rule(15, _P, "a SubName on two streams", "two subscriptions", "refused: names are unique in a queue manager"),
        _rule(16, _E, "deleting a hierarchy", "children first", "in any order"),
        _rule(17, _S, "subscriber queue that is a temporary dynamic one", "stays subscribed", "deleted with its queue"),
        _rule(18, _S, "durable subscription with a temporary dynamic queue", "possible", "2522 for MQSUB"),
        _rule(19, _E, "subscriptions between queue managers", "as they are", "widened to #"),
        _rule(20, _P, "identity that has named subscriptions", "means them too", "leaves them alone"),
        _rule(21, _P, "subscription point that is not defined", "works", "3072"),
        _rule(22, _P, "subscription points", "kept apart", "topics below their prefix"),
        _rule(23, _P, "publisher with MQRFH2 on a stream queue", "on no stream", "on that stream"),
        _rule(24, _P, "subscription to $SYS topics", "events come", "accepted, but not kept"),
        _rule(25, _S, "giving a named subscription another name", "possible", "refused"),
        _rule(26, _E, "as D11, of the message brokers", "one message", "one message per topic"),
        _rule(27, _E, "as D13, of the message brokers", "refused", "a second subscription"),
        _rule(28, _S, "non-persistent retained publications", "survive a restart", "do not"),
        _rule(29, _E, "wildcard subscription that is denied in part", "the rest is delivered", "refused"),
        _rule(30, _S, "filters on content", "everywhere", "where the header is MQRFH2"),
        _rule(31, _S, "publisher and subscriber with different headers", "converted", "as PSPROP says"),
        _rule(32, _S, "shared subscriptions (SubIdentity)", "their own reasons", "kept here; MQSUB has none of it"),
        _rule(33, _P, "DeletePub of an MQRFH publisher", "what has its scope, local or not", "all that is retained"),
        _rule(34, _P, "stream queue that is not in the namelist", "a stream", "not read"),
    )
}
