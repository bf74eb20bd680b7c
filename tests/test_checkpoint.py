"""The audit of checkpoint files: every acceptance case of rules K and of single files, and each kind of fault."""

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import samples
from acceptance import Case, case_id, cases
from checkpoints import CHATML, CONFIG, GOOD, codes, put
from prill.checkpoint.audit import audit, examine, examine_file
from prill.checkpoint.context import Context

SEVERITY = {"ok": "ok", "warning": "warn", "fatal": "error"}


@pytest.mark.parametrize("case", cases("checkpoint/audit", "checkpoint/safetensors"), ids=case_id)
def test_each_acceptance_case_is_met(case: Case, tmp_path: Path) -> None:
    """An acceptance case gives exactly the codes and the severity that it asks for."""
    sent = case["input"]
    if "file_b64" in sent:
        (tmp_path / "x.safetensors").write_bytes(base64.b64decode(sent["file_b64"]))
        report = examine_file(tmp_path / "x.safetensors")
    else:
        known = msgspec.convert(sent.get("context", {}), Context)
        report = examine(put(tmp_path / "model", sent["files"]), known)
    assert (SEVERITY[report.severity], codes(report)) == (case["expected"]["severity"], set(case["expected"]["codes"]))
    if case["id"] == "ckpt-064":
        assert "checkpoint-100" in report.faults[0].why


def config(**changes: Any) -> dict[str, Any]:
    """A change of config.json; `...` takes a key away."""
    return {"config.json": {key: value for key, value in (CONFIG | changes).items() if value is not ...}}


def generation(**settings: Any) -> dict[str, Any]:
    """Another generation_config.json, with the stop ids it needs."""
    return {"generation_config.json": {"eos_token_id": [3, 2]} | settings}


def chat(template: Any = CHATML, **settings: Any) -> dict[str, Any]:
    """Another tokenizer_config.json."""
    return {"tokenizer_config.json": GOOD["tokenizer_config.json"] | {"chat_template": template} | settings}


def stored(**shapes: Any) -> dict[str, Any]:
    """Another model.safetensors; `__` in a name is a dot."""
    return {"model.safetensors": {"$safetensors": {name.replace("__", "."): shape for name, shape in shapes.items()}}}


EMBED_SHAPE = ["BF16", [32, 8]]
EMBED = {"model__embed_tokens__weight": EMBED_SHAPE}
NEW_ROPE = {"rope_type": "default", "rope_theta": 1e6}
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def split(first: list[str], second: list[str], mapped: dict[str, int], total: int | None = None) -> dict[str, Any]:
    """Two shards of [8] BF16 tensors and an index that maps names to the first (0) or second (1)."""
    shard = [{"$safetensors": {name: ["BF16", [8]] for name in names}} for names in (first, second)]
    size = 16 * (len(first) + len(second)) if total is None else total
    places = {name: SHARDS[number] for name, number in mapped.items()}
    made = {SHARDS[0]: shard[0], SHARDS[1]: shard[1]}
    index = {"metadata": {"total_size": size}, "weight_map": places}
    return {"model.safetensors": None, "model.safetensors.index.json": index} | made


BASE_CONFIG = {"base_config": CONFIG}
NOT_READ = {"$raw": "{"}
VISION = {
    "architectures": ["Gemma3ForConditionalGeneration"], "vision_config": {"hidden_size": 8}, "model_type": "gemma3",
    "text_config": {"hidden_size": 8, "vocab_size": 32},
}  # fmt: skip


