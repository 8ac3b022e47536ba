"""Reading a selection string: one pass over its tokens, linear in its length (guide 6.7.4).

The guide warns that the time for nested parentheses in filter expressions grows exponentially. Here it does not,
because an LALR(1) parser never goes back. There is still a limit of nesting, because the tree is walked by recursion,
and MQ's own limit of length.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Final, TypeVar

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from rfh2.constants import MQ_SELECTOR_LENGTH
from streams.selectors import expressions as tree
from streams.selectors.compile import check_escapes
from streams.selectors.properties import FILTERS, MQMD_PREFIX, MQRFH2_PREFIX, Language

# From the grammar's rules to a typed tree: what the parser calls each time it has completed a rule.
#
# This module refuses what is wrong for every message. A comparison of a number with a string, for example, is true
# for no message; without the refusal, the subscription would receive nothing and its user would not notice.

Node = tree.Operand | tree.Condition
OperandT = TypeVar("OperandT", tree.Literal, tree.Operand)


def position(token: Token) -> int:
    """Where *token* begins in the selection string, counting from 1."""
    return (token.start_pos or 0) + 1


@v_args(inline=True)
class _Builder(Transformer[Token, tree.Condition]):
    """The parser's callbacks, one a rule of grammar.lark. They hold no state and raise Refusal."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._language = language

    def start(self, node: Node) -> tree.Condition:
        return _condition(node)

    def any_of(self, *nodes: Node) -> tree.Condition:
        return tree.AnyOf(tuple(_condition(node) for node in nodes))

    def all_of(self, *nodes: Node) -> tree.Condition:
        return tree.AllOf(tuple(_condition(node) for node in nodes))

    def negation(self, node: Node) -> tree.Condition:
        return tree.Not(_condition(node))

    def comparison(self, left: Node, operator: Token, right: Node) -> tree.Condition:
        return self._compared(_operand(left), tree.Comparison(operator), _operand(right))

    def between(self, node: Node, low: Node, high: Node) -> tree.Condition:
        operand = _operand(node)
        return tree.AllOf(
            (
                self._compared(operand, tree.Comparison.GREATER_OR_EQUAL, _operand(low)),
                self._compared(operand, tree.Comparison.LESS_OR_EQUAL, _operand(high)),
            )
        )

    def not_between(self, node: Node, low: Node, high: Node) -> tree.Condition:
        operand = _operand(node)
        return tree.AnyOf(
            (
                _comparison(operand, tree.Comparison.LESS, _operand(low)),
                _comparison(operand, tree.Comparison.GREATER, _operand(high)),
            )
        )

    def is_in(self, node: Node, *elements: tree.Literal) -> tree.Condition:
        operand = _operand(node)
        for element in elements:
            if (given := tree.kind_of(element.value)) not in self._language.listed:
                raise tree.Refusal(
                    element.at, f"IN takes a list of strings, not a {given}; write = for each, joined by OR"
                )
        elements = tuple(self._meant(element, operand) for element in elements)
        elements = tuple(_as_clients_write(element, operand) for element in elements)
        kind = _kind(operand) or tree.kind_of(elements[0].value)
        for element in elements:
            if tree.kind_of(element.value) is not kind:
                raise tree.Refusal(element.at, f"a {tree.kind_of(element.value)} cannot be compared with a {kind}")
        return tree.IsIn(operand, tuple(_stripped(element, operand).value for element in elements))

    def is_not_in(self, node: Node, *elements: tree.Literal) -> tree.Condition:
        return tree.Not(self.is_in(node, *elements))

    def like(self, node: Node, pattern: Token, escape: Token | None) -> tree.Condition:
        operand = _operand(node)
        if _kind(operand) not in (tree.ValueKind.STRING, None):
            raise tree.Refusal(_start(operand), f"LIKE takes a string, not a {_kind(operand)}")
        escape_text = None if escape is None else _unquoted(escape)
        if escape is not None and len(escape_text or "") != 1:
            raise tree.Refusal(position(escape), "ESCAPE takes exactly one character")
        check_escapes(_unquoted(pattern), escape_text, position(pattern))
        return tree.Like(operand, _unquoted(pattern), escape_text)

    def not_like(self, node: Node, pattern: Token, escape: Token | None) -> tree.Condition:
        return tree.Not(self.like(node, pattern, escape))

    def is_null(self, node: Node) -> tree.Condition:
        return tree.IsNull(_operand(node))

    def is_not_null(self, node: Node) -> tree.Condition:
        return tree.Not(self.is_null(node))

    def arithmetic(self, first: Node, *rest: Node | Token) -> tree.Operand:
        operands = [_number(node) for node in (first, *rest[1::2])]
        operators = [tree.Operator(str(operator)) for operator in rest[::2]]
        return tree.Arithmetic(operands[0].at, operands[0], tuple(zip(operators, operands[1:], strict=True)))

    def signed(self, sign: Token, node: Node) -> tree.Operand:
        operand = _number(node)
        if isinstance(operand, tree.Literal) and isinstance(operand.value, int | float):
            return tree.Literal(position(sign), -operand.value if sign == "-" else operand.value)
        return tree.Arithmetic(position(sign), tree.Literal(position(sign), 0), ((tree.Operator(sign), operand),))

    def name(self, token: Token) -> tree.Operand:
        name = self._language.canonical(str(token), position(token))
        return tree.Name(position(token), name, self._language.kind(name))

    def string(self, token: Token) -> tree.Operand:
        return tree.Literal(position(token), _unquoted(token))

    def bytes_(self, token: Token) -> tree.Operand:
        return tree.Literal(position(token), bytes.fromhex(token[3:-1] if token[0] == '"' else token[2:-1]))

    def true(self, token: Token) -> tree.Operand:
        return tree.Literal(position(token), True)

    def false(self, token: Token) -> tree.Operand:
        return tree.Literal(position(token), False)

    def exact(self, token: Token) -> tree.Operand:
        digits = token.rstrip("lL").lower()
        base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
        # One more than the largest, because the sign of the smallest comes later; and int() has a bound of its own
        if len(digits) > 30 or (value := int(digits, base)) > tree.INT64_MAX + 1:
            raise tree.Refusal(position(token), "this number does not fit in 64 bits")
        return tree.Literal(position(token), value)

    def approximate(self, token: Token) -> tree.Operand:
        value = float(token.rstrip("fFdD"))
        if value == float("inf"):
            raise tree.Refusal(position(token), "this number is too large")
        return tree.Literal(position(token), value)

    def _compared(self, left: tree.Operand, comparison: tree.Comparison, right: tree.Operand) -> tree.Condition:
        return _comparison(self._meant(left, right), comparison, self._meant(right, left))

    def _meant(self, operand: OperandT, beside: tree.Operand) -> OperandT:
        if isinstance(operand, tree.Literal) and isinstance(beside, tree.Name):
            return self._language.beside(operand, beside.name)
        return operand


