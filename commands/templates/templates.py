"""Templates of forwarded publications: what a program publishes again and again, with other topics, numbers and data.

Programs publish messages that differ in few places. This module divides a publication with one MQRFH2 into

    fixed    queue, user, the descriptor without MsgId, PutDate and PutTime, the fixed part of the MQRFH2, and the psc
             folder without the texts below: all publications with the same have one ``_Shape``
    texts    those of Topic, PubTime and SeqNum in the psc folder
    rest     the other folders, such as mcd, jms and usr, and the data: passed on as they are

The put for a subscriber that wants an MQRFH2 and has no filter has the same parts: a descriptor and a psc folder made
of the fixed part and the texts, then the rest. So what the broker put for one publication of a shape shows what it puts
for each other. A template is learned from such a put, and kept only if it gives that put again, byte for byte. On
another topic the templates of the subscriptions that match there are put together (``Plan``).

The broker itself processes everything else: more than one topic or header, a text that needs an escape, OtherSubsOnly,
the semantics of version 6, and subscriptions with a filter, a level, a group or another format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from commands.broker.authority import Action
from commands.broker.context import Semantics
from commands.broker.core import BrokerCore
from commands.broker.descriptor import CARRIED_IDS
from commands.broker.forward import delivered_topic
from commands.broker.outcome import Arrival, Outcome
from commands.broker.puts import Outgoing, PutKind
from commands.broker.reading import as_kept
from commands.broker.register import full_topic
from commands.headers.response import Completion
from commands.templates.parts import (
    ID,
    STAMP,
    Cut,
    Descriptors,
    Form,
    Parts,
    Pieces,
    ResponseCut,
    ShapeKey,
    accepted_of,
    bodies_of,
    cut_of,
    form_of,
    is_changed,
    on_topic,
    parts_of,
    psc_folder,
    stamp_of,
)
from rfh2.constants import MQPER_PERSISTENT, MQPRI_PRIORITY_AS_Q_DEF, MQRO_PASS_CORREL_ID, MQRO_PASS_MSG_ID
from rfh2.errors import CommandError
from rfh2.message import Message, decode, decoder_of, encode
from rfh2.mqmd import Mqmd, name_of
from rfh2.pcf import FORMATS
from rfh2.rfh2 import Rfh2
from streams import operations as op
from streams.patterns import check_publication_topic
from streams.subscriptions import DeliveryPersistence, PublicationFormat, Subscription

_MOST_SUBSCRIBERS: Final = 4_096
_MOST_SEEN: Final = 200_000
_MESSAGE: Final = slice(Outgoing._fields.index("md"), Outgoing._fields.index("body") + 1)
_WILD: Final = re.compile("[*?#+]")
_UNKNOWN: Final = True

MOST_TEMPLATE_PUTS: Final = 65_536
"""In puts, of some 400 bytes each."""


@dataclass(frozen=True, slots=True)
class _Template:
    """The put for one subscription."""

    subscription: Subscription
    put: Outgoing  # without descriptor and body
    cut: Cut
    form: Form


class _Response(NamedTuple):
    """The response to publications of one shape."""

    put: Outgoing  # without descriptor
    cut: ResponseCut


class _RetainedForm(NamedTuple):
    """What publications of one shape leave retained, but for the message and its time."""

    local: bool
    stream: str | None
    sub_point: str | None
    persistent: bool | None  # None where the message is not retained in the bytes in which it arrived

    def publication(self, arrival: Arrival) -> op.Published:
        """What is retained when *arrival* is such a publication."""
        local, stream, sub_point, persistent = self
        if persistent is None:
            _, message = as_kept(arrival.body, decode(arrival.body, arrival.md))
            return op.Publication(message, arrival.now, None, local, stream, sub_point)
        assert arrival.md is not None
        return op.UnreadPublication(arrival.md, arrival.body, persistent, arrival.now, local, stream, sub_point)


@dataclass(slots=True, eq=False)
class Plan:
    """The puts of publications of one shape on one topic."""

    topic: str
    matched: tuple[Subscription, ...]  # with those to which neighbours bring them
    user: str  # who publishes
    retained: _RetainedForm | None
    # Of each put what is before its descriptor, and what is behind its body.
    fronts_and_tails: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...]
    cuts: tuple[Cut, ...]  # of the publications
    response: _Response | None  # the last one of the puts
    # The different beginnings: the fixed part, and the psc folder; as bytes, with length and padding, where nothing in
    # it varies but the topic.
    forms: tuple[tuple[bytes, bytes | Pieces], ...]
    form_of: tuple[int, ...]  # which of these each publication has
    as_of: int  # the changes of subscriptions after which the topic was last seen to match these


@dataclass(slots=True)
class _Shape:
    """What publications have in common that differ in their texts and in the rest."""

    user: str
    prefix: str  # of the topics
    retained: _RetainedForm | None
    response: _Response | None
    # By sub_id; None for a subscription to which none applies.
    templates: dict[bytes, tuple[Subscription, _Template | None]] = field(default_factory=dict)
    plans: dict[bytes, Plan] = field(default_factory=dict)

    def template_of(self, subscription: Subscription) -> _Template | bool | None:
        """That of a subscription; None where none applies; ``_UNKNOWN`` where it is new, or was altered."""
        known = self.templates.get(subscription.sub_id)
        if known is None or (known[0] is not subscription and known[0] != subscription):
            return _UNKNOWN
        return known[1]


class SeenShapes:
    """The shapes of publications that came before: what never comes again is not worth learning."""

    def __init__(self) -> None:
        self._numbers: set[int] = set()

    def add(self, parts: Parts) -> bool:
        """Whether such a publication came before; from now on it did."""
        number = hash(parts.key)
        if number in self._numbers:
            return True
        if len(self._numbers) >= _MOST_SEEN:
            self._numbers.clear()
        self._numbers.add(number)
        return False


class PublicationTemplates:
    """The templates of one broker.

    effects: whether the broker's changes count, and not only its puts; a replay may find what is retained in another
    way. traced: whether outcomes of the broker have a trace. carried: whether neighbours send the publications on,
    which were checked where they were published (guide 3.6). No put stands for proxy subscriptions; those that a topic
    matches are in ``Plan.matched``. most: in puts, of some 400 bytes each.
    """

    def __init__(
        self,
        broker: BrokerCore,
        effects: bool,
        *,
        traced: bool = False,
        carried: bool = False,
        most: int = MOST_TEMPLATE_PUTS,
    ) -> None:
        self._process: Callable[[Arrival], Outcome] = broker.trace if traced else broker.process
        self._broker, self._space, self._effects, self._carried = broker, broker.space, effects, carried
        self._qmgr, self._authority = broker.qmgr, broker.authority
        self._descriptors = Descriptors(broker.qmgr, CARRIED_IDS if carried else 0)
        self._shapes: dict[ShapeKey, _Shape | None] = {}  # None: no template applies
        self._most = self._room = most
        self._seen = SeenShapes()
        self._is_off = broker.semantics is Semantics.V6

    @property
    def room(self) -> int:
        """How much more can be kept before all is forgotten."""
        return self._room

    def process(self, arrival: Arrival, parts: Parts | None = None) -> Outcome:
        """The outcome of a message that needs no retained publication, by a template or by the broker.

        parts: its parts, where somebody has taken it apart. While something has expired, the broker processes the
        message. Raises OverBudgetError as the broker does.
        """
        parts = None if self._effects and self._space.is_due(arrival.now) else parts or parts_of(arrival)
        if parts is None:
            return self._process(arrival)
        is_known = self.knows(parts)
        if is_known and not self._effects:  # else nothing is due
            self._space.expire(arrival.now)
        plan = self.plan(arrival, parts)
        # A user's groups can change, so they are asked each time.
        if isinstance(plan, Plan) and self._authority.may_use_topic(plan.user, Action.PUBLISH, plan.topic):
            return self.outcome(plan, arrival, parts)
        outcome = self._process(arrival)
        if plan is True if is_known else self._seen.add(parts):
            self.learn(arrival, parts, outcome)
        return outcome

    def knows(self, parts: Parts) -> bool:
        """Whether such a publication was learned from, or needs not be."""
        return self._is_off or parts.key in self._shapes

    def plan(self, arrival: Arrival, parts: Parts) -> Plan | bool:
        """The plan for *arrival*; False where no template applies; True where ``learn`` may help."""
        shape = self._shapes.get(parts.key)
        if shape is None:
            return False
        plan = shape.plans.get(parts.topic)
        if plan is not None and self._is_good(plan, arrival):
            return plan
        made = self._plan(shape, parts, arrival)
        if plan is not None and isinstance(made, Plan):
            self._forget(shape, plan, made.matched)
        return made

    def outcome(self, plan: Plan, arrival: Arrival, parts: Parts) -> Outcome:
        """What *arrival* causes, whose plan this is. Raises OverBudgetError."""
        puts: tuple[Outgoing, ...] = ()
        if plan.fronts_and_tails:
            begun = [(fixed, psc if isinstance(psc, bytes) else psc_folder(psc, parts)) for fixed, psc in plan.forms]
            made_bodies = bodies_of(arrival.body, parts, begun)
            bodies = [made_bodies[n] for n in plan.form_of]
            cut = None
            if plan.response is not None:
                cut = plan.response.cut
                bodies.append(plan.response.put.body)
            mds = self._descriptors.of(plan.cuts, cut, arrival)
            make = Outgoing._make
            rows = zip(plan.fronts_and_tails, mds, bodies, strict=True)
            puts = tuple([make((*front, md, body, *tail)) for (front, tail), md, body in rows])
            if (meter := self._broker.meter) is not None:
                meter.changed(len(puts))
                meter.made(sum(map(len, bodies)))
        effects: tuple[op.Effect, ...] = ()
        if plan.retained is not None:
            retained = op.RetainedPublication(plan.topic, plan.retained.publication(arrival))
            self._space.retain(retained)
            effects = (op.RetainedStored(retained),)
        return Outcome(puts, effects, completion=Completion.OK, topics=(plan.topic,))

    def _is_good(self, plan: Plan, arrival: Arrival) -> bool:
        """Whether its topic matches the same subscriptions as before; nothing has expired since then."""
        changes = self._space.subscription_changes
        if plan.as_of == changes:
            return True
        if self._space.match(plan.topic, arrival.now) != plan.matched:
            return False
        plan.as_of = changes
        return True

    def _forget(self, shape: _Shape, old: Plan, matched: Sequence[Subscription]) -> None:
        """Give up *old*, and the templates of subscriptions that its topic matches no more: they ended."""
        still = {subscription.sub_id for subscription in matched}
        ended = [subscription.sub_id for subscription in old.matched if subscription.sub_id not in still]
        given_up = sum(shape.templates.pop(sub_id, None) is not None for sub_id in ended)
        self._room = min(self._most, self._room + given_up + _cost(old))

    def learn(self, arrival: Arrival, parts: Parts, outcome: Outcome) -> None:
        """Learn from what the broker made of a publication; nothing where it was in error."""
        if outcome.completion is not Completion.OK or self._is_off or len(outcome.copies) > _MOST_SUBSCRIBERS:
            return
        shape = self._shapes.get(parts.key)
        if shape is None:
            if parts.key in self._shapes:
                return
            shape = self._shape(arrival, parts, outcome)
            self._take(1 + sum(map(len, parts.key[-1])) // 400)
            self._shapes[parts.key] = shape
        if shape is None:
            return
        (operation,) = outcome.operations
        assert isinstance(operation, op.PublishToTopic)
        for n, (copies, put) in enumerate(zip(outcome.copies, outcome.puts, strict=False), 1):
            subscription = copies[0].subscription
            if shape.template_of(subscription) is _UNKNOWN:
                self._take(1)
                template = self._template(arrival, parts, copies, put, n)
                shape.templates[subscription.sub_id] = (subscription, template)
        for subscription in self._space.match(operation.topic_string, arrival.now):
            if shape.template_of(subscription) is _UNKNOWN:
                self._take(1)
                shape.templates[subscription.sub_id] = (subscription, None)

    def _take(self, cost: int) -> None:
        """Use room; where there is no more, what is in use is learned again."""
        if self._room < cost:
            self._shapes.clear()
            self._room = self._most
        self._room -= min(cost, self._room)

    def _shape(self, arrival: Arrival, parts: Parts, outcome: Outcome) -> _Shape | None:
        """The shape of a publication that was processed; None where templates would not be enough."""
        if outcome.lost or len(outcome.operations) != 1:
            return None
        (operation,) = outcome.operations
        if not isinstance(operation, op.PublishToTopic) or operation.not_to is not None:
            return None
        publication, message = operation.publication, operation.publication.message
        if not has_no_other_header(message, parts):
            return None
        topic, full = parts.topic.decode(), operation.topic_string
        prefix = "" if full == topic else full.removesuffix(f"/{topic}")
        if full_topic(prefix, topic, check_publication_topic) != full:
            return None
        retained = None
        if self._effects and outcome.effects:
            if not all(isinstance(effect, op.RetainedStored) for effect in outcome.effects) or publication.expires_at:
                return None
            as_it_came = (message.mqmd.encode(), encode(message)) == (arrival.md, arrival.body)
            persistent = message.mqmd.persistence == MQPER_PERSISTENT if as_it_came else None
            retained = _RetainedForm(publication.local, publication.stream, publication.sub_point, persistent)
        user = name_of(message.mqmd.user_identifier) if arrival.user is None else arrival.user
        response = None
        if len(outcome.puts) > len(outcome.copies):
            response = self._response(arrival, message.mqmd, outcome)
            if response is None:
                return None
        return _Shape(user, prefix, retained, response)

    def _response(self, arrival: Arrival, mqmd: Mqmd, outcome: Outcome) -> _Response | None:
        """The response among the puts; None where it is not as expected."""
        count = len(outcome.copies)
        put = outcome.puts[-1]
        if len(outcome.puts) != count + 1 or put.kind is not PutKind.RESPONSE or put.qmgr != self._qmgr:
            return None
        assert arrival.md is not None
        correl_id = mqmd.correl_id if mqmd.report & MQRO_PASS_CORREL_ID else None
        cut = ResponseCut.of(put.md, not mqmd.report & MQRO_PASS_MSG_ID, correl_id)
        if cut.md(arrival.md[ID], self._descriptors.ident(arrival, count + 1), stamp_of(arrival.now)) != put.md:
            return None
        return _Response(_without_message(put, put.body, arrival.user), cut)

    def _template(
        self, arrival: Arrival, parts: Parts, copies: Sequence[op.Delivery], put: Outgoing, n: int
    ) -> _Template | None:
        """The template that put *n* shows; None where it does not make that put again."""
        subscription = copies[0].subscription
        if len(copies) > 1 or not is_fit(subscription) or put.qmgr != self._qmgr:
            return None
        md = put.md
        if md[ID] != self._descriptors.ident(arrival, n) or md[STAMP] != stamp_of(arrival.now):
            return None
        shown = delivered_topic(subscription, copies[0].topic_string)
        form = None if is_changed(shown) else form_of(put.body, arrival.body, parts, shown)
        if form is None:
            return None
        begun = (form.fixed, psc_folder(on_topic(shown, form.psc), parts))
        if bodies_of(arrival.body, parts, [begun]) != [put.body]:
            return None
        return _Template(subscription, _without_message(put, b"", None), cut_of(md), form)

    def _plan(self, shape: _Shape, parts: Parts, arrival: Arrival) -> Plan | bool:
        """The plan for the topic of *parts*, which is kept; False for none; True where ``learn`` may help."""
        try:
            topic = parts.topic.decode()
            full = full_topic(shape.prefix, topic, check_publication_topic)
        except (UnicodeDecodeError, CommandError):
            return False
        if _WILD.search(topic):
            return False
        if not self._carried and not self._broker.objects.topics.resolve(full).pub:
            return False
        matched = self._space.match(full, arrival.now)
        templates: list[_Template] = []
        if len(matched) > _MOST_SUBSCRIBERS:
            return False
        for subscription in matched:
            if self._carried and subscription.is_proxy:
                continue
            template = shape.template_of(subscription)
            if not isinstance(template, _Template):
                return template is _UNKNOWN
            templates.append(template)
        forms: dict[tuple[bytes, Pieces], int] = {}
        numbers: list[int] = []
        for template in templates:
            shown = delivered_topic(template.subscription, full)
            if is_changed(shown):
                return False
            fixed, psc = template.form
            numbers.append(forms.setdefault((fixed, on_topic(shown, psc)), len(forms)))
        begun = tuple((fixed, psc_folder(psc, parts) if len(psc) == 1 else psc) for fixed, psc in forms)
        puts = [template.put._replace(topic=full) for template in templates]
        if shape.response is not None:
            puts.append(shape.response.put)
        plan = Plan(
            topic=full,
            matched=matched,
            user=shape.user,
            retained=shape.retained,
            fronts_and_tails=tuple([(put[: _MESSAGE.start], put[_MESSAGE.stop :]) for put in puts]),
            cuts=tuple([template.cut for template in templates]),
            response=shape.response,
            forms=begun,
            form_of=tuple(numbers),
            as_of=self._space.subscription_changes,
        )
        self._take(_cost(plan))
        shape.plans[parts.topic] = plan
        return plan


def _without_message(put: Outgoing, body: bytes, user: str | None) -> Outgoing:
    """*put* without what each message has of its own.

    user: who puts it, where that is not the one in its descriptor.
    """
    return put._replace(md=b"", body=body, expires_at=None, accepted=accepted_of(put.md, put.body, user))


def has_no_other_header(message: Message, parts: Parts) -> bool:
    """Whether the MQRFH2 of *parts* is all the header that *message* has, and data follow whatever they are."""
    if len(message.headers) != 1 or message.body_format in FORMATS:
        return False
    (header,) = message.headers
    return isinstance(header, Rfh2) and header.length == parts.length and decoder_of(header.format) is None


def _cost(plan: Plan) -> int:
    return 2 + len(plan.matched) + len(plan.topic) // 100


def is_fit(subscription: Subscription) -> bool:
    """Whether a subscription gets each publication that it matches, in an MQRFH2."""
    return (
        subscription.format is PublicationFormat.RFH2
        and subscription.selector is None
        and subscription.sub_level == 1
        and not subscription.grouped
        and not subscription.options.pub_on_req_only
        # The definition of a dynamic queue can change while the broker stays.
        and subscription.options.persistence is not DeliveryPersistence.AS_QUEUE
        and subscription.pub_priority != MQPRI_PRIORITY_AS_Q_DEF
    )
