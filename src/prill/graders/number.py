"""A number as the answer (AIME, GSM8K, the toy benchmark): rules A and G of RULES.md, beside what was published.

An item may say in its fields: `official`, which published scorer its benchmark is compared with (`OFFICIAL`; the
default is Inspect 0.3.150, which PostTrainBench v1 pinned); `reading`, `number` or `integer` (AIME); and
`truncated_scores_zero`, whether a reply that was cut off has no answer (N6).
"""

import math
import re
import string
import unicodedata
from collections.abc import Callable
from fractions import Fraction

from prill.answers import numbers, replies
from prill.record import Mark, Reply
from prill.sockets import Grader, Item

# --- the robust reading -------------------------------------------------------------------------------------------


def read_number(completion: str, *, truncated: bool = False) -> Fraction | None:
    """The number that a completion answers with, exactly (G1 to G7, N); `truncated` where N6 voids it.

    The last explicit marker that holds a number wins (G2), else the last number of the reply (G3).
    """
    reply = None if truncated else replies.prepare(completion)
    if reply is None:
        return None
    reply = numbers.clean(reply)
    marked = replies.last_marked(reply, _stated)
    return numbers.last(reply) if marked is None else marked


def _stated(marker: replies.Marker) -> Fraction | None:
    return numbers.stated(marker.below or marker.text)


def read_integer(completion: str, *, truncated: bool = False) -> int | None:
    """The AIME answer of a completion, 0 to 999 (A2 to A5, N); anything else that it says is no answer."""
    value = read_number(completion, truncated=truncated)
    return int(value) if value is not None and value.denominator == 1 and 0 <= value <= 999 else None


def read_target(target: str) -> Fraction:
    """The right answer as the data set writes it (`70,000`, `-3`, `7/2`). One that is no number is our error."""
    found = list(numbers.numbers(replies.fold(target)))
    if len(found) != 1:
        raise ValueError(f"the target {target!r} is not one number; a number item needs one")
    return found[0]


# --- the published readings ---------------------------------------------------------------------------------------

