"""The console over HTTP: pages, forms, assets, the login; and serving until it is asked to end."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from commands.console.access import HEADERS, ConsoleOptions, Doorkeeper, Session
from commands.console.messages import LONGEST_PASTE
from commands.console.pages import ACTIONS, MENU, PAGES, Page
from commands.console.query import NotThereError, Query
from commands.console.rendering import ASSETS, address, asset, render
from commands.console.rest import PREFIX, RestError, RestInterface, error_response
from commands.console.source import Source
from commands.disk.open_files import OutOfFiles, carried, open_files
from commands.running.listening import Service, where_of
from rfh2.errors import QPubSubError

# The connections of a console: so many at a time, and each has to say what it wants in time.

MOST_CONNECTIONS: Final = 200
# Whoever sends a request more slowly, or nothing at all, must not keep a connection: the head, and what follows it.
HEAD_S: Final = 10.0
BODY_S: Final = 60.0


def protocol_of(most: int, head_s: float = HEAD_S, body_s: float = BODY_S) -> type[H11Protocol]:
    """What uvicorn speaks HTTP by. most: connections at a time; further ones are closed. head_s, body_s: seconds."""

    class Limited(H11Protocol):
        _late: asyncio.TimerHandle | None = None
        _is_in_body = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.abort()
                return
            self._look()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            self._look()

        def _look(self) -> None:
            """Begin to measure, or end it, by how much of the request has come."""
            state = self.conn.their_state
            if state is h11.IDLE and self._late is None:
                self._late = self.loop.call_later(head_s, self._end)
            elif state is h11.SEND_BODY and not self._is_in_body:
                self._stop()
                self._late, self._is_in_body = self.loop.call_later(body_s, self._end), True
            elif state not in (h11.IDLE, h11.SEND_BODY):
                self._stop()

        def _stop(self) -> None:
            if self._late is not None:
                self._late.cancel()
            self._late, self._is_in_body = None, False

        def _end(self) -> None:
            self.transport.abort()

    return Limited


_log: Final = logging.getLogger("qpubsub.console")
_SAFE: Final = ("GET", "HEAD")
# A topic has at most 10,240 characters, each three bytes or more, and three characters for each byte in an address.
_LONGEST_REQUEST: Final = 512 * 1024
# As many characters, of four bytes each, and what multipart adds.
_LONGEST_FORM: Final = 4 * LONGEST_PASTE + 1_000_000
# A form whose characters are %xx takes long to read; the page for pastes sends them as they are.
_LONGEST_ENCODED: Final = 1_000_000
_WRONG_PASSWORD_S: Final = 1.0
_COMPARED_AT_A_TIME: Final = 2
_STEP_S: Final = 0.01
# asyncio accepts so many before it looks whether there are too many.
_ACCEPTED_AT_ONCE: Final = 32
_FAULTS: Final = {
    400: f"This form cannot be read: it is damaged, or has more than {_LONGEST_ENCODED:,} encoded characters.",
    404: "There is no such page.",
    405: "This cannot be done here.",
    413: f"What was sent is longer than {_LONGEST_FORM:,} bytes.",
    500: "This is a fault in qpubsub. Please report it with the lines that it wrote on stderr.",
}


class ConsoleApp:
    """The application of one console. source: of the pages; stays the caller's."""

    def __init__(self, qmgr: str, options: ConsoleOptions, source: Source) -> None:
        self._qmgr, self._options, self._source = qmgr, options, source
        self._door = Doorkeeper(options, time.monotonic)
        self._comparing = ThreadPoolExecutor(_COMPARED_AT_A_TIME, "passwords")
        self._rest = RestInterface(qmgr, options, source, self._door, self._right_user)

    def asgi(self) -> Starlette:
        """The application for a server of ASGI."""
        routes = [Route(page.path, self._guarded(partial(self._show, page)), methods=_methods(page)) for page in PAGES]
        routes += [
            Route("/login", self._guarded(self._login, is_open=True), methods=["GET", "POST"]),
            Route("/logout", self._guarded(self._logout), methods=["POST"]),
            Route("/assets/{name}", self._guarded(self._asset, is_open=True)),
        ]
        routes += [Route(path, self._guarded(partial(self._act, path)), methods=["POST"]) for path in ACTIONS]
        routes += self._rest.routes()
        refused = dict.fromkeys((400, 404, 405, 413, 500), self._nothing)
        return Starlette(routes=routes, lifespan=self._living, exception_handlers=refused, max_body_size=_LONGEST_FORM)

    @asynccontextmanager
    async def _living(self, _app: Starlette) -> AsyncIterator[None]:
        sampling = asyncio.create_task(self._source.sample())
        try:
            yield
        finally:
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling
            self._comparing.shutdown()

    def _guarded(
        self, answer: Callable[[Request, Session], Awaitable[Response]], is_open: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """*answer*, for requests that may be answered. is_open: also without a password."""

        async def guarded(request: Request) -> Response:
            response = await self._decided(request, answer, is_open)
            response.headers.update(HEADERS)
            return response

        return guarded

    async def _decided(
        self, request: Request, answer: Callable[[Request, Session], Awaitable[Response]], is_open: bool
    ) -> Response:
        door = self._door
        if door.refuses_host(request.headers.get("host")):
            why = "The console is not served under this name. Open it by its address, or add the name to names in the"
            return _refusal(421, f"{why} table [console].")
        session = door.session(request.cookies.get(door.cookie))
        if request.method not in _SAFE and door.refuses_origin(request.headers):
            return _refusal(403, "This form was not sent by a page of the console.")
        is_new = session is None
        if session is None:
            if door.asks and not is_open:
                there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
                return RedirectResponse(address("/login", then=there if request.method in _SAFE else "/"), 303)
            session = door.new_session()
        response = await answer(request, session)
        if is_new and not door.asks:
            self._remember(response, session)
        return response

    def _remember(self, response: Response, session: Session) -> None:
        secure = self._options.tls is not None
        response.set_cookie(self._door.cookie, session.key, httponly=True, samesite="strict", secure=secure)

    async def _show(self, page: Page, request: Request, session: Session) -> Response:
        if request.method in _SAFE:
            query = Query(dict(request.query_params))
        else:
            values = await _form(request)
            if not self._door.has_token(session, values.get("token", "")):
                return _refusal(403, "The form is old. Open the page again.")
            query = Query(values)
        try:
            shown = await self._source.ask(lambda state: page.read(state, query), slow=page.slow)
        except NotThereError as error:
            return self._page("problem.html", page, session, 404, query, {"problem": error.what})
        except QPubSubError as error:
            return self._page("problem.html", page, session, 503, query, {"problem": str(error)})
        return self._page(page.template, page, session, 200, query, shown)

    def _page(
        self, template: str, page: Page, session: Session, status: int, query: Query, values: dict[str, Any]
    ) -> HTMLResponse:
        about = {
            "qmgr": self._qmgr,
            "page": page,
            "menu": MENU,
            "session": session,
            "write": self._options.write,
            "has_timeline": self._source.has_timeline,
            "said": query.text("said", 500),
        }
        return HTMLResponse(render(template, **about, **values), status)

    async def _act(self, path: str, request: Request, session: Session) -> Response:
        act, page = ACTIONS[path]
        values = await _form(request)
        if not self._options.write:
            return _refusal(403, "The console is read-only. Start it with --write to change anything.")
        if not self._door.has_token(session, values.get("token", "")):
            return _refusal(403, "The form is old. Open the page again.")
        try:
            said = await self._source.ask(lambda state: act(state, Query(values)))
        except QPubSubError as error:
            said = str(error)
        else:
            _log.info("console%s: %s", f", user {session.user}" if session.user else "", said)
        return RedirectResponse(address(page, said=said), 303)

    async def _login(self, request: Request, session: Session) -> Response:
        if not self._door.asks:
            return RedirectResponse("/", 303)
        values = dict(request.query_params) if request.method in _SAFE else await _form(request)
        then, problem, status = values.get("then", "/"), "", 200
        # Only a path of ours: //host is another one's.
        then = then if then.startswith("/") and not then.startswith(("//", "/\\")) else "/"
        if request.method not in _SAFE:
            user = await self._right_user(values.get("user", ""), values.get("password", ""))
            if user:
                response: Response = RedirectResponse(then, 303)
                self._remember(response, self._door.new_session(user))
                return response
            problem, status = "The user or the password is wrong.", 403
        return HTMLResponse(render("login.html", qmgr=self._qmgr, then=then, problem=problem), status)

    async def _right_user(self, name: str, password: str) -> str:
        """The user *name* whose password this is; "" for none, after a pause."""
        user, is_right = name.strip().lower(), self._options.is_right
        assert is_right is not None
        loop = asyncio.get_running_loop()
        if await loop.run_in_executor(self._comparing, is_right, user, password[:256]):
            return user
        _log.warning("console: a wrong password for user %s", user[:64])
        await asyncio.sleep(_WRONG_PASSWORD_S)
        return ""

    async def _logout(self, request: Request, session: Session) -> Response:
        if self._door.has_token(session, (await _form(request)).get("token", "")):
            self._door.end(session)
        response = RedirectResponse("/", 303)
        response.delete_cookie(self._door.cookie)
        return response

    async def _asset(self, request: Request, _session: Session) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return _refusal(404, "There is no such file.")
        return Response(asset(name), media_type=ASSETS[name][2])

    async def _nothing(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 500)
        if request.url.path.startswith(PREFIX):
            what = HTTPStatus(status).phrase
            return error_response(RestError(status, "MQWB0000E", f"{request.method} {request.url.path}: {what}."))
        response = _refusal(status, _FAULTS.get(status, "This request cannot be answered."))
        response.headers.update(HEADERS)
        return response


def _methods(page: Page) -> list[str]:
    return ["GET", "POST"] if page.takes else ["GET"]


async def _form(request: Request) -> dict[str, str]:
    """The texts of a form; files are left out."""
    is_plain = request.headers.get("content-type", "").startswith("multipart/")
    most = _LONGEST_FORM if is_plain else _LONGEST_ENCODED
    async with request.form(max_files=0, max_fields=50, max_part_size=most) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def _refusal(status: int, why: str) -> HTMLResponse:
    return HTMLResponse(render("refused.html", why=why, is_missing=status == HTTPStatus.NOT_FOUND), status)


class _Server(uvicorn.Server):
    """uvicorn, without its handlers of signals: whoever serves has its own."""

    def capture_signals(self) -> nullcontext[None]:  # type: ignore[override]
        return nullcontext()


def console_service(qmgr: str, options: ConsoleOptions, make: Callable[[], Source], option: str) -> Service:
    """The console as a server beside others. make: opens the source, in the process that serves."""

    async def serving(ended: asyncio.Event, started: Callable[[int], None]) -> None:
        source = make()
        try:
            await serve(ConsoleApp(qmgr, options, source), options, ended, started)
        finally:
            source.close()

    return Service(where_of(options.host, options.port), option, serving)


async def serve(app: ConsoleApp, options: ConsoleOptions, ended: asyncio.Event, started: Callable[[int], None]) -> None:
    """Serve until *ended* is set. started: called with the port. Raises OSError where nothing can listen there."""
    sock = _listening(options)
    context, loop = options.tls, asyncio.get_running_loop()
    most = carried(MOST_CONNECTIONS, 1, open_files())
    where = where_of(options.host, sock.getsockname()[1])
    loop.set_exception_handler(OutOfFiles(_log, f"the console on {where}", loop.time).handle)
    config = uvicorn.Config(
        app.asgi(),
        http=protocol_of(most),
        limit_concurrency=most,
        backlog=_ACCEPTED_AT_ONCE,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=_LONGEST_REQUEST,
        # Without a factory uvicorn speaks plain HTTP.
        ssl_context_factory=None if context is None else lambda _config, _default: context,
    )
    server = _Server(config)
    waiting = asyncio.create_task(ended.wait())
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(_STEP_S)
        if server.started:
            started(sock.getsockname()[1])
            await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        server.should_exit = True
        await serving


def _listening(options: ConsoleOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((options.host, options.port))
    except BaseException:
        sock.close()
        raise
    return sock
