"""Where a secret may begin: a few places of many bytes, found without looking at each byte in Python.

Each beginning is known by three neighbours of its bytes. The data are read as pairs; a table of all pairs tells which
may be the first or the last two of such three, and wherever three stand, one of their pairs is read. Only there a
second table looks at all three, and at one byte that must follow a name. What is found is only a candidate; what is
not found cannot match.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
BLOCK = 1 << 18
_ENDS = b"\\\"' \t\n\r\f\v:="
"""What may follow the name of a place."""


class Name(NamedTuple):
    """Three letters, small or capital, that give names of places away, and what stands behind them."""

    three: bytes
    back: int
    """Letters of the name before them."""
    ahead: int
    """From the first of the three on, where one of these bytes stands."""
    follows: bytes

    def written(self) -> list[bytes]:
        """In every mixture of small letters and capitals."""
        return [bytes(letters) for letters in product(*((letter, letter & ~32) for letter in self.three))]


NAMES = (
    Name(b"oke", 1, 4, _ENDS),  # token
    Name(b"key", 0, 3, _ENDS),
    Name(b"oki", 2, 4, _ENDS),  # cookie
    Name(b"ecr", 1, 5, _ENDS),  # secret
    Name(b"tia", 6, 3, b"lL"),  # credential
    Name(b"swo", 3, 3, b"rR"),  # password
    Name(b"swd", 3, 3, _ENDS),  # passwd
    Name(b"sph", 3, 3, b"rR"),  # passphrase
    Name(b"iza", 6, 3, b"tT"),  # authorization
)
_COMMON = b' ent\\sroail"dfcumph,.():g_-=wbykv[]0NxETSA{1}'
"""Bytes of a trace, commonest first."""
_WEIGHT = [0.002] * 256
for _rank, _byte in enumerate(_COMMON):
    _WEIGHT[_byte] = 0.19 / (1 + _rank) ** 0.85
_ANYTHING = 128
"""The kind of every byte."""


class Tables(NamedTuple):
    """How beginnings and names are found."""

    pairs: Any
    """By two bytes, the second one the higher: whether they may be two of three."""
    three: Any
    """By `_mixed`: number of what stands there, or 0."""
    ahead: Any
    """By that number: where the byte stands that must be of a kind, from the first of the three on."""
    kind: Any
    """By that number: the kind."""
    kinds: Any
    """Of each byte, the kinds that it is of, as bits."""
    at: dict[bytes, int]
    """Beginning → where in it the three stand."""


@lru_cache(maxsize=16)
def tables(beginnings: tuple[bytes, ...], names: tuple[Name, ...]) -> Tables:
    """For beginnings of three bytes or more, and for names of places. What comes back is not to be changed."""
    import numpy as np

    pairs, three = np.zeros(1 << 16, bool), np.zeros(1 << 16, np.uint8)
    ahead, kind = np.zeros(len(names) + 2, np.intp), np.zeros(len(names) + 2, np.uint8)
    kinds = np.full(256, _ANYTHING, np.uint8)
    kind[1] = _ANYTHING
    signs = list(dict.fromkeys(name.follows for name in names))
    for bit, follows in enumerate(signs):
        kinds[list(follows)] |= 1 << bit

    def add(wanted: bytes, number: int) -> None:
        pairs[wanted[0] | wanted[1] << 8] = pairs[wanted[1] | wanted[2] << 8] = True
        place = _mixed(*wanted)
        three[place] = number if three[place] in (0, number) else 1

    for number, name in enumerate(names, 2):
        ahead[number], kind[number] = name.ahead, 1 << signs.index(name.follows)
        for letters in name.written():
            add(letters, number)
    at = {}
    for prefix in beginnings:
        at[prefix] = min(range(len(prefix) - 2), key=lambda place: _price(prefix[place : place + 3], pairs))
        add(prefix[at[prefix] : at[prefix] + 3], 1)
    return Tables(pairs, three, ahead, kind, kinds, at)


def _mixed(one: Any, two: Any, three: Any) -> Any:
    """Three bytes as a number of 16 bits."""
    return (two << 8 | three) ^ one * 0x101


def _price(three: bytes, pairs: Any) -> float:
    """How many more pairs of a trace are looked at if these three are wanted."""
    both = [(three[place], three[place + 1]) for place in (0, 1)]
    return sum(0.0 if pairs[one | two << 8] else _WEIGHT[one] * _WEIGHT[two] for one, two in both)


def places(data: bytes, known: Tables) -> list[int]:
    """Where the three bytes of a beginning or of a name may stand, in order."""
    import numpy as np

    whole, found = np.frombuffer(data, np.uint8), []
    most = min(BLOCK, len(data)) // 2
    read, hit = np.empty(most, np.intp), np.empty(most, bool)
    for start in range(0, len(data) - 1, BLOCK):
        count = min(BLOCK, len(data) - start) // 2
        read[:count] = np.frombuffer(data, "<u2", count, start)
        known.pairs.take(read[:count], out=hit[:count], mode="clip")
        at = np.flatnonzero(hit[:count])
        at *= 2
        at += start
        at = np.concatenate((at - 1, at))
        one, two, three = (whole.take(at + step, mode="clip").astype(np.uint16) for step in range(3))
        number = known.three.take(_mixed(one, two, three))
        some = np.flatnonzero(number)
        number, at = number[some], at[some]
        behind = known.kinds[whole.take(at + known.ahead[number], mode="clip")]
        found.append(np.sort(at[(behind & known.kind[number]) != 0]))
    result: list[int] = np.concatenate(found).tolist() if found else []
    return result[1:] if result and result[0] < 0 else result


def by_three(known: Tables, things: Iterable[tuple[bytes, T]]) -> dict[bytes, list[tuple[int, bytes, T]]]:
    """Things under the three bytes by which their beginnings are found, with the place of these and the beginning."""
    found: dict[bytes, list[tuple[int, bytes, T]]] = {}
    for beginning, thing in things:
        at = known.at.get(beginning, 0)
        found.setdefault(beginning[at : at + 3], []).append((at, beginning, thing))
    return found


def starts(
    data: bytes, found: Iterable[int], by_three: Mapping[bytes, list[tuple[int, bytes, T]]]
) -> list[tuple[int, T]]:
    """Where each thing stands whose three bytes may stand at one of these places, with the thing."""
    result = []
    for place in found:
        for at, beginning, thing in by_three.get(data[place : place + 3], ()):
            if place >= at and data.startswith(beginning, place - at):
                result.append((place - at, thing))
    return result
