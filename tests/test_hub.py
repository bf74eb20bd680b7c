"""The hub front, asked by the hub's own client; the hub behind it and the host of its large files are played here."""

import os
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubs import COMMIT, ROWS, TINY, TOKEN, WEIGHTS, World, opened
from prill.catalog import Catalog
from prill.gateway.hub import CONNECTIONS
from prill.gateway.hubfacts import span
from prill.gateway.hubpaths import denied_of, rule, wanted
from prill.plan import plan

TRIED = """
    import traceback
    try:
        exec(call)
    except Exception:
        print(traceback.format_exc(), end="\\0")
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An open world."""
    with opened(tmp_path) as found:
        yield found


def client(
    world: World, repo: Path, code: str, *, package: str = "huggingface_hub"
) -> subprocess.CompletedProcess[str]:
    """A program of the box that uses the hub's client, behind the relay; it knows no key and no other host."""
    pytest.importorskip(package)
    with socket.create_server(("127.0.0.1", 0)) as trial:
        port = trial.getsockname()[1]
    relay = [
        sys.executable,
        str(repo / "src/prill/tools/relay.py"),
        "--ready",
        "-",
        f"{port}={world.folder / 'hub.sock'}",
    ]
    home = world.folder / "home"
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "HF_HOME": str(home), "HF_ENDPOINT": f"http://127.0.0.1:{port}",
        "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_ETAG_TIMEOUT": "30",
    }  # fmt: skip
    with subprocess.Popen(relay, stdout=subprocess.PIPE) as program:
        assert program.stdout and program.stdout.readline() == b"ready\n"
        try:
            command = [sys.executable, "-c", code]
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        finally:
            program.terminate()


def test_the_client_downloads_a_repository_whole(world: World, repo: Path) -> None:
    """A snapshot by the real client has every byte, comes by plain download, and only the front knows key and hosts."""
    ran = client(world, repo, "from huggingface_hub import *; print(snapshot_download('org/tiny'), list_repo_refs)")
    assert ran.returncode == 0, ran.stderr
    folder = Path(ran.stdout.split()[0])
    assert {path: (folder / path).read_bytes() for path in TINY} == TINY
    assert folder.name == COMMIT
    assert {key for _, path, key in world.seen if path.startswith("/models/")} == {None}
    assert {key for _, path, key in world.seen if not path.startswith("/models/")} == {f"Bearer {TOKEN}"}
    assert TOKEN not in world.log.read_text() + ran.stdout + ran.stderr
    asked = [line for line in world.lines("asked") if line["file"] == "model.safetensors"]
    assert {(line["repo"], line["kind"], line["verdict"], line["step"]) for line in asked} == {
        ("org/tiny", "models", "allow", 3),
    }  # fmt: skip
    assert sum(line["bytes"] for line in world.lines("ended")) > len(WEIGHTS)


def test_a_second_download_needs_no_hub(world: World, repo: Path) -> None:
    """A file of a commit that is in the cache is given with the hub gone, also in part, and a branch is not guessed."""
    path = f"/org/tiny/resolve/{COMMIT}/model.safetensors"
    answer, part = world.ask(path, Range="bytes=7-9")
    assert (answer.status, part) == (206, WEIGHTS[7:10])
    assert world.ask(path)[1] == WEIGHTS
    world.close()
    world.seen.clear()
    assert world.ask(path)[1] == WEIGHTS
    answer, part = world.ask(path, Range="bytes=100-199")
    assert (answer.status, part, answer.getheader("Content-Range")) == (206, WEIGHTS[100:200], "bytes 100-199/300000")
    assert world.ask("/org/tiny/resolve/main/model.safetensors")[0].status == 502
    assert [line["cached"] for line in world.lines("ended")] == [False, False, True, True, False]
    code = (
        f"from huggingface_hub import *; print(hf_hub_download('org/tiny', 'model.safetensors', revision='{COMMIT}'))"
    )
    ran = client(world, repo, code)
    assert ran.returncode == 0 and Path(ran.stdout.strip()).read_bytes() == WEIGHTS, ran.stderr
    assert world.seen == []


