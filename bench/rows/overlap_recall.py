"""Contamination scan: how many planted items are found, kind by kind."""

from bench.plants import FLOORS, recall
from bench.row import Row
from bench.scanning import corpus, scan


def measure() -> Row:
    """Kinds below their floor; the table is in the note."""
    made = corpus()
    found = recall(made, scan(made.file, workers=2))
    below = [kind for kind, floor in FLOORS.items() if found.shares[kind] < floor]
    table = ", ".join(f"{kind} {share:.1%}" for kind, share in found.shares.items())
    return Row(
        name="contamination scan, recall",
        against="floors for each kind of plant",
        goal=0,
        measured=len(below),
        unit="kinds below",
        note=f"{table}; right item named in {found.right:.1%} of those found; {found.unseen} more plants are of items "
        "too short to be looked for, which every report names" + (f"; below: {below}" if below else ""),
    )
