"""Formulas in LaTeX or plain text as small trees: rules M5 and M6 of RULES.md.

`read` takes hostile text: it is bounded in length and depth, evaluates nothing, and raises `Unreadable` for what its
grammar does not know; the caller then compares texts. What trees are worth is the business of `values.py`.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from prill.answers.latex import ROW, STYLED, Token, tidy, tokens

LONGEST = 1500
"""Characters of a formula; beyond it only texts are compared."""
DEEPEST = 40
"""Brackets in brackets."""


class Unreadable(ValueError):
    """Not a formula of this grammar."""


@dataclass(frozen=True)
class Num:
    """A rational number, exactly."""

    value: Fraction


@dataclass(frozen=True)
class Sym:
    """A letter, or a name that stands for itself (`x_1`, `even`, `1010_2`)."""

    name: str


@dataclass(frozen=True)
class Op:
    """An operation or function: `+ * / inv ^ neg pm mp sqrt root abs ! sin ln …`; sums and products are flat."""

    name: str
    args: tuple["Tree", ...]


@dataclass(frozen=True)
class Seq:
    """Several things. Kinds: `list`, `set`, `()`, `[)` and so on, `matrix`, `row`, `union`, `:`, and a relation as
    its sign (`=`, `<`, `in` …) with two sides."""

    kind: str
    items: tuple["Tree", ...]


Tree: TypeAlias = Num | Sym | Op | Seq

# --- the grammar --------------------------------------------------------------------------------------------------

_RELATIONS = frozenset("=<>≤≥≠∈")
_FUNCTIONS = frozenset(
    f"\\{name}"
    for name in (
        *("sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
        *("ln", "log", "lg", "exp"),
    )
)
_OPAQUE = frozenset(
    f"\\{name}"
    for name in ("vec", "overline", "hat", "bar", "tilde", "overrightarrow", "widehat", "mathbb", "mathcal", "mathfrak")
)
"""Commands that make a name of what they hold."""
_UNKNOWN = frozenset(
    f"\\{name}"
    for name in ("ldots", "cdots", "dots", "to", "mapsto", "end", "mod", "pmod", "bmod", "cap", "setminus", "over")
)
_MATRICES = frozenset(f"{kind}matrix" for kind in ("", "p", "b", "B", "small"))
_CLOSES = {"(": (")", "]"), "[": ("]", ")")}
_SIGNS = {"+": "+", "-": "neg", "\\pm": "pm", "\\mp": "mp"}
_ENDS = frozenset(
    (",", ")", "]", "}set", "}", "|", "&", ROW, "\\cup", ":", ">vec", "\\end", "\\rfloor", "\\rceil", *_RELATIONS)
)
"""What ends a product."""
_STYLE = re.compile(STYLED)
_WHOLE = re.compile(STYLED + r"\s*\{([^{}]*)\}")
_WORD = re.compile(r"[^\W\d]+(?:[ -][^\W\d]+)*")


class _Reader:
    """One pass over the tokens, a method for each level of the grammar, loosest first."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.bars = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""

    def take(self, *kinds: str) -> Token:
        if self.next == "" or (kinds and self.next not in kinds):
            raise Unreadable(f"{self.next!r} where {kinds} was expected")
        self.at += 1
        return self.tokens[self.at - 1]

    def items(self) -> tuple[Tree, ...]:
        found = [self.relation()]
        while self.next == ",":
            self.take()
            found.append(self.relation())
        return tuple(found)

    def relation(self) -> Tree:
        left = self.union()
        if self.next not in _RELATIONS:
            return left
        sign = self.take().kind
        right = self.union()
        if self.next in _RELATIONS:
            raise Unreadable("a chain of relations")
        flipped = {">": "<", "≥": "≤"}.get(sign)
        return Seq(flipped, (right, left)) if flipped else Seq(sign, (left, right))

    def union(self) -> Tree:
        found = [self.ratio()]
        while self.next == "\\cup":
            self.take()
            found.append(self.ratio())
        return Seq("union", tuple(found)) if len(found) > 1 else found[0]

    def ratio(self) -> Tree:
        found = [self.sum()]
        while self.next == ":":
            self.take()
            found.append(self.sum())
        return Seq(":", tuple(found)) if len(found) > 1 else found[0]

    def sum(self) -> Tree:
        terms: list[Tree] = []
        while not terms or self.next in _SIGNS:
            sign = _SIGNS[self.take().kind] if self.next in _SIGNS else "+"
            term = self.product()
            terms.append(term if sign == "+" else Op(sign, (term,)))
        return terms[0] if len(terms) == 1 else Op("+", tuple(terms))

    def product(self) -> Tree:
        factors = [self.power()]
        while self.next:
            if self.next in ("*", "/"):
                divide = self.take().kind == "/"
                factor = self.signed()
                factors.append(Op("inv", (factor,)) if divide else factor)
            elif self.next == "text":
                self.unit()
                break
            elif self.next in _SIGNS or self.next == "number" or (self.next in _ENDS and not self.opens_bars()):
                break
            else:
                factors.append(self.power())
        return factors[0] if len(factors) == 1 else Op("*", tuple(factors))

    def opens_bars(self) -> bool:
        return self.next == "|" and not self.bars

    def unit(self) -> None:
        """A unit behind a value says nothing (M3); anything else in words makes the whole unreadable."""
        while self.next == "text":
            if re.search(r"\b(?:and|or|if|is|for|when|where)\b", self.take().text):
                raise Unreadable("words")
            if self.next == "^":
                self.take()
                self.argument()
            if self.next in ("/", "*") and [token.kind for token in self.tokens[self.at + 1 : self.at + 2]] == ["text"]:
                self.take()
        if self.next and self.next not in _ENDS:
            raise Unreadable("something behind a unit")

    def signed(self) -> Tree:
        if self.next in ("-", "+"):
            sign = self.take().kind
            return Op("neg", (self.power(),)) if sign == "-" else self.power()
        return self.power()

    def power(self) -> Tree:
        base = self.postfix()
        if self.next != "^":
            return base
        self.take()
        exponent = Op("neg", (self.exponent(),)) if self.next == "-" and self.take() else self.exponent()
        return Op("^", (base, exponent))

    def exponent(self) -> Tree:
        return Num(Fraction(self.take().text)) if self.next == "number" else self.argument()

    def postfix(self) -> Tree:
        value = self.primary()
        for _ in range(3):
            if self.next not in ("!", "'"):
                break
            mark = self.take().kind
            if mark == "'" and not isinstance(value, Sym):
                raise Unreadable("a prime")
            value = Sym(value.name + "'") if isinstance(value, Sym) and mark == "'" else Op("!", (value,))
        return value

    def primary(self) -> Tree:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable("nested too deeply")
        value = self._primary()
        self.depth -= 1
        return value

    def _primary(self) -> Tree:
        kind = self.next
        if kind == "number":
            return self.number()
        if kind in ("(", "[", "{set", "<vec", "{", "|"):
            return self.bracket()
        if kind in ("\\lfloor", "\\lceil"):
            self.take()
            inner = self.sum()
            self.take(kind.replace("\\l", "\\r"))
            return Op(kind[2:], (inner,))
        if kind in ("\\frac", "\\binom"):
            self.take()
            above, below = self.argument(), self.argument()
            return Op("/" if kind == "\\frac" else "binom", (above, below))
        if kind == "\\sqrt":
            return self.root()
        if kind in _FUNCTIONS:
            return self.function()
        if kind == "\\begin":
            return self.matrix()
        if kind == "\\abs":
            self.take()
            return Op("abs", (self.argument(),))
        return self.name()

    def number(self) -> Tree:
        text = self.take().text
        if self.next == "_":
            return Sym(f"{text}{self.index()}")
        whole, _, repeating = text.replace("}", "").partition("\\overline{")
        value = Fraction(whole)
        if repeating:
            places = len(whole.partition(".")[2])
            value += Fraction(int(repeating), (10 ** len(repeating) - 1) * 10**places)
        if self.next != "\\frac":
            return Num(value)
        match self.primary():
            case Op("/", (Num(above), Num(below))) if value.denominator == 1 and 0 < above < below:
                return Num(value + above / below)
            case fraction:
                return Op("*", (Num(value), fraction))

    def index(self) -> str:
        """A subscript, as text."""
        self.take("_")
        if self.next != "{":
            return f"_{self.take('number', 'letter').text}"
        self.take()
        text = "_"
        while self.next != "}":
            text += self.take().text
        self.take()
        return text

    def bracket(self) -> Tree:
        opening = self.take().kind
        if opening == "|":
            if self.bars:
                raise Unreadable("bars in bars")
            self.bars += 1
            inner = self.sum()
            self.take("|")
            self.bars -= 1
            return Op("abs", (inner,))
        if opening == "{set" and self.next == "}set":
            self.take()
            return Seq("set", ())
        bars, self.bars = self.bars, 0
        items = self.items()
        self.bars = bars
        if opening in _CLOSES:
            closing = self.take(*_CLOSES[opening]).kind
            if len(items) == 1 and opening + closing in ("()", "[]"):
                return items[0]
            return Seq(opening + closing, items)
        if opening == "{":
            self.take("}")
            if len(items) > 1:
                raise Unreadable("a group of several")
            return items[0]
        self.take("}set" if opening == "{set" else ">vec")
        return Seq("set" if opening == "{set" else "vec", items)

    def argument(self) -> Tree:
        """What a command takes: a group, or one token, which is one digit of a number."""
        if self.next != "number":
            return self.primary()
        text = self.take().text
        if len(text) > 1:
            self.at -= 1
            self.tokens[self.at] = Token("number", text[1:])
        if not text[0].isdigit() or (len(text) > 1 and text[1] in ".\\"):
            raise Unreadable("a decimal without braces")
        return Num(Fraction(text[0]))

    def root(self) -> Tree:
        self.take()
        if self.next != "[":
            return Op("sqrt", (self.argument(),))
        self.take()
        degree = self.sum()
        self.take("]")
        return Op("root", (self.argument(), degree))

    def function(self) -> Tree:
        name = self.take().kind[1:]
        base: tuple[Tree, ...] = ()
        if self.next == "_" and name == "log":
            self.take()
            base = (self.argument(),)
        exponent: Tree | None = None
        if self.next == "^":
            self.take()
            exponent = self.exponent()
        argument = self.primary() if self.next in ("(", "{", "|") else self.bare_argument()
        if exponent == Op("neg", (Num(Fraction(1)),)) and name in ("sin", "cos", "tan"):
            return Op(f"arc{name}", (argument,))
        value = Op(name, (argument, *base))
        return Op("^", (value, exponent)) if exponent else value

    def bare_argument(self) -> Tree:
        """`\\sin 2x`: everything up to the next sign or function."""
        value = self.power()
        while self.next in ("letter", "\\pi", "\\theta", "\\frac", "\\sqrt"):
            value = Op("*", (value, self.power()))
        return value

    def matrix(self) -> Tree:
        self.take()
        kind = self._environment()
        if kind not in _MATRICES:
            raise Unreadable(kind)
        rows: list[list[Tree]] = [[]]
        while self.next != "\\end":
            rows[-1].append(self.relation())
            if self.next == ROW:
                self.take()
                rows += [[]] if self.next != "\\end" else []
            elif self.next != "\\end":
                self.take("&")
        self.take()
        if self._environment() != kind:
            raise Unreadable("another matrix ends")
        return Seq("matrix", tuple(Seq("row", tuple(row)) for row in rows))

    def _environment(self) -> str:
        self.take("{")
        name = ""
        while self.next == "letter":
            name += self.take().text
        self.take("}")
        return name

    def name(self) -> Tree:
        token = self.take()
        if token.kind in _OPAQUE:
            return Sym(f"{token.kind} {self.argument()}")
        if _STYLE.fullmatch(token.kind):
            return self.argument()
        if token.kind == "text" and _WORD.fullmatch(token.text):
            word = Sym(token.text.casefold() if len(token.text) > 1 else token.text)
        elif token.kind == "letter":
            word = Sym(token.text)
        elif token.kind == "\\emptyset":
            return Seq("set", ())
        elif token.kind[0] == "\\" and token.kind[1:].isalpha() and token.kind not in _UNKNOWN:
            word = Sym(token.kind)
        else:
            raise Unreadable(token.kind)
        return Sym(word.name + self.index()) if self.next == "_" else word


def read(text: str) -> Tree:
    """A formula as a tree; several at top level are a `list`. Raises `Unreadable`."""
    text = tidy(text)
    whole = _WHOLE.fullmatch(text)
    if whole and not _WORD.fullmatch(whole[1].strip()):
        text = whole[1]
    if not text or len(text) > LONGEST:
        raise Unreadable("nothing, or too long")
    reader = _Reader(tokens(text))
    items = reader.items()
    if reader.next:
        raise Unreadable(f"{reader.next!r} is left over")
    return items[0] if len(items) == 1 else Seq("list", items)
