"""IBM MQ's REST interface for one queue manager, in the process of the console: ``/ibmmq/rest/v1``, ``v2``, ``v3``.

    /login                                          POST, GET, DELETE
    /admin/action/qmgr/QMGR/mqsc                    POST: MQSC as text or JSON (``commands.mqsc.pcf.json_commands``)
    /admin/qmgr[/QMGR]                              GET
    /admin/qmgr/QMGR/queue[/NAME]                   GET, POST, PATCH, DELETE (``rest_objects``)
    /admin/qmgr/QMGR/subscription, /channel         GET
    /messaging/qmgr/QMGR/queue/NAME/message         POST, GET (browse), DELETE (``rest_objects``)
    /messaging/qmgr/QMGR/queue/NAME/messagelist     GET
    /messaging/qmgr/QMGR/topic/TOPIC/message        POST

What the console asks of a request holds here too (``access``): its Host, a password where a users file is given. In
place of the console's form token stands the header ``ibm-mq-rest-csrf-token`` with any value: no page of another site
can send it. With a users file, a command and a message are those of the user who is logged in, and authority records
count; without one, those of the user who runs the console. Without ``write``, nothing is changed, got or put.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from commands.console import rest_objects
from commands.console.access import HEADERS, ConsoleOptions, Doorkeeper
from commands.console.rest_objects import QMGR, QUEUE, Asked, Choice, Resource, UnsupportedMessageError
from commands.console.source import Source, State
from commands.mqsc.answers import Answer
from commands.mqsc.pcf import writing
from commands.mqsc.pcf.commands import about_command
from commands.mqsc.pcf.json_commands import JsonCommandError, answered, is_structured, read_command
from commands.mqsc.script import Command, Keyword, Statement, Value
from commands.qmgr.admin import StatementRunner
from commands.qmgr.mqi.refusals import MqiError
from commands.qmgr.store import QueueManagerStore
from commands.running.mqsc_scripts import runner_of
from commands.terminal.users import current_user
from rfh2.constants import MQRC_NOT_AUTHORIZED, MQRC_UNKNOWN_OBJECT_NAME, reason_name
from rfh2.errors import CommandError, QPubSubError, QueueError
from rfh2.mqi_constants import MQCC_FAILED

PREFIX: Final = "/ibmmq/rest/"
CSRF_HEADER: Final = "ibm-mq-rest-csrf-token"
COOKIE: Final = "LtpaToken2"

_log: Final = logging.getLogger("qpubsub.console")
_SHOWS: Final = ("DISPLAY", "PING")
_LONGEST_WAIT_MS: Final = 600_000
_LOOK_S: Final = 0.05
_TEXT: Final = ("text/plain", "text/html", "text/xml", "application/json", "application/xml")
_NOT_FOUND: Final = frozenset({MQRC_UNKNOWN_OBJECT_NAME, 2086, 2087, 2425})
Answerer = Callable[[Request, str], Awaitable[Response]]


class RestError(QPubSubError):
    """A request that is refused. number: of IBM's message, where it is known. reason: MQRC_*, or 0."""

    def __init__(self, status: int, number: str, what: str, action: str = "", reason: int = 0) -> None:
        super().__init__(status, number, what, action, reason)
        self.status, self.number, self.what, self.action, self.reason = status, number, what, action, reason

    def __str__(self) -> str:
        return self.what


def error_response(error: RestError) -> JSONResponse:
    """The error in IBM's form."""
    about = {
        "type": "pcf" if error.reason else "rest",
        "msgId": error.number,
        "message": f"{error.number}: {error.what}",
        "explanation": reason_name(error.reason) or error.what,
        "action": error.action or "Correct the request, and send it again.",
    }
    codes = {"completionCode": MQCC_FAILED, "reasonCode": error.reason} if error.reason else {}
    return JSONResponse({"error": [about | codes]}, error.status, headers=_ASKS if error.status == 401 else None)


_ASKS: Final = {"WWW-Authenticate": 'Basic realm="qpubsub"'}


