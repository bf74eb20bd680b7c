"""What runs used up: time, tokens and money for each entrant, with unknown shown as unknown. Pure."""

import re
from collections.abc import Iterable, Sequence
from statistics import fmean

from prill.bill import THINGS, paid
from prill.outside import Purchase
from prill.record import Run
from prill.standings import Overview, Spent

OTHERS: tuple[Purchase, ...] = ("gpu", "storage", "teacher")
CLOCK = re.compile(r"(\d+):([0-5]\d):([0-5]\d)")


def overview(runs: Iterable[Run]) -> Overview:
    """Means over an entrant's counting runs that say it."""
    runs = list(runs)
    outcomes = [run.outcome for run in runs]
    hours = {run.spec.budget.hours for run in runs}
    purse = {run.spec.budget.usd for run in runs}
    beside = {kind for run in runs for kind in run.spec.budget.beside}
    limit = next(iter(hours)) * 3600 if len(hours) == 1 else None

    def share_of(kind: Purchase) -> float | None:
        return None if kind in beside else next(iter(purse), None)

    others = {kind: [paid(outcome, kind) for outcome in outcomes] for kind in OTHERS}
    for_sale = {kind: usd for kind, usd in others.items() if any(each is not None for each in usd)}
    return Overview(
        seconds=spent([outcome.wall_seconds if outcome else None for outcome in outcomes], limit),
        tokens_in=spent([outcome.tokens_in if outcome else None for outcome in outcomes]),
        tokens_out=spent([outcome.tokens_out if outcome else None for outcome in outcomes]),
        usd=spent([outcome.usd if outcome else None for outcome in outcomes], share_of("model")),
        bought={kind: spent(usd, share_of(kind)) for kind, usd in for_sale.items()},
    )


def spent(values: Sequence[float | None], budget: float | None = None) -> Spent:
    """The mean of what is known, how many are known and how many are not, and the share of the budget."""
    known = [value for value in values if value is not None]
    mean = fmean(known) if known else None
    share = mean / budget if mean is not None and budget else None
    return Spent(mean=mean, known=len(known), unknown=len(values) - len(known), share=share)


def seconds_of(text: str) -> int | None:
    """`9:05:30` → 32730; minutes and seconds have two digits below 60; anything else is none."""
    match = CLOCK.fullmatch(text.strip())
    return None if match is None else int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])


def clock_of(seconds: float) -> str:
    """`32730.9` → `9:05:30`: truncated to whole seconds, as the published tables do."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def cost_words(found: Overview) -> str:
    """What the agent's own model cost, and what else was bought."""
    others = [f"{THINGS[kind]} {words(each, '$')}" for kind, each in found.bought.items()]
    return "; ".join([words(found.usd, "$"), *others])


def words(spent: Spent, unit: str = "") -> str:
    """A mean with how many runs it rests on, or that it is unknown."""
    if spent.mean is None:
        return "unknown"
    value = clock_of(spent.mean) if unit == "clock" else f"{unit}{spent.mean:,.2f}" if unit else f"{spent.mean:,.0f}"
    value = "under $0.01" if unit == "$" and 0 < spent.mean < 0.01 else value
    share = f" ({100 * spent.share:.1f} %)" if spent.share is not None else ""
    return f"{value}{share}" + (f", unknown for {spent.unknown} of {spent.known + spent.unknown}" * bool(spent.unknown))
