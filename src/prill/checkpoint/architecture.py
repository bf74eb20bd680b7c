"""The config against the base model, the evaluation and the weights: class, shape, RoPE, context, vocabulary, files.

Rules K6, K7, K11, K12, K13, K14 of the acceptance cases.
"""

from collections.abc import Iterator
from typing import Any

from prill.checkpoint.context import Context
from prill.checkpoint.documents import fault, number, printable, whole
from prill.checkpoint.view import View
from prill.checkpoint.vocabulary import FILES, UNCOUNTED
from prill.checkpoint.weights import field, loaded, quoted
from prill.record import Fault

SHAPE = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "head_dim",
)  # fmt: skip
"""What training does not change. The vocabulary is left out: it may grow."""
ROPE_NEEDS = {
    "default": (),
    "mrope": (),
    "proportional": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "longrope": ("short_factor", "long_factor"),
    "su": ("short_factor", "long_factor"),
}
"""RoPE type → settings without which it cannot be computed (transformers' modeling_rope_utils)."""
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "tok_embeddings.weight", "embed_in.weight")
CODE = ("modeling_", "configuration_", "tokenization_", "processing_", "image_processing_")
OLD_THETA = 10_000.0
"""What a reader takes that finds no theta."""


def faults(view: View, context: Context) -> Iterator[Fault]:
    """All of this file's rules that need a config."""
    config = view.json("config.json")
    yield from code(view)
    yield from tokenizer(view)
    yield from identity(config, context)
    yield from processor(view, config)
    yield from rope(config, context)
    yield from window(config, context)
    yield from vocabulary(view, config)


def code(view: View) -> Iterator[Fault]:
    """Code of a submission is never run."""
    asks = [name for name in view.documents if view.json(name).get("auto_map")]
    if asks:
        why = (
            f"{quoted(sorted(asks))} has auto_map, which asks for code of the submission to be run; that is never done"
        )
        yield fault("REMOTE_CODE", f"{why}: remove it and use the architecture's own class")
        return
    files = sorted(name for name in view.files if name.endswith(".py") and name.startswith(CODE))
    if files:
        yield fault("REMOTE_CODE", f"{quoted(files)} is code that will not be run; remove it", fatal=False)


def tokenizer(view: View) -> Iterator[Fault]:
    """Is there one that can be read?"""
    if not any(name in view.files or name in view.astray for name in (*FILES, *UNCOUNTED)):
        yield fault("TOKENIZER_MISSING", "no tokenizer.json; save the tokenizer into the same folder")
    elif view.vocabulary_why:
        yield fault("TOKENIZER_UNREADABLE", f"{view.vocabulary_why}; save the tokenizer again")
    document = view.documents.get("tokenizer_config.json")
    if document is not None and document.value is None:
        yield fault("TOKENIZER_UNREADABLE", f"tokenizer_config.json: {document.why}; save the tokenizer again")


def identity(config: dict[str, Any], context: Context) -> Iterator[Fault]:
    """The same architecture as the base? The text part of a multimodal base is the same model."""
    base = context.base_config or {}
    wanted = base.get("architectures") or ([context.architecture] if context.architecture else [])
    found = config.get("architectures")
    classes = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    if wanted and not {stem(name) for name in classes} & {stem(name) for name in wanted}:
        why = f"the class is {quoted(classes) or 'not named'}, the base model's is {quoted(list(wanted))}"
        yield fault("ARCH_MISMATCH", f"{why}; submit a model made from the base")
        return
    kinds = [str(part.get("model_type") or "").removesuffix("_text") for part in (config, base)]
    if all(kinds) and kinds[0] != kinds[1]:
        yield fault("ARCH_MISMATCH", f"model_type is {printable(kinds[0], 40)!r}, the base model's is {kinds[1]!r}")
    for name in SHAPE:
        ours, theirs = field(config, name), field(base, name)
        if ours is not None and theirs is not None and ours != theirs:
            why = f"{name} is {printable(repr(ours), 40)}, the base model's is {theirs}"
            yield fault("ARCH_MISMATCH", f"{why}; submit a model made from the base")


def stem(name: str) -> str:
    """A class name without what it is for: the text-only and the multimodal class of a family share it."""
    return name.removesuffix("ForConditionalGeneration").removesuffix("ForCausalLM")


def processor(view: View, config: dict[str, Any]) -> Iterator[Fault]:
    """A multimodal class cannot be served without its image processor, even for text."""
    classes = config.get("architectures")
    seeing = isinstance(config.get("vision_config"), dict)
    named = [name for name in classes if isinstance(name, str)] if isinstance(classes, list) else []
    if not seeing or not any(name.endswith("ForConditionalGeneration") for name in named):
        return
    inside = view.json("processor_config.json").get("image_processor")
    if "preprocessor_config.json" not in view.files and not inside:
        why = f"{quoted(named[:1])} needs its processor files (preprocessor_config.json); copy them from the base"
        yield fault("PROCESSOR_MISSING", why)


