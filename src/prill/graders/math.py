"""A formula as the answer (MATH-500): rules M of RULES.md, beside the string comparison that came with the data set.

An item may say `truncated_scores_zero` in its fields: whether a reply that was cut off has no answer (N6).
"""

import re

from prill.answers import replies
from prill.answers.sameness import equivalent
from prill.record import Mark, Reply
from prill.sockets import Grader, Item

# --- the robust reading -------------------------------------------------------------------------------------------

_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n[ \t]*\n")


def _content(box: replies.Box) -> str | None:
    return box.content.strip() or None


def _joined(reply: str, boxes: list[replies.Box]) -> list[str]:
    """The boxes of the closing sentence (M2)."""
    first = len(boxes) - 1
    while first > 0 and not _SENTENCE_END.search(reply, boxes[first - 1].end, boxes[first].start):
        first -= 1
    return [box.content.strip() for box in boxes[first:]]


def read_formula(completion: str, target: str | None = None, *, truncated: bool = False) -> str | None:
    """What the last balanced box of a completion holds, as written (M1, N); `None` where that is nothing.

    With a target: several boxes of the closing sentence are joined if, and only if, that is the target (M2, policy).
    """
    reply = None if truncated else replies.prepare(completion)
    boxes = replies.boxes(reply) if reply else []
    marked = _until_next_item(reply or "", boxes)
    if not marked:
        return None
    last = _content(marked[-1])
    if target is not None and not (last and equivalent(last, target)):
        several = _joined(reply or "", marked)[-12:]
        joined = ", ".join(several)
        if len(several) > 1 and all(several) and equivalent(joined, target):
            return joined
    return last


def _until_next_item(reply: str, boxes: list[replies.Box]) -> list[replies.Box]:
    """The boxes before a line that starts a new item (N3)."""
    end = replies.next_item(reply, boxes[0].end) if boxes else 0
    return [box for box in boxes if box.start < end]


# --- the published reading ----------------------------------------------------------------------------------------

_BARE_FRACTION = re.compile(r"\\frac\s*(?:\{([^{}]*)\}|([^\s{}\\]))\s*(?:\{([^{}]*)\}|([^\s{}\\]))")
_LOOKS = re.compile(r"\\!|\\left|\\right|\^\{?\\circ\}?|\\\$|\\?%|\s")


def tidy_string(text: str) -> str:
    """A MATH answer as the data set's own comparison (`is_equiv`) normalises it."""
    text = text.replace("\n", "").replace("\\\\", "\\").replace("tfrac", "frac").replace("dfrac", "frac")
    text = text.split("\\text{ ")[0]
    text = _LOOKS.sub("", text).replace("{.", "{0.")
    text = "0" + text if text.startswith(".") else text
    name, sign, value = text.partition("=")
    text = value if sign and len(name) <= 2 and "=" not in value else text
    text = re.sub(r"\\sqrt([^{])", r"\\sqrt{\1}", text)
    text = _BARE_FRACTION.sub(lambda match: f"\\frac{{{match[1] or match[2]}}}{{{match[3] or match[4]}}}", text)
    text = "\\frac{1}{2}" if text == "0.5" else text
    slash = re.fullmatch(r"(-?[0-9]+)/(-?[0-9]+)", text)
    return f"\\frac{{{int(slash[1])}}}{{{int(slash[2])}}}" if slash and len(text) < 99 else text


def same_string(completion: str, target: str) -> bool:
    """The comparison published with MATH: the last box and the target are the same string once both are tidied.

    Known to be wrong: it takes 0.5 for 1/2 but no other value in two notations; intervals, lists and sums in another
    spacing or order fail; boxes inside the reasoning count.
    """
    boxes = replies.boxes(completion)
    return bool(boxes) and tidy_string(boxes[-1].content) == tidy_string(target)


# --- the plug-in --------------------------------------------------------------------------------------------------


def mark(reply: Reply, item: Item) -> Mark:
    """Marks a reply whose answer is a formula in a box."""
    if not item.answer.strip():
        raise ValueError("a formula item needs an answer")
    truncated = replies.cut_off(reply.stop, item.fields.get("truncated_scores_zero", False))
    formula = read_formula(reply.text, item.answer, truncated=truncated)
    return Mark(
        official=float(not truncated and same_string(reply.text, item.answer)),
        robust=float(formula is not None and equivalent(formula, replies.fold(item.answer))),
        answer=formula,
        why="" if formula is not None else "cut off" if truncated else "no box in the reply",
    )


plugin: Grader = mark
