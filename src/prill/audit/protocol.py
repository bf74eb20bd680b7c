"""Facts out of a pinned commit: where a pattern stands in a file, in code or in a comment, and what it says there.

A pattern is put to each line, in the region that the fact names if it names one. Every place is kept; only active ones
make the value. Several active places with different values are reported as several, and then there is no single value,
unless the reading is meant for many (`present`, `list`, `count`). What is not there is a finding: value `None` and why.
"""

import hashlib
import re
from typing import Any

from msgspec.structs import replace

from prill.audit.derive import Derivation, Observation
from prill.audit.gitobjects import Commit
from prill.audit.pointers import join
from prill.audit.quoting import LONGEST, SourceText
from prill.errors import DefinitionError
from prill.evidence import Blob, Found, Place, Protocol
from prill.questions import Fact, FactSet

MOST_PLACES = 1_000
MANY = ("present", "list", "count", "folders")


def protocol(commit: Commit, facts: FactSet, facts_sha256: str) -> Protocol:
    """All facts of a set, in its order."""
    twice = [fact.id for fact in facts.facts if [f.id for f in facts.facts].count(fact.id) > 1]
    if twice:
        raise DefinitionError(f"facts/{facts.name}: the id {twice[0]!r} stands twice; make ids different")
    files: dict[str, Blob] = {}
    sources: dict[tuple[str, str | None], SourceText] = {}
    found: dict[str, Found] = {}
    for fact in facts.facts:
        if fact.read == "folders":
            found[fact.id] = folders(commit, fact)
            continue
        there = commit.file(fact.path)
        if there is None:
            found[fact.id] = finding(fact, None, (), f"no regular file {fact.path} in the commit")
            continue
        oid, data = there
        files[fact.path] = Blob(path=fact.path, blob=oid, sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
        key = fact.path, fact.comment
        if key not in sources:
            sources[key] = SourceText(fact.path, data, fact.comment)
        found[fact.id] = read(fact, sources[key], files[fact.path])
    return Protocol(
        facts_of=facts.name,
        facts_sha256=facts_sha256,
        commit=commit.commit,
        tree=commit.tree,
        files=files,
        facts=found,
    )


def compiled(fact: Fact, pattern: str) -> re.Pattern[str]:
    """A fact's regular expression, or an error that names it."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise DefinitionError(f"fact {fact.id}: {pattern!r} is not a regular expression: {error}") from None


def region(fact: Fact, source: SourceText) -> list[int] | None:
    """Numbers of the lines that a fact looks at; none where its region does not begin anywhere."""
    if fact.within is None:
        return list(range(1, len(source.lines) + 1))
    start, stop = compiled(fact, fact.within.start), compiled(fact, fact.within.stop)
    inside, numbers, begun = False, [], False
    for number, line in enumerate(source.lines, 1):
        active = line[: min(LONGEST, source.active_until(number))]
        if inside and stop.search(active):
            inside = False
        if inside:
            numbers.append(number)
        elif start.search(active):
            inside = begun = True
    return numbers if begun else None


def read(fact: Fact, source: SourceText, blob: Blob) -> Found:
    """One fact out of one file."""
    pattern = compiled(fact, fact.pattern)
    places: list[Place] = []
    numbers = region(fact, source)
    if numbers is None:
        return finding(fact, blob, (), f"no active line begins the region ({fact.within and fact.within.start})")
    for number in numbers:
        line, until = source.lines[number - 1][:LONGEST], source.active_until(number)
        for match in pattern.finditer(line):
            if len(places) >= MOST_PLACES:
                return finding(
                    fact, blob, tuple(places), f"more than {MOST_PLACES} places match; make the pattern narrower"
                )
            places.append(place(fact, source, number, match, active=match.start() < until))
            if fact.read in ("present", "count", "expression"):
                break  # these speak of lines, not of matches
    return finding(fact, blob, tuple(places), "")


def place(fact: Fact, source: SourceText, number: int, match: re.Match[str], *, active: bool) -> Place:
    """One match with the statement around it."""
    whole = source.statement(number)
    group = 1 if match.re.groups else 0
    said = match[group] if match[group] is not None else match[0]
    if fact.read == "expression":
        before = len("\n".join([*source.lines[whole.first - 1 : number - 1], ""]))
        behind = len(source.lines[whole.last - 1]) - source.active_until(whole.last) if active else 0
        said = whole.text[before + match.start(group) : len(whole.text) - behind].strip()
    return Place(
        line=number, end_line=max(whole.last, number), active=active, value=valued(fact.read, said), text=whole.text
    )


def valued(reading: str, said: str) -> Any:
    """A matched text as the value that it is read as; a number that is none stays `None`."""
    text = said.strip()
    if reading == "integer":
        return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) else None
    if reading == "number":
        return (
            float(text)
            if re.fullmatch(r"[+-]?(\d{1,18}(\.\d{0,18})?|\.\d{1,18})(e[+-]?\d{1,2})?", text, re.ASCII)
            else None
        )
    return said


def finding(fact: Fact, blob: Blob | None, places: tuple[Place, ...], why: str) -> Found:
    """A fact's value from its places, and why there is none where there is none."""
    active = [one for one in places if one.active]
    values = list(dict.fromkeys(repr(one.value) for one in active))
    several = fact.read not in MANY and len(values) > 1
    value: Any = None
    if fact.read == "count" and blob and not why:
        value = len(active)
    elif fact.read == "present" and blob and not why:
        value = bool(active)
    elif fact.read == "list" and blob and not why:
        value = [one.value for one in active]
    elif several:
        why = why or f"{len(active)} places with {len(values)} different values; see places"
    elif active and not why:
        value = active[0].value
        why = "" if value is not None else f"what stands there is not read as {fact.read}"
    elif not why:
        why = "only in comments" if places else "the pattern matches nothing in this file"
    return Found(
        title=fact.title,
        read=fact.read,
        pattern=fact.pattern,
        unit=fact.unit,
        value=value,
        why=why,
        path=fact.path,
        blob=blob.blob if blob else None,
        sha256=blob.sha256 if blob else None,
        count=len(value) if isinstance(value, list) else None,
        lines=tuple(dict.fromkeys(one.line for one in active)),
        places=places,
        several=several,
    )


def folders(commit: Commit, fact: Fact) -> Found:
    """The folders of a folder whose names match, as the value."""
    inside = commit.folder(fact.path)
    pattern = compiled(fact, fact.pattern)
    names = [entry.name for entry in inside or () if entry.folder and pattern.fullmatch(entry.name)]
    made = finding(fact, None, (), "" if inside is not None else f"no folder {fact.path} in the commit")
    return made if inside is None else replace(made, value=names, count=len(names), why="")


def derivations(made: Protocol, file: str, source: str) -> tuple[list[Derivation], list[Observation]]:
    """Counts follow from places; all else was read from the commit."""
    counted = []
    for name, found in made.facts.items():
        fact = join(file, "facts", name)
        if found.read == "count" and found.value is not None:
            derived = Derivation(value=f"{fact}/value", how="count", of=(f"{fact}/places",), where={"active": True})
            counted.append(derived)
        if found.count is not None:
            counted.append(Derivation(value=f"{fact}/count", how="length", of=(f"{fact}/value",)))
    return counted, [Observation(under=f"{file}#", source=source)]
