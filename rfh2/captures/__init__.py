"""Capture files: reads the files that tools save of queues and channels as captured messages, and writes them."""

from rfh2.captures.reading import FORMATS, CaptureFormat, detect, read_captures, write_captures
from rfh2.captures.record import CaptureRecord, Numbering, put_time

__all__ = [
    "FORMATS",
    "CaptureFormat",
    "CaptureRecord",
    "Numbering",
    "detect",
    "put_time",
    "read_captures",
    "write_captures",
]
