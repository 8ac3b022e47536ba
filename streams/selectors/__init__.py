"""Selection strings over message properties: parsed once, asked many times (guide 2.4.3, 6.7.4)."""

from streams.selectors.expressions import Lookup, Value
from streams.selectors.properties import message_properties
from streams.selectors.selector import Selector, compile_selector, registered_selector

__all__ = ["Lookup", "Selector", "Value", "compile_selector", "message_properties", "registered_selector"]
