"""A letter as the answer (GPQA, MMLU-Pro): rules L and S of RULES.md, beside what was published.

An item's `answer` is the letter (or letters) of the right option *as shown*. Its fields: `choices`, the options as
shown; `mode`, `lenient` or `strict`; `multiple`; `truncated_scores_zero` (N6; strict implies it); `official`, which
published scorer its benchmark is compared with (`OFFICIAL`; the default is Inspect 0.3.150, pinned by PostTrainBench).
"""

import re
from collections.abc import Callable, Sequence
from string import ascii_uppercase
from typing import Literal

from prill.answers import replies
from prill.record import Mark, Reply
from prill.sockets import Grader, Item

Mode = Literal["lenient", "strict"]
Letters = tuple[str, ...]

# --- what a piece of text says ------------------------------------------------------------------------------------

_NO_LETTERS: Letters = ()
"""A marker that states something which is no usable answer, as against `None`: it states nothing."""

_EDGE = re.escape(replies.EDGES)
_WORD = r"(?:(?:option|choice|letter)(?![A-Za-z]))?"
_HEAD = re.compile(rf"[{_EDGE}]{{0,20}}{_WORD}[{_EDGE}]{{0,20}}(?P<letter>[A-Za-z])(?![A-Za-z0-9])", re.IGNORECASE)
_NEXT = re.compile(
    rf"[{_EDGE}]{{0,12}}(?:[,/&+;|]|(?<![A-Za-z])(?:and|or)(?![A-Za-z])|(?<=\s)|[-\u2013](?=[A-Za-z]))"
    rf"(?:[{_EDGE}]{{0,12}}(?:and|or|&)(?![A-Za-z]))?[{_EDGE}]{{0,12}}(?P<letter>[A-Za-z])(?![A-Za-z0-9'\u2019])",
    re.IGNORECASE,
)
_PROSE = re.compile(r"[ \t]+(?!(?:because|since|due|and|or)\b)[a-z]|['\u2019][A-Za-z]|[_^][A-Za-z0-9{]")
"""What follows an `A` or `I` that is a word, or any letter that is part of a longer name."""


def _letters(text: str, *, alone: bool = False) -> tuple[str, str] | None:
    """The letters that a text begins with, as written and in order, and what follows them; `None` if it begins with
    prose. `alone`: only if nothing but wrappers follows, except option text behind a bracket, full stop or colon."""
    text = replies.unstyled(text[:400])
    head = _HEAD.match(text)
    if not head:
        return None
    letters, rest = head["letter"], text[head.end() :]
    if _PROSE.match(rest) and (letters in "AI" or not rest[0].isspace()):
        return None
    if alone and rest.strip(replies.EDGES) and rest[0] not in ").:]":
        return None
    while True:
        following = _NEXT.match(rest)
        if not following or "." in rest[: following.start("letter")] or "(" in rest[: following.start("letter")]:
            break
        behind = rest[following.end() :]
        if _PROSE.match(behind) or (following["letter"].islower() and behind.strip(replies.EDGES)):
            break
        letters, rest = letters + following["letter"], behind
    nothing_behind = not rest.strip(replies.EDGES)
    return (letters, rest) if letters.isupper() or nothing_behind else None


def _says(text: str, choices: Sequence[str], multiple: bool, *, alone: bool = False) -> Letters | None:
    """The options that a text states (L2, L4, L5): none of them if it names a letter that is no option, or two where
    one is asked; `None` where it states nothing."""
    found = _letters(text, alone=alone)
    if found is None:
        return None
    letters = found[0].upper()
    if set(letters) <= set(choices) and (multiple or len(letters) == 1):
        return tuple(sorted(set(letters)))
    return _NO_LETTERS


# --- the robust readings ------------------------------------------------------------------------------------------


def _lenient(reply: str, choices: Sequence[str], multiple: bool) -> Letters | None:
    def read(marker: replies.Marker) -> Letters | None:
        if marker.kind == "label" and marker.below:
            return _says(marker.below, choices, multiple, alone=True)
        said = _says(marker.text, choices, multiple)
        heading = marker.kind == "hash" and len(replies.unwrap(marker.text[:80])) > 1 and not multiple
        return None if heading else said

    marked = replies.last_marked(reply, read)
    if marked is not None:
        return marked
    line = next((line for line in reversed(reply.split("\n")) if line.strip()), "")
    bare = _letters(line) if len(line) <= 200 else None
    return _says(line, choices, multiple) if bare and not bare[1].strip(replies.EDGES) else None


_STRICT = re.compile(r"^ANSWER:(.*)$", re.DOTALL)


def _strict(reply: str, choices: Sequence[str], multiple: bool) -> Letters | None:
    """S1: a line that is exactly `ANSWER: X`, or a box; the last of them."""
    said: list[tuple[int, Letters | None]] = []
    at = 0
    for line in reply.split("\n"):
        stated = _STRICT.match(replies.unstyled(line).strip(" _")) if len(line) <= 200 else None
        found = _letters(stated[1]) if stated else None
        if stated and found and found[0].isupper() and not found[1].strip(replies.EDGES):
            said.append((at, _says(stated[1], choices, multiple)))
        at += len(line) + 1
    said += [(box.start, _says(box.content, choices, multiple)) for box in replies.boxes(reply)]
    return max((spot for spot in said if spot[1] is not None), default=(0, None))[1]


