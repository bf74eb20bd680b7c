"""Reads definitions: TOML in, frozen values out, each with the digest of its file. Unknown fields are refused.

A definition `kind/name` is the file `kind/name.toml` in the first folder that has it: yours (`--definitions DIR`)
before the package's. Assets that a definition names (a model folder, items, a program) are looked up in the same
folders and then in the package; a path that climbs out of them is refused.
"""

import hashlib
import tomllib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import msgspec

from prill.errors import DefinitionError, oneof
from prill.sockets import Item
from prill.spec import BaseModel, Benchmark, Entrant, Prompt, Suite

PACKAGE = Path(__file__).parent
KINDS: dict[str, Any] = {
    "suites": Suite,
    "benchmarks": Benchmark,
    "models": BaseModel,
    "entrants": Entrant,
    "prompts": Prompt,
}
T = TypeVar("T")


class Catalog:
    """All definitions in reach. Reads a file when it is asked for, once."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.folders = [*(Path(folder) for folder in folders), PACKAGE / "definitions"]
        self.digests: dict[str, str] = {}
        """`kind/name` → `sha256:…` of every definition read so far."""
        self._read: dict[str, Any] = {}
        for folder in self.folders:
            if not folder.is_dir():
                raise DefinitionError(f"{folder}: no such folder of definitions; give one with --definitions DIR")

    def names(self, kind: str) -> list[str]:
        """Names of every definition of a kind."""
        return sorted({file.stem for folder in self.folders for file in (folder / kind).glob("*.toml")})

    def file(self, kind: str, name: str) -> Path:
        """Where a definition stands."""
        for folder in self.folders:
            candidate = folder / kind / f"{name}.toml"
            if PurePosixPath(name).name == name and candidate.is_file():
                return candidate
        raise DefinitionError(oneof(kind.removesuffix("s"), name, self.names(kind)))

    def suite(self, name: str) -> Suite:
        """The suite of that name."""
        return self._get("suites", name, Suite)

    def benchmark(self, name: str) -> Benchmark:
        """The benchmark of that name."""
        return self._get("benchmarks", name, Benchmark)

    def model(self, name: str) -> BaseModel:
        """The base model of that name."""
        return self._get("models", name, BaseModel)

    def entrant(self, name: str) -> Entrant:
        """The entrant of that name."""
        return self._get("entrants", name, Entrant)

    def prompt(self, name: str) -> Prompt:
        """The prompt of that name."""
        return self._get("prompts", name, Prompt)

    def _get(self, kind: str, name: str, shape: type[T]) -> T:
        label = f"{kind}/{name}"
        if label not in self._read:
            file = self.file(kind, name)
            text = file.read_bytes()
            self._read[label] = read(file, text, shape)
            self.digests[label] = "sha256:" + hashlib.sha256(text).hexdigest()
        value: T = self._read[label]
        return value

    def asset(self, path: str) -> Path:
        """The file or folder that a definition names, or an error that says where it was looked for."""
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise DefinitionError(
                f"{path}: an asset's path stays inside the definitions' folders (no '/' first, no '..')"
            )
        places = [*self.folders, PACKAGE]
        for folder in places:
            if (folder / path).exists():
                return folder / path
        raise DefinitionError(f"{path}: not found in {', '.join(map(str, places))}")

    def items(self, benchmark: Benchmark) -> list[Item]:
        """A benchmark's items. A count or digest that differs from the definition's is an error that names both."""
        if benchmark.data.path is None:
            raise DefinitionError(f"benchmarks/{benchmark.name}: no data path; hub data sets are not read yet")
        return read_items(self.asset(benchmark.data.path), benchmark)


def read(file: Path, text: bytes, shape: type[T]) -> T:
    """One definition out of its bytes. Errors name the file, the field and what is allowed."""
    try:
        value = msgspec.convert(tomllib.loads(text.decode()), shape, strict=False)
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{file}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except tomllib.TOMLDecodeError as error:
        raise DefinitionError(f"{file}: not TOML: {error}") from None
    except msgspec.ValidationError as error:
        fields = ", ".join(getattr(shape, "__struct_fields__", ()))
        raise DefinitionError(f"{file}: {error} (fields of a {shape.__name__}: {fields})") from None
    name = getattr(value, "name", file.stem)
    if name != file.stem:
        raise DefinitionError(f"{file}: name = {name!r} but the file is called {file.stem!r}; make them the same")
    return value


def read_items(file: Path, benchmark: Benchmark) -> list[Item]:
    """Items out of JSON lines; keys beyond id, question and answer become `fields`."""
    rows = []
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            row = msgspec.json.decode(line)
            item = Item(
                id=str(row.pop("id")), question=str(row.pop("question")), answer=str(row.pop("answer")), fields=row
            )
        except (msgspec.DecodeError, KeyError, AttributeError, TypeError) as error:
            raise DefinitionError(f"{file}:{number}: not an item with id, question and answer ({error})") from None
        rows.append(item)
    found = items_digest(rows)
    if len(rows) != benchmark.data.count or found != benchmark.data.digest:
        raise DefinitionError(
            f"{file}: {len(rows)} items with digest {found}, but benchmarks/{benchmark.name} "
            f"pins {benchmark.data.count} with {benchmark.data.digest}"
        )
    return rows


def items_digest(items: Iterable[Item]) -> str:
    """`sha256:` over the items as JSON lines with sorted keys, in order."""
    digest = hashlib.sha256()
    for item in items:
        row = {"id": item.id, "question": item.question, "answer": item.answer, **item.fields}
        digest.update(msgspec.json.encode(row, order="sorted") + b"\n")
    return "sha256:" + digest.hexdigest()
