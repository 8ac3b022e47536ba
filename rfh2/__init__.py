"""The wire: bytes to typed values and back."""

from rfh2.exports import exports_of

__getattr__, __dir__, __all__ = exports_of(__name__)
