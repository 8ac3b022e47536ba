"""Passes each message for a subscriber through the publish exit, and does what the exit answers (guide 4.6.2).

    answer                         then
    OK                             the message is put, with the destination, descriptor, data and properties changed
    SUPPRESS_FUNCTION, Report
      with MQRO_DISCARD_MSG        it is put nowhere
      without                      it becomes a dead letter with Feedback as its reason
    FAILED; no answer, or one      the command fails with MQRC_PUBLISH_EXIT_ERROR, and nothing of it is done
      that is not valid

Report is that of the message as the exit leaves it. A forwarded publication has none (guide 6.7.9), so an exit that
wants it discarded sets MQRO_DISCARD_MSG in ``md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from commands.broker import exit_values
from commands.broker.objects import is_object_name
from commands.broker.puts import Copies, DeadLetters, Exited, ExitFate, Outgoing, is_wanted
from commands.broker.subscription_attributes import PSPROP, subscription_options
from commands.headers.publication import USER
from rfh2.ccsid import name_value_codec
from rfh2.constants import MQRC_PUBLISH_EXIT_ERROR
from rfh2.elements import as_json, folder_text
from rfh2.errors import CommandError, DecodeError, EncodeError
from rfh2.folders import Folder
from rfh2.message import Message, decode, encode
from rfh2.mqi_constants import MQFB_STOPPED_BY_PUBSUB_EXIT
from rfh2.mqmd import Mqmd
from rfh2.pcf_admin_names import MQSUBTYPE_ADMIN, MQSUBTYPE_API
from rfh2.rfh2 import Rfh2
from streams import operations as op
from streams.patterns import written_topic
from streams.subscriptions import Subscription, WildcardScheme
from streams.topic_space import TopicSpace


class PublishExitFailedError(CommandError):
    """The command whose message the exit did not answer for: MQRC_PUBLISH_EXIT_ERROR."""

    def __init__(self, topic: str | None, why: str) -> None:
        super().__init__(MQRC_PUBLISH_EXIT_ERROR, topic, why)
        self.args = (topic, why)  # what it is made from again when it is pickled


@dataclass(frozen=True, slots=True)
class ExitCalls:
    """The calls of one command. letters: of the queue manager. now: UTC."""

    exit: exit_values.PublishExit
    letters: DeadLetters
    now: datetime

    def passed(self, put: Outgoing, copies: Copies) -> tuple[Outgoing | None, Exited | None]:
        """What is put instead of *put*, None for nothing; and what happened, where *put* did not go to its queue.

        copies: the deliveries that it stands for. Raises PublishExitFailedError.
        """
        first = copies[0]
        message = exit_values.ExitMessage(md=put.md, body=put.body, properties=_properties(put.message))
        publication = exit_values.PublicationContext(pub_topic_string=first.topic_string)
        try:
            answer = self.exit.publication(message, publication, subscription_context(first.subscription, put))
            if answer.exit_response is exit_values.ExitResponse.FAILED:
                raise exit_values.PublishExitError(answer.why or "it answered MQXCC_FAILED")
            changed = _changed(put, answer, self.letters.qmgr)
        except exit_values.PublishExitError as error:
            raise PublishExitFailedError(first.topic_string, str(error)) from error
        if answer.exit_response is exit_values.ExitResponse.SUPPRESS_FUNCTION:
            return self._suppressed(changed, answer.feedback or MQFB_STOPPED_BY_PUBSUB_EXIT, copies)
        if (changed.qmgr, changed.queue) == (put.qmgr, put.queue):
            return changed, None
        # The subscription goes with its own queue, and not with another.
        diverted = changed._replace(temporary=())
        return diverted, Exited(copies, ExitFate.DIVERTED, 0, diverted.qmgr, diverted.queue)

    def _suppressed(self, put: Outgoing, feedback: int, copies: Copies) -> tuple[Outgoing | None, Exited]:
        mqmd = put.mqmd
        if not is_wanted(mqmd):
            return None, Exited(copies, ExitFate.DISCARDED, feedback, put.qmgr, put.queue)
        letter = self.letters.put(
            mqmd, put.body, feedback, put.queue, self.now, qmgr=put.qmgr, expires_at=put.expires_at
        )
        letter = letter._replace(topic=put.topic, sub_name=put.sub_name, sub_ids=put.sub_ids)
        return letter, Exited(copies, ExitFate.DEAD_LETTER, feedback, letter.qmgr, letter.queue)


def subscription_context(subscription: Subscription, put: Outgoing) -> exit_values.SubscriptionContext:
    """MQSBC for *put*, a message for *subscription*."""
    return exit_values.SubscriptionContext(
        destination_qmgr_name=put.qmgr,
        destination_q_name=put.queue,
        sub_type=MQSUBTYPE_ADMIN if subscription.admin else MQSUBTYPE_API,
        sub_options=subscription_options(subscription),
        object_name=subscription.topic_object,
        object_string=subscription.topic_string,
        sub_topic_string=written_topic(subscription),
        sub_name=subscription.name or "",
        sub_id=subscription.sub_id,
        selection_string=subscription.selector or "",
        sub_level=subscription.sub_level,
        ps_properties=PSPROP[subscription.format],
    )


def _changed(put: Outgoing, answer: exit_values.ExitAnswer, here: str) -> Outgoing:
    """*put* as the exit leaves it. here: this queue manager. Raises PublishExitError where that is no message."""
    qmgr, queue = answer.destination_qmgr_name, answer.destination_q_name
    qmgr = put.qmgr if qmgr is None else qmgr or here
    queue = put.queue if queue is None else queue
    for name in (qmgr, queue):
        if name not in (put.qmgr, put.queue) and not is_object_name(name):
            raise exit_values.PublishExitError(f"{name!r} cannot be the name of a queue or a queue manager")
    if answer.md is None and answer.body is None and not answer.properties:
        return put if (qmgr, queue) == (put.qmgr, put.queue) else put._replace(qmgr=qmgr, queue=queue)
    try:
        mqmd = put.mqmd if answer.md is None else Mqmd.decode(answer.md)
        body = put.body if answer.body is None else answer.body
        message = _read(mqmd, body)
        if answer.properties:
            message = _with_properties(message, answer.properties)
            body = encode(message)
        md = message.mqmd.encode()
    except (DecodeError, EncodeError) as error:
        raise exit_values.PublishExitError(f"the message that it answered is not valid: {error}") from error
    return put._replace(qmgr=qmgr, queue=queue, md=md, body=body)


def _read(mqmd: Mqmd, body: bytes) -> Message:
    """The message; one whose data is not what Format says goes as it is, as with MQPUT."""
    try:
        return decode(body, mqmd)
    except DecodeError:
        return Message(mqmd, (), body)


def _properties(message: Message) -> dict[str, exit_values.PropertyValue]:
    header = message.rfh2
    values = {} if header is None else _values(header.folder(USER))
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}


def _values(folder: Folder | None) -> dict[str, Any]:
    """What a folder says, as JSON; nothing where it cannot be read, for a program may put anything there."""
    try:
        return {} if folder is None else {name: as_json(value) for name, value in folder.values().items()}
    except DecodeError:
        return {}


def _with_properties(message: Message, changes: dict[str, exit_values.PropertyValue | None]) -> Message:
    """The message with properties set, or deleted where the value is None.

    Raises PublishExitError where it has no MQRFH2 or a name is none; DecodeError, EncodeError for a value that XML
    cannot hold.
    """
    header = message.rfh2
    codec = None if header is None else name_value_codec(header.name_value_ccsid, header.order)
    if header is None or codec is None:
        raise exit_values.PublishExitError("it set properties of a message that has no MQRFH2")
    before = header.folder(USER)
    merged = {**_values(before), **changes}
    values = {name: value for name, value in merged.items() if not (name in changes and value is None)}
    folder = Folder.of(folder_text(USER, values, before), codec)
    if folder.values().keys() != values.keys():
        raise exit_values.PublishExitError("a property has a name that no property can have")
    changed = header.with_folders(_folders(header, before, folder))
    return replace(message, headers=tuple(changed if each is header else each for each in message.headers))


def _folders(header: Rfh2, before: Folder | None, folder: Folder) -> tuple[Folder, ...]:
    """Those of *header*, with *folder* in the place of *before*, or behind them."""
    if before is None:
        return (*header.folders, folder)
    return tuple(folder if each is before else each for each in header.folders)


# Takes back what one command changed in the topic space, where the publish exit fails after that (guide 4.6.2.1).


class Undo:
    """The changes of one command in *space*.

    Each operation is announced before it is carried out, because its effects do not say what was retained before it.
    """

    def __init__(self, space: TopicSpace) -> None:
        self._space = space
        self._done: list[tuple[op.Effect, op.RetainedPublication | None]] = []
        self._retained: dict[str, op.RetainedPublication] = {}

    def before(self, operation: op.Operation, now: datetime) -> None:
        """*operation* is about to be carried out."""
        match operation:
            case op.PublishToTopic(topic_string, _, True):
                pattern, scheme = topic_string, WildcardScheme.TOPIC
            case op.ClearRetained(pattern, scheme):
                pass
            case _:
                self._retained = {}
                return
        found = self._space.retained(pattern, scheme, now, heed_blocks=False)
        self._retained = {each.topic_string: each for each in found}

    def after(self, effects: Sequence[op.Effect]) -> None:
        """It had these effects."""
        for effect in effects:
            topic = None
            if isinstance(effect, op.RetainedStored):
                topic = effect.retained.topic_string
            elif isinstance(effect, op.RetainedCleared):
                topic = effect.topic_string
            self._done.append((effect, None if topic is None else self._retained.get(topic)))

    def take_back(self, now: datetime) -> list[op.Effect]:
        """Restore the state before the first operation; returns the effects that count no more."""
        space, taken = self._space, []
        for effect, retained in reversed(self._done):
            taken.append(effect)
            match effect:
                case op.SubscriptionAdded(subscription):
                    space.apply(op.Unsubscribe(subscription), now)
                case op.SubscriptionAltered(before, _):
                    space.apply(op.AlterSubscription(before, send_retained=False), now)
                case op.SubscriptionRemoved(subscription):
                    space.apply(op.Subscribe(subscription, send_retained=False), now)
                case op.RetainedStored(stored) if retained is None:
                    space.apply(op.ClearRetained(stored.topic_string, stream=stored.publication.stream), now)
                case op.RetainedStored() | op.RetainedCleared():
                    assert retained is not None
                    space.retain(retained)
        self._done.clear()
        return taken
