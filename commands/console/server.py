"""The console over HTTP: pages, forms, assets, the login; and serving until it is asked to end.

The templates of the console, and what they say of moments, sizes and addresses.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from datetime import datetime
from functools import cache, partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

import h11
import uvicorn
from jinja2 import Environment, pass_context
from jinja2.runtime import Context
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from commands.console.access import HEADERS, ConsoleOptions, Doorkeeper, Session
from commands.console.messages import LONGEST_PASTE
from commands.console.overview import in_short
from commands.console.pages import ACTIONS, API_PAGES, DOWNLOADS, MENU, PAGES, Page, answer_of, description
from commands.console.rest import PREFIX, RestError, RestInterface, error_response
from commands.console.source import NotThereError, Query, Source
from commands.disk.open_files import OutOfFiles, carried, open_files
from commands.pages import environment
from commands.running.listening import Service, where_of
from rfh2.distribution import VERSION
from rfh2.errors import QPubSubError
from rfh2.terminal_escape import visible

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_LONG: Final = 160

ASSETS: Final = {
    "page.css": ("commands.pages", "page.css", "text/css; charset=utf-8"),
    "console.css": ("commands.console", "assets/console.css", "text/css; charset=utf-8"),
    "console.js": ("commands.console", "assets/console.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("commands.console", "assets/icon.svg", "image/svg+xml"),
}
"""Files that pages load: package, path in it, type."""


def render(template: str, **values: Any) -> str:
    """The page that *template* makes of *values*. Raises UndefinedError for a name that it lacks."""
    return _environment().get_template(template).render(values)


@cache
def asset(name: str) -> bytes:
    """The bytes of one of ASSETS."""
    package, path, _ = ASSETS[name]
    return (files(package) / path).read_bytes()


def address(path: str, **values: object) -> str:
    """A path with a query. Values of None are left out."""
    query = urlencode({name: value for name, value in values.items() if value is not None}, quote_via=quote, safe="")
    return f"{path}?{query}" if query else path


@pass_context
def _address_here(context: Context, path: str, **values: object) -> str:
    """The same, of the queue manager whose page is made."""
    return address(f"{context['base']}{path}", **values)


def cut(text: str | None, most: int = _LONG) -> str:
    """The beginning of a long text, and how long it is; one in a row must not fill the window."""
    whole = visible(text or "")
    return whole if len(whole) <= most else f"{whole[:most]}… ({len(text or ''):,} characters)"


def moment(at: datetime | str | None) -> str:
    """A moment in UTC, to the second."""
    if at is None:
        return "never"
    return at.replace("T", " ")[:19] if isinstance(at, str) else f"{at:%Y-%m-%d %H:%M:%S}"


def duration(seconds: float | None) -> str:
    """In the largest unit that makes it at least one."""
    if seconds is None:
        return ""
    return next((f"{seconds / size:.0f} {unit}" for size, unit in _UNITS if seconds >= size), "0 s")


def size(count: int) -> str:
    """Bytes, for a person."""
    return (
        f"{count:,} bytes" if count < 10_000 else f"{count / 1e3:,.1f} kB" if count < 1e6 else f"{count / 1e6:,.1f} MB"
    )


@cache
def _environment() -> Environment:
    made = environment("commands.console")
    made.filters |= {"cut": cut, "duration": duration, "moment": moment, "size": size}
    made.globals["address"] = _address_here
    return made


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


async def _nothing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    if PREFIX in request.url.path:
        what = HTTPStatus(status).phrase
        return error_response(RestError(status, "MQWB0000E", f"{request.method} {request.url.path}: {what}."))
    response = _refusal(status, _FAULTS.get(status, "This request cannot be answered."))
    response.headers.update(HEADERS)
    return response


_LIMITS: Final[dict[str, Any]] = {
    "exception_handlers": dict.fromkeys((400, 404, 405, 413, 500), _nothing),
    "max_body_size": _LONGEST_FORM,
}


class ConsoleApp:
    """The application of one queue manager. source: of the pages; stays the caller's.

    door: where the consoles of several queue managers have one. base: what the paths of its pages begin with. names: of
    all queue managers that are shown, with their bases; none where there is one.
    """

    def __init__(
        self,
        qmgr: str,
        options: ConsoleOptions,
        source: Source,
        door: Doorkeeper | None = None,
        base: str = "",
        names: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._qmgr, self._options, self._source, self._base, self._names = qmgr, options, source, base, names
        self._door = door or Doorkeeper(options, time.monotonic)
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
        routes += [Route(path, self._guarded(partial(self._file, path))) for path in DOWNLOADS]
        routes += [
            Route(path, self._guarded(partial(self._tell, page), is_api=True)) for path, page in API_PAGES.items()
        ]
        routes.append(Route("/api/openapi.json", self._guarded(self._describe, is_api=True)))
        routes += self._rest.routes()
        return Starlette(routes=routes, lifespan=self.living, **_LIMITS)

    def shared(self, listed: Callable[[Request, Session], Awaitable[Response]]) -> list[Route]:
        """What the consoles of several queue managers have once. listed: the list of them."""
        return [
            Route("/", self._guarded(listed)),
            Route("/assets/{name}", self._guarded(self._asset, is_open=True)),
        ]

    @asynccontextmanager
    async def living(self, _app: Starlette) -> AsyncIterator[None]:
        sampling = asyncio.create_task(self._source.sample())
        try:
            yield
        finally:
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling
            self._comparing.shutdown()

    def _guarded(
        self,
        answer: Callable[[Request, Session], Awaitable[Response]],
        is_open: bool = False,
        is_api: bool = False,
    ) -> Callable[[Request], Awaitable[Response]]:
        """*answer*, for requests that may be answered. is_open: also without a password. is_api: for programs too."""

        async def guarded(request: Request) -> Response:
            response = await self._decided(request, answer, is_open, is_api)
            response.headers.update(HEADERS)
            return response

        return guarded

    async def _decided(
        self,
        request: Request,
        answer: Callable[[Request, Session], Awaitable[Response]],
        is_open: bool,
        is_api: bool,
    ) -> Response:
        door = self._door
        if door.refuses_host(request.headers.get("host")):
            why = "The console is not served under this name. Open it by its address, or add the name to names in the"
            return _refusal(421, f"{why} table [console].")
        session = door.session(request.cookies.get(door.cookie))
        if request.method not in _SAFE and door.refuses_origin(request.headers):
            return _refusal(403, "This form was not sent by a page of the console.")
        is_new = session is None
        if session is None and is_api and door.asks:
            user, password = _basic(request.headers.get("authorization"))
            user = await self._right_user(user, password) if user.strip() else ""
            if not user:
                return JSONResponse(
                    {"error": "Give user and password by HTTP Basic."},
                    401,
                    {"WWW-Authenticate": 'Basic realm="qpubsub", charset="UTF-8"'},
                )
            return await answer(request, Session("", "", user))
        if session is None:
            if door.asks and not is_open:
                there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
                return RedirectResponse(
                    address(f"{self._base}/login", then=there if request.method in _SAFE else f"{self._base}/"), 303
                )
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
            "base": self._base,
            "names": self._names,
            "page": page,
            "menu": MENU,
            "session": session,
            "write": self._options.write,
            "has_timeline": self._source.has_timeline,
            "said": query.text("said", 500),
            "version": VERSION,
        }
        return HTMLResponse(render(template, **about, **values), status)

    async def _tell(self, page: Page, request: Request, _session: Session) -> Response:
        """A page as JSON."""
        query = Query(dict(request.query_params))
        try:
            values = await self._source.ask(lambda state: page.read(state, query), slow=page.slow)
        except NotThereError as error:
            return JSONResponse({"error": error.what}, 404)
        except QPubSubError as error:
            return JSONResponse({"error": str(error)}, 503)
        return JSONResponse(answer_of(values))

    async def _describe(self, _request: Request, _session: Session) -> Response:
        return JSONResponse(description())

    async def _file(self, path: str, request: Request, _session: Session) -> Response:
        query = Query(dict(request.query_params))
        try:
            file = await self._source.ask(lambda state: DOWNLOADS[path](state, query), slow=True)
        except NotThereError as error:
            return _refusal(404, error.what)
        except QPubSubError as error:
            return _refusal(503, str(error))
        kept = {"Content-Disposition": f'attachment; filename="{file.name}"'}
        return Response(file.data, media_type="application/octet-stream", headers=kept)

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
        return RedirectResponse(address(f"{self._base}{page}", said=said), 303)

    async def _login(self, request: Request, session: Session) -> Response:
        if not self._door.asks:
            return RedirectResponse(f"{self._base}/", 303)
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
        return HTMLResponse(render("login.html", qmgr=self._qmgr, base=self._base, then=then, problem=problem), status)

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
        response = RedirectResponse(f"{self._base}/", 303)
        response.delete_cookie(self._door.cookie)
        return response

    async def _asset(self, request: Request, _session: Session) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return _refusal(404, "There is no such file.")
        return Response(asset(name), media_type=ASSETS[name][2])


class ConsoleHome:
    """The consoles of several queue managers as one application: each below a path of its own, and a list of all."""

    def __init__(self, options: ConsoleOptions, sources: Mapping[str, Source]) -> None:
        door = Doorkeeper(options, time.monotonic)
        self._sources = sources
        self._names = tuple((name, f"/qm/{_in_path(name)}") for name in sources)
        self._apps = {
            name: ConsoleApp(name, options, sources[name], door, there, self._names) for name, there in self._names
        }

    def asgi(self) -> Starlette:
        """The application for a server of ASGI."""
        first = next(iter(self._apps.values()))
        routes: list[BaseRoute] = [Mount(there, self._apps[name].asgi()) for name, there in self._names]
        routes += first.shared(self._list)
        return Starlette(routes=routes, lifespan=self._living, **_LIMITS)

    @asynccontextmanager
    async def _living(self, app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as alive:
            for each in self._apps.values():
                await alive.enter_async_context(each.living(app))
            yield

    async def _list(self, _request: Request, _session: Session) -> Response:
        rows = []
        for name, there in self._names:
            try:
                found = await self._sources[name].ask(in_short)
            except QPubSubError as error:
                found = {"problem": str(error)}
            rows.append({"name": name, "there": there, "problem": "", **found})
        return HTMLResponse(render("home.html", rows=rows, version=VERSION))


def _in_path(name: str) -> str:
    return quote(name, safe="").replace("%", "!")


def _methods(page: Page) -> list[str]:
    return ["GET", "POST"] if page.takes else ["GET"]


async def _form(request: Request) -> dict[str, str]:
    """The texts of a form; files are left out."""
    is_plain = request.headers.get("content-type", "").startswith("multipart/")
    most = _LONGEST_FORM if is_plain else _LONGEST_ENCODED
    async with request.form(max_files=0, max_fields=50, max_part_size=most) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def _basic(header: str | None) -> tuple[str, str]:
    """User and password of HTTP Basic; empty where there are none."""
    scheme, _, encoded = (header or "").partition(" ")
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode("utf-8").partition(":")
    except ValueError:
        return "", ""
    return (user, password) if scheme.lower() == "basic" else ("", "")


def _refusal(status: int, why: str) -> HTMLResponse:
    return HTMLResponse(render("refused.html", base="", why=why, is_missing=status == HTTPStatus.NOT_FOUND), status)


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


class _App(Protocol):
    def asgi(self) -> Starlette: ...


async def serve(app: _App, options: ConsoleOptions, ended: asyncio.Event, started: Callable[[int], None]) -> None:
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
