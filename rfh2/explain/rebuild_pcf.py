"""PCF, rebuilt from its JSON form: the edited parts, and everything else unchanged.

A parameter is matched with the original by its Type and its number, in order; one whose value was not edited keeps its
bytes. The kind of a new one is given by its Type or, without a Type, by its value.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rfh2.ccsid import UTF8_CCSID, ByteOrder
from rfh2.errors import DecodeError, EncodeError
from rfh2.explain.describe import describe_parameter, describe_pcf
from rfh2.pcf import Cfbs, Cfgr, Cfil, Cfil64, Cfin, Cfin64, Cfsl, Cfst, Parameter, Pcf, decode_pcf
from rfh2.pcf_names import MQCFC_LAST, MQCFT_COMMAND

_INT32: Final = range(-(1 << 31), 1 << 31)
_DECIMAL: Final = re.compile(r"-?[0-9]{1,20}")


def rebuild_pcf(form: Mapping[str, Any], was: Pcf | None, order: ByteOrder = "little") -> Pcf:
    """The PCF message that *form* describes. was: as it was captured; order: of one that is new.

    Raises EncodeError for what cannot be put into bytes.
    """
    if was is None:
        was = Pcf(_number(form.get("Command"), "Command"), type=MQCFT_COMMAND, control=MQCFC_LAST, order=order)
    if form == describe_pcf(was):
        return was
    return replace(
        was,
        type=_number(form.get("Type", was.type), "Type"),
        command=_number(form.get("Command", was.command), "Command"),
        comp_code=_number(form.get("CompCode", was.comp_code), "CompCode"),
        reason=_number(form.get("Reason", was.reason), "Reason"),
        parameters=_parameters(_list(form.get("parameters", []), "parameters"), was.parameters),
    )


def pcf_data(form: Mapping[str, Any], was: Pcf | None, given: bytes | None, ccsid: int, *, keep_both: bool) -> bytes:
    """The bytes of the PCF message *form*, which was edited.

    given: what its hex was edited to, if it was: both must say the same, else with *keep_both* that is an error, and
    without it the form counts. ccsid: that of the PCF. Raises EncodeError.
    """
    if given is not None:
        try:
            if describe_pcf(decode_pcf(given, ccsid)) == form:
                return given
        except DecodeError:
            pass
        if keep_both:
            raise EncodeError("pcf and hex were both edited, and differ")
    return rebuild_pcf(form, was).encode()


def _parameters(forms: Sequence[Mapping[str, Any]], were: Sequence[Parameter]) -> tuple[Parameter, ...]:
    if not all(isinstance(form, Mapping) for form in forms):
        raise EncodeError("PCF parameters: each is an object with Parameter and value")
    left = _Left(were)
    return tuple([_parameter(form, left.taken(form)) for form in forms])


class _Left:
    """The original parameters not yet matched with a form: by their content, and by Type and number."""

    def __init__(self, were: Sequence[Parameter]) -> None:
        self._were = were
        self._alike: dict[Any, deque[int]] = {}
        self._same: dict[Any, deque[int]] = {}
        for at, each in enumerate(were):
            form = describe_parameter(each)
            self._alike.setdefault(_kind(form), deque()).append(at)
            self._same.setdefault(_hashable(form), deque()).append(at)
        self._gone: set[int] = set()

    def taken(self, form: Mapping[str, Any]) -> Parameter | None:
        """The original of *form*: the first parameter with the same content, else the first of its Type and number."""
        for found in (self._same.get(_hashable(form)), self._alike.get(_kind(form))):
            while found:
                at = found.popleft()
                if at not in self._gone:
                    self._gone.add(at)
                    return self._were[at]
        return None


def _kind(form: Mapping[str, Any]) -> Any:
    return _hashable((form.get("Parameter"), form.get("Type")))


def _hashable(value: Any) -> Any:
    """A JSON value as a key that is equal where the value is."""
    if isinstance(value, Mapping):
        return frozenset((name, _hashable(each)) for name, each in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _parameter(form: Mapping[str, Any], was: Parameter | None) -> Parameter:
    number = _number(form.get("Parameter"), "Parameter")
    if was is not None and describe_parameter(was) == form:
        return was
    value = form.get("value")
    kind = form.get("Type", _type_of(value)) if was is None else was.type
    make = _MAKERS.get(kind) if isinstance(kind, int) else None
    if make is None:
        raise EncodeError(f"PCF parameter {number} of Type {kind} cannot be edited; edit the hex")
    return make(number, value, was)


def _type_of(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return Cfin.type if value in _INT32 else Cfin64.type
    if isinstance(value, str):
        return Cfst.type
    if isinstance(value, list):
        found = {_type_of(item) for item in value}
        lists: dict[int | None, int] = {Cfin.type: Cfil.type, Cfin64.type: Cfil64.type, Cfst.type: Cfsl.type}
        return Cfgr.type if found == {None} else lists.get(max(found, key=lambda each: each or 0, default=None))
    return None


def _integer(number: int, value: Any, was: Any) -> Parameter:
    return Cfin(number, _number(value, number), _tail(was))


def _integer64(number: int, value: Any, was: Any) -> Parameter:
    return Cfin64(number, _number(value, number), 0 if was is None else was.reserved, _tail(was))


def _integers(number: int, value: Any, was: Any) -> Parameter:
    return Cfil(number, tuple([_number(each, number) for each in _list(value, number)]), _tail(was))


def _integers64(number: int, value: Any, was: Any) -> Parameter:
    return Cfil64(number, tuple([_number(each, number) for each in _list(value, number)]), _tail(was))


def _string(number: int, value: Any, was: Cfst | None) -> Parameter:
    if was is None:
        return Cfst.of(number, _text(value, number), UTF8_CCSID)
    data = _encoded(_text(value, number), was.charset, number)
    return replace(was, data=data, tail=bytes(-len(data) % 4))


def _strings(number: int, value: Any, was: Cfsl | None) -> Parameter:
    texts = [_text(each, number) for each in _list(value, number)]
    if was is None:
        return Cfsl.of(number, tuple(texts), UTF8_CCSID)
    strings = [_encoded(text, was.charset, number) for text in texts]
    size = max([was.string_length, *map(len, strings)])
    blank = _encoded(" ", was.charset, number)
    filled = tuple([string + blank * ((size - len(string)) // len(blank)) for string in strings])
    return replace(was, strings=filled, string_length=size, tail=bytes(-size * len(filled) % 4))


def _bytes(number: int, value: Any, _was: Any) -> Parameter:
    try:
        return Cfbs.of(number, bytes.fromhex(_text(value, number)))
    except ValueError as error:
        raise EncodeError(f"PCF parameter {number}: {value!r} is not hex") from error


def _group(number: int, value: Any, was: Any) -> Parameter:
    members = _parameters(_list(value, number), () if was is None else was.members)
    return Cfgr(number, members, _tail(was))


_MAKERS: Final[dict[Any, Callable[[int, Any, Any], Parameter]]] = {
    Cfin.type: _integer,
    Cfin64.type: _integer64,
    Cfil.type: _integers,
    Cfil64.type: _integers64,
    Cfst.type: _string,
    Cfsl.type: _strings,
    Cfbs.type: _bytes,
    Cfgr.type: _group,
}


def _tail(was: Any) -> bytes:
    tail: bytes = b"" if was is None else was.tail
    return tail


def _number(value: Any, what: int | str) -> int:
    # Great ones are strings (``form.number``); other programs write 3 as 3.0.
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return int(value)
    raise EncodeError(f"PCF parameter {what}: {value!r} is not a number")


def _text(value: Any, number: int) -> str:
    if not isinstance(value, str):
        raise EncodeError(f"PCF parameter {number}: {value!r} is not text")
    return value


def _list(value: Any, number: int | str) -> list[Any]:
    if not isinstance(value, list):
        raise EncodeError(f"PCF parameter {number}: {value!r} is not a list")
    return value


def _encoded(text: str, charset: str, number: int) -> bytes:
    try:
        return text.encode(charset)
    except (LookupError, UnicodeEncodeError) as error:
        why = charset or "a CCSID that is not known"
        raise EncodeError(f"PCF parameter {number}: {text!r} cannot be written in {why}") from error
