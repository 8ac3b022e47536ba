"""Each kind of source: what is read, what is reported with file and line, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from migrate.assemble import assemble
from migrate.legacy_state import (
    Access,
    AclEntry,
    Item,
    LegacyAuthority,
    LegacyState,
    LegacySubscription,
    Principal,
    Relation,
    Source,
    StanzaAttribute,
    Unread,
)
from migrate.readers import amqspsd, authorities, metatopics, reportproperties, wmb
from migrate.readers.metatopics import Registration, subscription_of
from migrate.readers.sources import is_qm_ini, read_qm_ini, read_sources
from rfh2 import pcf_names as pcf
from rfh2.captured import CapturedMessage
from rfh2.captures import write_captures
from rfh2.errors import MigrationError
from rfh2.mqmd import Mqmd
from rfh2.pcf import Cfin, Cfst, Parameter
from streams.subscriptions import PublicationFormat, WildcardScheme
from tests.migrate.legacy_messages import metatopic, psc, publish, register, rfh1

SOURCE = Source(file="x")
QMGR48 = "QM1".ljust(48)
CORREL_ID = bytes.fromhex("414D5120514D31202020202020202020AABBCCDD20000101")


def unread(items: Sequence[Item]) -> list[tuple[int | None, str]]:
    return [(item.source.position, item.why) for item in items if isinstance(item, Unread)]


class TestCaptures:
    """Command traffic, replayed with version 6 semantics."""

    def _state(self, tmp_path: Path, messages: list[CapturedMessage], fmt: str = "jsonl") -> LegacyState:
        path = tmp_path / f"capture.{fmt}"
        with path.open("wb") as stream:
            write_captures(messages, stream, fmt)
        return read_sources([str(path)], "QM1")

    def test_a_registration_with_every_option(self, tmp_path: Path) -> None:
        options = ["CorrelAsId", "Local", "InformIfRet", "VariableUserId", "Pers", "PubOnReqOnly", "InclStreamName"]
        message = register(
            1, "Soccer/*", "Sport", name="s", options=options, queue_name="A.Q", correl_id=CORREL_ID, user="anne"
        )
        (found,) = self._state(tmp_path, [message]).subscriptions
        assert (found.topic, found.stream, found.queue, found.qmgr) == ("Soccer/*", "Sport", "A.Q", "QM1")
        assert (found.name, found.user, found.correl_id) == ("s", "anne", CORREL_ID.hex().upper())
        assert set(found.options) == set(options)
        assert (found.scheme, found.format) == (WildcardScheme.CHAR, PublicationFormat.RFH1)
        assert (found.source.position, found.source.unit) == (1, "record")

    def test_a_deregistered_one_is_gone(self, tmp_path: Path) -> None:
        messages = [register(1, "a"), rfh1(2, [("Command", "DeregSub"), ("Topic", "a"), ("QName", "SUB.Q")])]
        assert self._state(tmp_path, messages).subscriptions == ()

    def test_streams_are_apart(self, tmp_path: Path) -> None:
        """Version 6 had names, identities and retained publications for each stream (guide 6.1, 7.6.1)."""
        messages = [
            register(1, "x", "Sport", name="same"),
            register(2, "y", "Business", name="same"),
            publish(3, "Sport/x", data=b"default"),
            publish(4, "x", "Sport", data=b"sport"),
        ]
        state = self._state(tmp_path, messages)
        assert [(s.name, s.stream) for s in state.subscriptions] == [("same", "Sport"), ("same", "Business")]
        kept = {(r.stream, r.topic): bytes.fromhex(r.body_hex or "")[-5:] for r in state.retained}
        assert kept == {("SYSTEM.BROKER.DEFAULT.STREAM", "Sport/x"): b"fault", ("Sport", "x"): b"sport"}

    def test_subscriptions_are_numbered_in_the_order_of_registration(self, tmp_path: Path) -> None:
        messages = [register(n, f"t{n}", "Sport" if n % 2 else "Business", queue_name=f"Q{n}") for n in range(1, 9)]
        assert [s.topic for s in self._state(tmp_path, messages).subscriptions] == [f"t{n}" for n in range(1, 9)]

    def test_a_retained_publication_at_a_subscription_point(self, tmp_path: Path) -> None:
        folder = "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>IBM</Topic><SubPoint>USD</SubPoint>"
        (kept,) = self._state(tmp_path, [psc(1, folder, queue="SYSTEM.BROKER.DEFAULT.STREAM", data=b"1")]).retained
        assert (kept.topic, kept.sub_point, kept.delivered) == ("IBM", "USD", False)

    def test_a_delivered_copy_of_a_retained_publication(self, tmp_path: Path) -> None:
        told = rfh1(
            1,
            [("Command", "Publish"), ("StreamName", "Sport"), ("Topic", "x"), ("PubOpts", "IsRetainedPub")],
            queue="EXTRACT.Q",
            data=b"kept",
            by_broker=True,
        )
        (kept,) = self._state(tmp_path, [told]).retained
        assert (kept.stream, kept.topic, kept.delivered) == ("Sport", "x", True)

    def test_what_is_no_state_is_counted(self, tmp_path: Path) -> None:
        delivered = rfh1(1, [("Command", "Publish"), ("Topic", "x")], queue="SUB.Q", data=b"x", by_broker=True)
        other = register(2, "a", qmgr="QM2")
        state = self._state(tmp_path, [delivered, delivered.model_copy(update={"seq": 3}), other])
        assert [(item.count, item.is_state) for item in state.unread] == [(2, False), (1, False)]
        assert "SUB.Q" in state.unread[0].text
        assert "QM2" in state.unread[1].text

    def test_a_command_that_cannot_be_read_is_an_item_with_its_place(self, tmp_path: Path) -> None:
        broken = rfh1(2, [("Command", "RegSub"), ("Topic", "a"), ("Nonsense", "x")])
        state = self._state(tmp_path, [register(1, "a"), broken])
        (item,) = state.unread
        assert (item.source.position, item.source.unit, item.is_state) == (2, "record", True)
        assert "Nonsense" in item.why

    def test_refused_commands_are_counted(self, tmp_path: Path) -> None:
        messages = [rfh1(n, [("Command", "DeregSub"), ("Topic", "a"), ("QName", "Q")]) for n in (1, 2)]
        (item,) = self._state(tmp_path, messages).unread
        assert (item.text, "3073" in item.why, item.is_state) == ("2 DeregSub commands (records 1-2)", True, False)

    def test_p14_a_dump_of_queues_is_taken_in_the_order_of_time(self, tmp_path: Path) -> None:
        """APAR IZ66777: subscribe, unsubscribe, subscribe of one name lie on the broker's queue in another order."""

        def at(message: CapturedMessage, put_time: str) -> CapturedMessage:
            mqmd = replace(Mqmd.decode(message.md or b""), put_date="20090128", put_time=put_time)
            return CapturedMessage(**message.model_dump() | {"md_hex": mqmd.encode().hex()})

        gone = [("Command", "DeregSub"), ("Topic", "a"), ("QName", "SUB.Q")]
        messages = [
            at(register(1, "a", user="u"), "12000000"),
            at(register(2, "a", options=["Local"], user="u"), "12020000"),
            at(rfh1(3, gone, user="u"), "12010000"),
        ]
        state = self._state(tmp_path, messages, "qload")
        assert [s.options for s in state.subscriptions] == [("Local",)]
        assert [item.problem for item in state.unread] == ["P14"]

    def test_a_registered_publisher(self, tmp_path: Path) -> None:
        messages = [
            rfh1(1, [("Command", "RegPub"), ("StreamName", "Sport"), ("Topic", "x"), ("QName", "P.Q")]),
            rfh1(2, [("Command", "RegPub"), ("Topic", "y"), ("QName", "P.Q")]),
            rfh1(3, [("Command", "DeregPub"), ("Topic", "y"), ("QName", "P.Q")]),
        ]
        (found,) = self._state(tmp_path, messages).publishers
        assert (found.topic, found.stream, found.queue) == ("x", "Sport", "P.Q")

    def test_a_metatopic_subscription_is_an_item(self, tmp_path: Path) -> None:
        (found,) = self._state(tmp_path, [register(1, "MQ/S/x")]).subscriptions
        assert found.topic == "MQ/S/x"

    def test_captures_of_several_files_are_one_history(self, tmp_path: Path) -> None:
        first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
        gone = rfh1(2, [("Command", "DeregSub"), ("Topic", "a"), ("QName", "SUB.Q")])
        for path, message in ((first, gone), (second, register(1, "a"))):
            with path.open("wb") as stream:
                write_captures([message], stream, "jsonl")
        assert read_sources([str(first), str(second)], "QM1").subscriptions == ()


