"""`prill overlap`: do these files hold test items? For whoever makes training data, and whoever doubts it."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from prill.arguments import command
from prill.errors import DefinitionError

if TYPE_CHECKING:
    from prill.overlap.scan import Place, Report
    from prill.sockets import Item

CLEAN, FOUND, UNREAD = 0, 1, 3
WORST = 5
HEARTBEAT_SECONDS = 2.0
LEVELS = ("strict", "normal", "sensitive", "very-sensitive")
MORE = """DATA are files or folders: JSON lines, JSON, CSV, text, code, Parquet, Arrow, NumPy, gzip, xz, bzip2, zstd,
zip and tar of them, in any schema; rows of token ids with --tokenizer. Found is an item that stands there word for
word, with other case, punctuation, numbers, order of choices or some other words, or only its worked solution.

  prill overlap train.jsonl --against gsm8k            items of prill's benchmarks
  prill overlap data/ --items my-test.jsonl --json     items of yours; a JSON line for each place
  prill overlap data/ --against gsm8k --allowed train-split.jsonl

Exit codes: 0 no item found, all read · 1 items found · 2 the command is wrong · 3 none found, but something could not
be read, so that nothing follows.

--decon-compatible does what PostTrainBench's public checker does, and prints what it prints; it is there to compare.
Its numbers cannot be held against prill's own: it reads one text field of a row and needs question and answer."""


def add(commands: Any) -> None:
    """The command and its options."""
    made = command(commands, "overlap", "Say whether training data holds test items, and where", MORE)
    made.add_argument("data", nargs="+", type=Path, metavar="DATA", help="files or folders")
    made.add_argument("--against", default="", metavar="NAME,…", help="benchmarks whose items are looked for")
    made.add_argument(
        "--items", type=Path, metavar="FILE", help="items as JSON lines or a JSON array: question, answer"
    )
    made.add_argument("--level", choices=LEVELS, default="normal", help="how little is enough (default: normal)")
    may = "text that may be used, such as a train split: what also stands there does not count"
    made.add_argument("--allowed", type=Path, action="append", default=[], metavar="FILE", help=may)
    made.add_argument("--tokenizer", type=Path, metavar="DIR", help="a model folder, to decode rows of token ids")
    made.add_argument("--workers", type=int, default=0, metavar="N", help="threads (default: 2, or 1 of 1 core)")
    made.add_argument("--json", action="store_true", help="a JSON line for each place instead of words")
    made.add_argument("--decon-compatible", action="store_true", help="do as the public checker does, to compare")
    made.add_argument("--vocabulary", type=Path, metavar="FILE", help="cl100k_base.tiktoken, for --decon-compatible")
    made.add_argument("--text-field", default="text", metavar="NAME", help="for --decon-compatible (default: text)")
    made.set_defaults(do=overlap)


def overlap(chosen: argparse.Namespace) -> int:
    """`prill overlap`."""
    if bool(chosen.against) == (chosen.items is not None):
        raise DefinitionError("give either --against NAME,… or --items FILE: what is looked for")
    for place in chosen.data:
        if not place.exists():
            raise DefinitionError(f"{place}: there is no such file or folder")
    if chosen.decon_compatible:
        return decon(chosen)
    from prill.overlap.search import Searcher

    items = wanted(chosen)
    say = heartbeat()
    say("", 0)
    searcher = Searcher(
        items, level=chosen.level, tokenizer=chosen.tokenizer, allowed=chosen.allowed, workers=chosen.workers, say=say
    )
    report = searcher.search(chosen.data)
    if chosen.json:
        for place in report.places:
            print(msgspec.json.encode(place).decode())
    else:
        print("\n".join(words_of(report, {name: len(each) for name, each in items.items()})))
    for why in report.unread:
        print(f"not read: {why}", file=sys.stderr)
    return FOUND if report.places else UNREAD if report.unread else CLEAN


def wanted(chosen: argparse.Namespace) -> "dict[str, list[Item]]":
    """The items of the benchmarks named, or of the file."""
    if chosen.items is not None:
        return {chosen.items.stem: items_of(chosen.items)}
    from prill.catalog import Catalog

    catalog = Catalog(chosen.definitions)
    names = [name.strip() for name in chosen.against.split(",") if name.strip()]
    return {name: catalog.items(catalog.benchmark(name)) for name in names}


