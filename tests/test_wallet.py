"""Money: what is priced, what stays unknown, and when the gate stays shut."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prill.wallet import Cost, Wallet, added, allows, cost, last_chunk, last_per_message, sessions

CLAUDE = {"input": 3.0, "cache_read": 0.3, "cache_write_5m": 3.75, "cache_write_1h": 6.0, "output": 15.0}
GPT = {"input": 2.0, "cache_read": 0.5, "output": 8.0}


@pytest.mark.parametrize(
    ("usage", "style", "usd", "alert"),
    [
        ({"input_tokens": 1, "output_tokens": 0}, "anthropic", "0.000003", ""),
        (
            {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}},
            "openai",
            "0.000016",
            "",
        ),
        ({"input_tokens": 10, "output_tokens": 1, "reasoning_output_tokens": 2}, "openai", None, "USAGE_INCONSISTENT"),
        ({"input_tokens": 10, "output_tokens": 1, "cost": 0}, "openai", "0.000028", ""),
        ({"input_tokens": 10, "output_tokens": 1, "cost": 0.5}, "openai", "0.5", ""),
        ({"output_tokens": 1}, "openai", None, "USAGE_UNKNOWN"),
        (None, "openai", None, "USAGE_UNKNOWN"),
    ],
)
def test_one_call_is_priced_or_unknown(usage: Any, style: Any, usd: str | None, alert: str) -> None:
    """Each kind of token has its price, a stated cost of nothing is no authority, and what is missing is not free."""
    found = cost(usage, CLAUDE if style == "anthropic" else GPT, style)
    assert (found.usd, found.alert) == (None if usd is None else Decimal(usd), alert)


def test_a_price_that_is_not_known_makes_the_cost_unknown() -> None:
    """Only cached tokens have another price to fall back on."""
    assert cost({"input_tokens": 4, "output_tokens": 1}, {"input": 2.0}, "openai").alert == "PRICE_UNKNOWN"


def test_the_last_word_of_each_message_counts() -> None:
    """Per id the last usage that is there, without an id each, and in a stream that of the last chunk."""
    one, two = {"output_tokens": 2}, {"output_tokens": 85}
    assert last_per_message([("m", one), (None, one), ("m", two), ("m", None), (None, one)]) == [two, one, one]
    assert last_chunk([None, one, two, None]) == two and last_chunk([]) is None


def test_a_running_total_that_drops_began_anew() -> None:
    """Of each session the last total counts."""
    totals = [{"input_tokens": count} for count in (5, 9, 9, 2, 7)]
    assert sessions(totals) == [{"input_tokens": 9}, {"input_tokens": 7}] and sessions([]) == []


def test_one_unknown_makes_the_sum_unknown() -> None:
    """A sum is known only if all of it is, and nothing at all is not zero."""
    assert added([Cost(Decimal(1)), Cost(None, "x")]) == Cost(None, "x")
    assert added([]).usd is None and added([Cost(Decimal("0.1")), Cost(Decimal("0.2"))]).usd == Decimal("0.3")


@pytest.mark.parametrize(
    ("limit", "spent", "reserve", "open_"),
    [
        (0.3, 0.1, 0.2, True),
        (50, 43.18, 6.83, False),
        (50, None, 0.01, False),
        (50, 1, None, False),
        (50, 1, -1, False),
    ],
)
def test_the_gate_opens_only_for_what_is_known_to_fit(limit: Any, spent: Any, reserve: Any, open_: bool) -> None:
    """Equal to the limit is allowed; unknown and negative amounts are not."""
    assert allows(limit, spent, reserve) is open_


def test_not_a_number_never_opens_the_gate() -> None:
    """Infinity and NaN are unknown amounts."""
    assert not any(allows(50, odd, 1) or allows(odd, 1, 1) for odd in (float("nan"), float("inf"), "x"))


@given(st.lists(st.tuples(st.integers(0, 9), st.decimals(0, 3, places=2), st.sampled_from(["hold", "pay", "lose"]))))
def test_a_wallet_never_takes_more_than_its_limit(steps: list[tuple[int, Decimal, str]]) -> None:
    """Whatever is held, paid within its hold or lost track of, spent and held stay within the limit."""
    wallet = Wallet(Decimal(5))
    for name, amount, step in steps:
        if step == "hold":
            wallet = wallet.hold(str(name), amount) or wallet
        else:
            paid = Cost(min(amount, wallet.held.get(str(name), Decimal(0)))) if step == "pay" else Cost(None)
            wallet = wallet.charge(str(name), paid)
        assert wallet.taken <= wallet.limit
