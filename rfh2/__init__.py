"""The wire: bytes to typed values and back."""

import lazy_loader

# The names, and the modules that they are imported from when a program first uses them: __init__.pyi.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
