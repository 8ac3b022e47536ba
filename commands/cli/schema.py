"""``qpubsub schema``: the JSON Schema of what a verb prints with ``--json``.

The objects that verbs print with ``--json``: keys and types, from which ``qpubsub schema`` makes JSON Schemas.

Each object has ``format`` too, the number of its form: 1. It grows when a key goes or means something else; keys may be
added. Not here are captured messages and puts, which are forms of interchange with models of their own.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

import click
from pydantic import BaseModel, ConfigDict, create_model

from commands.broker.puts import Put
from commands.options.verb import verb
from commands.terminal.console import Console
from rfh2.captured import CapturedMessage

Object = dict[str, Any]
Rows = list[Object]
Names = list[str]
Count = dict[str, int]
Text = str | None


def _of(kind: Any, names: str) -> Object:
    return dict.fromkeys(names.split(), kind)


_OF_ESTATE: Final = (
    _of(Rows, "queue_managers findings")
    | _of(dict[str, Object], "states")
    | _of(Count, "sums")
    | _of(dict[str, Names], "prefixes")
    | _of(dict[str, str], "proposed_prefixes")
)
_ACTED: Final = _OF_ESTATE | _of(str, "action") | _of(Names, "not_begun") | _of(Rows, "acted already refused")
_MIGRATED: Final = (
    _of(str, "tool phase qmgr at fingerprint outcome")
    | _of(Text, "broker sources_until")
    | _of(Names, "options security")
    | _of(int, "items left_by_choice")
    | _of(Count, "counts steps")
    | _of(Object, "by_kind")
    | _of(Rows | Names, "warnings")
    | _of(Any, "problems")
    | _of(Rows, "visibility collisions fates")
    | _of(dict[str, Names], "tree")
)

FORMS: Final[dict[str, Object]] = {
    "decode": _of(str, "source")
    | _of(int, "index")
    | _of(Object | None, "mqmd body command captured")
    | _of(Rows, "headers problems"),
    "why": _of(int | None, "seq")
    | _of(Text, "topic queue sub_name detail")
    | _of(bool, "delivered")
    | _of(str, "reason"),
    "inspect": _of(int, "seq index")
    | _of(Text, "time qmgr command completion why")
    | _of(str, "queue")
    | _of(Names, "topics transcript")
    | _of(int | None, "reason")
    | _of(int | Rows, "puts")
    | _of(Rows, "changes")
    | _of(Object, "before after"),
    "replay": _of(int, "messages errors unreadable publications responses dead_letters")
    | _of(Count, "not_processed")
    | _of(Text, "output"),
    "analyse": _of(str, "semantics")
    | _of(int, "messages period_s")
    | _of(Text, "first_time last_time")
    | _of(Rows, "sections timeline"),
    "generate": _of(int, "messages") | _of(str, "output"),
    "dev": _of(str, "qmgr host conn_name channel user admin_channel admin_user home") | _of(int, "port pid"),
    "create": _of(str, "qmgr directory") | _of(bool, "strict"),
    "list": _of(str, "qmgr directory") | _of(Literal["Running", "Ended"], "status"),
    "run": _of(int, "commands publications responses dead_letters errors discarded linked"),
    "stop": _of(str, "qmgr") | _of(bool, "was_running"),
    "delete": _of(str, "qmgr directory"),
    "mqsc": _of(int, "number line")
    | _of(str, "command text")
    | _of(bool, "ok")
    | _of(Text, "amq")
    | _of(Rows, "objects")
    | _of(Any, "cleared")
    | _of(Names, "notes"),
    "status": _of(str, "qmgr psmode")
    | _of(bool, "strict authority_checked open_to_others")
    | _of(int, "subscriptions retained")
    | _of(Object, "activity input connections dead_letters processor database")
    | _of(dict[str, Object], "queues")
    | _of(Rows, "owed neighbours subscription_list? topic_list?")
    | _of(Object | None, "definitions"),
    "topics": _of(str, "topic")
    | _of(bool | int, "retained")
    | _of(int, "hidden_below")
    | _of(Names, "topic_objects marks")
    | _of(Rows, "subscriptions"),
    "export": _of(str, "qmgr to text") | _of(Names, "lost"),
    "console": _of(Text, "qmgr") | _of(str, "url") | _of(bool, "write"),
    "put": _of(str, "qmgr") | _of(int, "put problems") | _of(Count, "queues other_queue_managers"),
    "pub": _of(str, "qmgr queue topic") | _of(int, "put") | _of(bool, "processor"),
    "sub": _of(str, "topic data_hex") | _of(Text, "text") | _of(bool, "retained") | _of(Object, "properties"),
    "config check": _of(str, "file") | _of(bool, "valid") | _of(Rows, "findings"),
    "check": _of(str, "subject what") | _of(bool, "ok") | _of(Names, "mend"),
    "home copy": _of(str, "qmgr to") | _of(bool, "was_there"),
    "transactions": _of(str, "transaction xid?") | _of(int, "put? got?") | _of(bool, "committed? done?"),
    "passwd": _of(str, "user") | _of(Text, "hash users_file"),
    "shares status": _of(str, "name") | _of(Names, "bridges") | _of(Rows, "shares"),
    "shares where": _of(dict[str, str], "queues"),
    "shares put": _of(Count, "put") | _of(int, "problems"),
    "cleanup": _of(str, "qmgr level")
    | _of(bool, "rehearsed")
    | _of(int, "records unread_records")
    | _of(Rows, "items"),
    "extract": _of(str, "qmgr fingerprint? output") | _of(Count, "items?") | _of(int, "answers?"),
    "apply": _of(str, "qmgr where?")
    | _of(Names, "done? remaining?")
    | _of(int, "sent?")
    | _of(Text, "next?")
    | _of(Object | None, "stopped?")
    | _of(Rows, "rehearsal?"),
    "verify": _of(str, "qmgr where")
    | _of(Object, "plan")
    | _of(bool, "same")
    | _of(int, "compared other_subscriptions")
    | _of(Rows, "differences")
    | _of(int | Names, "expired")
    | _of(Object | None, "names"),
    "estate pack": _of(Rows, "applications") | _of(Count, "sums"),
    "estate diff": _of(str, "qmgr difference kind item") | _of(Text, "before after"),
    **dict.fromkeys(("strmqbrk", "migmbbrk"), _MIGRATED),
    "estate status": _OF_ESTATE,
    **{f"estate {verb}": _ACTED for verb in ("extract", "plan", "rehearse", "apply", "verify", "undo")},
}
"""By the words of the verb; a key with ``?`` is there with some options only."""


COMPARED: Final = ("differences", "shadow")
"""Verbs that print a ``DifferenceReport``."""


def model_of(words: str, extra: Literal["allow", "forbid"] = "allow") -> type[BaseModel]:
    """The model of what a verb prints with ``--json``: one object, or one on each line. extra: keys besides these."""
    if words in COMPARED:
        from commands.replay.differences.report import DifferenceReport  # noqa: PLC0415 - for this verb alone

        keys = {name: field.annotation for name, field in DifferenceReport.model_fields.items()}
    else:
        keys = FORMS[words]
    fields: Object = {
        name.removesuffix("?"): (kind, None if name.endswith("?") else ...) for name, kind in keys.items()
    }
    config = ConfigDict(extra=extra, title=f"qpubsub {words} --json")
    return create_model("Form", __config__=config, format=(Literal[1], ...), **fields)


_MESSAGES: Final[dict[str, type[BaseModel]]] = {"message": CapturedMessage, "put": Put}


@verb("qpubsub schema", "qpubsub schema status", "qpubsub schema estate plan", prints=True)
@click.argument("words", nargs=-1, metavar="[VERB]")
@click.option("--json", is_flag=True, expose_value=False, help="Print JSON; the default for a VERB.")
@click.pass_obj
def command(console: Console, words: tuple[str, ...]) -> None:
    """Print the JSON Schema of the objects that VERB prints with --json; without VERB, the names of all schemas.

    The schema named message is that of captured messages, which get, browse and convert print; that named put is of
    what replay and run --record write.
    """
    name = " ".join(words)
    if name and name not in (*FORMS, *COMPARED, *_MESSAGES):
        raise click.UsageError(f"there is no schema {name}. qpubsub schema lists them")
    if not name:
        for each in (*_MESSAGES, *COMPARED, *FORMS):
            console.data(each)
    else:
        model = _MESSAGES.get(name) or model_of(name)
        for line in json.dumps(model.model_json_schema(), ensure_ascii=False, indent=2).splitlines():
            console.data(line)
