from .captured import CapturedMessage as CapturedMessage
from .chain import Header as Header
from .dlh import Dlh as Dlh
from .errors import (
    CaptureError as CaptureError,
    CommandError as CommandError,
    DecodeError as DecodeError,
    EncodeError as EncodeError,
    MigrationError as MigrationError,
    QPubSubError as QPubSubError,
    StoreError as StoreError,
)
from .folders import Folder as Folder
from .layouts import SteppedHeader as SteppedHeader
from .mde import Mde as Mde
from .message import Message as Message, decode as decode, encode as encode
from .mqmd import Mqmd as Mqmd
from .pcf import Eph as Eph, Pcf as Pcf, decode_pcf as decode_pcf
from .rfh1 import Rfh1 as Rfh1
from .rfh2 import Rfh2 as Rfh2
from .xqh import Xqh as Xqh

__version__: str
