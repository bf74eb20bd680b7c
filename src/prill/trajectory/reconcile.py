"""Usage and cost told three ways: by the program itself, by the gateway's ledger, by the price table; and what differs.

The ledger is the truth about money. What a program tells of itself is a lower bound: OpenCode's call that names the
session is in none of its steps, Gemini CLI makes calls that its statistics leave out, a killed program tells nothing.
Unknown is `None` with a reason, never zero.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from prill.trajectory.reading import Parsed
from prill.wallet import Amount, Cost, added, cost, money

KINDS = ("input", "cache_read", "cache_write", "output")
"""Disjoint kinds of tokens; thoughts are part of the output."""
_CACHED_IS_INPUT = ("codex", "gemini_cli")
_THOUGHTS_BESIDE = ("opencode", "gemini_cli")
_NAMES = {
    "input": ("input", "input_tokens"),
    "cache_read": ("cache_read", "cached"),
    "cache_write": ("cache_write",),
    "output": ("output", "output_tokens"),
}


class Told(Struct, frozen=True, kw_only=True):
    """One source's figures."""

    tokens: dict[str, int | None]
    """By the kinds of `KINDS`."""
    usd: Decimal | None
    calls: int | None
    why: str
    """Where it comes from, or why it is unknown."""


class Reconciled(Struct, frozen=True, kw_only=True):
    """Three sources side by side, and what is left between them."""

    program: Told
    ledger: Told
    table: Told
    """The ledger's tokens at the table's prices; the program's where there is no ledger."""
    tokens_apart: dict[str, int | None]
    """Ledger less program, by kind: what the program did not tell."""
    usd_apart: Decimal | None
    """Ledger less program."""
    table_apart: Decimal | None
    """Ledger less table."""
    notes: tuple[str, ...]


def reconcile(
    told: Parsed,
    ledger: Iterable[Mapping[str, Any]] | None,
    prices: Mapping[str, Mapping[str, Amount]],
    model: str | None = None,
) -> Reconciled:
    """The three ways of one run.

    `ledger`: entries with `model`, tokens by kind (as `KINDS`, disjoint), `usd` and `call`; `None` where there was no
    gateway. `prices`: model → dollars per million tokens by kind. `model`: whose price the program's tokens have.
    """
    program = _program(told)
    entries = None if ledger is None else list(ledger)
    booked = _ledger(entries)
    model = model or told.model
    if entries is not None:
        bought = [(each.get("model"), {**_hour(each), **_tokens(each)}) for each in entries]
        table = _priced(bought, prices, booked, "the ledger's tokens")
    else:
        table = _priced([(model, program.tokens)], prices, program, "the program's own tokens")
    return Reconciled(
        program=program,
        ledger=booked,
        table=table,
        tokens_apart={kind: _less(booked.tokens[kind], program.tokens[kind]) for kind in KINDS},
        usd_apart=None if booked.usd is None or program.usd is None else booked.usd - program.usd,
        table_apart=None if booked.usd is None or table.usd is None else booked.usd - table.usd,
        notes=tuple(_notes(told, entries, program, booked, table)),
    )


def purchases(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was paid for the agent's own model calls, out of the lines of a ledger as `reconcile` takes them.

    A purchase is held, then charged; the model stands with the hold, tokens with the charge, where kinds of which there
    were none are left out.
    """
    models: dict[Any, Any] = {}
    paid = []
    for line in lines:
        models.setdefault(line.get("id"), line.get("model"))
        if line.get("action") == "charge" and line.get("kind") == "model":
            tokens = line.get("tokens")
            known = {**dict.fromkeys(KINDS, 0), **tokens} if isinstance(tokens, Mapping) and tokens else {}
            if "cache_write_5m" in known or "cache_write_1h" in known:
                del known["cache_write"]
            model = line.get("model") or models[line.get("id")]
            paid.append({"call": line.get("id"), "model": model, "tokens": known, "usd": line.get("usd")})
    return paid


def disjoint(agent: str | None, usage: Mapping[str, int | None] | None) -> dict[str, int | None]:
    """A program's own count as disjoint kinds, thoughts in the output. A count that cannot be is unknown."""
    usage = usage or {}
    plain, read, wrote = usage.get("input"), usage.get("cache_read"), usage.get("cache_write")
    output, thought = usage.get("output"), usage.get("reasoning")
    if plain is not None and agent in _CACHED_IS_INPUT:
        plain -= (read or 0) + (wrote or 0)
    if output is not None and agent in _THOUGHTS_BESIDE:
        output += thought or 0
    plain = None if plain is not None and plain < 0 else plain
    return {"input": plain, "cache_read": read, "cache_write": wrote, "output": output}


def _program(told: Parsed) -> Told:
    usd = None if told.cost_usd is None else money(told.cost_usd)
    return Told(
        tokens=disjoint(told.agent, told.usage),
        usd=usd,
        calls=None,
        why=f"tokens: {told.usage_why}; cost: {told.cost_why}",
    )


def _tokens(entry: Mapping[str, Any]) -> dict[str, int | None]:
    inside = entry.get("tokens")
    source = inside if isinstance(inside, Mapping) else entry
    found: dict[str, int | None] = {}
    for kind, names in _NAMES.items():
        values = [source.get(name) for name in names]
        values += [source.get(name) for name in source if str(name).startswith(f"{kind}_") and kind == "cache_write"]
        numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool) and value >= 0]
        found[kind] = sum(numbers) if numbers else None
    return found