KINDS = (
    ("nothing wrong", {}, {}, ""),
    ("untied without head", config(tie_word_embeddings=False), {}, "LM_HEAD_MISSING!"),
    ("untied with head", config(tie_word_embeddings=False) | stored(**EMBED, lm_head__weight=EMBED_SHAPE), {}, ""),
    ("template only in its file", chat(None) | {"chat_template.jinja": {"$raw": CHATML}}, {}, ""),
    ("the same template twice", {"chat_template.jinja": {"$raw": CHATML + "\n"}}, {}, ""),
    ("named templates", chat([{"name": "default", "template": CHATML}, {"name": "rag", "template": "{{"}]), {}, ""),
    ("template in a processor's file", chat(None) | {"chat_template.json": {"chat_template": CHATML}}, {}, ""),
    ("template is a number", chat(7), {}, "CHAT_TEMPLATE_INVALID!"),
    ("template with an unknown filter", chat("{{ messages | sparkle }}"), {}, "CHAT_TEMPLATE_INVALID!"),
    ("template that never opens", chat(CHATML.split("{% if")[0]), {}, "NO_GENERATION_PROMPT"),
    ("template with tags of transformers", chat("{% generation %}x{% endgeneration %}" + CHATML), {}, ""),
    ("template ends with eos_token", chat(CHATML.replace("<|im_end|>", "{{ eos_token }}")), {}, ""),
    ("turn end that is no token", chat(CHATML.replace("im_end", "eot_id")), {}, "EOS_TEMPLATE_MISMATCH"),
    ("plain template", chat("{{ messages[0].content }}{{ add_generation_prompt }}"), {}, ""),
    ("stop only in the config", config(eos_token_id=3) | {"generation_config.json": {}}, {}, ""),
    ("stop nowhere but the tokenizer", {"generation_config.json": {}}, {}, ""),
    ("stop in config is not the turn end", config(eos_token_id=2) | {"generation_config.json": {}}, {},
     "EOS_TEMPLATE_MISMATCH"),
    ("padding is the turn end", chat(pad_token="<|im_end|>"), {}, "PAD_IS_EOS"),
    ("padding id is the turn end", generation(pad_token_id=3), {}, "PAD_IS_EOS"),
    ("padding is another stop", generation(pad_token_id=2) | chat(pad_token="<|endoftext|>"), {}, ""),
    ("no probe ever stops", {}, {"probe_finish_reasons": ("length", "length")}, "NEVER_STOPS!"),
    ("one probe stops", {}, {"probe_finish_reasons": ("length", "stop")}, ""),
    ("no generation config", {"generation_config.json": None}, {}, "GENCFG_MISSING"),
    ("generation config is a list", {"generation_config.json": []}, {}, "GENCFG_UNREADABLE!"),
    ("negative temperature", generation(temperature=-0.1), {}, "GENCFG_INVALID_VALUE!"),
    ("no number as temperature", generation(temperature=float("nan")), {}, "GENCFG_INVALID_VALUE!"),
    ("sampling at zero", generation(do_sample=True, temperature=0.0), {}, "GENCFG_GREEDY_CONFLICT"),
    ("greedy at zero", generation(do_sample=False, temperature=0.0), {}, ""),
    ("true is no number", generation(top_k=True), {}, "GENCFG_INVALID_VALUE!"),
    ("top_k of minus five", generation(top_k=-5), {}, "GENCFG_INVALID_VALUE!"),
    ("no penalty", generation(repetition_penalty=1.0, do_sample=True, top_p=0.9), {}, ""),
    ("penalty of nothing", generation(repetition_penalty=0), {}, "GENCFG_INVALID_VALUE! GENCFG_REPETITION_PENALTY"),
    ("stop id as text", generation(eos_token_id="3"), {}, "GENCFG_INVALID_VALUE!"),
    ("enough new tokens", generation(max_new_tokens=64), {}, ""),
    ("old length without room for the prompt", generation(max_length=100), {"prompt_tokens": 40},
     "GENCFG_MAX_NEW_TOKENS_CAPS"),
    ("adapter tensors", stored(**EMBED, model__q__lora_A__weight=["BF16", [2, 8]]), {}, "ADAPTER_KEYS_IN_WEIGHTS!"),
    ("adapter beside a model", {"adapter_config.json": {}}, {}, "ADAPTER_NOT_MERGED"),
    ("the weights of a known model", {}, {"all_tensors_equal_model": "X-Instruct"}, "IDENTITY_KNOWN_MODEL!"),
    ("another class", {}, {"architecture": "LlamaForCausalLM"}, "ARCH_MISMATCH!"),
    ("more layers", config(num_hidden_layers=3), {"base_config": CONFIG | {"num_hidden_layers": 2}}, "ARCH_MISMATCH!"),
    ("seeing with processor", config(**VISION) | {"preprocessor_config.json": {}}, {}, ""),
    ("seeing with new processor", config(**VISION) | {"processor_config.json": {"image_processor": {"a": 1}}}, {}, ""),
    ("a shard missing", split(["a"], ["b"], {"a": 0, "b": 1}) | {SHARDS[1]: None}, {}, "SHARD_MISSING!"),
    ("shards without index", split(["a"], ["b"], {}) | {"model.safetensors.index.json": None}, {}, "SHARD_MISSING!"),
    ("a damaged index", split(["a"], ["b"], {}) | {"model.safetensors.index.json": NOT_READ}, {}, "SHARD_MISSING!"),
    ("a misplaced tensor", split(["a"], ["b"], {"a": 1, "b": 1}), {}, "TENSOR_NOT_IN_SHARD! AMBIGUOUS_WEIGHTS"),
    ("a tensor nowhere", split(["a"], ["b"], {"a": 0, "b": 1, "c": 1}), {}, "TENSOR_NOT_IN_SHARD!"),
    ("a tensor twice", split(["a"], ["a", "b"], {"a": 0, "b": 1}), {}, "TENSOR_DUPLICATE!"),
    ("an index outside the folder", split(["a"], ["b"], {"a": 0, "b": 1}) | {
        "model.safetensors.index.json": {"weight_map": {"a": "../model.safetensors"}}}, {},
     "SHARD_MISSING! AMBIGUOUS_WEIGHTS"),
    ("an empty shard", split(["a"], ["b"], {"a": 0, "b": 1}) | {SHARDS[1]: {"$bytes": 0}}, {}, "HEADER_INCOMPLETE!"),
    ("old shards beside a single file", {SHARDS[0]: {"$safetensors": {"a": ["BF16", [8]]}}}, {}, "AMBIGUOUS_WEIGHTS!"),
    ("no weights", {"model.safetensors": None}, {}, "WEIGHTS_MISSING!"),
    ("stored as declared", config(dtype="float16") | stored(model__embed_tokens__weight=["F16", [32, 8]]), {}, ""),
    ("stored otherwise", stored(model__embed_tokens__weight=["F16", [32, 8]]), {}, "DTYPE_MISMATCH"),
    ("stored at twice the size", stored(model__embed_tokens__weight=["F32", [32, 8]]), {}, "DTYPE_F32 DTYPE_MISMATCH"),
    ("a norm of its own type", stored(**EMBED, model__norm__weight=["F32", [8]]), {}, ""),
    ("rows against the config", config(vocab_size=40), {}, "VOCAB_CONFIG_MISMATCH!"),
    ("an unreadable tokenizer", {"tokenizer.json": NOT_READ}, {}, "TOKENIZER_UNREADABLE!"),
    ("a tokenizer of pieces", {"tokenizer.json": {"model": {"vocab": [["a", -1.0]] * 40}}}, {}, "VOCAB_TOO_SMALL!"),
    ("added tokens beside the tokenizer", {"added_tokens.json": {"<x>": 32}}, {}, "VOCAB_TOO_SMALL!"),
    ("sentencepiece only", {"tokenizer.json": None, "tokenizer.model": {"$bytes": 9}}, {}, ""),
    ("rope by its old name", config(rope_scaling={"type": "linear", "factor": 2.0}), {}, ""),
    ("rope of an unknown type", config(rope_scaling={"rope_type": "spiral", "factor": 2.0}), {}, "ROPE_INVALID!"),
    ("rope with text", config(rope_scaling={"rope_type": "linear", "factor": "2"}), {}, "ROPE_INVALID!"),
    ("rope that is text", config(rope_scaling="yarn"), {}, "ROPE_INVALID!"),
    ("rope without its frequencies", config(rope_scaling={"rope_type": "llama3", "factor": 8.0}), {}, "ROPE_INVALID!"),
    ("rope as new versions write it", config(rope_theta=..., rope_parameters=NEW_ROPE),
     BASE_CONFIG | {"reader_schema": "rope_parameters"}, ""),
    ("rope for layers of two kinds", config(rope_theta=..., rope_parameters={
        "full_attention": NEW_ROPE,
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}), BASE_CONFIG, ""),
    ("rope that an old reader misses", config(rope_theta=..., rope_parameters=NEW_ROPE),
     {"reader_schema": "rope_theta"}, "ROPE_THETA_LOST!"),
    ("theta gone", config(rope_theta=...), BASE_CONFIG, "ROPE_THETA_LOST!"),
    ("context for the reply alone", config(max_position_embeddings=64), {}, "CONTEXT_TOO_SMALL!"),
    ("context without the prompt", {}, {"need_tokens": 500, "prompt_tokens": 100}, "CONTEXT_TOO_SMALL!"),
    ("context that is stretched", config(max_position_embeddings=64, rope_scaling={"rope_type": "yarn", "factor": 2.0}),
     {}, ""),
    ("code asked for by the tokenizer", chat(auto_map={"AutoTokenizer": ["x.X", None]}), {}, "REMOTE_CODE!"),
    ("code that nobody asks for", {"modeling_x.py": {"$raw": ""}}, {}, "REMOTE_CODE"),
    ("an innocent script", {"train.py": {"$raw": ""}}, {}, ""),
    ("no config", {"config.json": None}, {}, "CONFIG_MISSING!"),
    ("a config that is damaged", {"config.json": NOT_READ}, {}, "CONFIG_UNREADABLE!"),
    ("a config that says it twice", {"config.json": {"$raw": '{"a": 1, "a": 2}'}}, {}, "CONFIG_UNREADABLE!"),
    ("a trainer's state", {"optimizer.pt": {"$bytes": 9}, "training_args.bin": {"$bytes": 9}}, {}, ""),
    ("only a trainer's state", {"optimizer.pt": {"$bytes": 9}, "model.safetensors": None}, {}, "WEIGHTS_MISSING!"),
    ("weights that are a link to nowhere", {"model.safetensors": {"$symlink": "../blobs/0"}}, {}, "DANGLING_LINK!"),
    ("a link to nowhere", {"vocab.txt": {"$symlink": "gone"}}, {}, "DANGLING_LINK!"),
    ("a link to the outside", {"notes": {"$symlink": "/etc/passwd"}}, {}, "DANGLING_LINK!"),
    ("a link inside", {"notes": {"$symlink": "config.json"}}, {}, ""),
    ("a link in a circle", {"notes": {"$symlink": "notes"}}, {}, "DANGLING_LINK!"),
    ("weights that are packed", config(quantization_config={"quant_method": "gptq"}) | stored(
        **EMBED, model__q__qweight=["I32", [2, 8]]), {}, ""),
)  # fmt: skip
"""What is changed in a good checkpoint, what is known beside it, the codes; `!` marks the fatal ones."""


@pytest.mark.parametrize(("changes", "known", "wanted"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_each_kind_of_fault_is_told_and_its_neighbours_are_not(
    tmp_path: Path, changes: dict[str, Any], known: dict[str, Any], wanted: str
) -> None:
    """A change of a good checkpoint gives exactly the codes that belong to it."""
    files = {name: value for name, value in (GOOD | changes).items() if value is not None}
    report = examine(put(tmp_path, files), Context(**({"need_tokens": 64} | known)))
    told = {fault.code + "!" * (fault.severity == "fatal") for fault in report.faults}
    assert told == set(wanted.split()), report.faults


def test_the_model_s_class_is_taken_from_its_definition(tmp_path: Path) -> None:
    """`audit` compares with the class of the model's definition and counts tensors and parameters."""
    report = audit(put(tmp_path, GOOD), samples.MODEL)
    assert (report.severity, report.tensors, report.parameters) == ("ok", 1, 256)
    other = replace(samples.MODEL, architecture="LlamaForCausalLM")
    assert codes(audit(tmp_path, other)) == {"ARCH_MISMATCH"}
