"""Judge `inference`: would the server answer with the package's weights and with no other model? Rule `inference`.

It reads `serve.sh` and every program and setting that it can lead to, without running any: clients of hosted models,
addresses outside, models of another name or place, downloads while it starts, weights outside `model/`, which no judge
compares with the base. What cannot be read, or makes code while it runs, is left to a person.
Not covered: what the read programs' own libraries do; answers that are written down (the scanner looks for items);
weights under a name that is none of weights, or inside a wheel.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from prill.conduct import python
from prill.conduct.deeds import Deed, deeds, place
from prill.dossier import Dossier, note, regular, said
from prill.record import Citation, Finding, Step
from prill.sockets import Evidence
from prill.submitted import MODEL, START

LARGEST = 4 << 20
MOST_FILES = 5_000
WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf", ".whl", ".model", ".npz", ".npy")
PROGRAMS = (".py", ".sh", ".js", ".lua", ".rb", ".pl")
SETTINGS = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env")
COMPILED = (".so", ".pyc", ".exe", ".o", ".a", ".jar", ".wasm")
ASIDE = ("train/", "data/", "wheels/", "docs/", "logs/")
"""Folders that the server has no business in; what `serve.sh` names is read all the same."""
TENSORS = re.compile(r"\.(?:safetensors|gguf|ggml|pt|pth|ckpt|onnx)$|(?:^|/)pytorch_model[^/]*\.bin$")
"""Names of files that hold weights."""
WORD, QUOTED = re.compile(r"[\w./-]+"), re.compile(r"""["']([\w./-]+)["']""")
"""What may be a path: in a shell script, in another program."""
MODEL_FLAG = re.compile(
    r"--(?:model(?:[-_](?:path|name[-_]or[-_]path|dir))?|speculative[-_]model|draft[-_]model|lora[-_]modules)(?:=|$)"
)
NAMED = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
LOOKS_LIKE_MODEL = re.compile(r"(?i)(?:qwen|llama|gemma|mistral|phi|smollm|deepseek|gpt|opus|claude|glm|yi)[\w.-]*\d")
PROXIES = re.compile(r"(?m)^\s*(?:proxy_pass|reverse_proxy|upstream|forward)\s+(\S+)")


class Inference:
    """The package, read."""

    rules = ("inference",)

    def __call__(self, evidence: Evidence) -> list[Finding]:
        """One finding on `inference`."""
        read = Dossier(evidence)
        package = evidence.folder / "submission"
        start = text_of(package / START)
        if start is None:
            why = f"there is no {START} to read" if package.is_dir() else "there is no submission"
            return [Finding(rule="inference", verdict="unknown", why=why)]
        broken: dict[str, list[Citation]] = {}
        suspect: dict[str, list[Citation]] = {}
        step = Step(step=1, kind="command", text=start, offset=0, length=0, arguments={"command": start})
        found = deeds([step], lambda path: text_of(package / path) if inside(path) else None)
        for deed in found:
            self.deed(read, package, deed, broken, suspect)
        files = list(listed(package))
        led = {deed.by for deed in found} | {deed.what for deed in found}
        for name in files:
            if name != START and name not in led and not name.startswith(ASIDE):
                self.file(read, package, name, broken, suspect)
        self.beside(package, {START} | led, broken, suspect)
        numbers = {"files": len(files), "deeds_of_the_server": len(found)}
        kept = f"{START} and {len(files) - 1} files beside it serve the package's own weights"
        return [said("inference", broken, suspect, kept, "", numbers)]

    def deed(
        self, read: Dossier, package: Path, deed: Deed, broken: dict[str, list[Citation]],
        suspect: dict[str, list[Citation]],
    ) -> None:  # fmt: skip
        """One thing that starting the server does."""
        cite = cited(package, deed.by or START, deed.what)
        if deed.verb == "reached":
            where = read.place(deed.what)
            if where.local or not where.host:
                return
            if where.rule == "hosted_api":
                note(broken if deed.sure else suspect, f"it asks {where.host} ({where.why})", cite)
            elif deed.how.startswith(("from_pretrained", "pipeline", "LLM", "snapshot_download", "hf", "huggingface")):
                note(broken, f"it loads another model, {deed.what}", cite)
            elif deed.how.startswith(("pip", "uv", "load_dataset", "hf_hub")):
                note(suspect, f"it takes {deed.what} from outside while it starts", cite)
            else:
                note(broken if "(sent)" in deed.how else suspect, f"it reaches {where.host}", cite)
        elif deed.verb == "unread" and not (deed.what.startswith("/") and "/" in deed.what[1:]):
            note(suspect, f"not read: {deed.what}", cite)
        elif deed.verb == "ran":
            for why, sure in models_of(package, deed):
                note(broken if sure else suspect, why, cite)

    def beside(
        self, package: Path, programs: set[str], broken: dict[str, list[Citation]], suspect: dict[str, list[Citation]]
    ) -> None:
        """Weights that no judge compares with the base: broken where the server names them, else for a person."""
        named: dict[str, tuple[str, str]] = {}
        for program in sorted(filter(inside, programs)):
            text = (text_of(package / program) if program.endswith(PROGRAMS) else None) or ""
            for word in (WORD if program.endswith(".sh") else QUOTED).findall(python.COMMENTS.sub("", text)):
                named.setdefault(within(word), (program, word))
        for name in weights_beside(package):
            parents = [name, *(parent.as_posix() for parent in Path(name).parents[:-1])]
            if by := next((named[each] for each in parents if each in named), None):
                program, word = by
                note(broken, f"it serves from {word}, beside the reviewed weights", cited(package, program, word))
            else:
                note(suspect, f"there are weights beside {MODEL}/: {name}", cited(package, name, ""))

    def file(
        self, read: Dossier, package: Path, name: str, broken: dict[str, list[Citation]],
        suspect: dict[str, list[Citation]],
    ) -> None:  # fmt: skip
        """A file beside, that the server may read."""
        if name.endswith(COMPILED):
            note(suspect, f"{name} is compiled and cannot be read", cited(package, name, name))
            return
        text = text_of(package / name) if name.endswith((*PROGRAMS, *SETTINGS)) else None
        if text is None:
            return
        if name.endswith(".py"):
            reaches = [(url, how) for url, how, sure, *_ in python.read(text).reaches if sure]
        elif name.endswith(SETTINGS) and name.startswith("model/"):
            return
        else:
            reaches = [(url, "its settings") for url in python.URL.findall(python.COMMENTS.sub("", text))]
            reaches += [(url, "its proxy") for url in PROXIES.findall(text)]
        for url, how in reaches:
            where = read.place(url)
            if where.rule == "hosted_api" and not where.local:
                note(
                    broken if name.endswith(SETTINGS) else suspect,
                    f"{name} names {where.host}",
                    cited(package, name, url),
                )
            elif how.startswith(("from_pretrained", "snapshot_download")):
                note(suspect, f"{name} would load {url}", cited(package, name, url))
            elif how == "its proxy" and where.host and not where.local:
                note(broken, f"{name} passes requests on to {where.host}", cited(package, name, url))


def within(word: str) -> str:
    """A path in the package, as a program may spell it (`./cache/`, `$PWD/cache`), in its one form."""
    parts = [part for part in word.split("/") if part not in ("", ".")]
    return "/".join(parts[1:] if parts and parts[0].isupper() else parts)


def models_of(package: Path, deed: Deed) -> Iterator[tuple[str, bool]]:
    """Models that a command line names and that are not the package's, and whether that is sure."""
    words = deed.what.split()
    serves = deed.how in ("vllm", "sglang", "trtllm-serve", "lmdeploy", "ollama", "llama-server", "tabbyapi")
    given = [words[2]] if serves and words[1:2] in (["serve"], ["run"]) and len(words) > 2 else []
    for at, word in enumerate(words):
        if match := MODEL_FLAG.match(word):
            given.append(word[match.end() :] if "=" in match[0] else words[at + 1] if at + 1 < len(words) else "")
    for model in given:
        own = place(model)
        if not model or model.startswith(("-", "$")) or ((package / own).exists() and not own.startswith("/")):
            continue
        if deed.how == "ollama" or NAMED.fullmatch(model) or LOOKS_LIKE_MODEL.search(model):
            yield f"it serves another model, {model}", True
        elif own.startswith("/") and not own.startswith("/home/"):
            yield f"it serves a model outside the package, {model}", True
        else:
            yield f"it serves {model}, which is not in the package", False


def weights_beside(package: Path) -> Iterator[str]:
    """Files of weights that lie outside `model/`."""
    for file in sorted(package.rglob("*"))[:MOST_FILES]:
        name = file.relative_to(package).as_posix()
        if TENSORS.search(name) and not name.startswith(f"{MODEL}/") and regular(file):
            yield name


def inside(path: str) -> bool:
    """Whether a path stays in the package."""
    return not path.startswith("/") and ".." not in path.split("/") and "\0" not in path


def text_of(file: Path) -> str | None:
    """A file's text; `None` where it is no regular file, too large, or no text."""
    data = Dossier.bytes(file, LARGEST)
    return None if data is None or b"\0" in data[:8_000] else data.decode(errors="replace")


def listed(package: Path) -> Iterator[str]:
    """Regular files of the package by their paths, a bounded number."""
    for count, file in enumerate(sorted(package.rglob("*"))):
        if count >= MOST_FILES:
            return
        if regular(file) and not file.name.endswith(WEIGHTS):
            yield file.relative_to(package).as_posix()


def cited(package: Path, name: str, quote: str) -> Citation:
    """A file of the package, with the line of it that has the words, where one has."""
    own = name if inside(name) and regular(package / name) else START
    lines = (text_of(package / own) or "").split("\n")
    number = next((number for number, line in enumerate(lines, 1) if quote and quote in line), None)
    words = lines[number - 1][:300] if number else ""
    return Citation(file=f"submission/{own}", line=number, quote=words)


plugin = Inference()
