"""How a submission will be asked to write and when it stops: generation_config, stop tokens, chat template.

Servers take their defaults from the submission's `generation_config.json`, so what stands there decides the score.
Sources: rules K2, K3, K4 of the acceptance cases; value ranges as transformers 5 and vLLM check them.
"""

from collections.abc import Callable, Iterator
from typing import Any

from prill.checkpoint.context import Context
from prill.checkpoint.documents import fault, number, printable, whole
from prill.checkpoint.template import Template, read_template
from prill.checkpoint.view import LONGEST_TEMPLATE, View
from prill.checkpoint.vocabulary import Vocabulary
from prill.record import Fault

CONFIG = "generation_config.json"
RANGES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "do_sample": ("true or false", lambda value: isinstance(value, bool)),
    "temperature": ("a number from 0", lambda value: number(value) and value >= 0),
    "top_p": ("a number above 0, up to 1", lambda value: number(value) and 0 < value <= 1),
    "top_k": ("a whole number; 0 or -1 for all", lambda value: whole(value) and value >= -1),
    "min_p": ("a number from 0 to 1", lambda value: number(value) and 0 <= value <= 1),
    "typical_p": ("a number above 0, up to 1", lambda value: number(value) and 0 < value <= 1),
    "repetition_penalty": ("a number above 0", lambda value: number(value) and value > 0),
    "no_repeat_ngram_size": ("a whole number from 0", lambda value: whole(value) and value >= 0),
    "max_new_tokens": ("a whole number above 0", lambda value: whole(value) and value > 0),
    "max_length": ("a whole number above 0", lambda value: whole(value) and value > 0),
    "min_new_tokens": ("a whole number from 0", lambda value: whole(value) and value >= 0),
    "num_beams": ("a whole number above 0", lambda value: whole(value) and value > 0),
    "eos_token_id": ("a token id or a list of them", lambda value: ids_of(value) is not None),
    "pad_token_id": ("a token id", whole),
    "bos_token_id": ("a token id", whole),
}
"""Setting → what it must be, in words and as a test."""
DEFAULTS: dict[str, tuple[float, ...]] = {
    "temperature": (1.0,),
    "top_p": (1.0,),
    "top_k": (50, 0, -1),
    "min_p": (0.0,),
    "typical_p": (1.0,),
}
"""Sampling settings at which nothing is sampled otherwise than by default: no conflict with greedy decoding."""


def ids_of(value: Any) -> tuple[int, ...] | None:
    """Token ids as a config states them: one or a list; `None` where it is neither."""
    if whole(value):
        return (value,)
    if isinstance(value, list) and value and all(whole(each) for each in value):
        return tuple(value)
    return None


def faults(view: View, context: Context) -> Iterator[Fault]:
    """All of this file's rules."""
    yield from settings(view, context)
    template, conflict = chosen_template(view)
    yield from conflict
    if template is not None:
        yield from chat(view, template)
    if context.probe_finish_reasons and set(context.probe_finish_reasons) == {"length"}:
        why = f"none of {len(context.probe_finish_reasons)} probe replies ended by itself; train on the turn's end"
        yield fault("NEVER_STOPS", why)


def settings(view: View, context: Context) -> Iterator[Fault]:
    """generation_config.json by itself."""
    document = view.documents.get(CONFIG)
    if document is None and CONFIG in view.astray:
        return
    if document is None:
        why = f"no {CONFIG}: servers then sample with their own defaults; save one with the settings you tested"
        yield fault("GENCFG_MISSING", why, fatal=False)
        return
    if document.value is None:
        yield fault("GENCFG_UNREADABLE", f"{CONFIG}: {document.why}; save it again")
        return
    config = document.value
    for name, (allowed, fits) in RANGES.items():
        value = config.get(name)
        if value is not None and not fits(value):
            yield fault("GENCFG_INVALID_VALUE", f"{CONFIG}: {name} is {short(value)}; it must be {allowed}")
    yield from conflicts(config)
    yield from caps(config, context)


def conflicts(config: dict[str, Any]) -> Iterator[Fault]:
    """Settings that say one thing to one reader and another to the next, or change answers silently."""
    if config.get("do_sample") is False:
        odd = [f"{name} {short(config[name])}" for name, plain in DEFAULTS.items() if samples(config, name, plain)]
        if odd:
            why = f"{CONFIG}: do_sample is false beside {', '.join(odd)}; servers sample all the same: drop one of them"
            yield fault("GENCFG_GREEDY_CONFLICT", why, fatal=False)
    if config.get("do_sample") is True and number(config.get("temperature")) and config["temperature"] == 0:
        why = f"{CONFIG}: do_sample is true beside temperature 0: vLLM is then greedy, transformers refuses"
        yield fault("GENCFG_GREEDY_CONFLICT", f"{why}; set do_sample to false", fatal=False)
    for name, plain in (("repetition_penalty", 1.0), ("no_repeat_ngram_size", 0)):
        if number(config.get(name)) and config[name] != plain:
            why = f"{CONFIG}: {name} {short(config[name])} changes every reply, also in mathematics and code"
            yield fault("GENCFG_REPETITION_PENALTY", f"{why}; remove it unless you measured it", fatal=False)


def samples(config: dict[str, Any], name: str, plain: tuple[float, ...]) -> bool:
    """Whether a setting asks for sampling of its own; temperature 0 is greedy too."""
    value = config.get(name)
    return number(value) and value not in plain and not (name == "temperature" and value == 0)


