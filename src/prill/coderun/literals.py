"""Values as bytes and back: None, bool, int, float, str, bytes, list, tuple, dict and set, each exactly that type.

What one process sends another that does not trust it. Reading runs nothing: it is JSON with a tag where JSON has no
word. Anything else is `NotLiteral`: other types and subclasses of these, cycles, what is too deep, too many or too
long, and keys chosen to collide. Not covered: that one list stands in two places; two equal ones come out.
"""

import base64
import binascii
import json
import math
from typing import Any

LARGEST = 16 << 20
"""Bytes of one value."""
DEEPEST = 100
ROOM = 2 * LARGEST, DEEPEST + 20
"""For what holds values: a test may pass on what it was given, and that must not be too much again."""
MOST = 2_000_000
"""Values within one value."""
MOST_KEYS = 20_000
"""Entries of one dict or set, and half of them must differ in their hash: a table of equal hashes takes minutes."""
SMALL = 1 << 63
"""Integers beyond this are spelt in hexadecimal: decimal ones take time that grows with the square of their length."""


class NotLiteral(ValueError):
    """A value that cannot cross, or bytes that spell none."""


def encode(value: Any, largest: int = LARGEST, deepest: int = DEEPEST) -> bytes:
    """The bytes of a value. Raises `NotLiteral`."""
    spelt = json.dumps(_tagged(value, deepest, [MOST]), separators=(",", ":")).encode()
    if len(spelt) > largest:
        raise NotLiteral(f"a value of {len(spelt)} bytes, {largest} is the most")
    return spelt


def decode(spelt: bytes, largest: int = LARGEST, deepest: int = DEEPEST) -> Any:
    """The value of bytes. Raises `NotLiteral`, whatever the bytes are."""
    if len(spelt) > largest:
        raise NotLiteral(f"{len(spelt)} bytes, {largest} is the most")
    try:
        tagged = json.loads(spelt.decode("ascii"), parse_int=_small, parse_float=_finite, parse_constant=_small)
        return _value(tagged, deepest, [MOST])
    except NotLiteral:
        raise
    except (ValueError, TypeError, RecursionError, KeyError, binascii.Error, OverflowError) as error:
        raise NotLiteral(f"bytes that spell no value ({type(error).__name__})") from None


def _count(depth: int, left: list[int]) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise NotLiteral(f"more than {MOST} values in one")
    if depth < 0:
        raise NotLiteral("nested too deep")


def _tagged(value: Any, depth: int, left: list[int]) -> Any:
    _count(depth, left)
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -SMALL <= value < SMALL else {"i": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if kind is bytes:
        return {"b": base64.b64encode(value).decode()}
    if kind is list:
        return [_tagged(inner, depth - 1, left) for inner in value]
    if kind is tuple:
        return {"t": [_tagged(inner, depth - 1, left) for inner in value]}
    if kind is set:
        return {"s": [_tagged(inner, depth - 1, left) for inner in _few(list(value))]}
    if kind is dict:
        _few(list(value))
        pairs = [[_tagged(key, depth - 1, left), _tagged(inner, depth - 1, left)] for key, inner in value.items()]
        return {"d": pairs}
    raise NotLiteral(kind.__name__)


def _value(tagged: Any, depth: int, left: list[int]) -> Any:
    _count(depth, left)
    if isinstance(tagged, list):
        return [_value(inner, depth - 1, left) for inner in tagged]
    if not isinstance(tagged, dict):
        return tagged
    [(tag, held)] = tagged.items()
    if tag == "i":
        return _large(held)
    if tag == "f":
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[held]
    if tag == "b":
        return base64.b64decode(held, validate=True)
    if not isinstance(held, list):
        raise NotLiteral("a container without contents")
    if tag == "t":
        return tuple(_value(inner, depth - 1, left) for inner in held)
    if tag == "s":
        return set(_few([_value(inner, depth - 1, left) for inner in held]))
    if tag == "d":
        pairs = [(_value(key, depth - 1, left), _value(inner, depth - 1, left)) for key, inner in held]
        _few([key for key, _ in pairs])
        return dict(pairs)
    raise NotLiteral(f"no kind of value: {tag[:20]!r}")


def _few(keys: list[Any]) -> list[Any]:
    if len(keys) > MOST_KEYS or 2 * len({hash(key) for key in keys}) < len(keys):
        raise NotLiteral(f"a dict or set of more than {MOST_KEYS} keys, or of keys that collide")
    return keys


def _small(digits: str) -> int:
    if len(digits) > 20:
        raise NotLiteral("an integer that should be spelt in hexadecimal")
    return int(digits)


def _large(digits: Any) -> int:
    if not isinstance(digits, str) or "_" in digits or digits.strip() != digits:
        raise NotLiteral("no integer")
    return int(digits, 16)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotLiteral("a number beyond all floats")
    return value
