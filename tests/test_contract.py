"""The decoding contract: what each engine really applies, and what cannot work, from files alone."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acceptance import OWN, cases
from prill import contract
from prill.record import Contract
from prill.spec import Benchmark, Data, Sampling

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GOOD: dict[str, Any] = {
    "config.json": {"architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": 4096, "eos_token_id": 3},
    "generation_config.json": {
        "eos_token_id": [3, 2],
        "do_sample": True,
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
    },
    "tokenizer_config.json": {"eos_token": "<|im_end|>", "chat_template": CHATML},
    "tokenizer.json": {
        "model": {"vocab": {"a": 0, "b": 4}},
        "added_tokens": [
            {"id": at, "content": text} for at, text in ((1, "<|im_start|>"), (2, "</s>"), (3, "<|im_end|>"))
        ],
    },
}
OURS = ("GENCFG_GREEDY_CONFLICT", "GENCFG_INVALID_VALUE", "GENCFG_UNREADABLE", "CHAT_TEMPLATE_MISSING",
        "CHAT_TEMPLATE_INVALID", "GENCFG_MAX_NEW_TOKENS_CAPS", "EOS_TEMPLATE_MISMATCH", "CONTEXT_TOO_SMALL",
        "TOKENIZER_MISSING", "CONFIG_MISSING", "NO_GENERATION_PROMPT")  # fmt: skip


def benchmark(**fields: Any) -> Benchmark:
    """A small one; `sampling` fields may be given by name."""
    sampling = {name: fields.pop(name) for name in ("max_tokens", "temperature", "top_p", "seed") if name in fields}
    plain = {"name": "b", "title": "B", "prompt": "{question}", "grader": "number", "counts": "robust", "licence": "x"}
    return Benchmark(
        **{**plain, "source": "x", **fields},
        data=Data(path="x", count=1, digest="sha256:0"),
        sampling=Sampling(**{"max_tokens": 256, **sampling}),
    )


def files(**changed: Any) -> dict[str, bytes]:
    """A good folder's files, with some replaced (by their name with `_` for `.`), or left out where `None`."""
    found = dict(GOOD)
    for name, value in changed.items():
        found[name.replace("_json", ".json").replace("_jinja", ".jinja")] = value
    return {
        name: value if isinstance(value, bytes) else json.dumps(value).encode()
        for name, value in found.items()
        if value is not None
    }


def settled(
    engine: str = "vllm", asked: dict[str, Any] | None = None, template: str | None = None, **changed: Any
) -> Contract:
    """A contract under changed files."""
    return contract.resolve(files(**changed), benchmark(**(asked or {})), engine, template=template)


def codes(found: Contract, severity: str | None = None) -> set[str]:
    """The codes of its faults."""
    return {fault.code for fault in found.faults if severity in (None, fault.severity)}


def test_a_prescribed_template_goes_by_family_and_replaces_the_submissions() -> None:
    """The template of the class's family is used and named the suite's; one text continued has none."""
    prescribed = {"qwen": CHATML + "{# ours #}", "gemma": "{{ bos_token }}"}
    found = settled(asked={"templates": prescribed})
    assert (found.template, found.suite_template, found.faults) == ("suite", prescribed["qwen"], ())
    assert found.template_sha256 == hashlib.sha256(prescribed["qwen"].encode()).hexdigest()
    text = settled(asked={"templates": prescribed, "ask": "completion"})
    assert (text.template, text.suite_template) == (None, None)


def test_a_family_without_a_prescribed_template_is_a_fault() -> None:
    """A class that is not known gets no other family's template: that is fatal, whatever its folder holds."""
    other = {**GOOD["config.json"], "architectures": ["SomethingNewForCausalLM"]}
    found = settled(asked={"templates": {"qwen": CHATML}}, config_json=other)
    assert codes(found, "fatal") == {"NO_TEMPLATE_FOR_FAMILY"} and found.suite_template is None


def test_a_good_folder_has_no_fault() -> None:
    """A complete folder gives a contract without faults under each engine that starts a server."""
    for engine in ("vllm", "transformers"):
        found = settled(engine)
        assert found.faults == ()
        assert (found.template, found.family, found.context, found.max_tokens) == ("submission", "qwen", 4096, 256)
        assert found.sampling == {"temperature": 0.6, "top_p": 0.95, "top_k": 20} and not found.greedy


def test_engines_stop_at_different_tokens() -> None:
    """vLLM adds the tokenizer's own end to the ids of the file; transformers takes the file alone, if there is one."""
    only = {"eos_token_id": 2}
    assert settled("vllm", generation_config_json=only).stop_ids == (3, 2)
    assert settled("transformers", generation_config_json=only).stop_ids == (2,)
    assert settled("transformers", generation_config_json=None).stop_ids == (3,)
    assert settled("vllm", generation_config_json=only).stop_tokens == ("<|im_end|>", "</s>")


