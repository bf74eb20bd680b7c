"""The search of `redact.scan`, compiled by numba: the same places, in a third of the time, for who has much to search.

Loading it takes as long as the plain search of hundreds of megabytes, so a process begins without it. Where numba is
not installed, or what it compiled cannot be kept or finds other places in a probe, the plain search does all the work.
Not covered: what is made of the places, which is the same for both.
"""

from functools import cache
from types import FunctionType
from typing import Any, cast

from prill.redact import scan

ENOUGH = 512 << 20
"""Bytes searched by one process from which on loading pays."""
MOST = 1 << 31
"""Bytes in one piece."""
STRETCH = 4096
"""Pairs whose numbers stay near the processor."""
u: Any = int


def search(d: Any, pairs: Any, three: Any, ahead: Any, kind: Any, kinds: Any, out: Any, maybe: Any) -> Any:
    """`scan.places` over an array of bytes: places go to `out`, and how many is told. Plain Python over arrays."""
    size, found = u(len(d)), u(0)
    end = size & ~u(1)
    for start in range(u(0), end, u(2 * STRETCH)):
        count = u(0)
        for at in range(start, min(start + u(2 * STRETCH), end), u(2)):
            maybe[count] = at
            count += u(pairs[u(d[at]) | u(d[at + u(1)]) << u(8)])
        for number in range(u(0), count):
            at = u(maybe[number])
            for place in range(at - u(1) if at else at, at + u(1)):
                if place + u(2) >= size:
                    continue
                one, two = u(d[place]), u(d[place + u(1)])
                what = three[((two << u(8)) | u(d[place + u(2)])) ^ (one * u(0x101))]
                if what:
                    behind = min(place + u(ahead[what]), size - u(1))
                    if kinds[d[behind]] & kind[what]:
                        out[found] = place
                        found += u(1)
    return found


@cache
def _compiled() -> Any:
    """`search`, compiled; `None` where that cannot be."""
    try:
        from numba import njit, uint64

        space = {**globals(), "u": uint64}
        made = njit(cache=True, nogil=True)(FunctionType(search.__code__, space, search.__name__))
        tables, probe = scan.tables((b"sk-", b"AKIA"), scan.NAMES), _probe()
        return made if _places(made, probe, tables) == scan.places(probe, tables) else None
    except Exception:  # whatever numba or LLVM cannot do on this machine, the plain search can
        return None


def _probe() -> bytes:
    """Each wanted three at even and odd places, in names that go on as they must and in some that do not."""
    wanted = [b"sk-", b"AKIA", *(letters for name in scan.NAMES for letters in name.written())]
    return b"".join(three + behind for three in wanted for behind in (b"nt=", b"d ", b"tL", b"word: ", b"raph\xff"))


def _places(made: Any, data: bytes, known: scan.Tables) -> list[int]:
    import numpy as np

    out, maybe = np.empty(len(data), np.uint32), np.empty(STRETCH + 1, np.uint32)
    signs = np.frombuffer(data, np.uint8)
    found = made(signs, known.pairs, known.three, known.ahead, known.kind, known.kinds, out, maybe)
    return cast(list[int], out[:found].tolist())


class Search:
    """`scan.places` for one process: compiled once it has searched so many bytes."""

    def __init__(self, enough: int = ENOUGH) -> None:
        self.left = enough

    def load(self) -> bool:
        """Compile at once; whether that can be."""
        self.left = 0
        return _compiled() is not None

    def places(self, data: bytes, known: scan.Tables) -> list[int]:
        """Where the three bytes of a beginning or of a name may stand, in order."""
        self.left -= len(data)
        made = _compiled() if self.left < 0 and len(data) < MOST else None
        return scan.places(data, known) if made is None else _places(made, data, known)


THE_SEARCH = Search()
"""Of this process."""
