"""Secrets out of text before it is kept or shown: rules S1 to S5 of RULES.md on publishing.

Three nets: values that are known (S1), shapes of keys (S2), values in places that are named after a secret (S3).
On its way to disk a stream loses the known values only and keeps every other byte; before anything is published it goes
through all three. Not covered: a secret that is none of these, one that was encoded, and one cut to less than ten
characters.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from prill.redact import known, scan
from prill.redact.known import Span, Window
from prill.redact.scan import Name
from prill.redact.shapes import LONGEST_KEY, PRIVATE_KEY, SHAPES, Shape, by_place, by_shape, hangs

__all__ = ["Redactor", "Stream", "redact"]
MOST_HANGING = 8
"""Lines in a row that end in the name of a place, before which a cut is looked for."""


def redact(text: str, secrets: Mapping[str, str]) -> str:
    """Text with every secret replaced by its name or by a word (S1 to S5). What surrounds it stays as it is.

    `secrets`: names of variables and their values; empty and short values are never searched for (S4).
    """
    clean = Redactor(secrets).redact(text.encode("utf-8", "surrogatepass"))
    return clean.decode("utf-8", "surrogatepass")


class Redactor:
    """All three nets, for whole bytes of any kind."""

    def __init__(
        self,
        secrets: Mapping[str, str],
        shapes: Sequence[Shape] = SHAPES,
        places: Callable[[bytes, scan.Tables], list[int]] = scan.places,
    ) -> None:
        """`places`: a search that finds what `scan.places` does."""
        self.counts: dict[str, int] = {}
        """Replaced so far, by name, shape or place."""
        self._places = places
        self._wanted = known.needles(secrets)
        windows = [window for needle in self._wanted for window in known.windows(needle)]
        names = scan.NAMES if shapes else ()
        beginnings = [*(window.bytes for window in windows), *(shape.prefix for shape in shapes)]
        things: list[tuple[bytes, Window | Shape | Name]] = [
            *((window.bytes, window) for window in windows),
            *((shape.prefix, shape) for shape in shapes),
            *((letters, name) for name in names for letters in name.written()),
        ]
        self._tables = scan.tables(tuple(beginnings), names)
        self._things = scan.by_three(self._tables, things)

    def redact(self, data: bytes) -> bytes:
        """The data without secrets."""
        starts = self._starts(data)
        shaped = [(place, thing) for place, thing in starts if isinstance(thing, Shape)]
        named = [(place, thing) for place, thing in starts if isinstance(thing, Name)]
        found = self._known(data, starts) + by_shape(data, shaped) + by_place(data, named)
        return known.replaced(data, found, self.counts)

    def _starts(self, data: bytes) -> list[tuple[int, Window | Shape | Name]]:
        return scan.starts(data, self._places(data, self._tables), self._things)

    def _known(self, data: bytes, starts: Iterable[tuple[int, Window | Shape | Name]]) -> list[Span]:
        windows = [(place, thing) for place, thing in starts if isinstance(thing, Window)]
        return known.spans(data, known.beginnings(data, windows))

    def cut(self, data: bytes) -> int:
        """Behind the last line feed before which the data may be redacted by itself; 0 where there is none."""
        key = data.rfind(PRIVATE_KEY, max(0, len(data) - 2 * LONGEST_KEY))
        most = min(known.pending(data, self._wanted), key if key >= 0 else len(data))
        cut = data.rfind(b"\n", 0, most) + 1
        reach = known.reach(self._wanted)
        hanging = MOST_HANGING
        while cut:
            near = data[max(0, cut - reach) : cut + reach]
            place = min(cut, reach)
            over = [span.start for span in self._known(near, self._starts(near)) if span.start < place < span.end]
            if over:
                cut = data.rfind(b"\n", 0, cut - place + min(over)) + 1
            elif hanging and hangs(data, cut):
                hanging, cut = hanging - 1, data.rfind(b"\n", 0, cut - 1) + 1
            else:
                break
        return cut


class Stream(Redactor):
    """Known values out of bytes as they come, wherever the pieces are cut; every other byte passes, in order.

    Only what may be the beginning of a value is held back, so hardly anything is lost with a process that dies.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        super().__init__(secrets, shapes=())
        self._held = b""

    def redact(self, data: bytes) -> bytes:
        """The data, whole, without known values."""
        return known.replaced(data, self._known(data, self._starts(data)), self.counts)

    def feed(self, piece: bytes) -> bytes:
        """What can be kept so far."""
        data = self._held + piece
        if not self._wanted:
            return data
        found = known.merged(self._known(data, self._starts(data)))
        keep = known.pending(data, self._wanted)
        for span in reversed(found):
            if span.start < keep < span.end:
                keep = span.start
        self._held = data[keep:]
        return known.replaced(data[:keep], [span for span in found if span.end <= keep], self.counts)

    def flush(self) -> bytes:
        """What was held back, at the end."""
        data, self._held = self._held, b""
        return self.redact(data)
