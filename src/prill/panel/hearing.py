"""A panel's hearing: questions put, answers checked, votes counted, one finding for each rule.

An answer that cannot be read after all tries is an error of ours and no verdict. A vote that obeyed the run it judged
is void; one that stands on a citation that is not there is unsupported; either leaves the rule unknown, never kept.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from prill.dossier import Dossier
from prill.errors import InfraError
from prill.panel import answer, canary
from prill.panel.citations import check
from prill.panel.inquiry import ANSWER, OPEN, PART, SYSTEM, Put, inquiries
from prill.panel.quoting import Quoted, files_of, quoted
from prill.panels import Panel, Question
from prill.record import Citation, Finding, Step
from prill.sockets import Ask, Opinion
from prill.verdicts import combine

CITED = 8
Word = Literal["broken", "kept", "unsupported", "void"]


class Vote(Struct, frozen=True, kw_only=True):
    """What one vote says about one field, over all parts of the run."""

    word: Word
    why: str
    citations: tuple[Citation, ...] = ()


def hear(dossier: Dossier, panel: Panel, ask: Ask) -> list[Finding]:
    """All questions of a panel on one run. Raises `InfraError` where an answer cannot be had."""
    steps = dossier.steps
    if not steps:
        why = "there are no steps: a run without any output is not judged"
        return [Finding(rule=rule, verdict="unknown", why=why) for rule in panel.rules]
    shown = quoted(
        steps,
        files_of(dossier.folder / "workspace", panel.file_characters),
        part_characters=panel.part_characters,
        step_characters=panel.step_characters,
        overlap_steps=panel.overlap_steps,
        most_parts=panel.most_parts,
    )
    by_number = {step.step: step for step in steps}
    return [found for question in panel.questions for found in put(question, panel, dossier, shown, by_number, ask)]


def put(
    question: Question, panel: Panel, dossier: Dossier, shown: Quoted, steps: Mapping[int, Step], ask: Ask
) -> list[Finding]:
    """One question: a finding for each of its rules."""
    fields = tuple(question.rules)
    asked = list(inquiries(question, dossier.spec, shown, opens=panel.agent is not None))
    words = [each.word for each in asked]

    def read(reply: str) -> answer.Said | str | None:
        """The answer, or the canary's word where the reply shows it: that is not asked again until it looks well."""
        return next((word for word in words if canary.obeyed(reply, word)), None) or answer.read(reply, fields)

    opinions = ask([each.inquiry for each in asked], read)
    unread = [(put, opinion) for put, opinion in zip(asked, opinions, strict=True) if opinion.value is None]
    if unread:
        first, opinion = unread[0]
        raise InfraError(
            f"panel {panel.name}, question {question.name}: {len(unread)} of {len(asked)} answers cannot be read "
            f"(the first: vote {first.vote}, part {first.part}: {opinion.why}; it begins {opinion.text[:120]!r}); "
            "no verdict follows; ask again, or another model"
        )
    found = []
    for field, rule in question.rules.items():
        votes = {
            vote: of_vote(
                [(each, opinion) for each, opinion in zip(asked, opinions, strict=True) if each.vote == vote],
                field, dossier, steps,
            )
            for vote in range(1, question.votes + 1)
        }  # fmt: skip
        found.append(settled(rule, field, question, votes, shown, panel))
    return found


def of_vote(parts: Sequence[tuple[Put, Opinion]], field: str, dossier: Dossier, steps: Mapping[int, Step]) -> Vote:
    """One vote on one field: broken where a part proves it, kept where none does and every citation stands."""
    for put, opinion in parts:
        if isinstance(opinion.value, str):
            where = f" (part {put.part})" if len(parts) > 1 else ""
            return Vote(word="void", why=f"the judge did what a sentence in the quoted run told it to do{where}")
    wrong: list[str] = []
    reasons: dict[bool, list[str]] = defaultdict(list)
    cites: dict[bool, list[Citation]] = defaultdict(list)
    for put, opinion in parts:
        said: answer.Said = opinion.value
        broken = said.values[field]
        checked = [check(each, steps, dossier.folder) for each in said.cited if each.field == field]
        faults = [each for each in checked if isinstance(each, str)]
        if broken and not checked:
            faults = ["it calls the rule broken and cites nothing"]
        wrong += [f"part {put.part}: {fault}" if len(parts) > 1 else fault for fault in faults]
        if not faults:
            reasons[broken].append(said.why[field])
            cites[broken] += [each for each in checked if isinstance(each, Citation)]
    if reasons[True]:  # what one part proves, no fault of another takes back
        return Vote(word="broken", why=reasons[True][0], citations=tuple(cites[True][:CITED]))
    if wrong:
        return Vote(word="unsupported", why=f"unsupported: {'; '.join(wrong[:3])}")
    return Vote(word="kept", why=reasons[False][-1], citations=tuple(cites[False][:CITED]))


def settled(
    rule: str, field: str, question: Question, votes: Mapping[int, Vote], shown: Quoted, panel: Panel
) -> Finding:
    """The finding on one rule."""
    values = {
        str(number): {field: vote.word == "broken"} if vote.word in ("broken", "kept") else None
        for number, vote in votes.items()
    }
    together = combine(values, question.combine, fields=(field,))
    said = [f"{vote.word}" for vote in votes.values()]
    numbers: dict[str, Any] = {
        "votes": [{"vote": number, "said": vote.word, "why": vote.why} for number, vote in votes.items()],
        "combine": question.combine,
        "panel": panel.name,
        "model": panel.model,
        "parts": len(shown.parts),
        "steps": shown.steps,
        "steps_not_shown": [list(stretch) for stretch in shown.hidden],
        "steps_with_their_middle_left_out": shown.cut_steps,
        "files_quoted": shown.files,
    }
    count = f"{len(votes)} vote{'s' if len(votes) > 1 else ''}: {', '.join(said)}"
    if together.status != "ok":
        bad = next(vote for vote in votes.values() if vote.word in ("void", "unsupported"))
        why = f"incomplete ({count}); {bad.why}"
        return Finding(rule=rule, verdict="unknown", why=why[:2_000], numbers=numbers)
    broken = together.values[field]
    agreeing = [vote for vote in votes.values() if vote.word == ("broken" if broken else "kept")]
    why = f"{agreeing[0].why} ({count})"
    cites = tuple(dict.fromkeys(cite for vote in agreeing for cite in vote.citations))[:CITED]
    if not broken and shown.hidden:
        gaps = ", ".join(f"{first}–{last}" for first, last in shown.hidden[:5])
        why = f"steps {gaps} were shown to no question; of the others: {why}"
        return Finding(rule=rule, verdict="unknown", why=why[:2_000], citations=cites, numbers=numbers)
    verdict: Literal["broken", "kept"] = "broken" if broken else "kept"
    return Finding(rule=rule, verdict=verdict, why=why[:2_000], citations=cites, numbers=numbers)


def prompt_digest(panel: Panel) -> str:
    """`sha256:` over all words that a panel puts to a judge, apart from the run."""
    words = [SYSTEM, PART, OPEN, ANSWER, *canary.SENTENCES]
    words += [f"{question.words}\n{answer.form(tuple(question.rules))}" for question in panel.questions]
    return "sha256:" + hashlib.sha256("\0".join(words).encode()).hexdigest()
