"""What formulas are worth, and when two are the same: rules M4 to M7 of RULES.md.

Rational and complex-rational values are compared exactly. Others (roots, powers, trigonometry) are computed to
`PLACES` places and compared relatively. Formulas with letters are compared at fixed points: two that agree at all of
them are the same expression. Every step is bounded; what is out of bounds, or has no value, is only equal as text.
"""

from collections.abc import Callable, Iterator
from decimal import Context, Decimal, DecimalException, localcontext
from fractions import Fraction
from math import comb, factorial, isqrt
from typing import TypeAlias

from prill.formulas import Num, Op, Seq, Sym, Tree, Unreadable, read
from prill.latex import plain

PLACES = 60
_CLOSE = Decimal("1e-40")
_MOST_BITS = 4000
_CONTEXT = Context(prec=PLACES + 20)
_PI = Decimal(
    "3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679"
)
_POINTS = (
    (Fraction(3, 2), Fraction(5, 3), Fraction(7, 5), Fraction(11, 7), Fraction(13, 11), Fraction(17, 13)),
    (Fraction(-7, 3), Fraction(11, 4), Fraction(-5, 6), Fraction(19, 8), Fraction(-23, 9), Fraction(29, 12)),
    (Fraction(31, 10), Fraction(-2, 7), Fraction(37, 9), Fraction(-41, 6), Fraction(1, 8), Fraction(-43, 5)),
)
"""Where formulas with letters are compared: the value of each letter, three times over."""


class Worthless(ArithmeticError):
    """No value: undefined, or out of bounds."""


Exact: TypeAlias = tuple[Fraction, Fraction]
Approx: TypeAlias = tuple[Decimal, Decimal]
Value: TypeAlias = Exact | Approx
"""A complex number: its real and its imaginary part, both exact or both to `PLACES` places."""

# --- arithmetic ---------------------------------------------------------------------------------------------------


def _is_exact(value: Value) -> bool:
    return isinstance(value[0], Fraction)


def _approx(value: Value) -> Approx:
    real, imaginary = (
        Decimal(part.numerator) / part.denominator if isinstance(part, Fraction) else part for part in value
    )
    return real, imaginary


def _pair(left: Value, right: Value) -> tuple[tuple[Decimal, Decimal], tuple[Decimal, Decimal]]:
    """Both of one kind. The type says Decimal; two exact ones stay exact, and the arithmetic is the same."""
    if _is_exact(left) and _is_exact(right):
        return left, right  # type: ignore[return-value]
    return _approx(left), _approx(right)


def _bounded(value: Value) -> Value:
    for part in value:
        if isinstance(part, Fraction) and max(part.numerator.bit_length(), part.denominator.bit_length()) > _MOST_BITS:
            raise Worthless("too long")
    return value


def _add(left: Value, right: Value) -> Value:
    (a, b), (c, d) = _pair(left, right)
    return _bounded((a + c, b + d))


def _times(left: Value, right: Value) -> Value:
    (a, b), (c, d) = _pair(left, right)
    return _bounded((a * c - b * d, a * d + b * c))


def _inverse(value: Value) -> Value:
    a, b = _pair(value, value)[0]
    size = a * a + b * b
    if not size:
        raise Worthless("division by zero")
    return a / size, -b / size


_ZERO: Exact = (Fraction(0), Fraction(0))
_ONE: Exact = (Fraction(1), Fraction(0))
_MINUS_ONE: Exact = (Fraction(-1), Fraction(0))


def _whole(value: Value) -> int | None:
    real, imaginary = value
    return int(real) if isinstance(real, Fraction) and not imaginary and real.denominator == 1 else None


def _power(base: Value, exponent: Value) -> Value:
    count = _whole(exponent)
    if count is not None:
        if abs(count) > _MOST_BITS:
            raise Worthless("too long")
        base = _inverse(base) if count < 0 else base
        value: Value = _ONE
        for bit in bin(abs(count))[2:]:
            value = _times(value, value)
            value = _times(value, base) if bit == "1" else value
        return value
    if exponent == (Fraction(1, 2), Fraction(0)):
        return _root(base, 2)
    if base[0] <= 0 or base[1]:
        raise Worthless("a fractional power of a number that is not positive")
    return _exp(_times(exponent, _ln(base)))


def _root(value: Value, degree: int) -> Value:
    """A real root; of a negative number an imaginary one (square) or the real one (odd degree)."""
    real, imaginary = value
    if imaginary or not 1 < degree < 100:
        raise Worthless("a root of a complex number")
    if real < 0:
        root = _root(_times(value, _MINUS_ONE), degree)
        if degree == 2:
            return _times(root, (Fraction(0), Fraction(1)))
        if degree % 2:
            return _times(root, _MINUS_ONE)
        raise Worthless("an even root of a negative number")
    if isinstance(real, Fraction) and degree == 2:
        above, below = isqrt(real.numerator), isqrt(real.denominator)
        if above * above == real.numerator and below * below == real.denominator:
            return Fraction(above, below), Fraction(0)
    if not real:
        return _ZERO
    number = _approx(value)[0]
    root_of = number.sqrt() if degree == 2 else (number.ln() / degree).exp()
    return root_of, Decimal(0)


