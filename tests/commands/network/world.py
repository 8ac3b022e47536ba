"""A network of queue managers for tests: say what programs put where, read back who received what.

world = World(at("QM1"), at("QM2", parent="QM1"))
world.register("QM2", "Sport/#", queue="BOARD")
world.publish("QM1", "Sport/Tennis") == ["BOARD at QM2: Sport/Tennis"]
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.puts import Put, PutKind
from commands.network.network import NextChannel, Step
from commands.network.topology import Position
from commands.replay.network.local import NetworkReplay, NetworkSetup, QueueManagerSetup
from rfh2.captured import CapturedMessage
from rfh2.constants import MQMT_DATAGRAM
from rfh2.message import Message, encode
from rfh2.mqmd import Mqmd
from rfh2.rfh1 import Rfh1
from tests.commands.guide_scenarios import told_topic
from tests.commands.scenario import KICK_OFF, psc, rfh2_message


def at(qmgr: str, parent: str = "", *clusters: str, setup: str = "", semantics: str = "v7") -> QueueManagerSetup:
    """A queue manager of the network."""
    return QueueManagerSetup(Position(qmgr, parent, clusters), setup, semantics)


class World:
    """Programs at several queue managers. Each message comes a second after the one before."""

    def __init__(
        self, *queue_managers: QueueManagerSetup, next_channel: NextChannel | None = None, correl_id: bytes = bytes(24)
    ) -> None:
        self._correl_id = correl_id
        self.replay = NetworkReplay(NetworkSetup(queue_managers), next_channel=next_channel)
        self.seq = 0
        self.step = Step()
        self.puts: list[Put] = []
        self.messages: list[CapturedMessage] = []

    def register(self, qmgr: str, *topics: str, queue: str, options: Sequence[str] = (), **more: str) -> list[str]:
        """RegSub in an MQRFH2; more: ``stream``, which makes it an MQRFH."""
        return self._command(qmgr, "RegSub", "RegOpt", CONTROL_QUEUE, topics, options, queue, **more)

    def deregister(self, qmgr: str, *topics: str, queue: str, options: Sequence[str] = (), **more: str) -> list[str]:
        """DeregSub."""
        return self._command(qmgr, "DeregSub", "RegOpt", CONTROL_QUEUE, topics, options, queue, **more)

    def request(self, qmgr: str, topic: str, queue: str) -> list[str]:
        """ReqUpdate."""
        return self._command(qmgr, "ReqUpdate", "RegOpt", CONTROL_QUEUE, (topic,), (), queue)

    def publish(
        self, qmgr: str, *topics: str, options: Sequence[str] = (), on: str = DEFAULT_STREAM, **more: str
    ) -> list[str]:
        """Publish."""
        return self._command(qmgr, "Publish", "PubOpt", on, topics, options, "", **more)

    def delete(self, qmgr: str, *topics: str, options: Sequence[str] = (), on: str = DEFAULT_STREAM) -> list[str]:
        """DeletePub."""
        return self._command(qmgr, "DeletePub", "DelOpt", on, topics, options, "")

    def retained(self, qmgr: str) -> list[str]:
        """The topics that a queue manager has a retained publication of."""
        space = self.replay.network.queue_managers[qmgr].broker.space
        return [each.topic_string for each in space.retained_publications()]

    @property
    def flows(self) -> list[str]:
        """The flows of the last step, as text."""
        return [str(flow) for flow in self.step.flows]

    def _command(
        self,
        qmgr: str,
        word: str,
        tag: str,
        to: str,
        topics: Sequence[str],
        options: Sequence[str],
        queue: str,
        **more: str,
    ) -> list[str]:
        self.seq += 1
        mqmd = Mqmd(
            msg_type=MQMT_DATAGRAM,
            msg_id=f"MSG {self.seq}".encode().ljust(24, b"\0"),
            correl_id=self._correl_id,
            priority=0,
            persistence=0,
            coded_char_set_id=1208,
            reply_to_q=queue,
            user_identifier="app1",
        )
        data = f"data {self.seq}".encode() if word == "Publish" else b""
        if "stream" in more or more.get("header") == "MQRFH":
            described, body = _in_rfh1(word, topics, options, mqmd, data, more.get("stream"))
        else:
            pairs = [*((tag, option) for option in options), *(("Topic", topic) for topic in topics)]
            folders = [psc(word, *pairs), *filter(None, [more.get("folder")])]
            described, body = rfh2_message(folders, mqmd, data)
        message = CapturedMessage(
            seq=self.seq,
            time=KICK_OFF + timedelta(seconds=self.seq),
            qmgr=qmgr,
            queue=to,
            user="app1",
            md_hex=described.encode().hex(),
            body_hex=body.hex(),
        )
        self.messages.append(message)
        self.step, self.puts = self.replay.replay(message)
        letters = [put for put in self.puts if put.kind is PutKind.DEADLETTER]
        assert not letters, letters
        return [f"{put.queue} at {put.qmgr}: {told_topic(put)}" for put in self.puts if put.kind is PutKind.PUBLICATION]


def _in_rfh1(
    word: str, topics: Sequence[str], options: Sequence[str], mqmd: Mqmd, data: bytes, stream: str | None
) -> tuple[Mqmd, bytes]:
    tag = {"Publish": "MQPSPubOpts", "DeletePub": "MQPSDelOpts"}.get(word, "MQPSRegOpts")
    pairs = [("MQPSCommand", word), *((tag, option) for option in options), *(("MQPSTopic", topic) for topic in topics)]
    if stream is not None:
        pairs.append(("MQPSStreamName", stream))
    written = (" ".join(f'{name} "{value}"' for name, value in pairs) + "\0").encode()
    header = Rfh1(written + bytes(-len(written) % 4), 546, -2, "MQSTR" if data else "", 0, "little", "latin-1")
    described = Mqmd(
        msg_type=mqmd.msg_type,
        msg_id=mqmd.msg_id,
        priority=0,
        persistence=0,
        format="MQHRF",
        encoding=546,
        coded_char_set_id=819,
        reply_to_q=mqmd.reply_to_q,
        user_identifier="app1",
    )
    return described, encode(Message(described, (header,), data))
