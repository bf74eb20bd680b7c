"""A reply that loops, shortened: PostTrainBench's limiter of repetitions, by its rules in our own code. Pure, total.

In up to ten rounds, until nothing changes: more than `most` equal lines in a row become `most`; then the first block of
2 to 29 lines (the smallest that there is) which stands more than `most` times in a row, with what is left behind it if
that is the block begun once more; then substrings of 3 to 500 letters, shortest first, from the left.

A search for the shortest repeated unit at each letter takes minutes for a long reply. Here a unit of n letters is
looked for by every n-th letter of the text alone: where it stands six times in a row, so do these, one and the same.
Not covered: `PASSES` and `LONGEST` bound the work, so a text that is made for it may keep a repetition.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import groupby

from prill.sockets import Item

ROUNDS = 10
BLOCKS = range(2, 30)
"""Lines of a block."""
UNITS = ((3, 30), (30, 60), (60, 120), (120, 250), (250, 500))
"""Letters of a substring, shortest and longest; each pair is looked for by itself, in this order."""
PASSES = 16
"""Over all substrings, in all rounds together."""
LONGEST = 1 << 20
"""Letters in which substrings are looked for at a time. A reply of 16384 tokens has fewer."""


def limited(text: str, most: int) -> str:
    """The text without what stands more than `most` times in a row; `most` is at least 1. Never longer."""
    left = PASSES
    for _ in range(ROUNDS):
        before = text
        text = "\n".join(line_blocks(lines_in_a_row(text.split("\n"), most), most))
        while left and (shorter := substrings(text, most)) != text:
            text, left = shorter, left - 1
        if text == before:
            break
    return text


def unlooped(text: str, item: Item) -> str:
    """A reply as a judge is shown it: limited where the item's field `most_repeats` says so, otherwise as it is."""
    most = item.fields.get("most_repeats")
    return limited(text, int(most)) if most else text


def shortened(whole: Sequence[str], shown: Sequence[str]) -> dict[str, int]:
    """How many replies are shown shortened, and how many letters that took; figures for a score."""
    lost = [len(before) - len(after) for before, after in zip(whole, shown, strict=True)]
    return {"shortened": sum(each > 0 for each in lost), "letters_cut": sum(lost)}


# --- lines ------------------------------------------------------------------------------------------------------


def lines_in_a_row(lines: list[str], most: int) -> list[str]:
    """No line more often than that in a row."""
    return [line for _, same in groupby(lines) for line in list(same)[:most]]


def line_blocks(lines: list[str], most: int) -> list[str]:
    """The first repeated block cut, of the smallest size that has one."""
    marks = lettered(lines, most)
    for size in BLOCKS[: max(0, len(lines) // 5 - 1)]:
        found = next(stretches(marks, size, most), None)
        if found is not None:
            start, end = found
            behind = start + (1 + (end - start) // size) * size
            block = lines[start : start + size]
            rest = [] if begun(block, lines[behind : behind + size + 1]) else lines[behind:]
            return lines[:start] + block * most + rest
    return lines


def lettered(lines: list[str], most: int) -> str:
    """Lines as letters: two that may belong to a repeated block have the same letter only if they are equal.

    A line that is too rare for it gets one of letters in turn, so that no two of them within a block's reach agree.
    """
    counts, reach = Counter(lines), BLOCKS.stop
    often = dict(zip((line for line in counts if counts[line] > most), map(chr, range(reach, 0x110000)), strict=False))
    return "".join(often.get(line) or chr(at % reach) for at, line in enumerate(lines))


def begun(block: list[str], rest: list[str]) -> bool:
    """Whether what follows a block is that block cut off: lines that are equal, or one the beginning of the other."""
    return len(rest) <= len(block) and all(map(same_or_begun, block, rest))


def same_or_begun(whole: str, line: str) -> bool:
    """Whether two lines are equal, or one without blanks around is how the other begins."""
    if whole == line:
        return True
    ours, theirs = whole.strip(), line.strip()
    return bool(theirs and whole.startswith(theirs)) or bool(ours and line.startswith(ours))


# --- substrings -------------------------------------------------------------------------------------------------


def substrings(text: str, most: int) -> str:
    """One pass over the beginning of a text: from the left, at each place the shortest unit that stands too often."""
    head, tail = text[:LONGEST], text[LONGEST:]
    for shortest, longest in UNITS:
        head = cut(head, range(shortest, longest + 1), most)
    return head + tail


def cut(text: str, sizes: range, most: int) -> str:
    """The same for units of some sizes."""
    waiting = [(start, size, end) for size in sizes for start, end in stretches(text, size, most)]
    heapify(waiting)
    kept, done = [], 0
    while waiting:
        start, size, end = waiting[0]
        if start < done and end - done >= most * size:
            heapreplace(waiting, (done, size, end))
        elif start < done:
            heappop(waiting)
        else:
            kept += [text[done:start], text[start : start + size] * most]
            done = start + (1 + (end - start) // size) * size
    return "".join([*kept, text[done:]])


def stretches(text: str, size: int, most: int) -> Iterator[tuple[int, int]]:
    """Where each letter equals the one `size` further on, `most * size` times in a row or more: first, and behind last.

    So a unit of that size that begins there stands more than `most` times in a row. Each stretch is as long as can be.
    """
    for run in re.finditer(rf"(.)\1{{{most},}}", text[::size], re.DOTALL):
        start = max(0, (run.start() - 1) * size + 1)
        stop = min((run.end() - 1) * size, len(text) - size)
        yield from within(text, size, most * size, start, stop)


def within(text: str, size: int, need: int, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Stretches between two places, looked for from their far ends, so that most of what differs is never read."""
    known = start
    while start + need <= stop:
        odd = last_odd(text, size, known, start + need)
        if odd is not None:
            known, start = start + need, odd + 1
            continue
        end = first_odd(text, size, start + need, stop)
        yield start, end
        known = start = end + 1


def last_odd(text: str, size: int, start: int, stop: int) -> int | None:
    """The last place whose letter differs from the one `size` further on; `None` where none does."""
    if text[start:stop] == text[start + size : stop + size]:
        return None
    while stop - start > 1:
        middle = (start + stop) // 2
        if text[middle:stop] == text[middle + size : stop + size]:
            stop = middle
        else:
            start = middle
    return start


def first_odd(text: str, size: int, start: int, stop: int) -> int:
    """The first such place, or `stop`."""
    step = size
    while start < stop and text[start : min(start + step, stop)] == text[start + size : min(start + step, stop) + size]:
        start, step = min(start + step, stop), 2 * step
    stop = min(start + step, stop)
    while stop - start > 1:
        middle = (start + stop) // 2
        if text[start:middle] == text[start + size : middle + size]:
            start = middle
        else:
            stop = middle
    return start
