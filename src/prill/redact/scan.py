"""Where a secret may begin: a few places of many bytes, found without looking at each byte in Python.

Each beginning is known by two neighbours of its bytes. Two translations of the data give each byte the groups in which
it may come first, and second; where both meet, a pair stands that is looked at more closely. What is found is only a
candidate; what is not found cannot match.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
BLOCK = 1 << 18
_MARGIN = 4
_ENDS = b"\\\"' \t\n\r\f\v:="
"""What may follow the name of a place."""
_NAMES = (b"ke", b"ki", b"cr", b"sw", b"za", b"ph")
"""Pairs that give names away: toKEn, KEy, cooKIe, seCRet, CRedential, pasSWord, pasSWd, authoriZAtion, pasSPHrase."""
_COMMON = b' ent\\sroail"dfcumph,.():g_-=wbykv[]0NxETSA{1}'
"""Bytes of a trace, commonest first."""
_WEIGHT = [0.002] * 256
for _rank, _byte in enumerate(_COMMON):
    _WEIGHT[_byte] = 0.19 / (1 + _rank) ** 0.85
GROUPS = 8


class Tables(NamedTuple):
    """How beginnings and names are found."""

    first: bytes
    second: bytes
    """Of each byte: in which groups it may come first, and second."""
    three: Any
    """By `_mixed`: the pair with the byte before it."""
    at: dict[bytes, int]
    """Beginning → number of the second byte of its pair."""


@lru_cache(maxsize=16)
def tables(beginnings: tuple[bytes, ...]) -> Tables:
    """For the names of places, and for beginnings of three bytes or more. What comes back is not to be changed."""
    import numpy as np

    groups: list[Any] = [[set(), set(), 0.0] for _ in range(GROUPS)]
    for name in _NAMES:
        for pair in (name, name.upper(), name.title(), name[:1] + name[1:].upper()):
            _join(groups, [pair])
    three = np.zeros(1 << 16, bool)
    at = {}
    for prefix in beginnings:
        number = at[prefix] = _join(groups, [prefix[place : place + 2] for place in range(1, len(prefix) - 1)]) + 2
        three[_mixed(prefix[number - 2], prefix[number - 1], prefix[number])] = True
    first, second = bytearray(256), bytearray(256)
    for number, (ones, others, _) in enumerate(groups):
        for table, members in ((first, ones), (second, others)):
            for byte in members:
                table[byte] |= 1 << number
    return Tables(bytes(first), bytes(second), three, at)


def _mixed(one: Any, two: Any, three: Any) -> Any:
    """Three bytes as a number of 16 bits."""
    return (two << 8 | three) ^ one * 0x101


def _join(groups: list[Any], pairs: Sequence[bytes]) -> int:
    """Put the pair into the group that grows least by it; the number of the pair."""

    def grown(group: Any, pair: bytes) -> float:
        sides = [sum(_WEIGHT[byte] for byte in {*members, byte_}) for members, byte_ in zip(group, pair, strict=False)]
        return float(sides[0] * sides[1] - group[2])

    best = min(
        ((grown(group, pair), number, place) for place, pair in enumerate(pairs) for number, group in enumerate(groups))
    )
    group, pair = groups[best[1]], pairs[best[2]]
    group[0].add(pair[0])
    group[1].add(pair[1])
    group[2] += best[0]
    return best[2]


class Places(NamedTuple):
    """Candidates, in order."""

    beginnings: list[int]
    """Second bytes of pairs."""
    names: list[int]
    """First bytes of pairs."""


def places(data: bytes, known: Tables) -> Places:
    """Where one of the beginnings may stand, and where the name of a secret may."""
    import numpy as np

    ends, of_name = np.zeros(256, bool), np.zeros(1 << 16, bool)
    ends[list(_ENDS)] = True
    for name in _NAMES:
        of_name[(name[0] << 8 | name[1]) | 0x2020] = True
    padded = np.frombuffer(b"\0" * _MARGIN + data + b"\0" * _MARGIN, np.uint8)
    beginnings, names = [np.zeros(0, int)], [np.zeros(0, int)]
    for start in range(0, len(data), BLOCK):
        f = padded[start : start + BLOCK + 2 * _MARGIN]
        block = f.tobytes()
        one = np.frombuffer(block.translate(known.first), np.uint8)[_MARGIN:-_MARGIN]
        two = np.frombuffer(block.translate(known.second), np.uint8)[_MARGIN + 1 : 1 - _MARGIN]
        at = np.flatnonzero((one & two) != 0) + _MARGIN
        here, there = f[at].astype(np.uint16), f[at + 1].astype(np.uint16)
        begins = at[known.three[_mixed(f[at - 1].astype(np.uint16), here, there)]]
        beginnings.append(begins + (start - _MARGIN + 1))
        named = at[of_name[here << 8 | there | 0x2020]]
        if len(named):
            names.append(named[_names(f | 0x20, named, ends[f[named + 3]])] + (start - _MARGIN))
    return Places(np.concatenate(beginnings).tolist(), np.concatenate(names).tolist())


def by_pair(known: Tables, things: Iterable[tuple[bytes, T]]) -> dict[bytes, list[tuple[int, T]]]:
    """Things under the pair by which their beginnings are found, with the number of its second byte."""
    found: dict[bytes, list[tuple[int, T]]] = {}
    for prefix, thing in things:
        at = known.at[prefix]
        found.setdefault(prefix[at - 1 : at + 1], []).append((at, thing))
    return found


def starts(data: bytes, found: Iterable[int], by_pair: Mapping[bytes, list[tuple[int, T]]]) -> Iterator[tuple[int, T]]:
    """Where each thing may begin of which a pair was found, with the thing."""
    for place in found:
        for at, thing in by_pair.get(data[place - 1 : place + 1], ()):
            if place >= at:
                yield place - at, thing


def _names(f: Any, at: Any, over: Any) -> Any:
    """Which pairs stand in a name; `over`: whether the third byte behind may end one."""
    sign, one, two, three = f[at], f[at + 1], f[at + 2], f[at + 3]
    key = (sign == 0x6B) & over & (((one == 0x65) & ((two == 0x6E) | (two == 0x79))) | ((one == 0x69) & (two == 0x65)))
    secret = (sign == 0x63) & (two == 0x65) & ((three == 0x74) | (three == 0x64))
    password = (sign == 0x73) & ((two == 0x6F) | (two == 0x64))
    phrase = (sign == 0x70) & (two == 0x72) & (three == 0x61)
    return key | secret | password | phrase | (sign == 0x7A)
