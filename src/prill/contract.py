"""The decoding contract: what decides a reply besides the weights, settled from files before the first request.

Template, stop tokens, sampling, lengths: each as the engine will *really* apply it, which is not what the files say.
Sources: transformers 5.24 (`cli/serving`, `generation/continuous_batching`), vLLM 0.32 (`--generation-config auto`),
both read and tried; rules K2, K3, K4, K13, K15. The codes are those of the audit, which looks at the same files more
closely; here they are asked one question: can this benchmark be put to this submission with this engine?
Templates are parsed, never run. Not covered: whether a model has learnt to stop, and prompts longer than was told.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import msgspec

from prill.record import Contract, Fault
from prill.spec import Benchmark

FILES = ("config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json", "chat_template.jinja")
"""What `resolve` reads of a model folder; any of them may be missing."""
LARGEST_BYTES = 64 << 20
"""Of one file. The stage reads no further, and what is longer counts as unreadable."""
FAMILIES = {"gemma": "gemma", "llama": "llama", "qwen": "qwen", "smollm": "smollm"}
"""How a class name in `config.json` begins → the family; never a path (K15)."""
TOO_SHORT = "MAX_TOKENS_TOO_SMALL"
SHORT_REPLY = 16
"""Fewer new tokens than this hold no answer to anything that is asked here."""
DROPPED_BY_TRANSFORMERS = {
    "repetition_penalty": 1.0, "min_p": None, "typical_p": 1.0, "no_repeat_ngram_size": 0, "bad_words_ids": None,
    "num_beams": 1, "max_new_tokens": None, "max_length": None, "eta_cutoff": 0.0, "epsilon_cutoff": 0.0,
}  # fmt: skip
"""Setting → the value at which it does nothing. Continuous batching drops these, or nothing hands them to it."""
APPLIED_BY_VLLM = ("top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
UNCERTAIN_SERVERS = ("endpoint", "canned", "package")
"""Engines whose server did not get these files from us: nothing is known but what each request says."""


def resolve(
    files: Mapping[str, bytes],
    benchmark: Benchmark,
    engine: str,
    *,
    template: str | None = None,
    prompt_tokens: int = 0,
) -> Contract:
    """The contract of one benchmark, one submission and one engine. Total: what is wrong is among its `faults`.

    `files` are the contents of `FILES`; `template` is a chat template instead of the one that the benchmark prescribes
    for the family; `prompt_tokens` is the longest prompt, where it has been counted.
    """
    faults: list[Fault] = []
    chat = benchmark.ask == "chat"
    known = {name: document(files, name, faults) for name in FILES if name.endswith(".json")}
    config, generation = known["config.json"], known["generation_config.json"]
    template = prescribed(benchmark, config, faults) if template is None else template
    used = suite_or_own(files, known["tokenizer_config.json"], template)
    tokens = token_texts(known["tokenizer.json"], known["tokenizer_config.json"])
    stops = stop_ids(known, tokens, engine, "generation_config.json" in files)
    sampling, ignored = sampled(generation, benchmark, engine)
    context = window(config)
    most = longest_reply(benchmark, context, prompt_tokens)
    faults += unusable_values(generation)
    faults += template_faults(used, chat)
    faults += stop_faults(stops, tokens, used if chat else None, known["tokenizer_config.json"], engine)
    faults += length_faults(generation, benchmark, context, prompt_tokens)
    faults += greedy_faults(generation, benchmark, engine)
    if engine in UNCERTAIN_SERVERS:  # it does not read these files, so nothing that stands there is wrong
        faults = [found for found in faults if found.code == TOO_SHORT]
    return Contract(
        engine=engine,
        chat=chat,
        family=family(config),
        template=None if used is None or not chat else "submission" if template is None else "suite",
        template_sha256=hashlib.sha256(used.encode()).hexdigest() if used is not None and chat else None,
        suite_template=template if chat else None,
        stop_ids=stops,
        stop_tokens=tuple(tokens.get(each, f"id {each}") for each in stops),
        context=context,
        max_tokens=most,
        sampling=sampling,
        greedy=sampling.get("temperature") == 0,
        ignored=tuple(ignored),
        tools=benchmark.grader == "function_call",
        faults=tuple(faults),
    )


def fatal(contract: Contract) -> list[Fault]:
    """The faults under which requests cannot work."""
    return [fault for fault in contract.faults if fault.severity == "fatal"]


def broken(contract: Contract, base: Contract) -> str:
    """Why requests under this contract cannot work, in words; empty where they can, or where the base's cannot either.

    What is wrong with the base model in the same way is the suite's doing and nobody's fault here.
    """
    shared = {fault.code for fault in fatal(base)}
    return "; ".join(f"{fault.code}: {fault.why}" for fault in fatal(contract) if fault.code not in shared)


def started_alike(contracts: Sequence[Contract]) -> list[list[Contract]]:
    """Contracts in groups that one server can keep: what is settled when it starts is the same."""
    groups: dict[str, list[Contract]] = {}
    for contract in contracts:
        fixed: list[Any] = [contract.engine, contract.suite_template, contract.tools]
        if contract.engine == "transformers":  # it decodes all requests as its generation_config.json says
            fixed.append(contract.sampling)
        groups.setdefault(repr(fixed), []).append(contract)
    return list(groups.values())


# --- what the files say ------------------------------------------------------------------------------------


def document(files: Mapping[str, bytes], name: str, faults: list[Fault]) -> dict[str, Any]:
    """A JSON object; empty beside a fault where there is none, and silently where nobody needs the file."""
    code = {"config.json": "CONFIG", "generation_config.json": "GENCFG", "tokenizer.json": "TOKENIZER"}.get(name)
    if name not in files:
        if code in ("CONFIG", "TOKENIZER"):
            faults.append(fault(f"{code}_MISSING", f"no {name}; save it beside the weights"))
        return {}
    try:
        value = msgspec.json.decode(files[name])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        value = error
    if isinstance(value, dict) and len(files[name]) <= LARGEST_BYTES:
        return value
    why = str(value)[:200] if isinstance(value, Exception) else "not a JSON object of bearable size"
    faults.append(fault(f"{code}_UNREADABLE" if code else "CHAT_TEMPLATE_INVALID", f"{name}: {why}; save it again"))
    return {}


def fault(code: str, why: str, *, fatal: bool = True) -> Fault:
    """A fault whose words stay on one line."""
    plain = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in why[:400])
    return Fault(code=code, why=plain, severity="fatal" if fatal else "warning")


def family(config: Mapping[str, Any]) -> str | None:
    """The family of an architecture; `None` for one that is not known, never a guess (K15)."""
    named = config.get("architectures")
    first = named[0].lower() if isinstance(named, list) and named and isinstance(named[0], str) else ""
    return next((FAMILIES[start] for start in FAMILIES if first.startswith(start)), None)


def prescribed(benchmark: Benchmark, config: Mapping[str, Any], faults: list[Fault]) -> str | None:
    """The chat template that is put in place of the submission's; beside a fault where its family has none (K15)."""
    if not benchmark.templates or benchmark.ask != "chat":
        return None
    found = benchmark.templates.get(family(config) or "")
    if found is None:
        known = ", ".join(sorted(benchmark.templates))
        why = f"chat templates are prescribed for {known}, and architectures is {short(config.get('architectures'))}"
        faults.append(fault("NO_TEMPLATE_FOR_FAMILY", f"{why}: keep the base model's"))
    return found