def test_the_greedy_flag_means_something_to_one_engine_only() -> None:
    """`do_sample: false` beside a temperature is greedy for transformers, sampling for vLLM, and is warned of."""
    both = {"eos_token_id": 3, "do_sample": False, "temperature": 0.6}
    one, other = settled("vllm", generation_config_json=both), settled("transformers", generation_config_json=both)
    assert (one.greedy, one.sampling["temperature"]) == (False, 0.6)
    assert (other.greedy, other.sampling["temperature"]) == (True, 0.0)
    assert codes(one, "warning") == codes(other, "warning") == {"GENCFG_GREEDY_CONFLICT"}


def test_the_benchmark_s_own_settings_win() -> None:
    """A temperature that the benchmark fixes counts under every engine, whatever the file says."""
    for engine in ("vllm", "transformers", "endpoint"):
        assert settled(engine, {"temperature": 0.0}).greedy
        assert settled(engine, {"temperature": 0.7}).sampling["temperature"] == 0.7


def test_what_is_not_applied_is_said() -> None:
    """A repetition penalty is applied by vLLM and named as dropped by transformers, and so is a seed."""
    config = {"eos_token_id": 3, "do_sample": True, "repetition_penalty": 1.3}
    assert settled("vllm", generation_config_json=config).sampling["repetition_penalty"] == 1.3
    found = settled("transformers", {"seeds": (7,)}, generation_config_json=config)
    assert "repetition_penalty" not in found.sampling
    assert [why.split()[0] for why in found.ignored] == ["seed:", "repetition_penalty"]


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("CONFIG_MISSING", {"config_json": None}),
        ("CONFIG_UNREADABLE", {"config_json": b"{"}),
        ("TOKENIZER_MISSING", {"tokenizer_json": None}),
        ("CHAT_TEMPLATE_MISSING", {"tokenizer_config_json": {"eos_token": "<|im_end|>"}}),
        ("CHAT_TEMPLATE_INVALID", {"chat_template_jinja": b"{% for m in messages %}x"}),
        ("GENCFG_UNREADABLE", {"generation_config_json": b"[1]"}),
        ("GENCFG_INVALID_VALUE", {"generation_config_json": {"eos_token_id": 3, "top_p": 1.5}}),
        (
            "NEVER_STOPS",
            {"generation_config_json": {"eos_token_id": 99}, "tokenizer_config_json": {"chat_template": CHATML}},
        ),
        ("CONTEXT_TOO_SMALL", {"config_json": {"max_position_embeddings": 128}}),
    ],
)
def test_what_cannot_work_is_fatal(code: str, changed: dict[str, Any]) -> None:
    """What makes every request fail, or every reply endless, is a fatal fault of its own code."""
    assert code in codes(settled("vllm", **changed), "fatal")


def test_transformers_needs_the_stop_token_in_the_file() -> None:
    """A generation_config.json without a stop token never stops under transformers, although config.json has one."""
    assert codes(settled("transformers", generation_config_json={}), "fatal") == {"NEVER_STOPS"}
    assert "NEVER_STOPS" not in codes(settled("vllm", generation_config_json={}))


def test_a_suite_s_template_replaces_the_submission_s() -> None:
    """A template of the suite is used, is written down, and makes a missing one of the submission no fault."""
    found = settled(template=CHATML, tokenizer_config_json={"eos_token": "<|im_end|>"})
    assert (found.template, found.suite_template, codes(found)) == ("suite", CHATML, set())
    assert settled().suite_template is None and settled().template_sha256 == found.template_sha256


def test_completions_need_no_template() -> None:
    """A benchmark that is asked as plain text has no template in its contract and no fault for lack of one."""
    found = settled(asked={"ask": "completion"}, tokenizer_config_json={"eos_token": "<|im_end|>"})
    assert (found.chat, found.template, codes(found)) == (False, None, set())


def test_a_server_that_did_not_get_these_files_is_not_held_to_them() -> None:
    """Under `endpoint` and `canned` an empty folder has no fault, and what is not known is said."""
    for engine in ("endpoint", "canned"):
        found = contract.resolve({}, benchmark(temperature=0.0), engine)
        assert (found.faults, found.sampling, len(found.ignored)) == ((), {"temperature": 0.0}, 1)
        assert codes(contract.resolve({}, benchmark(max_tokens=8), engine), "fatal") == {"MAX_TOKENS_TOO_SMALL"}


