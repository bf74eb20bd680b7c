"""What several judges and a person say about a run, put together: one voice for each rule decides. Pure.

A rule that evidence shows to be broken stays broken, whatever models say. Models settle a suspicion, and nothing else
that evidence leaves unknown. A person whose signature is good, by a key that the suite lists, overrules both, and what
was overruled stands in the reason; a signature that is not is no voice, and said so.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from prill.record import Finding, Judgement, Run
from prill.signatures import key_of, statement

SUSPECT = "suspect: "
"""How the reason of an `unknown` begins that is a suspicion, for a person or models to settle."""


class Ruled(Struct, frozen=True, kw_only=True):
    """What a person signs: of which run and submission, and what they found."""

    run: str
    submission: str | None
    findings: tuple[Finding, ...]
    at: str = ""


class Voices(Struct, frozen=True, kw_only=True):
    """What counts, and what does not though it is there."""

    findings: tuple[Finding, ...]
    alerts: tuple[str, ...] = ()


def voices(run: Run, signers: Mapping[str, str]) -> Voices:
    """The findings that decide about a run."""
    alerts: list[str] = []
    ruled: dict[str, Finding] = {}
    for judgement in run.judgements:
        if judgement.by != "person":
            continue
        who = signer(run, judgement, signers)
        if who is None:
            rules = ", ".join(finding.rule for finding in judgement.findings)
            alerts.append(f"a person's ruling on {rules} does not count: no signature of a signer that the suite lists")
        else:
            ruled |= {finding.rule: by_person(run, finding, who) for finding in judgement.findings}
    alerts += [f"{finding.rule}: {finding.why}" for finding in ruled.values()]
    others = [(judgement.by, finding) for judgement in run.judgements for finding in judgement.findings]
    others = [(by, finding) for by, finding in others if by != "person" and finding.rule not in ruled]
    heard = [finding for by, finding in others if not settled(by, finding, others)]
    return Voices(findings=(*ruled.values(), *heard), alerts=tuple(alerts))


def settled(by: str, finding: Finding, others: Sequence[tuple[str, Finding]]) -> bool:
    """Whether a suspicion is settled by models that found the rule kept, or broken."""
    if by != "evidence" or finding.verdict != "unknown" or not finding.why.startswith(SUSPECT):
        return False
    return any(who == "models" and said.rule == finding.rule and said.verdict != "unknown" for who, said in others)


def signer(run: Run, judgement: Judgement, signers: Mapping[str, str]) -> str | None:
    """Who signed exactly these findings about exactly this run and submission; `None` where nobody listed did."""
    for who, line in signers.items():
        public = key_of(line)
        payload = None if public is None else statement(judgement.signed, public)
        if payload is None:
            continue
        try:
            said = msgspec.json.decode(payload, type=Ruled)
        except msgspec.DecodeError:
            continue
        digest = run.submission.digest if run.submission else None
        if (said.run, said.submission, said.findings) == (run.spec.id, digest, judgement.findings):
            return who
    return None


def by_person(run: Run, finding: Finding, who: str) -> Finding:
    """A person's finding with what it replaces."""
    before = [
        f"{judgement.judge}: {said.verdict} ({said.why[:200]})"
        for judgement in run.judgements
        if judgement.by != "person"
        for said in judgement.findings
        if said.rule == finding.rule
    ]
    replaced = f"; instead of {'; '.join(before)}" if before else ""
    return replace(finding, why=f"{finding.verdict}, ruled by {who}: {finding.why}{replaced}"[:2_000])