def suite_or_own(files: Mapping[str, bytes], tokenizer: Mapping[str, Any], template: str | None) -> str | None:
    """The chat template that will be used: the suite's, else `chat_template.jinja`, else the tokenizer's."""
    if template is not None:
        return template
    if "chat_template.jinja" in files:
        return files["chat_template.jinja"].decode(errors="replace")
    stated = tokenizer.get("chat_template")
    if isinstance(stated, list):
        named = {each.get("name"): each.get("template") for each in stated if isinstance(each, dict)}
        stated = named.get("default")
    return stated if isinstance(stated, str) else None


def token_texts(tokenizer: Mapping[str, Any], about: Mapping[str, Any]) -> dict[int, str]:
    """Token id → text, for the vocabulary and what was added to it. Empty where no file tells."""
    texts: dict[int, str] = {}
    model = tokenizer.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, dict):
        texts |= {number: text for text, number in vocabulary.items() if whole(number)}
    elif isinstance(vocabulary, list):
        texts |= {at: str(each[0]) for at, each in enumerate(vocabulary) if isinstance(each, list) and each}
    added = tokenizer.get("added_tokens")
    for each in added if isinstance(added, list) else ():
        if isinstance(each, dict) and whole(each.get("id")):
            texts[each["id"]] = str(each.get("content"))
    decoder = about.get("added_tokens_decoder")
    for key, each in decoder.items() if isinstance(decoder, dict) else ():
        if isinstance(each, dict) and key.isdecimal() and len(key) < 10:
            texts[int(key)] = str(each.get("content"))
    return texts