def test_the_window_cuts_a_reply_or_refuses_it() -> None:
    """Prompt and reply over the window only cut replies; new tokens over the window are refused by the server."""
    asked = benchmark(max_tokens=4000)
    cut = contract.resolve(files(), asked, "vllm", prompt_tokens=200)
    assert (cut.max_tokens, codes(cut, "warning")) == (3896, {"CONTEXT_TOO_SMALL"})
    assert codes(contract.resolve(files(), benchmark(max_tokens=5000), "vllm"), "fatal") == {"CONTEXT_TOO_SMALL"}
    full = contract.resolve(files(), benchmark(max_tokens=256), "vllm", prompt_tokens=4096)
    assert (full.max_tokens, codes(full, "fatal")) == (0, {"CONTEXT_TOO_SMALL"})


def test_a_lower_rung_that_fits_is_no_refusal() -> None:
    """New tokens over the window are fatal only where no rung of the ladder is below it; else it is a warning."""
    for rung, severity in ((4000, "warning"), (4500, "fatal")):
        asked = benchmark()
        asked = replace(asked, sampling=Sampling(max_tokens=5000, ladder=(rung,)))
        assert codes(contract.resolve(files(), asked, "vllm"), severity) == {"CONTEXT_TOO_SMALL"}


def test_what_the_base_cannot_either_is_not_the_submission_s_fault() -> None:
    """Only fatal faults that the base model does not share are held against a submission."""
    small = {"config_json": {"architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": 128}}
    ours, base = settled(generation_config_json=b"{", **small), settled(**small)
    assert contract.broken(ours, base).startswith("GENCFG_UNREADABLE: ")
    assert contract.broken(base, base) == "" and contract.broken(settled(), base) == ""


def test_one_transformers_server_keeps_one_sampling() -> None:
    """Benchmarks that fix different temperatures need two transformers servers and one of vLLM."""
    for engine, groups in (("transformers", 2), ("vllm", 1)):
        found = [settled(engine, {"temperature": heat}) for heat in (0.0, 0.7, 0.0)]
        assert len(contract.started_alike(found)) == groups


@pytest.mark.parametrize(
    ("architecture", "family"),
    [("SmolLM3ForCausalLM", "smollm"), ("Gemma3ForConditionalGeneration", "gemma"), ("LlamaForCausalLM", "llama"),
     ("Qwen3MoeForCausalLM", "qwen"), ("SomethingNewForCausalLM", None)],
)  # fmt: skip
def test_the_family_is_the_architecture_s(architecture: str, family: str | None) -> None:
    """The family follows from the class name in config.json alone, and an unknown class has none."""
    assert contract.family({"architectures": [architecture]}) == family


@given(
    st.dictionaries(st.sampled_from(contract.FILES), st.binary(max_size=200)), st.sampled_from(["vllm", "transformers"])
)
def test_any_bytes_give_a_contract(hostile: dict[str, bytes], engine: str) -> None:
    """Whatever the files hold, a contract comes out and nothing is raised."""
    assert contract.resolve(hostile, benchmark(), engine).engine == engine


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(list(GOOD)), st.data(), st.sampled_from(["vllm", "transformers", "endpoint"]))
def test_any_value_in_any_field_gives_a_contract(name: str, data: st.DataObject, engine: str) -> None:
    """A field of any file may hold any JSON value, and a contract comes out and nothing is raised."""
    field = data.draw(
        st.sampled_from([*GOOD[name], "text_config", "architectures", "added_tokens_decoder", "pad_token"])
    )
    changed = {**GOOD[name], field: data.draw(json_values)}
    assert contract.resolve({**files(), name: json.dumps(changed).encode()}, benchmark(), engine).max_tokens <= 256


def test_the_open_cases_get_their_codes() -> None:
    """Every checkpoint case of our own whose code belongs to the contract gets that code with its severity."""
    seen = 0
    for case in cases("checkpoint/audit", folder=OWN):
        wanted = set(case["expected"]["codes"]) & set(OURS)
        given = {
            name: value["$raw"].encode() if "$raw" in value else json.dumps(value).encode()
            for name, value in case["input"]["files"].items()
            if name in contract.FILES and isinstance(value, dict)
        }
        if "tokenizer.json" in given:
            given["tokenizer.json"] = json.dumps({"model": {"vocab": {f"t{at}": at for at in range(30)}}}).encode()
        need = case["input"]["context"].get("need_tokens", 16384)
        found = contract.resolve(given, benchmark(max_tokens=need), "transformers")
        assert wanted <= codes(found), (case["id"], wanted, found.faults)
        if not wanted & {"CHAT_TEMPLATE_CONFLICT"} and not case["expected"]["codes"]:
            assert not codes(found, "fatal"), (case["id"], found.faults)
        seen += bool(wanted)
    assert seen >= 10
