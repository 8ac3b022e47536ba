"""The settings of librdkafka that an address and the table [topics] give: where the brokers are, TLS, SASL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from commands.config.settings import ConfigError, TopicsConfig
from commands.config.urls import Address


def client_settings(
    address: Address, config: TopicsConfig, name: str, own: dict[str, Any], reserved: Collection[str] = ()
) -> dict[str, Any]:
    """Those of a client named *name*, with its *own*.

    reserved: what [topics.kafka.client] may not have, beside these. Raises ConfigError where it has.
    """
    user, mechanism = address.user or config.user, config.kafka.sasl_mechanism
    files = {"ca": config.ca_file, "certificate": config.cert_file, "key": config.key_file}
    settings = {
        "bootstrap.servers": ",".join((*address.hosts, *config.servers)),
        "client.id": name,
        "security.protocol": ("SASL_" if mechanism else "") + ("SSL" if address.secure else "PLAINTEXT"),
        "log_level": 2,
        **{f"ssl.{file}.location": str(path) for file, path in files.items() if path is not None},
        **own,
    }
    if mechanism:
        password = config.password() or ""
        settings |= {"sasl.mechanism": mechanism, "sasl.username": user or "", "sasl.password": password}
    for given in config.kafka.client:
        if given in settings or given in reserved:
            raise ConfigError("[topics.kafka.client]", f"{given} is qpubsub's own to set")
    return {**settings, **config.kafka.client}
