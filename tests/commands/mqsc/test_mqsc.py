"""MQSC carried out: the guide's scripts as printed, then each kind of object, each command, each refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commands.broker.counts import Counting
from commands.broker.objects import (
    CONTROL_QUEUE,
    DEFAULT_STREAM,
    AuthorityRecord,
    LocalQueue,
    Objects,
    QueueManager,
    definition_of,
    kind_of,
    state_of,
)
from commands.mqsc.administration import Administration, Neighbour, Relation
from commands.mqsc.answers import Answer, DefinitionDeleted, DefinitionStored
from commands.mqsc.execute import ScriptTally, echo, execute, run_setup
from commands.mqsc.script import parse
from commands.network.cluster_topics import RepositoryEntry
from rfh2 import decode
from rfh2.errors import QPubSubError
from streams import (
    Delivery,
    Publication,
    PublicationFormat,
    PublishToTopic,
    RetainedCleared,
    Subscribe,
    Subscription,
    SubscriptionAdded,
    SubscriptionAltered,
    SubscriptionOptions,
    SubscriptionRemoved,
    TopicSpace,
    WildcardScheme,
)

SCRIPTS = Path(__file__).parents[3] / "fixtures" / "mqsc"
NOW = datetime(2009, 1, 28, 11, 43, tzinfo=UTC)
STREAMS = "SYSTEM.QPUBSUB.QUEUE.NAMELIST"
SUB_POINTS = "SYSTEM.QPUBSUB.SUBPOINT.NAMELIST"


@dataclass
class Shelf:
    """Queues that hold so many messages."""

    messages: dict[str, int] = field(default_factory=dict)
    counters: Counting | None = None

    def depth(self, name: str) -> int:
        return self.messages.get(name, 0)

    def clear(self, name: str) -> int:
        return self.messages.pop(name, 0)

    def has_uncommitted(self, name: str) -> bool:
        return False

    def in_doubt(self) -> tuple[()]:
        return ()


class Desk:
    """An administrator at a queue manager in memory."""

    def __init__(self, strict: bool = False) -> None:
        self.objects = Objects(QueueManager("QM1", strict=strict))
        self.space = TopicSpace(self.objects.topics)
        self.shelf = Shelf()
        self.administration = Administration.of(self.objects, self.space, NOW, self.shelf, "admin")

    def run(self, script: str) -> list[Answer]:
        return [execute(statement, self.administration) for statement in parse(script)]

    def ask(self, command: str) -> Answer:
        [answer] = self.run(command)
        return answer

    def must(self, script: str) -> list[Answer]:
        answers = self.run(script)
        assert [answer.lines for answer in answers if not answer.ok] == []
        return answers

    def show(self, command: str) -> list[Mapping[str, Any]]:
        answer = self.ask(command)
        assert answer.ok, answer.lines
        return list(answer.objects)

    def listing(self, script: str) -> str:
        tally = ScriptTally()
        lines: list[str] = []
        for statement in parse(script):
            answer = execute(statement, self.administration)
            tally.count(answer)
            lines += [*echo(statement), *answer.lines]
        return "\n".join((*lines, *tally.lines)) + "\n"

    def publish(self, topic: str, retain: bool = False) -> None:
        publication = Publication(decode(b""), self.administration.now)
        self.space.apply(PublishToTopic(topic, publication, retain), self.administration.now)

    def receivers(self, topic: str) -> set[str | None]:
        return {subscription.name for subscription in self.space.match(topic, NOW)}


@pytest.fixture
def desk() -> Desk:
    return Desk()


# The guide's scripts


@pytest.mark.rule("DIS-20")
@pytest.mark.parametrize("name", ["add-stream", "add-subscription-points", "hierarchy", "stock-ticker"])
def test_the_guides_commands_run_as_printed(desk: Desk, name: str) -> None:
    script = (SCRIPTS / f"{name}.mqsc").read_text()
    assert desk.listing(script) == (SCRIPTS / f"{name}.out").read_text()


def _sports(desk: Desk, *scripts: str) -> Desk:
    for name in scripts:
        assert desk.listing((SCRIPTS / f"{name}.tst").read_text()) == (SCRIPTS / f"{name}.out").read_text()
    return desk


PUBLISHED = ["Sports", "Sports/Football", "Sports/Football/Arsenal", "Sports/Rugby", "Sports/Rugby/Leeds"]
TABLES = {
    "2.5.4-table-1": (
        ("topics", "wildsubs"),
        {
            "SPORTS": ["Sports", "Sports/Rugby", "Sports/Rugby/Leeds"],
            "SARSENAL": [],
            "SLEEDS": ["Sports/Rugby/Leeds"],
        },
    ),
    "2.5.4-table-2": (
        ("topics", "wildsubs", "fullsubs"),
        {
            "SPORTS": ["Sports", "Sports/Rugby", "Sports/Rugby/Leeds"],
            "SARSENAL": [],
            "SLEEDS": ["Sports/Rugby/Leeds"],
            "FARSENAL": ["Sports/Football/Arsenal"],
            "RLEEDS": ["Sports/Rugby/Leeds"],
        },
    ),
}


@pytest.mark.parametrize("table", TABLES)
def test_the_sports_of_guide_2_5_4(desk: Desk, table: str) -> None:
    scripts, expected = TABLES[table]
    _sports(desk, *scripts)
    received = {name: [topic for topic in PUBLISHED if name in desk.receivers(topic)] for name in expected}
    assert received == expected


def test_running_the_sports_again_replaces_them(desk: Desk) -> None:
    _sports(desk, "topics", "wildsubs")
    desk.shelf.messages["QSPORTS"] = 3
    again = [desk.run((SCRIPTS / f"{name}.tst").read_text()) for name in ("topics", "wildsubs")]
    assert all(answer.ok for answers in again for answer in answers)
    assert desk.shelf.messages == {}


# Answers: message numbers, notes, changes

CLUSTERED = "DEFINE CHANNEL(C.QM1) CHLTYPE(CLUSRCVR) CLUSTER(C)"

ANSWERS = [
    ("topic-created", "", "DEFINE TOPIC(T) TOPICSTR('t')", "AMQ8690"),
    ("topic-changed", "DEFINE TOPIC(T) TOPICSTR('t')", "ALTER TOPIC(T) PUB(DISABLED)", "AMQ8691"),
    ("topic-deleted", "DEFINE TOPIC(T) TOPICSTR('t')", "DELETE TOPIC(T)", "AMQ8692"),
    ("topic-display", "", "DISPLAY TOPIC(SYSTEM.BASE.TOPIC)", "AMQ8633"),
    ("queue-created", "", "DEFINE QLOCAL(Q)", "AMQ8006"),
    ("queue-created-again", "DEFINE QLOCAL(Q)", "DEFINE QLOCAL(Q) REPLACE", "AMQ8006"),
    ("queue-changed", "DEFINE QLOCAL(Q)", "ALTER QLOCAL(Q) MAXDEPTH(5)", "AMQ8008"),
    ("queue-deleted", "DEFINE QLOCAL(Q)", "DELETE QLOCAL(Q)", "AMQ8007"),
    ("queue-cleared", "DEFINE QLOCAL(Q)", "CLEAR QLOCAL(Q)", "AMQ8022"),
    ("queue-display", "", f"DISPLAY QLOCAL({DEFAULT_STREAM})", "AMQ8409"),
    ("alias-created", "", "DEFINE QALIAS(A) TARGET(T) TARGTYPE(TOPIC)", "AMQ8006"),
    ("alias-changed", "DEFINE QALIAS(A) TARGET(T)", "ALTER QALIAS(A) TARGTYPE(TOPIC)", "AMQ8008"),
    ("alias-deleted", "DEFINE QALIAS(A) TARGET(T)", "DELETE QALIAS(A)", "AMQ8007"),
    ("alias-display", "DEFINE QALIAS(A) TARGET(T)", "DISPLAY QALIAS(A)", "AMQ8409"),
    ("namelist-created", "", "DEFINE NAMELIST(N) NAMES(A)", "AMQ8552"),
    ("namelist-changed", "DEFINE NL(N)", "ALTER NL(N) NAMES(A)", "AMQ8551"),
    ("namelist-deleted", "DEFINE NL(N)", "DELETE NL(N)", "AMQ8553"),
    ("namelist-display", "", f"DISPLAY NL({STREAMS})", "AMQ8550"),
    ("qmgr-changed-6.5.1", "", "ALTER QMGR PSNPRES(SAFE)", "AMQ8005"),
    ("qmgr-display", "", "DISPLAY QMGR", "AMQ8408"),
    ("qmgr-ping", "", "PING QMGR", "AMQ8415"),
    ("sub-created", "", "DEFINE SUB(S) TOPICSTR('t') DEST(Q)", "AMQ8094"),
    ("sub-changed", "DEFINE SUB(S) TOPICSTR('t') DEST(Q)", "ALTER SUB(S) USERDATA(X)", "AMQ8095"),
    ("sub-deleted", "DEFINE SUB(S) TOPICSTR('t') DEST(Q)", "DELETE SUB(S)", "AMQ8097"),
    ("sub-display", "DEFINE SUB(S) TOPICSTR('t') DEST(Q)", "DISPLAY SUB(S)", "AMQ8096"),
    ("sbstatus-display", "DEFINE SUB(S) TOPICSTR('t') DEST(Q)", "DISPLAY SBSTATUS(S)", "AMQ8099"),
    ("tpstatus-display", "DEFINE TOPIC(T) TOPICSTR('t')", "DISPLAY TPSTATUS('t')", "AMQ8754"),
    ("pubsub-display", "", "DISPLAY PUBSUB", "AMQ8723"),
    ("authrec-set", "", "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('g') AUTHADD(PUT)", "AMQ8862"),
    ("channel-created", "", "DEFINE CHANNEL(C.QM1) CHLTYPE(CLUSRCVR) CLUSTER(C)", "AMQ8014"),
    ("channel-changed", CLUSTERED, "ALTER CHANNEL(C.QM1) DESCR(D)", "AMQ8016"),
    ("channel-deleted", CLUSTERED, "DELETE CHANNEL(C.QM1)", "AMQ8015"),
    ("channel-display", CLUSTERED, "DISPLAY CHANNEL(C*)", "AMQ8414"),
    ("members-display", CLUSTERED, "DISPLAY CLUSQMGR(*)", "AMQ8441"),
    ("suspended", CLUSTERED, "SUSPEND QMGR CLUSTER(C)", "AMQ8557"),
    ("resumed", CLUSTERED, "RESUME QMGR CLUSTER(C)", "AMQ8556"),
    ("cluster-refreshed", CLUSTERED, "REFRESH CLUSTER(C)", "AMQ8558"),
    ("security", "", "REFRESH SECURITY(*)", "AMQ8560"),
    ("proxies-8.6", "", "REFRESH QMGR TYPE(PROXYSUB)", None),
    ("configuration-events", "", "REFRESH QMGR TYPE(CONFIGEV)", None),
]


@pytest.mark.rule("DIS-21", "DEREG-26")
@pytest.mark.parametrize(("before", "command", "amq"), [a[1:] for a in ANSWERS], ids=[a[0] for a in ANSWERS])
def test_what_succeeds_has_its_number(desk: Desk, before: str, command: str, amq: str | None) -> None:
    desk.must(before)
    answer = desk.ask(command)
    assert (answer.ok, answer.amq) == (True, amq)


REFUSED = [
    ("topic-there", "DEFINE TOPIC(T) TOPICSTR('t')", "DEFINE TOPIC(T) TOPICSTR('t')", "AMQ8150"),
    ("topic-missing", "", "ALTER TOPIC(T) PUB(ENABLED)", "AMQ8147"),
    ("topic-missing-delete", "", "DELETE TOPIC(T)", "AMQ8147"),
    ("topic-missing-display", "", "DISPLAY TOPIC(T)", "AMQ8147"),
    ("topic-generic-none", "", "DISPLAY TOPIC(ZZ*)", "AMQ8147"),
    ("topic-without-string", "", "DEFINE TOPIC(T)", "AMQ8421"),
    ("topic-string-taken-3300", "DEFINE TOPIC(T) TOPICSTR('t')", "DEFINE TOPIC(U) TOPICSTR('t')", "AMQ8404"),
    ("topic-string-kept-2.5.4", "DEFINE TOPIC(T) TOPICSTR('t')", "DEFINE TOPIC(T) TOPICSTR('u') REPLACE", "AMQ8404"),
    ("topic-string-kept-alter", "DEFINE TOPIC(T) TOPICSTR('t')", "ALTER TOPIC(T) TOPICSTR('u')", "AMQ8404"),
    ("topic-string-wild", "", "DEFINE TOPIC(T) TOPICSTR('t/#')", "AMQ8404"),
    ("topic-string-long", "", f"DEFINE TOPIC(T) TOPICSTR('{'t' * 10_241}')", "AMQ8413"),
    ("topic-like-missing", "", "DEFINE TOPIC(T) TOPICSTR('t') LIKE(U)", "AMQ8147"),
    ("topic-type-cluster", "", "DEFINE TOPIC(T) TOPICSTR('t') TYPE(CLUSTER)", "AMQ8405"),
    ("choice", "", "DEFINE TOPIC(T) TOPICSTR('t') WILDCARD(MAYBE)", "AMQ8425"),
    ("choice-empty", "", "DEFINE TOPIC(T) TOPICSTR('t') WILDCARD()", "AMQ8405"),
    ("choice-without-value", "", "DEFINE TOPIC(T) TOPICSTR('t') WILDCARD", "AMQ8405"),
    ("choice-two-values", "", "DEFINE TOPIC(T) TOPICSTR('t') PUB(ENABLED, DISABLED)", "AMQ8405"),
    ("number-range", "", "DEFINE TOPIC(T) TOPICSTR('t') DEFPRTY(10)", "AMQ8412"),
    ("number-word", "", "DEFINE TOPIC(T) TOPICSTR('t') DEFPRTY(HIGH)", "AMQ8425"),
    ("description-65", "", f"DEFINE QLOCAL(Q) DESCR('{'d' * 65}')", "AMQ8413"),
    ("name-49", "", f"DEFINE QLOCAL({'Q' * 49})", "AMQ8413"),
    ("name-characters", "", "DEFINE QLOCAL('a b')", "AMQ8424"),
    ("name-empty", "", "DEFINE QLOCAL('')", "AMQ8424"),
    ("keyword-unknown", "", "DEFINE QLOCAL(Q) COLOUR(RED)", "AMQ8405"),
    ("keyword-of-another-object", "", "DEFINE QLOCAL(Q) WILDCARD(BLOCK)", "AMQ8405"),
    ("alias-spelt-twice", "", "DEFINE QALIAS(A) TARGET(T) TARGQ(T)", "AMQ8405"),
    ("alias-without-target", "", "DEFINE QALIAS(A)", "AMQ8421"),
    ("alias-where-a-queue-is", "DEFINE QLOCAL(Q)", "DEFINE QALIAS(Q) TARGET(T) REPLACE", "AMQ8151"),
    ("queue-where-an-alias-is", "DEFINE QALIAS(A) TARGET(T)", "DELETE QLOCAL(A)", "AMQ8151"),
    ("replace-and-noreplace", "", "DEFINE QLOCAL(Q) REPLACE NOREPLACE", "AMQ8411"),
    ("queue-missing-clear", "", "CLEAR QLOCAL(NONE)", "AMQ8147"),
    ("control-queue-in-use", "", f"DELETE QLOCAL({CONTROL_QUEUE})", "AMQ8148"),
    ("stream-queue-in-use-6.5.5", "", f"DELETE QLOCAL({DEFAULT_STREAM}) PURGE", "AMQ8148"),
    ("namelist-in-use", "", f"DELETE NAMELIST({STREAMS})", "AMQ8148"),
    ("namelist-257", "", f"DEFINE NL(N) NAMES({','.join(['A'] * 257)})", "AMQ8554"),
    ("qmgr-with-a-name", "", "ALTER QMGR(QM1) PSMODE(ENABLED)", "AMQ8405"),
    ("qmgr-define", "", "DEFINE QMGR", "AMQ8405"),
    ("psmode-7.4.2-misprint", "", "ALTER QMGR PSMODE(ENABLE)", "AMQ8425"),
    ("refresh-without-type", "", "REFRESH QMGR", "AMQ8421"),
    ("refresh-type-unknown", "", "REFRESH QMGR TYPE(EVERYTHING)", "AMQ8425"),
    ("suspend-in-no-cluster", "", "SUSPEND QMGR CLUSTER(C)", "AMQ8404"),
    ("suspend-without-cluster", "", "SUSPEND QMGR", "AMQ8421"),
    ("suspend-another-object", "", "SUSPEND QLOCAL(Q)", "AMQ8405"),
    ("resume-in-no-cluster", "DEFINE NAMELIST(N) NAMES(C)", "RESUME QMGR CLUSNL(N)", "AMQ8404"),
    ("resume-keyword-unknown", "", "RESUME QMGR CLUSTER(C) COLOUR(RED)", "AMQ8405"),
    ("refresh-cluster", "", "REFRESH CLUSTER(C) REPOS(NO)", "AMQ8404"),
    ("object-not-here", "", "DEFINE CHANNEL(TO.QM2) CHLTYPE(SDR)", "AMQ8404"),
    ("verb-not-here", "", "RESET CHANNEL(C)", "AMQ8404"),
    ("object-unknown", "", "DEFINE NOTHING(X)", "AMQ8405"),
    ("verb-and-object", "", "CLEAR TOPIC(T)", "AMQ8405"),
    ("sub-without-topic", "", "DEFINE SUB(S) DEST(Q)", "AMQ8421"),
    ("sub-without-dest", "", "DEFINE SUB(S) TOPICSTR('t')", "AMQ8421"),
    ("sub-managed", "", "DEFINE SUB(S) TOPICSTR('t') DESTCLAS(MANAGED)", "AMQ8404"),
    ("sub-topicobj-missing", "", "DEFINE SUB(S) TOPICOBJ(T) DEST(Q)", "AMQ8147"),
    ("sub-selector", "", "DEFINE SUB(S) TOPICSTR('t') DEST(Q) SELECTOR('a =')", "AMQ8404"),
    ("sub-body-filter-3150", "", "DEFINE SUB(S) TOPICSTR('t') DEST(Q) SELECTOR('Body.x = 1')", "AMQ8404"),
    ("sub-level-10", "", "DEFINE SUB(S) TOPICSTR('t') DEST(Q) SUBLEVEL(10)", "AMQ8412"),
    ("sub-correl-hex", "", "DEFINE SUB(S) TOPICSTR('t') DEST(Q) DESTCORL('XYZ')", "AMQ8425"),
    ("sub-correl-long", "", f"DEFINE SUB(S) TOPICSTR('t') DEST(Q) DESTCORL('{'0' * 50}')", "AMQ8425"),
    ("sub-empty-topic", "", "DEFINE SUB(S) TOPICSTR('') TOPICOBJ('') DEST(Q)", "AMQ8421"),
    ("sub-missing", "", "ALTER SUB(S) USERDATA(X)", "AMQ8147"),
    ("sub-missing-id", "", "DELETE SUB SUBID('00')", "AMQ8147"),
    (
        "sub-dest-is-a-topic",
        "DEFINE QALIAS(A) TARGET(T) TARGTYPE(TOPIC)",
        "DEFINE SUB(S) TOPICSTR('t') DEST(A)",
        "AMQ8404",
    ),
    ("group-needs-destcorl-4.8.3", "", "DEFINE SUB(S) TOPICSTR('t') DEST(Q) GROUPSUB(YES)", "AMQ8404"),
    ("clear-without-clrtype", "", "CLEAR TOPICSTR('t')", "AMQ8421"),
    ("clear-global", "", "CLEAR TOPICSTR('t') CLRTYPE(RETAINED) SCOPE(ALL)", "AMQ8425"),
    ("tpstatus-none", "", "DISPLAY TPSTATUS('t')", "AMQ8147"),
    ("tpstatus-no-publishers", "DEFINE TOPIC(T) TOPICSTR('t')", "DISPLAY TPSTATUS('t') TYPE(PUB) ACTCON", "AMQ8147"),
    ("display-attribute", "", "DISPLAY QMGR COLOUR", "AMQ8405"),
    ("display-attribute-value", "", f"DISPLAY QLOCAL({DEFAULT_STREAM}) MAXDEPTH(5)", "AMQ8405"),
    ("where-attribute", "", "DISPLAY QLOCAL(*) WHERE(COLOUR EQ RED)", "AMQ8405"),
    ("where-two-values", "", "DISPLAY QLOCAL(*) WHERE(DESCR EQ A B)", "AMQ8569"),
    ("where-none", "", "DISPLAY QLOCAL(*) WHERE(CURDEPTH GT 0)", "AMQ8147"),
    ("authrec-no-profile", "", "SET AUTHREC OBJTYPE(TOPIC) GROUP('g') AUTHADD(PUB)", "AMQ8421"),
    ("authrec-nobody", "", "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) AUTHADD(PUT)", "AMQ8421"),
    ("authrec-nothing", "", "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('g')", "AMQ8421"),
    ("authrec-no-such-topic", "", "SET AUTHREC PROFILE(T) OBJTYPE(TOPIC) GROUP('g') AUTHADD(PUB)", "AMQ8147"),
    ("authrec-put-on-topic", "", "SET AUTHREC PROFILE('*') OBJTYPE(TOPIC) GROUP('g') AUTHADD(PUT)", "AMQ8425"),
    ("authrec-wild-part", "", "SET AUTHREC PROFILE('A**') OBJTYPE(QUEUE) GROUP('g') AUTHADD(PUT)", "AMQ8425"),
    ("authrec-wild-twice", "", "SET AUTHREC PROFILE('**.A.**') OBJTYPE(QUEUE) GROUP('g') AUTHADD(PUT)", "AMQ8425"),
    ("authrec-missing", "", "DELETE AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('g')", "AMQ8147"),
]


@pytest.mark.parametrize(("before", "command", "amq"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_refused_has_its_number_and_changes_nothing(desk: Desk, before: str, command: str, amq: str) -> None:
    desk.must(before)
    state = _state(desk)
    answer = desk.ask(command)
    assert (answer.ok, answer.amq, answer.changes) == (False, amq, ())
    assert _state(desk) == state


def _state(desk: Desk) -> object:
    objects = desk.objects
    kept = (objects.qmgr, objects.queues, objects.aliases, objects.namelists, objects.authorities)
    return (*map(repr, kept), list(objects.topics), desk.space.subscriptions(), dict(desk.shelf.messages))


def test_a_failure_stops_nothing_and_is_counted(desk: Desk) -> None:
    listing = desk.listing("DEFINE TOPIC(T1) TOPICSTR('t/1')\nNONSENSE\nDELETE TOPIC(X)\nDISPLAY TOPIC(T1) TOPICSTR\n")
    assert listing.splitlines()[-7:] == [
        "     4 : DISPLAY TOPIC(T1) TOPICSTR",
        "AMQ8633: Display topic details.",
        "   TOPIC(T1)                               TYPE(LOCAL)",
        "   TOPICSTR(t/1)",
        "4 MQSC commands read.",
        "One command has a syntax error.",
        "One valid MQSC command could not be processed.",
    ]


def test_a_long_command_is_echoed_line_by_line(desk: Desk) -> None:
    assert desk.listing("DEFINE QLOCAL(Q) +\n  DESCR('d')").splitlines()[:2] == [
        "     1 : DEFINE QLOCAL(Q) +",
        "       :   DESCR('d')",
    ]


def test_an_unknown_verb_is_told_the_known_ones(desk: Desk) -> None:
    lines = desk.ask("NONSENSE").lines
    assert lines[:3] == (
        "AMQ8405: Syntax error detected at or near end of command segment below:-",
        "NONSENSE",
        "AMQ8426: Valid MQSC commands are:",
    )
    assert "    DEFINE" in lines


def test_keywords_without_effect_are_named(desk: Desk) -> None:
    answer = desk.ask("DEFINE QLOCAL(Q) HARDENBO QDEPTHHI(90) MAXDEPTH(7) REPLACE")
    assert answer.lines == ("AMQ8006: WebSphere MQ queue created.", "(without effect here: HARDENBO QDEPTHHI)")
    assert desk.objects.queues["Q"] == LocalQueue("Q", max_depth=7)


@pytest.mark.parametrize(
    ("made", "amq"),
    [("QLOCAL(Q) TRIGGER", "AMQ8404"), ("QMODEL(M) TRIGGER", "AMQ8404"), ("QLOCAL(Q) USAGE(XMITQ) TRIGGER", "AMQ8006")],
)
def test_only_a_transmission_queue_can_be_triggered(desk: Desk, made: str, amq: str) -> None:
    assert desk.ask(f"DEFINE {made}").amq == amq


def test_changes_are_what_the_edge_keeps(desk: Desk) -> None:
    defined, deleted = desk.must("DEFINE QLOCAL(Q)\nDELETE QLOCAL(Q)")
    assert defined.changes == (DefinitionStored(LocalQueue("Q")),)
    assert deleted.changes == (DefinitionDeleted("qlocal", "Q"),)
    created, altered, removed = desk.must(
        "DEFINE SUB(S) TOPICSTR('t') DEST(D)\nALTER SUB(S) USERDATA('u')\nDELETE SUB(S)"
    )
    queue, added = created.changes
    assert queue == DefinitionStored(LocalQueue("D"))
    assert isinstance(added, SubscriptionAdded)
    assert altered.changes == (SubscriptionAltered(added.subscription, replace(added.subscription, user_data="u")),)
    assert removed.changes == (SubscriptionRemoved(replace(added.subscription, user_data="u")),)


# Topics, queues, namelists, the queue manager


def test_every_topic_attribute_is_kept_and_shown(desk: Desk) -> None:
    attributes = {
        "TOPICSTR": "Sport/Soccer",
        "DESCR": "d",
        "CLUSTER": "CL1",
        "CLROUTE": "TOPICHOST",
        "DURSUB": "NO",
        "PUB": "DISABLED",
        "SUB": "ENABLED",
        "DEFPSIST": "YES",
        "DEFPRTY": 9,
        "DEFPRESP": "ASYNC",
        "MDURMDL": "M1",
        "MNDURMDL": "M2",
        "PMSGDLV": "ALL",
        "NPMSGDLV": "ALLDUR",
        "PUBSCOPE": "QMGR",
        "SUBSCOPE": "ALL",
        "PROXYSUB": "FORCE",
        "WILDCARD": "BLOCK",
        "USEDLQ": "NO",
    }
    written = " ".join(f"{keyword}('{value}')" for keyword, value in attributes.items())
    desk.must(f"DEFINE TOPIC(T) {written}")
    assert desk.show("DISPLAY TOPIC(T)") == [{"TOPIC": "T", "TYPE": "LOCAL"} | attributes]
    # REPLACE gives every attribute anew; ASPARENT is the default of those that are inherited (guide 2.5.4).
    desk.must("DEFINE TOPIC(T) TOPICSTR('Sport/Soccer') REPLACE")
    [shown] = desk.show("DISPLAY TOPIC(T)")
    assert {shown[k] for k in ("DURSUB", "PUB", "SUB", "DEFPSIST", "DEFPRTY", "PMSGDLV", "PUBSCOPE")} == {"ASPARENT"}


def test_like_copies_all_but_the_topic_string(desk: Desk) -> None:
    desk.must("DEFINE TOPIC(A) TOPICSTR('a') WILDCARD(BLOCK) DESCR('x')\nDEFINE TOPIC(B) LIKE(A) TOPICSTR('b')")
    [shown] = desk.show("DISPLAY TOPIC(B) TOPICSTR WILDCARD DESCR")
    assert shown == {"TOPIC": "B", "TYPE": "LOCAL", "TOPICSTR": "b", "WILDCARD": "BLOCK", "DESCR": "x"}


def test_durable_subscriptions_are_refused_below_dursub_no(desk: Desk) -> None:
    """Guide 2.5.4: Sport/Soccer/TeamX/Results fails, Sport/Tennis/PlayerB/Results succeeds."""
    desk.must("DEFINE TOPIC(FOOTBALL.EUROPEAN) TOPICSTR('Sport/Soccer')\nALTER TOPIC(FOOTBALL.EUROPEAN) DURSUB(NO)")
    refused, made = desk.run(
        "DEFINE SUB(A) TOPICSTR('Sport/Soccer/TeamX/Results') DEST(Q)\n"
        "DEFINE SUB(B) TOPICSTR('Sport/Tennis/PlayerB/Results') DEST(Q)"
    )
    assert (refused.ok, made.ok) == (False, True)
    assert refused.detail == ("Topic object FOOTBALL.EUROPEAN is DURSUB(NO) (reason 2436).",)


def test_subscribing_is_refused_below_sub_disabled(desk: Desk) -> None:
    desk.must("DEFINE SUB(OLD) TOPICSTR('a/b') DEST(Q)\nDEFINE TOPIC(T) TOPICSTR('a') SUB(DISABLED)")
    assert desk.ask("DEFINE SUB(S) TOPICSTR('a/+') DEST(Q)").detail == (
        "Topic object T is SUB(DISABLED) (reason 2503).",
    )
    assert desk.ask("ALTER SUB(OLD) USERDATA('still mine')").ok


def test_every_queue_attribute_is_kept_and_shown(desk: Desk) -> None:
    desk.must(
        "DEFINE QLOCAL(Q) DESCR('d') PUT(DISABLED) GET(DISABLED) DEFPRTY(4) DEFPSIST(YES) MAXDEPTH(5) MAXMSGL(6) +\n"
        "  BOTHRESH(7) BOQNAME(B) USAGE(XMITQ) NOSHARE DEFSOPT(EXCL) MSGDLVSQ(FIFO) PROPCTL(NONE) DEFPRESP(ASYNC) +\n"
        "  TRIGGER TRIGTYPE(DEPTH) TRIGDPTH(8) TRIGMPRI(3) TRIGDATA('C') INITQ(I) PROCESS(P)"
    )
    desk.shelf.messages["Q"] = 2
    assert desk.show("DISPLAY QLOCAL(Q)") == [
        {
            "QUEUE": "Q",
            "TYPE": "QLOCAL",
            "DESCR": "d",
            "PUT": "DISABLED",
            "GET": "DISABLED",
            "DEFPRTY": 4,
            "DEFPSIST": "YES",
            "MAXDEPTH": 5,
            "MAXMSGL": 6,
            "BOTHRESH": 7,
            "BOQNAME": "B",
            "USAGE": "XMITQ",
            "SHARE": "NOSHARE",
            "DEFSOPT": "EXCL",
            "MSGDLVSQ": "FIFO",
            "PROPCTL": "NONE",
            "DEFPRESP": "ASYNC",
            "TRIGGER": "TRIGGER",
            "TRIGTYPE": "DEPTH",
            "TRIGDPTH": 8,
            "TRIGMPRI": 3,
            "TRIGDATA": "C",
            "INITQ": "I",
            "PROCESS": "P",
            "DEFTYPE": "PREDEFINED",
            "CURDEPTH": 2,
        }
    ]


def test_a_switch_is_a_word_that_stands_alone(desk: Desk) -> None:
    desk.must("DEFINE QLOCAL(Q) NOSHARE")
    assert desk.ask("DISPLAY QLOCAL(Q) SHARE TRIGGER").lines[2:] == (f"   {'NOSHARE':<40}NOTRIGGER",)
    desk.must("ALTER QLOCAL(Q) SHARE")
    assert desk.objects.queues["Q"].shareable
    assert desk.ask("ALTER QLOCAL(Q) SHARE NOSHARE").amq == "AMQ8405"


def test_a_queue_with_messages_is_deleted_only_with_purge(desk: Desk) -> None:
    desk.must("DEFINE QLOCAL(Q)")
    desk.shelf.messages["Q"] = 2
    assert desk.ask("DELETE QLOCAL(Q)").amq == "AMQ8143"
    assert "Q" in desk.objects.queues
    assert desk.ask("DELETE QLOCAL(Q) PURGE").cleared == 2
    assert "Q" not in desk.objects.queues


def test_replacing_a_queue_keeps_its_messages(desk: Desk) -> None:
    desk.must("DEFINE QLOCAL(Q)")
    desk.shelf.messages["Q"] = 2
    desk.must("DEFINE QLOCAL(Q) MAXDEPTH(1) REPLACE")
    assert desk.shelf.messages == {"Q": 2}


def test_system_queues_can_be_deleted_once_queued_publish_subscribe_is_off(desk: Desk) -> None:
    desk.must(f"ALTER QMGR PSMODE(COMPAT)\nDELETE QLOCAL({CONTROL_QUEUE})")
    assert CONTROL_QUEUE not in desk.objects.queues


@pytest.mark.rule("MIG-3")
def test_qmgr_attributes_of_guide_6_5_1(desk: Desk) -> None:
    desk.must(
        "ALTER QMGR PSMODE(DISABLED) PSRTYCNT(9) PSNPMSG(KEEP) PSNPRES(SAFE) PSSYNCPT(YES) TREELIFE(900) +\n"
        "DEADQ(MY.DLQ) PARENT(HQ) DESCR('d')"
    )
    assert desk.show("DISPLAY QMGR") == [
        {
            "QMNAME": "QM1",
            "DESCR": "d",
            "CUSTOM": "",
            "DEADQ": "MY.DLQ",
            "PARENT": "HQ",
            "PSMODE": "DISABLED",
            "PSNPMSG": "KEEP",
            "PSNPRES": "SAFE",
            "PSRTYCNT": 9,
            "PSSYNCPT": "YES",
            "TREELIFE": 900,
            "CONNAUTH": "SYSTEM.DEFAULT.AUTHINFO.IDPWOS",
            "CHLAUTH": "ENABLED",
            "SSLKEYR": "",
            "CERTLABL": "",
        }
    ]
    assert desk.show("DISPLAY QMGR PSMODE") == [{"QMNAME": "QM1", "PSMODE": "DISABLED"}]


NOTES = [
    ("6.5.4-queue-missing", "", f"ALTER NL({STREAMS}) NAMES({DEFAULT_STREAM}, X)", "there is no local queue X"),
    (
        "6.5.4-not-blocked",
        "DEFINE QLOCAL(X)\nDEFINE TOPIC(X) TOPICSTR('X')",
        f"ALTER NL({STREAMS}) NAMES({DEFAULT_STREAM}, X)",
        "not WILDCARD(BLOCK)",
    ),
    ("6.5.4-default-left-out", "", f"ALTER NL({STREAMS}) NAMES('')", "replaces the whole list"),
    (
        "6.5.5-subscriptions-left",
        "DEFINE QLOCAL(X)\nDEFINE TOPIC(X) TOPICSTR('X') WILDCARD(BLOCK)\n"
        f"ALTER NL({STREAMS}) NAMES({DEFAULT_STREAM}, X)\n"
        "DEFINE SUB(S) TOPICSTR('X/a') DEST(Q)",
        f"ALTER NL({STREAMS}) NAMES({DEFAULT_STREAM})",
        "the stream still has subscriptions: 1",
    ),
    (
        "6.5.5-topic-first",
        f"DEFINE TOPIC(X) TOPICSTR('X')\nALTER NL({STREAMS}) NAMES(X)",
        "DELETE TOPIC(X)",
        "at the root",
    ),
    (
        "6.5.6-topics-first",
        "",
        f"ALTER NL({SUB_POINTS}) NAMES(SYSTEM.BROKER.DEFAULT.SUBPOINT, USD)",
        "define the topics",
    ),
    ("6.5.6-default-left-out", "", f"ALTER NL({SUB_POINTS}) NAMES('')", "replaces the whole list"),
]


@pytest.mark.rule("QM-10")
@pytest.mark.parametrize(("before", "command", "note"), [n[1:] for n in NOTES], ids=[n[0] for n in NOTES])
def test_what_the_guide_asks_to_check_is_noted(desk: Desk, before: str, command: str, note: str) -> None:
    desk.must(before)
    answer = desk.ask(command)
    assert answer.ok
    assert note in " ".join(answer.notes)


# Subscriptions


def test_custom_has_the_switch_for_tags_of_publish(desk: Desk) -> None:
    for custom, strict in (
        ("pscTags(strict)", True),
        ("PSCTAGS(ANY)", False),
        ("OTHER(1)  PSCTAGS(STRICT)", True),
        ("", False),
    ):
        desk.must(f"ALTER QMGR CUSTOM('{custom}')")
        assert desk.objects.qmgr.strict_tags is strict
        assert desk.show("DISPLAY QMGR CUSTOM")[0]["CUSTOM"] == " ".join(custom.split())


@pytest.mark.parametrize("custom", ["PSCTAGS(SOMETIMES)", "PSCTAGS", "PSCTAGS(STRICT"])
def test_custom_takes_pairs_and_psctags_two_values(desk: Desk, custom: str) -> None:
    refused = desk.ask(f"ALTER QMGR CUSTOM('{custom}')")
    assert not refused.ok
    assert "AMQ8405" in refused.lines[0]
    assert desk.objects.qmgr.custom == ""


def _sub(desk: Desk, name: str = "S") -> Subscription:
    subscription = desk.space.by_name(name)
    assert subscription is not None
    return subscription


def test_define_sub_defaults(desk: Desk) -> None:
    desk.must("DEFINE SUB(S) TOPICSTR('a/+') DEST(Q)")
    made = _sub(desk)
    assert made == Subscription(
        sub_id=made.sub_id,
        topic_string="a/+",
        dest_queue="Q",
        dest_qmgr="QM1",
        created=NOW,
        name="S",
        user="admin",
        options=SubscriptionOptions(variable_user_id=True),
        format=PublicationFormat.PROPERTIES,
        admin=True,
    )


def test_every_subscription_attribute_is_kept_and_shown(desk: Desk) -> None:
    desk.must(
        "DEFINE TOPIC(T) TOPICSTR('a')\n"
        f"DEFINE SUB('s 1') TOPICOBJ(T) TOPICSTR('b?') DEST(Q) DESTQMGR(QM2) DESTCORL('{'AB' * 24}') EXPIRY(600) +\n"
        f"PSPROP(RFH2) PUBACCT('{'CD' * 32}') PUBAPPID('app') PUBPRTY(ASQDEF) REQONLY(YES) SELECTOR('x = ''y''') +\n"
        "SUBLEVEL(3) SUBSCOPE(QMGR) SUBUSER('fred') USERDATA('it''s') VARUSER(FIXED) WSCHEMA(CHAR) GROUPSUB(YES)"
    )
    [shown] = desk.show("DISPLAY SUB('s 1')")
    assert {k: v for k, v in shown.items() if k != "SUBID"} == {
        "SUB": "s 1",
        "TOPICSTR": "a/b?",
        "TOPICOBJ": "T",
        "DISTYPE": "RESOLVED",
        "DEST": "Q",
        "DESTQMGR": "QM2",
        "DESTCLAS": "PROVIDED",
        "DESTCORL": "AB" * 24,
        "DURABLE": "YES",
        "EXPIRY": 600,
        "SUBTYPE": "ADMIN",
        "CRDATE": "2009-01-28",
        "CRTIME": "11.43.00",
        "PSPROP": "RFH2",
        "SELECTOR": "x = 'y'",
        "USERDATA": "it's",
        "GROUPSUB": "YES",
        "PUBACCT": "CD" * 32,
        "PUBAPPID": "app",
        "PUBPRTY": "ASQDEF",
        "REQONLY": "YES",
        "SUBLEVEL": 3,
        "SUBSCOPE": "QMGR",
        "SUBUSER": "fred",
        "VARUSER": "FIXED",
        "WSCHEMA": "CHAR",
    }
    made = _sub(desk, "s 1")
    assert (made.wildcard, made.topic_object, made.pub_priority) == (WildcardScheme.CHAR, "T", -1)
    assert made.expires_at == NOW + timedelta(seconds=60)
    assert "Q" not in desk.objects.queues  # it is QM2's


TOPIC_NAMES = [
    ("TOPICSTR-alone", "TOPICSTR('Football/Scores')", "Football/Scores"),
    ("TOPICOBJ-alone", "TOPICOBJ(OBJ)", "Football"),
    ("both", "TOPICOBJ(OBJ) TOPICSTR('Scores')", "Football/Scores"),
    ("empty-level", "TOPICOBJ(OBJ) TOPICSTR('/Scores')", "Football//Scores"),
    ("object-is-never-wild", "TOPICOBJ(STAR) TOPICSTR('*') WSCHEMA(CHAR)", "a%*b/*"),
]


@pytest.mark.parametrize(
    ("keywords", "expected"), [t[1:] for t in TOPIC_NAMES], ids=[f"2.5.2-{t[0]}" for t in TOPIC_NAMES]
)
def test_topic_names_are_constructed(desk: Desk, keywords: str, expected: str) -> None:
    desk.must("DEFINE TOPIC(OBJ) TOPICSTR('Football')\nDEFINE TOPIC(STAR) TOPICSTR('a*b')")
    desk.must(f"DEFINE SUB(S) DEST(Q) {keywords}")
    assert _sub(desk).topic_string == expected


def test_distype_defined_shows_what_was_given(desk: Desk) -> None:
    desk.must("DEFINE TOPIC(OBJ) TOPICSTR('Football')\nDEFINE SUB(S) DEST(Q) TOPICOBJ(OBJ) TOPICSTR('Scores')")
    [shown] = desk.show("DISPLAY SUB(S) DISTYPE(DEFINED) TOPICSTR TOPICOBJ")
    assert (shown["TOPICSTR"], shown["TOPICOBJ"]) == ("Scores", "OBJ")


CORREL_IDS = [
    ("left-out", "", False, None),
    ("blank", "DESTCORL('')", False, None),
    ("zeros-keep-the-publishers", f"DESTCORL('{'0' * 48}')", True, "0" * 48),
    ("short-is-filled-up", "DESTCORL('414D51')", False, "414D51" + "0" * 42),
]


@pytest.mark.parametrize(("keyword", "keeps", "shown"), [c[1:] for c in CORREL_IDS], ids=[c[0] for c in CORREL_IDS])
def test_destcorl(desk: Desk, keyword: str, keeps: bool, shown: str | None) -> None:
    desk.must(f"DEFINE SUB(S) TOPICSTR('t') DEST(Q) {keyword}")
    made = _sub(desk)
    assert made.keep_correl_id is keeps
    [row] = desk.show("DISPLAY SUB(S) DESTCORL")
    assert row["DESTCORL"] == (shown or made.sub_id.hex().upper())


def test_a_subscription_keeps_its_place_when_it_is_changed(desk: Desk) -> None:
    """Guide 2.5.4, note to figure 8, and 7.5: topic, wildcard scheme and selector are made once."""
    desk.must("DEFINE SUB(S) TOPICSTR('a') DEST(Q) SELECTOR('x = 1')")
    before = _sub(desk)
    for command in (
        "ALTER SUB(S) TOPICSTR('b')",
        "ALTER SUB(S) WSCHEMA(CHAR)",
        "ALTER SUB(S) SELECTOR('x = 2')",
        "DEFINE SUB(S) TOPICSTR('b') DEST(Q) SELECTOR('x = 1') REPLACE",
        "DEFINE SUB(S) TOPICSTR('a') DEST(Q) REPLACE",
    ):
        assert desk.ask(command).amq == "AMQ8404"
        assert _sub(desk) == before
    desk.must("DEFINE SUB(S) TOPICSTR('a') DEST(R) SELECTOR('x = 1') REPLACE")
    assert _sub(desk) == replace(before, dest_queue="R")


def test_alter_sub_makes_a_programs_subscription_the_administrators(desk: Desk) -> None:
    own = Subscription(b"\1" * 24, "a/b", "Q", "QM1", NOW, name="S", stream="X", prefix="a", user="fred")
    desk.space.apply(Subscribe(own, False), NOW)
    assert desk.show("DISPLAY SUB(S) SUBTYPE")[0]["SUBTYPE"] == "API"
    desk.must("ALTER SUB SUBID('" + "01" * 24 + "') DEST(R)")
    assert _sub(desk) == replace(own, dest_queue="R", admin=True)


def test_subscriptions_come_after_those_that_there_are(desk: Desk) -> None:
    """Deliveries go in the order of sub_id, which is that of registration."""
    desk.must("DEFINE SUB(B) TOPICSTR('t') DEST(Q)\nDEFINE SUB(A) TOPICSTR('t') DEST(Q)")
    later = Administration.of(desk.objects, desk.space, NOW)
    [statement] = parse("DEFINE SUB(AA) TOPICSTR('t') DEST(Q)")
    assert execute(statement, later).ok
    assert [s.name for s in desk.space.match("t", NOW)] == ["B", "A", "AA"]
    assert len({s.sub_id for s in desk.space.subscriptions()}) == 3


def test_sub_ids_are_above_those_of_commands_and_never_meet_them(desk: Desk) -> None:
    from commands.broker.descriptor import message_id

    theirs = message_id("QM1", 7, 3)
    desk.space.apply(Subscribe(Subscription(theirs, "t", "Q", "QM1", NOW), False), NOW)
    administration = Administration.of(desk.objects, desk.space, NOW)
    ours = administration.new_sub_id()
    assert theirs < message_id("QM1", 7, 99) < ours < message_id("QM1", 8, 1)


@pytest.mark.rule("APP-2")
def test_retained_publications_reach_a_new_subscription_at_once(desk: Desk) -> None:
    """Guide 4.8.2, and the administrator's subscription of 4.3; 4.6.1 for SUBLEVEL."""
    desk.publish("t/1", retain=True)
    [made] = desk.must("DEFINE SUB(S) TOPICSTR('t/+') DEST(Q)")
    assert [c.topic_string for c in made.changes if isinstance(c, Delivery)] == ["t/1"]
    for keyword in ("REQONLY(YES)", "SUBLEVEL(2)"):
        [none] = desk.must(f"DEFINE SUB('{keyword}') TOPICSTR('t/+') DEST(Q) {keyword}")
        assert [c for c in none.changes if isinstance(c, Delivery)] == []
    again = desk.must("DEFINE SUB(S) TOPICSTR('t/+') DEST(Q) REPLACE\nALTER SUB(S) USERDATA(X)")
    assert [c for answer in again for c in answer.changes if isinstance(c, Delivery)] == []


