"""The contamination scanner at work on the seeded corpus, for the rows of the table that measure it."""

import os
import tempfile
from functools import lru_cache
from pathlib import Path

from bench.corpus import Corpus, prepared
from prill.overlap.engine import Engine, engine_for
from prill.overlap.index import LEVELS, Index, units_of
from prill.overlap.scan import Report, Scan
from prill.overlap.store import index_of

FULL_BYTES = 320_000_000
"""Of the whole corpus; `PRILL_BENCH_BYTES` takes less where a machine is slow."""
PLANTS = 200
"""Of each kind."""


@lru_cache(1)
def corpus() -> Corpus:
    """The corpus that all rows share."""
    return prepared(int(os.environ.get("PRILL_BENCH_BYTES", FULL_BYTES)), PLANTS)


@lru_cache(1)
def ready() -> tuple[Index, Engine]:
    """The index of the corpus's items, and the compiled scanner."""
    place = Path(tempfile.gettempdir()) / f"prill-bench-{os.getuid()}"
    units, bare = units_of("bench", corpus().items)
    index = index_of(units, bare, place)
    return index, engine_for(index, LEVELS["normal"], place, compiled=True)


def scan(file: Path, *, workers: int = 1, look: bool = True) -> Report:
    """A scan of a file; without the close look, flagged rows are only counted."""
    index, engine = ready()
    made = Scan(index, LEVELS["normal"], engine, workers=workers, **({} if look else {"most_windows": 0}))
    made.tree(file)
    return made.report()
