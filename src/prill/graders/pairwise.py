"""Grader `pairwise`: Arena-Hard. A judge model compares the reply with a reference answer, twice, places swapped.

Game 1 shows the reference as A, game 2 the reply. A verdict is a vote, a strong one three; the score is the mean over
all votes. A question that lacks a verdict is left out of it, and counted (Q12). Where more than one in twenty questions
are left out, the robust reading holds the score; the official one goes on, as published. An item's `answer` is the
reference answer. Reasoning in front of a reply is dropped. Beside the score: the win rate at equal looks (`style.py`).
Where an item's field `most_repeats` says so, a reply that loops is shortened before it is shown, as published. Both
readings hang on the same verdicts, so it is shortened for both, and the score says how many replies and letters.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from statistics import stdev
from typing import Any

from prill import opinions, style
from prill.answers.repetition import shortened, unlooped
from prill.record import Judged, JudgedItem, Reply
from prill.scoring.tally import VOTES, win_rate
from prill.sockets import Ask, Inquiry, Item, Opinion

SYSTEM = """\
You are an impartial judge of two assistants' answers to the same request of a user, Assistant A's and Assistant B's. \
Say which is better.

First write your own answer to the request; judge only after that. Compare each assistant's answer with yours, and \
name and correct their mistakes. Consider then whether they are helpful (they do what was asked; where the request \
leaves something open, asking back can be better than guessing), relevant (every part belongs to the request) and \
concise (clear, not wordy). Where it matters, consider how creative and new they are. Last, look for important things \
that are missing and would have helped the user.

Which answer comes first says nothing about its worth, and neither does length by itself. After your reasons, give \
exactly one of these verdicts, in double brackets:

1. Assistant A is much better: [[A>>B]]
2. Assistant A is a little better: [[A>B]]
3. Both are about equally good: [[A=B]]
4. Assistant B is a little better: [[B>A]]
5. Assistant B is much better: [[B>>A]]

An example of how to end: "My final verdict is a tie: [[A=B]]"."""
USER = """\
<|The user's request|>
{question}

<|Assistant A's answer begins|>
{first}
<|Assistant A's answer ends|>

<|Assistant B's answer begins|>
{second}
<|Assistant B's answer ends|>"""
DIGEST = "sha256:" + hashlib.sha256((SYSTEM + USER).encode()).hexdigest()
MOST_MISSING = 0.05
"""Share of questions without both verdicts, beyond which what is left may be another benchmark."""


class Pairwise:
    """See `AskingGrader`."""

    asks = True

    def __call__(self, replies: Sequence[tuple[Reply, Item]], ask: Ask) -> Judged:
        """Two inquiries for each item."""
        whole = [opinions.unthought(reply.text).strip() for reply, _ in replies]
        shown = [unlooped(text, item) for text, (_, item) in zip(whole, replies, strict=True)]
        inquiries = []
        for text, (_, item) in zip(shown, replies, strict=True):
            inquiries += [inquiry(item.question, item.answer, text), inquiry(item.question, text, item.answer)]
        said = ask(inquiries, opinions.verdict)
        games = list(zip(said[::2], said[1::2], strict=True))
        items = tuple(judged(item, one, two) for (_, item), (one, two) in zip(replies, games, strict=True))
        rate = win_rate([(one.value, two.value) for one, two in games])
        votes = [vote for each in items for vote in votes_of(each)]
        held = rate.score is None or rate.missing > MOST_MISSING * len(items)
        told = f"{rate.missing} of {len(items)} questions lack a verdict and are left out"
        return Judged(
            official=rate.score,
            robust=None if held else rate.score,
            why=f"{told}: too many, ask again" if held else told,
            n=len(items) - rate.missing,
            stderr=stdev(votes) / len(votes) ** 0.5 if len(votes) > 1 else None,
            items=items,
            numbers={
                "missing": rate.missing,
                "missing_verdicts": sum(each.value is None for each in said),
                "votes": len(votes),
                "verdicts": dict(Counter(str(each.value) for each in said)),
                "won_as_first": place(items, "2"),
                "won_as_second": place(items, "1"),
                "style_controlled": controlled(items, shown, [item.answer for _, item in replies]),
                **shortened(whole, shown),
            },
            judge={**ask.spent(), "prompt": DIGEST},
        )


def inquiry(question: str, first: str, second: str) -> Inquiry:
    """What the judge reads. Blanks are filled once, so that nothing inside an answer is taken for one."""
    before, rest = USER.split("{question}")
    between, rest = rest.split("{first}")
    middle, after = rest.split("{second}")
    return Inquiry(system=SYSTEM, user=f"{before}{question}{between}{first}{middle}{second}{after}")


def judged(item: Item, one: Opinion, two: Opinion) -> JudgedItem:
    """One question: both games, and its own mean over votes, if neither verdict is missing."""
    parts = tuple(
        {"game": game, "candidate": place, "verdict": said.value, "said": said.text}
        | ({"why": said.why} if said.value is None else {})
        for game, place, said in (("1", "B", one), ("2", "A", two))
    )
    value = win_rate([(one.value, two.value)]).score
    why = "both orders were judged" if value is not None else "a verdict is missing"
    return JudgedItem(item=item.id, value=value, why=why, parts=parts)


def votes_of(item: JudgedItem, games: str = "12") -> list[float]:
    """The votes of a question, for the candidate; none where a verdict is missing."""
    votes: list[float] = []
    for part in item.parts if item.value is not None else ():
        share, weight = VOTES[part["verdict"]]
        if part["game"] in games:
            votes += [share if part["candidate"] == "B" else 1 - share] * weight
    return votes


def place(items: Sequence[JudgedItem], game: str) -> float | None:
    """The win rate of one of the two places alone: a judge that likes a place shows in the difference."""
    votes = [vote for item in items for vote in votes_of(item, game)]
    return sum(votes) / len(votes) if votes else None


def controlled(items: Sequence[JudgedItem], shown: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """The win rate of answers that look alike, and how these look."""
    rows = [
        (item, style.looks(ours), style.looks(theirs))
        for item, ours, theirs in zip(items, shown, references, strict=True)
        if item.value is not None
    ]
    votes = [(vote, style.difference(ours, theirs)) for item, ours, theirs in rows for vote in votes_of(item)]
    words = [sum(looks.words for looks in side) / len(rows) for side in zip(*(row[1:] for row in rows), strict=True)]
    return {
        "win_rate": style.controlled(votes),
        "words": words[0] if words else None,
        "reference_words": words[1] if words else None,
    }


plugin = Pairwise()