def read_letters(
    completion: str,
    choices: Sequence[str],
    *,
    mode: Mode = "lenient",
    multiple: bool = False,
    stop: str | None = None,
    truncated_scores_zero: bool = False,
) -> Letters | None:
    """The letters that a completion answers with, in alphabetical order, or `None` (L, S, N). Never a guess (L3).

    `choices` are the letters of the options. A reply that was cut off has no answer in strict mode (N6).
    """
    reply = replies.prepare(completion)
    if reply is None or replies.cut_off(stop, truncated_scores_zero or mode == "strict"):
        return None
    read = _strict if mode == "strict" else _lenient
    return read(reply, choices, multiple) or None


def read_letter(
    completion: str,
    choices: Sequence[str],
    *,
    mode: Mode = "lenient",
    stop: str | None = None,
    truncated_scores_zero: bool = False,
) -> str | None:
    """The one letter that a completion answers with; see `read_letters`."""
    letters = read_letters(completion, choices, mode=mode, stop=stop, truncated_scores_zero=truncated_scores_zero)
    return letters[0] if letters else None


# --- the published readings ---------------------------------------------------------------------------------------

_LETTERS = r"ANSWER\s*:\s*([A-Za-z\d ,]+)"
_OWN_LINE = re.compile(rf"^{_LETTERS}\s*(?:$|\n|\.)", re.IGNORECASE | re.MULTILINE)
_ANYWHERE = re.compile(rf"{_LETTERS}(?:[^\w]|\n|$|\.)", re.IGNORECASE)
_INNER = r"\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*"
_WRAPPED = (
    (re.compile(rf"\${_INNER}\$"), r"\1"),
    (re.compile(rf"\*\*{_INNER}\*\*"), r"\1"),
    (re.compile(r"(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:,|\.|\n|\Z))", re.IGNORECASE), r"\1\2\3"),
)


_LONG_BLANK = re.compile(r"(\s{50})\s*(\s{50})")


def _short(completion: str) -> str:
    """The same to these scorers, with long blanks shortened: their expressions take cubic time on blanks."""
    return _LONG_BLANK.sub(r"\1\2", completion)


def first_answer_line(completion: str, choices: Sequence[str], multiple: bool = False) -> set[str]:
    """Inspect 0.3.150, `multiple_choice` with `choice`: the first line that begins with `ANSWER:`, else the first
    `ANSWER:` anywhere.

    Known to be wrong: the first line wins over a later correction and over one inside the reasoning; a wrapped
    (`**C**`, `$C$`, `(C)`), lower-case or boxed letter is no answer; so is one with its option's text.
    """
    completion = _short(completion)
    match = _OWN_LINE.search(completion) or _ANYWHERE.search(completion)
    stated = match[1].strip().rstrip(".") if match else ""
    if not multiple:
        return {stated} & set(choices)
    return _split(stated.replace(" and ", "").replace(" ", ""), choices, keep_empty=True)


def last_answer_line(completion: str, choices: Sequence[str], multiple: bool = False) -> set[str]:
    """Inspect 0.3.285: the last such line, with some wrappers taken off and any case.

    Known to be wrong: reasoning still counts as reply; boxes and code ticks are no answer; nor is an option's text
    behind the letter.
    """
    completion = _short(completion)
    for pattern, inner in _WRAPPED:
        completion = pattern.sub(inner, completion)
    found = _OWN_LINE.findall(completion) or _ANYWHERE.findall(completion)
    stated = found[-1].strip().rstrip(".").upper() if found else ""
    if not multiple:
        tokens = [token for token in stated.split(",") if token]
        return set(tokens) & set(choices) if len(tokens) == 1 else set()
    return _split(stated.replace(" AND ", ",").replace(" ", ""), choices, keep_empty=False)


def _split(stated: str, choices: Sequence[str], *, keep_empty: bool) -> set[str]:
    for tokens in ({token for token in stated.split(",") if token or keep_empty}, set(stated)):
        if tokens <= set(choices):
            return tokens
    return set()


OFFICIAL: dict[str, Callable[[str, Sequence[str], bool], set[str]]] = {
    "inspect-0.3.150": first_answer_line,
    "inspect-0.3.285": last_answer_line,
}
"""Published scorers by name: (completion, letters, multiple) → the letters read."""


# --- the plug-in --------------------------------------------------------------------------------------------------


def mark(reply: Reply, item: Item) -> Mark:
    """Marks a reply whose answer is a letter, or several where the item says `multiple`."""
    choices = ascii_uppercase[: len(item.fields["choices"])]
    right = set(replies.unwrap(item.answer).replace(",", "").replace(" ", ""))
    multiple = item.fields.get("multiple", False)
    if not right or not right <= set(choices) or (len(right) > 1 and not multiple):
        raise ValueError(f"the answer {item.answer!r} does not name an option of {choices}")
    mode: Mode = item.fields.get("mode", "lenient")
    zero = item.fields.get("truncated_scores_zero", False)
    letters = read_letters(
        reply.text, choices, mode=mode, multiple=multiple, stop=reply.stop, truncated_scores_zero=zero
    )
    official = OFFICIAL[item.fields.get("official", "inspect-0.3.150")](reply.text, choices, multiple)
    return Mark(
        official=float(official == right and not replies.cut_off(reply.stop, zero)),
        robust=float(letters is not None and set(letters) == right),
        answer=", ".join(letters) if letters else None,
        why="" if letters else "no letter in the reply",
    )


plugin: Grader = mark