def test_a_denied_repository_s_words_reach_the_client(world: World, repo: Path) -> None:
    """The real client's error has the front's reason for a file, a snapshot and facts, and the hub is never asked."""
    calls = [
        "hf_hub_download('org/TINY-instruct', 'config.json')",
        "snapshot_download('ORG/tiny-instruct')",
        "HfApi().model_info('org/tiny-instruct')",
        "hf_hub_download('org/maths', 'main/test-0.jsonl', repo_type='dataset')",
        "snapshot_download('org/exam', repo_type='dataset')",
    ]
    ran = client(world, repo, f"from huggingface_hub import *\nfor call in {calls}:{TRIED}")
    said = ran.stdout.split("\0")[:-1]
    assert [type(each) for each in said if "prill: " not in each or "GatedRepoError" not in each] == [], said
    assert len(said) == len(calls)
    assert not [path for _, path, _ in world.seen if "instruct" in path or "exam" in path or "test-0" in path]
    denied = [line for line in world.lines("asked") if line["repo"] and line["verdict"] == "deny"]
    assert {line["rule"] for line in denied} == {"lineage", "contamination"}


def test_the_training_half_of_a_test_set_s_repository_is_free(world: World, repo: Path) -> None:
    """Of a repository with both splits the client of data sets gets the training rows by their path, not the others."""
    calls = [
        "print(len(load_dataset('org/maths', data_files='main/train-*', split='train')))",
        "load_dataset('org/maths', 'main', split='train')",
    ]
    ran = client(world, repo, f"from datasets import load_dataset\nfor call in {calls}:{TRIED}", package="datasets")
    assert ran.stdout.startswith("200\n") and "prill: contamination: org/maths" in ran.stdout, ran.stdout + ran.stderr
    assert not [path for _, path, _ in world.seen if "test-0" in path and "resolve" in path]


def test_a_cut_download_is_never_taken_for_whole_and_needs_no_key(world: World, repo: Path) -> None:
    """The client sees that a download broke off and asks again, and what needs the key is read without it, flagged."""
    handler: Any = world.large.RequestHandlerClass
    handler.cut = True
    ran = client(world, repo, "from huggingface_hub import *; print(hf_hub_download('org/gated', 'model.safetensors'))")
    assert ran.returncode == 0 and Path(ran.stdout.strip()).read_bytes() == WEIGHTS, ran.stderr
    assert {line["verdict"] for line in world.lines("asked") if line["repo"]} == {"flag"}
    ended = [line for line in world.lines("ended") if line["bytes"]]
    assert [(line["status"], line["bytes"] < len(WEIGHTS)) for line in ended] == [(None, True), (200, False)]
    answer, body = world.ask(f"/org/gated/resolve/{COMMIT}/model.safetensors", Range="bytes=299990-")
    assert (answer.status, body) == (206, WEIGHTS[299990:])
    assert world.ask("/org/gated/resolve/main/model.safetensors", Range="bytes=300000-")[0].status == 416


def test_missing_files_and_facts_pass_as_the_hub_says_them(world: World) -> None:
    """Errors keep the hub's own code, links to the next page lead to the front, Xet is not told of."""
    answer, _ = world.ask("/org/tiny/resolve/main/none.txt", "HEAD")
    assert (answer.status, answer.getheader("X-Error-Code")) == (404, "EntryNotFound")
    answer, _ = world.ask("/api/datasets?search=x", Host="127.0.0.1:4143")
    assert answer.getheader("Link") == '<http://127.0.0.1:4143/api/datasets?cursor=2>; rel="next"'
    answer, _ = world.ask("/org/tiny/resolve/main/model.safetensors", "HEAD")
    names = {name.lower() for name, _ in answer.getheaders()}
    assert not [name for name in names if "xet" in name or name in ("location", "link")]
    assert answer.getheader("Content-Length") == answer.getheader("X-Linked-Size") == "300000"
    assert world.lines("asked")[1]["query"] == "search=x"


def test_a_renamed_repository_is_ruled_on_by_its_last_name(world: World) -> None:
    """A redirect to a denied repository ends in the refusal, and the file is never asked for."""
    answer, body = world.ask("/datasets/old/exam/resolve/main/data.jsonl")
    assert answer.status == 403 and b"prill: contamination: org/exam" in body
    assert world.lines("renamed")[0]["verdict"] == "deny"


