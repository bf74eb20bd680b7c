"""What a record must keep beyond its schema: nothing silently absent, sums, counts, dates, quotes, pointers, digests.

Every fault has a code, a field or source, and a sentence; all are found, not only the first.

    SILENT TWICE UNKNOWN     a field has a value or a reason, never neither, never both
    SUM RANGE PAIR DATE      numbers that contradict each other, or cannot be
    NOT_IN_QUOTE HASH        a value that its quote does not say; words with another digest
    NO_SOURCE UNDATED        a source that is not listed; a page without the day on which it was read
    MISSING CHANGED MOVED DANGLING WRONG      sources that lie beside it
    VERSION                  versions and retractions that do not fit together

Not covered: whether a page that is only quoted said so, which nobody can see offline.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from prill.audit.derive import same
from prill.audit.making import plain
from prill.audit.pointers import Budget, Unsound, digest_of, read_json, resolve, text_digest
from prill.audit.verify import Fault
from prill.errors import DefinitionError
from prill.records.making import RECORD, taken, values
from prill.records.reading import Kept, beside, digest, read
from prill.reported import NAMES, Place, Quote, ResultRecord, Source, Told

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SMALL = {word: number for number, word in enumerate(WORDS)}
FIGURE = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""A number in words; a minus may also be a dash before it."""
ID = re.compile(r"[a-z0-9][a-z0-9._-]{2,79}", re.ASCII)
MOST_WORK = 5_000_000
"""Values looked at in one check."""
CELLS = ("cells_measured", "cells_base", "cells_zero", "cells_held", "cells_lost", "cells_missing")
COUNTS = (
    *CELLS, "cells", "task_count", "run_count", "attempts_per_task", "dispersion_n", "gpus", "token_budget",
    "dispersion", "wall_clock_hours", "monetary_budget", "monetary_cost",
)  # fmt: skip
TOGETHER = (("dispersion", "dispersion_kind"), ("interval_low", "interval_high"), ("interval_high", "interval_low"))
LARGEST_VALUE = {"percent": 100.0, "share": 1.0}


def check(kept: Kept) -> list[Fault]:
    """Everything that is wrong with a record and the sources beside it."""
    files, documents, found = beside(kept)
    return [*found, *contradictions(kept.record), *sources(kept.record, files, documents)]


def within(bundle: Path) -> list[Fault]:
    """What is wrong with the record of a bundle, where there is one; what cannot be read is told by `verify`."""
    try:
        return check(read(bundle)) if (bundle / RECORD).is_file() else []
    except DefinitionError:
        return []


def faults_of(record: ResultRecord, files: Mapping[str, bytes]) -> list[Fault]:
    """The same of a record whose sources are at hand as bytes."""
    documents = {path: read_json(data) for path, data in files.items() if path.endswith(".json")}
    return [*contradictions(record), *sources(record, files, documents)]


def contradictions(record: ResultRecord) -> list[Fault]:
    """What is wrong with a record whatever its sources say."""
    return [fault for rule in RULES for fault in rule(record)]


def complete(record: ResultRecord) -> Iterator[Fault]:
    """Every field has a value or a reason."""
    for name in NAMES:
        given, reason = getattr(record.fields, name) is not None, record.not_reported.get(name)
        if given and reason is not None:
            yield Fault("TWICE", name, "has a value and is listed as not reported")
        elif not given and not (reason or "").strip():
            yield Fault("SILENT", name, "has neither a value nor a reason why there is none")
    for name in record.not_reported:
        if name not in NAMES:
            yield Fault("UNKNOWN", name[:80], "listed as not reported, but no field of a record")


def sums(record: ResultRecord) -> Iterator[Fault]:
    """Cells add up, and pairs of fields come together."""
    known = {name: told.value for name, told in values(record).items()}
    parts = [known[name] for name in CELLS if name in known]
    if "cells" in known and len(parts) == len(CELLS) and sum(parts) != known["cells"]:
        yield Fault("SUM", "cells", f"is {known['cells']}, but its parts add up to {sum(parts)}")
    if {"cells", "task_count", "run_count"} <= known.keys():
        product = known["task_count"] * known["run_count"]
        if product != known["cells"]:
            yield Fault("SUM", "cells", f"is {known['cells']}, but task_count × run_count is {product}")
    for one, other in TOGETHER:
        if one in known and other not in known:
            yield Fault("PAIR", one, f"is given without {other}")
    if len(known.get("tests", ())) != len(set(known.get("tests", ()))):
        yield Fault("SUM", "tests", "names a test twice")


def ranges(record: ResultRecord) -> Iterator[Fault]:
    """Numbers that can be."""
    known = {name: told.value for name, told in values(record).items()}
    for name in COUNTS:
        if isinstance(known.get(name), int | float) and known[name] < 0:
            yield Fault("RANGE", name, f"is {known[name]}, below zero")
    most = LARGEST_VALUE.get(known.get("unit", ""))
    if "value" in known and most is not None and not 0 <= known["value"] <= most:
        yield Fault("RANGE", "value", f"is {known['value']}, but as {known['unit']} it lies in 0..{most:g}")
    if known.get("interval_low", 0) > known.get("interval_high", float("inf")):
        yield Fault("RANGE", "interval_low", "lies above interval_high")
    if known.get("kind") == "numeric" and "value" not in known and not record.not_reported.get("value", "").strip():
        yield Fault("SILENT", "value", "a numeric result without a value says why")


