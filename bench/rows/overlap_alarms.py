"""Contamination scan: rows flagged in which nothing was planted."""

from bench.plants import recall
from bench.row import Row
from bench.scanning import corpus, scan


def measure() -> Row:
    """Of all rows without a plant; hard negatives, made as the items are, by themselves in the note."""
    made = corpus()
    found = recall(made, scan(made.file, workers=2))
    return Row(
        name="contamination scan, alarms",
        against="nothing",
        goal=0.5,
        measured=100 * found.alarms,
        unit="% of rows",
        note=f"rows share up to 7 words in a row with an item; of hard negatives alone {100 * found.near:.2f} %",
    )
