"""The topic space: topics, wildcards, topic objects, subscriptions, retained publications (guide 2.5, 4.8, 6.1)."""

from rfh2.distribution import VERSION, exports_of

__version__ = VERSION
__getattr__, __dir__, __all__ = exports_of(__name__)
