"""Known problems (P) and differences of behaviour (D): what each is, and what to do about it.

Where a number is named in a log or a report, this is what it stands for. The site shows the problems (migration sources
14), docs/differences.md has both behaviours of each difference (migration sources 13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownProblem:
    """One entry. advice: what an administrator does about it."""

    id: str
    title: str
    advice: str


def _table(*rows: tuple[str, str, str]) -> dict[str, KnownProblem]:
    return {row[0]: KnownProblem(*row) for row in rows}


KNOWN: Final = _table(
    (
        "P01",
        "Retained publications in MQRFH carry MQPSStringData or MQPSIntData",
        "Have the publishers publish them again with MQRFH2, or make sure that every subscriber reads MQRFH.",
    ),
    (
        "P02",
        "An access control list denies a right",
        "Deny at the root in the broker, grant below it, and run the initial phase again; or write the grants by hand.",
    ),
    (
        "P03",
        "A name is a user's and a group's",
        "Of the two commands in the security command file run the right one; the group's is commented out.",
    ),
    (
        "P04",
        "A right reaches more people or more topics than it names",
        "On UNIX, authority granted to a user applies to the user's whole primary group; authority on "
        "SYSTEM.BASE.TOPIC applies to every topic. Grant to "
        "groups, on the topic objects of streams and applications.",
    ),
    (
        "P05",
        "A wildcard subscription matches a topic that is denied",
        "In MQ it is refused, or receives that topic too: grant the topic, or subscribe further down the tree.",
    ),
    (
        "P06",
        "A user lacks authority for what he is subscribed to",
        "Run the reviewed security commands before the completion phase; then look at these subscriptions again.",
    ),
    (
        "P07",
        "A topic object that is used again has other attributes",
        "Leave topic objects alone between the phases; look at WILDCARD of those named here.",
    ),
    (
        "P08",
        "An object, subscription or retained publication of the same name exists",
        "Run again with -f (strmqbrk) or -o (migmbbrk) to have it replaced, or rename what is there.",
    ),
    (
        "P09",
        "Topics of a stream or subscription point mix with others",
        "Give the stream another topic string with --prefix, or move what else lies below it.",
    ),
    (
        "P10",
        "Another topic object has the topic string already",
        "Give the stream another topic string with --prefix, or delete the other object.",
    ),
    (
        "P11",
        "A retained publication is not persistent",
        "It is lost when the queue manager restarts: publish it again then, or have it published persistently.",
    ),
    (
        "P12",
        "A subscription with MQRFH2 names a dynamic queue",
        "Early fix packs of version 7 refuse a temporary one with 3076: see that the queue is a permanent one.",
    ),
    (
        "P13",
        "A subscription with MQRFH names a dynamic queue",
        "Before 7.0.1.6 publications for it go to the dead-letter queue when the queue is gone: delete it then.",
    ),
    (
        "P14",
        "Messages of a broker's queues are not in the order of their times",
        "They were taken in the order of time (APAR IZ66777); check subscriptions that were made twice.",
    ),
    (
        "P15",
        "An empty ALTER SUB makes a proxy subscription an administrator's",
        "Never alter subscriptions of SUBTYPE(PROXY); nothing here does.",
    ),
    (
        "P16",
        "A namelist altered without the names that it had",
        "The scripts here list all names, after the objects; keep it so when you add to them.",
    ),
    (
        "P17",
        "WILDCARD(BLOCK) came after subscriptions",
        "They keep what held when they were made: restart the queue manager once the topic objects are right.",
    ),
    (
        "P18",
        "Input queues of message flows are not in the queue namelist",
        "For each define the topic object, then add the queue to the list (guide 8.2, step 7).",
    ),
    (
        "P19",
        "A subscription point is not used at present",
        "Only used ones are migrated: define topic object and namelist entry for each that will be (guide 6.5.6).",
    ),
    (
        "P20",
        "The reply queue of the migration may be left over",
        "Delete SYSTEM.TEMP.MIGMBBRK.REPLY.QUEUE when the broker has ended.",
    ),
    (
        "P21",
        "The broker changed between the initial and the completion phase",
        "Review the security commands for what is new; topic objects that are not needed now may be deleted.",
    ),
    (
        "P22",
        "A JMS client with BROKERVER(V2) works in migration mode",
        "Look at BROKERVER, BROKERCONQ and PSMODE together (guide 7.6) before the client starts.",
    ),
    (
        "P23",
        "JMS subscriptions may be kept on SYSTEM.JMS queues, outside the broker",
        "Unload SYSTEM.JMS.ADMIN.QUEUE as well, with the broker's own state; what cannot be read of it, have its "
        "programs make again, or set SUBSTORE(BROKER) before the migration.",
    ),
    (
        "P24",
        "Queue manager names have their first 12 characters in common",
        "Identifiers may meet (AMQ5834): rename one, or keep them out of one hierarchy.",
    ),
    ("P25", "The hierarchy has two parents or a loop", "Break it with ALTER QMGR PARENT('') before you go on."),
    (
        "P26",
        "Expiry is not known, or starts again",
        "MQSC's EXPIRY and a message's Expiry count from when they are run: run them soon after they are made.",
    ),
    (
        "P27",
        "DEFINE SUB lets any user alter a subscription by default",
        "The scripts here always say VARUSER; keep it so.",
    ),
    ("P28", "More than 256 names in a namelist", "Put fewer streams or subscription points on this queue manager."),
    (
        "P29",
        "A subscriber queue is missing, or elsewhere",
        "See that it exists, and that a transmission queue leads to its queue manager.",
    ),
    (
        "P30",
        "The queue manager has no dead-letter queue",
        "Give it one with ALTER QMGR DEADQ before dltmqbrk is run and before anything is published.",
    ),
    (
        "P31",
        "A stream's topic object has to be local on every queue manager of a cluster",
        "Define it on each, with CLUSTER on each copy (guide 7.4.2); the runbook has the commands.",
    ),
    (
        "P32",
        "A subscription to $SYS topics",
        "Nothing is published there now: delete it when its program is gone.",
    ),
    (
        "P33",
        "A named subscription on a stream: IBM does not document what joins its name and the stream's",
        "qpubsub verify --probe-names asks the queue manager. If an old program would not find its subscription, "
        "make the plan again with the separator that the probe prints.",
    ),
    (
        "D01",
        "A local publication reaches global subscribers of the queue manager",
        "Expect more publications than before.",
    ),
    ("D02", "A local subscription receives global publications made here", "Expect more publications than before."),
    ("D04", "Metatopics are not provided", "Use DISPLAY SUB, SBSTATUS, TPSTATUS, PUBSUB instead."),
    ("D05", "Nothing is published on the administration stream", "Use DISPLAY PUBSUB and DISPLAY NAMELIST instead."),
    ("D06", "Publishers are not registered", "Programs that ask who publishes have to ask otherwise."),
    (
        "D07",
        "Routing exits are gone",
        "Rewrite it as a publish exit, or intercept with SUBLEVEL.",
    ),
    ("D08", "A native wildcard subscription may see a stream's topics", "Set WILDCARD(BLOCK) on the stream's topic."),
    ("D09", "A stream's name is also a first level of other topics", "Give the stream another topic string."),
    ("D14", "Wildcards are characters or levels", "A topic with a level # or + cannot be published to in version 7."),
    (
        "D15",
        "Names of subscriptions are unique in the queue manager",
        "Queued programs that name the stream find theirs under the old name too; native ones need the new name.",
    ),
    ("D17", "Subscriptions and dynamic queues end apart", "Delete subscriptions whose queue is gone."),
    ("D18", "A durable subscription cannot have a temporary dynamic queue", "Use a permanent one."),
    ("D20", "Named subscriptions are not found by their queue", "Deregister them by their names."),
    ("D23", "A flow's input queue needs a topic object and a place in the list", "As for P18."),
    ("D24", "Coming and going of subscribers is not published", "Poll with DISPLAY SUB."),
    ("D28", "Non-persistent retained publications end with the queue manager", "As for P11."),
    ("D29", "A wildcard subscription that is partly denied", "As for P05."),
    (
        "D30",
        "Filters look at message properties, not at bodies",
        "Check each; publishers have to set properties.",
    ),
)

CARED_FOR: Final = ("P15", "P16", "P17", "P27")
"""Problems that the order and the completeness of the steps keep from arising."""
