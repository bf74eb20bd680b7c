"""The messages that are put to a model, item by item: prompt, options, examples, earlier turns, tools."""

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from msgspec.structs import replace

from prill import seeds
from prill.errors import DefinitionError
from prill.sockets import Item, Value
from prill.spec import Benchmark

BLANK = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""BFCL's names for types → JSON schema's. `any` has none and is left out."""


class Request(Value, frozen=True, kw_only=True):
    """What one request says, in the words of an OpenAI-compatible server."""

    messages: tuple[dict[str, str], ...]
    tools: tuple[dict[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """The same without roles, for a server that completes text."""
        return "\n\n".join(message["content"] for message in self.messages)


def shown(benchmark: Benchmark, item: Item, seed: int | None = None) -> Item:
    """The item as it is put to the model and its grader: options in their order under the seed, fields for marking.

    Without a seed the order is that of seed 0: upstream draws it anew, and any fixed draw is as good.
    """
    fields = {**item.fields, **benchmark.marking}
    answer = item.answer
    if benchmark.shuffle:
        options = item.fields["choices"]
        perm = seeds.order(seed or 0, item.id, len(options))
        now = seeds.shuffled(options, ascii_uppercase.index(answer), [perm])
        fields["choices"], answer = list(now.options), now.letter
    return Item(id=item.id, question=item.question, answer=answer, fields=fields)


def with_examples(benchmark: Benchmark, examples: Sequence[Item]) -> Benchmark:
    """The benchmark with its worked examples written into the system message."""
    if benchmark.few_shot is None:
        return benchmark
    shot = benchmark.few_shot
    if len(examples) != len(shot.rows):
        raise DefinitionError(f"benchmarks/{benchmark.name}: {len(examples)} examples, not {len(shot.rows)}")
    written = [fill(shot.template, {**blanks(example), "answer": example.answer}) for example in examples]
    parts = [benchmark.system] if benchmark.system else []
    return replace(benchmark, system="\n\n".join([*parts, shot.between.join(written)]), few_shot=None)


def render(benchmark: Benchmark, item: Item) -> Request:
    """What one item of a benchmark asks. `item` is as `shown` returns it, the benchmark as `with_examples` does."""
    if benchmark.few_shot is not None:
        raise DefinitionError(f"benchmarks/{benchmark.name}: its examples have not been read (chat.with_examples)")
    template = next((text for name, text in benchmark.prompt_with.items() if item.fields.get(name)), benchmark.prompt)
    messages = [message("system", benchmark.system)] if benchmark.system else []
    messages += [message(turn["role"], turn["content"]) for turn in item.fields.get("conversation", ())]
    messages.append(message("user", fill(template, blanks(item))))
    return Request(messages=tuple(messages), tools=tuple(tool(each) for each in item.fields.get("functions", ())))


def message(role: str, content: str) -> dict[str, str]:
    """One message."""
    return {"role": role, "content": content}


def blanks(item: Item) -> dict[str, str]:
    """What a prompt may have blanks for. Never the answer."""
    words = {name: value for name, value in item.fields.items() if isinstance(value, str)}
    if "choices" in item.fields:
        options = list(zip(ascii_uppercase, item.fields["choices"], strict=False))
        words["choices"] = "\n".join(f"{letter}) {option}" for letter, option in options)
        words["letters"] = ",".join(letter for letter, _ in options)
    return {**words, "question": item.question}


def fill(template: str, words: Mapping[str, str]) -> str:
    """A template with its blanks filled, once: braces inside what is filled in stay as they are."""

    def word(blank: re.Match[str]) -> str:
        if blank[1] not in words:
            raise DefinitionError(f"the prompt has a blank {blank[0]} (there are: {', '.join(sorted(words))})")
        return words[blank[1]]

    return BLANK.sub(word, template)


def tool(function: Mapping[str, Any]) -> dict[str, Any]:
    """A BFCL function as an OpenAI tool. Names lose their dots, which such servers refuse (rule T3)."""
    described = {
        "name": function["name"].replace(".", "_"),
        "description": function.get("description", ""),
        "parameters": schema(function["parameters"]),
    }
    return {"type": "function", "function": described}


def schema(published: Any) -> Any:
    """A BFCL schema as JSON schema: the same but for the names of types."""
    if isinstance(published, list | tuple):
        return [schema(inner) for inner in published]
    if not isinstance(published, Mapping):
        return published
    out: dict[str, Any] = {}
    for name, inner in published.items():
        if name == "type" and isinstance(inner, str):
            if inner != "any":
                out[name] = TYPES.get(inner, inner)
        elif name == "properties" and isinstance(inner, Mapping):
            out[name] = {key: schema(value) for key, value in inner.items()}
        elif name in ("default", "enum"):
            out[name] = inner
        else:
            out[name] = schema(inner)
    return out