def test_an_expired_subscription_frees_its_name(desk: Desk) -> None:
    desk.must("DEFINE SUB(S) TOPICSTR('t') DEST(Q) EXPIRY(10)")
    old = _sub(desk)
    desk.administration.now = NOW + timedelta(seconds=2)
    assert desk.ask("DISPLAY SUB(S)").amq == "AMQ8147"
    answer = desk.ask("DEFINE SUB(S) TOPICSTR('u') DEST(Q)")
    assert answer.ok
    assert old not in desk.space.subscriptions()


def test_the_edge_learns_what_expired_even_from_a_command_that_fails(desk: Desk) -> None:
    desk.must("DEFINE SUB(S) TOPICSTR('t') DEST(Q) EXPIRY(10)")
    old = _sub(desk)
    desk.administration.now = NOW + timedelta(seconds=2)
    assert desk.ask("DELETE SUB(S)").changes == (SubscriptionRemoved(old),)


def test_a_strict_queue_manager_makes_no_queue() -> None:
    desk = Desk(strict=True)
    assert desk.ask("DEFINE SUB(S) TOPICSTR('t') DEST(NONE)").amq == "AMQ8147"
    desk.must("DEFINE QLOCAL(Q)\nDEFINE QALIAS(A) TARGET(Q)\nDEFINE SUB(S) TOPICSTR('t') DEST(A)")
    assert set(desk.objects.queues) - set(Objects(QueueManager("X")).queues) == {"Q"}


