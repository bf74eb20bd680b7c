"""How an answer looks, and what is left of a win rate when looks are taken out: Arena-Hard's style control. Pure.

Four features, as published: length, and headers, lists and bold text per length, each as a relative difference of the
two answers. A logistic regression of the votes on them has an intercept: the win rate of two answers that look alike.
The features are scaled but not centred, because with one candidate centring would control for nothing.
Not covered: the published tokenizer; length is counted in words, and in letters where a script has no blanks.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|[^\w\s]")
_HEADER = re.compile(r"^#{1,6} ", re.MULTILINE)
_LIST = re.compile(r"^\s{0,12}(?:[-*+]|\d{1,3}[.)]) ", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\n]{1,400}\*\*|__[^_\n]{1,400}__")
ROUNDS = 50
RIDGE = 0.1
"""Keeps the fit finite where looks separate wins from losses."""


class Looks(NamedTuple):
    """Counts of one answer."""

    words: int
    headers: int
    lists: int
    bold: int


def looks(answer: str) -> Looks:
    """What is counted in an answer; code blocks count as length only."""
    prose = _FENCED.sub("", answer)
    marks = [len(pattern.findall(prose)) for pattern in (_HEADER, _LIST, _BOLD)]
    return Looks(len(_WORD.findall(answer)), *marks)


def difference(one: Looks, other: Looks) -> tuple[float, float, float, float]:
    """How much more of each `one` has than `other`, each within -1 and 1."""
    length = (one.words - other.words) / max(1, one.words + other.words)
    mine, theirs = ([count / (each.words + 1) for count in each[1:]] for each in (one, other))
    headers, lists, bold = ((a - b) / (a + b + 1) for a, b in zip(mine, theirs, strict=True))
    return length, headers, lists, bold


def controlled(votes: Sequence[tuple[float, tuple[float, ...]]]) -> float | None:
    """The win rate at equal looks: votes are (share won, features). `None` below two votes of either kind."""
    wins = sum(share for share, _ in votes)
    if wins < 2 or len(votes) - wins < 2:
        return None
    width = len(votes[0][1])
    scales = [math.sqrt(sum(row[at] ** 2 for _, row in votes) / len(votes)) or 1.0 for at in range(width)]
    rows = [[1.0, *(row[at] / scales[at] for at in range(width))] for _, row in votes]
    weights = [0.0] * (width + 1)
    for _ in range(ROUNDS):
        gradient = [-RIDGE * weight * (at > 0) for at, weight in enumerate(weights)]
        curve = [[RIDGE * (a == b > 0) + 1e-9 * (a == b) for b in range(width + 1)] for a in range(width + 1)]
        for (share, _), row in zip(votes, rows, strict=True):
            expected = logistic(sum(weight * value for weight, value in zip(weights, row, strict=True)))
            for a, value in enumerate(row):
                gradient[a] += (share - expected) * value
                for b, other in enumerate(row):
                    curve[a][b] += expected * (1 - expected) * value * other
        step = solved(curve, gradient)
        weights = [weight + change for weight, change in zip(weights, step, strict=True)]
        if max(map(abs, step)) < 1e-9:
            break
    return logistic(weights[0])


def logistic(x: float) -> float:
    """1 / (1 + e⁻ˣ), without overflow."""
    return 1 / (1 + math.exp(-max(-500.0, min(500.0, x))))


def solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """The solution of a small positive definite system, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for at in range(size):
        best = max(range(at, size), key=lambda row: abs(rows[row][at]))
        rows[at], rows[best] = rows[best], rows[at]
        for below in range(at + 1, size):
            factor = rows[below][at] / rows[at][at]
            rows[below] = [a - factor * b for a, b in zip(rows[below], rows[at], strict=True)]
    found = [0.0] * size
    for at in reversed(range(size)):
        known = sum(rows[at][later] * found[later] for later in range(at + 1, size))
        found[at] = (rows[at][size] - known) / rows[at][at]
    return found
