"""What an agent that judges may open: plain copies of a run's files, without rights to run and without links.

The kernel refuses to start what lies there (no copy has the right to be executed, and the mount is read-only, so it
cannot be given one). Big files are cut; a note lies beside each. Not covered: a judge that hands such a file to an
interpreter, which no mount can tell from reading it; it is told not to, and what it could reach is its own answer.
"""

from pathlib import Path

from prill.dossier import regular
from prill.panel.quoting import name_of, walked

GIVEN = ("workspace", "submission", "raw/stdout", "raw/stderr")
LOGS = ("*.json", "*.jsonl", "*.md")
"""Of the run folder itself."""
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".ckpt", ".npz", ".onnx")
"""Endings of files that nobody reads."""
MOST_BYTES = 256 << 20
MOST_OF_ONE = 4 << 20


def copy(folder: Path, to: Path) -> list[str]:
    """Copy what may be opened; one line for each file that is not there whole."""
    left, notes = MOST_BYTES, []
    for file in listed(folder):
        name = name_of(file, folder)
        size = file.stat().st_size
        take = 0 if file.suffix.lower() in WEIGHTS else min(size, MOST_OF_ONE, left)
        if name != str(file.relative_to(folder)) or take <= 0 < size:
            notes.append(f"{name}: not given ({size} bytes)")
            continue
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with file.open("rb") as source:
            target.write_bytes(source.read(take))
        target.chmod(0o444)
        left -= take
        if take < size:
            notes.append(f"{name}: its first {take} of {size} bytes")
    (to / "NOT-WHOLE.txt").write_text("\n".join(notes) + "\n")
    return notes


def listed(folder: Path) -> list[Path]:
    """Files that may be given, without links and models."""
    found = [file for pattern in LOGS for file in sorted(folder.glob(pattern)) if not file.name.startswith(".")]
    found += [folder / name for name in GIVEN if "/" in name]
    found = [file for file in found if regular(file)]
    for name in GIVEN:
        place = folder / name
        if place.is_dir() and not place.is_symlink():
            found += list(walked(place))
    return found
