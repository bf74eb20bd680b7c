"""A record, a comparison and a loss report as lines for a terminal."""

from collections.abc import Iterable
from typing import Any

from prill.audit.verify import Fault
from prill.records.making import values
from prill.reported import NAMES, Comparability, Place, ResultRecord, Told
from prill.story import one_line

LONGEST = 200


def of_record(record: ResultRecord) -> list[str]:
    """What a record says, field by field, with where it is from; and what it does not."""
    given = values(record)
    title = given["title"].value if "title" in given else "a result"
    lines = [f"{one_line(title)}", f"{record.id} · version {record.version} · made {record.made}"]
    if record.supersedes:
        lines.append(f"takes the place of version {record.supersedes.version} ({record.supersedes.sha256[:12]}…)")
    if record.retracted:
        lines.append(f"RETRACTED {record.retracted.date}: {one_line(record.retracted.why)}")
    lines.append("")
    width = max(map(len, NAMES)) + 2
    for name in NAMES:
        if name in given:
            lines += [f"{name:<{width}}{text(given[name].value)}", f"{'':<{width}}{origin(given[name])}"]
    lines += ["", "not reported:"]
    lines += [f"{name:<{width}}{short(why)}" for name, why in record.not_reported.items()]
    lines += ["", "sources:"]
    for name, source in record.sources.items():
        where = " · ".join(filter(None, (source.file, source.url, source.retrieved, source.sha256)))
        lines.append(f"  {one_line(name)}: {short(source.title)}{f' ({short(where)})' if where else ''}")
    return lines


def origin(told: Told[Any]) -> str:
    """Where a value is from, in a line."""
    if isinstance(told.source, Place):
        return f"← {'' if told.source.how == 'same' else told.source.how + ' of '}{short(told.source.at)}"
    return f"← {one_line(told.source.source)}: “{short(told.source.text)}”"


def text(value: Any) -> str:
    """A value on one line."""
    return short("; ".join(map(str, value)) if isinstance(value, tuple) else str(value))


def short(words: str) -> str:
    """Text on one line, cut."""
    line = one_line(words)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def of_faults(faults: Iterable[Fault]) -> list[str]:
    """Faults, one a line."""
    return [f"{fault.code:<12} {one_line(fault.where)}: {one_line(fault.why)}" for fault in faults]


def of_comparison(found: Comparability) -> list[str]:
    """A verdict, the rule that decided, and the fields."""
    decided = f" (rule {found.rule} of {found.rules})" if found.rule else f" (by all rules of {found.rules})"
    lines = [f"{found.verdict}{decided}", f"  {found.why}"]
    for one in found.differences:
        lines.append(f"  {one.field} [{one.rule}: {one.verdict}] {one.why}")
        lines.append(f"    A: {'not reported' if one.a is None else text(one.a)}")
        lines.append(f"    B: {'not reported' if one.b is None else text(one.b)}")
    if found.besides:
        lines.append(f"  also different, decides nothing: {', '.join(found.besides)}")
    return lines
