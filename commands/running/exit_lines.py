"""The line that a publish exit in a process of its own reads for each call (docs/publish-exit.md)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from commands.broker.exit_values import ExitParms, PublicationContext, SubscriptionContext


class ExitCall(BaseModel):
    """One call: the parameters of MQ_PUBLISH_EXIT. The last two are None for initialization and termination."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True)

    parms: ExitParms
    publication: PublicationContext | None = None
    subscription: SubscriptionContext | None = None

    def line(self) -> bytes:
        """As JSON, with the end of the line."""
        return self.model_dump_json().encode() + b"\n"