def test_paths_that_climb_or_hide_are_refused(world: World) -> None:
    """Dots, encoded slashes, backslashes and git's names for a repository are refused and never reach the hub."""
    for path in (
        "/org/tiny/resolve/main/..%2f..%2fx", "/org/tiny/resolve/main/../../tiny-instruct/resolve/main/config.json",
        "/org/tiny/resolve/main/a%2fb", "/org/tiny/resolve/main/%2e%2e/x", "/org/tiny/resolve/..%2fx/config.json",
        "/org/tiny-instruct.git/resolve/main/config.json", "/org/tiny/resolve/main/a%5cb",
        "/org/tiny/resolve/main/a%00",
        "//org/tiny/resolve/main/x", "/org/tiny/resolve/main/%ff", "/org%2ftiny/resolve/main/x",
        "/api/models/../x/tree/main",
        "/api/models/org/tiny/tree/main/..%2f..", "/org/t--y/resolve/main/x", "/org/tiny/resolve/a//b",
    ):  # fmt: skip
        answer, body = world.ask(path)
        assert answer.status in (400, 404) and b"prill: " in body, path
    assert world.seen == []
    assert not [path for path in world.folder.rglob("*") if path.is_file() and path.name != "hub.jsonl"]


def test_nothing_is_sent_to_the_hub(world: World) -> None:
    """Uploads, deletions, git and account pages are refused with words; asking for paths by POST is a reading."""
    for method, path in (
        ("POST", "/api/repos/create"), ("POST", "/api/models/org/tiny/commit/main"), ("PUT", "/api/models/org/tiny"),
        ("DELETE", "/api/repos/delete"), ("POST", "/org/tiny.git/info/lfs/objects/batch"), ("POST", "/api/models"),
    ):  # fmt: skip
        answer, _ = world.ask(path, method)
        assert answer.status == 403 and "prill: upload" in answer.getheader("X-Error-Message", ""), path
    for path in ("/api/whoami-v2", "/org/tiny.git/info/refs", "/login", "/", "/org/tiny/raw/main/config.json"):
        assert world.ask(path)[0].status == 404, path
    assert world.seen == []


def test_a_content_that_is_not_its_digest_is_not_kept(world: World) -> None:
    """Bytes that differ from the digest that the hub gave pass to the client, who checks, and not into the cache."""
    handler: Any = world.large.RequestHandlerClass
    handler.broken = True
    path = f"/org/tiny/resolve/{COMMIT}/model.safetensors"
    assert world.ask(path)[1] == b"x" + WEIGHTS[1:]
    handler.broken = False
    assert world.ask(path)[1] == WEIGHTS
    assert [line["cached"] for line in world.lines("ended")] == [False, False]
    assert list((world.folder / "cache" / "parts").iterdir()) == []


def test_the_cache_has_a_most_and_shares_contents(tmp_path: Path) -> None:
    """Equal contents of two repositories lie there once, and what was used longest ago goes when there is too much."""
    with opened(tmp_path, most_bytes=301_000, denied={}) as world:
        for name in ("tiny", "tiny-instruct"):
            world.ask(f"/org/{name}/resolve/main/model.safetensors")
        files = [path for path in (tmp_path / "cache/files").rglob("*") if path.is_file()]
        assert [path.stat().st_size for path in files] == [300_000]
        assert [line["cached"] for line in world.lines("ended")] == [False, True]
        os.utime(files[0], (1, 1))
        world.ask("/datasets/org/maths/resolve/main/main/train-0.jsonl")
        assert len(world.lines("ended")) == 3
        files = [path for path in (tmp_path / "cache/files").rglob("*") if path.is_file()]
        assert [path.stat().st_size for path in files] == [len(ROWS)]


def test_a_hub_that_breaks_off_does_not_end_a_file_early(world: World) -> None:
    """Where the hub is gone the client gets 502 in the hub's shape, and the log says what happened."""
    world.close()
    answer, _ = world.ask("/org/tiny/resolve/main/config.json", "HEAD")
    assert answer.status == 502 and "cannot be reached" in answer.getheader("X-Error-Message", "")
    assert world.lines("ended")[0]["ended"].startswith("the hub: ")