def _ln(value: Value) -> Value:
    real, imaginary = _approx(value)
    if imaginary or real <= 0:
        raise Worthless("a logarithm of a number that is not positive")
    return real.ln(), Decimal(0)


def _exp(value: Value) -> Value:
    real, imaginary = _approx(value)
    if abs(real) > 10_000:
        raise Worthless("too large")
    size = real.exp()
    return (size * _cosine(imaginary), size * _sine(imaginary)) if imaginary else (size, Decimal(0))


def _sine(angle: Decimal) -> Decimal:
    if abs(angle) > 10_000:
        raise Worthless("too large an angle")
    angle = angle % (2 * _PI)
    term = total = angle
    for step in range(1, 80):
        term = -term * angle * angle / (2 * step * (2 * step + 1))
        total += term
    return total if abs(total) > Decimal("1e-65") else Decimal(0)


def _cosine(angle: Decimal) -> Decimal:
    return _sine(angle + _PI / 2)


def _arctan(number: Decimal) -> Decimal:
    for _ in range(4):
        number = number / (1 + (1 + number * number).sqrt())
    term = total = number
    for step in range(1, 120):
        term = -term * number * number
        total += term / (2 * step + 1)
    return 16 * total


def _arcsine(number: Decimal) -> Decimal:
    if abs(number) >= 1:
        if abs(number) > 1:
            raise Worthless("outside -1 to 1")
        return number * _PI / 2
    return _arctan(number / (1 - number * number).sqrt())


def _tangent(angle: Decimal) -> Decimal:
    below = _cosine(angle)
    if not below:
        raise Worthless("a pole")
    return _sine(angle) / below


def _over(number: Decimal) -> Decimal:
    if not number:
        raise Worthless("a pole")
    return 1 / number


_REAL_FUNCTIONS: dict[str, Callable[[Decimal], Decimal]] = {
    "sin": _sine,
    "cos": _cosine,
    "tan": _tangent,
    "cot": lambda angle: _over(_tangent(angle)) if _cosine(angle) else Decimal(0),
    "sec": lambda angle: _over(_cosine(angle)),
    "csc": lambda angle: _over(_sine(angle)),
    "arcsin": _arcsine,
    "arccos": lambda number: _PI / 2 - _arcsine(number),
    "arctan": _arctan,
    "sinh": lambda number: (number.exp() - (-number).exp()) / 2,
    "cosh": lambda number: (number.exp() + (-number).exp()) / 2,
    "tanh": lambda number: 1 - 2 / ((2 * number).exp() + 1),
}

# --- worth --------------------------------------------------------------------------------------------------------


def worth(tree: Tree, letters: dict[str, Fraction]) -> Value:
    """The value of a formula where its letters have these values. Raises `Worthless`."""
    match tree:
        case Num(value):
            return value, Fraction(0)
        case Sym("e"):
            return Decimal(1).exp(), Decimal(0)
        case Sym("i"):
            return Fraction(0), Fraction(1)
        case Sym("\\pi"):
            return _PI, Decimal(0)
        case Sym(name):
            return letters[name], Fraction(0)
        case Op(name, args):
            return _applied(name, [worth(arg, letters) for arg in args])
    raise Worthless("several things have no one value")


def _applied(name: str, args: list[Value]) -> Value:
    first, second = args[0], args[-1]
    if name in ("+", "*"):
        value: Value = _ZERO if name == "+" else _ONE
        for arg in args:
            value = _add(value, arg) if name == "+" else _times(value, arg)
        return value
    if name == "neg":
        return _times(first, _MINUS_ONE)
    if name == "inv":
        return _inverse(first)
    if name == "/":
        return _times(first, _inverse(second))
    if name == "^":
        return _power(first, second)
    if name in ("sqrt", "root"):
        return _root(first, 2 if name == "sqrt" else _whole(second) or 0)
    if name in ("ln", "log", "lg"):
        base = second if len(args) == 2 else (Fraction(10), Fraction(0))
        return _ln(first) if name == "ln" else _times(_ln(first), _inverse(_ln(base)))
    if name == "exp":
        return _exp(first)
    if name == "abs":
        square = _add(_times((first[0], first[1] * 0), (first[0], first[1] * 0)), _times(*[(first[1], first[1] * 0)] * 2))
        return _root(square, 2)
    return _counted(name, [_whole(arg) for arg in args], first)


def _counted(name: str, counts: list[int | None], value: Value) -> Value:
    """Functions of whole numbers, of rationals, and of one real number."""
    real, imaginary = value
    if imaginary:
        raise Worthless(f"{name} of a complex number")
    if name == "!" and counts[0] is not None and 0 <= counts[0] <= 200:
        return Fraction(factorial(counts[0])), Fraction(0)
    if name == "binom" and len(counts) == 2 and counts[0] is not None and counts[1] is not None:
        if 0 <= counts[0] <= 500 and 0 <= counts[1]:
            return Fraction(comb(counts[0], counts[1])), Fraction(0)
    elif name in ("floor", "ceil") and isinstance(real, Fraction):
        return Fraction(real.__floor__() if name == "floor" else real.__ceil__()), Fraction(0)
    elif name in _REAL_FUNCTIONS:
        number = _approx(value)[0]
        if abs(number) > 10_000:
            raise Worthless("too large")
        return _REAL_FUNCTIONS[name](number), Decimal(0)
    raise Worthless(name)


