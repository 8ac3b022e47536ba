"""Subscribes at the tree, for the processor's thread and the keeper, and notes each answer in the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from commands.links.engine.adapter import Adapter, FilterAnswer, TreeClient
from commands.links.engine.filter_registry import FilterRegistry

F = TypeVar("F")


class Subscribing(Generic[F]):
    """Subscribes to filters at the tree."""

    def __init__(self, adapter: Adapter[F, Any], registry: FilterRegistry[F]) -> None:
        self._adapter, self._registry = adapter, registry

    def subscribe(self, client: TreeClient[F], filters: Sequence[F], urgent: bool) -> list[F]:
        """Subscribe; returns those that the tree has now. Raises StoreError where the tree does not answer."""
        accepted: list[F] = []
        log = self._adapter.log
        for said in client.subscribe(filters, urgent) if filters else ():
            match said.answer:
                case FilterAnswer.ACCEPTED:
                    accepted.append(said.filter)
                case FilterAnswer.REJECTED:
                    self._registry.reject(said.filter)
                    log.error("%s: native publications will not reach its subscribers", said.why)
                case FilterAnswer.BANNED:
                    self._registry.ban(said.filter)
                    text = "%s: it is not asked for it again until the bridge is started anew, and native publications"
                    log.error(text + " will not reach its subscribers", said.why)
                case FilterAnswer.LATER:
                    if said.why:
                        log.warning("%s; native publications will come once it has the subscription", said.why)
        return accepted