# DISPLAY: generic names, WHERE, attributes


def _named(desk: Desk, command: str, key: str) -> list[Any]:
    answer = desk.ask(command)
    return [row[key] for row in answer.objects]


FILTERS = [
    ("EQ", "DEFPRTY EQ 5", ["B"]),
    ("NE", "DEFPRTY NE 5", ["A", "C"]),
    ("GT-number-is-no-text", "DEFPRTY GT 10", []),
    ("GE", "DEFPRTY GE 3", ["B", "C"]),
    ("LT-word-is-no-number", "DEFPRTY LT 9", ["B", "C"]),
    ("LE", "DEFPRTY LE 3", ["C"]),
    ("EQ-word", "DEFPRTY EQ ASPARENT", ["A"]),
    ("LK", "DESCR LK 'x*'", ["A", "B"]),
    ("NL", "DESCR NL 'x*'", ["C"]),
    ("LK-whole", "DESCR LK 'x1'", ["A"]),
    ("EQ-blank", "DESCR EQ ''", ["C"]),
    ("text-GT", "DESCR GT 'x1'", ["B"]),
    ("without-effect", "MCAST EQ ''", ["A", "B", "C"]),
]


@pytest.mark.parametrize(("condition", "expected"), [f[1:] for f in FILTERS], ids=[f[0] for f in FILTERS])
def test_where(desk: Desk, condition: str, expected: list[str]) -> None:
    desk.must(
        "DEFINE TOPIC(A) TOPICSTR('a') DESCR('x1')\n"
        "DEFINE TOPIC(B) TOPICSTR('b') DESCR('x2') DEFPRTY(5)\n"
        "DEFINE TOPIC(C) TOPICSTR('c') DEFPRTY(3)\n"
        "DELETE TOPIC(SYSTEM.BASE.TOPIC)\n" + "\n".join(f"DELETE TOPIC({name})" for name, _ in SYSTEM_TOPICS)
    )
    named = _named(desk, f"DISPLAY TOPIC(*) WHERE({condition})", "TOPIC")
    assert [name for name in named if not name.startswith("SYSTEM.")] == expected


