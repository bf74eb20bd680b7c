"""The contamination scanner and its judge: what is found in which file, what cannot be read, what is said about it."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import tarfile
import zipfile
from array import array
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prill.overlap import sources
from prill.overlap.scan import Report
from prill.overlap.search import Searcher
from prill.sockets import Item

FORM = [
    Item(
        id=f"i{n}",
        question=f"Anna has {n} pens. Anna finds {2 * n} pens. How many pens does Anna have now?",
        answer="0",
    )
    for n in range(1, 9)
]
STORY = Item(
    id="story",
    question="A shipwright in Marstal repaired 14 dories before the autumn gales, charging 35 kroner for each hull and "
    "twice as much for a keel. Which sum did he earn if every third dory needed both?",
    answer="He repaired 14 hulls for 35 kroner apiece and then 4 keels for 70 kroner apiece, so altogether 770 kroner.",
)
CHOICE = Item(
    id="choice",
    question="Which mineral did the surveyors of Kiruna expect beneath the frozen marsh west of the narrow railway?",
    answer="B",
    fields={"choices": ["magnetite under quartz veins", "apatite within basalt dykes", "galena beside shale beds",
                        "cassiterite among granite boulders"]},
)  # fmt: skip
ITEMS = [STORY, CHOICE, *FORM]


@pytest.fixture(autouse=True)
def cached(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are kept in a folder of the tests' own."""
    monkeypatch.setenv("PRILL_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def searched(folder: Path, items: list[Item] = ITEMS, **options: Any) -> Report:
    """What the scanner says of a folder."""
    return Searcher({"sums": items}, **options).search([folder])


def kinds(report: Report) -> dict[str, str]:
    """Item → how it was found."""
    return {place.item: place.kind for place in report.places}


def chat(question: str, answer: str = "no") -> str:
    """A chat row."""
    return json.dumps({"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]})


def test_same_words_other_numbers_is_another_item(tmp_path: Path) -> None:
    """Where items differ in numbers only, other numbers are none of them; each itself is found in any wrapping."""
    (tmp_path / "a.jsonl").write_text(chat("Anna has 50 pens. Anna finds 60 pens. How many pens does Anna have now?"))
    assert kinds(searched(tmp_path)) == {}
    (tmp_path / "a.jsonl").write_text("\n".join(chat(item.question.upper()) for item in FORM))
    assert kinds(searched(tmp_path)) == {item.id: "case" for item in FORM}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (STORY.question, "verbatim"),
        (STORY.question.upper().replace(",", " -"), "case"),
        (STORY.question.replace("14", "23").replace("35", "1,250"), "numbers"),
        (STORY.question.replace("repaired", "mended").replace("twice as much", "double that"), "paraphrase"),
        (STORY.answer, "solution-only"),
    ],
)
def test_kinds_of_a_story(tmp_path: Path, text: str, kind: str) -> None:
    """A question as it is, in other letters, with other numbers, reworded, and its solution alone are told apart."""
    (tmp_path / "a.jsonl").write_text(chat(text))
    assert kinds(searched(tmp_path)) == {"story": kind}


def test_choices_in_another_order(tmp_path: Path) -> None:
    """A question with its choices reordered is found as such."""
    choices = CHOICE.fields["choices"]
    mixed = [choices[2], choices[0], choices[3], choices[1]]
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "\n".join([CHOICE.question, *mixed])}))
    assert kinds(searched(tmp_path)) == {"choice": "choices"}


def test_both_spans(tmp_path: Path) -> None:
    """A place names row, field and bytes in the file and characters in the item, and they are what they say."""
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "nothing"}\n' + json.dumps(
        {"id": 7, "pairs": [{"q": "Søren asks: " + STORY.question}]}).encode() + b"\n")  # fmt: skip
    [place] = searched(tmp_path).places
    assert (place.file, place.row, place.field, place.part) == ("a.jsonl", 2, "pairs[0].q", "question")
    cited = (tmp_path / "a.jsonl").read_bytes()[place.offset : place.offset + place.length].decode()
    assert cited.startswith("A shipwright") and cited.endswith("needed both")
    assert STORY.question[place.item_start : place.item_end] == cited == place.item_quote


