"""Which files a reader loads as weights, whether they are all there, and whether they are what the config says.

Rules K1, K5, K8, K9, K10, K14 of the acceptance cases. Pickles are never opened.
Not covered: whether the tensors are all that the architecture needs; loading tells (`measure`).
"""

from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

from prill.checkpoint.context import Context
from prill.checkpoint.documents import fault, printable
from prill.checkpoint.tensors import Shard, Tensor
from prill.checkpoint.view import INDEX, SINGLE, View
from prill.record import Fault

PICKLES = ("pytorch_model*.bin", "pytorch_model*.bin.index.json", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")
STATE = ("optimizer*", "scheduler*", "scaler*", "rng_state*", "training_args*")
"""Pickles of a trainer's state: no weights, and nobody loads them."""
ADAPTER = "adapter_config.json"
ADAPTER_FILES = ("adapter_model*.safetensors", "adapter_model*.bin")
ADAPTER_KEYS = ("lora_A", "lora_B", "lora_embedding_", "lora_magnitude", ".base_layer.", "base_model.model.")
STATED = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64"}
FLOATS = frozenset(STATED.values())
PACKED = ("I8", "U8", "I32", "U32", "F8_E4M3", "F8_E5M2", "F4")
PACKED_NAMES = ("qweight", "absmax", "quant_state", "weight_scale", "qzeros", "weight_packed")
TOLD = 3
"""Names that are quoted; the rest is counted."""


def loaded(view: View) -> list[Shard]:
    """The files that make up the model, as far as they can be read: the single file, else what the index names."""
    if SINGLE in view.files:
        names = [SINGLE]
    else:
        names = sorted(set(placed(view).values()))
    return [shard for name in names if (shard := view.shards.get(name))]


def placed(view: View) -> dict[str, str]:
    """Tensor → file by the index; empty where there is no usable one."""
    places = view.json(INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
        return {}
    return places


def structure(view: View) -> Iterator[Fault]:
    """Whether the weight files are there, whole and unambiguous."""
    yield from presence(view)
    if INDEX in view.files:
        yield from index(view)
    used = {SINGLE, *placed(view).values()} & set(view.files)
    for name in sorted(used):
        yield from view.broken.get(name, ())


def faults(view: View, context: Context) -> Iterator[Fault]:
    """All of this file's rules."""
    yield from structure(view)
    tensors = [tensor for shard in loaded(view) for tensor in shard.tensors]
    if tensors:
        yield from names(view, tensors)
        yield from dtypes(view, tensors)
    if context.all_tensors_equal_base:
        why = "every tensor equals the base model's: nothing was trained, or an adapter was not merged"
        yield fault("WEIGHTS_IDENTICAL_TO_BASE", why, fatal=False)
    if context.all_tensors_equal_model:
        name = context.all_tensors_equal_model
        known = "a known model" if name is True else printable(name)
        yield fault("IDENTITY_KNOWN_MODEL", f"every tensor equals {known}'s; submit what you trained from the base")


def only_adapter(view: View) -> bool:
    """Whether there is an adapter and no model."""
    adapter = ADAPTER in view.files or any(alike(name, ADAPTER_FILES) for name in view.files)
    return adapter and SINGLE not in view.files and INDEX not in view.files and not sharded(view)


def alike(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name fits one of the patterns."""
    return any(fnmatch(name, pattern) for pattern in patterns)


def sharded(view: View) -> list[str]:
    """Numbered weight files at the top."""
    return sorted(name for name in view.files if fnmatch(name, "model-*-of-*.safetensors"))


def presence(view: View) -> Iterator[Fault]:
    """Is there exactly one set of weights?"""
    pickles = sorted(name for name in view.files if alike(name, PICKLES) and not alike(name, STATE))
    single, indexed, numbered = SINGLE in view.files, INDEX in view.files, sharded(view)
    if single and (indexed or numbered):
        rest = INDEX if indexed else numbered[0]
        why = f"{SINGLE} and {rest} are both there, and readers disagree on which to load; keep one of them"
        yield fault("AMBIGUOUS_WEIGHTS", why)
    elif not single and not indexed and numbered:
        why = f"{quoted(numbered)} without {INDEX}, so nothing says what belongs together; save the model again"
        yield fault("SHARD_MISSING", why)
    elif not single and not indexed and pickles:
        why = f"the only weights are pickles ({quoted(pickles)}), which are never loaded; save as safetensors"
        yield fault("PICKLE_WEIGHTS", why)
    elif not single and not indexed and not {SINGLE, INDEX} & set(view.astray):
        yield fault("WEIGHTS_MISSING", f"neither {SINGLE} nor {INDEX} is there; save the model into this folder")
    weighted = [name for name in pickles if fnmatch(name, "pytorch_model*")]
    if weighted and (single or indexed):
        why = f"{quoted(weighted)} beside safetensors: most readers load the safetensors; remove the pickles"
        yield fault("AMBIGUOUS_WEIGHTS", why, fatal=False)
    if ADAPTER in view.files and (single or indexed):
        why = f"{ADAPTER} beside full weights: some readers then load the adapter's own base; remove it if it is merged"
        yield fault("ADAPTER_NOT_MERGED", why, fatal=False)
    places = set(placed(view).values())
    stray = [name for name in numbered if places and name not in places]
    if stray and not single:
        why = f"{quoted(stray)} is not named by {INDEX}: left from an earlier save; remove it"
        yield fault("AMBIGUOUS_WEIGHTS", why, fatal=False)


def index(view: View) -> Iterator[Fault]:
    """The index against the files that it names."""
    places = placed(view)
    document = view.documents.get(INDEX)
    if not places or document is None:
        why = (document.why if document else "") or "it has no weight_map of names"
        yield fault("SHARD_MISSING", f"{INDEX}: {why}; save the model again")
        return
    absent = sorted(set(places.values()) - set(view.shards) - set(view.astray))
    if absent:
        yield fault("SHARD_MISSING", f"{INDEX} names {quoted(absent)}, which is not there; copy or save it again")
    shards = {name: shard for name in set(places.values()) if (shard := view.shards.get(name))}
    holds: dict[str, list[str]] = {}
    for name in sorted(shards):
        for tensor in shards[name].tensors:
            holds.setdefault(tensor.name, []).append(name)
    lost = sorted(name for name, place in places.items() if place in shards and place not in holds.get(name, ()))
    if lost:
        yield fault("TENSOR_NOT_IN_SHARD", f"{INDEX} places {quoted(lost)} where it is not; save the model again")
    unknown = sorted(name for name in holds if name not in places)
    if unknown:
        why = f"{quoted(unknown)} is stored, but {INDEX} does not name it: readers leave it out; save the model again"
        yield fault("TENSOR_NOT_IN_INDEX", why, fatal=False)
    twice = sorted(name for name, files in holds.items() if len(files) > 1)
    if twice:
        why = f"{quoted(twice)} is stored in several files, and readers disagree on which counts; save it once"
        yield fault("TENSOR_DUPLICATE", why)
    metadata = view.json(INDEX).get("metadata")
    stated = metadata.get("total_size") if isinstance(metadata, dict) else None
    stored = sum(tensor.end - tensor.begin for shard in shards.values() for tensor in shard.tensors)
    whole = not absent and not lost and not twice and len(shards) == len(set(places.values()))
    if whole and stated is not None and stated != stored:
        why = f"{INDEX} says total_size {printable(str(stated), 40)}, the tensors take {stored} bytes; save it again"
        yield fault("INDEX_TOTAL_SIZE", why, fatal=False)


def names(view: View, tensors: list[Tensor]) -> Iterator[Fault]:
    """Tensors that the architecture does not read, or misses."""
    adapters = sorted(tensor.name for tensor in tensors if any(key in tensor.name for key in ADAPTER_KEYS))
    if adapters:
        why = f"{quoted(adapters)} belongs to an adapter that is not merged; merge it (merge_and_unload) and save"
        yield fault("ADAPTER_KEYS_IN_WEIGHTS", why)
    config = view.json("config.json")
    ties = field(config, "tie_word_embeddings")
    head = any(tensor.name.endswith("lm_head.weight") for tensor in tensors)
    if ties is True and head:
        why = "lm_head.weight is stored, but the config ties it to the embedding: readers drop it; untie it or leave it"
        yield fault("LM_HEAD_IGNORED", why, fatal=False)
    if ties is False and not head and generative(config):
        why = "the config says that lm_head is not tied to the embedding, but no lm_head.weight is stored; save it"
        yield fault("LM_HEAD_MISSING", why)


def generative(config: dict[str, Any]) -> bool:
    """Whether the class is one that has an `lm_head`."""
    classes = config.get("architectures")
    return isinstance(classes, list) and any(
        isinstance(name, str) and name.endswith(("ForCausalLM", "ForConditionalGeneration")) for name in classes
    )


def field(config: dict[str, Any], name: str) -> Any:
    """A setting of the language model: of `text_config` where it is there, else of the config itself."""
    text = config.get("text_config")
    if isinstance(text, dict) and text.get(name) is not None:
        return text[name]
    return config.get(name)


def dtypes(view: View, tensors: list[Tensor]) -> Iterator[Fault]:
    """What the numbers are stored as, against what the config says."""
    config = view.json("config.json")
    stored: dict[str, int] = {}
    for tensor in tensors:
        stored[tensor.dtype] = stored.get(tensor.dtype, 0) + tensor.count
    most = max(stored, key=lambda dtype: stored[dtype])
    packed = any(dtype in stored for dtype in PACKED) or any(
        mark in tensor.name for tensor in tensors for mark in PACKED_NAMES
    )
    quantised = field(config, "quantization_config")
    if quantised is not None and quantised != {} and not packed:
        why = f"config.json has a quantization_config, but the tensors are plain {most}: they would be read as packed"
        yield fault("QUANT_LEFTOVER", f"{why}; remove it from the config")
    if most in ("F32", "F64"):
        why = f"stored as {most}: twice the size, and a server may cast to float16, which overflows; save as bfloat16"
        yield fault("DTYPE_F32", why, fatal=False)
    declared = field(config, "dtype") or field(config, "torch_dtype")
    dtype = STATED.get(declared.removeprefix("torch.")) if isinstance(declared, str) else None
    other = sorted({t.dtype for t in tensors if len(t.shape) > 1 and t.dtype in FLOATS and t.dtype != dtype})
    if dtype and other and not packed:
        why = f"config.json says {dtype}, but matrices are stored as {', '.join(other)}; save the model again"
        yield fault("DTYPE_MISMATCH", why, fatal=False)


def quoted(names: list[str]) -> str:
    """The first names, and how many more there are."""
    told = ", ".join(printable(name, 80) for name in names[:TOLD])
    return told if len(names) <= TOLD else f"{told} and {len(names) - TOLD} more"
