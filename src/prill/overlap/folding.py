"""The fast form of `words.folded`, 64 bytes at a time; `kernel.py` compiles it and says how.

A chunk is folded where it lies; only its last bytes are given once more, with room behind them, as nothing here checks
the bounds of a buffer.
"""

from typing import Any

from prill.overlap import vectors
from prill.overlap.words import PLANES

MARGIN = 2 * vectors.WIDTH
"""Bytes to spare at either end of what is folded, and behind the last bytes of a chunk."""
TAIL = vectors.WIDTH
"""Last bytes of a chunk, which are folded where there is room behind them."""
u: Any = int
trailing: Any = None
fold64: Any = None


def hexadecimal(data: Any, at: int) -> int:
    """Four hexadecimal digits as a number, or -1."""
    value = 0
    for place in range(at, at + 4):
        c = data[place]
        if 48 <= c < 58:
            digit = c - 48
        elif 97 <= c | 32 < 103:
            digit = (c | 32) - 87
        else:
            return -1
        value = value << 4 | digit
    return value


def put(target: Any, to: int, table: Any, point: int) -> int:
    """Write what a character becomes; the place behind it comes back."""
    if point < PLANES:
        packed = table[point]
        length = packed & u(7)
        for number in range(length):
            target[to + number] = (packed >> (u(56) - u(8) * number)) & u(255)
        return int(to + length)
    target[to] = 32
    if point >= 0x110000:
        return to + 1
    target[to + 1] = 0xF0 | point >> 18
    target[to + 2] = 0x80 | point >> 12 & 63
    target[to + 3] = 0x80 | point >> 6 & 63
    target[to + 4] = 0x80 | point & 63
    target[to + 5] = 32
    return to + 6


def escape(data: Any, at: int, end: int, target: Any, to: int, table: Any) -> tuple[int, int]:
    """Write what a run of backslashes and what it escapes become; the places behind them come back."""
    while at < end and data[at] == 0x5C:
        at += 1
    if at == end:
        target[to] = 32
        return at, to + 1
    c = data[at]
    if c == 110 or c == 114 or c == 116 or c == 102 or c == 98:  # n r t f b
        target[to] = 32
        return at + 1, to + 1
    point = hexadecimal(data, at + 1) if c == 117 and at + 5 <= end else -1
    if point < 0:
        target[to] = 32
        return at, to + 1
    at += 5
    if 0xD800 <= point < 0xDC00:
        behind = at
        while behind < end and data[behind] == 0x5C:
            behind += 1
        if at < behind and behind + 5 <= end and data[behind] == 117:
            low = hexadecimal(data, behind + 1)
            if 0xDC00 <= low < 0xE000:
                point = 0x10000 + ((point & 0x3FF) << 10) + (low & 0x3FF)
                at = behind + 5
    return at, put(target, to, table, point)


def character(data: Any, at: int, end: int, target: Any, to: int, table: Any) -> tuple[int, int]:
    """Write what the character that begins at a byte above 127 becomes; the places behind them come back."""
    first = int(data[at])
    length = 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4 if 0xF0 <= first < 0xF5 else 0
    if length == 0 or at + length > end:
        target[to] = 32
        return at + 1, to + 1
    point = first & (0x7F >> length)
    for place in range(at + 1, at + length):
        c = int(data[place])
        if c & 0xC0 != 0x80:
            target[to] = 32
            return at + 1, to + 1
        point = point << 6 | c & 63
    return at + length, put(target, to, table, point)


def stretch(data: Any, at: int, last: int, end: int, target: Any, to: int, table: Any) -> tuple[int, int]:
    """Fold `data` from `at` until no 64 bytes begin at `last` or before it; the places behind come back.

    After something special the next 64 bytes are read and written from there on, over what was written too much.
    """
    source, place = u(data.ctypes.data), u(target.ctypes.data)
    while at <= last:
        special = fold64(source + u(at), place + u(to))
        if special == u(0):
            at += 64
            to += 64
            continue
        skipped = int(trailing(special))
        at += skipped
        to += skipped
        if at >= end:
            break
        if data[at] == 0x5C:
            at, to = escape(data, at, end, target, to, table)
        else:
            at, to = character(data, at, end, target, to, table)
    return at, to


def fold(data: Any, tail: Any, target: Any, table: Any) -> int:
    """Fold a chunk into `target`, from `MARGIN` on; the place behind the last byte comes back."""
    end, size = len(data), len(tail) - MARGIN
    at, to = stretch(data, 0, end - TAIL, end, target, MARGIN, table)
    at, to = stretch(tail, at - (end - size), size - 1, size, target, to, table)
    to -= at - size
    for behind in range(to, to + MARGIN):
        target[behind] = 32
    return to
