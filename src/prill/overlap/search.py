"""Are these items in those files? All of the scanner behind two functions."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prill.overlap.engine import engine_for
from prill.overlap.hidden import decoder
from prill.overlap.index import LEVELS, Level, Unit, units_of
from prill.overlap.scan import Report, Scan
from prill.overlap.sources import files_below
from prill.overlap.store import folder, index_of
from prill.sockets import Item

WORTH_COMPILING = 2_000_000
"""Bytes from which on the compiled scanner pays its start."""
SEVERE = ("verbatim", "case", "choices", "solution-only")
"""Kinds that no text has by coming from the same template."""


class Searcher:
    """Items that are looked for in one set of files after another."""

    def __init__(
        self,
        items: Mapping[str, Iterable[Item]],
        *,
        level: str = "normal",
        tokenizer: Path | None = None,
        allowed: Iterable[Path] = (),
        workers: int = 0,
        say: Callable[[str, int], None] = lambda name, size: None,
        plain: bool = False,
    ) -> None:
        """`items`: benchmark → its items. `allowed`: texts whose matches do not count. `plain`: never compiled."""
        units: list[Unit] = []
        bare: list[str] = []
        for name, each in items.items():
            made, without = units_of(name, each)
            units += made
            bare += without
        self.level: Level = LEVELS[level]
        self.cache, self.say, self.plain = folder(), say, plain
        self.index = index_of(units, tuple(bare), self.cache)
        self.decode = decoder(tokenizer) if tokenizer else None
        self.workers = workers or min(2, os.cpu_count() or 1)
        self.allowed: frozenset[tuple[str, str, bytes]] = frozenset()
        if places := list(allowed):
            self.allowed = frozenset(self.scan(places, remember=True).seen_words)

    def scan(self, places: Iterable[Path], skip: tuple[str, ...] = (), *, remember: bool = False) -> Scan:
        """Scan files and folders; `skip` names top-level entries of each folder to leave out."""
        roots = list(places)
        size = sum(file.lstat().st_size for root in roots if os.path.lexists(root)
                   for _, file, why in files_below(root, skip) if not why)  # fmt: skip
        compiled = not self.plain and size >= WORTH_COMPILING
        engine = engine_for(self.index, self.level, self.cache, compiled=compiled)
        made = Scan(
            self.index, self.level, engine, allowed=self.allowed, decode=self.decode,
            workers=self.workers if compiled else 1, say=self.say, remember=remember,
        )  # fmt: skip
        for root in roots:
            made.tree(root, skip=skip)
        return made

    def search(self, places: Iterable[Path], skip: tuple[str, ...] = ()) -> Report:
        """What stands in files and folders."""
        return self.scan(places, skip).report()
