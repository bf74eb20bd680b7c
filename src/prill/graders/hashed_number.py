"""A whole number behind `####`, as GSM8K's own answers end; a number anywhere else is no answer.

The strictest reading: for a benchmark whose point is that the base model does not know the format yet, taking the last
number of any text would credit chance. Official and robust reading are the same.
"""

import re

from prill.answers import replies
from prill.record import Mark, Reply
from prill.sockets import Item

ANSWER = re.compile(r"####[ \t]*(-?[0-9]{1,18})(?![0-9])")


def read(completion: str) -> int | None:
    """The number behind the last `####` that has one."""
    found = ANSWER.findall(replies.prepare(completion) or "")
    return int(found[-1]) if found else None


def mark(reply: Reply, item: Item) -> Mark:
    """Right if the last `#### N` equals the item's answer."""
    value = read(reply.text)
    right = float(value == int(item.answer))
    return Mark(
        official=right,
        robust=right,
        answer=None if value is None else str(value),
        why="" if value is not None else "no number behind ####",
    )


plugin = mark
