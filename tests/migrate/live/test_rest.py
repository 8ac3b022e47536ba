"""The REST adapter: requests as IBM documents them, answers of every kind, and no secret in any message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.config.settings import AdminConfig, ConfigError
from migrate.live.opening import RestAdministrator
from migrate.live.snapshot import AdministrationError, statement_of
from tests.certificates import make_certificates, needs_openssl
from tests.migrate.live.rest_stub import PASSWORD, USER, RestStub, rest_stub
from tests.migrate.live.rigs import create


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[RestStub]:
    create(tmp_path / "qmgrs")
    with rest_stub(tmp_path / "qmgrs") as server:
        yield server


@pytest.fixture
def config(tmp_path: Path) -> AdminConfig:
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    return AdminConfig(user=USER, password_file=tmp_path / "secret")


def test_the_requests(stub: RestStub, config: AdminConfig) -> None:
    administrator = RestAdministrator(stub.url, "QM1", config)
    assert administrator.run(statement_of("DEFINE QLOCAL('A.Q') MAXDEPTH(9)")).ok
    rows = administrator.display("QLOCAL", "A.*")
    assert [(row["QUEUE"], row["MAXDEPTH"]) for row in rows] == [("A.Q", 9)]
    assert administrator.display("AUTHREC", PROFILE="A.Q", OBJTYPE="QUEUE") == []
    assert stub.seen == [
        {"type": "runCommand", "parameters": {"command": "DEFINE QLOCAL('A.Q') MAXDEPTH(9)"}},
        {
            "type": "runCommandJSON",
            "command": "display",
            "qualifier": "qlocal",
            "name": "A.*",
            "responseParameters": ["all"],
        },
        {
            "type": "runCommandJSON",
            "command": "display",
            "qualifier": "authrec",
            "parameters": {"profile": "A.Q", "objtype": "QUEUE"},
            "responseParameters": ["all"],
        },
    ]
    again = administrator.run(statement_of("DEFINE QLOCAL('A.Q')"))
    assert (again.ok, again.is_there, again.code) == (False, True, "AMQ8150")
    gone = administrator.run(statement_of("DELETE QLOCAL('B.Q')"))
    assert (gone.ok, gone.is_missing) == (False, True)
    administrator.close()


ROW = {"sub": "s", "destcorl": "00FF", "numbers": 7, "names": ["A  ", "B"], "none": None}
ANSWERS = [
    ("row", 200, {"commandResponse": [{"completionCode": 0, "reasonCode": 0, "parameters": ROW}]}, 0),
    ("nothing", 200, {"commandResponse": [{"completionCode": 2, "reasonCode": 2085}]}, 2),
    ("z", 200, {"commandResponse": []}, 0),
]


@pytest.mark.parametrize(("status", "body", "overall"), [a[1:] for a in ANSWERS], ids=[a[0] for a in ANSWERS])
def test_answers(status: int, body: dict[str, object], overall: int, stub: RestStub, config: AdminConfig) -> None:
    whole = {**body, "overallCompletionCode": overall, "overallReasonCode": 3008 if overall else 0}
    stub.answers_instead = (status, json.dumps(whole).encode())
    rows = RestAdministrator(stub.url, "QM1", config).display("SUB", "*")
    expected = {"SUB": "s", "DESTCORL": "00FF", "NUMBERS": 7, "NAMES": ("A", "B"), "NONE": ""}
    assert rows == ([expected] if "parameters" in str(body) else [])


_GONE = b'{"completionCode": 2, "reasonCode": 2085, "message": ["AMQ8147E: Object not found."]}'
_DENIED = b'{"completionCode": 2, "reasonCode": 2035, "message": ["AMQ8135E: Not authorized."]}'
_SHOWN = b'{"completionCode": 0, "reasonCode": 0, "parameters": {"sub": "s"}}'


def _answer(*responses: bytes, overall: bytes = b"2") -> bytes:
    codes = b'"overallCompletionCode": ' + overall + b', "overallReasonCode": 3008'
    return b'{"commandResponse": [' + b", ".join(responses) + b"], " + codes + b"}"


FAILURES = [
    ("no-json", 200, b"<html>", "the answer is not JSON"),
    ("list", 200, b"[]", "the answer is not a JSON object"),
    ("no-codes", 200, b"{}", "no answer of the REST interface"),
    ("500", 500, b'{"error": [{"message": "MQWB0000E: bad", "action": "Try again."}]}', "MQWB0000E: bad Try again."),
    ("401", 401, b"", "the user or the password is wrong"),
    (
        "refused",
        200,
        b'{"commandResponse": [{"completionCode": 2, "reasonCode": 2035, "message": ["AMQ8135E: Not authorized."]}],'
        b' "overallCompletionCode": 2, "overallReasonCode": 3008}',
        "AMQ8135E: Not authorized.",
    ),
    ("half", 200, _answer(_SHOWN, _DENIED), "Not authorized. Beside this error the answer has 1 object:"),
    ("half-gone", 200, _answer(_SHOWN, _GONE), "Object not found. Beside this error the answer has 1 object:"),
    ("half-for-no-reason", 200, _answer(_SHOWN), "reason 3008. Beside this error the answer has 1 object:"),
    (
        "half-and-well",
        200,
        _answer(_SHOWN, _DENIED, overall=b"0"),
        "Not authorized. Beside this error the answer has 1 object:",
    ),
    ("gone-and-denied", 200, _answer(_GONE, _DENIED), "AMQ8147E: Object not found.; AMQ8135E: Not authorized."),
    ("no-list", 200, b'{"overallCompletionCode": 0, "overallReasonCode": 0}', "has no list commandResponse"),
    ("no-object", 200, _answer(_SHOWN, b"null", overall=b"0"), "has no list commandResponse"),
    ("no-parameters", 200, _answer(b'{"parameters": ["sub"]}', overall=b"0"), "parameters are not an object"),
]


@pytest.mark.parametrize(("status", "body", "said"), [f[1:] for f in FAILURES], ids=[f[0] for f in FAILURES])
def test_failures_are_said(status: int, body: bytes, said: str, stub: RestStub, config: AdminConfig) -> None:
    stub.answers_instead = (status, body)
    with pytest.raises(AdministrationError) as failed:
        RestAdministrator(stub.url, "QM1", config).display("SUB", "*")
    assert said in str(failed.value)
    assert PASSWORD not in str(failed.value)


def test_a_wrong_password_and_a_wrong_queue_manager(stub: RestStub, config: AdminConfig, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("wrong")
    wrong = config.model_copy(update={"password_file": tmp_path / "wrong"})
    with pytest.raises(AdministrationError, match="status 401"):
        RestAdministrator(stub.url, "QM1", wrong).display("QMGR")
    with pytest.raises(AdministrationError, match="status 404"):
        RestAdministrator(stub.url, "QM2", config).display("QMGR")


def test_a_connection_that_was_closed_meanwhile_is_made_again_to_look(stub: RestStub, config: AdminConfig) -> None:
    administrator = RestAdministrator(stub.url, "QM1", config)
    assert administrator.display("QMGR")
    stub.dies_after = 0
    with pytest.raises(AdministrationError, match="was not reached"):
        administrator.run(statement_of("DEFINE QLOCAL('A.Q')"))
    stub.dies_after = None
    assert administrator.display("QMGR")
    assert administrator.display("QLOCAL", "A.Q") == []


def test_a_server_that_is_not_there(config: AdminConfig) -> None:
    with pytest.raises(AdministrationError, match="was not reached"):
        RestAdministrator("http://127.0.0.1:9", "QM1", config).display("QMGR")


URLS = [
    ("ftp://host", "was expected"),
    ("https://", "was expected"),
    ("https://user@host", "no place in a URL"),
    (f"https://user:{PASSWORD}@host:9443", "no place in a URL"),
    ("https://host/ibmmq", "only scheme, host and port"),
    ("https://host:99999", "it is not a URL"),
    ("http://mq.example.com:9080", "sent only by https://"),
]


@pytest.mark.parametrize(("url", "said"), URLS, ids=[url.replace(PASSWORD, "X") for url, _ in URLS])
def test_urls(url: str, said: str, config: AdminConfig) -> None:
    with pytest.raises(ConfigError) as refused:
        RestAdministrator(url, "QM1", config)
    assert said in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_where_it_is_has_the_default_port(config: AdminConfig) -> None:
    assert RestAdministrator("https://mq.example.com", "QM1", config).where == (
        "queue manager QM1 at https://mq.example.com:9443"
    )


def test_certificates_are_verified(config: AdminConfig, tmp_path: Path) -> None:
    import ssl

    administrator = RestAdministrator("https://mq.example.com", "QM1", config)
    context = administrator._tls
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    missing = config.model_copy(update={"ca_file": tmp_path / "none.pem"})
    with pytest.raises(ConfigError, match=r"none\.pem"):
        RestAdministrator("https://mq.example.com", "QM1", missing)


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@needs_openssl
def test_a_certificate_that_is_trusted(stub: RestStub, config: AdminConfig, certificates: Path) -> None:
    stub.wants_tls(certificates)
    trusting = config.model_copy(update={"ca_file": certificates / "ca.pem"})
    assert RestAdministrator(stub.url, "QM1", trusting).display("QMGR")
    with pytest.raises(AdministrationError, match=r"certificate is not trusted: .*ca_file") as failed:
        RestAdministrator(stub.url, "QM1", config).display("QMGR")
    assert PASSWORD not in str(failed.value)
    by_number = stub.url.replace("localhost", "127.0.0.1")
    with pytest.raises(AdministrationError, match="certificate is not trusted"):
        RestAdministrator(by_number, "QM1", trusting).display("QMGR")


@needs_openssl
def test_a_client_with_a_certificate_needs_no_password(stub: RestStub, certificates: Path) -> None:
    stub.wants_tls(certificates, of_clients=True)
    config = AdminConfig(ca_file=certificates / "ca.pem")
    own = {"cert_file": certificates / "bridge.pem", "key_file": certificates / "bridge.key"}
    assert RestAdministrator(stub.url, "QM1", config.model_copy(update=own)).display("QMGR")
    with pytest.raises(AdministrationError, match="was not reached"):
        RestAdministrator(stub.url, "QM1", config).display("QMGR")
