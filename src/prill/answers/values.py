"""What formulas are worth: exactly where that is rational (or complex-rational), else to `PLACES` places.

Every step is bounded in digits and in steps; what is out of bounds or undefined raises `Worthless`. Run it inside
`precision()`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import comb, factorial, isqrt
from typing import Any, TypeAlias

from prill.answers.grammar import Num, Op, Sym, Tree

PLACES = 60
_MOST_BITS = 4000
_CONTEXT = Context(prec=PLACES + 20)
_PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679")

Value: TypeAlias = tuple[Any, Any]
"""A complex number: its real and its imaginary part, both `Fraction` (exact) or both `Decimal`."""


class Worthless(ArithmeticError):
    """No value: undefined, or out of bounds."""


def precision() -> AbstractContextManager[Context]:
    """The decimal precision that all functions here need."""
    return localcontext(_CONTEXT)


# --- arithmetic ---------------------------------------------------------------------------------------------------


def is_exact(value: Value) -> bool:
    """Whether nothing was rounded."""
    return isinstance(value[0], Fraction)


def approx(value: Value) -> tuple[Decimal, Decimal]:
    """The same number in decimals."""
    real, imaginary = (
        Decimal(part.numerator) / part.denominator if isinstance(part, Fraction) else part for part in value
    )
    return real, imaginary


def _pair(left: Value, right: Value) -> tuple[Value, Value]:
    """Both of one kind."""
    return (left, right) if is_exact(left) and is_exact(right) else (approx(left), approx(right))


def _bounded(value: Value) -> Value:
    for part in value:
        if isinstance(part, Fraction) and max(part.numerator.bit_length(), part.denominator.bit_length()) > _MOST_BITS:
            raise Worthless("too long")
    return value


def _add(left: Value, right: Value) -> Value:
    (a, b), (c, d) = _pair(left, right)
    return _bounded((a + c, b + d))


def times(left: Value, right: Value) -> Value:
    """The product."""
    (a, b), (c, d) = _pair(left, right)
    return _bounded((a * c - b * d, a * d + b * c))


def inverse(value: Value) -> Value:
    """One over it."""
    a, b = value
    size = a * a + b * b
    if not size:
        raise Worthless("division by zero")
    return a / size, -b / size


_ZERO: Value = (Fraction(0), Fraction(0))
_ONE: Value = (Fraction(1), Fraction(0))
_MINUS_ONE: Value = (Fraction(-1), Fraction(0))


def _whole(value: Value) -> int | None:
    real, imaginary = value
    return int(real) if isinstance(real, Fraction) and not imaginary and real.denominator == 1 else None


def _power(base: Value, exponent: Value) -> Value:
    count = _whole(exponent)
    if count is not None:
        if abs(count) > _MOST_BITS:
            raise Worthless("too long")
        base = inverse(base) if count < 0 else base
        value: Value = _ONE
        for bit in bin(abs(count))[2:]:
            value = times(value, value)
            value = times(value, base) if bit == "1" else value
        return value
    if exponent == (Fraction(1, 2), Fraction(0)):
        return _root(base, 2)
    if base[0] <= 0 or base[1]:
        raise Worthless("a fractional power of a number that is not positive")
    return _exp(times(exponent, _ln(base)))


def _root(value: Value, degree: int) -> Value:
    """A real root; of a negative number an imaginary one (square) or the real one (odd degree)."""
    real, imaginary = value
    if imaginary or not 1 < degree < 100:
        raise Worthless("a root of a complex number")
    if real < 0:
        root = _root(times(value, _MINUS_ONE), degree)
        if degree == 2:
            return times(root, (Fraction(0), Fraction(1)))
        if degree % 2:
            return times(root, _MINUS_ONE)
        raise Worthless("an even root of a negative number")
    if isinstance(real, Fraction) and degree == 2:
        above, below = isqrt(real.numerator), isqrt(real.denominator)
        if above * above == real.numerator and below * below == real.denominator:
            return Fraction(above, below), Fraction(0)
    if not real:
        return _ZERO
    number = approx(value)[0]
    root_of = number.sqrt() if degree == 2 else (number.ln() / degree).exp()
    return root_of, Decimal(0)


def _ln(value: Value) -> Value:
    real, imaginary = approx(value)
    if imaginary or real <= 0:
        raise Worthless("a logarithm of a number that is not positive")
    return real.ln(), Decimal(0)


def _exp(value: Value) -> Value:
    real, imaginary = approx(value)
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
            value = _add(value, arg) if name == "+" else times(value, arg)
        return value
    if name == "neg":
        return times(first, _MINUS_ONE)
    if name == "inv":
        return inverse(first)
    if name == "/":
        return times(first, inverse(second))
    if name == "^":
        return _power(first, second)
    if name in ("sqrt", "root"):
        return _root(first, 2 if name == "sqrt" else _whole(second) or 0)
    if name in ("ln", "log", "lg"):
        base = second if len(args) == 2 else (Fraction(10), Fraction(0))
        return _ln(first) if name == "ln" else times(_ln(first), inverse(_ln(base)))
    if name == "exp":
        return _exp(first)
    if name == "abs":
        real, imaginary = first
        return _root(times(first, (real, -imaginary)), 2) if imaginary else (abs(real), imaginary)
    return _counted(name, [_whole(arg) for arg in args], first)


def _counted(name: str, counts: list[int | None], value: Value) -> Value:
    """Functions of whole numbers, of rationals, and of one real number."""
    real, imaginary = value
    if imaginary:
        raise Worthless(f"{name} of a complex number")
    if name == "!" and counts[0] is not None and 0 <= counts[0] <= 200:
        return Fraction(factorial(counts[0])), Fraction(0)
    if name == "binom" and all(count is not None and 0 <= count <= 500 for count in counts):
        return Fraction(comb(*[count or 0 for count in counts])), Fraction(0)
    if name in ("floor", "ceil") and isinstance(real, Fraction):
        return Fraction(real.__floor__() if name == "floor" else real.__ceil__()), Fraction(0)
    if name in _REAL_FUNCTIONS:
        number = approx(value)[0]
        if abs(number) > 10_000:
            raise Worthless("too large")
        return _REAL_FUNCTIONS[name](number), Decimal(0)
    raise Worthless(name)
