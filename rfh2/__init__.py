"""The wire: bytes to typed values and back."""

from rfh2.distribution import VERSION, exports_of

__version__ = VERSION
__getattr__, __dir__, __all__ = exports_of(__name__)
