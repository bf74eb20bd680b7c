"""The compiled scanner says what the plain one says; an index is kept; the public checker's results are had again.

The public checker's vectors lie beside the checkout (`../shared/data`); elsewhere those tests are skipped by name.
"""

import json
import random
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from prill import cli
from prill.overlap import store
from prill.overlap.decon import Checker, records, summary, vocabulary
from prill.overlap.engine import Engine, Fast
from prill.overlap.index import LEVELS, Index, built, pieces, units_of
from prill.overlap.scalar import MOST_WORDS, Found, Scalar
from prill.overlap.scan import chunks
from prill.overlap.search import Searcher
from prill.overlap.sources import BLOCK
from prill.overlap.words import fives, folded, gram, masked, words
from prill.sockets import Item

GOLDEN = Path(__file__).parents[2] / "shared" / "data" / "contamination_golden"
VOCABULARY = Path(__file__).with_name("golden") / "cl100k_part.tiktoken"
LEXICON = [f"{a}{b}" for a in ("ba", "ce", "di", "fo", "gu", "ha", "ke") for b in ("rn", "lt", "mp", "ng", "sk", "th")]


def made(count: int) -> list[Item]:
    """Items of few words, so that their grams meet often."""
    rng = random.Random(5)
    return [
        Item(
            id=f"m{n}",
            question=" ".join(rng.choice([*LEXICON, "7", "12"]) for _ in range(rng.randrange(8, 40))),
            answer="",
        )
        for n in range(count)
    ]


@lru_cache(1)
def index() -> Index:
    """An index of such items."""
    units, bare = units_of("m", made(60))
    return built(units, bare)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Engine, Engine]:
    """The compiled scanner and the plain one."""
    pytest.importorskip("numba")
    fast = Fast(index(), LEVELS["normal"], tmp_path_factory.mktemp("compiled"))
    return fast, Scalar(index(), LEVELS["normal"])


def plain(found: Found) -> list[Any]:
    """What was found, in plain values."""
    return [list(each) if hasattr(each, "__len__") else each for each in found]


def told(engine: Engine, data: list[bytes]) -> list[Any]:
    """Everything that an engine says of a stream of chunks."""
    score, base, said = engine.score(), 0, []
    for chunk in data:
        found = engine.find(chunk)
        said += [plain(found), score.add(base, found)]
        base += len(found.lines)
    return said


