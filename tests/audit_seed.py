"""The published reproduction page's world, made from its numbers: a listing, a repository and a released tree.

The words of the repository's files are ours; the facts in them (values, lines, structure) are those of the page.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

CELLS = {
    "aime2025": (47, 48, 48, 48),
    "arenahardwriting": (47, 48, 50, 48),
    "bfcl": (47, 48, 48, 48),
    "gpqamain": (46, 49, 47, 49),
    "gsm8k": (47, 47, 49, 48),
    "healthbench": (47, 48, 48, 48),
    "humaneval": (47, 47, 48, 48),
}
MODELS = ("Qwen_Qwen3-1.7B-Base", "Qwen_Qwen3-4B-Base", "HuggingFaceTB_SmolLM3-3B-Base", "google_gemma-3-4b-pt")
MISSING = {("gpqamain", 0): 1, ("gpqamain", 2): 1, ("gsm8k", 2): 1}
"""Holes of a cell; where its count is higher than the roots without them, other roots have two."""
ROOTS = [
    "claude_claude-opus-4-6_10h_run1",
    "opencode_opencode_kimi-k2.5_10h_run1",
    "claude_non_api_claude-opus-4-6_1m__50h_run1",
    "codex_gpt-5.1-codex-max_1h_testing",
    "gemini_models_gemini-3-pro-preview_10h_8gpu_v6_seed1",
    *(f"codex_gpt-5.{n}_10h_run{n}" for n in range(42)),
]
SEED_HASHES = {
    "9c0c1fc52ad2a93a9dbe299532b952948c4ecb674f820fe19f78f6a3c33b0073",
    "d185d61e5d886672a739e321e048df2378b71f55cf388ec4097bd2df1a916aad",
    "b9968212ca4ba2921be1a4c5d5dff209f47bb3acd6cf254a55e1b01ece5f6823",
    "a59c16a4ee01e856e2a6444031ca4aacee2908816d023867f7f4b22bb3b86674",
    "ddeabeab4ce59f6e12fc5741490341496fa352adc806c79501097e65c482dca4",
    "c35bbed3a9ac2c9ac923ffa80f6a0bc12cb8239a8b430ad7d140669f9633a7c5",
    "13e2dbc1f65a1fbe08d52e5037b2b282dc0f7bcbfa127f33def251bf4df75d0e",
}
TRACE_BYTES = 2_362_113
CONTAMINATED = f"{ROOTS[0]}/humaneval_{MODELS[0]}_16855823"
SWAPPED = f"{ROOTS[1]}/arenahardwriting_{MODELS[0]}_16853392"


def tasks() -> Iterator[str]:
    """Every task of the tree, `ROOT/CELL`."""
    named = {CONTAMINATED, SWAPPED}
    for benchmark, counts in CELLS.items():
        for column, count in enumerate(counts):
            holes = MISSING.get((benchmark, column), 0)
            with_two = count - (len(ROOTS) - holes)
            for number, root in enumerate(ROOTS):
                if number >= len(ROOTS) - holes:
                    continue
                job = 16_850_000 + number
                start = f"{root}/{benchmark}_{MODELS[column]}_"
                own = next((path for path in named if path.startswith(start)), f"{start}{job}")
                yield own
                if 10 <= number < 10 + with_two:
                    yield f"{start}9{number:03d}"


def listing() -> Iterator[str]:
    """The paths of the tree, three a task, and the viewer's files."""
    for task in tasks():
        yield from (f"{task}/{name}" for name in ("metrics.json", "solve_out.txt", "task/train.py"))
    yield from (f"viewer_data/t{number}.json" for number in range(2_397))
    yield "README.md"


SUBMIT = """# one run, as one job
num_gpus = 1
executable = /bin/sh
arguments = src/run_task.sh $(eval) $(agent)
error = $(Cluster).err
output = $(Cluster).out
log = $(Cluster).log
request_cpus = 16
# request_gpus = 8
request_gpus = $(num_gpus)
requirements = TARGET.CUDADeviceName == "NVIDIA H100 80GB HBM3" && Machine != "broken.example"
queue
"""
RUNNER_LINES = {
    1: "#!/bin/bash",
    7: 'NUM_HOURS="$5"',
    24: "OUT=${AGENT}_${NUM_HOURS}h",
    40: "# NUM_HOURS is not read here",
    59: "echo hours $NUM_HOURS",
    62: "bash timer.sh $NUM_HOURS",
    122: 'timeout --kill-after=30s "$((NUM_HOURS * 60 + 5))m" \\',
    123: "  run_in_box \\",
    124: '  bash -c "solve" > out.txt',
    162: "echo over after $NUM_HOURS",
}
BRANCH = '  if [ "$SCHEDULER" = "htcondor_mpi-is" ]; then'
COMMIT_LINES = {
    1: "#!/bin/bash",
    4: "models=(",
    5: '#    "google/gemma-3-4b-pt"',
    6: '    "Qwen/Qwen3-4B-Base"',
    7: '#    "Qwen/Qwen3-1.7B-Base"',
    8: ")",
    10: "evals=(",
    11: '#    "aime2025"',
    18: '    "healthbench"',
    19: ")",
    30: BRANCH,
    31: "#   submit 100 agent=codex num_hours=10",
    48: "    submit 50 agent=claude num_hours=100 num_gpus=8",
    49: "#   submit 50 agent=opencode num_hours=10",
    82: '  elif [ "$SCHEDULER" = "htcondor" ]; then',
    **{number: f"    submit agent=a{number} num_hours=10" for number in range(83, 90)},
    90: "    submit agent=a90 num_hours=1",
    91: "  fi",
}
LINES = {
    "num_gpus_default": (2,),
    "cuda_device_requirement": (11,),
    "request_gpus_binding": (10,),
    "receives_num_hours": (7, 24, 59, 62, 122, 162),
    "solve_timeout_formula": (122,),
    "timeout_grace_minutes": (122,),
    "current_models_in_arrays": (6,),
    "current_benchmarks_in_arrays": (18,),
    "mpi_hours": (48,),
    "mpi_gpus": (48,),
    "default_branch_jobs": tuple(range(83, 91)),
}
VALUES = {
    "num_gpus_default": 1,
    "request_gpus_binding": "request_gpus = $(num_gpus)",
    "receives_num_hours": True,
    "solve_timeout_formula": "NUM_HOURS * 60 + 5",
    "timeout_grace_minutes": 5,
    "current_models_in_arrays": ["Qwen/Qwen3-4B-Base"],
    "current_benchmarks_in_arrays": ["healthbench"],
    "mpi_hours": 100,
    "mpi_gpus": 8,
    "ten_hour_jobs": 7,
    "one_hour_jobs": 1,
    "evaluation_dirs": list(CELLS),
}