LIST_FILTERS = [
    ("CT", "NAMES CT B1", ["N1"]),
    ("EX", "NAMES EX B1", ["N2"]),
    ("CTG", "NAMES CTG 'B*'", ["N1", "N2"]),
    ("EXG", "NAMES EXG 'A*'", ["N2"]),
]


@pytest.mark.parametrize(("condition", "expected"), [f[1:] for f in LIST_FILTERS], ids=[f[0] for f in LIST_FILTERS])
def test_where_on_lists(desk: Desk, condition: str, expected: list[str]) -> None:
    desk.must("DEFINE NL(N1) NAMES(A1,B1)\nDEFINE NL(N2) NAMES(B2)")
    assert _named(desk, f"DISPLAY NL(N*) WHERE({condition})", "NAMELIST") == expected


SHOWN = [
    ("full-name-shows-all", "DISPLAY NL(N)", {"NAMELIST": "N", "DESCR": "", "NAMES": ("A",), "NAMCOUNT": 1}),
    ("generic-shows-names", "DISPLAY NL(N*)", {"NAMELIST": "N"}),
    ("generic-all", "DISPLAY NL(N*) ALL", {"NAMELIST": "N", "DESCR": "", "NAMES": ("A",), "NAMCOUNT": 1}),
    ("asked-for", "DISPLAY NL(N) NAMES", {"NAMELIST": "N", "NAMES": ("A",)}),
    ("where-adds-its-own", "DISPLAY NL(N*) WHERE(NAMES CT A)", {"NAMELIST": "N", "NAMES": ("A",)}),
    ("without-effect-is-blank", "DISPLAY NL(N) ALTDATE", {"NAMELIST": "N", "ALTDATE": ""}),
]


