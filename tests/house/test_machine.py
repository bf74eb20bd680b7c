"""What is tracked speaks of no one machine: no folder of a workplace, no account's home, no registry of packages.

Patterns are spelt so that they do not match themselves. What is *not* covered: binary files, and what only a person
knows to be private.
"""

import re
from fnmatch import fnmatch
from pathlib import Path

from house.source import none_in, plant, text_files

PATTERNS = {
    "the path of a workplace": re.compile(r"(?<![\w.>-])/wor[k](?:place)?/"),
    "an account's home": re.compile(r"(?<![\w.>-])/(?:roo[t]/|hom[e]/(?!agent\b)[\w.-]+|User[s]/\w)"),
    "a workplace's tool": re.compile(r"bash_job[s]|(?<!\w)\.librar[y]/|can_start_anothe[r]|files_fetc[h]"),
    "an index of packages": re.compile(
        r"(?i)\b(?:pypi\.or[g]|pythonhosted\.or[g]|npmjs\.(?:or[g]|co[m])|proxy\.golang\.or[g])|index[-_]ur[l]|"
        r"https?://[^\s\"'`]+/simpl[e]\b|\bGOPROX[Y]\b"
    ),
}
ALLOWED: dict[tuple[str, str], str] = {
    ("tests/cases/*", "an account's home"): "cases quote made-up logs, which name made-up homes",
}
"""(path pattern, what) → the reason why it may speak of it."""


def violations(tree: Path) -> list[str]:
    """Lines of tracked text files that speak of one machine."""
    found = []
    for file in text_files(tree):
        path = file.relative_to(tree).as_posix()
        wanted = {
            what: pattern
            for what, pattern in PATTERNS.items()
            if not any(fnmatch(path, place) and what == allowed for place, allowed in ALLOWED)
        }
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            found += [
                f"{path}:{number}: {what} ({match[0]!r})"
                for what, pattern in wanted.items()
                if (match := pattern.search(line))
            ]
    return found


def test_this_tree_speaks_of_no_machine(repo: Path) -> None:
    """No tracked file of this tree names a folder, tool or registry of one machine."""
    none_in(violations(repo))


def test_every_allowance_is_used(repo: Path) -> None:
    """An allowance whose file is gone must go too."""
    paths = [file.relative_to(repo).as_posix() for file in text_files(repo)]
    assert [place for place, _ in ALLOWED if not any(fnmatch(path, place) for path in paths)] == []


def test_each_kind_is_found(tmp_path: Path) -> None:
    """A workplace's folder, a home, a tool and a registry are each found with their line."""
    said = ["/wor" + "k/main/x", "/roo" + "t/.cache", "cat /hom" + "e/anna/x", "bash_job" + "s", "--index-ur" + "l x"]
    for number, text in enumerate(said):
        plant(tmp_path, f"docs/{number}.md", f"Fine.\nLook at {text}\n")
    assert [line.split(": ")[0] for line in violations(tmp_path)] == [f"docs/{n}.md:2" for n in range(len(said))]


def test_look_alikes_are_innocent(tmp_path: Path) -> None:
    """Paths that only end alike, a box's own home for the agent and bytes of a picture are let through."""
    plant(
        tmp_path,
        "a.md",
        "See ./work/x, https://example.org/work/, <top>/roo" + "t/, /home/agent/task, a simple index.",
    )
    (tmp_path / "a.bin").write_bytes(b"\0/wor" + b"k/")
    assert violations(tmp_path) == []