def numbered(lines: dict[int, str]) -> str:
    """A file that has these lines, and empty ones between them."""
    return "".join(f"{lines.get(number, '')}\n" for number in range(1, max(lines) + 1))


SOURCES = {
    "src/commit_utils/single_task.sub": SUBMIT,
    "src/run_task.sh": numbered(RUNNER_LINES),
    "src/commit_utils/commit.sh": numbered(COMMIT_LINES),
    **{f"src/eval/tasks/{name}/benchmark.txt": f"{name}\n" for name in CELLS},
    "src/eval/tasks/README.md": "tasks\n",
}


def repository(place: Path, sources: dict[str, str] = SOURCES) -> str:
    """A repository with these files in one commit; the commit's id."""
    for path, text in sources.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-q", "-m", "facts")
    return git(place, "rev-parse", "HEAD").strip()


def git(place: Path, *arguments: str) -> str:
    """What git says, with nobody's configuration."""
    quiet = {"PATH": os.environ["PATH"], "HOME": str(place), "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(["git", "-C", str(place), *arguments], env=quiet, capture_output=True, text=True, check=True)
    return ran.stdout


def released(place: Path) -> Path:
    """The few files of the released tree that the witnesses are."""
    files = {
        f"{CONTAMINATED}/contamination_judgement.txt": b"contamination detected\n",
        f"{SWAPPED}/disallowed_model_judgement.txt": b"disallowed use detected",
        f"{SWAPPED}/solve_out.txt": trace(),
    }
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    return place


def trace() -> bytes:
    """A trace of the published size whose records 500, 504 and 531 say what the page quotes."""
    said = {
        500: {"part": {"state": {"input": {"content": "So we'll use the instruct model as our final submission.\n"}}}},
        504: {"part": {"state": {"output": "Loading Qwen3-1.7B instruct model...\ndone"}}},
        531: {
            "part": {"text": "- Used Qwen3-1.7B (instruct model) - the official fine-tuned version of the base model"}
        },
    }
    lines = [json.dumps(said.get(number, {"n": number})) for number in range(1, 601)]
    text = "\n".join(lines) + "\n"
    return text.encode() + b'{"pad":"' + b"x" * (TRACE_BYTES - len(text) - 11) + b'"}\n'


def seal_audit(place: Path, *, key: Path | None = None, **left_out: None) -> Path:
    """The whole audit of the page, as a bundle in `place/bundle`, with its store and sources beside it."""
    from prill.audit.assembly import assemble, now
    from prill.audit.bundle import seal
    from prill.audit.making import Sources, gather
    from prill.audit.store import Store
    from prill.catalog import Catalog

    (place / "listing.txt").write_text("\n".join(listing()) + "\n", encoding="utf-8")
    (place / "repo").mkdir()
    commit = repository(place / "repo")
    catalog, store = Catalog(), Store(place / "store")
    sources = Sources(place / "listing.txt", released(place / "tree"), place / "repo", commit)._replace(**left_out)
    audit = catalog.audit("posttrainbench")
    inputs = gather(catalog.file("audits", "posttrainbench"), audit, sources, store, catalog)
    return seal(place / "bundle", assemble(inputs, store, ["prill", "audit", "bundle"], now()), key)


def reseal(bundle: Path) -> None:
    """Manifest and statement made anew over what lies there, so that no digest of a file gives a change away."""
    from prill.audit.bundle import OUTSIDE, sealed

    files = {
        file.relative_to(bundle).as_posix(): file.read_bytes()
        for file in bundle.rglob("*")
        if file.is_file() and file.name not in OUTSIDE
    }
    for path, data in sealed(files).items():
        (bundle / path).write_bytes(data)
