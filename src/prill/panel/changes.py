"""What two judgements of one run say differently, and what may have made them: judge, model, panel, words."""

from typing import Any

from prill.record import Finding, Judgement


def changes(before: Judgement, after: Judgement) -> tuple[list[str], int]:
    """Lines for a person, and how many rules have another verdict."""
    lines = [f"  asked under another {name}: {old!r} → {new!r}" for name, old, new in circumstances(before, after)]
    old, new = ({finding.rule: finding for finding in judgement.findings} for judgement in (before, after))
    differ = 0
    for rule in sorted(old.keys() | new.keys()):
        words = [said(findings.get(rule)) for findings in (old, new)]
        if words[0] != words[1]:
            differ += 1
            lines.append(f"  {rule}: {words[0]} → {words[1]}")
            lines += [f"    {sign} {short(found[rule])}" for sign, found in (("-", old), ("+", new)) if rule in found]
        else:
            lines.append(f"  {rule}: {words[0]}, as before{votes(old[rule], new[rule])}")
    return lines, differ


def circumstances(before: Judgement, after: Judgement) -> list[tuple[str, Any, Any]]:
    """What was not the same: the name, then and now."""
    pairs: dict[str, tuple[Any, Any]] = {
        "judge": (before.judge, after.judge),
        "version": (before.version, after.version),
        "digest of words": (before.asked.get("prompts"), after.asked.get("prompts")),
    }
    panels = [judgement.asked.get("panel", {}) for judgement in (before, after)]
    pairs |= of_questions(*(panel.get("questions", []) for panel in panels))
    for field in sorted(panels[0].keys() | panels[1].keys()):
        if field not in ("title", "source", "questions"):
            pairs[f"panel.{field}"] = (panels[0].get(field), panels[1].get(field))
    return [(name, old, new) for name, (old, new) in pairs.items() if old != new]


def of_questions(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, tuple[Any, Any]]:
    """How each question is put and counted, then and now; of its words only whether they are the same."""
    asked = [{str(each.get("name")): each for each in questions} for questions in (before, after)]
    pairs: dict[str, tuple[Any, Any]] = {}
    for name in sorted(asked[0].keys() | asked[1].keys()):
        old, new = (questions.get(name, {}) for questions in asked)
        pairs |= {
            f"question {name}: {field}": (old.get(field), new.get(field)) for field in ("rules", "votes", "combine")
        }
        if old.get("words") != new.get("words"):
            pairs[f"question {name}: words"] = ("as they were", "others")
    return pairs


def said(finding: Finding | None) -> str:
    """A verdict in a word."""
    return "no word" if finding is None else finding.verdict


def short(finding: Finding) -> str:
    """A reason on one line."""
    return " ".join(finding.why.split())[:300]


def votes(before: Finding, after: Finding) -> str:
    """How the votes moved where the verdict did not."""
    counts = [[vote.get("said") for vote in finding.numbers.get("votes", ())] for finding in (before, after)]
    return "" if sorted(map(str, counts[0])) == sorted(map(str, counts[1])) else f" (votes {counts[0]} → {counts[1]})"
