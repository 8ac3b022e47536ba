"""What scripts say of clients: channels, CHLAUTH, AUTHINFO, LISTENER, templates, inserts. Each in a new desk."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from commands.broker.objects import Objects, QueueManager, definition_of, kind_of, state_of
from commands.mqsc.administration import Administration
from commands.mqsc.answers import Answer, DefinitionStored
from commands.mqsc.execute import execute
from commands.mqsc.script import parse
from streams import TopicSpace

MAP = "SET CHLAUTH(A) TYPE(USERMAP) CLNTUSER('bob') USERSRC(MAP) MCAUSER('app')"
BLOCK = "SET CHLAUTH(A) TYPE(BLOCKUSER) USERLIST('bob','eve')"
ADDRESS = "SET CHLAUTH(A) TYPE(ADDRESSMAP) ADDRESS('10.*')"
CHANNEL = "DEFINE CHANNEL(A) CHLTYPE(SVRCONN)"
LISTENER = "DEFINE LISTENER(L) TRPTYPE(TCP) PORT(1500)"


def answers(*scripts: str) -> list[Answer]:
    objects = Objects(QueueManager("QM1"))
    administration = Administration.of(objects, TopicSpace(objects.topics), datetime(2026, 1, 1, tzinfo=UTC))
    administration.groups_of = lambda user: ["mqm"] if user == "root2" else []  # type: ignore[assignment,return-value]
    return [execute(statement, administration) for script in scripts for statement in parse(script)]


# What was said before; a command; what it answers; and of an object that it stores, or shows, some attributes.
DONE: list[tuple[str, str, str, dict[str, Any]]] = [
    ("", f"{CHANNEL} MCAUSER('app') SHARECNV(1) MAXINST(5) HBINT(60)", "AMQ8014", {"mcauser": "app", "instances": 5}),
    ("", f"{CHANNEL} TRPTYPE(TCP) MONCHL(OFF) KAINT(AUTO) DISCINT(0)", "AMQ8014", {"sharing": 10}),
    (f"{CHANNEL} SSLCIPH(ANY_TLS12)", "ALTER CHL(A) SSLCAUTH(OPTIONAL)", "AMQ8016", {"cipher": "ANY_TLS12"}),
    (f"{CHANNEL} MCAUSER('app')", f"{CHANNEL} REPLACE", "AMQ8014", {"mcauser": ""}),
    (f"{CHANNEL} MCAUSER('app')", "DEFINE CHL(B) CHLTYPE(SVRCONN) LIKE(A)", "AMQ8014", {"mcauser": "app"}),
    ("ALTER CHANNEL(SYSTEM.DEF.SVRCONN) CHLTYPE(SVRCONN) MCAUSER('none')", CHANNEL, "AMQ8014", {"mcauser": "none"}),
    (CHANNEL, "DELETE CHANNEL(A)", "AMQ8015", {}),
    (CHANNEL, "START CHANNEL(A)", "AMQ8018", {}),
    (CHANNEL, "DISPLAY CHANNEL(A) MCAUSER XMITQ", "AMQ8414", {"CHLTYPE": "SVRCONN", "MCAUSER": "", "XMITQ": ""}),
    ("", "DISPLAY CHANNEL(SYSTEM.D*) CHLTYPE(SVRCONN) MAXINST", "AMQ8414", {"MAXINST": 999_999_999}),
    ("", MAP, "AMQ8877", {"type": "USERMAP", "client_user": "bob", "mcauser": "app"}),
    (MAP, MAP.replace("'app'", "'x'") + " ACTION(REPLACE)", "AMQ8877", {"mcauser": "x"}),
    (MAP, "SET CHLAUTH(A) TYPE(USERMAP) CLNTUSER('bob') ACTION(REMOVE)", "AMQ8877", {}),
    (MAP, "SET CHLAUTH(A) TYPE(USERMAP) ACTION(REMOVEALL)", "AMQ8877", {}),
    ("", "SET CHLAUTH(A) TYPE(USERMAP) ACTION(REMOVEALL)", "AMQ8877", {}),
    (BLOCK, "SET CHLAUTH(A) TYPE(BLOCKUSER) USERLIST('joe')", "AMQ8877", {"user_list": ["bob", "eve", "joe"]}),
    (BLOCK, "SET CHLAUTH(A) TYPE(BLOCKUSER) USERLIST('joe') ACTION(REPLACE)", "AMQ8877", {"user_list": ["joe"]}),
    (BLOCK, "SET CHLAUTH(A) TYPE(BLOCKUSER) USERLIST('bob') ACTION(REMOVE)", "AMQ8877", {"user_list": ["eve"]}),
    ("", "SET CHLAUTH('*') TYPE(BLOCKADDR) ADDRLIST('10.1.*', '::1') WARN(YES)", "AMQ8877", {"warns": True}),
    ("", f"{ADDRESS} USERSRC(NOACCESS) DESCR('none')", "AMQ8877", {"user_source": "NOACCESS"}),
    ("", f"{ADDRESS} USERSRC(CHANNEL) CHCKCLNT(REQUIRED)", "AMQ8877", {"check_client": "REQUIRED"}),
    ("", "SET CHLAUTH(A) TYPE(SSLPEERMAP) SSLPEER('O=a') SSLCERTI('CN=c') MCAUSER(X)", "AMQ8877", {"issuer": "CN=c"}),
    ("", "DISPLAY CHLAUTH(*) TYPE(BLOCKUSER)", "AMQ8878", {"CHLAUTH": "*", "USERLIST": ("*MQADMIN",)}),
    (MAP, "DISPLAY CHLAUTH(A) MATCH(EXACT) ALL", "AMQ8878", {"CLNTUSER": "bob", "CHCKCLNT": "ASQMGR", "WARN": "NO"}),
    ("", "DEFINE AUTHINFO(P) AUTHTYPE(IDPWOS) CHCKCLNT(NONE) AUTHENMD(PAM) FAILDLAY(2)", "AMQ8563", {"method": "PAM"}),
    ("", "ALTER AUTHINFO(SYSTEM.DEFAULT.AUTHINFO.IDPWOS) AUTHTYPE(IDPWOS) CHCKCLNT(NONE)", "AMQ8567", {"adopts": True}),
    ("DEFINE AUTHINFO(P) AUTHTYPE(IDPWOS)", "ALTER QMGR CONNAUTH(P) CHLAUTH(DISABLED)", "AMQ8005", {"connauth": "P"}),
    ("", "ALTER QMGR CONNAUTH(' ')", "AMQ8005", {"connauth": ""}),
    ("", "ALTER QMGR SSLKEYR('/k')", "AMQ8005", {"key_repository": "/k"}),
    ("ALTER QMGR CERTLABL('l')", "DISPLAY QMGR CERTLABL", "AMQ8408", {"CERTLABL": "l"}),
    ("DEFINE AUTHINFO(P) AUTHTYPE(IDPWOS)", "DELETE AUTHINFO(P)", "AMQ8564", {}),
    ("", "DISPLAY AUTHINFO(*) AUTHTYPE(IDPWOS) CHCKCLNT", "AMQ8566", {"CHCKCLNT": "REQDADM"}),
    ("", "REFRESH SECURITY(*) TYPE(CONNAUTH)", "AMQ8560", {}),
    ("", f"{LISTENER} CONTROL(QMGR) IPADDR('127.0.0.1') BACKLOG(5)", "AMQ8626", {"port": 1500, "is_started": None}),
    (LISTENER, "START LISTENER(L)", "AMQ8021", {"is_started": True}),
    (LISTENER, "STOP LISTENER(L) IGNSTATE(YES)", "AMQ8706", {"is_started": False}),
    (f"{LISTENER}\nSTART LSTR(L)", f"{LISTENER} REPLACE DESCR('d')", "AMQ8626", {"is_started": True}),
    ("", "STOP LISTENER(NONE) IGNSTATE(YES)", "AMQ8706", {}),
    (LISTENER, "ALTER LISTENER(L) TRPTYPE(TCP) PORT(1501)", "AMQ8623", {"port": 1501}),
    (LISTENER, "DELETE LISTENER(L)", "AMQ8628", {}),
    (LISTENER, "DISPLAY LISTENER(L*) PORT", "AMQ8630", {"LISTENER": "L", "PORT": 1500}),
    ("ALTER QLOCAL(SYSTEM.DEFAULT.LOCAL.QUEUE) MAXDEPTH(9)", "DEFINE QLOCAL(Q)", "AMQ8006", {"max_depth": 9}),
    ("ALTER QALIAS(SYSTEM.DEFAULT.ALIAS.QUEUE) DESCR('d')", "DEFINE QA(Q) TARGET(X)", "AMQ8006", {"description": "d"}),
    ("ALTER QMODEL(SYSTEM.DEFAULT.MODEL.QUEUE) DEFPSIST(YES)", "DEFINE QM(M)", "AMQ8006", {"def_persistent": True}),
    ("ALTER NL(SYSTEM.DEFAULT.NAMELIST) DESCR('d')", "DEFINE NL(N)", "AMQ8552", {"description": "d"}),
    ("", "DISPLAY QUEUE(SYSTEM.DEFAULT.LOCAL.QUEUE) TYPE MAXDEPTH", "AMQ8409", {"TYPE": "QLOCAL"}),
    ("", "DEFINE QLOCAL(+QMNAME+.IN) DESCR('of +QMNAME+')", "AMQ8006", {"name": "QM1.IN", "description": "of QM1"}),
    (
        "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) PRINCIPAL('app') AUTHADD(GET,INQ)",
        "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) PRINCIPAL('app') AUTHRMV(ALL) AUTHADD(PUT)",
        "AMQ8862",
        {"authorities": ["PUT"]},
    ),
]  # fmt: skip


def told(answer: Answer) -> dict[str, Any]:
    """Of what a command showed the first object, else the last definition that it stored."""
    if answer.objects:
        return dict(answer.objects[0])
    stored = [change.definition for change in answer.changes if isinstance(change, DefinitionStored)]
    return {} if not stored else vars_of(stored[-1])


def vars_of(definition: Any) -> dict[str, Any]:
    again = definition_of(kind_of(definition), state_of(definition))
    assert again == definition
    return {
        name: list(value) if isinstance(value := getattr(again, name), tuple) else value
        for name in type(again).__dataclass_fields__
    }


@pytest.mark.rule("LSN-61")
@pytest.mark.parametrize(("before", "command", "amq", "some"), DONE, ids=[row[1] for row in DONE])
def test_what_scripts_say_of_clients_is_done(before: str, command: str, amq: str, some: dict[str, Any]) -> None:
    *prepared, answer = answers(before, command)
    assert all(each.ok for each in prepared)
    assert (answer.ok, answer.amq) == (True, amq), answer.lines
    found = told(answer)
    assert {key: found.get(key) for key in some} == some


REFUSED = [
    ("", "DEFINE CHANNEL(A) CHLTYPE(CLNTCONN) CONNAME('h')", "AMQ8404", "only channels of clients"),
    ("", "ALTER CHANNEL(SYSTEM.DEF.AMQP) CHLTYPE(AMQP) MCAUSER('app')", "AMQ8404", "only channels of clients"),
    ("", f"{CHANNEL} SCYEXIT('x(y)')", "AMQ8404", "calls no exits"),
    ("", f"{CHANNEL} MCAUSER('two words')", "AMQ8404", "no blanks"),
    ("", f"{CHANNEL} SSLPEER('somebody')", "AMQ8404", "distinguished name"),
    ("", f"{CHANNEL} SSLCIPH(RC4_MD5_US)", "AMQ8404", "TLS 1.2"),
    ("", f"{CHANNEL} TRPTYPE(LU62)", "AMQ8404", "only TRPTYPE(TCP)"),
    (CHANNEL, "DEFINE CHANNEL(A) CHLTYPE(CLUSRCVR) REPLACE", "AMQ8404", "cannot be changed"),
    ("", "START CHANNEL(NONE)", "AMQ8147", ""),
    ("", "DELETE CHANNEL(SYSTEM.DEF.SVRCONN)", "AMQ8404", "always there"),
    ("", "SET CHLAUTH(A) TYPE(QMGRMAP) QMNAME(QM2) USERSRC(CHANNEL)", "AMQ8404", "between queue managers"),
    ("", "SET CHLAUTH(A) ADDRESS('*') USERSRC(CHANNEL)", "AMQ8421", "TYPE"),
    ("", "SET CHLAUTH(A) TYPE(ADDRESSMAP) USERSRC(CHANNEL)", "AMQ8421", "ADDRESS"),
    ("", "SET CHLAUTH(A) TYPE(BLOCKUSER)", "AMQ8421", "USERLIST"),
    ("", "SET CHLAUTH(A) TYPE(BLOCKADDR) ADDRLIST('10.*')", "AMQ8405", "for all channels"),
    ("", ADDRESS, "AMQ8421", "MCAUSER"),
    ("", f"{ADDRESS} USERSRC(CHANNEL) MCAUSER('x')", "AMQ8404", "USERSRC(MAP)"),
    ("", f"{ADDRESS} USERSRC(CHANNEL) WARN(YES)", "AMQ8404", "NOACCESS"),
    ("", f"{ADDRESS} USERSRC(CHANNEL) USERLIST('x')", "AMQ8405", "USERLIST"),
    ("", "SET CHLAUTH(A) TYPE(ADDRESSMAP) ADDRESS('host.example') USERSRC(CHANNEL)", "AMQ8404", "names of hosts"),
    ("", "SET CHLAUTH(A) TYPE(SSLPEERMAP) SSLPEER('x') USERSRC(CHANNEL)", "AMQ8404", "distinguished name"),
    (MAP, MAP, "AMQ8404", "already"),
    ("", MAP + " ACTION(REMOVE)", "AMQ8404", "no such"),
    (BLOCK, "SET CHLAUTH(A) TYPE(BLOCKUSER) USERLIST('joe') ACTION(REMOVE)", "AMQ8404", "no such"),
    ("", "SET CHLAUTH(A) TYPE(BLOCKUSER) USERLIST('joe') ACTION(REMOVEALL)", "AMQ8405", "USERLIST"),
    ("", "DISPLAY CHLAUTH(NONE)", "AMQ8147", ""),
    ("", "DISPLAY CHLAUTH(A) MATCH(RUNCHECK)", "AMQ8421", "ADDRESS"),
    ("", "DEFINE AUTHINFO(L) AUTHTYPE(IDPWLDAP) CONNAME('h')", "AMQ8404", "no LDAP"),
    ("", "DEFINE AUTHINFO(L) CHCKCLNT(NONE)", "AMQ8421", "AUTHTYPE"),
    ("", "ALTER QMGR CONNAUTH(NONE)", "AMQ8147", "AUTHINFO"),
    ("", "DELETE AUTHINFO(SYSTEM.DEFAULT.AUTHINFO.IDPWOS)", "AMQ8404", "always there"),
    ("DEFINE AUTHINFO(P) AUTHTYPE(IDPWOS)\nALTER QMGR CONNAUTH(P)", "DELETE AUTHINFO(P)", "AMQ8148", ""),
    ("", f"{LISTENER} IPADDR('host.example')", "AMQ8404", "IPADDR"),
    ("", "DEFINE LISTENER(L) TRPTYPE(NETBIOS)", "AMQ8404", "only TRPTYPE(TCP)"),
    (LISTENER, "STOP LISTENER(L)", "AMQ8404", "already"),
    ("", "START LISTENER(NONE)", "AMQ8147", ""),
    ("", "DEFINE SERVICE(S) CONTROL(QMGR) STARTCMD('x')", "AMQ8404", "no SERVICE"),
    ("", "START SERVICE(S)", "AMQ8404", "no SERVICE"),
    ("", "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('g') AUTHRMV(PUT) AUTHADD(PUT)", "AMQ8425", "in common"),
]  # fmt: skip


@pytest.mark.rule("LSN-61")
@pytest.mark.parametrize(("before", "command", "amq", "why"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_is_not_there_is_refused_with_a_sentence(before: str, command: str, amq: str, why: str) -> None:
    *prepared, answer = answers(before, command)
    assert all(each.ok for each in prepared)
    assert (answer.ok, answer.amq) == (False, amq), answer.lines
    assert why in " ".join(answer.lines)
    assert answer.changes == ()


def test_the_first_rule_keeps_those_of_a_new_queue_manager() -> None:
    *_, shown = answers("SET CHLAUTH('SYSTEM.*') TYPE(ADDRESSMAP) ADDRESS('*') ACTION(REMOVE)", "DISPLAY CHLAUTH(*)")
    assert [(row["CHLAUTH"], row["TYPE"]) for row in shown.objects] == [
        ("*", "BLOCKUSER"),
        ("SYSTEM.ADMIN.SVRCONN", "ADDRESSMAP"),
    ]


# Which record decides: address, user, and the type of the record that DISPLAY CHLAUTH shows; None for none.
CHECKED = [
    ("127.0.0.1", "bob", "USERMAP"),
    ("10.1.1.1", "joe", "ADDRESSMAP"),
    ("10.9.1.1", "bob", "BLOCKADDR"),
    ("127.0.0.1", "mqm", "BLOCKUSER"),
    ("127.0.0.1", "root2", "BLOCKUSER"),
    ("127.0.0.1", "joe", None),
]


@pytest.mark.parametrize(("address", "user", "kind"), CHECKED)
def test_runcheck_shows_the_record_that_decides(address: str, user: str, kind: str | None) -> None:
    rules = f"{CHANNEL}\n{MAP}\n{ADDRESS} USERSRC(NOACCESS)\nSET CHLAUTH('*') TYPE(BLOCKADDR) ADDRLIST('10.9.*')"
    *_, shown = answers(rules, f"DISPLAY CHLAUTH(A) MATCH(RUNCHECK) ADDRESS('{address}') CLNTUSER('{user}')")
    assert ([row["TYPE"] for row in shown.objects] or [None]) == [kind]


def test_what_was_written_in_small_letters_without_quotes_is_said() -> None:
    for command in (f"{CHANNEL} MCAUSER(app)", MAP.replace("'app'", "app"), BLOCK.replace("'bob'", "bob")):
        (answer,) = answers(command)
        assert "without quotes it was read in capitals" in " ".join(answer.notes), command
