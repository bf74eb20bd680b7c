"""What a run spent, in words: of its limit, and on what. Pure."""

from collections.abc import Mapping
from decimal import Decimal

from prill.outside import Purchase
from prill.record import Bought, Outcome

THINGS: Mapping[Purchase, str] = {
    "model": "model",
    "gpu": "machine",
    "storage": "storage",
    "teacher": "teacher",
    "judge": "judges",
}
"""Kind of purchase → the word for people."""
CENT = Decimal("0.01")


def paid(outcome: Outcome | None, kind: Purchase) -> float | None:
    """Dollars for one kind of thing; `None` where it was not for sale, or nothing is known."""
    found = outcome.bought.get(kind) if outcome else None
    return float(found.usd) if found and found.usd is not None else None


def of_limit(outcome: Outcome, limit: float | None) -> tuple[str, bool]:
    """What was taken of the limit, and whether that is known; where a run does not say on what, what its model cost."""
    of = f"of ${limit:,.2f}" if limit is not None else "with no limit set"
    known = [each for each in outcome.bought.values() if each.usd is not None]
    taken = sum((Decimal(each.usd or 0) for each in known if not each.beside), Decimal(0)) if known else outcome.usd
    if taken is None:
        return f"not known, {of}: {outcome.spend_why}", False
    counts = ((outcome.tokens_in, "in"), (outcome.tokens_out, "out"))
    tokens = [f"{'an unknown number of' if n is None else f'{n:,}'} tokens {way}" for n, way in counts]
    return f"${taken:,.2f} {of}; {outcome.spend_why if outcome.usd is None else ', '.join(tokens)}", True


def by_kind(outcome: Outcome) -> str:
    """`model $2.64 beside the limit; teacher $12.50; storage: …`; empty where only the model was for sale."""
    if all(each.usd is None for kind, each in outcome.bought.items() if kind != "model"):
        return ""
    return "; ".join(amount(kind, each) for kind, each in outcome.bought.items())


def amount(kind: Purchase, each: Bought) -> str:
    """What was paid for one kind of thing, or why nothing was."""
    if each.usd is None:
        return f"{THINGS[kind]}: {each.why}"
    usd = Decimal(each.usd)
    dollars = "under $0.01" if 0 < usd < CENT else f"${usd:,.2f}"
    return f"{THINGS[kind]} {dollars}" + (" beside the limit" if each.beside else "")
