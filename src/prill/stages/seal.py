"""seal: copy the submission out of the workspace, hash every file, and look whether it can be a checkpoint at all.

Links and special files are not copied and are named as faults. Writes submission/ and, last, submission.json.
Loading the weights is left to measure, which serves them.
"""

import shutil
from typing import Any

import msgspec

from prill.catalog import Catalog
from prill.checkpoint.audit import audit
from prill.checkpoint.context import Context
from prill.copying import copied
from prill.folder import RunFolder, list_files, tree_digest
from prill.gates import standing
from prill.record import Fault, Submission
from prill.spec import RunSpec
from prill.submitted import faults as lacking
from prill.submitted import weights

NAME = "final_model"


def done(run: RunFolder) -> bool:
    """Whether the submission is sealed, absent or broken: any of them is an answer."""
    return run.submission() is not None


def do(run: RunFolder, catalog: Catalog) -> None:
    """Copy, hash, audit, write."""
    spec, source = run.spec(), run.workspace / NAME
    beside = run.scratch("sealing")
    faults = copied(source, beside) if source.is_dir() and not source.is_symlink() else []
    left = list_files(run.workspace, skip=(NAME,))
    if not any(file.is_file() for file in beside.rglob("*")):
        why = "final_model is not there" if not source.exists() else "final_model holds no regular file"
        shutil.rmtree(beside, ignore_errors=True)
        record = absent(why, tuple(faults), left)
    else:
        files = list_files(beside)
        there = weights(beside, spec.submission)
        report = audit(there, spec.model, Context(base_config=config_of(catalog, spec)))
        faults += [*lacking(beside, spec.submission), *report.faults]
        fatal = [fault for fault in faults if fault.severity == "fatal"]
        record = Submission(
            state="broken" if fatal else "sealed",
            why="; ".join(f"{fault.code}: {fault.why}" for fault in fatal) or f"{len(files)} files, readable",
            digest=tree_digest(files),
            files=files,
            faults=tuple(faults),
            tensors=report.tensors,
            parameters=report.parameters,
            left=left,
        )
        shutil.rmtree(run.submission_files, ignore_errors=True)
        beside.rename(run.submission_files)
    if spec.budget.self_checks:
        run.append("self_checked", "seal", **standing(run.self_checks(), record.digest, record.files))
    run.write(run.submission_file, record)


def config_of(catalog: Catalog, spec: RunSpec) -> dict[str, Any] | None:
    """The base model's config.json, where the base is at hand."""
    if spec.model.path is None:
        return None
    found: dict[str, Any] = msgspec.json.decode((catalog.asset(spec.model.path) / "config.json").read_bytes())
    return found


def absent(why: str, faults: tuple[Fault, ...], left: tuple) -> Submission:  # type: ignore[type-arg]
    """The record of nothing submitted."""
    return Submission(
        state="absent", why=why, digest=None, files=(), faults=faults, tensors=None, parameters=None, left=left
    )
