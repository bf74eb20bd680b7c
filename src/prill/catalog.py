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

from prill.chat import with_examples
from prill.errors import DefinitionError, oneof
from prill.items import cache, examples, load, write_items
from prill.items import read_items as read_items
from prill.outside import HostPolicy, Prices, Provider
from prill.panels import Panel
from prill.questions import Audit, FactSet, Naming
from prill.reported import Comparison
from prill.scoring.tally import weight_fault
from prill.sockets import Item
from prill.spec import BaseModel, Benchmark, Changes, Entrant, Prompt, ReferenceSet, Suite, TemplateSet

PACKAGE = Path(__file__).parent
KINDS: dict[str, Any] = {
    "suites": Suite,
    "benchmarks": Benchmark,
    "models": BaseModel,
    "entrants": Entrant,
    "prompts": Prompt,
    "references": ReferenceSet,
    "namings": Naming,
    "facts": FactSet,
    "audits": Audit,
    "comparisons": Comparison,
    "templates": TemplateSet,
    "providers": Provider,
    "prices": Prices,
    "hosts": HostPolicy,
    "panels": Panel,
}
T = TypeVar("T")


class Catalog:
    """All definitions in reach. Reads a file when it is asked for, once."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.folders = [*(Path(folder) for folder in folders), PACKAGE / "definitions"]
        self.digests: dict[str, str] = {}
        """`kind/name` → `sha256:…` of every definition read so far."""
        self._read: dict[str, Any] = {}
        self._suites: dict[str, Suite] = {}
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

    def definition(self, kind: str, name: str) -> Any:
        """The definition of any kind."""
        return self.suite(name) if kind == "suites" else self._get(kind, name, KINDS[kind])

    def suite(self, name: str) -> Suite:
        """The suite of that name, with the reference scores of its sets; what cannot be scored is an error."""
        if name not in self._suites:
            self._suites[name] = self._whole(self._get("suites", name, Suite))
        return self._suites[name]

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

    def reference(self, name: str) -> ReferenceSet:
        """The set of reference scores of that name."""
        return self._get("references", name, ReferenceSet)

    def provider(self, name: str) -> Provider:
        """The provider of that name."""
        return self._get("providers", name, Provider)

    def prices(self, name: str) -> Prices:
        """The list of prices of that name."""
        return self._get("prices", name, Prices)

    def hosts(self, name: str) -> HostPolicy:
        """The policy for hosts of that name."""
        return self._get("hosts", name, HostPolicy)

    def panel(self, name: str) -> Panel:
        """The panel of that name."""
        return self._get("panels", name, Panel)

    def template(self, name: str) -> TemplateSet:
        """The set of chat templates of that name."""
        return self._get("templates", name, TemplateSet)

    def naming(self, name: str) -> Naming:
        """The naming scheme of that name."""
        return self._get("namings", name, Naming)

    def fact(self, name: str) -> FactSet:
        """The set of facts of that name."""
        return self._get("facts", name, FactSet)

    def audit(self, name: str) -> Audit:
        """The audit of that name."""
        return self._get("audits", name, Audit)

    def comparison(self, name: str) -> Comparison:
        """The rules of comparing of that name."""
        return self._get("comparisons", name, Comparison)

    def _whole(self, suite: Suite) -> Suite:
        """A suite with what its sets hold, once its names lead somewhere and its weights can be used."""
        file = self.file("suites", suite.name)
        text = file.read_text(encoding="utf-8")
        used = {"models": suite.models, "benchmarks": suite.benchmarks, "entrants": suite.entrants}
        for kind, names in {**used, **outside(suite)}.items():
            for name in names:
                if name not in self.names(kind):
                    wrong = oneof(kind.removesuffix("s"), name, self.names(kind))
                    raise DefinitionError(f"{file}:{line_of(text, name)}: {wrong}")
        sets = [self.reference(name) for name in suite.reference_sets]
        prescribed = [self.template(name) for name in suite.template_sets]
        for kind, pins in (("references", suite.reference_sets), ("templates", suite.template_sets)):
            for name, pinned in pins.items():
                if (digest := self.digests[f"{kind}/{name}"]) != pinned:
                    place = f"{file}:{line_of(text, pinned)}"
                    raise DefinitionError(f"{place}: {kind}/{name} has digest {digest}, but {pinned} is pinned")
        scores = [
            msgspec.structs.replace(score, source=score.source or found.source)
            for found in sets
            for score in found.scores
            if score.model in suite.models and score.benchmark in suite.benchmarks
        ]
        changes = self._prescribing(suite, prescribed) if prescribed else suite.changes
        suite = msgspec.structs.replace(suite, references=(*suite.references, *scores), changes=changes)
        if fault := weight_fault(suite):
            raise DefinitionError(f"{file}:{line_of(text, 'weights')}: suites/{suite.name}: {fault}")
        return suite

    def _prescribing(self, suite: Suite, sets: Iterable[TemplateSet]) -> dict[str, Changes]:
        """A suite's changes, with the chat templates of some sets where it says nothing itself."""
        plain = {family: text for found in sets for family, text in found.templates.items()}
        tools = plain | {family: text for found in sets for family, text in found.with_tools.items()}
        changes = {}
        for name in suite.benchmarks:
            change = suite.changes.get(name, Changes())
            theirs = tools if self.benchmark(name).grader == "function_call" else plain
            own = theirs if change.templates is None else change.templates
            changes[name] = msgspec.structs.replace(change, templates=own)
        return {**suite.changes, **changes}

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

    def items(self, benchmark: Benchmark, data: Path | None = None) -> list[Item]:
        """A benchmark's items. A count or digest that differs from the definition's is an error that names both.

        `data`: a file, or a folder with `NAME.jsonl`, to read instead of the definition's own place.
        """
        if benchmark.data.path is not None and data is None:
            return load(benchmark, self.asset(benchmark.data.path))
        return load(benchmark, data)

    def items_file(self, benchmark: Benchmark, data: Path | None = None) -> Path:
        """The items as a file that `read_items` reads: the definition's own, or one made in the cache."""
        own = benchmark.data.path
        if own is not None and data is None and benchmark.data.format == "items" and own.endswith(".jsonl"):
            return self.asset(own)
        about = hashlib.sha256(msgspec.json.encode([benchmark.data, str(data and data.resolve())])).hexdigest()
        file = cache() / "items" / f"{benchmark.name}-{about[:16]}.jsonl"
        if data is not None or not file.exists():
            write_items(self.items(benchmark, data), file)
        return file

    def ready(self, benchmark: Benchmark, data: Path | None = None) -> Benchmark:
        """The benchmark as it is put to a model: with its worked examples, if it has any, in the system message."""
        return with_examples(benchmark, examples(benchmark, data))


def outside(suite: Suite) -> dict[str, tuple[str, ...]]:
    """Kind → the single definitions that a suite names."""
    singles = {"prompts": suite.prompt, "prices": suite.prices, "hosts": suite.hosts, "panels": suite.panel}
    return {kind: (name,) for kind, name in singles.items() if name} | {
        "references": tuple(suite.reference_sets),
        "templates": tuple(suite.template_sets),
    }


def line_of(text: str, word: str) -> int:
    """The first line that has a word, as an editor counts; 1 where none has."""
    return next((number for number, line in enumerate(text.splitlines(), 1) if word in line), 1)


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
