"""What a call may cost at most, and what it did cost, by a list of prices. Pure.

The most is a true upper bound for text: a token of a byte-level vocabulary stands for at least one byte, JSON never
writes a text in fewer bytes than it has, and every role mark costs fewer tokens than its JSON has bytes. Pictures
count `IMAGE_TOKENS` each; where a body points to more than it holds, the model's whole context counts. *Not covered*:
what the provider's own tools bring into the prompt is estimated (`TOOL_TOKENS` for a use), and a reply may grow beyond
the limit that it was given. Then a call costs more than was held: it is charged in truth, and flagged.
"""

from collections.abc import Iterator, Mapping
from decimal import ROUND_FLOOR, Decimal

from prill.gateway.wire import FRAME_TOKENS, IMAGE_TOKENS, TOOL_TOKENS, Asked, Refused, Seen
from prill.outside import Price, Prices, Tier
from prill.wallet import Cost, cost, money

LEAST_OUTPUT = 1_024
"""Tokens below which a reply's limit is not lowered: a shorter reply would be paid for and be of no use."""
MILLION = Decimal(1_000_000)


def amounts(tier: Tier) -> dict[str, str]:
    """Dollars per million tokens of each kind; what has no price of its own has that of plain input."""
    plain = tier.input
    return {
        "input": plain,
        "output": tier.output,
        "cache_read": tier.cache_read or plain,
        "cache_write_5m": tier.cache_write_5m or plain,
        "cache_write_1h": tier.cache_write_1h or plain,
    }


def tier(price: Price, prompt_tokens: int) -> Tier:
    """The prices of a call with so many tokens of prompt: those of the highest threshold that it is above."""
    above = [(int(threshold), each) for threshold, each in price.above.items() if prompt_tokens > int(threshold)]
    return max(above, key=lambda pair: pair[0])[1] if above else price.base


def tiers(price: Price, prompt_tokens: int) -> Iterator[Tier]:
    """All that a call with at most so many tokens of prompt may be priced by."""
    yield price.base
    yield from (each for threshold, each in price.above.items() if prompt_tokens > int(threshold))


def prompt_bound(price: Price, asked: Asked, body_bytes: int) -> int:
    """The most tokens that a request's prompt can have. Refused where nothing bounds it."""
    context = price.context_tokens
    if not asked.bounded:
        if context is None:
            raise Refused(403, f"{asked.model}: the list tells no context, so nothing bounds what this request reads")
        return context
    most = body_bytes - asked.image_bytes + asked.images * IMAGE_TOKENS + FRAME_TOKENS
    most += sum(asked.tools.values()) * TOOL_TOKENS
    return most if context is None else min(most, context)


def output_bound(price: Price, asked: Asked) -> int:
    """The most tokens that one reply can have."""
    most = price.max_output_tokens
    return most if asked.most_output is None else min(asked.most_output, most)


def fees(price: Price, uses: Mapping[str, int]) -> Decimal | None:
    """What so many uses of the provider's own tools cost; `None` where one has no price."""
    total = Decimal(0)
    for tool, times in uses.items():
        each = money(price.tools.get(tool))
        if each is None:
            return None
        total += each * times
    return total


def without_output(price: Price, asked: Asked, body_bytes: int, writes: tuple[str, ...]) -> Decimal:
    """The most that a request costs before its reply begins. `writes`: kinds of cache writing that may happen."""
    tool_fees = fees(price, asked.tools)
    if tool_fees is None:
        unpriced = ", ".join(sorted(set(asked.tools) - set(price.tools)))
        raise Refused(403, f"{asked.model}: the provider's own tools without a price may not be used: {unpriced}")
    bound = prompt_bound(price, asked, body_bytes)
    each = max(Decimal(amounts(one)[kind]) for one in tiers(price, bound) for kind in ("input", *writes))
    return bound * each / MILLION + tool_fees


def dearest_output(price: Price, asked: Asked, body_bytes: int) -> Decimal:
    """The most that one token of output of this request costs."""
    bound = prompt_bound(price, asked, body_bytes)
    return max(Decimal(one.output) for one in tiers(price, bound)) / MILLION


def fitting(room: Decimal, before: Decimal, each: Decimal, replies: int, most: int) -> int | None:
    """The highest limit of output that the room pays for, at most `most`; `None` where it is too low to be of use."""
    if room < before:
        return None
    affordable = most if not each else int(((room - before) / (each * replies)).to_integral_value(ROUND_FLOOR))
    found = min(most, affordable)
    return found if found >= min(most, LEAST_OUTPUT) else None


def paid(price: Price, seen: Seen) -> Cost:
    """What a call cost, from its usage; unknown where the provider has not told its last word."""
    if seen.tokens is None or not seen.final:
        return Cost(None, "the provider told no usage" if seen.tokens is None else "the reply was cut")
    stated = money(seen.stated)
    if stated is not None and stated > 0:
        return Cost(stated)
    kinds = seen.tokens
    prompt = sum(number for kind, number in kinds.items() if kind != "output")
    by_hour = {"ephemeral_1h_input_tokens": kinds["cache_write_1h"]}
    usage = {
        "input_tokens": kinds["input"],
        "output_tokens": kinds["output"],
        "cache_read_input_tokens": kinds["cache_read"],
        "cache_creation_input_tokens": kinds["cache_write_5m"] + kinds["cache_write_1h"],
        "cache_creation": by_hour,
    }
    found, tool_fees = cost(usage, amounts(tier(price, prompt)), "anthropic"), fees(price, seen.tools)
    if found.usd is None or tool_fees is None:
        return Cost(None, found.alert or "a tool without a price was used")
    return Cost(found.usd + tool_fees)


def faults(listed: Prices) -> list[str]:
    """What is wrong with a list of prices, a sentence each: nothing may be reckoned by such a list."""
    found = []
    for name, price in listed.models.items():
        amounts_of = {f"above.{threshold}": each for threshold, each in price.above.items()} | {"base": price.base}
        texts = {f"{place}.{kind}": text for place, each in amounts_of.items() for kind, text in amounts(each).items()}
        texts |= {f"tools.{tool}": text for tool, text in price.tools.items()}
        wrong = [place for place, text in texts.items() if (usd := money(text)) is None or usd < 0]
        wrong += [f"above.{threshold}" for threshold in price.above if not threshold.isdecimal()]
        wrong += ["max_output_tokens"] if price.max_output_tokens < 1 else []
        wrong += ["context_tokens"] if price.context_tokens is not None and price.context_tokens < 1 else []
        found += [f"prices/{listed.name}: {name}: {place} is no amount" for place in sorted(set(wrong))]
    return found


def cache_writes(wire: str, body: bytes) -> tuple[str, ...]:
    """The kinds of cache writing that a request may cause; a body with escapes may hide its words, so then all."""
    hidden = b"\\u" in body
    if wire == "anthropic":
        long = ("cache_write_1h",) if hidden or b'"1h"' in body else ()
        return ("cache_write_5m", *long) if hidden or b'"cache_control"' in body else ()
    if wire == "gemini":
        return ()
    long = ("cache_write_1h",) if hidden or b'"12h"' in body or b'"24h"' in body else ()
    return ("cache_write_5m", *long)
