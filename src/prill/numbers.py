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
_CURRENCY = r"(?:\\?[$€£¥₹]\s?)"
_NUMBER = re.compile(
    rf"""
    (?<![0-9])(?<![0-9]\.)(?<!\^)(?<!\^\{{)(?<![A-Za-z)]_)(?<!_\{{)     # not inside a number, an exponent or an index
    (?P<sign> (?<![A-Za-z0-9)}}\]-]) [-+] )?  {_CURRENCY}?  (?P<late> (?<=[$€£¥₹\s]) [-+] )?
    (?:
        (?: (?P<n1>{_WHOLE}) \s? )? \\[dtc]?frac \s?
            (?: \{{ \s? (?P<a1>-?{_DECIMAL}) \s? \}} | (?P<a1d>[0-9]) )  \s?
            (?: \{{ \s? (?P<b1>{_DECIMAL}) \s? \}} | (?P<b1d>[0-9]) )
    |   (?: (?P<n2>{_WHOLE}) \s )? (?<!/) (?P<a2>{_DECIMAL}) \s? / \s? (?P<b2>{_DECIMAL}) (?![0-9]|\s?/)
    |   (?P<plain>{_DECIMAL})
        (?: [eE] (?P<e>[-+]?[0-9]+) (?![A-Za-z0-9])
        |   \s{{0,3}} (?:\\times|\\cdot|×|\*|x) \s{{0,3}} 10 \s? (?:\^|\*\*) \s? \{{? \s? (?P<ten>[-+]?[0-9]+) \s? \}}?
        |   \s? (?:\^|\*\*) \s? (?: \{{ \s? (?P<power1>[-+]?[0-9]+) \s? \}} | (?P<power2>[-+]?[0-9]+) )
        )?
    )
    """,
    re.VERBOSE,
)
_AFTER_LETTER = re.compile(r"[A-Za-z]")
_NOT_DIGITS = re.compile(rf"{_SEPARATOR}")
_ANNOTATION = re.compile(r"<<[^<>\n]*>>")
_MODULUS = re.compile(r"\\pmod\s?\{[^{}]*\}|\\pmod\s?[0-9]+|\(\\?(?:mod|bmod)\s[^()]*\)")


def _decimal(digits: str) -> Fraction | None:
    digits = _NOT_DIGITS.sub("", digits)
    return Fraction(digits) if len(digits) <= MOST_DIGITS else None


def _ratio(whole: str | None, above: str, below: str) -> Fraction | None:
    """`a/b`, or `n a/b` where `a/b` is less than one."""
    parts = [_decimal(part) for part in (whole or "0", above, below)]
    if None in parts:
        return None
    base, top, bottom = (part for part in parts if part is not None)
    if not bottom or (whole and not 0 <= top < bottom):
        return None
    return base + top / bottom


def _raised(base: Fraction, exponent: str) -> Fraction | None:
    """A power, unless it would be absurdly long."""
    if len(exponent) > 5 or abs(int(exponent)) * max(len(str(base.numerator)), len(str(base.denominator))) > MOST_DIGITS:
        return None
    return None if not base and int(exponent) < 0 else base ** int(exponent)


def _value(match: re.Match[str]) -> Fraction | None:
    """What a match of the number grammar is worth; `None` where it is no number after all (`5/0`, `1e99999`)."""
    if above := match["a1"] or match["a1d"]:
        value = _ratio(match["n1"], above, match["b1"] or match["b1d"])
    elif match["a2"]:
        value = _ratio(match["n2"], match["a2"], match["b2"])
    else:
        value = _decimal(match["plain"])
        if value is not None and (shift := match["e"] or match["ten"]):
            ten = _raised(Fraction(10), shift)
            value = None if ten is None else value * ten
        elif value is not None and (power := match["power1"] or match["power2"]):
            value = _raised(value, power)
    negative = (match["sign"] or match["late"]) == "-"
    return -value if value is not None and negative else value


def numbers(text: str) -> Iterator[Fraction]:
    """The numbers in a folded text, in order (G4). A unit may be glued on behind; a percent sign is a unit (G6).

    Figures glued behind a letter (`H2O`, `x1`) count only where the text has no others.
    """
    glued: list[Fraction] = []
    free = 0
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is None:
            continue
        if match.start() and _AFTER_LETTER.match(text[match.start() - 1]) and match[0][0] not in "\\-+$€£¥₹":
            glued.append(value)
            continue
        free += 1
        yield value
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
