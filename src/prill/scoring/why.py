"""What a person should know about a cell beside its value: equality with a reference, and why a value is zero. Pure."""

from collections.abc import Iterable, Mapping
from math import ceil

from prill.record import Measurement
from prill.spec import Reference

STOPS = {
    "length": "cut off at max_tokens",
    "timeout": "over the time limit",
    "empty": "empty",
    "refused": "refused",
    "server": "failed at the server",
}
"""How a reply can end other than by itself, in words."""
UNREAD = "without an answer that can be read"
WRONG = "answered wrongly"


def alerts(measured: Measurement, model: str, references: Iterable[Reference]) -> tuple[str, ...]:
    """One line if a value equals a reference score of its benchmark to the last bit: nobody may have trained it.

    On few items this happens by chance, so the line says how many values were possible.
    """
    known: dict[str, float | None] = {}
    for row in references:
        if row.benchmark == measured.benchmark:
            known[f"{row.model}'s base"] = row.base if row.model == model else None
            known[f"{row.model}'s instruct"] = row.instruct
            known[f"{row.model}'s few-shot"] = row.fewshot
    equal = equals_reference(measured.value, known)
    if not equal:
        return ()
    chance = f"; {measured.n + 1:,} values were possible" if measured.n else ""
    return (f"exactly {measured.value!r}: {' and '.join(equal)} score of {measured.benchmark}{chance}",)


def why_zero(measured: Measurement, floor: float) -> str:
    """For a value at or below its floor: how many items it lacks, and the fewest kinds of lost item that would do.

    Kinds are what the replies ended in; a kind helps by all its items at the most. Empty where items are not known.
    """
    if measured.value is None or not measured.n:
        return ""
    right = measured.value * measured.n
    lack = ceil(floor * measured.n - right + 1e-9)
    line = f"{right:g} of {measured.n:,} right; above the floor of {floor:g} from {lack} more"
    lost: dict[str, float] = {}
    for item in measured.items:
        mark = item.robust if measured.value == measured.robust else item.official
        kind = STOPS.get(item.stop) or (UNREAD if item.answer is None else WRONG)
        lost[kind] = lost.get(kind, 0.0) + 1 - mark
    if not measured.items:
        lost = {words: float(measured.stops.get(stop, 0)) for stop, words in STOPS.items()}
    chosen: list[str] = []
    left = float(lack)
    for kind, count in sorted(lost.items(), key=lambda entry: -entry[1]):
        if left <= 0 or not count:
            break
        chosen.append(f"{count:g} {kind}")
        left -= count
    if not chosen or left > 0:
        return line
    return f"{line}; enough would be: {' and '.join(chosen)}"


def equals_reference(value: float | None, references: Mapping[str, float | None]) -> list[str]:
    """Names of the reference scores that a value equals to the last bit: the mark of a model that nobody trained."""
    return [name for name, reference in references.items() if value is not None and value == reference]
