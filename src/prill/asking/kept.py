"""The file of answers: JSON lines behind a line that names the settings under which they were asked.

After a crash the same settings carry on with the questions that have no answer yet; other settings start the file
over. Not covered: two processes with one file; whoever asks holds a lock of their own.
"""

import os
from collections import Counter
from collections.abc import Iterator
from io import BufferedRandom
from pathlib import Path

import msgspec

from prill.asking.reading import Answer


class Kept:
    """The file of answers: what is in it, and appending to it. What is added survives the death of this process."""

    def __init__(self, file: Path, settings: str) -> None:
        self._head = msgspec.json.encode({"settings": settings}) + b"\n"
        self.ids: set[str] = set()
        self.stops: Counter[str] = Counter()
        self._file: BufferedRandom = file.open("r+b" if file.exists() else "w+b")
        end = 0
        if self._file.readline() == self._head:
            end = len(self._head)
            for line in self._file:
                answer = answer_of(line)
                if answer is None:
                    break  # a crash cut the last line
                self._count(answer)
                end += len(line)
        self._file.seek(end)
        self._file.truncate()
        if not end:
            self._file.write(self._head)

    def add(self, answer: Answer) -> None:
        """One more."""
        self._file.write(msgspec.json.encode(answer) + b"\n")
        self._file.flush()
        self._count(answer)

    def _count(self, answer: Answer) -> None:
        self.ids.add(answer.id)
        self.stops[answer.stop] += 1

    def sync(self) -> None:
        """On disk. May take a while, so it is done beside the loop and not at each answer."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """All on disk."""
        self._file.flush()
        self.sync()
        self._file.close()


def answer_of(line: bytes) -> Answer | None:
    """One answer out of its line; `None` for a line that a crash cut."""
    try:
        return msgspec.json.decode(line, type=Answer) if line.endswith(b"\n") else None
    except msgspec.DecodeError:
        return None


def answers(file: Path) -> Iterator[Answer]:
    """All answers of a file, one at a time, in the order in which they came."""
    with file.open("rb") as opened:
        opened.readline()
        yield from (answer for line in opened if (answer := answer_of(line)))
