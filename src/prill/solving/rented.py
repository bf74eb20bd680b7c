"""What an agent pays for as time passes, by the suite's prices: the machine, and what it keeps on disk.

The disk is what outlives the box: the workspace and the folders that the agent's program keeps. Files count by their
length, as an object store bills them; a file with several names counts once. The rest of the box is memory and gone
with it. Not covered: what lies in a folder that the agent has shut or nested beyond the length of a path (how many
such folders there are stands in the ledger), and what comes and goes between two looks.
"""

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from prill.folder import RunFolder
from prill.gateway.ledger import Ledger
from prill.gateway.rent import Rent
from prill.spec import RunSpec

LOOK_SECONDS = 20.0
"""Between two looks at the disk; a look may take long where there are very many files, so nobody waits for it."""
GB = 2**30
MOST_WAITING = 1_000_000
"""Folders that are known and not yet looked into; one beyond counts as not read."""


@contextmanager
def rented(run: RunFolder, spec: RunSpec, ledger: Ledger) -> Iterator[list[Rent]]:
    """Whatever must be paid for by the hour; none where the suite has no price."""
    budget, rents = spec.budget, list[Rent]()
    if budget.gpu_usd_per_hour is not None:
        rents.append(Rent(ledger, "gpu", Decimal(budget.gpu_usd_per_hour), what=budget.gpu_kind))
    if budget.storage_usd_per_gb_hour is None:
        yield rents
        return
    with Kept([run.workspace, run.home]) as kept:
        rents.append(Rent(ledger, "storage", Decimal(budget.storage_usd_per_gb_hour), units=kept.gigabytes))
        yield rents


class Kept:
    """How much lies in some folders: looked at once before anything begins, then again and again by a thread."""

    def __init__(self, places: Sequence[Path]) -> None:
        self.places, self.over = places, threading.Event()
        self.bytes = self.shut = 0

    def __enter__(self) -> "Kept":
        self.bytes, self.shut = size(self.places)
        self.thread = threading.Thread(target=self.look, name="prill-kept", daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()

    def look(self) -> None:
        """Until it is over."""
        while not self.over.wait(LOOK_SECONDS):
            self.bytes, self.shut = size(self.places)

    def gigabytes(self) -> tuple[Decimal, str]:
        """What was there at the last look, for `Rent`."""
        found, shut = self.bytes, self.shut
        unread = f" and {shut} folders that could not be read" if shut else ""
        return Decimal(found) / GB, f" of {found} bytes{unread}"


def size(places: Sequence[Path]) -> tuple[int, int]:
    """Bytes of all regular files below some folders, links not followed, and how many folders could not be read."""
    total = shut = 0
    todo, seen = [os.fspath(place) for place in places], set[tuple[int, int]]()
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        total += length(entry, seen)
                    elif len(todo) < MOST_WAITING:
                        todo.append(entry.path)
                    else:
                        shut += 1
        except FileNotFoundError:  # it went while we looked
            continue
        except OSError:
            shut += 1
    return total, shut


def length(entry: "os.DirEntry[str]", seen: set[tuple[int, int]]) -> int:
    """Bytes of a regular file; 0 for anything else, for one that was `seen` by another name, and for one that went."""
    try:
        about = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0
    name = (about.st_dev, about.st_ino)
    if not stat.S_ISREG(about.st_mode) or name in seen:
        return 0
    if about.st_nlink > 1:
        seen.add(name)
    return about.st_size
