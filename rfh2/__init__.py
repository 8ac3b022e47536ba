"""The wire: bytes to typed values and back."""

from typing import TYPE_CHECKING

from rfh2.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from rfh2.captured import CapturedMessage
    from rfh2.chain import Header
    from rfh2.dlh import Dlh
    from rfh2.eph import Eph
    from rfh2.errors import (
        CaptureError,
        CommandError,
        DecodeError,
        EncodeError,
        MigrationError,
        QPubSubError,
        StoreError,
    )
    from rfh2.folders import Folder
    from rfh2.mde import Mde
    from rfh2.message import Message, decode, encode
    from rfh2.mqmd import Mqmd
    from rfh2.pcf import Pcf, decode_pcf
    from rfh2.prologue import SteppedHeader
    from rfh2.rfh1 import Rfh1
    from rfh2.rfh2 import Rfh2
    from rfh2.xqh import Xqh

__all__ = [
    "CaptureError",
    "CapturedMessage",
    "CommandError",
    "DecodeError",
    "Dlh",
    "EncodeError",
    "Eph",
    "Folder",
    "Header",
    "Mde",
    "Message",
    "MigrationError",
    "Mqmd",
    "Pcf",
    "QPubSubError",
    "Rfh1",
    "Rfh2",
    "SteppedHeader",
    "StoreError",
    "Xqh",
    "decode",
    "decode_pcf",
    "encode",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "rfh2.captured": "CapturedMessage",
        "rfh2.chain": "Header",
        "rfh2.dlh": "Dlh",
        "rfh2.eph": "Eph",
        "rfh2.errors": "CaptureError CommandError DecodeError EncodeError MigrationError QPubSubError StoreError",
        "rfh2.folders": "Folder",
        "rfh2.mde": "Mde",
        "rfh2.message": "Message decode encode",
        "rfh2.mqmd": "Mqmd",
        "rfh2.pcf": "Pcf decode_pcf",
        "rfh2.prologue": "SteppedHeader",
        "rfh2.rfh1": "Rfh1",
        "rfh2.rfh2": "Rfh2",
        "rfh2.xqh": "Xqh",
    },
)