def identities(*parameters: Parameter) -> CapturedMessage:
    topic = f"MQ/SA/{QMGR48}/Subscribers/AllIdentities/Soccer/Results"
    head = [Cfst.of(pcf.MQCACF_STREAM_NAME, "Sport"), Cfst.of(pcf.MQCACF_TOPIC, topic)]
    return metatopic(1, [*head, *parameters])


def registration(qmgr: str, queue: str, options: int, *more: Parameter) -> list[Parameter]:
    return [
        Cfst.of(pcf.MQCACF_REG_Q_MGR_NAME, qmgr.ljust(48)),
        Cfst.of(pcf.MQCACF_REG_Q_NAME, queue.ljust(48)),
        Cfst.of(pcf.MQCACF_REG_USER_ID, "anne".ljust(12)),
        Cfin(pcf.MQIACF_REG_REG_OPTIONS, options),
        *more,
    ]


class TestMetatopics:
    """Publications in PCF on MQ/S and MQ/SA."""

    def _items(self, message: CapturedMessage) -> list[Item]:
        from migrate.legacy_state import Source

        found = metatopics.pcf_of(message.decode())
        assert found is not None
        return list(metatopics.read(found, Source(file="x", position=0, unit="record")))

    def test_parameters_belong_to_the_queue_manager_name_before_them(self) -> None:
        """CorrelId, SubName and UserData may be absent: nothing may slip to the next registration."""
        named = [
            Cfst.of(pcf.MQCACF_REG_SUB_NAME, "evening"),
            Cfst.of(pcf.MQCACF_REG_SUB_USER_DATA, "desk 4"),
            Cfst.of(pcf.MQCACF_REG_SUB_IDENTITY, "one"),
            Cfst.of(pcf.MQCACF_REG_SUB_IDENTITY, "two"),
            Cfst.of(pcf.MQCACF_REG_TIME, "2008112014301599"),
        ]
        correl = Cfst.of(pcf.MQCACF_REG_CORREL_ID, CORREL_ID.hex())
        items = self._items(
            identities(
                Cfin(pcf.MQIACF_APPL_COUNT, 3),
                *registration("QM1", "A.Q", 0),
                *registration("QM2", "B.Q", 0x1 | 0x4 | 0x20000, correl, *named),
                *registration("QM1", "C.Q", 0x400000),
            )
        )
        first, second, third = items
        assert isinstance(first, LegacySubscription)
        assert isinstance(second, LegacySubscription)
        assert isinstance(third, LegacySubscription)
        assert (first.queue, first.name, first.correl_id, first.options) == ("A.Q", None, None, ())
        assert (second.qmgr, second.name, second.user_data) == ("QM2", "evening", "desk 4")
        assert (second.identities, second.options) == (("one", "two"), ("CorrelAsId", "Local", "JoinShared"))
        assert second.created == datetime(2008, 11, 20, 14, 30, 15, 990_000, tzinfo=UTC)
        assert second.topic == "Soccer/Results"
        assert third.unknown_options == ("4194304",)
        assert "expires_at" in third.unknown

    def test_both_families_of_parameter_numbers(self) -> None:
        items = self._items(identities(*registration("QM1", "A.Q", 0, Cfst.of(pcf.MQCACF_SUBSCRIPTION_NAME, "n"))))
        assert isinstance(items[0], LegacySubscription)
        assert items[0].name == "n"

    def test_registrations_that_are_only_counted_are_reported(self) -> None:
        items = self._items(identities(Cfin(pcf.MQIACF_ANONYMOUS_COUNT, 2), *registration("QM1", "A.Q", 0)))
        assert unread(items)[0][1].startswith("2 registrations are counted, 1 are listed")

    @pytest.mark.parametrize(
        ("what", "parameter", "wanted"),
        [
            ("Parent", pcf.MQCACF_PARENT_Q_MGR_NAME, ("parent", "HQ")),
            ("Children", pcf.MQCACF_CHILD_Q_MGR_NAME, ("child", "HQ")),
        ],
    )
    def test_relations(self, what: str, parameter: int, wanted: tuple[str, str]) -> None:
        topic = Cfst.of(pcf.MQCACF_TOPIC, f"MQ/{QMGR48}/{what}")
        (item,) = self._items(metatopic(1, [topic, Cfst.of(parameter, "HQ".ljust(48))]))
        assert isinstance(item, Relation)
        assert (item.role, item.qmgr) == wanted

    def test_streams(self) -> None:
        names = [Cfst.of(pcf.MQCACF_SUPPORTED_STREAM_NAME, name.ljust(48)) for name in ("Sport", "Business")]
        items = self._items(metatopic(1, [Cfst.of(pcf.MQCACF_TOPIC, f"MQ/{QMGR48}/StreamSupport"), *names]))
        assert [item.label for item in items] == ["stream Sport", "stream Business", "broker QM1"]

    @pytest.mark.parametrize("form", ["Subscribers/Topics", "Subscribers/Summary", "Subscribers/Identities"])
    def test_forms_that_tell_less_are_reported(self, form: str) -> None:
        items = self._items(metatopic(1, [Cfst.of(pcf.MQCACF_TOPIC, f"MQ/S/{QMGR48}/{form}")]))
        assert len(unread(items)) == len(items) == 1

    @pytest.mark.parametrize("text", ["MQ/", "MQ/S/", "MQ/S/short/Subscribers", "Soccer", "", f"MQ/S/{QMGR48}"])
    def test_what_is_no_metatopic(self, text: str) -> None:
        assert metatopics.metatopic_of(text) is None

    def test_in_a_capture_they_are_state_not_traffic(self, tmp_path: Path) -> None:
        path = tmp_path / "extract.jsonl"
        with path.open("wb") as stream:
            write_captures([identities(*registration("QM1", "A.Q", 0))], stream, "jsonl")
        state = read_sources([str(path)], "QM1")
        assert [s.queue for s in state.subscriptions] == ["A.Q"]
        assert state.unread == ()