def rope(config: dict[str, Any], context: Context) -> Iterator[Fault]:
    """Positions: settings that are complete, and theta as in the base."""
    for where, settings in rope_settings(config):
        why = incomplete(settings)
        if why:
            yield fault("ROPE_INVALID", f"config.json: {where} {why}; restore the base model's setting")
    theta, base = theta_of(config), theta_of(context.base_config or {})
    top = field(config, "rope_theta")
    if theta is not None and not (number(theta) and theta > 0):
        yield fault(
            "ROPE_INVALID", f"config.json: rope_theta is {printable(repr(theta), 40)}; it must be a number above 0"
        )
    elif context.reader_schema and old(context.reader_schema) and top is None and theta not in (None, OLD_THETA):
        why = f"theta {theta} stands in rope_parameters, where this engine does not look: it would take {OLD_THETA:.0f}"
        yield fault("ROPE_THETA_LOST", f"{why}; write rope_theta beside it")
    elif theta is None and base not in (None, OLD_THETA):
        why = f"config.json has no rope_theta, so readers take {OLD_THETA:.0f}; the base model's is {base}"
        yield fault("ROPE_THETA_LOST", f"{why}: write it")
    elif theta is not None and base is not None and theta != base:
        yield fault("ROPE_THETA_CHANGED", f"rope_theta is {theta}, the base model's is {base}; restore it")


def rope_settings(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(where, settings) for each RoPE block: the old `rope_scaling`, the new `rope_parameters`, one for each kind of
    layer where a model has several."""
    for name in ("rope_scaling", "rope_parameters"):
        block = field(config, name)
        if block is None:
            continue
        layers = list(block.items()) if isinstance(block, dict) else []
        if layers and all(isinstance(part, dict) for _, part in layers):
            yield from ((f"{name}.{printable(str(kind), 40)}", part) for kind, part in layers)
        else:
            yield name, block


def incomplete(settings: Any) -> str | None:
    """What is wrong with one block, or `None`."""
    if not isinstance(settings, dict):
        return "is no object"
    kind = settings.get("rope_type", settings.get("type"))
    if not isinstance(kind, str):
        return "names no rope_type"
    if kind not in ROPE_NEEDS:
        return f"has the unknown rope_type {printable(kind, 40)!r}"
    for name in ROPE_NEEDS[kind]:
        value = settings.get(name)
        if value is None:
            return f"of type {kind} has no {name}"
        if name in ("short_factor", "long_factor"):
            if not isinstance(value, list) or not all(number(part) for part in value):
                return f"has a {name} that is no list of numbers"
        elif not number(value) or value <= 0 or (name == "factor" and value < 1):
            return f"has the {name} {printable(repr(value), 40)}"
    return None


def theta_of(config: dict[str, Any]) -> Any:
    """The RoPE base frequency, wherever it stands; that of full attention where layers differ."""
    if field(config, "rope_theta") is not None:
        return field(config, "rope_theta")
    block = field(config, "rope_parameters")
    if not isinstance(block, dict):
        return None
    inner = block.get("full_attention")
    return inner.get("rope_theta") if isinstance(inner, dict) else block.get("rope_theta")


def old(schema: str) -> bool:
    """Whether a reader knows only a `rope_theta` of its own."""
    return not any(mark in schema.lower() for mark in ("parameters", "v5", "5.", "new"))


def window(config: dict[str, Any], context: Context) -> Iterator[Fault]:
    """Does the context hold a prompt and the longest reply?"""
    positions = field(config, "max_position_embeddings")
    if context.need_tokens is None or not whole(positions):
        return
    for name, block in rope_settings(config):
        kind = block.get("rope_type", block.get("type")) if isinstance(block, dict) else None
        if name.startswith("rope_") and kind in ("linear", "dynamic", "yarn") and incomplete(block) is None:
            original = block.get("original_max_position_embeddings")
            stretched = int((original if whole(original) else positions) * min(block["factor"], 1 << 20))
            positions = max(positions, stretched)
    prompt = max(context.prompt_tokens or 0, 1)
    if context.need_tokens + prompt > positions:
        why = f"max_position_embeddings is {positions}; the evaluation asks for {context.need_tokens} new tokens"
        yield fault("CONTEXT_TOO_SMALL", f"{why} behind prompts of up to {prompt}: restore the base model's")


def vocabulary(view: View, config: dict[str, Any]) -> Iterator[Fault]:
    """Rows of the embedding against the tokenizer and the config. More rows than tokens are normal: padding."""
    stated = field(config, "vocab_size")
    tables = [t for shard in loaded(view) for t in shard.tensors if t.name.endswith(EMBEDDINGS) and len(t.shape) == 2]
    rows = tables[0].shape[0] if tables else None
    if rows is not None and whole(stated) and stated != rows:
        why = f"vocab_size is {stated}, but {printable(tables[0].name)} has {rows} rows: it cannot be loaded"
        yield fault("VOCAB_CONFIG_MISMATCH", f"{why}; save model and config together")
    room = rows if rows is not None else stated if whole(stated) else None
    if room is not None and view.vocabulary is not None and view.vocabulary.needed > room:
        why = f"the tokenizer uses ids up to {view.vocabulary.needed - 1}, but the embedding has {room} rows"
        yield fault("VOCAB_TOO_SMALL", f"{why}; resize the embedding, or save the tokenizer that belongs to it")