def test_connections_have_a_most(world: World) -> None:
    """Connections beyond the most are closed at once, and when others have ended there is room again."""
    held = []
    for _ in range(CONNECTIONS + 8):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].connect(os.fspath(world.folder / "hub.sock"))
        held[-1].settimeout(20)
    assert {each.recv(1) for each in held[CONNECTIONS:]} == {b""}
    for each in held:
        each.close()
    until = time.monotonic() + 20
    status = 0
    while status != 200 and time.monotonic() < until:
        with suppress(OSError, HTTPException):
            status = world.ask("/org/tiny/resolve/main/config.json")[0].status
    assert status == 200


# --- pure ---


def test_a_suite_denies_its_test_sets_and_siblings() -> None:
    """A run's own test sets and siblings are denied, copies by name flagged, train splits and bases free."""
    catalog = Catalog()
    suite = catalog.suite("posttrainbench-1.1")
    runs = plan(
        suite, entrants=[catalog.entrant("base-only")], models=[catalog.model("qwen3-4b-base")],
        benchmarks=[catalog.benchmark(name) for name in ("gsm8k", "gpqamain")], prompt=catalog.prompt(suite.prompt),
        seeds=[1], digests=defaultdict(str), hosts=catalog.hosts("posttrainbench-1.1"),
    )  # fmt: skip
    found = {
        "/datasets/OpenAI/GSM8K/resolve/main/main/test-00000-of-00001.parquet": ("allow", "deny"),
        "/datasets/openai/gsm8k/resolve/main/main/train-00000-of-00001.parquet": ("allow", "allow"),
        "/datasets/openai/gsm8k/resolve/refs%2Fconvert%2Fparquet/main/test/0000.parquet": ("allow", "deny"),
        "/api/datasets/openai/gsm8k/parquet/main/test/0.parquet": ("allow", "deny"),
        "/datasets/openai/gsm8k/resolve/main/all.zip": ("allow", "flag"),
        "/api/datasets/openai/gsm8k/tree/main/main": ("allow", "allow"),
        "/datasets/idavidrein/GPQA/resolve/main/README.md": ("deny", "allow"),
        "/datasets/somebody/gpqa/resolve/main/gpqa.csv": ("flag", "allow"),
        "/Qwen/qwen3-4b/resolve/main/config.json": ("deny", "deny"),
        "/api/models/Qwen/Qwen3-4B-Thinking-2507/revision/main": ("deny", "deny"),
        "/mirror/Qwen3-4B/resolve/main/config.json": ("flag", "flag"),
        "/Qwen/Qwen3-4B-Base/resolve/main/config.json": ("allow", "allow"),
        "/Qwen/Qwen3-0.6B/resolve/main/config.json": ("allow", "allow"),
        "/datasets/aisa-group/PostTrainBench-Trajectories/resolve/main/a.json": ("deny", "deny"),
        "/datasets/me/PostTrainBench-runs/resolve/main/a.json": ("flag", "flag"),
        "/api/datasets": ("allow", "allow"),
    }
    rules = [denied_of(run) for run in sorted(runs, key=lambda run: run.benchmarks[0].name)]
    assert {path: tuple(rule(wanted(path), *each).verdict for each in rules) for path in found} == found
    assert rule(wanted("/Qwen/Qwen3-4B/resolve/main/x"), *rules[0]).rule == "lineage"


def test_ranges_are_read_as_the_standard_says() -> None:
    """Each form of a range gives its first and last byte, and what is not understood gives all."""
    cases = {None: (0, 9), "bytes=2-4": (2, 4), "bytes=7-": (7, 9), "bytes=-3": (7, 9), "bytes=0-99": (0, 9)}
    cases |= {
        "bytes=-99": (0, 9),
        "bytes=10-": (10, 9),
        "bytes=4-2": (0, 9),
        "bytes=1-2,4-5": (0, 9),
        "lines=1-2": (0, 9),
    }
    assert {wish: span(wish, 10) for wish in cases} == cases


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80), st.text("abresolvpi/.%2fF-datsmo:", max_size=80))
def test_any_path_is_read_or_refused(noise: str, near: str) -> None:
    """Whatever the path, it is read or refused with a `ValueError`, and what is asked of the hub never climbs."""
    for raw in ("/" + noise, "/" + near, "/org/tiny/resolve/main/" + near, "/api/models/org/tiny/tree/main/" + near):
        try:
            found = wanted(raw)
        except ValueError:
            continue
        assert found.path == "" or (found.path.startswith("/") and wanted(found.path) == found)
        assert not {"..", "."} & set(unquote(found.path).split("/"))