LISTING = """
DynamicSubscriptionEngine
  Topic
    name='a/b'
    Subscription
      clientId='mqrfh2:QM1:A.Q:{correl}'
      user='fred'
      persistent='true'
      odd='value'
    Subscription
      clientId='nonsense'
BIP8071I: Successful command completion.
"""


class TestReportProperties:
    """mqsireportproperties."""

    def test_subscriptions_in_the_order_of_the_listing(self) -> None:
        items = list(reportproperties.read(LISTING.format(correl=CORREL_ID.hex()), "outfile.txt"))
        (found,) = [item for item in items if isinstance(item, LegacySubscription)]
        assert (found.queue, found.correl_id, found.user) == ("A.Q", CORREL_ID.hex(), "fred")
        assert (found.options, found.unknown_options) == (("Pers", "CorrelAsId"), ("odd=value",))
        assert found.source.position == 5
        assert unread(items) == [(10, "clientId 'nonsense' does not name format, queue manager and queue")]

    @pytest.mark.parametrize("client", ["jms:QM1:CLIENT:T", "mqe:QM1:CLIENT:Q", "scada:probe7"])
    def test_a_client_without_a_queue_is_read_and_its_queue_not_guessed(self, client: str) -> None:
        listing = f"DynamicSubscriptionEngine\n  Topic\n    name='a'\n    Subscription\n      clientId='{client}'\n"
        items = list(reportproperties.read(f"{listing}BIP8071I: Successful command completion.\n", "x"))
        (found,) = (item for item in items if isinstance(item, LegacySubscription))
        assert (found.client_id, found.queue, found.qmgr) == (client, "", "")
        assert found.label == f"subscription to a on SYSTEM.BROKER.DEFAULT.STREAM for {client}"

    @pytest.mark.parametrize("cut", [40, 80, 120, 160, 200])
    def test_a_half_written_listing_is_reported(self, cut: int) -> None:
        items = list(reportproperties.read(LISTING.format(correl=CORREL_ID.hex())[:cut], "outfile.txt"))
        assert any("BIP8071I" in why for _, why in unread(items))

    def test_a_tab_indents(self) -> None:
        text = "DynamicSubscriptionEngine\n\tTopic\n\t\tname='t'\n\t\tSubscription\n"
        text += "\t\t\tclientId='mqrfh2:Q:A.Q'\nBIP8071I"
        (item,) = reportproperties.read(text, "x")
        assert isinstance(item, LegacySubscription)
        assert item.topic == "t"

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("what is this", "neither an element nor a property"),
            ("name='t' extra", "neither an element nor a property"),
            ("name='never closed", "its value has no end: the listing is cut short"),
        ],
    )
    def test_odd_lines(self, line: str, why: str) -> None:
        items = list(reportproperties.read(f"DynamicSubscriptionEngine\n  {line}\nBIP8071I", "x"))
        assert unread(items) == [(2, why)]


