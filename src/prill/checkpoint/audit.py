"""What a submission's files say about it, by codes: may it be loaded at all, and will it be served as it was trained?

Everything is read as hostile bytes: bounded, never executed, never unpickled. `fatal` means that it cannot be loaded
or is not acceptable; a `warning` does not break a submission. The codes are those of rules K of the acceptance
cases, and WEIGHTS_MISSING, CONFIG_UNREADABLE, TOKENIZER_UNREADABLE, FILE_UNREADABLE, TOO_MANY_FILES.
Not covered: what the weights descend from (`lineage.py`), and whether an engine really serves them (`measure` does).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from prill.checkpoint import architecture, context, generation, weights
from prill.checkpoint.context import Context
from prill.checkpoint.documents import fault, printable
from prill.checkpoint.finite import nonfinite
from prill.checkpoint.tensors import read_shard
from prill.checkpoint.view import MOST_FILES, View, look
from prill.record import Fault, Record
from prill.spec import BaseModel

MOST_TOLD = 5
"""Faults of one code that are told one by one."""


class Report(Record, frozen=True, kw_only=True):
    """What was found in one folder or file."""

    faults: tuple[Fault, ...]
    tensors: int | None
    parameters: int | None
    """Elements over all distinct tensors; `None` where the weights cannot be read."""

    @property
    def severity(self) -> Literal["ok", "warning", "fatal"]:
        """The worst of all faults."""
        severities = {fault.severity for fault in self.faults}
        return "fatal" if "fatal" in severities else "warning" if severities else "ok"


def audit(folder: Path, model: BaseModel, known: Context = Context()) -> Report:  # noqa: B008
    """Look at the files of a submission that was made from `model`. Does not raise for anything an agent can do."""
    return examine(folder, context.of(model, known))


def examine(folder: Path, known: Context) -> Report:
    """Look at the files of any checkpoint, with what is known from outside."""
    view = look(folder)
    faults = list(judged(view, known))
    shards = weights.loaded(view)
    for shard in shards:
        if not view.broken.get(shard.file):
            found = nonfinite(folder / shard.file, shard)
            faults += [found] if found else []
    sizes = {tensor.name: tensor.count for shard in shards for tensor in shard.tensors}
    return Report(
        faults=tuple(bounded(faults)), tensors=len(sizes) or None, parameters=sum(sizes.values()) if sizes else None
    )


def examine_file(file: Path) -> Report:
    """Look at one safetensors file by itself."""
    shard, faults = read_shard(file, file.name)
    if shard is not None and not faults:
        found = nonfinite(file, shard)
        faults = (found,) if found else ()
    if shard is None:
        return Report(faults=faults, tensors=None, parameters=None)
    return Report(faults=faults, tensors=len(shard.tensors), parameters=sum(tensor.count for tensor in shard.tensors))


def judged(view: View, known: Context) -> Iterator[Fault]:
    """Every rule on a view. Where the main thing is missing, what follows from that is not told as well."""
    if view.crowded:
        yield fault("TOO_MANY_FILES", f"more than {MOST_FILES} files; leave only the model")
    for name in view.astray:
        why = f"{printable(name)} is a link that leads nowhere or outside, or a special file; put the file itself there"
        yield fault("DANGLING_LINK", why)
    if weights.only_adapter(view):
        why = "only an adapter is there, without a model; merge it into the base (merge_and_unload) and save that"
        yield fault("ADAPTER_NOT_MERGED", why)
        return
    document = view.documents.get("config.json")
    if document is None and view.deeper:
        name = printable(view.deeper[0])
        yield fault("CONFIG_MISSING", f"no config.json here, but in {name}/: move the model one folder up")
        return
    if document is None and "config.json" not in view.astray:
        yield fault("CONFIG_MISSING", "no config.json; save the model's config")
    elif document is not None and document.value is None:
        yield fault("CONFIG_UNREADABLE", f"config.json: {document.why}; save the model's config again")
    yield from weights.faults(view, known)
    yield from architecture.faults(view, known)
    yield from generation.faults(view, known)


def bounded(faults: Iterable[Fault]) -> Iterator[Fault]:
    """At most `MOST_TOLD` of one code and severity; the last one says how many more there were."""
    groups: dict[tuple[str, str], list[Fault]] = {}
    for each in faults:
        groups.setdefault((each.code, each.severity), []).append(each)
    for group in groups.values():
        yield from group[: MOST_TOLD - 1]
        if len(group) == MOST_TOLD:
            yield group[-1]
        elif len(group) > MOST_TOLD:
            more = len(group) - MOST_TOLD + 1
            yield fault(group[0].code, f"and {more} more of this kind", fatal=group[0].severity == "fatal")