@pytest.mark.parametrize(
    "row",
    [
        {"text": STORY.question},
        {"prompt": STORY.question, "completion": "x"},
        {"instruction": STORY.question, "input": "", "output": "x"},
        {"conversations": [{"from": "human", "value": STORY.question}]},
        {"deep": {"er": [{"er": [STORY.question]}]}},
        {"text": json.dumps({"inner": json.dumps({"q": STORY.question + "\nnew line"})})},
        {"text": STORY.question.replace(" ", "\n")},
        {"text": STORY.question.replace("a", "á").replace("e", "\u200be")},
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_any_schema(tmp_path: Path, row: dict[str, Any], ascii_only: bool) -> None:
    """An item is found whatever the fields are called, however deep it lies, and however it is escaped."""
    (tmp_path / "a.jsonl").write_text(json.dumps(row, ensure_ascii=ascii_only))
    assert list(kinds(searched(tmp_path))) == ["story"]


def test_split_over_rows(tmp_path: Path) -> None:
    """An item that is cut over three rows is found."""
    words = STORY.question.split()
    parts = [" ".join(words[at : at + 13]) for at in range(0, len(words), 13)]
    filler = "and nothing else of interest is told in the remainder of this particular row of text"
    rows = [json.dumps({"text": f"{filler} {n}. {part} {filler}"}) for n, part in enumerate(parts)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    assert list(kinds(searched(tmp_path))) == ["story"]


def test_a_phrase_is_no_item(tmp_path: Path) -> None:
    """A run of a few words that an item shares with other text is not the item."""
    (tmp_path / "a.jsonl").write_text(
        chat("Every harbor knew that before the autumn gales, charging 35 kroner for each")
    )
    assert kinds(searched(tmp_path)) == {}


def tarred(data: bytes) -> bytes:
    """A tar archive with one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("deep/data.jsonl")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def zipped(data: bytes) -> bytes:
    """A zip archive with a compressed file in it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.jsonl.gz", gzip.compress(data, mtime=0))
    return out.getvalue()


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, bz2.compress, lzma.compress, tarred, zipped, lambda data: data.decode().encode("utf-16"),
     lambda data: data.decode().encode("utf-16-le"), lambda data: b'{"blob": "' + b64encode(data) + b'"}',
     lambda data: b"x = '" + b64encode(gzip.compress(data * 3, mtime=0)) + b"'",
     lambda data: b"\0\xff\x00\x01" * 99 + data],
    ids=["gz", "bz2", "xz", "tar.gz", "zip of gz", "utf-16", "utf-16 bare", "base64", "base64 of gz", "binary"],
)  # fmt: skip
def test_packed_files_are_opened(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """What is compressed, archived, encoded or lies in binary data is found."""
    (tmp_path / "data.x").write_bytes(pack(chat(STORY.question + " " + STORY.answer).encode() + b"\n"))
    report = searched(tmp_path)
    assert (list(report.items["sums"]), report.unread) == (["story"], ())


def test_columns(tmp_path: Path) -> None:
    """Parquet, Arrow and NumPy files are read, nested columns too."""
    pa = pytest.importorskip("pyarrow")
    import numpy as np
    from pyarrow import parquet

    table = pa.table({"rows": [[{"content": STORY.question}], [{"content": "no"}]]})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_stream(tmp_path / "b.arrow", table.schema) as out:
        out.write_table(table)
    np.save(tmp_path / "c.npy", np.array(["no", STORY.question]))
    report = searched(tmp_path)
    assert {(place.file, place.row) for place in report.places} == {("a.parquet", 1), ("b.arrow", 1), ("c.npy", 2)}


def test_token_ids(tmp_path: Path, repo: Path) -> None:
    """Rows of token ids are decoded with the tokenizer of a model folder, and named as unread without one."""
    tokenizers = pytest.importorskip("tokenizers")
    base = repo / "src" / "prill" / "smoke" / "base"
    item = FORM[4]
    made = tokenizers.Tokenizer.from_file(str(base / "tokenizer.json"))
    ids = made.encode(item.question).ids
    assert len(ids) < 64, "short rows alone would not be looked at"
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"input_ids": made.encode(item.question + " " + item.question * 3).ids})
    )
    blind = searched(tmp_path)
    assert (blind.items, len(blind.unread)) == ({}, 1) and "token ids" in blind.unread[0]
    read = searched(tmp_path, tokenizer=base)
    assert (list(read.items["sums"]), read.unread) == (["i5"], ())
    assert read.places[0].inside == "row:token ids"


