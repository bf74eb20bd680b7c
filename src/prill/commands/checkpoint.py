"""Commands about model folders: what their files say, what their weights descend from, and fingerprints to tell by."""

import json
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.arguments import command
from prill.errors import DefinitionError

if TYPE_CHECKING:
    from prill.checkpoint.lineage import Measured, References
    from prill.checkpoint.rule import Verdict
    from prill.spec import BaseModel

FOUND = 3
"""Exit code where something speaks against the folder."""
CODES = "Exit codes: 0 nothing speaks against it · 3 something does, and it is printed · 1, 2 as everywhere."

LINEAGE = f"""The base is that of a definition (--model, with its siblings and fingerprints), a folder (--base) or the
one in a fingerprint. Every matrix is compared with the base, and what changed with what each sibling changed.

  prill checkpoint lineage final_model --model smoke-base
  prill checkpoint lineage final_model --base Qwen3-1.7B-Base --instruct Qwen3-1.7B
  prill checkpoint lineage final_model --fingerprint qwen3.safetensors

{CODES}"""

FINGERPRINT = """Samples of a base and of models made from it go into one file, so that none of them need be at hand
when a submission is judged. A model is FOLDER or NAME=FOLDER; siblings by themselves, honest runs with --control.

  prill fingerprint Qwen3-1.7B --base Qwen3-1.7B-Base --control run-1 --control run-2 --to qwen3.safetensors

A model definition names the file under `fingerprints`, with the digest that this prints."""

AUDIT = f"""Files are read and never run: configs, tokenizer, chat template, safetensors headers, every number's
exponent.

{CODES}"""

COMPARE = f"""Was one made from the other? The same test as for lineage, with the second in place of a sibling. Runs by
one recipe are alike; control runs (--control, --fingerprint) take out what all training shares.

{CODES}"""

RANKS = "A merged adapter of rank r leaves no more than r directions in each matrix that it was put on."


def add(commands: Any) -> None:
    """`prill checkpoint …` and `prill fingerprint`."""
    top = command(commands, "checkpoint", "Look into a model folder: its files, its lineage, its likeness to another")
    inner = top.add_subparsers(dest="what", metavar="WHAT", required=True)
    audit = command(inner, "audit", "Say what is wrong with a model folder's files, by code", AUDIT)
    audit.add_argument("folder", type=Path, metavar="FOLDER")
    audit.add_argument("--model", metavar="NAME", help="the base model's definition, to compare with")
    audit.set_defaults(do=do_audit)
    lineage = command(inner, "lineage", "Say what a model folder's weights descend from", LINEAGE)
    lineage.add_argument("folder", type=Path, metavar="FOLDER")
    lineage.add_argument("--model", metavar="NAME", help="the base model's definition")
    lineage.add_argument(
        "--instruct", action="append", default=[], metavar="FOLDER", help="a known sibling, or NAME=FOLDER; repeatable"
    )
    lineage.add_argument("--sampled", action="store_true", help="only the sample, not every element: seconds, not all")
    lineage.set_defaults(do=do_lineage)
    compare = command(inner, "compare", "Say whether one submission was made from another", COMPARE)
    compare.add_argument("folder", type=Path, metavar="A")
    compare.add_argument("other", type=Path, metavar="B")
    compare.set_defaults(do=do_compare)
    ranks = command(inner, "ranks", "Say whether what training changed is of low rank, as a merged adapter's is", RANKS)
    ranks.add_argument("folder", type=Path, metavar="FOLDER")
    ranks.add_argument("--base", type=Path, required=True, metavar="FOLDER", help="the base model")
    ranks.add_argument("--claimed", type=int, metavar="R", help="the rank that is claimed")
    ranks.set_defaults(do=do_ranks)
    made = command(
        commands, "fingerprint", "Make a file by which a base's siblings are known without them", FINGERPRINT
    )
    made.add_argument("folder", nargs="*", metavar="FOLDER", help="a known sibling, or NAME=FOLDER")
    made.add_argument("--base", type=Path, required=True, metavar="FOLDER", help="the base model")
    made.add_argument("--to", type=Path, required=True, metavar="FILE")
    made.add_argument(
        "--side", type=int, default=256, metavar="N", help="N x N numbers of a large matrix (default: 256)"
    )
    made.set_defaults(do=do_fingerprint)
    for one in (lineage, compare):
        one.add_argument("--base", type=Path, metavar="FOLDER", help="the base model")
        one.add_argument(
            "--fingerprint", type=Path, action="append", default=[], metavar="FILE", help="made before; repeatable"
        )
    for one in (lineage, compare, made):
        one.add_argument(
            "--control", action="append", default=[], metavar="FOLDER", help="an honest run, or NAME=FOLDER; repeatable"
        )
        one.add_argument("--seed", type=int, default=0, metavar="S", help="of the sampled places (default: 0)")
    for one in (audit, lineage, compare, ranks):
        one.add_argument("--json", action="store_true", help="all figures as one JSON object")