def items_of(file: Path) -> "list[Item]":
    """Items of a file of the user's: objects with `question` (or `prompt`, `problem`, `text`), the rest as it comes."""
    from prill.sockets import Item

    items = []
    for number, row in enumerate(rows_of(file), 1):
        question = next((row[name] for name in QUESTIONS if isinstance(row.get(name), str)), None)
        if question is None:
            raise DefinitionError(f"{file}: item {number} has no text named {', '.join(QUESTIONS)}")
        answer = row.get("answer", "")
        items.append(Item(
            id=str(row.get("id", number)), question=question,
            answer=answer if isinstance(answer, str) else msgspec.json.encode(answer).decode(),
            fields={name: value for name, value in row.items() if name not in ("id", "question", "answer")},
        ))  # fmt: skip
    if not items:
        raise DefinitionError(f"{file}: no items in it")
    return items


QUESTIONS = ("question", "prompt", "problem", "text", "input", "instruction")


def rows_of(file: Path) -> Iterator[dict[str, Any]]:
    """Objects of a JSON array or of JSON lines."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise DefinitionError(f"{file}: cannot be read ({error.strerror})") from None
    texts = [data] if data.lstrip()[:1] == b"[" else [line for line in data.splitlines() if line.strip()]
    for number, text in enumerate(texts, 1):
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise DefinitionError(f"{file}: line {number} is not JSON ({error})") from None
        for row in value if isinstance(value, list) else [value]:
            if not isinstance(row, dict):
                raise DefinitionError(f"{file}: an item is a JSON object with a question; line {number} has another")
            yield row


def heartbeat() -> Callable[[str, int], None]:
    """Says what is being scanned, every two seconds, on standard error."""
    began = spoke = time.monotonic()
    total = 0

    def say(name: str, size: int) -> None:
        nonlocal spoke, total
        total += size
        now = time.monotonic()
        if now - spoke >= HEARTBEAT_SECONDS:
            spoke = now
            print(f"… {total / 1e6:,.0f} MB in {now - began:.0f} s, at {name}", file=sys.stderr, flush=True)

    return say


def words_of(report: "Report", totals: dict[str, int]) -> list[str]:
    """A report for a person."""
    kinds: dict[str, int] = {}
    for place in report.places:
        kinds[place.kind] = kinds.get(place.kind, 0) + 1
    scanned = f"{report.rows:,} rows of {report.files:,} files, {report.bytes / 1e6:,.1f} MB"
    lines = []
    for name, total in totals.items():
        found = report.items.get(name, {})
        lines.append(f"{name}: {len(found)} of {total} test items found, in {sum(found.values())} places")
    if kinds:
        lines.append(
            "how: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda k: -k[1]))
        )
    for place in worst(report.places):
        inside = f" in {place.inside}" if place.inside else ""
        field = f" {place.field}" if place.field else ""
        where = f"{place.file}{inside}, row {place.row}{field}, byte {place.offset}"
        lines += [
            "",
            f"{where}: {place.item}, {place.kind} ({place.share:.0%})",
            f"    data: {shown(place.quote)}",
            f"    test: {shown(place.item_quote)}",
        ]
    lines += ["", f"scanned {scanned}"]
    if report.unseen:
        lines.append(f"{len(report.unseen)} items are too short, or too much like others, to be looked for")
    if report.not_looked_at:
        lines.append(f"{report.not_looked_at} more flagged places were counted, not looked at")
    if report.passed:
        lines.append(f"passed over: {len(report.passed)}, the first: {report.passed[0]}")
    if report.unread:
        lines.append(f"NOT READ: {len(report.unread)}; what is in there nobody knows")
    return lines


def worst(places: "tuple[Place, ...]") -> "list[Place]":
    """A few places, each of another item, the plainest first."""
    first: dict[str, Place] = {}
    for place in sorted(places, key=lambda place: (place.kind != "verbatim", -place.share, -place.length)):
        first.setdefault(place.item, place)
    return list(first.values())[:WORST]


def shown(text: str) -> str:
    """A quote on one line, harmless to a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)[:160]


def decon(chosen: argparse.Namespace) -> int:
    """The public checker's method."""
    from prill.overlap.decon import Checker, records, summary, vocabulary

    if chosen.items is not None:
        reference = list(rows_of(chosen.items))
    else:
        reference = [
            {"question": item.question, "answer": item.answer} for items in wanted(chosen).values() for item in items
        ]
    if len(chosen.data) != 1 or not chosen.data[0].is_file():
        raise DefinitionError("--decon-compatible takes one file of JSON lines, as the public checker does")
    checker = Checker(reference, vocabulary(chosen.vocabulary))
    documents = matches = flagged = 0
    for source, found in records(checker, chosen.data[0], chosen.text_field):
        documents += 1
        if found:
            flagged, matches = flagged + 1, matches + len(found)
            print(msgspec.json.encode({"source": source, **summary(found)}).decode())
    print(
        f"{documents} documents scanned, {flagged} contaminated, {matches} matches (as the public checker counts)",
        file=sys.stderr,
    )
    return FOUND if flagged else CLEAN
