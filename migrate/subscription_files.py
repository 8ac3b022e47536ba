"""The subscriptions of a plan in files: DEFINE SUB for those that it makes exactly, a command for each other one.

``is_carried`` decides what DEFINE SUB can define: a subscription that MQSC would make slightly different becomes a
command.

A queue manager sends what is retained to a new subscription, and DEFINE SUB has no attribute that prevents it. The
subscribers have it already. Therefore a subscription that would get something is defined with REQONLY(YES), to which
nothing is sent, and altered to REQONLY(NO): a change of a subscription sends nothing (guide 4.8.2).

Commands tried out in memory before they are written to a file: each has to make exactly what was planned.

The queued interface has many rules for what a command makes. So each command is run there, with the objects of the plan
and without checks of authority. A command that makes something else raises CommandError, and is reported to a person
instead of written to a file.

Register Subscriber commands for subscriptions that MQSC cannot define.

A subscription without a name is found by its traditional identity, which only a command can give it. Only a command
can give persistence options, identity sets and the prefix that is removed again. The command is put with the context of
its user. If the subscription would be sent retained publications at once, the command has NewPubsOnly, because the
subscriber received them before the migration.

Registration options as a subscription keeps them, and as words; the words are what items hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from commands.broker import subscription_attributes
from commands.broker.objects import CONTROL_QUEUE, DEFAULT_STREAM
from commands.broker.outcome import Arrival, Outcome
from commands.broker.selection import Selection
from commands.broker.subscription_attributes import OPTIONS, words_of
from commands.broker.times import tenths_until
from commands.headers.pcf import FORMAT
from commands.headers.publication import BY_TAG, COMMAND_IDS
from commands.model import RegisterSubscriber, RegOpt
from commands.mqsc.broker import Broker
from commands.mqsc.equivalents import OperationContext, attributes as sub_attributes, sub_name
from commands.mqsc.script import NoMqscFormError, Word, comment, keyword, statement
from migrate.legacy_state import Key
from migrate.plan import AddSubscription, KeepRetained, MigrationPlan, Store
from migrate.target import Target, copied
from rfh2.captured import CapturedMessage
from rfh2.ccsid import UTF8_CCSID
from rfh2.constants import MQEI_UNLIMITED, MQFMT_RF_HEADER_1, MQFMT_RF_HEADER_2, MQMT_DATAGRAM, MQPER_PERSISTENT
from rfh2.errors import CommandError, QPubSubError
from rfh2.folders import Folder, write
from rfh2.message import Message, encode
from rfh2.mqi_constants import MQCI_NONE
from rfh2.mqmd import Mqmd
from rfh2.options import REGISTRATION
from rfh2.pcf import Cfin, Cfst, Pcf
from rfh2.rfh1 import MQPS_COMMAND, Rfh1
from rfh2.rfh2 import Rfh2
from streams.operations import RetainedStored, SubscriptionAdded, SubscriptionAltered, Unsubscribe
from streams.patterns import is_read_alike, parse_pattern, remove_pattern_prefix
from streams.retained import RetainedPublications
from streams.subscriptions import PublicationFormat, Subscription, SubscriptionOptions, WildcardScheme
from streams.topic_space import TopicSpace


@lru_cache(maxsize=4096)
def kept_options(words: tuple[str, ...]) -> SubscriptionOptions:
    """What a subscription keeps of registration options."""
    return subscription_attributes.options_of(words)


def options_of(options: SubscriptionOptions, correl_as_id: bool) -> tuple[str, ...]:
    """The words of *options*, CorrelAsId first where it was given; PersAsPub, the default, is left out."""
    first = [RegOpt.CORREL_AS_ID.value] if correl_as_id else []
    return (*first, *words_of(options))


_HEADERS = {
    PublicationFormat.RFH2: WildcardScheme.TOPIC,
    PublicationFormat.RFH1: WildcardScheme.CHAR,
    PublicationFormat.PCF: WildcardScheme.CHAR,
}


def cannot_register(subscription: Subscription) -> str:
    """Why no command can make *subscription*; "" if one can."""
    scheme = _HEADERS.get(subscription.format)
    if scheme is None:
        return f"no command asks for publications as {subscription.format}"
    if scheme is not subscription.wildcard and not is_read_alike(subscription.topic_string):
        return "its header has the other wildcard scheme"
    if subscription.format is not PublicationFormat.RFH2 and (subscription.sub_point or subscription.selector):
        return "only an MQRFH2 has a subscription point or a filter"
    if subscription.format is PublicationFormat.RFH2 and subscription.stream:
        return "an MQRFH2 names no stream"
    if subscription.topic_string.startswith(("$SYS/", "MQ/")):
        return "a command for this topic is accepted and ignored"
    return ""


def registrations(
    subscription: Subscription, seq: int, now: datetime, qmgr: str, *, is_sent_retained: bool
) -> Iterator[CapturedMessage]:
    """The commands, one for each member of the identity set, at least one. Raises EncodeError.

    is_sent_retained: whether a retained publication matches it.
    """
    for identity in subscription.identities or (None,):
        mqmd, body = _command(subscription, identity, now, qmgr, is_sent_retained)
        yield CapturedMessage(
            seq=seq,
            time=now,
            qmgr=qmgr,
            queue=CONTROL_QUEUE,
            user=subscription.user or None,
            md_hex=mqmd.encode().hex(),
            body_hex=body.hex(),
        )


def _command(
    subscription: Subscription, identity: str | None, now: datetime, qmgr: str, is_sent_retained: bool
) -> tuple[Mqmd, bytes]:
    identified = subscription.correl_id != MQCI_NONE
    words = list(options_of(subscription.options, identified))
    if is_sent_retained and not subscription.options.pub_on_req_only and RegOpt.NEW_PUBS_ONLY not in words:
        words.append(RegOpt.NEW_PUBS_ONLY)
    if identity is not None:
        words.append(RegOpt.JOIN_EXCL if subscription.exclusive else RegOpt.JOIN_SHARED)
    pairs = [("Command", RegisterSubscriber.word)]
    pairs.append(
        ("Topic", remove_pattern_prefix(subscription.prefix, subscription.topic_string, subscription.wildcard))
    )
    if subscription.sub_point:
        pairs.append(("SubPoint", subscription.sub_point))
    if subscription.selector:
        pairs.append(("Filter", subscription.selector))
    pairs += [("QMgrName", subscription.dest_qmgr), ("QName", subscription.dest_queue)]
    pairs += [("RegOpt", str(word)) for word in words]
    optional = (("SubName", subscription.name), ("SubIdentity", identity), ("SubUserData", subscription.user_data))
    pairs += [(tag, value) for tag, value in optional if value is not None]
    fmt, headers, data = _form(subscription, pairs)
    left = tenths_until(subscription.expires_at, now)
    mqmd = Mqmd(
        msg_type=MQMT_DATAGRAM,
        expiry=MQEI_UNLIMITED if left is None else left,
        coded_char_set_id=UTF8_CCSID,
        format=fmt,
        persistence=MQPER_PERSISTENT,
        correl_id=subscription.correl_id,
        user_identifier=subscription.user,
        accounting_token=subscription.accounting_token,
        appl_identity_data=subscription.appl_identity_data,
    )
    return mqmd, encode(Message(mqmd, headers, data))


def _form(subscription: Subscription, pairs: list[tuple[str, str]]) -> tuple[str, tuple[Rfh1 | Rfh2, ...], bytes]:
    """Format, headers and body of the command in the header that the subscriber used."""
    if subscription.format is PublicationFormat.RFH2:
        return MQFMT_RF_HEADER_2, (Rfh2((Folder.of(write("psc", pairs)),)),), b""
    (_, command), *rest = pairs
    if subscription.stream and subscription.stream != DEFAULT_STREAM:
        rest.append(("StreamName", subscription.stream))
    if subscription.format is PublicationFormat.RFH1:
        named = [(MQPS_COMMAND, command), *((BY_TAG[tag].mqps, value) for tag, value in rest)]
        header = Rfh1(charset="utf-8", string_charset="utf-8").with_pairs(named)
        return MQFMT_RF_HEADER_1, (header,), b""
    texts = (Cfst.of(BY_TAG[tag].pcf, value, UTF8_CCSID) for tag, value in rest if not BY_TAG[tag].integer)
    options = Cfin(BY_TAG["RegOpt"].pcf, REGISTRATION.mask(value for tag, value in rest if tag == "RegOpt"))
    return FORMAT, (), Pcf(COMMAND_IDS[command], (*texts, options)).encode()


class Trial:
    """The queue manager as it will be, as far as the commands so far have made it."""

    def __init__(self, plan: MigrationPlan, target: Target) -> None:
        objects = copied(target.objects)
        for step in plan.steps:
            if isinstance(step, Store):
                if step.anew:
                    objects.delete("topic", step.definition.name)
                objects.put(step.definition)
        # The queue manager grants authority; the report says who lacks it.
        objects.authorities = {}
        space = TopicSpace(objects.topics, Selection())
        space.restore(target.subscriptions, target.retained.values())
        self._broker = Broker(plan.qmgr, objects=objects, space=space)
        self._now = plan.now
        self._seq = 0

    def publish(self, message: CapturedMessage, topic_string: str) -> None:
        """Raises CommandError where *message* does not have *topic_string* keep it."""
        effects = self._run(message).effects
        kept = [effect.retained.topic_string for effect in effects if isinstance(effect, RetainedStored)]
        if kept != [topic_string]:
            raise CommandError(0, topic_string, f"the command would be kept on {', '.join(kept) or 'no topic'}")

    def register(self, messages: list[CapturedMessage], wanted: Subscription, *, is_alone: bool = False) -> None:
        """Raises CommandError where *messages* together do not make *wanted*.

        is_alone: no later command can concern it, so that it need not be kept in memory.
        """
        made: Subscription | None = None
        for message in messages:
            for effect in self._run(message).effects:
                if isinstance(effect, SubscriptionAdded):
                    made = effect.subscription
                elif isinstance(effect, SubscriptionAltered):
                    made = effect.after
        if made is None or _essence(made) != _essence(wanted):
            raise CommandError(0, wanted.topic_string, "the command would make another subscription")
        if is_alone:
            self._broker.space.apply(Unsubscribe(made), self._now)

    def _run(self, message: CapturedMessage) -> Outcome:
        self._seq += 1
        arrival = Arrival(self._seq, self._now, message.queue, message.md, message.body, message.user)
        outcome = self._broker.process(arrival)
        if outcome.completion != "ok":
            raise CommandError(outcome.reason or 0, None, f"the queued interface refuses the command: {outcome.why}")
        return outcome


def _essence(subscription: Subscription) -> Subscription:
    """*subscription* without what a command cannot set, sets on purpose (NewPubsOnly), or what does not matter."""
    options = replace(subscription.options, new_pubs_only=False)
    alike = is_read_alike(subscription.topic_string)
    return replace(
        subscription,
        wildcard=WildcardScheme.CHAR if alike else subscription.wildcard,
        sub_id=bytes(24),
        created=subscription.created.min,
        expires_at=None,
        options=options,
        identities=tuple(sorted(subscription.identities)),
    )


Keyed = tuple[Key, CapturedMessage]
"""A message, and the item that it carries."""

_KEPT_BACK: Final = ("REQONLY", Word("YES"))
_RELEASED: Final = ("REQONLY", Word("NO"))
_MQSC_OPTIONS: Final = tuple(each.field for each in OPTIONS if each.keyword)


@dataclass(frozen=True, slots=True)
class FileNote:
    """What no file does. key: the item that it concerns. is_lost: the item is in no file; else it is another one."""

    text: str
    key: Key | None = None
    is_lost: bool = True


@dataclass(slots=True)
class Defined:
    """What DEFINE SUB makes. kept_back: how many subscriptions would be sent something retained."""

    lines: list[str] = field(default_factory=list)
    kept_back: int = 0


def is_carried(subscription: Subscription) -> bool:
    """Whether DEFINE SUB makes *subscription* exactly as it is, its SUBTYPE and identifier apart."""
    rest = SubscriptionOptions(**{word: getattr(subscription.options, word) for word in _MQSC_OPTIONS})
    return (
        subscription.name is not None
        and not (subscription.prefix or subscription.stream or subscription.sub_point)
        and subscription.options == rest
        and not subscription.identities
        and subscription.format in (PublicationFormat.RFH2, PublicationFormat.RFH1)
        and bool(subscription.user)
    )


def define_sub(
    subscription: Subscription, context: OperationContext, *, replaces: bool, is_sent_retained: bool = False
) -> list[str]:
    """The lines of DEFINE SUB; with *is_sent_retained* those that keep retained publications back.

    Raises NoMqscFormError where MQSC has no form for a value.
    """
    found = sub_attributes(subscription, context)
    is_kept_back = is_sent_retained and not replaces and not subscription.options.pub_on_req_only
    if is_kept_back:
        found = [*found, _KEPT_BACK]
    name = sub_name(subscription)
    if name != name.strip(" "):
        raise NoMqscFormError("a name that MQSC would not keep")
    for word, value in found:
        if isinstance(value, str) and word in ("TOPICSTR", "USERDATA", "SELECTOR") and value != value.strip(" "):
            raise NoMqscFormError(f"{word} begins or ends with a blank")
    lines = statement(f"DEFINE {keyword('SUB', name)}", found)
    if replaces:
        lines[-1] += " +"
        lines.append("  REPLACE")
    if is_kept_back:
        lines += statement(f"ALTER {keyword('SUB', name)}", [_RELEASED])
    return lines


def subscriptions(
    plan: MigrationPlan, target: Target, trial: Trial, notes: list[FileNote], defined: Defined
) -> Iterator[Keyed]:
    """The Register Subscriber commands; *defined* gets what DEFINE SUB makes."""
    context = OperationContext(plan.qmgr, plan.now)
    kept = RetainedPublications()
    for step in plan.steps:
        if isinstance(step, KeepRetained):
            kept.store(step.retained)
    blocks = target.objects.topics.blocks()
    shared = _shared_identities(plan)
    seq = 1
    for step in plan.steps:
        if not isinstance(step, AddSubscription):
            continue
        made = step.subscription
        why = cannot_register(made)
        is_sent = bool(kept.match(parse_pattern(made.topic_string, made.wildcard), plan.now, blocks))
        if is_carried(made) or why:
            try:
                defined.lines.append(comment(f"[{step.number}]"))
                is_new = step.replaces is None
                lines = define_sub(made, context, replaces=not is_new, is_sent_retained=is_sent)
                defined.lines += lines
                defined.kept_back += is_sent and is_new and not made.options.pub_on_req_only
                if not is_carried(made):
                    text = f"Subscription [{step.number}] becomes {sub_name(made)}, an administrator's: {why}"
                    notes.append(FileNote(text, step.key, is_lost=False))
                continue
            except NoMqscFormError as error:
                if why:
                    text = f"Make subscription [{step.number}] by hand: {why}; {error}"
                    notes.append(FileNote(text, step.key))
                    continue
        try:
            own = list(registrations(made, seq, plan.now, plan.qmgr, is_sent_retained=is_sent))
            trial.register(own, made, is_alone=hash(made.traditional_identity) not in shared)
        except QPubSubError as error:
            notes.append(FileNote(f"Make subscription [{step.number}] by hand: {error}", step.key))
            continue
        seq += len(own)
        yield from ((step.key, command) for command in own)


def _shared_identities(plan: MigrationPlan) -> set[int]:
    """The hashes of the traditional identities that several subscriptions of *plan* have.

    A command concerns a subscription of its own identity (guide 6.7.2), or of its own name, which no other one has.
    """
    seen: set[int] = set()
    shared: set[int] = set()
    for step in plan.steps:
        if isinstance(step, AddSubscription):
            identity = hash(step.subscription.traditional_identity)
            (shared if identity in seen else seen).add(identity)
    return shared