PIECES = st.one_of(
    st.sampled_from([item.question for item in made(60)]),
    st.sampled_from(
        [*LEXICON, "7", "12", "\\", "\\\\n", "\\u00e9", "\\ud835\\udc00", "é", "日", "\U00020001", " ", "\n", "x" * 60]
    ),
    st.text(max_size=8),
).map(lambda text: text.encode(errors="replace"))
BYTES = st.lists(st.one_of(PIECES, st.binary(max_size=4)), max_size=40)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(BYTES, min_size=1, max_size=3), st.sampled_from([b"", b" ", b"\n"]))
@example([[item.question.encode() for item in made(60)]], b"\n")
@example([[b"word " * (3 * MOST_WORDS)]], b"")
@example([[b"\xf0\x9f", b"\\ud835", b"\\ud835\\u0041", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\\"]], b"")
def test_both_forms_say_the_same(engines: tuple[Engine, Engine], parts: list[list[bytes]], between: bytes) -> None:
    """For any bytes the compiled scanner finds the same grams in the same segments, and flags the same entries."""
    data = [between.join(each) for each in parts]
    fast, scalar = engines
    assert told(fast, data) == told(scalar, data)


def test_items_are_flagged_by_both(engines: tuple[Engine, Engine]) -> None:
    """The comparison above is not one of silence: every item that can be found is flagged, and all text is read."""
    rows = b"\n".join(json.dumps({"text": item.question}).encode() for item in made(60))
    for engine in engines:
        [_, events] = told(engine, [rows])
        assert {entry for _, entry in events} == set(range(len(index().entries))) and len(index().entries) > 40


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.text(max_size=40).map(lambda text: text.encode(errors="replace"))))
def test_words_stand_where_they_say(data: bytes) -> None:
    """Words come in order, lie within the bytes, and folding what is folded changes nothing."""
    found = words(data)
    assert all(0 <= word.start < word.end <= len(data) for word in found)
    assert all(before.start <= after.start and before.end <= after.end for before, after in pairwise(found))
    again = folded(folded(data)[0])[0]
    assert again.split() == folded(data)[0].split()


def test_words_of_all_wrappings() -> None:
    """A text has the same words bare, as JSON, and as JSON inside JSON; numbers are alike and a run of them is one."""
    text = "Näive “ﬁancé”: 1,234 \\frac{3}{4}\n日本 x2"
    once = json.dumps(text)
    for wrapped in (text, once, json.dumps(once), json.dumps(text, ensure_ascii=False)):
        assert [word.text.decode() for word in words(wrapped.encode())] == [
            "naive", "fiance", "1", "234", "rac", "3", "4", "日", "本", "x2",
        ]  # fmt: skip
    found = words(text.encode())
    assert [found[place].text for place in masked([word.hash for word in found])] == [
        b"naive",
        b"fiance",
        b"1",
        b"rac",
        b"3",
        "日".encode(),
        "本".encode(),
        b"x2",
    ]
    assert len({gram(five) for five in fives(list(range(9)))}) == 5


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=90), max_size=6))
def test_chunks_lose_nothing(blocks: list[bytes]) -> None:
    """Chunks together are the stream, and each but the last ends with a line where it has one."""
    blocks = [block * (BLOCK // 60) for block in blocks]
    cut = list(chunks(blocks))
    assert b"".join(cut) == b"".join(blocks)
    assert all(len(chunk) < 3 * BLOCK and (b"\n" not in chunk or chunk.endswith(b"\n")) for chunk in cut[:-1])


def test_threads_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread, several, and the plain form give the same report on several megabytes."""
    pytest.importorskip("numba")
    monkeypatch.setenv("PRILL_CACHE", str(tmp_path / "cache"))
    rng = random.Random(1)
    items = made(60)
    with (tmp_path / "data.jsonl").open("w") as out:
        for number in range(9000):
            text = " ".join(rng.choices(LEXICON, k=rng.randrange(20, 80)))
            planted = rng.choice(items).question if number % 97 == 0 else ""
            out.write(json.dumps({"text": f"{text} {planted}"}) + "\n")
    one, four, slow = (
        Searcher({"m": items}, workers=workers, plain=plain).search([tmp_path / "data.jsonl"])
        for workers, plain in ((1, False), (4, False), (1, True))
    )
    assert one == four == slow
    assert len(one.places) > 80 and one.rows == 9000


def test_an_index_is_kept_and_made_again(tmp_path: Path) -> None:
    """An index comes back from its file as it was; a damaged file, or none that can be written, is no harm."""
    units, bare = units_of("m", made(20))
    fresh = store.index_of(units, bare, tmp_path)
    [file] = tmp_path.glob("index-*.npz")
    for _ in range(2):
        again = store.index_of(units, bare, tmp_path)
        assert (again.grams, again.first, again.having, again.worth) == (
            fresh.grams,
            fresh.first,
            fresh.having,
            fresh.worth,
        )
        assert (again.entries, again.unseen) == (fresh.entries, fresh.unseen)
        file.write_bytes(file.read_bytes()[:-99])
    assert store.index_of(units, bare, tmp_path / "index.file" / "x").entries == fresh.entries


def test_long_items_are_cut() -> None:
    """A long text is cut into pieces that together are the text, so that a part of it can be found."""
    text = " ".join(f"word{n}" for n in range(1000))
    cut = pieces(text)
    assert "".join(text[start:end] for start, end in cut) == text and len(cut) == 4
    assert pieces("only four words here") == [(0, 20)] and pieces(" ") == []


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="../shared/data/contamination_golden is not here")
@pytest.mark.parametrize(("name", "flagged"), [("", 94), ("blindspot_", 4)])
def test_the_public_checker(name: str, flagged: int) -> None:
    """The same documents are flagged with the same scores, field by field, as the public checker flags them."""
    pytest.importorskip("tiktoken")
    checker = Checker(json.loads((GOLDEN / f"{name}reference.json").read_text()), vocabulary(VOCABULARY))
    found = [
        {"source": source, **summary(matches)}
        for source, matches in records(checker, GOLDEN / f"{name}documents.jsonl", "text")
        if matches
    ]
    wanted = [json.loads(line) for line in (GOLDEN / f"{name}expected_output.jsonl").read_text().splitlines()]
    assert len(found) == flagged
    assert found == wanted


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="../shared/data/contamination_golden is not here")
def test_what_the_public_checker_misses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """prill finds every document that is known to slip through the public checker and holds a question."""
    monkeypatch.setenv("PRILL_CACHE", str(tmp_path))
    rows = json.loads((GOLDEN / "blindspot_reference.json").read_text())
    items = [Item(id=str(n), question=row["question"], answer=row["answer"]) for n, row in enumerate(rows)]
    documents = GOLDEN / "blindspot_documents.jsonl"
    found = {place.row for place in Searcher({"b": items}).search([documents]).places}
    holding = {
        number
        for number, line in enumerate(documents.read_text().splitlines(), 1)
        for item in items
        if item.question in line and len(item.question) > 60
    }
    assert len(holding) > 6 and holding <= found


def test_the_public_checker_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--decon-compatible` prints the checker's lines and exits as it does."""
    pytest.importorskip("tiktoken")
    question = (
        "Write a melancholy short story about a lighthouse keeper who discovers that the light has been guiding ghosts."
    )
    (tmp_path / "ref.json").write_text(json.dumps([{"question": question}, {"question": " ".join(LEXICON)}]))
    (tmp_path / "data.jsonl").write_text(json.dumps({"text": question}) + '\nbroken\n{"messages": []}\n')
    line = ["overlap", str(tmp_path / "data.jsonl"), "--items", str(tmp_path / "ref.json"), "--decon-compatible",
            "--vocabulary", str(VOCABULARY)]  # fmt: skip
    assert cli.main(line) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["max_score"] == 1.0
    assert "1 documents scanned, 1 contaminated" in said.err
    (tmp_path / "data.jsonl").write_text(json.dumps({"text": "nothing"}))
    assert cli.main(line) == 0
