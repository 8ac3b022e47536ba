"""URLs and the TOML file of ``run`` and ``check``: what they say, and what they may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.config.settings import Config, ConfigError, exposed_secrets, read_config
from commands.config.urls import Address, parse_address
from commands.links.opening import Places
from tests.commands.cli_runs import run

GOOD = [
    ("mqtt://broker", Address("mqtt", "broker", 1883)),
    ("mqtts://broker", Address("mqtts", "broker", 8883)),
    ("mqtt://me@broker:1884", Address("mqtt", "broker", 1884, "me")),
    ("mqtt://[::1]:1884", Address("mqtt", "::1", 1884)),
    ("nats://me@host", Address("nats", "host", 4222, "me")),
    ("tls://host:4223", Address("tls", "host", 4223)),
    ("ibmmq://host/QM1", Address("ibmmq", "host", 1414, qmgr="QM1")),
    ("ibmmq://me@host:1415/QM1?channel=C", Address("ibmmq", "host", 1415, "me", "QM1", "C")),
    ("ibmmq:///QM1", Address("ibmmq", "", 1414, qmgr="QM1")),
    ("mq://me@host/QM1?channel=C&cipher=ANY", Address("mq", "host", 1414, "me", "QM1", "C", cipher="ANY")),
    ("mq://a:1,b,c:3/QM1?channel=C", Address("mq", "a", 1, None, "QM1", "C", ("b", "c:3"))),
    ("mq:///QM1", Address("mq", "", 1414, qmgr="QM1")),
]


@pytest.mark.parametrize(("text", "wanted"), GOOD, ids=[text for text, _ in GOOD])
def test_urls(text: str, wanted: Address) -> None:
    assert parse_address(text, "--topics") == wanted


BAD = [
    ("broker", "a bare word is not one of mqtt://, mqtts://, nats://, tls://, kafka://, kafkas://, ibmmq://, mq://"),
    ("amqp://broker", "amqp is not one of"),
    ("mqtt://", "the host is missing"),
    ("mqtt:/host", "the host is missing: mqtt://host"),
    ("mqtt://broker/topic", "takes no path"),
    ("mqtt://broker:port", "it is not a URL"),
    ("mqtt://broker?client_id=x", "has no parameter client_id"),
    ("mq://a,b", "the queue manager's name is missing: mq://host"),
    ("mqtt://broker?cipher=x", "has no parameter cipher"),
    ("ibmmq://host", "the queue manager's name is missing"),
    ("ibmmq://host/QM1/more", "the queue manager's name is missing"),
]


@pytest.mark.parametrize(
    ("text", "kind", "hosts"),
    [
        ("mqtts://h", "mqtt", ("h:8883",)),
        ("tls://h:1", "nats", ("h:1",)),
        ("kafka://[::1],b,c:1", "kafka", ("[::1]:9092", "b", "c:1")),
        ("kafkas://a", "kafka", ("a:9093",)),
        ("ibmmq:///QM1", "ibmmq", ()),
        ("mq://a:1,b/QM1", "ibmmq", ("a:1", "b")),
    ],
)
def test_the_kind_and_the_hosts_of_an_address(text: str, kind: str, hosts: tuple[str, ...]) -> None:
    address = parse_address(text, "--topics")
    assert (address.kind, address.hosts) == (kind, hosts)


@pytest.mark.parametrize(("text", "why"), BAD, ids=[text for text, _ in BAD])
def test_urls_that_are_none(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=r"^--topics: ") as caught:
        parse_address(text, "--topics")
    assert why in str(caught.value)


@pytest.mark.parametrize("text", ["mqtt://me:secret@broker", "nats://me:secret@host", "ibmmq://me:secret@host/QM1"])
def test_a_password_in_a_url_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="no place in a URL") as caught:
        parse_address(text, "--queues")
    assert "secret" not in str(caught.value)


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "bridge.toml"
    path.write_text(text)
    return path


def test_the_file_says_what_the_options_do_not(tmp_path: Path) -> None:
    path = _write(tmp_path, '[topics]\nurl = "mqtt://broker"\nprefix = "mq/"\n[queues]\nurl = "ibmmq://h/QM1"\n')
    places = Places.of(tmp_path, "QM1", read_config(path), None, "mqtt://other")
    assert (places.topics, places.queues) == (Address("mqtt", "other", 1883), Address("ibmmq", "h", 1414, qmgr="QM1"))
    assert places.config.topics.prefix == "mq/"


WRONG = [
    ("[topics]\nprefixx = 'a'", "topics.prefixx"),
    ("[topics]\nkeepalive_s = 'soon'", "topics.keepalive_s"),
    ("[queues]\nbatch = 0", "queues.batch"),
    ("[queues]\npassword = 'secret'", "queues.password"),
    ("[topics", "bridge.toml"),
    ("[other]", "other"),
]


@pytest.mark.parametrize(("text", "where"), WRONG)
def test_a_file_that_cannot_be_followed_says_where(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(_write(tmp_path, text))
    assert where in str(caught.value)
    assert "secret" not in str(caught.value)


def test_no_file_means_the_defaults_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    assert read_config(None) == Config()
    with pytest.raises(ConfigError, match="no such file"):
        read_config(tmp_path / "missing.toml")


USERS = [
    ("the file's", "ibmmq://h/QM1", "ibmmq://h/QM1", "", "queues"),
    ("the tree's own", "ibmmq://h/QM1", "ibmmq://h/QM1", 'user = "topics"\n', "topics"),
    ("the URL's wins", "ibmmq://h/QM1", "ibmmq://url@h/QM1", 'user = "topics"\n', "url"),
    ("the URL's wins over the queues'", "ibmmq://h/QM1", "ibmmq://url@h/QM1", "", "url"),
]


@pytest.mark.parametrize(("queues", "topics", "more", "user"), [u[1:] for u in USERS], ids=[u[0] for u in USERS])
def test_who_the_bridge_is_to_ibm_mqs_tree(tmp_path: Path, queues: str, topics: str, more: str, user: str) -> None:
    config = read_config(_write(tmp_path, f'[queues]\nuser = "queues"\npassword_env = "Q"\n[topics]\n{more}'))
    places = Places.of(tmp_path, "QM1", config, queues, topics)
    at = places.topics
    assert at is not None
    assert (at.user or places.tree_config().user) == user
    assert places.tree_config().password_env == ("Q" if user == "queues" else None), "nobody else's password"


def test_mqtt_has_no_queues(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no queues"):
        Places.of(tmp_path, "QM1", Config(), "mqtt://broker", None)


def test_passwords_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("pass word\n")
    text = f'[queues]\npassword_file = "{tmp_path}/secret"\n[topics]\npassword_env = "MQTT_SECRET"\n'
    config = read_config(_write(tmp_path, text))
    assert config.queues.password() == "pass word"
    with pytest.raises(ConfigError, match="no environment variable MQTT_SECRET"):
        config.topics.password()
    monkeypatch.setenv("MQTT_SECRET", "x")
    assert config.topics.password() == "x"


@pytest.mark.parametrize(
    ("mode", "ours", "who"),
    [
        (0o600, True, None),
        (0o400, True, None),
        (0o640, True, "its group"),
        (0o644, True, "everybody"),
        (0o604, True, "everybody"),
        (0o640, False, None),
        (0o644, False, "everybody"),
    ],
)
@pytest.mark.parametrize("key", ["topics.password_file", "topics.key_file", "queues.password_file"])
def test_a_secret_that_others_may_read_is_warned_of(
    key: str, mode: int, ours: bool, who: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    secret.chmod(mode)
    if not ours:
        monkeypatch.setattr("os.geteuid", lambda: secret.stat().st_uid + 1)
    table, name = key.split(".")
    config = Config.model_validate({table: {name: str(secret)}})
    found = exposed_secrets(config)
    assert list(found) == ([] if who is None else [f"{secret}: {who} may read this secret; run chmod 600 on it"])


def test_a_secret_that_is_missing_is_nobodys(tmp_path: Path) -> None:
    assert exposed_secrets(Config.model_validate({"topics": {"password_file": str(tmp_path / "none")}})) == ()
    assert exposed_secrets(Config()) == ()


@pytest.mark.parametrize("verb", [("run", "--once"), ("check",)])
def test_run_and_check_warn_of_it(verb: tuple[str, ...], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    secret.chmod(0o644)
    config = tmp_path / "bridge.toml"
    config.write_text(f'[topics]\npassword_file = "{secret}"\n')
    assert run("create", "QM1", "--home", str(tmp_path)).code == 0
    ran = run(*verb, "-m", "QM1", "--home", str(tmp_path), "--config", str(config))
    assert ran.code == 0, ran.talk
    assert f"qpubsub: {secret}: everybody may read this secret" in ran.talk
    assert "s3cret" not in ran.talk + ran.out
