"""Before a benchmark is put to a folder: the longest prompt, and the chat templates that a suite prescribes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from msgspec.structs import replace

from prill.catalog import PACKAGE, Catalog
from prill.contract import fatal
from prill.decisions import changed
from prill.errors import DefinitionError, InfraError
from prill.sandboxes import bubblewrap
from prill.sitting import Subject, longest_prompt, settled
from prill.sockets import Item, Need
from samples import BENCHMARK, SPEC

try:
    with bubblewrap.plugin.open(Need()):
        NO_BOX = ""
except InfraError as error:
    NO_BOX = str(error)

pytestmark = pytest.mark.skipif(bool(NO_BOX), reason=NO_BOX)
VOCABULARY = {"<unk>": 0, "one": 1, "two": 2}
WORDS: dict[str, Any] = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": VOCABULARY, "unk_token": "<unk>"},
}  # fmt: skip
"""One token a word."""
ASKED = replace(BENCHMARK, prompt="{question}", few_shot=None, system="You count.")
ITEMS = [Item(id=str(n), question="one " * n, answer="") for n in (3, 200, 7)]


def subject(tmp_path: Path, tokenizer: bytes, **config: Any) -> Subject:
    """A folder with such a tokenizer, to be served by vLLM."""
    folder, scratch = tmp_path / "model", tmp_path / "scratch"
    for place in (folder, scratch):
        place.mkdir()
    (folder / "tokenizer.json").write_bytes(tokenizer)
    (folder / "config.json").write_text(json.dumps({"architectures": ["Qwen3ForCausalLM"], **config}))
    return Subject(folder, None, SPEC.model, "vllm", "bubblewrap", scratch)


def test_the_longest_prompt_is_counted_by_the_folders_own_tokenizer(tmp_path: Path) -> None:
    """All that is said to the model counts, and a prompt that fills the window is a fault before anything is served."""
    asked = subject(tmp_path, json.dumps(WORDS).encode(), max_position_embeddings=202)
    assert longest_prompt(asked, ASKED, ITEMS) == 202
    found = {fault.code: fault.why for fault in fatal(settled(asked, ASKED, ITEMS))}
    assert "beside 202 of prompt" in found["CONTEXT_TOO_SMALL"]


@pytest.mark.parametrize("tokenizer", [b"", b"{}", b"[" * 100_000, b'{"model": {"type": "BPE"}}', b"\xff"])
def test_a_tokenizer_that_cannot_be_read_counts_nothing(tmp_path: Path, tokenizer: bytes) -> None:
    """Whatever stands in the file, counting ends without an exception and without a number."""
    assert longest_prompt(subject(tmp_path, tokenizer), ASKED, ITEMS) == 0


def test_no_template_of_a_suite_is_lost_on_the_way_to_a_run(tmp_path: Path) -> None:
    """A suite's set of templates is in every benchmark that it plans, with tools where it offers some, and pinned."""
    catalog = Catalog()
    suite, found = catalog.suite("posttrainbench-1"), catalog.template("posttrainbench")
    told = {name: changed(catalog.benchmark(name), suite.changes.get(name)).templates for name in suite.benchmarks}
    assert told.pop("bfcl") == {**found.templates, **found.with_tools}
    assert all(templates == found.templates for templates in told.values()) and len(told) == 6
    own = tmp_path / "templates" / "posttrainbench.toml"
    own.parent.mkdir()
    shutil.copy(PACKAGE / "definitions" / "templates" / own.name, own)
    own.write_text(own.read_text().replace("user", "human"))
    with pytest.raises(
        DefinitionError, match=r"templates/posttrainbench has digest sha256:\w+, but sha256:\w+ is pinned"
    ):
        Catalog([tmp_path]).suite("posttrainbench-1")


@pytest.mark.parametrize(
    ("family", "before", "after"),
    [
        ("qwen", "<|im_start|>user\nHi<|im_end|>\n", "<|im_start|>assistant\n"),
        ("gemma", "<bos><start_of_turn>user\nHi<end_of_turn>\n", "<start_of_turn>model\n"),
        ("smollm", "<|im_start|>user\nHi<|im_end|>\n", "<|im_start|>assistant\n"),
    ],
)
def test_prescribed_templates_render_the_published_form(family: str, before: str, after: str) -> None:
    """A user's turn comes out as published; the model's begins where it is asked for and not otherwise."""
    found = Catalog().template("posttrainbench")
    reader = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    plain, tools = (reader.from_string(texts[family]) for texts in (found.templates, found.with_tools))
    said = {"messages": [{"role": "user", "content": "Hi"}], "bos_token": "<bos>"}
    assert plain.render(**said, add_generation_prompt=True).endswith(before + after)
    assert plain.render(**said, add_generation_prompt=False).endswith(before)
    shown = tools.render(**said, add_generation_prompt=True, tools=[{"type": "function", "name": "add_up"}])
    assert '"add_up"' in shown and "<tool_call>" in shown