@pytest.mark.parametrize(("command", "expected"), [s[1:] for s in SHOWN], ids=[s[0] for s in SHOWN])
def test_which_attributes_are_shown(desk: Desk, command: str, expected: dict[str, object]) -> None:
    desk.must("DEFINE NL(N) NAMES(A)")
    assert desk.show(command) == [expected]


def test_display_queue_shows_both_kinds(desk: Desk) -> None:
    desk.must("DEFINE QLOCAL(A.1)\nDEFINE QALIAS(A.0) TARGET('Sport') TARGTYPE(TOPIC)")
    assert desk.show("DISPLAY QUEUE(A.*) TARGTYPE") == [
        {"QUEUE": "A.0", "TYPE": "QALIAS", "TARGTYPE": "TOPIC"},
        {"QUEUE": "A.1", "TYPE": "QLOCAL"},
    ]
    assert _named(desk, "DISPLAY Q(A.*) TYPE(QLOCAL)", "QUEUE") == ["A.1"]


def test_model_queues(desk: Desk) -> None:
    desk.must(
        "DEFINE QMODEL(M) DEFTYPE(PERMDYN) DESCR('of a model') MAXDEPTH(7)\n"
        "DEFINE QM(N) LIKE(M)\n"
        "ALTER QMODEL(N) DEFTYPE(SHAREDYN)\n"
        "DEFINE QMODEL(O)\n"
        "DEFINE QMODEL(M) REPLACE DEFTYPE(TEMPDYN)\n"
    )
    assert desk.show("DISPLAY QMODEL(N) DEFTYPE MAXDEPTH DESCR") == [
        {"QUEUE": "N", "TYPE": "QMODEL", "DEFTYPE": "SHAREDYN", "MAXDEPTH": 7, "DESCR": "of a model"}
    ]
    assert _named(desk, "DISPLAY QMODEL(*) WHERE(DEFTYPE EQ TEMPDYN) DESCR", "QUEUE")[:2] == ["M", "O"]
    assert _named(desk, "DISPLAY QUEUE(*) TYPE(QMODEL) DEFTYPE", "QUEUE")[:3] == ["M", "N", "O"]
    assert desk.ask("DEFINE QLOCAL(M)").amq == desk.ask("DELETE QALIAS(M)").amq == "AMQ8151"
    assert desk.ask("DEFINE QMODEL(M)").amq == "AMQ8150"
    assert desk.ask("ALTER QMODEL(M) DEFTYPE(PREDEFINED)").amq == "AMQ8425"
    desk.must("DELETE QMODEL(M)")
    assert desk.ask("DISPLAY QMODEL(M)").amq == "AMQ8147"


