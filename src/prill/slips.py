"""What can be wrong with the text of a reply that ended well: nothing in it, going in circles, sliding into a script.

Pure and total. The thresholds are our choice. Not covered: words of another language in the same script.
"""

import unicodedata
from functools import lru_cache

from prill.answers.repetition import limited
from prill.answers.replies import body

MOST_IN_A_ROW, LOST_TO_LOOPS = 5, 0.2
"""What stands more often than that in a row is a loop; a reply that loses so much of itself without loops is one."""
FOREIGN_LETTERS = 10
"""Letters of scripts that the question does not use, from which on a reply has slid into another script."""
READ_LETTERS = 1 << 16
"""Of a reply, from its end: that is where it falls apart."""
EVERYWHERE = frozenset({"LATIN", "GREEK"})
"""Scripts of code and formulas, whatever the question is written in."""


def empty(text: str) -> bool:
    """Whether a completion says nothing: blanks, or reasoning that never closes or has nothing behind it (N1, N2)."""
    return not (body(text) or "").strip()


def looping(text: str) -> bool:
    """Whether much of a reply says again what it has just said."""
    end = text[-READ_LETTERS:]
    return len(end) - len(limited(end, MOST_IN_A_ROW)) > LOST_TO_LOOPS * max(len(end), 50)


def foreign(question: str, text: str) -> tuple[str, ...]:
    """Scripts in which a reply has several letters and its question none, the most frequent first."""
    known = {script(letter) for letter in question[:READ_LETTERS]} | EVERYWHERE | {""}
    counts: dict[str, int] = {}
    for letter in unicodedata.normalize("NFKC", text[-READ_LETTERS:]):
        if letter > "\x7f" and (name := script(letter)) not in known:
            counts[name] = counts.get(name, 0) + 1
    return tuple(sorted((name for name in counts if counts[name] >= FOREIGN_LETTERS), key=lambda name: -counts[name]))


@lru_cache(maxsize=1 << 14)
def script(letter: str) -> str:
    """The script of a letter, by the first word of its name; empty for what is no letter."""
    if unicodedata.category(letter)[0] != "L":
        return ""
    name = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
    return "JAPANESE" if name in ("HIRAGANA", "KATAKANA") else name
