"""What costs money as time passes, such as a machine or what lies on a disk: always paid for a little ahead.

Calls hold far more than they come to cost, and many at once may hold all that there is. So that none of them takes the
machine away, the next minutes of it are kept free: calls wait or are refused before that is touched.
"""

import time
from collections.abc import Callable
from decimal import Decimal
from uuid import uuid4

from prill.gateway.ledger import Ledger, text
from prill.outside import Purchase

AHEAD_SECONDS = 60.0
FREE_SECONDS = 300.0
"""Of the time beyond that is kept free; a call that takes longer than all of it may still end a machine."""


class Rent:
    """One thing that is paid for by the hour.

    `usd_per_hour` is for one unit; `units` gives how many there are, with words for the ledger, and is asked when a
    stretch begins and good to its end. `tick` must be called at least every `ahead_seconds`; once it says False the
    thing must go, and nothing was overspent. Not covered: time between a tick that should have come and the one that
    did.
    """

    def __init__(
        self,
        ledger: Ledger,
        kind: Purchase,
        usd_per_hour: Decimal,
        *,
        what: str | None = None,
        units: Callable[[], tuple[Decimal, str]] = lambda: (Decimal(1), ""),
        ahead_seconds: float = AHEAD_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ledger, self.kind, self.rate, self.what, self.units = ledger, kind, usd_per_hour, what, units
        self._ahead, self._clock = ahead_seconds, clock
        self._id, self._since, self._number = "", 0.0, 0
        self._many, self._words = Decimal(1), ""
        self._name = uuid4().hex

    def _worth(self, seconds: float) -> Decimal:
        return self.rate * self._many * Decimal(str(seconds)) / 3600

    def tick(self, step: int | None = None) -> bool:
        """Pay for the time since the last tick and set the next stretch aside; False where there is no money for it."""
        self._pay()
        self._number += 1
        self._id, self._since = f"{self._name}.{self._number}", self._clock()
        self._many, self._words = self.units()
        if not self.ledger.hold(self._id, self._worth(self._ahead), kind=self.kind, model=self.what, step=step):
            self._id = ""
            return False
        self.ledger.keep_free(self._name, self.kind, self._worth(FREE_SECONDS))
        return True

    def end(self) -> None:
        """Pay for the time since the last tick, and no more is due. Idempotent."""
        self._pay()
        self.ledger.keep_free(self._name, self.kind, Decimal(0))

    def _pay(self) -> None:
        if self._id:
            seconds = round(max(0.0, self._clock() - self._since), 3)  # as it is written, so that the sum can be redone
            why = f"{seconds:.3f} s{self._words} at {text(self.rate)} an hour"
            self.ledger.charge(self._id, self._worth(seconds), why=why)
            self._id = ""