def alone() -> None:
    """One thread for each product of matrices: they are many and small. It counts only before numpy is loaded."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def say(line: str) -> None:
    """Progress."""
    print(f"prill: {line}", file=sys.stderr, flush=True)


def named(texts: list[str]) -> dict[str, Path]:
    """NAME=FOLDER, or FOLDER under its own name, as a mapping. Raises `DefinitionError` for what is no folder."""
    found: dict[str, Path] = {}
    for text in texts:
        name, _, folder = text.rpartition("=")
        path = there(Path(folder))
        name = name or path.resolve().name
        if name in found:
            raise DefinitionError(f"two folders are called {name!r}; give one as NAME={folder}")
        found[name] = path
    return found


def there(folder: Path) -> Path:
    """A folder that exists. Raises `DefinitionError`."""
    if not folder.is_dir():
        raise DefinitionError(f"{folder}: no such folder; give one that holds a model")
    return folder


def do_audit(chosen: Namespace) -> int:
    """`prill checkpoint audit`."""
    import msgspec

    from prill.catalog import Catalog
    from prill.checkpoint.audit import examine
    from prill.checkpoint.context import Context
    from prill.checkpoint.documents import read_json

    known = Context()
    if chosen.model:
        catalog = Catalog(chosen.definitions)
        model = catalog.model(chosen.model)
        config = read_json(catalog.asset(model.path) / "config.json").value if model.path else None
        known = Context(base_config=config, architecture=model.architecture)
    report = examine(there(chosen.folder), known)
    if chosen.json:
        print(json.dumps(msgspec.to_builtins(report)))
    else:
        for fault in report.faults:
            print(f"{fault.severity:<8} {fault.code:<24} {fault.why}")
        counted = (
            f"{report.tensors} tensors, {report.parameters:,} parameters" if report.parameters else "no weights read"
        )
        print(f"{chosen.folder}: {report.severity} ({len(report.faults)} faults; {counted})")
    return FOUND if report.severity == "fatal" else 0


def do_lineage(chosen: Namespace) -> int:
    """`prill checkpoint lineage`."""
    alone()
    from prill.checkpoint.lineage import compare
    from prill.checkpoint.rule import decide

    against, absent = opened(chosen)
    measured = compare(there(chosen.folder), against, absent=absent, whole=not chosen.sampled, say=say)
    return told(chosen, measured, decide(measured))


def opened(chosen: Namespace) -> "tuple[References, list[str]]":
    """What the folder is compared with, and which known siblings are not at hand."""
    from prill.catalog import Catalog
    from prill.checkpoint.lineage import references

    base, siblings, prints = chosen.base, named(chosen.instruct), list(chosen.fingerprint)
    model: BaseModel | None = None
    if chosen.model:
        catalog = Catalog(chosen.definitions)
        model = catalog.model(chosen.model)
        base = base or (catalog.asset(model.path) if model.path else None)
        siblings = {s.name: catalog.asset(s.path) for s in model.siblings if s.path} | siblings
        prints += [catalog.asset(print.path) for print in model.fingerprints]
    if base is None and not prints:
        raise DefinitionError(
            "which base? give --model NAME whose files are at hand, --base FOLDER or --fingerprint FILE"
        )
    against = references(
        there(base) if base else None, siblings, fingerprints=prints, controls=named(chosen.control), seed=chosen.seed
    )
    names = {each.name for each in against.known if each.kind == "instruct"}
    return against, [sibling.name for sibling in (model.siblings if model else ()) if sibling.name not in names]


def do_compare(chosen: Namespace) -> int:
    """`prill checkpoint compare`."""
    alone()
    from prill.checkpoint.lineage import compare, references
    from prill.checkpoint.rule import decide

    if chosen.base is None:
        raise DefinitionError("give the base that both were made from with --base FOLDER")
    against = references(
        there(chosen.base),
        {},
        fingerprints=chosen.fingerprint,
        controls=named(chosen.control),
        others={str(chosen.other): there(chosen.other)},
        seed=chosen.seed,
    )
    measured = compare(there(chosen.folder), against, whole=True, say=say)
    return told(chosen, measured, decide(measured))


def told(chosen: Namespace, measured: "Measured", verdict: "Verdict") -> int:
    """Print a verdict with its figures; the exit code says whether it speaks against the folder."""
    import msgspec

    from prill.checkpoint.table import figures, lines

    if chosen.json:
        print(json.dumps(msgspec.to_builtins(verdict) | {"figures": figures(measured, most=1 << 20)}))
    else:
        print(f"{verdict.word}: {verdict.why}")
        print("\n".join(lines(measured)))
    return 0 if verdict.word in ("descends from base", "copy of base") else FOUND


def do_ranks(chosen: Namespace) -> int:
    """`prill checkpoint ranks`."""
    import msgspec

    from prill.checkpoint import ranks

    if chosen.claimed is not None and not 0 < chosen.claimed <= ranks.MOST:
        raise DefinitionError(f"--claimed {chosen.claimed}: from 1 to {ranks.MOST}")
    found = ranks.ranks(there(chosen.folder), there(chosen.base), say)
    if chosen.json:
        print(json.dumps(msgspec.to_builtins(found, str_keys=True)))
    else:
        print("\n".join(ranks.told(found, chosen.claimed)))
    return 0


def do_fingerprint(chosen: Namespace) -> int:
    """`prill fingerprint`."""
    alone()
    from prill.checkpoint import fingerprint
    from prill.checkpoint.values import Plan
    from prill.folder import file_digest

    models: dict[str, Any] = {name: ("instruct", folder) for name, folder in named(chosen.folder).items()}
    for name, folder in named(chosen.control).items():
        if name in models:
            raise DefinitionError(f"{name!r} is a sibling and a control; give one of them as NAME=FOLDER")
        models[name] = ("control", folder)
    if not 0 < len(models) <= fingerprint.MOST_MODELS:
        raise DefinitionError(f"{len(models)} models; give 1 to {fingerprint.MOST_MODELS}, siblings or --control")
    if not 8 <= chosen.side <= 1024:
        raise DefinitionError(f"--side {chosen.side}: from 8 to 1024")
    plan = Plan(seed=chosen.seed, side=chosen.side, whole=min(Plan().whole, 4 * chosen.side**2))
    head = fingerprint.make(chosen.to, there(chosen.base), models, plan, say)
    size = chosen.to.stat().st_size
    print(f"{chosen.to}: {len(head.members)} models, {size:,} bytes, sha256:{file_digest(chosen.to)}")
    return 0