def test_defaults_that_finding_them_is_for(desk: Desk) -> None:
    """Scripts of IBM MQ alter its default objects and define others like them."""
    desk.must(
        "ALTER TOPIC(SYSTEM.DEFAULT.TOPIC) DEFPSIST(YES)\n"
        "DEFINE QMODEL(MY.MODEL) LIKE(SYSTEM.JMS.MODEL.QUEUE)\n"
        "ALTER QLOCAL(SYSTEM.JMS.REPORT.QUEUE) MAXDEPTH(10)\n"
        "DISPLAY TOPIC(SYSTEM.BROKER.DEFAULT.STREAM)\n"
    )
    assert desk.show("DISPLAY QMODEL(MY.MODEL) DEFTYPE")[0]["DEFTYPE"] == "PERMDYN"
    assert desk.show("DISPLAY QLOCAL(SYSTEM.JMS.D.SUBSCRIBER.QUEUE) DEFTYPE DEFPSIST MAXDEPTH") == [
        {
            "QUEUE": "SYSTEM.JMS.D.SUBSCRIBER.QUEUE",
            "TYPE": "QLOCAL",
            "DEFTYPE": "PREDEFINED",
            "DEFPSIST": "YES",
            "MAXDEPTH": 100_000,
        }
    ]


@pytest.mark.rule("D-18")
def test_a_subscription_delivers_to_no_queue_of_a_program(desk: Desk) -> None:
    """Guide 6.7.4: a temporary dynamic queue goes with its program, and DEFINE SUB is durable."""
    desk.objects.put(LocalQueue("AMQ.1", definition_type="TEMPDYN"))
    desk.objects.put(LocalQueue("PERM.1", definition_type="PERMDYN"))
    desk.must("DEFINE QALIAS(TO.IT) TARGET(AMQ.1)\nDEFINE SUB(S) TOPICSTR('t') DEST(PERM.1)")
    for queue in ("AMQ.1", "TO.IT", "SYSTEM.DEFAULT.MODEL.QUEUE"):
        answer = desk.ask(f"DEFINE SUB(T) TOPICSTR('t') DEST({queue})")
        assert not answer.ok
        assert "2522" in " ".join(answer.lines)


def test_a_subscription_delivers_to_no_queue_that_the_queue_manager_reads(desk: Desk) -> None:
    """It would publish its own publications again, without end."""
    desk.must("DEFINE SUB(S) TOPICSTR('t') DEST(Q)\nDEFINE QALIAS(TO.IT) TARGET(SYSTEM.BROKER.DEFAULT.STREAM)")
    for queue in ("SYSTEM.BROKER.DEFAULT.STREAM", "TO.IT", "SYSTEM.BROKER.CONTROL.QUEUE"):
        for command in (f"DEFINE SUB(T) TOPICSTR('t') DEST({queue})", f"ALTER SUB(S) DEST({queue})"):
            answer = desk.ask(command)
            assert not answer.ok
            assert "2522" in " ".join(answer.lines)
    assert [each.dest_queue for each in desk.space.subscriptions()] == ["Q"]


