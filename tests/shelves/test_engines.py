"""Engines against their conformance suite, with real servers; what each of them really does with a request.

The tests of `transformers` need minutes on a CPU, those of `vllm` an environment of its own (`make test-vllm`).
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prill import contract
from prill.engines import canned, endpoint, transformers, vllm
from prill.errors import DefinitionError, InfraError
from prill.record import Contract
from prill.sandboxes import bubblewrap, local
from prill.serving import last_words, overlaid
from prill.sockets import Endpoint, Need, NotServed, Sandbox
from prill.spec import Benchmark, Data, Sampling
from prill.testing.engines import MODEL, EngineChecks, Place, engine_conformance

try:
    with bubblewrap.plugin.open(Need()):
        pass
    BOX: Sandbox = bubblewrap.plugin
except InfraError:
    BOX = local.plugin

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
needs_vllm = pytest.mark.skipif(
    vllm.ENVIRONMENT not in os.environ, reason=f"{vllm.ENVIRONMENT} names no environment with vLLM; `make test-vllm`"
)


def script(folder: Path, *replies: dict[str, Any]) -> Path:
    """A folder that the canned engine serves."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "canned.json").write_text(json.dumps({"replies": list(replies) or [{"text": "5"}]}))
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny untrained model that samples at a high temperature unless it is told otherwise."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=272, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=32, max_position_embeddings=2048, eos_token_id=257, tie_word_embeddings=True,
    )  # fmt: skip
    made = Qwen3ForCausalLM(config).to(torch.bfloat16)
    made.generation_config = GenerationConfig(eos_token_id=[257], do_sample=True, temperature=2.0)
    folder = tmp_path_factory.mktemp("model") / "tiny"
    made.save_pretrained(folder)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>")
    fast.chat_template = CHATML
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def broken(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The model without its config, its tokenizer, its weights, and with weights that end too soon."""
    place = tmp_path_factory.mktemp("broken")
    found = {}
    for name, gone in (("config", "config.json"), ("tokenizer", "tokenizer*"), ("weights", "*.safetensors")):
        found[name] = shutil.copytree(model, place / name)
        for file in found[name].glob(gone):
            file.unlink()
    found["torn"] = shutil.copytree(model, place / "torn")
    weights = found["torn"] / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    return found


def served(checks: EngineChecks, place: Place, settled: Contract | None = None) -> None:
    """Up and down again."""
    with checks.engine.serve("/model", MODEL, place.box, place.logs, settled) as found:
        assert found.settings["engine"]


def asked(temperature: float | None, max_tokens: int = 24) -> Benchmark:
    """A benchmark that leaves sampling to the submission, or fixes it."""
    return Benchmark(
        name="b", title="B", prompt="{question}", grader="number", counts="robust", licence="x", source="x",
        data=Data(path="x", count=1, digest="sha256:0"),
        sampling=Sampling(max_tokens=max_tokens, temperature=temperature),
    )  # fmt: skip


def read(folder: Path) -> dict[str, bytes]:
    """What the contract reads of a folder."""
    return {name: (folder / name).read_bytes() for name in contract.FILES if (folder / name).is_file()}


# --- the double ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["answers_and_stops", "stops_on_error", "refuses_empty", "refuses_not_json"])
def test_canned_is_an_engine(check: str, tmp_path: Path) -> None:
    """The double does all that an engine must."""
    bad = {"empty": tmp_path / "empty", "not_json": script(tmp_path / "not_json")}
    bad["empty"].mkdir()
    (bad["not_json"] / "canned.json").write_text("{")
    good = script(tmp_path / "good")
    dict(engine_conformance(canned.plugin, BOX, good=good, bad=bad))[check]()


@pytest.mark.parametrize(
    ("how", "words"),
    [("hang-200", "does not answer it"), ("drip", "does not answer it"), ("html", "not as an OpenAI"),
     ("json", "not as an OpenAI"), ("drop", "not as an OpenAI"), ("500", "500: "), ("503", "503: ")],
)  # fmt: skip
def test_a_server_that_misbehaves_is_not_ready(how: str, words: str, tmp_path: Path) -> None:
    """A server that answers 200 and hangs, drips, drops, or says anything but a generation is not served, by name."""
    checks = EngineChecks(canned.Canned(start_seconds=1.5), BOX, tmp_path)
    with checks.place(script(tmp_path / "bad", {"do": how})) as place, pytest.raises(NotServed, match=words):
        served(checks, place)


def test_a_server_that_comes_up_late_is_ready(tmp_path: Path) -> None:
    """A server that says 503 a few times and then generates is ready."""
    folder = script(tmp_path / "late", {"do": "503", "times": 4}, {"text": "5"})
    checks = EngineChecks(canned.plugin, BOX, folder)
    checks.answers_and_stops()


# --- an endpoint ---------------------------------------------------------------------------------------------


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A server that somebody else started, named in the environment."""
    checks = EngineChecks(canned.plugin, local.plugin, script(tmp_path / "good"))
    with checks.place(checks.good) as place, canned.plugin.serve("/model", MODEL, place.box, place.logs) as found:
        monkeypatch.setenv(endpoint.URL, found.url)
        monkeypatch.setenv(endpoint.MODEL, found.model)
        yield found


def test_an_endpoint_is_used_and_left_running(running: Endpoint, tmp_path: Path) -> None:
    """A running server is asked under its own name, and still answers after the context has ended."""
    checks = EngineChecks(endpoint.plugin, local.plugin, tmp_path)
    with checks.place(tmp_path) as place:
        with endpoint.plugin.serve("/model", MODEL, place.box, place.logs) as found:
            assert (found.url, found.model) == (running.url, "canned")
        assert place.ask(running, "completions", {"prompt": "1"})[0] == 200


@pytest.mark.skipif(BOX is local.plugin, reason="no box that isolates can be made here")
def test_an_endpoint_needs_a_door(running: Endpoint, tmp_path: Path) -> None:
    """In a box that isolates, the error says that it has no door and what to do."""
    checks = EngineChecks(endpoint.plugin, BOX, tmp_path)
    with checks.place(tmp_path) as place, pytest.raises(DefinitionError, match=r"no door.*--sandbox local"):
        served(checks, place)


def test_an_endpoint_must_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without an address, or with one that is no root of an API, the error names both variables."""
    monkeypatch.setenv(endpoint.URL, "localhost:8000")
    checks = EngineChecks(endpoint.plugin, local.plugin, tmp_path)
    with checks.place(tmp_path) as place, pytest.raises(DefinitionError, match=f"{endpoint.URL}.*{endpoint.MODEL}"):
        served(checks, place)


# --- what engines share --------------------------------------------------------------------------------------


def test_last_words_are_the_reason(tmp_path: Path) -> None:
    """Of a long log the last line that names an error is told, not the last line; without one the last that speaks."""
    log = tmp_path / "log"
    log.write_text("Traceback\nValueError: no such tensor\nshutting down\n\n")
    assert last_words(log) == "ValueError: no such tensor"
    log.write_text("a\nb\n\n")
    assert last_words(log) == "b"
    assert last_words(tmp_path / "none") == "it said nothing"


def test_a_folder_can_wear_another_template(tmp_path: Path) -> None:
    """A folder is laid over with files of our own; the rest is linked and the folder itself stays as it was."""
    folder = script(tmp_path / "model", {"text": "5"})
    (folder / "chat_template.jinja").write_text("theirs")
    with EngineChecks(canned.plugin, BOX, folder).place(folder) as place:
        there = overlaid(place.box, "/model", "/tmp/served", {"chat_template.jinja": "ours"}, place.logs)
        place.box.get("/tmp/served/chat_template.jinja", tmp_path / "got")
        assert (tmp_path / "got").read_text() == "ours"
        assert there == place.box.path("/tmp/served")
    assert (folder / "chat_template.jinja").read_text() == "theirs"


def test_vllm_s_command_line_follows_the_contract() -> None:
    """The parser goes by architecture, only where tools are asked for; the window is the config's; code stays off."""
    files = {"config.json": b'{"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096}'}
    plain = contract.resolve(files, asked(None), "vllm")
    calls = contract.resolve(files, Benchmark(**{**_fields(asked(None)), "grader": "function_call"}), "vllm")
    assert vllm.arguments(plain, cpu=False) == (
        "--dtype", "bfloat16", "--generation-config", "auto", "--gpu-memory-utilization", "0.9",
        "--max-model-len", "4096",
    )  # fmt: skip
    assert vllm.arguments(calls, cpu=True)[-3:] == ("--enable-auto-tool-choice", "--tool-call-parser", "llama3_json")
    assert "--enforce-eager" in vllm.arguments(calls, cpu=True)


def _fields(value: Benchmark) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}