def whole(value: Any) -> TypeGuard[int]:
    """A whole number from 0, and not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def finite(value: Any) -> TypeGuard[float]:
    """A number, neither endless nor a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def eos_ids(config: Mapping[str, Any]) -> tuple[int, ...]:
    """`eos_token_id` of a config or of its text part: one id, several, or none."""
    inner = config.get("text_config")
    stated = config.get("eos_token_id")
    if stated is None and isinstance(inner, dict):
        stated = inner.get("eos_token_id")
    return tuple(each for each in (stated if isinstance(stated, list) else [stated]) if whole(each))


def window(config: Mapping[str, Any]) -> int | None:
    """`max_position_embeddings`, of the text part where a model has several."""
    inner = config.get("text_config")
    stated = config.get("max_position_embeddings")
    if stated is None and isinstance(inner, dict):
        stated = inner.get("max_position_embeddings")
    return stated if whole(stated) else None


# --- what the engine makes of it ---------------------------------------------------------------------------


def stop_ids(
    known: Mapping[str, Mapping[str, Any]], tokens: Mapping[int, str], engine: str, has_generation: bool
) -> tuple[int, ...]:
    """The ids at which a reply ends.

    transformers: those of `generation_config.json`, of `config.json` only where that file is missing. vLLM: the
    tokenizer's `eos_token` and those of `generation_config.json`.
    """
    generation, config = eos_ids(known["generation_config.json"]), eos_ids(known["config.json"])
    if engine == "transformers":
        return generation if has_generation else config
    stated = known["tokenizer_config.json"].get("eos_token")
    eos = stated.get("content") if isinstance(stated, dict) else stated
    own = [number for number, text in tokens.items() if text == eos]
    return tuple(dict.fromkeys([*own[:1], *(generation or (() if has_generation else config))]))


def sampled(generation: Mapping[str, Any], benchmark: Benchmark, engine: str) -> tuple[dict[str, Any], list[str]]:
    """What is applied, by name, and what is not, each with why. The benchmark's own settings win everywhere."""
    fixed = {"temperature": benchmark.sampling.temperature, "top_p": benchmark.sampling.top_p}
    own = {name: value for name, value in generation.items() if finite(value)}
    ignored: list[str] = []
    names: tuple[str, ...] = ("top_k",)
    dropped: dict[str, Any] = DROPPED_BY_TRANSFORMERS
    if engine in UNCERTAIN_SERVERS:
        return {name: value for name, value in fixed.items() if value is not None}, [
            f"whatever {engine} does with settings that a request does not name is not known here"
        ]
    if engine == "transformers":
        temperature = own.get("temperature", 1.0) if generation.get("do_sample") is True else 0.0
        if benchmark.sampling.seed is not None or benchmark.seeds != (None,):
            ignored.append("seed: one generator serves all requests, so replies depend on what is asked beside them")
    else:
        temperature = own.get("temperature", 1.0)
        names = APPLIED_BY_VLLM
        dropped = {name: nothing for name, nothing in DROPPED_BY_TRANSFORMERS.items() if name not in names}
    sampling = {"temperature": temperature, "top_p": own.get("top_p", 1.0)}
    sampling |= {name: value for name, value in fixed.items() if value is not None}
    sampling |= {name: own[name] for name in names if name in own}
    for name, nothing in dropped.items():
        if generation.get(name) not in (None, nothing):
            ignored.append(f"{name} {short(generation[name])}: {engine} does not apply it")
    return sampling, ignored


def longest_reply(benchmark: Benchmark, context: int | None, prompt_tokens: int) -> int:
    """New tokens that a reply may have. A request's own number wins over `max_new_tokens`; the window cuts it."""
    most = benchmark.sampling.max_tokens
    return most if context is None else max(0, min(most, context - prompt_tokens))


# --- what cannot work --------------------------------------------------------------------------------------


def unusable_values(generation: Mapping[str, Any]) -> list[Fault]:
    """Settings that a server refuses to start with, or refuses each request for (K4)."""
    wrong = []
    for name, low, high in (("temperature", 0, math.inf), ("top_p", 0, 1), ("top_k", -1, math.inf), ("min_p", 0, 1)):
        value = generation.get(name)
        if value is not None and not (finite(value) and low <= value <= high and (name, value) != ("top_p", 0)):
            wrong.append(f"{name} is {short(value)}")
    if generation.get("do_sample") not in (None, True, False):
        wrong.append(f"do_sample is {short(generation['do_sample'])}")
    return [fault("GENCFG_INVALID_VALUE", f"generation_config.json: {'; '.join(wrong)}")] if wrong else []


