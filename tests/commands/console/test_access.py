"""Who is answered: names of the host, origins of forms, sessions, passwords; and what is refused before it listens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from commands.config.access import in_users_file, password_hash
from commands.config.settings import ConfigError, ConsoleConfig, ListenerTls
from commands.console.access import HEADERS, ConsoleOptions, Doorkeeper, console_options
from tests.certificates import make_certificates, needs_openssl
from tests.commands.console.places import DEAD, ORIGIN, filled, opened

LOOPBACK = ConsoleOptions("127.0.0.1", 8414, names=("console.example",))
EVERYWHERE = ConsoleOptions("0.0.0.0", 8414, names=("console.example",))

HOSTS = [
    ("127.0.0.1:8414", True, True),
    ("127.0.0.2", True, True),
    ("[::1]:8414", True, True),
    ("localhost:8414", True, False),
    ("LOCALHOST.", True, False),
    ("console.example:8414", True, True),
    ("192.0.2.1:8414", False, True),
    ("evil.example", False, False),
    ("127.0.0.1.evil.example", False, False),
    ("localhost.evil.example", False, False),
    ("evil.example@localhost", False, False),
    ("localhost/evil.example", False, False),
    ("localhost?evil.example", False, False),
    ("evil@console.evil", False, False),
    ("[::1", False, False),
    ("", False, False),
    (None, False, False),
]


@pytest.mark.parametrize(("host", "at_loopback", "elsewhere"), HOSTS)
def test_only_addresses_and_known_names_are_served(host: str | None, at_loopback: bool, elsewhere: bool) -> None:
    assert Doorkeeper(LOOPBACK, lambda: 0).refuses_host(host) is not at_loopback
    assert Doorkeeper(EVERYWHERE, lambda: 0).refuses_host(host) is not elsewhere


ORIGINS: list[tuple[dict[str, str], bool]] = [
    ({"origin": "http://127.0.0.1:8414", "host": "127.0.0.1:8414"}, True),
    ({"origin": "http://127.0.0.1:9999", "host": "127.0.0.1:8414"}, False),
    ({"origin": "https://127.0.0.1:8414", "host": "127.0.0.1:8414"}, False),
    ({"origin": "http://evil.example", "host": "127.0.0.1:8414"}, False),
    ({"origin": "null", "host": "127.0.0.1:8414"}, False),
    ({"host": "127.0.0.1:8414", "sec-fetch-site": "same-origin"}, True),
    ({"host": "127.0.0.1:8414", "sec-fetch-site": "cross-site"}, False),
    ({"host": "127.0.0.1:8414"}, False),
]


@pytest.mark.parametrize(("headers", "taken"), ORIGINS)
def test_forms_come_from_our_own_pages(headers: dict[str, str], taken: bool) -> None:
    assert Doorkeeper(LOOPBACK, lambda: 0).refuses_origin(headers) is not taken


def test_a_session_after_a_password_ends_after_its_time() -> None:
    now = [0.0]
    door = Doorkeeper(ConsoleOptions("127.0.0.1", 1, is_right=lambda *_: True), lambda: now[0])
    session = door.new_session("alice")
    assert door.session(session.key) == session
    assert door.session("made up") is None
    other = door.new_session("bob")
    assert not door.has_token(session, other.token)
    door.end(other)
    assert door.session(other.key) is None
    now[0] = 12 * 3600.0
    assert door.session(session.key) is None


def test_every_answer_has_the_headers(tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path) as console:
        for path in ("/", "/assets/console.js", "/nothing", "/topic?topic=none", "/login"):
            headers = console.client.get(path).headers
            assert {name: headers[name] for name in HEADERS} == HEADERS, path
        assert "unsafe" not in HEADERS["Content-Security-Policy"]
        refused = console.client.get("/", headers={"host": "evil.example"})
        assert (refused.status_code, refused.headers["X-Frame-Options"]) == (421, "DENY")
        assert "QM1" not in refused.text


def test_the_cookie_is_for_this_site_and_for_no_script(tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path) as console:
        cookie = console.client.get("/").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def _users(directory: Path) -> Path:
    users = directory / "users"
    users.write_text(f"alice:{password_hash('right')}\n")
    return users


def test_a_password_opens_all_pages_and_its_lack_none(tmp_path: Path) -> None:
    filled(tmp_path / "home")
    options = ConsoleOptions("127.0.0.1", 8414, write=True, is_right=in_users_file(_users(tmp_path)))
    with opened(tmp_path / "home", options) as console:
        client, headers = console.client, {"origin": ORIGIN}
        for path in ("/", "/topics/level", f"/queue?name={DEAD}"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["location"][:12]) == (303, "/login?then=")
        assert client.post("/dead-letters/again", headers=headers).status_code == 303
        assert console.store().depth(DEAD) == 1
        assert client.get("/assets/page.css").status_code == 200
        for user, password in (("alice", "wrong"), ("mallory", "right"), ("", "")):
            form = {"user": user, "password": password}
            assert client.post("/login", data=form, headers=headers).status_code == 403
        form = {"user": "Alice", "password": "right", "then": "/queues?q=x"}
        assert client.post("/login", data=form, headers={"origin": "http://evil.example"}).status_code == 403
        entered = client.post("/login", data=form, headers=headers)
        assert (entered.status_code, entered.headers["location"]) == (303, "/queues?q=x")
        assert "Log out alice" in client.get("/").text
        assert client.post("/logout", data={"token": console.token("/")}, headers=headers).status_code == 303
        assert client.get("/").status_code == 303


@pytest.mark.parametrize("then", ["//evil.example/", "/\\evil.example", "https://evil.example", "javascript:alert(1)"])
def test_a_login_leads_to_no_other_site(then: str, tmp_path: Path) -> None:
    filled(tmp_path / "home")
    options = ConsoleOptions("127.0.0.1", 8414, is_right=in_users_file(_users(tmp_path)))
    with opened(tmp_path / "home", options) as console:
        form = {"user": "alice", "password": "right", "then": then}
        assert console.client.post("/login", data=form, headers={"origin": ORIGIN}).headers["location"] == "/"


def _nobody(_directory: Path) -> ConsoleConfig:
    return ConsoleConfig()


def _only_users(directory: Path) -> ConsoleConfig:
    return ConsoleConfig(users_file=_users(directory))


def _missing_users(directory: Path) -> ConsoleConfig:
    return ConsoleConfig(users_file=directory / "none")


def _no_certificate(directory: Path) -> ConsoleConfig:
    tls = ListenerTls(cert_file=directory / "c", key_file=directory / "k")
    return ConsoleConfig(users_file=_users(directory), tls=tls)


REFUSALS: list[tuple[str, str, Callable[[Path], ConsoleConfig], str]] = [
    ("all-interfaces", "0.0.0.0:8414", _nobody, "give users_file and tls in the table [console]"),
    ("by-name", "mq.example.com:8414", _nobody, "can be reached from other machines"),
    ("no-tls", "0.0.0.0:8414", _only_users, "give tls in the table [console]"),
    ("no-users", "8414", _missing_users, "qpubsub passwd --users"),
    ("no-certificate", "0.0.0.0:8414", _no_certificate, "the certificate or key cannot be used"),
    ("no-port", "localhost", _nobody, "localhost is not HOST:PORT or a port"),
]


@pytest.mark.parametrize(("where", "make", "why"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_what_would_let_anybody_in_is_refused(
    where: str, make: Callable[[Path], ConsoleConfig], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        console_options(make(tmp_path), where, "--listen")
    assert why in str(refused.value)


@needs_openssl
def test_with_users_and_tls_other_machines_may_come(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    tls = ListenerTls(cert_file=tmp_path / "localhost.pem", key_file=tmp_path / "localhost.key")
    config = ConsoleConfig(users_file=_users(tmp_path), tls=tls, names=("mq.example.com",))
    options = console_options(config, "0.0.0.0:8414", "--listen")
    assert (options.scheme, options.write, options.is_right is not None) == ("https", False, True)