@pytest.mark.parametrize("kind", ["H", "I"])
def test_raw_token_ids(tmp_path: Path, repo: Path, kind: str) -> None:
    """A `.bin` file of raw token ids is decoded with a tokenizer and named as unread without one; a pickle is text."""
    tokenizers = pytest.importorskip("tokenizers")
    base = repo / "src" / "prill" / "smoke" / "base"
    made = tokenizers.Tokenizer.from_file(str(base / "tokenizer.json"))
    ids = made.encode(" ".join([STORY.question, FORM[4].question, STORY.answer] * 3)).ids
    (tmp_path / "train.bin").write_bytes(array(kind, ids).tobytes())
    (tmp_path / "old.bin").write_bytes(b"\x80\x02" + STORY.question.encode() + bytes(300))
    blind = searched(tmp_path)
    assert list(blind.items["sums"]) == ["story"] and {place.file for place in blind.places} == {"old.bin"}
    assert len(blind.unread) == 1 and blind.unread[0].startswith("train.bin:token ids: ")
    read = searched(tmp_path, tokenizer=base)
    assert {place.item for place in read.places if place.file == "train.bin"} >= {"story", "i5"} and read.unread == ()


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.gz", gzip.compress(hashlib.sha512(b"x").digest() * 2, mtime=0)[:60], "damaged"),
        ("a.parquet", b"PAR1" + b"x" * 40, "damaged"),
        ("a.zip", b"PK\x03\x04" + b"x" * 40, "damaged"),
        ("a.npy", b"\x93NUMPY\x01\x00" + b"x" * 40, "damaged"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c" + b"x" * 40, "7z"),
        ("a.safetensors", (80).to_bytes(8, "little") + b'{"ids": {"dtype": "I64"}}'.ljust(80) + bytes(72), "I64"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    """A damaged or unknown packed file is named with a reason, and what lies beside it is still read."""
    (tmp_path / name).write_bytes(data)
    (tmp_path / "z.jsonl").write_text(chat(STORY.question))
    report = searched(tmp_path)
    assert len(report.unread) == 1 and name in report.unread[0] and why in report.unread[0]
    assert list(report.items["sums"]) == ["story"]


def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that unpacks to far more than its size is given up and named; nesting has an end."""
    monkeypatch.setattr(sources, "most_expanded", lambda packed: 1 << 20)
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(3 << 20)))
    data = b"x"
    for _ in range(sources.DEEPEST + 1):
        data = gzip.compress(data, mtime=0)
    (tmp_path / "b.gz").write_bytes(data)
    first, second = searched(tmp_path).unread
    assert "unpacks to more than" in first and "packed more than" in second


def test_hostile_files(tmp_path: Path) -> None:
    """Links are not followed, pipes not opened; broken lines, bytes that are no text and endless lines are read."""
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00" * 1000)
    (tmp_path / "empty").write_bytes(b"")
    broken = b'{"text": "half a li\n' + b'{"text": "x"}\n' * 3000 + chat(STORY.question).encode() + b'\n{"a": \x00\xff'
    (tmp_path / "broken.jsonl").write_bytes(broken)
    (tmp_path / "long.txt").write_bytes(b"word " * 500_000 + STORY.question.encode() + b" word" * 500_000)
    (tmp_path / "solid.txt").write_bytes(b"a" * 3_000_000)
    report = searched(tmp_path)
    assert {(place.file, place.row) for place in report.places} == {("broken.jsonl", 3002), ("long.txt", 1)}
    assert [why.partition(":")[0] for why in report.passed] == ["folder", "link", "pipe"]
    assert (report.files, report.unread) == (5, ())


def test_allowed_text_does_not_count(tmp_path: Path) -> None:
    """A likeness that stands in an allowed text is none; one that only the data has still is."""
    near = STORY.question.replace("14", "99")
    (tmp_path / "train.jsonl").write_text(json.dumps({"question": near, "answer": "7"}))
    (tmp_path / "data.jsonl").write_text(chat(near))
    assert kinds(searched(tmp_path / "data.jsonl")) == {"story": "numbers"}
    assert kinds(searched(tmp_path / "data.jsonl", allowed=[tmp_path / "train.jsonl"])) == {}
    (tmp_path / "data.jsonl").write_text(chat(STORY.question))
    assert kinds(searched(tmp_path / "data.jsonl", allowed=[tmp_path / "train.jsonl"])) == {"story": "verbatim"}


def test_items_that_cannot_be_looked_for(tmp_path: Path) -> None:
    """An item of a few words is named as unseen, not passed over."""
    (tmp_path / "a.txt").write_text("What is two and two?")
    assert searched(tmp_path, [Item(id="short", question="What is two and two?", answer="4")]).unseen == ("short",)
