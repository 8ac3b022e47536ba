"""Administration by IBM MQ's REST interface, version 2: ``POST .../admin/action/qmgr/QMGR/mqsc``.

    DISPLAY         {"type": "runCommandJSON", "command": "display", "qualifier": "sub", "name": "*", ...}
    other commands  {"type": "runCommand", "parameters": {"command": "DEFINE TOPIC(...) ..."}}

HTTP status 200 does not mean that the command succeeded: ``overallCompletionCode`` says that, and each object has a
code of its own. A command that finds nothing ends with reason 2085 or the like, and is no error. The header against
cross-site requests has to be there; its value does not matter.

TLS certificates are always verified. A user and a password are sent by TLS alone, except to this machine itself. No
message has a password in it.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from commands.broker.attribute_kinds import SWITCHES, Shown
from commands.config.settings import AdminConfig, ConfigError
from commands.mqsc.script import Statement
from migrate.live.administrator import AdministrationError, Outcome, Row, judged, message_number, whole
from rfh2.errors import system_words

DEFAULT_PORT: Final = 9443
_PATH: Final = "/ibmmq/rest/v2/admin/action/qmgr/{}/mqsc"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_STATUSES: Final = {
    401: "the user or the password is wrong, or none was sent",
    403: "the user has no role for administration (MQWebAdmin, or MQWebUser and its authorities)",
    404: "there is no such queue manager at the server, or its REST interface is not enabled",
}


class RestAdministrator:
    """One queue manager behind a server of mqweb. url: ``https://host[:9443]``, which messages call *called*.

    Raises ConfigError.
    """

    def __init__(self, url: str, qmgr: str, config: AdminConfig, called: str = "--admin") -> None:
        parts = _parts(url, called)
        self._qmgr, self._config = qmgr, config
        self._host, self._port, self._is_tls = parts
        self._headers = _headers(config, self._host, called, is_tls=self._is_tls)
        self._path = _PATH.format(quote(qmgr, safe=""))
        self._tls = _tls(config) if self._is_tls else None
        self._connection: http.client.HTTPConnection | None = None

    @property
    def qmgr(self) -> str:
        return self._qmgr

    @property
    def where(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"queue manager {self._qmgr} at http{'s' if self._is_tls else ''}://{host}:{self._port}"

    def display(self, target: str, name: str | None = None, **scope: str) -> list[Row]:
        body: dict[str, Any] = {"type": "runCommandJSON", "command": "display", "qualifier": target.lower()}
        if name is not None:
            body["name"] = name
        if scope:
            body["parameters"] = {word.lower(): text for word, text in scope.items()}
        body["responseParameters"] = ["all"]
        try:
            found = self._post(body)
        except (OSError, http.client.HTTPException):
            # The server closes a connection that was idle: to look a second time changes nothing.
            found = self._posted(body)
        parts = [each["parameters"] for each in _responses(found) if each.get("parameters")]
        if not all(isinstance(part, dict) for part in parts):
            raise AdministrationError(f"{self.where}: DISPLAY {target}: its parameters are not an object")
        rows: list[Row] = [_row(part) for part in parts]
        return whole(rows, _failures(found), f"{self.where}: DISPLAY {target}")

    def run(self, statement: Statement) -> Outcome:
        return _outcome(self._posted({"type": "runCommand", "parameters": {"command": statement.text}}))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _posted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._post(body)
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate is not trusted: {error.verify_message}; name the issuer's with ca_file in --config"
            raise AdministrationError(f"{self.where}: {why}") from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise AdministrationError(f"{self.where} was not reached: {why}") from error

    def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            connection = self._connected()
            connection.request("POST", self._path, json.dumps(body).encode(), self._headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        try:
            found = json.loads(data) if data else {}
        except ValueError as error:
            raise AdministrationError(
                f"{self.where}: the answer is not JSON (HTTP status {response.status})"
            ) from error
        if not isinstance(found, dict):
            raise AdministrationError(f"{self.where}: the answer is not a JSON object (HTTP status {response.status})")
        if response.status != http.client.OK or "overallCompletionCode" not in found:
            raise AdministrationError(f"{self.where}: HTTP status {response.status}: {_error(response.status, found)}")
        listed = found.get("commandResponse", [] if found["overallCompletionCode"] else None)
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise AdministrationError(
                f"{self.where}: the answer has no list commandResponse (HTTP status {response.status})"
            )
        return found

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            timeout = self._config.timeout_s
            if self._tls is None:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
            else:
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=timeout, context=self._tls
                )
        return self._connection


def _parts(url: str, called: str) -> tuple[str, int, bool]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(called, f"it is not a URL: {error}") from None
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ConfigError(called, f"https://host:{DEFAULT_PORT} was expected")
    if parts.password is not None or parts.username is not None:
        raise ConfigError(called, "user and password have no place in a URL; see [admin] of --config")
    if parts.path.strip("/") or parts.query:
        raise ConfigError(called, "only scheme, host and port: -m names the queue manager")
    return parts.hostname, port or DEFAULT_PORT, parts.scheme == "https"


def _headers(config: AdminConfig, host: str, called: str, *, is_tls: bool) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json;charset=utf-8",
        "Accept": "application/json",
        "ibm-mq-rest-csrf-token": "qpubsub",
    }
    password = config.password()
    if config.user is None or password is None:
        return headers
    if not is_tls and host not in _LOOPBACK:
        raise ConfigError(called, "a password is sent only by https://")
    token = base64.b64encode(f"{config.user}:{password}".encode()).decode("ascii")
    return headers | {"Authorization": f"Basic {token}"}


def _tls(config: AdminConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if config.ca_file is None else str(config.ca_file))
        if config.cert_file is not None:
            context.load_cert_chain(config.cert_file, config.key_file)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(file) for file in (config.ca_file, config.cert_file, config.key_file) if file is not None)
        raise ConfigError("[admin]", f"{files}: {system_words(error)}") from error
    return context


def _responses(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    responses: list[Mapping[str, Any]] = found.get("commandResponse") or []
    return responses


def _failures(found: Mapping[str, Any]) -> list[Outcome]:
    """What failed, each part of the answer by itself; the whole, where it has failed and no part says why."""
    failures = [_failure(each, each.get("reasonCode")) for each in _responses(found) if each.get("completionCode")]
    if not failures and found.get("overallCompletionCode"):
        return [_failure({}, found.get("overallReasonCode"))]
    return failures


def _failure(response: Mapping[str, Any], reason: object) -> Outcome:
    text = _text(response)
    return Outcome(False, message_number(text) or str(reason or 0), text or f"reason {reason or 0}")


def _outcome(found: Mapping[str, Any]) -> Outcome:
    """What became of a command that changes something."""
    return judged(_failures(found), " ".join(filter(None, map(_text, _responses(found)))))


def _text(response: Mapping[str, Any]) -> str:
    said = (line.strip() for key in ("message", "text") for line in _lines(response.get(key)))
    return " ".join(line for line in said if line)


def _lines(said: object) -> list[str]:
    if isinstance(said, str):
        return [said]
    return [str(line) for line in said] if isinstance(said, list) else []


def _row(parameters: Mapping[str, Any]) -> dict[str, Shown]:
    row: dict[str, Shown] = {}
    for key, value in parameters.items():
        word = key.upper()
        if word in SWITCHES and isinstance(value, str) and value.upper() in ("YES", "NO"):
            row[word] = word if value.upper() == "YES" else f"NO{word}"
        elif isinstance(value, bool) or value is None:
            row[word] = "" if value is None else ("YES" if value else "NO")
        elif isinstance(value, list):
            row[word] = tuple(str(each).rstrip(" ") for each in value)
        else:
            row[word] = value if isinstance(value, int) else str(value)
    return row


def _error(status: int, found: Mapping[str, Any]) -> str:
    errors = found.get("error")
    said = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    texts = [str(each.get("message") or "") for each in said] + [str(each.get("action") or "") for each in said]
    shown = " ".join(text for text in texts if text)
    return shown or _STATUSES.get(status, "no answer of the REST interface")
