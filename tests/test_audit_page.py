"""The page of an audit: every value by its pointer, nothing typed, nothing loaded, and at least what was published."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import audit_seed as seed
from prill.audit.assembly import page_of
from prill.audit.page import templates
from prill.audit.pointers import resolve
from prill.audit.sheets import STYLED, Sheet, policy
from prill.audit.shown import shown

HOSTILE = "</code><script>alert(1)</script> https://evil.example \u202egnp.exe\x1b[2J"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the page's audit, by path."""
    bundle = seed.seal_audit(tmp_path_factory.mktemp("audit"))
    return {file.relative_to(bundle).as_posix(): file.read_bytes() for file in bundle.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def documents(files: dict[str, bytes]) -> dict[str, Any]:
    """Its JSON."""
    return {path: json.loads(data) for path, data in files.items() if path.endswith(".json")}


def sheet_of(files: dict[str, bytes]) -> Sheet:
    """The page, read."""
    return Sheet(files["index.html"].decode())


def remade(files: dict[str, bytes], documents: dict[str, Any]) -> Sheet:
    """The page over other values in the same files."""
    inner = {
        path: data for path, data in files.items() if path not in ("manifest.json", "statement.json", "index.html")
    }
    inner |= {path: json.dumps(value).encode() for path, value in documents.items() if path in inner}
    return Sheet(page_of(inner).decode())


def changed(value: Any) -> Any:
    """A JSON value of the same shape in which every number is another."""
    if isinstance(value, dict):
        return {key: changed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [changed(inner) for inner in value]
    return value + 7_000 if isinstance(value, int | float) and not isinstance(value, bool) else value


def test_no_template_has_a_digit_in_its_text() -> None:
    """Outside of tags and of what is filled in, no template of the page has a digit, so that no number can be typed."""
    pages = {name: text for name, text in templates().items() if name.startswith("audit") and name.endswith(".html")}
    assert len(pages) == 3
    for template in pages.values():
        text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<[^>]*>", " ", template, flags=re.DOTALL)
        assert not re.search(r"\d", text), re.search(r".*\d.*", text)


def test_the_page_keeps_its_whole_style() -> None:
    """No line of the audits' own style counts as one that could write a number; of the site's, only those that do."""
    texts = templates()
    assert not [line for line in texts["audit.css"].splitlines() if STYLED.search(line)]
    dropped = [line for line in texts["style.css"].splitlines() if STYLED.search(line)]
    assert dropped and all("content:" in line for line in dropped)


def test_every_number_of_the_page_changes_with_its_json(files: dict[str, bytes], documents: dict[str, Any]) -> None:
    """With every number of the evidence changed, every number that the page shows is another one."""
    evidence = {path: value for path, value in documents.items() if path.startswith("evidence/")}
    before = {cell.pointer: cell.text for cell in sheet_of(files).cells if cell.way is not None}
    after = {cell.pointer: cell.text for cell in remade(files, changed(evidence)).cells if cell.way is not None}
    numbers = 0
    for pointer, text in before.items():
        if not pointer.startswith("evidence/"):
            continue
        value = resolve(documents, pointer)
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert after[pointer] != text, pointer
            numbers += 1
    assert numbers > 80


def test_each_value_is_what_its_pointer_says(files: dict[str, bytes], documents: dict[str, Any]) -> None:
    """Each of the page's values is shown as its pointer's value, and the page has no fault."""
    sheet = sheet_of(files)
    assert not sheet.faults and len(sheet.cells) > 1_000
    for cell in sheet.cells:
        wanted = cell.pointer if cell.way is None else shown(resolve(documents, cell.pointer), cell.way)
        assert cell.text == wanted


def test_each_value_tells_where_it_stands_and_what_it_rests_on(
    files: dict[str, bytes], documents: dict[str, Any]
) -> None:
    """Each value outside the ledger is listed in it with its pointer, and each file there with its digest."""
    text = files["index.html"].decode()
    ledger = Sheet("<!doctype html>" + text[text.index('<section aria-labelledby="ledger">') :])
    listed = {cell.pointer for cell in ledger.cells if cell.way is None}
    for path in ("counts/roots", "cell_counts/gpqamain/3", "counts/missing"):
        assert f"evidence/coverage.json#/{path}" in listed
    hows = {cell.text for cell in ledger.cells if cell.pointer.endswith("/how")}
    assert {"length", "count", "distinct", "product", "difference", "sha256", "bytes", "status", "verdict"} <= hows
    digests = {entry["path"]: entry["sha256"] for entry in documents["manifest.json"]["files"]}
    shown_digests = {cell.text for cell in ledger.cells if cell.pointer.startswith("manifest.json#/files/")}
    assert {
        digests["evidence/coverage.json"],
        digests["evidence/claims.json"],
        digests["evidence/witnesses.json"],
    } <= shown_digests


def published() -> list[str]:
    """What the published page prints, one value each; ids of its repository's files are in the protocol's tests."""
    facts = [
        'TARGET.CUDADeviceName == "NVIDIA H100 80GB HBM3"', "request_gpus = $(num_gpus)", "true", "NUM_HOURS * 60 + 5",
        "7, 24, 59, 62, 122, 162", "83, 84, 85, 86, 87, 88, 89, 90", "Qwen/Qwen3-4B-Base", "healthbench", "100", "8",
        "UnjxMTe57e", "cb04ab1a-a526-4137-862b-a26d68563737", "partial support", "contamination detected\n",
        "upstream_judge_label", "disallowed use detected", "2,362,113", "viewer_data", "2,397", "false",
        "500", "504", "531",
        "/part/state/input/content", "/part/state/output", "/part/text", "1,338", "47", "1,313", "25",
        "3", "0", "7", "4", "1",
        "we'll use the instruct model as our final submission.", "Loading Qwen3-1.7B instruct model...",
        "- Used Qwen3-1.7B (instruct model) - the official fine-tuned version of the base model",
        f"{seed.CONTAMINATED}/contamination_judgement.txt", f"{seed.SWAPPED}/disallowed_model_judgement.txt",
        "src/commit_utils/single_task.sub", "src/run_task.sh", "src/commit_utils/commit.sh", ", ".join(seed.CELLS),
        "Qwen3-1.7B-Base", "Qwen3-4B-Base", "SmolLM3-3B-Base", "Gemma-3-4B-PT", *seed.CELLS, *seed.SEED_HASHES,
    ]  # fmt: skip
    return facts + [str(count) for row in seed.CELLS.values() for count in row]


def test_the_page_has_all_that_was_published(files: dict[str, bytes], documents: dict[str, Any]) -> None:
    """Every value of the published page stands on ours, each from a pointer, the whole matrix in its order."""
    sheet = sheet_of(files)
    texts = {cell.text for cell in sheet.cells if cell.way is not None}
    for value in published():
        assert value in texts or any(text.startswith(value) for text in texts), value
    for claim in ("claim_1", "claim_2"):
        assert documents["evidence/claims.json"]["claims"][claim]["summary"] in texts
    for benchmark, row in seed.CELLS.items():
        found = [
            cell.text
            for cell in sheet.cells
            if cell.way and cell.pointer.startswith(f"evidence/coverage.json#/cell_counts/{benchmark}/")
        ]
        assert found[:4] == [str(count) for count in row]


class Outline(HTMLParser):
    """What a screen reader goes by."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.scopes = self.heads = self.mains = 0
        self.language = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        given = dict(attrs)
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        self.ids += [str(given["id"])] if "id" in given else []
        self.links += [str(given["href"])] if tag == "a" else []
        self.heads += tag == "th"
        self.scopes += tag == "th" and "scope" in given
        self.mains += tag == "main"
        self.language = given.get("lang") or self.language if tag == "html" else self.language


def test_the_page_can_be_walked_without_eyes(files: dict[str, bytes]) -> None:
    """One main part, one top heading, no level left out, scopes on heads, ids once, no link that leads nowhere."""
    outline = Outline()
    outline.feed(files["index.html"].decode())
    assert (outline.language, outline.mains, outline.headings.count(1), outline.scopes) == ("en", 1, 1, outline.heads)
    assert all(b <= a + 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert len(outline.ids) == len(set(outline.ids))
    for link in outline.links:
        path, _, place = link.partition("#")
        assert (path in files) if path else (place in outline.ids), link


def test_the_page_loads_nothing(files: dict[str, bytes]) -> None:
    """The page's policy allows nothing but its own style, by the digest of the one that is in it."""
    import base64
    import hashlib

    text = files["index.html"].decode()
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert sheet_of(files).told == policy(style[1])
    assert policy(style[1]).startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    assert "<script" not in text and "http" not in re.sub(r"http-equiv", "", text.replace(style[0], ""))


def test_text_of_others_is_not_obeyed(files: dict[str, bytes], documents: dict[str, Any]) -> None:
    """Markup, escape codes and turned text in evidence stand on the page as text that can be seen, and nothing runs."""
    evidence = json.loads(json.dumps({p: v for p, v in documents.items() if p.startswith("evidence/")}))
    evidence["evidence/protocol.json"]["facts"]["request_gpus_binding"]["value"] = HOSTILE
    evidence["evidence/claims.json"]["about"]["paper_id"] = HOSTILE
    evidence["evidence/witnesses.json"]["witnesses"]["training_on_test_sets"]["content"]["text"] = HOSTILE
    sheet = remade(files, evidence)
    assert not sheet.faults
    texts = [cell.text for cell in sheet.cells if "alert(1)" in cell.text]
    assert len(texts) >= 3 and all("\u202e" not in text and "\x1b" not in text for text in texts)
