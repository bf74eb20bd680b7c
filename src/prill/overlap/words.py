"""Bytes → words, as the scanner compares them; the plain form that the fast one in `kernel.py` is held against.

A word is a run of letters and digits with case, accents, width and ligatures folded away. A word that begins with a
digit is a *number*; numbers are all alike, and a run of them is one. A run of backslashes is a blank, together with a
letter of `nrtfb` behind it; `\\uXXXX` is the character that it stands for. So text is the same bare, as JSON, and as
JSON inside JSON, and nobody has to know which it was. Writing without blanks has a word for each character.
Not covered: letters of other alphabets that look like Latin ones, and HTML entities.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

ALL = (1 << 64) - 1
HALF = (1 << 32) - 1
MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
NUMBER = 0x5851F42D4C957F2D
"""What stands for any number, in place of a word's hash."""
ROTATIONS = (0, 11, 23, 37, 49)
SIZE = len(ROTATIONS)
"""Words in a gram."""
KEPT_BYTES = 16
"""Of a longer word, only so many bytes are compared."""
PLANES = 0x20000
"""Characters from here on are a word each, unfolded."""
SPACED = (  # writing without blanks: kana, Han, Thai, Lao, Myanmar, Khmer
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F),
)  # fmt: skip
LONGEST_FOLD = 7
WORD = re.compile(rb"[^ \n]+")
SPECIAL = re.compile(
    rb"[\\\x80-\xff](?:(?<=\\)\\*(?:u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[nrtfb])?"
    rb"|(?<=[\xc2-\xdf])[\x80-\xbf]|(?<=[\xe0-\xef])[\x80-\xbf]{2}|(?<=[\xf0-\xf4])[\x80-\xbf]{3})?"
)
"""Escapes, characters outside ASCII, and bytes that begin none. It begins with a set, which `re` looks for fast."""
BLANKED = bytes(
    b if b == 10 or 48 <= b < 58 or 97 <= b < 123 else b + 32 if 65 <= b < 91 else 32 for b in range(128)
) + bytes(range(128, 256))


class Word(NamedTuple):
    """One word: what it is compared by, what it is exactly, and where it stands in the bytes that it came from."""

    hash: int
    text: bytes
    start: int
    end: int


@lru_cache(1 << 16)
def fold(point: int) -> bytes:
    """What a character becomes: letters and digits in UTF-8, blanks where it separates, nothing where it is a mark."""
    if point >= PLANES:
        return b" " + chr(point).encode(errors="replace") + b" " if point < 0x110000 else b" "
    if 0xD800 <= point < 0xE000:
        return b" "
    character = chr(point)
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return b""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    letters = "".join(letter(c) for c in plain if unicodedata.category(c) not in ("Mn", "Me", "Cf"))
    whole = unicodedata.normalize("NFC", letters).encode()
    if len(whole) > LONGEST_FOLD:
        whole = whole[:LONGEST_FOLD].decode(errors="ignore").encode()
    return whole


def letter(character: str) -> str:
    """A letter as it is, by itself where its writing has no blanks, a digit as 0–9, anything else as a blank."""
    if unicodedata.category(character) == "Nd":
        return str(unicodedata.decimal(character))
    if any(low <= ord(character) <= high for low, high in SPACED):
        return f" {character} " if character.isalnum() else " "
    return character if character.isalnum() else " "


class Shift(NamedTuple):
    """Something that became another number of bytes: where it stands in the folded bytes, and where it stood."""

    begin: int
    end: int
    source: int
    behind: int


def folded(data: bytes) -> tuple[bytes, list[Shift]]:
    """Data with words folded and all else blank (line ends stay), and what has another length than before."""
    shifts: list[Shift] = []
    moved = 0

    def become(found: "re.Match[bytes]") -> bytes:
        nonlocal moved
        (start, end), piece = found.span(), special(found[0])
        if piece == b" ":
            return piece * (end - start)
        if len(piece) != end - start or b" " in piece:
            shifts.append(Shift(start + moved, start + moved + len(piece), start, end))
            moved += len(piece) - (end - start)
        return piece

    return SPECIAL.sub(become, data).translate(BLANKED), shifts