# --- real servers --------------------------------------------------------------------------------------------

REAL = ["answers_and_stops", "stops_on_error"]
REFUSED = ["refuses_config", "refuses_tokenizer", "refuses_weights", "refuses_torn"]


@pytest.mark.slow
@pytest.mark.parametrize("check", REAL + REFUSED)
def test_transformers_is_an_engine(check: str, model: Path, broken: dict[str, Path]) -> None:
    """`transformers serve` does all that an engine must, and refuses folders that lack something."""
    dict(engine_conformance(transformers.plugin, BOX, good=model, bad=broken))[check]()


@pytest.mark.slow
@needs_vllm
@pytest.mark.parametrize("check", ["answers_and_stops", "refuses_weights"])
def test_vllm_is_an_engine(check: str, model: Path, broken: dict[str, Path]) -> None:
    """`vllm serve` does all that an engine must, and refuses a folder without weights."""
    dict(engine_conformance(vllm.plugin, BOX, good=model, bad=broken))[check]()


@pytest.mark.slow
def test_transformers_decodes_as_the_contract_says(model: Path) -> None:
    """The server hears no request's temperature, but under a contract that fixes it at 0 every reply is the same."""
    body = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 24, "temperature": 0.0}
    greedy = contract.resolve(read(model), asked(0.0), "transformers")
    assert replies(model, body, None) > 1
    assert replies(model, body, greedy) == 1


