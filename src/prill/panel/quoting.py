"""A finished run as text that is quoted, never said: steps and files between markers that nobody could foresee.

Each step and each file begins and ends with a line that bears the inquiry's random mark, so that no text of the run
can close its own quotation. Every step is in some part, or is counted among those that are not shown.
Not covered: what is left out of a long step or file (the quotation says how much), and files of the workspace beyond
the bounds below; an agent that judges can open those.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from prill.display import shown
from prill.dossier import regular
from prill.record import Step

MOST_FILES = 60
"""Of the workspace that are quoted."""
MOST_SEEN = 20_000
"""Entries of the workspace that are looked at."""
SPOKEN = (".py", ".sh", ".md", ".txt", ".yaml", ".yml", ".toml", ".cfg", ".ipynb", ".jsonl", ".json", ".csv", ".log")
"""Endings of files that are quoted, the most telling first."""
MODELS = ("final_model", "checkpoint")
"""How names of folders begin that hold models."""


class Block(Struct, frozen=True, kw_only=True):
    """One step, or the head of one file."""

    label: str
    text: str
    step: int | None = None
    cut: int = 0
    """Characters that are left out."""


class Quoted(Struct, frozen=True, kw_only=True):
    """A run in parts, and what is in none of them."""

    parts: tuple[tuple[Block, ...], ...]
    steps: int
    hidden: tuple[tuple[int, int], ...] = ()
    """First and last of each stretch of steps that no part shows."""
    cut_steps: int = 0
    """Steps of which the middle is left out."""
    files: int = 0


def quoted(
    steps: Sequence[Step],
    files: Sequence[Block],
    *,
    part_characters: int,
    step_characters: int,
    overlap_steps: int,
    most_parts: int,
) -> Quoted:
    """Steps and files packed into parts; where there are too many parts, those of the middle are not shown."""
    blocks = [of_step(step, step_characters) for step in steps]
    parts: list[list[Block]] = []
    room = 0
    for block in [*blocks, *files]:
        size = len(block.text) + len(block.label) + 100
        if not parts or size > room:
            before = [each for each in (parts[-1] if parts else []) if each.step is not None and block.step is not None]
            again = before[len(before) - overlap_steps :] if overlap_steps and before else []
            parts.append(list(again))
            room = part_characters - sum(len(each.text) + len(each.label) + 100 for each in again)
        parts[-1].append(block)
        room -= size
    beyond = len(parts) > most_parts
    kept = [*parts[: most_parts // 2], *parts[len(parts) - (most_parts + 1) // 2 :]] if beyond else parts
    seen = {block.step for part in kept for block in part}
    return Quoted(
        parts=tuple(tuple(part) for part in kept),
        steps=len(steps),
        hidden=tuple(stretches([step.step for step in steps if step.step not in seen])),
        cut_steps=sum(block.cut > 0 for block in blocks),
        files=sum(block.step is None for part in kept for block in part),
    )


def of_step(step: Step, most: int) -> Block:
    """A step as it is quoted."""
    kind = ", ".join(
        [step.kind, step.source, *(["thought"] if step.thought else []), *([step.tool] if step.tool else [])]
    )
    text, cut = middle_out(readable(step.text), most)
    return Block(label=f"STEP {step.step} ({one_line(kind)})", text=text, step=step.step, cut=cut)


def middle_out(text: str, most: int) -> tuple[str, int]:
    """A text of bounded length, and how many characters are missing from its middle."""
    cut = len(text) - most
    if cut <= 0:
        return text, 0
    head = most * 2 // 3
    return f"{text[:head]}\n[… {cut:,} characters are left out here …]\n{text[len(text) - (most - head) :]}", cut


def readable(text: str) -> str:
    """Text without control characters; what cannot be encoded is spelt."""
    return shown(text).encode("utf-8", "backslashreplace").decode()


def one_line(text: str) -> str:
    """A name or kind that cannot end its line, nor hide anything in it."""
    safe = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
    return safe[:200]


def stretches(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring numbers taken together."""
    first = last = None
    for number in numbers:
        if last is None or number != last + 1:
            if first is not None and last is not None:
                yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


def wrapped(blocks: Sequence[tuple[str, str]], mark: str) -> str:
    """Labels and texts between lines that bear the mark."""
    return "\n".join(f"<<{mark} {label}>>\n{text}\n<<{mark} END>>" for label, text in blocks)


# --- files of the workspace -----------------------------------------------------------------------------------------


def files_of(workspace: Path, most: int) -> list[Block]:
    """The heads of the workspace's files of text, the most telling first. Links and special files are left out."""
    if most <= 0:
        return []
    found = [file for file in walked(workspace) if file.suffix.lower() in SPOKEN]
    found.sort(key=lambda file: (SPOKEN.index(file.suffix.lower()), len(file.parts), os.fsencode(file)))
    blocks = []
    for file in found[:MOST_FILES]:
        with contextlib.suppress(OSError), file.open("rb") as opened:
            data, size = opened.read(most), file.stat().st_size
            label = f"FILE {name_of(file, workspace.parent)} (bytes 0 to {len(data)} of {size})"
            blocks.append(
                Block(label=label, text=readable(data.decode(errors="backslashreplace")), cut=size - len(data))
            )
    return blocks


def name_of(file: Path, folder: Path) -> str:
    """A file's path in a folder, as it is quoted."""
    return one_line(os.fsencode(file.relative_to(folder)).decode(errors="backslashreplace"))


def walked(folder: Path) -> Iterator[Path]:
    """Regular files below a folder, without those of models; no link is followed, and only so many are looked at."""
    seen = 0
    for directory, below, names in os.walk(folder):
        below[:] = sorted(
            name for name in below if not name.startswith(MODELS) and not Path(directory, name).is_symlink()
        )
        for name in sorted(names):
            seen += 1
            if seen > MOST_SEEN:
                return
            file = Path(directory, name)
            if regular(file):
                yield file