def special(found: bytes) -> bytes:
    """What a match of `SPECIAL` becomes."""
    escaped = found.lstrip(b"\\")
    if len(escaped) == len(found):
        return b" " if len(found) == 1 else fold(point_of(found))
    if not escaped.startswith(b"u"):
        return b" "
    point = int(escaped[1:5], 16)
    if len(escaped) > 5:
        point = 0x10000 + ((point & 0x3FF) << 10) + (int(escaped[-4:], 16) & 0x3FF)
    return fold(point)


def point_of(character: bytes) -> int:
    """The number that UTF-8 of two to four bytes says, also where no character may have it."""
    point = character[0] & (0x7F >> len(character))
    for byte in character[1:]:
        point = point << 6 | byte & 0x3F
    return point


def words(data: bytes, shift: int = 0) -> list[Word]:
    """All words, numbers each by itself; `shift` is added to their places."""
    text, shifts = folded(data)
    return words_between(text, shifts, 0, len(text), shift)


def words_between(text: bytes, shifts: list[Shift], begin: int, end: int, shift: int = 0) -> list[Word]:
    """Words between two places of what `folded` gives."""
    if not shifts:
        return [Word(hash_of(m[0]), m[0], m.start() + shift, m.end() + shift) for m in WORD.finditer(text, begin, end)]
    last = bisect_right(shifts, begin, key=lambda each: each.begin)
    before = shifts[last - 1] if last else Shift(0, 0, 0, 0)
    found = []
    for match in WORD.finditer(text, begin, end):
        start, stop = match.span()
        while last < len(shifts) and shifts[last].begin <= start:
            before, last = shifts[last], last + 1
        first = before.source if start < before.end else start - before.end + before.behind
        while last < len(shifts) and shifts[last].begin < stop:
            before, last = shifts[last], last + 1
        behind = before.behind if stop <= before.end else stop - before.end + before.behind
        found.append(Word(hash_of(match[0]), match[0], first + shift, behind + shift))
    return found


def word_at(text: bytes, shifts: list[Shift], begin: int, number: int, shift: int = 0) -> Word:
    """The word that stands so many behind the first from a place on, in what `folded` gives."""
    start, end = next(islice(WORD.finditer(text, begin), number, None)).span()
    [word] = words_between(text, shifts, start, end, shift)
    return word


def runs_of(many: int) -> "re.Pattern[bytes]":
    """Finds runs of so many words in folded text, the last one of what is left."""
    return re.compile(rb"(?:[^ \n]+[ \n]*+){1,%d}+" % many)


def plain(data: bytes) -> bytes:
    """The texts of all words with a blank on either side of each, so that a run of them can be searched for."""
    return b" %b " % b" ".join(folded(data)[0].split())


def hash_of(word: bytes) -> int:
    """64 bits for a word; the same for every number."""
    return hashed(word[:KEPT_BYTES])


@lru_cache(1 << 14)
def hashed(word: bytes) -> int:
    """`hash_of` what is compared of a word; the rest, which may be long, is not remembered."""
    if 48 <= word[0] < 58:
        return NUMBER
    low, high = int.from_bytes(word[:8], "little"), int.from_bytes(word[8:], "little")
    low, high = low ^ MIX[0], high ^ MIX[1]
    mixed = (product(low) ^ swapped(high)) + (product(high) ^ swapped(low)) & ALL
    return mixed ^ mixed >> 32


def product(value: int) -> int:
    """The halves of 64 bits, multiplied: what machines without wide multiplications do in one step."""
    return (value & HALF) * (value >> 32)


def swapped(value: int) -> int:
    """The halves of 64 bits, each in the place of the other."""
    return (value & HALF) << 32 | value >> 32


def masked(hashes: Sequence[int]) -> list[int]:
    """Which of the words with these hashes are compared: of a run of numbers only the first."""
    return [place for place, value in enumerate(hashes) if value != NUMBER or place == 0 or hashes[place - 1] != NUMBER]


def fives(hashes: Sequence[int]) -> "zip[tuple[int, ...]]":
    """Hashes of each `SIZE` neighbouring words."""
    return zip(*(hashes[shift:] for shift in range(SIZE)), strict=False)


def gram(hashes: Sequence[int]) -> int:
    """64 bits for `SIZE` words in their order."""
    a, b, c, d, e = hashes
    _, p, q, r, s = ROTATIONS
    return (
        a
        ^ (b << p | b >> (64 - p)) & ALL
        ^ (c << q | c >> (64 - q)) & ALL
        ^ (d << r | d >> (64 - r)) & ALL
        ^ (e << s | e >> (64 - s)) & ALL
    )
