"""The n-gram scanner and its judge: what is found, what is not, and what is said about it."""

import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from prill import plugins
from prill.items import items_digest
from prill.overlap.ngrams import Index, ngrams, scan
from prill.record import Finding
from prill.sockets import Evidence, Item
from samples import BENCHMARK, SPEC, run

ITEMS = [
    Item(
        id=f"i{n}",
        question=f"Anna has {n} pens. Anna finds {2 * n} pens. How many pens does Anna have now?",
        answer="0",
    )
    for n in range(1, 9)
]


def judged(folder: Path) -> Finding:
    """The judge's finding on a run folder with that workspace."""
    (folder / "raw").mkdir(exist_ok=True)
    (folder / "workspace").mkdir(exist_ok=True)
    rows = [{"id": item.id, "question": item.question, "answer": item.answer} for item in ITEMS]
    (folder / "items.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    benchmark = replace(BENCHMARK, data=replace(BENCHMARK.data, count=len(ITEMS), digest=items_digest(ITEMS)))
    evidence = Evidence(
        run=run(spec=replace(SPEC, benchmarks=(benchmark,))),
        folder=folder,
        items={"sums": folder / "items.jsonl"},
        base=folder,
        siblings={},
    )
    [finding] = plugins.get("judges", "overlap")(evidence)
    return finding


def test_ngrams() -> None:
    """Words are alphanumeric runs in lower case, line ends of JSON text are blanks, short texts are one run."""
    assert list(ngrams("One, TWO\\nthree four-five six")) == [
        ("one", "two", "three", "four", "five"),
        ("two", "three", "four", "five", "six"),
    ]
    assert list(ngrams("Hi!")) == [("hi",)]
    assert list(ngrams(" ?! ")) == []


def test_same_words_other_numbers_is_another_item() -> None:
    """A question with other numbers is not the test item; the item itself is found in any wrapping."""
    index = Index(ITEMS)
    assert index.search("Anna has 50 pens. Anna finds 60 pens. How many pens does Anna have now?") == []
    wrapped = f'{{"messages": [{{"role": "user", "content": "{ITEMS[2].question.upper()}"}}]}}'
    assert [name for name, _ in index.search(wrapped)] == ["i3"]


@pytest.mark.parametrize(("kept", "verdict"), [(0, "kept"), (3, "kept"), (4, "broken"), (8, "broken")])
def test_tolerance(tmp_path: Path, kept: int, verdict: str) -> None:
    """Up to three items are tolerated, more break the rule, and each citation is the cited bytes."""
    (tmp_path / "workspace").mkdir()
    data = "\n".join(["noise", *(item.question for item in ITEMS[:kept])])
    (tmp_path / "workspace" / "d.jsonl").write_text(data)
    finding = judged(tmp_path)
    assert (finding.verdict, finding.numbers["items_found"]) == (verdict, kept)
    for cited, item in zip(finding.citations, ITEMS, strict=False):
        offset, length = cited.offset or 0, cited.length or 0
        assert (tmp_path / cited.file).read_bytes()[offset : offset + length].decode().strip() == item.question


def test_looking_is_allowed(tmp_path: Path) -> None:
    """Items that the agent only printed are counted apart and break nothing."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "stdout").write_text("\n".join(item.question for item in ITEMS))
    finding = judged(tmp_path)
    assert (finding.verdict, finding.numbers["items_only_printed"]) == ("kept", 8)


def test_unread_is_unknown(tmp_path: Path) -> None:
    """A file that the scanner cannot open makes the verdict unknown and is named."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "data.parquet").write_bytes(b"PAR1")
    finding = judged(tmp_path)
    assert finding.verdict == "unknown"
    assert "data.parquet" in finding.why


def test_hostile_files(tmp_path: Path) -> None:
    """Links, pipes, bytes that are no text and lines without end are scanned or passed over without harm."""
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00" * 1000)
    (tmp_path / "long.txt").write_bytes(b"word " * 500_000)
    report = scan(tmp_path, Index(ITEMS))
    assert (report.files, report.hits) == (2, ())
    assert report.documents >= 3
