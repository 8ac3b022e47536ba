"""Capture files: whatever a tool saved of a queue or a channel, read into captured messages and written again."""

from rfh2.captures.detect import detect
from rfh2.captures.formats import FORMATS, CaptureFormat
from rfh2.captures.reading import read_captures
from rfh2.captures.record import CaptureRecord
from rfh2.captures.writing import write_captures

__all__ = ["FORMATS", "CaptureFormat", "CaptureRecord", "detect", "read_captures", "write_captures"]