def event(inner: str) -> str:
    engine = f"<DynamicSubscriptionEngine>{inner}</DynamicSubscriptionEngine>"
    return f'<Broker label="B"><ControlGroup>{engine}</ControlGroup></Broker>'


def created(inner: str) -> str:
    return f'<Topic name="t"><Create>{inner}</Create></Topic>'


class TestEvents:
    """The XML events of Message Broker."""

    def test_events_are_replayed(self) -> None:
        made = created('<Subscription clientId="mqrfh2:Q:A" subscriptionPoint="" filter="" user="u"/>')
        changed = made.replace("Create", "Change").replace('user="u"', 'user="u" localOnly="true"')
        deleted = made.replace("Create", "Delete")
        items = list(wmb.read(event(made) + "\n" + event(changed), "events.xml"))
        (found,) = [item for item in items if isinstance(item, LegacySubscription)]
        assert found.options == ("Local",)
        items = list(wmb.read(event(made) + "\n" + event(deleted), "events.xml"))
        assert [item.kind for item in items] == ["broker"]

    def test_entries_and_their_end(self) -> None:
        entry = created('<ACLEntry principalName="p" principalType="group" publish="true" subscribe="false"/>')
        gone = '<Topic name="t"><Delete><AllACLEntries/></Delete></Topic>'
        _, found = wmb.read(event(entry), "x")
        assert (found.publish, found.subscribe, found.persistent) == (Access.ALLOW, Access.DENY, Access.INHERIT)  # type: ignore[attr-defined]
        assert [item.kind for item in wmb.read(event(entry) + event(gone), "x")] == ["broker"]

    def test_a_stream_is_taken_out_of_the_topic(self) -> None:
        made = '<Topic name="$SYS/STREAM/Sport/a/b"><Create><Subscription clientId="mqrfh:Q:A"/></Create></Topic>'
        _, found = wmb.read(event(made), "x")
        assert isinstance(found, LegacySubscription)
        assert (found.stream, found.topic, found.format) == ("Sport", "a/b", PublicationFormat.RFH1)

    @pytest.mark.parametrize(
        "text",
        [
            "<Broker><Topic name='x'>",
            event("<Topic/>"),
            event("<Topic name='t'><Create><Odd/></Create></Topic>"),
            event("<Topic name='t'><Create><ACLEntry/></Create></Topic>"),
            event("<Topic name='t'><Create><ACLEntry principalName='p' publish='maybe'/></Create></Topic>"),
            event("<Topic name='t'><Delete><Subscription clientId='mqrfh2:Q:A'/></Delete></Topic>"),
            "<!DOCTYPE x [<!ENTITY e 'x'>]>" + event("<Topic name='&e;'><Create/></Topic>"),
        ],
        ids=["unclosed", "no-name", "odd-element", "no-principal", "odd-right", "nothing-to-delete", "entity"],
    )
    def test_bad_events_are_reported(self, text: str) -> None:
        assert unread(list(wmb.read(text, "events.xml")))


