"""What a judge model said about a reply, read: a verdict of a comparison, a yes or no about a criterion. Pure, total.

Sources: rules Z1, Z2 and Q12 of the acceptance cases; Arena-Hard's labels. What says nothing is `None`, never a guess.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

LABELS = ("A>>B", "A>B", "A=B", "B>A", "B>>A")
_DOUBLE = re.compile(r"\[\[\s{0,3}([AaBb][<>= ]{1,5}[AaBb])\s{0,3}\]\]")
_SINGLE = re.compile(r"\[\s{0,3}([AaBb][<>= ]{1,5}[AaBb])\s{0,3}\]")
_MIRROR = {"B=A": "A=B", "A<B": "B>A", "A<<B": "B>>A", "B<A": "A>B", "B<<A": "A>>B"}
_DECODER = json.JSONDecoder()
LONGEST = 1 << 16
"""Characters of a judge's reply that are read, from its end."""
MOST_STARTS = 2000
"""Opening braces that are tried."""


def verdict(text: str) -> str | None:
    """The last verdict label of a reply, in its usual spelling; in double brackets, else in single ones (Q12)."""
    for pattern in (_DOUBLE, _SINGLE):
        found = pattern.findall(text[-LONGEST:])
        if found:
            label = found[-1].upper().replace(" ", "")
            label = _MIRROR.get(label, label)
            return label if label in LABELS else None
    return None


def met(text: str) -> bool | None:
    """`criteria_met` of the last JSON object that has it, as true or false (Z1); anything else says nothing (Z2)."""
    said = None
    for found in objects(text[-LONGEST:]):
        if "criteria_met" in found:
            said = found["criteria_met"]
    if isinstance(said, str) and said.strip().lower() in ("true", "false"):
        return said.strip().lower() == "true"
    return said if isinstance(said, bool) else None


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The complete JSON objects of a text, outermost ones, in order."""
    at = -1
    for _ in range(MOST_STARTS):
        at = text.find("{", at + 1)
        if at < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found
            at = end - 1


def unthought(text: str) -> str:
    """A reply without the reasoning that leads it; reasoning that never closes is kept, as published."""
    start = text.lstrip()
    if not start.startswith("<think>") or "</think>" not in start:
        return text
    return start.split("</think>", 1)[1].strip()