def dates(record: ResultRecord) -> Iterator[Fault]:
    """Days are days."""
    told = [(name, getattr(record.fields, name)) for name in ("date", "published")]
    given = [(name, found.value) for name, found in told if found is not None]
    given += [("made", record.made)] + ([("retracted", record.retracted.date)] if record.retracted else [])
    given += [(f"sources/{name}"[:80], one.retrieved) for name, one in record.sources.items() if one.retrieved]
    for name, text in given:
        try:
            if date.fromisoformat(text).isoformat() != text:
                raise ValueError
        except ValueError:
            yield Fault("DATE", name, f"{text[:40]!r} is not a day (YYYY-MM-DD)")


def versions(record: ResultRecord) -> Iterator[Fault]:
    """Id, version, and what is said of earlier ones."""
    if not ID.fullmatch(record.id):
        yield Fault("VERSION", "id", f"{record.id[:80]!r}: small letters, digits and . _ -, three to eighty")
    if record.version < 1 or (record.version > 1) != (record.supersedes is not None):
        yield Fault("VERSION", "version", "the first is 1 and supersedes nothing; each later one names the one before")
    if record.supersedes is not None and not 0 < record.supersedes.version < record.version:
        yield Fault("VERSION", "supersedes", "a version takes the place of an earlier one")
    if record.retracted is not None and not record.retracted.why.strip():
        yield Fault("VERSION", "retracted", "without the reason")


def quotes(record: ResultRecord) -> Iterator[Fault]:
    """Values rest on listed sources; what is quoted says them."""
    for name, told in values(record).items():
        listed = record.sources.get(told.source.source)
        if listed is None:
            yield Fault("NO_SOURCE", name, f"rests on {told.source.source[:80]!r}, which is not listed")
        elif isinstance(told.source, Quote):
            yield from quoted(name, told, told.source, listed)


def quoted(name: str, told: Told[Any], quote: Quote, listed: Source) -> Iterator[Fault]:
    """One quote."""
    if text_digest(quote.text) != quote.sha256:
        yield Fault("HASH", name, "the quote has another digest than it says")
    if quote.start is None and not (listed.url and listed.retrieved):
        yield Fault("UNDATED", name, "quotes a source that is not kept: it needs the url and the day it was read")
    for entry in told.value if isinstance(told.value, tuple) else (told.value,):
        if not said(entry, quote.text):
            yield Fault("NOT_IN_QUOTE", name, f"{str(entry)[:80]!r} is not in the words {quote.text[:120]!r}")


def said(value: Any, text: str) -> bool:
    """Whether words say a value: a number as figures or as a small number's word, text as it stands."""
    if isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        figures = {float(found.replace(",", "").replace("−", "-")) for found in FIGURE.findall(text)}
        return (
            value in figures
            or -value in figures
            or any(SMALL.get(word) == value for word in re.findall("[a-z]+", text.lower()))
        )
    return " ".join(str(value).split()).casefold() in " ".join(text.split()).casefold()


def sources(record: ResultRecord, files: Mapping[str, bytes], documents: Mapping[str, Any]) -> Iterator[Fault]:
    """What lies beside a record is what it says, and gives the values that it says."""
    for name, source in record.sources.items():
        if source.file is None or source.file not in files:
            continue
        if source.sha256 != (found := own_digest(source.file, files, documents)):
            yield Fault("CHANGED", f"sources/{name}"[:80], f"{source.file} has digest {found}, not {source.sha256}")
    budget = Budget(MOST_WORK)
    for name, told in values(record).items():
        listed = record.sources.get(told.source.source)
        try:
            if isinstance(told.source, Place):
                yield from pointed(name, told, told.source, listed, documents, budget)
            elif told.source.start is not None and listed is not None and listed.file in documents:
                start, text = told.source.start, resolve(documents, f"{listed.file}#/text")
                if not isinstance(text, str) or text[start : start + len(told.source.text)] != told.source.text:
                    yield Fault("MOVED", name, f"{listed.file} has other words at {start}")
        except Unsound as error:
            yield Fault(error.code, name, str(error))


def own_digest(file: str, files: Mapping[str, bytes], documents: Mapping[str, Any]) -> str:
    """The digest of a source's bytes: of the file, or of the text that it holds."""
    held = documents.get(file)
    if isinstance(held, dict) and held.get("schema") == "prill/text/1" and isinstance(held.get("text"), str):
        return text_digest(held["text"])
    return digest(files[file])


def pointed(
    name: str, told: Told[Any], place: Place, listed: Source | None, documents: Mapping[str, Any], budget: Budget
) -> Iterator[Fault]:
    """One place."""
    if listed is None or place.at.partition("#")[0] != listed.file:
        yield Fault("NO_SOURCE", name, f"{place.at[:200]} is not in the file of its source")
        return
    if listed.file not in documents:
        return  # told already: the file is missing or cannot be read
    found = resolve(documents, place.at)
    budget.weigh(found)
    if digest_of(found) != place.sha256:
        yield Fault("MOVED", name, f"{place.at} leads to something else than it did")
    made = taken(documents, place.at, place.how, place.where, place.by, budget)
    if not same(plain(told.value), made):
        yield Fault("WRONG", name, f"is {str(told.value)[:80]}, but {place.how} of {place.at} is {str(made)[:80]}")


RULES: tuple[Callable[[ResultRecord], Iterator[Fault]], ...] = (complete, sums, ranges, dates, versions, quotes)
