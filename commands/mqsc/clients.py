"""What clients connect by: which type a channel has, what is checked of definitions, START and STOP.

As in IBM MQ, the type of a channel is never changed. Channels of other types carry messages between machines; the
bridge has none.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from typing import Final

from commands.broker.channel_authentication import LONGEST_USER, can_work, peer_pattern
from commands.broker.channel_objects import SVRCONN, AuthenticationInfo, ServerChannel, TcpListener
from commands.broker.objects import CLUSRCVR, CLUSSDR, Objects
from commands.mqsc import answers
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, DefinitionStored, done
from commands.mqsc.attributes import unexpected_keyword
from commands.mqsc.families import CHANNEL, LISTENER, SERVER_CHANNEL, ObjectFamily
from commands.mqsc.model import Command
from commands.mqsc.values import folded_user_notes, object_name, single, word_of
from rfh2.pcf_admin_names import MQRCCF_CHANNEL_TYPE_ERROR, MQRCCF_LISTENER_RUNNING, MQRCCF_LISTENER_STOPPED

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
        raise answers.failed(f"{why}: this command was not done.", MQRCCF_CHANNEL_TYPE_ERROR)
    if existing is not None and given != existing.channel_type:
        why = f"Channel {existing.name} has CHLTYPE({existing.channel_type}), which cannot be changed; delete it first."
        raise answers.failed(why, MQRCCF_CHANNEL_TYPE_ERROR)
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
    if user and not can_work(user):
        raise answers.failed(f"MCAUSER({user}): a user has 1 to {LONGEST_USER} characters and no blanks.")


def check_peer(word: str, pattern: str) -> None:
    """Raise MqscError where *pattern* describes no distinguished name."""
    try:
        if pattern:
            peer_pattern(pattern)
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
        reason = MQRCCF_LISTENER_RUNNING if starts else MQRCCF_LISTENER_STOPPED
        raise answers.failed(f"Listener {name} is {'started' if starts else 'stopped'} already.", reason)
    made = replace(found, is_started=starts)
    administration.objects.put(made)
    said = answers.LISTENER_STARTED if starts else answers.LISTENER_STOPPED
    return done(said, DefinitionStored(made), notes=("it has no effect on a run with --listen",))


def _only_known(command: Command) -> None:
    for keyword in command.keywords:
        if keyword.name not in _CONTROL_WORDS:
            raise unexpected_keyword(command, keyword)
