"""Word n-grams of test items, looked for in any text, document by document.

An item counts as *contained* in a document when at least `COVERAGE` of its question's n-grams stand there. Words are
lower-cased alphanumeric runs, numbers kept, so an item with other numbers is another item. Evidence is per document:
a line of a line-based file, else a whole file cut into overlapping pieces.
Not covered yet: paraphrases, items split over several documents, token ids, archives and compressed or encoded files
(they are named as unread, never passed over in silence).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from prill.sockets import Item, Value

WORD = re.compile(r"[^\W_]+")
SIZE = 5
COVERAGE = 0.9
LINE_BYTES = 1 << 20
FILE_BYTES = 2 << 30
BINARY_SUFFIXES = frozenset({".safetensors", ".bin", ".pt", ".pth", ".gguf", ".npy", ".npz", ".pyc"})
OPAQUE_SUFFIXES = frozenset({".parquet", ".arrow", ".gz", ".zst", ".bz2", ".xz", ".zip", ".tar", ".pkl", ".db"})


class Hit(Value, frozen=True, kw_only=True):
    """One item found in one document."""

    item: str
    file: str
    line: int
    offset: int
    length: int
    coverage: float
    quote: str


class Report(Value, frozen=True, kw_only=True):
    """What a scan saw."""

    hits: tuple[Hit, ...]
    files: int
    documents: int
    bytes: int
    unread: tuple[str, ...]
    """Files that could not be read as text, each with the reason."""


class Index:
    """N-grams of every item's question → items. Grams that a quarter of the items share say nothing: left out."""

    def __init__(self, items: Iterable[Item]) -> None:
        grams = {item.id: frozenset(ngrams(item.question)) for item in items}
        spread = Counter(gram for found in grams.values() for gram in found)
        most = max(1, len(grams) // 4)
        self.items = {name: frozenset(g for g in found if spread[g] <= most) for name, found in grams.items()}
        self.where: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name, found in self.items.items():
            for gram in found:
                self.where[gram].append(name)

    def search(self, text: str) -> list[tuple[str, float]]:
        """Items contained in a document, with the share of their n-grams found there, best first."""
        seen = Counter(name for gram in set(ngrams(text)) for name in self.where.get(gram, ()))
        shares = ((name, count / len(self.items[name])) for name, count in seen.items())
        return sorted(((n, s) for n, s in shares if s >= COVERAGE), key=lambda pair: (-pair[1], pair[0]))


def ngrams(text: str, size: int = SIZE) -> Iterator[tuple[str, ...]]:
    """Runs of `size` words; a shorter text is one run of all its words. JSON escapes of line ends count as blanks."""
    words = WORD.findall(text.replace("\\n", " ").replace("\\t", " ").lower())
    if not words:
        return
    for start in range(max(1, len(words) - size + 1)):
        yield tuple(words[start : start + size])


def scan(root: Path, index: Index, *, skip: tuple[str, ...] = ()) -> Report:
    """Every regular file below `root`; `skip` names top-level entries to leave out. Bounded in memory by a line."""
    hits: list[Hit] = []
    unread: list[str] = []
    files = documents = total = 0
    for file in sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink()):
        name = str(file.relative_to(root))
        if file.relative_to(root).parts[0] in skip or file.suffix in BINARY_SUFFIXES:
            continue
        if file.suffix in OPAQUE_SUFFIXES or file.stat().st_size > FILE_BYTES:
            unread.append(f"{name}: {file.suffix or 'too large'} is not opened by this scanner")
            continue
        files, total = files + 1, total + file.stat().st_size
        for line, offset, text, length in lines_of(file):
            documents += 1
            hits += [
                Hit(item=item, file=name, line=line, offset=offset, length=length, coverage=share, quote=text[:200])
                for item, share in index.search(text)
            ]
    return Report(hits=tuple(hits), files=files, documents=documents, bytes=total, unread=tuple(unread))


def lines_of(file: Path) -> Iterator[tuple[int, int, str, int]]:
    """Line number, byte offset, text and byte length of each line; a longer line than `LINE_BYTES` comes in pieces."""
    offset, number = 0, 1
    with file.open("rb") as opened:
        while piece := opened.readline(LINE_BYTES):
            if piece.strip():
                yield number, offset, piece.decode(errors="replace"), len(piece)
            offset += len(piece)
            number += piece.endswith(b"\n")