def template_faults(template: str | None, chat: bool) -> list[Fault]:
    """No template, none that can be parsed, none that opens the model's turn (K2)."""
    from jinja2 import Environment, TemplateError, nodes

    if not chat:
        return []
    if template is None:
        return [fault("CHAT_TEMPLATE_MISSING", "chat requests need a chat template and the folder has none; save it")]
    environment = Environment(extensions=["jinja2.ext.loopcontrols"])
    text = template.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    text = text.replace("{%- generation %}", "").replace("{%- endgeneration %}", "")
    text = text.replace("{%- generation -%}", "").replace("{%- endgeneration -%}", "")
    try:
        tree = environment.parse(text)
    except (TemplateError, RecursionError) as error:
        return [fault("CHAT_TEMPLATE_INVALID", f"the chat template cannot be parsed ({error}); every request fails")]
    if "add_generation_prompt" in {node.name for node in tree.find_all(nodes.Name)}:
        return []
    why = "the chat template ignores add_generation_prompt: the model is not told that its turn begins"
    return [fault("NO_GENERATION_PROMPT", why, fatal=False)]


def stop_faults(
    stops: tuple[int, ...], tokens: Mapping[int, str], template: str | None, about: Mapping[str, Any], engine: str
) -> list[Fault]:
    """Replies that nothing ends, or that end at something else than a turn does (K3)."""
    if engine in UNCERTAIN_SERVERS or not tokens:
        return []
    if not stops:
        return [fault("NEVER_STOPS", f"{engine} finds no stop token: set eos_token_id in generation_config.json")]
    if not set(stops) & tokens.keys():
        why = f"replies would stop at {list(stops)[:8]}, which the tokenizer does not have: nothing ends a reply"
        return [fault("NEVER_STOPS", f"{why}; set eos_token_id in generation_config.json to the turn's end")]
    if template is None or any(tokens.get(each, "\0") in template for each in stops):
        return []
    stated = about.get("eos_token")
    eos = stated.get("content") if isinstance(stated, dict) else stated
    if "eos_token" in template and eos in {tokens.get(each) for each in stops}:
        return []
    why = f"the template writes none of the tokens at which replies stop ({[tokens.get(each) for each in stops][:4]})"
    return [fault("EOS_TEMPLATE_MISMATCH", f"{why}; add the turn's end to eos_token_id", fatal=False)]


def length_faults(
    generation: Mapping[str, Any], benchmark: Benchmark, context: int | None, prompt_tokens: int
) -> list[Fault]:
    """Windows that do not hold prompt and reply, and limits that other servers would take from the file (K4, K13)."""
    found, asked = [], benchmark.sampling.max_tokens
    for name in ("max_new_tokens", "max_length"):
        stated = generation.get(name)
        if whole(stated) and 0 < stated < asked + (prompt_tokens if name == "max_length" else 0):
            why = (
                f"generation_config.json: {name} {stated}; here requests say {asked} themselves, elsewhere it would cut"
            )
            found.append(fault("GENCFG_MAX_NEW_TOKENS_CAPS", f"{why} replies: remove it", fatal=False))
    if asked < SHORT_REPLY:
        found.append(fault(TOO_SHORT, f"{asked} new tokens hold no answer; the benchmark must allow more"))
    if context is not None and prompt_tokens + asked > context:
        refused = min((asked, *benchmark.sampling.ladder)) > context or prompt_tokens >= context
        prompt = f" beside {prompt_tokens} of prompt" if prompt_tokens else ""
        why = f"max_position_embeddings is {context}, and {asked} new tokens are asked for{prompt}"
        does = "fewer are tried" if asked > context else "replies are cut where the window ends"
        does = "the window must hold both" if refused else does
        found.append(fault("CONTEXT_TOO_SMALL", f"{why}; {does}", fatal=refused))
    return found


def greedy_faults(generation: Mapping[str, Any], benchmark: Benchmark, engine: str) -> list[Fault]:
    """`do_sample: false` beside sampling settings: vLLM samples, transformers does not (K4)."""
    plain = {"temperature": (0, 1), "top_p": (1,), "top_k": (0, -1, 50)}
    odd = [name for name, nothing in plain.items() if finite(value := generation.get(name)) and value not in nothing]
    if generation.get("do_sample") is not False or not odd:
        return []
    settled = benchmark.sampling.temperature is not None
    does = (
        "the benchmark's temperature counts"
        if settled
        else f"{engine} {'is greedy' if engine == 'transformers' else 'samples'}"
    )
    why = f"generation_config.json: do_sample is false beside {', '.join(odd)}; {does}; keep one of them"
    return [fault("GENCFG_GREEDY_CONFLICT", why, fatal=False)]


def short(value: Any) -> str:
    """A JSON value in few letters."""
    return ascii(value)[:40]