def _start(node: Node) -> int:
    while True:
        match node:
            case tree.Literal() | tree.Name() | tree.Arithmetic():
                return node.at
            case tree.Compare():
                node = node.left
            case tree.IsTrue() | tree.IsIn() | tree.Like() | tree.IsNull():
                node = node.operand
            case tree.Not():
                node = node.condition
            case tree.AllOf() | tree.AnyOf():
                node = node.conditions[0]


def _condition(node: Node) -> tree.Condition:
    match node:
        case tree.Literal() | tree.Name():
            if _kind(node) not in (tree.ValueKind.BOOLEAN, None):
                raise tree.Refusal(node.at, f"a condition is expected here, not a {_kind(node)}")
            return tree.IsTrue(node)
        case tree.Arithmetic():
            raise tree.Refusal(node.at, "a condition is expected here, not a number")
        case _:
            return node


def _operand(node: Node) -> tree.Operand:
    if isinstance(node, tree.Operand):
        return node
    raise tree.Refusal(_start(node), "a value is expected here, not a condition")


def _number(node: Node | Token) -> tree.Operand:
    assert not isinstance(node, Token)
    operand = _operand(node)
    if _kind(operand) not in (tree.ValueKind.NUMBER, None):
        raise tree.Refusal(operand.at, f"arithmetic takes numbers, not a {_kind(operand)}")
    return operand


def _kind(operand: tree.Operand) -> tree.ValueKind | None:
    match operand:
        case tree.Literal():
            return tree.kind_of(operand.value)
        case tree.Name():
            return operand.kind
        case tree.Arithmetic():
            return tree.ValueKind.NUMBER


def _comparison(left: tree.Operand, comparison: tree.Comparison, right: tree.Operand) -> tree.Condition:
    left, right = _as_clients_write(left, right), _as_clients_write(right, left)
    kinds = _kind(left), _kind(right)
    for operand, kind in zip((left, right), kinds, strict=True):
        if comparison.is_ordering and kind not in (tree.ValueKind.NUMBER, None):
            raise tree.Refusal(operand.at, f"only numbers are ordered, and this is a {kind}")
    if None not in kinds and kinds[0] is not kinds[1]:
        raise tree.Refusal(right.at, f"a {kinds[1]} cannot be compared with a {kinds[0]}")
    return tree.Compare(comparison, _stripped(left, right), _stripped(right, left))