class TestAmqspsd:
    """Listings of amqspsd and its rewrites."""

    def test_case_and_colons_do_not_matter(self) -> None:
        text = "SUBSCRIBERS\nSTREAMNAME = Sport\n TOPIC: a: b\nqmgrname: QM1\nQNAME = A.Q\nregistrationoptions: 0x\n"
        items = list(amqspsd.read(text, "x"))
        (found,) = [item for item in items if isinstance(item, LegacySubscription)]
        assert (found.topic, found.stream, found.queue, found.unknown_options) == ("a: b", "Sport", "A.Q", ("0x",))

    def test_the_listing_of_the_rewrite_in_perl(self) -> None:
        """Underlined headings, relations below their labels, None for a stream without registrations."""
        path = Path(__file__).parents[2] / "fixtures" / "legacy" / "listings" / "amqspsda.txt"
        state = read_sources([str(path)], "QM1")
        assert not state.unread
        assert state.broker_name == "QM1"
        assert [(r.role, r.qmgr) for r in state.relations] == [("parent", "QM0"), ("child", "QM2"), ("child", "QM3")]
        assert [s.name for s in state.streams] == [
            "SYSTEM.BROKER.DEFAULT.STREAM",
            "SYSTEM.BROKER.ADMIN.STREAM",
            "Sport",
        ]
        assert [(p.topic, p.queue) for p in state.publishers] == [("Soccer/Results", "SCORES.Q")]
        assert [(s.stream, s.topic, s.qmgr, s.queue, s.user, s.options) for s in state.subscriptions] == [
            ("SYSTEM.BROKER.DEFAULT.STREAM", "Weather/*", "QM1", "WEATHER.Q", "anne", ()),
            ("Sport", "Soccer/*", "QM1", "RESULTS.Q", "fred", ("CorrelAsId", "Local")),
            ("Sport", "Soccer/*", "QM2", "FAR.Q", "jim", ()),
        ]

    @pytest.mark.parametrize("line", ["no field here", "Unknown: x", "ApplCount: many"])
    def test_lines_that_mean_nothing(self, line: str) -> None:
        items = list(amqspsd.read(f"Subscribers\nStreamName: S\n Topic: t\n{line}\n", "x"))
        assert [position for position, _ in unread(items)] == [4]

    def test_the_words_before_any_section(self) -> None:
        assert unread(list(amqspsd.read("what\nSubscribers\n", "x"))) == [(1, "it stands before any section")]


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ({"options": "5", "correl_id": CORREL_ID.hex()}, (("CorrelAsId", "Local"), CORREL_ID.hex(), ())),
        ({"options": "CorrelAsId", "correl_id": "xyz"}, (("CorrelAsId",), None, ("CorrelId xyz",))),
        ({"options": "0", "correl_id": CORREL_ID.hex()}, ((), None, ())),
        ({"correl_id": CORREL_ID.hex()}, ((), CORREL_ID.hex(), ())),
        ({"correl_id": "0" * 48}, ((), None, ())),
        ({"options": "-1"}, ((), None, ("-1",))),
        ({"time": "20081340"}, ((), None, ("Time 20081340",))),
    ],
    ids=["sum", "bad-correl-id", "not-as-identity", "options-unknown", "zeros", "negative", "bad-time"],
)
def test_a_registration_as_it_is_told(told: dict[str, str], wanted: tuple[Any, ...]) -> None:
    from migrate.legacy_state import Source

    found = subscription_of(Registration(Source(file="x"), told), "t", "Sport")
    assert (found.options, found.correl_id, found.unknown_options) == wanted


