"""A benchmark's items, from wherever they are: a definition's path, a hub, the web, or a file or folder of one's own.

Whatever the place, rows become items through `rows.py`, and the result is held against the count and the digest that
the definition pins. Files are read line by line within bounds, because they may be anybody's.
"""

import csv
import gzip
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from inspect import isfunction
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from prill import rows
from prill.errors import DefinitionError, InfraError, oneof
from prill.sockets import Item
from prill.spec import Benchmark, Data

LONGEST_LINE = 1 << 28
"""Bytes; the longest rows of LiveCodeBench, whose hidden tests are in them, take a good part of it."""
MOST_ROWS = 1_000_000
LARGEST_FILE = 1 << 30
"""Bytes to take from a web address."""
FORMATS: dict[str, Callable[[rows.Row], Item]] = {
    name: function
    for name, function in vars(rows).items()
    if isfunction(function) and function.__module__ == rows.__name__ and not name.startswith("_")
}
Lines = Iterator[tuple[str, rows.Row]]
"""Rows, each with the place that an error about it names."""

# --- what a benchmark has --------------------------------------------------------------------------------------------


def load(benchmark: Benchmark, data: Path | None = None) -> list[Item]:
    """All items, pinned. `data`: a file of rows or items, or a folder with `NAME.jsonl`, instead of the hub."""
    about = benchmark.data
    label = f"benchmarks/{benchmark.name}"
    file = own_file(data, benchmark.name) if data is not None else None
    lines = rows_of_file(file) if file is not None else rows_of_web(about.url) if about.url else rows_of_hub(about)
    found = list(converted(chosen(lines, about), about.format, label))
    if about.answers is not None and not all(item.answer for item in found):
        beside = own_file(data, f"{benchmark.name}.answers") if data is not None and data.is_dir() else None
        answers = rows_of_file(beside) if beside is not None else rows_of_web(about.answers.url)
        found = joined(found, converted(answers, about.answers.format, label), label)
    return pinned(found, benchmark, str(file or about.url or about.repo))


def examples(benchmark: Benchmark, data: Path | None = None) -> list[Item]:
    """The worked examples that a benchmark shows, in order; none if it shows none.

    `data`: a folder with `NAME.SPLIT.jsonl`, instead of the hub.
    """
    shot = benchmark.few_shot
    if shot is None:
        return []
    file = own_file(data, f"{benchmark.name}.{shot.split}") if data is not None and data.is_dir() else None
    hub = replace(benchmark.data, split=shot.split, where={}, first={})
    lines = list(rows_of_file(file) if file is not None else rows_of_hub(hub))
    if len(lines) != shot.out_of:
        place = file or f"{benchmark.data.repo} {shot.split}"
        raise DefinitionError(
            f"{place}: {len(lines)} rows, but benchmarks/{benchmark.name} takes its examples out of {shot.out_of}"
        )
    wanted = (lines[number] for number in shot.rows)
    return list(converted(wanted, benchmark.data.format, f"benchmarks/{benchmark.name}"))


def own_file(data: Path, name: str) -> Path:
    """The file of that name in a folder of data, or `data` itself where it is a file."""
    if data.is_file():
        return data
    endings = (".jsonl", ".jsonl.gz", ".json", ".csv", ".parquet")
    for candidate in (data / f"{name}{ending}" for ending in endings):
        if candidate.is_file():
            return candidate
    raise DefinitionError(f"{data}: no {name}.jsonl there (nor {', '.join(endings[1:])})")


def read_items(file: Path, benchmark: Benchmark) -> list[Item]:
    """Items out of JSON lines in prill's own form, pinned."""
    label = f"benchmarks/{benchmark.name}"
    return pinned(list(converted(json_lines(file), "items", label)), benchmark, str(file))


