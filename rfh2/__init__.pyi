from .captured import CapturedMessage as CapturedMessage
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
from .message import Header as Header, Message as Message, decode as decode, encode as encode
from .mqmd import Mde as Mde, Mqmd as Mqmd, Xqh as Xqh
from .pcf import Eph as Eph, Pcf as Pcf, decode_pcf as decode_pcf
from .rfh1 import Rfh1 as Rfh1
from .rfh2 import Rfh2 as Rfh2

__version__: str
