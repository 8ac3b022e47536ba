"""Which Kafka topic and key a topic string has, and which topic string a native record has. Pure."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from commands.config.settings import ConfigError, KafkaConfig, KafkaRoute
from rfh2.errors import CommandError
from streams.patterns import Pattern, parse_pattern
from streams.subscriptions import WildcardScheme
from streams.topic_strings import SEPARATOR

_LEGAL: Final = re.compile(r"(?!\.\.?$)[a-zA-Z0-9._-]{1,240}")
_PART: Final = re.compile(r"\{([^{}]*)\}")
_LEVEL: Final = re.compile("[1-9][0-9]?")


class Routes:
    """The topics of Kafka that the bridge uses. Raises ConfigError where the file gives none that can be.

    publications: without what is retained. retained: what is retained, by topic string. state: of the bridges.
    """

    def __init__(self, config: KafkaConfig) -> None:
        self._config = config
        self.publications = tuple(dict.fromkeys((config.topic, *(route.topic for route in config.routes))))
        self.retained, self.state = f"{config.topic}.retained", f"{config.topic}.state"
        for name in self.publications:
            if _LEGAL.fullmatch(name) is None or name in (self.retained, self.state):
                raise ConfigError("[topics.kafka]", f"{name} cannot be the Kafka topic of publications")
        self._patterns = [(self._pattern(route), route) for route in config.routes]
        self._native = {route.topic: route.native for route in reversed(config.routes)}

    def place_of(self, topic_string: str) -> tuple[str, bytes]:
        """The topic and the key of a publication."""
        for pattern, route in self._patterns:
            if pattern.matches(topic_string):
                return route.topic, encoded(_PART.sub(partial(_value, topic_string), route.key))
        return self._config.topic, encoded(topic_string)

    def topic_string_of(self, topic: str, key: bytes | None) -> str | None:
        """The topic string of a record of *topic* that does not say it; None where it has none."""
        template = self._native.get(topic, "{key}")
        if "{key}" not in template:
            return template
        try:
            return None if key is None else template.replace("{key}", key.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            return None

    @staticmethod
    def _pattern(route: KafkaRoute) -> Pattern:
        wrong = [part for part in _PART.findall(route.key) if part != "topic" and _LEVEL.fullmatch(part) is None]
        wrong += [part for part in _PART.findall(route.native) if part != "key"]
        if wrong:
            why = f"{{{wrong[0]}}} is no part of a topic string; key has {{topic}} or {{1}}, native has {{key}}"
            raise ConfigError("[[topics.kafka.routes]]", why)
        try:
            return parse_pattern(route.pattern, WildcardScheme.TOPIC)
        except CommandError as error:
            raise ConfigError("[[topics.kafka.routes]] pattern", f"{route.pattern}: {error}") from error


def encoded(text: str) -> bytes:
    """*text* as Kafka has it: UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def _value(topic_string: str, part: re.Match[str]) -> str:
    if part[1] == "topic":
        return topic_string
    levels = topic_string.split(SEPARATOR)
    return levels[int(part[1]) - 1] if int(part[1]) <= len(levels) else ""