def test_display_sub_by_kind(desk: Desk) -> None:
    desk.space.apply(Subscribe(Subscription(b"\1" * 24, "a", "Q", "QM1", NOW), False), NOW)
    desk.must("DEFINE SUB(S1) TOPICSTR('t') DEST(SYSTEM.Q)\nDEFINE SUB(S2) TOPICSTR('t') DEST(Q)")
    assert _named(desk, "DISPLAY SUB(*)", "SUB") == ["", "S1", "S2"]
    assert _named(desk, "DISPLAY SUB(*) SUBTYPE(API)", "SUBID") == ["01" * 24]
    assert _named(desk, "DISPLAY SUB(*) SUBTYPE(ADMIN)", "SUB") == ["S1", "S2"]
    assert desk.ask("DISPLAY SUB(*) SUBTYPE(PROXY)").amq == "AMQ8147"
    assert _named(desk, "DISPLAY SUB(*) WHERE(DEST LK 'SYSTEM*')", "SUB") == ["S1"]
    assert _named(desk, "DISPLAY SUB SUBID('" + "01" * 24 + "') DEST", "DEST") == ["Q"]
    assert desk.show("DISPLAY SUB(S1) DURABLE")[0]["DURABLE"] == "YES"
    assert desk.ask("DISPLAY SUB(*) DURABLE(NO)").amq == "AMQ8147"


# The topic tree


def test_topic_status_of_guide_2_5_3_1(desk: Desk) -> None:
    desk.must(
        "DEFINE TOPIC('Alabama') TOPICSTR('USA/Alabama') PUB(DISABLED)\nDEFINE SUB(S) TOPICSTR('USA/Alabama/#') DEST(Q)"
    )
    desk.publish("USA/Alabama/Auburn", retain=True)
    assert _named(desk, "DISPLAY TPSTATUS('#') TYPE(TOPIC)", "TOPICSTR") == [
        "USA",
        "USA/Alabama",
        "USA/Alabama/#",
        "USA/Alabama/Auburn",
    ]
    assert _named(desk, "DISPLAY TPSTATUS('USA/+')", "TOPICSTR") == ["USA/Alabama"]
    assert desk.show("DISPLAY TPSTATUS('USA/Alabama') RETAINED") == [{"TOPICSTR": "USA/Alabama", "RETAINED": "NO"}]
    assert desk.show("DISPLAY TPSTATUS('USA/Alabama/Auburn') RETAINED PUB ADMIN") == [
        {"TOPICSTR": "USA/Alabama/Auburn", "RETAINED": "YES", "PUB": "DISABLED", "ADMIN": ""}
    ]
    assert desk.show("DISPLAY TPSTATUS('USA/Alabama') ADMIN")[0]["ADMIN"] == "Alabama"
    assert _named(desk, "DISPLAY TPSTATUS('USA/Alabama/#') TYPE(SUB) ACTCON", "SUBID") == [
        _sub(desk).sub_id.hex().upper()
    ]
    assert _named(desk, "DISPLAY TPS('#') WHERE(SUBCOUNT GT 0)", "TOPICSTR") == ["USA/Alabama/#"]


CLEARED = [
    ("exact", "USA/Alabama", ["USA/Alabama"]),
    ("single-level", "USA/+", ["USA/Alabama", "USA/Texas"]),
    ("multi-level", "USA/#", ["USA/Alabama", "USA/Alabama/Auburn", "USA/Texas"]),
    ("not-wild", "USA/Ala#", []),
]


@pytest.mark.parametrize(("pattern", "expected"), [c[1:] for c in CLEARED], ids=[c[0] for c in CLEARED])
@pytest.mark.parametrize("keyword", ["CLRTYPE", "CLTRTYPE"])
def test_clear_topicstr(desk: Desk, pattern: str, expected: list[str], keyword: str) -> None:
    for topic in ("USA/Alabama", "USA/Alabama/Auburn", "USA/Texas", "Wales"):
        desk.publish(topic, retain=True)
    answer = desk.ask(f"CLEAR TOPICSTR('{pattern}') {keyword}(RETAINED)")
    assert (answer.ok, answer.cleared) == (True, len(expected))
    assert answer.changes == tuple(RetainedCleared(topic) for topic in expected)


def test_clear_topicstr_does_not_heed_block(desk: Desk) -> None:
    desk.must("DEFINE TOPIC(T) TOPICSTR('Sport') WILDCARD(BLOCK)")
    desk.publish("Sport/Soccer", retain=True)
    assert desk.ask("CLEAR TOPICSTR('#') CLRTYPE(RETAINED)").cleared == 1
    assert desk.space.retained_publications() == ()


@pytest.mark.rule("PS-13")
def test_2_5_3_1_unused_topics_are_not_in_the_tree(desk: Desk) -> None:
    """A wildcard subscription keeps no topic that was merely published on; where nothing is counted, nothing does."""
    desk.must("DEFINE SUB(AUDIT) TOPICSTR('Session/#') DEST(Q)")
    before = desk.show("DISPLAY PUBSUB ALL")
    for session in range(1000):
        desk.publish(f"Session/{session}")
    assert desk.show("DISPLAY PUBSUB ALL") == before
    assert [row["TOPICSTR"] for row in desk.show("DISPLAY TPSTATUS('#') TYPE(TOPIC)")] == ["Session", "Session/#"]


def test_display_pubsub_counts(desk: Desk) -> None:
    desk.must("DEFINE SUB(S) TOPICSTR('a/b') DEST(Q)")
    assert desk.show("DISPLAY PUBSUB ALL") == [
        {"QMNAME": "QM1", "TYPE": "LOCAL", "STATUS": "ACTIVE", "SUBCOUNT": 1, "TPCOUNT": 2}
    ]
    desk.must("ALTER QMGR PSMODE(COMPAT)")
    assert desk.show("DISPLAY PUBSUB STATUS")[0]["STATUS"] == "COMPAT"


class _Network:
    """A parent and two children."""

    def of(self, qmgr: QueueManager) -> tuple[Neighbour, ...]:
        others = (("QM2", Relation.CHILD, "ACTIVE"), ("QM3", Relation.CHILD, "STOPPING"))
        return (Neighbour(qmgr.parent, Relation.PARENT, "STARTING"), *(Neighbour(*other) for other in others))

    def members(self) -> tuple[Neighbour, ...]:
        return ()

    def refresh_proxies(self) -> int:
        return 3

    def refresh_cluster(self, cluster: str) -> int:
        return 0

    def repository(self) -> tuple[RepositoryEntry, ...]:
        return ()


@pytest.mark.rule("DIS-20")
def test_3_2_2_display_pubsub_shows_the_neighbours(desk: Desk) -> None:
    desk.must("ALTER QMGR PARENT(QM0)")
    alone = desk.show("DISPLAY PUBSUB TYPE(PARENT) STATUS")
    assert alone == [{"QMNAME": "QM0", "TYPE": "PARENT", "STATUS": "INACTIVE"}]
    desk.administration.neighbours = _Network()
    shown = [(row["QMNAME"], row["TYPE"], row["STATUS"]) for row in desk.show("DISPLAY PUBSUB TYPE(ALL) STATUS")]
    assert shown == [
        ("QM1", "LOCAL", "ACTIVE"),
        ("QM0", "PARENT", "STARTING"),
        ("QM2", "CHILD", "ACTIVE"),
        ("QM3", "CHILD", "STOPPING"),
    ]
    assert len(desk.show("DISPLAY PUBSUB TYPE(CHILD)")) == 2
    assert desk.ask("REFRESH QMGR TYPE(PROXYSUB)").text == "Proxy subscriptions are sent to 3 queue managers again."


# Authority


def test_authority_records_grow_and_shrink(desk: Desk) -> None:
    desk.must(
        "DEFINE TOPIC(FRUIT) TOPICSTR('Price/Fruit')\n"
        "SET AUTHREC PROFILE(FRUIT) OBJTYPE(TOPIC) PRINCIPAL('USER1') AUTHADD(SUB)\n"
        "SET AUTHREC PROFILE(FRUIT) OBJTYPE(TOPIC) PRINCIPAL('USER1') AUTHADD(PUB, RESUME)\n"
        "SET AUTHREC PROFILE(FRUIT) OBJTYPE(TOPIC) PRINCIPAL('USER1') AUTHRMV(RESUME)\n"
        "SET AUTHREC PROFILE('SYSTEM.BROKER.**') OBJTYPE(QUEUE) GROUP('apps') AUTHADD(ALLMQI) AUTHRMV(NONE)"
    )
    assert list(desk.objects.authorities.values()) == [
        AuthorityRecord("TOPIC", "FRUIT", "PRINCIPAL", "USER1", ("PUB", "SUB")),
        AuthorityRecord(
            "QUEUE",
            "SYSTEM.BROKER.**",
            "GROUP",
            "apps",
            ("BROWSE", "GET", "INQ", "PASSALL", "PASSID", "PUT", "SET", "SETALL", "SETID"),
        ),
    ]
    assert desk.show("DISPLAY AUTHREC PROFILE(FRUIT)") == [
        {
            "PROFILE": "FRUIT",
            "ENTITY": "USER1",
            "ENTTYPE": "PRINCIPAL",
            "OBJTYPE": "TOPIC",
            "AUTHLIST": ("PUB", "SUB"),
        }
    ]
    assert _named(desk, "DISPLAY AUTHREC GROUP('apps')", "PROFILE") == ["SYSTEM.BROKER.**"]
    assert _named(desk, "DISPLAY AUTHREC WHERE(AUTHLIST CT PUB)", "PROFILE") == ["FRUIT"]


