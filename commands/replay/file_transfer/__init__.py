"""What agents of IBM MQ Managed File Transfer publish on stream SYSTEM.FTE, as rows with typed columns."""

from commands.replay.file_transfer.reading import may_be_of_agent, rows_of, stream_topic
from commands.replay.file_transfer.rows import TABLES, AgentRow, ItemRow, Rows, TransferRow, columns_of

__all__ = [
    "TABLES",
    "AgentRow",
    "ItemRow",
    "Rows",
    "TransferRow",
    "columns_of",
    "may_be_of_agent",
    "rows_of",
    "stream_topic",
]