class TestQmIni:
    """qm.ini."""

    def test_the_stanza_and_nothing_else(self) -> None:
        text = "Log:\n   LogType=CIRCULAR\nBroker:\n   MaxMsgRetryCount = 7\n# comment\n\n"
        text += "Brokers:\n   A=\nTCP:\n   KeepAlive=Yes\n"
        items = list(read_qm_ini(text, "qm.ini"))
        assert [(i.name, i.value, i.source.position) for i in items if isinstance(i, StanzaAttribute)] == [
            ("MaxMsgRetryCount", "7", 4),
            ("A", "", 8),
        ]

    def test_a_line_without_an_equals_sign(self) -> None:
        assert unread(list(read_qm_ini("Broker:\n   nonsense\n", "qm.ini"))) == [
            (2, "not an attribute of stanza Broker")
        ]

    def test_an_export_of_the_registry_of_windows(self) -> None:
        text = (
            "Windows Registry Editor Version 5.00\n\n"
            "[HKEY_LOCAL_MACHINE\\SOFTWARE\\IBM\\MQSeries\\CurrentVersion\\Configuration\\QueueManager\\QM1\\Log]\n"
            '"LogType"="CIRCULAR"\n\n'
            "[HKEY_LOCAL_MACHINE\\SOFTWARE\\IBM\\MQSeries\\CurrentVersion\\Configuration\\QueueManager\\QM1\\Broker]\n"
            '"MaxMsgRetryCount"="7"\n"ChkPtMsgSize"=dword:0000000a\n'
        )
        assert is_qm_ini(text)
        items = list(read_qm_ini(text, "qm.reg"))
        assert [(i.name, i.value) for i in items if isinstance(i, StanzaAttribute)] == [
            ("MaxMsgRetryCount", "7"),
            ("ChkPtMsgSize", "10"),
        ]


LISTINGS = [
    ("WebSphere MQ broker for queue manager QM1 running.\n", "output of dspmqbrk"),
    ("BIP8099I: Broker: B  -  QM1\nBIP8071I: Successful command completion.\n", "output of mqsilist"),
    (
        "AMQ8409: Display Queue details.\n   QUEUE(A.Q)   TYPE(QLOCAL)\n   MAXDEPTH(5000)\n",
        "output of DISPLAY in runmqsc",
    ),
    ("root:x:0:0:root:/root:/bin/sh and more\n", "the kind of this text is not known: put KIND= before its name"),
]


@pytest.mark.parametrize(("text", "said"), LISTINGS, ids=[said for _, said in LISTINGS])
def test_what_is_no_source_is_called_what_it_is(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "listing.txt").write_text(text)
    (item,) = read_sources([str(tmp_path / "listing.txt")], "QM1").unread
    assert item.why.startswith(said)
    assert item.is_state == said.startswith("the kind")


