from commands import *
from migrate import *
from rfh2 import *
from streams import *

__version__: str