def replies(folder: Path, body: dict[str, Any], settled: Any) -> int:
    """How many different replies eight equal requests get."""
    checks = EngineChecks(transformers.plugin, BOX, folder)
    serve = transformers.plugin.serve
    with checks.place(folder) as place, serve("/model", MODEL, place.box, place.logs, settled) as found:
        said = [place.ask(found, "chat/completions", body)[1] for _ in range(8)]
    return len({answer["choices"][0]["message"]["content"] for answer in said})


@pytest.mark.slow
def test_transformers_wears_the_suite_s_template(model: Path, tmp_path: Path) -> None:
    """A folder without a chat template is not served for chat by itself, is under a suite's, and is for completions."""
    bare = shutil.copytree(model, tmp_path / "bare")
    for name in ("chat_template.jinja",):
        (bare / name).unlink(missing_ok=True)
    config = json.loads((bare / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (bare / "tokenizer_config.json").write_text(json.dumps(config))
    checks = EngineChecks(transformers.plugin, BOX, bare)
    own = contract.resolve(read(bare), asked(None), "transformers")
    assert [fault.code for fault in own.faults] == ["CHAT_TEMPLATE_MISSING"]
    with checks.place(bare) as place, pytest.raises(NotServed, match="500"):
        served(checks, place, own)
    text = Benchmark(**{**_fields(asked(None)), "ask": "completion"})
    for settled in (
        contract.resolve(read(bare), asked(None), "transformers", template=CHATML),
        contract.resolve(read(bare), text, "transformers"),
    ):
        with checks.place(bare) as place:
            served(checks, place, settled)


def test_the_checks_say_their_truth() -> None:
    """Every check of the suite has a docstring, so that a failing one says what an engine owes."""
    checks: list[tuple[str, Callable[[], None]]] = engine_conformance(
        canned.plugin, BOX, good=Path("good"), bad={"x": Path("bad")}
    )
    assert all(check.__doc__ for _, check in checks)
