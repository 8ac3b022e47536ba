"""SET and DISPLAY CHLAUTH: the rules for who may connect by which channel, and as which user (CHLAUTH).

The rules are kept with the other definitions; which of them counts for a client is said by
``commands.broker.channel_authentication``. The first SET CHLAUTH also keeps the rules of a new queue manager.

What clients connect by: which type a channel has, what is checked of definitions, START and STOP.

As in IBM MQ, the type of a channel is never changed. Channels of other types carry messages between machines; the
bridge has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final

from commands.broker import channel_authentication
from commands.broker.attribute_kinds import Shown, shown
from commands.broker.authority import ADMINISTRATOR
from commands.broker.channel_objects import (
    ADDRESSMAP,
    BLOCKADDR,
    BLOCKUSER,
    SSLPEERMAP,
    SVRCONN,
    USERMAP,
    AuthenticationInfo,
    ChannelAuthentication,
    ServerChannel,
    TcpListener,
)
from commands.broker.objects import CLUSRCVR, CLUSSDR, Definition, Objects
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, Change, DefinitionDeleted, DefinitionStored, displayed, done, select
from commands.mqsc.attributes import read_settings, unexpected_keyword
from commands.mqsc.channel_attributes import CHLAUTH
from commands.mqsc.families import CHANNEL, LISTENER, SERVER_CHANNEL, ObjectFamily
from commands.mqsc.script import Command, MqscError, syntax_error
from commands.mqsc.values import folded_user_notes, object_name, single, word_of
from rfh2 import pcf_admin_names as c
from rfh2.constants import MQ_CHANNEL_NAME_LENGTH

_OTHER_TYPES: Final = frozenset({"AMQP", "CLNTCONN", "MQTT", "RCVR", "RQSTR", "SDR", "SVR"})
_EXITS: Final = ("SCYEXIT", "RCVEXIT", "SENDEXIT")
_OTHER_AUTHENTICATION: Final = frozenset({"IDPWLDAP", "CRLLDAP", "OCSP"})
_CONTROL_WORDS: Final = frozenset({"IGNSTATE", "CMDSCOPE", "CHLDISP", "IPADDR", "PORT", "TRPTYPE", "QSGDISP"})
_CIPHERS: Final = ("ANY", "TLS_", "ECDHE_", "DHE_")
_LOCAL_NOTE: Final = "CHCKLOCL has no effect here: local programs need access to the files of the queue manager"


def channel_family(command: Command, objects: Objects) -> ObjectFamily:
    """The kind of channel that a command is about.

    Raises MqscError AMQ8404 where CHLTYPE is one that the bridge has not, or not that of the channel.
    """
    name = "" if command.name is None else command.name.text.rstrip(" ")
    existing = objects.channels.get(name) or objects.server_channels.get(name)
    keyword = command.keyword("CHLTYPE")
    if keyword is None:
        return SERVER_CHANNEL if isinstance(existing, ServerChannel) else CHANNEL
    given = single(keyword).text.upper()
    if given in _OTHER_TYPES:
        why = f"The bridge has only channels of clients, {SVRCONN}, and of clusters, {CLUSRCVR} and {CLUSSDR}"
        raise answers.failed(f"{why}: this command was not done.", c.MQRCCF_CHANNEL_TYPE_ERROR)
    if existing is not None and given != existing.channel_type:
        why = f"Channel {existing.name} has CHLTYPE({existing.channel_type}), which cannot be changed; delete it first."
        raise answers.failed(why, c.MQRCCF_CHANNEL_TYPE_ERROR)
    return SERVER_CHANNEL if given == SVRCONN else CHANNEL


def check(command: Command, family: ObjectFamily) -> tuple[str, ...]:
    """What to say of a command that defines or alters something of clients. Raises MqscError for what is not there."""
    for word in _EXITS if family is SERVER_CHANNEL else ():
        exit_ = command.keyword(word)
        if exit_ is not None and any(value.text.strip(" ") for value in exit_.values or ()):
            raise answers.failed(f"{word}: the bridge calls no exits of channels: this command was not done.")
    for word, others, what in (
        ("AUTHTYPE", _OTHER_AUTHENTICATION, "only AUTHTYPE(IDPWOS): no LDAP server and no revocation list is asked"),
        ("TRPTYPE", frozenset({"LU62", "NETBIOS", "SPX"}), "only TRPTYPE(TCP)"),
    ):
        keyword = command.keyword(word)
        if keyword is not None and single(keyword).text.upper() in others:
            raise answers.failed(f"The bridge has {what}: this command was not done.")
    return folded_user_notes(command.keyword("MCAUSER"))


def notes(made: ServerChannel | AuthenticationInfo | TcpListener) -> tuple[str, ...]:
    """What to say of a definition that is to be kept. Raises MqscError where it cannot be."""
    if isinstance(made, AuthenticationInfo):
        return () if made.check_local in ("NONE", "OPTIONAL") else (_LOCAL_NOTE,)
    if isinstance(made, TcpListener):
        if made.address not in ("", "*"):
            try:
                ip_address(made.address)
            except ValueError as error:
                raise answers.failed(f"IPADDR: {error}.") from error
        return ()
    check_mcauser(made.mcauser)
    check_peer("SSLPEER", made.peer)
    if made.cipher and not made.cipher.startswith(_CIPHERS):
        raise answers.failed(f"SSLCIPH({made.cipher}) is not a cipher of TLS 1.2 or later, and nothing older connects.")
    return ()


def check_mcauser(user: str) -> None:
    """Raise MqscError where no program can work as *user*."""
    if user and not channel_authentication.can_work(user):
        raise answers.failed(
            f"MCAUSER({user}): a user has 1 to {channel_authentication.LONGEST_USER} characters and no blanks."
        )


def check_peer(word: str, pattern: str) -> None:
    """Raise MqscError where *pattern* describes no distinguished name."""
    try:
        if pattern:
            channel_authentication.peer_pattern(pattern)
    except ValueError as error:
        raise answers.failed(f"{word}: {error}.") from error


def control_listener(command: Command, administration: Administration) -> Answer:
    """START LISTENER and STOP LISTENER: whether ``run`` listens there from now on. Raises MqscError."""
    _only_known(command)
    starts = command.verb == "START"
    name = object_name(LISTENER.template if command.name is None else command.name.text)
    found = administration.objects.listeners.get(name)
    state = command.keyword("IGNSTATE")
    ignores = state is not None and word_of(state, "YES", "NO") == "YES"
    if found is None and not starts and ignores:
        return done(answers.LISTENER_STOPPED, notes=(f"there is no listener {name}",))
    if found is None:
        raise answers.not_found(name)
    if found.is_wanted == starts and not ignores:
        reason = c.MQRCCF_LISTENER_RUNNING if starts else c.MQRCCF_LISTENER_STOPPED
        raise answers.failed(f"Listener {name} is {'started' if starts else 'stopped'} already.", reason)
    made = replace(found, is_started=starts)
    administration.objects.put(made)
    said = answers.LISTENER_STARTED if starts else answers.LISTENER_STOPPED
    return done(said, DefinitionStored(made), notes=("it has no effect on a run with --listen",))


def _only_known(command: Command) -> None:
    for keyword in command.keywords:
        if keyword.name not in _CONTROL_WORDS:
            raise unexpected_keyword(command, keyword)


_KEYWORDS: Final = {attribute.field: attribute.keyword for attribute in CHLAUTH.attributes}
_LISTS: Final = {BLOCKUSER: "user_list", BLOCKADDR: "address_list"}
_IDENTITY: Final = {SSLPEERMAP: "peer", USERMAP: "client_user", ADDRESSMAP: "address"}
# What each type of rule takes beside its identity.
_MAPPED: Final = frozenset({"description", "address", "user_source", "mcauser", "check_client", "warns"})
_TAKES: Final = {
    BLOCKUSER: frozenset({"description", "user_list", "warns"}),
    BLOCKADDR: frozenset({"description", "address_list", "warns"}),
    SSLPEERMAP: _MAPPED | {"peer", "issuer"},
    USERMAP: _MAPPED | {"client_user"},
    ADDRESSMAP: _MAPPED,
}
_OPTIONS: Final = frozenset({"ACTION", "CMDSCOPE"})
_RUNCHECK: Final = ("ADDRESS", "CLNTUSER", "SSLPEER", "SSLCERTI", "QMNAME")
_OF_OTHERS: Final = "QMGRMAP is for channels between queue managers, which the bridge does not have"


def set_record(command: Command, administration: Administration) -> Answer:
    """SET CHLAUTH with its four actions. Raises MqscError."""
    given = command.keyword("TYPE")
    if given is None:
        raise answers.missing_keyword("TYPE")
    if single(given).text.upper() == "QMGRMAP":
        raise answers.failed(f"{_OF_OTHERS}: this command was not done.", c.MQRCCF_WRONG_CHLAUTH_TYPE)
    settings = read_settings(command, CHLAUTH, _OPTIONS)
    record = ChannelAuthentication(_profile(command), **settings.fields)
    action = command.keyword("ACTION")
    does = "ADD" if action is None else word_of(action, "ADD", "REPLACE", "REMOVE", "REMOVEALL")
    _check(command, record, settings.fields, does)
    objects = administration.objects
    kept: list[Change] = []
    if not objects.qmgr.has_rules:
        kept = _keep_defaults(objects)
    if does == "REMOVEALL":
        changes = _remove(objects, (each for each in objects.channel_records if _same_kind(each, record)))
    elif record.type in _LISTS:
        changes = _set_list(objects, record, does)
    else:
        changes = _set_mapping(objects, record, does)
    ignored = (f"without effect here: {' '.join(settings.ignored)}",) if settings.ignored else ()
    off = () if objects.qmgr.chlauth else ("it does not count: ALTER QMGR CHLAUTH(ENABLED)",)
    folded = (note for word in ("MCAUSER", "CLNTUSER", "USERLIST") for note in folded_user_notes(command.keyword(word)))
    return done(answers.CHLAUTH_SET, *kept, *changes, notes=(*ignored, *off, *folded))


def _profile(command: Command) -> str:
    name = "" if command.name is None else command.name.text.rstrip(" ")
    if not name:
        raise answers.missing_keyword("CHLAUTH")
    if len(name) > MQ_CHANNEL_NAME_LENGTH:
        raise MqscError(
            "AMQ8413", "String Length Error.", (f"{name} has more than {MQ_CHANNEL_NAME_LENGTH} characters.",)
        )
    return name


def _check(command: Command, record: ChannelAuthentication, given: Mapping[str, Any], action: str) -> None:
    """Raises MqscError where the keywords do not go together, or a value cannot be."""
    alone = frozenset({"description"}) if action == "REMOVEALL" else _TAKES[record.type]
    for field in given.keys() - alone - {"type"}:
        keyword = command.keyword(_KEYWORDS[field])
        assert keyword is not None
        raise unexpected_keyword(command, keyword)
    if action == "REMOVEALL":
        return
    needed = _LISTS.get(record.type) or _IDENTITY[record.type]
    if not given.get(needed):
        raise answers.missing_keyword(_KEYWORDS[needed])
    if record.type == BLOCKADDR and record.profile != "*":
        raise syntax_error(f"SET CHLAUTH({record.profile})", "BLOCKADDR is for all channels: CHLAUTH('*').")
    for pattern in (*record.address_list, *((record.address,) if record.address else ())):
        if not channel_authentication.is_address_pattern(pattern):
            why = "is not an address, nor a pattern such as 10.1.* or 10.1.2-5.*; names of hosts are not looked up"
            raise answers.failed(f"{pattern} {why}: this command was not done.")
    check_peer("SSLPEER", record.peer)
    check_peer("SSLCERTI", record.issuer)
    check_mcauser(record.mcauser)
    if record.type in _LISTS or action == "REMOVE":
        return
    if (record.user_source == "MAP") != bool(record.mcauser):
        if record.mcauser:
            raise answers.failed(f"MCAUSER needs USERSRC(MAP), not USERSRC({record.user_source}).")
        raise answers.missing_keyword("MCAUSER")
    if record.warns and record.user_source != "NOACCESS":
        raise answers.failed("WARN(YES) needs USERSRC(NOACCESS).")


def _same_kind(one: ChannelAuthentication, other: ChannelAuthentication) -> bool:
    return (one.profile, one.type) == (other.profile, other.type)


def _keep_defaults(objects: Objects) -> list[Change]:
    made: list[Definition] = [*objects.channel_records, replace(objects.qmgr, has_rules=True)]
    for each in made:
        objects.put(each)
    return [DefinitionStored(each) for each in made]


def _remove(objects: Objects, records: Iterable[ChannelAuthentication]) -> list[Change]:
    names = [each.name for each in records]
    for name in names:
        objects.delete("chlauth", name)
    return [DefinitionDeleted("chlauth", name) for name in names]


def _store(objects: Objects, record: ChannelAuthentication) -> list[Change]:
    objects.put(record)
    return [DefinitionStored(record)]


def _listed(record: ChannelAuthentication, listed: tuple[str, ...], **others: Any) -> ChannelAuthentication:
    changed: dict[str, Any] = {_LISTS[record.type]: listed, **others}
    return replace(record, **changed)


def _set_list(objects: Objects, record: ChannelAuthentication, action: str) -> list[Change]:
    """ADD joins the lists, REPLACE sets the list, REMOVE takes entries off, and the record with the last of them."""
    before, given = objects.own_rules.get(record.name), getattr(record, _LISTS[record.type])
    had = () if before is None else getattr(before, _LISTS[record.type])
    if action == "REPLACE" or (before is None and action == "ADD"):
        return _store(objects, record)
    if before is None or (action == "REMOVE" and not set(given) <= set(had)):
        raise _not_found(record)
    if action == "ADD":
        listed = (*had, *(each for each in given if each not in had))
        return _store(objects, _listed(record, listed, description=record.description or before.description))
    left = tuple(each for each in had if each not in given)
    return _store(objects, _listed(before, left)) if left else _remove(objects, [before])


def _set_mapping(objects: Objects, record: ChannelAuthentication, action: str) -> list[Change]:
    before = objects.own_rules.get(record.name)
    if action == "ADD" and before is not None:
        why = f"Channel {record.profile} has such a {record.type} record already; ACTION(REPLACE) changes it."
        raise answers.failed(why, c.MQRCCF_CHLAUTH_ALREADY_EXISTS)
    if action != "REMOVE":
        return _store(objects, record)
    if before is None:
        raise _not_found(record)
    return _remove(objects, [before])


def _not_found(record: ChannelAuthentication) -> MqscError:
    return answers.failed(f"There is no such {record.type} record for {record.profile}.", c.MQRCCF_CHLAUTH_NOT_FOUND)


def display_records(command: Command, administration: Administration) -> Answer:
    """DISPLAY CHLAUTH: the rules of a profile, of all that fit a channel, or the one that counts for a client."""
    pattern = _profile(command)
    match = command.keyword("MATCH")
    how = "GENERIC" if match is None else word_of(match, "GENERIC", "ALL", "EXACT", "RUNCHECK")
    if how == "RUNCHECK":
        records = _counting(command, pattern, administration)
    else:
        records = [each for each in administration.objects.channel_records if _is_meant(each.profile, pattern, how)]
    passed = _RUNCHECK if how == "RUNCHECK" else ()
    kind = command.keyword("TYPE")
    if kind is not None and kind.values is not None:
        wanted = single(kind).text.upper()
        records = [each for each in records if wanted in ("ALL", each.type)]
    rows = [row_of(each) for each in sorted(records, key=lambda each: each.name)]
    found = select(
        command,
        rows,
        ("CHLAUTH", "TYPE", *(_KEYWORDS[field] for field in _ALWAYS)),
        known=frozenset({"CHLAUTH", *_KEYWORDS.values()}),
        without_effect=CHLAUTH.without_effect,
        passed_over=frozenset({"MATCH", *passed, *(("TYPE",) if kind is not None and kind.values else ())}),
        brief=command.keyword("ALL") is None and how != "RUNCHECK",
    )
    return displayed(answers.CHLAUTH_DISPLAY, found)


def _is_meant(profile: str, pattern: str, how: str) -> bool:
    if how == "EXACT":
        return profile == pattern
    return channel_authentication.like(profile, pattern) or (
        how == "ALL" and channel_authentication.like(pattern, profile)
    )


_ALWAYS: Final = (
    "description",
    "address",
    "client_user",
    "peer",
    "user_list",
    "address_list",
    "user_source",
    "mcauser",
)


def row_of(record: ChannelAuthentication) -> dict[str, Shown]:
    """What DISPLAY CHLAUTH shows of it, without blank attributes."""
    takes = _TAKES[record.type] | {"type", *([_IDENTITY[record.type]] if record.type in _IDENTITY else [])}
    row: dict[str, Shown] = {"CHLAUTH": record.profile}
    row |= {each.keyword: shown(record, each) for each in CHLAUTH.attributes if each.field in takes}
    return {key: value for key, value in row.items() if value not in ("", ()) or key == "DESCR"}


def _counting(command: Command, channel: str, administration: Administration) -> list[ChannelAuthentication]:
    """The record that decides about a client that is described."""
    given = {word: single(each).text for word in _RUNCHECK if (each := command.keyword(word)) is not None}
    if "ADDRESS" not in given or "*" in channel:
        raise answers.missing_keyword("The full name of a channel, and ADDRESS,")
    if "QMNAME" in given:
        raise answers.failed(f"{_OF_OTHERS}: this command was not done.")
    names = []
    for word in ("SSLPEER", "SSLCERTI"):
        check_peer(word, given.get(word, ""))
        names.append(channel_authentication.peer_pattern(given[word]) if given.get(word) else ())
    client = channel_authentication.Client(channel, given["ADDRESS"], given.get("CLNTUSER", ""), *names)
    rules = channel_authentication.ChannelRules.of(administration.objects)
    blocking = rules.blocking(client.address)
    if blocking is not None:
        return [blocking]
    record = rules.mapping(client)
    if record is not None and record.user_source == "NOACCESS":
        return [record]
    found = rules.channel(channel, client.address)
    user = channel_authentication.user_of(record, "" if found is None else found.mcauser, client.user)
    blocked = rules.blocked_users(channel)
    privileged = user == ADMINISTRATOR or ADMINISTRATOR in administration.groups_of(user)
    if blocked is not None and channel_authentication.is_blocked(blocked, user, privileged):
        return [blocked]
    return [] if record is None else [record]