class TestAuthorities:
    """setmqaut, SET AUTHREC, dmpmqaut."""

    def test_scripts_of_windows_and_of_backups(self) -> None:
        text = (
            "rem saveqmgr\n@rem authorities\n@echo off\n*setmqaut -m ${QM} -n Sport -t queue -p fred@dom +put\n"
            "setmqaut -m %QM% -n Sport -t queue -p fred@dom +put\n"
        )
        found = assemble(authorities.read(text, "x"), "QM1").authorities
        assert [(item.label, item.qmgr) for item in found] == [
            ("authority of principal fred on queue Sport", ""),
            ("authority of principal fred on queue Sport", ""),
        ]

    def test_three_forms_say_the_same(self) -> None:
        texts = [
            "setmqaut -m QM1 -n Sport -t queue -p fred +put +browse -get\n",
            "SET AUTHREC PROFILE('Sport') OBJTYPE(QUEUE) +\n  PRINCIPAL('fred') AUTHADD(PUT,BROWSE) AUTHRMV(GET)\n",
            "profile:     Sport\nobject type: queue\nentity:      fred@box\ntype: principal\nauthority: put browse\n",
        ]
        found = assemble((item for text in texts for item in authorities.read(text, "x")), "QM1").authorities
        assert [item.label for item in found] == ["authority of principal fred on queue Sport"] * 3
        assert {item.authorities for item in found} == {("PUT", "BROWSE")}
        assert [item.removed for item in found] == [("GET",), ("GET",), ()]

    @pytest.mark.parametrize(
        ("record", "wanted"),
        [
            (
                "profile:     a.b.*\nobject type: queue\nentity:      user1\ntype:        principal\n"
                "authority:   get, browse, put, inq\n",
                ("PRINCIPAL", "user1", "a.b.*", ("GET", "BROWSE", "PUT", "INQ")),
            ),
            (
                "profile:     Sport\nobject type: queue\nentity:      readers\nentity type: group\n"
                "authority:   get browse\n",
                ("GROUP", "readers", "Sport", ("GET", "BROWSE")),
            ),
            (
                "profile: Sport\nobject type: queue\nentity: readers\ntype: group\nauthority: none\n",
                ("GROUP", "readers", "Sport", ()),
            ),
        ],
        ids=["documented-by-ibm", "entity-type", "none"],
    )
    def test_a_record_of_dmpmqaut(self, record: str, wanted: tuple[Any, ...]) -> None:
        """IBM documents the words with commas, and ``type:``; releases print blanks, and ``entity type:``."""
        (found,) = authorities.read(f"{record}- - - - - - - - - -\n", "x")
        assert isinstance(found, LegacyAuthority)
        assert (found.entity_type, found.entity, found.profile, found.authorities) == wanted

    @pytest.mark.parametrize(
        "record",
        [
            "profile: Q\nobject type: queue\nentity: x\ntype: robot\nauthority: put\n",
            "profile: Q\nobject type: queue\nentity: x\nauthority: put\n",
            "profile: Q\nobject type: queue\nentity: x\ntype: group\nauthority: put;get\n",
        ],
        ids=["type-unknown", "no-type", "words-run-together"],
    )
    def test_a_record_that_is_not_understood_is_never_guessed(self, record: str) -> None:
        (found,) = authorities.read(record, "x")
        assert isinstance(found, Unread)
        assert found.is_state

    @pytest.mark.parametrize("path", ["/opt/mqm/bin/setmqaut", "setmqaut", r"C:\IBM\MQ\bin\setmqaut.exe", "./setmqaut"])
    def test_setmqaut_with_its_path(self, path: str) -> None:
        text = f'{path} -m QM1 -n "Sport" -t queue -g readers -all +browse\n'
        assert authorities.looks_like(text)
        (found,) = authorities.read(text, "x")
        assert found.label == "authority of group readers on queue Sport"

    @pytest.mark.parametrize("prompt", ["", "$ ", "C:\\>", "# /opt/mqm/bin/"])
    def test_what_dspmqaut_printed_behind_its_command(self, prompt: str) -> None:
        said = "Entity {} has the following authorizations for object {}:\n"
        text = f"{prompt}dspmqaut -m QM1 -t queue -n Sport -g readers@dom\n"
        text += f"{said.format('readers', 'Sport')}\tget\n\tbrowse\n"
        text += f"{prompt}dspmqaut -m QM1 -t channel -n X -p fred\n{said.format('fred', 'X')}\tchg\n"
        text += f"{prompt}dspmqaut -m QM1 -t qmgr -p fred\n{said.format('fred', 'QM1')}"
        assert authorities.looks_like(text)
        state = assemble(authorities.read(text, "x"), "QM1")
        assert [(a.label, a.authorities) for a in state.authorities] == [
            ("authority of group readers on queue Sport", ("GET", "BROWSE")),
            ("authority of principal fred on qmgr ", ()),
        ]
        assert [(item.text, item.is_state) for item in state.unread] == [("authority on channel", False)]

    def test_what_dspmqaut_printed_alone_does_not_say_of_what_it_is(self) -> None:
        text = "Entity fred has the following authorizations for object Sport:\n\tget\nsetmqaut -n Q -t q -p one +put\n"
        (cut, _) = authorities.read(text, "x")
        assert isinstance(cut, Unread)
        assert (cut.is_state, "amqoamd -s" in cut.why) == (True, True)

    def test_whoever_has_authority_is_named_without_a_domain(self) -> None:
        acl = AclEntry(source=SOURCE, topic="t", principal="DOM\\fred", subscribe=Access.ALLOW)
        state = assemble([acl, Principal(source=SOURCE, name="fred@DOM", type="user", groups=("DOM\\g",))], "QM1")
        assert (state.acl[0].principal, state.principals[0].name, state.principals[0].groups) == (
            "fred",
            "fred",
            ("g",),
        )

    def test_a_script_of_dmpmqcfg_whole(self) -> None:
        """Comments between continued lines, and commands about everything else, as dmpmqcfg -a writes them."""
        path = Path(__file__).parents[2] / "fixtures" / "legacy" / "listings" / "dmpmqcfg.mqsc"
        text = path.read_text()
        assert authorities.looks_like(text)
        items = list(authorities.read(text, "x"))
        found = [(i.label, i.authorities) for i in items if isinstance(i, LegacyAuthority)]
        assert found == [
            ("authority of group readers on queue Sport", ("BROWSE", "GET", "INQ")),
            ("authority of group mqm on topic SYSTEM.BASE.TOPIC", ("CTRL", "PUB", "SUB")),
        ]
        notes = [i for i in items if isinstance(i, Unread)]
        assert not any(i.is_state or i.warns for i in notes)
        assert {i.text for i in notes} == {
            "command ALTER QMGR",
            "command DEFINE QLOCAL",
            "command DEFINE QREMOTE",
            "command DEFINE NAMELIST",
            "command DEFINE CHANNEL",
            "command SET CHLAUTH",
            "authority on channel",
            "authority to create objects (@class)",
        }

    @pytest.mark.parametrize("word", ["process", "channel", "authinfo", "listener", "service", "clntconn", "comminfo"])
    def test_objects_that_publish_nothing_are_passed_over(self, word: str) -> None:
        texts = [
            f"setmqaut -m QM1 -n X -t {word} -p one +dsp\nsetmqaut -m QM1 -n Y -t {word} -p one +dsp\n",
            f"profile: X\nobject type: {word}\nentity: x\ntype: group\nauthority: dsp\n",
        ]
        for count, text in zip((2, 1), texts, strict=True):
            (found,) = authorities.read(text, "x")
            assert isinstance(found, Unread)
            assert (found.is_state, found.warns, found.count) == (False, False, count)

    def test_several_principals_on_one_line(self) -> None:
        text = "setmqaut -n Q -t q -p one -g two +put"
        assert [item.entity for item in authorities.read(text, "x")] == ["one", "two"]  # type: ignore[attr-defined]

    @pytest.mark.parametrize(
        "line",
        [
            "setmqaut -n Q -t queue +put",
            "setmqaut -n Q -p one +put",
            "setmqaut -n 'Q -t queue -p one",
            "setmqaut -n Q -t queue -p one put",
            "SET AUTHREC PROFILE('Q') AUTHADD(PUT)",
            "SET AUTHREC PROFILE('Q",
            "chmod 777 /",
        ],
    )
    def test_what_is_none_is_reported_with_its_line(self, line: str) -> None:
        items = list(authorities.read(f"# comment\n{line}\n", "x"))
        assert [position for position, _ in unread(items)] == [2]

    def test_an_incomplete_record(self) -> None:
        items = list(authorities.read("profile: Q\nobject type: queue\nprofile: R\n", "x"))
        assert [position for position, _ in unread(items)] == [1, 3]


