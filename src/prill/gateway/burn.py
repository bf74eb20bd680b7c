"""How fast money goes, and whether it will last: pure functions of a ledger's entries."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from prill.gateway.ledger import Entry

WINDOW_SECONDS = 1800.0
"""How far back the rate looks: long enough to see past one dear call, short enough to see a machine left idle."""


@dataclass(frozen=True)
class Forecast:
    """What the rate says about what is left."""

    usd_per_hour: Decimal
    hours: Decimal | None
    """Until the money is gone at this rate; `None`: nothing is being spent, or there is no limit."""
    lasts: bool
    words: str


def burn_rate(entries: Sequence[Entry], now: float, window_seconds: float = WINDOW_SECONDS) -> Decimal:
    """Dollars an hour over the window before `now` (seconds since 1970), or over the ledger's life if it is shorter."""
    first = next((entry.at for entry in entries if entry.action in ("hold", "charge")), now)
    begin = max(now - window_seconds, first)
    paid = [entry for entry in entries if entry.action == "charge" and begin <= entry.at <= now]
    total = sum((Decimal(entry.usd) for entry in paid), Decimal(0))
    return total * 3600 / Decimal(str(max(now - begin, 60.0)))


def forecast(left: Decimal | None, usd_per_hour: Decimal, hours_left: float | None) -> Forecast:
    """Whether `left` dollars last for `hours_left` hours at a rate, and the sentence for the agent and the table."""
    if left is None or usd_per_hour <= 0:
        return Forecast(usd_per_hour, None, True, "nothing is being spent" if left is not None else "there is no limit")
    hours = left / usd_per_hour
    lasts = hours_left is None or hours >= Decimal(str(hours_left))
    rate = f"${usd_per_hour:.2f} an hour; ${left:.2f} is left, enough for {hours:.1f} h"
    return Forecast(usd_per_hour, hours, lasts, rate if lasts else f"{rate} of {hours_left:.1f} h: this will not last")
