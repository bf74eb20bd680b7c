"""Whether an ed25519 signature is good, in arithmetic alone (RFC 8032, section 5.1.7), and DSSE envelopes. Pure, total.

It only checks; signing, which needs a key, is done by `openssl`. Written for clearness: about ten milliseconds each.
Not covered: whose key it is, when it was used, and whether it was taken back.
"""

import base64
import binascii
import hashlib
from typing import Any

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, PRIME - 2, PRIME) % PRIME
DER_PREFIX = bytes.fromhex("302a300506032b6570032100")
"""Before the 32 bytes of a public key, in the middle line of its PEM file (RFC 8410)."""
Point = tuple[int, int, int, int]
"""Extended coordinates: x = X/Z, y = Y/Z, T = XY/Z."""
NEUTRAL: Point = (0, 1, 1, 0)


def added(p: Point, q: Point) -> Point:
    """The sum of two points of the curve."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % PRIME, (p[1] + p[0]) * (q[1] + q[0]) % PRIME
    c, d = 2 * p[3] * q[3] * CURVE % PRIME, 2 * p[2] * q[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME


def times(number: int, point: Point) -> Point:
    """A point added to itself so many times."""
    sum = NEUTRAL
    while number:
        if number & 1:
            sum = added(sum, point)
        point, number = added(point, point), number >> 1
    return sum


def equal(p: Point, q: Point) -> bool:
    """Whether two spellings mean one point."""
    return (p[0] * q[2] - q[0] * p[2]) % PRIME == 0 == (p[1] * q[2] - q[1] * p[2]) % PRIME


def unpacked(data: bytes) -> Point | None:
    """The point that 32 bytes stand for; `None` where they stand for none."""
    whole = int.from_bytes(data, "little")
    y, sign = whole & (2**255 - 1), whole >> 255
    if len(data) != 32 or y >= PRIME:
        return None
    square = (y * y - 1) * pow(CURVE * y * y + 1, PRIME - 2, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if (x * x - square) % PRIME:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    if (x * x - square) % PRIME or (x == 0 and sign):
        return None
    x = PRIME - x if x & 1 != sign else x
    return x, y, 1, x * y % PRIME


def good(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether 64 bytes are the signature of this message by the key of these 32 bytes."""
    key, first = unpacked(public), unpacked(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or first is None or len(signature) != 64 or scalar >= ORDER or equal(times(8, key), NEUTRAL):
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    base = unpacked((4 * pow(5, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little"))
    assert base is not None
    return equal(times(scalar, base), added(first, times(int.from_bytes(digest, "little") % ORDER, key)))


def key_of(line: str) -> bytes | None:
    """The 32 bytes of a public key, out of the middle line of its PEM file; `None` for anything else."""
    try:
        whole = base64.b64decode(line.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return whole[len(DER_PREFIX) :] if whole.startswith(DER_PREFIX) and len(whole) == 44 else None


def statement(envelope: Any, public: bytes) -> bytes | None:
    """What a DSSE envelope holds, if one of its signatures is of this key; `None` otherwise. Total."""
    try:
        kind, payload = str(envelope["payloadType"]).encode(), base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(each["sig"], validate=True) for each in envelope["signatures"]][:8]
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    return payload if any(good(public, signed, each) for each in signatures) else None
