"""Judge `lineage`: do the submitted weights descend from the base model, or from a known sibling of it? Rule `lineage`.

It compares all weights of the sealed submission with the base's and with those of every sibling at hand, a sample of
them with the siblings and control runs of fingerprints, and makes sure on the same read that they are the sealed bytes.
Submitting the base itself is allowed. Not covered: see `prill.checkpoint.lineage` and `prill.checkpoint.rule`.
"""

import os
from pathlib import Path

from prill.checkpoint.lineage import Measured, compare, references
from prill.checkpoint.rule import Verdict, decide
from prill.checkpoint.table import figures
from prill.errors import InfraError
from prill.folder import file_digest
from prill.record import Citation, Finding
from prill.sockets import Evidence
from prill.submitted import weights

SAYS = {
    "copy of base": "kept",
    "descends from base": "kept",
    "copy of instruct": "broken",
    "from instruct": "broken",
    "contains instruct": "broken",
    "not shown to descend": "broken",
    "review": "unknown",
}
"""The lineage's word → what it means for the rule. What is not shown to descend fails closed."""
CITED = 20


class Lineage:
    """Weights against weights."""

    rules = ("lineage",)

    def __call__(self, evidence: Evidence) -> list[Finding]:
        """One finding on `lineage`."""
        submission = evidence.run.submission
        if submission is None or submission.digest is None:
            why = f"no submission: {submission.why}" if submission else "the submission has not been sealed"
            return [Finding(rule="lineage", verdict="unknown", why=why)]
        # many small matrices: threads would only wait for each other
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        for print in evidence.run.spec.model.fingerprints:
            if f"sha256:{file_digest(evidence.fingerprints[print.path])}" != print.digest:
                raise InfraError(f"{print.path} is not the fingerprint that was pinned; restore it, or plan anew")
        against = references(
            evidence.base,
            evidence.siblings,
            fingerprints=list(evidence.fingerprints.values()),
            seed=int(submission.digest.rpartition(":")[2][:16], 16),
        )
        there = {each.name for each in against.known if each.kind == "instruct"}
        absent = [sibling.name for sibling in evidence.run.spec.model.siblings if sibling.name not in there]
        root = evidence.folder / "submission"
        folder = weights(root, evidence.run.spec.submission)
        measured = compare(folder, against, absent=absent, whole=True)
        sealed = {file.path: file.sha256 for file in submission.files}
        for file, digest in measured.digests.items():
            path = (folder / file).relative_to(root).as_posix()
            if sealed.get(path) != digest:
                raise InfraError(f"submission/{path} is not the file that was sealed; restore the run folder")
        return [finding(evidence, measured, decide(measured))]


def finding(evidence: Evidence, measured: Measured, verdict: Verdict) -> Finding:
    """The verdict with its figures and the files that it is about."""
    submission = evidence.run.submission
    there = weights(Path(), evidence.run.spec.submission)
    shards = [
        file
        for file in (submission.files if submission else ())
        if file.path.endswith(".safetensors") and Path(file.path).is_relative_to(there)
    ]
    return Finding(
        rule="lineage",
        verdict=SAYS[verdict.word],  # type: ignore[arg-type]
        why=f"{verdict.word}: {verdict.why}",
        citations=tuple(Citation(file=f"submission/{file.path}", sha256=file.sha256) for file in shards[:CITED]),
        numbers={"lineage": verdict.word, "sibling": verdict.of, "share": verdict.share} | figures(measured),
    )


plugin = Lineage()
