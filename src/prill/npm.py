"""Agents' programs from npm: each version in a folder of its own in the cache, whole or not there, never changed.

No script of a package is run on this machine. Where a package's script would put a native program into the place of a
stub, the command is linked to that program as its optional dependency brought it.

Not covered: what the program itself does, which is the box's business; and a cache that somebody else can write to.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import msgspec
from msgspec import Struct

from prill.errors import DefinitionError, InfraError
from prill.items import cache

COMMANDS = "node_modules/.bin"
"""Where an installed folder has its commands."""
RECORD = "prill.json"
NAME = re.compile(r"(@[a-z0-9._-]+/)?[a-z0-9][a-z0-9._-]*")
VERSION = re.compile(r"\d+\.\d+\.\d+[0-9A-Za-z.+-]*")
LONGEST_SECONDS = 1800


class Installed(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was installed, as the registry named it."""

    package: str
    version: str
    integrity: dict[str, str]
    """Each package in the folder → its digest, which npm held its bytes against."""
    commands: tuple[str, ...]


def place(package: str, version: str) -> Path:
    """The folder of one version. `DefinitionError` for what names no exact version of a package."""
    if not NAME.fullmatch(package) or not VERSION.fullmatch(version):
        raise DefinitionError(
            f"{package}@{version}: not an exact version of an npm package; an entrant's version is like '2.1.197'"
        )
    return (cache() / "npm" / f"{package.replace('/', '_')}-{version}").resolve()


def installed(package: str, version: str) -> Installed | None:
    """What is there of that version; `None` if it is not installed."""
    try:
        return msgspec.json.decode((place(package, version) / RECORD).read_bytes(), type=Installed)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def folder(package: str, version: str) -> Path:
    """The folder of an installed version, for a box. `InfraError` says how to install it."""
    if installed(package, version) is None:
        raise InfraError(f"{package}@{version} is not installed; `prill agents install` installs what the entrants pin")
    return place(package, version)


def version(package: str, wanted: str) -> str:
    """The version of an installed package, as the package itself says. `InfraError` as `folder`."""
    found = load(folder(package, wanted) / "node_modules" / package / "package.json").get("version")
    return str(found)


def node() -> Path:
    """The program of Node.js itself, no link."""
    found = which("node")
    if found is None:
        raise InfraError("node is not on the PATH; install Node.js 20 or newer, with npm (Debian: nodejs npm)")
    return Path(found).resolve()


def runtime_folders() -> tuple[Path, ...]:
    """Host folders that node needs in a box beyond `/usr`; none where it lives there."""
    home = node().parent.parent
    return () if home.is_relative_to("/usr") else (home,)


def install(package: str, version: str, tell: Callable[[str], None] = lambda line: None) -> Installed:
    """Install one version, unless it is there. Several processes may try at once: one does it."""
    final = place(package, version)
    if found := installed(package, version):
        return found
    npm = which("npm")
    if npm is None:
        raise InfraError("npm is not on the PATH; install Node.js 20 or newer, with npm (Debian: nodejs npm)")
    node()
    final.parent.mkdir(parents=True, exist_ok=True)
    with locked(final.with_name(f".{final.name}.lock")):
        if found := installed(package, version):  # while we waited
            return found
        tell(f"{package}@{version}: fetching")
        making = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
        try:
            fetch(npm, making, f"{package}@{version}")
            record = finish(making, package, version)
            shutil.rmtree(final, ignore_errors=True)
            making.chmod(0o755)
            making.rename(final)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    tell(f"{package}@{version}: installed ({', '.join(record.commands)})")
    return record


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Alone with a file, as long as the block lasts."""
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def fetch(npm: str, making: Path, what: str) -> None:
    """Let npm fill a folder; its last words are the error."""
    (making / "package.json").write_text('{"name": "agent", "private": true}\n')
    words = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    command = [npm, *words, "--save-exact", what]
    try:
        done = subprocess.run(
            command, cwd=making, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise InfraError(
            f"npm install {what}: no end after {LONGEST_SECONDS} seconds; is the registry there?"
        ) from None
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        why = "; ".join(said[:3]) or f"exit code {done.returncode}"
        raise InfraError(f"npm install {what}: {why}")


def finish(making: Path, package: str, version: str) -> Installed:
    """See that each command leads to a program, and write the record."""
    about = load(making / "node_modules" / package / "package.json")
    if about.get("version") != version:
        raise InfraError(f"{package}@{version}: npm brought version {about.get('version')}")
    commands = about.get("bin") or {}
    if isinstance(commands, str):
        commands = {package.rpartition("/")[2]: commands}
    for name in commands:
        link = making / COMMANDS / name
        program = native(making, about, name)
        if program is not None:
            link.unlink()
            link.symlink_to(os.path.relpath(program, link.parent))
        stub = program is None and "postinstall" in (about.get("scripts") or {})
        if stub or not os.access(link, os.X_OK):
            raise InfraError(f"{package}@{version}: its command {name} is no program on this machine")
    if runtime_folders():  # a box's PATH does not lead there, but to the commands
        (making / COMMANDS / "node").symlink_to(node())
    lock = load(making / "package-lock.json").get("packages", {})
    there = {path: entry for path, entry in lock.items() if path and (making / path).is_dir()}
    integrity = {path.removeprefix("node_modules/"): str(entry.get("integrity", "")) for path, entry in there.items()}
    record = Installed(package=package, version=version, integrity=integrity, commands=tuple(sorted(commands)))
    (making / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    return record


def native(making: Path, about: dict[str, Any], name: str) -> Path | None:
    """The native program that an optional dependency brought for a command, the plainest that this processor runs."""
    found: list[Path] = []
    for dependency in sorted(about.get("optionalDependencies") or {}, key=len):
        for inside in (name, f"bin/{name}"):
            program = making / "node_modules" / dependency / inside
            if program.is_file() and os.access(program, os.X_OK):
                found.append(program)
    if not found:
        return None
    return found[0] if len(found) == 1 or avx2() else next((p for p in found if "baseline" in str(p)), found[0])


def avx2() -> bool:
    """Whether this processor has AVX2, without which `baseline` builds are for."""
    try:
        return " avx2 " in Path("/proc/cpuinfo").read_text(errors="replace").replace("\n", " ")
    except OSError:
        return False


def load(file: Path) -> dict[str, Any]:
    """A JSON object that npm wrote."""
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
