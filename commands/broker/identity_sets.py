"""Identity sets: which applications share a subscription, or hold it alone (guide 6.7.4, SubIdentity, Join options).

set before            JoinShared by B                    JoinExcl by B
empty                 {B}                                {B} locked
{B}                   3157                               {B} locked
{B} locked            {B}                                3157
{A}                   {A, B}                             3155
{A} locked            3156                               3156
{A, B}                3157                               3155

3157 is a warning: the set stays as it is, and the rest of the command is done (IBM MQ, reason code 3157).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from commands.headers.response import Warned
from commands.model import RegisterSubscriber, RegOpt
from rfh2.constants import (
    MQRCCF_ALREADY_JOINED,
    MQRCCF_SUB_IDENTITY_ERROR,
    MQRCCF_SUBSCRIPTION_IN_USE,
    MQRCCF_SUBSCRIPTION_LOCKED,
)
from rfh2.errors import CommandError
from streams.subscriptions import Subscription


class _Fields(TypedDict):
    identities: tuple[str, ...]
    exclusive: bool


@dataclass(frozen=True, slots=True)
class Members:
    """An identity set: its members, and whether its only member holds it exclusively."""

    identities: tuple[str, ...] = ()
    exclusive: bool = False

    def fields(self) -> _Fields:
        """As the fields of a Subscription."""
        return {"identities": self.identities, "exclusive": self.exclusive}


def on_creation(command: RegisterSubscriber) -> Members:
    """The identity set of a new subscription. Raises CommandError 3154 for an identity that does not join."""
    return _joined(Members(), command)


def on_registration(before: Subscription, command: RegisterSubscriber) -> Members:
    """The identity set of an existing subscription after *command*. Raises CommandError 3154, 3155, 3156."""
    return _joined(Members(before.identities, before.exclusive), command)


def already_joined(before: Subscription, command: RegisterSubscriber) -> Warned | None:
    """The warning 3157 if the identity of *command* has already joined *before* in the same way; None otherwise."""
    identity = command.sub_identity
    if identity is None or identity not in before.identities:
        return None
    joins = RegOpt.JOIN_EXCL if before.exclusive else RegOpt.JOIN_SHARED
    return Warned(MQRCCF_ALREADY_JOINED, (("SubIdentity", identity),)) if command.has(joins) else None


def check_alteration(before: Subscription, after: Subscription, command: RegisterSubscriber, members: Members) -> None:
    """Check that no member changes a subscription that other members use.

    Raises CommandError 3155 where *command* gives an identity that would not be the only member, 3156 where it gives
    none and another holds the subscription exclusively. To renew Expiry is not a change.
    """
    if before == after:
        return
    identity = command.sub_identity
    if identity is not None and members.identities != (identity,):
        raise _error(MQRCCF_SUBSCRIPTION_IN_USE, identity, "other identities use the subscription")
    if identity is None and before.exclusive:
        raise _error(MQRCCF_SUBSCRIPTION_LOCKED, before.identities[0], "another identity holds the subscription")


def _joined(before: Members, command: RegisterSubscriber) -> Members:
    identity = command.sub_identity
    if identity is None:
        return before
    member = identity in before.identities
    alone = before.identities == (identity,)
    if command.has(RegOpt.JOIN_SHARED):
        if before.exclusive and not alone:
            raise _error(MQRCCF_SUBSCRIPTION_LOCKED, identity, "another identity holds the subscription")
        return Members(before.identities if member else (*before.identities, identity))
    if command.has(RegOpt.JOIN_EXCL):
        if before.exclusive and not alone:
            raise _error(MQRCCF_SUBSCRIPTION_LOCKED, identity, "another identity holds the subscription")
        if before.identities and not alone:
            raise _error(MQRCCF_SUBSCRIPTION_IN_USE, identity, "other identities use the subscription")
        return Members((identity,), exclusive=True)
    if not member:
        why = "the identity is not in the set, and the command has no join option"
        raise _error(MQRCCF_SUB_IDENTITY_ERROR, identity, why)
    return before


def _error(reason: int, identity: str, why: str) -> CommandError:
    return CommandError(reason, why=why, tags=(("SubIdentity", identity),))