_FORMAT = re.compile("[$,£€*_]")
_ESCAPED = re.compile(r"\\([$,£€*_])")
_LOOSE_STOP = re.compile(r"\.(?=\s|$|\D)")
_BOX = "\\boxed{"
_FIRST_FLOAT = re.compile(r"[+-]?\d+(?:\.\d+)?")
_VULGAR = {char: unicodedata.numeric(char) for char in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"}
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_TO_DIGITS = str.maketrans(_RAISED + "⁻⁺", "0123456789-+")


def _is_numeric(word: str) -> bool:
    return word.replace(".", "").isnumeric()


def _digits(text: str) -> str:
    return "".join(str(unicodedata.digit(char, char)) for char in text)


def _figure(word: str) -> float | None:
    """What Inspect 0.3.150 makes of a word that is numeric apart from dots: `1.2.3` is 1.2, `3²` is 9, `½` is 0.5.

    `None` where it raises, which costs the whole sample there. Numerals of several characters in other scripts (十二)
    are not read here.
    """
    raised = next((at for at, char in enumerate(word) if char in _RAISED), len(word))
    head, exponent = word[:raised], word[raised:].translate(_TO_DIGITS)
    fractions = [_VULGAR[char] for char in head if char in _VULGAR]
    plain = "".join(char for char in head if char not in _VULGAR)
    first = _FIRST_FLOAT.match(plain)
    try:
        if len(fractions) > 1 or (plain and not first) or (exponent and not exponent.isdecimal()):
            return unicodedata.numeric(word) if len(word) == 1 else float(_digits(word))
        value = (float(first[0]) if first else 0.0 if fractions else 1.0) + sum(fractions)
        return value ** int(exponent) if exponent else value
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def _last_figure(completion: str) -> str | None:
    """The last numeric word of a text to five significant digits, else its last word as it stands."""
    words = re.split(r"\s+", _LOOSE_STOP.sub("", _FORMAT.sub("", completion.strip().casefold())))
    word = next((word for word in reversed(words) if _is_numeric(word)), words[-1])
    if not _is_numeric(word):
        return word
    value = _figure(word)
    return None if value is None else format(value, ".5g")


def ends_with(completion: str, target: str) -> bool:
    """Inspect 0.3.150, `match(location="end", numeric=True)`.

    Known to be wrong: it compares by suffix, so 711 passes for 11; to five digits, so 123457 passes for 123456;
    `12%` fails and `-12` passes for 12; a target with a sign or comma is compared as text without its punctuation, so
    5 passes for -5 and 1080 fails for 1,080.
    """
    wanted = target.strip().casefold()
    if not wanted.isnumeric():
        edges = string.whitespace + string.punctuation
        return completion.strip().casefold().strip(edges).endswith(wanted.strip(edges))
    figure, value = _last_figure(completion), _figure(wanted)
    return figure is not None and value is not None and figure.endswith(format(value, ".5g"))


def _unboxed(text: str) -> str:
    """Each line without its first `\\boxed{` and its last `}`, as inspect_evals takes boxes off."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        first, last = line.find(_BOX), line.rfind("}")
        if 0 <= first < last - len(_BOX):
            lines[at] = line[:first] + line[first + len(_BOX) : last] + line[last + 1 :]
    return "\n".join(lines)


def unboxed_ends_with(completion: str, target: str) -> bool:
    """The AIME task of inspect_evals at 06001a83: boxes are taken off, then `ends_with`. Wrong where that is."""
    return ends_with(_unboxed(completion), target)


def exact_integer(completion: str, target: str) -> bool:
    """PostTrainBench v1.2 on AIME: the same word as `ends_with`, compared for equality (to five digits)."""
    if not re.fullmatch("[0-9]+", target.strip()):
        raise ValueError(f"the target {target!r} is not a whole number")
    return _last_figure(_unboxed(completion)) == format(float(target), ".5g")


def exact_value(completion: str, target: str) -> bool:
    """PostTrainBench v1.2 on GSM8K: the last word that is numeric apart from one minus and dots, compared by value."""
    wanted = _FORMAT.sub("", target.strip())
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", wanted):
        raise ValueError(f"the target {target!r} is not a decimal number")
    words = re.split(r"\s+", _LOOSE_STOP.sub("", _FORMAT.sub("", completion.strip().casefold())))
    word = next((word for word in reversed(words) if _is_numeric(word.removeprefix("-"))), "")
    try:
        return abs(float(word) - float(wanted)) < 1e-9
    except ValueError:
        return False


_TRIMMED = "!?:;()[]{}'\"`"
_GROUPS = re.compile(r"(?<=\d)['’]|^['’](?=[\d.])")


def _finite(word: str) -> float | None:
    """What Inspect 0.3.285 makes of a word: a float, also with a vulgar fraction, a raised exponent or several signs.

    Numerals of several characters in other scripts and its guesses at locales are not read here.
    """
    word = word.strip(_TRIMMED)
    rest = _GROUPS.sub("", word.lstrip("-−+"))
    base = rest.rstrip(_RAISED)
    base = base[:-1] if base != rest and base[-1:] in "⁻⁺" else base
    exponent = rest[len(base) :]
    if not base or len(rest) == 1:
        base, exponent = str(unicodedata.numeric(rest, "")) if len(rest) == 1 else exponent, ""
    fraction = _VULGAR.get(base[-1:], 0.0)
    digits = _digits(base[:-1] if fraction else base)
    try:
        value = fraction + (0.0 if fraction and not digits else float(digits))
        value = -value if sum(map(word[: len(word) - len(word.lstrip("-−+"))].count, "-−")) % 2 else value
        value = value ** int(exponent.translate(_TO_DIGITS)) if exponent else value
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return value if math.isfinite(value) else None


def last_equals(completion: str, target: str) -> bool:
    """Inspect 0.3.285, `match(location="end", numeric=True)`: the last word that is a number, equal to five digits.

    Known to be wrong: 123457 still passes for 123456; `60%` and a number with a unit glued on are no numbers to it;
    so an earlier number of the text, or none, takes their place.
    """

    def bare(text: str) -> str:
        return _LOOSE_STOP.sub("", _FORMAT.sub("", _ESCAPED.sub(r"\1", text.strip().casefold())))

    wanted = _finite(bare(target))
    if wanted is None:
        edges = string.whitespace + string.punctuation
        return completion.strip().casefold().strip(edges).endswith(bare(target).strip(edges))
    found = (_finite(word) for word in reversed(re.split(r"\s+", bare(completion))))
    figure = next((format(value, ".5g") for value in found if value is not None), "")
    return figure == format(wanted, ".5g")


OFFICIAL: dict[str, Callable[[str, str], bool]] = {
    "inspect-0.3.150": ends_with,
    "inspect-0.3.150-unboxed": unboxed_ends_with,
    "inspect-0.3.285": last_equals,
    "posttrainbench-1.2-aime": exact_integer,
    "posttrainbench-1.2-gsm8k": exact_value,
}
"""Published scorers by name: (completion, target) → right or wrong."""


# --- the plug-in --------------------------------------------------------------------------------------------------


def mark(reply: Reply, item: Item) -> Mark:
    """Marks a reply whose answer is one number."""
    official = OFFICIAL[item.fields.get("official", "inspect-0.3.150")]
    truncated = replies.cut_off(reply.stop, item.fields.get("truncated_scores_zero", False))
    target = read_target(item.answer)
    if item.fields.get("reading") == "integer":
        whole = read_integer(reply.text, truncated=truncated)
        value = None if whole is None else Fraction(whole)
    else:
        value = read_number(reply.text, truncated=truncated)
    return Mark(
        official=float(not truncated and official(reply.text, item.answer)),
        robust=float(value == target),
        answer=None if value is None else numbers.decimal(value),
        why="" if value is not None else "cut off" if truncated else "no number in the reply",
    )


plugin: Grader = mark
