"""Money: what calls of a model cost, and whether the next one may still be made. Rules Y of RULES.md.

All in decimals, so that 0.1 and 0.2 are 0.3. What is not known is `None`: never nothing, and never free (Y3).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

Style = Literal["anthropic", "openai"]
Amount = Decimal | float | str | None
_MILLION = Decimal(1_000_000)


@dataclass(frozen=True)
class Cost:
    """Dollars, or `None` and why they are not known."""

    usd: Decimal | None
    alert: str = ""


UNKNOWN = Cost(None, "USAGE_UNKNOWN")


def money(amount: Amount) -> Decimal | None:
    """An amount as a finite decimal; floats count as they are written."""
    try:
        value = None if amount is None or isinstance(amount, bool) else Decimal(str(amount))
    except InvalidOperation:
        return None
    return value if value is not None and value.is_finite() else None


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    """The first of several names under which a whole number of tokens stands; a name may lead into a part (`a.b`)."""
    for name in names:
        found: Any = usage
        for step in name.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return None


# --- one call (Y1 to Y3) ------------------------------------------------------------------------------------------


def _anthropic(usage: Mapping[str, Any]) -> dict[str, int] | Cost:
    """Tokens by price: all kinds of input are separate, and what the breakdown of cache writes leaves out is written
    for five minutes (Y1)."""
    five = _count(usage, "cache_creation.ephemeral_5m_input_tokens") or 0
    hour = _count(usage, "cache_creation.ephemeral_1h_input_tokens") or 0
    total = _count(usage, "cache_creation_input_tokens")
    if total is not None and five + hour > total:
        return Cost(None, "USAGE_INCONSISTENT")
    plain, output = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    if plain is None or output is None:
        return UNKNOWN
    return {
        "input": plain,
        "cache_write_5m": (five + hour if total is None else total) - hour,
        "cache_write_1h": hour,
        "cache_read": _count(usage, "cache_read_input_tokens") or 0,
        "output": output,
    }


def _openai(usage: Mapping[str, Any]) -> dict[str, int] | Cost:
    """Tokens by price: cached ones are part of the input, reasoning is part of the output (Y2)."""
    whole, output = _count(usage, "input_tokens", "prompt_tokens"), _count(usage, "output_tokens", "completion_tokens")
    if whole is None or output is None:
        return UNKNOWN
    cached = _count(
        usage,
        *("cached_input_tokens", "cached_tokens", "input_tokens_details.cached_tokens"),
        *("prompt_tokens_details.cached_tokens", "input_token_details.cached_tokens"),
    )
    thought = _count(
        usage,
        *("reasoning_output_tokens", "reasoning_tokens", "output_tokens_details.reasoning_tokens"),
        "completion_tokens_details.reasoning_tokens",
    )
    if (cached or 0) > whole or (thought or 0) > output:
        return Cost(None, "USAGE_INCONSISTENT")
    return {"input": whole - (cached or 0), "cache_read": cached or 0, "output": output}


_READERS = {"anthropic": _anthropic, "openai": _openai}
_ELSE_FULL = {"cache_read": "input"}
"""Where there is no price for the one, the other's is due: cached is never free (Y2)."""


def cost(usage: Mapping[str, Any] | None, price: Mapping[str, Amount], style: Style) -> Cost:
    """What one call cost, from its tokens at dollars per million (Y1, Y2).

    A cost that the provider states counts where it is more than nothing; a 0 is no authority (Y3).
    """
    if usage is None:
        return UNKNOWN
    tokens = _READERS[style](usage)
    if isinstance(tokens, Cost):
        return tokens
    if any(count < 0 for count in tokens.values()):
        return Cost(None, "USAGE_INCONSISTENT")
    stated = money(usage.get("cost"))
    if stated is not None and stated > 0:
        return Cost(stated)
    total = Decimal(0)
    for kind, count in tokens.items():
        each = money(price.get(kind, price.get(_ELSE_FULL.get(kind, kind))))
        if count and each is None:
            return Cost(None, "PRICE_UNKNOWN")
        total += count * (each or Decimal(0)) / _MILLION
    return Cost(total)


def added(costs: Iterable[Cost]) -> Cost:
    """Several costs together: unknown if there are none, or if one of them is."""
    found = list(costs)
    known = [each.usd for each in found if each.usd is not None]
    if not found or len(known) < len(found):
        return next((each for each in found if each.usd is None), UNKNOWN)
    return Cost(sum(known, Decimal(0)))


# --- many messages (Y3, Y4) ---------------------------------------------------------------------------------------


def last_per_message(events: Iterable[tuple[str | None, Mapping[str, Any] | None]]) -> list[Mapping[str, Any] | None]:
    """The usage of each message: the last that is given for its id; messages without an id are separate (Y4)."""
    found: dict[str | int, Mapping[str, Any] | None] = {}
    for number, (name, usage) in enumerate(events):
        key = number if name is None else name
        found[key] = usage if usage is not None else found.get(key)
    return list(found.values())


def last_chunk(chunks: Iterable[Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    """The usage of a streamed reply: that of the last chunk that has one (Y3)."""
    found = None
    for usage in chunks:
        found = usage if usage is not None else found
    return found


def sessions(totals: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Running totals by session: the last of each; a total that drops began a new session (Y4, policy)."""
    ends: list[Mapping[str, Any]] = []
    for usage in totals:
        if ends and not any(_drops(usage, ends[-1], name) for name in usage):
            ends.pop()
        ends.append(usage)
    return ends


def _drops(now: Mapping[str, Any], before: Mapping[str, Any], name: str) -> bool:
    one, other = _count(now, name), _count(before, name)
    return one is not None and other is not None and one < other


# --- the gate (Y5) ------------------------------------------------------------------------------------------------


def allows(limit: Amount, spent: Amount, reserve: Amount) -> bool:
    """Whether a call may be made: what is spent and what it may cost stay within the limit; what is unknown may not."""
    most, so_far, next_one = money(limit), money(spent), money(reserve)
    if most is None or so_far is None or next_one is None or so_far < 0 or next_one < 0:
        return False
    return so_far + next_one <= most


@dataclass(frozen=True)
class Wallet:
    """A limit, what was charged, and what is held for calls under way. Each change makes a new wallet, so whoever
    swaps the old for the new in one step reserves atomically."""

    limit: Decimal
    spent: Decimal = Decimal(0)
    held: Mapping[str, Decimal] = field(default_factory=dict)

    @property
    def taken(self) -> Decimal:
        """Spent or held."""
        return self.spent + sum(self.held.values(), Decimal(0))

    def hold(self, call: str, most: Amount) -> "Wallet | None":
        """With the most that a call may cost set aside; `None` where that is refused."""
        amount = money(most)
        if amount is None or call in self.held or not allows(self.limit, self.taken, amount):
            return None
        return replace(self, held={**self.held, call: amount})

    def charge(self, call: str, paid: Cost) -> "Wallet":
        """With a call paid and the rest of its hold given back; where the cost is unknown the whole hold stays (Y3)."""
        if paid.usd is None:
            return self
        return replace(
            self, spent=self.spent + paid.usd, held={key: self.held[key] for key in self.held if key != call}
        )
