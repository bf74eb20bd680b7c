"""Numbers as people and LaTeX write them, read as exact fractions: rules G4, G6, G7 and A5 of RULES.md.

Works on text that `replies.fold` made plain. Nothing is rounded, and a number that would need more than `MOST_DIGITS`
digits is not a number to us, so no input costs more than its own length.
"""

import re
from collections.abc import Iterator
from fractions import Fraction

MOST_DIGITS = 400

_SEPARATOR = r"(?:,\\!|\{,\}|\\,|,)"
_WHOLE = rf"(?:[0-9]{{1,3}}(?:{_SEPARATOR}[0-9]{{3}})+(?![0-9])|[0-9]+)"
_DECIMAL = rf"(?:{_WHOLE}(?:\.[0-9]+)?|\.[0-9]+)"
_CURRENCY = r"(?:\\?[$€£¥₹][ ]?)"
_NUMBER = re.compile(
    rf"""
    (?<![0-9])(?<![0-9]\.)(?<!\^)(?<!\^\{{)(?<![A-Za-z)]_)(?<!_\{{)     # not inside a number, an exponent or an index
    (?P<sign> (?<![A-Za-z0-9)}}\]-]) [-+] )?  {_CURRENCY}?  (?P<late> (?<=[$€£¥₹ ]) [-+] )?
    (?:
        (?: (?P<n1>{_WHOLE}) [ ]? )? \\[dtc]?frac [ ]?
            (?: \{{ [ ]? (?P<a1>-?{_DECIMAL}) [ ]? \}} | (?P<a1d>[0-9]) )  [ ]?
            (?: \{{ [ ]? (?P<b1>{_DECIMAL}) [ ]? \}} | (?P<b1d>[0-9]) )
    |   (?: (?P<n2>{_WHOLE}) [ ] )? (?<!/) (?P<a2>{_DECIMAL}) [ ]? / [ ]? (?P<b2>{_DECIMAL}) (?![0-9]|[ ]?/)
    |   (?P<plain>{_DECIMAL})
        (?: [eE] (?P<e>[-+]?[0-9]+) (?![A-Za-z0-9])
        |   [ ]{{0,3}} (?:\\times|\\cdot|×|\*|x) [ ]{{0,3}} 10 [ ]? (?:\^|\*\*) [ ]?
            \{{? [ ]? (?P<ten>[-+]?[0-9]+) [ ]? \}}?
        |   [ ]? (?:\^|\*\*) [ ]? (?: \{{ [ ]? (?P<power1>[-+]?[0-9]+) [ ]? \}} | (?P<power2>[-+]?[0-9]+) )
        )?
    )
    """,
    re.VERBOSE,
)
_AFTER_LETTER = re.compile(r"[A-Za-z]")
_NOT_DIGITS = re.compile(rf"{_SEPARATOR}")
_ANNOTATION = re.compile(r"<<[^<>\n]*>>")
_MODULUS = re.compile(r"\\pmod\s?\{[^{}]*\}|\\pmod\s?[0-9]+|\(\\?(?:mod|bmod)\s[^()]*\)")


def _decimal(digits: str | None) -> Fraction | None:
    digits = _NOT_DIGITS.sub("", digits or "")
    if not 0 < len(digits) <= MOST_DIGITS:
        return None
    return Fraction(int(digits)) if digits.isdigit() else Fraction(digits)


def _ratio(whole: str | None, above: str, below: str) -> list[Fraction]:
    """`a/b`, or `n a/b` where `a/b` is less than one; what is neither falls apart into its numbers."""
    base, top, bottom = _decimal(whole), _decimal(above), _decimal(below)
    if top is None or bottom is None or not bottom:
        return [part for part in (base, top, bottom) if part is not None]
    if base is None:
        return [top / bottom]
    return [base + top / bottom] if 0 <= top < bottom else [base, top / bottom]


def _raised(base: Fraction, exponent: str) -> Fraction | None:
    """A power, unless it would be absurdly long or divide by zero."""
    size = max(len(str(base.numerator)), len(str(base.denominator)))
    if len(exponent) > 5 or abs(int(exponent)) * size > MOST_DIGITS or (not base and int(exponent) < 0):
        return None
    return base ** int(exponent)


def _values(match: re.Match[str]) -> list[Fraction]:
    """What a match of the number grammar is worth: mostly one number, none where it is out of all proportion."""
    if above := match["a1"] or match["a1d"]:
        values = _ratio(match["n1"], above, match["b1"] or match["b1d"])
    elif match["a2"]:
        values = _ratio(match["n2"], match["a2"], match["b2"])
    else:
        plain = _decimal(match["plain"])
        if plain is not None and (shift := match["e"] or match["ten"]):
            ten = _raised(Fraction(10), shift)
            plain = None if ten is None else plain * ten
        elif plain is not None and (power := match["power1"] or match["power2"]):
            plain = _raised(plain, power)
        values = [] if plain is None else [plain]
    if values and (match["sign"] or match["late"]) == "-":
        values[0] = -values[0]
    return values


def numbers(text: str) -> Iterator[Fraction]:
    """The numbers in a folded text, in order (G4). A unit may be glued on behind; a percent sign is a unit (G6).

    Figures glued behind a letter (`H2O`, `x1`) count only where the text has no others.
    """
    glued: list[Fraction] = []
    free = False
    for match in _NUMBER.finditer(text):
        values = _values(match)
        if match[0][0] in "0123456789." and _AFTER_LETTER.match(text[match.start() - 1 : match.start()]):
            glued += values
        else:
            free = free or bool(values)
            yield from values
    if not free:
        yield from glued


# --- the value of a marker (A5) -----------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Text without calculator annotations (G7) and without the modulus of a congruence."""
    return _MODULUS.sub("", _ANNOTATION.sub("", text))


def without_remark(text: str) -> str:
    """Text without bracketed remarks behind a value: `70 (since 7 * 10 = 70)` says 70 (A5)."""
    kept: list[str] = []
    depth, digits, last = 0, False, " "
    for char in text:
        if char in "([" and (depth or (digits and last.isspace())):
            depth += 1
        elif not depth:
            kept.append(char)
            digits = digits or "0" <= char <= "9"
        elif char in ")]":
            depth -= 1
        last = char
    return "".join(kept)


_LONE_MINUS = re.compile(r"^([\s$*_`(\[{\\]*)-\s+(?=[0-9.\\$])")


def stated(text: str) -> Fraction | None:
    """The number that a marker's text states (A5): behind the last `=` that has one behind it, the first number."""
    parts = without_remark(text).split("=")
    for part in reversed(parts):
        value = next(numbers(_LONE_MINUS.sub(r"\1-", part)), None)
        if value is not None:
            return value
    return None


def last(text: str) -> Fraction | None:
    """The last number of a text (A3, G3)."""
    value = None
    for value in numbers(text):  # noqa: B007 (the last one is what we want)
        pass
    return value


def decimal(value: Fraction) -> str:
    """The one way to write a value: a plain decimal where it has one that ends, else `a/b`."""
    twos_and_fives = value.denominator
    places = 0
    while twos_and_fives % 10 == 0:
        twos_and_fives, places = twos_and_fives // 10, places + 1
    for prime in (2, 5):
        while twos_and_fives % prime == 0:
            twos_and_fives, places = twos_and_fives // prime, places + 1
    if twos_and_fives != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    whole, part = (digits[:-places], digits[-places:].rstrip("0")) if places else (digits, "")
    return ("-" if value < 0 else "") + whole + ("." + part if part else "")
