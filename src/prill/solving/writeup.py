"""What is left on disk when the agent's hours are over → the outcome, and the steps.

By exit codes, measured time and what our own doors and samples saw; what an agent's log says about the provider or the
machine counts only where one of these bears it out, for the agent writes its own log.
"""

import collections
import contextlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from prill.classify import Ending, Facts, classify
from prill.folder import RunFolder
from prill.gateway.ledger import Entry, entries, text
from prill.gateway.prices import amounts
from prill.outside import Purchase
from prill.record import Bought, Event, Outcome, Step
from prill.sockets import Ended
from prill.spec import RunSpec
from prill.trajectory.reading import Parsed
from prill.trajectory.reconcile import purchases, reconcile

TAIL_BYTES = 20_000
LATE_SECONDS = 900.0
"""How near to the end a provider's refusal or a full disk must have been seen to explain it."""
STATUSES = {"api_overloaded": (500, 502, 503, 529), "api_rate_limit": (429,), "api_quota": (402, 403, 429),
            "api_auth": (401, 403)}  # fmt: skip
FULL_BYTES = 256 << 20


def outcome(
    run: RunFolder, spec: RunSpec, event: Event, steps: int, version: str | None, told: Parsed | None
) -> Outcome:
    """How the hours ended, with what that rests on; `told` is what the agent's program said of itself."""
    detail = dict(event.detail)
    isolated, why = bool(detail.pop("isolated")), str(detail.pop("why", "itself"))
    programs, used = int(detail.pop("programs", 1)), float(detail.pop("used_seconds", detail["wall_seconds"]))
    ended = msgspec.convert(detail, Ended)
    limit = spec.budget.hours * 3600
    ledger = entries(run.ledger)[0]
    rows = [row for row in ledger if row.kind == "model"]
    money = spent(rows)
    facts = Facts(
        exit_code=None if ended.timed_out else ended.exit_code,
        elapsed_seconds=limit if why == "time" else min(used, limit - 0.001),
        limit_seconds=limit,
        log_tail=tail(run.stdout) + tail(run.stderr),
        has_model=(run.workspace / "final_model").is_dir(),
        stdout_bytes=run.stdout.stat().st_size if run.stdout.exists() else 0,
        open_background_tasks=told.open_background_tasks if told else 0,
        memory_kills=int(ended.oom_killed),
    )
    evidence: dict[str, Any] = {}
    ending = by_us(run, spec, why, ended, money["refused"])
    if ending is None:
        ending, evidence = borne_out(classify(facts), run, event.at, rows)
    resumed = sum(event.event == "resumed" for event in run.events())
    return Outcome(
        ended="finished" if ending.word == "ok" else ending.word,
        why=ending.why,
        exit_code=ended.exit_code,
        signals=ended.signals,
        wall_seconds=used,
        limit_seconds=limit,
        steps=steps,
        isolated=isolated,
        sandbox=spec.sandbox,
        output_bytes=sum(file.stat().st_size for file in (run.stdout, run.stderr) if file.exists()),
        output_dropped_bytes=ended.dropped_bytes,
        tokens_in=money["tokens_in"],
        tokens_out=money["tokens_out"],
        usd=money["usd"],
        spend_why=money["why"],
        bought=bought(ledger, spec),
        evidence={"program_exit_code": ended.exit_code, "stopped_by": why, **evidence, **cost(run, spec, told)},
        programs=programs,
        resumed=resumed,
        agent_version=version,
    )


def by_us(run: RunFolder, spec: RunSpec, why: str, ended: Ended, refused: bool) -> Ending | None:
    """What we did ourselves, or what only we know; `None` where it is for the rules of `classify` to say."""
    if why == "stopped":
        return Ending("stopped", "whoever runs it stopped it")
    if why == "disk":
        return filled(run, spec)
    if why == "money":
        return Ending("wallet_empty", "the wallet was empty, and what is paid by the hour is paid from it")
    if ended.timed_out:
        ignored = " and ignored TERM until it was killed" if "KILL" in ended.signals else ""
        return Ending("time_limit", f"outlived its {spec.budget.hours * 3600:g} seconds{ignored}")
    if ended.oom_killed:
        return Ending("oom_killed", "the box ran out of memory and the kernel killed a process")
    if refused and ended.exit_code != 0:
        return Ending("wallet_empty", "the gateway refused its last call, for the wallet was empty")
    if ended.exit_code is None:
        return Ending("killed", "a signal that we did not send ended the program")
    return None


def filled(run: RunFolder, spec: RunSpec) -> Ending:
    """Whose files filled the disk: the agent's, if they outgrew what the suite reserves for a run."""
    size = sum(file.lstat().st_size for file in run.workspace.rglob("*") if file.is_file() and not file.is_symlink())
    words = f"the disk was full; the agent's files hold {size / 2**30:.1f} GB"
    own = size >= spec.budget.disk_gb * 2**30
    return Ending("disk_limit" if own else "infra_disk", f"{words} of {spec.budget.disk_gb:g} GB that a run may need")


