"""Objects of a pinned commit, and the walk from the commit to a file with every object hashed on the way.

Nothing of the repository is believed or run: its object folder is read by `git cat-file` through an empty repository of
our own, so its configuration, hooks, filters, replacements and remotes are never looked at; there is no checkout.
Each object's id is computed here again from its bytes.
Not covered: SHA-1 itself (an object made to collide), signatures of commits, submodules, and files that git LFS keeps.
"""

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from prill.errors import DefinitionError, InfraError

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
LARGEST = 16_000_000
"""Bytes of one object."""
SECONDS = 60.0


class Object(NamedTuple):
    """A git object: its kind and its bytes."""

    kind: str
    data: bytes

    @property
    def raw(self) -> bytes:
        """What git hashes."""
        return f"{self.kind} {len(self.data)}\0".encode() + self.data


class Objects(Protocol):
    """Anything that gives objects by their id; `None` where it has none of that id."""

    def __call__(self, oid: str) -> Object | None:
        """One object."""


class TreeEntry(NamedTuple):
    """A line of a tree."""

    name: str
    oid: str
    folder: bool
    plain: bool
    """A regular file; else a link or a submodule."""


def object_folder(repo: Path) -> Path:
    """Where a repository keeps its objects: bare, with `.git`, or with a `.git` file that names another place."""
    for place in (repo / ".git", repo):
        if place.is_file():
            said = place.read_text(encoding="utf-8", errors="replace")[:4096]
            if said.startswith("gitdir:"):
                place = (repo / said.removeprefix("gitdir:").strip()).resolve()
                common = place / "commondir"
                if common.is_file():
                    place = (place / common.read_text(encoding="utf-8", errors="replace").strip()).resolve()
        if (place / "objects").is_dir():
            return (place / "objects").resolve()
    raise DefinitionError(f"{repo}: no git repository (neither .git/objects nor objects is there)")


@contextmanager
def reading(repo: Path, commit: str) -> Iterator[Objects]:
    """The objects of a repository on this disk. Raises `DefinitionError` where it is none or nothing is pinned."""
    pinned(commit)
    folder = object_folder(repo)
    if "\n" in str(folder) or ":" in str(folder) or str(folder).startswith('"'):
        raise DefinitionError(f"{folder}: git cannot be told of a folder whose name has ':', a quote or a line break")
    with tempfile.TemporaryDirectory(prefix="prill-git-") as own:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": own,
            "GIT_DIR": own + "/repo",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(folder),
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }
        form = "sha256" if len(commit) == 64 else "sha1"
        git(["init", "-q", "--bare", "--template=", f"--object-format={form}", own + "/repo"], environment)
        yield Cat(environment, form)


class Cat:
    """Objects by `git cat-file`, a call each: sizes are asked first, so that no object is too large to hold."""

    def __init__(self, environment: Mapping[str, str], form: str) -> None:
        self.environment, self.form = environment, form

    def __call__(self, oid: str) -> Object | None:
        """One object, whose id was computed again."""
        told = git(["cat-file", "--batch-check"], self.environment, f"{oid}\n".encode()).split()
        if len(told) != 3:
            return None
        if int(told[2]) > LARGEST:
            raise DefinitionError(f"git object {oid} has {int(told[2]):,} bytes; {LARGEST:,} is the most that is read")
        out = git(["cat-file", "--batch"], self.environment, f"{oid}\n".encode())
        _, _, data = out.partition(b"\n")
        found = Object(told[1].decode(), data[: int(told[2])])
        return checked(oid, found)


def checked(oid: str, found: Object) -> Object:
    """The object, if its bytes have that id."""
    if oid_of(found, len(oid)) != oid:
        raise InfraError(f"git object {oid} has other bytes than its id says; the repository is damaged")
    return found


def oid_of(found: Object, length: int = 40) -> str:
    """An object's id, computed."""
    return hashlib.new("sha256" if length == 64 else "sha1", found.raw, usedforsecurity=False).hexdigest()


def git(arguments: list[str], environment: Mapping[str, str], stdin: bytes = b"") -> bytes:
    """What one git command prints."""
    try:
        ran = subprocess.run(["git", *arguments], input=stdin, capture_output=True, env=environment, timeout=SECONDS)
    except FileNotFoundError:
        raise InfraError("git is not installed; it is needed to read a repository's objects") from None
    except subprocess.TimeoutExpired:
        raise InfraError(f"git {arguments[0]} took more than {SECONDS:g} s") from None
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        raise InfraError(f"git {arguments[0]} failed: {said[-1] if said else 'no word'}")
    return ran.stdout


def pinned(commit: str) -> str:
    """A whole commit id. Raises `DefinitionError` for a branch, a tag or a shortened id, which can move."""
    if not COMMIT.fullmatch(commit):
        raise DefinitionError(f"{commit!r} is not a pinned commit: give all 40 (or 64) hexadecimal digits of its id")
    return commit


# --- the walk -----------------------------------------------------------------------------------------------


class Commit:
    """One commit's files, found from its tree downwards; remembers every object it went through."""

    def __init__(self, objects: Objects, commit: str) -> None:
        self.objects, self.commit = objects, pinned(commit)
        self.used: dict[str, Object] = {}
        data = self.get(commit, "commit").data
        first = data.split(b"\n", 1)[0].decode(errors="replace")
        if not first.startswith("tree ") or not COMMIT.fullmatch(first[5:]):
            raise InfraError(f"commit {commit} names no tree; the repository is damaged")
        self.tree = first[5:]

    def get(self, oid: str, kind: str) -> Object:
        """An object of that kind."""
        if oid not in self.used:
            found = self.objects(oid)
            if found is None:
                raise DefinitionError(f"no {kind} {oid} in the repository (of commit {self.commit}); fetch it first")
            self.used[oid] = found
        if self.used[oid].kind != kind:
            raise DefinitionError(f"git object {oid} is a {self.used[oid].kind}, not a {kind}")
        return self.used[oid]

    def folder(self, path: str) -> list[TreeEntry] | None:
        """What lies in a folder of the commit; none where there is no such folder."""
        oid: str | None = self.tree
        for part in [part for part in path.split("/") if part]:
            inside = entries(self.get(str(oid), "tree").data, len(self.commit) // 2)
            oid = next((entry.oid for entry in inside if entry.name == part and entry.folder), None)
            if oid is None:
                return None
        return entries(self.get(str(oid), "tree").data, len(self.commit) // 2)

    def file(self, path: str) -> tuple[str, bytes] | None:
        """A regular file's blob id and bytes; none where there is no such file."""
        parent, _, name = path.rpartition("/")
        found = next((e for e in self.folder(parent) or () if e.name == name and e.plain), None)
        return None if found is None else (found.oid, self.get(found.oid, "blob").data)


def entries(data: bytes, width: int) -> list[TreeEntry]:
    """The lines of a tree object; `width` is an id's length in bytes."""
    found, at = [], 0
    while at < len(data):
        space, end = data.find(b" ", at), data.find(b"\0", at)
        if not at < space < end or end + width >= len(data) + 1 or end + 1 + width > len(data):
            raise InfraError("a tree object is cut off; the repository is damaged")
        mode, name = data[at:space], data[space + 1 : end].decode(errors="backslashreplace")
        oid = data[end + 1 : end + 1 + width].hex()
        found.append(TreeEntry(name, oid, mode == b"40000", mode in (b"100644", b"100755", b"100664")))
        at = end + 1 + width
    return found
