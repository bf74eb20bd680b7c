"""A seeded Claude stream of 10 MB with planted secrets, and what publishing it costs, for the rows `trace…`.

Nothing here resembles a real key or a real run.
"""

import io
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from uuid import UUID

import orjson

from bench.paired import paired
from prill.trajectory import forms
from prill.trajectory.compiled import ENOUGH, THE_SEARCH

SIZE = 10_000_000
NAMES = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HF_TOKEN", "GEMINI_API_KEY", "WANDB_API_KEY")
PLANTS = 60
SESSION = "00000000-0000-4000-8000-000000000000"
SHAPES = (
    r"sk-ant-[A-Za-z0-9_-]{16,}",
    r"sk-[A-Za-z0-9_-]{20,}",
    r"hf_[A-Za-z0-9]{20,}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"AKIA[A-Z0-9]{16}",
    r"dtn_[A-Za-z0-9]{20,}",
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{16,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"(?i)x-api-key: [A-Za-z0-9]{8,}",
)
TEXT = """
    the model loss step batch train epoch learning rate eval accuracy gradient checkpoint tokenizer dataset sample
    def return import self for in range print if else with open as None True False torch device cuda config path
    writing results to disk, then running the evaluation again; we see that it improves. however 0.125 step 17 of 300
"""
WORDS = TEXT.split()
SIGNS = [" "] * 16 + ["\n"] * 3 + ["_", "="]


def made(seed: int = 0) -> tuple[bytes, dict[str, str], list[str]]:
    """The stream, the known secrets by name, and every secret planted in it."""
    chance = Random(seed)
    known = {name: f"{chance.getrandbits(160):040x}" for name in NAMES}
    shaped = [
        *(f"sk-ant-api03-FAKE0{chance.getrandbits(96):024x}" for _ in range(PLANTS // 4)),
        *(f"hf_FAKE0{chance.getrandbits(96):024x}" for _ in range(PLANTS // 4)),
        *(f"ghp_FAKE0{chance.getrandbits(128):032x}" for _ in range(PLANTS // 4)),
    ]
    plants = [*shaped, *(known[NAMES[number % len(NAMES)]] for number in range(PLANTS // 4))]
    lines = ['{"type":"system","subtype":"init","session_id":"bench","model":"made-1","claude_code_version":"0"}']
    size, turn = 0, 0
    every = SIZE // 4800 // len(plants)
    left = list(plants)
    while size < SIZE:
        turn += 1
        plant = left.pop() if left and turn % every == 0 else ""
        for event in _turn(turn, chance, plant):
            lines.append(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
            size += len(lines[-1].encode()) + 1
    lines.append('{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":1.5}')
    return ("\n".join(lines) + "\n").encode(), known, plants


def _turn(turn: int, chance: Random, plant: str) -> list[dict[str, object]]:
    def prose(count: int) -> str:
        signs = chance.choices(SIGNS, k=count)
        return "".join(map(str.__add__, chance.choices(WORDS, k=count), signs)) + ("" if turn % 20 else "naïve — café")

    usage = {"input_tokens": 4, "cache_creation_input_tokens": 900, "cache_read_input_tokens": turn, "output_tokens": 1}
    head = {"id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "made-1"}
    ended = {"stop_reason": None, "stop_sequence": None, "usage": {**usage, "service_tier": "standard"}}
    call = f"toolu_{chance.getrandbits(96):024x}"
    at = f"2026-01-01T{turn // 3600 % 24:02}:{turn // 60 % 60:02}:{turn % 60:02}.000Z"
    bash = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": prose(30), "description": prose(5)}}
    output = f"{prose(200)}{plant}\n{prose(20)}"
    result = {"tool_use_id": call, "type": "tool_result", "content": output, "is_error": False}
    told = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}

    def line(kind: str, message: dict[str, object], **more: object) -> dict[str, object]:
        ids = {"parent_tool_use_id": None, "session_id": SESSION, "uuid": str(UUID(int=chance.getrandbits(128)))}
        return {"type": kind, "message": message, **ids, "timestamp": at, **more}

    return [
        line("assistant", {**head, "content": [{"type": "text", "text": prose(60)}], **ended}),
        line("assistant", {**head, "content": [bash], **ended}),
        line("user", {"role": "user", "content": [result]}, tool_use_result=told),
    ]


def plainly(source: Path, known: dict[str, str], raw: Path, readable: Path) -> None:
    """The plain way: a json loop over the lines, then each value and shape out of both texts, one by one."""
    text = source.read_text(encoding="utf-8", errors="replace")
    told = []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            told.append(line)
            continue
        content = event.get("message", {}).get("content", "")
        for block in content if isinstance(content, list) else [content]:
            if isinstance(block, str):
                told.append(block)
            elif block.get("type") == "text":
                told.append(f"=== message ===\n{block['text']}\n")
            elif block.get("type") == "tool_use":
                told.append(f"=== {block['name']} ===\n{json.dumps(block['input'], indent=2)}\n")
            else:
                told.append(f"=== result ===\n{block.get('content')}\n")
    for target, whole in ((raw, text), (readable, "\n".join(told))):
        for name, value in known.items():
            whole = whole.replace(value, f"[{name}]")
        for shape in SHAPES:
            whole = re.sub(shape, "[redacted]", whole)
        target.write_text(whole, encoding="utf-8")


@dataclass(frozen=True)
class Figures:
    """CPU seconds of the two peers, and ours as a multiple of each."""

    plain: float
    orjson: float
    to_plain: float
    to_orjson: float
    note: str


@cache
def figures() -> Figures:
    """Both comparisons, on the same bytes. Raises `RuntimeError` where a planted secret survives in either form.

    The search for secrets is compiled beforehand where numba is there, as it is in a process that has published
    `ENOUGH` bytes.
    """
    data, known, plants = made()
    search = "compiled search" if THE_SEARCH.load() else "plain search, for there is no numba"
    with TemporaryDirectory(prefix="prill-bench-") as place:
        source, raw, readable = (Path(place, name) for name in ("in", "raw", "readable"))
        source.write_bytes(data)

        def ours() -> forms.Forms:
            with source.open("rb") as lines, raw.open("wb") as one, readable.open("wb") as other:
                return forms.write("claude_code", lines, known, one, other)

        def loads() -> None:
            for line in io.BytesIO(data):
                orjson.loads(line)

        to_plain = paired(ours, lambda: plainly(source, known, Path(place, "a"), Path(place, "b")))
        to_orjson = paired(ours, loads)
        told = ours()
        for file in (raw, readable):
            left = [plant for plant in plants if plant.encode() in file.read_bytes()]
            if left:
                raise RuntimeError(f"{len(left)} planted secrets survive in {file.name}; the figure means nothing")
    note = (
        f"{to_plain.ours:.3f} s, {told.steps:,} steps, {sum(told.counts.values())} secrets replaced in both forms, "
        f"{1 / to_plain.ratio:.1f} times as fast as the plain loop; {search}, which a process "
        f"loads when it has searched {ENOUGH >> 20} MB; docs/reference/trajectories.md has the figures without it"
    )
    return Figures(to_plain.theirs, to_orjson.theirs, to_plain.ratio, to_orjson.ratio, note)