def write_items(items: Iterable[Item], file: Path) -> None:
    """Items as JSON lines that `read_items` reads; the file is there whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    with half.open("wb") as out:
        for line in map(item_line, items):
            out.write(line)
    half.replace(file)


# --- held against what is pinned -------------------------------------------------------------------------------------


def item_line(item: Item) -> bytes:
    """An item as one JSON line with sorted keys."""
    row = {**item.fields, "id": item.id, "question": item.question, "answer": item.answer}
    return msgspec.json.encode(row, order="sorted") + b"\n"


def items_digest(items: Iterable[Item]) -> str:
    """`sha256:` over the items as JSON lines with sorted keys, in order."""
    digest = hashlib.sha256()
    for line in map(item_line, items):
        digest.update(line)
    return "sha256:" + digest.hexdigest()


def pinned(items: list[Item], benchmark: Benchmark, place: str) -> list[Item]:
    """The items, if they are as many as pinned, each with an id of its own, and of the pinned digest."""
    twice = [name for name, times in Counter(item.id for item in items).items() if times > 1]
    if twice:
        raise DefinitionError(f"{place}: {len(twice)} ids stand for more than one item, the first is {twice[0]!r}")
    about = benchmark.data
    found = items_digest(items)
    if len(items) != about.count or found != (about.digest or found):
        raise DefinitionError(
            f"{place}: {len(items)} items with digest {found}, but benchmarks/{benchmark.name} "
            f"pins {about.count} with {about.digest or 'any digest'}"
        )
    return items


# --- rows → items ----------------------------------------------------------------------------------------------------


def converted(lines: Iterable[tuple[str, rows.Row]], form: str, label: str) -> Iterator[Item]:
    """Rows as items. A row with id, question and answer is one already, whatever the format."""
    if form not in FORMATS:
        raise DefinitionError(f"{label}: {oneof('format of rows', form, list(FORMATS))}")
    for place, row in lines:
        own = row.keys() >= {"id", "question", "answer"}
        try:
            yield rows.items(row) if own else FORMATS[form](row)
        except KeyError as error:
            raise DefinitionError(f"{place}: not an item of format {form}: no {error}") from None
        except (TypeError, ValueError, msgspec.DecodeError, AttributeError) as error:
            raise DefinitionError(f"{place}: not an item of format {form}: {error}") from None


def chosen(lines: Lines, about: Data) -> Lines:
    """The rows that a benchmark takes of its data set. Rows that are items already have been chosen."""
    taken: Counter[tuple[str, str]] = Counter()
    for place, row in lines:
        if any(str(row[name]) != value for name, value in about.where.items() if name in row):
            continue
        kinds = [(name, str(row[name])) for name in about.first if name in row]
        taken.update(kinds)
        if all(taken[kind] <= about.first[kind[0]] for kind in kinds):
            yield place, row


def joined(items: list[Item], answers: Iterable[Item], label: str) -> list[Item]:
    """Items with the reference answers that bear their ids."""
    given = {answer.id: answer.answer for answer in answers}
    bare = [item.id for item in items if item.id not in given]
    if bare:
        raise DefinitionError(f"{label}: no reference answer for {len(bare)} items, the first is {bare[0]!r}")
    return [Item(id=item.id, question=item.question, answer=given[item.id], fields=item.fields) for item in items]


# --- places ----------------------------------------------------------------------------------------------------------


def rows_of_file(file: Path) -> Lines:
    """Rows of a file, by its ending: JSON lines (also gzipped), CSV or Parquet."""
    if file.suffix == ".csv":
        return csv_rows(file)
    return parquet_rows(file) if file.suffix == ".parquet" else json_lines(file)


def json_lines(file: Path) -> Lines:
    """One JSON object a line; blank lines are passed over."""
    number = 0
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            while line := stream.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE or number > MOST_ROWS:
                    raise DefinitionError(f"{file}:{number}: beyond {LONGEST_LINE} bytes a line or {MOST_ROWS} lines")
                if line.strip():
                    yield f"{file}:{number}", json_object(line, f"{file}:{number}")
    except (OSError, EOFError) as error:
        raise DefinitionError(f"{file}: cannot be read after line {number} ({error})") from None


def json_object(line: bytes, place: str) -> rows.Row:
    """One JSON object."""
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DefinitionError(f"{place}: not an item: {error}") from None
    if not isinstance(row, dict):
        raise DefinitionError(f"{place}: not an item: a JSON {type(row).__name__}, no object")
    return row


def csv_rows(file: Path) -> Lines:
    """Rows of a CSV file with a header."""
    csv.field_size_limit(1 << 24)
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            for number, row in enumerate(csv.DictReader(stream), 1):
                if number > MOST_ROWS:
                    raise DefinitionError(f"{file}: more than {MOST_ROWS} rows")
                yield f"{file}: row {number}", row
    except (UnicodeDecodeError, csv.Error) as error:
        raise DefinitionError(f"{file}: not CSV in UTF-8 ({error})") from None


def parquet_rows(file: Path) -> Lines:
    """Rows of a Parquet file."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InfraError(f"{file}: reading Parquet needs pyarrow; pip install 'prill[train]'") from None
    try:
        for batch in ParquetFile(file).iter_batches(1000):
            for number, row in enumerate(batch.to_pylist(), 1):
                yield f"{file}: row {number} of its batch", row
    except (ArrowException, OSError) as error:
        raise DefinitionError(f"{file}: not Parquet ({error})") from None


def rows_of_hub(about: Data) -> Lines:
    """Rows of a data set of the Hugging Face hub at its revision, through the libraries' own cache. No remote code."""
    place = f"{about.repo}@{about.revision or 'main'}"
    try:
        if about.files:
            from huggingface_hub import hf_hub_download

            for name in about.files:
                fetched = hf_hub_download(str(about.repo), name, repo_type="dataset", revision=about.revision)
                yield from rows_of_file(Path(fetched))
        else:
            from datasets import load_dataset

            table: Any = load_dataset(about.repo, about.config, split=about.split, revision=about.revision)
            for number, row in enumerate(table):
                yield f"{place} row {number}", row
    except ImportError:
        raise InfraError(f"{place}: the hub needs the datasets package; pip install 'prill[train]'") from None
    except (OSError, ValueError, RuntimeError) as error:
        gate = "; accept its terms on the hub and set HF_TOKEN" if about.gated else ""
        first = str(error).strip().split("\n")[0][:300]
        raise InfraError(f"{place}: cannot be had from the hub ({first}){gate}; or give a copy with --data") from None


def rows_of_web(url: str) -> Lines:
    """Rows of a file on the web, fetched once."""
    file = cache() / "web" / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}-{url.rpartition('/')[2]}"
    if not file.exists():
        fetch(url, file)
    return rows_of_file(file)


def fetch(url: str, file: Path) -> None:
    """A web address into a file, which is there whole or not at all."""
    from urllib.request import urlopen

    if not url.startswith("https://"):
        raise DefinitionError(f"{url}: only https addresses are fetched")
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        with urlopen(url, timeout=60) as answer, half.open("wb") as out:
            size = 0
            while piece := answer.read(1 << 20):
                size += len(piece)
                if size > LARGEST_FILE:
                    raise OSError(f"more than {LARGEST_FILE} bytes")
                out.write(piece)
        half.replace(file)
    except OSError as error:
        raise InfraError(f"{url}: cannot be fetched ({error}); or give a copy with --data") from None
    finally:
        half.unlink(missing_ok=True)


def cache() -> Path:
    """Where what was fetched is kept: PRILL_CACHE, or `prill` in the user's cache folder."""
    own = os.environ.get("PRILL_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "prill"
