"""Grader `rubric`: HealthBench. A judge model says of each criterion by itself whether the reply meets it.

An item's value is the points of the criteria that are met over the points that can be earned; it may be negative. The
score is the mean of the items, held within 0 and 1 *after* the mean (Q13). Robust: one criterion without a grade holds
the whole score. Official, as published: such a criterion counts as not met. Reasoning in front of a reply is dropped,
and where an item's field `most_repeats` says so (v1.2 of the suite), a reply that loops is shortened for both readings.
An item's fields: `conversation` (the turns before its question), `rubrics` (criterion, points, tags), `tags`.
Not covered: judges that agree with the wrong side; the prompts are in our words, of the published meaning.
"""

import hashlib
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

from prill import opinions
from prill.answers.repetition import shortened, unlooped
from prill.record import Judged, JudgedItem, Reply
from prill.scoring.tally import clamp, rubric_score
from prill.sockets import Ask, Inquiry, Item, Opinion

PROMPT = """\
You will check one thing about the last reply of a conversation.

# The conversation
{conversation}

# The criterion
{criterion}

# What to do
Decide whether the last reply, the one of the assistant, meets the criterion. The number in brackets is what meeting \
it is worth. A criterion may describe something bad, and then its number is negative: say whether the reply does what \
the criterion describes, not whether that is good. "Met" means all of it: where a criterion names several things, each \
must be there, unless it says that examples follow ("such as", "for example", "including"), of which one is enough. \
Partly met is not met.

Answer with one JSON object and nothing else, with the two fields "explanation" (text: why) and "criteria_met" \
(true or false):
{"explanation": "…", "criteria_met": true}
"""
DIGEST = "sha256:" + hashlib.sha256(PROMPT.encode()).hexdigest()
DRAWS, SEED = 1000, 42
"""Of the bootstrap, as published."""


class Rubric:
    """See `AskingGrader`."""

    asks = True

    def __call__(self, replies: Sequence[tuple[Reply, Item]], ask: Ask) -> Judged:
        """One inquiry for each criterion of each item."""
        whole = [opinions.unthought(reply.text).strip() for reply, _ in replies]
        shown = [unlooped(text, item) for text, (_, item) in zip(whole, replies, strict=True)]
        inquiries = [
            Inquiry(user=prompt(text, item, criterion))
            for text, (_, item) in zip(shown, replies, strict=True)
            for criterion in criteria(item)
        ]
        said = iter(ask(inquiries, opinions.met))
        items = tuple(judged(item, [(criterion, next(said)) for criterion in criteria(item)]) for _, item in replies)
        graded = [[(part["points"], part["met"]) for part in each.parts] for each in items]
        score = rubric_score(graded)
        lenient = rubric_score([[(points, bool(met)) for points, met in parts] for parts in graded])
        valued = [each.value for each in items if each.value is not None]
        return Judged(
            official=lenient.score,
            robust=score.score,
            why="every criterion was graded"
            if score.score is not None
            else f"{score.missing} of {len(inquiries)} criteria have no grade (or an item has none to earn): ask again",
            n=len(valued),
            stderr=bootstrap(valued) if score.score is not None else None,
            items=items,
            numbers={
                "ungraded": sum(part["met"] is None for each in items for part in each.parts),
                "criteria": len(inquiries),
                "by_theme": by_theme(items, [item for _, item in replies]),
                "by_axis": by_axis(items),
                **shortened(whole, shown),
            },
            judge={**ask.spent(), "prompt": DIGEST},
        )


def criteria(item: Item) -> list[Mapping[str, Any]]:
    """The criteria of an item. Raises `KeyError` for an item that is none of HealthBench: that is ours."""
    return list(item.fields["rubrics"])


def prompt(text: str, item: Item, criterion: Mapping[str, Any]) -> str:
    """What the judge reads. Blanks are filled once, so that nothing inside a reply is taken for one."""
    turns = [*item.fields.get("conversation", ()), {"role": "user", "content": item.question}]
    turns.append({"role": "assistant", "content": text})
    conversation = "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)
    before, rest = PROMPT.split("{conversation}")
    between, after = rest.split("{criterion}")
    return f"{before}{conversation}{between}[{criterion['points']:g}] {criterion['criterion']}{after}"


def judged(item: Item, answers: Sequence[tuple[Mapping[str, Any], Opinion]]) -> JudgedItem:
    """One item: its value, if every criterion has a grade and there are points to earn."""
    parts = tuple(
        {"points": criterion["points"], "met": said.value, "tags": list(criterion["tags"]), "said": said.text}
        | ({"why": said.why} if said.value is None else {})
        for criterion, said in answers
    )
    positive = sum(part["points"] for part in parts if part["points"] > 0)
    ungraded = sum(part["met"] is None for part in parts)
    if ungraded or not positive:
        why = f"{ungraded} of {len(parts)} criteria have no grade" if ungraded else "no criterion has points to earn"
        return JudgedItem(item=item.id, value=None, why=why, parts=parts)
    value = sum(part["points"] for part in parts if part["met"]) / positive
    return JudgedItem(item=item.id, value=value, why=f"{sum(bool(part['met']) for part in parts)} met", parts=parts)


def bootstrap(values: Sequence[float]) -> float | None:
    """SD of the clipped means of resampled items."""
    if len(values) < 2:
        return None
    chance = random.Random(SEED)
    return pstdev(clamp(fmean(chance.choices(values, k=len(values)))) for _ in range(DRAWS))


def by_theme(judged: Sequence[JudgedItem], items: Sequence[Item]) -> dict[str, dict[str, float]]:
    """Theme → clipped mean over its items that have a value, and how many they are."""
    found: dict[str, list[float]] = defaultdict(list)
    for each, item in zip(judged, items, strict=True):
        for tag in item.fields.get("tags", ()):
            if tag.startswith("theme:") and each.value is not None:
                found[tag.removeprefix("theme:")].append(each.value)
    return {theme: {"score": clamp(fmean(values)), "n": len(values)} for theme, values in sorted(found.items())}


def by_axis(judged: Sequence[JudgedItem]) -> dict[str, dict[str, float]]:
    """Axis → points met over points to earn, over all its graded criteria, and how many they are."""
    met: dict[str, float] = defaultdict(float)
    positive: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for part in (part for each in judged for part in each.parts if part["met"] is not None):
        for axis in (tag.removeprefix("axis:") for tag in part["tags"] if tag.startswith("axis:")):
            met[axis] += part["points"] if part["met"] else 0
            positive[axis] += max(0, part["points"])
            count[axis] += 1
    return {axis: {"score": met[axis] / positive[axis], "n": count[axis]} for axis in sorted(met) if positive[axis]}


plugin = Rubric()
