"""Who is connected: DISPLAY CONN, CHSTATUS, LSSTATUS, QMSTATUS, QSTATUS TYPE(HANDLE); STOP CONN, STOP CHANNEL.

What is shown comes from the listeners, at the moment of the command. A channel that was stopped is stopped until START
CHANNEL, or until its listener ends. A program that is stopped ends at once, whatever MODE says: its unit of work is
backed out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from commands.broker.attribute_kinds import Bits, Shown
from commands.broker.connections import ChannelInstance, Connection, ListenerReport, OpenHandle, Order, programs
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, displayed, done, is_generic, matches_name, select
from commands.mqsc.attributes import keywords, unexpected_keyword
from commands.mqsc.script import Command, Keyword, MqscError
from commands.mqsc.values import shown_moment, single, word_of
from rfh2 import mqi_constants as m, pcf_admin_names as c
from rfh2.channel.segments import Xid

OPEN_OPTIONS: Final = Bits(
    {
        name: value
        for name, value in vars(m).items()
        if name.startswith("MQOO_") and value.bit_count() == 1 and value != 0
    }
)
LISTENER: Final = "SYSTEM.DEFAULT.LISTENER.TCP"
"""The name under which a listener is shown that no definition names."""
_MOST: Final = 999_999_999
_TYPES: Final = {c.MQOT_Q_MGR: "QMGR", c.MQOT_TOPIC: "TOPIC"}


_OF_PROGRAM: Final = keywords("PID APPLTAG APPLTYPE CHANNEL CONNAME USERID")
_OF_CONNECTION: Final = _OF_PROGRAM | keywords("UOWSTDA UOWSTTI UOWSTATE URTYPE EXTURID QMURID")
_OF_HANDLE: Final = keywords("OBJNAME OBJTYPE OPENOPTS HSTATE TOPICSTR SUBID SUBNAME")
_NOT_OF_CONNECTION: Final = keywords(
    """
    APPLDESC ASTATE CLIENTID CONNOPTS CONNTAG DEST DESTQMGR READA TID UOWLOG UOWLOGDA UOWLOGTI
    """
)


def display_connections(command: Command, administration: Administration) -> Answer:
    """DISPLAY CONN. Of TYPE(HANDLE) and TYPE(ALL) each object that a program has open is a row of its own.

    CONNID is the keyword of PCF, in whose commands an identifier is whole: EXTCONN, and CONN behind it. A branch of a
    global transaction that is prepared is no program's, and is shown with an identifier of zeros.
    """
    asked = command.keyword("CONNID")
    kind = word_of(given, "CONN", "HANDLE", "ALL", "*") if (given := command.keyword("TYPE")) else "CONN"
    rows = [
        {"CONNID": each.id, **row} if asked is not None else row
        for each in programs(administration.listeners.reports())
        if _is_meant(command, each)
        for row in _rows(each, kind)
    ]
    if kind != "HANDLE" and _is_meant(command, _NOBODY):
        of_pcf = {"CONNID": _NOBODY.id} if asked is not None else {}
        rows += [{**of_pcf, **row} for row in _in_doubt(administration)]
    known = {"CONN": _OF_CONNECTION, "HANDLE": _OF_HANDLE}.get(kind, _OF_CONNECTION | _OF_HANDLE)
    found = select(
        command,
        rows,
        (*(("CONNID",) if asked is not None else ("CONN", "EXTCONN")), "TYPE", "OBJNAME", "OBJTYPE"),
        known=known | {"CONN"},
        without_effect=_NOT_OF_CONNECTION,
        passed_over=frozenset({"CONNID", "EXTCONN", "TYPE", "URDISP"}),
        brief=True,
        missing=_no_connection,
    )
    return displayed(answers.CONN_DISPLAY, found)


# Whose the branches in doubt are.
_NOBODY: Final = Connection(
    id="0" * 48, pid=0, channel="", address="", user="", asserted="", application="", since=datetime.min
)


def _in_doubt(administration: Administration) -> Iterator[dict[str, Shown]]:
    for number, xid in administration.queues.in_doubt():
        yield {
            "CONN": _NOBODY.short_id,
            "EXTCONN": _NOBODY.extended_id,
            "TYPE": "CONN",
            **_program(_NOBODY),
            **shown_moment("UOWSTDA", "UOWSTTI", None),
            "UOWSTATE": "PREPARED",
            "URTYPE": "XA",
            "EXTURID": str(Xid.read(bytearray(xid), 0, "big")),
            "QMURID": f"0.{number}",
        }


def _is_meant(command: Command, connection: Connection) -> bool:
    """Whether the name, EXTCONN and CONNID choose it; hexadecimal digits in any case, generic ones too."""
    name = "*" if command.name is None else command.name.text.upper()
    extended, whole = command.keyword("EXTCONN"), command.keyword("CONNID")
    return (
        matches_name(name, connection.short_id)
        and (extended is None or matches_name(single(extended).text.upper(), connection.extended_id))
        and (whole is None or connection.id.startswith(single(whole).text.upper()))
    )


def _rows(connection: Connection, kind: str) -> Iterator[dict[str, Shown]]:
    identity = {"CONN": connection.short_id, "EXTCONN": connection.extended_id}
    if kind != "HANDLE":
        moment = shown_moment("UOWSTDA", "UOWSTTI", connection.unit_of_work)
        state = "NONE" if connection.unit_of_work is None else "ACTIVE"
        yield {**identity, "TYPE": "CONN", **_program(connection), **moment, "UOWSTATE": state, "URTYPE": "QMGR"}
    if kind != "CONN":
        for handle in connection.handles:
            yield {
                **identity,
                "TYPE": "HANDLE",
                "OBJNAME": handle.name,
                "OBJTYPE": _TYPES.get(handle.object_type, "QUEUE"),
                "HSTATE": _handle_state(handle),
                "OPENOPTS": OPEN_OPTIONS.show(handle.options),
                "TOPICSTR": handle.topic,
                "SUBID": handle.sub_id,
                "SUBNAME": handle.sub_name,
            }


def _program(connection: Connection) -> dict[str, Shown]:
    return {
        "PID": connection.pid,
        "APPLTAG": connection.application,
        "APPLTYPE": "USER",
        "CHANNEL": connection.channel,
        "CONNAME": connection.address,
        "USERID": connection.user,
    }


def _handle_state(handle: OpenHandle) -> str:
    return "ACTIVE" if handle.waits else "INACTIVE"


def _no_connection(_name: str) -> MqscError:
    return MqscError("AMQ8461", "Connection identifier not found.", reason=c.MQRCCF_NONE_FOUND)


_OF_QUEUE_HANDLE: Final = _OF_PROGRAM | keywords("BROWSE HSTATE INPUT INQUIRE OUTPUT SET URTYPE")
_NOT_OF_QUEUE_HANDLE: Final = keywords("APPLDESC ASTATE QMURID TID URID")


def display_queue_handles(command: Command, pattern: str, administration: Administration) -> Answer:
    """DISPLAY QSTATUS TYPE(HANDLE): who has queues open. pattern: their name, generic or not."""
    which = word_of(given, "ALL", "INPUT", "OUTPUT") if (given := command.keyword("OPENTYPE")) else "ALL"
    wanted = {"INPUT": m.MQOO_ANY_INPUT | m.MQOO_BROWSE, "OUTPUT": m.MQOO_OUTPUT}.get(which)
    rows = [
        _handle_row(connection, handle)
        for connection in programs(administration.listeners.reports())
        for handle in connection.handles
        if handle.queue and matches_name(pattern, handle.queue) and (wanted is None or handle.options & wanted)
    ]
    found = select(
        command,
        sorted(rows, key=lambda row: str(row["QUEUE"])),
        ("QUEUE", "TYPE"),
        known=_OF_QUEUE_HANDLE,
        without_effect=_NOT_OF_QUEUE_HANDLE,
        passed_over=frozenset({"TYPE", "OPENTYPE", "MONITOR"}),
        brief=False,
        missing=_no_handle,
    )
    return displayed(answers.QSTATUS_DISPLAY, found)


def _handle_row(connection: Connection, handle: OpenHandle) -> dict[str, Shown]:
    bits = (("BROWSE", m.MQOO_BROWSE), ("INQUIRE", m.MQOO_INQUIRE), ("OUTPUT", m.MQOO_OUTPUT), ("SET", m.MQOO_SET))
    reads = "EXCL" if handle.options & m.MQOO_INPUT_EXCLUSIVE else "SHARED"
    return {
        "QUEUE": handle.queue,
        "TYPE": "HANDLE",
        **_program(connection),
        "HSTATE": _handle_state(handle),
        "INPUT": reads if handle.options & m.MQOO_ANY_INPUT else "NO",
        **{word: "YES" if handle.options & bit else "NO" for word, bit in bits},
        "URTYPE": "QMGR",
    }


def _no_handle(name: str) -> MqscError:
    return MqscError("AMQ8147", answers.not_found(name).text, reason=c.MQRCCF_Q_STATUS_NOT_FOUND)


_OF_INSTANCE: Final = keywords(
    """
    BUFSRCVD BUFSSENT BYTSRCVD BYTSSENT CHLTYPE CHSTADA CHSTATI CURSHCNV HBINT JOBNAME LSTMSGDA LSTMSGTI MAXMSGL
    MAXSHCNV MCAUSER MSGS RAPPLTAG SSLCIPH STATUS STOPREQ SUBSTATE
    """
)
_NOT_OF_INSTANCE: Final = keywords(
    """
    BATCHES BATCHSZ COMPHDR COMPMSG COMPRATE COMPTIME CURLUWID CURMSGS CURSEQNO EXITTIME INDOUBT KAINT LOCLADDR LONGRTS
    LSTLUWID LSTSEQNO MCASTAT MONCHL NETTIME NPMSPEED QMNAME RPRODUCT RQMNAME RVERSION SECPROT SHORTRTS SSLCERTI
    SSLCERTU SSLKEYDA SSLKEYTI SSLPEER SSLRKEYS XBATCHSZ XMITQ XQMSGSA XQTIME
    """
)


def display_channel_status(command: Command, administration: Administration) -> Answer:
    """DISPLAY CHSTATUS: a row for each connection of a client, and for each channel that was stopped."""
    pattern = _channel(command, generic=True)
    address = command.keyword("CONNAME")
    from_there = None if address is None or address.values is None else single(address).text.partition("(")[0]
    saved = command.keyword("SAVED") is not None or _is_saved(command.keyword("INSTANCE"))
    rows: list[dict[str, Shown]] = []
    for report in () if saved else administration.listeners.reports():
        for instance in report.instances:
            if matches_name(pattern, instance.channel) and from_there in (None, instance.address):
                rows.append(_instance_row(report, instance))
        rows += [
            {"CHANNEL": name, "CHLTYPE": "SVRCONN", "CONNAME": "", "STATUS": "STOPPED", "SUBSTATE": ""}
            for name in report.stopped
            if matches_name(pattern, name) and from_there is None
        ]
    found = select(
        command,
        rows,
        ("CHANNEL", "CHLTYPE", "CONNAME", "STATUS", "SUBSTATE"),
        known=_OF_INSTANCE | {"CONNAME"},
        without_effect=_NOT_OF_INSTANCE,
        passed_over=keywords("CHLDISP CONNAME CURRENT INSTANCE MONITOR SAVED SHORT"),
        brief=True,
        missing=_no_status,
    )
    return displayed(answers.CHSTATUS_DISPLAY, found)


def _is_saved(instance: Keyword | None) -> bool:
    return instance is not None and single(instance).text == "SAVED"


def _instance_row(report: ListenerReport, instance: ChannelInstance) -> dict[str, Shown]:
    waits = any(handle.waits for each in instance.programs for handle in each.handles)
    return {
        "CHANNEL": instance.channel,
        "CHLTYPE": "SVRCONN",
        "CONNAME": instance.address,
        "STATUS": "RUNNING",
        "SUBSTATE": "MQGET" if waits else "RECEIVE",
        "RAPPLTAG": instance.application,
        "MCAUSER": instance.user,
        "CURSHCNV": len(instance.programs) if instance.sharing else 0,
        "MAXSHCNV": instance.sharing,
        "MSGS": min(instance.calls, _MOST),
        "BYTSRCVD": min(instance.received_bytes, _MOST),
        "BYTSSENT": min(instance.sent_bytes, _MOST),
        "BUFSRCVD": min(instance.received_segments, _MOST),
        "BUFSSENT": min(instance.sent_segments, _MOST),
        **shown_moment("CHSTADA", "CHSTATI", instance.started),
        **shown_moment("LSTMSGDA", "LSTMSGTI", instance.last),
        "HBINT": instance.heartbeat_s,
        "MAXMSGL": instance.longest_message,
        "JOBNAME": f"{report.pid:08X}{instance.port:08X}",
        "SSLCIPH": instance.cipher,
        "STOPREQ": "NO",
    }


def _no_status(_name: str) -> MqscError:
    return MqscError("AMQ8420", "Channel Status not found.", reason=c.MQRCCF_CHL_STATUS_NOT_FOUND)


def display_listener_status(command: Command, administration: Administration) -> Answer:
    """DISPLAY LSSTATUS: a row for each listener that runs, with the name of the definition that has its port."""
    if command.name is None:
        raise answers.missing_keyword(command.target)
    pattern = command.name.text
    names = {each.port: each.name for each in administration.objects.listeners.values()}
    rows: list[dict[str, Shown]] = [
        {
            "LISTENER": name,
            "STATUS": "RUNNING",
            "PID": report.pid,
            **shown_moment("STARTDA", "STARTTI", report.started),
            "TRPTYPE": "TCP",
            "IPADDR": place.host or "*",
            "PORT": place.port,
        }
        for report in administration.listeners.reports()
        for place in report.places
        if matches_name(pattern, name := place.name or names.get(place.port, LISTENER))
    ]
    known = keywords("STATUS PID STARTDA STARTTI TRPTYPE IPADDR PORT")
    blank = keywords("ADAPTER BACKLOG COMMANDS CONTROL DESCR LOCLNAME NTBNAMES SESSIONS SOCKET TPNAME")
    found = select(
        command, rows, ("LISTENER", "STATUS", "PID"), known=known, without_effect=blank, brief=is_generic(pattern)
    )
    return displayed(answers.LSSTATUS_DISPLAY, found)


def display_queue_manager_status(command: Command, administration: Administration) -> Answer:
    """DISPLAY QMSTATUS. CONNS: the programs that a listener has; CHINIT: whether there is one."""
    reports = administration.listeners.reports()
    row: dict[str, Shown] = {
        "QMNAME": administration.objects.qmgr.name,
        "STATUS": "RUNNING",
        "CONNS": sum(1 for _ in programs(reports)),
        "CHINIT": "RUNNING" if reports else "STOPPED",
    }
    found = select(command, [row], ("QMNAME", "STATUS"), known=frozenset(row), brief=True)
    return displayed(answers.QMSTATUS_DISPLAY, found)


def stop_connection(command: Command, administration: Administration) -> Answer:
    """STOP CONN, of one program by its identifier. Raises MqscError AMQ8461 where there is none of that."""
    for keyword in command.keywords:
        if keyword.name not in ("EXTCONN", "CONNID"):
            raise unexpected_keyword(command, keyword)
    whole = command.keyword("CONNID")
    name = command.name.text if command.name is not None else single(whole).text if whole is not None else ""
    length = 16 if command.name is not None else 48
    found = [each for each in programs(administration.listeners.reports()) if _is_meant(command, each)]
    if re.fullmatch(f"[0-9A-Fa-f]{{{length}}}", name) is None or not found:
        raise MqscError("AMQ8461", "Connection identifier not found.", reason=c.MQRCCF_CONNECTION_ID_ERROR)
    administration.listeners.obey(Order(connection=found[0].id))
    return done(answers.CONN_STOPPED)


def stop_channel(command: Command, administration: Administration) -> Answer:
    """STOP CHANNEL of a server-connection channel: its connections end, and with STATUS(STOPPED) no others may come.

    STATUS(STOPPED) is the default, without CONNAME. Raises MqscError AMQ9533 where nothing is to be stopped.
    """
    channel = _server_connection(command, administration, "CONNAME", "MODE", "STATUS", "CHLTYPE", "CMDSCOPE", "CHLDISP")
    mode, status = command.keyword("MODE"), command.keyword("STATUS")
    address = command.keyword("CONNAME")
    if mode is not None:
        word_of(mode, "QUIESCE", "FORCE", "TERMINATE")
    stays = (word_of(status, "STOPPED", "INACTIVE") if status is not None else "STOPPED") == "STOPPED"
    if address is not None and stays and status is not None:
        raise answers.failed("STATUS(STOPPED) stops a whole channel: leave out CONNAME.")
    where = "" if address is None else single(address).text.partition("(")[0]
    stops = stays and address is None
    obeyed = administration.listeners.obey(Order(channel=channel, address=where, stopped=True if stops else None))
    if not any(each.ended or each.changed for each in obeyed):
        raise MqscError("AMQ9533", f"Channel '{channel}' is not currently active.", reason=c.MQRCCF_CHANNEL_NOT_ACTIVE)
    return done(answers.CHANNEL_STOPPED)


def start_channel(command: Command, administration: Administration) -> Answer:
    """START CHANNEL of a server-connection channel: programs may connect by it again; of one that was not, nothing."""
    channel = _server_connection(command, administration, "CHLTYPE", "CMDSCOPE", "CHLDISP")
    objects = administration.objects
    obeyed = administration.listeners.obey(Order(channel=channel, stopped=False))
    if not obeyed and channel not in objects.channels and channel not in objects.server_channels:
        raise answers.not_found(channel)
    if not any(each.changed for each in obeyed):
        return done(answers.CHANNEL_STARTED, notes=("nothing to do: the channel is not stopped",))
    return done(answers.CHANNEL_STARTED)


def _server_connection(command: Command, administration: Administration, *known: str) -> str:
    """The channel that is named. Raises MqscError for a keyword that is not among *known*.

    STOP of a channel between queue managers is refused.
    """
    for keyword in command.keywords:
        if keyword.name not in known:
            raise unexpected_keyword(command, keyword)
    name = _channel(command, generic=False)
    if command.verb == "STOP" and name in administration.objects.channels:
        raise answers.failed(f"{name} is not a server-connection channel: it starts and stops with the queue manager.")
    return name


def _channel(command: Command, generic: bool) -> str:
    if command.name is None:
        raise answers.missing_keyword(command.target)
    name = command.name.text.rstrip(" ")
    if not generic and name.endswith("*"):
        raise answers.failed("Give the whole name of the channel.")
    return name
