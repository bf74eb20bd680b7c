"""Evidence and reports as lines for a terminal."""

from prill.audit.shown import shown
from prill.audit.verify import Report
from prill.evidence import Claims, Inventory, Protocol, Witnesses
from prill.story import one_line

SOME = 20
"""Entries of a list that are printed."""


def of_inventory(made: Inventory) -> list[str]:
    """Counts, the table, and the lists behind what is odd."""
    counts = made.counts
    lines = [
        f"{counts.paths:,} paths of {one_line(made.source.name)} ({made.source.form}), named as {made.naming}",
        f"{counts.roots:,} roots · {counts.tasks:,} tasks · "
        f"{counts.pairs:,} of {counts.expected_pairs:,} root/cell pairs",
        f"{counts.surplus:,} duplicates in {counts.several:,} pairs · {counts.missing:,} missing · "
        f"{counts.nested:,} nested · {counts.auxiliary:,} auxiliary · {counts.unaccepted:,} not accepted",
        "",
    ]
    width = max([len(name) for name in made.benchmarks], default=0)
    lines.append(" " * width + "".join(f"  {model.title:>16}" for model in made.models))
    for name, row in made.cell_counts.items():
        lines.append(f"{name:<{width}}" + "".join(f"  {count:>16,}" for count in row))
    lines += listed("missing", [f"{one.root}: {one.benchmark} {one.model}" for one in made.missing])
    lines += listed("duplicates (latest)", [f"{one.latest} of {len(one.folders)}" for one in made.several])
    for what, found in (("nested", made.nested), ("auxiliary", made.auxiliary), ("not accepted", made.unaccepted)):
        lines += listed(what, [f"{one.path}: {one.files:,} files; {one.why}" for one in found])
    lines += listed("named like a task, nothing below", list(made.bare))
    return lines + listed("lines that are no path", list(made.faults))


def listed(what: str, entries: list[str]) -> list[str]:
    """A list under its heading, cut; nothing where it is empty."""
    if not entries:
        return []
    more = [f"  … {len(entries) - SOME:,} more (--to FILE writes all)"] if len(entries) > SOME else []
    return ["", f"{what}:", *(f"  {one_line(entry)}" for entry in entries[:SOME]), *more]


def of_protocol(made: Protocol) -> list[str]:
    """Each fact with where it stands."""
    lines = [f"commit {made.commit}"]
    for name, fact in made.facts.items():
        value = fact.why if fact.value is None else shown(fact.value, "list")
        lines.append(f"{name}: {one_line(value)}{' ' + fact.unit if fact.unit and fact.value is not None else ''}")
        where = f"  {fact.path}" + (f" line {', '.join(map(str, fact.lines))}" if fact.lines else "")
        lines.append(where + (f" (blob {fact.blob}, raw SHA-256 {fact.sha256})" if fact.blob else ""))
        for place in fact.places[:SOME] if fact.several else ():
            lines.append(f"    line {place.line}{'' if place.active else ' (comment)'}: {one_line(place.text)[:200]}")
    return lines


def of_witnesses(made: Witnesses) -> list[str]:
    """Each witness with its state, size and digest."""
    lines = []
    for name, one in made.witnesses.items():
        lines.append(f"{name}: {one.state}{f' ({one.why})' if one.why else ''}")
        size = "" if one.bytes is None else f", {one.bytes:,} bytes, SHA-256 {one.sha256}"
        lines.append(f"  {one_line(one.path)}{size}")
        for quote in one.excerpts:
            lines.append(
                f"    record {quote.record} {quote.pointer}: {one_line(quote.text) if quote.found else quote.why}"
            )
    return [*lines, f"{made.present} present · {made.absent} absent · {made.unreadable} unreadable"]


def of_claims(made: Claims) -> list[str]:
    """Each claim with its status, and each part with its verdict."""
    lines = []
    for name, claim in made.claims.items():
        lines += [f"{name}: {claim.status}", f"  {one_line(claim.text)}"]
        for part in claim.parts:
            lines.append(f"    {part.verdict:<9} {one_line(part.text)}{f' ({one_line(part.why)})' if part.why else ''}")
    return lines


def of_report(report: Report) -> list[str]:
    """Each fault by its name, then what was checked."""
    lines = [f"{fault.code} {one_line(fault.where)}: {one_line(fault.why)}" for fault in report.faults]
    checked = " · ".join(f"{count:,} {what}" for what, count in report.counts.items())
    verdict = f"{len(report.faults)} faults" if report.faults else "no fault found"
    return [*lines, *(one_line(note) for note in report.notes), f"{verdict} in {checked}"]