def caps(config: dict[str, Any], context: Context) -> Iterator[Fault]:
    """Limits on a reply's length that a server would take over."""
    prompt = context.prompt_tokens or 0
    for name, needed in (("max_new_tokens", 0), ("max_length", prompt)):
        value = config.get(name)
        if whole(value) and value > 0 and (context.need_tokens is None or value < context.need_tokens + needed):
            asked = "" if context.need_tokens is None else f", the evaluation asks for {context.need_tokens}"
            why = f"{CONFIG}: {name} {value} cuts every reply there{asked}; remove it"
            yield fault("GENCFG_MAX_NEW_TOKENS_CAPS", why, fatal=False)


def chosen_template(view: View) -> tuple[str | None, list[Fault]]:
    """The template that a reader uses, and what is odd about where it stands."""
    config = view.json("tokenizer_config.json")
    stated = config.get("chat_template")
    if isinstance(stated, list):
        named = {
            e.get("name"): e.get("template") for e in stated if isinstance(e, dict) and isinstance(e.get("name"), str)
        }
        stated = named.get("default", next(iter(named.values()), None))
    if stated is None:
        stated = view.json("chat_template.json").get("chat_template")
    if view.template_why:
        return None, [fault("CHAT_TEMPLATE_INVALID", f"chat_template.jinja: {view.template_why}")]
    if view.template is not None:
        differs = isinstance(stated, str) and stated.strip() != view.template.strip()
        why = "chat_template.jinja and tokenizer_config.json hold different templates; the file wins: keep one"
        return view.template, [fault("CHAT_TEMPLATE_CONFLICT", why, fatal=False)] if differs else []
    if stated is None:
        why = "no chat template in tokenizer_config.json or chat_template.jinja: chat requests need one; save it"
        return None, [fault("CHAT_TEMPLATE_MISSING", why, fatal=False)]
    if not isinstance(stated, str):
        return None, [fault("CHAT_TEMPLATE_INVALID", "chat_template in tokenizer_config.json is no text")]
    if len(stated) > LONGEST_TEMPLATE:
        return None, [fault("CHAT_TEMPLATE_INVALID", f"the chat template is longer than {LONGEST_TEMPLATE} letters")]
    return stated, []


def chat(view: View, text: str) -> Iterator[Fault]:
    """The template, and whether what ends its turns also ends a reply."""
    vocabulary = view.vocabulary
    tokens: set[str] = set()
    if vocabulary is not None:
        stop = stopping(view, vocabulary)
        tokens = {token for token, number in vocabulary.ids.items() if number in stop} | vocabulary.special
    template = read_template(text, frozenset(tokens))
    if template.why:
        yield fault("CHAT_TEMPLATE_INVALID", f"the chat template cannot be used: {template.why}; chat requests fail")
        return
    if not template.opens:
        why = "the chat template ignores add_generation_prompt: the model is not told that its turn begins"
        yield fault("NO_GENERATION_PROMPT", why, fatal=False)
    if vocabulary is not None:
        yield from stops(view, vocabulary, template)


def stops(view: View, vocabulary: Vocabulary, template: Template) -> Iterator[Fault]:
    """Turn ends, stop ids and padding against each other. Where no known token ends a turn, nothing can be said."""
    ids, config = vocabulary.ids, view.json("tokenizer_config.json")
    eos, pad = (content(config.get(name)) for name in ("eos_token", "pad_token"))
    written = [end or eos or "" for end in template.ends]
    stop = stopping(view, vocabulary)
    turn = template.turn if template.turn != "" else eos
    if written and not stop & {ids[token] for token in written if token in ids}:
        missing = "" if turn in ids else ", which is no token of this tokenizer"
        why = f"the template ends a turn with {printable(str(turn))!r}{missing}; replies stop at ids {sorted(stop)[:8]}"
        yield fault("EOS_TEMPLATE_MISMATCH", f"{why}: put its id into {CONFIG}'s eos_token_id", fatal=False)
    padding = ids[pad] if pad in ids else view.json(CONFIG).get("pad_token_id")
    if (pad is not None and pad == eos) or (turn in ids and padding == ids[turn]):
        why = "padding and the turn's end are one token: where padding is masked in training, the end is never learnt"
        yield fault("PAD_IS_EOS", f"{why}; give padding a token of its own", fatal=False)


def stopping(view: View, vocabulary: Vocabulary) -> set[int]:
    """The ids that end a reply: of generation_config, else of the config, else the tokenizer's eos_token."""
    for name in (CONFIG, "config.json"):
        stated = stop_ids(view.json(name))
        if stated is not None:
            return set(stated)
    eos = content(view.json("tokenizer_config.json").get("eos_token"))
    return {vocabulary.ids[eos]} if eos in vocabulary.ids else set()


def stop_ids(config: dict[str, Any]) -> tuple[int, ...] | None:
    """`eos_token_id` of a config, or of its text part; `None` where neither states one."""
    text = config.get("text_config")
    found = ids_of(config.get("eos_token_id"))
    return found if found is not None or not isinstance(text, dict) else ids_of(text.get("eos_token_id"))


def content(token: Any) -> str | None:
    """A token as a tokenizer_config states it: text, or an object that holds it."""
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else None


def short(value: Any) -> str:
    """A JSON value, on one line."""
    return printable(repr(value), 40)