def borne_out(ending: Ending, run: RunFolder, at: float, rows: list[Entry]) -> tuple[Ending, dict[str, Any]]:
    """A class that would blame the provider or the machine, held against what our own doors and samples saw."""
    if ending.word in STATUSES:
        late = [row.passed.status for row in rows if row.passed and at - row.at < LATE_SECONDS]
        seen = [status for status in late if status in STATUSES[ending.word]]
        if seen:
            return ending, {"provider_status": seen[-1], "provider_refusals": len(seen)}
    elif ending.word == "infra_disk":
        least = min((int(each["disk_free_bytes"]) for each in samples(run.samples)), default=None)
        if least is not None and least < FULL_BYTES:
            return ending, {"disk_free_bytes": least}
    elif not ending.word.startswith("infra_"):
        return ending, {}
    doubt = f"its log says {ending.word} ({ending.why}), which nothing that we saw bears out"
    return Ending("failed", doubt), {"log_says": ending.word}


def spent(rows: list[Entry]) -> dict[str, Any]:
    """Tokens and dollars of the ledger's model calls, as far as they are known; whether the last call was refused."""
    charges = [row for row in rows if row.action == "charge"]
    last = rows[-1] if rows else None  # a call refused for what it is, not for what it costs, would have held nothing
    told: dict[str, Any] = {"refused": last is not None and last.action == "refuse" and Decimal(last.usd) > 0}
    if not charges:
        why = "no model was called through the gateway"
        return told | {"tokens_in": None, "tokens_out": None, "usd": None, "why": why}
    tokens = collections.Counter[str]()
    for row in charges:
        tokens.update(row.tokens)
    guessed = sum(row.flagged for row in charges)
    return told | {
        "tokens_in": sum(count for kind, count in tokens.items() if kind != "output" and "." not in kind),
        "tokens_out": tokens["output"],
        "usd": float(sum(Decimal(row.usd) for row in charges)),
        "why": f"{guessed} of {len(charges)} calls told no usage and were charged their whole hold" if guessed else "",
    }


def bought(ledger: list[Entry], spec: RunSpec) -> dict[Purchase, Bought]:
    """What was paid for each kind of thing that a run may buy, or why it could not."""
    budget, found = spec.budget, dict[Purchase, Bought]()
    not_for_sale: dict[Purchase, str] = {
        "model": "" if spec.provider else "the entrant calls no model",
        "teacher": "" if spec.teacher else "the suite offers no teacher",
        "gpu": "" if budget.gpu_usd_per_hour else "not charged, for the suite has no price for it",
        "storage": "" if budget.storage_usd_per_gb_hour else "not charged, for the suite has no price for it",
    }
    for kind, why in not_for_sale.items():
        paid = [row for row in ledger if row.kind == kind and row.action == "charge"]
        guessed = sum(row.flagged for row in paid)
        words = f"{len(paid)} charges in the ledger" + (f", {guessed} of them not as billed" if guessed else "")
        usd = None if why else text(sum((Decimal(row.usd) for row in paid), Decimal(0)))
        found[kind] = Bought(usd=usd, why=why or words, beside=kind in budget.beside)
    return found


def cost(run: RunFolder, spec: RunSpec, told: Parsed | None) -> dict[str, Any]:
    """What the model cost by the program, by the ledger and by the list of prices, and what lies between them."""
    if told is None or spec.prices is None:
        return {}
    prices = {name: amounts(price.base) for name, price in spec.prices.models.items()}
    rows = [msgspec.to_builtins(row) for row in entries(run.ledger)[0]]
    found = reconcile(told, purchases(rows), prices, spec.entrant.model)
    return {"cost_three_ways": msgspec.to_builtins(found)}


def samples(file: Path) -> list[dict[str, Any]]:
    """Looks at the machine, a line each; a line that a crash cut is left out."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for line in file.read_bytes().splitlines():
            with contextlib.suppress(msgspec.DecodeError):
                found.append(msgspec.json.decode(line))
    return found


def tail(file: Path) -> str:
    """The end of what was printed."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - TAIL_BYTES))
            return opened.read().decode(errors="replace") + "\n"
    except FileNotFoundError:
        return ""


def timed(steps: list[Step], times: Path) -> list[Step]:
    """Steps with the second at which their last byte had arrived."""
    try:
        arrivals = [line.split() for line in times.read_text().splitlines()]
    except FileNotFoundError:
        return steps
    pairs = [(int(offset), float(second)) for offset, second in (pair for pair in arrivals if len(pair) == 2)]
    result, index = [], 0
    for step in steps:
        end = step.offset + step.length
        while index + 1 < len(pairs) and pairs[index + 1][0] < end:
            index += 1
        result.append(replace(step, seconds=pairs[index][1]) if pairs else step)
    return result