@pytest.mark.parametrize(("keyword", "left"), [("", 0), ("AUTHREC(YES)", 0), ("AUTHREC(NO)", 1)])
def test_authority_records_go_with_their_object(desk: Desk, keyword: str, left: int) -> None:
    desk.must("DEFINE TOPIC(T) TOPICSTR('t')\nSET AUTHREC PROFILE(T) OBJTYPE(TOPIC) GROUP('g') AUTHADD(ALL)")
    [answer] = desk.must(f"DELETE TOPIC(T) {keyword}")
    assert len(desk.objects.authorities) == left
    assert len(answer.changes) == 2 - left


@pytest.mark.rule("SEC-1")
def test_the_first_record_switches_checking_on_and_the_last_one_off(desk: Desk) -> None:
    grant = "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('{}') AUTHADD(PUT)"
    first, second = desk.must(f"{grant.format('a')}\n{grant.format('b')}")
    assert (len(first.notes), len(second.notes)) == (1, 0)
    one, other = desk.must("\n".join(f"DELETE AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('{g}')" for g in "ab"))
    assert (len(one.notes), len(other.notes)) == (0, 1)


SUBUSERS = [
    ("DEFINE-completed", "DEFINE SUB(N) TOPICSTR('t') DEST(Q) SUBUSER('fred')", "AMQ8135"),
    ("DEFINE-completed-allowed", "DEFINE SUB(N) TOPICSTR('t') DEST(Q) SUBUSER('ann')", "AMQ8094"),
    ("DEFINE-allowed-by-group", "DEFINE SUB(N) TOPICSTR('t') DEST(Q) SUBUSER('bob')", "AMQ8094"),
    ("DEFINE-blank", "DEFINE SUB(N) TOPICSTR('t') DEST(Q) SUBUSER('')", "AMQ8094"),
    ("DEFINE-not-specified", "DEFINE SUB(N) TOPICSTR('t') DEST(Q)", "AMQ8094"),
    ("DEFINE-elsewhere", "DEFINE SUB(N) TOPICSTR('t') DEST(Q) DESTQMGR(QM2) SUBUSER('fred')", "AMQ8094"),
    ("ALTER-completed", "ALTER SUB(S) SUBUSER('fred')", "AMQ8135"),
    ("ALTER-blank", "ALTER SUB(S) SUBUSER('') DEST(R)", "AMQ8095"),
    ("ALTER-not-specified", "ALTER SUB(S) DEST(R)", "AMQ8135"),
    ("ALTER-something-else", "ALTER SUB(S) USERDATA('x')", "AMQ8095"),
]


@pytest.mark.parametrize(("command", "amq"), [c[1:] for c in SUBUSERS], ids=[f"5-table-2-{c[0]}" for c in SUBUSERS])
def test_the_subscriptions_user_must_be_allowed_to_put_on_its_queue(desk: Desk, command: str, amq: str) -> None:
    desk.administration.groups_of = lambda user: {"bob": ("apps",)}.get(user, ())
    desk.must(
        "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) PRINCIPAL('ann') AUTHADD(PUT)\n"
        "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('apps') AUTHADD(PUT)\n"
        "DEFINE SUB(S) TOPICSTR('s') DEST(Q) SUBUSER('ann')"
    )
    assert desk.ask(command).amq == amq


def test_like_copies_a_subscription_but_not_its_place(desk: Desk) -> None:
    desk.must("DEFINE SUB(S) TOPICSTR('a') DEST(Q) EXPIRY(600) USERDATA('u') DESTCORL('AB') SUBLEVEL(2)")
    desk.administration.now = NOW + timedelta(seconds=30)
    desk.must("DEFINE SUB(N) LIKE(S) TOPICSTR('b')")
    source, made = _sub(desk), _sub(desk, "N")
    assert made == replace(
        source,
        sub_id=made.sub_id,
        name="N",
        topic_string="b",
        created=NOW + timedelta(seconds=30),
        expires_at=NOW + timedelta(seconds=90),
    )


def test_definitions_come_back_from_their_json(desk: Desk) -> None:
    answers = desk.must(
        "DEFINE TOPIC(T) TOPICSTR('t') DEFPRTY(3)\nDEFINE QLOCAL(Q)\nDEFINE QALIAS(A) TARGET(T) TARGTYPE(TOPIC)\n"
        "DEFINE NL(N) NAMES(A,B)\nALTER QMGR TREELIFE(9)\n"
        "SET AUTHREC PROFILE(T) OBJTYPE(TOPIC) PRINCIPAL('a b') AUTHADD(PUB)"
    )
    stored = [
        change.definition for answer in answers for change in answer.changes if isinstance(change, DefinitionStored)
    ]
    assert len(stored) == 6
    for definition in stored:
        assert definition_of(kind_of(definition), state_of(definition)) == definition


# Setting up


def test_run_setup_makes_the_queue_manager(desk: Desk) -> None:
    run_setup("DEFINE QLOCAL(X.Q)\nDEFINE SUB(S1) TOPICSTR('a/+') DEST(X.Q)\n", desk.objects, desk.space, NOW)
    assert "X.Q" in desk.objects.queues
    assert desk.receivers("a/b") == {"S1"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("* c\nDEFINE QLOCAL(Q)\nNONSENSE\n", "line 3: NONSENSE: AMQ8405: Syntax error"),
        ("DEFINE +\nTOPIC(T)\n", "line 1: DEFINE TOPIC(T): AMQ8421: A required keyword was not specified."),
        ("DELETE SUB(S)", "line 1: DELETE SUB(S): AMQ8147: WebSphere MQ object S not found."),
    ],
)
def test_run_setup_must_be_right(desk: Desk, script: str, message: str) -> None:
    with pytest.raises(QPubSubError) as caught:
        run_setup(script, desk.objects, desk.space, NOW)
    assert str(caught.value).startswith(message)


def test_setting_up_twice_gives_the_same(desk: Desk) -> None:
    script = "DEFINE SUB(A) TOPICSTR('t') DEST(Q)\nDEFINE SUB(B) TOPICSTR('t') DEST(Q)"
    other = Desk()
    for each in (desk, other):
        run_setup(script, each.objects, each.space, NOW)
    assert desk.space.subscriptions() == other.space.subscriptions()


# JSON


def test_an_answer_as_json(desk: Desk) -> None:
    desk.must("DEFINE NL(N) NAMES(A,B)")
    assert desk.ask("DISPLAY NL(N) NAMES").as_json() == {
        "ok": True,
        "amq": "AMQ8550",
        "text": "Display namelist details.",
        "objects": [{"NAMELIST": "N", "NAMES": ["A", "B"]}],
        "cleared": None,
        "notes": [],
    }
    assert desk.ask("DELETE NL(X)").as_json()["text"] == "WebSphere MQ object X not found."


SYSTEM_TOPICS = [
    ("SYSTEM.DEFAULT.TOPIC", "ASPARENT"),
    ("SYSTEM.BROKER.DEFAULT.STREAM", "ASPARENT"),
    ("SYSTEM.BROKER.ADMIN.STREAM", "ENABLED"),
    ("SYSTEM.BROKER.DEFAULT.SUBPOINT", "ASPARENT"),
]


@pytest.mark.rule("PS-18")
@pytest.mark.parametrize(("name", "pub"), SYSTEM_TOPICS, ids=[name for name, _ in SYSTEM_TOPICS])
def test_topic_objects_that_a_queue_manager_has(name: str, pub: str) -> None:
    desk = Desk()
    (shown,) = desk.ask(f"DISPLAY TOPIC({name}) TOPICSTR PUB").objects
    assert (shown["TOPICSTR"], shown["PUB"]) == ("", pub)


@pytest.mark.rule("PS-18")
def test_define_topic_takes_what_it_does_not_give_from_the_default_topic() -> None:
    desk = Desk()
    desk.ask("ALTER TOPIC(SYSTEM.DEFAULT.TOPIC) DURSUB(NO)")
    desk.ask("DEFINE TOPIC(T) TOPICSTR('t')")
    (shown,) = desk.ask("DISPLAY TOPIC(T) TOPICSTR DURSUB").objects
    assert (shown["TOPICSTR"], shown["DURSUB"]) == ("t", "NO")


def test_an_empty_topicstr_is_the_root_and_said_to_be() -> None:
    desk = Desk()
    assert desk.ask("DEFINE TOPIC(T) TOPICSTR('')").notes == (
        "T has no TOPICSTR: its topics are at the root. IBM MQ refuses an empty TOPICSTR",
    )
    assert desk.ask("DEFINE TOPIC(U) TOPICSTR('u')").notes == ()


FOLDED = [
    ("SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) PRINCIPAL(app1) AUTHADD(PUB)", "PRINCIPAL(APP1)"),
    ("SET AUTHREC PROFILE(SYSTEM.BASE.TOPIC) OBJTYPE(TOPIC) GROUP(apps) AUTHADD(PUB)", "GROUP(APPS)"),
    ("DEFINE SUB(S) TOPICSTR('t') DEST(Q) SUBUSER(app1)", "SUBUSER(APP1)"),
]


@pytest.mark.parametrize(("text", "said"), FOLDED, ids=[said for _, said in FOLDED])
def test_a_user_that_is_folded_to_capitals_is_said(text: str, said: str) -> None:
    note = f"{said}: without quotes it was read in capitals. Quotes keep small letters"
    assert note in Desk().ask(text).notes
    name = said.split("(")[1].rstrip(")").lower()
    assert not any("capitals" in each for each in Desk().ask(text.replace(f"({name})", f"('{name}')")).notes)
    assert not any("capitals" in each for each in Desk().ask(text.replace(name, name.upper())).notes)
