"""The three headers say the same: whatever programs do, it comes to the same in MQRFH2, MQRFH and PCF.

Topics have no wildcards here, which mean different things in them; options are those that all three have.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.headers.publication import BY_TAG
from rfh2.options import DELETE, PUBLICATION, REGISTRATION
from rfh2.pcf import Cfin, Cfst, Parameter
from rfh2.rfh1 import write
from tests.commands.headers.rfh1_pcf_table import OlderScenario
from tests.commands.scenario import CORREL_ID, Result, psc
from tests.examples import FEW

OPTION_SETS = {"RegOpt": REGISTRATION, "PubOpt": PUBLICATION, "DelOpt": DELETE}
REGISTERING = [
    *("AddName", "CorrelAsId", "FullResp", "InformIfRet", "JoinExcl", "JoinShared", "Local", "NewPubsOnly", "NoAlter"),
    *("None", "NonPers", "Pers", "PersAsPub", "PersAsQueue", "PubOnReqOnly", "VariableUserId", "DupsOK"),
]
LEAVING = ["DeregAll", "CorrelAsId", "FullResp", "LeaveOnly", "None", "VariableUserId"]
SIMPLE = {
    "RegSub": ["CorrelAsId", "InformIfRet", "NewPubsOnly", "Pers", "PersAsQueue", "PubOnReqOnly", "VariableUserId"],
    "DeregSub": ["CorrelAsId", "DeregAll", "VariableUserId"],
    "ReqUpdate": ["CorrelAsId", "VariableUserId"],
}
PERSISTENCE = ("NonPers", "Pers", "PersAsPub", "PersAsQueue")


@dataclass(frozen=True)
class Step:
    """One command of one user: properties by their psc tags."""

    word: str
    user: str
    properties: tuple[tuple[str, str], ...]
    data: bytes = b""

    @property
    def queue(self) -> str:
        return DEFAULT_STREAM if self.word in ("Publish", "DeletePub") else CONTROL_QUEUE


def in_psc(world: OlderScenario, step: Step) -> Result:
    text = psc(step.word, *step.properties)
    return world.send(text, queue=step.queue, data=step.data, user=step.user, correl_id=CORREL_ID)


def in_rfh1(world: OlderScenario, step: Step) -> Result:
    text = write([("MQPSCommand", step.word), *((BY_TAG[tag].mqps, value) for tag, value in step.properties)])
    return world.rfh1(text, step.queue, step.data, user=step.user, correl_id=CORREL_ID)


def in_pcf(world: OlderScenario, step: Step) -> Result:
    parameters: list[Parameter] = []
    sums: dict[str, int] = {}
    for tag, value in step.properties:
        if tag in OPTION_SETS:
            sums[tag] = sums.get(tag, 0) | OPTION_SETS[tag].mask([value])
        elif BY_TAG[tag].integer:
            parameters.append(Cfin(BY_TAG[tag].pcf, int(value)))
        else:
            parameters.append(Cfst.of(BY_TAG[tag].pcf, value))
    parameters += [Cfin(BY_TAG[tag].pcf, mask) for tag, mask in sums.items()]
    return world.pcf(step.word, *parameters, queue=step.queue, data=step.data, user=step.user, correl_id=CORREL_ID)


TOPICS = st.lists(st.sampled_from(["a", "b", "a/b", "c d"]), min_size=1, max_size=3)
USERS = st.sampled_from(["app1", "app2"])
NAMES = st.sampled_from(["n", "m", "a name"])


def some(words: list[str]) -> st.SearchStrategy[list[str]]:
    """Options; of those for persistence one at most, whose order a sum does not tell."""
    chosen = st.lists(st.sampled_from(words), max_size=3, unique=True)
    return chosen.filter(lambda options: sum(option in PERSISTENCE for option in options) < 2)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    word = draw(st.sampled_from(["RegSub", "RegSub", "DeregSub", "ReqUpdate", "Publish", "Publish", "DeletePub"]))
    topics = draw(TOPICS)[: 1 if word == "ReqUpdate" else None]
    properties = [("Topic", topic) for topic in topics]
    # Most commands drawn at large are refused; half of them are of a kind that is not.
    if word in SIMPLE and draw(st.booleans()):
        properties += [("RegOpt", option) for option in draw(some(SIMPLE[word]))[:1]]
        properties += [("QName", draw(st.sampled_from(["P.Q", "Q.Q"])))]
        if len(topics) == 1:
            properties += [("SubName", name) for name in draw(st.lists(NAMES, max_size=1))]
    elif word in SIMPLE:
        words = {"RegSub": REGISTERING, "DeregSub": LEAVING, "ReqUpdate": ["CorrelAsId", "VariableUserId"]}[word]
        properties += [("RegOpt", option) for option in draw(some(words))]
        properties += [("SubName", name) for name in draw(st.lists(NAMES, max_size=1))]
        properties += [("QName", name) for name in draw(st.lists(st.sampled_from(["P.Q", "Q.Q"]), max_size=1))]
        if word != "ReqUpdate":
            identity = st.sampled_from(["me", "you"])
            properties += [("SubIdentity", name) for name in draw(st.lists(identity, max_size=1))]
    elif word == "Publish":
        options = draw(some(["RetainPub", "OtherSubsOnly", "CorrelAsId", "None"]))
        properties += [("PubOpt", option) for option in options]
        properties += [("SeqNum", str(n)) for n in draw(st.lists(st.integers(0, 99), max_size=1))]
    else:
        properties += [("DelOpt", option) for option in draw(some(["Local", "None"]))]
    data = draw(st.binary(max_size=3)) if word == "Publish" else b""
    return Step(word, draw(USERS), tuple(draw(st.permutations(properties))), data)


@pytest.mark.rule("OLD-17")
@pytest.mark.parametrize("semantics", ["v7", "v6"])
@FEW
@given(script=st.lists(steps(), max_size=10))
def test_the_same_commands_come_to_the_same(semantics: str, script: list[Step]) -> None:
    worlds = [OlderScenario(semantics) for _ in range(3)]
    for step in script:
        if semantics == "v6" and step.word == "DeletePub":
            continue  # what is local is told apart by the older headers alone (test_semantics_v6, D33)
        by_psc, by_rfh1, by_pcf = (
            put(world, step) for put, world in zip((in_psc, in_rfh1, in_pcf), worlds, strict=True)
        )
        told = [_told(by_psc), _told(by_rfh1), _told(by_pcf)]
        assert told[0] == told[1] == told[2]
    kept = [
        [(s.topic_string, s.name, s.dest_queue, s.correl_id, s.user, s.options, s.identities) for s in w.subscriptions]
        for w in worlds
    ]
    assert kept[0] == kept[1] == kept[2]
    assert worlds[0].retained == worlds[1].retained == worlds[2].retained


def _told(result: Result) -> tuple[object, ...]:
    """What a program sees of it, the headers apart."""
    sent = []
    for received in result.publications:
        mqmd = received.mqmd
        sent.append((received.queue, received.put.topic, received.put.sub_name, mqmd.correl_id, mqmd.persistence))
    answers = [(received.put.completion, received.put.reason) for received in result.responses]
    return result.outcome.completion, result.outcome.reason, tuple(sent), tuple(answers), len(result.dead_letters)