def _stripped(operand: OperandT, beside: tree.Operand) -> OperandT:
    # An MQMD's character fields are padded, and are looked up without the padding; so is what is compared with them
    if isinstance(operand, tree.Literal) and isinstance(operand.value, str) and _is_mqmd(beside):
        return replace(operand, value=operand.value.rstrip(" "))
    return operand


def _is_mqmd(operand: tree.Operand) -> bool:
    return isinstance(operand, tree.Name) and operand.name.startswith((MQMD_PREFIX, MQRFH2_PREFIX))


_ID: Final = "ID:"
_ID_LENGTHS: Final = {"AccountingToken": 32, "CorrelId": 24, "GroupId": 24, "MsgId": 24}
_MODES: Final = {"NON_PERSISTENT": 1, "PERSISTENT": 2}


def _as_clients_write(operand: OperandT, beside: tree.Operand) -> OperandT:
    """The meaning of *operand* beside *beside*: a JMS client passes on the literals that a JMS program wrote.

    'ID:' and hex digits mean an identifier of the MQMD; shorter ones are filled with nulls. The words of
    JMSDeliveryMode mean values of jms.Dlv.
    """
    if not (isinstance(operand, tree.Literal) and isinstance(operand.value, str) and isinstance(beside, tree.Name)):
        return operand
    text = operand.value
    if beside.name == "jms.Dlv" and text in _MODES:
        return replace(operand, value=_MODES[text])
    length = _ID_LENGTHS.get(beside.name.removeprefix(MQMD_PREFIX)) if _is_mqmd(beside) else None
    if length is None or not text.startswith(_ID):
        return operand
    digits = text.removeprefix(_ID)
    if re.fullmatch("([0-9A-Fa-f]{2})*", digits) is None or len(digits) > 2 * length:
        raise tree.Refusal(
            operand.at, f"an identifier is 'ID:' and at most {2 * length} hexadecimal digits, two to a byte"
        )
    return replace(operand, value=bytes.fromhex(digits).ljust(length, b"\0"))


def _unquoted(token: Token) -> str:
    return token[1:-1].replace("''", "'")


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


def parse(text: str, language: Language = FILTERS) -> tuple[tree.Condition, frozenset[str]]:
    """The tree of a selection string that is not blank, and the canonical names in it. Raises Refusal."""
    if len(text) > MQ_SELECTOR_LENGTH:
        raise tree.Refusal(MQ_SELECTOR_LENGTH + 1, f"it is longer than {MQ_SELECTOR_LENGTH} characters")
    names = set()
    nesting = _Nesting()
    try:
        parsing = _parser(language).parse_interactive(text)
        for token in parsing.iter_parse():
            # Here, and not only when the rule is complete: a body filter is to be called one, whatever follows it
            if token.type == "NAME":
                names.add(language.canonical(str(token), position(token)))
            nesting.step(token)
        condition: tree.Condition = parsing.feed_eof()  # type: ignore[no-untyped-call]
    except UnexpectedInput as error:
        raise _refusal(text, error) from error
    return condition, frozenset(names)


@cache
def _parser(language: Language) -> Lark:
    grammar = (files("streams.selectors") / "grammar.lark").read_text(encoding="utf-8")
    # Basic lexer: a keyword is a keyword everywhere, also where a name is expected
    return Lark(grammar, parser="lalr", lexer="basic", transformer=_Builder(language))


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
            raise tree.Refusal(
                position(token), f"parentheses and prefix operators are nested deeper than {MAX_NESTING}"
            )


def _refusal(text: str, error: UnexpectedInput) -> tree.Refusal:
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return tree.Refusal(len(text.rstrip()) + 1, "the string ends too early")
    if isinstance(error, UnexpectedToken):
        return tree.Refusal(position(error.token), f"{error.token} is not expected here")
    assert isinstance(error, UnexpectedCharacters)
    at = error.pos_in_stream or 0
    character = text[at]
    for beginning, hint in _HINTS:
        if character == beginning:
            return tree.Refusal(at + 1, hint)
    if character.isdigit() or character == ".":
        return tree.Refusal(at + 1, "this is not a number (a leading 0 means octal, 0x hexadecimal)")
    if character.isalpha() or character in "_$":
        return tree.Refusal(at + 1, "this is not a name")
    return tree.Refusal(at + 1, f"the character {character!r} is not part of selection strings")
