"""Inventory of a listing of ten million paths, above a plain loop that splits each line."""

import os
import resource
from pathlib import Path
from random import Random
from subprocess import check_output
from sys import executable
from tempfile import TemporaryDirectory

from bench.paired import paired
from bench.row import Row
from prill.audit import listing
from prill.audit.inventory import Names, Tally, inventory
from prill.catalog import Catalog
from prill.evidence import Listing
from prill.questions import Naming

GOAL = 1.0
PATHS = 10_000_000
ROOTS = 47


def write(file: Path, naming: Naming) -> None:
    """A tree as wide as the published one: seeded, in the order of a walk, eight files a folder."""
    chance = Random(0)
    each = PATHS // (ROOTS * len(naming.benchmarks) * len(naming.models)) + 1
    with file.open("w", encoding="utf-8") as made:
        for root in range(ROOTS):
            for benchmark in naming.benchmarks:
                for model in naming.models:
                    place = (
                        f"claude_model-{root}_10h_run{root}/{benchmark}_{model.folder}_{chance.randrange(10**8)}/task"
                    )
                    made.write("".join(f"{place}/step{n // 8}/file{n}.txt\n" for n in range(each)))


def tally(file: Path, naming: Naming) -> Tally:
    """The listing counted."""
    made, source = Tally(Names(naming)), listing.source_of(file)
    for block in listing.blocks(source, made.faults):
        made.feed(block)
    return made


def split(file: Path) -> None:
    """The plain loop."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            line.split("/")


def grown(file: Path) -> int:
    """Megabytes by which counting raises the peak of a process of its own, beyond what importing needs."""
    code = f"from bench.rows.inventory import memory; from pathlib import Path; print(memory(Path({str(file)!r})))"
    return int(check_output([executable, "-c", code], text=True, env=os.environ))


def memory(file: Path) -> int:
    """The same, in this process."""
    naming = Catalog().naming("posttrainbench")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tally(file, naming)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024


def measure() -> Row:
    """Microseconds of CPU a path above the loop, over the whole listing; and the same at a tenth of it."""
    naming = Catalog().naming("posttrainbench")
    about = Listing(kind="listing", name="made", form="paths", below="", sha256=None)
    with TemporaryDirectory(prefix="prill-bench-") as place:
        file, tenth = Path(place, "listing"), Path(place, "tenth")
        write(file, naming)
        found = inventory(tally(file, naming), about, "")
        if found.counts.tasks != ROOTS * 28 or found.counts.paths < PATHS:
            raise RuntimeError(f"{found.counts} counted; the figure means nothing")
        with file.open("rb") as whole:
            tenth.write_bytes(whole.read(file.stat().st_size // 10))
        megabytes = grown(file)
        pair = paired(lambda: tally(file, naming), lambda: split(file), 3)
        small = paired(lambda: tally(tenth, naming), lambda: split(tenth), 3)
    paths = found.counts.paths
    above, above_small = (pair.ours - pair.theirs) / paths * 1e6, (small.ours - small.theirs) / (paths / 10) * 1e6
    return Row(
        name=f"inventory of {paths:,} paths",
        against=f"str.split of each line: {pair.theirs / paths * 1e6:.2f} us a path",
        goal=GOAL,
        measured=above,
        unit="us CPU a path above it",
        note=f"{above_small:.2f} us at a tenth of the paths; counting raises the peak of memory by {megabytes} MB",
    )
