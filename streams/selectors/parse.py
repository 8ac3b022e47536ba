"""Reading a selection string: one pass over its tokens, linear in its length (guide 6.7.4).

The guide warns that the time for nested parentheses in filter expressions grows exponentially. Here it does not,
because an LALR(1) parser never goes back. There is still a limit of nesting, because the tree is walked by recursion,
and MQ's own limit of length.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from rfh2.constants import MQ_SELECTOR_LENGTH
from streams.selectors.build import Builder, position
from streams.selectors.errors import Refusal
from streams.selectors.expressions import Condition

MAX_NESTING: Final = 100

_OPERAND_ENDS: Final = frozenset({"NAME", "EXACT", "APPROXIMATE", "STRING", "BYTES", "TRUE", "FALSE", "_NULL", "RPAR"})
_PREFIXES: Final = frozenset({"_NOT", "SIGN"})
_HINTS: Final = (
    ("'", "the string that begins here is not closed by a quote"),
    ('"', 'double quotes only hold byte strings: "0x" and pairs of hexadecimal digits'),
    ("[", "selection strings have no array subscripts"),
    ("!", "write <> for not equal"),
    ("&", "write AND"),
    ("|", "write OR; strings cannot be concatenated"),
)


def parse(text: str, language: type[Builder] = Builder) -> tuple[Condition, frozenset[str]]:
    """The tree of a selection string that is not blank, and the canonical names in it. Raises Refusal.

    language: what its names mean.
    """
    if len(text) > MQ_SELECTOR_LENGTH:
        raise Refusal(MQ_SELECTOR_LENGTH + 1, f"it is longer than {MQ_SELECTOR_LENGTH} characters")
    names = set()
    nesting = _Nesting()
    try:
        parsing = _parser(language).parse_interactive(text)
        for token in parsing.iter_parse():
            # Here, and not only when the rule is complete: a body filter is to be called one, whatever follows it
            if token.type == "NAME":
                names.add(language.canonical(str(token), position(token)))
            nesting.step(token)
        condition: Condition = parsing.feed_eof()  # type: ignore[no-untyped-call]
    except UnexpectedInput as error:
        raise _refusal(text, error) from error
    return condition, frozenset(names)


@cache
def _parser(language: type[Builder]) -> Lark:
    grammar = (files("streams.selectors") / "grammar.lark").read_text(encoding="utf-8")
    # Basic lexer: a keyword is a keyword everywhere, also where a name is expected
    return Lark(grammar, parser="lalr", lexer="basic", transformer=language())


class _Nesting:
    """Counts open parentheses and the prefix operators (NOT, signs) before them; each is a level of the tree."""

    def __init__(self) -> None:
        self._prefixes = [0]
        self._after_operand = False

    def step(self, token: Token) -> None:
        if token.type == "LPAR":
            self._prefixes.append(0)
        elif token.type == "RPAR":
            # One that closes nothing is the parser's to refuse
            if len(self._prefixes) > 1:
                self._prefixes.pop()
        elif token.type in _PREFIXES and not self._after_operand:
            self._prefixes[-1] += 1
        else:
            self._prefixes[-1] = 0
        self._after_operand = token.type in _OPERAND_ENDS
        if token.type in ("LPAR", *_PREFIXES) and len(self._prefixes) - 1 + sum(self._prefixes) > MAX_NESTING:
            raise Refusal(position(token), f"parentheses and prefix operators are nested deeper than {MAX_NESTING}")


def _refusal(text: str, error: UnexpectedInput) -> Refusal:
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return Refusal(len(text.rstrip()) + 1, "the string ends too early")
    if isinstance(error, UnexpectedToken):
        return Refusal(position(error.token), f"{error.token} is not expected here")
    assert isinstance(error, UnexpectedCharacters)
    at = error.pos_in_stream or 0
    character = text[at]
    for beginning, hint in _HINTS:
        if character == beginning:
            return Refusal(at + 1, hint)
    if character.isdigit() or character == ".":
        return Refusal(at + 1, "this is not a number (a leading 0 means octal, 0x hexadecimal)")
    if character.isalpha() or character in "_$":
        return Refusal(at + 1, "this is not a name")
    return Refusal(at + 1, f"the character {character!r} is not part of selection strings")