def _hour(entry: Mapping[str, Any]) -> dict[str, int | None]:
    """Tokens that were written to a cache for an hour, which have a price of their own."""
    inside = entry.get("tokens")
    number = inside.get("cache_write_1h") if isinstance(inside, Mapping) else None
    return {"cache_write_1h": number} if isinstance(number, int) and not isinstance(number, bool) else {}


def _ledger(entries: list[Mapping[str, Any]] | None) -> Told:
    if entries is None:
        return Told(tokens=dict.fromkeys(KINDS), usd=None, calls=None, why="no gateway stood before this run")
    tokens = [_tokens(entry) for entry in entries]
    paid = [money(entry.get("usd")) for entry in entries]
    unknown = sum(usd is None for usd in paid)
    calls = len({str(entry["call"]) if entry.get("call") is not None else f"#{n}" for n, entry in enumerate(entries)})
    return Told(
        tokens={kind: _sum([each[kind] for each in tokens]) for kind in KINDS},
        usd=None if unknown else sum((usd for usd in paid if usd is not None), Decimal(0)),
        calls=calls,
        why=f"{unknown} entries have no price" if unknown else "the sum of the ledger",
    )


def _sum(numbers: list[int | None]) -> int | None:
    """The sum of what is known; unknown where none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known or not numbers else None


def _less(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other


def _priced(
    calls: list[tuple[Any, dict[str, int | None]]], prices: Mapping[str, Mapping[str, Amount]], of: Told, what: str
) -> Told:
    """Tokens at the table's prices; a model without a price makes the whole unknown."""
    costs = []
    for model, tokens in calls:
        price = prices.get(model) if isinstance(model, str) else None
        if price is None:
            why = f"the price table has no price for {model!r}"
            return Told(tokens=of.tokens, usd=None, calls=of.calls, why=why)
        costs.append(_cost(tokens, price))
    total = added(costs) if calls else Cost(Decimal(0))
    why = f"{what} at the table's prices" if total.usd is not None else f"{what}: {total.alert}"
    return Told(tokens=of.tokens, usd=total.usd, calls=of.calls, why=why)


def _cost(tokens: Mapping[str, int | None], price: Mapping[str, Amount]) -> Cost:
    if tokens["input"] is None or tokens["output"] is None:
        return Cost(None, "USAGE_UNKNOWN")
    usage = {
        "input_tokens": tokens["input"],
        "output_tokens": tokens["output"],
        "cache_read_input_tokens": tokens["cache_read"] or 0,
        "cache_creation_input_tokens": tokens["cache_write"] or 0,
        "cache_creation": {"ephemeral_1h_input_tokens": tokens.get("cache_write_1h") or 0},
    }
    return cost(usage, price, "anthropic")


def _notes(
    told: Parsed, entries: list[Mapping[str, Any]] | None, program: Told, booked: Told, table: Told
) -> Iterable[str]:
    if entries is not None and told.agent == "opencode":
        yield "the call that names the session is in none of the program's steps"
    others = {str(entry.get("model")) for entry in entries or () if entry.get("model")} - {told.model}
    if told.model and others:
        yield f"models beside {told.model}: {', '.join(sorted(others))}"
    if booked.usd is not None and program.usd is not None and booked.usd < program.usd:
        yield "the program tells more than the ledger holds: calls went another way, or prices differ"
    if booked.usd is not None and table.usd is not None and booked.usd != table.usd:
        yield "the ledger is not what its tokens cost by this table"
    if told.status in ("incomplete", "error"):
        yield f"the output is {told.status}: the program may have told less than it used"
