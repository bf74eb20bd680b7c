"""Claims taken apart: each part supported, refuted or untested, with pointers to the evidence; the status follows.

A part with `expects` is decided by comparing what stands in the evidence; a part with a verdict of a person's needs
evidence to point to. Every pointer must lead somewhere, and is kept with the digest of what it led to, so that a list
that moves under it is noticed.
"""

from collections.abc import Mapping
from typing import Any

from prill.audit.derive import Calculator, Derivation, Derivations, Observation, status
from prill.audit.pointers import Unsound, digest_of, join, resolve, text_digest
from prill.errors import DefinitionError
from prill.evidence import COVERAGE, PROTOCOL, WITNESSES, Assessed, Cite, Claims, Judged
from prill.questions import Audit, Claim, Part, Verdict

VERDICTS: tuple[Verdict, ...] = ("supported", "refuted", "untested")


def assess(audit: Audit, documents: Mapping[str, Any]) -> Claims:
    """All claims of an audit against the evidence. Raises `DefinitionError` for a pointer that leads nowhere."""
    twice = [claim.id for claim in audit.claims if [c.id for c in audit.claims].count(claim.id) > 1]
    if twice:
        raise DefinitionError(f"audits/{audit.name}: the claim {twice[0]!r} stands twice; make ids different")
    return Claims(
        title=audit.title,
        about=audit.about,
        claims={claim.id: assessed(claim, documents) for claim in audit.claims},
        limitations=audit.limitations,
        not_claimed=audit.not_claimed,
    )


def assessed(claim: Claim, documents: Mapping[str, Any]) -> Assessed:
    """One claim."""
    digest = text_digest(claim.text)
    if claim.sha256 not in (None, digest):
        raise DefinitionError(f"claim {claim.id}: its text has digest {digest}, but {claim.sha256} is pinned")
    parts = tuple(judged(claim, part, documents) for part in claim.parts)
    verdicts = [part.verdict for part in parts]
    return Assessed(
        text=claim.text,
        sha256=digest,
        source=claim.source,
        summary=claim.summary,
        status=status(list(verdicts)),  # type: ignore[arg-type]
        parts=parts,
        supported=verdicts.count("supported"),
        refuted=verdicts.count("refuted"),
        untested=verdicts.count("untested"),
        limitations=claim.limitations,
    )


def judged(claim: Claim, part: Part, documents: Mapping[str, Any]) -> Judged:
    """One part, decided by what it expects or as a person said; untested where its evidence was not gathered."""
    calculator = Calculator(documents, Derivations(derived=(), observed=()))
    absent = not_gathered([*part.evidence, *(one.at for one in part.expects)], documents)
    if absent:
        why = f"not gathered in this audit: {', '.join(absent)}"
        return Judged(id=part.id, text=part.text, verdict="untested", why=why, evidence=(), expects=())
    try:
        cites = tuple(Cite(at=at, sha256=digest_of(resolve(documents, at))) for at in part.evidence)
        verdict: Any = part.verdict or "untested"
        if part.expects:
            verdict = calculator.verdict({"at": one.at, "equals": one.equals} for one in part.expects)
    except Unsound as error:
        raise DefinitionError(f"claim {claim.id}, part {part.id}: {error}") from None
    return Judged(id=part.id, text=part.text, verdict=verdict, why=part.why, evidence=cites, expects=part.expects)


def not_gathered(pointers: list[str], documents: Mapping[str, Any]) -> list[str]:
    """Parts of an audit that pointers lead to and that were not asked for this time."""
    files = dict.fromkeys(pointer.partition("#")[0] for pointer in pointers)
    return [file for file in files if file in (COVERAGE, PROTOCOL, WITNESSES) and file not in documents]


def derivations(made: Claims, file: str, source: str) -> tuple[list[Derivation], list[Observation]]:
    """Digests, verdicts, counts and statuses follow; the words were written by people."""
    derived = []
    for name, claim in made.claims.items():
        place = join(file, "claims", name)
        parts = f"{place}/parts"
        derived.append(Derivation(value=f"{place}/sha256", how="sha256", of=(f"{place}/text",)))
        derived.append(Derivation(value=f"{place}/status", how="status", of=(parts,)))
        derived += [
            Derivation(value=f"{place}/{verdict}", how="count", of=(parts,), where={"verdict": verdict})
            for verdict in VERDICTS
        ]
        derived += [
            Derivation(value=f"{parts}/{n}/verdict", how="verdict", of=(f"{parts}/{n}/expects",))
            for n, part in enumerate(claim.parts)
            if part.expects
        ]
    return derived, [Observation(under=f"{file}#", source=source)]