class TestSources:
    """From files to one state."""

    def test_a_missing_source(self) -> None:
        with pytest.raises(MigrationError, match="no such file"):
            read_sources(["nowhere.txt"], "QM1")

    def test_a_kind_may_be_told(self, tmp_path: Path) -> None:
        path = tmp_path / "x.txt"
        path.write_text("Subscribers\n Topic: t\n QMgrName: Q\n QName: A.Q\n")
        assert read_sources([f"amqspsd={path}"], "QM1").subscriptions[0].queue == "A.Q"

    def test_a_reader_without_a_real_example_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "x.txt"
        path.write_text("Subscribers\n Topic: t\n QMgrName: Q\n QName: A.Q\n")
        (note,) = read_sources([f"amqspsd={path}"], "QM1").notes
        assert note.startswith(f"{path}: no listing of a real broker was available for the reader of amqspsd")
        (tmp_path / "qm.ini").write_text("Broker:\n   MaxMsgRetryCount=3\n")
        assert read_sources([str(tmp_path / "qm.ini")], "QM1").notes == ()

    def test_what_nothing_claims_is_reported(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("buy milk\n")
        state = read_sources([str(path)], "QM1")
        assert len(state.unread) == 1

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ('{"format": "qpubsub-legacy-state", "qmgr": "QM1"', "it is not JSON"),
            ('{"format": "qpubsub-legacy-state", "qmgr": "QM1", "odd": 1}', "there is no such field"),
            ('{"format": "qpubsub-legacy-state", "qmgr": "QM1", "version": 2}', "Input should be 1"),
            ('{"format": "qpubsub-legacy-state", "qmgr": "QM1", "streams": [{"name": "x"}]}', "Field required"),
        ],
    )
    def test_json_that_is_no_state(self, tmp_path: Path, text: str, why: str) -> None:
        path = tmp_path / "state.json"
        path.write_text(text)
        state = read_sources([str(path)], "QM1")
        assert [why in item.why for item in state.unread] == [True]

    def test_the_state_of_another_queue_manager(self, tmp_path: Path) -> None:
        path = tmp_path / "state.json"
        path.write_text(
            '{"format": "qpubsub-legacy-state", "qmgr": "QM2", "streams": [{"source": {"file": "f"}, "name": "S"}]}'
        )
        state = read_sources([str(path)], "QM1")
        assert [(item.count, item.qmgr, item.is_state, item.warns) for item in state.unread] == [
            (1, "QM2", False, True)
        ]

    def test_what_a_subscription_implies_is_there(self, tmp_path: Path) -> None:
        path = tmp_path / "x.txt"
        path.write_text("Subscribers\nStreamName: Sport\n Topic: t\n QMgrName: QM1\n QName: A.Q\n")
        assert [stream.name for stream in read_sources([str(path)], "QM1").streams] == ["Sport"]


READERS = {
    "amqspsd": amqspsd.read,
    "reportproperties": reportproperties.read,
    "events": wmb.read,
    "qm.ini": read_qm_ini,
    "authorities": authorities.read,
}
words = st.sampled_from(
    [
        *("Subscribers", "Topic:", "Topic", "name='x'", "clientId='mqrfh2:Q:A'", "Subscription", "ACLEntry", "'", "="),
        *("<Broker>", "</Broker>", "<Topic name='t'>", "Broker:", "setmqaut -n Q -t q -p x +put", "SET AUTHREC", "("),
        *("QName: A", "ApplCount: 1", "StreamName: S", "\t", "  ", "\n", "\n", "&", "profile: x", "BIP8071I", "%"),
    ]
)


@pytest.mark.parametrize("kind", READERS)
@given(text=st.one_of(st.text(max_size=60), st.lists(words, max_size=20).map(" ".join)))
def test_any_text_gives_items(kind: str, text: str) -> None:
    for item in READERS[kind](text, "x"):
        assert isinstance(item, Item)
        assert item.label
