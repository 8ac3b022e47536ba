"""The columns of every table that a capture becomes: what Spark, pyarrow and pandas give.

The schemas are made from these, and so is docs/columns.md. Types are spelled as in Spark's SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

PROBLEM_TYPE: Final = "struct<code:string,severity:string,offset:int,message:string>"


class Column(NamedTuple):
    """One column. null: when it has no value; empty for never."""

    name: str
    type: str
    about: str
    null: str = ""


Columns = tuple[Column, ...]

_NO_BODY: Final = "a problem"
_SEQ: Final = Column(
    "seq", "bigint", "The number of the message, in the order of arrival at its queue manager.", _NO_BODY
)

CAPTURED: Final[Columns] = (
    _SEQ,
    Column("time", "timestamp", "When the message arrived.", "not captured"),
    Column("qmgr", "string", "The queue manager at which the message was put.", "not captured: it is QM1 in a replay"),
    Column("queue", "string", "The queue on which the message was put.", _NO_BODY),
    Column("user", "string", "Who put the message.", "the UserIdentifier of the MQMD"),
    Column("md", "binary", "The MQMD, version 1 or 2.", "not captured: the defaults"),
    Column("body", "binary", "Headers and data.", _NO_BODY),
)
"""Captured messages: the columns of the Parquet form (docs/capture-formats.md)."""

READ: Final[Columns] = (
    *CAPTURED,
    Column("source", "string", "The file, or topic, partition and offset."),
    Column("problem", "string", "Why the record could not be read.", "the record is a message"),
    Column(
        "position",
        "bigint",
        "Where the record is in its file: a line from 1, in binary formats a byte, in Parquet a row from 0.",
        "in a later part of a file that was cut, and in a topic",
    ),
    Column("file_time", "timestamp", "When the file was last written.", "not a file"),
)
"""What ``spark.read.format("qpubsub")`` gives: a message; or a problem, and no message."""

PUTS: Final[Columns] = (
    Column("seq", "bigint", "The number of the message whose command caused the put."),
    Column("n", "int", "The place of the put among those of its command: 0, 1, 2 ..."),
    Column("at_qmgr", "string", "The queue manager at which the command arrived. seq, at_qmgr and n identify a put."),
    Column("kind", "string", "`publication`, `response` or `deadletter`."),
    Column("qmgr", "string", "The queue manager to which the put goes."),
    Column("queue", "string", "The queue to which the put goes."),
    Column(
        "topic", "string", "The topic string of the publication, with the prefix of its stream.", "not a publication"
    ),
    Column("sub_name", "string", "The name of the subscription.", "it has none, or not a publication"),
    Column("completion", "string", "The result of the command: `ok`, `warning` or `error`.", "a publication"),
    Column("reason", "int", "The first reason code.", "none"),
    Column("md", "binary", "The MQMD of the put."),
    Column("body", "binary", "Headers and data of the put."),
)
"""Puts: the Parquet form."""

_NOT_LATE: Final = "not a late message"

STREAMED: Final[Columns] = (
    *PUTS,
    Column("time", "timestamp", "When a late message arrived.", _NOT_LATE),
    Column("user", "string", "Who put a late message.", _NOT_LATE),
    Column("problem", "string", "Why a record could not be read.", "not a problem"),
)
"""What a continuous replay gives: puts, late messages and problems. The last two have ``late`` and ``problem`` as their
kind; a late message has its own descriptor and data, a problem has neither."""

MESSAGE: Final[Columns] = (
    Column(
        "msg_type", "int", "MsgType of the MQMD; this and the fields after it are the defaults where there is no MQMD."
    ),
    Column("report", "int", "Report of the MQMD."),
    Column("expiry", "int", "Expiry of the MQMD, in tenths of a second; -1 is unlimited."),
    Column("encoding", "int", "Encoding of the MQMD."),
    Column("ccsid", "int", "CodedCharSetId of the MQMD."),
    Column("format", "string", "Format of the MQMD."),
    Column("priority", "int", "Priority of the MQMD."),
    Column("persistence", "int", "Persistence of the MQMD."),
    Column("msg_id", "binary", "MsgId of the MQMD, 24 bytes."),
    Column("correl_id", "binary", "CorrelId of the MQMD, 24 bytes."),
    Column("reply_to_q", "string", "ReplyToQ of the MQMD."),
    Column("reply_to_qmgr", "string", "ReplyToQMgr of the MQMD."),
    Column("user_identifier", "string", "UserIdentifier of the MQMD."),
    Column("put_appl_name", "string", "PutApplName of the MQMD."),
    Column("headers", "array<string>", "The headers in their order, such as MQRFH2."),
    Column("family", "string", "The kind of header that has the command.", "no command"),
    Column("command", "string", "The command: `Publish`, `RegSub` ...", "no command"),
    Column("topics", "array<string>", "The topics of the command.", "no command"),
    Column("options", "array<string>", "The options of the command, as words.", "no command"),
    Column("stream_name", "string", "StreamName of the command.", "not given"),
    Column("sub_point", "string", "SubPoint of the command.", "not given"),
    Column("sub_name", "string", "SubName of the command.", "not given"),
    Column("sub_identity", "string", "SubIdentity of the command.", "not given"),
    Column("sub_user_data", "string", "SubUserData of the command.", "not given"),
    Column("filter", "string", "Filter of the command.", "not given"),
    Column("q_name", "string", "QName of the command.", "not given"),
    Column("qmgr_name", "string", "QMgrName of the command.", "not given"),
    Column(
        "properties", "map<string,string>", "The properties of the folder usr, as text; binary ones in hexadecimal."
    ),
    Column("body_format", "string", "The format of the data behind the headers."),
    Column("body_encoding", "int", "The encoding of that data."),
    Column("body_ccsid", "int", "The CCSID of that data."),
    Column("body_offset", "int", "Where that data begins in the body, in bytes."),
    Column("body_length", "int", "The length of that data, in bytes."),
    Column("body_text", "string", "That data as text.", "not text"),
    Column("problems", f"array<{PROBLEM_TYPE}>", "What is wrong with the message."),
)
"""What is decoded of a message."""

WITH_DECODED: Final[Columns] = (
    *MESSAGE,
    Column("body", "binary", "The data behind the headers."),
    Column("error", "string", "Why the message cannot be decoded, or its command is refused.", "nothing is wrong"),
)
"""What ``with_decoded`` adds to a DataFrame, each with a prefix to its name; all null where there is no message."""

DECODED: Final[Columns] = (*CAPTURED[:5], *MESSAGE)
"""Headers and commands, flat; of a message that cannot be decoded, what could be and the problem."""

TRANSLATED: Final[Columns] = (
    *CAPTURED[:5],
    Column("command", "string", "The command.", "it cannot be parsed"),
    Column("n", "int", "The place of the operation among those of its command: 0, 1, 2 ...", "no operation"),
    Column("operation", "string", "The operation: `Subscribe`, `PublishToTopic` ...", "no operation"),
    Column("mqsc", "string", "The operation in MQSC.", "no operation"),
    Column("pcf", "string", "The operation in PCF.", "no operation"),
    Column("mqi", "string", "The operation in MQI calls.", "no operation"),
    Column("reason", "int", "The first reason code of the command.", "none"),
    Column("problem", "string", "What is wrong with the command.", "nothing"),
)
"""One row for each operation. A command without operations has one row with the reason."""

DIFFERENCES: Final[Columns] = (
    *CAPTURED[:3],
    Column("user", "string", "Who put the message."),
    Column("program", "string", "PutApplName of the message."),
    Column("command", "string", "The command.", "it cannot be parsed"),
    Column("rule", "string", "The rule that explains the difference, D01 to D34, or `finding`."),
    Column(
        "since",
        "bigint",
        "The earlier message after which the versions had different subscriptions.",
        "no such message",
    ),
    Column("change", "string", "What differs."),
    Column("queue", "string", "The queue of the subscriber; for an answer, that to which it goes."),
    Column("sub_name", "string", "The name of the subscription.", "it has none, or an answer"),
    Column("sub_user", "string", "The user of the subscription.", "an answer"),
    Column("topic", "string", "The topic as the subscriber sees it.", "an answer"),
    Column("old", "string", "How many messages version 6 puts, or what its answer says."),
    Column("new", "string", "The same of version 7."),
    Column("why", "string", "The reason, for people."),
)
"""Differences between the versions, as ``commands.replay.differences`` has them."""

TABLES: Final[dict[str, Columns]] = {
    "captured": CAPTURED,
    "read": READ,
    "puts": PUTS,
    "streamed": STREAMED,
    "decoded": DECODED,
    "with-decoded": WITH_DECODED,
    "translated": TRANSLATED,
    "differences": DIFFERENCES,
}
"""All of them, by the names that docs/columns.md uses."""


def arrow_schema(columns: Columns) -> pa.Schema:
    """The schema of *columns* in Arrow; times are in microseconds, UTC. It needs pyarrow."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    strings = pa.list_(pa.string())
    names = ("code", "severity", "offset", "message")
    problem = pa.struct([(name, pa.int32() if name == "offset" else pa.string()) for name in names])
    types = {
        "bigint": pa.int64(),
        "int": pa.int32(),
        "string": pa.string(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "array<string>": strings,
        "map<string,string>": pa.map_(pa.string(), pa.string()),
        f"array<{PROBLEM_TYPE}>": pa.list_(problem),
    }
    return pa.schema([(column.name, types[column.type]) for column in columns])
