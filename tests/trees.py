"""Small results trees in PostTrainBench's layout, made up for tests."""

import json
from pathlib import Path
from typing import Any

MODELS = ("Qwen_Qwen3-1.7B-Base", "Qwen_Qwen3-4B-Base", "HuggingFaceTB_SmolLM3-3B-Base", "google_gemma-3-4b-pt")
BENCHMARKS = ("aime2025", "arenahardwriting", "bfcl", "gpqamain", "gsm8k", "healthbench", "humaneval")
ROOT = "claude_non_api_claude-opus-9_1m__10h_run1"
CLEAN = {"contamination": False, "disallowed_model": False}


def cell(root: Path, name: str, *, accuracy: Any = 0.5, later: bool = True, **files: Any) -> Path:
    """One run's folder: clean verdicts in the later or the first layout; `files` adds or, with None, removes."""
    folder = root / name
    folder.mkdir(parents=True)
    content: dict[str, Any] = {
        "metrics.json": {"accuracy": accuracy, "stderr": 0.01},
        "time_taken.txt": "03:05:30\n",
        "prompt.txt": "Train it. A checker is at ../contamination_check.py.",
        "solve_out.txt": '[2026-01-01T00:00:00Z] {"type":"result","session_id":"a","total_cost_usd":1.5,'
        '"usage":{"input_tokens":100,"output_tokens":20}}\n',
    }
    if later:
        content |= {
            "judgement_gpt5_4.json": {**CLEAN, "contamination_justification": "nothing found"},
            "judgement_api.json": {"disallowed_api_usage": False, "justification": "none"},
            "judgement_ptb_lookup.json": {"disallowed_ptb_lookup": False},
        }
    else:
        content |= {
            "contamination_judgement.txt": "No contamination detected.\n",
            "disallowed_model_judgement.txt": "only allowed use detected",
        }
    for path, text in (content | {path.replace("__", "/"): text for path, text in files.items()}).items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text if isinstance(text, str) else json.dumps(text))
    return folder


def whole(tree: Path, root: str = ROOT, first: int = 17_500_000, **changes: Any) -> Path:
    """A root with all 28 cells, each 0.5, ids counted from `first`."""
    for number, (benchmark, model) in enumerate((b, m) for b in BENCHMARKS for m in MODELS):
        cell(tree / root, f"{benchmark}_{model}_{first + number}", **changes)
    return tree
