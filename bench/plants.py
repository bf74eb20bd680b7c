"""What a scan found of the items that were planted in a corpus."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from bench.corpus import Corpus
from prill.overlap.scan import Place, Report

FLOORS = {
    "exact": 0.99, "escaped": 0.99, "question only": 0.99, "numbers changed": 0.99, "choices permuted": 0.99,
    "schema messages": 0.99, "schema prompt": 0.99, "schema instruction": 0.99, "schema conversations": 0.99,
    "case and punctuation": 0.97, "solution only": 0.97, "split over 3 rows": 0.93, "12 % words replaced": 0.90,
    "filler words": 0.60,
}  # fmt: skip
"""Share of plants that must be found, for each kind that has such a goal."""


@dataclass(frozen=True)
class Recall:
    """Shares between 0 and 1."""

    shares: dict[str, float]
    right: float
    """Of the plants found, those whose own item is named."""
    alarms: float
    """Of rows without a plant, those flagged."""
    near: float
    """The same of hard negatives only."""
    unseen: int
    """Plants that stand in no share: their items are too short to be looked for, and the report names them."""


def recall(corpus: Corpus, report: Report) -> Recall:
    """Places against plants, row by row; a plant is found where its row, or one of its three, is."""
    unseen = set(report.unseen)
    by_row: dict[int, list[Place]] = defaultdict(list)
    for place in report.places:
        by_row[place.row].append(place)
    total: Counter[str] = Counter()
    found: Counter[str] = Counter()
    right = row = short = 0
    while row < len(corpus.kinds):
        kind, item = corpus.kinds[row]
        span = 3 if kind.startswith("split") else 1
        if item in unseen:
            short, row = short + 1, row + span
            continue
        places = [place for at in range(row + 1, row + 1 + span) for place in by_row.get(at, [])]
        total[kind] += 1
        found[kind] += bool(places)
        right += bool(item) and any(place.item == item for place in places)
        row += span
    planted = [kind for kind in total if kind not in ("filler", "near")]
    return Recall(
        shares={kind: found[kind] / total[kind] for kind in sorted(planted)},
        right=right / max(1, sum(found[kind] for kind in planted)),
        alarms=(found["filler"] + found["near"]) / max(1, total["filler"] + total["near"]),
        near=found["near"] / max(1, total["near"]),
        unseen=short,
    )