class RestInterface:
    """The resources of one queue manager. is_right: compares a password, and waits after a wrong one."""

    def __init__(
        self,
        qmgr: str,
        options: ConsoleOptions,
        source: Source,
        door: Doorkeeper,
        is_right: Callable[[str, str], Awaitable[str]],
    ) -> None:
        self._qmgr, self._options, self._source, self._door, self._is_right = qmgr, options, source, door, is_right
        self._runner: tuple[QueueManagerStore, StatementRunner] | None = None  # of the slow thread

    def routes(self) -> list[Route]:
        """For the application of the console."""
        base = PREFIX + "{version}"
        admin, messaging = f"{base}/admin/qmgr/{{qmgr}}", f"{base}/messaging/qmgr/{{qmgr}}"
        rows: list[tuple[str, dict[str, Answerer]]] = [
            (f"{base}/login", {"POST": self._log_in, "GET": self._logged_in, "DELETE": self._log_out}),
            (f"{base}/admin/action/qmgr/{{qmgr}}/mqsc", {"POST": self._mqsc}),
            (f"{base}/admin/qmgr", {"GET": self._queue_managers}),
            (admin, {"GET": self._queue_managers}),
        ]
        for resource in rest_objects.RESOURCES:
            changes = resource is QUEUE
            show = partial(self._objects, resource)
            rows += [
                (f"{admin}/{resource.name}", {"GET": show, **({"POST": self._create_queue} if changes else {})}),
                (
                    f"{admin}/{resource.name}/{{name:path}}",
                    {"GET": show, **({"PATCH": self._alter_queue, "DELETE": self._delete_queue} if changes else {})},
                ),
            ]
        queue = f"{messaging}/queue/{{name:path}}"
        rows += [
            (f"{queue}/message", {"POST": self._put, "GET": self._get, "DELETE": self._get}),
            (f"{queue}/messagelist", {"GET": self._list}),
            (f"{messaging}/topic/{{topic:path}}/message", {"POST": self._publish}),
        ]
        return [Route(path, partial(self._answer, by), methods=list(by)) for path, by in rows]

    # Who asks, and what everything is answered with

    async def _answer(self, by_method: Mapping[str, Answerer], request: Request) -> Response:
        try:
            response = await self._answered(by_method["GET" if request.method == "HEAD" else request.method], request)
        except JsonCommandError as error:
            response = error_response(RestError(400, "MQWB0000E", str(error)))
        except UnsupportedMessageError as error:
            response = error_response(RestError(501, "MQWB0000E", str(error), "Get the message with another program."))
        except (MqiError, QueueError) as error:
            response = error_response(_refused(error.reason, str(error)))
        except RestError as error:
            response = error_response(error)
        except QPubSubError as error:
            response = error_response(RestError(503, "MQWB0003E", str(error)))
        response.headers.update(HEADERS)
        return response

    async def _answered(self, answerer: Answerer, request: Request) -> Response:
        if self._door.refuses_host(request.headers.get("host")):
            raise RestError(421, "MQWB0000E", "The REST interface is not served under this name.")
        if request.path_params["version"] not in ("v1", "v2", "v3"):
            raise RestError(404, "MQWB0000E", "The versions of this REST interface are v1, v2 and v3.")
        if answerer == self._log_in:
            return await self._log_in(request, "")
        if request.method not in ("GET", "HEAD") and CSRF_HEADER not in request.headers:
            what = f"The CSRF header '{CSRF_HEADER}' was omitted from the request."
            raise RestError(403, "MQWB0100E", what, "Send the request again with this header; any value will do.")
        user = await self._user(request)
        if request.path_params.get("qmgr", self._qmgr) != self._qmgr:
            raise _no_queue_manager(request.path_params["qmgr"])
        return await answerer(request, user)

    async def _user(self, request: Request) -> str:
        """Who asks; "" where nobody is asked for a password. Raises RestError 401."""
        if not self._door.asks:
            return ""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            try:
                name, _, password = base64.b64decode(token, validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                name = password = ""
            user = await self._is_right(name, password)
        else:
            session = self._door.session(request.cookies.get(COOKIE))
            user = "" if session is None else session.user
        if not user:
            what = f"The REST API request to '{request.url.path}' is not authenticated."
            raise RestError(401, "MQWB0104E", what, "Log in, or send a user and a password with the request.")
        return user

    async def _log_in(self, request: Request, _user: str) -> Response:
        body = await _body(request)
        given = body if isinstance(body, dict) else {}
        name, password = given.get("username"), given.get("password")
        if not isinstance(name, str) or not isinstance(password, str):
            raise JsonCommandError("body", "it has a username and a password")
        user = await self._is_right(name, password) if self._door.asks else current_user()
        if not user:
            raise RestError(401, "MQWB0104E", "The user or the password is wrong.", "Send the right ones.")
        response = Response(status_code=204)
        key, secure = self._door.new_session(user).key, self._options.tls is not None
        response.set_cookie(COOKIE, key, httponly=True, samesite="strict", secure=secure)
        return response

    async def _logged_in(self, _request: Request, user: str) -> Response:
        role = "MQWebAdmin" if self._options.write else "MQWebAdminRO"
        return JSONResponse({"user": [{"name": _as(user), "role": [role]}]})

    async def _log_out(self, request: Request, _user: str) -> Response:
        session = self._door.session(request.cookies.get(COOKIE))
        if session is not None:
            self._door.end(session)
        response = Response(status_code=204)
        response.delete_cookie(COOKIE)
        return response

    def _must_write(self) -> None:
        if not self._options.write:
            what = "Not authorized: this console changes nothing, gets nothing and puts nothing."
            raise RestError(403, "MQWB0103E", what, "Start it with --write, or with write = true in [console].")

    # Administration

    async def _run(self, user: str, *commands: Command | Statement) -> list[Answer]:
        """Carry commands out in one unit of work."""
        some = [each if isinstance(each, Statement) else _statement(each) for each in commands]
        if any(each.command is not None and each.command.verb not in _SHOWS for each in some):
            self._must_write()

        def run(state: State) -> list[Answer]:
            if self._runner is None or self._runner[0] is not state.store:
                self._runner = state.store, runner_of(state.store, state.groups_of)
            return [answer for _, answer in self._runner[1].run(some, as_user=user or None)]

        answers = await self._source.ask(run, slow=True)
        for each, answer in zip(some, answers, strict=True):
            if answer.ok and (each.command is None or each.command.verb not in _SHOWS):
                _log.info("REST%s: %s", f", user {user}" if user else "", each.text)
        return answers

    async def _mqsc(self, request: Request, user: str) -> Response:
        body = await _body(request)
        statement = read_command(body)
        (answer,) = await self._run(user, statement)
        return JSONResponse(answered(statement.command, answer, is_structured(body)))

    async def _queue_managers(self, request: Request, user: str) -> Response:
        asked = Asked.of(request.query_params, request.path_params.get("qmgr", ""))
        shown, status = await self._run(user, rest_objects.display("QMGR"), rest_objects.display("QMSTATUS"))
        runs = await self._source.ask(lambda state: state.store.has_processor(), slow=True)
        found = rest_objects.shown(QMGR, asked, _rows(shown, "QMGR"), _rows(status, "QMSTATUS"))
        return JSONResponse({"qmgr": [{"state": "running" if runs else "endedNormally"} | each for each in found]})

    async def _objects(self, resource: Resource, request: Request, user: str) -> Response:
        name = request.path_params.get("name", "")
        asked = Asked.of(request.query_params, name)
        commands = [rest_objects.display(resource.target, asked.name)]
        if asked.status and resource.status:
            commands.append(rest_objects.display(resource.status, asked.name))
        answers = await self._run(user, *commands)
        rows = _rows(answers[0], resource.target)
        if name and not name.endswith("*") and not rows:
            raise RestError(
                404, "MQWB0030E", f"Object '{name}' was not found.", reason=_reason(commands[0], answers[0])
            )
        status = [row for answer in answers[1:] for row in _rows(answer, resource.status)]
        return JSONResponse({resource.name: rest_objects.shown(resource, asked, rows, status)})

    async def _create_queue(self, request: Request, user: str) -> Response:
        body = await _body(request)
        name = body.get("name") if isinstance(body, dict) else None
        if not isinstance(name, str):
            raise JsonCommandError("name", "a text is expected")
        await self._changed(user, rest_objects.changed_queue("DEFINE", name, body, {}))
        return Response(status_code=201, headers={"Location": f"{request.url.path}/{name}"})

    async def _alter_queue(self, request: Request, user: str) -> Response:
        name, body = request.path_params["name"], await _body(request)
        kinds = await self._kinds(user, name)
        await self._changed(user, rest_objects.changed_queue("ALTER", name, body, kinds))
        return Response(status_code=204)

    async def _delete_queue(self, request: Request, user: str) -> Response:
        name = request.path_params["name"]
        target = {"alias": "QALIAS", "model": "QMODEL"}.get((await self._kinds(user, name)).get(name, ""), "QLOCAL")
        purges = "purge" in request.query_params
        keywords = (Keyword("PURGE", None),) if purges and target == "QLOCAL" else ()
        await self._changed(user, Command("DELETE", target, Value(name, quoted=True), keywords))
        return Response(status_code=204)

    async def _kinds(self, user: str, name: str) -> dict[str, str]:
        (answer,) = await self._run(user, rest_objects.display("QUEUE", name))
        return rest_objects.kinds_of(_rows(answer, "QUEUE"))

    async def _changed(self, user: str, command: Command) -> None:
        (answer,) = await self._run(user, command)
        if not answer.ok:
            raise _refused(_reason(command, answer), " ".join(answer.lines))

    # Messages

    async def _put(self, request: Request, user: str) -> Response:
        self._must_write()
        mqmd = rest_objects.descriptor(request.headers, _is_v3(request))
        body, name = await _text(request), request.path_params["name"]
        msg_id = await self._source.ask(
            lambda state: rest_objects.put(state.store, _as(user), state.groups_of, name, mqmd, body), slow=True
        )
        prefix = "ID:" if _is_v3(request) else ""
        return Response(status_code=201, headers={"ibm-mq-md-messageId": prefix + msg_id.hex()})

    async def _publish(self, request: Request, user: str) -> Response:
        self._must_write()
        mqmd = rest_objects.descriptor(request.headers, _is_v3(request))
        body, topic = await _text(request), request.path_params["topic"]
        retain = request.headers.get("ibm-mq-pmo-retain", "").lower() == "true"
        await self._source.ask(
            lambda state: rest_objects.publish(
                state.store, _as(user), state.groups_of, topic, mqmd, body, retain=retain
            ),
            slow=True,
        )
        return Response(status_code=201)

    async def _get(self, request: Request, user: str) -> Response:
        """Browse or get; wait as long as it is asked for, without holding up others."""
        takes, name = request.method == "DELETE", request.path_params["name"]
        if takes:
            self._must_write()
        choice = Choice.of(_known(request, "messageId", "correlationId", "wait"), _is_v3(request))
        wait_ms = _whole_number(request, "wait", 0, _LONGEST_WAIT_MS)
        until = time.monotonic() + wait_ms / 1000
        while True:
            got = await self._source.ask(
                lambda state: rest_objects.got(state.store, _as(user), state.groups_of, name, choice, takes=takes),
                slow=True,
            )
            if got is not None:
                headers = rest_objects.described(got, _is_v3(request))
                return Response(got.body, 200, headers, "text/plain;charset=utf-8")
            if time.monotonic() >= until or await request.is_disconnected():
                return Response(status_code=204)
            await asyncio.sleep(_LOOK_S)

    async def _list(self, request: Request, user: str) -> Response:
        choice = Choice.of(_known(request, "messageId", "correlationId", "limit"), _is_v3(request))
        limit, name = _whole_number(request, "limit", 10, rest_objects.MOST_LISTED), request.path_params["name"]
        found = await self._source.ask(
            lambda state: rest_objects.listed(state.store, _as(user), state.groups_of, name, choice, limit),
            slow=True,
        )
        return JSONResponse({"messages": found})


def _as(user: str) -> str:
    return user or current_user()


def _is_v3(request: Request) -> bool:
    return bool(request.path_params["version"] == "v3")


def _known(request: Request, *names: str) -> Mapping[str, str]:
    """The query. Raises JsonCommandError for a parameter that is not known."""
    for key in request.query_params:
        if key not in names:
            raise JsonCommandError(key, f"this query parameter is not known here; known are {', '.join(names)}")
    return request.query_params


def _whole_number(request: Request, key: str, default: int, most: int) -> int:
    text = request.query_params.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise JsonCommandError(key, f"a whole number from 0 to {most:,} is expected")
    return int(text)


async def _body(request: Request) -> Any:
    try:
        found = json.loads(await request.body())
        json.dumps(found, ensure_ascii=False).encode()  # half a character is no text
    except (ValueError, RecursionError) as error:
        raise JsonCommandError("body", f"it is not JSON: {error}") from error
    return found


async def _text(request: Request) -> bytes:
    """The body, which is text in UTF-8. Raises RestError 415, JsonCommandError."""
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if kind.strip().lower() not in _TEXT or charset not in ("", "charset=utf-8"):
        what = f"Content-Type is not one of {', '.join(_TEXT)}, with charset=utf-8."
        raise RestError(415, "MQWB0000E", what)
    body = await request.body()
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise JsonCommandError("body", f"it is not UTF-8 at byte {error.start}") from error
    return body


def _statement(command: Command) -> Statement:
    name = "" if command.name is None else f"({command.name.text})"
    text = f"{command.verb} {command.target}{name}"
    return Statement(1, 1, (text,), text, command)


def _rows(answer: Answer, target: str) -> tuple[rest_objects.Row, ...]:
    """What DISPLAY shows; nothing where nothing was found. Raises RestError for any other failure."""
    if answer.ok:
        return answer.objects
    reason = _reason(rest_objects.display(target), answer)
    if reason == about_command(rest_objects.display(target)).not_found:
        return ()
    raise _refused(reason, " ".join(answer.lines))


def _reason(command: Command, answer: Answer) -> int:
    error: CommandError = writing.refused(answer, about_command(command))
    return error.reason


def _refused(reason: int, what: str) -> RestError:
    if reason == MQRC_NOT_AUTHORIZED:
        return RestError(403, "MQWB0103E", f"Not authorized: {what}", "Obtain the authority.", reason)
    status = 404 if reason in _NOT_FOUND else 400
    named = f" : {reason_name(reason)}" if reason_name(reason) else ""
    return RestError(status, "MQWB0004E", f"The MQ reason code was {reason}{named}. {what}", reason=reason)


def _no_queue_manager(name: str) -> RestError:
    what = f"Could not query the queue manager '{name}'."
    return RestError(404, "MQWB0009E", what, "Name the queue manager that this console serves.")