# --- sameness -----------------------------------------------------------------------------------------------------


def _close(left: Value, right: Value) -> bool:
    if _is_exact(left) and _is_exact(right):
        return left == right
    (a, b), (c, d) = _approx(left), _approx(right)
    size = max(abs(a), abs(b), abs(c), abs(d))
    if not max(abs(a), abs(b)) or not max(abs(c), abs(d)):
        return size < _CLOSE
    return max(abs(a - c), abs(b - d)) <= _CLOSE * size


def _letters(tree: Tree) -> set[str]:
    match tree:
        case Sym(name):
            return {name} - {"e", "i", "\\pi"}
        case Op(_, args) | Seq(_, args):
            return set().union(*map(_letters, args))
    return set()


def _at_points(*trees: Tree) -> Iterator[list[Value]]:
    """The values of formulas at each point where any of them has one. Raises `Worthless` where not all have."""
    names = sorted(set().union(*map(_letters, trees)))
    if len(names) > len(_POINTS[0]):
        raise Worthless("too many letters")
    for point in _POINTS if names else _POINTS[:1]:
        values: list[Value | None] = []
        for tree in trees:
            try:
                values.append(worth(tree, dict(zip(names, point, strict=False))))
            except (ArithmeticError, DecimalException):
                values.append(None)
        if any(value is None for value in values) and any(values):
            raise Worthless("only one of them has a value here")
        if all(values):
            yield [value for value in values if value is not None]


def _same_value(left: Tree, right: Tree) -> bool:
    """Equal at every point where they have a value, and at one at least (M4, M7)."""
    if left == right:
        return True
    try:
        checked = [_close(*values) for values in _at_points(left, right)]
    except Worthless:
        return False
    return bool(checked) and all(checked)


def _same_equation(left: Seq, right: Seq) -> bool:
    """Two equations whose differences of sides are in a constant ratio."""
    sides = [Op("+", (seq.items[0], Op("neg", (seq.items[1],)))) for seq in (left, right)]
    try:
        ratios = [_times(a, _inverse(b)) for a, b in _at_points(*sides)]
    except Worthless:
        return False
    return len(ratios) > 1 and all(_close(ratio, ratios[0]) for ratio in ratios) and ratios[0] != _ZERO


def _is_name(tree: Tree) -> bool:
    """One letter or two (`x`, `xy`, `f(x)`), as they stand in front of an equals sign (M3)."""
    match tree:
        case Op("*", (Sym(), Sym())) | Sym():
            return True
    return False


def _spread(tree: Tree) -> list[Tree]:
    """A formula with `\\pm` as the two that it stands for."""

    def chosen(node: Tree, upper: bool) -> Tree:
        match node:
            case Op("pm" | "mp" as name, (arg,)):
                inner = chosen(arg, upper)
                return inner if (name == "pm") == upper else Op("neg", (inner,))
            case Op(name, args):
                return Op(name, tuple(chosen(arg, upper) for arg in args))
        return node

    above, below = chosen(tree, True), chosen(tree, False)
    return [tree] if above == below else [above, below]


def _without_name(tree: Tree) -> Tree:
    match tree:
        case Seq("=" | "∈", (name, value)) if _is_name(name):
            return value
    return tree


def _items(tree: Tree) -> tuple[bool, list[Tree]] | None:
    """The things of a list, set or plus-minus, and whether their order counts; `None` for anything else."""
    ordered = True
    if isinstance(tree, Seq) and tree.kind in ("list", "set"):
        ordered, items = tree.kind == "list", list(tree.items)
    else:
        items = [tree]
    found = [one for item in items for one in (_spread(item) if isinstance(item, Op) else [item])]
    if len(found) > len(items):
        ordered = False
    return (ordered, found) if len(found) > 1 or isinstance(tree, Seq) and tree.kind in ("list", "set") else None


def same(left: Tree, right: Tree) -> bool:
    """Whether two formulas say the same (M4 to M7)."""
    if isinstance(left, Seq) and isinstance(right, Seq) and left.kind == right.kind == "=":
        return _same_equation(left, right) or all(map(same, left.items, right.items))
    left, right = (left, right) if type(left) is type(right) and _both_equations(left, right) else (
        _without_name(left),
        _without_name(right),
    )
    several, others = _items(left), _items(right)
    if several or others:
        return bool(several and others) and _same_items(several, others)
    if isinstance(left, Seq) and isinstance(right, Seq):
        if left.kind != right.kind or len(left.items) != len(right.items):
            return False
        if left.kind == "union":
            return _matched(list(left.items), list(right.items))
        return all(map(same, left.items, right.items))
    if isinstance(left, Seq) or isinstance(right, Seq):
        return False
    return _same_value(left, right)
